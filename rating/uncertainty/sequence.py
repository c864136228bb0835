"""Intervals that may be looked at after every voter: confidence sequences."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from rating.errors import DataError
from rating.typing import Floats, Ints

MIN_VOTERS = 30


@dataclass(frozen=True, slots=True, eq=False)
class ConfidenceSequence:
    """A running mean with an interval that is right at all voters at once.

    Attributes
    ----------
    mean, lower, upper : ndarray of shape (n_voters,)
        After each voter. The bounds are infinite over the first `MIN_VOTERS`
        voters, whose spread is not known well enough.
    rho : float
        Tuning constant, in 1 / sqrt(voters).
    level : float
        Chance that the interval holds the truth after every voter.
    """

    mean: Floats
    lower: Floats
    upper: Floats
    rho: float
    level: float

    def separated_at(self, value: float) -> int | None:
        """Return the number of voters after which ``value`` was first ruled out, or None."""
        out = np.flatnonzero((self.lower > value) | (self.upper < value))
        return int(out[0]) + 1 if out.size else None

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON, an unbounded end as None."""
        return {
            "mean": self.mean.tolist(),
            "lower": [x if np.isfinite(x) else None for x in self.lower.tolist()],
            "upper": [x if np.isfinite(x) else None for x in self.upper.tolist()],
            "rho": self.rho,
            "level": self.level,
        }


def confidence_sequence(
    total: Floats,
    votes: Floats,
    *,
    planned: int,
    level: float = 0.95,
) -> ConfidenceSequence:
    """Follow a win rate voter by voter, by an interval that allows for peeking.

    After t voters, with totals s and counts n, the rate is
    ``r = sum(s) / sum(n)``, its spread per voter
    ``sd ** 2 = sum((s - r * n) ** 2) / (t - 1) / mean(n) ** 2``, and::

        r +- sd * sqrt(2 * (t * rho**2 + 1) / (t * rho)**2 * log(sqrt(t * rho**2 + 1) / alpha))

    A fixed 95 % interval that is looked at after every batch of votes will
    exclude the truth at some look or other; this one does so in at most 5 %
    of all runs, at any number of looks, for large t.

    The unit is the voter: one row holds all that a voter gave, and enters
    when it is complete. Votes as rows would be taken as independent and fail
    where voters have tastes.

    Parameters
    ----------
    total : ndarray of shape (n_voters,)
        Each voter's total score for a model (or for one of a pair), voters in
        the order in which they came.
    votes : ndarray of shape (n_voters,)
        Each voter's number of votes behind the total, positive.
    planned : int
        Voters at which the interval is to be tightest.

    Raises
    ------
    DataError
        For unequal lengths, a row that is not finite or has no votes, or
        ``planned`` or ``level`` out of range.

    References
    ----------
    .. [1] I. Waudby-Smith, D. Arbour, R. Sinha, E. H. Kennedy and A. Ramdas,
       "Time-uniform central limit theory and asymptotic confidence
       sequences", Annals of Statistics 52(6), 2024, pp. 2613-2640, theorem
       2.2, and its appendix on rho. There the mean is of single
       observations; here it is a ratio of means, linearised, and the first
       `MIN_VOTERS` voters make no claim.

    Examples
    --------
    >>> wins = np.tile([1.0, 1.0, 1.0, 0.0], 100)
    >>> found = confidence_sequence(wins, np.ones(400), planned=400)
    >>> found.separated_at(0.5)
    39
    """
    _check(total, votes, planned, level)
    t = np.arange(1, len(total) + 1)
    mean = total.cumsum() / votes.cumsum()
    square = (total**2).cumsum() - 2 * mean * (total * votes).cumsum()
    square += mean**2 * (votes**2).cumsum()
    sd = np.sqrt(square.clip(min=0) / np.maximum(t - 1, 1)) * t / votes.cumsum()
    rho = tightest_at(planned, level=level)
    reach = sd * boundary(t, rho, level=level)
    reach[:MIN_VOTERS] = np.inf
    return ConfidenceSequence(mean, mean - reach, mean + reach, rho, level)


def boundary(t: Ints | Floats, rho: float, *, level: float = 0.95) -> Floats:
    """Return how many spreads of one voter the mean of t voters may lie off, at all t at once."""
    grown = t * rho**2 + 1
    square = 2 * grown / (t * rho) ** 2 * np.log(np.sqrt(grown) / (1 - level))
    return np.asarray(np.sqrt(square))


def tightest_at(planned: int, *, level: float = 0.95) -> float:
    """Return the rho that makes a confidence sequence tightest after ``planned`` voters.

    ``sqrt((-2 ln alpha + ln(1 - 2 ln alpha)) / planned)``, nearly.

    Examples
    --------
    >>> round(tightest_at(2000), 4)
    0.063
    """
    log_alpha = np.log1p(-level)
    return float(np.sqrt((-2 * log_alpha + np.log(1 - 2 * log_alpha)) / planned))


def _check(total: Floats, votes: Floats, planned: int, level: float) -> None:
    if len(total) != len(votes):
        raise DataError(f"Unequal columns: total {len(total)}, votes {len(votes)}.")
    bad = np.flatnonzero(~(np.isfinite(total) & np.isfinite(votes) & (votes > 0)))
    if bad.size:
        row = bad[0]
        raise DataError(
            f"Voter {row} has total {total[row]} over {votes[row]} votes; leave such rows out."
        )
    if planned < 1:
        raise DataError(f"planned must be at least one voter, not {planned}.")
    if not 0 < level < 1:
        raise DataError(f"level must lie between 0 and 1, not {level}.")
