"""`arena judge probe`."""

import sys
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Parameter

from arena.commands.arguments import AS_IT_IS, Flat, Renamed, TableOrJson
from arena.commands.judge_work import (
    JudgeOptions,
    Probed,
    Task,
    Work,
    done,
    prepared,
    show_estimate,
)
from arena.terminal import plain, say, show, table, warnings, write_json
from rating.errors import DataError

if TYPE_CHECKING:
    from judge.probe.injections import Probe
    from judge.tables.cases import NamedCase
    from judge.verdict import Run


def probe(
    *,
    options: Annotated[JudgeOptions, Flat] = JudgeOptions(),  # noqa: B008 - it is frozen
    method: Probed = "pairwise",
    cases: Annotated[tuple[str, ...], Parameter(metavar="SOURCE")] = (),
    chosen: Annotated[Renamed, Flat] = AS_IT_IS,
    dry_run: bool = False,
    seed: Annotated[str | None, Parameter(metavar="TEXT")] = None,
    form: TableOrJson = "table",
) -> None:
    """Try what a judge does with answers that say nothing and ask for the verdict.

    Each kind of injected answer is set against each honest one, in both orders, and so is its
    control, a filler of the same length that asks for nothing. Success is what wins in both
    orders beyond the control. Replies are kept as those of a run. Exit code 1: stopped with
    probes pending.

    Parameters
    ----------
    cases
        Prompts and honest answers, as for judge run; eight of our own if not given.
    dry_run
        Only say what would be asked, and its cost.
    seed
        Draws fences and orders in place of the database's own secret, as for judge run.
    form
        How to say what came out.

    Examples
    --------
    arena judge probe --judge pocket-judge
    arena judge probe --judge pocket-judge --method arena_hard --format json
    """
    from judge.probe.injections import honest_cases, probes, resistance
    from judge.verdict import verdicts

    if chosen != AS_IT_IS and not cases:
        msg = "--where, --label and --column choose from files: name them with --cases."
        raise DataError(msg)
    task = Task(method=method, cases=cases, chosen=chosen, seed=seed)
    with prepared(options, task, probes=True) as (work, journal):
        honest = [named.case for named in work.cases] if cases else honest_cases()
        tried = probes(honest)
        work = replace(work, cases=[named for each in tried for named in _named(each)])
        if dry_run:
            show_estimate(work, journal, form)
            if form != "json":
                say(f"{_arms(len(tried))} in both orders.")
            return
        run = done(work, journal)
    result = resistance(tried, verdicts(run.judged)).to_dict()
    _show(work, run, result, form)


def _named(probe: "Probe") -> "list[NamedCase]":
    """Name both cases of a probe, side by side: a run that stops leaves whole pairs."""
    from judge.tables.cases import NamedCase

    arms = ((probe.kind, probe.case), (f"filler for {probe.kind}", probe.control))
    return [
        NamedCase(case.id[:16], case.prompt_id[:16], "honest", name, case) for name, case in arms
    ]


def _arms(n: int) -> str:
    return f"{n:,} injected answers, and for each a filler of the same length,"


def _show(work: Work, run: "Run", result: Mapping[str, Any], form: str) -> None:
    report = {"judge": work.model.id, "method": work.method.name, **result, **run.to_dict()}
    if form == "json":
        write_json(report)
    else:
        _show_table(report)
    if run.stopped is not None:
        say(f"arena: Stopped: {run.why}. The same command goes on.", error=True)
        sys.exit(1)


def _show_table(report: Mapping[str, Any]) -> None:
    rows = []
    for row in [*report["kinds"], {**report, "kind": "all"}]:
        shares = (_percent(row[arm]["rate"]) for arm in ("attack", "control"))
        rows.append((row["kind"], f"{row['n_pairs']:,}", *shares, _success(row)))
    control = report["control"]
    text = (
        f"{report['n_asked']:,} replies asked for now, {report['n_recalled']:,} known before: "
        f"{_arms(report['n'] + report['n_undecided'])} in both orders. "
        "Success is what injected answers won beyond their fillers. "
        f"An injected answer won or tied in {report['n_not_lost']:,} of {report['n']:,} probes, a "
        f"filler in {control['n_not_lost']:,} of {control['n']:,}; {report['n_undecided']:,} and "
        f"{control['n_undecided']:,} have no verdict."
    )
    head = ("Injected answer", "Pairs", "Won", "Filler won", "Success")
    show(table(head, rows), plain(text), *warnings(report["warnings"]))


def _percent(rate: float | None) -> str:
    return "–" if rate is None else f"{rate:.0%}"


def _success(row: Mapping[str, Any]) -> str:
    if row["success_rate"] is None:
        return "–"
    rate, low, high = (100 * row[name] for name in ("success_rate", "lower", "upper"))
    return f"{rate:z.0f}% ({low:z.0f}% to {high:z.0f}%)"
