"""Changes to a text, seeded and versioned: its meaning left, its meaning changed, in doses."""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from enum import StrEnum

import numpy as np

VERSION = 1
"""Of all perturbations together: another version makes other copies of the same text."""

NOISY_WORDS = 0.1
"""Share of the words that lose a character."""

_AUXILIARIES = (
    "am|is|are|was|were|can|could|will|would|shall|should|may|might|must|do|does|did|has|have|had"
)
_FINITE = re.compile(rf"\b({_AUXILIARIES})\b(\s+not\b)?", re.IGNORECASE)
_DIGITS = re.compile(r"[0-9]")
_MARKDOWN = (
    (re.compile(r"^[ \t]*```.*$\n?", re.MULTILINE), ""),
    (re.compile(r"^([ \t]*)(?:#{1,6}|>|[-*+])[ \t]+", re.MULTILINE), r"\1"),
    (re.compile(r"(\*\*|__|`+)(?=\S)(.+?)(?<=\S)\1"), r"\2"),
    (re.compile(r"(?<![^\W_])([*_])(?=\S)(.+?)(?<=\S)\1(?![^\W_])"), r"\2"),
)
_SENTENCE_END = re.compile(r"(?<=[.!?])(\s+)")
_LABEL = re.compile(r"\b(assistant|response|answer|model) ([AB])\b", re.IGNORECASE)


class Kind(StrEnum):
    """Whether a change touches what a text says."""

    SUPERFICIAL = "superficial"
    MEANING = "meaning"


@dataclass(frozen=True, slots=True)
class Perturbation:
    """A change to a text.

    Attributes
    ----------
    name : str
        What it is called on a card.
    apply : callable
        A pure function of the text and of what ``rng`` draws. A text on which it has nothing to
        change comes back as it is.
    """

    name: str
    kind: Kind
    apply: Callable[[str, np.random.Generator], str]


def random_case(text: str, rng: np.random.Generator) -> str:
    """Write each letter as a capital or small, by a coin; one whose length changes stays."""
    coins = rng.random(len(text)) < 0.5
    return "".join(
        _other_case(letter) if swap else letter for letter, swap in zip(text, coins, strict=True)
    )


def character_noise(text: str, rng: np.random.Generator) -> str:
    """Drop one character in `NOISY_WORDS` of the words with four or more, at least in one."""
    pieces = re.split(r"(\s+)", text)
    long = [i for i, piece in enumerate(pieces) if len(piece) > 3 and not piece.isspace()]
    if not long:
        return text
    n = max(1, round(NOISY_WORDS * len(long)))
    for i in rng.choice(long, size=n, replace=False):
        gone = int(rng.integers(len(pieces[i])))
        pieces[i] = pieces[i][:gone] + pieces[i][gone + 1 :]
    return "".join(pieces)


def wide_spacing(text: str, _: np.random.Generator) -> str:
    """Double every space, and end with an empty line."""
    return text.replace(" ", "  ") + "\n"


def plain_text(text: str, _: np.random.Generator) -> str:
    """Strip marks of Markdown: headings, lists, quotes, emphasis, code. Links stay."""
    for mark, content in _MARKDOWN:
        text = mark.sub(content, text)
    return text


def renamed_labels(text: str, _: np.random.Generator) -> str:
    """Call "Assistant A" and "Assistant B", or responses, answers and models, 1 and 2."""
    return _LABEL.sub(lambda label: f"{label[1]} {'AB'.index(label[2].upper()) + 1}", text)


def negation(text: str, rng: np.random.Generator) -> str:
    """Negate one finite auxiliary, or take its negation away; deny the whole without any."""
    verbs = list(_FINITE.finditer(text))
    if not verbs:
        return f"It is not true that {text}" if text.strip() else text
    one = verbs[int(rng.integers(len(verbs)))]
    verb = one[1] if one[2] else f"{one[1]} not"
    return text[: one.start()] + verb + text[one.end() :]


def sentence_shuffle(text: str, rng: np.random.Generator) -> str:
    """Put the sentences into another order."""
    pieces, spaces = sentences(text)
    return _interleaved(_shuffled(pieces, rng), spaces)


def word_shuffle(text: str, rng: np.random.Generator) -> str:
    """Put the words of each sentence into another order; their punctuation goes with them."""
    pieces, spaces = sentences(text)
    return _interleaved([_words_shuffled(sentence, rng) for sentence in pieces], spaces)


def other_number(text: str, rng: np.random.Generator) -> str:
    """Change one digit."""
    digits = list(_DIGITS.finditer(text))
    if not digits:
        return text
    one = digits[int(rng.integers(len(digits)))]
    digit = (int(one[0]) + int(rng.integers(1, 10))) % 10
    return f"{text[: one.start()]}{digit}{text[one.end() :]}"


def no_conclusion(text: str, _: np.random.Generator) -> str:
    """Drop the last sentence; a single one stays."""
    pieces, spaces = sentences(text.rstrip())
    return _interleaved(pieces[:-1], spaces[:-1]) if len(pieces) > 1 else text


RANDOM_CASE = Perturbation("random case", Kind.SUPERFICIAL, random_case)
CHARACTER_NOISE = Perturbation("character noise", Kind.SUPERFICIAL, character_noise)
WIDE_SPACING = Perturbation("wide spacing", Kind.SUPERFICIAL, wide_spacing)
PLAIN_TEXT = Perturbation("Markdown stripped", Kind.SUPERFICIAL, plain_text)
RENAMED_LABELS = Perturbation("labels renamed", Kind.SUPERFICIAL, renamed_labels)
NEGATION = Perturbation("negation", Kind.MEANING, negation)
SENTENCE_SHUFFLE = Perturbation("sentence shuffle", Kind.MEANING, sentence_shuffle)
WORD_SHUFFLE = Perturbation("word shuffle", Kind.MEANING, word_shuffle)
OTHER_NUMBER = Perturbation("number changed", Kind.MEANING, other_number)
NO_CONCLUSION = Perturbation("conclusion dropped", Kind.MEANING, no_conclusion)

PERTURBATIONS = (
    RANDOM_CASE,
    CHARACTER_NOISE,
    WIDE_SPACING,
    PLAIN_TEXT,
    NEGATION,
    SENTENCE_SHUFFLE,
    WORD_SHUFFLE,
    OTHER_NUMBER,
    NO_CONCLUSION,
)
"""What a card asks about any text. Labels are renamed in what a judge reads, not in a text."""


def sentences(text: str) -> tuple[list[str], list[str]]:
    """Cut a text behind full stops, question and exclamation marks before a space.

    Returns
    -------
    sentences, spaces : list of str
        What stands between two sentences is one shorter; alternating they are the text again.
    """
    pieces = _SENTENCE_END.split(text)
    return pieces[::2], pieces[1::2]


def _other_case(letter: str) -> str:
    other = letter.swapcase()
    return other if len(other) == 1 and other.casefold() == letter.casefold() else letter


def _words_shuffled(sentence: str, rng: np.random.Generator) -> str:
    pieces = re.split(r"(\s+)", sentence)
    return _interleaved(_shuffled(pieces[::2], rng), pieces[1::2])


def _shuffled(pieces: list[str], rng: np.random.Generator) -> list[str]:
    """Draw orders until one differs; pieces that are all the same stay."""
    if len(set(pieces)) < 2:
        return pieces
    drawn = pieces
    while drawn == pieces:
        drawn = [pieces[i] for i in rng.permutation(len(pieces))]
    return drawn


def _interleaved(pieces: list[str], spaces: list[str]) -> str:
    return "".join(part for pair in zip(pieces, [*spaces, ""], strict=True) for part in pair)


REMOVED = (0.1, 0.25, 0.5, 0.75)
"""Fractions of the words that are taken away."""
INSERTED = (0.25, 0.5, 1.0)
"""Lengths of what is put in, as multiples of the text's."""


class Place(StrEnum):
    """Where in a text."""

    START = "start"
    MIDDLE = "middle"
    END = "end"

    def of(self, room: int) -> int:
        """Return how many of ``room`` words stand before it."""
        return {Place.START: 0, Place.MIDDLE: room // 2, Place.END: room}[self]


@dataclass(frozen=True, slots=True)
class Dosed:
    """A copy of a text with a known part of it gone, or a known part foreign.

    Attributes
    ----------
    dose : float
        Fraction removed, or length put in over the text's, as asked for.
    target : float
        Share of the longer of the two texts that both have, in words as cut: ``1 - f`` or
        ``1 / (1 + g)``.
    """

    removal: bool
    dose: float
    place: Place
    text: str
    target: float


def doses(text: str, foreign: str) -> Iterator[Dosed]:
    """Yield a text with each fraction removed and each length inserted, at each place.

    Doses are rounded to whole words. One that leaves nothing, changes nothing, or needs more
    words than ``foreign`` has is left out.

    Examples
    --------
    >>> cut = next(one for one in doses("a b c d", "w x y z") if one.dose == 0.5)
    >>> cut.text, cut.target
    ('c d', 0.5)
    """
    own, strange = text.split(), foreign.split()
    for place in Place:
        for fraction in REMOVED:
            n = round(fraction * len(own))
            if 0 < n < len(own):
                at = place.of(len(own) - n)
                left = " ".join(own[:at] + own[at + n :])
                yield Dosed(True, fraction, place, left, 1 - n / len(own))
        for times in INSERTED:
            n = round(times * len(own))
            if 0 < n <= len(strange):
                at = place.of(len(own))
                longer = " ".join(own[:at] + strange[:n] + own[at:])
                yield Dosed(False, times, place, longer, len(own) / (len(own) + n))
