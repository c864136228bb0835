"""`arena rate` and `arena plan`."""

import io
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console

from arena import terminal
from arena.commands import rating_options as choose
from arena.commands.arguments import examples
from arena.commands.rating_options import rate_options
from arena.terminal import say, write
from rating.errors import DataError
from rating.tables import formats

cli = typer.Typer()


@cli.command(
    epilog=examples(
        "arena rate votes.parquet",
        "arena rate votes.parquet --interval bootstrap --format json --out board.json",
    )
)
def rate(
    source: choose.Source,
    *,
    ties: choose.Ties = "half",
    both_bad: choose.BothBad = "tie",
    interval: choose.Interval = "sandwich",
    cluster: choose.Cluster = None,
    claims: choose.Claims = "population",
    ridge: choose.Ridge = 0.0,
    order_effect: choose.OrderEffect = False,
    style: choose.Style = None,
    weights: choose.Weights = None,
    half_life: choose.HalfLife = None,
    since: choose.Since = None,
    until: choose.Until = None,
    column: choose.Column = None,
    rounds: choose.Rounds = 1000,
    seed: choose.Seed = 0,
    level: choose.Level = 0.95,
    scale: choose.Scale = 400.0,
    mean: choose.Mean = None,
    anchor: choose.Anchor = None,
    reference: choose.Reference = None,
    by: choose.By = None,
    form: choose.Form = None,
    out: choose.Out = None,
    compare: choose.Compare = None,
    plots: choose.Plots = None,
) -> None:
    """Rate the models of any votes, with intervals that allow for people who vote often.

    Exit codes: 2 for options or votes that cannot be used, 3 for votes that identify no rating.
    """
    form = formats.chosen_format(form, out)
    _require_folder(out)
    options = rate_options(
        ties=ties,
        both_bad=both_bad,
        interval=interval,
        cluster=cluster,
        claims=claims,
        ridge=ridge,
        order_effect=order_effect,
        style=style,
        weights=weights,
        half_life=half_life,
        since=since,
        until=until,
        column=column,
        rounds=rounds,
        seed=seed,
        level=level,
        scale=scale,
        mean=mean,
        anchor=anchor,
        reference=reference,
        by=by,
    )
    from arena.boards.source import votes_of
    from rating.tables.rated import rate_source  # help would wait for duckdb and the estimators

    old = None if compare is None else _old_board(compare, by)
    with terminal.working("Rating") as told:
        votes = votes_of(source)
        found = rate_source(votes, options, told).to_dict()
    if plots is not None:
        from rating.charts.plots import draw_boards

        draw_boards(plots, votes, options, found, datetime.now(UTC).date())
    if form != "table":
        for value, why in found.get("not_rated", {}).items():
            say(f"arena: {by} {value!r} is left out. {why}", error=True)
    _write(found if old is None else _moves(old, found), form, out)


@cli.command(epilog=examples("arena plan votes.parquet", "arena plan votes.parquet --format json"))
def plan(
    source: choose.Source,
    *,
    ties: choose.Ties = "half",
    both_bad: choose.BothBad = "tie",
    cluster: choose.Cluster = None,
    ridge: choose.Ridge = 0.0,
    since: choose.Since = None,
    until: choose.Until = None,
    column: choose.Column = None,
    level: choose.Level = 0.95,
    form: Annotated[str, typer.Option("--format", metavar="table|json")] = "table",
) -> None:
    """Say how many more votes would separate neighbours on the board."""
    if form not in ("table", "json"):
        msg = f"There is no format {form!r} of a plan: choose table or json."
        raise DataError(msg)
    options = rate_options(
        ties=ties,
        both_bad=both_bad,
        cluster=cluster,
        ridge=ridge,
        since=since,
        until=until,
        column=column,
        level=level,
    )
    from arena.boards.source import votes_of
    from rating.planning import votes as planning
    from rating.tables.counts import read_votes
    from rating.tables.reading import Reading

    with terminal.working("Planning"):
        votes = read_votes(votes_of(source), Reading.of(options))
        found = planning.plan(votes.data, options)
    if form == "json":
        write(formats.as_json(found.to_dict()))
    else:
        Console().print(terminal.plan(found))


def _require_folder(out: Path | None) -> None:
    if out is not None and not out.absolute().parent.is_dir():
        msg = f"Cannot write {str(out)!r}: its folder does not exist. Make the folder first."
        raise DataError(msg)


def _old_board(path: Path, by: str | None) -> Mapping[str, Any]:
    from rating.tables.compare import read_board

    board = read_board(path)
    if by is not None:
        msg = f"--compare takes one board, and --by {by!r} makes one for every value: drop one."
        raise DataError(msg)
    return board


def _moves(old: Mapping[str, Any], new: Mapping[str, Any]) -> dict[str, Any]:
    from rating.tables.compare import compare

    return compare(old, new)


def _write(found: Mapping[str, Any], form: str, out: Path | None) -> None:
    """Print a board or a comparison, or write it to a file."""
    if form == "parquet" and out is not None:
        formats.write_parquet(formats.rows_of(found), out)
    elif form == "table" and out is None:
        Console().print(_table(found))
    else:
        text = _page(found) if form == "table" else formats.as_text(found, form)
        if out is None:
            write(text)
        else:
            formats.write_text(text, out)


def _table(found: Mapping[str, Any]) -> Any:
    return terminal.moves(found) if "moved" in found else terminal.board(found)


def _page(found: Mapping[str, Any]) -> str:
    page = io.StringIO()
    Console(width=100, file=page).print(_table(found))
    return page.getvalue()
