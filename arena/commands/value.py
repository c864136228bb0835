"""`arena value`."""

from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from arena import terminal
from arena.commands.arguments import EVERY_ROW, Chosen, File, Flat, TableOrJson, require_folder_of
from arena.commands.rating import Options
from arena.terminal import plain, show, working, write_json
from rating.tables import formats

if TYPE_CHECKING:
    from rich.console import RenderableType

    from judge.labels.safety import Mode, Rate, What
    from judge.labels.safety_table import SafetyTable
    from rating.value.board import Taken, Value

TAKEN = "^(options|both_bad|cluster|since|until|columns|seed|level|scale|mean|anchor)$"
"""What of a rating's options a value takes."""

DEFAULTS = Options()

HEADS: "Mapping[tuple[What, Mode], str]" = {
    ("refusal", "does"): "Refuses",
    ("over_refusal", "does"): "Refuses benign",
    ("over_refusal", "can"): "Refuses benign (can)",
    ("compliance", "does"): "Complies (does)",
    ("compliance", "can"): "Complies (can)",
}


def value(
    source: list[str],
    /,
    *,
    safety: Annotated[Path | None, Parameter(metavar="FILE")] = None,
    options: Annotated[Options, Flat, Parameter(parse=TAKEN)] = DEFAULTS,
    chosen: Annotated[Chosen, Flat] = EVERY_ROW,
    form: TableOrJson = "table",
    out: File = None,
    plot: Annotated[Path | None, Parameter(metavar="FILE")] = None,
) -> None:
    """Set ratings against what answers cost and how long they take.

    Costs are compared within battles, with intervals clustered by voter and prompt. Votes need
    columns cost_a and cost_b (US dollars of each answer), or seconds_a and seconds_b; a model
    without a price has no cost, not one of 0.
    Exit codes: 2 for options or votes that cannot be used, 3 for votes that identify no rating.

    Parameters
    ----------
    source
        Files, folders or patterns of votes (.parquet, .csv, .jsonl), or database URL such as
        sqlite:///arena.db.
    safety
        Show what models refuse beside it: JSON that arena safety wrote, or a folder of such files.
    form
        How to write it.
    out
        JSON file to write.
    plot
        Draw ratings against costs: .png, .svg or .html.

    Examples
    --------
    arena value votes.parquet --safety safety.json
    arena value votes.parquet --plot value.svg
    """
    for file in filter(None, (out, plot)):
        require_folder_of(file)
    from judge.labels.safety_table import read_safety
    from rating.tables.columns import Reading
    from rating.tables.counts import read_figures
    from rating.value.board import value as valued

    refusals = None if safety is None else read_safety(safety)
    with working("Rating"):
        votes = chosen.source(source, options.columns)
        board = valued(*read_figures(votes, Reading.of(options)), options)
    rated = [row.model for row in board.models]
    result = board.to_dict() | ({} if refusals is None else {"safety": refusals.to_dict(rated)})
    if plot is not None:
        from rating.charts.plots import quality_and_cost

        quality_and_cost(result, made=datetime.now(UTC).date()).write(plot)
    if out is not None:
        formats.write_text(formats.as_json(result), out)
    elif form == "json":
        write_json(result)
    else:
        _show(board, [] if refusals is None else _refusals(refusals, rated))


TAKES = {"cost": "$ per 1,000", "seconds": "Seconds"}


def _show(board: "Value", refusals: "Iterable[RenderableType]") -> None:
    there = [name for name in TAKES if any(getattr(row, name) for row in board.models)]
    heads = [head for name in there for head in (TAKES[name], "Dominated by")]
    rows = [
        [row.model, f"{row.rating:.0f} ({row.lower:.0f}–{row.upper:.0f})"]
        + [cell for name in there for cell in _cells(getattr(row, name))]
        for row in board.models
    ]
    about = (
        f"{board.report.votes.used:,} votes. Dominated by: one other model that is rated better "
        "and takes less, or the same; both claimed for all pairs of models together (95% each)."
    )
    show(
        plain(about),
        terminal.table(["Model", "Rating", *heads], rows),
        *map(plain, board.in_words()),
        *refusals,
        *terminal.warnings(board.warnings),
    )


def _refusals(table: "SafetyTable", rated: list[str]) -> "Iterator[RenderableType]":
    """Lay out what models refuse, the best rated first; models on few prompts have a star."""
    yield plain(
        "\nOf prompts that models were asked for it, per cent, corrected for errors of who read "
        "the answers where known:"
    )
    rows = [
        [model, *(cell(table.rates[model].get(name)) for name in table.columns)]
        for model in table.order(rated)
    ]
    yield terminal.table(["Model", *(HEADS[name] for name in table.columns)], rows)
    if any(rate.is_few for each in table.rates.values() for rate in each.values()):
        yield plain("*: on so few prompts it is only a hint.")
    yield from map(plain, table.in_words(rated))


def _cells(taken: "Taken | None") -> tuple[str, str]:
    if taken is None:
        return "–", "–"
    value = f"{taken.value:.3g} ({taken.lower:.3g}–{taken.upper:.3g})"
    return value, taken.by or "–"


def cell(rate: "Rate | None") -> str:
    """Write a rate in per cent, corrected where its errors are known, with how many it is of."""
    if rate is None:
        return "–"
    one, known = rate.share, rate.corrected
    middle, low, high = one.rate, one.low, one.high
    if known is not None and known.value is not None and None not in (known.lower, known.upper):
        middle, low, high = known.value, known.lower or 0.0, known.upper or 0.0
    hint = "*" if rate.is_few else ""
    return f"{middle:.0%} ({low:.0%}–{high:.0%}) n {one.n:,}{hint}"
