"""Rows of a file written again, in their order, with more columns."""

import os
import tempfile
from collections.abc import Mapping
from pathlib import Path

import duckdb
import numpy as np
from numpy.typing import NDArray

from rating.errors import DataError
from rating.tables.duckdb_engine import connected
from rating.tables.escaping import in_csv, in_csv_sql, literal, quoted
from rating.tables.files import Files, expanded, replacing

ENDINGS = (".parquet", ".csv")


def require_target(path: Path, source: object) -> None:
    """Raise `DataError` unless a file can be written to that is not one of those that are read."""
    if path.suffix not in ENDINGS:
        msg = f"Cannot write {str(path)!r}: name a file that ends in {' or '.join(ENDINGS)}."
        raise DataError(msg)
    files = Files.of(source)
    if files and os.path.realpath(path) in map(os.path.realpath, expanded(files.paths)):
        msg = f"{str(source)!r} cannot be read and written at once: name another file."
        raise DataError(msg)


def write_beside(
    rows: duckdb.DuckDBPyRelation, columns: Mapping[str, NDArray[np.object_]], path: Path
) -> None:
    """Write rows in their order, with columns of text beside them, shape (n_rows,) each.

    Raises
    ------
    DataError
        If there is such a column already, or the file cannot be written.
    """
    if taken := {*rows.columns} & {*columns}:
        msg = f"There is a column {min(taken)!r} already: rename it."
        raise DataError(msg)
    with tempfile.TemporaryDirectory() as folder, connected() as connection:
        file = str(Path(folder) / "beside.parquet")
        connection.register("beside", dict(columns))
        connection.table("beside").write_parquet(file)
        query = f"SELECT * FROM rows POSITIONAL JOIN read_parquet({literal(file)})"  # noqa: S608
        joined = rows.query("rows", query)
        assert joined is not None  # a SELECT has rows
        write_rows(joined, path)


def _as_csv(rows: duckdb.DuckDBPyRelation) -> str:
    return ", ".join(
        f"{in_csv_sql(quoted(name)) if kind == 'VARCHAR' else quoted(name)} "
        f"AS {quoted(str(in_csv(name)))}"
        for name, kind in zip(rows.columns, rows.types, strict=True)
    )


def write_rows(rows: duckdb.DuckDBPyRelation, path: Path) -> None:
    """Write rows as CSV, in which no text is a formula, or as Parquet.

    Raises
    ------
    DataError
        If the file cannot be written.
    """
    try:
        with replacing(path) as made:
            if path.suffix == ".csv":
                rows.project(_as_csv(rows)).write_csv(str(made), header=True)
            else:
                rows.write_parquet(str(made))
    except (duckdb.Error, OSError) as error:
        reason = error.strerror if isinstance(error, OSError) else str(error).splitlines()[0]
        msg = f"Cannot write {str(path)!r}: {reason}"
        raise DataError(msg) from error
