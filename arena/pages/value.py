"""Where the marks of the page on quality and cost stand.

Where the marks of the leaderboard stand: interval bars, who beats whom, ratings over time.
"""

import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from datetime import datetime
from math import ceil, floor, isfinite, log10
from statistics import median_low
from typing import Self

from arena.domain.board_view import Board, BoardRow, Newcomer, PairCell, PastRating
from rating.charts.drawing import spread
from rating.report import ModelRating
from rating.value import Measure, ModelValue, Taken, Value

LEAST_SPAN = 100.0
MOST_TICKS = 5

FEWEST_COLOURED = 5
"""A share of fewer votes than this is printed but not coloured: it is mostly chance."""

MOST_MODELS = 40
"""Models in the table, the best ones; of more it could not be read."""

MOST_PANELS = 12


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
class _Bar:
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


def shared_axis(rows: Sequence[ModelRating | PastRating | Newcomer], anchor: float) -> Axis:
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


def bar(row: ModelRating | Newcomer, axis: Axis) -> _Bar:
    """Where a row's interval and rating stand on the axis."""
    left, right = axis.at(row.lower), axis.at(row.upper)
    return _Bar(
        left=left,
        width=round(right - left, 2),
        centre=axis.at(row.rating),
        cut_low=row.lower < axis.low,
        cut_high=row.upper > axis.high,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Cell(PairCell):
    """One cell.

    Attributes
    ----------
    tone : int
        From -100 (the row loses every vote) over 0 (even, or unrated with too few votes) to 100.
    """

    tone: int


@dataclass(frozen=True, slots=True)
class _Heatmap:
    """Models that have met another, best first, and a cell for each pair.

    Attributes
    ----------
    names : mapping of str to str
        Name of each model by its id; at most `MOST_MODELS`.
    of : int
        Models that could be shown.
    cells : mapping of (str, str) to Cell
        By ids of row and column; a pair that never met and is not rated has none.
    """

    names: Mapping[str, str]
    of: int
    cells: Mapping[tuple[str, str], _Cell]


@dataclass(frozen=True, slots=True)
class PerPair:
    """Votes of the pairs that met.

    Attributes
    ----------
    unmet : int
        Pairs of rated models without a vote.
    """

    fewest: int
    median: int
    most: int
    unmet: int


def _tone(share: float) -> int:
    """Strength of colour for a share.

    Examples
    --------
    >>> _tone(0.75), _tone(0.0)
    (50, -100)
    """
    return round(200 * (share - 0.5))


def heatmap(board: Board) -> _Heatmap:
    """Arrange the board's pairs by rating, each seen from both sides."""
    met = {model for p in board.pairs if p.n for model in (p.row, p.column)}
    names = {m: name for m, name in board.names.items() if m in met}
    shown = dict(list(names.items())[:MOST_MODELS])
    cells = {
        (p.row, p.column): _cell(p)
        for pair in board.pairs
        for p in (pair, _mirrored(pair))
        if p.row in shown and p.column in shown
    }
    return _Heatmap(shown, len(names), cells)


def per_pair(board: Board) -> PerPair | None:
    """Summarise how often pairs met; None if none did."""
    votes = [pair.n for pair in board.pairs if pair.n]
    if not votes:
        return None
    return PerPair(min(votes), median_low(votes), max(votes), len(board.pairs) - len(votes))


def _mirrored(pair: PairCell) -> PairCell:
    return replace(
        pair,
        row=pair.column,
        column=pair.row,
        share=_other(pair.share),
        expected=_other(pair.expected),
        low=_other(pair.high),
        high=_other(pair.low),
    )


def _other(share: float | None) -> float | None:
    return None if share is None else 1 - share


def _cell(pair: PairCell) -> _Cell:
    share = pair.share if pair.n >= FEWEST_COLOURED else None
    coloured = share if pair.expected is None else pair.expected
    strength = 0 if coloured is None else _tone(coloured)
    values = {field.name: getattr(pair, field.name) for field in fields(pair)}
    return _Cell(**values, tone=strength)


@dataclass(frozen=True, slots=True)
class _Point:
    """A rating at a moment; places in percent, from the left and from the top."""

    when: datetime
    rating: PastRating | BoardRow
    x: float
    y: float
    top: float
    bottom: float


@dataclass(frozen=True, slots=True)
class _Panel:
    """One model.

    Attributes
    ----------
    points : tuple of Point
        Oldest first, the present last; a model that was not rated yet has fewer.
    """

    name: str
    points: tuple[_Point, ...]

    @property
    def line(self) -> str:
        """The ratings, as the points of a polyline."""
        return " ".join(f"{p.x},{p.y}" for p in self.points)

    @property
    def band(self) -> str:
        """The intervals, as the points of a polygon."""
        there = [f"{p.x},{p.top}" for p in self.points]
        back = [f"{p.x},{p.bottom}" for p in reversed(self.points)]
        return " ".join(there + back)


@dataclass(frozen=True, slots=True)
class Panels:
    """All panels, best model first.

    Attributes
    ----------
    of : int
        Rated models; at most `MOST_PANELS` of them are shown.
    """

    axis: Axis
    first: datetime
    last: datetime
    panels: tuple[_Panel, ...]
    of: int

    @property
    def labelled(self) -> tuple[float, ...]:
        """The ticks that have room for a label in a small panel."""
        return self.axis.ticks[:: 2 if len(self.axis.ticks) > 3 else 1]


def panels(board: Board) -> Panels | None:
    """Lay out the ratings at past dates and now; None without a past."""
    past = [moment for moment in board.history if moment.ratings]
    if not past or not board.rows:
        return None
    shown = board.rows[:MOST_PANELS]
    names = {row.model: row.name for row in shown}
    series: dict[str, list[tuple[datetime, PastRating | BoardRow]]] = {m: [] for m in names}
    for moment in past:
        for rating in moment.ratings:
            if rating.model in names:
                series[rating.model].append((moment.when, rating))
    for row in shown:
        series[row.model].append((board.updated, row))
    axis = shared_axis([r for ratings in series.values() for _, r in ratings], board.anchor_mean)
    first, last = past[0].when, board.updated
    return Panels(
        axis=axis,
        first=first,
        last=last,
        panels=tuple(
            _Panel(names[model], _points(ratings, axis, first, last))
            for model, ratings in series.items()
        ),
        of=len(board.rows),
    )


def _points(
    ratings: Sequence[tuple[datetime, PastRating | BoardRow]],
    axis: Axis,
    first: datetime,
    last: datetime,
) -> tuple[_Point, ...]:
    return tuple(
        _Point(
            when=when,
            rating=rating,
            x=round(100 * ((when - first) / (last - first)), 2),
            y=_down(axis, rating.rating),
            top=_down(axis, rating.upper),
            bottom=_down(axis, rating.lower),
        )
        for when, rating in ratings
    )


def _down(axis: Axis, points: float) -> float:
    return round(100 - axis.at(points), 2)


LABEL = 19.0
"""Height of a name in pixels."""
LEAST_HEIGHT = 300.0
LEAST_SPARE = 10.0
"""Points above the best and below the worst: even models that are rated alike have a scale."""


@dataclass(frozen=True, slots=True)
class _Dot:
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
class _Scatter:
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
    dots: tuple[_Dot, ...]
    steps: tuple[tuple[float, float, float, float], ...]
    x_ticks: tuple[tuple[float, float], ...]
    y_ticks: tuple[tuple[float, float], ...]


def scatter(value: Value, name: Measure) -> _Scatter | None:
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
        _Dot(
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
    return _Scatter(
        height=height,
        dots=dots,
        steps=tuple(_steps(dots)),
        x_ticks=tuple((tick, across.at(tick)) for tick in across.ticks()),
        y_ticks=tuple((tick, down(tick)) for tick in round_ticks(low, high)),
    )


def _steps(dots: tuple[_Dot, ...]) -> Iterator[tuple[float, float, float, float]]:
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
