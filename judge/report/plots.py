"""Pictures of a report: SVG whose colours are those of the page around it."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from rating.tables.escaping import in_html

WIDTH = 620.0
LINE, TWIN_LINE = 26.0, 38.0
TWIN = 6.0
"""Half the distance of two marks on one line."""
LETTER = 6.7
"""Width of a letter of a label, at most: labels are cut to the room there is."""
LABELS = 220.0
EDGE = 28.0


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


def dots(
    lines: Sequence[Line],
    axis: Axis,
    *,
    title: str,
    band: tuple[float, float, str] | None = None,
    rule: float | None = None,
) -> str:
    """Draw values with their intervals, one line a name.

    Parameters
    ----------
    band : tuple of float, float and str, optional
        A range to shade, and what it is.
    rule : float, optional
        A value to draw a line through, such as zero.
    """
    widest = max(len(line.name) for line in lines) * LETTER + 24
    left, right = min(LABELS, widest), WIDTH - EDGE
    top = 24.0 if band else 8.0
    pitch = TWIN_LINE if any(len(line.marks) > 1 for line in lines) else LINE
    bottom = top + pitch * len(lines)
    parts = []
    if band is not None:
        a, b = (axis.at(x, left, right) for x in band[:2])
        parts.append(_rect("band", a, top, max(b - a, 2.0), bottom - top))
        parts.append(_text((a + b) / 2, top - 8, band[2], "middle", soft=True))
    parts += _ticks(axis, left, right, top, bottom)
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
    left, right, top, bottom = 64.0, 64.0 + 430.0, 10.0, 370.0
    parts = _ticks(x, left, right, top, bottom)
    for tick in y.ticks():
        at = y.at(tick, bottom, top)
        parts.append(_line("grid", left, at, right, at))
        parts.append(_text(left - 8, at + 4, y.write(tick), "end", soft=True))
    middle = (top + bottom) / 2
    turned = f' transform="rotate(-90 14 {middle:g})"'
    parts.append(_text(14, middle, y.title, "middle", soft=True, more=turned))
    low, high = max(x.low, y.low), min(x.high, y.high)
    if equal and low < high:
        ends = [(x.at(v, left, right), y.at(v, bottom, top)) for v in (low, high)]
        parts.append(_line("rule", *ends[0], *ends[1]))
    few = len(points) <= 12
    for name, one, other in points:
        parts += _cross(name, one, other, (x, y), (left, right, top, bottom), named=few)
    return _svg(parts, bottom + 46, title)


def _cross(
    name: str,
    one: Mark,
    other: Mark,
    axes: tuple[Axis, Axis],
    frame: tuple[float, float, float, float],
    *,
    named: bool,
) -> list[str]:
    (x, y), (left, right, top, bottom) = axes, frame
    at = x.at(one.value, left, right), y.at(other.value, bottom, top)
    parts = []
    if one.lower is not None and one.upper is not None:
        ends = (x.at(one.lower, left, right), x.at(one.upper, left, right))
        parts.append(_line("people", ends[0], at[1], ends[1], at[1]))
    if other.lower is not None and other.upper is not None:
        ends = (y.at(other.lower, bottom, top), y.at(other.upper, bottom, top))
        parts.append(_line("judge", at[0], ends[0], at[0], ends[1]))
    parts.append(_circle("judge", *at, 3.5, name))
    if named:
        parts.append(_text(at[0] + 7, at[1] - 6, _cut(name, WIDTH - at[0] - 10), "start"))
    return parts


def _ticks(axis: Axis, left: float, right: float, top: float, bottom: float) -> list[str]:
    parts = []
    for tick in axis.ticks():
        x = axis.at(tick, left, right)
        parts.append(_line("grid", x, top, x, bottom))
        parts.append(_text(x, bottom + 16, axis.write(tick), "middle", soft=True))
    parts.append(_line("axis", left, bottom, right, bottom))
    parts.append(_text((left + right) / 2, bottom + 36, axis.title, "middle", soft=True))
    return parts


def _mark(mark: Mark, axis: Axis, left: float, right: float, y: float) -> list[str]:
    parts = []
    if mark.lower is not None and mark.upper is not None:
        ends = [axis.at(x, left, right) for x in (mark.lower, mark.upper)]
        parts.append(_line(mark.kind, ends[0], y, ends[1], y, width=2))
    return [*parts, _circle(mark.kind, axis.at(mark.value, left, right), y, 4.5)]


def _svg(parts: Sequence[str], height: float, title: str) -> str:
    body = "\n".join(parts)
    return (
        f'<svg viewBox="0 0 {WIDTH:g} {height:g}" width="{WIDTH:g}" height="{height:g}" '
        f'role="img" aria-label="{in_html(title)}">\n{body}\n</svg>'
    )


def _line(kind: str, x1: float, y1: float, x2: float, y2: float, *, width: float = 1) -> str:
    ends = f'x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}"'
    return f'<line class="{kind}" {ends} stroke-width="{width:g}"/>'


def _rect(kind: str, x: float, y: float, width: float, height: float) -> str:
    size = f'width="{width:.1f}" height="{height:.1f}"'
    return f'<rect class="{kind}" x="{x:.1f}" y="{y:.1f}" {size}/>'


def _circle(kind: str, x: float, y: float, r: float, name: str = "") -> str:
    title = f"<title>{in_html(name)}</title>" if name else ""
    return f'<circle class="{kind}" cx="{x:.1f}" cy="{y:.1f}" r="{r:g}">{title}</circle>'


def _text(
    x: float, y: float, text: str, anchor: str, *, soft: bool = False, more: str = ""
) -> str:
    kind = ' class="soft"' if soft else ""
    return (
        f'<text{kind} x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}"{more}>{in_html(text)}</text>'
    )


def _cut(name: str, room: float) -> str:
    most = max(int(room / LETTER), 4)
    return name if len(name) <= most else name[: most - 1] + "…"
