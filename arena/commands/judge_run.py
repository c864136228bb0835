"""`arena judge run` and `arena judge work`."""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from arena.commands import judge_options as choose
from arena.commands.arguments import Database, RosterFile, examples
from arena.commands.judge_told import require_form, tell_checks, tell_estimate, tell_run
from arena.commands.judge_work import Typed, Work, done, estimated, prepared
from rating.errors import DataError

if TYPE_CHECKING:
    from arena.store.judging import StoredJournal
    from judge.checklists import Listed
    from judge.results import Run

IFEVAL = "ifeval"

cli = typer.Typer()


@cli.command(
    epilog=examples(
        "arena judge run --method pairwise --judge pocket-judge --cases pairs.csv --out found.csv",
        "arena judge run --method pairwise --judge pocket-judge --cases pairs.csv --dry-run",
    )
)
def run(
    *,
    method: choose.Method,
    judge: choose.Judge = None,
    cases: choose.Cases,
    out: choose.Out = None,
    dry_run: choose.DryRun = False,
    budget: choose.Budget = None,
    concurrency: choose.Concurrency = 16,
    requests_per_minute: choose.RequestsPerMinute = None,
    tokens_per_minute: choose.TokensPerMinute = None,
    rubric: choose.RubricFile = None,
    scale: choose.Scale = None,
    length_margin: choose.Margin = None,
    swap_share: choose.SwapShare = 1.0,
    seed: choose.Seed = None,
    fallback: choose.Fallback = None,
    form: choose.Form = None,
    database: Database = None,
    roster: RosterFile = None,
) -> None:
    """Ask a model which of two answers is better, in both orders, or what one answer is worth.

    Every reply is kept in the database before it is read: the same command again goes on where it
    stopped, and pays for nothing twice. Exit code 1: it stopped with cases still pending.
    """
    from judge.tables.verdicts import require_writable

    require_form(form)
    if out is not None:
        require_writable(out)
    elif not dry_run:
        msg = "Name the file for the verdicts with --out, or ask for the cost with --dry-run."
        raise DataError(msg)
    _require_fallback(fallback, method)
    if method == IFEVAL:
        _check(cases, judge, out, form)
        return
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
        rubric=rubric,
        scale=scale,
        margin=length_margin,
        swap_share=swap_share,
        seed=seed,
    )
    with prepared(typed) as (work, journal):
        if dry_run or out is None:
            tell_estimate(asyncio.run(estimated(work, journal)), form)
            return
        report = _judged(work, journal, out, fallback)
    tell_run(report, out, form)


@cli.command(
    epilog=examples(
        "arena judge work --method pairwise --judge pocket-judge --cases pairs.csv",
        "arena judge work --method pairwise --judge pocket-judge --cases arena",
    )
)
def work(
    *,
    method: choose.Method,
    judge: choose.Judge = None,
    cases: choose.Cases,
    budget: choose.Budget = None,
    concurrency: choose.Concurrency = 16,
    requests_per_minute: choose.RequestsPerMinute = None,
    tokens_per_minute: choose.TokensPerMinute = None,
    rubric: choose.RubricFile = None,
    scale: choose.Scale = None,
    swap_share: choose.SwapShare = 1.0,
    seed: choose.Seed = None,
    form: choose.Form = None,
    database: Database = None,
    roster: RosterFile = None,
) -> None:
    """Help a run on the same database: ask what it has not asked yet, and write no file.

    Give the options of `arena judge run`, without --out. Any number of helpers may come and go:
    none asks what another is asking, and what a killed one was asking returns to the others. Each
    ends when nothing is left; budget and rates are its own. Exit code 1: it stopped before.
    """
    require_form(form)
    if method == IFEVAL:
        msg = "--method ifeval asks nothing, so there is nothing to help with: use judge run."
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
        rubric=rubric,
        scale=scale,
        swap_share=swap_share,
        seed=seed,
    )
    with prepared(typed) as (prepared_work, journal):
        found = asyncio.run(done(prepared_work, journal))
        report = _report(prepared_work, found, _rows(prepared_work, found))
    tell_run(report, None, form)


def _require_fallback(fallback: str | None, method: str) -> None:
    if fallback not in (None, choose.SAMPLED):
        msg = f"There is no fallback {fallback!r}: the only one is {choose.SAMPLED!r}."
        raise DataError(msg)
    if fallback is not None and method != "alpaca_eval":
        msg = f"--fallback is for --method alpaca_eval, not for {method!r}."
        raise DataError(msg)


def _judged(
    work: Work, journal: "StoredJournal", out: Path, fallback: str | None
) -> dict[str, Any]:
    """Judge, write the rows, and return what is to be said."""
    from judge.report.run import lacks_logprobs
    from judge.tables.verdicts import write_judged

    found = asyncio.run(done(work, journal))
    fell_back = []
    if fallback is not None and lacks_logprobs(found.run):
        first = found.run
        work = _sampled(work, first)
        fell_back.append(
            f"No reply had log-probabilities ({first.n_asked + first.n_recalled:,} looked at): "
            f"every case was judged by {work.method.name} instead, which is another measure."
        )
        found = asyncio.run(done(work, journal))
        found = replace(found, run=found.run.after(first))
    found = replace(found, run=_margined(work, found.run))
    rows = _rows(work, found)
    write_judged(rows, out)
    report = _report(work, found, rows)
    return report | {"warnings": [*fell_back, *report["warnings"]]}


def _sampled(work: Work, first: "Run") -> Work:
    from judge.methods.named import method as named

    limit = work.options.limit_usd
    left = None if limit is None else max(limit - (first.spent_usd or 0.0), 0.0)
    options = replace(work.options, limit_usd=left)
    return replace(work, method=named("alpaca_eval_sampled"), options=options)


def _margined(work: Work, found: "Run") -> "Run":
    from judge.methods import margined

    if work.method.name != "wildbench_reward":
        return found
    cases = {named.case.id: named.case for named in work.cases}
    return replace(found, judged=margined(found.judged, cases, work.margin))


def _rows(work: Work, found: "Listed") -> list[dict[str, Any]]:
    from judge.report.run import place_of
    from judge.tables.verdicts import judged_rows, rated_rows

    judged, judge, method = found.run.judged, work.model.id, work.method
    if method.pairwise:
        place = place_of(found.run) if work.options.swap_share < 1 else None
        return judged_rows(work.cases, judged, judge, method, place)
    return rated_rows(work.cases, judged, judge, method, found.checklists)


def _report(work: Work, found: "Listed", rows: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    from judge.report.run import judge_report

    report = judge_report(work.model.id, work.method.name, work.cases, found.run, rows)
    return report | {"swap_share": work.options.swap_share}


def _check(cases: Sequence[str], judge: str | None, out: Path | None, form: str | None) -> None:
    """Check recorded responses against their instructions: nobody is asked."""
    from judge.report.run import constraint_report
    from judge.tables.cases import checked, read_instructed
    from judge.tables.verdicts import constraint_rows, write_judged

    if judge is not None:
        msg = f"--method ifeval asks nobody: leave --judge {judge} out."
        raise DataError(msg)
    if out is None:
        msg = "--method ifeval costs nothing: name the file to write with --out."
        raise DataError(msg)
    instructed = read_instructed([Path(source) for source in cases])
    named, found = [one.named for one in instructed], checked(instructed)
    write_judged(constraint_rows(named, found), out)
    tell_checks(constraint_report(named, found), out, form)
