"""`arena judge probe`."""

import asyncio
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, Any

import typer

from arena.commands import judge_options as choose
from arena.commands.arguments import Database, RosterFile, examples
from arena.commands.judge_told import require_form
from arena.commands.judge_work import Typed, Work, done, estimated, prepared
from arena.terminal import plain, say, write
from rating.errors import DataError

if TYPE_CHECKING:
    from judge.probe.injections import Probe
    from judge.results import Run
    from judge.tables.cases import NamedCase

METHODS = tuple(name for name in choose.PAIRS if name != "wildbench_reward")

cli = typer.Typer()


@cli.command(
    epilog=examples(
        "arena judge probe --judge pocket-judge",
        "arena judge probe --judge pocket-judge --method arena_hard --format json",
    )
)
def probe(
    *,
    judge: choose.Judge = None,
    method: Annotated[
        str, typer.Option(metavar="METHOD", help=f"One of {', '.join(METHODS)}.")
    ] = "pairwise",
    cases: Annotated[
        list[str] | None,
        typer.Option(
            metavar="SOURCE",
            help="Prompts and honest answers, as for judge run; eight of our own if not given.",
        ),
    ] = None,
    dry_run: choose.DryRun = False,
    budget: choose.Budget = None,
    concurrency: choose.Concurrency = 16,
    requests_per_minute: choose.RequestsPerMinute = None,
    tokens_per_minute: choose.TokensPerMinute = None,
    seed: choose.Seed = None,
    form: choose.Form = None,
    database: Database = None,
    roster: RosterFile = None,
) -> None:
    """Try what a judge does with answers that say nothing and ask for the verdict.

    Each kind of injected answer is set against each honest one, in both orders, and so is its
    control, a filler of the same length that asks for nothing. Success is what wins in both
    orders beyond the control. Replies are kept as those of a run. Exit code 1: stopped with
    probes pending.
    """
    require_form(form)
    if method not in METHODS:
        msg = f"There is no probe by {method!r}: choose one of {', '.join(METHODS)}."
        raise DataError(msg)
    typed = Typed(
        method=method,
        judge=judge,
        cases=cases or (),
        database=database,
        roster=roster,
        budget=budget,
        concurrency=concurrency,
        requests_per_minute=requests_per_minute,
        tokens_per_minute=tokens_per_minute,
        seed=seed,
    )
    from arena.commands.judge_told import tell_estimate
    from judge.probe.injections import honest_cases, probes, resistance
    from judge.results import verdicts

    with prepared(typed) as (work, journal):
        honest = [named.case for named in work.cases] if cases else honest_cases()
        tried = probes(honest)
        work = replace(work, cases=[named for each in tried for named in _named(each)])
        if dry_run:
            tell_estimate(asyncio.run(estimated(work, journal)), form)
            if form != "json":
                say(f"{_arms(len(tried))} in both orders.")
            return
        run = asyncio.run(done(work, journal)).run
    found = resistance(tried, verdicts(run.judged)).to_dict()
    _tell(work, run, found, form)


def _named(probe: "Probe") -> "list[NamedCase]":
    """Name both cases of a probe, side by side: a run that stops leaves whole pairs."""
    from judge.tables.cases import NamedCase

    arms = ((probe.kind, probe.case), (f"filler for {probe.kind}", probe.control))
    return [
        NamedCase(case.id[:16], case.prompt_id[:16], "honest", name, case) for name, case in arms
    ]


def _arms(n: int) -> str:
    return f"{n:,} injected answers, and for each a filler of the same length,"


def _tell(work: Work, run: "Run", found: Mapping[str, Any], form: str | None) -> None:
    report = {"judge": work.model.id, "method": work.method.name, **found, **run.to_dict()}
    if form == "json":
        from rating.tables.formats import as_json

        write(as_json(report))
    else:
        _show(report)
    if run.stopped is not None:
        say(f"arena: Stopped: {run.why}. The same command goes on.", error=True)
        raise typer.Exit(1)


def _show(report: Mapping[str, Any]) -> None:
    from rich.console import Console
    from rich.table import Table

    table = Table()
    table.add_column("Injected answer", overflow="fold")
    for name in ("Pairs", "Won", "Filler won", "Success"):
        table.add_column(name, justify="right")
    for row in [*report["kinds"], {**report, "kind": "all"}]:
        shares = (_percent(row[arm]["rate"]) for arm in ("attack", "control"))
        table.add_row(*map(plain, (row["kind"], f"{row['n_pairs']:,}", *shares, _success(row))))
    console = Console()
    console.print(table)
    control = report["control"]
    console.print(
        f"{report['n_asked']:,} replies asked for now, {report['n_recalled']:,} known before: "
        f"{_arms(report['n'] + report['n_undecided'])} in both orders. "
        "Success is what injected answers won beyond their fillers. "
        f"An injected answer won or tied in {report['n_not_lost']:,} of {report['n']:,} probes, a "
        f"filler in {control['n_not_lost']:,} of {control['n']:,}; {report['n_undecided']:,} and "
        f"{control['n_undecided']:,} have no verdict."
    )
    for warning in report["warnings"]:
        console.print(plain(f"! {warning}", style="yellow"))


def _percent(rate: float | None) -> str:
    return "–" if rate is None else f"{rate:.0%}"


def _success(row: Mapping[str, Any]) -> str:
    if row["success_rate"] is None:
        return "–"
    rate, low, high = (100 * row[name] for name in ("success_rate", "lower", "upper"))
    return f"{rate:z.0f}% ({low:z.0f}% to {high:z.0f}%)"
