"""Figures in points: how much room names take, and where everything goes.

Nothing is laid out by trial. Widths of names are measured, the rest is added up, so that labels
cannot overlap: a figure is `PAPER` wide, and grows only where its names would not be legible.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING

from rating.charts.picture import Theme
from rating.tables.escaping import visible

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

PAPER = 468.0
"""Width of the text of a letter page, 6.5 inches, in points."""

FONT = 7.5
LINE = 10.5
GAP = 5.0
EDGE = 8.0
LONGEST = 36
"""Characters of a name that are drawn; a longer one loses its middle."""


@dataclass(frozen=True, slots=True)
class Margins:
    """Room around the axes, in points, without the caption."""

    left: float
    right: float
    top: float
    bottom: float


@cache
def width_of(text: str) -> float:
    """Width of a text in points, set at one point: times the size, it is that of the text."""
    from matplotlib.font_manager import FontProperties
    from matplotlib.textpath import text_to_path

    sized = FontProperties(family="sans-serif", size=100)
    width, _, _ = text_to_path.get_text_width_height_descent(text, sized, ismath=False)
    return float(width) / 100


def widest(texts: Sequence[str]) -> float:
    """Width of the widest text, set at one point."""
    return max((width_of(text) for text in texts), default=0.0)


def labels(names: Sequence[str]) -> list[str]:
    """Names as they are drawn: on one line, cut in the middle where too long, still different.

    Examples
    --------
    >>> labels(["x" * 50, "x" * 60, "y"])
    ['xxxxxxxxxxxxxxxxx…xxxxxxxxxxxxxxxxxx', 'xxxxxxxxxxxxxxxxx…xxxxxxxxxxxxxx [2]', 'y']
    """
    drawn: list[str] = []
    for name in map(visible, names):
        label, again = _cut(name, ""), 1
        while label in drawn:
            again += 1
            label = _cut(name, f" [{again}]")
        drawn.append(label)
    return drawn


def _cut(name: str, mark: str) -> str:
    if len(name) + len(mark) <= LONGEST:
        return name + mark
    half = (LONGEST - 1) // 2
    return f"{name[:half]}…{name[-(LONGEST - 1 - half - len(mark)) :]}{mark}"


def wrapped(text: str, width: float, size: float) -> list[str]:
    """Break a text into lines of at most a width in points; a longer word stands alone."""
    lines: list[str] = []
    for word in text.split():
        longer = f"{lines[-1]} {word}" if lines else word
        if lines and width_of(longer) * size <= width:
            lines[-1] = longer
        else:
            lines.append(word)
    return lines


def axes_of(
    size: tuple[float, float], margins: Margins, theme: Theme, caption: str
) -> tuple["Figure", "Axes"]:
    """Make a figure around axes of a size in points, with the caption below."""
    from matplotlib.figure import Figure

    width = margins.left + size[0] + margins.right
    lines = wrapped(visible(caption), width - 2 * EDGE, FONT)
    below = LINE * len(lines) + (EDGE if lines else 0)
    height = margins.top + size[1] + margins.bottom + below
    figure = Figure(figsize=(width / 72, height / 72), facecolor=theme.ground)
    for i, line in enumerate(lines):
        at = (below - LINE * i - LINE / 2) / height
        figure.text(EDGE / width, at, line, color=theme.muted, va="center", fontsize=FONT)
    bottom = (margins.bottom + below) / height
    axes = figure.add_axes(
        (margins.left / width, bottom, size[0] / width, size[1] / height), facecolor="none"
    )
    plain(axes, theme)
    return figure, axes


def plain(axes: "Axes", theme: Theme) -> None:
    """Give axes the colours of the theme, and no frame but the line below."""
    for side, spine in axes.spines.items():
        spine.set_visible(side == "bottom")
        spine.set_color(theme.ink)
    axes.tick_params(colors=theme.ink, width=0.6, length=3, labelsize=FONT)
    axes.xaxis.label.set(color=theme.ink, fontsize=FONT)
    axes.yaxis.label.set(color=theme.ink, fontsize=FONT)


def spread(places: Sequence[float], gap: float, low: float, high: float) -> list[float]:
    """Move places, in any order, apart by a gap and into bounds, as little as can be.

    Examples
    --------
    >>> spread([5, 5, 20], 4, 0, 30)
    [3.0, 7.0, 20.0]
    """
    from scipy.optimize import isotonic_regression

    order = sorted(range(len(places)), key=lambda i: places[i])
    shifted = [places[i] - gap * rank for rank, i in enumerate(order)]
    best = isotonic_regression(shifted).x
    top = high - gap * (len(places) - 1)
    moved = [0.0] * len(places)
    for rank, i in enumerate(order):
        moved[i] = float(min(max(best[rank], low), max(low, top))) + gap * rank
    return moved
