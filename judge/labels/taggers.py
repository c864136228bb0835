"""The taggers: what a prompt asks for, by rules that need no model and no network."""

import re
from collections.abc import Callable, Mapping, Sequence, Set
from typing import NamedTuple

from judge.ifeval.text import language_of
from judge.labels.instructions import instructions_in
from judge.labels.rule import Rule

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
"""Of a hard prompt; see `criteria`."""
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


class Text(NamedTuple):
    """A text as the rules look at it: in small letters, the middle of a long one left out."""

    text: str
    words: Sequence[str]
    vocabulary: Set[str]


def tag(prompts: Sequence[str]) -> dict[str, Label]:
    """Say what the prompts of a conversation, oldest first, ask for together.

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
    text = _text(shown)
    has = {name: rule(text) for name, rule in RULES.items()}
    constraints = instructions_in(text.text)
    met = criteria(text, has)
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
    """Say whether a prompt that meets these of `CRITERIA` is a hard one."""
    return Label(_yes(len(met) >= HARD), len(met))


def criteria(text: Text, has: Mapping[str, bool]) -> tuple[str, ...]:
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
        n >= 12 and (_SPECIFIC.search(text.text) is not None),
        domain,
        n >= 40 or _STEPS.search(text.text) is not None,
        technical or _count(text, _SOLVING) > 0,
        has["creative"] or _count(text, _DESIGNING) > 0,
        technical or _count(text, _DOMAIN) > 1,
        n >= 12 and (has["code"] or _count(text, _WORLD) > 0),
    )
    return tuple(name for name, holds in zip(CRITERIA, signs, strict=True) if holds)


def shown_part(text: str) -> str:
    """Give a text without the middle of a long one."""
    return text if len(text) <= HEAD + TAIL else f"{text[:HEAD]}\n{text[-TAIL:]}"


def _text(shown: str) -> Text:
    small = shown.lower().replace("’", "'")
    words = _WORD.findall(small)
    return Text(small, words, frozenset(words))


def _yes(holds: bool) -> str:
    return "yes" if holds else "no"


def _count(text: Text, words: Set[str]) -> int:
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
_CODE = re.compile(
    r"^[ \t]{0,20}(?:def \w+\(|class \w+[(:{]|import \w+|from \w[\w.]* import |#include\b|"
    r"public \w+ |"
    r"for ?\(|while ?\(|if ?\(.*\) ?\{|return\b.*;$|const \w+ ?=|let \w+ ?=|var \w+ ?=|"
    r"fn \w+\(|func \w+\(|package \w+;?$|using namespace)"
    r"|\bselect\b[^.\n]{1,200}\bfrom\b[^.\n]{1,100}\b(?:where|group by|join|order by|limit)\b"
    r"|console\.log\(|print(?:f|ln)?\(|\w\(\) ?\{|=> ?\{|</?(?:div|span|html|body|script|p)\b"
    r"|\bwrite (?:me )?(?:a |an |the |some )?(?:\w+ ){0,3}(?:code|function|script|query|program)\b"
    r"|\b(?:this|my|the following|following) (?:\w+ )?(?:code|script|function|query|snippet)\b"
    r"|\bc(?:\+\+|#)|\b(?:python|java|rust|ruby|go|swift|scala|perl) (?:\w+ )?"
    r"(?:code|script|function|program|class|app|library|module|decorator|list|dict|project)\b"
    r"|\b(?:linked lists?|binary (?:search|tree)s?|big[- ]o|unit tests?|hash ?(?:map|table)s?|"
    r"merge ?sort|quick ?sort|heap ?sort|segmentation fault|stack ?trace|data structures?)\b"
    r"|\b(?:in|using|with|en|auf|em|на|в) python\b|用 ?python"
    r"|\bin (?:rust|ruby|golang|perl|scala)\b|代码|函数|编程|プログラム|コード",
    re.MULTILINE,
)


def _is_code(text: Text) -> bool:
    if _CODE.search(text.text) or _count(text, _PROGRAMMING):
        return True
    if "```" in text.text and _count(text, _PERHAPS_PROGRAMMING):
        return True
    return _count(text, _PERHAPS_PROGRAMMING) >= 3


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
    "0|1|2|3|4|5|6|7|8|9|\\|$|√|∫|∑|=|square root|prime|integer|chain rule|solve for|log",
    r"\d\s?(?:[+*×÷^=/]|-\s)\s?\(?\d|\b[a-z]\s?(?:\^|=|\+|²|³)\s?\d|\d[a-z]\s?[-+=]\s?\d|"
    r"\b[fgh]\([xnt]\)\s?=|\\(?:frac|int|sum|sqrt|lim|begin)\b|\$[^$\n]{1,80}[\\^_=][^$\n]{0,80}\$"
    r"|√|∫|∑|\bprime numbers?\b|\b(?:positive|negative|consecutive) integers?\b|\bchain rule\b|"
    r"\bsquare root\b|\b\d+ ?(?:%|percent) of\b|\bsolve for\b|\blog_?\d",
)
_QUESTION_OF_NUMBERS = Rule.of(
    "how |what|probab|expect|chance|which is|when|convert|combien|cuánt|wie viel|сколько|多少",
    r"\bhow (?:many|much|long|far|fast|old)\b|\bwhat (?:is|are) (?:the|her|his|their) "
    r"(?:total|probability|average|sum|area|length|distance|cost|price|chance|odds)|"
    r"\b(?:probability|expected (?:value|number)|chance) (?:of|that)|\bwhich is (?:larger|bigger|"
    r"greater|smaller)\b|"
    r"\bwhen (?:do|does|will) the(?:y)?\b|\bwhat (?:did|does|would) (?:it|i|they|he|she) (?:cost|"
    r"pay|"
    r"weigh|earn)|\bconvert \d|\bcombien\b|\bcuántos?\b|"
    r"\bcuántas?\b|\bwie viele?\b|сколько|多少",
)
_NUMBER = re.compile(r"\d+(?:[.,/]\d+)*|\b(?:two|three|four|five|six|seven|twice|half|dozen)\b")


def _is_maths(text: Text) -> bool:
    if _count(text, _MATHEMATICS):
        return True
    perhaps = _count(text, _PERHAPS_MATHEMATICS)
    if _SUM.holds(text.text) and (perhaps or len(text.words) < 25) and not _is_code(text):
        return True
    if _QUESTION_OF_NUMBERS.holds(text.text) and _several(_NUMBER, text.text[:2000], 2):
        return True
    return perhaps >= 3 and not _is_code(text)


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
_CREATIVE = re.compile(
    rf"\b(?:write|compose|tell|create|make up|invent|craft|draft|pen|give me|generate|continue|"
    rf"make|come up with|finish|escribe|écris|schreibe?|inventa|raconte|cuéntame|scrivi|escreva|"
    rf"erzähle?|напиши|сочини|расскажи)\b(?:\s+[\w'-]+){{0,6}}?\s+{_GENRE}\b"
    rf"|\b{_GENRE} (?:about|that|in the style|where|for|with)\b"
    r"|\bin the style of (?!a (?:table|list))|\bbrainstorm\b|\bcome up with\b.{0,40}\bnames?\b"
    r"|\b(?:catchy|funny|creative|witty) (?:\w+ )?(?:names?|titles?|captions?|slogans?|ideas)\b"
    r"|写一(?:首|篇|个).{0,12}(?:诗|故事|小说)|俳句|詩を|物語を"
)
_ANALYSIS = re.compile(
    r"\b(?:summari[sz]e|analy[sz]e|who wrote|explain|translate|meaning of|what is) (?:\S+ ){0,5}"
    r"(?:poem|story|novel|song|lyrics|plot|joke|rhyme|verse|scene)"
)


def _is_creative(text: Text) -> bool:
    return _CREATIVE.search(text.text) is not None and _ANALYSIS.search(text.text) is None


_TONGUE = (
    r"(?:english|spanish|french|german|italian|portuguese|dutch|polish|russian|ukrainian|turkish|"
    r"arabic|hebrew|hindi|urdu|bengali|chinese|mandarin|japanese|korean|vietnamese|thai|latin|"
    r"greek|swedish|norwegian|danish|finnish|czech|hungarian|romanian|swahili|persian|farsi|"
    r"indonesian|malay|tamil|telugu|klingon|esperanto)"
)
_TRANSLATION = Rule.of(
    "translat|tradu|übersetz|перев|翻|訳|vertaal|przetłum|çevir|번역|ترجم|अनुवाद|"
    + _TONGUE.removeprefix("(?:").removesuffix(")"),
    rf"(?<!machine )\btranslat(?:e|es|ing|ion)\b(?!\s+(?:theory|studies|memory))|"
    rf"\bhow (?:do|would|can|to|does)\b.{{0,12}}\bsay\b.{{0,80}}\bin {_TONGUE}\b|"
    rf"\b(?:put|render|convert|rewrite|write)\b.{{0,80}}\b(?:in|into|to) {_TONGUE}\b"
    rf"(?=[\s:.,?!]*$|\s*[:\n])|\bwhat(?:'s| is| does) ['\"“‘].{{0,60}}\bin {_TONGUE}\b|"
    rf"\b(?:from )?{_TONGUE} (?:to|into) {_TONGUE}\b|\bthe {_TONGUE} (?:words? )?for\b|"
    r"\btradu[cszi]\w*|\bübersetz\w*|\btraduire\b|перевед\w+|перевести|翻译|翻譯|訳して|翻訳|"
    r"\bvertaal\b|\bprzetłumacz\b|\bçevir\w*|번역|ترجم|अनुवाद",
)
_NOT_WORDS = re.compile(
    r"\btranslat\w* (?:\w+ ){0,6}(?:to|into|from) (?:code|python|java|rust|c\b)"
)


def _is_translation(text: Text) -> bool:
    return _TRANSLATION.holds(text.text) and _NOT_WORDS.search(text.text) is None


_EXTRACTION = Rule.of(
    "extract|pull out|text|passage|paragraph|article|email|following|document|sentence|review|"
    "transcript|table|excerpt|report|letter|story|data|below|log|invoice|contract|abstract|"
    "description|according|based on|given|entit|key|classify|extrae|extrais|extrah|提取|抽出",
    r"\bextract(?:s|ed|ing)?\b(?! (?:of|from a plant))|\bpull out\b|"
    r"\b(?:identify|list|find|name|count|highlight|give me|return|get)\b(?: \S+){0,8}? "
    r"(?:mentioned|in|from|of|within|below|above)(?: \S+){0,4}? (?:text|passage|paragraph|article|"
    r"email|following|document|sentence|review|reviews|transcript|table|excerpt|report|letter|"
    r"story|data|below|log|invoice|contract|abstract|description)\b|"
    r"\b(?:according to|based on|given|from|using only) (?:the|this) (?:\w+ )?(?:text|passage|"
    r"paragraph|article|document|excerpt|context|table|transcript)\b|"
    r"\bnamed entit|\bkey ?words (?:from|in|of)\b|\bclassify (?:each|the following)\b|"
    r"\bextrae\b|\bextrais\b|\bextrahiere\b|提取|抽出",
)


def _is_extraction(text: Text) -> bool:
    return len(text.words) >= 8 and _EXTRACTION.holds(text.text)


_ROLE = Rule.of(
    "act |pretend|role|character|you are|you're|yourself|persona|part|as if|as though|like a|as a|"
    "from now|want you|actúa|agis|joue|stell dir|finge|spiel|tu es|представь|扮演|なりきって",
    r"\bact (?:as|like)\b|\bpretend\b|\brole-?\s?play\w*|\bin character\b|\bimagine (?:that )?"
    r"(?:you are|you're|yourself)\b|\byou(?:'re| are) (?:now )?(?:a|an|the) (?!(?:\w+ )?(?:expert|"
    r"helpful|ai\b|assistant|experienced|senior|professional|language model|world-class|large|"
    r"skilled|seasoned|highly|bit|great|few|genius|right|better|liar|good|best))|"
    r"\b(?:play|take on|assume|embrace|adopt|take) (?:on )?the (?:role|persona|part)\b|"
    r"\b(?:speak|talk|answer|respond|reply|behave)\b.{0,20}\b(?:as if you were|as though you|like "
    r"a|like an|as a|as an) (?!(?:list|table|json|single|bullet|number|short|percentage))|"
    r"\bfrom now on,? you\b|\bi want you to be\b|\bas if you (?:were|are) (?:a|an|the)\b|"
    r"\bactúa como\b|\bagis comme\b|\bjoue le rôle\b|\bstell dir vor,? du bist\b|\bfinge ser\b|"
    r"\bspiele? (?:die|den|einen?) \w*rolle|\btu es (?:un|une)\b|представь,? что ты|"
    r"扮演|になりきって",
)


def _is_roleplay(text: Text) -> bool:
    return _ROLE.holds(text.text)


RULES: Mapping[str, Callable[[Text], bool]] = {
    "roleplay": _is_roleplay,
    "translation": _is_translation,
    "code": _is_code,
    "maths": _is_maths,
    "extraction": _is_extraction,
    "creative": _is_creative,
}
"""Whether a prompt is of each of `CATEGORIES`; it may be of several."""

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
_SPECIFIC = re.compile(
    r"\d|\bmust\b|\bshould\b|\bexactly\b|\bat (?:least|most)\b|\binclude|\bwithout\b|\bensure\b|"
    r"\brequire|\bwith the following\b|\bspecific|\bonly\b|\bgiven\b|```|\buse (?:the|a|an)\b"
)
_STEPS = re.compile(
    r"^[ \t]{0,9}(?:\d{1,3}[.)]|[-*•])[ \t].{0,500}\n{1,2}[ \t]{0,9}(?:\d{1,3}[.)]|[-*•])[ \t]|"
    r"\bstep[- ]by[- ]step\b|"
    r"\b(?:then|also|finally|additionally|furthermore|as well as)\b.{0,80}\b(?:then|also|finally|"
    r"and)"
    r"\b|"
    r"\btrade-?offs?\b",
    re.MULTILINE,
)

_CHOICES = re.compile(
    r"^[ \t]{0,9}\(?[a1][).:][ \t].{1,300}\n[ \t]{0,9}\(?[b2][).:][ \t]|\b(?:a|"
    r"1)\) .{1,80}\b(?:b|2)\) .{1,80}"
    r"|\bwhich of the following\b|\btrue or false\b|\bmultiple[- ]choice\b",
    re.MULTILINE,
)
_TESTER = re.compile(
    r"\bhow many (?:letters?|times|['\"]?\w['\"]?s?)\b.{0,40}\b(?:in|does)\b.{0,30}"
    r"(?:word|strawberr|mississippi|banana|appear)|"
    r"\bstrawberry\b.{0,30}\br|\br'?s\b.{0,20}\bstrawberry|"
    r"\b9\.11\b.{0,20}\b9\.(?:9|8)\b|\b9\.(?:9|8)\b.{0,20}\b9\.11\b|"
    r"\b(?:pound|kilo|kg|kilogram|ton)\w*\b.{0,20}\bfeathers\b|"
    r"\bhas \w+ (?:brothers|sisters)\b.{0,80}\bhow many\b|"
    r"\bwolf\b.{0,40}\b(?:goat|sheep)\b.{0,40}\bcabbage\b|\bmonty hall\b|\btrolley problem\b|"
    r"\bbat and (?:a )?ball\b|\bshirts?\b.{0,60}\bdry\b|\bends? (?:with|in) (?:the )?(?:word|"
    r"letter)"
    r"\b.{0,40}\bsentences?|\bsentences?\b.{0,40}\bends? (?:with|in) (?:the )?(?:word|letter)|"
    r"\b(?:reverse|spell) (?:the )?(?:word|string|letters)\b.{0,30}(?:backwards?)?|"
    r"\bunicorn\b.{0,20}"
    r"\b(?:svg|tikz)\b|\briddle\b|\bwhat am i\?|\b(?:quiz|test) (?:me|yourself)\b|"
    r"\bwhat is the capital (?:city )?of\b|\bwho (?:was|is) the (?:first|current|\d+\w*) "
    r"(?:president|king|queen|prime minister|man|woman|person)\b"
)
_PLAY = re.compile(
    r"^\W*(?:hi+|hello+|hey+|yo|sup|hola|bonjour|hallo|ciao|salut|привет|你好|こんにちは|안녕\w*|test\w*|"
    r"testing|ping|lol|haha\w*|ok(?:ay)?|thanks?|thank you|good (?:morning|evening|night|bot)|"
    r"asdf\w*|bruh|meow|hmm+|wow|cool|what'?s up|how are you\w*|how's it going|wie geht'?s|ça va|"
    r"qué tal)\b(?:[\s,]+(?:there|you|today|bot|ai|buddy|friend|doing|world|all|everyone|test|hi|"
    r"hello|dir|\d+))*\W*$|"
    r"\b(?:who|what) (?:are|r) (?:you|u)\b(?!.{0,12}\b(?:doing (?:about|for)|looking))|"
    r"\bare you (?:an? )?(?:chatgpt|gpt|claude|gemini|llama|human|robot|real|sentient|conscious|"
    r"ai|"
    r"alive|bot|better|smarter)\b|\bwhat(?:'s| is) your (?:name|favou?rite)|"
    r"\bwhich (?:ai )?model\b|"
    r"\btell (?:me )?(?:a|another) joke\b|\bdo you (?:love|like|have feelings|dream|sleep)\b|"
    r"\bwho (?:made|created|trained) you\b|\bsay (?:something|hi|hello)\b|\bi(?:'m| am) bored\b"
)


def _intent(text: Text) -> str:
    """Tell quizzing, to which the answer is known, and playing from the rest, which is asking."""
    short = text.text[:600]
    if _CHOICES.search(text.text) or _TESTER.search(short):
        return "quizzing"
    if len(text.words) <= 12 and (not text.words or _PLAY.search(short)):
        return "playing"
    return "asking"
