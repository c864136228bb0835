"""Pictures of a report: SVG whose colours are those of the page around it."""

import math
from bisect import bisect
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate, product
from unicodedata import east_asian_width

import numpy as np

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


@dataclass(frozen=True, slots=True)
class Line:
    """What stands on a line of a picture: a name, and a mark or two."""

    name: str
    marks: tuple[Mark, ...]


@dataclass(frozen=True, slots=True)
class Axis:
    """A straight axis.

    Attributes
    ----------
    write : callable
        Writes a value beside its tick.
    """

    low: float
    high: float
    title: str
    write: Callable[[float], str]

    def at(self, value: float, start: float, end: float) -> float:
        """Place a value between two ends, cut off at these."""
        share = (value - self.low) / (self.high - self.low)
        return start + min(max(share, 0.0), 1.0) * (end - start)

    def ticks(self, most: int = 7) -> list[float]:
        """Give round values from one end to the other.

        Examples
        --------
        >>> Axis(0, 1, "", str).ticks()
        [0.0, 0.2, 0.4, 0.6, 0.8, 1.0]
        """
        rough = (self.high - self.low) / (most - 1)
        power = 10 ** math.floor(math.log10(rough))
        step = next(n * power for n in (1, 2, 5, 10) if n * power >= rough * (1 - 1e-9))
        first = math.ceil(self.low / step - 1e-9)
        last = math.floor(self.high / step + 1e-9)
        return [round(n * step, 10) for n in range(first, last + 1)]


def spanning(values: Sequence[float], title: str, write: Callable[[float], str]) -> Axis:
    """Give an axis that holds values, with a little room."""
    low, high = min(values), max(values)
    room = 0.06 * (high - low) or 1.0
    return Axis(low - room, high + room, title, write)


@dataclass(frozen=True, slots=True)
class Box:
    """A part of a picture."""

    left: float
    top: float
    right: float
    bottom: float


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
    names: Sequence[str], points: Sequence[tuple[float, float]], frame: Box
) -> list[Box | None]:
    """Find a place for the label of each point, as near to it as there is one.

    No label meets another or a point, and none leaves the frame; one for which there is no room
    has no place. Those that can stand beside their points come first, each from the top.

    Parameters
    ----------
    points : sequence of (float, float)
        Middles of the points.
    """
    r = RADIUS + 1
    taken = np.array([(x - r, y - r, x + r, y + r) for x, y in points])
    places: list[Box | None] = [None] * len(points)
    order = sorted(range(len(points)), key=lambda i: (points[i][1], points[i][0], i))
    widths, too_wide = [width_of(name) for name in names], math.inf
    for most, i in product((NEAR + STEP, math.inf), order):
        if places[i] is not None or widths[i] >= too_wide:
            continue
        boxes = _candidates(points[i], widths[i], frame, most)
        free = boxes[~_meet(boxes, taken).any(axis=1)]
        if len(free):
            places[i] = Box(*free[0].tolist())
            taken = np.vstack([taken, free[:1]])
        elif most == math.inf:
            too_wide = widths[i]  # there was no room in the whole frame
    return places


def _candidates(point: tuple[float, float], width: float, frame: Box, most: float) -> Floats:
    """Give the places of a label within a frame, and so far from its point, the best first."""
    x, y = point
    rows = math.ceil((frame.bottom - frame.top) / STEP)
    away = np.arange(NEAR, frame.right - frame.left, 2 * NEAR)
    lefts = np.concatenate([x + away, x - width - away, [x - width / 2]])
    tops = y - LABEL_HEIGHT / 2 + STEP * np.arange(-rows, rows + 1)
    left, top = (grid.ravel() for grid in np.meshgrid(lefts, tops))
    boxes = np.column_stack([left, top, left + width, top + LABEL_HEIGHT])
    inside = (boxes[:, :2] >= (frame.left, frame.top)).all(axis=1)
    inside &= (boxes[:, 2:] <= (frame.right, frame.bottom)).all(axis=1)
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


def dots(lines: Sequence[Line], axis: Axis, *, title: str, rule: float | None = None) -> str:
    """Draw values with their intervals, one line a name.

    Parameters
    ----------
    rule : float, optional
        A value to draw a line through, such as zero.
    """
    widest = max(width_of(line.name) for line in lines) + 24
    left, right, top = min(LABELS, widest), WIDTH - EDGE, 8.0
    pitch = TWIN_LINE if any(len(line.marks) > 1 for line in lines) else LINE
    bottom = top + pitch * len(lines)
    parts = _ticks(axis, left, right, top, bottom)
    if rule is not None:
        x = axis.at(rule, left, right)
        parts.append(_line("rule", x, top, x, bottom))
    for i, line in enumerate(lines):
        y = top + pitch * (i + 0.5)
        parts.append(_text(left - 12, y + 4, _cut(line.name, left - 20), "end"))
        offsets = (0.0,) if len(line.marks) == 1 else (-TWIN, TWIN)
        for mark, offset in zip(line.marks, offsets, strict=False):
            parts += _mark(mark, axis, left, right, y + offset)
    return _svg(parts, bottom + 46, title)


def scatter(
    points: Sequence[tuple[str, Mark, Mark]], x: Axis, y: Axis, *, title: str, equal: bool = True
) -> str:
    """Draw a point a name with its interval in both directions; the first mark is that of x.

    Parameters
    ----------
    equal : bool
        Draw where x and y are equal: only if they are of one unit.
    """
    tall = min(max(360.0, LABEL_HEIGHT * len(points)), 720.0)
    left, right, top, bottom = 64.0, WIDTH - EDGE, 10.0, 10.0 + tall
    parts = _ticks(x, left, right, top, bottom)
    for tick in y.ticks():
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
    frame = Box(left, top, right, bottom)
    for point in points:
        parts += _cross(point, x, y, frame)
    return _svg([*parts, *_labels(points, x, y, frame)], bottom + 46, title)


def _cross(point: tuple[str, Mark, Mark], x: Axis, y: Axis, frame: Box) -> list[str]:
    name, one, other = point
    at = _middle(point, x, y, frame)
    parts = []
    if one.lower is not None and one.upper is not None:
        ends = [x.at(end, frame.left, frame.right) for end in (one.lower, one.upper)]
        parts.append(_line("people", ends[0], at[1], ends[1], at[1]))
    if other.lower is not None and other.upper is not None:
        ends = [y.at(end, frame.bottom, frame.top) for end in (other.lower, other.upper)]
        parts.append(_line("judge", at[0], ends[0], at[0], ends[1]))
    return [*parts, _circle("judge", *at, RADIUS, name)]


def _middle(point: tuple[str, Mark, Mark], x: Axis, y: Axis, frame: Box) -> tuple[float, float]:
    return (
        x.at(point[1].value, frame.left, frame.right),
        y.at(point[2].value, frame.bottom, frame.top),
    )


def _labels(points: Sequence[tuple[str, Mark, Mark]], x: Axis, y: Axis, frame: Box) -> list[str]:
    """Write names beside their points, with a line where they stand further off."""
    named = [point for point in points if point[0]]
    names = [_cut(name, LABELS) for name, _, _ in named]
    middles = [_middle(point, x, y, frame) for point in named]
    lines, texts = [], []
    boxes = place_labels(names, middles, frame) if named else []
    for name, middle, box in zip(names, middles, boxes, strict=True):
        if box is None:
            continue
        nearest = (
            min(max(middle[0], box.left), box.right),
            min(max(middle[1], box.top), box.bottom),
        )
        if math.dist(middle, nearest) > FAR:
            lines.append(_line("lead", *middle, *nearest))
        texts.append(_label(name, middle[0], box))
    return [*lines, *texts]


def _label(name: str, x: float, box: Box) -> str:
    """Write a name at that end of its box which is nearer to its point: it may be shorter."""
    y = box.bottom - 4
    if box.left < x < box.right:
        return _text((box.left + box.right) / 2, y, name, "middle", "name")
    right = box.left >= x
    return _text(box.left if right else box.right, y, name, "start" if right else "end", "name")


def _ticks(axis: Axis, left: float, right: float, top: float, bottom: float) -> list[str]:
    parts = []
    for tick in axis.ticks():
        x = axis.at(tick, left, right)
        parts.append(_line("grid", x, top, x, bottom))
        parts.append(_text(x, bottom + 16, axis.write(tick), "middle", "soft"))
    parts.append(_line("axis", left, bottom, right, bottom))
    parts.append(_text((left + right) / 2, bottom + 36, axis.title, "middle", "soft"))
    return parts


def _mark(mark: Mark, axis: Axis, left: float, right: float, y: float) -> list[str]:
    parts = []
    if mark.lower is not None and mark.upper is not None:
        ends = [axis.at(x, left, right) for x in (mark.lower, mark.upper)]
        parts.append(_line(mark.kind, ends[0], y, ends[1], y, width=2))
    return [*parts, _circle(mark.kind, axis.at(mark.value, left, right), y, 4.5)]


@dataclass(frozen=True, slots=True)
class Slope:
    """A model's rank on two boards, and whether what moves it is shown to be more than luck."""

    name: str
    left: int
    right: int
    sure: bool


def slopes(models: Sequence[Slope], *, title: str) -> str:
    """Draw ranks on two boards, a line a model, in the width of a card."""
    ends = [
        sorted(models, key=lambda one: (one.left, one.name)),
        sorted(models, key=lambda one: (one.right, one.left, one.name)),
    ]
    left, right = CARD - 115.0, CARD - 24.0
    heights = [{one.name: ROW * (i + 0.5) for i, one in enumerate(end)} for end in ends]
    parts = []
    for one in sorted(models, key=lambda one: (one.sure, one.left != one.right)):
        moved = one.left != one.right
        kind = "judge" if moved and one.sure else "other" if moved else "grid"
        y, z = heights[0][one.name], heights[1][one.name]
        parts.append(_line(kind, left + 8, y, right - 6, z, width=1.5))
        parts += [_circle(kind, x, at, 2.5) for x, at in ((left + 8, y), (right - 6, z))]
        parts.append(_text(left - 22, y + 4, _cut(one.name, left - 22), "end"))
        parts.append(_text(left, y + 4, f"{one.left}", "end"))
        parts.append(_text(right + 4, z + 4, f"{one.right}", "start"))
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


def _text(
    x: float,
    y: float,
    text: str,
    anchor: str,
    kind: str = "",
    more: str = "",
) -> str:
    named = f' class="{kind}"' if kind else ""
    return (
        f'<text{named} x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}"{more}>{in_html(text)}</text>'
    )


def _cut(name: str, room: float) -> str:
    """Cut a name to the room there is."""
    name = visible(name)
    ends = list(accumulate(map(_letter, name)))
    if not ends or ends[-1] <= room:
        return name
    return name[: bisect(ends, room - _letter("…"))] + "…"
