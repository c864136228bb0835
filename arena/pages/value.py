"""Where the marks of the page on quality and cost stand, and what its form asks for."""

import itertools
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields
from math import ceil, floor, isfinite, log10
from typing import Self

from arena.pages.geometry import round_ticks
from rating.charts.drawing import spread
from rating.value.board import SURE, ModelValue, Taken, Value
from rating.value.figures import Measure
from rating.value.utility import Turn, Utility, Weights

LABEL = 19.0
"""Height of a name in pixels."""
LEAST_HEIGHT = 300.0
LEAST_SPARE = 10.0
"""Points above the best and below the worst: even models that are rated alike have a scale."""
FURTHEST = {"wrong": 5.0, "refusal": 2.0, "dollars": 0.1, "seconds": 0.1}
"""Ends of the sliders; a greater weight in an address moves the end."""
STEPS = {"wrong": 0.1, "refusal": 0.05, "dollars": 0.001, "seconds": 0.001}
MOST = 1000.0


@dataclass(frozen=True, slots=True)
class Dot:
    """A model in the picture: from the left in percent, from the top in pixels.

    Attributes
    ----------
    left, right, top, bottom : float
        Ends of its intervals, within the picture.
    label : float
        Where its name stands, beside the picture.
    is_dominated : bool
        With a probability of `rating.value.board.SURE` and more.
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
    is_dominated: bool


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
            is_dominated=taken.dominated >= SURE,
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


@dataclass(frozen=True, slots=True)
class Swing:
    """How far a weight moves the lead of the first: a bar, in percent from the left."""

    turn: Turn
    left: float
    width: float


@dataclass(frozen=True, slots=True)
class Tornado:
    """Bars of all weights, the longest first, and where another model would be first."""

    swings: tuple[Swing, ...]
    zero: float
    now: float


def tornado(utility: Utility) -> Tornado | None:
    """Lay out the weights; None where there is none."""
    if not utility.turns:
        return None
    lead = utility.models[0].utility - utility.models[1].utility
    reaches = [(lead, turn.lead_without, turn.lead_doubled) for turn in utility.turns]
    low, high = min(map(min, reaches)), max(map(max, reaches))
    low, high = min(low, 0.0), max(high, 0.0)
    wide = (high - low) or 1.0

    def at(value: float) -> float:
        return round(2 + 96 * (value - low) / wide, 2)

    return Tornado(
        swings=tuple(
            Swing(turn, at(min(reach)), round(at(max(reach)) - at(min(reach)), 2))
            for turn, reach in zip(utility.turns, reaches, strict=True)
        ),
        zero=at(0.0),
        now=at(lead),
    )


def weights_of(asked: Mapping[str, str]) -> Weights:
    """Read the weights of an address; one that cannot be read is the usual one.

    Examples
    --------
    >>> weights_of({"wrong": "2", "refusal": "x", "dollars": "-1", "colour": "red"})
    Weights(wrong=2.0, refusal=0.5, dollars=0.01, seconds=0.01)
    """
    given = {}
    for field in fields(Weights):
        try:
            weight = float(asked.get(field.name, ""))
        except ValueError:
            continue
        if 0 <= weight <= MOST:
            given[field.name] = weight
    return Weights(**given)


@dataclass(frozen=True, slots=True)
class Slider:
    """One weight of the form; ``known`` if there are data to weigh."""

    name: str
    value: float
    most: float
    step: float
    known: bool


def sliders(weights: Weights, known: Mapping[str, object]) -> tuple[Slider, ...]:
    """Give the form's weights."""
    return tuple(
        Slider(
            name=name,
            value=getattr(weights, name),
            most=max(most, getattr(weights, name)),
            step=STEPS[name],
            known=name in known,
        )
        for name, most in FURTHEST.items()
    )
