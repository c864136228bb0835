"""Where the marks of the leaderboard stand: interval bars, who beats whom, ratings over time."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from datetime import datetime
from math import ceil, floor, isfinite, log10
from statistics import median_low

from arena.domain.board_view import Board, BoardRow, Newcomer, PairCell, PastRating
from rating.report import ModelRating

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


def bar(row: ModelRating | Newcomer, axis: Axis) -> Bar:
    """Where a row's interval and rating stand on the axis."""
    left, right = axis.at(row.lower), axis.at(row.upper)
    return Bar(
        left=left,
        width=round(right - left, 2),
        centre=axis.at(row.rating),
        cut_low=row.lower < axis.low,
        cut_high=row.upper > axis.high,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Cell(PairCell):
    """One cell.

    Attributes
    ----------
    tone : int
        From -100 (the row loses every vote) over 0 (even, or unrated with too few votes) to 100.
    """

    tone: int


@dataclass(frozen=True, slots=True)
class Heatmap:
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
    cells: Mapping[tuple[str, str], Cell]


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


def tone(share: float) -> int:
    """Strength of colour for a share.

    Examples
    --------
    >>> tone(0.75), tone(0.0)
    (50, -100)
    """
    return round(200 * (share - 0.5))


def heatmap(board: Board) -> Heatmap:
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
    return Heatmap(shown, len(names), cells)


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


def _cell(pair: PairCell) -> Cell:
    share = pair.share if pair.n >= FEWEST_COLOURED else None
    coloured = share if pair.expected is None else pair.expected
    strength = 0 if coloured is None else tone(coloured)
    values = {field.name: getattr(pair, field.name) for field in fields(pair)}
    return Cell(**values, tone=strength)


@dataclass(frozen=True, slots=True)
class Point:
    """A rating at a moment; places in percent, from the left and from the top."""

    when: datetime
    rating: PastRating | BoardRow
    x: float
    y: float
    top: float
    bottom: float


@dataclass(frozen=True, slots=True)
class Panel:
    """One model.

    Attributes
    ----------
    points : tuple of Point
        Oldest first, the present last; a model that was not rated yet has fewer.
    """

    name: str
    points: tuple[Point, ...]

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
    panels: tuple[Panel, ...]
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
            Panel(names[model], _points(ratings, axis, first, last))
            for model, ratings in series.items()
        ),
        of=len(board.rows),
    )


def _points(
    ratings: Sequence[tuple[datetime, PastRating | BoardRow]],
    axis: Axis,
    first: datetime,
    last: datetime,
) -> tuple[Point, ...]:
    return tuple(
        Point(
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
