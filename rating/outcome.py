"""The sides and outcomes of one comparison, and the ways to account for ties."""

from enum import StrEnum
from typing import Literal


class Outcome(StrEnum):
    """Result of one comparison, by side: never by winner and loser.

    Keeping the side lets position bias be estimated later. The values are
    those of the public arena datasets (column ``winner``).

    Examples
    --------
    >>> Outcome("model_a").swapped()
    <Outcome.B: 'model_b'>
    >>> Outcome.TIE.score_a
    0.5
    """

    A = "model_a"
    B = "model_b"
    TIE = "tie"
    BOTH_BAD = "both_bad"

    def swapped(self) -> "Outcome":
        """Return the same result with the sides exchanged."""
        return {Outcome.A: Outcome.B, Outcome.B: Outcome.A}.get(self, self)

    @property
    def score_a(self) -> float:
        """Score of side A: 1 for a win, 0 for a loss, 1/2 for either kind of tie."""
        return {Outcome.A: 1.0, Outcome.B: 0.0}.get(self, 0.5)


SIDES = ("a", "b")
SHOWN_FIRST = ("ab", "ba")
"""Orders in which both answers are shown: side A first, side B first."""


def of_sides(name: str) -> tuple[str, str]:
    """Name the columns of what each side has.

    >>> of_sides("response")
    ('response_a', 'response_b')
    """
    return f"{name}_a", f"{name}_b"


OUTCOMES = tuple(Outcome)
"""All of them: a code of an outcome is its position here."""


Ties = Literal["half", "davidson", "rao-kupper", "grounded"]
