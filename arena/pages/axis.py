"""Geometry of the interval bars: points to percent of the axis that all rows share."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil, floor, isfinite, log10
from statistics import median_low

from arena.domain.board import BoardRow
from arena.domain.evidence import PastRating

LEAST_SPAN = 100.0
MOST_TICKS = 5


@dataclass(frozen=True, slots=True)
class Axis:
    """The shared axis, in points, and its round marks."""

    low: float
    high: float
    ticks: tuple[float, ...]

    def at(self, points: float) -> float:
        """Place of a value in percent of the width; beyond the axis is at its end."""
        inside = min(max(points, self.low), self.high)
        return round(100 * (inside - self.low) / (self.high - self.low), 2)


@dataclass(frozen=True, slots=True)
class Bar:
    """One interval on the axis, in percent.

    Attributes
    ----------
    cut_low, cut_high : bool
        Whether the interval runs on beyond that end of the axis.
    """

    left: float
    width: float
    centre: float
    cut_low: bool
    cut_high: bool


def round_ticks(low: float, high: float) -> tuple[float, ...]:
    """Two to five round numbers (1, 2 or 5 times a power of ten apart) from low to high.

    Examples
    --------
    >>> round_ticks(893, 1204)
    (900.0, 1000.0, 1100.0, 1200.0)
    """
    power = 10.0 ** floor(log10((high - low) / MOST_TICKS))
    steps = (factor * power for factor in (1, 2, 5, 10))
    step = next(s for s in steps if floor(high / s) - ceil(low / s) < MOST_TICKS)
    return tuple(i * step for i in range(ceil(low / step), floor(high / step) + 1))


def shared_axis(rows: Sequence[BoardRow | PastRating], anchor: float) -> Axis:
    """Axis that holds every rating, the anchor, and the intervals as far as they are readable.

    An interval may reach beyond the ratings by as much as they spread, or by twice the median
    half-width; a longer one is cut, so that one wild interval does not flatten the others.
    """
    ratings = [row.rating for row in rows] + [anchor]
    low, high = min(ratings), max(ratings)
    halves = [(row.upper - row.lower) / 2 for row in rows if isfinite(row.upper - row.lower)]
    reach = max(high - low, 2 * median_low(halves or [0]), LEAST_SPAN)
    low = min([low, *(max(row.lower, low - reach) for row in rows)])
    high = max([high, *(min(row.upper, high + reach) for row in rows)])
    spare = max(LEAST_SPAN - (high - low), 0.06 * (high - low)) / 2
    low, high = low - spare, high + spare
    return Axis(low, high, round_ticks(low, high))


def bar(row: BoardRow, axis: Axis) -> Bar:
    """Where a row's interval and rating stand on the axis."""
    left, right = axis.at(row.lower), axis.at(row.upper)
    return Bar(
        left=left,
        width=round(right - left, 2),
        centre=axis.at(row.rating),
        cut_low=row.lower < axis.low,
        cut_high=row.upper > axis.high,
    )
