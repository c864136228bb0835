"""Ratings over time: one small panel a model, all on the same axes."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from arena.domain.board import Board, BoardRow
from arena.domain.evidence import PastRating
from arena.pages.axis import Axis, shared_axis

MOST_PANELS = 12


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
    axis = shared_axis([r for found in series.values() for _, r in found], board.anchor_mean)
    first, last = past[0].when, board.updated
    return Panels(
        axis=axis,
        first=first,
        last=last,
        panels=tuple(
            Panel(names[model], _points(found, axis, first, last))
            for model, found in series.items()
        ),
        of=len(board.rows),
    )


def _points(
    found: Sequence[tuple[datetime, PastRating | BoardRow]],
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
        for when, rating in found
    )


def _down(axis: Axis, points: float) -> float:
    return round(100 - axis.at(points), 2)
