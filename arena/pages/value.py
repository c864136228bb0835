"""Where the marks of the page on quality and cost stand."""

import itertools
from collections.abc import Iterator
from dataclasses import dataclass
from math import ceil, floor, isfinite, log10
from typing import Self

from arena.pages.geometry import round_ticks
from rating.charts.drawing import spread
from rating.value.board import ModelValue, Taken, Value
from rating.value.figures import Measure

LABEL = 19.0
"""Height of a name in pixels."""
LEAST_HEIGHT = 300.0
LEAST_SPARE = 10.0
"""Points above the best and below the worst: even models that are rated alike have a scale."""


@dataclass(frozen=True, slots=True)
class Dot:
    """A model in the picture: from the left in percent, from the top in pixels.

    Attributes
    ----------
    left, right, top, bottom : float
        Ends of its intervals, within the picture.
    label : float
        Where its name stands, beside the picture.
    """

    row: ModelValue
    taken: Taken
    x: float
    y: float
    left: float
    right: float
    top: float
    bottom: float
    label: float


@dataclass(frozen=True, slots=True)
class Scatter:
    """Ratings against what answers take.

    Attributes
    ----------
    height : float
        Pixels.
    dots : tuple of Dot
        Best first.
    steps : tuple of (float, float, float, float)
        Lines of the frontier: x, y and x, y.
    x_ticks, y_ticks : tuple of (float, float)
        Values, and where they stand.
    """

    height: float
    dots: tuple[Dot, ...]
    steps: tuple[tuple[float, float, float, float], ...]
    x_ticks: tuple[tuple[float, float], ...]
    y_ticks: tuple[tuple[float, float], ...]


def scatter(value: Value, name: Measure) -> Scatter | None:
    """Lay out the models that have a figure; None where none has."""
    rows = [(row, taken) for row in value.models if (taken := getattr(row, name)) is not None]
    if not rows:
        return None
    height = max(LEAST_HEIGHT, LABEL * (len(rows) + 1))
    low, high = _reach([row for row, _ in rows])
    across = _Across.over([taken for _, taken in rows])

    def down(points: float) -> float:
        return round(height * (high - min(max(points, low), high)) / (high - low), 1)

    # `spread` keeps the order of places, which here grow downwards.
    labels = spread([down(row.rating) for row, _ in rows], LABEL, LABEL / 2, height - LABEL / 2)
    dots = tuple(
        Dot(
            row=row,
            taken=taken,
            x=across.at(taken.value),
            y=down(row.rating),
            left=across.at(taken.lower),
            right=across.at(taken.upper),
            top=down(row.upper),
            bottom=down(row.lower),
            label=round(label, 1),
        )
        for (row, taken), label in zip(rows, labels, strict=True)
    )
    return Scatter(
        height=height,
        dots=dots,
        steps=tuple(_steps(dots)),
        x_ticks=tuple((tick, across.at(tick)) for tick in across.ticks()),
        y_ticks=tuple((tick, down(tick)) for tick in round_ticks(low, high)),
    )


def _steps(dots: tuple[Dot, ...]) -> Iterator[tuple[float, float, float, float]]:
    """Walk along the frontier, from the cheapest: right, then up."""
    front = sorted((dot for dot in dots if dot.taken.on_frontier), key=lambda dot: dot.x)
    for one, other in itertools.pairwise(front):
        yield one.x, one.y, other.x, one.y
        yield other.x, one.y, other.x, other.y


def _reach(rows: list[ModelValue]) -> tuple[float, float]:
    """Bounds that hold every rating, and intervals as far as ratings spread beyond them."""
    ratings = [row.rating for row in rows]
    low, high = min(ratings), max(ratings)
    reach = max(high - low, 100.0)
    ends = [end for row in rows for end in (row.lower, row.upper) if isfinite(end)]
    ends = [end for end in ends if low - reach < end < high + reach]
    low, high = min([low, *ends]), max([high, *ends])
    spare = max(0.05 * (high - low), LEAST_SPARE)
    return low - spare, high + spare


@dataclass(frozen=True, slots=True)
class _Across:
    """A logarithmic axis from the left, in percent."""

    low: float
    high: float

    @classmethod
    def over(cls, taken: list[Taken]) -> Self:
        low, high = min(one.lower for one in taken), max(one.upper for one in taken)
        spare = max((high / low) ** 0.06, 1.6)
        return cls(log10(low / spare), log10(high * spare))

    def at(self, value: float) -> float:
        return round(100 * (log10(value) - self.low) / (self.high - self.low), 2)

    def ticks(self) -> Iterator[float]:
        """Powers of ten, with twice and five times them where these are few."""
        factors = (1, 2, 5) if self.high - self.low < 2 else (1,)
        for power in range(floor(self.low), ceil(self.high) + 1):
            for factor in factors:
                tick = factor * 10.0**power
                if self.low <= log10(tick) <= self.high:
                    yield tick
