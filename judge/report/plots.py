"""Pictures of a report: SVG whose colours are those of the page around it."""

import math
from bisect import bisect
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate, product
from unicodedata import east_asian_width

import numpy as np

from rating.charts.drawing import Scale
from rating.tables.files import in_html, visible
from rating.typing import Floats

WIDTH = 620.0
LINE, TWIN_LINE = 26.0, 38.0
TWIN = 6.0
"""Half the distance of two marks on one line."""
LABELS = 240.0
"""Room for a label, which is cut to it."""
LABEL_HEIGHT = 17.0
EDGE = 28.0
MOST_TICKS = 7
RADIUS = 3.5
CARD, ROW, FONT = 300.0, 17.0, 12.0
"""Width of a card, and heights of a row and of letters in it."""
TONES = 5
"""Shades on each side of none."""
NEAR, STEP, FAR = 6.0, 4.0, 14.0
"""From a point to its label, and between the places that are tried, and where a line is needed."""


@dataclass(frozen=True, slots=True)
class Mark:
    """A value with its interval, as ``judge``, ``people`` or ``other``; ends may be unknown."""

    kind: str
    value: float
    lower: float | None = None
    upper: float | None = None

    @property
    def ends(self) -> list[float]:
        """The value, and the ends that are known."""
        return [end for end in (self.value, self.lower, self.upper) if end is not None]


def spanning(values: Sequence[float], title: str, write: Callable[[float], str]) -> Scale:
    """Give an axis that holds values, with a little room."""
    low, high = min(values), max(values)
    room = 0.06 * (high - low) or 1.0
    return Scale(low - room, high + room, title, write)


Box = tuple[float, float, float, float]
"""A part of a picture: its left, top, right and bottom."""


def width_of(text: str) -> float:
    """Give the width of a label, at most: a wide font is assumed, as the reader's is not known.

    Examples
    --------
    >>> width_of("ill") < width_of("add") < width_of("WWW")
    True
    """
    return sum(map(_letter, text))


def _letter(character: str) -> float:
    if character > "\U0001f000":
        return 17.0
    if east_asian_width(character) in "WF" or character in "mMW@%—…":
        return 12.6
    if character in " fijlrtI.,:;'|!()[]-/":
        return 5.0
    return 7.8 if character.isdigit() or character in "abcdeghknopqsuvxyz_" else 10.0


def place_labels(
    names: Sequence[str],
    points: Sequence[tuple[float, float]],
    frame: Box,
    lines: Sequence[Box] = (),
) -> list[Box | None]:
    """Find a place for the label of each point, as near to it as there is one.

    No label meets another or a point, and none leaves the frame; one for which there is no room
    has no place. Labels that fit next to their points come first, each from the top.

    Parameters
    ----------
    points : sequence of (float, float)
        Middles of the points.
    """
    r = RADIUS + 1
    taken = np.array([*((x - r, y - r, x + r, y + r) for x, y in points), *lines]).reshape(-1, 4)
    places: list[Box | None] = [None] * len(points)
    order = sorted(range(len(points)), key=lambda i: (points[i][1], points[i][0], i))
    widths, too_wide = [width_of(name) for name in names], math.inf
    for most, i in product((NEAR + STEP, math.inf), order):
        if places[i] is not None or widths[i] >= too_wide:
            continue
        boxes = _candidates(points[i], widths[i], frame, most)
        free = boxes[~_meet(boxes, taken).any(axis=1)]
        if len(free):
            left, top, right, bottom = free[0].tolist()
            places[i] = (left, top, right, bottom)
            taken = np.vstack([taken, free[:1]])
        elif most == math.inf:
            too_wide = widths[i]  # there was no room in the whole frame
    return places


def _candidates(point: tuple[float, float], width: float, frame: Box, most: float) -> Floats:
    """Give the places of a label within a frame, and so far from its point, the best first."""
    x, y = point
    rows = math.ceil((frame[3] - frame[1]) / STEP)
    away = np.arange(NEAR, frame[2] - frame[0], 2 * NEAR)
    lefts = np.concatenate([x + away, x - width - away, [x - width / 2]])
    tops = y - LABEL_HEIGHT / 2 + STEP * np.arange(-rows, rows + 1)
    left, top = (grid.ravel() for grid in np.meshgrid(lefts, tops))
    boxes = np.column_stack([left, top, left + width, top + LABEL_HEIGHT])
    inside = (boxes[:, :2] >= frame[:2]).all(axis=1)
    inside &= (boxes[:, 2:] <= frame[2:]).all(axis=1)
    boxes = boxes[inside]
    left, top, right, bottom = boxes.T
    across, down = np.maximum(left - x, x - right), np.maximum(top - y, y - bottom)
    distance = np.hypot(across.clip(0), down.clip(0))
    order = np.lexsort((np.abs((top + bottom) / 2 - y), distance.clip(NEAR + STEP)))
    return np.asarray(boxes[order[distance[order] <= most]])


def _meet(boxes: Floats, others: Floats) -> Floats:
    """Tell of all boxes and others whether they meet, as an array of both."""
    one, two = boxes[:, None], others[None]
    return np.asarray(((one[..., :2] < two[..., 2:]) & (two[..., :2] < one[..., 2:])).all(axis=-1))


def dots(
    lines: Sequence[tuple[str, Sequence[Mark]]],
    axis: Scale,
    *,
    title: str,
    rule: float | None = None,
) -> str:
    """Draw values with their intervals, one line a name.

    Parameters
    ----------
    lines : sequence of (str, sequence of Mark)
        A name, and a mark or two.
    rule : float, optional
        A value to draw a line through, such as zero.
    """
    widest = max(width_of(name) for name, _ in lines) + 24
    left, right, top = min(LABELS, widest), WIDTH - EDGE, 8.0
    pitch = TWIN_LINE if any(len(marks) > 1 for _, marks in lines) else LINE
    bottom = top + pitch * len(lines)
    parts = _ticks(axis, left, right, top, bottom)
    if rule is not None:
        x = axis.at(rule, left, right)
        parts.append(_line("rule", x, top, x, bottom))
    for i, (name, marks) in enumerate(lines):
        y = top + pitch * (i + 0.5)
        parts.append(_text(left - 12, y + 4, _cut(name, left - 20), "end"))
        offsets = (0.0,) if len(marks) == 1 else (-TWIN, TWIN)
        for mark, offset in zip(marks, offsets, strict=False):
            parts += _mark(mark, axis, left, right, y + offset)
    return _svg(parts, bottom + 46, title)


Point = tuple[str, Mark, Mark]
"""A name, which may be empty, and a value in both directions."""


def scatter(points: Sequence[Point], x: Scale, y: Scale, *, title: str, equal: bool = True) -> str:
    """Draw a point a name with its interval in both directions; the first mark is that of x.

    Parameters
    ----------
    equal : bool
        Draw where x and y are equal: only if they are of one unit.
    """
    tall = min(max(360.0, LABEL_HEIGHT * len(points)), 720.0)
    left, top, right, bottom = frame = (64.0, 10.0, WIDTH - EDGE, 10.0 + tall)
    parts = _ticks(x, left, right, top, bottom)
    for tick in y.ticks(MOST_TICKS):
        at = y.at(tick, bottom, top)
        parts.append(_line("grid", left, at, right, at))
        parts.append(_text(left - 8, at + 4, y.write(tick), "end", "soft"))
    middle = (top + bottom) / 2
    turned = f' transform="rotate(-90 14 {middle:g})"'
    parts.append(_text(14, middle, y.title, "middle", "soft", more=turned))
    low, high = max(x.low, y.low), min(x.high, y.high)
    if equal and low < high:
        ends = [(x.at(v, left, right), y.at(v, bottom, top)) for v in (low, high)]
        parts.append(_line("rule", *ends[0], *ends[1]))
    middles, lines = [], list[Box]()
    for name, across, up in points:
        at_x, at_y = x.at(across.value, left, right), y.at(up.value, bottom, top)
        middles.append((at_x, at_y))
        if across.lower is not None and across.upper is not None:
            from_x, to_x = (x.at(end, left, right) for end in (across.lower, across.upper))
            parts.append(_line("people", from_x, at_y, to_x, at_y))
            lines.append((from_x, at_y - 1, to_x, at_y + 1))
        if up.lower is not None and up.upper is not None:
            from_y, to_y = (y.at(end, bottom, top) for end in (up.lower, up.upper))
            parts.append(_line("judge", at_x, from_y, at_x, to_y))
            lines.append((at_x - 1, to_y, at_x + 1, from_y))
        parts.append(_circle("judge", at_x, at_y, RADIUS, name))
    parts += _labels([name for name, _, _ in points], middles, frame, lines)
    return _svg(parts, bottom + 46, title)


def _labels(
    names: Sequence[str],
    middles: Sequence[tuple[float, float]],
    frame: Box,
    intervals: Sequence[Box],
) -> list[str]:
    """Write names beside their points, with a line where they stand further off."""
    named = [(_cut(name, LABELS), at) for name, at in zip(names, middles, strict=True) if name]
    lines, texts = [], []
    boxes = place_labels([name for name, _ in named], [at for _, at in named], frame, intervals)
    for (name, (x, y)), box in zip(named, boxes, strict=True):
        if box is None:
            continue
        left, top, right, bottom = box
        nearest = min(max(x, left), right), min(max(y, top), bottom)
        if math.dist((x, y), nearest) > FAR:
            lines.append(_line("lead", x, y, *nearest))
        # At that end of its box which is nearer to its point: the name may be shorter.
        if left < x < right:
            texts.append(_text((left + right) / 2, bottom - 4, name, "middle", "name"))
        elif left >= x:
            texts.append(_text(left, bottom - 4, name, "start", "name"))
        else:
            texts.append(_text(right, bottom - 4, name, "end", "name"))
    return [*lines, *texts]


def _ticks(axis: Scale, left: float, right: float, top: float, bottom: float) -> list[str]:
    parts = []
    for tick in axis.ticks(MOST_TICKS):
        x = axis.at(tick, left, right)
        parts.append(_line("grid", x, top, x, bottom))
        parts.append(_text(x, bottom + 16, axis.write(tick), "middle", "soft"))
    parts.append(_line("axis", left, bottom, right, bottom))
    parts.append(_text((left + right) / 2, bottom + 36, axis.title, "middle", "soft"))
    return parts


def _mark(mark: Mark, axis: Scale, left: float, right: float, y: float) -> list[str]:
    parts = []
    if mark.lower is not None and mark.upper is not None:
        ends = [axis.at(x, left, right) for x in (mark.lower, mark.upper)]
        parts.append(_line(mark.kind, ends[0], y, ends[1], y, width=2))
    return [*parts, _circle(mark.kind, axis.at(mark.value, left, right), y, 4.5)]


Slope = tuple[str, int, int, bool]
"""A model, its rank on two boards, and whether what moves it is shown to be more than luck."""


def slopes(models: Sequence[Slope], *, title: str) -> str:
    """Draw ranks on two boards, a line a model, in the width of a card."""
    orders = (
        sorted(models, key=lambda one: (one[1], one[0])),
        sorted(models, key=lambda one: (one[2], one[1], one[0])),
    )
    left, right = CARD - 115.0, CARD - 24.0
    heights = [{name: ROW * (i + 0.5) for i, (name, *_) in enumerate(one)} for one in orders]
    parts = []
    for name, first, second, sure in sorted(models, key=lambda one: (one[3], one[1] != one[2])):
        kind = "grid" if first == second else "judge" if sure else "other"
        y, z = heights[0][name], heights[1][name]
        parts.append(_line(kind, left + 8, y, right - 6, z, width=1.5))
        parts += [_circle(kind, x, at, 2.5) for x, at in ((left + 8, y), (right - 6, z))]
        parts.append(_text(left - 22, y + 4, _cut(name, left - 22), "end"))
        parts.append(_text(left, y + 4, f"{first}", "end"))
        parts.append(_text(right + 4, z + 4, f"{second}", "start"))
    return _svg(parts, ROW * len(models), title, CARD)


def heat_map(
    cells: Sequence[Sequence[float | None]], groups: Sequence[tuple[str, int]], *, title: str
) -> str:
    """Draw a square of values, blue above 0 and orange below, in the width of a card.

    Parameters
    ----------
    groups : sequence of (str, int)
        Names of rows, and how many rows each has, from the top.
    """
    names = [name for name, _ in groups]
    left = min(CARD / 3, max(map(width_of, names)) + 12)
    side = (CARD - left) / len(cells)
    known = sorted(abs(x) for row in cells for x in row if x is not None)
    most = known[int(0.98 * (len(known) - 1))] if known else 0.0
    parts = [*_toned(cells, most or 1.0, left, side)]
    top = 0.0
    for name, rows in groups:
        middle, below = top + side * rows / 2, top + side * rows
        if side * rows >= FONT:
            parts.append(_text(left - 6, middle + 4, _cut(name, left - 8), "end"))
        if below < CARD - left - 0.1:
            parts.append(_line("cut", left, below, CARD, below))
            parts.append(_line("cut", left + below, 0, left + below, CARD - left))
        top = below
    return _svg([*parts, *_tones(most, left, CARD - left)], CARD - left + 34, title, CARD)


def _toned(
    cells: Sequence[Sequence[float | None]], most: float, left: float, side: float
) -> Iterator[str]:
    """Draw cells as one path a tone."""
    paths: dict[int, list[str]] = {}
    for i, row in enumerate(cells):
        for j, value in enumerate(row):
            if value is not None and (tone := round(TONES * min(max(value / most, -1), 1))):
                at = f"M{left + side * j:.1f} {side * i:.1f}"
                paths.setdefault(tone, []).append(f"{at}h{side:.2f}v{side:.2f}h-{side:.2f}z")
    for tone, drawn in sorted(paths.items()):
        kind = "over" if tone > 0 else "under"
        yield f'<path class="{kind}" opacity="{abs(tone) / TONES:g}" d="{"".join(drawn)}"/>'


def _tones(most: float, left: float, top: float) -> Iterator[str]:
    """Draw the scale of tones under a square."""
    wide = (CARD - left) / (2 * TONES + 1)
    for tone in range(-TONES, TONES + 1):
        kind = "over" if tone > 0 else "under"
        box = f'x="{left + wide * (tone + TONES):.1f}" y="{top + 8:.1f}" height="8"'
        yield f'<rect class="{kind}" opacity="{abs(tone) / TONES:g}" {box} width="{wide:.2f}"/>'
    for x, text, anchor in (
        (left, f"−{most:.2f}", "start"),
        ((left + CARD) / 2, "0", "middle"),
        (CARD, f"{most:.2f}", "end"),
    ):
        yield _text(x, top + 30, text, anchor, "soft")


def _svg(parts: Sequence[str], height: float, title: str, width: float = WIDTH) -> str:
    body = "\n".join(parts)
    return (
        f'<svg viewBox="0 0 {width:g} {height:g}" width="{width:g}" height="{height:g}" '
        f'role="img" aria-label="{in_html(title)}">\n{body}\n</svg>'
    )


def _line(kind: str, x1: float, y1: float, x2: float, y2: float, *, width: float = 1) -> str:
    ends = f'x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}"'
    return f'<line class="{kind}" {ends} stroke-width="{width:g}"/>'


def _circle(kind: str, x: float, y: float, r: float, name: str = "") -> str:
    title = f"<title>{in_html(name)}</title>" if name else ""
    return f'<circle class="{kind}" cx="{x:.1f}" cy="{y:.1f}" r="{r:g}">{title}</circle>'


def _text(x: float, y: float, text: str, anchor: str, kind: str = "", more: str = "") -> str:
    named = f' class="{kind}"' if kind else ""
    return (
        f'<text{named} x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}"{more}>{in_html(text)}</text>'
    )


def _cut(name: str, room: float) -> str:
    """Cut a name to the available width."""
    name = visible(name)
    ends = list(accumulate(map(_letter, name)))
    if not ends or ends[-1] <= room:
        return name
    return name[: bisect(ends, room - _letter("…"))] + "…"
