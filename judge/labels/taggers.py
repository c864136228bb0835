"""Taggers: labels of prompts and answers by rules that need no model and no network.

`tag` describes what a prompt asks for, `instructions_in` which of IFEval's 25 instructions it
gives, and `refusal` which answers of a turn decline. `RULES` are read from ``rules.toml``; a
`Rule` looks for fixed parts of words before it tries a pattern, because that is quicker.
"""

import re
import tomllib
from collections.abc import Mapping, Sequence, Set
from importlib.resources import files
from typing import NamedTuple

from judge.ifeval import language_of
from judge.replies import refuses

# Rules


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

    def holds(self, text: str) -> bool:
        """Return whether a text in small letters fits."""
        for signs, pattern in self.parts:
            for sign in signs:
                if sign in text:
                    if pattern.search(text) is not None:
                        return True
                    break
        return False


_FILE = tomllib.loads((files("judge.labels") / "rules.toml").read_text("utf-8"))
_MORE = {name: re.compile(pattern) for name, pattern in _FILE["more"].items()}
WORDS = {name: frozenset(words.split()) for name, words in _FILE["words"].items()}
"""Words by what they are signs of."""


def _part(signs: Sequence[str], fits: Sequence[str]) -> Part:
    """Compile a pattern, with the words that the file of rules has for a name in braces."""
    sign, pattern = "|".join(signs), "|".join(fits)
    for name, words in _FILE["parts"].items():
        sign = sign.replace(f"{{{name}}}", "|".join(words))
        pattern = pattern.replace(f"{{{name}}}", f"(?:{'|'.join(words)})")
    return Part(tuple(sign.split("|")), re.compile(pattern, re.MULTILINE))


_RULES, RULES = (
    {name: Rule(tuple(_part(**one) for one in parts)) for name, parts in _FILE[table].items()}
    for table in ("rules", "instructions")
)
"""`RULES` by the id of each instruction in `judge.ifeval.CHECKERS`."""


def instructions_in(text: str) -> tuple[str, ...]:
    """Name the instructions that a prompt in small letters gives, in the order of `RULES`.

    Examples
    --------
    >>> instructions_in("describe rome in under 50 words and without commas.")
    ('length_constraints:number_words', 'punctuation:no_comma')
    """
    return tuple(id for id, rule in RULES.items() if rule.holds(text))


# Labels of prompts


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
    shown = shown_part("\n\n".join(prompts))
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
    domain = technical or _count(text, "domain") > 0
    signs = (
        n >= 12 and _RULES["specific"].holds(text.text),
        domain,
        n >= 40 or _RULES["steps"].holds(text.text),
        technical or _count(text, "solving") > 0,
        has["creative"] or _count(text, "designing") > 0,
        technical or _count(text, "domain") > 1,
        n >= 12 and (has["code"] or _count(text, "world") > 0),
    )
    return tuple(name for name, holds in zip(CRITERIA, signs, strict=True) if holds)


def shown_part(text: str) -> str:
    """Give a text without the middle of a long one."""
    return text if len(text) <= HEAD + TAIL else f"{text[:HEAD]}\n{text[-TAIL:]}"


def _yes(holds: bool) -> str:
    return "yes" if holds else "no"


def _count(text: _Text, words: str) -> int:
    return len(text.vocabulary & WORDS[words])


_NUMBER = re.compile(r"\d+(?:[.,/]\d+)*|\b(?:two|three|four|five|six|seven|twice|half|dozen)\b")


def _is_maths(text: _Text, is_code: bool) -> bool:
    if _count(text, "mathematics"):
        return True
    perhaps, sums = _count(text, "perhaps_mathematics"), False
    if not is_code:
        sums = (perhaps > 0 or len(text.words) < 25) and _RULES["sum"].holds(text.text)
    if sums or (perhaps >= 3 and not is_code):
        return True
    return _RULES["question_of_numbers"].holds(text.text) and _several(
        _NUMBER, text.text[:2000], 2
    )


def _several(pattern: re.Pattern[str], text: str, least: int) -> bool:
    return sum(1 for _ in zip(range(least), pattern.finditer(text), strict=False)) == least


def _kinds(text: _Text) -> dict[str, bool]:
    """Return whether a prompt is of each of `CATEGORIES`; it may be of several."""
    perhaps = _count(text, "perhaps_programming")
    is_code = (
        perhaps >= 3
        or _count(text, "programming") > 0
        or (perhaps > 0 and "```" in text.text)
        or _RULES["code"].holds(text.text)
    )
    return {
        "roleplay": _RULES["roleplay"].holds(text.text),
        "translation": _RULES["translation"].holds(text.text)
        and _MORE["not_words"].search(text.text) is None,
        "code": is_code,
        "maths": _is_maths(text, is_code),
        "extraction": len(text.words) >= 8 and _RULES["extraction"].holds(text.text),
        "creative": _RULES["creative"].holds(text.text)
        and _MORE["analysis"].search(text.text) is None,
    }


def _intent(text: _Text) -> str:
    """Tell quizzing, to which the answer is known, and playing from the rest, which is asking."""
    short = text.text[:600]
    if _RULES["choices"].holds(text.text) or _RULES["tester"].holds(short):
        return "quizzing"
    if len(text.words) <= 12 and (
        not text.words or _MORE["greeting"].match(short) or _RULES["play"].holds(short)
    ):
        return "playing"
    return "asking"


# Refusals


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
