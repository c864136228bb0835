"""The votes of a file with a weight for each, by who cast it."""

import os
import tempfile
from collections.abc import Mapping
from pathlib import Path

import duckdb

from arena.publish.ordered import ROW, numbered
from arena.publish.voters import CheckedVoter, VotersReport
from rating.errors import DataError
from rating.tables.columns import Columns
from rating.tables.escaping import in_csv, in_csv_sql
from rating.tables.formats import write_parquet
from rating.tables.plain import quoted
from rating.tables.sources import opened

WEIGHT, REASON = "voter_weight", "voter_reason"
ENDINGS = (".parquet", ".csv")


def write_weighted(
    source: str, report: VotersReport, path: Path, columns: Columns | None = None
) -> None:
    """Write every row of a file again, in its order, with a weight and the reason for it.

    Rows of voters who are not in the report, because none of their votes counts, weigh 1.

    Parameters
    ----------
    source : str
        The file that the report is on.
    path : Path
        Ends in ``.parquet`` or ``.csv``.
    columns : Columns, optional
        Names of the file's columns where they are not the known ones.

    Raises
    ------
    DataError
        If the source is a database, has such columns already or is the file to write, or this
        cannot be written.
    """
    if "://" in source:
        msg = (
            f"The log {source!r} stays as it is: export its votes (arena export votes --to "
            "votes.parquet), and weigh the file."
        )
        raise DataError(msg)
    if path.suffix not in ENDINGS:
        msg = f"Cannot write {str(path)!r}: name a file that ends in {' or '.join(ENDINGS)}."
        raise DataError(msg)
    if os.path.realpath(path) == os.path.realpath(source):
        msg = f"{source!r} cannot be read and written at once: name another file."
        raise DataError(msg)
    with tempfile.TemporaryDirectory() as folder, opened(Path(source), list) as frame:
        there = frame.collect_schema().names()
        for name in (WEIGHT, REASON):
            if name in there:
                msg = f"{source!r} has a column {name!r} already: weigh the file it was made from."
                raise DataError(msg)
        voters = Path(folder) / "voters.parquet"
        write_parquet([_row(voter) for voter in report.voters], voters)
        _write(_joined(numbered(frame), (columns or Columns()).need("voter", there), voters), path)


def _row(voter: CheckedVoter) -> Mapping[str, object]:
    return {"voter": voter.voter, "weight": voter.weight, "reason": voter.reason}


def _joined(rows: duckdb.DuckDBPyRelation, voter: str, found: Path) -> duckdb.DuckDBPyRelation:
    file = str(found).replace("'", "''")
    query = f"""
        SELECT votes.* EXCLUDE {ROW},
               coalesce(found.weight, 1.0) AS {WEIGHT},
               found.reason AS {REASON}
        FROM votes LEFT JOIN read_parquet('{file}') AS found
          ON CAST(votes.{quoted(voter)} AS VARCHAR) = found.voter
        ORDER BY votes.{ROW}
    """  # noqa: S608 - the names are quoted
    joined = rows.query("votes", query)
    assert joined is not None  # a SELECT has rows
    return joined


def _as_csv(rows: duckdb.DuckDBPyRelation) -> str:
    return ", ".join(
        f"{in_csv_sql(quoted(name)) if kind == 'VARCHAR' else quoted(name)} "
        f"AS {quoted(str(in_csv(name)))}"
        for name, kind in zip(rows.columns, rows.types, strict=True)
    )


def _write(rows: duckdb.DuckDBPyRelation, path: Path) -> None:
    try:
        if path.suffix == ".csv":
            rows.project(_as_csv(rows)).write_csv(str(path), header=True)
        else:
            rows.write_parquet(str(path))
    except duckdb.Error as error:
        msg = f"Cannot write {str(path)!r}: {str(error).splitlines()[0]}"
        raise DataError(msg) from error
