"""Prompts that a benchmark holds, too, and whether models are better on those."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date
from math import hypot
from typing import Any

import numpy as np
import scipy  # its submodules load on first use

from judge.studies.estimates import Estimate
from rating import Report
from rating.errors import DataError
from rating.typing import Bools
from rating.uncertainty.student import quantile

GRAM = 13
"""Words in a row that two texts share by accident less than once in a long while."""

_WORD = re.compile(r"\w+")


class Benchmark:
    """The items of a benchmark, to look for in prompts.

    Examples
    --------
    >>> benchmark = Benchmark(["A mill grinds 40 sacks a day and sells half of them on Monday."])
    >>> benchmark.holds("So: a mill grinds 40 sacks a day, and sells half of them on Monday. Why?")
    True
    """

    def __init__(self, items: Sequence[str]) -> None:
        self._grams: set[int] = set()
        self._short: set[str] = set()
        for item in items:
            words = _words(item)
            if len(words) < GRAM:
                self._short.add(" ".join(words))
            else:
                self._grams.update(_grams(words))
        self._short.discard("")

    def holds(self, prompt: str) -> bool:
        """Say whether a prompt has 13 words in a row of an item, or is a shorter item as such.

        Case and everything that is no letter or digit do not count.
        """
        words = _words(prompt)
        if len(words) < GRAM:
            return " ".join(words) in self._short
        return not self._grams.isdisjoint(_grams(words)) or " ".join(words) in self._short


def _words(text: str) -> list[str]:
    return _WORD.findall(text.lower())


def _grams(words: Sequence[str]) -> list[int]:
    return [hash(tuple(words[i : i + GRAM])) for i in range(len(words) - GRAM + 1)]


@dataclass(frozen=True, slots=True)
class Gain:
    """How much better a model does on prompts that a benchmark holds, in points.

    Attributes
    ----------
    overlapping, others : float
        Its ratings on either kind of prompt.
    difference : Estimate
        With an interval that takes the two as independent.
    p : float
        Two-sided, after Holm's correction for all models.
    """

    model: str
    overlapping: float
    others: float
    difference: Estimate
    p: float


@dataclass(frozen=True, slots=True)
class Overlap:
    """A board on overlapping prompts against one on the others."""

    votes: int
    overlapping: int
    gains: tuple[Gain, ...]

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON."""
        return {
            "votes": self.votes,
            "overlapping": self.overlapping,
            "models": [
                {
                    "model": one.model,
                    "overlapping": one.overlapping,
                    "others": one.others,
                    "difference": one.difference.value,
                    "lower": one.difference.lower,
                    "upper": one.difference.upper,
                    "p": one.p,
                }
                for one in self.gains
            ],
        }


def compared(
    overlapping: Report, others: Report, level: float, only: str | None = None
) -> Overlap:
    """Compare two boards on the same models; the largest gain comes first.

    Ratings are relative to the mean of a board, so a gain is one over the other models. The two
    boards are taken as independent: where the same people voted for both, and have tastes, the
    interval is wider than it need be.

    Parameters
    ----------
    only : str, optional
        The one model to compare; all by default.

    Raises
    ------
    DataError
        If a model is on one board alone, or a board has no intervals.
    """
    boards = [
        {row["model"]: row for row in report.to_dict()["ratings"]}
        for report in (overlapping, others)
    ]
    if odd := sorted(boards[0].keys() ^ boards[1].keys()):
        msg = f"{odd[0]!r} has votes on one kind of prompt alone: leave it out, or collect more."
        raise DataError(msg)
    rows = [
        (model, row, boards[1][model]) for model, row in boards[0].items() if only in (None, model)
    ]
    gaps = [_gap(one, other, level) for _, one, other in rows]
    adjusted = _holm([p for _, p in gaps])
    gains = [
        Gain(model, one["rating"], other["rating"], gap, p)
        for (model, one, other), (gap, _), p in zip(rows, gaps, adjusted, strict=True)
    ]
    n = [report.to_dict()["votes"]["used"] for report in (overlapping, others)]
    return Overlap(sum(n), n[0], tuple(sorted(gains, key=_largest_first)))


@dataclass(frozen=True, slots=True)
class Change:
    """What a model loses on prompts that nobody had written before its cutoff, in points.

    Attributes
    ----------
    before, after : int
        Votes, of all models, on prompts that were there before the cutoff, and on later ones.
    difference : Estimate
        Its rating before the cutoff less that after it, less the same of the others' mean.
    p : float
        Two-sided, after Holm's correction for all models with a cutoff.
    """

    model: str
    cutoff: date
    before: int
    after: int
    difference: Estimate
    p: float

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON."""
        ends = {"lower": self.difference.lower, "upper": self.difference.upper}
        return {
            "model": self.model,
            "cutoff": self.cutoff.isoformat(),
            "before": self.before,
            "after": self.after,
            "difference": self.difference.value,
            **ends,
            "p": self.p,
        }


def changed(model: str, cutoff: date, overlap: Overlap, n_models: int) -> Change:
    """Read the difference in differences of a model off two boards, compared for it alone.

    Points are relative to the mean of all models, the model among them. Against the others' mean
    its difference is the same times K / (K - 1).
    """
    (gain,) = overlap.gains
    times, gap = n_models / (n_models - 1), gain.difference
    assert gap.value is not None
    assert gap.lower is not None
    assert gap.upper is not None
    scaled = Estimate(times * gap.value, times * gap.lower, times * gap.upper, gap.n)
    after = overlap.votes - overlap.overlapping
    return Change(model, cutoff, overlap.overlapping, after, scaled, gain.p)


def corrected(changes: Sequence[Change]) -> tuple[Change, ...]:
    """Correct the p-values of several models after Holm."""
    adjusted = _holm([change.p for change in changes])
    return tuple(replace(change, p=p) for change, p in zip(changes, adjusted, strict=True))


def _largest_first(gain: Gain) -> float:
    return -(gain.difference.value or 0.0)


def _gap(one: Mapping[str, Any], other: Mapping[str, Any], level: float) -> tuple[Estimate, float]:
    if one["se"] is None or other["se"] is None:
        raise DataError("A difference needs intervals: choose another interval than none.")
    gap, se = one["rating"] - other["rating"], hypot(one["se"], other["se"])
    df = min(one.get("df") or np.inf, other.get("df") or np.inf)
    reach = quantile(level, df) * se
    p = float(2 * scipy.stats.t.sf(abs(gap) / se, df)) if se else 1.0
    return Estimate(gap, gap - reach, gap + reach, 2), p


def _holm(values: Sequence[float]) -> list[float]:
    """Adjust p-values so that any false rejection is as rare as the level says.

    >>> _holm([0.01, 0.04, 0.03])
    [0.03, 0.06, 0.06]
    """
    order = np.argsort(values, kind="stable")
    times = len(values) - np.arange(len(values))
    raised = np.minimum(np.maximum.accumulate(np.array(values)[order] * times), 1.0)
    adjusted = np.empty(len(values))
    adjusted[order] = raised
    return [round(float(p), 12) for p in adjusted]


def overlapping(prompts: Sequence[Sequence[str]], benchmark: Benchmark) -> Bools:
    """Say of each row whether one of its prompts is in the benchmark."""
    return np.array([any(map(benchmark.holds, texts)) for texts in prompts], dtype=bool)
