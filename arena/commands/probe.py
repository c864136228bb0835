"""`arena probe`: is a measure of similarity, a judge or a board any good."""

from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any

import typer

from arena import __version__
from arena.commands import rating_options as choose
from arena.commands.arguments import Database, RosterFile, examples
from arena.errors import DataError
from arena.terminal import working

cli = typer.Typer(help="Is the measure itself any good: cards to read.", no_args_is_help=True)

FORMATS = ("table", "json", "html")
ENDINGS = {".json": "json", ".html": "html"}

Form = Annotated[str | None, typer.Option("--format", metavar="|".join(FORMATS))]
Out = Annotated[
    Path | None,
    typer.Option(metavar="FILE", help="Page (.html), with its JSON beside it; or JSON (.json)."),
]
Seed = Annotated[int, typer.Option(help="Of all that is drawn.", min=0)]


@cli.command(
    epilog=examples(
        "arena probe similarity pairs.csv classes.csv --sample 100",
        "arena probe similarity pairs.csv --measure rouge-1 --measure bm25 --out cards.html",
    )
)
def similarity(
    files: Annotated[
        list[Path],
        typer.Argument(
            metavar="FILE...", help="Texts that people rated, texts in classes, a TREC collection."
        ),
    ],
    *,
    measure: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME", help="How its name begins; again for more. All by default."),
    ] = None,
    embeddings: Annotated[
        str | None,
        typer.Option(
            metavar="MODEL", help="Add the cosine of embeddings by a model in the roster."
        ),
    ] = None,
    planted: Annotated[
        bool, typer.Option("--planted", help="Add evaluators whose cards are known beforehand.")
    ] = False,
    sample: Annotated[
        int, typer.Option(help="Texts to change, texts to cluster, questions: most of each.")
    ] = 300,
    seed: Seed = 0,
    database: Database = None,
    roster: RosterFile = None,
    form: Form = None,
    out: Out = None,
) -> None:
    """Probe measures of how alike two texts are, on up to five axes.

    What a file is for is told by its columns; each axis needs its own kind. No axis is averaged
    with another. Embeddings are kept in the database: the same command again goes on where it
    stopped. Exit code 2: files or options that cannot be used.
    """
    form = _chosen(form, out)
    from arena.commands.probe_embeddings import embedding_of  # help would wait for scipy
    from arena.publish.probe.similarity import probe_similarity

    embed = None if embeddings is None else embedding_of(embeddings, database, roster)

    with working("Probing") as told:
        found = probe_similarity(
            files,
            measures=measure or (),
            embed=embed,
            planted=planted,
            sample=sample,
            seed=seed,
            told=told,
        )
    _write(found.to_dict(), form, out)


@cli.command(
    epilog=examples(
        "arena probe judge monday.csv tuesday.csv wednesday.csv",
        "arena probe judge runs.csv --out judge.html",
    )
)
def judge(
    files: Annotated[
        list[Path],
        typer.Argument(
            metavar="FILE...", help="Verdicts on the same cases: a file a run, or a column run."
        ),
    ],
    *,
    seed: Seed = 0,
    form: Form = None,
    out: Out = None,
) -> None:
    """Probe judges by what they say of the same cases again, and with the sides exchanged.

    Takes files that `arena judge run` writes. Exit code 2: files or options that cannot be used.
    """
    form = _chosen(form, out)
    from arena.publish.probe.judge import probe_judges

    with working("Probing"):
        found = probe_judges(files, seed=seed)
    _write(found.to_dict(), form, out)


@cli.command(
    epilog=examples(
        "arena probe board votes.parquet --arenas 20",
        "arena probe board votes.parquet --arenas 20 --out board.html",
    )
)
def board(
    source: choose.Source,
    *,
    column: choose.Column = None,
    arenas: Annotated[
        int, typer.Option(help="Simulated arenas: more of them tell finer faults.")
    ] = 200,
    seed: Seed = 0,
    form: Form = None,
    out: Out = None,
) -> None:
    """Probe the ways to rate these votes, on arenas like this one whose truth is known.

    Exit codes: 2 for options or votes that cannot be used, 3 for votes that identify no rating.
    """
    form = _chosen(form, out)
    columns = choose.rate_options(column=column).columns
    from arena.publish.probe.board import probe_board

    with working("Simulating") as told:
        found = probe_board(source, columns=columns, arenas=arenas, seed=seed, told=told)
    _write(found.to_dict(), form, out)


def _chosen(form: str | None, out: Path | None) -> str:
    """Choose the format by name or by the file's ending, before anything is computed."""
    if form is not None and form not in FORMATS:
        msg = f"There is no format {form!r} of a card: choose one of {', '.join(FORMATS)}."
        raise DataError(msg)
    if out is None:
        return form or "table"
    ending = ENDINGS.get(out.suffix)
    if ending is None or form not in (None, ending):
        msg = f"Cannot write {str(out)!r}: name a file that ends in {' or '.join(ENDINGS)}"
        raise DataError(f"{msg}, as the format does." if form else f"{msg}.")
    if not out.absolute().parent.is_dir():
        msg = f"Cannot write {str(out)!r}: its folder does not exist. Make the folder first."
        raise DataError(msg)
    return ending


def _write(told: Mapping[str, Any], form: str, out: Path | None) -> None:
    from arena.publish import formats

    found = {**told, "version": __version__, "made": datetime.now(UTC).date().isoformat()}
    if form == "table":
        _show(found)
        return
    text = formats.as_json(found) if form == "json" else _page(found)
    if out is None:
        print(text, end="")
        return
    formats.write_text(text, out)
    if form == "html":
        formats.write_text(formats.as_json(found), out.with_suffix(".json"))


def _page(found: Mapping[str, Any]) -> str:
    from arena.pages.probe import probe_page
    from arena.publish.probe.view import page_of

    return probe_page([page_of(found)])


def _show(found: Mapping[str, Any]) -> None:
    from rich.console import Console, Group
    from rich.table import Table
    from rich.text import Text

    from arena.publish.probe.view import page_of, table_of, warnings_of

    page = page_of(found)
    head, rows = table_of(page)
    table = Table()
    for place, name in enumerate(head):
        table.add_column(name, justify="right" if place else "left", overflow="fold")
    for row in rows:
        table.add_row(*map(Text, row))
    about = Text(" ".join(f"{name}: {said}." for name, said in page.about.items()))
    warnings = [Text(f"! {text}", style="yellow") for text in warnings_of(page)]
    Console().print(Group(about, table, *warnings))
