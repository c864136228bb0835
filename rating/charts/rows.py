"""Intervals, one model a row."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import isfinite
from statistics import median_low
from typing import TYPE_CHECKING, Any

from rating.charts.drawing import EDGE, FONT, GAP, LINE, PAPER, Margins, axes_of, labels, widest
from rating.charts.picture import Theme

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

LEAST_SPAN = 100.0
MOST_ROOMY = 30
ROOMY, TIGHT = 13.0, 9.2
RANK = "Rank"


@dataclass(frozen=True, slots=True)
class IntervalRow:
    """One model.

    Attributes
    ----------
    lower, upper : float
        Infinite where the interval is open.
    ranks : str
        Its range of ranks, "" where none is claimed.
    """

    name: str
    rating: float
    lower: float
    upper: float
    ranks: str

    @property
    def closed_low(self) -> bool:
        """Whether the interval ends below."""
        return isfinite(self.lower)

    @property
    def closed_high(self) -> bool:
        """Whether the interval ends above."""
        return isfinite(self.upper)


@dataclass(frozen=True, slots=True)
class Rule:
    """The line that ratings are measured from, and what it is."""

    at: float
    said: str


def finite(value: float | None, otherwise: float) -> float:
    """Give a value, or another in place of None, NaN and infinity."""
    return float(value) if value is not None and isfinite(value) else otherwise


def span(rows: Sequence[IntervalRow], rule: float) -> tuple[float, float]:
    """Axis that holds ratings and rule, and intervals as far as they are readable.

    An interval may reach beyond the ratings by as much as they spread, or by twice the median
    half-width, so that a wild one does not flatten the others.
    """
    low, high = (f([rule, *(row.rating for row in rows)]) for f in (min, max))
    halves = [(r.upper - r.lower) / 2 for r in rows if r.closed_low and r.closed_high]
    reach = max(high - low, 2 * median_low(halves or [0.0]), LEAST_SPAN)
    ends = [max(r.lower, low - reach) for r in rows if r.closed_low]
    tops = [min(r.upper, high + reach) for r in rows if r.closed_high]
    low, high = min([low, *ends]), max([high, *tops])
    spare = max(LEAST_SPAN - (high - low), 0.06 * (high - low)) / 2
    return low - spare, high + spare


def draw_intervals(
    rows: Sequence[IntervalRow], rule: Rule, axis_name: str, theme: Theme, caption: str
) -> "Figure":
    """Draw the rows, the first on top."""
    drawn = labels([row.name for row in rows])
    ranks = [row.ranks for row in rows]
    margins = Margins(
        left=EDGE + FONT * widest(drawn) + GAP,
        right=GAP + FONT * widest([RANK, *ranks]) + EDGE if any(ranks) else EDGE + GAP,
        top=LINE + GAP,
        bottom=3 * LINE + GAP,
    )
    pitch = ROOMY if len(rows) <= MOST_ROOMY else TIGHT
    size = (PAPER - margins.left - margins.right, pitch * len(rows))
    figure, axes = axes_of(size, margins, theme, caption)
    axes.set_xlim(*span(rows, rule.at))
    axes.set_ylim(len(rows) - 0.5, -0.5)
    axes.set_yticks([])
    axes.set_xlabel(axis_name)
    axes.xaxis.set_major_formatter("{x:,.0f}")
    axes.axvline(rule.at, color=theme.muted, linewidth=0.7, linestyle=(0, (4, 3)), zorder=1)
    for i, row in enumerate(rows):
        axes.axhline(i, color=theme.faint, linewidth=0.4, zorder=0)
        _bar(axes, i, row, theme)
    _words(axes, drawn, ranks, size, theme)
    return figure


def _bar(axes: "Axes", i: int, row: IntervalRow, theme: Theme) -> None:
    left, right = axes.get_xlim()
    ends = max(row.lower, left), min(row.upper, right)
    axes.plot(ends, (i, i), color=theme.ink, linewidth=1, solid_capstyle="butt", zorder=2)
    for end, cut, mark in ((left, row.lower < left, "<"), (right, row.upper > right, ">")):
        if cut:
            axes.plot([end], [i], mark, color=theme.ink, markersize=4, clip_on=False, zorder=3)
    axes.plot([row.rating], [i], "o", color=theme.ink, markersize=3.4, zorder=3)


def _words(
    axes: "Axes",
    drawn: Sequence[str],
    ranks: Sequence[str],
    size: tuple[float, float],
    theme: Theme,
) -> None:
    """Write names at the left and ranks at the right, under their heads."""
    left, right = -GAP / size[0], 1 + GAP / size[0]
    row = axes.get_yaxis_transform()
    for i, (name, rank) in enumerate(zip(drawn, ranks, strict=True)):
        axes.text(left, i, name, transform=row, ha="right", va="center_baseline", color=theme.ink)
        axes.text(right, i, rank, transform=row, va="center_baseline", color=theme.ink)
    above = 1 + (GAP / 2) / size[1]
    head: dict[str, Any] = {"transform": axes.transAxes, "va": "bottom", "color": theme.muted}
    axes.text(left, above, "Model", ha="right", **head)
    if any(ranks):
        axes.text(right, above, RANK, **head)
