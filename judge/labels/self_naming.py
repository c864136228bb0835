"""Whether an answer says who wrote it: a model, its family or its vendor, in the first person."""

import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

VERSION = "1"
"""Of the rules below; another version is another set of rules."""

MODELS = (
    r"chat-?gpt|gpt(?:-?[34](?:\.5)?o?)?|claude|gemini|bard|gemma|llama|mistral|mixtral|qwen|deepseek|"
    r"grok|phi|vicuna|kimi|glm|nova|copilot|bing chat|command[ -]r\+?|falcon|jamba|olmo|zephyr|"
    r"granite|nemotron|baichuan|stablelm|yi|pi|通义千问"
)
VENDORS = (
    r"openai|anthropic|google(?: deepmind)?|deepmind|meta(?: ai)?|mistral ai|alibaba(?: cloud)?|"
    r"xai|microsoft|cohere|moonshot ai|zhipu ai|amazon|inflection|tii|ai21|ibm|nvidia|"
    r"stability ai|01\.ai|the allen institute|阿里云"
)

_QUOTED = re.compile(
    r"```.*?```|`[^`\n]*`|^>.*$|\"[^\"\n]*\"|“[^”\n]*”|«[^»\n]*»|„[^“\n]*“|(?<!\w)'[^'\n]*'(?!\w)",
    re.DOTALL | re.MULTILINE,
)
"""What an answer cites: nobody speaks of themselves there."""

_UNSURE = re.compile(
    r"(?:\b(?:if|whether|that|suppose|imagine|pretend|nobody said|said|says|let's play:?|"
    r"sentence|translate:|bot:|may or may not|could be)\s*)$",
    re.IGNORECASE,
)
"""Words before a sentence about oneself that take it back: a question, a play, a quotation."""

_ROLE = (
    r"(?:(?:language|ai|conversational|chat)[ -]?)*"
    r"(?:model|assistant|chatbot|llm|ai|bot|artificial intelligence)"
)
_SURNAME = (
    r"(?![-’'\w]*\w)(?! (?!I\b|AI\b|Large|Opus|Sonnet|Haiku|Pro|Flash|Mini|Nano|Ultra)[A-Z])"
)
_BE = r"\b(?:I(?:['’]m| am)|I AM)"


@dataclass(frozen=True, slots=True)
class SelfNaming:
    """A name in an answer.

    Attributes
    ----------
    kind : {"self", "mention"}
        ``self`` where the answer says that it is its author's; else it speaks of others.
    name : str
        As it stands in the answer.
    """

    kind: Literal["self", "mention"]
    name: str


def self_naming(answer: str, names: Collection[str] = ()) -> SelfNaming | None:
    """Find the first name by which an answer says who wrote it; else the first that it mentions.

    Parameters
    ----------
    names : collection of str
        Of models and vendors of the roster, besides the known ones.

    Examples
    --------
    >>> self_naming("I am GPT-4, made by OpenAI.").kind, self_naming("I like GPT-4.").kind
    ('self', 'mention')
    >>> self_naming("I am Quartz.", ["Quartz"]).name
    'Quartz'
    """
    text = _QUOTED.sub(lambda match: " " * len(match[0]), answer)
    text = re.sub(r"[*_]{1,2}(?=\S)|(?<=\S)[*_]{1,2}", "", text)
    selves, any_name = _rules(tuple(sorted(names)))
    for rule in selves:
        for match in rule.finditer(text):
            if not _UNSURE.search(text[: match.start()]):
                return SelfNaming("self", match["name"])
    mention = any_name.search(answer)
    return mention and SelfNaming("mention", mention[0])


@lru_cache(maxsize=64)
def _rules(names: Sequence[str]) -> tuple[list[re.Pattern[str]], re.Pattern[str]]:
    known = "|".join([*map(re.escape, names), MODELS, VENDORS])
    own = "|".join([*map(re.escape, names), MODELS])
    name = rf"(?P<name>(?i:\b(?:{known})))(?:[-\d.]\w*)*(?!\w)"
    model = rf"(?P<name>(?i:\b(?:{own})))(?:[-\d.]\w*)*{_SURNAME}"
    made = r"(?:(?:made|built|created|developed|designed|trained|fine-tuned)(?: and )?)+"
    rules = [
        rf"{_BE}(?: (?:only|indeed|also|called|named|known as|just|(?i:{VENDORS})['’]s))* "
        rf"{model}(?!['’]s (?!gpt))",
        rf"{_BE}[^.!?\n,;:]{{0,40}}?\b(?i:{_ROLE})\b,?(?: (?:made|built|created|trained|developed|"
        rf"powered|called|named|known|that|which|was|by|from|of|as|at|and|independently|on|a|team|"
        rf"in|the|family))* {name}",
        rf"\b(?i:my (?:full )?name(?: is|['’]s)|call me|they call me|known? me as|"
        rf"go by the name of) {model}",
        rf"\b(?i:as|being|since|because|speaking as) (?:I(?:['’]m| am) )?{model}(?=[,:.])",
        rf"\b(?i:as an?) (?i:[^.!?\n,]{{0,20}}{_ROLE}) (?:\w+ )?(?:by|from|of) {name}(?=[,.])",
        rf"\b(?i:as an?) {name} (?i:{_ROLE})\b",
        rf"\bI(?:['’]ve| have)? ?(?:was|been) {made}(?: on top of)?[^.!?\n]{{0,40}}? ?"
        rf"(?:by|at)[^.!?\n,]{{0,30}}? {name}",
        rf"\b{name}(?:, the company that|, who)? {made} me\b",
        rf"\b(?i:my (?:creators?|developers?|makers?)) (?:is|are|at) {name}",
        rf"{_BE} (?:a|an|the) {name}[^.!?\n]{{0,12}} model\b",
        rf"\b(?i:(?:one|model|ai|assistant) you(?:['’]re| are) (?:talking|speaking|chatting) "
        rf"(?:to|with) is) {name}",
        rf"(?:\b[Aa]s|{_BE}) {name}['’]s (?:own )?(?i:{_ROLE})\b",
        rf"{_BE} (?i:a product of|made by|from the house of) {name}",
        rf"\b(?i:I (?:belong to|come from)(?: the)?) {name}(?! [A-Z])",
        rf"\b(?i:ich wurde von|fui (?:creado|desarrollado|entrenado) por|j['’]ai été créée? par) "
        rf"{name}",
        rf"\bI, {model},",
        rf"\b(?i:you(?:['’]re| are) (?:chatting|talking) (?:with|to)) {model}(?=[,.])",
        rf"\b(?i:based on|powered by|run on|instance of|version of|part of the|one of the) "
        rf"{model}",
        rf"(?m:^|[.!?,] ){model} here(?=[.!])",
        rf"\b(?i:ich bin|ich heiße|mein name ist|je suis|je m['’]appelle|soy|me llamo|sono|"
        rf"eu sou o) {model}",
        rf"(?:我是|私は|(?i:\bя) )(?P<name>(?i:{known}))",
    ]
    return [re.compile(rule) for rule in rules], re.compile(rf"\b(?:{known})(?!\w)", re.I)
