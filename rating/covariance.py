"""Covariances of a fit, by the method and the clusters asked for."""

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from rating.clusters import Activity, Cluster, Grouping, activity_of, grouping, intersection
from rating.comparisons import Comparisons
from rating.errors import DataError
from rating.fit import Fit
from rating.jackknife import jackknife
from rating.sandwich import cluster_covariance, hessian_covariance, sandwich_covariance

Method = Literal["hessian", "sandwich", "cr1", "cr3"]
Floats = NDArray[np.float64]

FEW_PROMPTS = 20


@dataclass(frozen=True, slots=True, eq=False)
class Covariance:
    """Covariance of the strengths and the free parameters, and how to read it.

    Attributes
    ----------
    matrix : ndarray of shape (n_models + n_free, n_models + n_free)
        Strengths in squared nats, then the free parameters of the fit on the
        scale they are optimised in; rows sum to zero over the strengths,
        unless their scale is absolute.
    n_models : int
    method : {"hessian", "sandwich", "cr1", "cr3"}
    cluster : {"voter", "prompt", "both"} or None
        None when votes are taken as independent.
    df : float
        Degrees of freedom for Student's t: effective clusters less one;
        infinite without clusters.
    activity : Activity or None
        Of the clusters; for both, of the kind with fewer effective ones.
        None without clusters.
    design_effect : float or None
        Variance of a strength over that for independent votes, the median
        over models. None without clusters.
    lone_models : tuple of str
        Models that one cluster alone joins to the rest.
    clipped : bool
        Whether a two-way matrix had to be made positive.
    warnings : tuple of str
        In plain words.
    """

    matrix: Floats
    n_models: int
    method: Method
    cluster: Cluster | Literal["both"] | None
    df: float
    activity: Activity | None
    design_effect: float | None
    lone_models: tuple[str, ...]
    clipped: bool
    warnings: tuple[str, ...]

    @property
    def strengths(self) -> Floats:
        """The block of the strengths, shape (n_models, n_models)."""
        return self.matrix[: self.n_models, : self.n_models]


def covariance(
    fit: Fit,
    data: Comparisons,
    *,
    method: Method = "cr3",
    cluster: Cluster | Literal["both"] | None = "voter",
) -> Covariance:
    """Estimate the covariance of a fit's parameters.

    Parameters
    ----------
    fit : Fit
        Of these same votes.
    method : {"hessian", "sandwich", "cr1", "cr3"}
        The first two take no clusters. See `rating.sandwich` and
        `rating.jackknife`.
    cluster : {"voter", "prompt", "both"} or None
        ``both`` is ``V_voter + V_prompt - V_(voter and prompt)``; negative
        eigenvalues, which that difference may have, are set to zero.

    Raises
    ------
    DataError
        If the clusters are not known, or fewer than two voted; if the method
        and the clusters do not go together.

    References
    ----------
    .. [1] A. C. Cameron, J. B. Gelbach and D. L. Miller, "Robust inference
       with multiway clustering", Journal of Business and Economic Statistics
       29(2), 2011, pp. 238-249.
    """
    _check(fit, data, method, cluster)
    if method == "hessian":
        return _independent(hessian_covariance(fit), fit, method)
    if method == "sandwich":
        return _independent(sandwich_covariance(fit, data), fit, method)
    if cluster == "both":
        return _two_way(fit, data, method)
    assert cluster is not None
    groups = grouping(data, cluster)
    matrix, lone = _one_way(fit, data, groups, method)
    found = activity_of(data, groups)
    return Covariance(
        matrix=matrix,
        n_models=fit.n_models,
        method=method,
        cluster=cluster,
        df=found.effective - 1,
        activity=found,
        design_effect=_design_effect(fit, data, matrix),
        lone_models=lone,
        clipped=False,
        warnings=_few_prompts(data, cluster),
    )


def _check(fit: Fit, data: Comparisons, method: str, cluster: str | None) -> None:
    if method not in ("hessian", "sandwich", "cr1", "cr3"):
        raise DataError(f"method must be hessian, sandwich, cr1 or cr3, not {method!r}.")
    if cluster not in (None, "voter", "prompt", "both"):
        raise DataError(f"cluster must be voter, prompt, both or None, not {cluster!r}.")
    if method in ("cr1", "cr3") and cluster is None:
        raise DataError(f"{method} needs clusters: voter, prompt or both.")
    if fit.models != data.models:
        raise DataError("The fit and the comparisons are not of the same models.")


def _independent(matrix: Floats, fit: Fit, method: Method) -> Covariance:
    return Covariance(matrix, fit.n_models, method, None, np.inf, None, None, (), False, ())


def _one_way(
    fit: Fit, data: Comparisons, groups: Grouping, method: Method
) -> tuple[Floats, tuple[str, ...]]:
    if method == "cr1":
        return cluster_covariance(fit, data, groups), ()
    found = jackknife(fit, data, groups)
    return found.matrix, found.lone_models


def _two_way(fit: Fit, data: Comparisons, method: Method) -> Covariance:
    kinds: tuple[Cluster, Cluster] = ("voter", "prompt")
    groups = [grouping(data, kind) for kind in kinds]
    parts = [_one_way(fit, data, group, method) for group in (*groups, intersection(data))]
    raw = parts[0][0] + parts[1][0] - parts[2][0]
    matrix, clipped = _made_positive(raw, parts[0][0] + parts[1][0])
    found = min((activity_of(data, group) for group in groups), key=lambda one: one.effective)
    said = (
        "The two-way covariance was not positive: its negative parts are set to zero, "
        "and the intervals may be too narrow.",
    )
    return Covariance(
        matrix=matrix,
        n_models=fit.n_models,
        method=method,
        cluster="both",
        df=found.effective - 1,
        activity=found,
        design_effect=_design_effect(fit, data, matrix),
        lone_models=tuple(sorted({name for _, lone in parts[:2] for name in lone})),
        clipped=clipped,
        warnings=(*_few_prompts(data, "both"), *(said if clipped else ())),
    )


def _made_positive(matrix: Floats, scale: Floats) -> tuple[Floats, bool]:
    """Set negative eigenvalues to zero; they count from 1e-10 of the largest one of ``scale``."""
    values, vectors = np.linalg.eigh(matrix)
    if values[0] >= -1e-10 * np.linalg.eigvalsh(scale)[-1]:
        return matrix, False
    return np.asarray((vectors * values.clip(min=0)) @ vectors.T), True


def _design_effect(fit: Fit, data: Comparisons, matrix: Floats) -> float:
    k = fit.n_models
    independent = np.diag(sandwich_covariance(fit, data))[:k]
    return float(np.median(np.diag(matrix)[:k] / independent))


def _few_prompts(data: Comparisons, cluster: str) -> tuple[str, ...]:
    if cluster == "voter" or data.n_prompts >= FEW_PROMPTS:
        return ()
    return (f"{data.n_prompts} prompts are too few to cluster by: the intervals are rough.",)
