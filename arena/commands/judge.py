"""`arena judge` and `arena judge score`; the others are in the modules named after them."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from arena.commands import judge_probe, judge_run
from arena.commands.arguments import examples
from arena.terminal import plain, working, write
from rating.errors import DataError

if TYPE_CHECKING:
    from rich.console import RenderableType
    from rich.table import Table

cli = typer.Typer(help="Scores and verdicts of models that judge.", no_args_is_help=True)
cli.add_typer(judge_run.cli)
cli.add_typer(judge_probe.cli)

HEADINGS = {
    "model": "Model",
    "version": "Version",
    "judge": "Judge",
    "n": "Rows",
    "n_wins": "Wins",
    "n_ties": "Ties",
    "n_losses": "Losses",
    "win_rate": "Win rate",
    "discrete_win_rate": "Discrete",
    "lc_win_rate": "Length-controlled",
    "avg_length": "Length",
    "score": "Score",
    "adjusted": "Adjusted",
    "task_macro": "Task macro",
}
"""Columns of the table on a terminal; JSON has the others too."""

ERRORS = {
    "win_rate": "standard_error",
    "lc_win_rate": "lc_standard_error",
    "score": "standard_error",
}
"""Columns that are shown with their standard error behind them."""

TEXTS = ("model", "version", "judge")


@cli.command(
    epilog=examples(
        "arena judge score annotations.csv --method alpaca_eval",
        "arena judge score verdicts.csv --method pairwise --format json",
    )
)
def score(
    file: Annotated[
        Path,
        typer.Argument(
            metavar="FILE", help="Recorded annotations (.csv, .tsv, .json, .jsonl, .parquet)."
        ),
    ],
    *,
    method: Annotated[
        str,
        typer.Option(
            metavar="alpaca_eval|wildbench|arena_hard|pairwise",
            help="What the rows are.",
        ),
    ],
    items: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Difficulty of each idx, or tags of each session_id."),
    ] = None,
    regularisation: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Rows of gamed baselines, for the length control."),
    ] = None,
    compat: Annotated[
        str | None,
        typer.Option(metavar="row-position", help="Repeat upstream's lookup by row position."),
    ] = None,
    order: Annotated[
        bool, typer.Option("--order", help="Give the length control a term for the order shown.")
    ] = False,
    form: Annotated[
        str | None, typer.Option("--format", metavar="table|json", help="How to write it.")
    ] = None,
    out: Annotated[Path | None, typer.Option(metavar="FILE", help="JSON file to write.")] = None,
) -> None:
    """Score recorded annotations by a published method, without calling a model.

    Rows without a verdict are left out and counted: they are never a tie or a zero.
    Exit code 2: options or annotations that cannot be used.
    """
    _require_format(form, out)
    from judge.scoring.annotated import judge_score
    from rating.tables import formats

    with working("Scoring"):
        found = judge_score(
            file,
            method,
            items=items,
            regularisation=regularisation,
            compat=compat,
            order=order,
        )
    if out is not None:
        formats.write_text(formats.as_json(found), out)
    elif form == "json":
        write(formats.as_json(found))
    else:
        _show(found)


def _require_format(form: str | None, out: Path | None) -> None:
    if form not in (None, "table", "json"):
        msg = f"There is no format {form!r} of scores: choose table or json."
        raise DataError(msg)
    if form == "table" and out is not None:
        msg = f"A table is for a terminal: write {str(out)!r} with --format json."
        raise DataError(msg)


def _show(found: Mapping[str, Any]) -> None:
    from rich.console import Console, Group

    warnings = [plain(f"! {text}", style="yellow") for text in found["warnings"]]
    Console().print(Group(_table(found["models"]), *warnings))


def _table(models: Sequence[Mapping[str, Any]]) -> "RenderableType":
    from rich.table import Table

    names = [name for name in HEADINGS if models and name in models[0]]
    table = Table()
    for name in names:
        _add_column(table, name)
    for row in models:
        table.add_row(*(plain(_cell(name, row)) for name in names))
    return table


def _add_column(table: "Table", name: str) -> None:
    table.add_column(HEADINGS[name], justify="left" if name in TEXTS else "right", overflow="fold")


def _cell(name: str, row: Mapping[str, Any]) -> str:
    value, error = row[name], row.get(ERRORS.get(name, ""))
    if value is None:
        return "–"
    if not isinstance(value, float):
        return value if isinstance(value, str) else f"{value:,}"
    return f"{value:.2f}" if error is None else f"{value:.2f} ± {error:.2f}"
