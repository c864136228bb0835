"""Battles that were voted on, as anyone may read them: behind a number lie single cases."""

from dataclasses import dataclass
from datetime import datetime

from arena.domain.model import Kind
from arena.domain.vote import Choice


@dataclass(frozen=True, slots=True)
class ShownModel:
    """A model as its card has it; ``since`` is when the arena first knew of it."""

    id: str
    name: str
    organisation: str
    kind: Kind
    licence: str
    since: datetime


@dataclass(frozen=True, slots=True)
class ShownTurn:
    """What was asked, and both answers that the vote was about or that led to them."""

    prompt: str
    text_a: str
    text_b: str


@dataclass(frozen=True, slots=True)
class ShownVote:
    """A vote that counts, with the first prompt of its battle.

    Attributes
    ----------
    place : int
        Place in the log: later votes have higher ones.
    seconds : float
        From the end of both answers to the vote.
    """

    place: int
    battle_id: str
    created: datetime
    prompt: str
    choice: Choice
    model_a: ShownModel
    model_b: ShownModel
    seconds: float


@dataclass(frozen=True, slots=True)
class ShownVotes:
    """Some counted votes, newest first.

    Attributes
    ----------
    of : tuple of ShownModel
        The models that the votes were asked for by: none, one, or a pair.
    older_than : int or None
        Place after which older votes go on; None when there are none.
    """

    policy: str
    of: tuple[ShownModel, ...]
    votes: tuple[ShownVote, ...]
    older_than: int | None


@dataclass(frozen=True, slots=True)
class ShownBattle:
    """A vote that a policy counts, and all that was said before it."""

    policy: str
    vote: ShownVote
    turns: tuple[ShownTurn, ...]
