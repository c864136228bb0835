"""The board of a policy: read from the log, rated, and put into words."""

import threading
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, fields
from datetime import datetime

import numpy as np
from numpy.typing import NDArray

from arena import __version__
from arena.domain.board import Board, BoardRow, Health, PairCell, Waiting
from arena.domain.model import Kind
from arena.domain.policy import Policy
from arena.store import chain, log
from arena.store.records import LoggedVote, ModelRecord, RatedModel, RatingRun
from arena.store.store import Store
from rating import (
    Comparisons,
    NotIdentifiedError,
    Outcome,
    Standings,
    standings,
)

LEVEL = 0.95
MEAN_POINTS = 1000.0
METHOD_BY_VOTER = "Bradley-Terry, ties half; 95 % intervals by leaving out one voter at a time"
METHOD_BY_VOTE = "Bradley-Terry, ties half; 95 % intervals that take votes as independent"
SEED = 0
"""Seed of the draws behind the rank ranges: the same votes give the same board."""

NEWCOMER_SHARE = 0.05
"""Models that the votes do not connect are set aside while they hold no more of the votes."""


@dataclass(frozen=True, slots=True)
class Counted:
    """The votes that a policy counts, and how many it leaves out for which reason."""

    votes: tuple[LoggedVote, ...]
    left_out: dict[str, int]


class Leaderboard:
    """Keeps the board of a policy, and makes it anew when the log has grown.

    Parameters
    ----------
    now : callable
        Time now, in UTC.
    """

    def __init__(self, store: Store, policy: Policy, now: Callable[[], datetime]) -> None:
        self._store = store
        self._policy = policy
        self._now = now
        self._lock = threading.Lock()
        self._board: Board | None = None

    def read(self) -> Board:
        """Give the board of the votes committed so far.

        Raises
        ------
        StoreError
            If the log cannot be read, or the new board not be recorded.
        """
        with self._lock:
            with self._store.reading() as session:
                head = chain.head(session)
                version = f"{head[:12] or 'empty'}-{__version__}"
                if self._board is not None and self._board.version == version:
                    return self._board
                votes = log.votes(session, self._policy.name)
                records = log.model_records(session, self._policy.kinds)
            board = make_board(votes, records, self._policy, version, self._now())
            if board.rows:
                self._store.record_run(run_of(board, head))
            self._board = board
            return board


def run_of(board: Board, head: str) -> RatingRun:
    """Say how a board came about, for the record."""
    names = [field.name for field in fields(RatedModel) if field.name != "model_id"]
    return RatingRun(
        policy=board.policy,
        method={"words": board.method, "level": board.level, "seed": SEED},
        code_version=__version__,
        head=head,
        votes=board.votes,
        created=board.updated,
        rows=tuple(
            RatedModel(
                model_id=row.model,
                **{name: getattr(row, name) for name in names}
                | {
                    "rank_low": row.rank_low or 1,
                    "rank_high": row.rank_high or len(board.rows),
                },
            )
            for row in board.rows
        ),
    )


def count(votes: Iterable[LoggedVote], policy: Policy) -> Counted:
    """Part the votes into those that count and those that do not, by the policy's reasons."""
    counted = []
    left_out: Counter[str] = Counter()
    for vote in votes:
        reason = policy.why_not(vote.outcome, vote.voter_kind, vote.exclusions)
        if reason is None:
            counted.append(vote)
        else:
            left_out[reason] += 1
    return Counted(tuple(counted), dict(left_out))


def make_board(
    votes: Sequence[LoggedVote],
    records: Sequence[ModelRecord],
    policy: Policy,
    version: str,
    now: datetime,
) -> Board:
    """Rate the votes that a policy counts; a board that cannot be rated says why."""
    counted = count(votes, policy)
    rated = rate(counted.votes)
    standing = rated.standings
    by_voter = standing is not None and standing.interval == "cr3-t"
    return Board(
        policy=policy.name,
        policy_rules=policy.rules,
        version=version,
        updated=now,
        since=counted.votes[0].created if counted.votes else None,
        votes=len(counted.votes),
        voters=len({vote.voter for vote in counted.votes}),
        left_out=counted.left_out,
        by_voter=by_voter,
        effective_voters=standing.effective_voters if standing else None,
        top_voter_share=standing.top_voter_share if standing else None,
        method=METHOD_BY_VOTER if by_voter else METHOD_BY_VOTE,
        level=LEVEL,
        anchor_mean=MEAN_POINTS,
        rows=_rows(standing, records) if standing else (),
        waiting=_waiting(rated, records, counted.votes),
        pairs=_pairs(counted.votes),
        health=_health(records),
        warnings=_warnings(rated),
        reason=rated.reason,
    )


@dataclass(frozen=True, slots=True)
class Rated:
    """What the votes identify.

    Attributes
    ----------
    standings : Standings or None
        None when nothing can be rated; ``reason`` then says why.
    newcomers : tuple of str
        Models whose few votes do not connect them yet, set aside with those votes.
    """

    standings: Standings | None
    newcomers: tuple[str, ...] = ()
    reason: str | None = None


def rate(votes: Sequence[LoggedVote]) -> Rated:
    """Fit the votes, without the newcomers that would leave the others without a rating."""
    try:
        return Rated(_fit(votes))
    except NotIdentifiedError as error:
        newcomers = _newcomers(votes, error)
        if not newcomers:
            return Rated(None, reason=_why(error))
    rest = [vote for vote in votes if not {vote.model_a, vote.model_b} & newcomers]
    return Rated(_fit(rest), tuple(sorted(newcomers)))


def _fit(votes: Sequence[LoggedVote]) -> Standings:
    data = Comparisons.from_arrays(
        [vote.model_a for vote in votes],
        [vote.model_b for vote in votes],
        [vote.outcome.value for vote in votes],
        voter=[vote.voter for vote in votes],
    )
    return standings(data, rng=np.random.default_rng(SEED), level=LEVEL)


def _newcomers(votes: Sequence[LoggedVote], error: NotIdentifiedError) -> frozenset[str]:
    """Name the models outside the largest group, if they are few enough to set aside."""
    core = frozenset(error.groups[0] if error.groups else ())
    outside = [vote for vote in votes if not {vote.model_a, vote.model_b} <= core]
    if len(core) < 2 or len(outside) > NEWCOMER_SHARE * len(votes):
        return frozenset()
    return frozenset(m for vote in outside for m in (vote.model_a, vote.model_b)) - core


def _why(error: NotIdentifiedError) -> str:
    if not error.groups:
        return "There are no votes yet. Play a battle and be the first."
    return f"The votes do not identify ratings yet. {error}"


def _rows(standing: Standings, records: Sequence[ModelRecord]) -> tuple[BoardRow, ...]:
    known = {record.id: record for record in records}
    strengths = np.array([row.strength for row in standing.rows])
    return tuple(
        BoardRow(
            model=row.model,
            name=known[row.model].name,
            organisation=known[row.model].organisation,
            kind=Kind(known[row.model].kind),
            rating=row.rating,
            se=row.se,
            lower=row.lower,
            upper=row.upper,
            rank=row.rank,
            rank_low=row.rank_low if standing.ranks_claimed else None,
            rank_high=row.rank_high if standing.ranks_claimed else None,
            votes=row.votes,
            win_rate=_win_rate(row.strength, strengths),
            price_per_1000=known[row.model].cost_per_1000,
            median_s=known[row.model].median_s,
        )
        for row in standing.rows
    )


def _win_rate(strength: float, strengths: NDArray[np.float64]) -> float | None:
    """Give the mean chance to beat one of the other rated models, ties half."""
    chances = 1 / (1 + np.exp(strengths - strength))
    return float((chances.sum() - 0.5) / (len(strengths) - 1))


def _waiting(
    rated: Rated, records: Sequence[ModelRecord], votes: Sequence[LoggedVote]
) -> tuple[Waiting, ...]:
    on_board = {row.model for row in rated.standings.rows} if rated.standings else set()
    scores: dict[str, list[float]] = defaultdict(list)
    for vote in votes:
        score = Outcome(vote.outcome.value).score_a
        scores[vote.model_a].append(score)
        scores[vote.model_b].append(1 - score)
    return tuple(
        Waiting(
            model=record.id,
            name=record.name,
            organisation=record.organisation,
            votes=len(scores[record.id]),
            reason=_what_is_missing(scores[record.id]),
        )
        for record in records
        if record.id not in on_board
    )


def _what_is_missing(scores: Sequence[float]) -> str:
    if not scores:
        return "no votes yet"
    if min(scores) == 1:
        return "has not lost yet"
    if max(scores) == 0:
        return "has not won yet"
    return "needs votes against more models"


def _pairs(votes: Iterable[LoggedVote]) -> tuple[PairCell, ...]:
    scores: dict[tuple[str, str], list[float]] = defaultdict(list)
    for vote in votes:
        score = Outcome(vote.outcome.value).score_a
        if vote.model_a < vote.model_b:
            scores[vote.model_a, vote.model_b].append(score)
        else:
            scores[vote.model_b, vote.model_a].append(1 - score)
    return tuple(
        PairCell(row=row, column=column, share=float(np.mean(cell)), n=len(cell))
        for (row, column), cell in sorted(scores.items())
    )


def _health(records: Iterable[ModelRecord]) -> tuple[Health, ...]:
    return tuple(
        Health(
            model=record.id,
            battles=record.battles,
            failed=record.failed,
            abandoned=record.abandoned,
        )
        for record in records
        if record.battles
    )


def _warnings(rated: Rated) -> tuple[str, ...]:
    warnings = rated.standings.warnings if rated.standings else ()
    if not rated.newcomers:
        return warnings
    names = ", ".join(rated.newcomers)
    aside = f"Set aside with their votes until these connect them to the others: {names}."
    return (*warnings, aside)
