"""The log as boards, exports and the voter's own page read it."""

import statistics
from collections import Counter, defaultdict
from collections.abc import Collection, Mapping, Sequence
from operator import attrgetter

from sqlmodel import Session, col, distinct, func, select
from sqlmodel.sql.expression import SelectOfScalar

from arena.domain.battle import AnswerStatus, BattleState, Mode
from arena.domain.policy import Policy
from arena.domain.vote import Choice
from arena.domain.voter import VoterKind
from arena.store import bound
from arena.store.records import LinkKind, LoggedLink, LoggedVote, ModelRecord, PastBattle
from arena.store.tables import (
    AnswerRow,
    BattleRow,
    ExclusionRow,
    ModelRow,
    TurnRow,
    VoteRow,
    VoterRow,
)
from rating.tables.counts import LoggedColumns

BattleIds = SelectOfScalar[int] | SelectOfScalar[None]
"""A query for the keys of battles."""


def votes(session: Session, policy: str) -> list[LoggedVote]:
    """Every vote in the order of the log, skips among them, with the policy's exclusions."""
    reasons = _exclusions(session, policy)
    rows = session.exec(
        select(VoteRow, BattleRow, VoterRow.kind)
        .join(BattleRow, col(BattleRow.id) == col(VoteRow.battle_id))
        .join(VoterRow, col(VoterRow.id) == col(VoteRow.voter_id))
        .order_by(col(VoteRow.link))
    )
    return [
        LoggedVote(
            battle_id=battle.public_id,
            prompt_id=battle.prompt_id or "",
            model_a=battle.model_a,
            model_b=battle.model_b,
            outcome=Choice(vote.outcome),
            voter=vote.voter_id,
            voter_kind=VoterKind(kind),
            created=vote.created,
            pair_probability=battle.pair_probability,
            repicks=battle.repicks,
            pacing=battle.pacing,
            seconds_to_vote=vote.seconds_to_vote,
            exclusions=tuple(reasons[vote.id or 0]),
        )
        for vote, battle, kind in rows
    ]


def links(session: Session, policy: str) -> list[LoggedLink]:
    """Every link of the chain, in its order: votes, exclusions, and the mark if there is one."""
    connection = session.connection()
    reasons = _exclusions(session, policy)
    logged = [
        _link(row, "vote", row._asdict() | {"transcript_hash": transcript.hash}, reasons[row.id])
        for batch in bound.votes(connection)
        for row, transcript in batch
    ]
    logged += [
        _link(row, "exclusion", bound.of_exclusion(row))
        for row in connection.execute(bound.EXCLUSIONS)
    ]
    logged += [_link(row, "mark", {}) for row in connection.execute(bound.MARK)]
    return sorted(logged, key=attrgetter("link"))


def _link(
    row: bound.AnyRow, kind: LinkKind, binds: Mapping[str, object], reasons: Sequence[str] = ()
) -> LoggedLink:
    return LoggedLink(
        kind=kind,
        link=row.link,
        content=row.content,
        hash=row.hash,
        bound=binds,
        exclusions=tuple(reasons),
    )


def columns(session: Session, policy: Policy) -> LoggedColumns:
    """Every vote as `votes` gives it, in columns: for logs that are too long for rows."""
    reasons = _exclusions(session, policy.name)
    query = (
        select(
            VoteRow.id,
            VoterRow.kind,
            BattleRow.model_a,
            BattleRow.model_b,
            VoteRow.outcome,
            VoteRow.voter_id,
            BattleRow.prompt_id,
            VoteRow.created,
            BattleRow.pair_probability,
            BattleRow.repicks,
        )  # type: ignore[call-overload]
        .join(BattleRow, col(BattleRow.id) == col(VoteRow.battle_id))
        .join(VoterRow, col(VoterRow.id) == col(VoteRow.voter_id))
        .order_by(col(VoteRow.link))
    )
    found = list(zip(*session.connection().execute(query), strict=True)) or [()] * 10
    keys, kinds, *others = map(list, found)
    a, b, outcomes, voters, prompts, moments, probabilities, repicks = others
    why = {
        (choice, kind): policy.why_not(choice, kind, ()) for choice in Choice for kind in VoterKind
    }
    left_out = [why[choice, kind] for choice, kind in zip(outcomes, kinds, strict=True)]
    excluded = ((place, reasons[key]) for place, key in enumerate(keys) if key in reasons)
    for place, logged in excluded:
        left_out[place] = left_out[place] or logged[0]
    return LoggedColumns(
        model_a=a,
        model_b=b,
        outcome=outcomes,
        voter=voters,
        prompt=prompts,
        created=moments,
        pair_probability=probabilities,
        repicks=repicks,
        left_out=left_out,
    )


def _exclusions(session: Session, policy: str) -> dict[int, list[str]]:
    reasons: dict[int, list[str]] = defaultdict(list)
    query = select(ExclusionRow).where(col(ExclusionRow.policy) == policy)
    for row in session.exec(query.order_by(col(ExclusionRow.link))):
        reasons[row.vote_id].append(row.reason)
    return reasons


def model_records(
    session: Session, kinds: Collection[VoterKind] = frozenset(VoterKind)
) -> list[ModelRecord]:
    """Every model ever in the roster with how its battles ended, for voters of some kinds."""
    voters = select(VoterRow.id).where(col(VoterRow.kind).in_(kinds))
    theirs = select(BattleRow.id).where(col(BattleRow.owner).in_(voters))
    battles, failed, abandoned = _battle_counts(session, theirs)
    costs, seconds = _answer_figures(session, theirs)
    return [
        ModelRecord(
            id=row.id,
            name=row.name,
            organisation=row.organisation,
            kind=row.kind,
            battles=battles[row.id],
            failed=failed[row.id],
            abandoned=abandoned[row.id],
            cost_per_1000=1000 * statistics.fmean(costs[row.id]) if costs[row.id] else None,
            median_s=statistics.median(seconds[row.id]) if seconds[row.id] else None,
        )
        for row in session.exec(select(ModelRow).order_by(col(ModelRow.id)))
    ]


def _battle_counts(
    session: Session, theirs: BattleIds
) -> tuple[Counter[str], Counter[str], Counter[str]]:
    """Count blind battles by model, each once: where it was asked, where it failed, those left."""
    blind = (col(BattleRow.mode) == Mode.ANONYMOUS, col(BattleRow.id).in_(theirs))
    same = col(BattleRow.id) == col(AnswerRow.battle_id)
    times = func.count(distinct(col(AnswerRow.battle_id)))
    per_model = select(AnswerRow.model_id, times).join(BattleRow, same).where(*blind)
    asked = session.exec(per_model.group_by(col(AnswerRow.model_id)))
    gone = col(AnswerRow.model_id).not_in((col(BattleRow.model_a), col(BattleRow.model_b)))
    lost = (col(AnswerRow.status) == AnswerStatus.FAILED) & (
        gone | (col(BattleRow.state) == BattleState.FAILED)
    )
    failed = session.exec(per_model.where(lost).group_by(col(AnswerRow.model_id)))
    abandoned: Counter[str] = Counter()
    left = (BattleState.READY, BattleState.SKIPPED, BattleState.STOPPED)
    pairs = select(BattleRow.model_a, BattleRow.model_b).where(
        col(BattleRow.state).in_(left), *blind
    )
    for pair in session.exec(pairs):
        abandoned.update(pair)
    return Counter(dict(asked.all())), Counter(dict(failed.all())), abandoned


def _answer_figures(
    session: Session, theirs: BattleIds
) -> tuple[dict[str, list[float]], dict[str, list[float]]]:
    costs: dict[str, list[float]] = defaultdict(list)
    seconds: dict[str, list[float]] = defaultdict(list)
    complete = select(AnswerRow.model_id, AnswerRow.cost, AnswerRow.duration_s).where(
        col(AnswerRow.status) == AnswerStatus.COMPLETE, col(AnswerRow.battle_id).in_(theirs)
    )
    for model_id, cost, duration_s in session.exec(complete):
        if cost is not None:
            costs[model_id].append(cost)
        if duration_s is not None:
            seconds[model_id].append(duration_s)
    return costs, seconds


def past_battles(session: Session, voter: str) -> list[PastBattle]:
    """Read the voter's own votes, newest first."""
    names = {row.id: row.name for row in session.exec(select(ModelRow))}
    rows: Sequence[tuple[VoteRow, BattleRow, str]] = session.exec(
        select(VoteRow, BattleRow, TurnRow.prompt)
        .join(BattleRow, col(BattleRow.id) == col(VoteRow.battle_id))
        .join(TurnRow, col(TurnRow.battle_id) == col(BattleRow.id))
        .where(col(VoteRow.voter_id) == voter, col(TurnRow.turn) == 1)
        .order_by(col(VoteRow.link).desc())
    ).all()
    return [
        PastBattle(
            battle_id=battle.public_id,
            created=vote.created,
            prompt=prompt,
            choice=Choice(vote.outcome),
            model_a_name=names[battle.model_a],
            model_b_name=names[battle.model_b],
        )
        for vote, battle, prompt in rows
    ]
