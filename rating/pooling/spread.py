"""How sure pooled strengths are: leaving out voters, with the bias that shrinking leaves.

With H the penalised Hessian, P the penalty and M the meat of leaving one voter out at a time, the
covariance is ``H^-1 (M + P) H^-1``: P stands for the deviations that other categories and prompts
would have shown. It is averaged over the standard deviation of categories by marginal likelihood,
and what the strengths vary with that is added.
"""

from dataclasses import dataclass

import numpy as np

from rating.pooling.meat import Cast, meat_of_voters, meat_of_votes
from rating.pooling.model import Categorised, Pooled
from rating.pooling.variance import Variance
from rating.typing import Floats
from rating.uncertainty.clusters import activity


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
    levels = fit.curvature.categories
    c, k = fit.at.delta.shape
    share = levels.inverse / fit.tau.category**2
    root = np.linalg.inv(fit.curvature.whole) - np.full((k, k), 1 / k)
    bread = np.einsum("cij,jl,dml->cidm", share, root, share, optimize=True)
    bread[np.arange(c), :, np.arange(c)] += levels.inverse
    bread = _centred(bread)
    meat = meat_of_votes if cast.start is None else meat_of_voters
    inside = meat(fit, cast, bread)
    for category, own in enumerate(_seen(fit)):
        at = slice(category * k, (category + 1) * k)
        inside[at, at] -= own
    flat = bread.reshape(c * k, c * k)
    return np.asarray(flat + flat @ inside @ flat)


def _seen(fit: Pooled) -> Floats:
    """Return the information of the votes in each category, (n_categories, n_models, n_models)."""
    tree, seen = fit.tree, []
    if not tree.prompts:
        return fit.curvature.categories.information
    for block, level in zip(tree.prompts, fit.curvature.prompts, strict=True):
        through = level.inverse / fit.tau.prompt**2
        seen.append(tree.upwards(block, through @ level.information @ through))
    return np.asarray(sum(seen))
