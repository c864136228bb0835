"""What a second judge was asked for, and whether the order of models hangs on it."""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Any

from rating import Outcome
from rating.outcome import of_sides

Row = Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Fallback:
    """How much of a run or a bench is a second judge's.

    Attributes
    ----------
    judge, second : str
        Who was to judge, and who did in its place.
    handed_over : mapping of str to int
        Cases that the first gave no verdict on, by reason (`judge.fallback.reasons`).
    n, n_all : int
        Verdicts of the second, and of both.
    order, without : tuple of str
        Models, best first: by all verdicts, and by those of the first judge alone. Models without
        a verdict are left out.
    """

    judge: str
    second: str
    handed_over: Mapping[str, int]
    n: int
    n_all: int
    order: tuple[str, ...]
    without: tuple[str, ...]

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON."""
        return {
            "judge": self.second,
            "handed_over": dict(self.handed_over),
            "n": self.n,
            "order": list(self.order),
            "order_without": list(self.without),
            "sentence": self.sentence,
        }

    @property
    def sentence(self) -> str:
        """Whose the verdicts are, and what hangs on them; empty where nobody else was asked."""
        if not self.handed_over:
            return ""
        why = ", ".join(f"{n:,} {name}" for name, n in sorted(self.handed_over.items()))
        given = (
            f"{self.n:,} of {self.n_all:,} verdicts are by {self.second!r} in place of "
            f"{self.judge!r} ({why})."
        )
        return f"{given} {self._what_hangs()}".strip()

    def _what_hangs(self) -> str:
        if not self.n or len(self.order) < 2:
            return ""
        if self.order == self.without:
            return "Without them the order of the models is the same."
        if missing := sorted({*self.order} - {*self.without}):
            names = ", ".join(map(repr, missing))
            return (
                "Whether the order of the models hangs on them cannot be told: without them there "
                f"is no verdict on {names}."
            )
        names = ", ".join(map(repr, self.without))
        return f"The order of the models hangs on them: without them it is {names}."


def by_mean(rows: Sequence[Row]) -> tuple[str, ...]:
    """Order models by the mean of what rows say of them, best first, then by name."""
    values: dict[str, list[float]] = {}
    for row in rows:
        value = _value(row)
        if "winner" in row:
            for side, own in zip(of_sides("model"), (value, 1 - value), strict=True):
                values.setdefault(row[side], []).append(own)
        else:
            values.setdefault(row["model"], []).append(value)
    return tuple(sorted(values, key=lambda name: (-fmean(values[name]), name)))


def fallback_of(
    judge: str,
    second: str,
    handed_over: Mapping[str, int],
    rows: Iterable[Row],
    order: Callable[[Sequence[Row]], tuple[str, ...]] = by_mean,
) -> Fallback:
    """Tell from the rows of a run, in which the row of both orders follows those of each.

    Parameters
    ----------
    order : callable
        Orders models, best first, by rows that have a verdict.
    """
    names = ("battle_id", "prompt_id", *of_sides("model"), "model")
    counted = {tuple(row.get(name) for name in names): row for row in rows}
    read = [row for row in counted.values() if not math.isnan(_value(row))]
    own = [row for row in read if not row["fallback_for"]]
    return Fallback(
        judge=judge,
        second=second,
        handed_over=handed_over,
        n=len(read) - len(own),
        n_all=len(read),
        order=order(read) if read else (),
        without=order(own) if own else (),
    )


def _value(row: Row) -> float:
    """Give what a row says of side A, or of its model; NaN where it says nothing."""
    if "winner" in row:
        return math.nan if row["winner"] is None else Outcome(row["winner"]).score_a
    return math.nan if row["score"] is None else float(row["score"])
