"""Boards, moves and plans as tables on a terminal, and bars for what takes longer."""

import math
import sys
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from threading import Lock, Timer
from typing import TYPE_CHECKING, Any, Protocol

from rich.console import Console, Group, RenderableType
from rich.progress import (
    BarColumn,
    Progress,
    TaskProgressColumn,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)
from rich.table import Table
from rich.text import Text  # noqa: TID251 - `plain` makes them

from rating.tables.captions import summary
from rating.tables.columns import LOG2
from rating.tables.escaping import visible
from rating.tables.formats import shown
from rating.tables.peers import noticing

if TYPE_CHECKING:
    from rating.planning.votes import Plan

Row = Mapping[str, Any]


def plain(words: str, style: str = "") -> Text:
    """Give words to lay out; nothing in them, such as a model's name, is a command there."""
    return Text(visible(words, keep="\n"), style)


def say(words: str, *, error: bool = False) -> None:
    """Print a line, in which nothing is a command to the terminal."""
    print(visible(words), file=sys.stderr if error else None, flush=True)


def write(page: str) -> None:
    """Print what may go to a file or a program, to the letter; to a terminal as `say`."""
    print(visible(page, keep="\n\t") if sys.stdout.isatty() else page, end="")


def board(report: Row) -> RenderableType:
    """Lay out a board: what it is, the table, and what to keep in mind."""
    if "groups" in report:
        parts = [
            part
            for value, one in report["groups"].items()
            for part in (plain(f"\n{value}", style="bold"), board(one))
        ]
        rest = [_warning(f"{v}: {why}") for v, why in report.get("not_rated", {}).items()]
        return Group(*parts, *rest)
    table = _table(("Ranks", "right"), ("Model", "left"), ("Rating", "right"))
    for name in (f"{100 * report['method']['level']:g} % interval", "Votes"):
        table.add_column(name, justify="right")
    for row in report["ratings"]:
        cells = (_ranks(row), row["model"], _rating(row), _interval(row), f"{row['votes']:,}")
        table.add_row(*map(plain, cells))
    parameters = [
        plain(_parameter(name, found, report["method"]))
        for name, found in report["parameters"].items()
    ]
    warnings = [_warning(text) for text in report["warnings"]]
    return Group(plain(summary(report)), table, *parameters, *warnings)


def moves(found: Row) -> RenderableType:
    """Lay out a comparison of two boards."""
    table = _table(("Model", "left"), ("Rank", "right"), ("Rating", "right"), ("Moved", "right"))
    table.add_column("Interval", justify="right")
    for row in found["moved"]:
        ranks = f"{row['rank_old']} → {row['rank_new']}"
        ratings = f"{row['old']:.0f} → {row['new']:.0f}"
        cells = (row["model"], ranks, ratings, shown("moved", row["moved"]), _interval(row))
        table.add_row(*map(plain, cells))
    aside = [
        plain(f"{word}: {', '.join(found[name])}.")
        for name, word in (("added", "New"), ("gone", "Gone"))
        if found[name]
    ]
    return Group(table, *aside, _warning(found["note"]))


def plan(found: "Plan") -> RenderableType:
    """Lay out how many votes separate neighbours, and how many show a lead."""
    table = _table(("Ahead", "left"), ("Behind", "left"), ("Lead", "right"), ("Met", "right"))
    table.add_column("More votes on the board", justify="right")
    table.add_column("Or on this pair alone", justify="right")
    for pair in found.neighbours:
        more = "–" if pair.more_votes is None else f"{pair.more_votes:,}"
        direct = "–" if pair.head_to_head is None else f"{pair.head_to_head:,}"
        lead = f"{pair.lead:.0f} ± {pair.se:.0f}"
        told = "separated" if pair.separated else more
        table.add_row(*map(plain, (pair.ahead, pair.behind, lead, f"{pair.met:,}", told, direct)))
    needed = _table(("Lead in points", "right"), ("Votes on one pair", "right"))
    for lead_points, votes in found.leads.items():
        needed.add_row(str(lead_points), f"{votes:,}")
    said = (
        f"{found.votes:,} votes, {found.tie_rate:.0%} of them ties. A lead is shown ± its "
        "standard error. More votes, in the present mix, separate the two in half of all cases "
        "if the lead is as large as it looks."
    )
    alone = "Head to head, votes that show a lead four times out of five, one vote a voter:"
    return Group(plain(said), table, plain(alone), needed)


class Told(Protocol):
    """What a task calls with the steps done so far."""

    def __call__(self, done: int, total: int, so_far: str = "") -> None:
        """Show the steps, and after the task's name what came out so far."""


def announced() -> AbstractContextManager[None]:
    """Say, of each file of a peer's format that is read meanwhile, as what it is read."""
    return noticing(lambda words: say(f"arena: {words}", error=True))


@contextmanager
def working(task: str, after_s: float = 1.0) -> Iterator[Told]:
    """Show that a task goes on, once it takes longer; give what to call with steps done."""
    console = Console(stderr=True)
    columns = (
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        TaskProgressColumn(show_speed=True),  # blank, where it is not known how much there is
        TimeElapsedColumn(),
        TimeRemainingColumn(),
    )
    bar = Progress(*columns, console=console, transient=True)
    row = bar.add_task(task, total=None)
    lock, ended = Lock(), False

    def show() -> None:
        with lock:
            if not ended:
                bar.start()

    timer = Timer(after_s, show)
    timer.daemon = True
    if console.is_terminal:
        timer.start()

    def told(done: int, total: int, so_far: str = "") -> None:
        bar.update(row, completed=done, total=total, description=visible(task + so_far))

    try:
        with announced():
            yield told
    finally:
        timer.cancel()
        with lock:
            ended = True
        if bar.live.is_started:
            bar.stop()


def _table(*columns: tuple[str, Any]) -> Table:
    table = Table()
    for name, side in columns:
        table.add_column(name, justify=side, overflow="fold")
    return table


def _ranks(row: Row) -> str:
    low, high = row["rank_low"], row["rank_high"]
    if low is None or high is None:
        return "–"
    return str(low) if low == high else f"{low}–{high}"


def _rating(row: Row) -> str:
    lower, upper = row["lower"], row["upper"]
    if lower is None or upper is None:
        return f"{row['rating']:.0f}"
    return f"{row['rating']:.0f} ± {(upper - lower) / 2:.0f}"


def _interval(row: Row) -> str:
    if row["lower"] is None and row["upper"] is None:
        return "–"
    ends = (shown("lower", row[name]) for name in ("lower", "upper"))
    return " to ".join(ends)


def _parameter(name: str, found: Row, method: Row) -> str:
    """Put a parameter in points where it adds to the gap; nu and theta as they stand."""
    style = name.removeprefix("style:") if name.startswith("style:") else None
    if style is None and name != "order_effect":
        return _ends(name, found, 1.0, ".4f", "")
    per_unit = method["scale"] / math.log(10) / (method["style_sd"].get(style, 1.0))
    if style is None:
        return _ends(name, found, per_unit, "+.1f", " points for side A")
    unit = f"doubling of {style.removeprefix(LOG2)}" if style.startswith(LOG2) else "unit"
    return _ends(name, found, per_unit, "+.1f", f" points per {unit}")


def _ends(name: str, found: Row, times: float, form: str, unit: str) -> str:
    said = f"{name}: {times * found['value']:{form}}{unit}"
    if found["lower"] is None:
        return said
    lower, upper = (f"{times * found[end]:{form}}" for end in ("lower", "upper"))
    return f"{said} ({lower} to {upper})"


def _warning(words: str) -> Text:
    return plain(f"! {words}", style="yellow")
