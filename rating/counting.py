"""Rows of whole numbers, checked and counted in cells."""

import math
import unicodedata
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import compress
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rating.errors import DataError
from rating.outcome import OUTCOMES, of_sides
from rating.typing import Bools, Floats, Integers, Ints

LIMIT = np.iinfo(np.int64).max
DENSE_CELLS = 1 << 22
"""Cells up to which a table of all of them is counted, 16 a row; above it, rows are sorted."""

_AT_ONCE = 1 << 20


@dataclass(frozen=True, slots=True, eq=False)
class Cells:
    """Distinct keys in sorted order, and the totals of their rows.

    Attributes
    ----------
    keys : tuple of ndarray of shape (n_cells,), int
    votes : ndarray of shape (n_cells,), int
    weight, weight_sq : ndarray of shape (n_cells,), float64, or None
        None when every vote has weight one.
    features : ndarray of shape (n_cells, n_features), float64, or None
        With features every row is a cell of its own.
    """

    keys: tuple[Integers, ...]
    votes: Integers
    weight: Floats | None = None
    weight_sq: Floats | None = None
    features: Floats | None = None


def count(rows: Cells, sizes: Sequence[int]) -> Cells:
    """Sort rows, and add up those with equal keys; with features they are only sorted.

    Weights are summed in sorted order, so that the sums do not depend on that of the rows.

    Parameters
    ----------
    rows : Cells
        In any order, alike or not.
    sizes : sequence of int
        One more than the largest code that each key may take.
    """
    if not fits(sizes):
        sizes, rows = _without_gaps(rows)
    if not fits(sizes):
        return _totals(rows, np.lexsort((*_measures(rows)[::-1], *rows.keys[::-1])))
    key = packed(rows.keys, sizes)
    if (key[1:] > key[:-1]).all():
        return rows
    measures = _measures(rows)
    if measures:
        return _totals(rows, _order(key, measures))
    if math.prod(size + 1 for size in sizes) > min(DENSE_CELLS, 16 * len(key)):
        return _totals(rows, np.argsort(key))
    table = np.bincount(key, rows.votes)
    cells = np.flatnonzero(table)
    return Cells(tuple(unpacked(cells, sizes)), table[cells].astype(np.int64))


def _measures(rows: Cells) -> list[Floats]:
    """Return what rows with equal keys are sorted by."""
    features = [] if rows.features is None else list(rows.features.T)
    sums = (rows.weight, rows.weight_sq)
    return [*features, *(values for values in sums if values is not None)]


def _without_gaps(rows: Cells) -> tuple[list[int], Cells]:
    keys, sizes = zip(*map(dense, rows.keys), strict=True)
    return [*sizes], Cells(keys, rows.votes, rows.weight, rows.weight_sq, rows.features)


def _order(key: Ints, measures: Sequence[Floats]) -> NDArray[np.intp]:
    """Order rows as ``np.lexsort`` would by key and then measures, in a tenth of the time.

    One number holds the key and as much of the first measure as fits beside it; only rows that
    are equal in both are compared in full.
    """
    bits = 63 - int(key.max(initial=0)).bit_length()
    joined = (key << bits) | (_in_order(measures[0]) >> np.uint64(64 - bits)).view(np.int64)
    order = np.argsort(joined)
    joined = joined[order]
    same = np.zeros(len(order) + 1, dtype=bool)
    same[1:-1] = joined[1:] == joined[:-1]
    tied = np.flatnonzero(same[1:] | same[:-1])
    rows = order[tied]
    order[tied] = rows[np.lexsort((*(m[rows] for m in measures[::-1]), key[rows]))]
    return order


def _in_order(measure: Floats) -> NDArray[np.uint64]:
    """Return whole numbers that sort as the floats do: their bits, negative ones turned."""
    bits = (measure + 0.0).view(np.int64)  # -0.0 + 0.0 is 0.0
    return (bits ^ (bits >> 63 | np.iinfo(np.int64).min)).view(np.uint64)


def _totals(rows: Cells, order: NDArray[np.intp]) -> Cells:
    keys = tuple(key[order] for key in rows.keys)
    weight, square = (None if v is None else v[order] for v in (rows.weight, rows.weight_sq))
    votes = rows.votes[order]
    if rows.features is not None:
        return Cells(keys, votes, weight, square, rows.features.take(order, axis=0))
    new = np.zeros(len(order), dtype=bool)
    new[:1] = True
    for key in keys:
        new[1:] |= key[1:] != key[:-1]
    if new.all():
        return Cells(keys, votes, weight, square)
    starts = np.flatnonzero(new)
    sums = [None if v is None else np.add.reduceat(v, starts) for v in (weight, square)]
    return Cells(tuple(key[starts] for key in keys), np.add.reduceat(votes, starts), *sums)


def fits(sizes: Sequence[int]) -> bool:
    """Whether codes from -1 up to below each size fit in one number."""
    return math.prod(size + 1 for size in sizes) <= LIMIT


def packed(codes: Sequence[Integers], sizes: Sequence[int]) -> Ints:
    """Return one number a row, the first code the most significant.

    >>> packed([np.array([0, -1]), np.array([2, 1])], [1, 3]).tolist()
    [7, 2]
    """
    key = np.zeros(len(codes[0]), dtype=np.int64)
    for code, size in zip(codes, sizes, strict=True):
        key *= size + 1
        key += code
        key += 1
    return key


def count_packed(key: NDArray[Any], sizes: Sequence[int]) -> tuple[list[Integers], Integers]:
    """Count the rows that are alike: the codes of each kind in sorted order, and its rows.

    A long key is sorted in place: the keys of twenty million votes should exist once.
    """
    if math.prod(size + 1 for size in sizes) <= min(DENSE_CELLS, 16 * len(key)):
        rows = np.bincount(key, minlength=1)
        cells = np.flatnonzero(rows)
        return unpacked(cells, sizes), rows[cells]
    key.sort()
    n = sum(int(np.count_nonzero(new)) for _, new in _beginnings(key))
    codes = [np.empty(n, dtype=narrowest(size)) for size in sizes]
    starts, done = np.empty(n + 1, dtype=narrowest(len(key))), 0
    for first, new in _beginnings(key):
        at = first + np.flatnonzero(new)
        starts[done : done + len(at)] = at
        for column, part in zip(codes, unpacked(key[at], sizes), strict=True):
            column[done : done + len(at)] = part
        done += len(at)
    starts[-1] = len(key)
    return codes, np.diff(starts)


def _beginnings(key: NDArray[Any]) -> Iterator[tuple[int, Bools]]:
    """Mark, of some sorted numbers at a time, those that differ from the one before."""
    for first in range(0, len(key), _AT_ONCE):
        part = key[first : first + _AT_ONCE]
        new = np.ones(len(part), dtype=bool)
        new[1:] = part[1:] != part[:-1]
        new[0] = first == 0 or part[0] != key[first - 1]
        yield first, new


def unpacked(key: NDArray[Any], sizes: Sequence[int]) -> list[Integers]:
    """Return the codes of `packed`, each in the narrowest type that holds it."""
    codes: list[Integers] = []
    for size in reversed(sizes):
        key, code = np.divmod(key, size + 1)
        codes.insert(0, (code - 1).astype(narrowest(size)))
    return codes


def occurring(
    names: Sequence[str], a: Integers, b: Integers
) -> tuple[tuple[str, ...], Integers, Integers]:
    """Exclude the names that neither of two columns of codes has, and number the rest again.

    >>> occurring(("x", "y", "z"), np.array([2]), np.array([0]))
    (('x', 'z'), array([1], dtype=int8), array([0], dtype=int8))
    """
    there = np.zeros(len(names), dtype=bool)
    there[a] = there[b] = True
    if there.all():
        return tuple(names), a, b
    known = tuple(compress(names, there))
    place = (np.cumsum(there) - 1).astype(narrowest(len(known)))
    return known, place[a], place[b]


def narrowest(size: int) -> np.dtype[Any]:
    """Return the smallest type of whole number that holds positions among this many, and -1.

    >>> narrowest(300)
    dtype('int16')
    """
    return np.min_scalar_type(-size - 1)


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


def check_lengths(lengths: Mapping[str, int]) -> None:
    """Raise `DataError` unless all columns have the same length."""
    if len(set(lengths.values())) > 1:
        each = ", ".join(f"{name} {length}" for name, length in lengths.items())
        raise DataError(f"Columns must have one entry per vote, but have lengths {each}.")


def spelling(name: str) -> str:
    """Reduce a name to what is distinguished: not case, spaces, or characters that look alike.

    That is composed and decomposed letters, characters without width, and dashes.

    >>> spelling("GPT\u20114\u200b") == spelling("gpt-4")
    True
    """
    kinds = ((c, unicodedata.category(c)) for c in unicodedata.normalize("NFD", name))
    seen = ("-" if kind == "Pd" or c in _DASHES else c for c, kind in kinds if kind != "Cf")
    return unicodedata.normalize("NFD", " ".join("".join(seen).split()).casefold())


_DASHES = "\u02d7\u2043\u2212"
"""Characters that look like a hyphen, and are no dashes to Unicode."""


def check_names(names: Iterable[object]) -> None:
    """Raise `DataError` for a missing or blank name, and for two spellings of one."""
    spellings = defaultdict(list)
    for name in names:
        if not isinstance(name, str) or not name.strip():
            raise DataError(f"Model name {name!r} is missing or blank; leave such rows out.")
        spellings[spelling(name)].append(str(name))
    twins = sorted(sorted(same) for same in spellings.values() if len(same) > 1)
    if twins:
        each = "; ".join(" and ".join(map(ascii, same)) for same in twins)
        raise DataError(
            f"Names that differ only in case, spaces or characters that look alike: {each}. "
            "Give each model one spelling."
        )


def checked_rows(columns: Mapping[str, NDArray[Any]], n_models: int) -> Cells:
    """Check columns of equal length.

    Parameters
    ----------
    columns : mapping of str to ndarray of shape (n,)
        ``model_a``, ``model_b`` and ``outcome``; if known ``voter``, ``prompt``, ``votes``,
        ``weight`` and ``weight_sq``.

    Raises
    ------
    DataError
        For a code out of range, or a weight that is not finite.
    """
    sizes: dict[str, int | None] = dict.fromkeys(("voter", "prompt"))
    sizes |= dict.fromkeys(of_sides("model"), n_models)
    sizes["outcome"] = len(OUTCOMES)
    keys = [
        checked_codes(name, columns[name], size) for name, size in sizes.items() if name in columns
    ]
    votes: Integers = np.ones(len(keys[-1]), dtype=np.int64)
    if "votes" in columns:
        votes = checked_codes("votes", columns["votes"], None)
    weight = _checked_weights("weight", columns.get("weight"))
    square = _checked_weights("weight_sq", columns.get("weight_sq"))
    if square is not None and weight is None:
        raise DataError("weight_sq was given without weight.")
    if weight is not None and square is None:
        square = weight**2 / np.maximum(votes, 1)
    return Cells(tuple(keys), votes, weight, square)


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


def _checked_weights(name: str, weight: NDArray[np.generic] | None) -> Floats | None:
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
    check_lengths({of_sides("model")[0]: n, "features": len(values)})
    bad = ~np.isfinite(values)
    if bad.any():
        row, column = np.argwhere(bad)[0]
        raise DataError(
            f"Feature {names[column]!r} is {values[row, column]} in row {row}; "
            f"{int(bad.any(axis=1).sum())} such rows."
        )
    return values
