"""Whether a measure tells entrants apart, over and above how it moves with time."""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy  # its submodules load on first use

from judge.probe.reliability import checked, not_rounding
from rating.errors import DataError
from rating.typing import Floats

COMFORTABLE = 2.0
"""Signal over noise from which entrants are told apart; at 1 it is a coin flip."""
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
    >>> found = signal_to_noise(np.stack([10 + wander, np.zeros(6)]))
    >>> round(found.signal, 3), round(found.noise, 3)
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
