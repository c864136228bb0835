"""Votes as integer arrays: checked once, then counted."""

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import NDArray

from rating.errors import DataError
from rating.outcome import Outcome

OUTCOMES = tuple(Outcome)
_SCORE_A = np.array([outcome.score_a for outcome in OUTCOMES])


@dataclass(frozen=True, slots=True, eq=False)
class Comparisons:
    """Pairwise comparisons of ``n_models`` models, counted in cells.

    A cell is a distinct (voter, model on side A, model on side B, outcome);
    without voters, a distinct (model, model, outcome). Cells are sorted, so
    the order of the votes leaves no trace. Build with `from_arrays`.

    Attributes
    ----------
    models : tuple of str, length n_models
        Names, sorted; a model's index is its position here.
    pairs : ndarray of shape (n_cells, 2), int64
        Indices of the models on side A and on side B; never equal.
    outcome : ndarray of shape (n_cells,), int64
        Position in ``tuple(Outcome)``.
    votes : ndarray of shape (n_cells,), int64
        Number of votes in the cell.
    weight, weight_sq : ndarray of shape (n_cells,), float64
        Sums of the votes' weights and of their squares; both equal ``votes``
        when no weights were given.
    voter : ndarray of shape (n_cells,), int64, or None
        Index of the voter; None when voters are not known.
    n_voters : int
        Number of distinct voters; 0 when voters are not known.
    n_self : int
        Battles of a model against itself: set aside, part of no cell.
    """

    models: tuple[str, ...]
    pairs: NDArray[np.int64]
    outcome: NDArray[np.int64]
    votes: NDArray[np.int64]
    weight: NDArray[np.float64]
    weight_sq: NDArray[np.float64]
    voter: NDArray[np.int64] | None
    n_voters: int
    n_self: int

    @classmethod
    def from_arrays(
        cls,
        model_a: Iterable[str],
        model_b: Iterable[str],
        outcome: Iterable[str],
        *,
        voter: Iterable[str] | Iterable[int] | None = None,
        weight: Iterable[float] | None = None,
    ) -> Self:
        """Check and count votes, one row a vote.

        Parameters
        ----------
        model_a, model_b : iterable of str, length n
            Names of the models on side A and side B. Battles of a model
            against itself are counted in ``n_self`` and otherwise left out.
        outcome : iterable of Outcome or str, length n
            The values of `Outcome`, or their strings.
        voter : iterable of str or int, length n, optional
            Who cast the vote.
        weight : iterable of float, length n, optional
            Sampling weights, finite and not negative: the vote counts this
            many times in the fit, but stays one vote. Default 1.

        Raises
        ------
        DataError
            For unequal lengths; a label that is no `Outcome`; a missing or
            blank name; two names that differ only in case or in surrounding
            spaces; a weight that is negative or not finite.

        Examples
        --------
        >>> data = Comparisons.from_arrays(["x", "x"], ["y", "y"], ["model_a", "model_a"])
        >>> data.models, int(data.votes[0])
        (('x', 'y'), 2)
        """
        left, right, labels = _as_list(model_a), _as_list(model_b), _as_list(outcome)
        n = len(left)
        voters = None if voter is None else _as_list(voter)
        weights = np.ones(n) if weight is None else _as_weights(weight)
        lengths = {"model_a": n, "model_b": len(right), "outcome": len(labels)}
        lengths |= {"voter": n if voters is None else len(voters), "weight": len(weights)}
        _check_lengths(lengths)
        _check_names({*left, *right})
        _check_labels(set(labels))
        kept = np.array([a != b for a, b in zip(left, right, strict=True)], dtype=bool)
        return cls._count(
            _select(left, kept),
            _select(right, kept),
            _select(labels, kept),
            None if voters is None else _select(voters, kept),
            weights[kept],
            n_self=n - int(kept.sum()),
        )

    @classmethod
    def _count(
        cls,
        left: list[object],
        right: list[object],
        labels: list[object],
        voters: list[object] | None,
        weights: NDArray[np.float64],
        *,
        n_self: int,
    ) -> Self:
        models = tuple(str(name) for name in sorted({*left, *right}, key=str))
        people = [None] if voters is None else _distinct_voters(voters)
        shape = (max(len(people), 1), max(len(models), 1), max(len(models), 1), len(OUTCOMES))
        rows = (
            _codes(voters or [None] * len(left), people),
            _codes(left, models),
            _codes(right, models),
            _codes(labels, OUTCOMES),
        )
        code = np.ravel_multi_index(rows, shape)
        order = np.lexsort((weights, code))  # sums must not depend on the order of the votes
        code, weights = code[order], weights[order]
        cells, cell, votes = np.unique(code, return_inverse=True, return_counts=True)
        voter, a, b, outcome = np.unravel_index(cells, shape)
        return cls(
            models=models,
            pairs=np.column_stack([a, b]),
            outcome=outcome,
            votes=votes,
            weight=_sums(cell, weights, len(cells)),
            weight_sq=_sums(cell, weights**2, len(cells)),
            voter=None if voters is None else voter,
            n_voters=0 if voters is None else len(people),
            n_self=n_self,
        )

    @property
    def n_models(self) -> int:
        """Number of models with at least one battle against another."""
        return len(self.models)

    @property
    def n_votes(self) -> int:
        """Number of votes in the cells: battles of a model against itself left out."""
        return int(self.votes.sum())

    @property
    def score_a(self) -> NDArray[np.float64]:
        """Score of side A in each cell: 1 win, 1/2 either kind of tie, 0 loss."""
        return _SCORE_A[self.outcome]

    def wins(self, cells: NDArray[np.bool_] | None = None) -> NDArray[np.float64]:
        """Return the weighted score of row against column, shape (n_models, n_models).

        Parameters
        ----------
        cells : ndarray of shape (n_cells,), bool, optional
            The cells that count; all of them by default.
        """
        a, b = self.pairs.T
        weight = self.weight if cells is None else np.where(cells, self.weight, 0.0)
        return self._table(a, b, weight * self.score_a) + self._table(
            b, a, weight * (1 - self.score_a)
        )

    def votes_per_model(self) -> NDArray[np.int64]:
        """Return the number of votes each model took part in, on either side."""
        counts = np.bincount(self.pairs.ravel(), np.repeat(self.votes, 2), self.n_models)
        return counts.astype(np.int64)

    def _table(
        self, row: NDArray[np.int64], column: NDArray[np.int64], value: NDArray[np.float64]
    ) -> NDArray[np.float64]:
        k = self.n_models
        return _sums(row * k + column, value, k * k).reshape(k, k)


def _as_list(column: Iterable[object]) -> list[object]:
    # Never through np.asarray: it would turn a NaN among strings into the name "nan".
    return column.tolist() if isinstance(column, np.ndarray) else list(column)


def _as_weights(weight: Iterable[float]) -> NDArray[np.float64]:
    weights = np.asarray(_as_list(weight), dtype=np.float64)
    bad = weights[~(np.isfinite(weights) & (weights >= 0))]
    if bad.size:
        raise DataError(f"Weight {bad[0]} is negative or not finite; {bad.size} such rows.")
    return weights


def _check_lengths(lengths: dict[str, int]) -> None:
    if len(set(lengths.values())) > 1:
        listed = ", ".join(f"{name} {length}" for name, length in lengths.items())
        raise DataError(f"Columns must have one entry per vote, but have lengths {listed}.")


def _check_names(names: set[object]) -> None:
    spellings = defaultdict(list)
    for name in names:
        if not isinstance(name, str) or not name.strip():
            raise DataError(f"Model name {name!r} is missing or blank; leave such rows out.")
        spellings[name.strip().casefold()].append(str(name))
    twins = sorted(sorted(found) for found in spellings.values() if len(found) > 1)
    if twins:
        listed = "; ".join(" and ".join(map(repr, found)) for found in twins)
        raise DataError(
            f"Names that differ only in case or surrounding spaces: {listed}. "
            "Give each model one spelling."
        )


def _check_labels(labels: set[object]) -> None:
    known = set(OUTCOMES)
    unknown = sorted(repr(x) for x in labels if not isinstance(x, str) or x not in known)
    if unknown:
        listed = ", ".join(OUTCOMES)
        raise DataError(f"Unknown outcome {', '.join(unknown)}; use one of {listed}.")


def _distinct_voters(voters: list[object]) -> list[object]:
    distinct = set(voters)
    for voter in distinct:
        if not isinstance(voter, str | int) or voter == "":
            raise DataError(
                f"Voter {voter!r} is missing; name every voter, or pass voter=None when unknown."
            )
    return sorted(distinct, key=lambda voter: (isinstance(voter, str), voter))


def _select(column: list[object], kept: NDArray[np.bool_]) -> list[object]:
    return [value for value, keep in zip(column, kept, strict=True) if keep]


def _codes(column: list[object], distinct: Iterable[object]) -> NDArray[np.int64]:
    index = {value: code for code, value in enumerate(distinct)}
    return np.fromiter((index[value] for value in column), np.int64, len(column))


def _sums(index: NDArray[np.int64], value: NDArray[np.float64], size: int) -> NDArray[np.float64]:
    return np.asarray(np.bincount(index, value, size), dtype=np.float64)
