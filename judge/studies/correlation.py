"""Correlations of two columns of scores over models."""

from dataclasses import dataclass

import numpy as np

from rating.errors import DataError
from rating.typing import Floats

MIN_MODELS = 3
FEW_MODELS = 10
"""Under this many models a correlation says little."""

_CELLS = 1 << 20
"""Differences of two models' scores that are held at once."""


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
    found = row_correlations(x[None], y[None])
    return Correlations(
        pearson_top=float(_pearson(x[None, best], y[None, best])[0]),
        n_models=len(x),
        **{kind: float(values[0]) for kind, values in found.items()},
    )


def row_correlations(scores: Floats, reference: Floats) -> dict[str, Floats]:
    """Correlate each row of scores with that of the reference, as `correlations` does over all.

    Parameters
    ----------
    scores, reference : ndarray of shape (n_rows, n_models)
        Without NaN.

    Returns
    -------
    dict of str to ndarray of shape (n_rows,)
        ``pearson``, ``spearman`` and ``kendall``; NaN where a row of either does not vary.
    """
    x, y = np.ascontiguousarray(scores), np.ascontiguousarray(reference)  # rows are then summed
    rows, n = x.shape  # in the order in which one alone is
    at_once = max(1, _CELLS // (n * n))
    starts = range(0, rows, at_once)
    parts = [_together(x[i : i + at_once], y[i : i + at_once]) for i in starts]
    names = ("pearson", "spearman", "kendall")
    return dict(zip(names, np.concatenate(parts, axis=1), strict=True))


def _together(x: Floats, y: Floats) -> Floats:
    sides = _signs(x), _signs(y)
    ranks = (signs.sum(axis=2) / 2 for signs in sides)  # the number below and half of the equal
    order = (signs.reshape(len(x), -1) for signs in sides)  # tau-b is their cosine
    return np.stack([_pearson(x, y), _pearson(*ranks), _cosine(*order)])


def _signs(x: Floats) -> Floats:
    """Return the signs of all differences within each row, shape (n_rows, n, n)."""
    return np.asarray(np.sign(x[:, :, None] - x[:, None, :]))


def _pearson(x: Floats, y: Floats) -> Floats:
    return _cosine(x - x.mean(axis=1, keepdims=True), y - y.mean(axis=1, keepdims=True))


def _cosine(x: Floats, y: Floats) -> Floats:
    size = np.sqrt(np.vecdot(x, x) * np.vecdot(y, y))
    return np.asarray(np.vecdot(x, y) / np.where(size > 0, size, np.nan))
