"""A vote: the choice of one voter on one battle, and what it reveals."""

from dataclasses import dataclass
from enum import StrEnum


class Choice(StrEnum):
    """What a voter may say: the four outcomes of `rating.Outcome`, or that they will not."""

    A = "model_a"
    B = "model_b"
    TIE = "tie"
    BOTH_BAD = "both_bad"
    SKIP = "skip"


@dataclass(frozen=True, slots=True)
class RevealedModel:
    """Who answered on one side, and what it took.

    Attributes
    ----------
    latency_s : float or None
        Seconds from the request to the model's first token.
    tokens : int or None
        Tokens of the answer as the endpoint counted them; None when it did not.
    cost : float or None
        US dollars at the logged price; None when price or tokens are unknown.
    """

    id: str
    name: str
    latency_s: float | None
    tokens: int | None
    cost: float | None


@dataclass(frozen=True, slots=True)
class Reveal:
    """Both models of a battle. `arena.play.battles.Battles.vote` is its only source."""

    a: RevealedModel
    b: RevealedModel


@dataclass(frozen=True, slots=True)
class Receipt:
    """A committed vote: ``reveal`` is None for a skip, which reveals nothing."""

    choice: Choice
    reveal: Reveal | None
