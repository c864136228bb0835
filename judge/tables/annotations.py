"""Columns of recorded annotations, read from a file: what is wrong is quoted with its row."""

import math
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
from numpy.typing import NDArray

from rating.errors import DataError
from rating.tables.columns import quoted_names
from rating.tables.files import json_objects, json_or_text
from rating.tables.peers import LEFT_OUT, NO_VERDICT, explained, recognised
from rating.tables.sources import JSON, columns_in_file, opened
from rating.typing import Bools, Floats, Ints

_FLAGS = {"true": True, "1": True, "false": False, "0": False}


@dataclass(frozen=True, slots=True, eq=False)
class Annotations:
    """Rows of a file, by column.

    Attributes
    ----------
    source : str
        Path, for errors.
    columns : mapping of str to ndarray of object
        Values as the file holds them; None where there is none.
    """

    source: str
    columns: Mapping[str, NDArray[np.object_]]

    @property
    def n(self) -> int:
        """Number of rows."""
        return len(next(iter(self.columns.values()), ()))

    def has(self, *names: str) -> bool:
        """Whether all these columns are there."""
        return all(name in self.columns for name in names)

    def need(self, name: str) -> NDArray[np.object_]:
        """Return a column as it is; raises `DataError` if it is not there."""
        if name not in self.columns:
            msg = f"There is no column {name!r} in {self.source!r}; there are "
            raise DataError(msg + f"{quoted_names(list(self.columns))}.")
        return self.columns[name]

    def texts(self, name: str) -> list[str]:
        """Return names; raises `DataError` where one is missing."""
        return [self._named(name, row, value) for row, value in enumerate(self.need(name), 1)]

    def numbers(self, name: str) -> Floats:
        """Return numbers, NaN where there is none; raises `DataError` for anything else."""
        values = self.need(name)
        return np.array([self._number(name, row, v) for row, v in enumerate(values, 1)])

    def flags(self, name: str) -> Bools:
        """Return truth values; raises `DataError` for anything else."""
        values = self.need(name)
        return np.array([self._flag(name, r, v) for r, v in enumerate(values, 1)], dtype=bool)

    def lists(self, name: str) -> list[list[str]]:
        """Return lists of names: lists as the file holds them, JSON, or text parted by ``;``."""
        return [_parted(value) for value in self.need(name)]

    def taken(self, rows: Bools | Ints) -> "Annotations":
        """Return some of the rows."""
        return Annotations(self.source, {name: x[rows] for name, x in self.columns.items()})

    def wrong(self, name: str, row: int, value: object, wanted: str) -> DataError:
        """Say what is wrong with a value."""
        return DataError(f"Row {row} of {self.source!r} has {name} {value!r}: give {wanted}.")

    def _named(self, name: str, row: int, value: object) -> str:
        if isinstance(value, float):  # a table with gaps made floats of whole numbers
            value = None if math.isnan(value) else int(value) if value.is_integer() else value
        text = "" if value is None else str(value).strip()
        if not text:
            raise self.wrong(name, row, value, "a name")
        return text

    def _number(self, name: str, row: int, value: object) -> float:
        if value is None or (isinstance(value, str) and not value.strip()):
            return float("nan")
        try:
            return float(value)  # type: ignore[arg-type]
        except (TypeError, ValueError):
            raise self.wrong(name, row, value, "a number, or nothing") from None

    def _flag(self, name: str, row: int, value: object) -> bool:
        result = _FLAGS.get(str(value).strip().lower())
        if result is None:
            raise self.wrong(name, row, value, "true or false")
        return result


def read_annotations(
    path: Path, holds: str = "annotations", *, peers: bool = False
) -> Annotations:
    """Read a file of annotations: CSV, TSV, JSON, JSON lines or Parquet.

    Parameters
    ----------
    holds : str
        What should be in it, for errors.
    peers : bool
        Read a file of a format in `rating.tables.peers.FORMATS` as votes in our columns; else
        in its own.

    Raises
    ------
    DataError
        If it cannot be read, or holds no row.
    """
    in_json = path.name.endswith(JSON)
    columns = _from_json(path) if in_json else _from_table(path, holds, peers=peers)
    if in_json and peers and recognised(list(columns)):
        columns = _from_table(path, holds, peers=True)
    result = Annotations(str(path), columns)
    if not result.n:
        msg = f"There is no row in {str(path)!r}: it should hold {holds}."
        raise DataError(msg)
    if peers:
        try:
            result.need("winner")
        except DataError as error:
            raise explained(str(path), list(columns), error) from error.__cause__
        if result.has(LEFT_OUT):  # what has no verdict stays, to be counted
            reasons = result.need(LEFT_OUT)
            return result.taken(np.isin(reasons.astype(str), ["None", "", NO_VERDICT]))
    return result


def _from_table(path: Path, holds: str, *, peers: bool) -> dict[str, NDArray[np.object_]]:
    with opened(path, list, holds=holds, as_peers=peers) as frame:
        relation = frame.to_native()
        assert isinstance(relation, duckdb.DuckDBPyRelation)
        columns = relation.fetchnumpy()
    # Names that differ only in case are told apart by duckdb: of lp_m and lp_M it makes lp_M_1.
    renamed = not peers and any(name.endswith("_1") for name in columns)
    names = columns_in_file(path) if renamed else columns
    return {name: _objects(values) for name, values in zip(names, columns.values(), strict=True)}


def _from_json(path: Path) -> dict[str, NDArray[np.object_]]:
    """Read an array of objects, or one a line, names as they are written.

    Not by duckdb, which refuses names that differ only in case: AlpacaEval's labels are m and M.
    """
    rows = list(json_objects(path))
    names = dict.fromkeys(name for row in rows for name in row)
    return {name: list_of([row.get(name) for row in rows]) for name in names}


def _objects(values: NDArray[Any]) -> NDArray[np.object_]:
    """Return plain values, None where there is none."""
    plain = list_of(np.ma.getdata(values).tolist())
    plain[np.ma.getmaskarray(values)] = None
    return plain


def list_of(values: Sequence[object]) -> NDArray[np.object_]:
    """Make an array one by one, for some values may be lists."""
    plain = np.empty(len(values), dtype=object)
    for row, value in enumerate(values):
        plain[row] = value
    return plain


def _parted(value: object) -> list[str]:
    if value is None:
        return []
    several = json_or_text(value) if isinstance(value, str) else value
    if isinstance(value, str) and not isinstance(several, list):
        return [part.strip() for part in value.split(";") if part.strip()]
    value = several
    return [str(one) for one in np.asarray(value).tolist()]


def groups(values: Sequence[Hashable]) -> dict[Any, Ints]:
    """Return the rows of each distinct value, values sorted, rows in their order."""
    rows: dict[Any, list[int]] = {}
    for row, value in enumerate(values):
        rows.setdefault(value, []).append(row)
    return {value: np.array(rows[value], dtype=np.int64) for value in sorted(rows)}
