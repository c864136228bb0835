"""Two boards side by side: who moved, and how sure that is."""

import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from rating.errors import DataError
from rating.tables.every_eval_ever import is_folder_of_logs, read_logs
from rating.tables.files import parsed, read_text
from rating.uncertainty.student import quantile

SCALE = ("ties", "both_bad", "scale", "mean", "anchor", "reference", "order_effect", "style")
"""Options that change what the points mean: boards that differ in them are not compared."""

WITHOUT_DF = (
    "The board in {which} does not say its degrees of freedom, as boards of before: the intervals "
    "take the normal distribution for it, and are too narrow where few people voted."
)
SAME = "Both boards are of the same votes: what moved, moved by the method."
APART = (
    "The interval of a move takes the two boards as having no vote in common; where they share "
    "votes, how uncertain the move is cannot be known from the two boards alone."
)


def read_board(path: Path) -> Mapping[str, Any]:
    """Read what `arena rate` wrote as JSON: a file, or every_eval_ever's folder of files.

    Raises
    ------
    DataError
        If the file is not there, or is something else.
    """
    if is_folder_of_logs(path):
        return read_logs(path)
    board = parsed(read_text(path), f"The board {str(path)!r}")
    if not isinstance(board, dict) or not {"method", "ratings"} <= board.keys():
        what = "groups" if isinstance(board, dict) and "groups" in board else "something else"
        msg = (
            f"{str(path)!r} holds {what}, not one board: "
            "name a file that arena rate wrote with --format json, without --by."
        )
        raise DataError(msg)
    return board


def compare(old: Mapping[str, Any], new: Mapping[str, Any]) -> dict[str, Any]:
    """Say who moved by how much, the largest move first.

    Parameters
    ----------
    old, new : mapping
        As `rating.Report.to_dict` gives them.

    Returns
    -------
    dict
        ``old`` and ``new`` (version and data_hash), ``same_votes``, ``moved`` (a row a model:
        model, old, new, moved, lower, upper, df, rank_old, rank_new), ``gone``, ``added``,
        ``note``. ``df`` is null for the normal distribution.

    Raises
    ------
    DataError
        If the two boards are not on one scale.
    """
    for name in SCALE:
        was, is_now = (board["method"].get(name) for board in (old, new))
        if was != is_now:
            msg = (
                f"The boards are on different scales: {name} was {was!r}, and is {is_now!r}. "
                f"Rate both with the same {name}."
            )
            raise DataError(msg)
    before = {row["model"]: row for row in old["ratings"]}
    after = {row["model"]: row for row in new["ratings"]}
    same = old["method"]["data_hash"] == new["method"]["data_hash"]
    level = float(new["method"]["level"])
    moved = [
        _move(before[name], after[name], level, same=same) for name in after if name in before
    ]
    notes = [SAME if same else APART]
    for which, board in (("old", old), ("new", new)):
        if not same and any("df" not in row for row in board["ratings"]):
            notes.append(WITHOUT_DF.format(which=which))
    return {
        "old": {name: old["method"][name] for name in ("version", "data_hash")},
        "new": {name: new["method"][name] for name in ("version", "data_hash")},
        "same_votes": same,
        "moved": sorted(moved, key=lambda row: (-abs(row["moved"]), row["model"])),
        "gone": sorted(before.keys() - after.keys()),
        "added": sorted(after.keys() - before.keys()),
        "note": " ".join(notes),
    }


def _move(
    old: Mapping[str, Any], new: Mapping[str, Any], level: float, *, same: bool
) -> dict[str, Any]:
    """Say how far a model moved, with Welch's interval: each board by its degrees of freedom."""
    moved = new["rating"] - old["rating"]
    known = not same and old["se"] is not None and new["se"] is not None
    squares = [_error(row, level) ** 2 for row in (old, new)] if known else []
    total = sum(squares)
    share = sum(v**2 / _df(row) for v, row in zip(squares, (old, new), strict=False))
    df = total**2 / share if share else math.inf
    reach = quantile(level, df) * math.sqrt(total) if 0 < total < math.inf else None
    return {
        "model": new["model"],
        "old": old["rating"],
        "new": new["rating"],
        "moved": moved,
        "lower": None if reach is None else moved - reach,
        "upper": None if reach is None else moved + reach,
        "df": df if math.isfinite(df) else None,
        "rank_old": old["rank"],
        "rank_new": new["rank"],
    }


def _df(row: Mapping[str, Any]) -> float:
    df = row.get("df")
    return math.inf if df is None else float(df)


def _error(row: Mapping[str, Any], level: float) -> float:
    """Return the standard error that the interval stands for: no smaller than the board's."""
    if row["lower"] is None or row["upper"] is None:
        return math.inf
    if "df" not in row:
        return float(row["se"])
    half = (row["upper"] - row["lower"]) / 2
    return float(max(row["se"], half / quantile(level, _df(row))))
