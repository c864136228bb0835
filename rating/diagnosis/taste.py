"""Voters with tastes of their own: how likely one's votes are, and how far tastes spread."""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
import scipy  # its submodules load on first use

from rating.errors import ConvergenceError, DataError
from rating.rows import VoteRows
from rating.typing import Bools, Floats, Ints

MAX_TASTE = 5.0
CHUNK_ENTRIES = 1_000_000
MAX_STEPS = 100
TOLERANCE = 1e-6
FIT_TOLERANCE = 0.01


class Ballots(NamedTuple):
    """Decisive votes of one voter, up to some moment: codes of models, shape (n_votes,)."""

    left: Ints
    right: Ints
    won: Bools
    """Where the left side won."""


class Marginals(NamedTuple):
    """What the taste model makes of some voters' votes."""

    log_probability: Floats
    """In nats, shape (n_voters,)."""
    liking: Floats
    """Most likely strengths in each voter's eyes, in nats, shape (n_voters, n_models)."""


def log_marginals(
    ballots: Sequence[Ballots],
    theta: Floats,
    taste_sd: float,
    order_effect: float = 0.0,
) -> Marginals:
    """Return the log-probability of each voter's decisive votes under the taste model.

    A voter sees model m at ``theta[m] + taste_sd * u[m]`` with u standard
    normal, and chooses by Bradley-Terry, the left side ahead by
    ``order_effect``. The integral over u is Laplace's::

        log P(votes | u*) - |u*|^2 / 2 - log det(I + taste_sd^2 * X'WX) / 2

    at the u* that maximises the first two terms (Newton), X'WX being the
    information of the votes there. Exact for ``taste_sd = 0``. Models that a
    voter has not met would not change the integral and are left out.

    Parameters
    ----------
    theta : ndarray of shape (n_models,)
        Strengths in nats in the eyes of a voter of average taste.
    taste_sd : float
        In nats, not negative.
    order_effect : float, default 0
        Advantage of the left side in every vote, in nats.

    Returns
    -------
    Marginals
        Of the votes in their order: no binomial coefficients.

    Raises
    ------
    ConvergenceError
        If a maximum is not reached.

    References
    ----------
    .. [1] L. Tierney and J. B. Kadane, "Accurate approximations for posterior
       moments and marginal densities", Journal of the American Statistical
       Association 81(393), 1986, pp. 82-86.

    Examples
    --------
    One vote between equals is even, whatever the tastes.

    >>> one = Ballots(np.array([0]), np.array([1]), np.array([True]))
    >>> np.exp(log_marginals([one], np.zeros(2), 0.0).log_probability).item()
    0.5
    """
    marginals = Marginals(np.empty(len(ballots)), np.tile(theta, (len(ballots), 1)))
    for batch in _batches(ballots):
        start = np.zeros(batch.met.shape)
        log_probability, taste = _laplace(batch, theta, taste_sd, order_effect, start=start)
        marginals.log_probability[batch.rows] = log_probability
        marginals.liking[batch.rows[:, None], batch.met] += taste_sd * taste
    return marginals


def fit_taste_sd(votes: VoteRows, theta: Floats, order_effect: float = 0.0) -> float:
    """Fit how far the tastes of voters spread, by the sum of `log_marginals` over voters.

    Parameters
    ----------
    votes : VoteRows
        A row each; ties are left out.
    theta : ndarray of shape (n_models,)
        Strengths in nats.
    order_effect : float, default 0
        Advantage of the left side in every vote, in nats.

    Returns
    -------
    float
        In nats per model; 0 when voters agree as well as one voter would with
        himself, `MAX_TASTE` at most. Careless voters among them raise it,
        which makes `rating.diagnosis.voters.check_voters` forgiving.

    Raises
    ------
    DataError
        If no vote is decisive.
    """
    decisive = votes.taken(votes.score != 0.5)
    if not decisive.n:
        raise DataError(f"None of {votes.n} votes is decisive: tastes cannot be seen.")
    won = decisive.score == 1
    ballots = [
        Ballots(decisive.a[own], decisive.b[own], won[own])
        for own in rows_by_voter(decisive.voter)
    ]
    batches = list(_batches(ballots))
    tastes = [np.zeros(batch.met.shape) for batch in batches]

    def lack(taste_sd: float) -> float:
        total = 0.0
        for at, batch in enumerate(batches):
            log_probability, tastes[at] = _laplace(
                batch, theta, taste_sd, order_effect, start=tastes[at]
            )
            total -= float(log_probability.sum())
        return total

    best = scipy.optimize.minimize_scalar(
        lack, bounds=(0.0, MAX_TASTE), method="bounded", options={"xatol": FIT_TOLERANCE}
    )
    return 0.0 if lack(0.0) <= best.fun else float(best.x)


def rows_by_voter(voter: Ints) -> list[Ints]:
    """Return each voter's rows in their order, lowest code first."""
    order = np.argsort(voter, kind="stable")
    return np.split(order, np.flatnonzero(np.diff(voter[order])) + 1)


class _Batch(NamedTuple):
    """Voters who met equally many models: as many as fit in memory.

    Tables of shape (n_voters, n_pairs) hold a voter's pairs by side, filled up
    with pairs without votes.
    """

    rows: Ints
    met: Ints
    """Codes of the models each voter met, shape (n_voters, n_met)."""
    left: Ints
    """By position among all voters' models: for scattering."""
    right: Ints
    won: Floats
    """Votes for the left side."""
    lost: Floats

    def leads(self, strength: Floats) -> Floats:
        """Return the lead of the left of each pair, from strengths of shape of ``met``."""
        flat = strength.ravel()
        return np.asarray(flat[self.left] - flat[self.right])

    def per_model(self, value: Floats) -> Floats:
        """Add up a pair's value for its left model, and take it from its right."""
        size = self.met.size
        total = np.bincount(self.left.ravel(), value.ravel(), size)
        total -= np.bincount(self.right.ravel(), value.ravel(), size)
        return np.asarray(total.reshape(self.met.shape))

    def information(self, weight: Floats) -> Floats:
        """Return ``X'WX`` of each voter."""
        n_voters, n_met = self.met.shape
        cell = self.left * n_met + self.right % n_met
        flat = np.bincount(cell.ravel(), weight.ravel(), self.met.size * n_met)
        between = flat.reshape(n_voters, n_met, n_met)
        between = between + between.transpose(0, 2, 1)
        diagonal = np.arange(n_met)
        known = -between
        known[:, diagonal, diagonal] += between.sum(axis=2)
        return np.asarray(known)


def _batches(ballots: Sequence[Ballots]) -> Iterator[_Batch]:
    met = [np.unique(np.concatenate([votes.left, votes.right])) for votes in ballots]
    sizes = np.array([len(models) for models in met], dtype=np.int64)
    for size in np.unique(sizes):
        alike = np.flatnonzero(sizes == size)
        width = max(1, CHUNK_ENTRIES // int(size) ** 2)
        for start in range(0, len(alike), width):
            rows = alike[start : start + width]
            yield _batch(rows, [met[row] for row in rows], [ballots[row] for row in rows])


def _batch(rows: Ints, met: list[Ints], ballots: list[Ballots]) -> _Batch:
    n_met = len(met[0])
    cells = [_count(models, votes) for models, votes in zip(met, ballots, strict=True)]
    shape = (len(rows), max(len(pair) for pair, _, _ in cells))
    # A pair to fill up with is a model and itself, without votes: it adds nothing anywhere.
    left, right = np.zeros(shape, dtype=np.int64), np.zeros(shape, dtype=np.int64)
    won, lost = np.zeros(shape), np.zeros(shape)
    for row, (pair, up, down) in enumerate(cells):
        left[row, : len(pair)], right[row, : len(pair)] = np.divmod(pair, n_met)
        won[row, : len(pair)], lost[row, : len(pair)] = up, down
    offset = n_met * np.arange(len(rows))[:, None]
    return _Batch(rows, np.array(met), left + offset, right + offset, won, lost)


def _count(met: Ints, votes: Ballots) -> tuple[Ints, Ints, Ints]:
    """Return one voter's pairs as numbers, the votes for the left side and for the right."""
    number = np.searchsorted(met, votes.left) * len(met) + np.searchsorted(met, votes.right)
    pair, place = np.unique(number, return_inverse=True)
    won = np.bincount(place[votes.won], minlength=len(pair))
    return pair, won, np.bincount(place, minlength=len(pair)) - won


def _laplace(
    batch: _Batch,
    theta: Floats,
    taste_sd: float,
    order_effect: float,
    *,
    start: Floats,
) -> tuple[Floats, Floats]:
    """Return each voter's log marginal likelihood and the most likely u, from a first guess."""
    gap = batch.leads(theta[batch.met]) + order_effect
    taste = start
    value = _joint(taste, batch, gap, taste_sd)
    tolerance = TOLERANCE * max(1.0, float((batch.won + batch.lost).max()))
    for _ in range(MAX_STEPS):
        slope, curvature = _derivatives(taste, batch, gap, taste_sd)
        if np.abs(slope).max() <= tolerance:
            return value - np.linalg.slogdet(curvature)[1] / 2, taste
        step = np.asarray(np.linalg.solve(curvature, slope[..., None])[..., 0], dtype=np.float64)
        taste, value = _ascend(taste, value, step, batch, gap, taste_sd)
    raise ConvergenceError(
        f"A voter's tastes of sd {taste_sd} did not settle in {MAX_STEPS} steps."
    )


def _joint(taste: Floats, batch: _Batch, gap: Floats, taste_sd: float) -> Floats:
    lead = gap + taste_sd * batch.leads(taste)
    loss = batch.won * np.logaddexp(0.0, -lead) + batch.lost * np.logaddexp(0.0, lead)
    return np.asarray(-loss.sum(axis=1) - (taste**2).sum(axis=1) / 2)


def _derivatives(
    taste: Floats, batch: _Batch, gap: Floats, taste_sd: float
) -> tuple[Floats, Floats]:
    """Return the gradient of `_joint`, and minus its Hessian."""
    probability = scipy.special.expit(gap + taste_sd * batch.leads(taste))
    votes = batch.won + batch.lost
    slope = taste_sd * batch.per_model(batch.won - votes * probability) - taste
    known = batch.information(votes * probability * (1 - probability))
    return slope, np.eye(known.shape[1]) + taste_sd**2 * known


def _ascend(
    taste: Floats,
    value: Floats,
    step: Floats,
    batch: _Batch,
    gap: Floats,
    taste_sd: float,
) -> tuple[Floats, Floats]:
    """Take the step, halved for the voters whom it would take downhill."""
    allowed = value - 1e-12 * np.abs(value)  # rounding of a sum is not a descent
    for _ in range(30):
        after = _joint(taste + step, batch, gap, taste_sd)
        worse = after < allowed
        if not worse.any():
            return taste + step, after
        step = np.where(worse[:, None], step / 2, step)
    return taste + step, _joint(taste + step, batch, gap, taste_sd)
