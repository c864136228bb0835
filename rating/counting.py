"""Rows of integer codes, checked and counted in cells."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rating.encoding import OUTCOMES, check_lengths
from rating.errors import DataError
from rating.typing import Floats, Integers, Ints

SMALL_TABLE = 4_000_000
"""Possible cells up to which counting in a table beats sorting."""

_CODE_LIMIT = 2**62


@dataclass(frozen=True, slots=True, eq=False)
class Rows:
    """Checked rows, each standing for ``votes`` votes.

    Attributes
    ----------
    groups : tuple of {"voter", "prompt"}
        Which of these are known.
    keys : tuple of ndarray of shape (n,), int
        Codes of those, then of side A, side B and the outcome; in narrow types, to be added up
        as int64.
    sizes : tuple of int
        One more than the largest code each key may take.
    votes : ndarray of shape (n,), int, or None
        None when every row is one vote.
    weight, weight_sq : ndarray of shape (n,), float64, or None
        None when every vote has weight one.
    """

    groups: tuple[str, ...]
    keys: tuple[Integers, ...]
    sizes: tuple[int, ...]
    votes: Integers | None
    weight: Floats | None
    weight_sq: Floats | None


@dataclass(frozen=True, slots=True, eq=False)
class Cells:
    """Distinct keys in sorted order, and the totals of their rows."""

    keys: tuple[Integers, ...]
    votes: Integers
    weight: Floats
    weight_sq: Floats


def count(rows: Rows) -> Cells:
    """Add up the rows with equal keys."""
    if np.prod([float(size) for size in rows.sizes]) >= _CODE_LIMIT:
        rows = _with_dense_codes(rows)
    code = rows.keys[0].astype(np.int64)
    for key, size in zip(rows.keys[1:], rows.sizes[1:], strict=True):
        code *= size
        code += key
    if (code[1:] > code[:-1]).all():
        return keep_rows(rows)
    n_codes = math.prod(rows.sizes)
    if rows.weight is not None:
        return _totals(rows, *_weighted(rows, code))
    if n_codes <= SMALL_TABLE:
        return _totals(rows, *_in_table(rows.votes, code, n_codes))
    return _totals(rows, *_by_sorting(rows.votes, code))


def keep_rows(rows: Rows) -> Cells:
    """Take every row as a cell of its own, in the order given."""
    votes = np.ones(len(rows.keys[0]), dtype=np.int64) if rows.votes is None else rows.votes
    weight = votes.astype(np.float64) if rows.weight is None else rows.weight
    return Cells(rows.keys, votes, weight, weight if rows.weight_sq is None else rows.weight_sq)


def dense(codes: Integers) -> tuple[Integers, int]:
    """Renumber codes without gaps, keeping their order; also return how many there are."""
    if codes.size and int(codes.max()) > 4 * codes.size + 1000:
        distinct, inverse = np.unique(codes, return_inverse=True)
        return inverse, len(distinct)
    present = np.zeros(int(codes.max(initial=-1)) + 1, dtype=bool)
    present[codes] = True
    if present.all():
        return codes, len(present)
    return (np.cumsum(present) - 1).astype(codes.dtype)[codes], int(present.sum())


def checked_rows(columns: Mapping[str, NDArray[Any]], rank: Integers) -> Rows:
    """Check columns of equal length.

    Parameters
    ----------
    columns : mapping of str to ndarray of shape (n,)
        ``model_a``, ``model_b`` and ``outcome``; if known ``voter``,
        ``prompt``, ``votes``, ``weight`` and ``weight_sq``.
    rank : ndarray of shape (n_models,), int64
        The number that each code of a model gets.

    Raises
    ------
    DataError
        For a code out of range, or a weight that is not finite.
    """
    k = len(rank)
    names = tuple(name for name in ("voter", "prompt") if name in columns)
    groups = [checked_codes(name, columns[name], None) for name in names]
    sides = [checked_codes(name, columns[name], k) for name in ("model_a", "model_b")]
    if (rank != np.arange(k)).any():
        sides = [rank.astype(np.int32)[codes] for codes in sides]
    outcome = checked_codes("outcome", columns["outcome"], len(OUTCOMES))
    votes = checked_codes("votes", columns["votes"], None) if "votes" in columns else None
    weight = checked_weights("weight", columns.get("weight"))
    square = checked_weights("weight_sq", columns.get("weight_sq"))
    if square is not None and weight is None:
        raise DataError("weight_sq was given without weight.")
    if weight is not None and square is None:
        square = weight**2 / (1 if votes is None else np.maximum(votes, 1))
    sizes = (*(int(g.max(initial=0)) + 1 for g in groups), k, k, len(OUTCOMES))
    return Rows(names, (*groups, *sides, outcome), sizes, votes, weight, square)


def checked_codes(name: str, codes: NDArray[np.generic], size: int | None) -> Integers:
    """Return the codes as signed integers.

    Raises
    ------
    DataError
        Unless they are integers from 0 to ``size - 1`` (from 0, without a size).
    """
    if not np.issubdtype(codes.dtype, np.integer) and codes.size:
        raise DataError(f"{name} must hold integer codes, not {codes.dtype}.")
    if codes.ndim != 1:
        raise DataError(f"{name} must have one dimension, not {codes.ndim}.")
    if codes.size:
        low, high = int(codes.min()), int(codes.max())
        if low < 0 or (size is not None and high >= size):
            allowed = "0 or more" if size is None else f"from 0 to {size - 1}"
            raise DataError(f"{name} holds the code {min(low, 0) or high}; codes are {allowed}.")
    signed: Ints = codes if codes.dtype.kind == "i" else codes.astype(np.int64)  # type: ignore[assignment]
    return signed


def checked_weights(name: str, weight: NDArray[np.generic] | None) -> Floats | None:
    """Return the weights as float64, or None; raises `DataError` unless finite and >= 0."""
    if weight is None:
        return None
    values = np.asarray(weight, dtype=np.float64)
    bad = values[~(np.isfinite(values) & (values >= 0))]
    if bad.size:
        label = name.capitalize()
        raise DataError(f"{label} {bad[0]} is negative or not finite; {bad.size} such rows.")
    return values


def checked_features(features: NDArray[np.generic], names: tuple[str, ...], n: int) -> Floats:
    """Return the features as float64 of shape (n, len(names)), or raise `DataError`."""
    values = np.asarray(features, dtype=np.float64)
    if values.ndim != 2 or values.shape[1] != len(names):
        raise DataError(
            f"features of shape {values.shape} need one column for each of the names {names}."
        )
    if len(set(names)) != len(names):
        raise DataError(f"Feature names must differ: {names}.")
    check_lengths({"model_a": n, "features": len(values)})
    bad = ~np.isfinite(values)
    if bad.any():
        row, column = np.argwhere(bad)[0]
        raise DataError(
            f"Feature {names[column]!r} is {values[row, column]} in row {row}; "
            f"{int(bad.any(axis=1).sum())} such rows."
        )
    return values


def _with_dense_codes(rows: Rows) -> Rows:
    """Renumber what stands before the pair (voter, prompt), so that the codes fit 63 bits."""
    n_models = rows.sizes[-2]
    keys, sizes = list(rows.keys[-3:]), [n_models, n_models, len(OUTCOMES)]
    for key in reversed(rows.keys[:-3]):
        codes, size = dense(key)
        keys.insert(0, codes)
        sizes.insert(0, max(size, 1))
    return replace(rows, keys=tuple(keys), sizes=tuple(sizes))


def _in_table(
    votes: Integers | None, code: Integers, n_codes: int
) -> tuple[Integers, Integers, None, None]:
    table = np.bincount(code, votes, n_codes)
    cells = np.flatnonzero(table)
    return cells, table[cells].astype(np.int64), None, None


def _by_sorting(votes: Integers | None, code: Integers) -> tuple[Integers, Integers, None, None]:
    if votes is not None:
        order = np.argsort(code)
        code, votes = code[order], votes[order]
    else:
        code = np.sort(code)
    starts = _starts(code)
    if votes is not None:
        return code[starts], np.add.reduceat(votes, starts), None, None
    return code[starts], np.diff(starts, append=len(code)), None, None


def _weighted(rows: Rows, code: Integers) -> tuple[Integers, Integers, Floats, Floats]:
    assert rows.weight is not None
    assert rows.weight_sq is not None
    order = np.lexsort((rows.weight_sq, rows.weight, code))  # sums must not depend on the order
    code = code[order]
    votes = np.ones(len(code), dtype=np.int64) if rows.votes is None else rows.votes[order]
    starts = _starts(code)
    if not len(starts):
        return code, votes, np.empty(0), np.empty(0)
    return (
        code[starts],
        np.add.reduceat(votes, starts),
        np.add.reduceat(rows.weight[order], starts),
        np.add.reduceat(rows.weight_sq[order], starts),
    )


def _starts(code: Integers) -> Integers:
    """Return where a new value begins in a sorted array."""
    return np.flatnonzero(np.diff(code, prepend=-1))


def _totals(
    rows: Rows, cells: Integers, votes: Integers, weight: Floats | None, weight_sq: Floats | None
) -> Cells:
    keys = []
    for size in reversed(rows.sizes[1:]):
        cells, key = np.divmod(cells, size)
        keys.append(_narrowed(key, size))
    weight = votes.astype(np.float64) if weight is None else weight
    return Cells(
        keys=(_narrowed(cells, rows.sizes[0]), *reversed(keys)),
        votes=votes,
        weight=weight,
        weight_sq=weight if weight_sq is None else weight_sq,
    )


def _narrowed(codes: Integers, size: int) -> Integers:
    return codes.astype(np.int32) if size <= np.iinfo(np.int32).max else codes
