"""The log as boards, exports and budgets read it, and the models and releases of topics in it.

`links` and `battles` give the log in order for exports, some rows at a time, as it may not fit
into memory. Figures that anybody may read count only battles that are over: others would name
their models before the vote. `gold_votes` and `card_facts` read what studies of voters and
evaluation cards need.
"""

import heapq
import statistics
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from operator import attrgetter
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple

from sqlalchemy import ColumnElement, Select, String, and_, bindparam, case, cast
from sqlalchemy import func as core_func
from sqlalchemy import select as core_select
from sqlalchemy.dialects import postgresql
from sqlalchemy.orm import aliased
from sqlmodel import Session, col, distinct, func, or_, select
from sqlmodel.sql.expression import SelectOfScalar

from arena.domain.battle import AnswerStatus, BattleState, Mode
from arena.domain.board_view import Board, ModelRecord, ReleasedTopics
from arena.domain.model import BESIDE, OWNER, Kind, Model, is_gold, right_of
from arena.domain.study import TYPED, VoteFacts, in_order
from arena.domain.vote import DEFAULT, EVER, Choice, Days, Policy, Tagger, VoterKind, attributes
from arena.store import chain, labels, tables, voting
from arena.store.chain import BATCH, OF_BATTLE, AnyRow, LinkKind, LoggedLink, Took
from arena.store.engine import alone
from arena.store.tables import (
    BOTH_MODELS,
    AnswerRow,
    BattleRow,
    ChainRow,
    ExclusionRow,
    LinkRow,
    MarkRow,
    ModelEventRow,
    ModelRow,
    PromptLabelRow,
    RatingRunRow,
    RosterEntryRow,
    TopicReleaseRow,
    TurnRow,
    VoteRow,
    VoterRow,
    columns_of,
    fingerprint,
    is_counted,
    is_over,
    is_voted_on,
    select_votes,
)
from arena.store.tables import is_gold as is_gold_row
from judge.labels.material import Asked, Batches, Release, State
from judge.labels.taggers import REFUSAL, refusing
from rating.outcome import Outcome
from rating.tables.files import storable

if TYPE_CHECKING:
    from judge.studies.gold import GoldVote, ReadVote

NEWEST = 1_000_000
"""Votes of which boards by label and of cost are made: they hold an object for each value."""
CHANGED = "changed"
"""Event of a model that answers in another way than before, under the same id."""

BATTLES_AT_ONCE = 50_000
"""Battles whose answers are counted by one statement."""

PER_SECOND = 100
"""Parts of a second to which answers are timed for a median."""


# Votes and models for boards and exports


class Figures(NamedTuple):
    """What was measured on the two answers that a vote is about; None where it is not known."""

    cost_a: float | None
    cost_b: float | None
    seconds_a: float | None
    seconds_b: float | None
    refused_a: float | None
    refused_b: float | None


LABELS = ("category", "language", "intent", "turns", "chars", "hard", "instructions", REFUSAL)
"""Facets of a vote that an export has, by the policy's tagger; no hash binds them."""


def links(session: Session, policy: Policy) -> Iterator[LoggedLink]:
    """Give every link of the chain in order: votes, exclusions, deletion records and the mark.

    They are read some at a time, as they are asked for.
    """
    connection = session.connection()
    streams: list[Iterator[LoggedLink]] = [
        _votes(session, policy),
        (
            _link(row, "exclusion", attributes(row, *chain.OF_EXCLUSION))
            for row in chain.exclusions(connection)
        ),
        (_link(row, "mark", {}) for row in connection.execute(chain.MARK)),
        (
            replace(
                _link(row, row.kind, row.bound or {}),
                withheld=row.reason if row.bound is None else None,
            )
            for row in chain.others(connection)
        ),
    ]
    return heapq.merge(*streams, key=attrgetter("link"))


def count_links(session: Session) -> int:
    """Count what `links` gives."""
    counts = (
        select(func.count()).select_from(row).where(col(row.link).is_not(None))
        for row in (VoteRow, ExclusionRow, MarkRow, LinkRow)
    )
    return sum(session.exec(count).one() for count in counts)


def _votes(session: Session, policy: Policy) -> Iterator[LoggedLink]:
    connection = session.connection()
    for batch in chain.exported_votes(connection):
        votes = [row.id for row, *_ in batch]
        reasons = tables.reasons_on(session, policy.name, votes)
        known = labels.of_votes(session, policy.tagger, LABELS, [row.battle for row, *_ in batch])
        beside = voting.of_votes(session, votes)
        for row, transcript_hash, transcript in batch:
            binds = row._asdict() | {"transcript_hash": transcript_hash}
            link = _link(row, "vote", binds)
            why = (reasons[row.id],) if row.id in reasons else ()
            yield replace(
                link,
                exclusions=why,
                labels=known.get(row.battle_id, {}),
                remarks=voting.exported(beside[row.id]) if row.id in beside else {},
                transcript=transcript,
            )


def _link(row: chain.AnyRow, kind: LinkKind, binds: Mapping[str, object]) -> LoggedLink:
    return LoggedLink(kind=kind, link=row.link, content=row.content, hash=row.hash, bound=binds)


def newest(session: Session, most: int = NEWEST) -> int:
    """Give the link after which the newest `most` votes lie; 0 where there are no more."""
    link = col(VoteRow.link)
    return session.scalars(select(link).order_by(link.desc()).offset(most).limit(1)).first() or 0


def excluded(session: Session, policy: Policy) -> Counter[str]:
    """Count the votes that a policy excludes, by reason."""
    standing = (
        select(col(ExclusionRow.vote_id).label("vote"), col(ExclusionRow.reason).label("reason"))
        .where(tables.is_standing(policy.name))
        .subquery()
    )
    of_battle = (col(BattleRow.prompt_set), col(VoteRow.broken), standing.c.reason)
    keys = (col(VoteRow.outcome), col(VoterRow.kind), *of_battle)
    query = (
        tables.select_votes(*keys, func.count())
        .outerjoin(standing, standing.c.vote == col(VoteRow.id))
        .group_by(*keys)
    )
    reasons: Counter[str] = Counter()
    for outcome, kind, of_set, broken, logged, votes in session.connection().execute(query):
        choice, by_hand = Choice(outcome), (logged,) if logged else ()
        gold = is_gold(of_set)
        why = policy.why_not(choice, VoterKind(kind), by_hand, gold=gold, broken=broken)
        if why is not None:
            reasons[why] += votes
    return reasons


def models(
    session: Session, kinds: Collection[VoterKind] = frozenset(VoterKind)
) -> list[ModelRecord]:
    """Every model that voters of some kinds can meet, with none of its battles counted.

    Those are the models ever in a roster, and the versions of applications; not those who merely
    gave the answers of gold battles.
    """
    beside = col(ModelRow.id).contains(BESIDE)
    met = [~beside] if {*kinds} - {VoterKind.APPLICATION} else []
    if VoterKind.APPLICATION in kinds:
        met.append(beside & ~col(ModelRow.id).startswith(OWNER))
    return [
        ModelRecord(id=row.id, name=row.name, organisation=row.organisation, kind=Kind(row.kind))
        for row in session.exec(select(ModelRow).where(or_(*met)).order_by(col(ModelRow.id)))
    ]


def model_rows(session: Session) -> list[dict[str, Any]]:
    """Every model that the log names, as an export of models has it."""
    rows = session.exec(select(ModelRow).order_by(col(ModelRow.id)))
    return [{**row.model_dump(exclude={"id"}), "model": row.id} for row in rows]


def model_records(
    session: Session, asked_since: datetime, kinds: Collection[VoterKind] = frozenset(VoterKind)
) -> list[ModelRecord]:
    """Every model ever in the roster with how its battles ended, for voters of some kinds.

    Only battles that are over are counted: figures that others change with would name their
    models before the vote. This reads every answer, if such a voter was ever here: of many
    millions it takes minutes.

    Parameters
    ----------
    asked_since : datetime
        See `arena.store.tables.is_over`.
    """
    of_kinds = select(VoterRow.id).where(col(VoterRow.kind).in_(kinds)).limit(1)
    if session.exec(of_kinds).first() is None:
        return models(session, kinds)
    over = (is_over(asked_since), col(VoterRow.kind).in_(kinds))
    battles, failed, abandoned = _battle_counts(session, *over)
    prices, medians = _answer_figures(session, *over)
    return [
        replace(
            record,
            battles=battles[record.id],
            failed=failed[record.id],
            abandoned=abandoned[record.id],
            price_per_1000=prices.get(record.id),
            median_s=medians.get(record.id),
        )
        for record in models(session, kinds)
    ]


def _some_battles(session: Session) -> Iterator[ColumnElement[bool]]:
    """Give conditions on battles, some at a time, that together hold for all."""
    newest = session.exec(select(func.max(BattleRow.id))).one() or 0
    for first in range(0, newest + 1, BATTLES_AT_ONCE):
        # Of answers, too: their rows are then read in the order in which they lie.
        yield and_(
            *(
                (key >= first) & (key < first + BATTLES_AT_ONCE)
                for key in (col(BattleRow.id), col(AnswerRow.battle_id))
            )
        )


def _answers(*columns: Any) -> Any:
    """Begin a query for columns of answers, with their battles and those who asked."""
    return (
        select(col(AnswerRow.model_id), *columns)
        .join(BattleRow, col(BattleRow.id) == col(AnswerRow.battle_id))
        .join(VoterRow, col(VoterRow.id) == col(BattleRow.owner))
    )


def _battle_counts(
    session: Session, *which: ColumnElement[bool]
) -> tuple[Counter[str], Counter[str], Counter[str]]:
    """Count blind battles by model, each once: where it was asked, where it failed, those left."""
    blind = (col(BattleRow.mode) == Mode.ANONYMOUS, *which)
    times = func.count(distinct(col(AnswerRow.battle_id)))
    per_model = _answers(times).where(*blind).group_by(col(AnswerRow.model_id))
    gone = col(AnswerRow.model_id).not_in(BOTH_MODELS)
    lost = (col(AnswerRow.status) == AnswerStatus.FAILED) & (
        gone | (col(BattleRow.state) == BattleState.FAILED)
    )
    asked: Counter[str] = Counter()
    failed: Counter[str] = Counter()
    for some in _some_battles(session):
        asked.update(dict(session.exec(per_model.where(some)).all()))
        failed.update(dict(session.exec(per_model.where(some, lost)).all()))
    left = (BattleState.READY, BattleState.SKIPPED, BattleState.STOPPED)
    pairs = (
        select(*BOTH_MODELS, func.count())
        .join(VoterRow, col(VoterRow.id) == col(BattleRow.owner))
        .where(*blind, col(BattleRow.state).in_(left))
        .group_by(*BOTH_MODELS)
    )
    abandoned: Counter[str] = Counter()
    for a, b, n in session.exec(pairs):
        abandoned.update({a: n})
        abandoned.update({b: n})
    return asked, failed, abandoned


def _answer_figures(
    session: Session, *which: ColumnElement[bool]
) -> tuple[dict[str, float], dict[str, float]]:
    """Give each model's price of 1,000 answers, and the median of its seconds."""
    of, seconds = col(AnswerRow.model_id), func.round(col(AnswerRow.duration_s) * PER_SECOND)
    cost, n = col(AnswerRow.cost), func.count()
    alike = (
        _answers(seconds, n, func.count(cost), func.sum(cost))
        .where(col(AnswerRow.status) == AnswerStatus.COMPLETE, *which)
        .group_by(of, seconds)
    )
    durations: dict[str, Counter[float]] = defaultdict(Counter)
    paid: Counter[str] = Counter()
    dollars: dict[str, float] = defaultdict(float)
    for some in _some_battles(session):
        for model, duration, answers, priced, total in session.exec(alike.where(some)):
            if duration is not None:
                durations[model][duration / PER_SECOND] += answers
            if priced:
                paid[model] += priced
                dollars[model] += total
    prices = {model: 1000 * dollars[model] / paid[model] for model in paid}
    return prices, {model: _median(counts) for model, counts in durations.items()}


def _median(counts: Counter[float]) -> float:
    """Give the median of numbers by how often they occur.

    >>> _median(Counter({1.0: 2, 2.0: 1, 9.0: 1}))
    1.5
    """
    last, half = counts.total() - 1, []
    for place in (last // 2, last - last // 2):
        seen = 0
        for value in sorted(counts):
            seen += counts[value]
            if seen > place:
                half.append(value)
                break
    return statistics.fmean(half)


def figures(session: Session, tagger: Tagger, *, after: int = 0) -> dict[str, Figures]:
    """Give what the answers voted on cost and took, and whether they refuse, by public battle id.

    Parameters
    ----------
    tagger : Tagger
        Whose labels of refusals are read; None where an answer has none.
    after : int
        Link after which votes are read.
    """
    a, b = aliased(AnswerRow), aliased(AnswerRow)
    refusal = and_(
        col(PromptLabelRow.turn_id) == col(TurnRow.id),
        col(PromptLabelRow.facet) == REFUSAL,
        labels.is_by(tagger),
    )
    query = (
        select(
            BattleRow.public_id, a.cost, b.cost, a.duration_s, b.duration_s, PromptLabelRow.value
        )  # type: ignore[call-overload]
        .join(VoteRow, col(VoteRow.battle_id) == col(BattleRow.id))
        .join(TurnRow, labels.voted_on())
        .join(a, tables.is_voted_on(a, "a"))
        .join(b, tables.is_voted_on(b, "b"))
        .join(PromptLabelRow, refusal, isouter=True)
        .where(col(VoteRow.link) > after)
    )
    rows = session.connection().execute(query)
    return {battle: Figures._make((*taken, *_refused(label))) for battle, *taken, label in rows}


def _refused(label: str | None) -> tuple[float | None, float | None]:
    """Read which sides refuse."""
    if label is None:
        return None, None
    a, b = refusing(label)
    return float(a), float(b)


def times(session: Session, models: Collection[str], most: int) -> dict[str, list[Took]]:
    """Give what the newest answers of each model took, oldest first."""
    newest = (
        select(col(AnswerRow.needs), col(AnswerRow.duration_s), func.length(col(AnswerRow.text)))
        .where(col(AnswerRow.model_id) == bindparam("model"), col(AnswerRow.needs).is_not(None))
        .order_by(col(AnswerRow.id).desc())
        .limit(most)
    )
    connection = session.connection()
    return {
        model: [
            Took(needs, duration_s or 0.0, length) for needs, duration_s, length in reversed(rows)
        ]
        for model in models
        for rows in [connection.execute(newest, {"model": model}).all()]
    }


# Outcomes for matchmaking

Alike = tuple[tuple[str, str], Choice, VoterKind, bool, int]
"""Votes that are alike: models, choice, kind of voter, whether on a broken answer; how many."""


def newest_vote(session: Session) -> int:
    """Key of the newest vote; keys grow in the order of the log. 0 before the first."""
    return session.exec(select(func.max(VoteRow.id))).one() or 0


def last_tombstone(session: Session) -> int:
    """Link of the newest deletion record; 0 without. It grows when a vote is deleted."""
    newest = select(func.max(LinkRow.link)).where(col(LinkRow.kind) == "tombstone")
    return session.exec(newest).one() or 0


def outcomes_between(session: Session, after: int, until: int) -> list[Alike]:
    """Count the votes after one and up to another, by their keys, skips among them."""
    return _counted(session, col(VoteRow.id) > after, col(VoteRow.id) <= until)


def excluded_outcomes(session: Session, policy: str, until: int) -> list[Alike]:
    """Count the votes up to one that have an exclusion logged under a policy."""
    return _counted(session, col(VoteRow.id).in_(_excluded(policy)), col(VoteRow.id) <= until)


def _excluded(policy: str) -> SelectOfScalar[int]:
    return select(ExclusionRow.vote_id).where(tables.is_standing(policy))


def _counted(session: Session, *which: Any) -> list[Alike]:
    keys: tuple[Any, ...] = (*BOTH_MODELS, VoteRow.outcome, VoterRow.kind, VoteRow.broken)
    votes = tables.select_votes(*keys, func.count())
    query: Any = votes.where(*which, ~tables.is_gold()).group_by(*keys)
    return [
        ((a, b), Choice(outcome), VoterKind(kind), broken, votes)
        for a, b, outcome, kind, broken, votes in session.connection().execute(query)
    ]


# Budgets

_PROMPTS = (
    select(TurnRow.created)
    .join(BattleRow, col(BattleRow.id) == col(TurnRow.battle_id))
    .where(col(BattleRow.owner) == bindparam("voter"), col(TurnRow.created) > bindparam("since"))
    .order_by(col(TurnRow.created))
)
"""Built once, for it is asked before every battle."""


def prompts_of(session: Session, voter: str, since: datetime) -> Sequence[datetime]:
    """Moments after ``since`` at which a voter sent prompts, oldest first."""
    asked = {"voter": voter, "since": since}
    return session.connection().scalars(_PROMPTS, asked).all()


def votes_of(session: Session, voters: Collection[str]) -> int:
    """Count the votes of voters, by their ids."""
    return session.exec(
        select(func.count()).select_from(VoteRow).where(col(VoteRow.voter_id).in_(voters))
    ).one()


def dollars() -> ColumnElement[float]:
    """Say, in a query, what an answer cost at most; nothing where there is no price.

    Where a model did not count its tokens, or not believably, each character that it wrote
    counts as one.
    """
    there = func.length(col(AnswerRow.text)) + func.length(col(AnswerRow.reasoning))
    written = func.coalesce(col(AnswerRow.erased_chars), there)
    at_most = col(AnswerRow.price_output) * written / 1_000_000
    return func.coalesce(col(AnswerRow.cost), at_most)


def spent(
    session: Session, since: datetime, voter: str | None = None
) -> Sequence[tuple[datetime, float]]:
    """Dollars of answers, to a voter or to all, asked for after ``since``; see `dollars`."""
    answers = (
        select(AnswerRow.created, dollars())
        .where(col(AnswerRow.created) > since, dollars() > 0)
        .order_by(col(AnswerRow.created))
    )
    if voter is not None:
        answers = (
            answers.join(BattleRow, col(BattleRow.id) == col(AnswerRow.battle_id))
            .join(VoterRow, col(VoterRow.id) == col(BattleRow.owner))
            .where(or_(col(VoterRow.id) == voter, col(VoterRow.person) == voter))
        )
    return [(created, cost) for created, cost in session.exec(answers)]


# Boards and models written down


def record(
    session: Session, board: Board, method: Mapping[str, object], code_version: str, head: str
) -> None:
    """Write down how a board came about, once for the same votes, policy and code.

    Parameters
    ----------
    method : mapping
        What the board can be computed again by.
    head : str
        Hash of the newest link that went in; the chain before it is fixed by it.
    """
    known = select(RatingRunRow.id).where(
        col(RatingRunRow.policy) == board.policy,
        col(RatingRunRow.head) == head,
        col(RatingRunRow.code_version) == code_version,
    )
    if session.exec(known).first() is not None:
        return
    run = RatingRunRow(
        policy=board.policy,
        method=dict(method),
        code_version=code_version,
        head=head,
        votes=board.votes,
        created=board.updated,
    )
    session.add(run)


def register(
    session: Session,
    roster: Sequence[Model],
    now: datetime,
    secrets: Mapping[str, str] = MappingProxyType({}),
) -> list[str]:
    """Add new models and note changed ones; returns the ids of the changed.

    One process does so at a time: two that begin at once would add the same models.

    Parameters
    ----------
    roster : sequence of Model
        As others may know them: see `arena.domain.model.public`.
    secrets : mapping of str to str
        Of new ones that enter unnamed, by id; those of the others are in the roster.
    """
    alone(session.connection())
    changed = []
    for model in roster:
        row, entry = session.get(ModelRow, model.id), session.get(RosterEntryRow, model.id)
        known = fingerprint(model, entry.secret if entry else secrets.get(model.id, ""))
        if row is None:
            _add(session, model, known, now)
            continue
        if row.fingerprint != known:
            note_event(session, model.id, CHANGED, {"before": row.fingerprint}, now)
            row.fingerprint = known
            changed.append(model.id)
        row.name, row.organisation, row.licence = model.name, model.organisation, model.licence
    return changed


def _add(session: Session, model: Model, known: str, now: datetime) -> None:
    row = ModelRow(
        **attributes(model, "id", "name", "organisation", "kind", "licence"),
        fingerprint=known,
        created=now,
    )
    session.add(row)
    session.flush()
    note_event(session, model.id, "added", {"fingerprint": row.fingerprint}, now)


def note_event(
    session: Session, model: str, event: str, detail: dict[str, object], now: datetime
) -> None:
    """Write down what happened to a model, by its id."""
    session.add(ModelEventRow(model_id=model, event=event, detail=detail, created=now))


# Battles for exports

TRANSCRIPT_LABELS = ("category", "language", "intent", "hard")
"""Facets that an export of battles has; it counts turns and characters itself."""

_BATTLES: Select[*tuple[Any, ...]] = (
    core_select(
        col(BattleRow.id),
        *OF_BATTLE,
        *columns_of(BattleRow, "state", "created"),
        tables.OWNER.label("voter"),
        col(VoterRow.kind).label("voter_kind"),
        col(VoteRow.id).label("vote"),
        col(VoteRow.outcome).label("winner"),
        col(VoteRow.created).label("ts"),
        *columns_of(VoteRow, "turn", "attempt_a", "attempt_b", "seconds_to_vote", "broken"),
    )
    .join(VoterRow, col(VoterRow.id) == col(BattleRow.owner))
    .join(VoteRow, col(VoteRow.battle_id) == col(BattleRow.id), isouter=True)
    .where(col(BattleRow.id) > bindparam("after"), col(BattleRow.hidden).is_(None))
    .order_by(col(BattleRow.id))
    .limit(BATCH)
)
_TURNS: Select[*tuple[Any, ...]] = core_select(
    *columns_of(TurnRow, "battle_id", "turn", "prompt", "nonce")
).order_by(col(TurnRow.battle_id), col(TurnRow.turn))
_ANSWERS: Select[*tuple[Any, ...]] = core_select(
    *columns_of(AnswerRow, "battle_id", "turn", "side", "attempt", "model_id", "status"),
    *columns_of(AnswerRow, "error_class", "finish_reason", "first_token_s", "duration_s"),
    *columns_of(AnswerRow, "tokens_in", "tokens_out", "price_input", "price_output", "cost"),
    *columns_of(AnswerRow, "created", "text", "nonce"),
).order_by(col(AnswerRow.battle_id), col(AnswerRow.turn), col(AnswerRow.attempt), "side")


class LoggedBattle(NamedTuple):
    """A battle as the log has it, with its vote if there is one.

    Attributes
    ----------
    row : row
        The battle, and of its vote what an export shows; None there without one.
    turns, answers : sequence of row
        In their order.
    exclusions : tuple of str
        Reasons logged against its vote under the policy that was asked for.
    labels : mapping
        Of the turn that was voted on, by facet.
    remarks : row or None
        What was remarked beside its vote.
    """

    row: AnyRow
    turns: Sequence[AnyRow]
    answers: Sequence[AnyRow]
    exclusions: tuple[str, ...]
    labels: Mapping[str, str]
    remarks: AnyRow | None


def battles(
    session: Session, policy: Policy, *, voted: bool, days: Days = EVER
) -> Iterator[LoggedBattle]:
    """Give battles in the order in which they began, read some at a time.

    Parameters
    ----------
    voted : bool
        Only those with a vote.
    """
    query = _BATTLES.where(col(VoteRow.id).is_not(None)) if voted else _BATTLES
    connection, after = session.connection(), 0
    while rows := connection.execute(query, {"after": after}).all():
        within = [row for row in rows if days.cover(row.ts or row.created)]
        yield from _whole(session, policy, within)
        after = rows[-1].id


def count_battles(session: Session, *, voted: bool) -> int:
    """Count what `battles` gives."""
    query = core_select(core_func.count()).select_from(VoteRow if voted else BattleRow)
    return session.connection().execute(query).scalar_one()


def _whole(session: Session, policy: Policy, rows: Sequence[AnyRow]) -> Iterator[LoggedBattle]:
    keys = [row.id for row in rows]
    turns = _by_battle(session, _TURNS.where(col(TurnRow.battle_id).in_(keys)))
    answers = _by_battle(session, _ANSWERS.where(col(AnswerRow.battle_id).in_(keys)))
    votes = [row.vote for row in rows if row.vote is not None]
    reasons = tables.reasons_on(session, policy.name, votes)
    known = labels.of_votes(session, policy.tagger, TRANSCRIPT_LABELS, keys)
    beside = voting.of_votes(session, votes)
    for row in rows:
        yield LoggedBattle(
            row=row,
            turns=turns[row.id],
            answers=answers[row.id],
            exclusions=(reasons[row.vote],) if row.vote in reasons else (),
            labels=known.get(row.battle_id, {}),
            remarks=beside.get(row.vote),
        )


def _by_battle(session: Session, query: Select[Any]) -> Mapping[int, list[AnyRow]]:
    rows: dict[int, list[AnyRow]] = defaultdict(list)
    for row in session.connection().execute(query):
        rows[row.battle_id].append(row)
    return rows


def shown(battle: LoggedBattle) -> list[tuple[AnyRow, Mapping[str, AnyRow]]]:
    """Give the turns up to the vote, each with its answers by side: the last of each attempt.

    On the turn that was voted on they are those that the vote is about.
    """
    row, by_turn = battle.row, defaultdict[int, dict[str, AnyRow]](dict)
    voted = {"a": row.attempt_a, "b": row.attempt_b}
    for answer in battle.answers:
        if answer.turn != row.turn or answer.attempt == voted[answer.side]:
            by_turn[answer.turn][answer.side] = answer
    return [(t, by_turn[t.turn]) for t in battle.turns if row.turn is None or t.turn <= row.turn]


def is_erased(row: AnyRow) -> bool:
    """Whether the words of a turn or an answer were erased."""
    return row.nonce is None


def texts_erased(rows: Collection[AnyRow]) -> int:
    """Count the texts that were erased."""
    return sum(map(is_erased, rows))


# Releases of topics

_KEEP = postgresql.insert(TopicReleaseRow).on_conflict_do_nothing()
"""SQLite writes it in the same words."""
_PERSON = core_func.coalesce(VoterRow.person, VoteRow.voter_id)
"""Who is behind a vote: devices of one person are one."""


def newest_topics(session: Session, *, private: bool) -> ReleasedTopics | None:
    """Give the newest release; None before the first."""
    query = (
        core_select(
            col(TopicReleaseRow.number), col(TopicReleaseRow.created), col(TopicReleaseRow.shown)
        )
        .where(col(TopicReleaseRow.private) == private)
        .order_by(col(TopicReleaseRow.number).desc())
    )
    row = session.connection().execute(query.limit(1)).first()
    return ReleasedTopics(row.number, row.created, Release.of_dict(row.shown)) if row else None


def state(session: Session) -> State | None:
    """Give what the next private release goes on from; None before the first."""
    query = core_select(TopicReleaseRow).where(col(TopicReleaseRow.private))
    last = session.scalars(query.order_by(col(TopicReleaseRow.number).desc()).limit(1)).first()
    if last is None:
        return None
    first = session.scalars(query.where(col(TopicReleaseRow.number) == 1)).one()
    assert first.topics is not None, "the first release has no hierarchy"
    counts = {int(topic): n for topic, n in last.counts.items()}
    return State(first.topics, last.until, Batches(counts, frozenset(last.waiting)))


def asked(
    session: Session, policy: Policy, after: int = 0, also: Collection[int] = ()
) -> list[Asked]:
    """Give the prompts of votes that a policy counts and whose words are there.

    Of a battle all prompts up to the turn that was voted on are one. Keys are those of votes.

    Parameters
    ----------
    after : int
        Key of the newest vote that is excluded, except those of ``also``.
    """
    left_out = {*session.exec(_excluded(policy.name))}
    query = (
        tables.select_votes(
            VoteRow.id, _PERSON, VoteRow.outcome, VoterRow.kind, VoteRow.broken, TurnRow.prompt
        )
        .join(TurnRow, col(TurnRow.battle_id) == col(BattleRow.id))
        .where(col(TurnRow.turn) <= col(VoteRow.turn), col(TurnRow.nonce).is_not(None))
        .where(~is_gold_row())
        .where(col(VoteRow.id) > min([after, *(key - 1 for key in also)]))
        .order_by(col(VoteRow.id), col(TurnRow.turn))
    )
    texts: dict[tuple[int, str], list[str]] = defaultdict(list)
    for key, voter, outcome, kind, broken, prompt in session.connection().execute(query):
        counts = policy.why_not(Choice(outcome), VoterKind(kind), broken=broken) is None
        if counts and key not in left_out and (key > after or key in also):
            texts[key, voter].append(prompt)
    return [Asked(key, voter, "\n\n".join(parts)) for (key, voter), parts in texts.items()]


def battles_of_topics(session: Session) -> dict[int, str]:
    """Give the public id of each vote's battle, by the key of the vote."""
    query = core_select(col(VoteRow.id), col(BattleRow.public_id)).join(
        BattleRow, col(BattleRow.id) == col(VoteRow.battle_id)
    )
    return {row.id: row.public_id for row in session.connection().execute(query)}


def add(
    session: Session, release: Release, after: State | None, number: int, now: datetime
) -> None:
    """Store a release; one of this number that is there stays, as two processes may make it."""
    batches = after.batches if after else Batches({})
    row = {
        "private": release.private,
        "number": number,
        "shown": release.to_dict(),
        "until": after.until if after else 0,
        "counts": {str(topic): n for topic, n in batches.counts.items()},
        "waiting": sorted(batches.waiting),
        "topics": after.topics if after and number == 1 else None,
        "created": now,
    }
    session.connection().execute(_KEEP, row)


# Votes on gold battles, and on instructions that can be checked


def gold_votes(session: Session) -> "list[GoldVote]":
    """Give the votes on gold battles in the order of the log; a skip is none."""
    from judge.studies.gold import GoldVote

    a, b = aliased(AnswerRow), aliased(AnswerRow)
    query = (
        select_votes(
            tables.OWNER,
            core_func.coalesce(col(BattleRow.prompt_id), col(BattleRow.public_id)),
            col(BattleRow.prompt_set),
            col(VoteRow.outcome),
            _length(a),
            _length(b),
        )
        .outerjoin(a, is_voted_on(a, "a"))
        .outerjoin(b, is_voted_on(b, "b"))
        .where(is_gold_row(), col(VoteRow.outcome) != Choice.SKIP)
        .order_by(col(VoteRow.link))
    )
    return [
        GoldVote(voter, item, Outcome(right), Outcome(choice), length_a, length_b)
        for voter, item, marked, choice, length_a, length_b in session.connection().execute(query)
        if (right := right_of(marked)) is not None
    ]


def _length(answer: type[AnswerRow]) -> ColumnElement[int]:
    return core_func.coalesce(col(answer.erased_chars), core_func.length(col(answer.text)))


PROMPTS_AT_ONCE = 500
"""Prompts that one query asks for."""


def instructed_votes(session: Session, prompts: Collection[str]) -> "list[ReadVote]":
    """Give the votes that count, on whole answers to these prompts, in the order of the log."""
    from judge.studies.gold import ReadVote

    a, b = aliased(AnswerRow), aliased(AnswerRow)
    query = (
        select_votes(
            tables.OWNER,
            col(TurnRow.prompt),
            col(a.text),
            col(b.text),
            col(VoteRow.outcome),
            col(VoteRow.link),
        )
        .join(TurnRow, labels.voted_on())
        .join(a, is_voted_on(a, "a"))
        .join(b, is_voted_on(b, "b"))
        .where(
            is_counted(DEFAULT),
            *(col(answer.status) == AnswerStatus.COMPLETE for answer in (a, b)),
            *(col(answer.nonce).is_not(None) for answer in (a, b)),
        )
    )
    as_given = {storable(prompt): prompt for prompt in prompts}
    names = [*as_given]
    rows = [
        row
        for start in range(0, len(names), PROMPTS_AT_ONCE)
        for row in session.connection().execute(
            query.where(col(TurnRow.prompt).in_(names[start : start + PROMPTS_AT_ONCE]))
        )
    ]
    return [
        ReadVote(voter, as_given[prompt], text_a, text_b, Outcome(choice))
        for voter, prompt, text_a, text_b, choice, _ in sorted(rows, key=lambda row: row[-1])
    ]


# Facts of an evaluation card

_COUNTED: Mapping[str, Any] = {
    "sources": core_func.coalesce(col(BattleRow.prompt_set), TYPED),
    "samplers": col(BattleRow.sampler) + " " + col(BattleRow.sampler_version),
    "pacing": col(BattleRow.pacing),
    "turns": cast(col(VoteRow.turn), String),
    "choices": col(VoteRow.outcome),
    "voter_kinds": col(VoterRow.kind),
}
"""By what votes are counted, as `arena.domain.study.COUNTED` names it, except labels."""
_FACETS = {"category": "categories", "language": "languages"}
_OF_ALL = (
    core_func.count(),
    core_func.count(core_func.distinct(col(BattleRow.prompt_id))),
    core_func.count(col(BattleRow.prompt_id)),
    core_func.min(col(VoteRow.created)),
    core_func.max(col(VoteRow.created)),
)
_SYSTEM_PROMPT = case(
    (col(AnswerRow.side) == "a", col(BattleRow.system_prompt_hash_a)),
    else_=col(BattleRow.system_prompt_hash_b),
)
_ITS_MODEL = case((col(AnswerRow.side) == "a", BOTH_MODELS[0]), else_=BOTH_MODELS[1])
_END = core_select(col(ChainRow.head), col(ChainRow.links))


class LastCall(NamedTuple):
    """How a model was asked last: beginning of its system prompt's SHA-256, and what was sent."""

    system_prompt: str
    decoding: Mapping[str, Any]


class CardFacts(NamedTuple):
    """What a card takes from the log.

    Attributes
    ----------
    asked : mapping of str to LastCall
        How models were asked, by id; what was never asked is missing.
    head : str
        Hash of the chain's newest link; empty before the first.
    links : int
        How many links there are.
    """

    facts: VoteFacts
    asked: Mapping[str, LastCall]
    head: str
    links: int


def card_facts(
    session: Session, policy: Policy, models: Iterable[str], asked_since: datetime
) -> CardFacts:
    """Read what the log says of the votes that a policy counts, and of models, by their ids.

    Parameters
    ----------
    asked_since : datetime
        How models were asked is read of battles that are over: see `arena.store.tables.is_over`.
    """
    connection = session.connection()
    over = is_over(asked_since)
    rows = {
        model: connection.execute(_newest_answer(model, over)).one_or_none() for model in models
    }
    asked = {model: LastCall(*row) for model, row in rows.items() if row is not None}
    head, links = connection.execute(_END).one()
    return CardFacts(_vote_facts(session, policy), asked, head, links)


def _vote_facts(session: Session, policy: Policy) -> VoteFacts:
    """Count the votes that a policy counts."""
    connection = session.connection()
    votes, prompts, on_prompts, first, last = connection.execute(
        _of_policy(policy, *_OF_ALL)
    ).one()
    counts: dict[str, Counter[str]] = {name: Counter() for name in (*_COUNTED, *_FACETS.values())}
    by = tuple(_COUNTED.values())
    for *values, n in connection.execute(_of_policy(policy, *by, core_func.count()).group_by(*by)):
        for name, value in zip(_COUNTED, values, strict=True):
            counts[name][value] += n
    for facet, value, n in connection.execute(_labels_of(policy)):
        counts[_FACETS[facet]][value] = n
    sides = (*BOTH_MODELS, col(VoteRow.fingerprint_a), col(VoteRow.fingerprint_b))
    known = defaultdict(set)
    for a, b, of_a, of_b in connection.execute(_of_policy(policy, *sides).distinct()):
        known[a].add(of_a)
        known[b].add(of_b)
    return VoteFacts(
        votes=votes,
        prompts=prompts,
        repeated=on_prompts - prompts,
        first=first,
        last=last,
        versions={model: len(versions) for model, versions in sorted(known.items())},
        **{name: in_order(by) for name, by in counts.items()},
    )


def _of_policy(policy: Policy, *columns: Any) -> Select[*tuple[Any, ...]]:
    return select_votes(*columns).where(is_counted(policy))


def _labels_of(policy: Policy) -> Select[*tuple[Any, ...]]:
    columns = (col(PromptLabelRow.facet), col(PromptLabelRow.value))
    return (
        _of_policy(policy, *columns, core_func.count())
        .join(TurnRow, labels.voted_on())
        .join(PromptLabelRow, col(PromptLabelRow.turn_id) == col(TurnRow.id))
        .where(labels.is_by(policy.tagger), col(PromptLabelRow.facet).in_(_FACETS))
        .group_by(*columns)
    )


def _newest_answer(model: str, over: ColumnElement[bool]) -> Select[*tuple[Any, ...]]:
    """Select the newest answer of a model, in some battles, that nothing took the place of."""
    return (
        core_select(_SYSTEM_PROMPT, col(AnswerRow.decoding))
        .join(BattleRow, col(BattleRow.id) == col(AnswerRow.battle_id))
        .where(col(AnswerRow.model_id) == model, _ITS_MODEL.in_([model]), over)
        .order_by(col(AnswerRow.id).desc())
        .limit(1)
    )
