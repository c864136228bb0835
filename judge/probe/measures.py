"""Ways to rate models that can be audited, each with the choices that should not matter to it."""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial

import numpy as np

from judge.probe.worlds import Votes
from rating import Cluster, bootstrap, infer
from rating.elo import online_elo
from rating.fitting import Fit, fit
from rating.options import Ties
from rating.typing import Bools, Floats

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
    found = fit(data, ties=ties)
    by_voter = data.voter is not None and not independent
    inference = infer(found, data, ("voter",) if by_voter else ())
    pairs = inference.pairs
    bar = pairs.table(pairs.each.half_width(LEVEL))
    gap = found.theta[:, None] - found.theta
    half = inference.ratings().half_width(LEVEL)
    return Rated(found.theta, half, gap > np.maximum(bar, _EQUAL))


def bradley_terry_strengths(votes: Votes, rng: np.random.Generator) -> Floats:
    """Return the strengths of `by_bradley_terry`, a tie half a win."""
    return fit(votes.comparisons()).theta


def by_bootstrap(votes: Votes, rng: np.random.Generator) -> Rated:
    """Rate by Bradley-Terry with percentile intervals over voters drawn at random."""
    data = votes.comparisons()
    found: Fit = fit(data)
    cluster: Cluster | None = None if data.voter is None else "voter"
    drawn = bootstrap(found, data, rounds=ROUNDS, cluster=cluster, rng=rng)
    lower, upper = drawn.interval(LEVEL)
    with np.errstate(invalid="ignore"):  # two models that beat all others cannot be compared
        gaps = drawn.theta[:, :, None] - drawn.theta[:, None, :]
    least = np.nan_to_num(gaps, nan=-math.inf, posinf=math.inf, neginf=-math.inf)
    above = np.quantile(least, (1 - LEVEL) / 2, axis=0, method="lower") > _EQUAL
    return Rated(found.theta, (upper - lower) / 2, above)


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
