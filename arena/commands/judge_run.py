"""`arena judge run`."""

import asyncio
import math
import sys
from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from arena.commands.arguments import Database, RosterFile, examples
from arena.domain.model import Model, Roster
from arena.errors import DataError, SettingsError
from arena.terminal import working

if TYPE_CHECKING:
    from arena.publish.cases import NamedCase
    from arena.store.judging import StoredJournal
    from arena.store.store import Store
    from judge.budget import Estimate, Price
    from judge.judged import Run
    from judge.method import Method
    from judge.options import Options
    from judge.progress import Progress

ARENA = "arena"
"""What ``--cases`` calls the battles in the database."""

METHODS = ("pairwise", "alpaca_eval", "alpaca_eval_sampled", "alpaca_eval_verbal", "arena_hard")

cli = typer.Typer()


@dataclass(frozen=True, slots=True)
class Work:
    """All that a run needs."""

    model: Model
    cases: "Sequence[NamedCase]"
    method: "Method"
    options: "Options"


@cli.command(
    epilog=examples(
        "arena judge run --method pairwise --judge pocket-judge --cases pairs.csv --out found.csv",
        "arena judge run --method pairwise --judge pocket-judge --cases pairs.csv --dry-run",
    )
)
def run(
    *,
    method: Annotated[str, typer.Option(metavar="METHOD", help=f"One of {', '.join(METHODS)}.")],
    judge: Annotated[
        str, typer.Option(metavar="MODEL", help="Id in the roster, or pocket-judge, a toy.")
    ],
    cases: Annotated[
        list[str],
        typer.Option(
            metavar="SOURCE",
            help="File of pairs, two files of outputs (give it twice), or arena: the battles.",
        ),
    ],
    out: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Verdicts to write: .parquet, .csv or .jsonl."),
    ] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Only say what would be asked, and its cost.")
    ] = False,
    budget: Annotated[
        float | None, typer.Option(metavar="USD", help="Stop before more than this is spent.")
    ] = None,
    concurrency: Annotated[int, typer.Option(help="Most requests at a time.", min=1)] = 16,
    requests_per_minute: Annotated[
        float | None, typer.Option(help="Most requests that the endpoint allows a minute.")
    ] = None,
    tokens_per_minute: Annotated[
        float | None, typer.Option(help="Most tokens that it allows a minute.")
    ] = None,
    database: Database = None,
    roster: RosterFile = None,
) -> None:
    """Ask a model which of two answers is better, in both orders.

    Every reply is kept in the database before it is read: the same command again goes on where it
    stopped, and pays for nothing twice. Exit code 1: it stopped with cases still pending.
    """
    from arena.publish.judged import judged_rows, require_writable, write_judged
    from arena.settings import read_settings
    from arena.store.judging import judging_seed
    from arena.store.models import fingerprint
    from arena.store.store import Store
    from judge.errors import JudgeError
    from judge.options import Options
    from judge.throttle import RateLimits

    if out is not None:
        require_writable(out)
    elif not dry_run:
        msg = "Name the file for the verdicts with --out, or ask for the cost with --dry-run."
        raise DataError(msg)
    settings = read_settings(database=database, roster=roster)
    model = _model(settings.roster, judge)
    with closing(Store(settings.database)) as store:
        try:
            work = Work(
                model=model,
                method=_method(method),
                cases=_cases(store, cases),
                options=Options(
                    judge=f"{model.id}@{fingerprint(model)[:16]}",
                    seed=judging_seed(store, datetime.now(UTC)),
                    concurrency=concurrency,
                    price=_price(model),
                    limit_usd=budget,
                    limits=RateLimits(requests_per_minute, tokens_per_minute),
                ),
            )
            journal = _journal(store, work)
            if dry_run or out is None:
                _tell_estimate(asyncio.run(_estimate(work, journal)))
                return
            found = asyncio.run(_asked(work, journal))
        except JudgeError as error:
            raise DataError(str(error)) from error
    write_judged(judged_rows(work.cases, found.judged, judge), out)
    _tell(found, out)


def _model(file: Path | None, judge: str) -> Model:
    from arena.endpoints.pocket import POCKET_JUDGE, POCKET_MODELS
    from arena.settings import read_roster

    models: tuple[Model, ...] = (
        *(read_roster(file, to_battle=False) if file else POCKET_MODELS),
        POCKET_JUDGE,
    )
    found = next((model for model in models if model.id == judge), None)
    if found is None:
        names = ", ".join(model.id for model in models)
        msg = f"--judge: there is no model {judge!r} in the roster. There are {names}."
        raise SettingsError(msg)
    return found


def _method(name: str) -> "Method":
    from judge.methods import AlpacaEval, ArenaHard, Pairwise

    methods: tuple[Method, ...] = (
        Pairwise(),
        AlpacaEval(),
        AlpacaEval("sampled"),
        AlpacaEval("verbal"),
        ArenaHard(),
    )
    found = next((method for method in methods if method.description.name == name), None)
    if found is None:
        msg = f"There is no method {name!r} to run: choose one of {', '.join(METHODS)}."
        raise DataError(msg)
    return found


def _cases(store: "Store", sources: Sequence[str]) -> "Sequence[NamedCase]":
    from arena.publish.cases import battle_cases, read_cases

    if list(sources) == [ARENA]:
        return battle_cases(store)
    return read_cases([Path(source) for source in sources])


def _price(model: Model) -> "Price | None":
    from judge.budget import Price

    price = model.price
    return None if price is None else Price(price.input, price.output, price.date)


def _journal(store: "Store", work: Work) -> "StoredJournal":
    from arena.store.judging import StoredJournal

    return StoredJournal(store, work.options.judge, work.options.price, lambda: datetime.now(UTC))


async def _estimate(work: Work, journal: "StoredJournal") -> "Estimate":
    from judge.forecast import forecast

    return await forecast([c.case for c in work.cases], work.method, journal, work.options)


async def _asked(work: Work, journal: "StoredJournal") -> "Run":
    from arena.app import build_endpoints
    from arena.endpoints.judging import EndpointJudge
    from arena.endpoints.pocket import PocketTransport
    from arena.endpoints.recorded import load_recording
    from arena.play.judging import judge_cases

    file = work.model.recording
    recordings = {work.model.id: load_recording(Path(file))} if file else {}
    pocket = PocketTransport(speedup=math.inf)
    endpoints = build_endpoints(Roster((work.model,)), recordings, pocket)
    try:
        with working("Judging") as told:
            return await judge_cases(
                [named.case for named in work.cases],
                work.method,
                EndpointJudge(endpoints, work.model),
                journal,
                work.options,
                lambda progress: told(progress.n_done, progress.n_total, _so_far(progress)),
            )
    finally:
        await endpoints.aclose()


def _so_far(progress: "Progress") -> str:
    """Say what failed, and what was spent."""
    failed = [f", {n:,} {failure}" for failure, n in progress.failed.items()]
    spent = [] if progress.spent_usd is None else [f", ${progress.spent_usd:.2f}"]
    return "".join(failed + spent)


def _tell_estimate(found: "Estimate") -> None:
    cost = "at an unknown price" if found.cost_usd is None else f"for about ${found.cost_usd:.4g}"
    known = (
        f"calibrated on {found.calibration.n:,} kept replies"
        if found.calibration.n
        else "by the rule of characters"
    )
    print(
        f"{found.n_calls:,} calls, about {found.tokens_in:,.0f} tokens in and "
        f"{found.tokens_out:,.0f} out, {cost} ({known})."
    )


def _tell(found: "Run", out: Path) -> None:
    """Say what came out; what is pending is the caller's to take up again."""
    status = ", ".join(f"{n:,} {name}" for name, n in sorted(found.by_status.items()))
    spent = "" if found.spent_usd is None else f" for ${found.spent_usd:.4g}"
    print(
        f"{out}: {status}. {found.n_asked:,} replies asked for now{spent}, "
        f"{found.n_recalled:,} known before."
    )
    if found.stopped is not None:
        print(f"arena: Stopped: {found.why}. The same command goes on.", file=sys.stderr)
        raise typer.Exit(1)
