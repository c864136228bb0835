"""The hash chain of the vote log, and the values that go into the store and come out of it.

A link is a vote, an exclusion of one, a deletion record, which states what was taken out, or the
mark from which on hashes bind all that is bound today. Its ``content`` is the SHA-256 of what it
binds, and its ``hash`` that of its place, its kind, its content and the previous link's hash. So a
later edit shows, and the chain of votes that are not shown can be followed by hashes alone.

`extend` adds a link, and locks the end of the chain until its transaction ends. What is hashed may
never change: `BOUND`, `OF_EXCLUSION`, `OF_TOMBSTONE`, `FIGURES` and `canonical`.
"""

import hashlib
import json
import math
import uuid
from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Literal, NamedTuple

from sqlalchemy import BindParameter, Connection, Row, Select, bindparam, select, update
from sqlmodel import Session, col

from arena.domain.battle import AnswerStatus, BattleState, Mode, Pacing, Remarks, Side
from arena.domain.model import Model
from arena.domain.vote import Choice, Voter, is_on_broken_answer
from arena.store.tables import (
    BOTH_MODELS,
    OWNER,
    AnswerRow,
    BattleRow,
    ChainRow,
    ExclusionRow,
    LinkRow,
    MarkRow,
    TurnRow,
    VoteRow,
    VoterRow,
    columns_of,
    select_votes,
)
from judge.budget import Price
from rating import __version__
from rating.outcome import of_sides

# Values of the store


@dataclass(frozen=True, slots=True, kw_only=True)
class NewBattle:
    """A battle about to begin: all that is known before the first token.

    Attributes
    ----------
    a, b : Model
        Who is asked on each side, by the name that others may know.
    turn : int
        Number of its first turn: 1, or the next one of the battle that it goes on from.
    continues : str or None
        Public id of that battle.
    """

    public_id: str = field(default_factory=lambda: uuid.uuid4().hex)
    owner: Voter
    mode: Mode = Mode.ANONYMOUS
    prompt: str
    turn: int = 1
    continues: str | None = None
    a: Model
    b: Model
    side_seed: int = 0
    sampler: str
    sampler_version: str
    pair_probability: float = 1.0
    pacing: Pacing
    prompt_set: str | None = None
    prompt_id: str | None
    created: datetime
    app_version: str = __version__


@dataclass(frozen=True, slots=True)
class AnswerKey:
    """Which of a battle's answers is meant."""

    turn: int
    side: Side
    attempt: int


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
    text: str = ""
    status: AnswerStatus = AnswerStatus.STREAMING
    error_class: str | None = None
    finish_reason: str | None = None
    first_token_s: float | None = None
    tokens_out: int | None = None
    cost: float | None = None


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
        The one that runs it, or ran it last: see `arena.store.engine`.
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


# Links and their hashes

LinkKind = Literal["vote", "exclusion", "mark", "tombstone"]


@dataclass(frozen=True, slots=True, kw_only=True)
class LoggedLink:
    """A link of the chain as an export reads it.

    Attributes
    ----------
    bound : mapping
        What a vote, an exclusion or a deletion record binds, by name; empty for the mark.
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


BOUND = (
    "battle_id", "prompt_set", "prompt_id", "mode",
    *of_sides("model"), *of_sides("fingerprint"),
    "sampler", "sampler_version", "pair_probability", "repicks", "pacing", "turn",
    "attempt_a", "attempt_b", "order_shown", "winner", "voter", "voter_kind", "ts",
    "seconds_to_vote", "transcript_hash",
)  # fmt: skip
"""What a vote binds, by the names of an export's columns."""

BOUND_BEFORE_THE_MARK = (
    "voter_id", "turn", "attempt_a", "attempt_b", "outcome", "key", "order_shown",
    "seconds_to_vote",
)  # fmt: skip

_END_LOCKED = select(col(ChainRow.head), col(ChainRow.links)).with_for_update()
_MOVE = update(ChainRow)


def text_hash(nonce: str, text: str) -> str:
    """SHA-256 of a text behind its nonce."""
    return _sha256(canonical([nonce, text]))


def vote_content(bound: Mapping[str, object]) -> str:
    """SHA-256 of what a vote binds: see `BOUND`; None counts as an empty text."""
    return _content("vote", {name: bound[name] for name in BOUND})


def exclusion_content(bound: Mapping[str, object]) -> str:
    """SHA-256 of an exclusion: the link of its vote, its policy, rule, version, reason, time."""
    return _content("exclusion", bound)


def mark_content(contents: str) -> str:
    """SHA-256 of the mark, which binds all votes before it as they were when it was set.

    Parameters
    ----------
    contents : str
        SHA-256 of their contents, one after another.
    """
    return _content("mark", {"contents": contents})


def tombstone_content(bound: Mapping[str, object]) -> str:
    """SHA-256 of a deletion record: the links of votes and exclusions it removes, and when."""
    return _content("tombstone", bound)


def link_hash(previous: str, link: int, kind: str, content: str) -> str:
    """SHA-256 of a link: of its place, its kind and content, and the previous link's hash."""
    return _sha256(canonical([previous, link, kind, content]))


def hash_before_the_mark(
    previous: str, vote: Mapping[str, object], created: datetime, battle_id: str
) -> str:
    """Hash of a vote before the mark: of the previous hash and of little more than the choice."""
    bound = {name: vote[name] for name in BOUND_BEFORE_THE_MARK}
    bound |= {"battle": battle_id, "created": created.isoformat()}
    return _sha256(previous + canonical(bound))


def extend(connection: Connection, kind: LinkKind, content: str) -> dict[str, object]:
    """Move the chain's end to a link about to be written; gives the columns of the link.

    Writers wait for one another here, until the transaction of each has ended.
    """
    before = connection.execute(_END_LOCKED).one()
    link = before.links + 1
    after = link_hash(before.head, link, kind, content)
    connection.execute(_MOVE, {"head": after, "links": link})
    return {"link": link, "content": content, "previous_hash": before.head, "hash": after}


def hold_end(connection: Connection) -> None:
    """Keep others from extending the chain, or taking votes out, until the transaction ends."""
    connection.execute(_END_LOCKED).one()


def head(session: Session) -> str:
    """Hash of the newest link; empty before the first."""
    return session.connection().scalars(select(col(ChainRow.head))).one()


def canonical(value: object) -> str:
    """Write a value as JSON in the one way that is hashed."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), allow_nan=False, default=repr)


def plain(value: object) -> object:
    """Return a value as it is hashed, the same on every database."""
    if isinstance(value, datetime):
        return value.astimezone(UTC).isoformat()
    if isinstance(value, float):
        return value + 0.0 if math.isfinite(value) else repr(value)
    return "" if value is None else value


def _content(kind: LinkKind, bound: Mapping[str, object]) -> str:
    values = {name: plain(value) for name, value in bound.items()}
    return _sha256(canonical(values | {"kind": kind}))


def _sha256(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


# Reading the chain

AnyRow = Row[*tuple[Any, ...]]
BATCH = 500
"""Votes that are read at a time."""

OF_BATTLE: tuple[Any, ...] = (
    col(BattleRow.public_id).label("battle_id"),
    *BOTH_MODELS,
    *columns_of(BattleRow, "prompt_set", "prompt_id", "mode", "sampler", "sampler_version"),
    *columns_of(BattleRow, "pair_probability", "repicks", "pacing"),
)
"""Columns of a battle that its vote binds, by their names in `BOUND`."""


def votes_after(*columns: Any) -> Select[*tuple[Any, ...]]:
    """Select columns of votes after a link, in the order of the chain; with what all read."""
    return (
        select_votes(
            *columns,
            *columns_of(VoteRow, "link", "hash", "broken"),
            col(VoteRow.outcome).label("winner"),
            col(VoteRow.voter_id).label("voter"),
            col(VoterRow.kind).label("voter_kind"),
            col(VoteRow.created).label("ts"),
        )
        .where(col(VoteRow.link) > bindparam("after"))
        .order_by(col(VoteRow.link))
    )


_VOTES = votes_after(
    col(BattleRow.id).label("battle"),
    *OF_BATTLE,
    *columns_of(VoteRow, "id", "fingerprint_a", "fingerprint_b", "turn", "attempt_a", "attempt_b"),
    *columns_of(VoteRow, "order_shown", "seconds_to_vote", "key", "content", "previous_hash"),
).limit(BATCH)
_EXPORTED = _VOTES.add_columns(col(VoteRow.transcript_hash).label("known"), OWNER.label("person"))
_EXCLUSIONS: Select[*tuple[Any, ...]] = (
    select(
        col(VoteRow.link).label("vote"),
        *columns_of(ExclusionRow, "policy", "rule", "version", "reason"),
        col(ExclusionRow.created).label("ts"),
        *columns_of(ExclusionRow, "link", "content", "previous_hash", "hash"),
    )
    .join(VoteRow, col(VoteRow.id) == col(ExclusionRow.vote_id))
    .order_by(col(ExclusionRow.link))
)
OF_EXCLUSION = ("vote", "policy", "rule", "version", "reason", "ts")
"""What an exclusion binds; ``vote`` is the link of its vote."""

OF_TOMBSTONE = ("links", "ts")
"""What a deletion record binds."""
TAKEN_OUT = "taken out"
"""Why a link is hashes alone that a deletion record names, as files have it."""
_LINKS: Select[*tuple[Any, ...]] = select(
    *columns_of(LinkRow, "link", "kind", "reason", "bound", "content", "previous_hash", "hash")
).order_by(col(LinkRow.link))
_IMPORTED = select(col(ChainRow.imported))

MARK = select(*columns_of(MarkRow, "link", "content", "previous_hash", "hash"))

_OF_THESE: BindParameter[Any] = bindparam("battles", expanding=True)
_TURNS: Select[*tuple[Any, ...]] = (
    select(
        *columns_of(TurnRow, "battle_id", "turn", "nonce", "text_hash"),
        col(TurnRow.prompt).label("text"),
    )
    .where(col(TurnRow.battle_id).in_(_OF_THESE))
    .order_by(col(TurnRow.turn))
)
FIGURES = (
    "turn", "side", "attempt", "model_id", "status", "error_class", "finish_reason",
    "first_token_s", "duration_s", "tokens_in", "tokens_out", "cost",
)  # fmt: skip
"""What a vote binds of each answer of its battle, besides the words."""
_ANSWERS = (
    select(*columns_of(AnswerRow, "battle_id", *FIGURES, "text", "nonce", "text_hash"))
    .where(col(AnswerRow.battle_id).in_(_OF_THESE))
    .order_by(col(AnswerRow.turn), col(AnswerRow.attempt), col(AnswerRow.side))
)


class Transcript(NamedTuple):
    """All that was asked and answered in a battle.

    Attributes
    ----------
    text : str
        It as JSON, with the hash of each text behind its nonce.
    hash : str
        SHA-256 of that.
    answers : list
        Of the answers what `FIGURES` names, and the hash of the text.
    last : mapping
        Row of the last answer of each side, with what `FIGURES` names.
    erased : int
        Texts that are gone, of which the hash alone is left.
    """

    text: str
    hash: str
    answers: list[list[Any]]
    last: Mapping[str, AnyRow]
    erased: int


def transcripts(connection: Connection, battles: Collection[int]) -> dict[int, Transcript]:
    """Read what was asked and answered in these battles."""
    turns, answers = defaultdict(list), defaultdict(list)
    for row in connection.execute(_TURNS, {"battles": list(battles)}):
        turns[row.battle_id].append(row)
    for row in connection.execute(_ANSWERS, {"battles": list(battles)}):
        answers[row.battle_id].append(row)
    return {battle: _transcript(turns[battle], answers[battle]) for battle in battles}


def votes(connection: Connection) -> Iterator[list[tuple[AnyRow, Transcript]]]:
    """Read the votes in the order of the chain, some at a time, with their transcripts.

    A row has what `vote_content` binds, except the transcript's hash.
    """
    after = 0
    while rows := connection.execute(_VOTES, {"after": after}).all():
        read = transcripts(connection, [row.battle for row in rows])
        yield [(row, read[row.battle]) for row in rows]
        after = rows[-1].link


def exported_votes(connection: Connection) -> Iterator[list[tuple[AnyRow, str, str | None]]]:
    """Read the votes likewise, each with its person, and with the transcript's hash.

    Of a vote on a broken answer the transcript itself is given, too.

    That of a vote that came by an import of version 0.1.0 is the one that it was recorded with:
    its words are not here as they were, and a file proves the hash by the vote's own.
    """
    until, after = connection.scalars(_IMPORTED).one(), 0
    while rows := connection.execute(_EXPORTED, {"after": after}).all():
        ours = [row.battle for row in rows if row.link > until]
        read = transcripts(connection, ours) if ours else {}
        yield [_exported(row, read.get(row.battle)) for row in rows]
        after = rows[-1].link


def _exported(row: AnyRow, transcript: Transcript | None) -> tuple[AnyRow, str, str | None]:
    if transcript is None:
        return row, row.known, None
    return row, transcript.hash, transcript.text if row.broken else None


def is_broken(vote: Mapping[str, Any], answers: Sequence[Sequence[Any]]) -> bool:
    """Return whether a vote is on a broken answer, by the answers of its transcript."""
    turn, side, attempt, reason = map(FIGURES.index, ("turn", "side", "attempt", "finish_reason"))
    ends = ((one[turn], one[side], one[attempt], one[reason]) for one in answers)
    attempts = {"a": vote["attempt_a"], "b": vote["attempt_b"]}
    return is_on_broken_answer(ends, vote["turn"], attempts)


def exclusions(connection: Connection) -> Iterator[AnyRow]:
    """Read the exclusions that are links in their order, some at a time."""
    return _some_at_a_time(connection, _EXCLUSIONS, col(ExclusionRow.link))


def others(connection: Connection) -> Iterator[AnyRow]:
    """Read the links that are no row of another table in their order, some at a time."""
    return _some_at_a_time(connection, _LINKS, col(LinkRow.link))


def _some_at_a_time(connection: Connection, query: Select[Any], link: Any) -> Iterator[AnyRow]:
    after = 0
    while rows := connection.execute(query.where(link > after).limit(BATCH)).all():
        yield from rows
        after = rows[-1].link


def _transcript(turns: list[AnyRow], answers: list[AnyRow]) -> Transcript:
    asked = [[row.turn, _words(row)] for row in turns]
    answered = [[*(plain(getattr(row, n)) for n in FIGURES), _words(row)] for row in answers]
    text = canonical([asked, answered])
    return Transcript(
        text=text,
        hash=_sha256(text),
        answers=answered,
        last={row.side: row for row in answers},
        erased=sum(row.nonce is None for row in [*turns, *answers]),
    )


def _words(row: AnyRow) -> str | None:
    """Hash of a text: as it is, or as it was before it was erased together with its nonce."""
    if row.nonce is None and not row.text:
        return str(row.text_hash)
    return text_hash(row.nonce or "", row.text)
