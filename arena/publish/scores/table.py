"""A table of scores from elsewhere: a model a row, a benchmark a column."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from judge.tables.annotations import Annotations, read_annotations
from rating.errors import DataError
from rating.tables.columns import listed
from rating.typing import Floats

MODEL = "model"
MISSING = ("", "-", "–", "—", "n/a", "na", "nan", "none", "null")
"""What stands for no score, in any case of letters."""


@dataclass(frozen=True, slots=True, eq=False)
class Scores:
    """Scores of models.

    Attributes
    ----------
    columns : mapping of str to ndarray of shape (n_models,)
        By benchmark; NaN where a model has none.
    left_out : mapping of str to str
        Columns that hold something else, and the first such value.
    """

    models: tuple[str, ...]
    columns: Mapping[str, Floats]
    left_out: Mapping[str, str]

    def of(self, column: str, models: tuple[str, ...]) -> Floats:
        """Give the scores of these models, NaN where one is not in the table."""
        found = dict(zip(self.models, self.columns[column].tolist(), strict=True))
        return np.array([found.get(model, math.nan) for model in models])


def read_scores(path: Path) -> Scores:
    """Read a table with the column ``model`` and one or more of numbers.

    Raises
    ------
    DataError
        If it cannot be read, names a model twice, or has no column of numbers.
    """
    table = read_annotations(path, "scores")
    models = table.texts(MODEL)
    seen: set[str] = set()
    for row, model in enumerate(models, 1):
        if model in seen:
            msg = f"Row {row} of {str(path)!r} has model {model!r} again: give each one row."
            raise DataError(msg)
        seen.add(model)
    columns, left_out = _parted(table)
    if not columns:
        msg = (
            f"There is no column of numbers in {str(path)!r}; there are "
            f"{listed(list(table.columns))}: give one a benchmark, such as MMLU."
        )
        raise DataError(msg)
    return Scores(tuple(models), columns, left_out)


def _parted(table: Annotations) -> tuple[dict[str, Floats], dict[str, str]]:
    columns: dict[str, Floats] = {}
    left_out: dict[str, str] = {}
    for name, values in table.columns.items():
        if name == MODEL:
            continue
        wrong = next((value for value in values if _number(value) is None), None)
        if wrong is None:
            columns[name] = np.array([_number(value) for value in values], dtype=np.float64)
        else:
            left_out[name] = str(wrong)
    return columns, left_out


def _number(value: object) -> float | None:
    """Read a score, NaN where there is none; None where it is something else."""
    if value is None or (isinstance(value, str) and value.strip().lower() in MISSING):
        return math.nan
    if isinstance(value, bool):
        return None
    try:
        found = float(value)  # type: ignore[arg-type]
    except (TypeError, ValueError):
        return None
    return None if math.isinf(found) else found
