"""How scores from elsewhere go with the arena's ratings, column by column."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from arena.publish.scores.board import RatedBoard, read_rated
from arena.publish.scores.table import Scores, read_scores
from judge.study.external import ScoreCorrelations, score_correlations
from rating.errors import DataError


@dataclass(frozen=True, slots=True)
class Draws:
    """How intervals are drawn."""

    rounds: int = 1000
    seed: int = 0
    level: float = 0.95

    def __post_init__(self) -> None:
        """Raise `DataError` for what cannot be."""
        if self.rounds < 2:
            msg = f"--rounds {self.rounds} draw no interval: give 2 or more."
            raise DataError(msg)
        if not 0 < self.level < 1:
            msg = f"--level {self.level:g} is no level of an interval: give one between 0 and 1."
            raise DataError(msg)


@dataclass(frozen=True, slots=True, eq=False)
class Scored:
    """What was found of each column.

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
    draws: Draws

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
            "columns": {name: found.to_dict() for name, found in self.columns.items()},
            "unmatched": {"scores": self.only_scores, "board": self.only_board},
            "warnings": list(self.warnings),
        }


def _unmatched(names: list[str], what: str) -> list[str]:
    if not names:
        return []
    return [f"Left out, for they {what}: {', '.join(names)}."]


def score_board(scores: Path, board: str, draws: Draws) -> Scored:
    """Correlate every column of a table of scores with ratings.

    Raises
    ------
    DataError
        If either cannot be read, or no model is in both.
    StoreError
        If the database cannot be read.
    NotIdentifiedError
        If the votes identify no rating.
    """
    table, rated = read_scores(scores), read_rated(board, draws.level)
    if not {*table.models} & {*rated.models}:
        msg = (
            f"No model of {str(scores)!r} is on the board of {board!r}: names must be the same. "
            f"The one has {_some(table.models)}, the other {_some(rated.models)}."
        )
        raise DataError(msg)
    columns = {
        name: score_correlations(
            rated.ratings,
            rated.covariance,
            table.of(name, rated.models),
            rounds=draws.rounds,
            rng=np.random.default_rng(draws.seed),
            level=draws.level,
        )
        for name in table.columns
    }
    return Scored(str(scores), board, table, rated, columns, draws)


def _some(models: tuple[str, ...]) -> str:
    names = ", ".join(repr(model) for model in models[:5])
    return names if len(models) <= 5 else f"{names} and {len(models) - 5} more"
