"""`arena voters`."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from arena.commands.arguments import examples
from arena.commands.rating_options import Column, role_and_name
from arena.terminal import plain, working, write
from rating.errors import DataError

if TYPE_CHECKING:
    from rich.console import RenderableType

    from rating.tables.voter_report import CheckedVoter, VotersReport

cli = typer.Typer()

FORMATS = ("table", "json", "csv", "parquet")
SHOWN = 10
"""Voters without a flag in the table on a terminal; the other formats hold everybody."""


@cli.command(
    epilog=examples(
        "arena voters votes.parquet",
        "arena voters votes.parquet --weighted weighted.parquet",
    )
)
def voters(
    source: Annotated[
        str,
        typer.Argument(
            metavar="SOURCE",
            help="File of votes (.parquet, .csv, .jsonl) that says who voted, or database URL.",
        ),
    ],
    *,
    column: Column = None,
    alpha: Annotated[float, typer.Option(help="Chance of flagging an honest voter.")] = 0.05,
    least: Annotated[
        int, typer.Option(help="Decisive votes from which a voter is examined.")
    ] = 20,
    form: Annotated[
        str | None, typer.Option("--format", metavar="|".join(FORMATS), help="How to write it.")
    ] = None,
    out: Annotated[Path | None, typer.Option(metavar="FILE", help="File to write.")] = None,
    weighted: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Write the votes there, with a column voter_weight to rate by.",
        ),
    ] = None,
) -> None:
    """Say which voters vote as somebody with a taste of their own would not.

    Evidence, a suggested weight of 0 or 1 and the reason, for each voter; nothing is deleted.
    The chance of a false flag holds on average over voters whose tastes follow the fitted law.
    Exit code 2: options or votes that cannot be used.
    """
    from arena.boards.source import votes_of
    from rating.tables import formats
    from rating.tables.columns import Columns
    from rating.tables.voter_report import check_source, write_weighted

    form = _chosen(form, out)
    columns = Columns.named(map(role_and_name, column or ()))
    with working("Examining the voters"):
        votes = votes_of(source)
        report = check_source(votes, columns, alpha=alpha, least=least)
    if weighted is not None:
        write_weighted(votes, report, weighted, columns)
    found = report.to_dict()
    if form == "parquet" and out is not None:
        formats.write_parquet(found["voters"], out)
    elif form == "table" and out is None:
        _show(report)
    else:
        text = formats.as_json(found) if form == "json" else formats.as_csv(found["voters"])
        write(text) if out is None else formats.write_text(text, out)


def _chosen(form: str | None, out: Path | None) -> str:
    endings = {f".{name}": name for name in FORMATS[1:]}
    found = form or ("table" if out is None else endings.get(out.suffix, ""))
    if found not in FORMATS:
        msg = f"Cannot write voters as {form or str(out)!r}: choose one of {', '.join(FORMATS)}."
        raise DataError(msg)
    if found == "parquet" and out is None:
        msg = "Parquet is not for a terminal: name a file with --out."
        raise DataError(msg)
    if found == "table" and out is not None:
        msg = f"A table is for a terminal: write {str(out)!r} as {', '.join(FORMATS[1:])}."
        raise DataError(msg)
    return found


def _show(report: "VotersReport") -> None:
    from rich.console import Console, Group

    rest = [voter for voter in report.voters if voter.examined and not voter.flagged]
    head = (
        f"{report.votes:,} votes by {len(report.voters):,} voters. "
        f"{len(report.flagged) + len(rest):,} are examined, {len(report.flagged):,} are flagged. "
        "Every voter, and the reasons in words: --format csv."
    )
    listed = [*report.flagged, *rest[:SHOWN]]
    notes = [plain(note) for note in report.notes]
    Console().print(Group(plain(head), *([_table(listed)] if listed else []), *notes))


def _table(voters: "list[CheckedVoter]") -> "RenderableType":
    from rich.table import Table

    numbers = ("Votes", "Evidence (log)", "Flagged at", "Jointly", "Weight")
    table = Table("Voter", *numbers, "Looks most like")
    for column in table.columns[1:6]:
        column.justify = "right"
    for voter in voters:
        cells = (
            voter.voter,
            f"{voter.votes:,}",
            f"{voter.max_log_e:.1f}",
            "–" if voter.flagged_at is None else f"{voter.flagged_at:,} votes",
            "yes" if voter.flagged_jointly else "–",
            f"{voter.weight:g}",
            _suspicion(voter),
        )
        table.add_row(*map(plain, cells))
    return table


def _suspicion(voter: "CheckedVoter") -> str:
    if voter.leading is None:
        return "an honest voter"
    return voter.leading if voter.model is None else f"{voter.leading} of {voter.model}"
