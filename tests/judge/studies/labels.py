"""Labels that people and judges give: built by hand, drawn, or read from published votes."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from hypothesis import strategies as st
from numpy.typing import NDArray

from judge.studies.estimates import Estimate
from judge.studies.rows import Items, Labels
from tests.judge.published import Row, rows

SIGN = {"model_a": 1, "model_b": -1, "tie": 0, "both_bad": 0}


def labels_of(
    labels: Iterable[tuple[int, int]],
    *,
    rater: Sequence[int] | None = None,
    first: Sequence[int] | None = None,
    probability: Sequence[float] | None = None,
) -> Labels:
    """Say labels of items, given as (item, label)."""
    given = np.array(list(labels), dtype=np.int64).reshape(-1, 2)
    n = len(given)
    return Labels(
        item=given[:, 0],
        rater=np.arange(n) if rater is None else np.array(rater, dtype=np.int64),
        label=given[:, 1].astype(np.int8),
        first=np.zeros(n, dtype=np.int8) if first is None else np.array(first, dtype=np.int8),
        probability=np.full(n, np.nan)
        if probability is None
        else np.array(probability, dtype=np.float64),
    )


def items_of(n: int, *, prompt: Sequence[int] | None = None, n_models: int = 2) -> Items:
    """Make items of the first two models; a prompt each unless prompts are given."""
    pairs = np.tile(np.array([0, 1]), (n, 1))
    names = tuple(f"m{number}" for number in range(n_models))
    return Items(names, pairs, np.arange(n) if prompt is None else np.array(prompt))


@dataclass(frozen=True, slots=True)
class Published:
    """Votes and the verdicts of judges on the same items; side A is first in the alphabet."""

    items: Items
    people: Labels
    judges: dict[str, Labels]
    voters: list[str]


def published(folder: Path, *, judges: bool = True) -> Published:
    """Read votes, and verdicts beside them."""
    votes = rows(folder / "votes.parquet")
    verdicts = rows(folder / "judgments.parquet") if judges else []
    known: dict[tuple[str, ...], int] = {}
    prompts: dict[str, int] = {}
    models = tuple(sorted({row[side] for row in votes for side in ("model_a", "model_b")}))
    pairs, prompt = [], []
    for row in votes + verdicts:
        a, b = sorted((row["model_a"], row["model_b"]))
        if (str(row["item_id"]), a, b) not in known:
            known[str(row["item_id"]), a, b] = len(known)
            pairs.append((models.index(a), models.index(b)))
            prompt.append(prompts.setdefault(row["prompt_id"], len(prompts)))
    items = Items(models, np.array(pairs), np.array(prompt))
    names = sorted({row["judge"] for row in verdicts})
    return Published(
        items,
        _labels(votes, known),
        {name: _labels([r for r in verdicts if r["judge"] == name], known) for name in names},
        [row["voter"] for row in votes],
    )


def _labels(rows: list[Row], known: dict[tuple[str, ...], int]) -> Labels:
    labels = []
    voters: dict[str, int] = {}
    for row in rows:
        a, b = sorted((row["model_a"], row["model_b"]))
        sign = SIGN[row["winner"]] * (1 if a == row["model_a"] else -1)
        labels.append((known[str(row["item_id"]), a, b], sign))
        voters.setdefault(row["voter"], len(voters))
    return labels_of(labels, rater=[voters[row["voter"]] for row in rows])


def swapped(one: Labels) -> Labels:
    """Turn all sides round."""
    return Labels(one.item, one.rater, -one.label, -one.first, 1 - one.probability)


def repeated(one: Labels, times: int) -> Labels:
    """Repeat every row."""
    return one.only(np.tile(np.arange(one.n), times))


def by_turn(folder: Path) -> dict[int, NDArray[np.bool_]]:
    """Return which of the votes are of experts, in each turn."""
    votes = rows(folder / "votes.parquet")
    expert = np.array([row["voter"].startswith("expert") for row in votes])
    turn = np.array([row["turn"] for row in votes])
    return {number: expert & (turn == number) for number in (1, 2)}


def ends(one: Estimate | None) -> tuple[float, float]:
    """Give both ends of an interval, which must be there."""
    assert one is not None
    assert one.lower is not None
    assert one.upper is not None
    return one.lower, one.upper


def width(one: Estimate | None) -> float:
    """Give the width of an interval, which must be there."""
    lower, upper = ends(one)
    return upper - lower


def holds(one: Estimate | None, want: float) -> bool:
    """Whether an interval, which must be there, holds a value."""
    lower, upper = ends(one)
    return lower <= want <= upper


def held(one: Estimate, want: float) -> bool:
    """Whether an interval holds a value; one that is not given claims nothing."""
    if one.lower is None or one.upper is None:
        return True
    return one.lower - 1e-9 <= want <= one.upper + 1e-9


labelled = st.lists(st.tuples(st.integers(0, 9), st.integers(-1, 1)), min_size=1, max_size=60)
"""Rows of ten items."""
