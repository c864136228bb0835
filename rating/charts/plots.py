"""Charts of a rating result: intervals, win rates, votes per pair, and quality versus cost.

Each function takes a result in the shape of ``arena rate --format json`` and gives a `Picture`,
which writes itself as PNG, SVG or HTML. `draw_boards` writes all charts of a source of votes into
a folder; `plot` draws one for a notebook. matplotlib is loaded when something is drawn.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime
from itertools import pairwise
from math import isfinite, sqrt
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from rating import Comparisons, RateOptions, Report, Votes
from rating.charts.drawing import (
    EDGE,
    FONT,
    GAP,
    LINE,
    PAPER,
    IntervalRow,
    Margins,
    Picture,
    Scale,
    Theme,
    axes_of,
    draw_intervals,
    draw_scatter,
    finite,
    labels,
    plain,
    widest,
)
from rating.errors import DataError
from rating.tables.columns import Reading
from rating.tables.counts import read_groups, read_votes
from rating.tables.formats import ReportDict, Table, borrowed_caption, caption, has_intervals
from rating.typing import Floats

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


# Matrices of models against models


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
class _Grid:
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


def _draw_grid(grid: _Grid, theme: Theme, caption: str) -> "Figure":
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


def _layout(grid: _Grid) -> _Layout:
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


def _cells(axes: "Axes", grid: _Grid, theme: Theme) -> None:
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


def _counts(axes: "Axes", grid: _Grid, layout: _Layout, theme: Theme) -> None:
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
        axes.text(j + 0.5, i + 0.32, f"{scores[i, j]:.0f}%", fontsize=size, **words)
        axes.text(j + 0.5, i + 0.7, votes, fontsize=0.85 * size, **words)


def _scale(axes: "Axes", grid: _Grid, layout: _Layout, theme: Theme) -> None:
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


# Charts of a result


FEWEST_COLOURED = 5
"""A share of fewer votes than this is not coloured: it is mostly chance. As on the leaderboard."""

MEAN = 1000.0
SCALE = 400.0


def intervals(report: ReportDict, *, made: date, title: str = "Ratings") -> Picture:
    """Show each model's rating with its interval, best first, and its rank interval at the right.

    A bound that is None or not finite is drawn as an arrow: the interval is open.

    Parameters
    ----------
    made : date
        Of the result, for the caption.

    Raises
    ------
    DataError
        If the report holds no rating.
    """
    ratings, known = _ratings(report), has_intervals(report)
    rows = [_row(rating, known) for rating in ratings]
    rule, from_what = _rule(report)
    sentences = [f"Dashed line: {from_what}.", borrowed_caption(report)]
    reference = report["method"].get("reference")
    if known and reference:
        sentences.append(f"Intervals: of the distance from {reference}.")
    if known:
        level = 100 * report["method"].get("level", 0.95)
        sentences.append(f"Right: ranks that the votes allow, all at once at {level:g}%.")
        if len(rows) > 1 and all(row.ranks == f"1–{len(rows)}" for row in rows):
            sentences.append("Ranges from first to last claim no order.")
        scale = Scale.of_ratings(rows, rule)
        if any(row.lower < scale.low or row.upper > scale.high for row in rows):
            sentences.append("Arrow: the interval is open, or runs on beyond the axis.")
    words = caption(report, made, *sentences)
    return Picture(
        title=title,
        caption=words,
        names=tuple(row.name for row in rows),
        table=_interval_table(ratings, rows),
        draw=lambda theme, below: draw_intervals(rows, rule, _axis_name(report), theme, below),
    )


def win_rates(
    report: ReportDict, data: Comparisons, *, made: date, title: str = "Head-to-head win rates"
) -> Picture:
    """Show the score of each model against each other, centred on one half, best first.

    Parameters
    ----------
    data : Comparisons
        The votes that were rated.

    Raises
    ------
    DataError
        If a vote is on a model that is not rated.
    """
    names, pairs = [rating["model"] for rating in _ratings(report)], _met_pairs(data)
    rate, votes = _matrices(names, pairs)
    coloured = np.where(votes < FEWEST_COLOURED, np.nan, rate)
    grid = _Grid(
        names=names,
        tone=2 * coloured - 1,
        votes=votes,
        scale=tuple((share / 50 - 1, str(share)) for share in (0, 25, 50, 75, 100)),
        scores=100 * rate,
        scale_name="Score of row against column (%)",
    )
    sentences = ["Score: wins and half the ties.", *_blanks_caption(votes)]
    return Picture(
        title=title,
        caption=caption(
            report, made, *sentences, _cells_caption(len(names), scores=True), intervals=False
        ),
        names=tuple(names),
        table=_pair_table(pairs, rates=True),
        draw=lambda theme, below: _draw_grid(grid, theme, below),
    )


def votes_per_pair(
    report: ReportDict, data: Comparisons, *, made: date, title: str = "Votes by pair"
) -> Picture:
    """Show how many votes each pair of models has, best first; ``data`` as in `win_rates`."""
    names, pairs = [rating["model"] for rating in _ratings(report)], _met_pairs(data)
    _, votes = _matrices(names, pairs)
    most = max(float(votes.max()), 1.0)
    marks = sorted({int(most * share) for share in (0, 1 / 16, 1 / 4, 9 / 16, 1)})
    grid = _Grid(
        names=names,
        tone=np.where(votes > 0, np.sqrt(votes / most), np.nan),
        votes=votes,
        scale=tuple((sqrt(n / most), f"{n:,}") for n in marks),
        scale_name="Votes of the pair (number, square-root scale)",
        diverging=False,
    )
    n_pairs = len(names) * (len(names) - 1) // 2
    met = int(np.count_nonzero(np.triu(votes)))
    coverage = f"{met:,} of {n_pairs:,} pairs met."
    return Picture(
        title=title,
        caption=caption(report, made, coverage, _cells_caption(len(names)), intervals=False),
        names=tuple(names),
        table=_pair_table(pairs, rates=False),
        draw=lambda theme, below: _draw_grid(grid, theme, below),
    )


def quality_and_cost(
    result: ReportDict, *, made: date, title: str = "Ratings and costs"
) -> Picture:
    """Show ratings against what answers cost, or without prices against how long they take.

    Parameters
    ----------
    result : mapping
        `rating.value.Value.to_dict`.

    Raises
    ------
    DataError
        If no model has either.
    """
    name = next((x for x in TAKES if any(row[x] for row in result["models"])), None)
    if name is None:
        raise DataError("There is nothing to draw: no model has a cost or a time.")
    rows = [row for row in result["models"] if row[name]]
    marks = [(_row(row, known=True), row[name]) for row in rows]
    rest = len(result["models"]) - len(rows)
    sentences = [
        "Line: what no other model beats in both. Hollow: dominated by one other model.",
        f"Without a figure, and not drawn: {rest}." if rest else "",
    ]
    return Picture(
        title=title,
        caption=caption(result, made, *sentences),
        names=tuple(row["model"] for row in rows),
        table=_taken_table(rows, name),
        draw=lambda theme, below: draw_scatter(
            marks, TAKES[name], "Rating (points)", theme, below
        ),
    )


TAKES = {
    "cost": "US dollars per 1,000 answers, on the same prompts (log scale)",
    "seconds": "Seconds an answer, on the same prompts (log scale)",
}


def _taken_table(rows: Sequence[Mapping[str, Any]], name: str) -> Table:
    cells = [
        (
            row["model"],
            f"{row['rating']:,.0f}",
            *(f"{row[name][end]:.3g}" for end in ("value", "lower", "upper")),
            "yes" if row[name]["dominated"] else "no",
        )
        for row in rows
    ]
    return Table(("Model", "Rating", TAKES[name], "Lower", "Upper", "Dominated"), tuple(cells))


def _met_pairs(data: Comparisons) -> list[tuple[str, str, float, float]]:
    """Give each pair that met: its models, the first one's score, and the votes by weight."""
    wins = data.wins()
    votes = wins + wins.T
    return [
        (data.models[i], data.models[j], float(wins[i, j] / votes[i, j]), float(votes[i, j]))
        for i, j in np.argwhere(np.triu(votes, 1) > 0)
    ]


def _ratings(report: ReportDict) -> list[Mapping[str, Any]]:
    ratings = sorted(report["ratings"], key=lambda row: -row["rating"])
    if not ratings:
        raise DataError("There is no rating to draw: the result holds no model.")
    return ratings


def _row(rating: Mapping[str, Any], known: bool) -> IntervalRow:
    low, high = rating.get("rank_low"), rating.get("rank_high")
    ranks = f"{low}" if low == high else f"{low}–{high}"
    value = float(rating["rating"])
    return IntervalRow(
        name=rating["model"],
        rating=value,
        lower=finite(rating.get("lower"), -np.inf) if known else value,
        upper=finite(rating.get("upper"), np.inf) if known else value,
        ranks=ranks if known and low is not None and high is not None else "",
    )


def _rule(report: ReportDict) -> tuple[float, str]:
    """Give the line that ratings are measured from, and what it is."""
    anchor = report["method"].get("anchor")
    if anchor:
        model, points = (
            next(iter(anchor.items()))
            if isinstance(anchor, Mapping)
            else anchor.rpartition("=")[::2]
        )
        return float(points), f"{model}, held at {float(points):,.0f}"
    mean = finite(report["method"].get("mean"), MEAN)
    return mean, f"the mean of all models, {mean:,.0f}"


def _axis_name(report: ReportDict) -> str:
    scale = float(report["method"].get("scale") or SCALE)
    return f"Rating (points; {scale:,.0f} more are odds of ten to one)"


def _blanks_caption(votes: Floats) -> list[str]:
    pairs = votes[np.triu_indices(len(votes), 1)]
    sentences = ["Blank: never met."] if (pairs == 0).any() else []
    if ((pairs > 0) & (pairs < FEWEST_COLOURED)).any():
        sentences.append(f"Not coloured: fewer than {FEWEST_COLOURED} votes.")
    return sentences


def _cells_caption(n: int, *, scores: bool = False) -> str:
    if scores and n <= MOST_SCORED:
        return "In each cell: the score and the number of votes."
    if n <= MOST_COUNTED:
        return "In each cell: the number of votes."
    return f"Counts are excluded, with more than {MOST_COUNTED} models; the table has them."


def _matrices(
    names: Sequence[str], pairs: Sequence[tuple[str, str, float, float]]
) -> tuple[Floats, Floats]:
    """Rates (NaN where not known) and votes, mirrored."""
    place = {name: i for i, name in enumerate(names)}
    rate, votes = np.full((len(names),) * 2, np.nan), np.zeros((len(names),) * 2)
    for a, b, share, n in pairs:
        if a not in place or b not in place:
            raise DataError(f"The pair {a!r}, {b!r} is not one of two rated models.")
        i, j = place[a], place[b]
        rate[i, j], rate[j, i] = share, 1 - share
        votes[i, j] = votes[j, i] = n
    return rate, votes


def _interval_table(ratings: Sequence[Mapping[str, Any]], rows: Sequence[IntervalRow]) -> Table:
    cells = []
    for rating, row in zip(ratings, rows, strict=True):
        ends = [f"{end:,.0f}" if isfinite(end) else "open" for end in (row.lower, row.upper)]
        votes = f"{rating.get('votes', 0):,}"
        cells.append((row.name, f"{row.rating:,.0f}", *ends, row.ranks, votes))
    return Table(("Model", "Rating (points)", "Lower", "Upper", "Ranks", "Votes"), tuple(cells))


def _pair_table(pairs: Sequence[tuple[str, str, float, float]], *, rates: bool) -> Table:
    if rates:
        rows = [(a, b, f"{100 * share:.0f}", f"{n:,.0f}") for a, b, share, n in pairs]
        return Table(("Model", "Against", "Score (%)", "Votes"), tuple(rows))
    return Table(("Model", "Against", "Votes"), tuple((a, b, f"{n:,.0f}") for a, b, _, n in pairs))


# Charts of a source of votes


ENDINGS = (".png", ".svg", ".html")
LONGEST = 60
"""Characters of a folder's name: at four bytes each they fit every file system."""


def draw_boards(
    folder: Path, source: object, options: RateOptions, boards: Mapping[str, Any], made: date
) -> list[Path]:
    """Draw intervals, win rates and votes per pair of a source that was rated.

    Parameters
    ----------
    folder : Path
        Made if it is not there. Groups are drawn in a folder each, within it.
    boards : mapping
        `rating.Report.to_dict`, or that of `rating.tables.counts.Groups`, of the same source and
        options.

    Returns
    -------
    list of Path
        What was written.

    Raises
    ------
    DataError
        If the plots are not installed, or the votes cannot be read.
    """
    if folder.suffix.lower() in ENDINGS:
        raise DataError(f"Plots are several files: name a folder instead of {str(folder)!r}.")
    if "groups" not in boards:
        return _draw(folder, boards, read_votes(source, Reading.of(options)).data, made)
    votes = read_groups(source, Reading.of(options))
    names = folder_names(boards["groups"])
    return [
        file
        for value, report in boards["groups"].items()
        for file in _draw(folder / names[value], report, votes[value].data, made)
    ]


def folder_names(values: Iterable[str]) -> dict[str, str]:
    """Name a folder for each value: no path leads out, and no two share one, in any case.

    Examples
    --------
    >>> folder_names(["en", "EN", "../etc", "C++", ""])
    {'en': 'en', 'EN': 'EN-2', '../etc': 'etc', 'C++': 'C__', '': '_'}
    """
    names: dict[str, str] = {}
    taken: set[str] = set()
    for value in values:
        plain = "".join(c if c.isalnum() or c in "-_." else "_" for c in value[:LONGEST])
        plain = plain.lstrip("._") or "_"
        name, number = plain, 1
        while name.casefold() in taken:
            number += 1
            name = f"{plain}-{number}"
        taken.add(name.casefold())
        names[value] = name
    return names


def _draw(folder: Path, report: Mapping[str, Any], data: Comparisons, made: date) -> list[Path]:
    pictures = {
        "intervals": intervals(report, made=made),
        "win-rates": win_rates(report, data, made=made),
        "votes": votes_per_pair(report, data, made=made),
    }
    folder.mkdir(parents=True, exist_ok=True)
    files = [(folder / f"{name}{end}", made) for name, made in pictures.items() for end in ENDINGS]
    for file, picture in files:
        picture.write(file)
    return [file for file, _ in files]


KINDS = ("intervals", "win-rates", "votes")
"""The pictures of a board, by the names of their files."""


def plot(board: Report, kind: str = "intervals", votes: Votes | None = None) -> Picture:
    """Plot a board; a notebook displays the result, and `Picture.write` writes files.

    Parameters
    ----------
    kind : {"intervals", "win-rates", "votes"}
    votes : Votes, optional
        Those that were rated: needed by all but intervals.

    Raises
    ------
    DataError
        If there is no such picture, or the votes are missing.
    """
    made, report = datetime.now(UTC).date(), board.to_dict()
    if kind == "intervals":
        return intervals(report, made=made)
    if kind not in KINDS:
        msg = f"There is no picture {kind!r} of a board: choose one of {', '.join(KINDS)}."
        raise DataError(msg)
    if votes is None:
        msg = (
            f"The picture {kind!r} is of pairs: plot(board, {kind!r}, votes) needs the votes too."
        )
        raise DataError(msg)
    draw = win_rates if kind == "win-rates" else votes_per_pair
    return draw(report, votes.data, made=made)
