"""What happens in battles, for logs and figures: no words of anybody, and no model's name."""

from dataclasses import dataclass

from arena.domain.answer import FailureClass
from arena.domain.battle import BattleState
from arena.domain.vote import Choice


@dataclass(frozen=True, slots=True)
class Asked:
    """Two models were asked: for a new battle, another turn or another attempt."""

    battle_id: str


@dataclass(frozen=True, slots=True)
class Replaced:
    """A model failed before anybody saw a word of it, and another took its side."""

    battle_id: str
    failure: FailureClass


@dataclass(frozen=True, slots=True)
class Ended:
    """Both models were heard out, or were not.

    Attributes
    ----------
    failures : tuple of FailureClass
        Of the sides that failed.
    first_tokens_s : tuple of float
        Seconds to the first token, of the sides that had one.
    """

    battle_id: str
    state: BattleState
    failures: tuple[FailureClass, ...]
    first_tokens_s: tuple[float, ...]


@dataclass(frozen=True, slots=True)
class Voted:
    """A vote was committed."""

    battle_id: str
    choice: Choice


Notice = Asked | Replaced | Ended | Voted
