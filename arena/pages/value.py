"""What the pictures of pages show: which models and pairs, on which scale.

Templates place the marks by `rating.charts.drawing.Scale`.
"""

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from statistics import median_low

from arena.domain.board_view import Board, BoardRow, PairCell, PastRating
from rating.charts.drawing import Scale, spread
from rating.value import Measure, ModelValue, Taken, Value

FEWEST_COLOURED = 5
"""A share of fewer votes than this is printed but not coloured: it is mostly chance."""

MOST_MODELS = 40
"""Models in the table, the best ones; of more it could not be read."""

MOST_PANELS = 12

LABEL = 19.0
"""Height of a name in pixels."""
LEAST_HEIGHT = 300.0


def heatmap(board: Board) -> tuple[dict[str, str], int, dict[tuple[str, str], PairCell]]:
    """Arrange the board's pairs by rating, each seen from both sides.

    Returns
    -------
    names : dict of str to str
        Of the models that have met another, by their ids, best first; at most `MOST_MODELS`.
    of : int
        Models that could be shown.
    cells : dict of (str, str) to PairCell
        By ids of row and column; a pair that never met and is not rated has none.
    """
    met = {model for p in board.pairs if p.n for model in (p.row, p.column)}
    names = {m: name for m, name in board.names.items() if m in met}
    shown = dict(list(names.items())[:MOST_MODELS])
    cells = {
        (p.row, p.column): p
        for pair in board.pairs
        for p in (pair, _mirrored(pair))
        if p.row in shown and p.column in shown
    }
    return shown, len(names), cells


def _mirrored(pair: PairCell) -> PairCell:
    share, expected, low, high = (
        None if x is None else 1 - x for x in (pair.share, pair.expected, pair.high, pair.low)
    )
    sides = replace(pair, row=pair.column, column=pair.row)
    return replace(sides, share=share, expected=expected, low=low, high=high)


def tone(pair: PairCell) -> int:
    """Strength of colour from -100 (the row loses every vote) over 0 (even) to 100.

    It is 0 as well for a pair that is not rated and has too few votes.
    """
    share = pair.share if pair.n >= FEWEST_COLOURED else None
    coloured = share if pair.expected is None else pair.expected
    return 0 if coloured is None else round(200 * (coloured - 0.5))


def per_pair(board: Board) -> tuple[int, int, int, int] | None:
    """Give the fewest, median and most votes of pairs that met, and how many never did.

    None if no pair met.
    """
    votes = [pair.n for pair in board.pairs if pair.n]
    if not votes:
        return None
    return min(votes), median_low(votes), max(votes), len(board.pairs) - len(votes)


Course = list[tuple[float, datetime, PastRating | BoardRow]]
"""Ratings of a model, oldest first: the place from the left in percent, and when it was."""


def panels(board: Board) -> tuple[datetime, Scale, dict[str, Course]] | None:
    """Give the first date, and ratings since then by id, best first; None without a past.

    At most `MOST_PANELS` models are shown; one that was not rated yet has fewer ratings.
    """
    past = [moment for moment in board.history if moment.ratings]
    if not past or not board.rows:
        return None
    first, last = past[0].when, board.updated
    courses: dict[str, Course] = {row.model: [] for row in board.rows[:MOST_PANELS]}
    dated: list[tuple[datetime, PastRating | BoardRow]] = [
        *((moment.when, rating) for moment in past for rating in moment.ratings),
        *((last, row) for row in board.rows),
    ]
    for when, rating in dated:
        if rating.model in courses:
            place = round(100 * ((when - first) / (last - first)), 2)
            courses[rating.model].append((place, when, rating))
    every = [rating for course in courses.values() for _, _, rating in course]
    return first, Scale.of_ratings(every, board.anchor_mean), courses


def scatter(
    value: Value, name: Measure
) -> tuple[float, Scale, Scale, Sequence[tuple[ModelValue, Taken, float]]] | None:
    """Lay out the models that have a figure; None where none has.

    Returns
    -------
    height : float
        Pixels.
    across, up : Scale
        Of what answers take, and of ratings.
    dots : sequence of (ModelValue, Taken, float)
        Best first, with the place of each name from the top, beside the picture.
    """
    rows = [(row, taken) for row in value.models if (taken := getattr(row, name)) is not None]
    if not rows:
        return None
    height = max(LEAST_HEIGHT, LABEL * (len(rows) + 1))
    up = Scale.of_ratings([row for row, _ in rows])
    low, high = min(taken.lower for _, taken in rows), max(taken.upper for _, taken in rows)
    spare = max((high / low) ** 0.06, 1.6)
    # `spread` keeps the order of places, which here grow downwards.
    places = [up.at(row.rating, height, 0) for row, _ in rows]
    labels = spread(places, LABEL, LABEL / 2, height - LABEL / 2)
    dots = [(*one, round(label, 1)) for one, label in zip(rows, labels, strict=True)]
    return height, Scale(low / spare, high * spare, log=True), up, dots


def frontier(
    dots: Sequence[tuple[ModelValue, Taken, float]],
) -> list[tuple[ModelValue, Taken, float]]:
    """Give what no other model beats in both, from what takes least."""
    return sorted((dot for dot in dots if dot[1].on_frontier), key=lambda dot: dot[1].value)
