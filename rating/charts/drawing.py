"""Drawing of rating charts: layout, interval and scatter plots, and pictures as files.

`draw_intervals` and `draw_scatter` draw into axes from `axes_of`; `Picture` writes the figure as
PNG or SVG with its caption, or as HTML with its table as well. Nothing is laid out by trial:
widths of names are measured and added up, so that labels cannot overlap. A figure is `PAPER` wide,
and grows only where its names would not be legible.
"""

import re
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import astuple, dataclass, fields
from functools import cache
from io import BytesIO
from math import ceil, floor, isfinite, log10
from pathlib import Path
from statistics import median_low
from typing import TYPE_CHECKING, Any, Literal, Protocol

import numpy as np

from rating.errors import DataError
from rating.tables.files import in_html, visible
from rating.tables.formats import Table

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


# Themes and pictures


ThemeName = Literal["light", "dark"]

FORMATS = (".png", ".svg", ".html")
DPI = 200

STYLE: dict[Any, Any] = {
    "font.family": "sans-serif",
    "font.sans-serif": ["DejaVu Sans", "Verdana", "Helvetica", "Arial"],
    "font.size": 7.5,
    "text.parse_math": False,
    "svg.fonttype": "none",
    "svg.hashsalt": "arena",
    "svg.id": None,
    "axes.linewidth": 0.6,
    "path.simplify": False,
}
"""Text stays text, names are never mathematics, and the same picture has the same bytes."""


@dataclass(frozen=True, slots=True)
class Theme:
    """Colours by their part, all different: in HTML each becomes a property of the page."""

    ground: str
    ink: str
    muted: str
    faint: str
    over: str
    under: str


THEMES: Mapping[str, Theme] = {
    "light": Theme("#ffffff", "#000000", "#555555", "#d9d9d9", "#3a78b5", "#cf7a32"),
    "dark": Theme("#141412", "#e9e9e4", "#a9a9a2", "#3d3d39", "#3f7fc0", "#b5662a"),
}


@dataclass(frozen=True, slots=True)
class Picture:
    """A picture, its caption, and the numbers behind it.

    Attributes
    ----------
    title : str
        Heading of the page and title of the SVG; not drawn.
    caption : str
        Number of votes, method, date, and what is excluded.
    names : tuple of str
        Models, in full: the description of the SVG, where a drawn name may be shortened.
    draw : callable
        Gives the figure, from a theme and the caption to draw below it ("" for none).
    """

    title: str
    caption: str
    names: tuple[str, ...]
    table: Table
    draw: Callable[[Theme, str], "Figure"]

    def write(self, path: Path, *, theme: ThemeName = "light") -> None:
        """Write a file of the kind that its ending names; the same picture gives the same bytes.

        Parameters
        ----------
        path : Path
            Ends in ``.png``, ``.svg`` or ``.html``. The page holds both themes.

        Raises
        ------
        DataError
            If the ending is another, or the file cannot be written.
        """
        render = {".png": self._png, ".svg": self._svg, ".html": self._html}.get(path.suffix)
        if render is None:
            msg = f"Cannot draw {str(path)!r}: name a file that ends in {', '.join(FORMATS)}."
            raise DataError(msg)
        try:
            path.write_bytes(render(THEMES[theme]))
        except OSError as error:
            raise DataError(f"Cannot write {str(path)!r}: {error.strerror}.") from error

    def _repr_png_(self) -> bytes:
        return self._png(THEMES["light"])

    def _png(self, theme: Theme) -> bytes:
        with drawing():
            return _saved(self.draw(theme, self.caption), "png", {"Software": None})

    def _svg(self, theme: Theme) -> bytes:
        return self._vector(theme, self.caption).encode()

    def _html(self, theme: Theme) -> bytes:
        light = THEMES["light"]
        svg = self._vector(light, "")[len(_XML_HEAD) :]
        names = {colour: f"var(--{part})" for part, colour in _parts(light)}
        colours = re.compile("|".join(names))
        svg = re.sub("<[^>]*>", lambda tag: colours.sub(lambda c: names[c[0]], tag[0]), svg)
        page = (Path(__file__).parent / "page.html").read_text("utf-8")
        return page.format(
            title=in_html(self.title),
            light=_properties(light),
            dark=_properties(THEMES["dark"]),
            svg=svg,
            caption=in_html(self.caption),
            table=self.table.html(),
        ).encode()

    def _vector(self, theme: Theme, caption: str) -> str:
        about = {"Date": None, "Creator": None, "Format": None, "Type": None}
        with drawing():
            drawn = _saved(self.draw(theme, caption), "svg", about).decode()
        body = drawn[drawn.index("<svg") :]
        body = re.sub(r"<metadata>.*?</metadata>\s*", "", body, count=1, flags=re.DOTALL)
        named = in_html("; ".join(self.names))
        described = f"<title>{in_html(self.title)}</title>\n <desc>{named}</desc>"
        return _XML_HEAD + re.sub(
            r"<svg[^>]*>", lambda tag: f'{tag[0][:-1]} role="img">\n {described}', body, count=1
        )


@contextmanager
def drawing() -> Iterator[None]:
    """Draw in the house style; a script that no font has is drawn as boxes, without a warning."""
    try:
        import matplotlib as mpl
    except ImportError as error:
        msg = (
            "Pictures need matplotlib. Install the arena with its extra 'plots': "
            "pip install 'blind-arena[plots]'."
        )
        raise DataError(msg) from error
    with mpl.rc_context(), warnings.catch_warnings():
        mpl.rcdefaults()  # nobody's own settings
        mpl.rcParams.update(STYLE)
        warnings.filterwarnings("ignore", message=r".*(Glyph|does not support)")
        yield


def _saved(figure: "Figure", kind: str, metadata: Mapping[str, str | None]) -> bytes:
    out = BytesIO()
    figure.savefig(out, format=kind, dpi=DPI, metadata=dict(metadata))
    return out.getvalue()


def _parts(theme: Theme) -> list[tuple[str, str]]:
    return list(zip((f.name for f in fields(theme)), astuple(theme), strict=True))


def _properties(theme: Theme) -> str:
    return " ".join(f"--{part}: {colour};" for part, colour in _parts(theme))


_XML_HEAD = '<?xml version="1.0" encoding="utf-8"?>\n'


# Layout


LEAST_SPAN = 100.0
"""Points that a scale of ratings shows at least."""


class Rated(Protocol):
    """A rating with its interval, of which an end may be infinite."""

    @property
    def rating(self) -> float: ...  # noqa: D102
    @property
    def lower(self) -> float: ...  # noqa: D102
    @property
    def upper(self) -> float: ...  # noqa: D102


@dataclass(frozen=True, slots=True)
class Scale:
    """An axis from one value to another, straight or logarithmic, and what is laid off on it."""

    low: float
    high: float
    title: str = ""
    write: Callable[[float], str] = str
    log: bool = False

    @classmethod
    def of_ratings(cls, rows: Sequence[Rated], *anchors: float) -> "Scale":
        """Hold ratings and anchors, and intervals as far as they are readable.

        An interval may reach beyond these by as much as they spread, or by twice the median
        half-width; a longer one is cut, so that one wild interval does not flatten the others.
        """
        inside = [*(row.rating for row in rows), *anchors]
        low, high = min(inside), max(inside)
        halves = [(row.upper - row.lower) / 2 for row in rows if isfinite(row.upper - row.lower)]
        reach = max(high - low, 2 * median_low(halves or [0.0]), LEAST_SPAN)
        low = min([low, *(max(row.lower, low - reach) for row in rows)])
        high = max([high, *(min(row.upper, high + reach) for row in rows)])
        spare = max(LEAST_SPAN - (high - low), 0.06 * (high - low)) / 2
        return cls(low - spare, high + spare)

    def at(self, value: float, start: float = 0.0, end: float = 100.0) -> float:
        """Place a value between two ends, in percent if not told otherwise; cut off at these.

        Examples
        --------
        >>> Scale(0, 4).at(3), Scale(0, 4).at(5, 200, 0), Scale(1, 1000, log=True).at(10)
        (75.0, 0.0, 33.33)
        """
        low, high, value = (
            map(log10, (self.low, self.high, value)) if self.log else (self.low, self.high, value)
        )
        return round(start + min(max((value - low) / (high - low), 0.0), 1.0) * (end - start), 2)

    def ticks(self, most: int = 5) -> list[float]:
        """Give up to `most` round values from one end to the other.

        They are 1, 2 or 5 times a power of ten apart, or on a logarithmic scale such numbers.

        Examples
        --------
        >>> Scale(893, 1204).ticks(), Scale(0, 1).ticks(7), Scale(3, 60, log=True).ticks()
        ([900.0, 1000.0, 1100.0, 1200.0], [0.0, 0.2, 0.4, 0.6, 0.8, 1.0], [5.0, 10.0, 20.0, 50.0])
        """
        if self.log:
            factors = (1, 2, 5) if self.high < 100 * self.low else (1,)
            powers = range(floor(log10(self.low)), ceil(log10(self.high)) + 1)
            every = [factor * 10.0**power for power in powers for factor in factors]
            return [tick for tick in every if self.low <= tick <= self.high]
        power = 10.0 ** floor(log10((self.high - self.low) / most))
        for step in (factor * power for factor in (1, 2, 5, 10)):
            first, last = ceil(self.low / step - 1e-9), floor(self.high / step + 1e-9)
            if last - first < most:
                return [round(n * step, 10) for n in range(first, last + 1)]
        raise AssertionError("ten times the power leaves at most as many ticks as were asked for")


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


# Interval plot


MOST_ROOMY = 30
ROOMY, TIGHT = 13.0, 9.2
RANK = "Rank"


@dataclass(frozen=True, slots=True)
class IntervalRow:
    """One model.

    Attributes
    ----------
    lower, upper : float
        Infinite where the interval is open.
    ranks : str
        Its range of ranks, "" where none is claimed.
    """

    name: str
    rating: float
    lower: float
    upper: float
    ranks: str


def finite(value: float | None, otherwise: float) -> float:
    """Give a value, or another in place of None, NaN and infinity."""
    return float(value) if value is not None and isfinite(value) else otherwise


def draw_intervals(
    rows: Sequence[IntervalRow], rule: float, axis_name: str, theme: Theme, caption: str
) -> "Figure":
    """Draw the rows, the first on top, and a line at what ratings are measured from."""
    drawn = labels([row.name for row in rows])
    ranks = [row.ranks for row in rows]
    margins = Margins(
        left=EDGE + FONT * widest(drawn) + GAP,
        right=GAP + FONT * widest([RANK, *ranks]) + EDGE if any(ranks) else EDGE + GAP,
        top=LINE + GAP,
        bottom=3 * LINE + GAP,
    )
    pitch = ROOMY if len(rows) <= MOST_ROOMY else TIGHT
    size = (PAPER - margins.left - margins.right, pitch * len(rows))
    figure, axes = axes_of(size, margins, theme, caption)
    scale = Scale.of_ratings(rows, rule)
    axes.set_xlim(scale.low, scale.high)
    axes.set_ylim(len(rows) - 0.5, -0.5)
    axes.set_yticks([])
    axes.set_xlabel(axis_name)
    axes.xaxis.set_major_formatter("{x:,.0f}")
    axes.axvline(rule, color=theme.muted, linewidth=0.7, linestyle=(0, (4, 3)), zorder=1)
    for i, row in enumerate(rows):
        axes.axhline(i, color=theme.faint, linewidth=0.4, zorder=0)
        _bar(axes, i, row, theme)
    _words(axes, drawn, ranks, size, theme)
    return figure


def _bar(axes: "Axes", i: int, row: IntervalRow, theme: Theme) -> None:
    left, right = axes.get_xlim()
    ends = max(row.lower, left), min(row.upper, right)
    axes.plot(ends, (i, i), color=theme.ink, linewidth=1, solid_capstyle="butt", zorder=2)
    for end, cut, mark in ((left, row.lower < left, "<"), (right, row.upper > right, ">")):
        if cut:
            axes.plot([end], [i], mark, color=theme.ink, markersize=4, clip_on=False, zorder=3)
    axes.plot([row.rating], [i], "o", color=theme.ink, markersize=3.4, zorder=3)


def _words(
    axes: "Axes",
    drawn: Sequence[str],
    ranks: Sequence[str],
    size: tuple[float, float],
    theme: Theme,
) -> None:
    """Write names at the left and ranks at the right, under their heads."""
    left, right = -GAP / size[0], 1 + GAP / size[0]
    row = axes.get_yaxis_transform()
    for i, (name, rank) in enumerate(zip(drawn, ranks, strict=True)):
        axes.text(left, i, name, transform=row, ha="right", va="center_baseline", color=theme.ink)
        axes.text(right, i, rank, transform=row, va="center_baseline", color=theme.ink)
    above = 1 + (GAP / 2) / size[1]
    head: dict[str, Any] = {"transform": axes.transAxes, "va": "bottom", "color": theme.muted}
    axes.text(left, above, "Model", ha="right", **head)
    if any(ranks):
        axes.text(right, above, RANK, **head)


# Scatter plot


LEAST_HEIGHT = 240.0
LABEL = 9.2
LEADER = 36.0
LEAST_FACTOR = 1.6
"""By which a logarithmic axis reaches beyond its values at least: so it has a round mark."""


Taking = tuple[IntervalRow, Mapping[str, Any]]
"""A model, and what its answers take: ``value``, ``lower``, ``upper``, whether ``on_frontier``."""


def draw_scatter(
    marks: Sequence[Taking], x_name: str, y_name: str, theme: Theme, caption: str
) -> "Figure":
    """Draw marks with their intervals over a logarithmic axis, and the frontier as steps."""
    from matplotlib.ticker import LogLocator, NullFormatter

    drawn = labels([row.name for row, _ in marks])
    margins = Margins(
        left=EDGE + LINE + 2 * GAP + FONT * width_of("10,000"),
        right=LEADER + GAP + FONT * widest(drawn) + EDGE,
        top=LINE,
        bottom=3 * LINE + GAP,
    )
    size = (PAPER - margins.left - margins.right, max(LEAST_HEIGHT, LABEL * len(marks)))
    figure, axes = axes_of(size, margins, theme, caption)
    axes.set_xscale("log")
    scale = Scale.of_ratings([row for row, _ in marks])
    axes.set_ylim(scale.low, scale.high)
    x_ends = [taken[end] for _, taken in marks for end in ("value", "lower", "upper")]
    wider = max(LEAST_FACTOR, (max(x_ends) / min(x_ends)) ** 0.05)
    axes.set_xlim(min(x_ends) / wider, max(x_ends) * wider)
    for row, taken in marks:
        _cross(axes, row, taken, scale, theme)
    front = sorted((taken["value"], row.rating) for row, taken in marks if taken["on_frontier"])
    axes.step(*zip(*front, strict=True), where="post", color=theme.over, linewidth=1.0, zorder=2)
    axes.xaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
    axes.xaxis.set_major_formatter("{x:g}")
    axes.xaxis.set_minor_formatter(NullFormatter())
    axes.set_xlabel(x_name)
    axes.set_ylabel(y_name, labelpad=4)
    axes.spines["left"].set_visible(True)
    axes.yaxis.set_major_formatter("{x:,.0f}")
    _names_beside(axes, marks, drawn, size, theme)
    return figure


def _cross(
    axes: "Axes", row: IntervalRow, taken: Mapping[str, Any], scale: Scale, theme: Theme
) -> None:
    colour = theme.over if taken["on_frontier"] else theme.muted
    thin: dict[str, Any] = {"color": colour, "linewidth": 0.7, "alpha": 0.8, "zorder": 3}
    x = taken["value"]
    axes.plot((taken["lower"], taken["upper"]), (row.rating, row.rating), **thin)
    axes.plot((x, x), np.clip((row.lower, row.upper), scale.low, scale.high), **thin)
    face = theme.ground if taken["dominated"] else colour
    axes.plot(x, row.rating, "o", markersize=4, color=colour, markerfacecolor=face, zorder=4)


def _names_beside(
    axes: "Axes",
    marks: Sequence[Taking],
    drawn: Sequence[str],
    size: tuple[float, float],
    theme: Theme,
) -> None:
    """Write names at the right by rating, moved apart, each led to from its mark."""
    on_page = axes.transData + axes.transAxes.inverted()
    at = [on_page.transform((taken["value"], row.rating)).tolist() for row, taken in marks]
    places = spread([size[1] * y for _, y in at], LABEL, LABEL / 2, size[1] - LABEL / 2)
    words: dict[str, Any] = {"transform": axes.transAxes, "va": "center_baseline"}
    for name, (_, taken), (x, y), place in zip(drawn, marks, at, places, strict=True):
        axes.plot(
            [x, 1, 1 + LEADER / size[0]],
            [y, y, place / size[1]],
            transform=axes.transAxes,
            clip_on=False,
            color=theme.faint,
            linewidth=0.5,
            zorder=1,
        )
        colour = theme.ink if taken["on_frontier"] else theme.muted
        axes.text(1 + (LEADER + 2) / size[0], place / size[1], name, color=colour, **words)
