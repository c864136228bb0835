"""How the arena did in the last day: what those who run it look at first."""

from collections import Counter, defaultdict
from collections.abc import Mapping
from datetime import datetime, timedelta

from sqlalchemy import ColumnElement
from sqlmodel import Session, col, func, select

from arena.domain.answer import FailureClass
from arena.domain.battle import BattleState, Mode
from arena.domain.model import BESIDE
from arena.domain.room_view import Failures, ModelDay, Status
from arena.domain.vote import Choice
from arena.store import log
from arena.store.counted import RUNNING
from arena.store.single_battles import is_owned_by
from arena.store.tables import AnswerRow, BattleRow, ModelRow, VoteRow, VoterRow

DAY = timedelta(days=1)
PER_SECOND = 100
"""First tokens are counted in hundredths of a second."""


def status(session: Session, now: datetime, budget: float | None, viewer: str = "") -> Status:
    """Read how the arena did in the last day.

    Parameters
    ----------
    budget : float or None
        Dollars that may be spent in a day.
    viewer : str
        Voter who reads it. Their own battles without a vote are excluded: the figures before
        and after a battle would name its models.
    """
    since = now - DAY
    blind = (
        col(BattleRow.mode) == Mode.ANONYMOUS,
        col(BattleRow.state).not_in((BattleState.VOTED, BattleState.SKIPPED)),
    )
    own = (
        select(col(BattleRow.id))
        .join(VoterRow, col(VoterRow.id) == col(BattleRow.owner))
        .where(is_owned_by(viewer), *blind)
    )
    models = _models(session, col(AnswerRow.created) > since, col(AnswerRow.battle_id).not_in(own))
    return Status(
        since=since,
        running=_count(session, col(BattleRow.state).in_(RUNNING)),
        battles=_count(session, _begun(since)),
        votes=_votes(session, since),
        dollars=sum(model.dollars for model in models),
        budget=budget,
        models=models,
    )


def _count(session: Session, which: ColumnElement[bool]) -> int:
    return session.exec(select(func.count()).select_from(BattleRow).where(which)).one()


def _begun(since: datetime) -> ColumnElement[bool]:
    """Say, in a query, which battles have begun: answers have an index of times, these none."""
    first = (col(AnswerRow.turn) == 1, col(AnswerRow.created) > since)
    return col(BattleRow.id).in_(select(AnswerRow.battle_id).where(*first))


def _votes(session: Session, since: datetime) -> int:
    cast = (col(VoteRow.created) > since, col(VoteRow.outcome) != Choice.SKIP)
    return session.exec(select(func.count()).select_from(VoteRow).where(*cast)).one()


def _models(session: Session, *which: ColumnElement[bool]) -> tuple[ModelDay, ...]:
    failures, began = _failures(session, *which), _began(session, *which)
    query = (
        select(
            AnswerRow.model_id,
            ModelRow.name,
            func.count(),
            func.sum(AnswerRow.tokens_out),
            func.sum(log.dollars()),
        )  # type: ignore[call-overload]
        .join(ModelRow, col(ModelRow.id) == col(AnswerRow.model_id))
        .where(*which, ~col(AnswerRow.model_id).contains(BESIDE))
        .group_by(col(AnswerRow.model_id), col(ModelRow.name))
        .order_by(col(ModelRow.name), col(AnswerRow.model_id))
    )
    return tuple(
        ModelDay(
            model=model,
            name=name,
            answers=answers,
            failures=failures.get(model, ()),
            first_token_p50_s=quantile(began[model], 0.5),
            first_token_p95_s=quantile(began[model], 0.95),
            tokens_out=int(tokens or 0),
            dollars=float(dollars or 0),
        )
        for model, name, answers, tokens, dollars in session.exec(query)
    )


def _failures(session: Session, *which: ColumnElement[bool]) -> dict[str, tuple[Failures, ...]]:
    """Give the failures of each model by class, the newest of each in the endpoint's words."""
    alike = (
        select(func.max(AnswerRow.id).label("newest"), func.count().label("times"))
        .where(*which, col(AnswerRow.error_class).is_not(None))
        .group_by(col(AnswerRow.model_id), col(AnswerRow.error_class))
        .subquery()
    )
    query = (
        select(AnswerRow, alike.c.times)
        .join(alike, alike.c.newest == col(AnswerRow.id))
        .order_by(alike.c.times.desc(), col(AnswerRow.error_class))
    )
    by_model: dict[str, list[Failures]] = defaultdict(list)
    for row, times in session.exec(query):
        failure = FailureClass(row.error_class or "")
        by_model[row.model_id].append(
            Failures(failure, times, row.error_detail or "", row.created)
        )
    return {model: tuple(each) for model, each in by_model.items()}


def _began(session: Session, *which: ColumnElement[bool]) -> Mapping[str, Counter[float]]:
    """Count the first tokens of each model by their seconds."""
    hundredths = func.round(col(AnswerRow.first_token_s) * PER_SECOND)
    query = (
        select(AnswerRow.model_id, hundredths, func.count())
        .where(*which, col(AnswerRow.first_token_s).is_not(None))
        .group_by(col(AnswerRow.model_id), hundredths)
    )
    counts: dict[str, Counter[float]] = defaultdict(Counter)
    for model, at, times in session.exec(query):
        counts[model][float(at) / PER_SECOND] += times
    return counts


def quantile(counts: Counter[float], share: float) -> float | None:
    """Give the least of some numbers that no less than a share of them do not exceed.

    Parameters
    ----------
    counts : Counter
        How often each number occurs.

    Returns
    -------
    float or None
        None of no numbers.

    Examples
    --------
    >>> quantile(Counter({0.1: 19, 3.0: 1}), 0.95), quantile(Counter({0.1: 18, 3.0: 2}), 0.95)
    (0.1, 3.0)
    """
    below = 0
    for number in sorted(counts):
        below += counts[number]
        if below >= share * counts.total():
            return number
    return None
