"""Simulated arenas whose truth is known, and the ways to rate them that are audited."""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Self

import numpy as np

from rating import Cluster, Comparisons, bootstrap, fit_bradley_terry, infer
from rating.diagnosis.taste import fit_taste_sd
from rating.elo import online_elo
from rating.errors import NotIdentifiedError
from rating.fitting import Fit, fit
from rating.likelihood.objective import solve
from rating.likelihood.ties import A, B
from rating.outcome import Ties
from rating.rows import VoteRows
from rating.typing import Bools, Floats

_NODES, _WEIGHTS = np.polynomial.hermite_e.hermegauss(41)


def _counted(votes: VoteRows) -> Comparisons:
    """Count the votes; a split one is a part of a vote for each side.

    Raises
    ------
    NotIdentifiedError
        If there is no vote on some model.
    """
    voter = votes.groups.get("voter")
    if "score" in votes.numbers:
        data = Comparisons.from_codes(
            votes.models,
            np.tile(votes.a, 2),
            np.tile(votes.b, 2),
            np.repeat([A, B], votes.n),
            weight=np.concatenate([votes.score, 1 - votes.score]),
            voter=None if voter is None else np.tile(voter, 2),
        )
    else:
        data = votes.comparisons(voter=voter)
    if data.models != votes.models:
        missing = ", ".join(sorted({*votes.models} - {*data.models}))
        raise NotIdentifiedError(f"Of {votes.n} votes none is on {missing}.")
    return data


@dataclass(frozen=True, slots=True, eq=False)
class World:
    """A simulated arena: battles and voters stay, and the votes are drawn anew each time.

    A voter sees model m at ``strengths[m] + taste * u[m]`` with u standard normal, ties a share
    ``tie_rate`` of the battles whatever the gap, and else prefers by Bradley-Terry.

    Attributes
    ----------
    battles : VoteRows
        Who votes on which models; where voters are not known, each vote has a taste of its own.
        How these votes went does not count.
    strengths : ndarray of shape (n_models,)
        In nats.
    taste : float
        In nats.
    """

    battles: VoteRows
    strengths: Floats
    taste: float
    tie_rate: float

    @classmethod
    def like(cls, votes: VoteRows) -> Self:
        """Make an arena like one that was seen: its battles, its fitted strengths and tastes.

        Raises
        ------
        NotIdentifiedError, rating.NotIdentifiedError
            If the votes determine no strengths.
        """
        theta = fit_bradley_terry(_counted(votes)).theta
        is_tie = votes.score == 0.5
        tastes_show = "voter" in votes.groups and not is_tie.all()
        taste = fit_taste_sd(votes, theta) if tastes_show else 0.0
        return cls(votes, theta, taste, float(is_tie.mean()))

    def truth(self) -> Floats:
        """Return the strengths that Bradley-Terry would reach with endless voters, in nats.

        Those of the probabilities of all voters together, under the pairs as they were shown:
        tastes and ties draw them together.
        """
        k, a, b = len(self.strengths), self.battles.a, self.battles.b
        probability = self._mean_probability()
        wins = np.zeros(k * k)
        wins += np.bincount(a * k + b, probability, k * k)
        wins += np.bincount(b * k + a, 1 - probability, k * k)
        return solve(wins.reshape(k, k), np.zeros(k)).theta

    def cast(self, rng: np.random.Generator) -> VoteRows:
        """Draw voters' tastes and their votes."""
        liking = self.liking(rng)
        draw = rng.random(self.battles.n)
        score = np.where(draw < (1 - self.tie_rate) * _probability(liking), 1.0, 0.0)
        return self.battles.with_scores(np.where(draw >= 1 - self.tie_rate, 0.5, score))

    def liking(self, rng: np.random.Generator) -> Floats:
        """Draw tastes; return by how much each vote's voter likes side A better, in nats."""
        votes = self.battles
        gap = np.asarray(self.strengths[votes.a] - self.strengths[votes.b])
        if self.taste == 0:
            return gap
        voter = votes.groups.get("voter", np.arange(votes.n))
        taste = rng.normal(0, self.taste, (int(voter.max()) + 1, len(self.strengths)))
        return gap + (taste[voter, votes.a] - taste[voter, votes.b])

    def oracle(self) -> VoteRows:
        """Cast every vote as the share of all voters who would cast it for side A: no noise."""
        return self.battles.with_scores(self._mean_probability())

    def _mean_probability(self) -> Floats:
        gap = self.strengths[self.battles.a] - self.strengths[self.battles.b]
        pairs, place = np.unique(gap, return_inverse=True)
        shifted = pairs[:, None] + np.sqrt(2) * self.taste * _NODES
        mean = _probability(shifted) @ (_WEIGHTS / _WEIGHTS.sum())
        return np.asarray((1 - self.tie_rate) * mean[place] + self.tie_rate / 2)


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


Rate = Callable[[VoteRows, np.random.Generator], Rated]
Strengths = Callable[[VoteRows, np.random.Generator], Floats]


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

    def theta(self, votes: VoteRows, rng: np.random.Generator) -> Floats:
        """Return the strengths of the models, where nobody asks for their intervals."""
        if self.strengths is not None:
            return self.strengths(votes, rng)
        return self.rate(votes, rng).theta


def by_bradley_terry(
    votes: VoteRows, rng: np.random.Generator, *, ties: Ties = "half", independent: bool = False
) -> Rated:
    """Rate as the board does: intervals by leaving out one voter at a time, Student's t.

    Parameters
    ----------
    independent : bool
        Take every vote as a voter's only one, also where voters are known.
    """
    data = _counted(votes)
    fitted = fit(data, ties=ties)
    by_voter = data.voter is not None and not independent
    inference = infer(fitted, data, ("voter",) if by_voter else ())
    pairs = inference.pairs
    bar = pairs.table(pairs.each.half_width(LEVEL))
    gap = fitted.theta[:, None] - fitted.theta
    half = inference.ratings().half_width(LEVEL)
    return Rated(fitted.theta, half, gap > np.maximum(bar, _EQUAL))


def bradley_terry_strengths(votes: VoteRows, rng: np.random.Generator) -> Floats:
    """Return the strengths of `by_bradley_terry`, a tie half a win."""
    return fit(_counted(votes)).theta


def by_bootstrap(votes: VoteRows, rng: np.random.Generator) -> Rated:
    """Rate by Bradley-Terry with percentile intervals over voters drawn at random."""
    data = _counted(votes)
    fitted: Fit = fit(data)
    cluster: Cluster | None = None if data.voter is None else "voter"
    drawn = bootstrap(fitted, data, rounds=ROUNDS, cluster=cluster, rng=rng)
    lower, upper = drawn.interval(LEVEL)
    with np.errstate(invalid="ignore"):  # two models that beat all others cannot be compared
        gaps = drawn.theta[:, :, None] - drawn.theta[:, None, :]
    least = np.nan_to_num(gaps, nan=-math.inf, posinf=math.inf, neginf=-math.inf)
    above = np.quantile(least, (1 - LEVEL) / 2, axis=0, method="lower") > _EQUAL
    return Rated(fitted.theta, (upper - lower) / 2, above)


def by_online_elo(votes: VoteRows, rng: np.random.Generator, *, k: float = 4.0) -> Rated:
    """Rate by one pass over the votes, in the order in which they were cast, without intervals."""
    _counted(votes)  # each model has a vote
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
