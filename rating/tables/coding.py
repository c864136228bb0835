"""Columns as whole numbers: the names that occur, and for each row which of them it holds."""

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import narwhals as nw
import numpy as np

from rating.errors import DataError
from rating.typing import Integers


@dataclass(frozen=True, slots=True)
class Coded:
    """A column of names.

    Attributes
    ----------
    names : tuple of str
        In no order; a name may occur twice where a dictionary held it twice.
    codes : ndarray of int
        Position in ``names``; -1 where the value is missing.
    """

    names: tuple[str, ...]
    codes: Integers


def coded(column: "nw.Series[Any]") -> Coded:
    """Code a column of a frame in memory; categories and dictionaries keep their codes."""
    if column.implementation.is_pandas_like():
        names, codes = _pandas(column)
    elif column.implementation.is_polars():
        names, codes = _polars(column)
    elif column.implementation.is_pyarrow():
        names, codes = _arrow(column)
    else:
        names, codes = _any(column)
    return checked(column.name, names, codes)


def checked(column: str, names: list[Any], codes: Integers) -> Coded:
    """Make text of names; missing ones among them become -1.

    Raises
    ------
    DataError
        If a name is neither text nor a whole number.
    """
    if set(map(type, names)) == {str}:  # as good as always; a look at each name takes far longer
        return Coded(tuple(names), codes)
    missing = [position for position, name in enumerate(names) if _is_missing(name)]
    if missing:
        codes = np.where(np.isin(codes, missing), -1, codes)
        names = ["" if _is_missing(name) else name for name in names]
    for name in names:
        if not isinstance(name, str | int | np.integer) or isinstance(name, bool):
            msg = f"Column {column!r} holds {name!r}; make text or whole numbers of its values."
            raise DataError(msg)
    return Coded(tuple(map(str, names)), codes)


def _is_missing(name: object) -> bool:
    # pandas.NA compares to NA, which is neither true nor false: hence its type's name.
    is_nan = isinstance(name, float) and math.isnan(name)
    return name is None or is_nan or type(name).__name__ in ("NAType", "NaTType")


def _pandas(column: "nw.Series[Any]") -> tuple[list[Any], Integers]:
    native = column.to_native()
    if column.dtype in (nw.Categorical, nw.Enum):
        return native.cat.categories.tolist(), native.cat.codes.to_numpy()
    if _holds_arrow(native):
        return _dictionary(native.array.__arrow_array__())
    codes, names = native.factorize()
    return names.tolist(), codes


def _holds_arrow(native: Any) -> bool:
    # Both of pandas' types of text that Arrow stores; the third stores Python's strings.
    in_arrow = getattr(native.dtype, "storage", "pyarrow") == "pyarrow"
    return in_arrow and hasattr(native.array, "__arrow_array__")


def _polars(column: "nw.Series[Any]") -> tuple[list[Any], Integers]:
    if column.dtype not in (nw.Categorical, nw.Enum):
        if column.dtype != nw.String:
            return _any(column)
        column = column.cast(nw.Categorical())
    native = column.to_native()
    names = native.unique().drop_nulls()
    physical = names.to_physical().to_numpy()
    low = int(physical.min()) if len(physical) else 0
    place = np.full(int(physical.max()) - low + 2 if len(physical) else 1, -1, dtype=np.int32)
    place[physical.astype(np.int64) - low] = np.arange(len(physical))
    # The last place, never a name's, is where the missing values look.
    rows = native.to_physical().cast(int).fill_null(low + len(place) - 1).to_numpy()
    return names.to_list(), place[rows - low]


def _arrow(column: "nw.Series[Any]") -> tuple[list[Any], Integers]:
    return _dictionary(column.to_native())


def _dictionary(column: Any) -> tuple[list[Any], Integers]:
    """Take the dictionary of an Arrow column; make one, where it has none."""
    if not hasattr(column.type, "index_type"):
        column = column.dictionary_encode()
    chunks = column.unify_dictionaries().chunks
    if not chunks:
        return [], np.zeros(0, dtype=np.int32)
    parts = [chunk.indices.fill_null(-1).to_numpy(zero_copy_only=False) for chunk in chunks]
    names = chunks[0].dictionary.to_numpy(zero_copy_only=False).tolist()
    return names, parts[0] if len(parts) == 1 else np.concatenate(parts)


def _any(column: "nw.Series[Any]") -> tuple[list[Any], Integers]:
    return _coded_list(column.to_list())


def coded_list(column: str, values: Iterable[object]) -> Coded:
    """Code a list of names."""
    return checked(column, *_coded_list(values))


def _coded_list(values: Iterable[Any]) -> tuple[list[Any], Integers]:
    place: dict[Any, int] = {}
    codes = [-1 if _is_missing(v) else place.setdefault(v, len(place)) for v in values]
    return list(place), np.array(codes, dtype=np.int64)
