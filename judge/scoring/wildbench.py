"""WildBench: scores from 1 to 10, rewards in five levels, and their averages over tasks."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from rating.errors import DataError
from rating.typing import Bools, Floats

CREATIVE = "Creative Tasks"
PLANNING = "Planning & Reasoning"
MATH = "Math & Data Analysis"
ADVICE = "Information/Advice seeking"
CODING = "Coding & Debugging"

GROUPS: Mapping[str, str] = {
    "Information seeking": ADVICE,
    "Advice seeking": ADVICE,
    "Creative Writing": CREATIVE,
    "Editing": CREATIVE,
    "Brainstorming": CREATIVE,
    "Role playing": CREATIVE,
    "Others": CREATIVE,
    "Coding & Debugging": CODING,
    "Reasoning": PLANNING,
    "Planning": PLANNING,
    "Math": MATH,
    "Data Analysis": MATH,
}
"""From the tag of a task to its category."""

_SINCE_JUNE = {CREATIVE: 0.5, PLANNING: 1.25, MATH: 1.0, ADVICE: 0.75, CODING: 1.25}
WEIGHTS: Mapping[str, Mapping[str, float]] = {
    "v2.0522": _SINCE_JUNE | {CODING: 1.0},
    "v2.0625": _SINCE_JUNE,
}
"""Weights of the categories in the macro averages of each version."""
LATEST = "v2.0625"

_POINTS = np.array([1.0, 0.5, 0.0, -0.5, -1.0])
_BY_TAG = {name.casefold(): group for name, group in GROUPS.items()}
_BY_TAG |= {group.casefold(): group for group in _SINCE_JUNE}


@dataclass(frozen=True, slots=True)
class WildBenchScores:
    """One model's scores; NaN where there is nothing to average.

    Attributes
    ----------
    n : int
        Rows with a score from 1 to 10.
    score : float
        Mean over them, truncated and empty responses among them, as published.
    adjusted : float
        ``2 (score - 5)``.
    categories : mapping of str to float
        Adjusted scores by category, truncated and empty responses left out, as published.
    task_macro : float
        Their weighted mean; NaN unless every category has a score.
    n_dropped : int
        Rows whose score was not read or is outside of 1 to 10.
    """

    n: int
    score: float
    adjusted: float
    categories: Mapping[str, float]
    task_macro: float
    n_dropped: int


def wildbench_scores(
    score: Floats,
    tags: Sequence[Sequence[str]] | None = None,
    incomplete: Bools | None = None,
    version: str = LATEST,
) -> WildBenchScores:
    """Score one model.

    Parameters
    ----------
    score : ndarray of shape (n,)
        From 1 to 10; NaN where it was not read.
    tags : sequence of sequences of str, optional
        Tags or categories of each row's task: it counts once in each category they name.
    incomplete : ndarray of shape (n,), bool, optional
        Where the response is truncated or empty.
    version : str
        Whose weights of the categories to use, one of `WEIGHTS`.

    Raises
    ------
    DataError
        For an unknown tag or version.

    References
    ----------
    .. [1] B. Y. Lin et al., "WildBench", ICLR 2025, section 3.3; weights from the code.
    """
    read = (score >= 1) & (score <= 10)
    mean = float(score[read].mean()) if read.any() else math.nan
    whole = read if incomplete is None else read & ~incomplete
    categories = {} if tags is None else _by_category(score, tags, whole)
    return WildBenchScores(
        n=int(read.sum()),
        score=mean,
        adjusted=2 * (mean - 5),
        categories=categories,
        task_macro=task_macro(categories, version),
        n_dropped=int((~read).sum()),
    )


def _by_category(score: Floats, tags: Sequence[Sequence[str]], used: Bools) -> dict[str, float]:
    named = [{category_of(tag) for tag in row} for row in tags]
    rows = {c: used & np.array([c in row for row in named], dtype=bool) for c in _SINCE_JUNE}
    return {c: 2 * (float(score[at].mean()) - 5) for c, at in rows.items() if at.any()}


def category_of(tag: str) -> str:
    """Name the category of a task's tag, or of a category; raises `DataError` of any other."""
    category = _BY_TAG.get(tag.strip().casefold())
    if category is None:
        msg = f"There is no task tag {tag!r}; the tags are {', '.join(map(repr, GROUPS))}."
        raise DataError(msg)
    return category


def task_macro(categories: Mapping[str, float], version: str = LATEST) -> float:
    """Average scores or rewards of the categories by the weights of a version.

    Returns
    -------
    float
        NaN unless every category has a value: four categories are another average.

    Raises
    ------
    DataError
        If there are no weights for the version.
    """
    weights = WEIGHTS.get(version)
    if weights is None:
        msg = f"There are no task weights for version {version!r}, only {', '.join(WEIGHTS)}."
        raise DataError(msg)
    if not all(name in categories for name in weights):
        return math.nan
    total = math.fsum(weight * categories[name] for name, weight in weights.items())
    return total / math.fsum(weights.values())


@dataclass(frozen=True, slots=True)
class RewardCounts:
    """Verdicts on one model against one reference, in five levels.

    Attributes
    ----------
    total : int
        As published: the verdicts, and the rows skipped for a truncated or empty response.
    """

    win_much: int
    win: int
    tie: int
    lose: int
    lose_much: int
    total: int

    @property
    def judged(self) -> int:
        """Rows that have a verdict."""
        return self.win_much + self.win + self.tie + self.lose + self.lose_much

    @property
    def published(self) -> float:
        """Reward over `total`: skipped rows, which nobody judged, pull it towards zero."""
        return self._sum() / self.total if self.total else math.nan

    @property
    def reward(self) -> float:
        """Mean over the rows that have a verdict: from -1, much worse always, to 1."""
        return self._sum() / self.judged if self.judged else math.nan

    def _sum(self) -> float:
        return self.win_much - self.lose_much + 0.5 * (self.win - self.lose)


def count_rewards(
    level: Floats, longer_by: Floats | None = None, margin: float | None = None
) -> RewardCounts:
    """Count verdicts, slight wins of a response that is much longer as ties.

    Parameters
    ----------
    level : ndarray of shape (n,)
        For the model: 1 much better, 1/2 slightly, 0 tie, -1/2 slightly worse, -1 much worse;
        NaN where the row was skipped.
    longer_by : ndarray of shape (n,), optional
        Characters by which the model's response is longer than the reference's.
    margin : float, optional
        A slight win or loss is a tie where the winner is longer by more than this (the
        published K; None, as its K = -1, leaves all as they are).

    Raises
    ------
    DataError
        For another level, or a margin below 0 or without lengths.
    """
    skipped = np.isnan(level)
    unknown = level[~skipped & ~np.isin(level, _POINTS)]
    if unknown.size:
        msg = f"A level is {unknown[0]}; levels are 1, 0.5, 0, -0.5 and -1, or NaN if skipped."
        raise DataError(msg)
    if margin is not None:
        level = _within_margin(level, longer_by, margin)
    win_much, win, tie, lose, lose_much = (int((level == point).sum()) for point in _POINTS)
    return RewardCounts(win_much, win, tie, lose, lose_much, total=len(level))


def _within_margin(level: Floats, longer_by: Floats | None, margin: float) -> Floats:
    if longer_by is None or margin < 0:
        msg = f"A length margin of {margin} needs the lengths, and to be 0 or more."
        raise DataError(msg)
    bought = (np.abs(level) == 0.5) & (np.sign(level) * longer_by > margin)
    return np.where(bought, 0.0, level)
