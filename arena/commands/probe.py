"""`arena probe`: is a measure of similarity, a judge or a board any good."""

from pathlib import Path
from typing import Annotated

import typer

from arena.commands import probe_ask
from arena.commands import rating_options as choose
from arena.commands.arguments import Database, RosterFile, examples
from arena.commands.probe_told import Form, Out, Seed, chosen_form, write_cards
from arena.terminal import working

cli = typer.Typer(help="Is the measure itself any good: cards to read.", no_args_is_help=True)
cli.add_typer(probe_ask.cli)


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
    form = chosen_form(form, out)
    from arena.commands.probe_embeddings import embedding_of  # help would wait for scipy
    from judge.probe.cards import probe_similarity

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
    write_cards(found.to_dict(), form, out)


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
    form = chosen_form(form, out)
    from judge.probe.judges import probe_judges

    with working("Probing"):
        found = probe_judges(files, seed=seed)
    write_cards(found.to_dict(), form, out)


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
    form = chosen_form(form, out)
    columns = choose.rate_options(column=column).columns
    from arena.boards.source import votes_of
    from judge.probe.board import probe_board

    with working("Simulating") as told:
        found = probe_board(votes_of(source), columns=columns, arenas=arenas, seed=seed, told=told)
    write_cards(found.to_dict(), form, out)
