"""Leaving out one voter at a time: how far one person's votes can move a rating."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from rating.bradley_terry import BradleyTerryFit, gradient, hessian, solve, win_probability
from rating.comparisons import Comparisons
from rating.connectivity import strong_groups
from rating.covariance import bare_tie_meat, sum_zero_inverse, vote_meat
from rating.errors import DataError

REFIT_LEVERAGE = 0.5
CHUNK_ENTRIES = 2_000_000


@dataclass(frozen=True, slots=True)
class VoterActivity:
    """How evenly the votes are spread over voters.

    Attributes
    ----------
    n_voters : int
        Voters with a vote of positive weight.
    effective : float
        ``U / (1 + CV^2)`` of the votes per voter, which is
        ``(sum n)^2 / sum n^2``: as many as there are when all are equally
        busy, one when a single voter cast nearly everything.
    top_share : float
        Share of all votes cast by the busiest voter.
    """

    n_voters: int
    effective: float
    top_share: float


@dataclass(frozen=True, slots=True, eq=False)
class VoterCovariance:
    """Covariance of the strengths when the votes of one voter hang together.

    Attributes
    ----------
    covariance : ndarray of shape (n_models, n_models)
        In squared nats; rows sum to zero.
    activity : VoterActivity
    single_voter_models : tuple of str
        Models that one voter alone joins to the rest: without that voter
        they have no place, so their spread over voters cannot be seen.
    """

    covariance: NDArray[np.float64]
    activity: VoterActivity
    single_voter_models: tuple[str, ...]

    @property
    def df(self) -> float:
        """Degrees of freedom for Student's t: effective voters less one."""
        return self.activity.effective - 1


def voter_activity(data: Comparisons) -> VoterActivity:
    """Measure how evenly the votes (by weight) are spread over voters.

    Raises
    ------
    DataError
        If voters are not known, or there are no votes.

    Examples
    --------
    >>> votes = Comparisons.from_arrays(
    ...     ["x"] * 5, ["y"] * 5, ["model_a"] * 5, voter=["ann", "ann", "ann", "bob", "cy"]
    ... )
    >>> round(voter_activity(votes).effective, 4)  # 25 / (9 + 1 + 1)
    2.2727
    """
    weight = np.bincount(_voters(data), data.weight)
    if not weight.any():
        raise DataError("There are no votes to count voters by.")
    return VoterActivity(
        n_voters=int((weight > 0).sum()),
        effective=float(weight.sum() ** 2 / (weight**2).sum()),
        top_share=float(weight.max() / weight.sum()),
    )


def voter_covariance(fit: BradleyTerryFit, data: Comparisons) -> VoterCovariance:
    """Estimate the covariance by leaving out one voter at a time (CR3).

    ``(U - 1) / U * sum_c d_c d_c'``, where ``d_c`` is how far the strengths
    move without voter c: by an exact refit for the voters of leverage
    ``trace(H^- H_c) >= 1/2`` (there are at most ``2 (n_models - 1)``), by one
    Newton step with the remaining Hessian, ``(H - H_c)^- s_c``, for the rest.
    A step also stands in where the votes without c have no finite fit.

    Two directions in which voters show no spread are filled in as if votes
    were independent: ties that alone join two groups (see
    `rating.covariance.bare_tie_meat`), and the votes of a voter who alone
    joins models to the rest, named in ``single_voter_models``.

    Raises
    ------
    DataError
        If voters are not known, or fewer than two of them voted.

    References
    ----------
    .. [1] R. M. Bell and D. F. McCaffrey, "Bias reduction in standard errors
       for linear regression with multi-stage samples", Survey Methodology
       28(2), 2002, pp. 169-181.
    .. [2] J. G. MacKinnon, M. Ø. Nielsen and M. D. Webb, "Fast and reliable
       jackknife and bootstrap methods for cluster-robust inference", Journal
       of Applied Econometrics 38(5), 2023, pp. 671-694.
    """
    activity = voter_activity(data)
    u = activity.n_voters
    if u < 2:
        raise DataError("Leaving out one voter needs two voters at least; one voted.")
    bread = sum_zero_inverse(fit.hessian)
    heavy = np.flatnonzero(_leverage(fit, data, bread) >= REFIT_LEVERAGE)
    spread = _spread_of_light_voters(fit, data, bread, heavy)
    meat = bare_tie_meat(fit, data)
    single = np.zeros(data.n_models, dtype=bool)
    for voter in heavy:
        left_out = _leave_out(fit, data, int(voter))
        spread += np.outer(left_out.shift, left_out.shift)
        single |= left_out.stranded
        if left_out.stranded.any():
            meat += vote_meat(fit, data, _voters(data) == voter)
    return VoterCovariance(
        covariance=(u - 1) / u * spread + bread @ meat @ bread,
        activity=activity,
        single_voter_models=tuple(data.models[i] for i in np.flatnonzero(single)),
    )


@dataclass(frozen=True, slots=True, eq=False)
class _LeftOut:
    """How the strengths move without one voter, and which models lose their place."""

    shift: NDArray[np.float64]
    stranded: NDArray[np.bool_]


def _chance(fit: BradleyTerryFit, data: Comparisons) -> NDArray[np.float64]:
    return win_probability(fit.theta)[data.pairs[:, 0], data.pairs[:, 1]]


def _information(fit: BradleyTerryFit, data: Comparisons) -> NDArray[np.float64]:
    a, b = data.pairs.T
    chance = win_probability(fit.theta)
    return np.asarray(data.weight * chance[a, b] * chance[b, a])


def _leverage(
    fit: BradleyTerryFit, data: Comparisons, bread: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Return ``trace(H^- H_c)`` of each voter; without a ridge they sum to n_models - 1."""
    a, b = data.pairs.T
    reach = bread[a, a] + bread[b, b] - 2 * bread[a, b]
    leverage = np.bincount(_voters(data), _information(fit, data) * reach, data.n_voters)
    return np.asarray(leverage, dtype=np.float64)


def _spread_of_light_voters(
    fit: BradleyTerryFit,
    data: Comparisons,
    bread: NDArray[np.float64],
    heavy: NDArray[np.int64],
) -> NDArray[np.float64]:
    """Sum the outer products of the one-step shifts of all voters but the heavy ones."""
    voter = _voters(data)
    residual = data.weight * (data.score_a - _chance(fit, data))
    residual[np.isin(voter, heavy)] = 0.0
    information = _information(fit, data)
    spread = np.zeros_like(bread)
    per_chunk = max(1, CHUNK_ENTRIES // data.n_models)
    for first in range(0, data.n_voters, per_chunk):
        start, stop = np.searchsorted(voter, [first, first + per_chunk])
        rows = slice(start, stop)
        n_rows = min(per_chunk, data.n_voters - first)
        shift = _one_step(
            bread,
            _Scatter(voter[rows] - first, data.pairs[rows], (n_rows, data.n_models)),
            residual[rows],
            information[rows],
        )
        spread += shift.T @ shift
    return spread


@dataclass(frozen=True, slots=True, eq=False)
class _Scatter:
    """Sums ``value_i x_i`` over the cells of each voter."""

    voter: NDArray[np.int64]
    pairs: NDArray[np.int64]
    shape: tuple[int, int]

    def total(self, value: NDArray[np.float64]) -> NDArray[np.float64]:
        n_voters, n_models = self.shape
        row = self.voter * n_models
        size = n_voters * n_models
        flat = np.bincount(row + self.pairs[:, 0], value, size)
        flat -= np.bincount(row + self.pairs[:, 1], value, size)
        return np.asarray(flat, dtype=np.float64).reshape(self.shape)

    def gaps(self, shift: NDArray[np.float64]) -> NDArray[np.float64]:
        a, b = self.pairs.T
        return np.asarray(shift[self.voter, a] - shift[self.voter, b])


def _one_step(
    bread: NDArray[np.float64],
    scatter: _Scatter,
    residual: NDArray[np.float64],
    information: NDArray[np.float64],
) -> NDArray[np.float64]:
    """Solve ``(H - H_c) d_c = s_c`` for many voters by ``d <- H^- (s + H_c d)``.

    A leverage under 1/2 halves the error at least in every round.
    """
    shift = first = scatter.total(residual) @ bread
    for _ in range(40):
        previous = shift
        shift = first + scatter.total(information * scatter.gaps(shift)) @ bread
        if np.abs(shift - previous).max() <= 1e-9 * np.abs(first).max():
            break
    return shift


def _leave_out(fit: BradleyTerryFit, data: Comparisons, voter: int) -> _LeftOut:
    wins = data.wins(_voters(data) != voter)
    connected = strong_groups(wins + wins.T > 0)
    stranded = connected != np.bincount(connected).argmax()
    if fit.ridge > 0 or not strong_groups(wins > 0).any():
        shift = solve(wins, fit.theta, ridge=fit.ridge).theta - fit.theta
        return _LeftOut(shift, np.zeros_like(stranded))
    remaining = hessian(fit.theta, wins)
    slope = gradient(fit.theta, wins)
    return _LeftOut(-np.linalg.pinv(remaining, rcond=1e-9, hermitian=True) @ slope, stranded)


def _voters(data: Comparisons) -> NDArray[np.int64]:
    if data.voter is None:
        raise DataError("These comparisons carry no voters; pass voter= to from_arrays.")
    return data.voter
