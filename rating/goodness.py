"""How well a fit describes each pair of models."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from rating.comparisons import Comparisons
from rating.deviance import outcome_counts
from rating.fit import Fit
from rating.likelihood import cell_objective

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True, eq=False)
class GoodnessOfFit:
    """Observed against expected outcomes, by unordered pair of models.

    Attributes
    ----------
    models : tuple of str
    pairs : ndarray of shape (n_pairs, 2), int64
        The pairs that met, first index lower.
    residual : ndarray of shape (n_pairs,)
        Pearson's ``(score - expected) / sd`` of the first model's score; the
        sd is the model's (under half wins the binomial one, too large where
        there are ties).
    pearson, g2 : ndarray of shape (n_pairs,)
        Contributions to the totals.
    pearson_total, g2_total : float
    df : int
        Pairs times (outcomes - 1), less the free parameters: pairs less
        (models - 1) for plain Bradley-Terry. Chi-squared holds for
        independent votes of weight one.
    """

    models: tuple[str, ...]
    pairs: NDArray[np.int64]
    residual: Floats
    pearson: Floats
    g2: Floats
    pearson_total: float
    g2_total: float
    df: int


def goodness_of_fit(fit: Fit, data: Comparisons) -> GoodnessOfFit:
    """Compare the outcomes of every pair, both sides together, with those expected.

    ``pearson = sum (observed - expected)^2 / expected`` and
    ``g2 = 2 sum observed log(observed / expected)`` over the outcomes that the
    likelihood tells apart. Expectations follow the order effect and the
    features of each vote, before sides are put together.

    References
    ----------
    .. [1] A. Agresti, Categorical Data Analysis, 2nd ed., 2002, sections 4.5
       and 10.6.
    """
    merged = data.merged()
    m = len(fit.likelihood.outcomes)
    observed = _unordered(outcome_counts(merged.table(), fit.likelihood))
    expected = _unordered(_expected_counts(fit, merged))
    met = np.triu(observed.sum(axis=-1) > 0)
    o, e = observed[met], expected[met]
    logs = np.log(np.where(o > 0, o, 1.0) / np.where(o > 0, e, 1.0))
    pearson, g2 = ((o - e) ** 2 / e).sum(axis=1), 2 * (o * logs).sum(axis=1)
    free = len(fit.x) - (not fit.absolute)
    return GoodnessOfFit(
        models=fit.models,
        pairs=np.argwhere(met),
        residual=_residual(o, e),
        pearson=pearson,
        g2=g2,
        pearson_total=float(pearson.sum()),
        g2_total=float(g2.sum()),
        df=len(o) * (m - 1) - free,
    )


def _expected_counts(fit: Fit, data: Comparisons) -> Floats:
    """Return the expected weight of each outcome, shape (n_models, n_models, n_outcomes)."""
    cells = cell_objective(fit.likelihood, data, order_effect=fit.order_effect)
    counts = []
    for code in fit.likelihood.outcomes:
        local = fit.likelihood.surprise(
            np.full(len(data.outcome), code),
            cells.design.gap(fit.x),
            float(fit.x[-1]),
            cells.design.level(fit.x),
        )
        counts.append(data.table(data.weight * np.exp(-local.value)).sum(axis=-1))
    return np.stack(counts, axis=-1)


def _unordered(counts: Floats) -> Floats:
    """Add what happened with sides exchanged: outcomes 0 and 1 are the wins of A and B."""
    swapped = counts.transpose(1, 0, 2).copy()
    swapped[..., [0, 1]] = swapped[..., [1, 0]]
    return np.asarray(counts + swapped)


def _residual(observed: Floats, expected: Floats) -> Floats:
    score = np.array([1.0, 0.0, 0.5, 0.5])[: observed.shape[1]]
    n = expected.sum(axis=1)
    share = expected / n[:, None]
    variance = share @ score**2 - (share @ score) ** 2
    return np.asarray(((observed - expected) @ score) / np.sqrt(n * variance))
