"""`arena value`."""

from collections.abc import Iterable, Iterator
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from arena import terminal
from arena.commands.arguments import EVERY_ROW, Chosen, File, Flat, TableOrJson, require_folder_of
from arena.commands.rating import Options
from arena.commands.safety import HEADS, cell
from arena.terminal import plain, show, working, write_json
from rating.tables import formats

if TYPE_CHECKING:
    from rich.console import RenderableType

    from judge.labels.safety_table import SafetyTable
    from rating.value.board import Taken, Value
    from rating.value.utility import Turn, Utility

TAKEN = "^(options|both_bad|cluster|since|until|columns|seed|level|scale|mean|anchor)$"
"""What of a rating's options a value takes."""

DEFAULTS = Options()


def value(
    source: list[str],
    /,
    *,
    utility: Annotated[str | None, Parameter(metavar="WEIGHT=NUMBER,...")] = None,
    safety: Annotated[Path | None, Parameter(metavar="FILE")] = None,
    options: Annotated[Options, Flat, Parameter(parse=TAKEN)] = DEFAULTS,
    chosen: Annotated[Chosen, Flat] = EVERY_ROW,
    form: TableOrJson = "table",
    out: File = None,
    plot: Annotated[Path | None, Parameter(metavar="FILE")] = None,
) -> None:
    """Set ratings against what answers cost and how long they take.

    Costs are compared within battles, on the same prompts, with intervals by voter. Votes need
    columns cost_a and cost_b (US dollars of each answer), or seconds_a and seconds_b; a model
    without a price has no cost, not one of 0. With --utility models are ranked by what an answer
    is worth: 1 if it is preferred, less what the weights take off for mistakes (wrong_a,
    harmful_a), refusals (refused_a), money and time.
    Exit codes: 2 for options or votes that cannot be used, 3 for votes that identify no rating.

    Parameters
    ----------
    source
        Files, folders or patterns of votes (.parquet, .csv, .jsonl), or database URL such as
        sqlite:///arena.db.
    utility
        Rank by expected utility: weights wrong, refusal, dollars (of 1,000 answers) and seconds;
        "" for the defaults, wrong=1,refusal=0.5,dollars=0.01,seconds=0.01.
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
    arena value votes.parquet --utility wrong=2,dollars=0.05 --plot value.svg
    """
    for file in filter(None, (out, plot)):
        require_folder_of(file)
    import numpy as np  # a quarter of a second, as are those that load it

    from judge.labels.safety_table import read_safety
    from rating.tables.columns import Reading
    from rating.tables.counts import read_figures
    from rating.value.board import value as valued
    from rating.value.utility import Terms, read_weights

    weights = None if utility is None else read_weights(utility)
    refusals = None if safety is None else read_safety(safety)
    with working("Rating"):
        votes = chosen.source(source, options.columns)
        board = valued(*read_figures(votes, Reading.of(options)), options)
        worth = None
        if weights is not None:
            terms = Terms.of(board.draws, np.random.default_rng([options.seed, 4]))
            terms = terms if refusals is None else refusals.lent_to(terms, options.seed)
            worth = terms.weighed(weights, options.level)
    rated = [row.model for row in board.models]
    result = board.to_dict() | ({} if worth is None else {"utility": worth.to_dict()})
    result |= {} if refusals is None else {"safety": refusals.to_dict(rated)}
    if plot is not None:
        from rating.charts.plots import quality_and_cost

        quality_and_cost(result, made=datetime.now(UTC).date()).write(plot)
    if out is not None:
        formats.write_text(formats.as_json(result), out)
    elif form == "json":
        write_json(result)
    else:
        _show(board, worth, [] if refusals is None else _refusals(refusals, rated))


TAKES = {"cost": "$ per 1,000", "seconds": "Seconds"}


def _show(board: "Value", worth: "Utility | None", refusals: "Iterable[RenderableType]") -> None:
    there = [name for name in TAKES if any(getattr(row, name) for row in board.models)]
    heads = [head for name in there for head in (TAKES[name], "Dominated")]
    rows = [
        [row.model, f"{row.rating:.0f} ({row.lower:.0f}–{row.upper:.0f})"]
        + [cell for name in there for cell in _cells(getattr(row, name))]
        for row in board.models
    ]
    about = (
        f"{board.report.votes.used:,} votes. Dominated: the probability that another model is at "
        "least as good, takes at most as much, and is better in one of the two; by which most."
    )
    show(
        plain(about),
        terminal.table(["Model", "Rating", *heads], rows),
        *map(plain, board.in_words()),
        *refusals,
        *([] if worth is None else _utility(worth)),
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
    by = f", {taken.by}" if taken.by and taken.dominated >= 0.5 else ""
    value = f"{taken.value:.3g} ({taken.lower:.3g}–{taken.upper:.3g})"
    return value, f"{taken.dominated:.0%}{by}"


def _utility(worth: "Utility") -> "Iterator[RenderableType]":
    """Lay out what an answer is worth, and how far each weight may go."""
    weights = ", ".join(f"{name} {number:g}" for name, number in asdict(worth.weights).items())
    terms = [name for name in worth.models[0].parts if name != "preferred"]
    rows = [
        [row.model, f"{row.utility:.2f} ({row.lower:.2f} to {row.upper:.2f})", f"{row.first:.0%}"]
        + [f"{row.parts[name]:+.2f}" for name in ("preferred", *terms)]
        for row in worth.models
    ]
    head = ("Model", "Utility", "First", "preferred", *terms)
    yield plain(f"\nExpected utility of an answer: 1 if preferred; weights {weights}.")
    yield terminal.table(head, rows)
    for turn in worth.turns:
        yield plain(f"{turn.weight} {turn.value:g}: {_turns(turn, worth.models[0].model)}")
    yield from map(plain, worth.notes)
    for model, why in worth.left_out.items():
        yield plain(f"{model} is left out of this ranking: {why}.")


def _turns(turn: "Turn", first: str) -> str:
    ends = [
        f"{who} is first from {number:.3g} {way}"
        for who, number, way in (
            (turn.first_below, turn.below, "down"),
            (turn.first_above, turn.above, "up"),
        )
        if who is not None
    ]
    return "; ".join(ends) or f"{first} stays first whatever it is"
