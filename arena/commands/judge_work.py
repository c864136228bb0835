"""What a judge is to do, made of what was typed; and the judge itself."""

import gc
import math
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager, closing, contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from arena.commands.judge_options import ARENA
from arena.domain.model import Model, Roster
from arena.errors import SettingsError
from arena.terminal import announced, working
from rating.errors import DataError
from rating.tables.files import read_text

if TYPE_CHECKING:
    from arena.endpoints.judging import EndpointJudge
    from arena.store.judging import StoredJournal
    from arena.store.store import Store
    from judge.budget import Estimate, Price
    from judge.checklists import Listed
    from judge.methods.checklist import Checklists
    from judge.methods.named import Named
    from judge.options import Options, Progress
    from judge.tables.cases import NamedCase

MARGIN = 500
"""WildBench's K, in characters."""

NEW_OBJECTS = 50_000
"""Made and not gone, before Python looks for cycles among them; its own number is 700.

With a hundred requests under way it would look all the time, for an eighth of the processor's:
what a run makes goes by itself, or stays to its end.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Typed:
    """What was typed of a run's options."""

    method: str
    judge: str | None
    cases: Sequence[str]
    database: str | None
    roster: Path | None
    budget: float | None = None
    concurrency: int = 16
    requests_per_minute: float | None = None
    tokens_per_minute: float | None = None
    rubric: Path | None = None
    scale: str | None = None
    margin: int | None = None
    swap_share: float = 1.0
    seed: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Work:
    """All that a run needs.

    Attributes
    ----------
    margin : int or None
        Length margin of WB-Reward, in characters; None for none.
    """

    model: Model
    cases: "Sequence[NamedCase]"
    method: "Named"
    options: "Options"
    margin: int | None = None

    @property
    def given(self) -> "Checklists":
        """Checklists that came with the cases."""
        return {named.case.prompt_id: named.checklist for named in self.cases if named.checklist}


@contextmanager
def prepared(typed: Typed) -> "Iterator[tuple[Work, StoredJournal]]":
    """Open the database and read what the work needs; what goes wrong in it is bad input.

    Raises
    ------
    DataError, SettingsError
        If the options or the cases cannot be used.
    """
    from arena.settings import read_settings
    from arena.store.store import Store

    settings = read_settings(database=typed.database, roster=typed.roster)
    model = _model(settings.roster, typed.judge)
    with closing(Store(settings.database)) as store:
        work = Work(
            model=model,
            method=_method(typed),
            cases=_cases(store, typed),
            options=_options(store, model, typed),
            margin=_margin(typed),
        )
        yield work, journal_of(store, work)


def journal_of(store: "Store", work: Work) -> "StoredJournal":
    """Open the journal of a judge."""
    from arena.store.judging import StoredJournal

    return StoredJournal(store, work.options.judge, work.options.price, lambda: datetime.now(UTC))


async def estimated(work: Work, journal: "StoredJournal") -> "Estimate":
    """Estimate what the work would ask."""
    from judge.checklists import forecast_with_checklists
    from judge.forecast import forecast

    cases, method = [named.case for named in work.cases], work.method
    if method.by_checklist:
        return await forecast_with_checklists(
            cases, work.given, method.made, journal, work.options
        )
    return await forecast(cases, method.made({}), journal, work.options)


async def done(work: Work, journal: "StoredJournal") -> "Listed":
    """Let the judge work, and show how far it is."""
    from judge.checklists import Listed, judge_with_checklists
    from judge.runs import run

    cases, method, options = [named.case for named in work.cases], work.method, work.options
    with working("Judging") as told:

        def tell(progress: "Progress") -> None:
            told(progress.n_done, progress.n_total, _so_far(progress))

        async with _asking(work.model) as judge:
            gc.set_threshold(NEW_OBJECTS, *gc.get_threshold()[1:])
            if not method.by_checklist:
                made = method.made({})
                return Listed(
                    await run(cases, made, judge, journal, options, told=tell), work.given
                )
            return await judge_with_checklists(
                cases, work.given, method.made, judge, journal, options, tell
            )


@asynccontextmanager
async def _asking(model: Model) -> "AsyncIterator[EndpointJudge]":
    from arena.endpoints.discover import reach
    from arena.endpoints.judging import EndpointJudge
    from arena.endpoints.pocket import PocketTransport
    from arena.endpoints.recorded import load_recordings
    from arena.settings import read_keys, read_settings

    roster, pocket = Roster((model,)), PocketTransport(speedup=math.inf)
    endpoints = reach(
        roster,
        read_keys(roster),
        load_recordings(roster),
        pocket,
        budgets=read_settings().budgets(),
    )
    try:
        yield EndpointJudge(endpoints, model)
    finally:
        await endpoints.aclose()


def _so_far(progress: "Progress") -> str:
    """Say what failed, and what was spent."""
    failed = [f", {n:,} {failure}" for failure, n in progress.failed.items()]
    spent = [] if progress.spent_usd is None else [f", ${progress.spent_usd:.2f}"]
    return "".join(failed + spent)


def _model(file: Path | None, judge: str | None) -> Model:
    from arena.endpoints.pocket import POCKET_JUDGE, POCKET_MODELS
    from arena.settings import read_roster

    models: tuple[Model, ...] = (
        *(read_roster(file, to_battle=False) if file else POCKET_MODELS),
        POCKET_JUDGE,
    )
    found = next((model for model in models if model.id == judge), None)
    if found is None:
        names = ", ".join(model.id for model in models)
        said = "name one of" if judge is None else f"there is no model {judge!r} in the roster;"
        msg = f"--judge: {said} {names}."
        raise SettingsError(msg)
    return found


def _method(typed: Typed) -> "Named":
    from judge.methods.named import method as named

    if typed.scale is not None and typed.method != "rubric":
        msg = f"--scale {typed.scale} is for --method rubric, not for {typed.method!r}."
        raise DataError(msg)
    text = None if typed.rubric is None else read_text(typed.rubric)
    return named(typed.method, rubric=text, scale=_scale(typed.scale or "1-10"))


def _scale(text: str) -> tuple[int, int]:
    low, _, high = text.partition("-")
    if not (low.strip().isdecimal() and high.strip().isdecimal()):
        msg = f"--scale {text!r} is no scale: give the lowest and the highest mark, as in 1-5."
        raise DataError(msg)
    return int(low), int(high)


def _margin(typed: Typed) -> int | None:
    if typed.method != "wildbench_reward":
        if typed.margin is not None:
            msg = f"--length-margin is for --method wildbench_reward, not for {typed.method!r}."
            raise DataError(msg)
        return None
    margin = MARGIN if typed.margin is None else typed.margin
    return None if margin < 0 else margin


def _cases(store: "Store", typed: Typed) -> "Sequence[NamedCase]":
    from arena.judging.battles import battle_cases, battle_responses
    from judge.methods.named import PAIRS
    from judge.tables.cases import read_cases, read_responses

    if not typed.cases:  # of a probe, which brings its own
        return []
    pairs = typed.method in PAIRS
    if list(typed.cases) == [ARENA]:
        return battle_cases(store) if pairs else battle_responses(store)
    paths = [Path(source) for source in typed.cases]
    with announced():
        return read_cases(paths) if pairs else read_responses(paths)


def _options(store: "Store", model: Model, typed: Typed) -> "Options":
    from arena.store.judging import judging_seed
    from arena.store.models import fingerprint
    from judge.options import Options
    from judge.throttle import RateLimits

    return Options(
        judge=f"{model.id}@{fingerprint(model)[:16]}",
        seed=typed.seed or judging_seed(store, datetime.now(UTC)),
        concurrency=typed.concurrency,
        swap_share=typed.swap_share,
        price=_price(model),
        limit_usd=typed.budget,
        limits=RateLimits(typed.requests_per_minute, typed.tokens_per_minute),
    )


def _price(model: Model) -> "Price | None":
    from judge.budget import Price

    price = model.price
    return None if price is None else Price(price.input, price.output, price.date)
