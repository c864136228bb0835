"""The board that scores are held against: ratings, and how uncertain their differences are."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from arena.publish.rate import rate_source
from rating import RateOptions
from rating.errors import DataError
from rating.tables.compare import read_board
from rating.tables.files import json_or_text, read_text
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


def read_rated(source: str, level: float) -> RatedBoard:
    """Read a board that ``arena rate --format json`` wrote, or rate votes.

    Parameters
    ----------
    source : str
        Such a file, a file of votes, or the URL of a database.
    level : float
        Of the intervals, where votes are rated.

    Raises
    ------
    DataError
        If it is none of these, or holds no rating.
    StoreError
        If the database cannot be read.
    NotIdentifiedError
        If the votes identify no rating.
    """
    if "://" not in source and _is_object(Path(source)):
        return rated_board(read_board(Path(source)), source)
    return rated_board(rate_source(source, RateOptions(level=level)).to_dict(), source)


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
        errors, said = _errors(rows)
        return RatedBoard(
            models=tuple(str(row["model"]) for row in rows),
            ratings=ratings,
            covariance=None if errors is None else np.diag(errors**2),
            lower=tuple(row["lower"] for row in rows),
            upper=tuple(row["upper"] for row in rows),
            warnings=(*said, *board.get("warnings", ())),
        )
    except (KeyError, TypeError, ValueError) as error:
        msg = (
            f"The ratings of {source!r} are not those of a board: {error!r}. Rate the votes anew."
        )
        raise DataError(msg) from error


def _errors(rows: list[Mapping[str, Any]]) -> tuple[Floats | None, tuple[str, ...]]:
    for name, said in (("quasi_se", ()), ("se", (ALIKE,))):
        found = [row[name] for row in rows]
        if found and None not in found:
            return np.array(found, dtype=np.float64), said
    return None, (UNKNOWN,)


def _is_object(path: Path) -> bool:
    """Tell a board, which is one JSON object, from votes."""
    return path.suffix == ".json" and isinstance(json_or_text(read_text(path)), dict)
