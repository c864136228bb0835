"""Boards, moves and plans as tables on a terminal, and bars for what takes longer."""

import math
import re
import sys
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from itertools import pairwise
from pathlib import Path
from threading import Lock, Timer
from typing import TYPE_CHECKING, Any, NoReturn, Protocol

from rich.console import Console, Group, RenderableType
from rich.styled import Styled
from rich.table import Table
from rich.text import Text  # noqa: TID251 - `plain` and `table` make them

from judge.case import RERUN
from rating.sentences import foremost
from rating.tables.columns import LOG2
from rating.tables.files import visible, visible_rows
from rating.tables.formats import as_json, has_figures, pooling_caption, shown, summary, write_text
from rating.tables.peers import noticing

if TYPE_CHECKING:
    from rating.planning import Plan

Row = Mapping[str, Any]
NO_WIDTH = 1e-9


def plain(words: str, style: str = "") -> Text:
    """Give words to lay out; nothing in them, such as a model's name, is a command there."""
    return Text(visible(words, keep="\n"), style)


def say(words: str, *, error: bool = False, keep: str = "") -> None:
    """Print a line, in which nothing is a command to the terminal, or lines with ``keep``.

    Passwords in the URL of a database are replaced.
    """
    words = re.sub(r"(postgres[\w+]*:/+[^\s:/@]*:)\S*(?=@)", r"\1***", words)
    words = re.sub(r"([?&]\w*password=)[^\s&'\"]*", r"\1***", words)
    print(visible(words, keep), file=sys.stderr if error else None, flush=True)


def stop(why: str, then: str = RERUN) -> NoReturn:
    """Print why work stopped before its end, and what to do, and end the command with 1."""
    say(f"arena: Stopped: {why.rstrip(' .')}. {then}".rstrip(), error=True)
    sys.exit(1)


def write(page: str) -> None:
    """Print what may go to a file or a program, to the letter; to a terminal as `say`."""
    print(visible(page, keep="\n\t") if sys.stdout.isatty() else page, end="")


def write_json(value: Row) -> None:
    """Print a value as JSON."""
    write(as_json(value))


def present(
    result: Any, form: str | None, show_table: Callable[[Any], object], out: Path | None = None
) -> None:
    """Write a result as JSON, into a file if one is named, or show it."""
    plain = result if isinstance(result, Mapping) else result.to_dict()
    if out is not None:
        write_text(as_json(plain), out)
    elif form == "json":
        write_json(plain)
    else:
        show_table(result)


def show(*parts: RenderableType) -> None:
    """Print what is laid out, one part below the other."""
    Console().print(Group(*parts))


def warnings(texts: Iterable[str]) -> list[Text]:
    """Lay out what to keep in mind, foremost first."""
    return [plain(f"! {text}", style="yellow") for text in foremost(texts)]


def interval(lower: float | None, upper: float | None, form: str, between: str = " to ") -> str:
    """Write an interval; one without ends or without width is not estimated.

    >>> interval(-1.5, 2.0, "+z.1f"), interval(1000.0, 1000.0, ".0f")
    ('-1.5 to +2.0', 'not estimated')
    """
    if lower is None or upper is None or not upper - lower > NO_WIDTH:
        return "not estimated"
    return f"{lower:{form}}{between}{upper:{form}}"


def with_interval(
    value: float | None, lower: float | None, upper: float | None, form: str, *, none: str = "–"
) -> str:
    """Write a figure with its interval, where it has one.

    >>> with_interval(0.5, 0.25, 0.75, ".0%"), with_interval(12.0, None, None, "+z.1f")
    ('50% (25% to 75%)', '+12.0')
    """
    if value is None:
        return none
    if lower is None or upper is None:
        return f"{value:{form}}"
    return f"{value:{form}} ({lower:{form}} to {upper:{form}})"


def table(
    head: Sequence[str], rows: Iterable[Sequence[str]], right: Container[int] | None = None
) -> RenderableType:
    """Lay out rows of words; columns ``right`` are flush right: if None, all but the first.

    Rows that have nothing but their names and dashes make no table.
    """
    names, *lines = visible_rows([head, *rows], keep="\n")
    if not has_figures(lines):
        return Group()
    grid = Table()
    for place, name in enumerate(names):
        flush = place > 0 if right is None else place in right
        grid.add_column(Text(name), justify="right" if flush else "left", overflow="fold")
    for line in lines:
        grid.add_row(*map(Text, line))
    return grid


def board(report: Row) -> RenderableType:
    """Lay out a board: what it is, the table, and what to keep in mind."""
    if "groups" in report:
        groups = report["groups"].items()
        parts = [
            part
            for value, one in groups
            for part in (plain(f"\n{value}", style="bold"), board({**one, "warnings": ()}))
        ]
        rest = [f"{value}: {why}" for value, why in report.get("not_rated", {}).items()]
        rest += [f"{value}: {text}" for value, one in groups for text in one["warnings"]]
        pooled = [plain(pooling_caption(report["pooling"]))] if "pooling" in report else []
        return Group(*pooled, *parts, *warnings([*rest, *report.get("warnings", ())]))
    interval = f"{100 * report['method']['level']:g}% interval"
    head = ("Ranks", "Model", "Rating", interval, "Votes", "Borrowed")
    rows = [_standing(row) for row in report["ratings"]]
    standings = table(head[: len(rows[0])], rows, right=(0, 2, 3, 4, 5))
    parameters = [
        plain(_parameter(name, estimate, report["method"]))
        for name, estimate in report["parameters"].items()
    ]
    return Group(plain(summary(report)), standings, *parameters, *warnings(report["warnings"]))


def mix(result: Row) -> RenderableType:
    """Lay out a board of one's own mix: ratings, neighbours' preferences, ranks in other mixes."""
    shares = ", ".join(f"{name} {share:.0%}" for name, share in result["mix"].items())
    about = f"Mix: {shares}. Effective sample size: {result['n_effective']:,.0f} votes."
    neighbours = {(a["model"], b["model"]) for a, b in pairwise(result["ratings"])}
    pairs = [
        (pair["a"], pair["b"], f"{pair['preferred']:.0%}", _percents(pair))
        for pair in result["pairs"]
        if (pair["a"], pair["b"]) in neighbours
    ]
    level = f"{100 * result['method']['level']:g}% interval"
    kappas = sorted({row["kappa"] for row in result["envelope"]})
    reach = {(x["model"], x["kappa"]): (x["best"], x["worst"]) for x in result["envelope"]}
    elsewhere = [
        (row["model"], *(ranks(*reach[row["model"], kappa]) for kappa in kappas))
        for row in result["ratings"]
        if (row["model"], kappas[0]) in reach
    ]
    parts = (
        plain(about),
        *([plain(pooling_caption(result["pooling"]))] if result["method"]["pool"] else []),
        board(result),
        plain("Neighbours on the board: how often the first is preferred, a tie half."),
        table(("Model", "Over", "Preferred", level), pairs, right=(2, 3)),
        plain("Ranks in other mixes, by the largest multiple of a category's share of the votes."),
        table(("Model", *(f"{kappa:g} x" for kappa in kappas)), elsewhere),
    )
    from rating.mix import FEW  # numpy takes a quarter of a second

    few = result["n_effective"] < FEW
    return Group(*(Styled(part, "dim") for part in parts) if few else parts)


def _percents(row: Row) -> str:
    return " to ".join(
        "–" if row[end] is None else f"{row[end]:.0%}" for end in ("lower", "upper")
    )


def moves(result: Row) -> RenderableType:
    """Lay out a comparison of two boards."""
    rows = [
        (
            row["model"],
            f"{row['rank_old']} → {row['rank_new']}",
            f"{row['old']:.0f} → {row['new']:.0f}",
            shown("moved", row["moved"]),
            _interval(row),
        )
        for row in result["moved"]
    ]
    aside = [
        plain(f"{word}: {', '.join(result[name])}.")
        for name, word in (("added", "New"), ("gone", "Gone"))
        if result[name]
    ]
    head = ("Model", "Rank", "Rating", "Moved", "Interval")
    return Group(table(head, rows), *aside, *warnings([result["note"]]))


def plan(result: "Plan") -> RenderableType:
    """Lay out how many votes separate neighbours, and how many show a lead."""
    rows = []
    for pair in result.neighbours:
        board, alone = (
            "separated" if more == 0 else "–" if more is None else f"{more:,}"
            for more in (pair.more_votes, pair.more_votes_pair)
        )
        direct = "–" if pair.head_to_head is None else f"{pair.head_to_head:,}"
        lead = f"{pair.lead:.0f} ± {pair.se:.0f}"
        rows.append((pair.ahead, pair.behind, lead, f"{pair.met:,}", board, alone, direct))
    head = (
        "Ahead", "Behind", "Lead", "Met", "More votes: board", "More votes: pair by itself",
        "Votes on this pair alone",
    )  # fmt: skip
    leads = [(str(lead), f"{votes:,}") for lead, votes in result.leads.items()]
    about = (
        f"{result.votes:,} votes, {result.tie_rate:.0%} of them ties. A lead is shown ± its "
        "standard error. More votes on the whole board, in the present mix, separate the two with "
        "80% power in one look (several take more), if the lead is as estimated: for the board's "
        "ranks, which hold for all models together, or for the pair by itself."
    )
    alone = "Head to head, votes that show a lead with 80% power, one vote per voter:"
    return Group(
        plain(about),
        table(head, rows, right=range(2, 7)),
        plain(alone),
        table(("Lead in points", "Votes on one pair"), leads, right=(0, 1)),
        *warnings(result.warnings),
    )


class Advance(Protocol):
    """What a task calls with the steps done so far."""

    def __call__(self, done: int, total: int, so_far: str = "") -> None:
        """Show the steps, and after the task's name what came out so far."""


def announced() -> AbstractContextManager[None]:
    """Say, of each file of a peer's format that is read meanwhile, as what it is read."""
    return noticing(lambda words: say(f"arena: {words}", error=True))


@contextmanager
def working(task: str, after_s: float = 1.0) -> Iterator[Advance]:
    """Show that a task goes on, once it takes longer; give what to call with steps done."""
    console = Console(stderr=True)
    if not console.is_terminal:
        with announced():
            yield lambda done, total, so_far="": None
        return
    from rich import progress

    columns = (
        progress.TextColumn("{task.description}", markup=False),
        progress.BarColumn(),
        progress.TaskProgressColumn(show_speed=True),  # blank without a total
        progress.TimeElapsedColumn(),
        progress.TimeRemainingColumn(),
    )
    bar = progress.Progress(*columns, console=console, transient=True)
    row = bar.add_task(task, total=None)
    lock, ended = Lock(), False

    def show() -> None:
        with lock:
            if not ended:
                bar.start()

    timer = Timer(after_s, show)
    timer.daemon = True
    timer.start()

    def advance(done: int, total: int, so_far: str = "") -> None:
        bar.update(row, completed=done, total=total, description=visible(task + so_far))

    try:
        with announced():
            yield advance
    finally:
        timer.cancel()
        with lock:
            ended = True
        if bar.live.is_started:
            bar.stop()


def _standing(row: Row) -> list[str]:
    places = ranks(row["rank_low"], row["rank_high"])
    cells = [places, row["model"], _rating(row), _interval(row), f"{row['votes']:,}"]
    return [*cells, f"{row['borrowed']:.0%}"] if "borrowed" in row else cells


def ranks(low: int | None, high: int | None) -> str:
    """Write which ranks the votes allow."""
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
    return " to ".join(
        "–" if end is None else f"{end:.0f}" for end in (row["lower"], row["upper"])
    )


def _parameter(name: str, estimate: Row, method: Row) -> str:
    """Put a parameter in points where it adds to the gap; nu and theta as they stand."""
    style = name.removeprefix("style:") if name.startswith("style:") else None
    if style is None and name != "order_effect":
        return _ends(name, estimate, 1.0, ".4f", "")
    per_unit = method["scale"] / math.log(10) / (method["style_sd"].get(style, 1.0))
    if style is None:
        return _ends(name, estimate, per_unit, "+z.1f", " points for side A")
    unit = f"doubling of {style.removeprefix(LOG2)}" if style.startswith(LOG2) else "unit"
    return _ends(name, estimate, per_unit, "+z.1f", f" points per {unit}")


def _ends(name: str, estimate: Row, times: float, form: str, unit: str) -> str:
    value = f"{name}: {times * estimate['value']:{form}}{unit}"
    if estimate["lower"] is None:
        return value
    lower, upper = (f"{times * estimate[end]:{form}}" for end in ("lower", "upper"))
    return f"{value} ({lower} to {upper})"
