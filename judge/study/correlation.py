"""Correlations of two columns of scores over models."""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from judge.errors import DataError

Floats = NDArray[np.float64]

MIN_MODELS = 3
FEW_MODELS = 10
"""Under this many models a correlation says little."""


@dataclass(frozen=True, slots=True)
class Correlations:
    """How two columns of scores go together; NaN where a column does not vary.

    Attributes
    ----------
    pearson_top, pearson : float
        Over the models that are best by the reference, and over all.
    spearman : float
        Pearson of the ranks, equal scores sharing their mean rank.
    kendall : float
        tau-b.
    n_models : int
        With both scores.
    """

    pearson_top: float
    pearson: float
    spearman: float
    kendall: float
    n_models: int


def correlations(scores: Floats, reference: Floats, *, top: int = 6) -> Correlations:
    """Correlate scores with a reference, such as a judge's with people's.

    Parameters
    ----------
    scores, reference : ndarray of shape (n_models,)
        NaN where a model has no score: it is left out.
    top : int
        How many of the best by ``reference`` the first correlation is over.

    Raises
    ------
    DataError
        If lengths differ, or fewer than three models have both scores.

    References
    ----------
    .. [1] B. Y. Lin et al., "WildBench", ICLR 2025, table 3.
    """
    if scores.shape != reference.shape:
        msg = f"{len(scores)} scores and {len(reference)} of the reference: give one a model."
        raise DataError(msg)
    both = ~(np.isnan(scores) | np.isnan(reference))
    x, y = scores[both], reference[both]
    if len(x) < MIN_MODELS:
        msg = f"{len(x)} models have both scores: a correlation needs {MIN_MODELS} or more."
        raise DataError(msg)
    best = np.argsort(-y, kind="stable")[:top]
    return Correlations(
        pearson_top=_pearson(x[best], y[best]),
        pearson=_pearson(x, y),
        spearman=_pearson(_ranks(x), _ranks(y)),
        kendall=_pearson(_order(x), _order(y), centre=False),
        n_models=len(x),
    )


def _pearson(x: Floats, y: Floats, *, centre: bool = True) -> float:
    if centre:
        x, y = x - x.mean(), y - y.mean()
    size = math.sqrt(float(x @ x) * float(y @ y))
    return float(x @ y) / size if size else math.nan


def _ranks(x: Floats) -> Floats:
    """Return the number below plus half of those that are equal, up to a constant."""
    return np.asarray(np.sign(x[:, None] - x[None, :]).sum(axis=1) / 2)


def _order(x: Floats) -> Floats:
    """Return the signs of all differences: tau-b is their cosine."""
    return np.asarray(np.sign(x[:, None] - x[None, :]).ravel())
