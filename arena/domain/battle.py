"""A battle: two anonymous answers to one prompt, its states, and what logs may say of it."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum

from arena.domain.answer import FailureClass
from arena.domain.remarks import Remarks
from arena.domain.vote import Choice, Receipt, Reveal


class Side(StrEnum):
    """Where an answer stands on the page; all that anybody knows before the vote."""

    A = "a"
    B = "b"


class BattleState(StrEnum):
    """Where a battle stands.

    ``created -> streaming -> ready -> voted | skipped``; a battle leaves the first two for
    ``failed`` (a model did not answer), ``stopped`` (by its owner, before both sides
    showed text) or ``interrupted`` (the server went down). Only ``ready`` takes a vote.
    A battle without a vote is ``expired`` some time after its models were last asked: it takes
    no vote, turn or retry any more. That state follows from the time and is never stored.
    """

    CREATED = "created"
    STREAMING = "streaming"
    READY = "ready"
    VOTED = "voted"
    SKIPPED = "skipped"
    FAILED = "failed"
    STOPPED = "stopped"
    INTERRUPTED = "interrupted"
    EXPIRED = "expired"

    @property
    def running(self) -> bool:
        """Whether answers are still being written."""
        return self in (BattleState.CREATED, BattleState.STREAMING)


VOTE_WITHIN = timedelta(hours=24)
"""A battle takes a vote for so long after its models were last asked, unless a setting differs."""


class AnswerStatus(StrEnum):
    """Where one answer stands; ``stopped`` answers hold what the reader saw."""

    STREAMING = "streaming"
    COMPLETE = "complete"
    STOPPED = "stopped"
    FAILED = "failed"
    INTERRUPTED = "interrupted"


class Mode(StrEnum):
    """Whether a battle is blind and takes a vote, or goes on after one with known models."""

    ANONYMOUS = "anonymous"
    CONTINUED = "continued"


class Pacing(StrEnum):
    """How answers are released to the page: see `arena.play.pace`."""

    PACED = "paced"
    BOTH_DONE = "both-done"
    RAW = "raw"


class PacePool(StrEnum):
    """Whose earlier answers decide the pace of a battle: its own two models', or everybody's."""

    PAIR = "pair"
    ROSTER = "roster"


class Sampler(StrEnum):
    """How pairs are drawn.

    Every pair alike; by the product of the roster's weights; by what a vote tells of the pair's
    own share of wins (Chatbot Arena's rule); by what it tells of neighbours on the board; or of
    two models that race.
    """

    UNIFORM = "uniform"
    WEIGHTED = "weighted"
    ARENA = "arena"
    GAIN = "gain"
    RACE = "race"


def current_state(
    state: BattleState, mode: Mode, asked: datetime | None, asked_since: datetime
) -> BattleState:
    """Give the state of a battle, which may have expired since it was stored.

    Parameters
    ----------
    state : BattleState
        As it is stored.
    asked : datetime or None
        When one of its models was last asked; None of an imported vote without answers.
    asked_since : datetime
        A battle without a vote has expired unless a model was asked at this moment or later.

    Examples
    --------
    >>> ready, noon = (BattleState.READY, Mode.ANONYMOUS), datetime(2026, 11, 1, 12)
    >>> current_state(*ready, asked=noon, asked_since=noon)
    <BattleState.READY: 'ready'>
    >>> current_state(*ready, asked=noon, asked_since=noon + timedelta(minutes=1))
    <BattleState.EXPIRED: 'expired'>
    """
    decided = state in (BattleState.VOTED, BattleState.SKIPPED)
    if decided or state.running or mode is not Mode.ANONYMOUS or asked is None:
        return state
    return BattleState.EXPIRED if asked < asked_since else state


Wins = Mapping[tuple[str, str], float]
"""Score of the first model, by id, against the second, a tie half a win for each; both orders."""


@dataclass(frozen=True, slots=True)
class ShownAnswer:
    """The part of an answer that its reader may see."""

    text: str
    status: AnswerStatus


@dataclass(frozen=True, slots=True)
class ShownTurn:
    """One prompt and what the two sides have shown so far.

    Attributes
    ----------
    attempt : int
        Grows whenever an answer of the turn is asked for anew.
    """

    turn: int
    prompt: str
    a: ShownAnswer
    b: ShownAnswer
    attempt: int = 1


@dataclass(frozen=True, slots=True)
class Snapshot:
    """All that the owner of a battle may see of it now.

    Attributes
    ----------
    message : str or None
        Fixed words on why the battle ended without a vote; None while it runs or if it
        ended well.
    receipt : Receipt or None
        The committed vote and what it revealed; None before the vote.
    models : Reveal or None
        Who answers, once a committed vote has revealed it: also where the two go on after it.
    remarks : Remarks or None
        What the voter remarked beside the vote; None if nothing.
    rest_offered : bool
        Whether the rest of both answers, which both are complete, may be shown at once.
    """

    battle_id: str
    state: BattleState
    created: datetime
    turns: tuple[ShownTurn, ...]
    message: str | None = None
    receipt: Receipt | None = None
    models: Reveal | None = None
    remarks: Remarks | None = None
    rest_offered: bool = False

    @property
    def turn(self) -> int:
        """Number of the latest turn, from 1."""
        return len(self.turns)


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
    """Both models answered to the end, or did not.

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
