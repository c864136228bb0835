"""Ratings by day, one line a model, named at its end."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date
from typing import TYPE_CHECKING, Any

import numpy as np

from rating.charts.drawing import (
    EDGE,
    FONT,
    GAP,
    LINE,
    PAPER,
    Margins,
    axes_of,
    labels,
    spread,
    widest,
    width_of,
)
from rating.charts.picture import Theme

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

COLOURS = (
    "#1b80c4",
    "#d55e00",
    "#009e73",
    "#b5609b",
    "#2f9bb0",
    "#8a7a00",
    "#a0522d",
    "#7a6bc9",
)
"""After Okabe and Ito, darkened where too pale for white: each is told apart on either ground."""

Dashes = str | tuple[int, tuple[float, ...]]
DASHES: tuple[Dashes, ...] = ("-", (0, (5, 2)), (0, (1, 1.4)), (0, (6, 2, 1, 2)))
LEAST_HEIGHT = 240.0
LABEL = 9.2
LEADER, LONG_LEADER, MANY = 16.0, 36.0, 20
LEAST_SPAN = 100.0
MOST_TICKS = 6
LONG_DAYS = 300


@dataclass(frozen=True, slots=True)
class Line:
    """Ratings of a model, and bounds, one a date; NaN where there is none."""

    name: str
    rating: list[float]
    lower: list[float]
    upper: list[float]

    @property
    def seen(self) -> int:
        """Place of the last date on which the model is rated."""
        return max(i for i, x in enumerate(self.rating) if not np.isnan(x))

    @property
    def end(self) -> float:
        """Rating on that date."""
        return self.rating[self.seen]


def draw_lines(
    days: Sequence[date],
    lines: Sequence[Line],
    most_bands: int,
    axis_name: str,
    theme: Theme,
    caption: str,
) -> "Figure":
    """Draw the lines, the first ``most_bands`` of them in colour and with bands."""
    drawn = labels([line.name for line in lines])
    leader = LEADER if len(lines) <= MANY else LONG_LEADER
    margins = Margins(
        left=EDGE + LINE + 2 * GAP + FONT * width_of("10,000"),
        right=leader + GAP + FONT * widest(drawn) + EDGE,
        top=LINE,
        bottom=3 * LINE + GAP,
    )
    size = (PAPER - margins.left - margins.right, max(LEAST_HEIGHT, LABEL * len(lines)))
    figure, axes = axes_of(size, margins, theme, caption)
    colours = [COLOURS[i] if i < most_bands else theme.muted for i in range(len(lines))]
    for i, line in reversed(list(enumerate(lines))):
        _line(axes, days, line, colours[i], dashes=DASHES[i % len(DASHES)], bright=i < most_bands)
    _axis(axes, lines, lines[:most_bands])
    _calendar(axes, days)
    axes.set_ylabel(axis_name, labelpad=4)
    axes.spines["left"].set_visible(True)
    _ends(axes, lines, drawn, colours, size, leader)
    return figure


def _line(
    axes: "Axes", days: Sequence[date], line: Line, colour: str, *, dashes: Dashes, bright: bool
) -> None:
    x = _numbers(days)
    alone: dict[str, Any] = {"marker": "o", "markersize": 2.2 if bright else 1.2}
    if not bright:
        axes.plot(x, line.rating, color=colour, linewidth=0.5, alpha=0.6, zorder=1, **alone)
        return
    axes.plot(x, line.rating, color=colour, linewidth=1.2, linestyle=dashes, zorder=3, **alone)
    axes.fill_between(x, line.lower, line.upper, color=colour, alpha=0.12, linewidth=0, zorder=2)


def _axis(axes: "Axes", lines: Sequence[Line], banded: Sequence[Line]) -> None:
    """Hold all ratings, and bands as far as the ratings spread beyond them."""
    ratings = np.array([line.rating for line in lines])
    bands = np.array([bound for line in banded for bound in (line.lower, line.upper)])
    low, high = float(np.nanmin(ratings)), float(np.nanmax(ratings))
    reach = max(high - low, LEAST_SPAN)
    inside = bands[np.isfinite(bands) & (bands > low - reach) & (bands < high + reach)]
    low, high = min([low, *inside]), max([high, *inside])
    spare = max(0.04 * (high - low), (LEAST_SPAN - (high - low)) / 2)
    axes.set_ylim(low - spare, high + spare)
    axes.yaxis.set_major_formatter("{x:,.0f}")
    axes.grid(axis="y", color=axes.spines["bottom"].get_edgecolor(), linewidth=0.3, alpha=0.2)


def _calendar(axes: "Axes", days: Sequence[date]) -> None:
    from matplotlib.dates import AutoDateLocator, DateFormatter, DayLocator

    x = _numbers(days)
    axes.set_xlim(x[0], x[-1])
    few = x[-1] - x[0] <= MOST_TICKS
    axes.xaxis.set_major_locator(
        DayLocator() if few else AutoDateLocator(minticks=3, maxticks=MOST_TICKS)
    )
    axes.xaxis.set_major_formatter(DateFormatter("%d %b" if x[-1] - x[0] < LONG_DAYS else "%Y-%m"))
    axes.set_xlabel(f"Date, from {days[0]:%Y-%m-%d} to {days[-1]:%Y-%m-%d} (UTC)")


def _ends(
    axes: "Axes",
    lines: Sequence[Line],
    drawn: Sequence[str],
    colours: Sequence[str],
    size: tuple[float, float],
    leader: float,
) -> None:
    """Write names at the right, moved apart, each led to from the end of its line."""
    low, high = axes.get_ylim()
    at = [size[1] * (line.end - low) / (high - low) for line in lines]
    places = spread(at, LABEL, LABEL / 2, size[1] - LABEL / 2)
    for name, colour, end, place in zip(drawn, colours, at, places, strict=True):
        ends = ([1, 1 + leader / size[0]], [end / size[1], place / size[1]])
        axes.plot(
            *ends, transform=axes.transAxes, clip_on=False, color=colour, linewidth=0.5, alpha=0.7
        )
        axes.text(
            1 + (leader + 2) / size[0],
            place / size[1],
            name,
            transform=axes.transAxes,
            va="center_baseline",
            color=colour,
        )


def _numbers(days: Sequence[date]) -> list[float]:
    from matplotlib.dates import date2num

    return [float(date2num(day)) for day in days]
