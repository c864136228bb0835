"""The order effect and features: whether the votes determine their coefficients."""

import numpy as np

from rating.comparisons import Comparisons
from rating.design import Design
from rating.errors import NotIdentifiedError
from rating.newton import anchored
from rating.typing import Floats

ORDER_EFFECT = "order_effect"
STYLE = "style:"

_COLLINEAR = 1e-10
_SEPARATED = 1e-8


def covariate_names(data: Comparisons, *, order_effect: bool) -> tuple[str, ...]:
    """Name the coefficients in their order: the order effect, then ``style:NAME``."""
    first = (ORDER_EFFECT,) if order_effect else ()
    return (*first, *(STYLE + name for name in data.feature_names))


def information_left(design: Design, weight: Floats) -> Floats:
    """Return the information on the coefficients that the strengths leave over.

    The Schur complement of the strengths in ``sum_i weight_i x_i x_i'``, on
    the gap alone: shape (n_covariates, n_covariates).
    """
    k, c = design.n_models, design.n_covariates
    gaps = Design(k, design.a, design.b, design.pair, design.covariates, ("gap",))
    total = np.zeros((k + c, k + c))
    for rows in gaps.blocks():
        total += gaps.rows(rows).hessian({(0, 0): weight[rows]})
    return _schur(anchored(total, k, absolute=False), k, c)


def check_covariates(names: tuple[str, ...], design: Design, weight: Floats, left: Floats) -> None:
    """Raise unless every covariate says something that the others and the strengths do not.

    Parameters
    ----------
    left : ndarray of shape (n_covariates, n_covariates)
        As `information_left` returns it.

    Raises
    ------
    NotIdentifiedError
        Naming the first covariate that is zero throughout, or a combination
        of the strengths and the covariates before it.
    """
    size = np.einsum("i,ij,ij->j", weight, design.covariates, design.covariates)
    for j, name in enumerate(names):
        if size[j] == 0:
            raise NotIdentifiedError(f"{name} is zero in every vote: leave it out.", ())
        known = left[:j, :j]
        rest = left[j, j] - left[j, :j] @ np.linalg.solve(known, left[:j, j]) if j else left[0, 0]
        if rest <= _COLLINEAR * size[j]:
            raise NotIdentifiedError(
                f"{name} cannot be told apart from the strengths"
                + (f" and {', '.join(names[:j])}" if j else "")
                + ": in these votes it is a combination of them. Leave it out.",
                (),
            )


def check_not_separated(
    names: tuple[str, ...], n_models: int, left: Floats, hessian: Floats
) -> None:
    """Raise if a coefficient ran off to infinity, which leaves no curvature behind.

    Parameters
    ----------
    left : ndarray of shape (n_covariates, n_covariates)
        As `information_left` returns it.
    hessian : ndarray of shape (n_parameters, n_parameters)
        At the end of the iteration, with its flat direction filled.

    Raises
    ------
    NotIdentifiedError
        Naming the covariate that foretells the votes without fail.
    """
    scale, end = 1 / np.sqrt(np.diag(left)), n_models + len(left)
    curvature = _schur(hessian[:end, :end], n_models, len(left))
    values, vectors = np.linalg.eigh(curvature * scale[:, None] * scale)
    if values[0] < _SEPARATED:
        name = names[int(np.abs(vectors[:, 0]).argmax())]
        raise NotIdentifiedError(
            f"{name} foretells the votes without fail: its coefficient has no finite value.", ()
        )


def _schur(matrix: Floats, k: int, c: int) -> Floats:
    cross = matrix[:k, k : k + c]
    # Votes that are all foretold leave no curvature of the strengths either: a singular block.
    explained = np.linalg.lstsq(matrix[:k, :k], cross, rcond=None)[0]
    return np.asarray(matrix[k : k + c, k : k + c] - cross.T @ explained)
