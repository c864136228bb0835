"""How sure pooled strengths are: leaving out voters, with the bias that shrinking leaves.

With H the penalised Hessian, P the penalty and M the meat of leaving one voter out at a time, the
covariance is ``H^-1 (M + P) H^-1``: P stands for the deviations that other categories and prompts
would have shown. It is averaged over the standard deviation of categories by marginal likelihood,
and what the strengths vary with that is added.
"""

from dataclasses import dataclass

import numpy as np
import scipy  # its submodules load on first use

from rating.pooling.meat import Cast, meat_of_voters, meat_of_votes
from rating.pooling.model import Categorised, Pooled
from rating.pooling.variance import LARGEST, SMALLEST, Variance
from rating.typing import Floats
from rating.uncertainty.clusters import activity

TAUS = 30
"""Standard deviations that tests of odd categories are averaged over."""
LEAST_DF, MOST_DF = 1e-3, 1e6


@dataclass(frozen=True, eq=False)
class Spread:
    """Covariance of the strengths of all categories.

    Attributes
    ----------
    covariance : ndarray of shape (n_categories, n_models, n_categories, n_models)
        Squared nats; of strengths that sum to zero in each category.
    df : float
        Degrees of freedom: effective voters less one; infinite where voters are not known.
    """

    covariance: Floats
    df: float


def spread(variance: Variance, votes: Categorised) -> Spread:
    """Find the covariance of pooled strengths.

    Voters are left out one at a time (CR3); where they are not known, votes.
    """
    best, cast = variance.best, Cast.of(variance.best.tree, votes)
    total = np.zeros((best.strengths.size,) * 2)
    for weight, fit in zip(variance.weights, variance.points, strict=True):
        off = (fit.strengths - best.strengths).ravel()
        total += weight * (covariance_at(fit, cast) + np.outer(off, off))
    c, k = best.strengths.shape
    df = np.inf if votes.data.voter is None else activity(votes.data).effective - 1
    return Spread(_centred(total.reshape(c, k, c, k)), df)


def _centred(covariance: Floats) -> Floats:
    covariance = covariance - covariance.mean(axis=1, keepdims=True)
    return np.asarray(covariance - covariance.mean(axis=3, keepdims=True))


def borrowed(fit: Pooled, mix: Floats) -> Floats:
    """Return the share of each strength on a mix that comes from votes in other categories.

    In matrices, the strengths of category c are ``(1 - R) x + R theta``: x of its own votes alone,
    ``R = (1 + tau^2 W)^-1`` with W its information, theta the mean over categories, each weighed
    by ``V = R W``. Votes outside the mix then have the weight ``sum_c q_c R_c (sum V)^-1 V_out``,
    of which this is the diagonal for strengths as distances from the average.

    Parameters
    ----------
    mix : ndarray of shape (n_categories,)
        Shares that sum to one.

    Returns
    -------
    ndarray of shape (n_models,)
        From 0 to 1.
    """
    levels, k = fit.curvature.categories, fit.tree.n_models
    drawn = np.tensordot(mix, levels.inverse, axes=1) / fit.tau.category**2
    outside = levels.left[mix == 0].sum(axis=0)
    weight = drawn @ np.linalg.solve(fit.curvature.whole, outside)
    weight = weight - weight.mean(axis=0)
    weight = weight - weight.mean(axis=1, keepdims=True)
    return np.asarray((np.diag(weight) / (1 - 1 / k)).clip(0.0, 1.0))


def covariance_at(fit: Pooled, cast: Cast) -> Floats:
    """Return the covariance at one fit, shape (n_categories * n_models,) * 2.

    Prompts, where they are a level, are eliminated throughout: a row's direction is what they let
    through of it.
    """
    bread, extra = _bread_and_extra(fit, cast)
    return np.asarray(bread + bread @ extra @ bread)


def _bread_and_extra(fit: Pooled, cast: Cast) -> tuple[Floats, Floats]:
    """Return the inverse Hessian, and what the scores vary more than independent votes say."""
    levels = fit.curvature.categories
    c, k = fit.at.delta.shape
    share = levels.inverse / fit.tau.category**2
    root = np.linalg.inv(fit.curvature.whole) - np.full((k, k), 1 / k)
    bread = np.einsum("cij,jl,dml->cidm", share, root, share, optimize=True)
    bread[np.arange(c), :, np.arange(c)] += levels.inverse
    bread = _centred(bread)
    meat = meat_of_votes if cast.start is None else meat_of_voters
    extra = meat(fit, cast, bread)
    for category, own in enumerate(_seen(fit)):
        at = slice(category * k, (category + 1) * k)
        extra[at, at] -= own
    return bread.reshape(c * k, c * k), extra


def _seen(fit: Pooled) -> Floats:
    """Return the information of the votes in each category, (n_categories, n_models, n_models)."""
    tree, seen = fit.tree, []
    if not tree.prompts:
        return fit.curvature.categories.information
    for block, level in zip(tree.prompts, fit.curvature.prompts, strict=True):
        through = level.inverse / fit.tau.prompt**2
        seen.append(tree.upwards(block, through @ level.information @ through))
    return np.asarray(sum(seen))


def oddness(fit: Pooled, votes: Categorised) -> Floats:
    """Test whether models differ more between a category and the others than among the others.

    Let s_c be the score of category c at the mean strengths of the other categories, H_c its
    information, and ``A_c = (I + tau^2 H_c)^-1``. The statistic ``|A_c s_c|^2`` is the score
    statistic of a larger standard deviation in this category: up to ``tau^4`` the squared length
    of its deviations, shrunken towards the other categories alone. It is compared with F by the
    mean and variance that it has where nothing is odd: the variance of s_c is its noise (voters
    deleted one at a time, CR3), ``tau^2 H_c^2`` and that of the other categories' mean. The
    denominator has the effective voters of the category less one as degrees of freedom. The p is
    averaged over tau, by the marginal likelihood of the other categories.

    Returns
    -------
    ndarray of shape (n_categories,)
        p times the number of categories (Bonferroni), at most 1; 1 with fewer than three
        categories, and where the others identify no rating.

    References
    ----------
    .. [1] X. Lin, "Variance component testing in generalised linear models with random effects",
       Biometrika 84(2), 1997, pp. 309-326.
    """
    information, (c, k) = fit.curvature.categories.information, fit.at.delta.shape
    others = information.sum(axis=0) - information
    tested = np.linalg.matrix_rank(others, hermitian=True) >= k - 1
    if c < 3 or not tested.any():
        return np.ones(c)
    each, flat = np.arange(c), np.full((k, k), 1 / k)
    noise = _bread_and_extra(fit, Cast.of(fit.tree, votes))[1].reshape(c, k, c, k)
    noise[each, :, each] += information
    score = (information @ (fit.at.theta + fit.at.delta)[..., None])[..., 0]
    score += fit.at.delta / fit.tau.category**2  # now at strengths of zero, to second order
    df = np.full(c, MOST_DF)
    if votes.data.voter is not None:
        parts = (votes.data.subset(votes.category == one) for one in each)
        df = np.array([min(MOST_DF, activity(part).effective - 1) for part in parts])
    likely, p = np.empty((2, TAUS, c))
    for row, tau in enumerate(np.geomspace(SMALLEST, LARGEST, TAUS)):
        opened = np.eye(k) + tau**2 * information
        through = np.asarray(np.linalg.inv(opened))
        left, pull = through @ information, (through @ score[..., None])[..., 0]
        total = np.where(tested[:, None, None], left.sum(axis=0) - left, np.eye(k)) + flat
        root, pulls = np.linalg.inv(total) - flat, pull.sum(axis=0) - pull
        mean = (root @ pulls[..., None])[..., 0]
        alone = tau**2 * (score * pull).sum(axis=1) - np.linalg.slogdet(opened)[1]
        joint = (mean * pulls).sum(axis=1) - np.linalg.slogdet(total)[1]
        likely[row] = (alone.sum() - alone + joint) / 2 + np.log(tau)  # tau flat, on a log grid
        moved = (through @ noise.reshape(c, k, c * k)).reshape(c, k, c, k)
        within = np.einsum("cidj,dlj->cdil", moved, through, optimize=True)
        rest = within.sum(axis=(0, 1)) - within.sum(axis=0) - within.sum(axis=1)
        rest += within[each, each] + tau**2 * ((left @ left).sum(axis=0) - left @ left)
        by = information @ root
        cross = by @ (moved.sum(axis=0).transpose(1, 0, 2) - moved[each, :, each])
        variance = noise[each, :, each] + tau**2 * information @ information
        variance += by @ rest @ by.transpose(0, 2, 1) - cross - cross.transpose(0, 2, 1)
        odd = through @ (score - (information @ mean[..., None])[..., 0])[..., None]
        spread = through @ variance @ through
        first, second = np.einsum("cii->c", spread), np.einsum("cij,cji->c", spread, spread)
        ratio = (odd**2).sum(axis=(1, 2)) / first
        p[row] = scipy.special.fdtrc(first**2 / second, np.maximum(df, LEAST_DF), ratio)
    weight = np.exp(likely - likely.max(axis=0))
    return np.where(tested, np.minimum(1.0, c * (weight * p).sum(axis=0) / weight.sum(axis=0)), 1)
