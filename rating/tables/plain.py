"""Tables in files of text, CSV and TSV, read to the letter: nothing about them is guessed."""

import csv
import gzip
import io
import re
import zlib
from collections.abc import Iterator, Sequence
from pathlib import Path

import duckdb

from rating.errors import DataError
from rating.tables.escaping import from_csv, from_csv_sql
from rating.tables.files import SHOWN

MOST_HEADER = 1 << 20
"""Bytes in which the names of the columns have to end."""

SEPARATORS = (",", "\t", ";", "|")


def read_plain(
    connection: duckdb.DuckDBPyConnection, path: Path, literal: str
) -> duckdb.DuckDBPyRelation:
    """Give the rows of a file with the names of its columns in the first, every cell as text.

    Parameters
    ----------
    literal : str
        The path as duckdb takes it.

    Raises
    ------
    DataError
        If it has no first row, names a column twice, or holds a NUL.
    """
    separator, names = header(path)
    return connection.read_csv(
        literal,
        header=True,
        auto_detect=False,
        columns=dict.fromkeys(_distinct(path, names), "VARCHAR"),
        delimiter=separator,
        quotechar='"',
        escapechar='"',
    )


def plain_cell(name: str) -> str:
    """Give the expression of SQL for a column of such a file as it was before it was written."""
    return f"{from_csv_sql(quoted(name))} AS {quoted(name)}"


def quoted(name: str) -> str:
    """Quote a name for SQL."""
    return '"' + name.replace('"', '""') + '"'


def described(error: duckdb.Error, path: Path) -> str | None:
    """Say what is wrong with a file of text, and in which line; None if it is something else."""
    message = str(error)
    line = re.search(r"CSV Error on Line: (\d+)\n(?:Original Line: (.*))?", message)
    if line is None:
        return None
    where, text = f"Line {line[1]} of {str(path)!r}", f": {(line[2] or '')[:SHOWN]!r}"
    if cells := re.search(r"Expected Number of Columns: (\d+) Found: (\d+)", message):
        return (
            f"{where} has {cells[2]} cells, and the first line has {cells[1]}{text}. Give every "
            "row as many, with quotes around one that holds a separator."
        )
    if "unicode" in message:
        return f"{where} is not UTF-8{text}. Save the file as UTF-8."
    if "unterminated quote" in message:
        return f"{where} has a quote that does not end{text}. Write a quote in a cell twice."
    if "Maximum line size" in message:
        return f"{where} is longer than 2 MiB{text}. Shorten it, or write the file as Parquet."
    return f"{where} cannot be read{text}. Mend it, or leave it out."


def header(path: Path) -> tuple[str, list[str]]:
    """Give the separator, which is the first that parts the first line, and the names."""
    try:
        text = _decoded(path, _head(path))
        rows = [(separator, _first_row(text, separator)) for separator in _separators(path)]
    except (OSError, EOFError, zlib.error, csv.Error) as error:
        msg = f"Cannot read {str(path)!r}: {getattr(error, 'strerror', None) or error}."
        raise DataError(msg) from error
    separator, row = next((one for one in rows if len(one[1]) > 1), rows[0])
    if not row:
        msg = f"{str(path)!r} is empty: its first line should name the columns."
        raise DataError(msg)
    return separator, [from_csv(name) or f"column{place}" for place, name in enumerate(row)]


def _head(path: Path) -> bytes:
    """Give the beginning of a file; raises `DataError` if there is a NUL byte anywhere in it."""
    head, line = b"", 1
    with gzip.open(path) if path.suffix == ".gz" else path.open("rb") as file:
        while part := file.read(MOST_HEADER):
            if (place := part.find(b"\0")) >= 0:
                line += part.count(b"\n", 0, place)
                msg = (
                    f"Line {line} of {str(path)!r} holds a NUL byte: it is no text, or in another "
                    "encoding. Save the file as UTF-8."
                )
                raise DataError(msg)
            head, line = head or part, line + part.count(b"\n")
    return head


def _decoded(path: Path, head: bytes) -> str:
    try:
        return head.decode("utf-8-sig", errors="ignore" if len(head) == MOST_HEADER else "strict")
    except UnicodeDecodeError as error:
        line = head.count(b"\n", 0, error.start) + 1
        msg = f"Line {line} of {str(path)!r} is not UTF-8: save the file as UTF-8."
        raise DataError(msg) from error


def _separators(path: Path) -> Sequence[str]:
    return ("\t",) if ".tsv" in path.suffixes else SEPARATORS


def _first_row(text: str, separator: str) -> list[str]:
    return next(csv.reader(io.StringIO(text, newline=""), delimiter=separator), [])


def _distinct(path: Path, names: Sequence[str]) -> Iterator[str]:
    """Tell names apart as duckdb does, to which ``m`` and ``M`` are one: ``M_1``."""
    taken: set[str] = set()
    for place, name in enumerate(names):
        if name in names[:place]:
            msg = f"{str(path)!r} has two columns {name!r}: rename one, or leave it out."
            raise DataError(msg)
        distinct = name if name.lower() not in taken else f"{name}_1"
        taken.add(distinct.lower())
        yield distinct
