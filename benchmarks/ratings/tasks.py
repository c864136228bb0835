"""What is measured, and the columns that each task reads."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pandas as pd

from benchmarks.ratings.work import STYLES

Points = Mapping[str, float]
"""Ratings by model; empty where a task gives none that could be compared."""

Task = Callable[[Any], Callable[[], Points]]
"""From a source to what is timed: what it does before it returns that is not."""

PAIR = ["model_a", "model_b", "winner"]
FROM_CODES = ("rounds-codes", "voters-codes", "cr3-codes", "style-codes")
"""From votes that were read and coded before the clock starts, with compiled loops and without."""
VOTER_TASKS = ("voters-100", "voters-1000", "voters-codes", "cr3", "cr3-codes", "style-codes")
STYLE_TASKS = ("style", "style-codes")
TASKS = {
    "fit": "fit",
    "sandwich": "fit, sandwich intervals",
    "rounds-100": "fit, 100 bootstrap rounds",
    "rounds-1000": "fit, 1,000 bootstrap rounds",
    "rounds-codes": "fit, 1,000 bootstrap rounds, from counts",
    "voters-100": "fit, 100 rounds by voter",
    "voters-1000": "fit, 1,000 rounds by voter",
    "voters-codes": "fit, 1,000 rounds by voter, from codes",
    "cr3": "fit, intervals by voter",
    "cr3-codes": "fit, intervals by voter, from codes",
    "style": "fit with 4 features, sandwich intervals",
    "style-codes": "fit with 4 features, intervals by voter, from arrays",
    "davidson": "Davidson, from counts",
    "rao-kupper": "Rao-Kupper, from counts",
    "elo": "online Elo",
    "fresh": "imports, fit, intervals: a fresh process",
}
KINDS = ("str", "category", "object", "parquet")
"""A frame of Arrow strings, of categories, of Python's strings; the path of a file."""


def columns_of(task: str) -> list[str]:
    """Name the columns that a task reads."""
    voter = ["voter"] if task in VOTER_TASKS else []
    return [*PAIR, *voter, *(STYLES if task in STYLE_TASKS else ())]


def source_of(path: Path, kind: str, task: str) -> Any:
    """Give the votes as a kind of source."""
    if kind == "parquet":
        return path
    frame = pd.read_parquet(path, columns=columns_of(task))
    texts = [name for name in frame if name not in STYLES]
    return frame if kind == "str" else frame.astype(dict.fromkeys(texts, kind))


def as_frame(source: Any, task: str) -> pd.DataFrame:
    """Give a source as a frame: what programs that read no file must do first."""
    if isinstance(source, Path):
        return pd.read_parquet(source, columns=columns_of(task))
    frame: pd.DataFrame = source
    return frame
