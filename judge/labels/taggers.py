"""The taggers: what a prompt asks for, by rules that need no model and no network.

Which of IFEval's 25 instructions a prompt gives, by the words in which people give them.

Which answers of a turn decline what was asked, as a label.

A rule of a tagger: patterns, and what is quicker to look for and has to be there.
"""

import re
from collections.abc import Mapping, Sequence, Set
from typing import NamedTuple, Self

from judge.ifeval import language_of
from judge.replies import refuses


class Part(NamedTuple):
    """A pattern of a rule.

    Attributes
    ----------
    signs : tuple of str
        Parts of words: a text without any of them does not fit, and the pattern is not tried.
    """

    signs: tuple[str, ...]
    pattern: re.Pattern[str]


class Rule(NamedTuple):
    """Whether a text in small letters fits one of several patterns."""

    parts: tuple[Part, ...]

    @classmethod
    def of(cls, patterns: Mapping[str, str]) -> Self:
        """Make a rule of patterns, each by its signs with a bar between them.

        >>> Rule.of({"cat|dog": "(?:hot )?dog"}).holds("a hot dog")
        True
        """
        return cls(
            tuple(
                Part(tuple(signs.split("|")), re.compile(pattern, re.MULTILINE))
                for signs, pattern in patterns.items()
            )
        )

    def holds(self, text: str) -> bool:
        """Return whether a text in small letters fits."""
        for signs, pattern in self.parts:
            for sign in signs:
                if sign in text:
                    if pattern.search(text) is not None:
                        return True
                    break
        return False


_N = r"(?:\d+|one|two|three|four|five|six|seven|eight|nine|ten|a single)"
_BOUND = (
    r"(?:at least|at most|exactly|less than|fewer than|more than|no more than|under|over|about|"
    r"around|within|up to|maximum|minimum|only|between)"
)
_LANGUAGE = (
    r"(?:english|spanish|french|german|italian|portuguese|dutch|polish|russian|ukrainian|arabic|"
    r"hebrew|hindi|urdu|bengali|chinese|japanese|korean|vietnamese|thai|finnish|swahili|persian|"
    r"tamil|telugu|kannada|marathi|nepali|punjabi|gujarati|malayalam|bulgarian)"
)
_ANSWER = (
    r"(?:answer|response|reply|output|text|essay|poem|story|summary|letter|email|post|it|list|"
    r"article|description|title|bio|review|paragraph|sentence|entire \w+|whole \w+)"
)

PATTERNS: Mapping[str, str] = {
    "keywords:existence": r"\b(?:includ|us|contain|mention)(?:e|es|ing|s)? (?:all )?(?:of )?the "
    r"(?:following )?(?:key ?)?words?\b|\bthe words? ['\"“‘]?\w+['\"”’]? (?:must|should|has to)",
    "keywords:frequency": rf"\b(?:word|keyword)s? .{{1,30}}\b{_N} times\b|\b{_N} times .{{0,30}}"
    rf"\bword\b|\b(?:use|mention|repeat)\b.{{1,40}}\b{_BOUND} {_N} times\b",
    "keywords:forbidden_words": r"\b(?:do not|don't|without|never|avoid|not) (?:use|using|"
    r"mention|mentioning|include|including|say|saying|contain|containing)\b (?:any of )?"
    r"(?:the )?(?:words?|phrases?|keywords?|letters?\b)|\bforbidden words?\b"
    r"|\bwithout (?:using |saying )?the (?:word|letter)",
    "keywords:letter_frequency": rf"\bletters? ['\"“‘]?\w['\"”’]? .{{0,40}}\b{_N} times\b|"
    rf"\b{_N} times .{{0,20}}\bthe letter\b|\beach (?:word|line|sentence) (?:starts?|"
    rf"begins?) with "
    r"the letter",
    "language:response_language": rf"\b(?:answer|respond|reply|write)\b.{{0,40}}\bin {_LANGUAGE}\b"
    rf"|\b(?:entire|whole|your) (?:\w+ )?(?:in|using) (?:only )?(?:the )?{_LANGUAGE}\b"
    rf"|\bonly {_LANGUAGE}\b|\bin {_LANGUAGE} only\b",
    "length_constraints:number_sentences": rf"\b{_N}(?:[- ]to[- ]{_N}|-{_N})?[- ](?:short |"
    rf"complete |simple )?sentences?\b|\b{_BOUND} {_N} sentences?",
    "length_constraints:number_paragraphs": rf"\b{_N}(?:[- ]to[- ]{_N}|-{_N})?[- ](?:short )?"
    r"(?:paragraphs?|stanzas?)\b",
    "length_constraints:number_words": r"\b\d[\d,]*(?:\s?(?:-|to|–)\s?\d+)?[- ]?words?\b|"
    rf"\b{_BOUND} (?:\w+ )?(?:\w+ )?words\b|\b(?:in|with) {_N} words?\b|\bword (?:count|limit)\b|"
    r"\b\d+ ?(?:characters|chars)\b",
    "length_constraints:nth_paragraph_first_word": r"\bparagraph\b.{0,30}\b(?:start|begin)s? with "
    r"(?:the )?word\b|\b(?:first|1st|second|third|last) paragraph (?:must|should) (?:start|begin)",
    "detectable_content:number_placeholders": r"\bplaceholders?\b|\bsquare brackets\b",
    "detectable_content:postscript": r"\bpostscript\b|\bp\.\s?s\.|\bp\.p\.s\b",
    "detectable_format:number_bullet_lists": rf"\b(?:{_N} )?bullet(?:[- ]points?|s|ed)?\b",
    "detectable_format:constrained_response": r"\bmy answer is (?:yes|no|maybe)\b|\b(?:answer|"
    r"respond|reply)\b (?:only )?(?:with )?(?:only |just |either )?(?:a )?['\"“]?(?:yes|true|"
    r"one of)\b.{0,20}\b(?:no|false|following|options)\b|\b(?:yes|no) or (?:no|yes) only\b",
    "detectable_format:number_highlighted_sections": r"\bhighlight(?:ed)?\b.{0,30}\b(?:sections?|"
    r"words?|phrases?|parts?)\b|\*highlighted|\b(?:in|use) bold\b|\bbold the\b|\bmark .{0,20}bold",
    "detectable_format:multiple_sections": rf"\b{_N} sections\b|\bsections?\b.{{0,30}}\b(?:marked|"
    r"labell?ed|titled|starting|headed)\b|\bmark the beginning of each section\b",
    "detectable_format:json_format": r"\b(?:in|as|into|to|using|valid|return|output|only|a) "
    r"(?:a |an |the |only )?(?:valid |single |proper )?json\b|\bjson (?:format|object|array|"
    r"output)",
    "detectable_format:title": r"\bdouble angular brackets\b|<<\w|\b(?:include|contain|have|has|"
    r"with|give it|add|needs?) (?:a|its) (?:\w+ )?title\b",
    "combination:two_responses": r"\btwo different (?:responses|answers|versions|replies)\b|"
    r"\bseparated by (?:6|six)? ?asterisk|\b(?:give|write|provide) (?:me )?two (?:different )?"
    r"(?:responses|answers|versions)\b",
    "combination:repeat_prompt": r"\b(?:first )?repeat (?:the|this|my) (?:request|question|prompt|"
    r"sentence|instruction)|\brestate (?:the|my) (?:question|prompt)",
    "startend:end_checker": rf"\b(?:end|finish|conclude|close)\b (?:your |"
    rf"the )?(?:{_ANSWER} )?with "
    r"(?:the |this |an? )?(?:exact )?(?:phrase|words?|sentence|question|line|['\"“])",
    "startend:quotation": r"\b(?:wrap|enclose|put|surround)\b.{0,40}\b(?:double )?quot(?:ation|"
    r"es)",
    "change_case:capital_word_frequency": r"\b(?:words? (?:in|with) (?:all )?(?:capital|upper)|"
    r"all[- ]cap(?:s|ital)? words?|capitali[sz]e (?:at least|every|each|the))",
    "change_case:english_capital": r"\b(?:all caps|all[- ]capital|only capital letters|in "
    r"(?:all )?(?:capital letters|capitals|uppercase|upper case))\b",
    "change_case:english_lowercase": r"\b(?:all|only|in|using|entirely) (?:all )?(?:lower ?case|"
    r"lower-case|small letters)\b|\bno capital letters\b|\bwithout capital",
    "punctuation:no_comma": r"\b(?:no|without|avoid|not use|don't use|refrain from)\b.{0,30}"
    r"\bcommas?\b",
}
"""By the id of each instruction in `judge.ifeval.CHECKERS`; of a text in small letters."""

_TONGUES = _LANGUAGE.removeprefix("(?:").removesuffix(")")
_SIGNS: Mapping[str, str] = {
    "keywords:existence": "word",
    "keywords:frequency": "word|times",
    "keywords:forbidden_words": "word|phrase|letter",
    "keywords:letter_frequency": "letter",
    "language:response_language": _TONGUES,
    "length_constraints:number_sentences": "sentence",
    "length_constraints:number_paragraphs": "paragraph|stanza",
    "length_constraints:number_words": "word|char",
    "length_constraints:nth_paragraph_first_word": "paragraph",
    "detectable_content:number_placeholders": "placeholder|square bracket",
    "detectable_content:postscript": "p.|postscript",
    "detectable_format:number_bullet_lists": "bullet",
    "detectable_format:constrained_response": "my answer|yes|true|one of|no",
    "detectable_format:number_highlighted_sections": "highlight|bold",
    "detectable_format:multiple_sections": "section",
    "detectable_format:json_format": "json",
    "detectable_format:title": "title|angular|<<",
    "combination:two_responses": "two|asterisk",
    "combination:repeat_prompt": "repeat|restate",
    "startend:end_checker": "with",
    "startend:quotation": "quot",
    "change_case:capital_word_frequency": "cap|upper",
    "change_case:english_capital": "cap|upper",
    "change_case:english_lowercase": "lower|small letter|capital",
    "punctuation:no_comma": "comma",
}
"""Parts of words of which an instruction needs one: quicker to look for than its pattern."""

RULES = {id: Rule.of({_SIGNS[id]: pattern}) for id, pattern in PATTERNS.items()}


def instructions_in(text: str) -> tuple[str, ...]:
    """Name the instructions that a prompt in small letters gives, in the order of `PATTERNS`.

    Examples
    --------
    >>> instructions_in("describe rome in under 50 words and without commas.")
    ('length_constraints:number_words', 'punctuation:no_comma')
    """
    return tuple(id for id, rule in RULES.items() if rule.holds(text))


TAGGER = "rules"
VERSION = "1"
"""Changes whenever a rule does: labels of two versions are never mixed on one board."""

UNKNOWN = "unknown"
CATEGORIES = ("roleplay", "translation", "code", "maths", "extraction", "creative")
"""The first that holds is a prompt's category; without one it is `OTHER`."""
OTHER = "other"
INTENTS = ("quizzing", "playing", "asking")

FACETS = ("category", "language", "intent", "turns", "chars", "hard", "instructions", *CATEGORIES)
"""What is said of a prompt."""
CRITERIA = (
    "specificity",
    "domain knowledge",
    "complexity",
    "problem-solving",
    "creativity",
    "technical accuracy",
    "real-world application",
)
"""Of a hard prompt; see `_criteria`."""
HARD = 6
"""Of `CRITERIA`, how many a hard prompt meets at least."""

HEAD, TAIL = 6_000, 2_000
"""Characters of a text that are looked at, at its beginning and at its end."""

_WORD = re.compile(r"[^\W_]+(?:['’+#.-][^\W_]+)*[+#]{0,2}")
_FENCE = re.compile(r"```[^`]*(?:```|$)")


class Label(NamedTuple):
    """What a tagger says of a text; ``score`` is what it counted, where it counts."""

    value: str
    score: float | None = None


class _Text(NamedTuple):
    """A text as the rules look at it: in small letters, the middle of a long one omitted."""

    text: str
    words: Sequence[str]
    vocabulary: Set[str]


def tag(prompts: Sequence[str]) -> dict[str, Label]:
    """Describe what the prompts of a conversation, oldest first, ask for together.

    Returns
    -------
    dict
        A label for each of `FACETS`; ``yes`` or ``no`` where it is neither a name nor a number.

    Examples
    --------
    >>> labels = tag(["Write a Python function that reverses a linked list."])
    >>> labels["category"].value, labels["language"].value, labels["hard"].value
    ('code', 'en', 'no')
    """
    whole = "\n\n".join(prompts)
    shown = shown_part(whole)
    small = shown.lower().replace("’", "'")
    words = _WORD.findall(small)
    text = _Text(small, words, frozenset(words))
    has = _kinds(text)
    constraints = instructions_in(text.text)
    met = _criteria(text, has)
    category = next((name for name in CATEGORIES if has[name]), OTHER)
    return {
        "category": Label(category),
        "language": Label(language_of(_FENCE.sub(" ", shown)) or UNKNOWN),
        "intent": Label(_intent(text)),
        **counted(prompts),
        "hard": hard(met),
        "instructions": Label(_yes(bool(constraints)), len(constraints)),
        **{name: Label(_yes(has[name])) for name in CATEGORIES},
    }


def counted(prompts: Sequence[str]) -> dict[str, Label]:
    """Count the prompts of a conversation, and their characters."""
    chars = len("\n\n".join(prompts))
    return {"turns": Label(str(len(prompts)), len(prompts)), "chars": Label(str(chars), chars)}


def hard(met: Sequence[str]) -> Label:
    """Return whether a prompt that meets these of `CRITERIA` is a hard one."""
    return Label(_yes(len(met) >= HARD), len(met))


def _criteria(text: _Text, has: Mapping[str, bool]) -> tuple[str, ...]:
    """Name the criteria of a hard prompt that rules see: fewer than people do.

    Parameters
    ----------
    has : mapping of str to bool
        Whether each of `CATEGORIES` holds.

    References
    ----------
    .. [1] T. Li et al., "From Crowdsourced Data to High-Quality Benchmarks: Arena-Hard and
       BenchBuilder Pipeline", arXiv 2406.11939, 2024, section 4.1: the seven criteria.
    """
    n, technical = len(text.words), has["code"] or has["maths"]
    domain = technical or _count(text, _DOMAIN) > 0
    signs = (
        n >= 12 and _SPECIFIC.holds(text.text),
        domain,
        n >= 40 or _STEPS.holds(text.text),
        technical or _count(text, _SOLVING) > 0,
        has["creative"] or _count(text, _DESIGNING) > 0,
        technical or _count(text, _DOMAIN) > 1,
        n >= 12 and (has["code"] or _count(text, _WORLD) > 0),
    )
    return tuple(name for name, holds in zip(CRITERIA, signs, strict=True) if holds)


def shown_part(text: str) -> str:
    """Give a text without the middle of a long one."""
    return text if len(text) <= HEAD + TAIL else f"{text[:HEAD]}\n{text[-TAIL:]}"


def _yes(holds: bool) -> str:
    return "yes" if holds else "no"


def _count(text: _Text, words: Set[str]) -> int:
    return len(text.vocabulary & words)


def _set(words: str) -> frozenset[str]:
    return frozenset(words.split())


_PROGRAMMING = _set(
    "javascript typescript c++ c# sql mysql postgresql postgres sqlite html css php bash "
    "powershell regex regexp kotlin golang haskell matlab numpy pandas pytorch tensorflow react "
    "django flask node.js nodejs vue angular kubernetes dockerfile docker git github "
    "linux cmake opencv leetcode stacktrace traceback segfault async json.parse "
    "fortran cobol verilog vhdl webpack npm pip jquery vba latex"
)
_PERHAPS_PROGRAMMING = _set(
    "python java rust go swift ruby scala perl r c julia code coding script function functions "
    "program programming class method api loop array string list dictionary bug compile compiler "
    "algorithm recursion recursive pointer database query debug debugging refactor implement "
    "implementation unittest pytest server endpoint json yaml xml csv excel variable integer "
    "boolean parse parser library framework backend frontend software app commit binary "
    "código función programa funktion programm código fonction programme "
    "exception error linked stack queue hash tree sort sorted sorting subroutine shell terminal"
)
_CODE = Rule.of(
    {
        "def |class |import |from |include|public |for|while|if|return|const |let |var |fn |func |"
        "package |using namespace": r"^[ \t]{0,20}(?:def \w+\(|class \w+[(:{]|import \w+|"
        r"from \w[\w.]* import |#include\b|public \w+ |for ?\(|while ?\(|if ?\(.*\) ?\{|"
        r"return\b.*;$|const \w+ ?=|let \w+ ?=|var \w+ ?=|fn \w+\(|func \w+\(|package \w+;?$|"
        r"using namespace)",
        "select": r"\bselect\b[^.\n]{1,200}\bfrom\b[^.\n]{1,100}\b(?:where|group by|join|"
        r"order by|limit)\b",
        "console.log(|print|() {|(){|=>|<": r"console\.log\(|print(?:f|ln)?\(|\w\(\) ?\{|=> ?\{|"
        r"</?(?:div|span|html|body|script|p)\b",
        "code|function|script|query|program|snippet": r"\bwrite (?:me )?(?:a |an |the |some )?"
        r"(?:\w+ ){0,3}(?:code|function|script|query|program)\b|"
        r"\b(?:this|my|the following|following) (?:\w+ )?"
        r"(?:code|script|function|query|snippet)\b",
        "c++|c#|python|java|rust|ruby|go |swift|scala|perl|golang": r"\bc(?:\+\+|#)|"
        r"\b(?:python|java|rust|ruby|go|swift|scala|perl) (?:\w+ )?(?:code|script|function|"
        r"program|class|app|library|module|decorator|list|dict|project)\b|"
        r"\b(?:in|using|with|en|auf|em|на|в) python\b|用 ?python|"
        r"\bin (?:rust|ruby|golang|perl|scala)\b",
        "linked list|binary |big|unit test|hash|sort|segmentation|stack|data structure": r"\b(?:"
        r"linked lists?|binary (?:search|tree)s?|big[- ]o|unit tests?|hash ?(?:map|table)s?|"
        r"merge ?sort|quick ?sort|heap ?sort|segmentation fault|stack ?trace|data structures?)\b",
        "代码|函数|编程|プログラム|コード": "代码|函数|编程|プログラム|コード",
    }
)


def _is_code(text: _Text) -> bool:
    perhaps = _count(text, _PERHAPS_PROGRAMMING)
    return (
        perhaps >= 3
        or _count(text, _PROGRAMMING) > 0
        or (perhaps > 0 and "```" in text.text)
        or _CODE.holds(text.text)
    )


_MATHEMATICS = _set(
    "derivative derivatives integral integrals integrate eigenvalue eigenvalues eigenvector "
    "polynomial quadratic algebra calculus trigonometry logarithm factorial modulo "
    "theorem lemma hypotenuse determinant combinatorics bayes binomial sqrt cosine tangent "
    "differential equation equations arithmetic geometry inequality matrices"
)
_PERHAPS_MATHEMATICS = _set(
    "solve calculate compute prove proof probability triangle circle radius area perimeter "
    "sum product percent percentage average mean median remainder divisible prime integer "
    "integers x y fraction number numbers multiply divided minus plus squared cubed matrix "
    "vector total speed km/h mph interest dice coin ratio sequence angle degrees limit function"
)
_SUM = Rule.of(
    {
        "+|*|×|÷|^|=|/|-": r"\d(?:\s?(?:[+*×÷^=/]|-\s)\s?\(?\d|[a-z]\s?[-+=]\s?\d)",
        "^|=|+|²|³": r"\b[a-z]\s?(?:\^|=|\+|²|³)\s?\d|\b[fgh]\([xnt]\)\s?=",
        "\\": r"\\(?:frac|int|sum|sqrt|lim|begin)\b",
        "$": r"\$[^$\n]{1,80}[\\^_=][^$\n]{0,80}\$",
        "√|∫|∑|prime|integer|chain rule|square root|percent of|% of|solve for|log": "√|∫|∑|"
        r"\bprime numbers?\b|\b(?:positive|negative|consecutive) integers?\b|\bchain rule\b|"
        r"\bsquare root\b|\b\d+ ?(?:%|percent) of\b|\bsolve for\b|\blog_?\d",
    }
)
_QUESTION_OF_NUMBERS = Rule.of(
    {
        "how ": r"\bhow (?:many|much|long|far|fast|old)\b",
        "what ": r"\bwhat (?:is|are) (?:the|her|his|their) "
        r"(?:total|probability|average|sum|area|length|distance|cost|price|chance|odds)|"
        r"\bwhat (?:did|does|would) (?:it|i|they|he|she) (?:cost|pay|weigh|earn)",
        "probab|expect|chance": r"\b(?:probability|expected (?:value|number)|chance) (?:of|that)",
        "which is": r"\bwhich is (?:larger|bigger|greater|smaller)\b",
        "when ": r"\bwhen (?:do|does|will) the(?:y)?\b",
        "convert ": r"\bconvert \d",
        "combien|cuánt|wie viel|сколько|多少": r"\bcombien\b|\bcuántos?\b|\bcuántas?\b|"
        r"\bwie viele?\b|сколько|多少",
    }
)
_NUMBER = re.compile(r"\d+(?:[.,/]\d+)*|\b(?:two|three|four|five|six|seven|twice|half|dozen)\b")


def _is_maths(text: _Text, is_code: bool) -> bool:
    if _count(text, _MATHEMATICS):
        return True
    perhaps, sums = _count(text, _PERHAPS_MATHEMATICS), False
    if not is_code:
        sums = (perhaps > 0 or len(text.words) < 25) and _SUM.holds(text.text)
    if sums or (perhaps >= 3 and not is_code):
        return True
    return _QUESTION_OF_NUMBERS.holds(text.text) and _several(_NUMBER, text.text[:2000], 2)


def _several(pattern: re.Pattern[str], text: str, least: int) -> bool:
    return sum(1 for _ in zip(range(least), pattern.finditer(text), strict=False)) == least


_GENRE = (
    r"(?:poems?|story|stories|songs?|lyrics|haikus?|limericks?|sonnets?|screenplay|novel|novella|"
    r"fan ?fiction|jokes?|puns?|slogans?|taglines?|rap|dialogues?|fables?|fairy ?tales?|chapter|"
    r"plot|scenes?|ballad|verses?|rhymes?|monologue|parody|riddles?|myth|legend|villanelle|ode|"
    r"skit|satire|vignette|bedtime story|short stories|backstory|epic|fiction|nursery rhyme|"
    r"poema?s?|cuentos?|histoire|poème|gedichte?|geschichte|conte|historia|canción|chanson|"
    r"poesia|racconto|стихотворение|стих|рассказ|сказку)"
)
_GENRES = (
    "poe|stor|song|lyric|haiku|limerick|sonnet|screenplay|novel|fiction|joke|pun|slogan|tagline|"
    "rap|dialogue|fable|fairy|chapter|plot|scene|ballad|verse|rhyme|monologue|parody|riddle|myth|"
    "legend|villanelle|ode|skit|satire|vignette|epic|cuento|histoire|poè|gedicht|geschichte|conte|"
    "canci|chanson|racconto|стих|рассказ|сказку"
)
_CREATIVE = Rule.of(
    {
        _GENRES: r"\b(?:write|compose|tell|create|make up|invent|craft|draft|pen|give me|generate|"
        r"continue|make|come up with|finish|escribe|écris|schreibe?|inventa|raconte|cuéntame|"
        r"scrivi|escreva|erzähle?|напиши|сочини|расскажи)\b(?:\s+[\w'-]+){0,6}?\s+"
        rf"{_GENRE}\b|\b{_GENRE} (?:about|that|in the style|where|for|with)\b",
        "in the style of ": r"\bin the style of (?!a (?:table|list))",
        "brainstorm|come up with": r"\bbrainstorm\b|\bcome up with\b.{0,40}\bnames?\b",
        "catchy|funny|creative|witty": r"\b(?:catchy|funny|creative|witty) (?:\w+ )?"
        r"(?:names?|titles?|captions?|slogans?|ideas)\b",
        "写一|俳句|詩を|物語を": r"写一(?:首|篇|个).{0,12}(?:诗|故事|小说)|俳句|詩を|物語を",
    }
)
_ANALYSIS = re.compile(
    r"\b(?:summari[sz]e|analy[sz]e|who wrote|explain|translate|meaning of|what is) (?:\S+ ){0,5}"
    r"(?:poem|story|novel|song|lyrics|plot|joke|rhyme|verse|scene)"
)


_TONGUE = (
    r"(?:english|spanish|french|german|italian|portuguese|dutch|polish|russian|ukrainian|turkish|"
    r"arabic|hebrew|hindi|urdu|bengali|chinese|mandarin|japanese|korean|vietnamese|thai|latin|"
    r"greek|swedish|norwegian|danish|finnish|czech|hungarian|romanian|swahili|persian|farsi|"
    r"indonesian|malay|tamil|telugu|klingon|esperanto)"
)
_LANGUAGES = _TONGUE.removeprefix("(?:").removesuffix(")")
_TRANSLATION = Rule.of(
    {
        "translat": r"(?<!machine )\btranslat(?:e|es|ing|ion)\b(?!\s+(?:theory|studies|memory))",
        _LANGUAGES: rf"\bhow (?:do|would|can|to|does)\b.{{0,12}}\bsay\b.{{0,80}}\bin {_TONGUE}\b|"
        rf"\b(?:put|render|convert|rewrite|write)\b.{{0,80}}\b(?:in|into|to) {_TONGUE}\b"
        rf"(?=[\s:.,?!]*$|\s*[:\n])|\bwhat(?:'s| is| does) ['\"“‘].{{0,60}}\bin {_TONGUE}\b|"
        rf"\b(?:from )?{_TONGUE} (?:to|into) {_TONGUE}\b|\bthe {_TONGUE} (?:words? )?for\b",
        "tradu|übersetz|перев|翻|訳|vertaal|przetłum|çevir|번역|ترجم|अनुवाद": r"\btradu[cszi]\w*|"
        r"\bübersetz\w*|\btraduire\b|перевед\w+|перевести|翻译|翻譯|訳して|翻訳|\bvertaal\b|"
        r"\bprzetłumacz\b|\bçevir\w*|번역|ترجم|अनुवाद",
    }
)
_NOT_WORDS = re.compile(
    r"\btranslat\w* (?:\w+ ){0,6}(?:to|into|from) (?:code|python|java|rust|c\b)"
)


_SOURCES = (
    "text|passage|paragraph|article|email|following|document|sentence|review|transcript|table|"
    "excerpt|report|letter|story|data|below|log|invoice|contract|abstract|description"
)
_EXTRACTION = Rule.of(
    {
        "extract|pull out": r"\bextract(?:s|ed|ing)?\b(?! (?:of|from a plant))|\bpull out\b",
        "identify|list|find|name|count|highlight|give me|return|get": r"\b(?:identify|list|find|"
        r"name|count|highlight|give me|return|get)\b(?: \S+){0,8}? "
        r"(?:mentioned|in|from|of|within|below|above)(?: \S+){0,4}? "
        rf"(?:{_SOURCES.replace('review', 'review|reviews')})\b",
        "text|passage|paragraph|article|document|excerpt|table|transcript": r"\b(?:according to|"
        r"based on|given|from|using only) (?:the|this) (?:\w+ )?"
        r"(?:text|passage|paragraph|article|document|excerpt|context|table|transcript)\b",
        "named entit|key|classify": r"\bnamed entit|\bkey ?words (?:from|in|of)\b|"
        r"\bclassify (?:each|the following)\b",
        "extrae|extrais|extrah|提取|抽出": r"\bextrae\b|\bextrais\b|\bextrahiere\b|提取|抽出",
    }
)


_ROLE = Rule.of(
    {
        "act as|act like|pretend|role|in character": r"\bact (?:as|like)\b|\bpretend\b|"
        r"\brole-?\s?play\w*|\bin character\b",
        "imagine": r"\bimagine (?:that )?(?:you are|you're|yourself)\b",
        "you are|you're": r"\byou(?:'re| are) (?:now )?(?:a|an|the) (?!(?:\w+ )?(?:expert|"
        r"helpful|ai\b|assistant|experienced|senior|professional|language model|world-class|"
        r"large|skilled|seasoned|highly|bit|great|few|genius|right|better|liar|good|best))",
        "the role|the persona|the part": r"\b(?:play|take on|assume|embrace|adopt|take) "
        r"(?:on )?the (?:role|persona|part)\b",
        "speak|talk|answer|respond|reply|behave": r"\b(?:speak|talk|answer|respond|reply|behave)"
        r"\b.{0,20}\b(?:as if you were|as though you|like a|like an|as a|as an) "
        r"(?!(?:list|table|json|single|bullet|number|short|percentage))",
        "from now|want you|as if you": r"\bfrom now on,? you\b|\bi want you to be\b|"
        r"\bas if you (?:were|are) (?:a|an|the)\b",
        "actúa|agis|joue|stell dir|finge|spiel|tu es|представь|扮演|なりきって": r"\bactúa como\b|"
        r"\bagis comme\b|\bjoue le rôle\b|\bstell dir vor,? du bist\b|\bfinge ser\b|"
        r"\bspiele? (?:die|den|einen?) \w*rolle|\btu es (?:un|une)\b|представь,? что ты|扮演|"
        r"になりきって",
    }
)


def _kinds(text: _Text) -> dict[str, bool]:
    """Return whether a prompt is of each of `CATEGORIES`; it may be of several."""
    is_code = _is_code(text)
    return {
        "roleplay": _ROLE.holds(text.text),
        "translation": _TRANSLATION.holds(text.text) and _NOT_WORDS.search(text.text) is None,
        "code": is_code,
        "maths": _is_maths(text, is_code),
        "extraction": len(text.words) >= 8 and _EXTRACTION.holds(text.text),
        "creative": _CREATIVE.holds(text.text) and _ANALYSIS.search(text.text) is None,
    }


_DOMAIN = _set(
    "quantum physics chemistry chemical molecule enzyme protein genome genetic clinical medical "
    "diagnosis patient symptoms treatment dosage pharmacology legal law contract statute "
    "liability "
    "tax gdpr finance financial portfolio derivatives accounting audit economics macroeconomic "
    "inflation regression statistical hypothesis neural network networks machine-learning "
    "learning "
    "model training gradient transformer embedding kubernetes architecture encryption "
    "cryptography security protocol latency throughput circuit voltage thermodynamics entropy "
    "mechanical engineering aerodynamics philosophy epistemology kant historiography linguistics "
    "phonology biology ecology climate soil geology astronomy orbital relativity semiconductor "
    "distributed consensus concurrency thread deadlock schema index cache deployment cloud aws "
    "azure microservice microservices tcp http kernel compiler supply-chain logistics "
    "bayesian causal marketing seo strategy stakeholders budget compliance"
)
_SOLVING = _set(
    "how why solve fix debug optimise optimize improve design plan prove derive diagnose "
    "troubleshoot evaluate compare analyse analyze recommend reduce estimate implement resolve "
    "develop identify determine propose trade-offs mitigate schedule calculate explain"
)
_DESIGNING = _set(
    "design devise propose brainstorm invent creative original novel strategy plan develop "
    "concept campaign alternative alternatives suggest ideas imagine build create write "
    "architecture outline"
)
_WORLD = _set(
    "my our we company business customer customers users client clients team project production "
    "startup website app school students patient patients hospital city budget market employees "
    "manager interview job product deploy server servers data report email law contract store "
    "shop factory farm i'm i've i"
)
_SPECIFIC = Rule.of(
    {
        "": r"\d|```",
        "must|should|exactly|at least|at most|include|without|ensure|require|with the following|"
        "specific|only|given|use ": r"\bmust\b|\bshould\b|\bexactly\b|\bat (?:least|most)\b|"
        r"\binclude|\bwithout\b|\bensure\b|\brequire|\bwith the following\b|\bspecific|\bonly\b|"
        r"\bgiven\b|\buse (?:the|a|an)\b",
    }
)
_STEPS = Rule.of(
    {
        "\n": r"^[ \t]{0,9}(?:\d{1,3}[.)]|[-*•])[ \t].{0,500}\n{1,2}[ \t]{0,9}"
        r"(?:\d{1,3}[.)]|[-*•])[ \t]",
        "by step|by-step|trade": r"\bstep[- ]by[- ]step\b|\btrade-?offs?\b",
        "then|also|finally|additionally|furthermore|as well as": r"\b(?:then|also|finally|"
        r"additionally|furthermore|as well as)\b.{0,80}\b(?:then|also|finally|and)\b",
    }
)

_CHOICES = Rule.of(
    {
        "\n": r"^[ \t]{0,9}\(?[a1][).:][ \t].{1,300}\n[ \t]{0,9}\(?[b2][).:][ \t]",
        "a) |1) ": r"\b(?:a|1)\) .{1,80}\b(?:b|2)\) .{1,80}",
        "which of the|true or|multiple": r"\bwhich of the following\b|\btrue or false\b|"
        r"\bmultiple[- ]choice\b",
    }
)
_TESTER = Rule.of(
    {
        "how many": r"\bhow many (?:letters?|times|['\"]?\w['\"]?s?)\b.{0,40}\b(?:in|does)\b"
        r".{0,30}(?:word|strawberr|mississippi|banana|appear)|"
        r"\bhas \w+ (?:brothers|sisters)\b.{0,80}\bhow many\b",
        "strawberry|9.11|feathers|wolf|monty hall|trolley": r"\bstrawberry\b.{0,30}\br\b|"
        r"\br'?s\b.{0,20}\bstrawberry|\b9\.11\b.{0,20}\b9\.(?:9|8)\b|"
        r"\b9\.(?:9|8)\b.{0,20}\b9\.11\b|\b(?:pound|kilo|kg|kilogram|ton)\w*\b.{0,20}\bfeathers\b|"
        r"\bwolf\b.{0,40}\b(?:goat|sheep)\b.{0,40}\bcabbage\b|\bmonty hall\b|"
        r"\btrolley problem\b",
        "bat and|shirt|sentence": r"\bbat and (?:a )?ball\b|\bshirts?\b.{0,60}\bdry\b|"
        r"\bends? (?:with|in) (?:the )?(?:word|letter)\b.{0,40}\bsentences?|"
        r"\bsentences?\b.{0,40}\bends? (?:with|in) (?:the )?(?:word|letter)",
        "reverse|spell|unicorn|riddle|what am i": r"\b(?:reverse|spell) (?:the )?(?:word|string|"
        r"letters)\b.{0,30}(?:backwards?)?|\bunicorn\b.{0,20}\b(?:svg|tikz)\b|\briddle\b|"
        r"\bwhat am i\?",
        "quiz|test ": r"\b(?:quiz|test) (?:me|yourself)\b",
        "what is the cap|who was|who is": r"\bwhat is the capital (?:city )?of\b|"
        r"\bwho (?:was|is) the (?:first|current|\d+\w*) "
        r"(?:president|king|queen|prime minister|man|woman|person)\b",
    }
)
_GREETING = re.compile(
    r"\W*(?:hi+|hello+|hey+|yo|sup|hola|bonjour|hallo|ciao|salut|привет|你好|こんにちは|안녕\w*|test\w*|"
    r"testing|ping|lol|haha\w*|ok(?:ay)?|thanks?|thank you|good (?:morning|evening|night|bot)|"
    r"asdf\w*|bruh|meow|hmm+|wow|cool|what'?s up|how are you\w*|how's it going|wie geht'?s|ça va|"
    r"qué tal)\b(?:[\s,]+(?:there|you|today|bot|ai|buddy|friend|doing|world|all|everyone|test|hi|"
    r"hello|dir|\d+))*\W*$"
)
_PLAY = Rule.of(
    {
        "who |what ": r"\b(?:who|what) (?:are|r) (?:you|u)\b(?!.{0,12}\b(?:doing (?:about|for)|"
        r"looking))|\bwho (?:made|created|trained) you\b|\bwhat is your (?:name|favou?rite)",
        "what's|are you |which |joke": r"\bwhat's your (?:name|favou?rite)|"
        r"\bare you (?:an? )?(?:chatgpt|gpt|claude|gemini|llama|human|robot|real|sentient|"
        r"conscious|ai|alive|bot|better|smarter)\b|\bwhich (?:ai )?model\b|"
        r"\btell (?:me )?(?:a|another) joke\b",
        "do you |say |bored": r"\bdo you (?:love|like|have feelings|dream|sleep)\b|"
        r"\bsay (?:something|hi|hello)\b|\bi(?:'m| am) bored\b",
    }
)


def _intent(text: _Text) -> str:
    """Tell quizzing, to which the answer is known, and playing from the rest, which is asking."""
    short = text.text[:600]
    if _CHOICES.holds(text.text) or _TESTER.holds(short):
        return "quizzing"
    if len(text.words) <= 12 and (not text.words or _GREETING.match(short) or _PLAY.holds(short)):
        return "playing"
    return "asking"


REFUSAL = "refusal"
"""The facet of a turn whose answers these are."""


def refusal(answers: Sequence[str]) -> Label:
    """Return which of the two answers of a turn refuse: ``none``, ``a``, ``b`` or ``both``.

    Examples
    --------
    >>> refusal(["Sure.", "I cannot help with that."]).value
    'b'
    """
    a, b = map(refuses, answers)
    return Label("both" if a and b else "a" if a else "b" if b else "none")


def refusing(label: str) -> tuple[bool, bool]:
    """Read a label of `refusal`: whether the answer on side A refuses, and that on side B.

    Examples
    --------
    >>> refusing("both"), refusing("b"), refusing("none")
    ((True, True), (False, True), (False, False))
    """
    return label in ("a", "both"), label in ("b", "both")
