"""Plain values that go into the store and come out of it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Literal, NamedTuple

from arena.domain.battle import AnswerStatus, BattleState, Mode, Pacing, Side
from arena.domain.remarks import Remarks
from arena.domain.vote import Choice, Receipt, Voter
from judge.budget import Price


@dataclass(frozen=True, slots=True, kw_only=True)
class NewAnswer:
    """An answer about to be asked for."""

    model_id: str
    model_name: str
    system_prompt_hash: str
    decoding: Mapping[str, object]


@dataclass(frozen=True, slots=True, kw_only=True)
class NewBattle:
    """A battle about to begin: all that is known before the first token.

    Attributes
    ----------
    turn : int
        Number of its first turn: 1, or the next one of the battle that it goes on from.
    continues : str or None
        Public id of that battle.
    """

    public_id: str
    owner: Voter
    mode: Mode
    prompt: str
    turn: int = 1
    continues: str | None = None
    a: NewAnswer
    b: NewAnswer
    side_seed: int
    sampler: str
    sampler_version: str
    pair_probability: float
    pacing: Pacing
    prompt_set: str | None
    prompt_id: str | None
    created: datetime
    app_version: str


@dataclass(frozen=True, slots=True)
class AnswerKey:
    """Which of a battle's answers is meant."""

    turn: int
    side: Side
    attempt: int


@dataclass(frozen=True, slots=True)
class SoFar:
    """What a running answer has written."""

    text: str
    reasoning: str


@dataclass(frozen=True, slots=True, kw_only=True)
class AnswerOutcome:
    """How an answer ended: what the endpoint said of it, or why it failed.

    Attributes
    ----------
    needs : list of float or None
        What its pieces took: see `arena.play.pace.needs`; None where it has not come to its end.
    """

    text: str
    status: AnswerStatus
    reasoning: str = ""
    error_class: str | None = None
    error_detail: str | None = None
    finish_reason: str | None = None
    first_token_s: float | None = None
    duration_s: float | None = None
    tokens_in: int | None = None
    tokens_out: int | None = None
    price: Price | None = None
    request_id: str | None = None
    needs: list[float] | None = None


class Took(NamedTuple):
    """What an answer took.

    Attributes
    ----------
    needs : sequence of float
        As `arena.play.pace.needs` gives them.
    duration_s : float
        From the request to the end.
    """

    needs: Sequence[float]
    duration_s: float
    length: int


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredAnswer:
    """An answer as the log has it."""

    side: Side
    attempt: int
    model_id: str
    model_name: str
    text: str
    status: AnswerStatus
    error_class: str | None
    finish_reason: str | None
    first_token_s: float | None
    tokens_out: int | None
    cost: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredTurn:
    """A prompt with the latest attempt of each side."""

    turn: int
    prompt: str
    a: StoredAnswer
    b: StoredAnswer


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredBattle:
    """A battle as the log has it.

    Attributes
    ----------
    process : int or None
        The one that runs it, or ran it last: see `arena.store.lease`.
    remarks : Remarks or None
        What was remarked beside the vote; None if nothing.
    withheld : bool
        Whether the names of a vote are withheld until something is.
    asked : datetime or None
        When one of its models was last asked; None of an imported vote without answers.
    repicks : int
        Models that failed unseen in the first turn, and were replaced.
    """

    public_id: str
    owner: str
    mode: Mode
    state: BattleState
    message: str | None
    created: datetime
    asked: datetime | None
    turns: tuple[StoredTurn, ...]
    choice: Choice | None
    process: int | None = None
    prompt_set: str | None = None
    remarks: Remarks | None = None
    withheld: bool = False
    repicks: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Ballot:
    """A choice that asks to be committed; ``withhold`` keeps the names back until remarks.

    The battle takes it only if a model was asked at ``asked_since`` or later; None sets no limit,
    where a vote comes along with its answers.
    """

    battle_id: str
    voter: str
    choice: Choice
    key: str
    cast: datetime
    withhold: bool = False
    asked_since: datetime | None = None


@dataclass(frozen=True, slots=True)
class Cast:
    """A committed vote: what it reveals, and whether it was committed just now."""

    receipt: Receipt
    new: bool


LinkKind = Literal["vote", "exclusion", "mark", "tombstone"]


@dataclass(frozen=True, slots=True, kw_only=True)
class LoggedLink:
    """A link of the chain as an export reads it: see `arena.store.chain`.

    Attributes
    ----------
    bound : mapping
        What a vote, an exclusion or a tombstone binds, by name; empty for the mark.
    exclusions : tuple of str
        Reasons logged against a vote under the policy that was asked for.
    labels : mapping
        What a vote is about, by facet, as the policy's tagger says.
    remarks : mapping
        What was remarked beside a vote, by the columns of an export; empty if nothing was.
    transcript : str or None
        What the ``transcript_hash`` of a vote on a broken answer is the hash of; None of others.
    withheld : str or None
        Why the hashes alone of a vote or an exclusion are here; None where all of it is.
    """

    kind: LinkKind
    link: int
    content: str
    hash: str
    bound: Mapping[str, Any]
    exclusions: tuple[str, ...] = ()
    labels: Mapping[str, str] = field(default_factory=dict)
    remarks: Mapping[str, Any] = field(default_factory=dict)
    transcript: str | None = None
    withheld: str | None = None
