"""The votes of the log as fits, now and at past dates: the numbers of `arena rate` for them."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime, time, timedelta

import numpy as np

import rating
from arena.domain.board_view import Moment, PastRating
from rating import (
    Comparisons,
    Fit,
    Inference,
    RateOptions,
    Report,
    to_points,
)
from rating.board import report_of
from rating.comparisons import Votes
from rating.errors import NotIdentifiedError
from rating.report import ModelRating
from rating.tables.columns import Reading
from rating.tables.counts import count_votes
from rating.tables.log import LoggedVotes, microseconds
from rating.uncertainty.ranks import RankRanges, joint_rank_ranges
from rating.uncertainty.spread import Spread, spread

OPTIONS = RateOptions()
"""The defaults of `arena rate`. The seed is among them: the same votes give the same board."""

NEWCOMER_SHARE = 0.05
"""Models that the votes do not connect are set aside while they hold no more of the votes."""

MOST_MOMENTS = 6

LEAST_DAYS = 3
"""Votes of fewer days have no history."""

DAY = timedelta(days=1)


@dataclass(frozen=True, slots=True, eq=False)
class Fitted:
    """Votes that identify ratings.

    Attributes
    ----------
    votes : Votes
        Those behind them, without those of newcomers.
    spread : Spread
        How far each strength may be off.
    newcomers : tuple of str
        Models whose few votes do not connect them yet, set aside with those votes.
    """

    votes: Votes
    fit: Fit
    spread: Spread
    newcomers: tuple[str, ...]

    @property
    def data(self) -> Comparisons:
        """The votes as the estimators take them."""
        return self.votes.data

    @property
    def inference(self) -> Inference:
        """How sure any contrast of the strengths is."""
        assert self.spread.inference is not None
        return self.spread.inference

    def report(self) -> Report:
        """Rate as `arena rate` does, with ranks and warnings."""
        options = OPTIONS.resolved(self.data)
        rng = np.random.default_rng([options.seed, 1])
        return report_of(self.fit, self.votes, self.spread, options, rng)

    def rank_ranges(self) -> RankRanges:
        """Bound the ranks as `report` does, with what each claim is."""
        rng = np.random.default_rng([OPTIONS.seed, 1])
        return joint_rank_ranges(self.inference, rng=rng, level=OPTIONS.level)

    def among_voters(self) -> tuple[ModelRating, ...]:
        """Rate for these voters alone, where they are few and that claims ranks; else nothing.

        How they would rate with endless votes, see `rating.RateOptions`.
        """
        if not any(kind.cluster == "voter" and kind.is_small for kind in self.inference.kinds):
            return ()
        options = replace(OPTIONS, claims="these-voters").resolved(self.data)
        rng = np.random.default_rng([OPTIONS.seed, 2])
        off = spread(self.fit, self.data, options, rng)
        ratings = report_of(self.fit, Votes(self.data), off, options, rng).ratings
        return ratings if any(row.rank_low for row in ratings) else ()

    def voter_points(self) -> dict[str, float]:
        """Give each model's rating if every voter had the same weight in all."""
        assert self.data.voter is not None
        each = np.bincount(self.data.voter, self.data.votes, self.data.n_voters)
        share = 1 / each[self.data.voter]
        votes = self.data.votes
        even = replace(self.data, weight=votes * share, weight_sq=votes * share**2)
        fit = rating.fit(even)
        return dict(zip(fit.models, to_points(fit.theta).tolist(), strict=True))


READING = Reading.of(OPTIONS)
"""How a board reads the log."""


def fit_log(log: LoggedVotes, votes: Votes | None = None) -> Fitted:
    """Fit the votes that count, without the newcomers that would leave the others without one.

    Parameters
    ----------
    votes : Votes, optional
        Those of the log, where they have been counted.

    Raises
    ------
    rating.NotIdentifiedError
        If the votes identify no rating.
    """
    votes = votes or count_votes(log, READING)
    try:
        return _fitted(votes, ())
    except NotIdentifiedError as error:
        newcomers = newcomers_of(votes.data, error)
        if not newcomers:
            raise
    votes = count_votes(log.without(newcomers), READING)
    return _fitted(votes, tuple(sorted(newcomers)))


def _fitted(votes: Votes, newcomers: tuple[str, ...]) -> Fitted:
    data = votes.data
    fit = rating.fit(data)
    off = spread(fit, data, OPTIONS.resolved(data), np.random.default_rng(OPTIONS.seed))
    return Fitted(votes, fit, off, newcomers)


def newcomers_of(data: Comparisons, error: NotIdentifiedError) -> frozenset[str]:
    """Name the models outside the largest group, if they are few enough to set aside."""
    core = frozenset(error.groups[0] if error.groups else ())
    inside = np.array([model in core for model in data.models], dtype=bool)
    outside = ~inside[data.pairs].all(axis=1)
    few = data.votes[outside].sum() <= NEWCOMER_SHARE * data.n_votes
    if len(core) < 2 or not few:
        return frozenset()
    met = np.unique(data.pairs[outside])
    return frozenset(data.models[i] for i in met) - core


def moments(first: datetime, now: datetime) -> tuple[datetime, ...]:
    """Choose past midnights, evenly apart from the first vote on: at most `MOST_MOMENTS`.

    They stay the same for as long as the votes have no more days than these can show, so that
    what was computed for them can be kept.

    Examples
    --------
    >>> from datetime import UTC
    >>> start = datetime(2026, 5, 3, 9, tzinfo=UTC)
    >>> [when.day for when in moments(start, start + 7 * DAY)]
    [5, 7, 9]
    """
    start = datetime.combine(first.date(), time(), first.tzinfo)
    days = (now - start) // DAY
    if days < LEAST_DAYS:
        return ()
    step = -(-days // MOST_MOMENTS) * DAY
    return tuple(start + i * step for i in range(1, MOST_MOMENTS + 1) if start + i * step < now)


class History:
    """Keeps what was computed for a past date for as long as its votes are the same."""

    def __init__(self) -> None:
        self._known: dict[tuple[datetime, int], Moment] = {}

    def know(self, past: Iterable[Moment]) -> None:
        """Take over what somebody else has computed."""
        self._known |= {(moment.when, moment.votes): moment for moment in past}

    def read(self, log: LoggedVotes, now: datetime) -> Iterator[tuple[Moment, ...]]:
        """Give the board at some past dates: those that are known at once, then one more a time.

        Parameters
        ----------
        log : LoggedVotes
            In the order of the log: votes are only ever added to it, or left out.
        """
        created = log.created[log.counted]
        chosen = moments(moment_of(created.min()), now) if created.size else ()
        keys = [(when, int((created < microseconds(when)).sum())) for when in chosen]
        self._known = {key: self._known[key] for key in keys if key in self._known}
        yield tuple(self._known.values())
        for key in keys:
            if key not in self._known:
                self._known[key] = _made(log, *key)
                yield tuple(self._known[key] for key in keys if key in self._known)


def moment_of(created: int) -> datetime:
    """Give the moment so many microseconds after 1970, in UTC."""
    return datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=int(created))


def _made(log: LoggedVotes, when: datetime, votes: int) -> Moment:
    try:
        ratings = _ratings(fit_log(log.before(when)))
    except NotIdentifiedError:
        ratings = ()
    return Moment(when=when, votes=votes, ratings=ratings)


def _ratings(fitted: Fitted) -> tuple[PastRating, ...]:
    nats = (fitted.fit.theta, fitted.spread.low, fitted.spread.high)
    rows = zip(fitted.fit.models, *(to_points(x).tolist() for x in nats), strict=True)
    ratings = [
        PastRating(model=model, rating=points, lower=lower, upper=upper)
        for model, points, lower, upper in rows
    ]
    return tuple(sorted(ratings, key=lambda past: (-past.rating, past.model)))
