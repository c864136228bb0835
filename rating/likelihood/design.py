"""From the local coordinates of single votes to all parameters, order effect and features too."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from rating.errors import NotIdentifiedError
from rating.likelihood.newton import anchored
from rating.likelihood.ties import Coordinate
from rating.typing import Floats, Ints

BLOCK_ROWS = 1 << 17
CHUNK_ENTRIES = 2_000_000
"""Entries of an array that are computed at a time."""


_ON_STRENGTHS: dict[Coordinate, tuple[float, float]] = {
    "gap": (1.0, -1.0),
    "tie": (0.0, 0.0),
    "level": (0.5, 0.5),
}
"""Derivatives of a local coordinate in the strengths of side A and side B."""


def blocks(n: int) -> list[slice]:
    """Divide n rows into blocks that the processor's cache holds."""
    return [slice(first, first + BLOCK_ROWS) for first in range(0, n, BLOCK_ROWS)]


@dataclass(frozen=True, slots=True, eq=False)
class Design:
    """How the local coordinates of n rows depend on the parameters.

    The parameters are the strengths, the coefficients of the covariates and,
    if the likelihood has one, the tie parameter, in this order.

    Attributes
    ----------
    n_models : int
    a, b : ndarray of shape (n,), int64
        Models on side A and side B.
    pair : ndarray of shape (n,), int64
        ``n_models * a + b``.
    covariates : ndarray of shape (n, n_covariates)
        Added to the gap, with a coefficient each.
    coordinates : tuple of {"gap", "tie", "level"}
    """

    n_models: int
    a: Ints
    b: Ints
    pair: Ints
    covariates: Floats
    coordinates: tuple[Coordinate, ...]

    @property
    def n_covariates(self) -> int:
        """Number of covariates, the order effect included."""
        return int(self.covariates.shape[1])

    @property
    def n_parameters(self) -> int:
        """Number of parameters."""
        return self.n_models + self.n_covariates + ("tie" in self.coordinates)

    def gap(self, x: Floats) -> Floats:
        """Return the gap of each row, shape (n,)."""
        gap = x[self.a] - x[self.b]
        if self.n_covariates:
            gap += self.covariates @ x[self.n_models : self.n_models + self.n_covariates]
        return np.asarray(gap)

    def level(self, x: Floats) -> Floats:
        """Return the mean of both strengths of each row, shape (n,)."""
        return np.asarray((x[self.a] + x[self.b]) / 2)

    def rows(self, chosen: Ints | slice) -> "Design":
        """Return the design of some of the rows, in the order given."""
        return Design(
            self.n_models,
            self.a[chosen],
            self.b[chosen],
            self.pair[chosen],
            self.covariates[chosen],
            self.coordinates,
        )

    def curvature_along(
        self, curve: Mapping[tuple[int, int], Floats], shift: Floats, cluster: Ints
    ) -> Floats:
        """Return the Hessian of each cluster times its own shift, as `scores` shapes it.

        Parameters
        ----------
        curve : mapping of (int, int) to ndarray of shape (n,)
            As `hessian` takes it.
        shift : ndarray of shape (n_clusters, n_parameters)
        cluster : ndarray of shape (n,), int64
        """
        moved = self._along(shift, cluster)
        change = [np.zeros(len(cluster)) for _ in moved]
        for (c, d), value in curve.items():
            change[c] += value * moved[d]
            if c != d:
                change[d] += value * moved[c]
        return self.scores(tuple(change), cluster, len(shift))

    def _along(self, shift: Floats, cluster: Ints) -> list[Floats]:
        """Return how each local coordinate moves when each cluster has its own shift."""
        a, b, k = shift[cluster, self.a], shift[cluster, self.b], self.n_models
        moved = {"level": (a + b) / 2, "tie": shift[cluster, -1], "gap": a - b}
        for column in range(self.n_covariates):
            moved["gap"] += self.covariates[:, column] * shift[cluster, k + column]
        return [moved[name] for name in self.coordinates]

    def across(self, vectors: Floats) -> list[Floats]:
        """Return how each local coordinate moves along each of some shifts of all parameters.

        Parameters
        ----------
        vectors : ndarray of shape (n_parameters, m)

        Returns
        -------
        list of ndarray of shape (n, m)
        """
        a, b, k = vectors[self.a], vectors[self.b], self.n_models
        moved = []
        for name in self.coordinates:
            if name == "gap":
                gap = a - b
                if self.n_covariates:
                    gap += self.covariates @ vectors[k : k + self.n_covariates]
                moved.append(gap)
            else:
                moved.append((a + b) / 2 if name == "level" else np.tile(vectors[-1], (len(a), 1)))
        return moved

    def inner(self, matrix: Floats, c: int, d: int) -> Floats:
        """Return ``x_i' M y_i`` of each row, x and y the directions of two coordinates.

        ``matrix`` is symmetric, of shape (n_parameters, n_parameters).
        """
        first, second = self.coordinates[c], self.coordinates[d]
        (a1, b1), (a2, b2) = _ON_STRENGTHS[first], _ON_STRENGTHS[second]
        a, b, x, y = self.a, self.b, self._extras(first), self._extras(second)
        on_x, on_y = self._place(first), self._place(second)
        total = a1 * a2 * matrix[a, a] + b1 * b2 * matrix[b, b]
        total += (a1 * b2 + b1 * a2) * matrix[a, b]
        for column, values in zip(matrix[:, on_y].T, y.T, strict=True):
            total += values * (a1 * column[a] + b1 * column[b])
        for column, values in zip(matrix[:, on_x].T, x.T, strict=True):
            total += values * (a2 * column[a] + b2 * column[b])
        return np.asarray(total + ((x @ matrix[on_x, on_y]) * y).sum(axis=1))

    def scores(self, slope: tuple[Floats, ...], cluster: Ints, n_clusters: int) -> Floats:
        """Sum the gradients of the rows in each cluster, shape (n_clusters, n_parameters)."""
        row = cluster * self.n_parameters
        at, value = [row + self.a, row + self.b], [np.zeros(len(row)), np.zeros(len(row))]
        for name, change in zip(self.coordinates, slope, strict=True):
            for side in (0, 1):
                value[side] += _ON_STRENGTHS[name][side] * change
            for column, derivative in enumerate(self._extras(name).T, self._place(name).start):
                at.append(row + column)
                value.append(change * derivative)
        size = n_clusters * self.n_parameters
        sums = np.bincount(np.concatenate(at), np.concatenate(value), size)
        return np.asarray(sums, dtype=np.float64).reshape(n_clusters, -1)

    def gradient(self, slope: tuple[Floats, ...]) -> Floats:
        """Sum the gradients of all rows, shape (n_parameters,)."""
        total = np.zeros(self.n_parameters)
        for name, value in zip(self.coordinates, slope, strict=True):
            total[: self.n_models] += self._on_strengths(name, value[:, None])[:, 0]
            total[self._place(name)] += self._extras(name).T @ value
        return total

    def hessian(self, curve: Mapping[tuple[int, int], Floats]) -> Floats:
        """Sum the Hessians of all rows, shape (n_parameters, n_parameters).

        Parameters
        ----------
        curve : mapping of (int, int) to ndarray of shape (n,)
            Second derivatives in the local coordinates, as in `Local`.
        """
        total = np.zeros((self.n_parameters, self.n_parameters))
        for (c, d), value in curve.items():
            block = self._block(self.coordinates[c], self.coordinates[d], value)
            total += block if c == d else block + block.T
        return total

    def _block(self, first: Coordinate, second: Coordinate, value: Floats) -> Floats:
        """Sum ``value_i x_i y_i'`` over the rows, x and y the directions of two coordinates."""
        k = self.n_models
        rows, columns = self._place(first), self._place(second)
        weighted = value[:, None] * self._extras(second)
        block = np.zeros((self.n_parameters, self.n_parameters))
        block[:k, :k] = self._strength_block(first, second, value)
        block[:k, columns] = self._on_strengths(first, weighted)
        block[rows, columns] = self._extras(first).T @ weighted
        if first == second:
            block[rows, :k] = block[:k, columns].T
        else:
            block[rows, :k] = self._on_strengths(second, value[:, None] * self._extras(first)).T
        return block

    def _place(self, name: Coordinate) -> slice:
        """Return where the coordinate's parameters beside the strengths are."""
        k, c = self.n_models, self.n_covariates
        return {"gap": slice(k, k + c), "tie": slice(k + c, k + c + 1), "level": slice(0, 0)}[name]

    def _extras(self, name: Coordinate) -> Floats:
        """Return the coordinate's derivatives in them, shape (n, as many)."""
        if name == "gap":
            return self.covariates
        return np.ones((len(self.a), 1)) if name == "tie" else np.empty((len(self.a), 0))

    def _on_strengths(self, name: Coordinate, value: Floats) -> Floats:
        """Sum the columns of ``value`` times the coordinate's derivatives in the strengths."""
        on_a, on_b = _ON_STRENGTHS[name]
        sums = np.zeros((self.n_models, value.shape[1]))
        for column in range(value.shape[1] if name != "tie" else 0):
            table = self._by_pair(value[:, column])
            sums[:, column] = on_a * table.sum(axis=1) + on_b * table.sum(axis=0)
        return sums

    def _strength_block(self, first: Coordinate, second: Coordinate, value: Floats) -> Floats:
        if "tie" in (first, second):
            return np.zeros((self.n_models, self.n_models))
        table = self._by_pair(value)
        (a1, b1), (a2, b2) = _ON_STRENGTHS[first], _ON_STRENGTHS[second]
        on_diagonal = a1 * a2 * table.sum(axis=1) + b1 * b2 * table.sum(axis=0)
        return np.asarray(a1 * b2 * table + b1 * a2 * table.T + np.diag(on_diagonal))

    def _by_pair(self, value: Floats) -> Floats:
        k = self.n_models
        sums = np.bincount(self.pair, value, k * k)
        return np.asarray(sums, dtype=np.float64).reshape(k, k)


ORDER_EFFECT = "order_effect"
STYLE = "style:"

_COLLINEAR = 1e-10
_SEPARATED = 1e-8


def information_left(design: Design, weight: Floats) -> Floats:
    """Return the information on the coefficients that the strengths leave over.

    The Schur complement of the strengths in ``sum_i weight_i x_i x_i'``, on
    the gap alone: shape (n_covariates, n_covariates).
    """
    k, c = design.n_models, design.n_covariates
    gaps = Design(k, design.a, design.b, design.pair, design.covariates, ("gap",))
    total = np.zeros((k + c, k + c))
    for rows in blocks(len(gaps.a)):
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
