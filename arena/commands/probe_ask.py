"""`arena probe ask`."""

import asyncio
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from arena.commands import judge_options as choose
from arena.commands.arguments import Database, RosterFile, examples
from arena.commands.judge_probe import METHODS
from arena.commands.judge_work import Typed, done, estimated, prepared
from arena.commands.probe_told import Form, Out, Seed, chosen_form, write_cards
from arena.terminal import say
from rating.errors import DataError

if TYPE_CHECKING:
    from judge.results import Run

cli = typer.Typer()


@cli.command(
    epilog=examples(
        "arena probe ask --judge pocket-judge --cases pairs.csv --dry-run",
        "arena probe ask --judge pocket-judge --cases pairs.csv --sample 50 --out judge.html",
    )
)
def ask(
    *,
    judge: choose.Judge = None,
    cases: Annotated[
        list[str],
        typer.Option(
            metavar="SOURCE", help="Pairs, as for judge run; their column winner is a vote."
        ),
    ],
    votes: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", help="Votes of people, matched by item_id, or else by battle_id."
        ),
    ] = None,
    method: Annotated[
        str, typer.Option(metavar="METHOD", help=f"One of {', '.join(METHODS)}.")
    ] = "pairwise",
    sample: Annotated[
        int, typer.Option(help="Pairs to ask about, most: about twenty questions each.")
    ] = 100,
    dry_run: choose.DryRun = False,
    budget: choose.Budget = None,
    concurrency: choose.Concurrency = 16,
    requests_per_minute: choose.RequestsPerMinute = None,
    tokens_per_minute: choose.TokensPerMinute = None,
    seed: Seed = 0,
    form: Form = None,
    out: Out = None,
    database: Database = None,
    roster: RosterFile = None,
) -> None:
    """Probe a judge by asking it, on three axes: people, harmless changes, and what is missing.

    It is asked about pairs that people voted on, with their sides exchanged, and about copies
    that were changed. Replies are kept in the database: the same command again goes on where it
    stopped, and pays for nothing twice. Exit codes: 1 stopped with questions pending, without a
    card; 2 files or options that cannot be used.
    """
    form = chosen_form(form, out)
    if method not in METHODS:
        msg = f"There is no probe by {method!r}: choose one of {', '.join(METHODS)}."
        raise DataError(msg)
    typed = Typed(
        method=method,
        judge=judge,
        cases=cases,
        database=database,
        roster=roster,
        budget=budget,
        concurrency=concurrency,
        requests_per_minute=requests_per_minute,
        tokens_per_minute=tokens_per_minute,
    )
    from arena.commands.judge_told import tell_estimate
    from judge.probe.asked import Asking, probe_asked

    with prepared(typed) as (work, journal):
        asking = Asking.of(work.cases, cases, votes, sample=sample, seed=seed)
        as_given = replace(work.options, as_given=True)
        work = replace(work, cases=asking.cases, options=as_given)
        if dry_run:
            tell_estimate(asyncio.run(estimated(work, journal)), form)
            return
        run = asyncio.run(done(work, journal)).run
        _require_whole(run)
        found = probe_asked(asking, run, judge=work.model.id, method=method)
    write_cards(found.to_dict(), form, out)
    if form == "table":
        say(f"{run.n_asked:,} replies asked for now, {run.n_recalled:,} known before.")


def _require_whole(run: "Run") -> None:
    """Make no card of a part of the answers."""
    if run.stopped is not None:
        said = f"{run.n_asked:,} replies asked for now, {run.n_recalled:,} known before"
        say(f"arena: Stopped: {run.why}; {said}. The same command goes on.", error=True)
        raise typer.Exit(1)
