"""Two boards side by side: who moved, and how sure that is."""

import json
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import scipy  # its submodules load on first use

from arena.errors import DataError

SCALE = ("ties", "both_bad", "scale", "mean", "anchor", "reference", "order_effect", "style")
"""Options that change what the points mean: boards that differ in them are not compared."""

SAME = "Both boards are of the same votes: what moved, moved by the method."
APART = (
    "The interval of a move takes the two boards as having no vote in common; where they share "
    "votes, how uncertain the move is cannot be known from the two boards alone."
)


def read_board(path: Path) -> Mapping[str, Any]:
    """Read what `arena rate --format json` wrote.

    Raises
    ------
    DataError
        If the file is not there, or is something else.
    """
    try:
        board = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        msg = f"Cannot read the board {str(path)!r}: {error}."
        raise DataError(msg) from error
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
        model, old, new, moved, lower, upper, rank_old, rank_new), ``gone``, ``added``, ``note``.

    Raises
    ------
    DataError
        If the two boards are not on one scale.
    """
    _require_one_scale(old["method"], new["method"])
    before = {row["model"]: row for row in old["ratings"]}
    after = {row["model"]: row for row in new["ratings"]}
    same = old["method"]["data_hash"] == new["method"]["data_hash"]
    wide = _wide(float(new["method"]["level"]))
    moved = [_move(before[name], after[name], wide, same=same) for name in after if name in before]
    return {
        "old": {name: old["method"][name] for name in ("version", "data_hash")},
        "new": {name: new["method"][name] for name in ("version", "data_hash")},
        "same_votes": same,
        "moved": sorted(moved, key=lambda row: (-abs(row["moved"]), row["model"])),
        "gone": sorted(before.keys() - after.keys()),
        "added": sorted(after.keys() - before.keys()),
        "note": SAME if same else APART,
    }


def _require_one_scale(old: Mapping[str, Any], new: Mapping[str, Any]) -> None:
    for name in SCALE:
        if old.get(name) != new.get(name):
            msg = (
                f"The boards are on different scales: {name} was {old.get(name)!r}, and is "
                f"{new.get(name)!r}. Rate both with the same {name}."
            )
            raise DataError(msg)


def _wide(level: float) -> float:
    return float(scipy.special.ndtri((1 + level) / 2))


def _move(
    old: Mapping[str, Any], new: Mapping[str, Any], wide: float, *, same: bool
) -> dict[str, Any]:
    moved = new["rating"] - old["rating"]
    known = not same and old["se"] is not None and new["se"] is not None
    reach = wide * math.hypot(old["se"], new["se"]) if known else None
    return {
        "model": new["model"],
        "old": old["rating"],
        "new": new["rating"],
        "moved": moved,
        "lower": None if reach is None else moved - reach,
        "upper": None if reach is None else moved + reach,
        "rank_old": old["rank"],
        "rank_new": new["rank"],
    }
