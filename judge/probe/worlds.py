"""Simulated arenas whose truth is known, and the ways to rate them that are audited."""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Self

import numpy as np
from numpy.typing import NDArray

from rating import Cluster, Comparisons, Outcome, bootstrap, fit_bradley_terry, infer
from rating.diagnosis.taste import fit_taste_sd
from rating.elo import online_elo
from rating.errors import NotIdentifiedError
from rating.fitting import Fit, fit
from rating.likelihood.objective import solve
from rating.outcome import Ties
from rating.rows import VoteRows
from rating.typing import Bools, Floats, Ints

_A, _B, _TIE = (tuple(Outcome).index(one) for one in (Outcome.A, Outcome.B, Outcome.TIE))
_NODES, _WEIGHTS = np.polynomial.hermite_e.hermegauss(41)


@dataclass(frozen=True, slots=True, eq=False)
class Votes:
    """Votes in the order in which they were cast.

    Attributes
    ----------
    models : tuple of str, length n_models
        Names, sorted.
    a, b : ndarray of shape (n_votes,), int64
        Models on the two sides.
    score : ndarray of shape (n_votes,), float64
        Of side A: 1, 0, 1/2 for a tie; anything between for a vote that is split.
    voter : ndarray of shape (n_votes,), int64, or None
        None where voters are not known.
    """

    models: tuple[str, ...]
    a: Ints
    b: Ints
    score: Floats
    voter: Ints | None

    @classmethod
    def of(cls, data: Comparisons, rng: np.random.Generator) -> Self:
        """Return counted votes one by one, in a random order: their own was not kept."""
        row = rng.permutation(np.repeat(np.arange(len(data.votes)), data.votes))
        pairs, voter = data.pairs.astype(np.int64), data.voter
        return cls(
            data.models,
            pairs[row, 0],
            pairs[row, 1],
            data.score_a[row],
            None if voter is None else voter[row].astype(np.int64),
        )

    @property
    def n(self) -> int:
        """How many votes."""
        return len(self.score)

    def taken(self, rows: NDArray[np.integer] | slice) -> Self:
        """Return some of the votes, in the order given."""
        voter = None if self.voter is None else self.voter[rows]
        return replace(self, a=self.a[rows], b=self.b[rows], score=self.score[rows], voter=voter)

    def shuffled(self, rng: np.random.Generator) -> Self:
        """Return the same votes in another order."""
        return self.taken(rng.permutation(self.n))

    def permuted(self, rng: np.random.Generator) -> Self:
        """Give each result to a battle and a side at random: nothing is left of the truth."""
        score = rng.permutation(self.score)
        return replace(self, score=np.where(rng.random(self.n) < 0.5, score, 1 - score))

    def comparisons(self) -> Comparisons:
        """Count the votes; a split one is a part of a vote for each side.

        Raises
        ------
        NotIdentifiedError
            If there is no vote on some model.
        """
        data = self._counted()
        if data.models != self.models:
            missing = ", ".join(sorted({*self.models} - {*data.models}))
            raise NotIdentifiedError(f"Of {self.n} votes none is on {missing}.")
        return data

    def _counted(self) -> Comparisons:
        if np.isin(self.score, (0.0, 0.5, 1.0)).all():
            outcome = np.select([self.score == 1, self.score == 0], [_A, _B], _TIE)
            return Comparisons.from_codes(self.models, self.a, self.b, outcome, voter=self.voter)
        return Comparisons.from_codes(
            self.models,
            np.tile(self.a, 2),
            np.tile(self.b, 2),
            np.repeat([_A, _B], self.n),
            weight=np.concatenate([self.score, 1 - self.score]),
            voter=None if self.voter is None else np.tile(self.voter, 2),
        )


@dataclass(frozen=True, slots=True, eq=False)
class World:
    """A simulated arena: battles and voters stay, and the votes are drawn anew each time.

    A voter sees model m at ``strengths[m] + taste * u[m]`` with u standard normal, ties a share
    ``tie_rate`` of the battles whatever the gap, and else prefers by Bradley-Terry.

    Attributes
    ----------
    models : tuple of str, length n_models
    strengths : ndarray of shape (n_models,)
        In nats.
    a, b : ndarray of shape (n_votes,), int64
    voter : ndarray of shape (n_votes,), int64, or None
        None where voters are not known: then each vote has a taste of its own.
    taste : float
        In nats.
    """

    models: tuple[str, ...]
    strengths: Floats
    a: Ints
    b: Ints
    voter: Ints | None
    taste: float
    tie_rate: float

    @classmethod
    def like(cls, votes: Votes) -> Self:
        """Make an arena like one that was seen: its battles, its fitted strengths and tastes.

        Raises
        ------
        NotIdentifiedError, rating.NotIdentifiedError
            If the votes determine no strengths.
        """
        fit = fit_bradley_terry(votes.comparisons())
        return cls(
            votes.models,
            fit.theta,
            votes.a,
            votes.b,
            votes.voter,
            _taste(votes, fit.theta),
            float((votes.score == 0.5).mean()),
        )

    @property
    def n_votes(self) -> int:
        """How many battles are voted on."""
        return len(self.a)

    def truth(self) -> Floats:
        """Return the strengths that Bradley-Terry would reach with endless voters, in nats.

        Those of the probabilities of all voters together, under the pairs as they were shown:
        tastes and ties draw them together.
        """
        k = len(self.models)
        probability = self._mean_probability()
        wins = np.zeros(k * k)
        wins += np.bincount(self.a * k + self.b, probability, k * k)
        wins += np.bincount(self.b * k + self.a, 1 - probability, k * k)
        return solve(wins.reshape(k, k), np.zeros(k)).theta

    def cast(self, rng: np.random.Generator) -> Votes:
        """Draw voters' tastes and their votes."""
        liking = self.liking(rng)
        draw = rng.random(self.n_votes)
        score = np.where(draw < (1 - self.tie_rate) * _probability(liking), 1.0, 0.0)
        return self._votes(np.where(draw >= 1 - self.tie_rate, 0.5, score))

    def liking(self, rng: np.random.Generator) -> Floats:
        """Draw tastes; return by how much each vote's voter likes side A better, in nats."""
        voter = np.arange(self.n_votes) if self.voter is None else self.voter
        if self.taste == 0:
            return np.asarray(self.strengths[self.a] - self.strengths[self.b])
        taste = rng.normal(0, self.taste, (int(voter.max()) + 1, len(self.models)))
        gap = taste[voter, self.a] - taste[voter, self.b]
        return np.asarray(self.strengths[self.a] - self.strengths[self.b] + gap)

    def oracle(self) -> Votes:
        """Cast every vote as the share of all voters who would cast it for side A: no noise."""
        return self._votes(self._mean_probability())

    def _votes(self, score: Floats) -> Votes:
        return Votes(self.models, self.a, self.b, score, self.voter)

    def _mean_probability(self) -> Floats:
        gap = self.strengths[self.a] - self.strengths[self.b]
        pairs, place = np.unique(gap, return_inverse=True)
        shifted = pairs[:, None] + np.sqrt(2) * self.taste * _NODES
        mean = _probability(shifted) @ (_WEIGHTS / _WEIGHTS.sum())
        return np.asarray((1 - self.tie_rate) * mean[place] + self.tie_rate / 2)


def _taste(votes: Votes, theta: Floats) -> float:
    if votes.voter is None or not (votes.score != 0.5).any():
        return 0.0
    rows = VoteRows.scored(votes.models, votes.a, votes.b, votes.score, votes.voter)
    return fit_taste_sd(rows, theta)


def _probability(gap: Floats) -> Floats:
    return np.asarray(1 / (1 + np.exp(-gap)))


LEVEL = 0.95
ROUNDS = 200
_EQUAL = 1e-9


@dataclass(frozen=True, slots=True, eq=False)
class Rated:
    """What a measure says of votes.

    Attributes
    ----------
    theta : ndarray of shape (n_models,)
        In nats, summing to zero.
    half : ndarray of shape (n_models,), or None
        Half widths of 95 % intervals; None where the measure gives none.
    above : ndarray of shape (n_models, n_models), bool
        Where it claims that the row is better than the column: at 95 % a pair, and every
        difference if it gives no interval.
    """

    theta: Floats
    half: Floats | None
    above: Bools


Rate = Callable[[Votes, np.random.Generator], Rated]
Strengths = Callable[[Votes, np.random.Generator], Floats]


@dataclass(frozen=True, slots=True)
class Measure:
    """A way to rate, and the same with other choices that should come to the same.

    Attributes
    ----------
    knobs : mapping of str to Rate
        By what was chosen otherwise.
    strengths : callable, optional
        The same ``theta`` without intervals, where those take time of their own.
    """

    name: str
    rate: Rate
    knobs: Mapping[str, Rate]
    strengths: Strengths | None = None

    def theta(self, votes: Votes, rng: np.random.Generator) -> Floats:
        """Return the strengths of the models, where nobody asks for their intervals."""
        if self.strengths is not None:
            return self.strengths(votes, rng)
        return self.rate(votes, rng).theta


def by_bradley_terry(
    votes: Votes, rng: np.random.Generator, *, ties: Ties = "half", independent: bool = False
) -> Rated:
    """Rate as the board does: intervals by leaving out one voter at a time, Student's t.

    Parameters
    ----------
    independent : bool
        Take every vote as a voter's only one, also where voters are known.
    """
    data = votes.comparisons()
    fitted = fit(data, ties=ties)
    by_voter = data.voter is not None and not independent
    inference = infer(fitted, data, ("voter",) if by_voter else ())
    pairs = inference.pairs
    bar = pairs.table(pairs.each.half_width(LEVEL))
    gap = fitted.theta[:, None] - fitted.theta
    half = inference.ratings().half_width(LEVEL)
    return Rated(fitted.theta, half, gap > np.maximum(bar, _EQUAL))


def bradley_terry_strengths(votes: Votes, rng: np.random.Generator) -> Floats:
    """Return the strengths of `by_bradley_terry`, a tie half a win."""
    return fit(votes.comparisons()).theta


def by_bootstrap(votes: Votes, rng: np.random.Generator) -> Rated:
    """Rate by Bradley-Terry with percentile intervals over voters drawn at random."""
    data = votes.comparisons()
    fitted: Fit = fit(data)
    cluster: Cluster | None = None if data.voter is None else "voter"
    drawn = bootstrap(fitted, data, rounds=ROUNDS, cluster=cluster, rng=rng)
    lower, upper = drawn.interval(LEVEL)
    with np.errstate(invalid="ignore"):  # two models that beat all others cannot be compared
        gaps = drawn.theta[:, :, None] - drawn.theta[:, None, :]
    least = np.nan_to_num(gaps, nan=-math.inf, posinf=math.inf, neginf=-math.inf)
    above = np.quantile(least, (1 - LEVEL) / 2, axis=0, method="lower") > _EQUAL
    return Rated(fitted.theta, (upper - lower) / 2, above)


def by_online_elo(votes: Votes, rng: np.random.Generator, *, k: float = 4.0) -> Rated:
    """Rate by one pass over the votes, in the order in which they were cast, without intervals."""
    votes.comparisons()  # each model has a vote
    points = online_elo(votes.a, votes.b, votes.score, len(votes.models), k=k, start=0.0)
    theta = points * math.log(10) / 400
    return Rated(theta, None, theta[:, None] - theta > _EQUAL)


def in_another_order(rate: Rate) -> Rate:
    """Return the same way to rate, of the votes in a random order."""
    return lambda votes, rng: rate(votes.shuffled(rng), rng)


BRADLEY_TERRY = Measure(
    "Bradley-Terry, intervals by voter",
    by_bradley_terry,
    {
        "ties by Davidson": partial(by_bradley_terry, ties="davidson"),
        "ties by Rao-Kupper": partial(by_bradley_terry, ties="rao-kupper"),
        "intervals by bootstrap": by_bootstrap,
        "another order of votes": in_another_order(by_bradley_terry),
    },
    bradley_terry_strengths,
)
INDEPENDENT = Measure(
    "Bradley-Terry, votes as independent",
    partial(by_bradley_terry, independent=True),
    {
        "ties by Davidson": partial(by_bradley_terry, ties="davidson", independent=True),
        "intervals by voter": by_bradley_terry,
        "another order of votes": in_another_order(partial(by_bradley_terry, independent=True)),
    },
    bradley_terry_strengths,
)
ONLINE_ELO = Measure(
    "Online Elo",
    by_online_elo,
    {
        "another order of votes": in_another_order(by_online_elo),
        "half as many points at stake": partial(by_online_elo, k=2.0),
    },
)
MEASURES = (BRADLEY_TERRY, INDEPENDENT, ONLINE_ELO)
