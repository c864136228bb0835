"""What a voter may add to a choice: reasons, a comment, how sure they are, and why they asked."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum

from rating.sentences import Sentence

LONGEST_COMMENT = 1000
"""Characters of a comment."""


class WhenAsked(StrEnum):
    """When the page asks for reasons: after the names are shown, before, or never."""

    AFTER = "after"
    BEFORE = "before"
    OFF = "off"


class Reason(StrEnum):
    """What speaks for an answer, or against it; the set of ComparIA."""

    USEFUL = "useful"
    COMPLETE = "complete"
    CREATIVE = "creative"
    CLEAR_FORMATTING = "clear_formatting"
    INCORRECT = "incorrect"
    SUPERFICIAL = "superficial"
    INSTRUCTIONS_NOT_FOLLOWED = "instructions_not_followed"


REASONS: Mapping[Reason, Sentence] = {
    Reason.USEFUL: Sentence("Useful"),
    Reason.COMPLETE: Sentence("Complete"),
    Reason.CREATIVE: Sentence("Creative"),
    Reason.CLEAR_FORMATTING: Sentence("Clear formatting"),
    Reason.INCORRECT: Sentence("Incorrect"),
    Reason.SUPERFICIAL: Sentence("Superficial"),
    Reason.INSTRUCTIONS_NOT_FOLLOWED: Sentence("Instructions not followed"),
}
CONFIDENCE: Mapping[int, Sentence] = {
    1: Sentence("a guess"),
    2: Sentence("fairly sure"),
    3: Sentence("sure"),
}


class Intent(StrEnum):
    """Whether the voter knew the answer, wanted to know it, or did neither."""

    QUIZZING = "quizzing"
    ASKING = "asking"
    PLAYING = "playing"


@dataclass(frozen=True, slots=True, kw_only=True)
class Remarks:
    """What was remarked beside a vote; nothing of it changes the vote, or is in its chain.

    Attributes
    ----------
    reasons_a, reasons_b : tuple of Reason
        In the order of `Reason`, each once.
    confidence : int or None
        1 a guess, 2 fairly sure, 3 sure.
    before_reveal : bool
        Whether reasons, comment and confidence, as they stand, were given before the names.
    """

    reasons_a: tuple[Reason, ...] = ()
    reasons_b: tuple[Reason, ...] = ()
    comment: str = ""
    confidence: int | None = None
    intent: Intent | None = None
    before_reveal: bool = False


def in_order(reasons: Iterable[str]) -> tuple[Reason, ...]:
    """Give reasons in the order of `Reason`, each once; raises `ValueError` of any other.

    >>> [str(reason) for reason in in_order(["incorrect", "useful", "incorrect"])]
    ['useful', 'incorrect']
    """
    return tuple(sorted({Reason(reason) for reason in reasons}, key=[*Reason].index))
