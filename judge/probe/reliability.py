"""Whether a measure stays the same: over reruns, and over choices that should not matter."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy  # its submodules load on first use

from judge.studies.correlations import MIN_MODELS, correlations
from rating.errors import DataError
from rating.typing import Bools, Floats, Ints
from rating.uncertainty.student import quantile

MOST_NOISE = 1 / 3
"""Of a score's standard error: an interval that leaves reruns out is then 5 % too narrow."""


@dataclass(frozen=True, slots=True)
class RerunNoise:
    """How far the scores of a measure move when nothing but its seed changes.

    Attributes
    ----------
    n_entrants, n_runs : int
    sd : float
        Of one run, pooled over entrants, in the units of the scores.
    sd_lower, sd_upper : float
        95 % interval of ``sd`` if the noise is normal, alike for all entrants and independent.
    cv : float or None
        ``sd`` over the mean size of the scores; None where that is zero.
    smallest : float
        Smallest reliable difference of two scores from one run each, 95 %.
    smallest_averaged : float
        The same for two scores that are each the mean of all these runs.
    """

    n_entrants: int
    n_runs: int
    sd: float
    sd_lower: float
    sd_upper: float
    cv: float | None
    smallest: float
    smallest_averaged: float

    def over(self, se: float) -> float:
        """Return ``sd / se``: the part of a score's standard error that a rerun alone makes.

        Parameters
        ----------
        se : float
            Of a score. Where it is zero the score is promised to be exact, and any noise is
            endlessly more.
        """
        if se == 0:
            return math.inf if self.sd else 0.0
        return self.sd / se

    def over_interval(self, se: float, df: int) -> tuple[float, float]:
        """Return the 95 % interval of `over`: that of a ratio of two normal spreads.

        The noise has ``(n_entrants - 1) (n_runs - 1)`` degrees of freedom, for strengths that sum
        to zero move against each other. Without any noise the ratio is zero, and no interval.

        Parameters
        ----------
        df : int
            Degrees of freedom of ``se``.
        """
        ratio = self.over(se)
        if not self.sd:
            return 0.0, 0.0
        own = max(self.n_entrants - 1, 1) * (self.n_runs - 1)
        low, high = (float(scipy.special.fdtri(own, df, tail)) for tail in (0.975, 0.025))
        return ratio / math.sqrt(low), ratio / math.sqrt(high)

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON."""
        return {name: getattr(self, name) for name in self.__slots__}


def difference_multiplier(df: int, averaged: int = 1, *, level: float = 0.95) -> float:
    """Return how many standard deviations apart two scores must lie not to be noise.

    ``t_{(1 + level) / 2, df} * sqrt(2 / averaged)``: two scores, each the mean of ``averaged``
    runs, differ by noise of variance ``2 s^2 / averaged``, and s is known with ``df`` degrees of
    freedom: n - 1 from n runs of one entrant; ``2 (S - 1)`` from S runs of each of the two.

    Raises
    ------
    DataError
        Without a degree of freedom, or for a mean over no run.

    References
    ----------
    .. [1] D. Chanin, "Measuring what sparse autoencoder benchmarks measure", arXiv 2605.18229.
       Its text prints about 1.6 s for S = 3 and about 1.0 s for S = 5, which its own formula
       does not give: 1.6 is the normal quantile for S = 3, and the formula says 2.267 and 1.458.

    Examples
    --------
    Five runs of one entrant; then three, and five, runs of each of two entrants.

    >>> [round(difference_multiplier(*given), 3) for given in ((4, 1), (4, 3), (8, 5))]
    [3.926, 2.267, 1.458]
    """
    if df < 1 or averaged < 1:
        raise DataError(f"A spread needs two runs, and a mean one: df {df}, averaged {averaged}.")
    return quantile(level, df) * math.sqrt(2 / averaged)


def rerun_noise(scores: Floats, *, level: float = 0.95) -> RerunNoise:
    """Measure the noise of reruns.

    ``sd^2`` is the mean over entrants of the variance over runs (ddof 1), with
    ``df = n_entrants (n_runs - 1)``; so all entrants together tell how noisy the measure is.

    Parameters
    ----------
    scores : ndarray of shape (n_entrants, n_runs)
        What each run of the measure gave each entrant, all else equal.

    Raises
    ------
    DataError
        With fewer than two runs, or a score that is not finite.

    Examples
    --------
    >>> noise = rerun_noise(np.array([[1.0, 2.0, 3.0, 4.0, 5.0]]))
    >>> round(noise.sd, 4), round(noise.smallest / noise.sd, 3)
    (1.5811, 3.926)
    """
    n_entrants, n_runs = checked(scores, "entrants", "runs").shape
    if n_runs < 2:
        raise DataError(f"{n_runs} run tells nothing of reruns: give two or more.")
    df = n_entrants * (n_runs - 1)
    sd = not_rounding(math.sqrt(float(scores.var(axis=1, ddof=1).mean())), scores)
    size = float(np.abs(scores.mean(axis=1)).mean())
    tails = scipy.special.chdtri(df, np.array([(1 - level) / 2, (1 + level) / 2]))
    lower, upper = (sd * math.sqrt(df / float(tail)) for tail in tails)
    return RerunNoise(
        n_entrants=n_entrants,
        n_runs=n_runs,
        sd=sd,
        sd_lower=lower,
        sd_upper=upper,
        cv=sd / size if size else None,
        smallest=difference_multiplier(df, level=level) * sd,
        smallest_averaged=difference_multiplier(df, n_runs, level=level) * sd,
    )


def not_rounding(spread: float, scores: Floats) -> float:
    """Return a spread of scores, or zero if arithmetic alone leaves as much."""
    return spread if spread > 1e-12 * float(np.abs(scores).max()) else 0.0


def checked(scores: Floats, *axes: str) -> Floats:
    """Return scores; raises `DataError` unless they have these axes, entries, and are finite."""
    if scores.ndim != len(axes) or not scores.size:
        shape = " x ".join(axes)
        raise DataError(f"Scores of shape {scores.shape}: give an array of {shape}, not empty.")
    if not np.isfinite(scores).all():
        where = tuple(int(i) for i in np.argwhere(~np.isfinite(scores))[0])
        raise DataError(f"The score at {where} is {scores[where]}: leave that entrant out.")
    return scores


LEAST_CORRELATION = 0.9


@dataclass(frozen=True, slots=True, eq=False)
class Consistency:
    """How boards of the same votes agree.

    Attributes
    ----------
    boards : tuple of str, length n_boards
    spearman : ndarray of shape (n_boards, n_boards)
        NaN where a board is flat, or with fewer than three entrants.
    contradictions : ndarray of shape (n_boards, n_boards), int64
        Pairs of entrants that both boards claim to tell apart, in opposite orders.
    same_winner : float
        Share of the other boards with the first one's winner.
    """

    boards: tuple[str, ...]
    spearman: Floats
    contradictions: Ints
    same_winner: float

    @property
    def lowest(self) -> float | None:
        """The lowest correlation of two boards; None where none is defined."""
        known = self.spearman[~np.isnan(self.spearman) & ~np.eye(len(self.boards), dtype=bool)]
        return float(known.min()) if len(known) else None

    @property
    def most_contradictions(self) -> int:
        """Of any two boards."""
        return int(self.contradictions.max())

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON."""
        return {
            "boards": list(self.boards),
            "spearman": [
                [None if math.isnan(x) else x for x in row] for row in self.spearman.tolist()
            ],
            "contradictions": self.contradictions.tolist(),
            "same_winner": self.same_winner,
        }


def consistency(boards: Sequence[str], theta: Floats, above: Bools) -> Consistency:
    """Compare boards by pairs.

    Parameters
    ----------
    boards : sequence of str, length n_boards
        What was chosen for each; the first is the one that is shown.
    theta : ndarray of shape (n_boards, n_entrants)
        Scores; only their order is used, so boards may have scales of their own.
    above : ndarray of shape (n_boards, n_entrants, n_entrants), bool
        Where a board claims that the row is better than the column.

    Raises
    ------
    DataError
        With fewer than two boards.

    Examples
    --------
    Two boards in opposite orders, of which the second is sure of nothing.

    >>> theta = np.array([[1.0, 0, -1], [-1.0, 0, 1]])
    >>> sure = np.array([[[0, 1, 1], [0, 0, 1], [0, 0, 0]], np.zeros((3, 3))], dtype=bool)
    >>> agreement = consistency(["shown", "other"], theta, sure)
    >>> agreement.lowest, agreement.most_contradictions, agreement.same_winner
    (-1.0, 0, 0.0)
    """
    n = len(boards)
    if n < 2:
        raise DataError(f"{n} board has nothing to be compared with: give two or more.")
    winners = theta.argmax(axis=1)
    against = np.einsum("aij,bji->ab", above.astype(np.int64), above.astype(np.int64))
    return Consistency(
        boards=tuple(boards),
        spearman=np.array([[spearman(one, other) for other in theta] for one in theta]),
        contradictions=against,
        same_winner=float((winners[1:] == winners[0]).mean()),
    )


def spearman(one: Floats, other: Floats) -> float:
    """Return the rank correlation; NaN where a column is flat or shorter than three."""
    return correlations(one, other).spearman if len(one) >= MIN_MODELS else math.nan
