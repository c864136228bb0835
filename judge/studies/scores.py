"""Scores of models from elsewhere against the arena's ratings, column by column."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from judge.studies.correlations import ScoreCorrelations, score_correlations
from judge.studies.options import StudyOptions
from judge.tables.annotations import Annotations, read_annotations
from rating import RateOptions
from rating.errors import DataError
from rating.tables.columns import quoted_names
from rating.tables.compare import read_board
from rating.tables.counts import rate_source
from rating.tables.files import json_or_text, read_text
from rating.tables.sources import LoggedColumns
from rating.typing import Floats

ALIKE = (
    "The board has no quasi-standard errors: ratings are taken as independent, each with its own "
    "standard error."
)
UNKNOWN = "The board does not say how uncertain its ratings are: no intervals for these models."


@dataclass(frozen=True, slots=True, eq=False)
class RatedBoard:
    """Ratings in points.

    Attributes
    ----------
    covariance : ndarray of shape (n_models, n_models), or None
        Right for differences, not for a rating by itself: the squares of quasi-standard errors.
    lower, upper : tuple of float or None
        Of each rating.
    """

    models: tuple[str, ...]
    ratings: Floats
    covariance: Floats | None
    lower: tuple[float | None, ...]
    upper: tuple[float | None, ...]
    warnings: tuple[str, ...]


def read_rated(source: str | Path | LoggedColumns, level: float) -> RatedBoard:
    """Read a board that ``arena rate --format json`` wrote, or rate votes.

    Parameters
    ----------
    source : path or LoggedColumns
        Such a file, a file of votes, or an arena's log.
    level : float
        Of the intervals, where votes are rated.

    Raises
    ------
    DataError
        If it is none of these, or holds no rating.
    NotIdentifiedError
        If the votes identify no rating.
    """
    name = str(source)
    if isinstance(source, LoggedColumns):
        name = source.name
    elif _is_object(Path(source)):
        return rated_board(read_board(Path(source)), name)
    return rated_board(rate_source(source, RateOptions(level=level)).to_dict(), name)


def rated_board(board: Mapping[str, Any], source: str) -> RatedBoard:
    """Take ratings and their errors from a board.

    Raises
    ------
    DataError
        If a row is not that of a board.
    """
    rows = board["ratings"]
    try:
        ratings = np.array([float(row["rating"]) for row in rows])
        errors, warnings = _errors(rows)
        return RatedBoard(
            models=tuple(str(row["model"]) for row in rows),
            ratings=ratings,
            covariance=None if errors is None else np.diag(errors**2),
            lower=tuple(row["lower"] for row in rows),
            upper=tuple(row["upper"] for row in rows),
            warnings=(*warnings, *board.get("warnings", ())),
        )
    except (KeyError, TypeError, ValueError) as error:
        msg = (
            f"The ratings of {source!r} are not those of a board: {error!r}. Rate the votes anew."
        )
        raise DataError(msg) from error


def _errors(rows: list[Mapping[str, Any]]) -> tuple[Floats | None, tuple[str, ...]]:
    for name, warnings in (("quasi_se", ()), ("se", (ALIKE,))):
        errors = [row[name] for row in rows]
        if errors and None not in errors:
            return np.array(errors, dtype=np.float64), warnings
    return None, (UNKNOWN,)


def _is_object(path: Path) -> bool:
    """Tell a board, which is one JSON object, from votes."""
    return path.suffix == ".json" and isinstance(json_or_text(read_text(path)), dict)


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
        scores = dict(zip(self.models, self.columns[column].tolist(), strict=True))
        return np.array([scores.get(model, math.nan) for model in models])


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
            f"{quoted_names(list(table.columns))}: give one a benchmark, such as MMLU."
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
        number = float(value)  # type: ignore[arg-type]
    except (TypeError, ValueError):
        return None
    return None if math.isinf(number) else number


@dataclass(frozen=True, slots=True, eq=False)
class Scored:
    """The correlations of each column.

    Attributes
    ----------
    source, board_source : str
        Where scores and ratings were read.
    """

    source: str
    board_source: str
    scores: Scores
    board: RatedBoard
    columns: Mapping[str, ScoreCorrelations]
    options: StudyOptions

    @property
    def only_scores(self) -> list[str]:
        """Models of the table that the board does not have, sorted."""
        return sorted({*self.scores.models} - {*self.board.models})

    @property
    def only_board(self) -> list[str]:
        """Models of the board that the table does not have, sorted."""
        return sorted({*self.board.models} - {*self.scores.models})

    @property
    def on_columns(self) -> tuple[str, ...]:
        """What to know before a correlation is read."""
        return tuple(
            f"{name}: {text}" for name, one in self.columns.items() for text in one.warnings
        )

    @property
    def on_data(self) -> tuple[str, ...]:
        """What was left out, and what the board warns of."""
        return (
            *(
                f"The column {name!r} is left out: it holds {value!r}, which is no number."
                for name, value in self.scores.left_out.items()
            ),
            *_unmatched(self.only_scores, "have scores and no rating"),
            *_unmatched(self.only_board, "have a rating and no scores"),
            *self.board.warnings,
        )

    @property
    def warnings(self) -> tuple[str, ...]:
        """What to keep in mind."""
        return (*self.on_columns, *self.on_data)

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON."""
        return {
            "columns": {name: one.to_dict() for name, one in self.columns.items()},
            "unmatched": {"scores": self.only_scores, "board": self.only_board},
            "warnings": list(self.warnings),
        }


def _unmatched(names: list[str], what: str) -> list[str]:
    if not names:
        return []
    return [f"Left out, for they {what}: {', '.join(names)}."]


def score_board(scores: Path, board: str | LoggedColumns, options: StudyOptions) -> Scored:
    """Correlate every column of a table of scores with ratings.

    Of the options, those of the draws alone count: rounds, seed and level.

    Raises
    ------
    DataError
        If either cannot be read, or no model is in both.
    NotIdentifiedError
        If the votes identify no rating.
    """
    table, rated = read_scores(scores), read_rated(board, options.level)
    if not {*table.models} & {*rated.models}:
        msg = (
            f"No model of {str(scores)!r} is on the board of {str(board)!r}: names must be the "
            f"same. The one has {_some(table.models)}, the other {_some(rated.models)}."
        )
        raise DataError(msg)
    columns = {
        name: score_correlations(
            rated.ratings,
            rated.covariance,
            table.of(name, rated.models),
            options.draws(),
        )
        for name in table.columns
    }
    return Scored(str(scores), str(board), table, rated, columns, options)


def _some(models: tuple[str, ...]) -> str:
    names = ", ".join(repr(model) for model in models[:5])
    return names if len(models) <= 5 else f"{names} and {len(models) - 5} more"
