"""The pictures of a result: ratings with intervals, who beats whom, votes by pair, ratings by day.

Each function takes a result in the shape of ``arena rate --format json`` and gives a `Picture`,
which writes itself as PNG, SVG or HTML. matplotlib is loaded when something is drawn.
"""

from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, date, datetime
from math import isfinite, sqrt
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from rating import Comparisons, RateOptions, Report, Votes
from rating.charts.drawing import (
    IntervalRow,
    Mark,
    Rule,
    draw_intervals,
    draw_scatter,
    finite,
    span,
)
from rating.charts.grids import MOST_COUNTED, MOST_SCORED, Grid, draw_grid
from rating.charts.picture import Picture, Table
from rating.errors import DataError
from rating.tables.columns import Reading
from rating.tables.counts import read_groups, read_votes
from rating.tables.formats import (
    ReportDict,
    borrowed_caption,
    caption,
    has_intervals,
)
from rating.typing import Floats

FEWEST_COLOURED = 5
"""A share of fewer votes than this is not coloured: it is mostly chance. As on the leaderboard."""

"""Models up to which each line has its band; with more models, this many of the best."""

MEAN = 1000.0
SCALE = 400.0


def intervals(report: ReportDict, *, made: date, title: str = "Ratings") -> Picture:
    """Show each model's rating with its interval, best first, and its rank range at the right.

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
    rule = _rule(report)
    sentences = [f"Dashed line: {rule.description}.", borrowed_caption(report)]
    reference = report["method"].get("reference")
    if known and reference:
        sentences.append(f"Intervals: of the distance from {reference}.")
    if known:
        level = 100 * report["method"].get("level", 0.95)
        sentences.append(f"Right: ranks that the votes allow, all at once at {level:g} %.")
        if len(rows) > 1 and all(row.ranks == f"1–{len(rows)}" for row in rows):
            sentences.append("Ranges from first to last claim no order.")
        low, high = span(rows, rule.at)
        if any(row.lower < low or row.upper > high for row in rows):
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
    report: ReportDict, data: Comparisons, *, made: date, title: str = "Who beats whom"
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
    names, pairs = [rating["model"] for rating in _ratings(report)], met_pairs(data)
    rate, votes = _matrices(names, pairs)
    coloured = np.where(votes < FEWEST_COLOURED, np.nan, rate)
    grid = Grid(
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
        draw=lambda theme, below: draw_grid(grid, theme, below),
    )


def votes_per_pair(
    report: ReportDict, data: Comparisons, *, made: date, title: str = "Votes by pair"
) -> Picture:
    """Show how many votes each pair of models has, best first; ``data`` as in `win_rates`."""
    names, pairs = [rating["model"] for rating in _ratings(report)], met_pairs(data)
    _, votes = _matrices(names, pairs)
    most = max(float(votes.max()), 1.0)
    marks = sorted({int(most * share) for share in (0, 1 / 16, 1 / 4, 9 / 16, 1)})
    grid = Grid(
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
        draw=lambda theme, below: draw_grid(grid, theme, below),
    )


def quality_and_cost(
    result: ReportDict, *, made: date, title: str = "Ratings and costs"
) -> Picture:
    """Show ratings against what answers cost, or without prices against how long they take.

    Parameters
    ----------
    result : mapping
        `rating.value.board.Value.to_dict`.

    Raises
    ------
    DataError
        If no model has either.
    """
    name = next((x for x in TAKES if any(row[x] for row in result["models"])), None)
    if name is None:
        raise DataError("There is nothing to draw: no model has a cost or a time.")
    rows = [row for row in result["models"] if row[name]]
    marks = [_mark(row, row[name]) for row in rows]
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


def _mark(row: Mapping[str, Any], taken: Mapping[str, Any]) -> Mark:
    return Mark(
        name=row["model"],
        x=(taken["value"], taken["lower"], taken["upper"]),
        y=(row["rating"], finite(row["lower"], -np.inf), finite(row["upper"], np.inf)),
        on_frontier=taken["on_frontier"],
        hollow=taken["dominated"],
    )


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


class MetPair(NamedTuple):
    """Two models that met, the first one's score against the second, and the votes by weight."""

    model_a: str
    model_b: str
    score: float
    votes: float


def met_pairs(data: Comparisons) -> list[MetPair]:
    """Give each pair that met once."""
    wins = data.wins()
    votes = wins + wins.T
    return [
        MetPair(
            data.models[i], data.models[j], float(wins[i, j] / votes[i, j]), float(votes[i, j])
        )
        for i, j in np.argwhere(np.triu(votes, 1) > 0)
    ]


def _ratings(report: ReportDict) -> list[Mapping[str, Any]]:
    ratings = sorted(report["ratings"], key=lambda row: -row["rating"])
    if not ratings:
        msg = "There is no rating to draw: the result holds no model."
        raise DataError(msg)
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


def _rule(report: ReportDict) -> Rule:
    anchor = report["method"].get("anchor")
    if isinstance(anchor, Mapping) and anchor:
        model, points = next(iter(anchor.items()))
        return Rule(float(points), f"{model}, held at {float(points):,.0f}")
    if isinstance(anchor, str):
        model, _, points = anchor.rpartition("=")
        return Rule(float(points), f"{model}, held at {float(points):,.0f}")
    mean = finite(report["method"].get("mean"), MEAN)
    return Rule(mean, f"the mean of all models, {mean:,.0f}")


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
    return f"Counts are left out, with more than {MOST_COUNTED} models; the table has them."


def _matrices(names: Sequence[str], pairs: Sequence[MetPair]) -> tuple[Floats, Floats]:
    """Rates (NaN where not known) and votes, mirrored."""
    place = {name: i for i, name in enumerate(names)}
    rate, votes = np.full((len(names),) * 2, np.nan), np.zeros((len(names),) * 2)
    for a, b, share, n in pairs:
        if a not in place or b not in place:
            msg = f"The pair {a!r}, {b!r} is not one of two rated models."
            raise DataError(msg)
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


def _pair_table(pairs: Sequence[MetPair], *, rates: bool) -> Table:
    if rates:
        rows = [(a, b, f"{100 * share:.0f}", f"{n:,.0f}") for a, b, share, n in pairs]
        return Table(("Model", "Against", "Score (%)", "Votes"), tuple(rows))
    return Table(("Model", "Against", "Votes"), tuple((a, b, f"{n:,.0f}") for a, b, _, n in pairs))


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
    """Draw a board; in a notebook the picture shows itself, and `Picture.write` makes files.

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
