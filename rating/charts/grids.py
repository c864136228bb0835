"""Models against models: a coloured cell for each pair that met."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from rating.charts.drawing import (
    EDGE,
    FONT,
    GAP,
    LINE,
    PAPER,
    Margins,
    axes_of,
    labels,
    plain,
    widest,
)
from rating.charts.picture import Theme
from rating.typing import Floats

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


MOST_COUNTED = 30
"""Models up to which the cells hold their number of votes."""

MOST_NAMED = 12
"""Models up to which the columns bear names; beyond, the numbers of the rows."""

MOST_VECTOR = 100
"""Models up to which each cell is a shape of its own; beyond, the cells are one image."""

DEPTH = 0.85
"""Opacity of the strongest colour: the ink stays legible on it, on light ground and on dark."""

LEAST_CELL, MOST_CELL = 5.4, 46.0
MOST_SCORED = 14
"""Models up to which a cell has room for its score as well."""

LEAST_WIDTH = 300.0
FILL = 0.84
"""Height of a row's letters over that of the row."""

SCALE_WIDTH, SCALE_HEIGHT = 150.0, 7.0


@dataclass(frozen=True, slots=True, eq=False)
class Grid:
    """What is drawn.

    Attributes
    ----------
    tone : ndarray of shape (n, n)
        From -1 over 0 to 1, or from 0 to 1; NaN for no colour.
    votes : ndarray of shape (n, n)
        Zero for a pair that never met.
    scores : ndarray of shape (n, n), or None
        Percent, written above the votes where there is room; NaN for none.
    scale : tuple of (float, str)
        Tones that the colour scale labels, and their labels.
    """

    names: Sequence[str]
    tone: Floats
    votes: Floats
    scale: tuple[tuple[float, str], ...]
    scale_name: str
    diverging: bool = True
    scores: Floats | None = None


@dataclass(frozen=True, slots=True)
class _Layout:
    rows: list[str]
    columns: list[str]
    upright: bool
    cell: float
    font: float
    margins: Margins


def draw_grid(grid: Grid, theme: Theme, caption: str) -> "Figure":
    """Draw the grid, its first model on top and at the left, and its colour scale below."""
    n, layout = len(grid.names), _layout(grid)
    side = n * layout.cell
    figure, axes = axes_of((side, side), layout.margins, theme, caption)
    axes.set(xlim=(0, n), ylim=(n, 0), xticks=[], yticks=[])
    axes.spines["bottom"].set_visible(False)
    axes.plot((0, n), (0, n), color=theme.faint, linewidth=0.6, zorder=0)
    _cells(axes, grid, theme)
    _names(axes, layout, theme)
    if n <= MOST_COUNTED:
        _counts(axes, grid, layout, theme)
    _scale(axes, grid, layout, theme)
    return figure


def _layout(grid: Grid) -> _Layout:
    n, named = len(grid.names), len(grid.names) <= MOST_NAMED
    rows = labels(grid.names)
    columns = rows if named else [str(i + 1) for i in range(n)]
    if not named:
        rows = [f"{row}  {i + 1}" for i, row in enumerate(rows)]
    room = PAPER - 2 * EDGE - 2 * GAP - LINE
    per_point = widest(rows)
    cell = room / (n + FILL * per_point)
    if cell * FILL > FONT:
        cell = (room - FONT * per_point) / n
    cell = min(max(cell, LEAST_CELL), MOST_CELL)
    font = min(FONT, FILL * cell)
    upright = widest(columns) * font > 0.9 * cell
    above = font * (widest(columns) if upright else 1) + GAP
    left = EDGE + LINE + GAP + font * per_point + GAP
    below = max(SCALE_WIDTH + 4 * GAP, FONT * widest([grid.scale_name]) + EDGE)
    margins = Margins(
        left=left,
        right=max(EDGE, LEAST_WIDTH - left - n * cell, below - n * cell),
        top=EDGE + LINE + above,
        bottom=GAP + SCALE_HEIGHT + 3 * LINE + GAP,
    )
    return _Layout(rows, columns, upright, cell, font, margins)


def _cells(axes: "Axes", grid: Grid, theme: Theme) -> None:
    from matplotlib.colors import to_rgba

    n = len(grid.names)
    colours = np.zeros((n, n, 4))
    for sign, colour in ((1, theme.over), (-1, theme.under)):
        where = np.sign(grid.tone) == sign
        colours[where] = to_rgba(colour)
    colours[..., 3] = DEPTH * np.nan_to_num(np.abs(grid.tone))
    colours = colours.round(3)
    if n > MOST_VECTOR:
        axes.imshow(colours, extent=(0, n, n, 0), interpolation="none", aspect="auto")
        axes.set(xlim=(0, n), ylim=(n, 0))
        return
    _rectangles(axes, grid, colours, theme)


def _rectangles(axes: "Axes", grid: Grid, colours: Floats, theme: Theme) -> None:
    from matplotlib.collections import PolyCollection

    met = grid.votes > 0
    met |= np.isfinite(grid.tone)
    corners = [
        [(j, i), (j + 1, i), (j + 1, i + 1), (j, i + 1)] for i, j in np.argwhere(met).tolist()
    ]
    faces = colours[met]
    axes.add_collection(
        PolyCollection(corners, facecolors=faces, edgecolors=theme.faint, linewidths=0.3)
    )


def _names(axes: "Axes", layout: _Layout, theme: Theme) -> None:
    n, gap = len(layout.rows), GAP / layout.cell
    words: dict[str, Any] = {"color": theme.ink, "fontsize": layout.font}
    for i, (row, column) in enumerate(zip(layout.rows, layout.columns, strict=True)):
        axes.text(-gap, i + 0.5, row, ha="right", va="center_baseline", **words)
        turn: dict[str, Any] = (
            {"rotation": 90, "va": "bottom"} if layout.upright else {"va": "baseline"}
        )
        axes.text(i + 0.5, -gap / 2, column, ha="center", **turn, **words)
    margins = layout.margins
    far = -(margins.left - EDGE - LINE / 2) / layout.cell
    high = -(margins.top - EDGE - LINE / 2) / layout.cell
    head: dict[str, Any] = {"color": theme.muted, "fontsize": FONT}
    axes.text(far, n / 2, "Model, best first", rotation=90, ha="center", va="center", **head)
    against = "Against" if layout.columns[0] != "1" else "Against the model of this number"
    axes.text(n / 2, high, against, ha="center", va="center", **head)


def _counts(axes: "Axes", grid: Grid, layout: _Layout, theme: Theme) -> None:
    counts = {(i, j): f"{grid.votes[i, j]:,.0f}" for i, j in np.argwhere(grid.votes > 0).tolist()}
    if not counts:
        return
    widths = [*counts.values(), *(["100 %"] if len(grid.names) <= MOST_SCORED else [])]
    size = min(FONT, 0.9 * layout.cell / widest(widths), 0.6 * layout.cell)
    scores = grid.scores if len(grid.names) <= MOST_SCORED else None
    words: dict[str, Any] = {"ha": "center", "va": "center_baseline", "color": theme.ink}
    for (i, j), votes in counts.items():
        if scores is None:
            axes.text(j + 0.5, i + 0.5, votes, fontsize=size, **words)
            continue
        axes.text(j + 0.5, i + 0.32, f"{scores[i, j]:.0f} %", fontsize=size, **words)
        axes.text(j + 0.5, i + 0.7, votes, fontsize=0.85 * size, **words)


def _scale(axes: "Axes", grid: Grid, layout: _Layout, theme: Theme) -> None:
    """Draw the colour scale under the cells, at their left edge."""
    from matplotlib.collections import PolyCollection
    from matplotlib.colors import to_rgba

    side = len(grid.names) * layout.cell
    box = (0, -(GAP + SCALE_HEIGHT) / side, SCALE_WIDTH / side, SCALE_HEIGHT / side)
    scale = axes.inset_axes(box)
    plain(scale, theme)
    low, steps = (-1.0 if grid.diverging else 0.0), 40
    edges = np.linspace(low, 1, steps + 1)
    tones = (edges[1:] + edges[:-1]) / 2
    faces = [
        (*to_rgba(theme.over if t > 0 else theme.under)[:3], round(DEPTH * abs(t), 3))
        for t in tones
    ]
    quads = [[(a, 0), (b, 0), (b, 1), (a, 1)] for a, b in pairwise(edges.tolist())]
    scale.add_collection(PolyCollection(quads, facecolors=faces, linewidths=0))
    scale.set(xlim=(low, 1), ylim=(0, 1), yticks=[], facecolor="none")
    scale.set_xticks([tone for tone, _ in grid.scale], [label for _, label in grid.scale])
    scale.set_xlabel(grid.scale_name, loc="left", labelpad=2)
