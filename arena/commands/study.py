"""`arena study judge` and `arena study scores`."""

from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from arena.commands.arguments import examples
from arena.terminal import plain, say, working, write
from rating.errors import DataError

if TYPE_CHECKING:
    from rich.console import RenderableType

    from judge.report.page import Page
    from judge.studies.scores import Scored
    from judge.studies.study import Study

cli = typer.Typer(
    help="How judges, and scores from elsewhere, agree with people.", no_args_is_help=True
)

FORMATS = ("table", "json", "html", "md")


@cli.command(
    epilog=examples(
        "arena study judge votes.csv verdicts.csv",
        "arena study judge votes.csv verdicts.csv --format json --by category",
    )
)
def judge(
    votes: Annotated[
        str,
        typer.Argument(
            metavar="VOTES", help="Votes of people: a file, or the URL of the arena's database."
        ),
    ],
    verdicts: Annotated[
        str, typer.Argument(metavar="VERDICTS", help="Verdicts of one judge or several: a file.")
    ],
    *,
    form: Annotated[
        str | None, typer.Option("--format", metavar="table|json|html|md", help="What to print.")
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="Folder for the report: HTML, and the same as files."),
    ] = None,
    pairs: Annotated[
        str,
        typer.Option(
            metavar="all|majority",
            help="Compare verdicts with every vote, or with what most votes of an item say.",
        ),
    ] = "all",
    voters: Annotated[
        str | None, typer.Option(metavar="GLOB", help="Only these people's votes: 'expert_*'.")
    ] = None,
    by: Annotated[
        str | None,
        typer.Option(
            metavar="COLUMN",
            help="Part the items by a column, such as turn; or by pair of models.",
        ),
    ] = None,
    raters: Annotated[
        str,
        typer.Option(
            metavar="expert|skilled|crowd",
            help="What the people are: a judge may fall behind one of them by .2, .15 or .1.",
        ),
    ] = "crowd",
    outputs: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="What the models answered: for length and examples."),
    ] = None,
    prompts: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Texts of the prompts: for examples.")
    ] = None,
    rounds: Annotated[int, typer.Option(help="Draws of prompts behind an interval.")] = 1000,
    seed: Annotated[int, typer.Option(help="Another seed draws other prompts.")] = 0,
    level: Annotated[float, typer.Option(help="Of the intervals.")] = 0.95,
) -> None:
    """Say whether a judge may stand in for people: yes, no, with care, or that it cannot be told.

    Items are matched by item_id, else by prompt and pair of models. A verdict that was not read
    is counted and is no tie; what the votes cannot tell is null with a warning. Exit code 2:
    options or files that cannot be used.
    """
    _require(form, out)
    from arena.boards.source import votes_of
    from judge.studies.options import StudyOptions
    from judge.studies.study import study_judges

    options = StudyOptions(
        pairs=pairs,  # type: ignore[arg-type]  # it checks the choice itself
        voters=voters,
        by=by,
        raters=raters,  # type: ignore[arg-type]
        outputs=outputs,
        prompts=prompts,
        rounds=rounds,
        seed=seed,
        level=level,
    )
    with working("Studying") as told:
        found = study_judges(votes_of(votes), verdicts, options, told)
        written = None if out is None else _write(found, out)
    if form is not None and form != "table":
        write(_text(found, form))
    elif written is None or form == "table":
        _show(found)
    if written is not None and form in (None, "table"):
        say(f"The report is {written}.")


@cli.command(
    epilog=examples(
        "arena study scores benchmarks.csv votes.csv",
        "arena study scores benchmarks.csv board.json --format json",
    )
)
def scores(
    table: Annotated[
        Path,
        typer.Argument(metavar="SCORES", help="A model a row, a column of numbers a benchmark."),
    ],
    board: Annotated[
        str,
        typer.Argument(
            metavar="BOARD",
            help="Votes: a file or the URL of a database; or what arena rate --format json wrote.",
        ),
    ],
    *,
    form: Annotated[
        str | None, typer.Option("--format", metavar="table|json|html|md", help="What to print.")
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="Folder for the report: HTML, and the same as files."),
    ] = None,
    rounds: Annotated[int, typer.Option(help="Draws behind an interval.")] = 1000,
    seed: Annotated[int, typer.Option(help="Of all that is drawn.")] = 0,
    level: Annotated[float, typer.Option(help="Of the intervals.")] = 0.95,
) -> None:
    """Say how far scores from elsewhere, such as of benchmarks, go with the ratings.

    Models are matched by name, and those in one source alone are listed. Exit codes: 2 for
    options or files that cannot be used, 3 for votes that identify no rating.
    """
    _require(form, out)
    from arena.boards.source import votes_of
    from judge.studies.scores import Draws, score_board

    draws = Draws(rounds, seed, level)
    with working("Correlating"):
        found = score_board(table, votes_of(board), draws)
        written = None if out is None else _write_scores(found, out)
    if form is not None and form != "table":
        write(_scores_text(found, form))
    elif written is None or form == "table":
        _show_scores(found)
    if written is not None and form in (None, "table"):
        say(f"The report is {written}.")


def _write_scores(found: "Scored", out: Path) -> Path:
    from judge.report.scores import write_scores

    return write_scores(found, out, datetime.now(UTC).date())


def _scores_text(found: "Scored", form: str) -> str:
    from judge.report.scores import scores_page
    from rating.tables import formats

    if form == "json":
        return formats.as_json(found.to_dict())
    return _page_text(scores_page(found, datetime.now(UTC).date()), form)


def _show_scores(found: "Scored") -> None:
    from rich.console import Console

    from judge.report.scores import correlation_section

    section, console = correlation_section(found), Console()
    for part in (section.table, *section.more):
        if part is not None:
            console.print(_table(part.head, part.rows), plain(part.note))
    for text in found.warnings:
        console.print(plain(f"! {text}", style="yellow"))


def _require(form: str | None, out: Path | None) -> None:
    if form not in (None, *FORMATS):
        msg = f"There is no format {form!r} of a study: choose one of {', '.join(FORMATS)}."
        raise DataError(msg)
    if out is not None and out.exists() and not out.is_dir():
        msg = f"Cannot write into {str(out)!r}: it is a file. Name a folder."
        raise DataError(msg)


def _write(found: "Study", out: Path) -> Path:
    from judge.report.study import write_report

    return write_report(found, out, datetime.now(UTC).date())


def _text(found: "Study", form: str) -> str:
    from rating.tables import formats

    if form == "json":
        return formats.as_json(found.to_dict())
    from judge.report.study import report_page

    return _page_text(report_page(found, datetime.now(UTC).date()), form)


def _page_text(page: "Page", form: str) -> str:
    from judge.report.files import as_html, as_markdown

    return as_html(page) if form == "html" else as_markdown(page)


def _show(found: "Study") -> None:
    from rich.console import Console, Group

    from judge.report.study import report_page

    page = report_page(found, datetime.now(UTC).date())
    parts: list[RenderableType] = []
    for answer in page.answers:
        parts.append(plain(f"{answer.judge}: {answer.headline}", style="bold"))
        parts.append(plain(" ".join(answer.sentences)))
    for table in (page.first.table, *page.first.more):
        if table is not None:
            parts.append(_table(table.head, table.rows))
    parts += [plain(f"! {text}", style="yellow") for text in found.warnings]
    Console().print(Group(*parts))


def _table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> "RenderableType":
    from rich.table import Table

    table = Table()
    for place, name in enumerate(head):
        table.add_column(name, justify="right" if place else "left", overflow="fold")
    for row in rows:
        table.add_row(*map(plain, row))
    return table
