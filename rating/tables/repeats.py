"""Rows that are in a file more than once: counted once where an id tells, else announced."""

import re
import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from rating.outcome import of_sides
from rating.tables.columns import KNOWN, LEFT_OUT, REQUIRED, like_voters
from rating.tables.escaping import all_quoted, literal, quoted

if TYPE_CHECKING:
    import duckdb

ROW = "__row"
_RENAMED_IN = 1_000_000
"""Rows in which texts of prompts are compared."""

REPEATED = "repeated"
"""Reason of a row whose ``battle_id`` an earlier row has on the same models."""

BATTLE = "battle_id"
IDS = ("question_id", "id", "vote_id", "comparison_id", "annotation_id", "record_id", "uuid")
"""Columns that name a row in many files, and in others what it is about."""

ITEMS = ("item_id", "prompt_id")
"""Columns that name what a judge was asked: it gives one verdict on it."""


def key_of(there: Sequence[str], where: str | None, theirs: Sequence[str] = ()) -> list[str]:
    """Name the columns that tell votes apart; empty where none does for sure.

    Parameters
    ----------
    where : str or None
        Condition by which rows were chosen. One that names the id takes the place of this rule.
    theirs : sequence of str
        Columns that the id is made of.
    """
    if not {BATTLE, *of_sides("model")} <= {*there} or _names(where, (BATTLE, *theirs)):
        return []
    return [BATTLE, *_beside(there)]


def doubtful_key_of(there: Sequence[str], where: str | None) -> list[str]:
    """Name the columns that tell votes apart in most files without a ``battle_id``."""
    ids = (*IDS, *(ITEMS if "judge" in there else ()))
    name = next((name for name in ids if name in there), None)
    if name is None and {*there} & {*KNOWN["time"]} and {*there} & {*KNOWN["voter"]}:
        name = next((name for name in KNOWN["prompt"] if name in there), None)
    if name is None or BATTLE in there or not {*REQUIRED} <= {*there}:
        return []
    return [] if _names(where, (name,)) else [name, "winner", *_beside(there)]


def _names(where: str | None, columns: Sequence[str]) -> bool:
    return any(re.search(rf"\b{re.escape(name)}\b", where or "") for name in columns)


def _beside(there: Sequence[str]) -> list[str]:
    voter = next((name for name in KNOWN["voter"] if name in there), "voter")
    time = next((name for name in KNOWN["time"] if name in there), "ts")
    beside = dict.fromkeys((*of_sides("model"), voter, "judge", "method", "order", "turn", time))
    return list(dict.fromkeys([*filter(there.__contains__, beside), *like_voters(there)]))


def n_repeated(rows: "duckdb.DuckDBPyRelation", key: Sequence[str]) -> int:
    """Count the rows that repeat an earlier one in a key, of those that count and have an id."""
    if not key:
        return 0
    live = f"{quoted(key[0])} IS NOT NULL"
    live += f" AND {LEFT_OUT} IS NULL" if LEFT_OUT in rows.columns else ""
    # Sorted here: to count what is distinct takes the engine four times as long.
    hashes = rows.filter(live).project(f"hash({all_quoted(key)}) AS h").fetchnumpy()["h"]
    hashes.sort()
    return int((hashes[1:] == hashes[:-1]).sum())


def text_beside(there: Sequence[str], wanted: Sequence[str]) -> tuple[str, str] | None:
    """Name the columns of a prompt's id, if it is wanted, and of its text; None without both."""
    *ids, text = KNOWN["prompt"]
    name = next((name for name in ids if name in wanted), None)
    return (name, text) if name is not None and text in there else None


def n_renamed(rows: "duckdb.DuckDBPyRelation", columns: tuple[str, str]) -> int:
    """Count the prompts with the text of another one, among the first `_RENAMED_IN` rows.

    Only columns of text are compared: a list in a file of kilobytes may take gigabytes to read.
    """
    if dict(zip(rows.columns, rows.types, strict=True))[columns[1]].id != "varchar":
        return 0
    id_, text = map(quoted, columns)
    pairs = rows.limit(_RENAMED_IN).filter(f"{id_} IS NOT NULL AND trim({text}) <> ''")
    hashes = pairs.project(f"hash({text}) AS t, hash({id_}) AS i").distinct().fetchnumpy()["t"]
    hashes.sort()
    return int((hashes[1:] == hashes[:-1]).sum())


def renamed_warning(source: str, n: int, columns: tuple[str, str]) -> str:
    """Say that prompts have the text of others, and how to cluster them together."""
    id_, text = columns
    return (
        f"{source}: {n:,} prompts have the same text in {text!r} as another one with a different "
        f"{id_!r}. They are counted as different prompts, and intervals are too narrow. Cluster "
        "them together: arena probe duplicates FILE --to GROUPED.parquet, then rate that with "
        "--column prompt=prompt_group."
    )


def marked(rows: "duckdb.DuckDBPyRelation", key: Sequence[str]) -> "duckdb.DuckDBPyRelation":
    """Give the rows in their order; those that repeat an earlier one have a reason, `REPEATED`."""
    reason = LEFT_OUT if LEFT_OUT in rows.columns else "NULL"
    others = [name for name in rows.columns if name != LEFT_OUT]
    place = f"row_number() OVER (PARTITION BY {all_quoted(key)}, {reason} IS NULL ORDER BY {ROW})"
    again = f"{quoted(key[0])} IS NOT NULL AND {reason} IS NULL AND {place} > 1"
    why = f"CASE WHEN {again} THEN '{REPEATED}' ELSE {reason} END AS {LEFT_OUT}"
    in_order = rows.project(f"*, row_number() OVER () AS {ROW}")
    made = in_order.project(f"{all_quoted(others)}, {ROW}, {why}")
    return made.order(ROW).project(all_quoted([*others, LEFT_OUT]))


def warning(source: str, paths: Sequence[Path], n: int, key: Sequence[str]) -> str:
    """Say that rows repeat others, and how to exclude them."""
    copy = f"COPY (FROM {literal(str(paths[0]))} SELECT DISTINCT *) TO 'once.parquet'"
    run = f"import duckdb; duckdb.sql({copy!r})"
    how = f": python -c {shlex.quote(run)}" if len(paths) == 1 else "."
    return (
        f"{source}: {n:,} rows repeat an earlier one in {', '.join(key)}. They are counted. If "
        f"they are copies, rate a file without them{how}"
    )
