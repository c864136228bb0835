"""The tables of the database, and the clauses of queries that state which votes and battles count.

Every field that could not be recovered later is written from the first day. Each change needs a
migration. `is_counted` is a policy as a clause, and `is_over` states which battles have ended.
"""

import hashlib
import json
import secrets
from collections.abc import Collection
from dataclasses import asdict
from datetime import UTC, date, datetime, timedelta
from typing import Any

from sqlalchemy import (
    JSON,
    BigInteger,
    ColumnElement,
    DateTime,
    Dialect,
    ForeignKey,
    Index,
    LargeBinary,
    MetaData,
    Select,
    String,
    TypeDecorator,
    UniqueConstraint,
    and_,
    false,
    func,
    or_,
    select,
    text,
)
from sqlalchemy.orm import aliased
from sqlmodel import Field, Session, SQLModel, col

from arena.domain.battle import BattleState, Mode
from arena.domain.model import GOLD, Model
from arena.domain.vote import INHERITS, READMITTED, Choice, Policy
from rating.tables.files import storable


def new_nonce() -> str:
    """Make what keeps a text from being guessed by its hash; without it the hash says nothing."""
    return secrets.token_hex(16)


class UtcDateTime(TypeDecorator[datetime]):
    """A moment in UTC, aware on every database: SQLite would drop the zone."""

    impl = DateTime(timezone=True)
    cache_ok = True

    def process_bind_param(self, value: datetime | None, dialect: Dialect) -> datetime | None:
        """Refuse a moment without a zone, and store the others in UTC."""
        if value is not None and value.tzinfo is None:
            raise ValueError(f"A moment needs its time zone, got {value!r}.")
        return value and value.astimezone(UTC)

    def process_result_value(self, value: datetime | None, dialect: Dialect) -> datetime | None:
        """Give the zone back."""
        return value and (
            value.replace(tzinfo=UTC) if value.tzinfo is None else value.astimezone(UTC)
        )


class _Prose(TypeDecorator[str]):
    """Text of people and models, as far as it is `storable`."""

    impl = String
    cache_ok = True

    def process_bind_param(self, value: str | None, dialect: Dialect) -> str | None:
        """Replace what cannot be stored."""
        return value and storable(value)


class Table(SQLModel):
    """Base of the tables: constraints are named, so that migrations can find them."""

    metadata = MetaData(
        naming_convention={
            "ix": "ix_%(column_0_label)s",
            "uq": "uq_%(table_name)s_%(column_0_name)s",
            "ck": "ck_%(table_name)s_%(constraint_name)s",
            "fk": "fk_%(table_name)s_%(column_0_name)s_%(referred_table_name)s",
            "pk": "pk_%(table_name)s",
        }
    )


def _moment(**kwargs: Any) -> Any:
    return Field(sa_type=UtcDateTime, **kwargs)


def _prose(**kwargs: Any) -> Any:
    return Field(sa_type=_Prose, **kwargs)


def _added(**kwargs: Any) -> Any:
    """Give a column that tables got later: always set, which SQLite cannot be made to require."""
    return Field(nullable=True, **kwargs)


def _key_of(column: str) -> Any:
    """Make a key that is the one of another row."""
    numbered_elsewhere = {"autoincrement": False}
    return Field(primary_key=True, foreign_key=column, sa_column_kwargs=numbered_elsewhere)


def _json() -> Any:
    return Field(default_factory=dict, sa_type=JSON)


class VoterRow(Table, table=True):
    """A voter by keyed hash; ``person`` is the voter that this one turned out to be, if any."""

    __tablename__ = "voter"
    id: str = Field(primary_key=True)
    kind: str
    person: str | None = Field(default=None, index=True)
    created: datetime = _moment()


class PersonRow(Table, table=True):
    """A user: see `arena.domain.people.Person`.

    ``subject`` is a keyed hash of whom the issuer knows them as.
    """

    __tablename__ = "person"
    __table_args__ = (UniqueConstraint("issuer", "subject"),)
    voter_id: str = Field(primary_key=True, foreign_key="voter.id")
    issuer: str
    subject: str
    name: str = _prose()
    role: str
    sessions: int
    blocked: bool
    created: datetime = _moment()


class InvitationRow(Table, table=True):
    """A link that lets people in, by the hash of its content; used so often of this many times."""

    __tablename__ = "invitation"
    id: int | None = Field(default=None, primary_key=True)
    token_hash: str = Field(unique=True)
    role: str
    name: str = _prose()
    person: str | None = Field(default=None, foreign_key="person.voter_id")
    uses: int
    used: int
    expires: datetime = _moment()
    created: datetime = _moment()


class ActRow(Table, table=True):
    """What an administrator or a command did: never changed, never deleted.

    ``by`` is a person's id, or ``terminal``.
    """

    __tablename__ = "act"
    id: int | None = Field(default=None, primary_key=True)
    by: str
    act: str
    subject: str
    detail: dict[str, Any] = _json()
    created: datetime = _moment()


ANSWERS = ("endpoint", "model", "kind", "system_prompt", "decoding", "recording")
"""Fields that decide how a model answers: a change of any makes another model."""


def fingerprint(model: Model, secret: str = "") -> str:
    """SHA-256 of all that makes a model answer as it does, and of a secret if there is one."""
    whole = asdict(model)
    answering = {name: whole[name] for name in ANSWERS} | ({"secret": secret} if secret else {})
    if model.lacking:
        answering["without"] = model.lacking
    return hashlib.sha256(json.dumps(answering, sort_keys=True, default=str).encode()).hexdigest()


class ModelRow(Table, table=True):
    """A model that has ever been in the roster; never deleted."""

    __tablename__ = "model"
    id: str = Field(primary_key=True)
    name: str
    organisation: str
    kind: str
    licence: str
    fingerprint: str
    created: datetime = _moment()


class ModelEventRow(Table, table=True):
    """Something that happened to a model: added, changed, enabled, disabled, retired."""

    __tablename__ = "model_event"
    id: int | None = Field(default=None, primary_key=True)
    model_id: str = Field(foreign_key="model.id", index=True)
    event: str
    reason: str = ""
    detail: dict[str, Any] = _json()
    created: datetime = _moment()


class RosterEntryRow(Table, table=True):
    """An entry of the roster: what answers, without any key, and whether it is drawn.

    ``place`` is that in the roster; ``weight`` replaces the one in ``entry``. ``secret`` is
    part of the fingerprint of what enters unnamed: nobody can try names on it. ``paused`` is the
    failure for which the arena itself has disabled it.
    """

    __tablename__ = "roster_entry"
    model_id: str = Field(primary_key=True, foreign_key="model.id")
    place: int
    entry: dict[str, Any] = _json()
    standing: str
    weight: float
    updated: datetime = _moment()
    release: str = _added()
    released: datetime | None = _moment(default=None)
    secret: str = _added()
    paused: str | None = None


class RosterVersionRow(Table, table=True):
    """How often the roster has changed: one row, by which processes see that it has."""

    __tablename__ = "roster_version"
    id: int = Field(primary_key=True)
    version: int


CONTINUES = ForeignKey("battle.id", name="battle_continues_fkey")
"""PostgreSQL chose this name, when its column was added."""


class BattleRow(Table, table=True):
    """A battle, written before the first token is asked for.

    ``process`` is the number of the one that runs it, or ran it last: see `arena.store.engine`.
    ``hidden`` is when its owner hid it from others, ``erased`` when its words went: see
    `arena.store.erasing`.
    """

    __tablename__ = "battle"
    id: int | None = Field(default=None, primary_key=True)
    public_id: str = Field(unique=True)
    owner: str = Field(foreign_key="voter.id", index=True)
    mode: str
    model_a: str = Field(foreign_key="model.id")
    model_b: str = Field(foreign_key="model.id")
    side_seed: int
    sampler: str
    sampler_version: str
    pair_probability: float
    repicks: int = Field(default=0, sa_column_kwargs={"server_default": "0"})
    continues: int | None = Field(default=None, sa_column_args=[CONTINUES])
    prompt_set: str | None = None
    prompt_id: str | None = None
    system_prompt_hash_a: str
    system_prompt_hash_b: str
    pacing: str
    state: str = Field(index=True)
    process: int | None = Field(default=None, sa_type=BigInteger)
    message: str | None = None
    created: datetime = _moment()
    ready: datetime | None = _moment(default=None)
    app_version: str
    hidden: datetime | None = _moment(default=None)
    erased: datetime | None = _moment(default=None)


BOTH_MODELS = (col(BattleRow.model_a), col(BattleRow.model_b))
"""Columns of the models of a battle, side A's first."""


class TurnRow(Table, table=True):
    """What the visitor wrote.

    The nonce stands before a text that is hashed; where words were erased it is gone with them,
    and ``text_hash`` is what is left: see `arena.store.chain`. ``scrubbed`` was written by imports
    of version 0.1.0, and nothing reads it.
    """

    __tablename__ = "turn"
    __table_args__ = (UniqueConstraint("battle_id", "turn"),)
    id: int | None = Field(default=None, primary_key=True)
    battle_id: int = Field(foreign_key="battle.id")
    turn: int
    prompt: str = _prose()
    nonce: str | None = Field(default_factory=new_nonce)
    text_hash: str | None = None
    scrubbed: int | None = None
    created: datetime = _moment()


_NAMES_ITSELF = text("tagger = 'self-naming' AND value <> 'none'")
NAMES_ITSELF = text("prompt_label.tagger = 'self-naming' AND prompt_label.value <> 'none'")
"""Of few labels. Spelled out in queries as in the index, or SQLite would not use that."""


class PromptLabelRow(Table, table=True):
    """What a tagger says of the prompts of a battle up to a turn: see `judge.labels`.

    Never changed: another version of a tagger adds labels of its own.
    """

    __tablename__ = "prompt_label"
    __table_args__ = (
        UniqueConstraint("turn_id", "tagger", "tagger_version", "facet"),
        Index(
            "ix_prompt_label_names_itself",
            "turn_id",
            sqlite_where=_NAMES_ITSELF,
            postgresql_where=_NAMES_ITSELF,
        ),
    )
    id: int | None = Field(default=None, primary_key=True)
    turn_id: int = Field(foreign_key="turn.id")
    facet: str
    value: str
    score: float | None = None
    tagger: str
    tagger_version: str
    created: datetime = _moment()


class TopicReleaseRow(Table, table=True):
    """What was published of the topics of prompts, and what the next release goes on from.

    Only private releases go on: see `judge.labels.material`. ``topics`` is their hierarchy, which
    stands in the first one alone.
    """

    __tablename__ = "topic_release"
    __table_args__ = (UniqueConstraint("private", "number"),)
    id: int | None = Field(default=None, primary_key=True)
    private: bool
    number: int
    shown: dict[str, Any] = _json()
    until: int
    counts: dict[str, int] = _json()
    waiting: list[int] = Field(default_factory=list, sa_type=JSON)
    topics: bytes | None = None
    created: datetime = _moment()


class AnswerRow(Table, table=True):
    """What a model answered, or how it failed; ``attempt`` counts regenerations and re-picks.

    The nonce and ``text_hash`` are as those of a turn; ``erased_chars`` are how many characters
    went, by which a model without counts of tokens is charged. ``measured`` was written by imports
    of version 0.1.0, and nothing reads it.
    """

    __tablename__ = "answer"
    __table_args__ = (UniqueConstraint("battle_id", "turn", "side", "attempt"),)
    id: int | None = Field(default=None, primary_key=True)
    battle_id: int = Field(foreign_key="battle.id")
    model_id: str = Field(foreign_key="model.id", index=True)
    turn: int
    side: str
    attempt: int
    text: str = _prose(default="")
    nonce: str | None = Field(default_factory=new_nonce)
    text_hash: str | None = None
    reasoning: str = _prose(default="")
    status: str
    error_class: str | None = None
    error_detail: str | None = _prose(default=None)
    finish_reason: str | None = _prose(default=None)
    first_token_s: float | None = None
    duration_s: float | None = None
    tokens_in: int | None = None
    tokens_out: int | None = None
    price_input: float | None = None
    price_output: float | None = None
    price_date: date | None = None
    cost: float | None = None
    decoding: dict[str, Any] = _json()
    request_id: str | None = _prose(default=None)
    needs: list[float] | None = Field(default=None, sa_type=JSON(none_as_null=True))
    erased_chars: int | None = None
    measured: dict[str, int] | None = Field(default=None, sa_type=JSON(none_as_null=True))
    created: datetime = _moment(index=True)


class VoteRow(Table, table=True):
    """A committed choice: never changed, never deleted, one a battle.

    Its fingerprints are those of the models when it was cast. Its link in the chain is ``link``,
    with ``content``, ``previous_hash`` and ``hash``: see `arena.store.chain`. ``transcript_hash``
    was written by imports of version 0.1.0: see `arena.store.chain.exported_votes`. ``broken`` is
    whether an answer of it did not end as answers do: see `arena.domain.vote`.
    """

    __tablename__ = "vote"
    id: int | None = Field(default=None, primary_key=True)
    battle_id: int = Field(foreign_key="battle.id", unique=True)
    voter_id: str = Field(foreign_key="voter.id", index=True)
    turn: int
    attempt_a: int
    attempt_b: int
    outcome: str
    key: str
    order_shown: str
    seconds_to_vote: float
    fingerprint_a: str = _added()
    fingerprint_b: str = _added()
    created: datetime = _moment(index=True)
    link: int = _added(unique=True, index=True)
    content: str = _added()
    previous_hash: str
    hash: str = Field(unique=True)
    transcript_hash: str | None = None
    broken: bool = Field(default=False, sa_column_kwargs={"server_default": false()})


class VoteRemarkRow(Table, table=True):
    """What a voter remarked beside a vote: see `arena.domain.battle.Remarks`. Not in the chain.

    Without ``updated`` nothing was remarked yet, and the names are withheld until it is.
    """

    __tablename__ = "vote_remark"
    vote_id: int = _key_of("vote.id")
    reasons_a: list[str] = Field(default_factory=list, sa_type=JSON)
    reasons_b: list[str] = Field(default_factory=list, sa_type=JSON)
    comment: str = _prose(default="")
    confidence: int | None = None
    intent: str | None = None
    before_reveal: bool
    updated: datetime | None = _moment(default=None)


class ChainRow(Table, table=True):
    """The end of the chain: one row, locked while the next link is appended.

    The first ``imported`` links came by an import of version 0.1.0.
    """

    __tablename__ = "vote_chain"
    id: int | None = Field(default=None, primary_key=True)
    head: str
    links: int = Field(default=0, sa_column_kwargs={"server_default": "0"})
    imported: int = Field(default=0, sa_column_kwargs={"server_default": "0"})


class LinkRow(Table, table=True):
    """A link that is no vote or exclusion of ours, or is one no longer.

    A deleted vote has only its hashes here, with the reason, and so have its exclusions. The
    deletion record that names them has their links in ``bound``.
    """

    __tablename__ = "chain_link"
    link: int = Field(primary_key=True, sa_column_kwargs={"autoincrement": False})
    kind: str
    reason: str
    bound: dict[str, Any] | None = Field(default=None, sa_type=JSON(none_as_null=True))
    content: str
    previous_hash: str
    hash: str


class MarkRow(Table, table=True):
    """The link from which on hashes bind all that they bind today; a new log has none."""

    __tablename__ = "chain_mark"
    link: int = Field(primary_key=True, sa_column_kwargs={"autoincrement": False})
    content: str
    previous_hash: str
    hash: str
    created: datetime = _moment()


class FlagRow(Table, table=True):
    """A mark on a battle or voter, with the rule that set it."""

    __tablename__ = "flag"
    id: int | None = Field(default=None, primary_key=True)
    battle_id: int | None = Field(default=None, foreign_key="battle.id", index=True)
    voter_id: str | None = Field(default=None, foreign_key="voter.id", index=True)
    rule: str
    version: str
    score: float | None = None
    reason: str
    created: datetime = _moment()


class ExclusionRow(Table, table=True):
    """A vote that a policy excludes from here on; the vote itself stays.

    It is a link of the chain, as the vote is.
    """

    __tablename__ = "exclusion"
    id: int | None = Field(default=None, primary_key=True)
    vote_id: int = Field(foreign_key="vote.id", index=True)
    policy: str
    rule: str
    version: str
    reason: str
    created: datetime = _moment()
    link: int = _added(unique=True, index=True)
    content: str = _added()
    previous_hash: str = _added()
    hash: str = _added()


class VoteBlockRow(Table, table=True):
    """Votes that follow one another in the chain, as boards read them: see `arena.store.blocks`.

    Made of the votes, and never changed; ``last`` is the link of the newest of them, with its
    ``hash``. ``names`` are those that no block before this one holds.
    """

    __tablename__ = "vote_block"
    last: int = Field(primary_key=True, sa_column_kwargs={"autoincrement": False})
    hash: str
    names: dict[str, Any] = _json()
    votes: bytes = Field(sa_type=LargeBinary)


class VoteStyleRow(Table, table=True):
    """What is counted of the answers that a vote is about: see `arena.store.styles`.

    ``counts`` are those of side A, then of side B, in the order of
    `judge.tables.annotations.STYLES`. They are there while the texts are.
    """

    __tablename__ = "vote_style"
    vote_id: int = _key_of("vote.id")
    counts: list[int] = Field(sa_type=JSON)


class StoredBoardRow(Table, table=True):
    """The newest board of a policy, for all processes: see `arena.boards.leaderboard`.

    ``took_s`` are the seconds of computing for which it rests; 0 for the first of a process, whose
    seconds were loading.
    """

    __tablename__ = "board"
    policy: str = Field(primary_key=True)
    version: str
    board: str
    took_s: float
    created: datetime = _moment()


DERIVED = frozenset(row.__tablename__ for row in (VoteBlockRow, VoteStyleRow, StoredBoardRow))
"""Tables that hold nothing of their own: what is lost of them is made again."""


class RatingRunRow(Table, table=True):
    """One computation of a board: which votes, which policy, which code."""

    __tablename__ = "rating_run"
    id: int | None = Field(default=None, primary_key=True)
    policy: str
    method: dict[str, Any] = _json()
    code_version: str
    head: str = Field(index=True)
    votes: int
    created: datetime = _moment()


class EndpointLessonRow(Table, table=True):
    """What an endpoint has taught: ``sentence`` explains why it takes no parameter ``name``."""

    __tablename__ = "endpoint_lesson"
    endpoint: str = Field(primary_key=True)
    name: str = Field(primary_key=True)
    sentence: str
    created: datetime = _moment()


class JudgementRow(Table, table=True):
    """A judge's raw answer, by the hash of all that was sent."""

    __tablename__ = "judgement"
    hash: str = Field(primary_key=True)
    judge: str = Field(index=True)
    request: dict[str, Any] = _json()
    response: dict[str, Any] = _json()
    cost: float | None = None
    duration_s: float | None = None
    created: datetime = _moment()


class VerdictRow(Table, table=True):
    """What a version of the parser reads in a judgement.

    ``outcome`` is that of a comparison, in the sides as shown; None is no comparison, or unparsed,
    and not a tie. ``detail`` is the reading, or why there is none.
    """

    __tablename__ = "verdict"
    __table_args__ = (UniqueConstraint("judgement_hash", "parser_version"),)
    id: int | None = Field(default=None, primary_key=True)
    judgement_hash: str = Field(foreign_key="judgement.hash")
    parser_version: str
    outcome: str | None = None
    detail: dict[str, Any] = _json()
    created: datetime = _moment()


class JudgementClaimRow(Table, table=True):
    """A question that a process is asking a judge; gone with the answer, or with the process.

    ``process`` is the number of the one that asks: see `arena.store.engine`.
    """

    __tablename__ = "judgement_claim"
    hash: str = Field(primary_key=True)
    process: int = Field(sa_type=BigInteger)
    created: datetime = _moment()


class JudgingSeedRow(Table, table=True):
    """The secret from which fences and orders are drawn: one row, made by the first run."""

    __tablename__ = "judging_seed"
    id: int = Field(primary_key=True)
    seed: str
    created: datetime = _moment()


class PromptSecretRow(Table, table=True):
    """The secret behind the ids of prompts: one row, made by the first arena that is served."""

    __tablename__ = "prompt_secret"
    id: int = Field(primary_key=True)
    secret: str
    created: datetime = _moment()


class StudyRow(Table, table=True):
    """A study by people: see `arena.domain.study.StudyPlan`; ``seed`` is of all that is drawn."""

    __tablename__ = "study"
    id: int | None = Field(default=None, primary_key=True)
    name: str = Field(unique=True)
    plan: dict[str, Any] = _json()
    guidelines: str = _prose(default="")
    opened: bool
    seed: str
    created: datetime = _moment()


class StudyItemRow(Table, table=True):
    """Something that people rate, in the order of its study; never changed."""

    __tablename__ = "study_item"
    __table_args__ = (UniqueConstraint("study_id", "item"),)
    id: int | None = Field(default=None, primary_key=True)
    study_id: int = Field(foreign_key="study.id")
    item: str
    kind: str
    prompt_id: str | None = None
    messages: list[dict[str, str]] = Field(default_factory=list, sa_type=JSON)
    responses: list[dict[str, Any]] = Field(default_factory=list, sa_type=JSON)
    gold: str | None = None


class StudyRaterRow(Table, table=True):
    """A person who rates in a study, or has looked at its figures.

    ``number`` is that of their code; None of who has but looked. ``voter_id`` is None of who was
    forgotten. ``passed`` is None until the qualification is over.
    """

    __tablename__ = "study_rater"
    __table_args__ = (UniqueConstraint("study_id", "voter_id"),)
    id: int | None = Field(default=None, primary_key=True)
    study_id: int = Field(foreign_key="study.id")
    voter_id: str | None = Field(default=None, foreign_key="voter.id", index=True)
    number: int | None = None
    qualification: float | None = None
    passed: bool | None = None
    looked: datetime | None = _moment(default=None)
    created: datetime = _moment()


class StudyAssignmentRow(Table, table=True):
    """An item that was shown to a rater, in the order of its answers on the page.

    Until it is rated it waits for them up to ``reserved_until``. ``showing`` is 1 of a repeat.
    """

    __tablename__ = "study_assignment"
    __table_args__ = (UniqueConstraint("item_id", "rater_id", "showing"),)
    id: int | None = Field(default=None, primary_key=True)
    item_id: int = Field(foreign_key="study_item.id")
    rater_id: int = Field(foreign_key="study_rater.id", index=True)
    showing: int
    order: list[int] = Field(default_factory=list, sa_type=JSON)
    shown: datetime = _moment()
    reserved_until: datetime = _moment()


class StudyRatingRow(Table, table=True):
    """What a rater said of an item, in the sides of the item; the choice is never changed."""

    __tablename__ = "study_rating"
    assignment_id: int = _key_of("study_assignment.id")
    key: str
    choice: str | None = None
    ranking: list[list[str]] | None = Field(default=None, sa_type=JSON(none_as_null=True))
    seconds: float
    reasons: dict[str, list[str]] | None = Field(default=None, sa_type=JSON(none_as_null=True))
    comment: str = _prose(default="")
    confidence: int | None = None
    rubric: dict[str, str] | None = Field(default=None, sa_type=JSON(none_as_null=True))
    created: datetime = _moment()


class SourceRow(Table, table=True):
    """An application whose votes come in: see `arena.domain.model.Source`.

    Its token is there as a hash alone.
    """

    __tablename__ = "source"
    id: int | None = Field(default=None, primary_key=True)
    name: str = Field(unique=True)
    token_hash: str = Field(unique=True)
    origins: list[str] = Field(default_factory=list, sa_type=JSON)
    per_hour: int
    share: float
    salt: str
    created: datetime = _moment()
    revoked: datetime | None = _moment(default=None)
    paused: datetime | None = _moment(default=None)


class SourcePairRow(Table, table=True):
    """A battle that a source sent, by the hash of the source's key.

    ``vote_key_hash`` is that of what a page votes with; None where the vote came along.
    """

    __tablename__ = "source_pair"
    __table_args__ = (
        UniqueConstraint("source_id", "key_hash"),
        Index("ix_source_pair_source_id_created", "source_id", "created"),
    )
    battle_id: int = _key_of("battle.id")
    source_id: int = Field(foreign_key="source.id")
    key_hash: str
    vote_key_hash: str | None = None
    created: datetime = _moment()


def columns_of(row: type[Table], *names: str) -> list[Any]:
    """Name some columns of a table, for a query."""
    return [col(getattr(row, name)) for name in names]


OWNER: ColumnElement[str] = func.coalesce(col(VoterRow.person), col(VoterRow.id))
"""Whose a voter's battles and votes are: a person's, where they turned out to be one."""
RUNNING = tuple(state for state in BattleState if state.running)
_ASKED = aliased(AnswerRow)
LAST_ASKED: ColumnElement[datetime] = (
    select(func.max(col(_ASKED.created)))
    .where(col(_ASKED.battle_id) == col(BattleRow.id))
    .correlate(BattleRow)
    .scalar_subquery()
)
"""When a model was last asked in a battle, in a query on battles."""
SETTLES = timedelta(minutes=5)
"""A battle is over so long after it expires: clocks differ, and a turn may be written late."""


def is_newest(policy: str) -> ColumnElement[bool]:
    """Say, in a query, whether a row is the newest on its vote."""
    newest = (
        select(func.max(col(ExclusionRow.link)))
        .where(col(ExclusionRow.policy).in_(INHERITS.get(policy, (policy,))))
        .group_by(col(ExclusionRow.vote_id))
    )
    return col(ExclusionRow.link).in_(newest)


def is_standing(policy: str) -> ColumnElement[bool]:
    """Say, in a query, whether a row is the newest on its vote and leaves it out."""
    return is_newest(policy) & (col(ExclusionRow.rule) != READMITTED)


def is_gold() -> ColumnElement[bool]:
    """Say, in a query on battles, whether one is a gold battle: see `arena.domain.model`."""
    return func.coalesce(col(BattleRow.prompt_set), "").startswith(GOLD)


def is_over(asked_since: datetime) -> ColumnElement[bool]:
    """Say, in a query on battles, whether one can no longer be voted on.

    Public figures are of such battles alone. They have a vote or a skip, go on after a vote, or
    have expired: see `arena.domain.battle.current_state`.
    """
    decided = col(BattleRow.state).in_((BattleState.VOTED, BattleState.SKIPPED))
    asked = select(col(_ASKED.battle_id)).where(col(_ASKED.created) >= asked_since - SETTLES)
    left = col(BattleRow.state).not_in(RUNNING) & col(BattleRow.id).not_in(asked)
    return or_(decided, col(BattleRow.mode) != Mode.ANONYMOUS, left)


def is_counted(policy: Policy) -> ColumnElement[bool]:
    """Say, in a query on votes, battles and voters, whether a vote counts: `Policy.why_not`."""
    return and_(
        *([~col(VoteRow.broken)] if policy.excludes_broken else []),
        col(VoteRow.outcome) != Choice.SKIP,
        ~is_gold(),
        col(VoterRow.kind).in_(policy.kinds),
        col(VoteRow.id).not_in(select(col(ExclusionRow.vote_id)).where(is_standing(policy.name))),
    )


def select_votes(*columns: Any) -> Select[*tuple[Any, ...]]:
    """Select columns of votes, with their battles and who cast them."""
    return (
        select(*columns)
        .select_from(VoteRow)
        .join(BattleRow, col(BattleRow.id) == col(VoteRow.battle_id))
        .join(VoterRow, col(VoterRow.id) == col(VoteRow.voter_id))
    )


def is_voted_on(answer: type[AnswerRow], side: str) -> ColumnElement[bool]:
    """Say, in a query on votes and answers, whether one is what was voted on, on its side."""
    return and_(
        col(answer.battle_id) == col(VoteRow.battle_id),
        col(answer.turn) == col(VoteRow.turn),
        col(answer.side) == side,
        col(answer.attempt) == (col(VoteRow.attempt_a) if side == "a" else col(VoteRow.attempt_b)),
    )


def reasons_on(session: Session, policy: str, votes: Collection[int]) -> dict[int, str]:
    """Give why those of some votes are excluded that are, by their keys."""
    query = (
        select(col(ExclusionRow.vote_id), col(ExclusionRow.rule), col(ExclusionRow.reason))
        .where(
            col(ExclusionRow.vote_id).in_(votes),
            col(ExclusionRow.policy).in_(INHERITS.get(policy, (policy,))),
        )
        .order_by(col(ExclusionRow.link))
    )
    newest = {key: (rule, why) for key, rule, why in session.connection().execute(query)}
    return {key: why for key, (rule, why) in newest.items() if rule != READMITTED}
