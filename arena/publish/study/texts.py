"""What stands in a few rows of votes or verdicts besides their figures: texts, for examples."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import duckdb

from arena.publish.ordered import ROW, numbered
from arena.publish.study.rows import TEXTS
from rating.tables.sources import opened

NAMES = {
    "text_a": TEXTS["a"],
    "text_b": TEXTS["b"],
    "prompt": ("prompt", "instruction", "question"),
    "reason": ("reason", "explanation", "reasoning", "judgment", "raw"),
    "checklist": ("checklist",),
}


@dataclass(frozen=True, slots=True)
class RowTexts:
    """Texts of a row; None where the source has none."""

    model_a: str
    text_a: str | None
    text_b: str | None
    prompt: str | None
    reason: str | None
    checklist: str | None


def read_texts(source: str, rows: Sequence[int]) -> dict[int, RowTexts]:
    """Read the texts of some rows of a file, by row; a database has none to give.

    Raises
    ------
    DataError
        If the file cannot be read.
    """
    if "://" in source or not rows:
        return {}
    with opened(Path(source), lambda there: [*there]) as frame:
        there = frame.collect_schema().names()
        found = {
            role: next((name for name in names if name in there), None)
            for role, names in NAMES.items()
        }
        if not any(found.values()):
            return {}
        columns = [
            f'CAST("{name}" AS VARCHAR) AS {role}' if name else f"NULL AS {role}"
            for role, name in found.items()
        ]
        wanted = ", ".join(str(int(row)) for row in rows)
        relation: duckdb.DuckDBPyRelation = numbered(frame).filter(f"{ROW} IN ({wanted})")
        told = relation.project(", ".join([ROW, "CAST(model_a AS VARCHAR)", *columns])).fetchall()
    return {int(row): RowTexts(*texts) for row, *texts in told}
