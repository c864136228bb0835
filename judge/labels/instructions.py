"""Which of IFEval's 25 instructions a prompt gives, by the words in which people give them."""

from collections.abc import Mapping

from judge.labels.rule import Rule

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
