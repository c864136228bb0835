"""The largest t statistic over all pairs of models, when whole clusters change their sign."""

import numpy as np

from rating.typing import Floats, Ints
from rating.uncertainty.jackknife import LeftOut

DRAWS = 999
WILD_UP_TO = 100
"""Models beyond which the maximum is drawn from a multivariate t, as in `ranks`."""
CLUSTERS_AT_ONCE = 2000
CHUNK = 1_000_000


class SignSums:
    """What the largest statistic needs of the clusters, summed as each is left out.

    The score of cluster c at the fit, ``s_c``, is too small where c has pulled
    the fit to itself; ``z_c = (I - H_c H^-)^-1 s_c`` undoes that. A draw
    gives every cluster the score ``e_c z_c``, ``e_c`` +1 or -1, and keeps the
    fit as the truth. One Newton step from there::

        delta = sum_c H^- e_c z_c = sum_c e_c d_c

    where ``d_c = (H - H_c)^- s_c = H^- z_c`` is how far the parameters move
    without c. Estimating delta projects the scores: at the new fit that of c
    is ``e_c z_c - H_c delta``, and leaving c out there moves the parameters by
    ``(H - H_c)^-`` times that. With ``H_c = w_c H``, w_c the cluster's share
    of the information, this is ``(e_c d_c - w_c delta) / (1 - w_c)``. So, for
    the contrast a_c of d_c between two models and N of delta::

        T = |N| / sqrt(sum_c (e_c a_c - w_c N)^2 / (1 - w_c)^2)

    the same statistic as the leaderboard's, whose squared error is
    ``sum_c a_c^2`` (CR3); `DRAWS` draws of its maximum over pairs.

    Where we deviate: the literature tests one contrast at a time, and has no
    need of ``H_c = w_c H``. With each cluster's own H_c the bar is .3 to .4 %
    higher on the board of 10 models and 200 uneven voters that
    docs/statistics.md calls D1.

    References
    ----------
    .. [1] P. Kline and A. Santos, "A score based approach to wild bootstrap
       inference", Journal of Econometric Methods 1(1), 2012, pp. 23-41.
    .. [2] J. G. MacKinnon, M. Ø. Nielsen and M. D. Webb, "Fast and reliable
       jackknife and bootstrap methods for cluster-robust inference", Journal
       of Applied Econometrics 38(5), 2023, pp. 671-694 (the scores z_c: their
       bootstrap "S").
    """

    def __init__(self, n_models: int, rng: np.random.Generator, draws: int = DRAWS) -> None:
        self._rng = rng
        self.clusters = 0
        self.spread = np.zeros((n_models, n_models))  # sum d d'
        self.widened = np.zeros((n_models, n_models))  # sum d d' / (1 - w)^2
        self.delta = np.zeros((draws, n_models))  # sum e d
        self.crossed = np.zeros((draws, n_models))  # sum e d w / (1 - w)^2
        self.projected = 0.0  # sum w^2 / (1 - w)^2

    def add(self, left_out: LeftOut) -> None:
        """Give every cluster a sign in every draw."""
        k = len(self.spread)
        for first in range(0, len(left_out.clusters), CLUSTERS_AT_ONCE):
            part = slice(first, first + CLUSTERS_AT_ONCE)
            shift, share = left_out.shift[part, :k], left_out.share[part]
            widening = 1 / (1 - np.minimum(share, 1 - 1e-9)) ** 2
            sign = self._rng.integers(2, size=(len(self.delta), len(share))) * 2.0 - 1.0
            self.clusters += int((share > 0).sum())
            self.spread += shift.T @ shift
            self.widened += (shift.T * widening) @ shift
            self.delta += sign @ shift
            self.crossed += sign @ (shift * (share * widening)[:, None])
            self.projected += float((share**2 * widening).sum())

    def critical_value(
        self, covariance: Floats, pairs: tuple[Ints, Ints], *, level: float = 0.95
    ) -> float:
        """Return the quantile of the largest absolute t statistic over some pairs of models.

        Parameters
        ----------
        covariance : ndarray of shape (n_models, n_models)
            CR3 of the strengths with these clusters, see `rating.uncertainty.jackknife`. What it
            holds beside the clusters (ties that alone join two groups, see
            `rating.uncertainty.sandwich.bare_tie_meat`) enters as independent normal noise of
            known variance.
        pairs : (ndarray, ndarray)
            Positions of the two models of each pair. Without a pair the value is infinite.
        """
        if not len(pairs[0]):
            return np.inf
        largest = np.sort(self._largest(covariance, pairs))
        draws = len(largest)
        return float(largest[min(int(np.ceil(level * (draws + 1))), draws) - 1])

    def _largest(self, covariance: Floats, pairs: tuple[Ints, Ints]) -> Floats:
        first, second = pairs
        shrink = (self.clusters - 1) / self.clusters
        beside = covariance - shrink * self.spread
        noise = _noise(beside, np.abs(covariance).max(), len(self.delta), self._rng)
        own = shrink * _squares(self.widened)[first, second]
        known = _squares(beside)[first, second].clip(min=0)
        parts = []
        for rows in np.array_split(np.arange(len(noise)), -(-len(noise) * len(own) // CHUNK)):
            delta, crossed, extra = (
                each[rows][:, first] - each[rows][:, second]
                for each in (self.delta, self.crossed, noise)
            )
            square = own + shrink * delta * (delta * self.projected - 2 * crossed) + known
            reach, error = np.sqrt(shrink) * delta + extra, np.sqrt(square.clip(min=0))
            ratio = np.divide(np.abs(reach), error, out=np.zeros_like(reach), where=error > 0)
            parts.append(ratio.max(axis=1))
        return np.concatenate(parts)


def _noise(beside: Floats, scale: float, draws: int, rng: np.random.Generator) -> Floats:
    """Draw normal vectors of this covariance; zeros where it is rounding."""
    values, vectors = np.linalg.eigh(beside)
    if values[-1] <= 1e-9 * scale:
        return np.zeros((draws, len(beside)))
    return np.asarray(
        rng.standard_normal((draws, len(beside))) @ (vectors * np.sqrt(values.clip(min=0))).T
    )


def _squares(covariance: Floats) -> Floats:
    variance = np.diag(covariance)
    return np.asarray(variance[:, None] + variance[None, :] - 2 * covariance)
