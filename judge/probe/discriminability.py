"""Whether a measure tells entrants apart: signal over noise, and shares of the variance."""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy  # its submodules load on first use

from judge.probe.reliability import checked, not_rounding
from rating.errors import DataError
from rating.typing import Floats

COMFORTABLE = 2.0
"""Signal over noise from which entrants count as different; at 1 it is a coin flip."""
DEGREE = 2
_MOST_APART = 1e4
"""Largest distance of entrants that the inverse of the noncentral F distribution tells."""


@dataclass(frozen=True, slots=True)
class SignalToNoise:
    """How far entrants lie apart, in units of how far they wander.

    Attributes
    ----------
    signal : float
        Sd over entrants of their mean score.
    noise : float
        Pooled sd of what is left of each entrant's scores after its trend and after what all
        entrants share, over the root of how many snapshots a score is the mean of.
    ratio : float or None
        ``signal / noise``; None where nothing wanders, which leaves nothing to divide by.
    lower, upper : float or None
        95 % interval of the ratio for such entrants at other moments, if noise is normal;
        ``upper`` is None where it is beyond what can be computed.
    n_entrants, n_snapshots : int
    """

    signal: float
    noise: float
    ratio: float | None
    lower: float | None
    upper: float | None
    n_entrants: int
    n_snapshots: int

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON."""
        return {name: getattr(self, name) for name in self.__slots__}


def signal_to_noise(scores: Floats, *, averaged: int = 1) -> SignalToNoise:
    """Compare the spread of entrants with how each wanders around its own parabola.

    Noise is ``sqrt(sum of squared residuals / ((n_entrants - 1) (n_snapshots - 3)))`` after a
    least-squares polynomial of degree 2 in time for each entrant: three coefficients each, which
    the denominator takes off, so that a longer look does not make the noise larger. Residuals are
    first taken from their mean over entrants: what moves all of them sets none apart, and scores
    that sum to a constant would else seem quieter than they are. (The source takes nothing off,
    and divides by n_entrants.)

    The interval is that of the noncentral F distribution: ``averaged (1 + nc / (n_entrants - 1)) /
    n_snapshots`` is the squared ratio that entrants ``nc`` apart have on average.

    Parameters
    ----------
    scores : ndarray of shape (n_entrants, n_snapshots)
        At moments that lie equally apart.
    averaged : int
        Snapshots that the score in use is the mean of; with all of them, entrants that are alike
        have a ratio around one: what is left of the noise is all that sets them apart.

    Raises
    ------
    DataError
        With fewer than two entrants or four snapshots.

    References
    ----------
    .. [1] D. Chanin, "Measuring what sparse autoencoder benchmarks measure", arXiv 2605.18229.

    Examples
    --------
    Two entrants, ten points apart; one wanders by a point to and fro.

    >>> wander = np.array([1.0, -1, 1, -1, 1, -1])
    >>> ratio = signal_to_noise(np.stack([10 + wander, np.zeros(6)]))
    >>> round(ratio.signal, 3), round(ratio.noise, 3)
    (7.071, 0.956)
    """
    n_entrants, n_snapshots = checked(scores, "entrants", "snapshots").shape
    if n_entrants < 2 or n_snapshots < DEGREE + 2:
        msg = f"{n_entrants} entrants at {n_snapshots} moments: give 2 at {DEGREE + 2} or more."
        raise DataError(msg)
    signal = float(scores.mean(axis=1).std(ddof=1))
    left = detrended(scores - scores.mean(axis=0))
    free = (n_entrants - 1) * (n_snapshots - DEGREE - 1)
    noise = not_rounding(math.sqrt(float((left**2).sum()) / free / averaged), scores)
    if not noise:
        return SignalToNoise(signal, noise, None, None, None, *scores.shape)
    part, ratio = averaged / n_snapshots, signal / noise
    lower, upper = (
        None if apart is None else math.sqrt(part * (1 + apart / (n_entrants - 1)))
        for apart in _apart(ratio**2 / part, n_entrants - 1, free)
    )
    return SignalToNoise(signal, noise, ratio, lower, upper, *scores.shape)


def _apart(f: float, df: int, free: int) -> tuple[float, float | None]:
    """Return the ends of the noncentrality of an F statistic; None for an end out of reach."""
    low, high = (float(scipy.special.ncfdtrinc(df, free, p, f)) for p in (0.975, 0.025))
    return low, high if high < _MOST_APART else None


def detrended(scores: Floats) -> Floats:
    """Return what is left of each row after its least-squares parabola."""
    time = np.linspace(-1, 1, scores.shape[1])
    basis, _ = np.linalg.qr(np.vander(time, DEGREE + 1))
    return np.asarray(scores - (scores @ basis) @ basis.T)


NULL_DRAWS = 20_000
EXCHANGES = 999
_DRAWN_AT_ONCE = 2_000_000
MOST_P = 0.05


@dataclass(frozen=True, slots=True)
class VarianceShares:
    """Shares of the variance, and how likely the entrants' share is if none differs.

    Attributes
    ----------
    entrant, seed, snapshot : float
        In [0, 1], summing to one.
    p : float
        Chance of such a share of the entrants or a larger one where all scores are one noise.
    p_exchanged : float
        The same where entrants are exchanged at random at each snapshot.
    shape : tuple of int
        Entrants, seeds, snapshots.
    """

    entrant: float
    seed: float
    snapshot: float
    p: float
    p_exchanged: float
    shape: tuple[int, int, int]

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON."""
        return {name: getattr(self, name) for name in self.__slots__} | {"shape": [*self.shape]}


def variance_shares(
    scores: Floats, *, rng: np.random.Generator, draws: int = NULL_DRAWS
) -> VarianceShares:
    """Share out the variance of scores over what varied.

    With scores of entrant v, seed s and snapshot t, and all variances of ddof 1::

        V_entrant  = Var_v (mean over s and t)
        V_seed     = mean_v Var_s (mean over t)
        V_snapshot = mean_{v, s} Var_t

    each over their sum. The entrants' share is not zero where entrants are alike: what is left of
    the noise after a mean stays in it. So it is held against the same design filled with noise,
    ``p = (1 + #{null >= share}) / (draws + 1)``. That null takes every score for a look of its
    own. Where seeds see the same data, as reruns do, their noise is shared, and the mean over
    seeds takes less of it away: so a second null exchanges the entrants at each snapshot, all
    seeds together, and keeps whatever goes together within it. It takes snapshots as independent.

    Parameters
    ----------
    scores : ndarray of shape (n_entrants, n_seeds, n_snapshots)

    Raises
    ------
    DataError
        Unless there are two or more of each, or if no score differs from another.

    References
    ----------
    .. [1] D. Chanin, "Measuring what sparse autoencoder benchmarks measure", arXiv 2605.18229,
       whose null of 4 entrants, 3 seeds and 9 snapshots this gives.
    """
    shape = _checked_shape(checked(scores, "entrants", "seeds", "snapshots").shape)
    parts = _parts(scores)
    if not parts.any():
        raise DataError(f"All scores are {scores.flat[0]}: there is no variance to share out.")
    entrant, seed, snapshot = (float(part) for part in parts / parts.sum())
    null = null_entrant_shares(shape, rng=rng, draws=draws)
    exchanged = exchanged_entrant_shares(scores, rng=rng, draws=min(draws, EXCHANGES))
    return VarianceShares(
        entrant, seed, snapshot, _p(null, entrant), _p(exchanged, entrant), shape
    )


def null_entrant_shares(
    shape: tuple[int, int, int], *, rng: np.random.Generator, draws: int = NULL_DRAWS
) -> Floats:
    """Draw the entrants' share where every score is the same normal noise, shape (draws,).

    For V entrants, S seeds and T snapshots of unit noise the three variances are independent::

        V_entrant  ~ chi2(V - 1) / ((V - 1) S T)
        V_seed     ~ chi2(V (S - 1)) / (V (S - 1) T)
        V_snapshot ~ chi2(V S (T - 1)) / (V S (T - 1))

    Examples
    --------
    >>> shares = null_entrant_shares((4, 3, 9), rng=np.random.default_rng(1))
    >>> round(float((shares > 0.1).mean()), 3)
    0.021
    """
    v, s, t = _checked_shape(shape)
    df = np.array([v - 1, v * (s - 1), v * s * (t - 1)])
    parts = rng.chisquare(df, (draws, 3)) / (df * [s * t, t, 1])
    return np.asarray(parts[:, 0] / parts.sum(axis=1))


def exchanged_entrant_shares(
    scores: Floats, *, rng: np.random.Generator, draws: int = EXCHANGES
) -> Floats:
    """Draw the entrants' share with entrants exchanged at each snapshot, shape (draws,)."""
    v, _, t = scores.shape
    by_snapshot = scores.transpose(2, 0, 1)
    at_once = max(1, _DRAWN_AT_ONCE // scores.size)
    shares = []
    for start in range(0, draws, at_once):
        n = min(at_once, draws - start)
        order = rng.permuted(np.tile(np.arange(v), (n, t, 1)), axis=2)
        given = by_snapshot[np.arange(t)[:, None], order]
        parts = _parts(given.transpose(0, 2, 3, 1))
        shares.append(parts[0] / parts.sum(axis=0))
    return np.concatenate(shares)


def _p(null: Floats, share: float) -> float:
    return (1 + int((null >= share * (1 - 1e-12)).sum())) / (len(null) + 1)


def _parts(scores: Floats) -> Floats:
    """Return the variances by entrant, seed and snapshot, of designs along any first axes."""
    over_time = scores.mean(axis=-1)
    return np.stack(
        [
            over_time.mean(axis=-1).var(axis=-1, ddof=1),
            over_time.var(axis=-1, ddof=1).mean(axis=-1),
            scores.var(axis=-1, ddof=1).mean(axis=(-1, -2)),
        ]
    )


def _checked_shape(shape: tuple[int, ...]) -> tuple[int, int, int]:
    if min(shape) < 2:
        msg = f"{' x '.join(map(str, shape))} entrants, seeds and snapshots: give two of each."
        raise DataError(msg)
    entrants, seeds, snapshots = shape
    return entrants, seeds, snapshots
