"""The board of a policy: read from the log, rated, and put into words."""

import threading
import time
from collections.abc import Callable, Collection, Mapping, Sequence, Set
from dataclasses import asdict, replace
from datetime import datetime, timedelta

from arena.boards.evidence import fit_check, holds, pair_cells
from arena.boards.fitted import OPTIONS, Fitted, History, fit_log, reading
from arena.boards.integrity import RINGS, SELF_NAMING, VOTERS
from arena.domain.board_view import Board, BoardRow, ModelRecord, Moment, RecordCheck, Waiting
from arena.domain.vote import Policy
from arena.store import chain, exclusions, log
from arena.store.store import Store
from rating import Comparisons, Report, __version__, field_rates
from rating.errors import NotIdentifiedError
from rating.sentences import Sentence
from rating.tables.counts import count_votes
from rating.tables.sources import LoggedColumns
from rating.uncertainty.spread import on_quasi_errors

METHOD_BY_VOTER = Sentence(
    "Bradley-Terry, ties half; 95 % intervals by leaving out one voter at a time"
)
METHOD_BY_BOTH = Sentence(
    "Bradley-Terry, ties half; 95 % intervals by leaving out one voter, and one prompt, at a time"
)
METHOD_BY_VOTE = Sentence(
    "Bradley-Terry, ties half; 95 % intervals that take votes as independent"
)
NO_VOTES = Sentence("There are no votes yet. Play a battle and be the first.")

HELD_RULES = {
    VOTERS: Sentence("single voters"),
    RINGS: Sentence("rings"),
    SELF_NAMING: Sentence("answers that name their model"),
}
"""What the rules of `arena.boards.integrity` check, in words."""

EQUAL_POINTS = 1e-6
"""Ratings this close share a place."""
SLOW_S = 2.0
REST = 20
"""A board that takes more than `SLOW_S` of computing stays for this many times as long."""


class Leaderboard:
    """Keeps the board of a policy, and makes it anew when the log has grown.

    A board that takes long to make is made at most every `REST` times as long, so that a long
    log costs a twentieth of a processor; who asks meanwhile gets the board that is there,
    which says how old it is.

    Parameters
    ----------
    now : callable
        Time now, in UTC.
    worked : callable
        Seconds of computing so far.
    record : callable
        The last check of the record.
    """

    def __init__(
        self,
        store: Store,
        policy: Policy,
        now: Callable[[], datetime],
        worked: Callable[[], float] = time.thread_time,
        record: Callable[[], RecordCheck | None] = lambda: None,
    ) -> None:
        self._store = store
        self._policy = policy
        self._now = now
        self._worked = worked
        self._record = record
        self._lock = threading.Lock()
        self._history = History()
        self._board: Board | None = None
        self._held: dict[str, float] = {}
        self._rests_until: datetime | None = None

    def read(self) -> Board:
        """Give the board of the votes committed so far, or a recent one if it takes long.

        Raises
        ------
        StoreError
            If the log cannot be read, or the new board not be recorded.
        """
        board, record = self._recent(), self._record()
        return board if board.record is record else replace(board, record=record)

    def _recent(self) -> Board:
        recent = self._board if self._rests_until else None
        locked = self._lock.acquire(blocking=recent is None)
        if recent is not None and not locked:
            return recent
        try:
            return self._renewed()
        finally:
            self._lock.release()

    def _renewed(self) -> Board:
        if self._board is not None and self._rests_until and self._now() < self._rests_until:
            return self._board
        began = self._worked()
        with self._store.reading() as session:
            head = chain.head(session)
            version = f"{head[:12] or 'empty'}-{__version__}"
            held = exclusions.held(session)
            is_same = self._board is not None and self._board.version == version
            if self._board is not None and is_same and held == self._held:
                return self._board
            columns = log.columns(session, self._policy)
            records = log.model_records(session, self._policy.kinds)
        now = self._now()
        past = self._history.read(columns, now)
        board = make_board(columns, records, self._policy, version, now, past, _on_held(held))
        if board.rows:
            method = {"words": board.method, "level": board.level, "seed": OPTIONS.seed}
            with self._store.writing() as session:
                log.record(session, board, method, __version__, head)
        took = self._worked() - began
        self._rests_until = now + timedelta(seconds=REST * took) if took > SLOW_S else None
        self._board, self._held = board, held
        return board


def make_board(
    columns: LoggedColumns,
    records: Sequence[ModelRecord],
    policy: Policy,
    version: str,
    now: datetime,
    history: tuple[Moment, ...] = (),
    held: tuple[str, ...] = (),
) -> Board:
    """Rate the votes that a policy counts; a board that cannot be rated says why."""
    votes = count_votes(columns, reading())
    try:
        fitted, reason = fit_log(columns), None
    except NotIdentifiedError as error:
        fitted, reason = None, _why(error)
    report = fitted and fitted.report()
    order = [row.model for row in report.ratings] if report else []
    board = Board(
        policy=policy.name,
        policy_rules=policy.rules,
        version=version,
        updated=now,
        since=_since(columns),
        votes=votes.data.n_votes,
        voters=len(votes.voters),
        left_out=dict(votes.dropped),
        method=METHOD_BY_VOTE,
        level=OPTIONS.level,
        anchor_mean=OPTIONS.mean,
        waiting=_waiting(order, records, votes.data),
        pairs=pair_cells(votes.data, fitted),
        history=history,
        health=tuple(record for record in records if record.battles),
        warnings=held,
        reason=reason,
    )
    return _with_ratings(board, fitted, report, records) if fitted and report else board


def _with_ratings(
    board: Board, fitted: Fitted, report: Report, records: Sequence[ModelRecord]
) -> Board:
    kinds = {kind.cluster for kind in fitted.inference.kinds}
    return replace(
        board,
        data_hash=fitted.votes.data_hash,
        by_voter="voter" in kinds,
        effective_voters=report.votes.effective_voters,
        top_voter_share=report.votes.top_voter_share,
        method=_method(kinds),
        rows=_rows(fitted, report, records),
        holds=holds(fitted),
        fit_check=fit_check(fitted, [row.model for row in report.ratings]),
        among=fitted.among_voters(),
        warnings=(*board.warnings, *_warnings(report, fitted.newcomers)),
    )


def _on_held(held: Mapping[str, float]) -> tuple[str, ...]:
    return tuple(
        Sentence(
            "The check of %(rule)s would leave out %(share)s %% of the votes. So many are a "
            "reason to doubt the check: it is held, and leaves out none.",
            rule=HELD_RULES.get(rule, rule),
            share=round(100 * share),
        )
        for rule, share in held.items()
    )


def _method(kinds: Set[str]) -> str:
    if "voter" not in kinds:
        return METHOD_BY_VOTE
    return METHOD_BY_BOTH if "prompt" in kinds else METHOD_BY_VOTER


def _since(columns: LoggedColumns) -> datetime | None:
    counted = zip(columns.created, columns.left_out, strict=True)
    return next((created for created, why in counted if why is None), None)


def _why(error: NotIdentifiedError) -> str:
    if not error.groups:
        return NO_VOTES
    return Sentence("The votes do not identify ratings yet. %(why)s", why=error.args[0])


def _rows(fitted: Fitted, report: Report, records: Sequence[ModelRecord]) -> tuple[BoardRow, ...]:
    known = {record.id: record for record in records}
    wins = _wins(fitted)
    even = fitted.voter_points()
    return tuple(
        BoardRow(
            **asdict(row),
            name=known[row.model].name,
            organisation=known[row.model].organisation,
            kind=known[row.model].kind,
            win_rate=wins[row.model][0],
            win_rate_low=wins[row.model][1],
            win_rate_high=wins[row.model][2],
            voter_rating=even[row.model],
            voter_rank=1 + sum(other > even[row.model] + EQUAL_POINTS for other in even.values()),
            price_per_1000=known[row.model].price_per_1000,
            median_s=known[row.model].median_s,
        )
        for row in report.ratings
    )


def _wins(fitted: Fitted) -> dict[str, tuple[float, float, float]]:
    """Give each model's win probability against an average opponent, with its interval."""
    rates = field_rates(fitted.inference, level=OPTIONS.level)
    columns = (column.tolist() for column in (rates.rate, rates.low, rates.high))
    return dict(zip(rates.models, zip(*columns, strict=True), strict=True))


def _waiting(
    rated: Collection[str], records: Sequence[ModelRecord], everyone: Comparisons
) -> tuple[Waiting, ...]:
    wins = everyone.wins()
    won = dict(zip(everyone.models, wins.sum(axis=1).tolist(), strict=True))
    lost = dict(zip(everyone.models, wins.sum(axis=0).tolist(), strict=True))
    return tuple(
        Waiting(
            model=record.id,
            name=record.name,
            organisation=record.organisation,
            votes=round(won.get(record.id, 0) + lost.get(record.id, 0)),
            reason=_what_is_missing(won.get(record.id, 0), lost.get(record.id, 0)),
        )
        for record in records
        if record.id not in rated
    )


def _what_is_missing(won: float, lost: float) -> str:
    if not won and not lost:
        return Sentence("no votes yet")
    if not lost:
        return Sentence("has not lost yet; needs a loss or a tie")
    if not won:
        return Sentence("has not won yet; needs a win or a tie")
    return Sentence("needs votes against more models")


def _warnings(report: Report, newcomers: Sequence[str]) -> tuple[str, ...]:
    """Give what `arena rate` warns of, but for a column that the board does not have."""
    unsaid = on_quasi_errors(report.quasi_se_error or 0.0)
    warnings = tuple(warning for warning in report.warnings if warning != unsaid)
    if not newcomers:
        return warnings
    names = ", ".join(newcomers)
    aside = Sentence(
        "Set aside with their votes until these connect them to the others: %(names)s.",
        names=names,
    )
    return (*warnings, aside)
