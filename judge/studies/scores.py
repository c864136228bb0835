"""Scores of models from elsewhere against ratings, or other scores, column by column."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from judge.studies.boards import (
    MIN_MODELS,
    IntervalEnds,
    ScoreCorrelations,
    correlations,
    score_correlations,
    separability,
)
from judge.studies.options import StudyOptions
from judge.tables.annotations import read_annotations
from rating import RateOptions
from rating.errors import DataError
from rating.leave_out import quantile
from rating.tables.coding import LoggedVotes
from rating.tables.columns import quoted_names
from rating.tables.counts import rate_source
from rating.tables.files import json_or_text, read_text
from rating.tables.formats import is_folder_of_logs
from rating.tables.voter_report import read_board
from rating.typing import Floats

ALIKE = (
    "The board has no quasi-standard errors: ratings are taken as independent, each with its own "
    "standard error."
)
EXACT = "The reference has no intervals: it is taken as exact."
UNKNOWN = "The board has no uncertainty of its ratings: no intervals for these models."


@dataclass(frozen=True, slots=True, eq=False)
class _RatedBoard:
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


def _read_rated(source: str | Path | LoggedVotes, level: float) -> _RatedBoard:
    """Read a board that ``arena rate --format json`` wrote, or rate votes.

    Parameters
    ----------
    source : path or LoggedVotes
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
    if not isinstance(source, LoggedVotes) and _is_board(Path(source)):
        board: Mapping[str, Any] = read_board(Path(source))
    else:
        board = rate_source(source, RateOptions(level=level)).to_dict()
    rows, covariance = board["ratings"], None
    warnings: tuple[str, ...] = (UNKNOWN,)
    try:
        ratings = np.array([float(row["rating"]) for row in rows])
        for name in ("quasi_se", "se"):
            errors = [row[name] for row in rows]
            if errors and None not in errors:
                covariance = np.diag(np.array(errors, dtype=np.float64) ** 2)
                warnings = (ALIKE,) if name == "se" else ()
                break
        return _RatedBoard(
            models=tuple(str(row["model"]) for row in rows),
            ratings=ratings,
            covariance=covariance,
            lower=tuple(row["lower"] for row in rows),
            upper=tuple(row["upper"] for row in rows),
            warnings=(*warnings, *board.get("warnings", ())),
        )
    except (KeyError, TypeError, ValueError) as error:
        name = source.name if isinstance(source, LoggedVotes) else str(source)
        msg = f"The ratings of {name!r} are not those of a board: {error!r}. Rate the votes again."
        raise DataError(msg) from error


def _is_board(path: Path) -> bool:
    """Tell a board, which is one JSON object or a folder of logs, from votes."""
    if is_folder_of_logs(path):
        return True
    return path.suffix == ".json" and isinstance(json_or_text(read_text(path)), dict)


MODEL = "model"
ENDS = (("lower", "upper"), ("q025", "q975"), ("_low", "_high"))
"""How columns end that hold the ends of 95% intervals."""
ERRORS = ("_se", "_standard_error")
ENDS_LEVEL, ENDS_Z = 0.95, 1.959963984540054
"""What ends of intervals in a table are taken for, and as how many errors."""
MISSING = ("", "-", "–", "—", "n/a", "na", "nan", "none", "null")
"""What stands for no score, in any case of letters."""


@dataclass(frozen=True, slots=True, eq=False)
class _Scores:
    """Scores of models.

    Attributes
    ----------
    columns : mapping of str to ndarray of shape (n_models,)
        By benchmark; NaN where a model has none.
    left_out : mapping of str to str
        Columns that hold something else, and the first such value.
    ends : mapping of str to pair of ndarray of shape (n_models,)
        Lower and upper ends of intervals of some columns, as the table gives them.
    """

    models: tuple[str, ...]
    columns: Mapping[str, Floats]
    left_out: Mapping[str, str]
    ends: Mapping[str, tuple[Floats, Floats]]

    def of(self, column: str, models: tuple[str, ...]) -> Floats:
        """Give the scores of these models, NaN where one is not in the table."""
        return self._placed(self.columns[column], models)

    def ends_of(self, column: str, models: tuple[str, ...]) -> IntervalEnds | None:
        """Give the scores of these models with their intervals; None where there are none."""
        if column not in self.ends:
            return None
        lower, upper = (self._placed(end, models) for end in self.ends[column])
        return IntervalEnds(self.of(column, models), lower, upper)

    def _placed(self, values: Floats, models: tuple[str, ...]) -> Floats:
        scores = dict(zip(self.models, values.tolist(), strict=True))
        return np.array([scores.get(model, math.nan) for model in models])


def read_scores(path: Path) -> _Scores:
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

    columns, ends = _with_ends(columns)
    if not columns:
        raise DataError(
            f"There is no column of numbers in {str(path)!r}; there are "
            f"{quoted_names(list(table.columns))}: give one a benchmark, such as MMLU."
        )
    return _Scores(tuple(models), columns, left_out, ends)


def _with_ends(
    columns: dict[str, Floats],
) -> tuple[dict[str, Floats], dict[str, tuple[Floats, Floats]]]:
    """Part columns from the ends of their intervals, and from their standard errors.

    Ends with a name of their own, such as rating_q025, are those of the first column that lies
    between them throughout.
    """
    ends: dict[str, tuple[Floats, Floats]] = {}
    taken: set[str] = set()
    for below, above in ENDS:
        for name in [name for name in columns if name.endswith(below)]:
            stem = name.removesuffix(below)
            if f"{stem}{above}" not in columns:
                continue
            lower, upper = columns[name], columns[f"{stem}{above}"]
            taken |= {name, f"{stem}{above}"}
            own = next((x for x in (stem, stem.rstrip("_")) if x in columns), None)
            between = (
                x
                for x, values in columns.items()
                if x not in taken and bool((~(values < lower) & ~(values > upper)).all())
            )
            if (held := own or next(between, None)) is not None:
                ends[held] = lower, upper
    for name in columns:
        of = next((name.removesuffix(end) for end in ERRORS if name.endswith(end)), "")
        if of in columns and of not in ends:
            taken.add(name)
            reach = ENDS_Z * columns[name]
            ends[of] = columns[of] - reach, columns[of] + reach
    return {name: values for name, values in columns.items() if name not in taken}, ends


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


MEAN_WIN_RATE = (
    "A mean win rate depends on the set of models: adding a copy of one changes the "
    "others, and may change their order."
)


def mean_win_rates(scores: _Scores) -> list[dict[str, Any]]:
    """Take for each column the share of other models with a lower score, equal ones half.

    Higher scores count as better. Best first, as ``model``, ``value`` and ``n``, the columns in
    which it and another have a score; a model without such a column is excluded.

    References
    ----------
    .. [1] P. Liang et al., "Holistic Evaluation of Language Models", TMLR 2023 (arXiv:2211.09110),
       section 8, whose mean win rate this is; we count equal scores as half.
    """
    table = np.array([*scores.columns.values()])
    apart = np.sign(table[:, :, None] - table[:, None, :])
    other = ~np.eye(len(scores.models), dtype=bool)
    n = (~np.isnan(apart) & other).sum(axis=2)
    won = np.nansum((apart + 1) / 2 * other, axis=2)
    rate = np.divide(won, n, out=np.zeros(won.shape), where=n > 0)
    columns = (n > 0).sum(axis=0)
    rates = [
        {"model": model, "value": float(total / used), "n": int(used)}
        for model, total, used in zip(scores.models, rate.sum(axis=0), columns, strict=True)
        if used
    ]
    return sorted(rates, key=lambda one: (-one["value"], one["model"]))


TOP = 6
"""Models that WildBench's first correlation is over: the best by the reference."""


@dataclass(frozen=True, slots=True, eq=False)
class Scored:
    """The correlations of each column.

    Attributes
    ----------
    source, board_source : str
        Where scores and ratings were read.
    asked : tuple of str
        The words that name the two in a command.
    separability : mapping of str to dict or None
        As of `judge.studies.boards.separability`; None where neither scores nor ratings have
        intervals.
    top : mapping of str to float or None
        Pearson over the ``n_top`` models that are best by the ratings.
    """

    source: str
    board_source: str
    asked: tuple[str, ...]
    scores: _Scores
    board: _RatedBoard
    columns: Mapping[str, ScoreCorrelations]
    options: StudyOptions
    separability: Mapping[str, dict[str, Any] | None]
    top: Mapping[str, float | None]
    n_top: int = TOP

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
        """What was excluded, and what the board warns of."""
        return (
            *(
                f"The column {name!r} is excluded: it holds {value!r}, which is no number."
                for name, value in self.scores.left_out.items()
            ),
            *_unmatched(self.only_scores, "have scores but no rating"),
            *_unmatched(self.only_board, "have a rating but no scores"),
            *self.board.warnings,
        )

    @property
    def warnings(self) -> tuple[str, ...]:
        """What to keep in mind."""
        return (*self.on_columns, *self.on_data)

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON."""
        return {
            "columns": {
                name: {
                    **one.to_dict(),
                    "pearson_top": self.top[name],
                    "separability": self.separability[name],
                }
                for name, one in self.columns.items()
            },
            "top": self.n_top,
            "mean_win_rate": {"models": mean_win_rates(self.scores), "warning": MEAN_WIN_RATE},
            "unmatched": {"scores": self.only_scores, "board": self.only_board},
            "warnings": list(self.warnings),
        }


def _unmatched(names: list[str], what: str) -> list[str]:
    return [f"Excluded, because they {what}: {', '.join(names)}."] if names else []


def score_tables(
    scores: Path, other: Path, against: str | None, options: StudyOptions, *, top: int = TOP
) -> Scored:
    """Correlate every column of a table of scores with one of another table, or of the same.

    Parameters
    ----------
    against : str or None
        Column of the other table; the only one by default.

    Raises
    ------
    DataError
        If a table cannot be read, has no such column or several to choose of, or no model is in
        both.
    """
    reference = read_scores(other)
    names = quoted_names([*reference.columns])
    if against is None and len(reference.columns) > 1:
        raise DataError(f"{str(other)!r} has several columns, {names}: name one with --against.")
    column = against or next(iter(reference.columns))
    if column not in reference.columns:
        raise DataError(
            f"There is no column {column!r} of numbers in {str(other)!r}, but {names}."
        )
    board = _table_as_board(reference, column)
    table = read_scores(scores)
    if scores == other:
        rest = {name: values for name, values in table.columns.items() if name != column}
        table = replace(table, columns=rest)
    asked = (str(scores), "--with", str(other), "--against", column)
    return _scored(asked, table, f"{other}, {column}", board, options, top)


def _table_as_board(reference: _Scores, column: str) -> _RatedBoard:
    """Take a column of scores as ratings, with the errors that its intervals imply."""
    known = ~np.isnan(reference.columns[column])
    models = tuple(name for name, there in zip(reference.models, known, strict=True) if there)
    values, ends = reference.of(column, models), reference.ends_of(column, models)
    if ends is None or not ends.known().all():
        none = (None,) * len(models)
        return _RatedBoard(models, values, None, none, none, (EXACT,))
    errors = (ends.upper - ends.lower) / (2 * ENDS_Z)
    lower, upper = tuple(ends.lower.tolist()), tuple(ends.upper.tolist())
    return _RatedBoard(models, values, np.diag(errors**2), lower, upper, ())


def score_board(
    scores: Path, board: str | LoggedVotes, options: StudyOptions, *, top: int = TOP
) -> Scored:
    """Correlate every column of a table of scores with ratings.

    Of the options, those of the draws alone count: rounds, seed and level.

    Raises
    ------
    DataError
        If either cannot be read, or no model is in both.
    NotIdentifiedError
        If the votes identify no rating.
    """
    table, rated = read_scores(scores), _read_rated(board, options.level)
    return _scored((str(scores), str(board)), table, str(board), rated, options, top)


def _scored(
    asked: tuple[str, ...],
    table: _Scores,
    board: str,
    rated: _RatedBoard,
    options: StudyOptions,
    top: int,
) -> Scored:
    source = asked[0]
    if top < MIN_MODELS:
        raise DataError(f"--top {top} is no correlation: give {MIN_MODELS} models or more.")
    if not {*table.models} & {*rated.models}:
        raise DataError(
            f"No model of {source!r} is on the board of {board!r}: names must be equal. The "
            f"scores have {_some(table.models)}, the board {_some(rated.models)}."
        )
    columns = {
        name: score_correlations(
            rated.ratings, rated.covariance, table.of(name, rated.models), options.draws()
        )
        for name in table.columns
    }
    pairs = {name: _pairs(table, name, rated, options.level) for name in columns}
    best = {name: _top(table.of(name, rated.models), rated.ratings, top) for name in columns}
    return Scored(source, board, asked, table, rated, columns, options, pairs, best, top)


def _top(scores: Floats, ratings: Floats, top: int) -> float | None:
    if (~np.isnan(scores)).sum() < MIN_MODELS:
        return None
    value = correlations(scores, ratings, top=top)["pearson_top"]
    return None if math.isnan(value) else value


def _pairs(table: _Scores, name: str, rated: _RatedBoard, level: float) -> dict[str, Any] | None:
    lower, upper = (
        np.array([math.nan if end is None else end for end in ends])
        for ends in (rated.lower, rated.upper)
    )
    own = IntervalEnds(rated.ratings, lower, upper)
    known = own.known().any()
    quasi = own
    if rated.covariance is not None:
        reach = quantile(level, np.inf) * np.sqrt(np.diag(rated.covariance))
        quasi = IntervalEnds(rated.ratings, rated.ratings - reach, rated.ratings + reach)
    return separability(
        rated.models,
        table.ends_of(name, rated.models),
        rated.ratings,
        {"overlap": own, "pairwise": quasi} if known else None,
        level=ENDS_LEVEL,
    )


def _some(models: tuple[str, ...]) -> str:
    names = ", ".join(repr(model) for model in models[:5])
    return names if len(models) <= 5 else f"{names} and {len(models) - 5} more"
