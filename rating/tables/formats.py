"""Rows as files that other programs read: CSV, Markdown, LaTeX, Parquet; boards as JSON."""

import csv
import io
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rating.errors import DataError
from rating.tables.captions import summary
from rating.tables.escaping import in_csv, in_json, in_latex, in_markdown

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection, DuckDBPyRelation

    from rating.report import Report

Row = Mapping[str, Any]

FORMATS = ("table", "json", "csv", "markdown", "latex", "parquet")
ENDINGS = {
    ".json": "json",
    ".csv": "csv",
    ".md": "markdown",
    ".tex": "latex",
    ".parquet": "parquet",
}
COLUMNS = {
    "rating": "DOUBLE",
    "strength": "DOUBLE",
    "se": "DOUBLE",
    "df": "DOUBLE",
    "effective_voters": "DOUBLE",
    "quasi_se": "DOUBLE",
    "lower": "DOUBLE",
    "upper": "DOUBLE",
    "rank": "BIGINT",
    "rank_low": "BIGINT",
    "rank_high": "BIGINT",
    "votes": "BIGINT",
    "old": "DOUBLE",
    "new": "DOUBLE",
    "moved": "DOUBLE",
    "rank_old": "BIGINT",
    "rank_new": "BIGINT",
    "ties": "BIGINT",
    "examined": "BOOLEAN",
    "log_e": "DOUBLE",
    "max_log_e": "DOUBLE",
    "flagged": "BOOLEAN",
    "flagged_at": "BIGINT",
    "flagged_jointly": "BOOLEAN",
    "weight": "DOUBLE",
    "preference": "DOUBLE",
    "cost": "DOUBLE",
    "latency": "DOUBLE",
    "value": "DOUBLE",
    "n": "BIGINT",
}
"""Types of the columns of numbers and truth values; every other column is text."""


def chosen_format(name: str | None, out: Path | None) -> str:
    """Name the format: as asked, else by the ending of the file, else a table.

    Raises
    ------
    DataError
        If there is no such format, or it needs a file.
    """
    found = name or (ENDINGS.get(out.suffix, "") if out else "table")
    if found not in FORMATS:
        if name is None:
            msg = f"Cannot tell the format of {str(out)!r}: add --format {'|'.join(FORMATS)}."
        else:
            msg = f"There is no format {name!r}: choose one of {', '.join(FORMATS)}."
        raise DataError(msg)
    if found == "parquet" and out is None:
        msg = "Parquet is not for a terminal: name a file with --out."
        raise DataError(msg)
    return found


def rows_of(board: Row) -> list[Row]:
    """Give the rows of a board, of groups (with the column ``group``), or of a comparison."""
    if "groups" in board:
        return [
            {"group": value} | row
            for value, report in board["groups"].items()
            for row in report["ratings"]
        ]
    return list(board["moved"] if "moved" in board else board["ratings"])


def as_text(board: Row, form: str) -> str:
    """Write a board, groups or a comparison in a format of text."""
    if form == "json":
        return as_json(board)
    rows = rows_of(board)
    if form == "csv":
        return as_csv(rows)
    said = summary(board) if "method" in board else str(board.get("note", ""))
    warnings = board.get("warnings", ())
    if form == "markdown":
        under = "".join(f"\n* {in_markdown(text)}" for text in warnings)
        return f"{in_markdown(said)}\n\n{as_markdown(rows)}{under}\n".lstrip()
    comments = "".join(f"% {in_latex(text)}\n" for text in (said, *warnings) if text)
    return comments + as_latex(rows)


def write_text(text: str, path: Path) -> None:
    """Write a file; raises `DataError` if it cannot be written."""
    try:
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        msg = f"Cannot write {str(path)!r}: {error.strerror}."
        raise DataError(msg) from error


def as_json(board: Row) -> str:
    """Write a board as JSON, every number in full."""
    return in_json(json.dumps(board, indent=2, ensure_ascii=False, allow_nan=False)) + "\n"


def as_csv(rows: Sequence[Row]) -> str:
    """Write rows with every number in full; what is unknown is empty, and no text is a formula."""
    names = list(rows[0]) if rows else []
    return "".join(map(_csv_line, (names, *([row[name] for name in names] for row in rows))))


def _csv_line(cells: Iterable[object]) -> str:
    """Write a line; only a writer that ends lines by CR LF puts quotes around either of them."""
    out = io.StringIO(newline="")
    csv.writer(out, lineterminator="\r\n").writerow(map(in_csv, cells))
    return out.getvalue().removesuffix("\r\n") + "\n"


def as_markdown(rows: Sequence[Row]) -> str:
    """Write rows for people, in points without decimals."""
    names, cells = _cells(rows)
    sides = ["---" if name not in COLUMNS else "---:" for name in names]
    escaped = [[*map(in_markdown, line)] for line in cells]
    lines = [_headings(names), sides, *escaped]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def as_latex(rows: Sequence[Row]) -> str:
    """Write rows as a tabular of the package booktabs."""
    names, cells = _cells(rows)
    sides = "".join("r" if name in COLUMNS else "l" for name in names)
    body = [" & ".join(map(in_latex, line)) + r" \\" for line in cells]
    return "\n".join(
        [
            r"% \usepackage{booktabs}",
            rf"\begin{{tabular}}{{{sides}}}",
            r"\toprule",
            " & ".join(_headings(names)) + r" \\",
            r"\midrule",
            *body,
            r"\bottomrule",
            r"\end{tabular}",
            "",
        ]
    )


def write_parquet(rows: Sequence[Row], path: Path) -> None:
    """Write rows with every number in full; what is unknown is null.

    Raises
    ------
    DataError
        If the file cannot be written.
    """
    import duckdb  # this and numpy take half a second to import, and text does without

    from rating.tables.engine import connected

    try:
        with connected() as connection:
            _relation(connection, rows).write_parquet(str(path))
    except duckdb.Error as error:
        msg = f"Cannot write {str(path)!r}: {str(error).splitlines()[0]}."
        raise DataError(msg) from error


def frame(board: "Report", library: str | None = None) -> Any:
    """Return the ratings of a board as a data frame, a model a row.

    Parameters
    ----------
    library : {"pandas", "polars", "pyarrow"}, optional
        None gives a relation of duckdb: it has ``__arrow_c_stream__``, by which any other library
        takes it.

    Raises
    ------
    DataError
        If there is no such library here.
    """
    from rating.tables.engine import connected

    relation = _relation(connected(), board.to_dict()["ratings"])
    if library is None:
        return relation
    if library not in FRAMES:
        msg = f"There is no frame of {library!r}: choose one of {', '.join(FRAMES)}, or none."
        raise DataError(msg)
    try:
        return FRAMES[library](import_module(library), relation)
    except ImportError as error:
        msg = f"A frame of {library!r} needs it: pip install {library}."
        raise DataError(msg) from error


FRAMES: Mapping[str, Callable[[Any, Any], Any]] = {
    "pandas": lambda _, relation: relation.df(),
    "polars": lambda polars, relation: polars.DataFrame(relation),
    "pyarrow": lambda pyarrow, relation: pyarrow.table(relation),
}


def _relation(connection: "DuckDBPyConnection", rows: Sequence[Row]) -> "DuckDBPyRelation":
    """Return rows as typed columns of the engine; what is unknown is null."""
    import numpy as np

    names = list(rows[0]) if rows else []
    texts = {
        name: [None if row[name] is None else str(row[name]) for row in rows] for name in names
    }
    connection.register("board", {name: np.array(x, dtype=object) for name, x in texts.items()})
    casts = (f'CAST("{name}" AS {COLUMNS.get(name, "VARCHAR")}) AS "{name}"' for name in names)
    return connection.table("board").project(", ".join(casts))


def shown(name: str, value: object) -> str:
    """Give a cell for people: points and votes as whole numbers, strengths with two decimals."""
    if value is None:
        return "–"
    if name == "moved":
        return f"{value:+.0f}"
    if name in ("strength", "share"):
        return f"{value:.2f}"
    return f"{value:.0f}" if isinstance(value, float) else str(value)


def _cells(rows: Sequence[Row]) -> tuple[list[str], list[list[str]]]:
    names = list(rows[0]) if rows else []
    return names, [[shown(name, row[name]) for name in names] for row in rows]


def _headings(names: Sequence[str]) -> list[str]:
    return [name.replace("_", " ") for name in names]
