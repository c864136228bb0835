"""Votes as integer arrays: checked once, then counted."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Protocol, Self

import numpy as np
from numpy.typing import NDArray

from rating.counting import (
    Cells,
    check_lengths,
    check_names,
    checked_features,
    checked_rows,
    count,
    dense,
    occurring,
)
from rating.errors import DataError
from rating.outcome import OUTCOMES
from rating.typing import Bools, Floats, Integers, Ints

_SCORE_A = np.array([outcome.score_a for outcome in OUTCOMES])


@dataclass(frozen=True, slots=True, eq=False)
class Comparisons:
    """Pairwise comparisons of ``n_models`` models, counted in cells.

    A cell is a distinct (voter, prompt, model on side A, model on side B,
    outcome), without the voter or the prompt where they are not known. Cells
    are sorted, so the order of the votes leaves no trace. With features every
    row is a cell of its own, in the order given. Build with `from_arrays` or
    `from_codes`. Whole numbers may be of narrow types: twenty million cells
    should fit in memory. Sums and products of them go through int64.

    Attributes
    ----------
    models : tuple of str, length n_models
        Names, sorted; a model's index is its position here.
    pairs : ndarray of shape (n_cells, 2), int
        Indices of the models on side A and on side B; never equal, but where a model is a part
        of what was compared (`rating.factors`).
    outcome : ndarray of shape (n_cells,), int
        Position in ``tuple(Outcome)``.
    votes : ndarray of shape (n_cells,), int
        Number of votes in the cell.
    weight, weight_sq : ndarray of shape (n_cells,), float64
        Sums of the votes' weights and of their squares; both equal ``votes``
        when no weights were given.
    voter, prompt : ndarray of shape (n_cells,), int, or None
        Index of the voter, of the prompt; None when not known.
    n_voters, n_prompts : int
        Number of distinct ones; 0 when not known.
    n_self : int
        Battles of a model against itself: excluded, part of no cell.
    features : ndarray of shape (n_cells, n_features), float64, or None
        What was measured on each row, side A against side B; None without.
    feature_names : tuple of str, length n_features
    """

    models: tuple[str, ...]
    pairs: Integers
    outcome: Integers
    votes: Integers
    weight: Floats
    weight_sq: Floats
    voter: Integers | None
    n_voters: int
    n_self: int
    prompt: Integers | None = None
    n_prompts: int = 0
    features: Floats | None = None
    feature_names: tuple[str, ...] = ()

    @classmethod
    def from_arrays(
        cls,
        model_a: Iterable[str],
        model_b: Iterable[str],
        outcome: Iterable[str],
        *,
        voter: Iterable[str] | Iterable[int] | None = None,
        prompt: Iterable[str] | Iterable[int] | None = None,
        weight: Iterable[float] | None = None,
    ) -> Self:
        """Check and count votes, one row a vote.

        Parameters
        ----------
        model_a, model_b : iterable of str, length n
            Names of the models on side A and side B. Battles of a model
            against itself are counted in ``n_self`` and otherwise excluded.
        outcome : iterable of Outcome or str, length n
            The values of `Outcome`, or their strings.
        voter, prompt : iterable of str or int, length n, optional
            Who cast the vote, and on which prompt.
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
        left, right, labels = _entries(model_a), _entries(model_b), _entries(outcome)
        given = {"voter": voter, "prompt": prompt}
        known = {name: _entries(column) for name, column in given.items() if column is not None}
        weights = None if weight is None else np.asarray(_entries(weight), dtype=np.float64)
        lengths = {"model_a": len(left), "model_b": len(right), "outcome": len(labels)}
        lengths |= {name: len(column) for name, column in known.items()}
        check_lengths(lengths if weights is None else lengths | {"weight": len(weights)})
        groups = {name: _group_codes(name, column) for name, column in known.items()}
        names, a, b = _model_codes(left, right)
        return cls.from_codes(
            names,
            a,
            b,
            _outcome_codes(labels),
            weight=weights,
            voter=groups.get("voter"),
            prompt=groups.get("prompt"),
        )

    @classmethod
    def from_codes(
        cls,
        models: Sequence[str],
        model_a: NDArray[Any],
        model_b: NDArray[Any],
        outcome: NDArray[Any],
        *,
        votes: NDArray[Any] | None = None,
        weight: NDArray[Any] | None = None,
        weight_sq: NDArray[Any] | None = None,
        voter: NDArray[Any] | None = None,
        prompt: NDArray[Any] | None = None,
        features: NDArray[Any] | None = None,
        feature_names: Sequence[str] = (),
    ) -> Self:
        """Check and count rows of integer codes, one row a vote or one row a cell.

        Parameters
        ----------
        models : sequence of str
            Distinct names, in any order. Those without a vote against another
            model are dropped.
        model_a, model_b : ndarray of shape (n,), any integers
            Positions in ``models``.
        outcome : ndarray of shape (n,), any integers
            Positions in ``tuple(Outcome)``.
        votes : ndarray of shape (n,), any integers, optional
            Votes that the row stands for; rows of none are dropped. Default 1.
        weight : ndarray of shape (n,), optional
            Total weight of the row's votes. Default: their number.
        weight_sq : ndarray of shape (n,), optional
            Sum of the squares of their weights. Default: as if they were equal.
        voter, prompt : ndarray of shape (n,), any integers from 0, optional
            Who voted, on which prompt.
        features : ndarray of shape (n, n_features), optional
            What was measured on each row, side A against side B: finite.
        feature_names : sequence of str, length n_features

        Raises
        ------
        DataError
            For unequal lengths; a code out of range; a name that is missing,
            blank or given twice; a weight or feature that is not finite.

        Examples
        --------
        Three votes for x, the model on side A.

        >>> one = np.array([0])
        >>> data = Comparisons.from_codes(["x", "y"], one, one + 1, one, votes=one + 3)
        >>> data.wins().tolist()
        [[0.0, 3.0], [0.0, 0.0]]
        """
        given = {"model_a": model_a, "model_b": model_b, "outcome": outcome, "votes": votes}
        given |= {"weight": weight, "weight_sq": weight_sq, "voter": voter, "prompt": prompt}
        columns = {name: np.asarray(x) for name, x in given.items() if x is not None}
        check_lengths({name: len(column) for name, column in columns.items()})
        check_names(models)
        rows = checked_rows(columns, len(models))
        *clusters, a, b, outcome = rows.keys
        rank = np.argsort(np.argsort(np.array(list(models), dtype=object))).astype(np.int32)
        rows = replace(rows, keys=(*clusters, rank[a], rank[b], outcome))
        names = tuple(feature_names) if features is not None else ()
        if features is not None:
            cells = replace(rows, features=checked_features(features, names, len(a)))
        else:
            sizes = [int(codes.max(initial=0)) + 1 for codes in clusters]
            cells = count(rows, [*sizes, len(rank), len(rank), len(OUTCOMES)])
        groups = [name for name in ("voter", "prompt") if name in columns]
        return cls.of_cells(sorted(models), cells, groups, names)

    @classmethod
    def of_cells(
        cls, names: Sequence[str], cells: Cells, groups: Sequence[str], features: tuple[str, ...]
    ) -> Self:
        """Set self battles and models without others aside, and number the rest again.

        Parameters
        ----------
        names : sequence of str
            Of the models, sorted.
        cells : Cells
            Sorted; their keys are ``groups``, both sides and the outcome.
        groups : sequence of {"voter", "prompt"}
        features : tuple of str
        """
        *clusters, a, b, outcome = cells.keys
        others = (a != b) & (cells.votes > 0)
        stay = slice(None) if others.all() else others
        n_self = int(cells.votes[a == b].sum())
        models, a, b = occurring(names, a[stay], b[stay])
        known = {name: dense(codes[stay]) for name, codes in zip(groups, clusters, strict=True)}
        voter, n_voters = known.get("voter", (None, 0))
        prompt, n_prompts = known.get("prompt", (None, 0))
        weight = cells.votes.astype(np.float64) if cells.weight is None else cells.weight
        weight = weight[stay]
        return cls(
            models=models,
            pairs=np.column_stack([a, b]),
            outcome=outcome[stay],
            votes=cells.votes[stay],
            weight=weight,
            weight_sq=weight if cells.weight_sq is None else cells.weight_sq[stay],
            voter=voter,
            n_voters=n_voters,
            n_self=n_self,
            prompt=prompt,
            n_prompts=n_prompts,
            features=None if cells.features is None else cells.features[stay],
            feature_names=features,
        )

    @property
    def n_models(self) -> int:
        """Number of models with at least one battle against another."""
        return len(self.models)

    @property
    def n_votes(self) -> int:
        """Number of votes in the cells: battles of a model against itself excluded."""
        return int(self.votes.sum())

    @property
    def score_a(self) -> Floats:
        """Score of side A in each cell: 1 win, 1/2 either kind of tie, 0 loss."""
        return np.asarray(_SCORE_A[self.outcome])

    def wins(self, cells: Bools | None = None) -> Floats:
        """Return the weighted score of row against column, shape (n_models, n_models).

        Parameters
        ----------
        cells : ndarray of shape (n_cells,), bool, optional
            The cells that count; all of them by default.
        """
        table = self.table(None if cells is None else np.where(cells, self.weight, 0.0))
        return np.asarray(table @ _SCORE_A + (table @ (1 - _SCORE_A)).T)

    def table(self, value: NDArray[Any] | None = None) -> Floats:
        """Sum a value of the cells (by default their weight) by side A, side B and outcome.

        Returns
        -------
        ndarray of shape (n_models, n_models, 4)
        """
        k, m = self.n_models, len(OUTCOMES)
        sums = np.bincount(self.codes(), self.weight if value is None else value, k * k * m)
        return np.asarray(sums, dtype=np.float64).reshape(k, k, m)

    def codes(self) -> Ints:
        """Return the place of every cell in `table`, flattened."""
        code = self.pairs[:, 0].astype(np.int64)
        for size, key in ((self.n_models, self.pairs[:, 1]), (len(OUTCOMES), self.outcome)):
            code *= size
            code += key
        return code

    def votes_per_model(self) -> Ints:
        """Return the number of votes each model took part in, on either side."""
        a, b = (np.bincount(side, self.votes, self.n_models) for side in self.pairs.T)
        return np.asarray(a + b).astype(np.int64)

    def merged(self) -> Self:
        """Return the same votes without voters and prompts; rows with features stay apart."""
        if self.voter is None and self.prompt is None:
            return self
        apart = {"voter": None, "n_voters": 0, "prompt": None, "n_prompts": 0}
        if self.features is not None:
            return replace(self, **apart)  # type: ignore[arg-type]
        votes, weight = self.table(self.votes), self.table()
        square = weight if self.weight_sq is self.weight else self.table(self.weight_sq)
        a, b, outcome = np.nonzero(votes)
        return replace(
            self,
            pairs=np.column_stack([a, b]),
            outcome=outcome,
            votes=votes[a, b, outcome].astype(np.int64),
            weight=weight[a, b, outcome],
            weight_sq=square[a, b, outcome],
            **apart,  # type: ignore[arg-type]
        )

    def subset(self, cells: Bools | Ints | slice) -> Self:
        """Return the cells marked or named; models, voters and prompts keep their numbers."""
        columns = ("pairs", "outcome", "votes", "weight", "weight_sq", "voter", "prompt")
        values = {name: getattr(self, name) for name in (*columns, "features")}
        return replace(self, **{k: v[cells] for k, v in values.items() if v is not None})


Sums = Mapping[str, NDArray[Any]]
"""What some clusters add to a board: arrays by name."""


class Parts(Protocol):
    """Votes apart by voter: all votes of a voter are in one part, on the same models."""

    def each(self, work: Callable[[Comparisons], Sums], name: str | None = None) -> Iterable[Sums]:
        """Call a function with every part, and give what it returns, in a fixed order.

        Parameters
        ----------
        work : callable
            It may be called in any thread or process.
        name : str, optional
            Keep the results under this name, to be gone through more than once.
        """


@dataclass(frozen=True, slots=True, eq=False)
class Votes:
    """Votes as read: the counted ones, and the numbers of excluded ones.

    Attributes
    ----------
    data : Comparisons
        The votes that count; ``read == data.n_votes + self_battles + sum(dropped.values())``.
    voters, prompts : tuple of str
        Names, sorted; ``data`` holds positions in them. Empty where not known.
    read, self_battles : int
        All votes, and battles of a model against itself.
    dropped : mapping of str to int
        Votes excluded, by reason.
    style_sd : mapping of str to float
        Divisor of each style: its standard deviation, or 1.
    data_hash : str
        SHA-256 of the sorted cells, names among them: the same votes have the same hash
        whatever the file and the order of its rows.
    warnings : tuple of str
    parts : Parts or None
        The same votes by voter, where these are too many for memory; ``data`` then knows none.
    sampled : int
        Voters in a sample, where only a warning asks for them: ``data`` then knows none.
    """

    data: Comparisons
    voters: tuple[str, ...] = ()
    prompts: tuple[str, ...] = ()
    read: int = 0
    self_battles: int = 0
    dropped: Mapping[str, int] = field(default_factory=dict)
    style_sd: Mapping[str, float] = field(default_factory=dict)
    data_hash: str = ""
    warnings: tuple[str, ...] = ()
    parts: Parts | None = None
    sampled: int = 0


def _entries(column: Iterable[object]) -> list[object]:
    """Return the entries as they are: ``np.asarray`` would make the name "nan" of a NaN."""
    return column.tolist() if isinstance(column, np.ndarray) else list(column)


def _model_codes(left: list[object], right: list[object]) -> tuple[tuple[str, ...], Ints, Ints]:
    """Return the names of both sides, sorted, and their positions."""
    distinct = dict.fromkeys([*dict.fromkeys(left), *dict.fromkeys(right)])
    check_names(distinct)
    names = sorted(distinct, key=str)
    index = {name: code for code, name in enumerate(names)}
    return tuple(map(str, names)), _codes(left, index), _codes(right, index)


def _outcome_codes(labels: list[object]) -> Ints:
    position: Mapping[Any, int] = {outcome: code for code, outcome in enumerate(OUTCOMES)}
    distinct = dict.fromkeys(labels)
    unknown = sorted(repr(x) for x in distinct if not isinstance(x, str) or x not in position)
    if unknown:
        raise DataError(f"Unknown outcome {', '.join(unknown)}; use one of {', '.join(OUTCOMES)}.")
    return _codes(labels, position)


def _group_codes(kind: str, names: list[object]) -> Ints:
    """Code voters, or prompts, in sorted order, numbers before strings."""
    distinct = dict.fromkeys(names)
    for name in distinct:
        if not isinstance(name, str | int) or name == "":
            raise DataError(
                f"{kind.capitalize()} {name!r} is missing; name every {kind}, or pass "
                f"{kind}=None when unknown."
            )
    ordered = sorted(distinct, key=lambda name: (isinstance(name, str), name))
    return _codes(names, {name: code for code, name in enumerate(ordered)})


def _codes(column: list[object], index: Mapping[Any, int]) -> Ints:
    return np.fromiter(map(index.__getitem__, column), np.int64, len(column))
