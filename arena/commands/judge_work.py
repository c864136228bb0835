"""What a judge is to do, as it is typed; and the judge itself."""

import asyncio
import gc
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractAsyncContextManager, ExitStack, closing, contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from cyclopts import Parameter
from cyclopts.validators import Number

from arena.commands.arguments import AS_IT_IS, Database, File, Flat, Renamed, RosterFile
from arena.domain.model import Model
from arena.errors import SettingsError
from arena.terminal import Advance, announced, say, working, write_json
from judge.methods import PAIRS, SINGLES
from rating.errors import DataError
from rating.sentences import plural
from rating.tables.files import Files, read_text
from rating.tables.peers import mention

if TYPE_CHECKING:
    from arena.endpoints.sse import Budgets
    from arena.judging import EndpointJudge
    from arena.store.judgements import StoredJournal
    from arena.store.store import Store
    from judge.budget import Estimate
    from judge.calls import Options, Terms
    from judge.case import Case
    from judge.methods import FileMethod
    from judge.protocol import Method
    from judge.runs import Progress
    from judge.tables.cases import NamedCase
    from judge.verdict import Run

ARENA = "arena"
"""What ``--cases`` calls the battles in the database."""
IFEVAL = "ifeval"
PROBED = tuple(name for name in PAIRS if name != "wildbench_reward")
"""Published methods that a probe can take."""
Probed = Annotated[
    str,
    Parameter(metavar="METHOD", help=f"Judging method: {', '.join(PROBED)}, or a method file."),
]

NEW_OBJECTS = 50_000
"""Made and not gone, before Python looks for cycles among them; its own number is 700.

With a hundred requests under way it would look all the time, for an eighth of the processor's:
what a run makes goes by itself, or stays to its end.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgeOptions:
    """The judge, and its limits.

    Attributes
    ----------
    judge : str or None
        Model id in the roster; openai/MODEL, anthropic/MODEL, openrouter/MODEL or ollama/MODEL;
        local/smollm2 (a small model on this machine); or pocket-judge (a toy). In `arena judge
        run`, several with commas or a group of the roster are a jury. Rule-based methods need
        none.
    budget : float or None
        Stop before the cost exceeds this amount.
    concurrency : int
        Maximum number of parallel requests.
    requests_per_minute : float or None
        Rate limit of the endpoint.
    tokens_per_minute : float or None
        Token rate limit of the endpoint.
    again : {"refused", "unparsed"} or None
        Ask again if the stored reply is a refusal, or cannot be parsed. By default it is reused.
    """

    judge: Annotated[str | None, Parameter(metavar="MODEL")] = None
    budget: Annotated[float | None, Parameter(metavar="USD")] = None
    concurrency: Annotated[int, Parameter(validator=Number(gte=1))] = 16
    requests_per_minute: float | None = None
    tokens_per_minute: float | None = None
    again: Literal["refused", "unparsed"] | None = None
    database: Database = None
    roster: RosterFile = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """The cases to judge, and the method.

    Attributes
    ----------
    cases : list of str
        File, folder or pattern of pairs or of answers; several files of outputs (repeat the
        option: the first is compared with each of the others); or `arena` for the battles of the
        database.
    rubric : Path or None
        File with the meaning of the scores, for the method rubric.
    scale : str or None
        Scale of the rubric; default 1-10.
    references : Path or None
        Reference answers for the judge instead of those of the cases, by prompt_id, such as
        FastChat's reference_answer/gpt-4.jsonl.
    swap_share : float or None
        Share of pairs judged in both orders; the others are judged in one random order. Default:
        that of the method.
    seed : str or None
        Replaces the database's secret as the seed for delimiters and orders, to reproduce calls
        elsewhere. Keep it secret: it lets others fake delimiters.
    """

    method: Annotated[
        str,
        Parameter(
            metavar="METHOD",
            help=f"Pairwise: {', '.join(PAIRS)}. Single answers: {', '.join(SINGLES)}, {IFEVAL}. "
            "Or the path of a method file (see `arena judge methods`).",
        ),
    ]
    cases: Annotated[Sequence[str], Parameter(metavar="SOURCE")]
    chosen: Annotated[Renamed, Flat] = AS_IT_IS
    rubric: File = None
    scale: Annotated[str | None, Parameter(metavar="LOW-HIGH")] = None
    references: File = None
    swap_share: Annotated[float | None, Parameter(metavar="SHARE")] = None
    seed: Annotated[str | None, Parameter(metavar="TEXT")] = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Seat:
    """A model that judges: the options of its run, its journal, and what its endpoint may send."""

    model: Model
    options: "Options"
    journal: "StoredJournal"
    budgets: "Budgets"


@dataclass(frozen=True, slots=True, kw_only=True)
class Work(Seat):
    """All that a run needs.

    Attributes
    ----------
    margin : int or None
        Length margin of WB-Reward, in characters; None for none.
    second : Seat or None
        Who is asked in the judge's place, if anybody.
    others : sequence of Seat
        Further judges of the same cases.
    warnings : sequence of str
        What was said of rows that are no cases.
    """

    cases: "Sequence[NamedCase]"
    method: "FileMethod"
    margin: int | None = None
    second: Seat | None = None
    others: Sequence[Seat] = ()
    warnings: Sequence[str] = ()


@contextmanager
def prepared(
    chosen: JudgeOptions,
    task: Task,
    margin: int | None = None,
    files: Sequence[Files] = (),
    *,
    second: str | None = None,
    probes: bool = False,
    several: bool = False,
) -> Iterator[Work]:
    """Open the database and read what the work needs; what goes wrong in it is bad input.

    Parameters
    ----------
    files : sequence of Files
        Read the cases from there, in place of what ``task.chosen`` makes of their names.
    second : str, optional
        Who is to be asked in the judge's place.
    probes : bool
        Whether a probe makes the cases, of pairs with nothing beside them.
    several : bool
        Whether the options may name several judges.

    Raises
    ------
    DataError, SettingsError
        If the options or the cases cannot be used.
    """
    from arena.settings import read_settings
    from arena.store.store import Store

    if probes:
        _require_bare(task)
    method = method_of(task.method, task.rubric, task.scale)
    if task.references is not None:
        require_references(method.name, method)
    share = method.swap_share if task.swap_share is None else task.swap_share
    settings = read_settings(database=chosen.database, roster=chosen.roster)
    names = _judges(settings.roster, chosen.judge) if several else (chosen.judge,)
    every = [*names, second]
    if len(names) > 1 and "" in names:
        raise DataError(f"--judge {chosen.judge!r} has an empty name.")
    if len(names) > 1 and (twice := [name for name in every if every.count(name) > 1]):
        raise DataError(f"{twice[0]!r} is named twice as a judge: name it once.")
    model = roster_model(settings.roster, names[0], "--judge")
    warnings: list[str] = []

    def warn(words: str) -> None:
        warnings.append(words)
        mention(words)

    with announced(), closing(Store(settings.database)) as store:
        pairs = method.pairwise or probes
        budgets = settings.budgets()
        first = seat_of(store, model, chosen, budgets, task.seed, share)
        beside = partial(
            second_judge, store, settings.roster, chosen, budgets, method, task.seed, share
        )
        work = Work(
            model=model,
            options=first.options,
            journal=first.journal,
            budgets=budgets,
            method=method,
            cases=_cases(store, task, files, warn, pairs=pairs, turns=method.reads_turns),
            warnings=warnings,
            margin=margin_of(method, margin),
            second=beside(second),
            others=[seat for name in names[1:] if (seat := beside(name, "--judge"))],
        )
        _require_images(work)
        yield work


def _judges(roster: Path | None, given: str | None) -> tuple[str | None, ...]:
    """Give the names of the judges that are meant: of a group of the roster, or between commas."""
    if given is None:
        return (None,)
    group = tuple(one.id for one in roster_models(roster) if one.judging.group == given)
    return group or tuple(name.strip() for name in given.split(","))


def _require_images(work: Work) -> None:
    """Raise `DataError` where another judge could not be asked: better before it is needed."""
    beside = [("--fallback-judge", work.second)] + [("--judge", seat) for seat in work.others]
    for option, seat in beside:
        if seat is None or seat.model.judging.images:
            continue
        if any(named.case.images for named in work.cases):
            raise DataError(
                f"{option} {seat.model.id!r}: some cases have images, and the roster does not "
                "state that this model accepts them: write judging = { images = true } in its "
                "entry."
            )


def second_judge(
    store: "Store",
    roster: Path | None,
    chosen: JudgeOptions,
    budgets: "Budgets",
    method: "FileMethod | None",
    seed: str | None,
    swap_share: float,
    name: str | None,
    option: str = "--fallback-judge",
) -> Seat | None:
    """Give a further judge, with a journal of its own.

    Raises
    ------
    DataError, SettingsError
        If it is the judge itself, is not in the roster, has no price where a budget counts it, or
        is known to lack what the method reads.
    """
    if name is None or method is None:
        return None
    if name == chosen.judge:
        raise DataError(f"{option} {name!r} is the judge itself: name another, or omit it.")
    model = roster_model(roster, name, option)
    if chosen.budget is not None and model.price is None:
        msg = f"--budget counts dollars, and {name!r} has no price in the roster: add it."
        raise DataError(msg)
    seat = seat_of(store, model, chosen, budgets, seed, swap_share)
    if lack := seat.options.lack(method):
        raise DataError(f"{option} {name!r}: {lack}")
    return seat


def show_estimate(work: Work, form: str | None) -> None:
    """Show what the work would ask, of each judge."""
    from judge.runs import forecast_all

    estimates = {
        seat.model.id: asyncio.run(
            forecast_all(work.cases, work.method, seat.journal, seat.options)
        )
        for seat in (work, *work.others)
    }
    if form == "json":
        each = {name: one.to_dict() for name, one in estimates.items()}
        write_json({"judges": each} if work.others else each[work.model.id])
        return
    for name, estimate in estimates.items():
        say(f"{name}: {in_words(estimate)}" if work.others else in_words(estimate))


def in_words(estimate: "Estimate") -> str:
    """Describe what is still to be asked, and what it will cost."""
    usd = estimate.cost_usd
    cost = "at an unknown price" if usd is None else f"for about ${usd:.2g}"
    known = (
        f"calibrated on {estimate.calibration.n:,} stored replies"
        if estimate.calibration.n
        else "estimated from characters"
    )
    return (
        f"{plural(estimate.n_calls, 'call')}, about {_rounded(estimate.tokens_in)} tokens in and "
        f"{_rounded(estimate.tokens_out)} out, {cost} ({known})."
    )


def _rounded(tokens: float) -> str:
    """Write an estimate with the two digits that it is good for."""
    return f"{float(f'{tokens:.2g}'):,.0f}"


def done(work: Work) -> "Run":
    """Let the judge work, and show how far it is."""
    gc.set_threshold(NEW_OBJECTS, *gc.get_threshold()[1:])
    return judged_by(work, "Judging", work.cases, work.method)


def judged_by(seat: Seat, title: str, cases: "Sequence[NamedCase]", method: "FileMethod") -> "Run":
    """Let a judge take cases, and show under a title how far it is."""
    from arena.settings import read_settings
    from judge.runs import at_work, judge_all

    journal, options = seat.journal, seat.options
    with ExitStack() as ending:
        events = None
        if read_settings().otel:
            from arena.logs import Telemetry

            events = ending.enter_context(closing(Telemetry()))
        advance = ending.enter_context(working(title))
        run = at_work(
            opened(seat.model, seat.budgets, options.terms),
            lambda judge: judge_all(cases, method, judge, journal, options, progress_of(advance)),
        )
        if events is not None:
            events.verdicts(method.name, seat.model.id, run.judged)
    return run


def asked_of(
    store: "Store",
    model: Model,
    cases: "Sequence[Case]",
    method: "Method",
    chosen: JudgeOptions,
    budgets: "Budgets",
) -> "tuple[Run, StoredJournal]":
    """Ask a model about cases what its journal does not hold yet; gives the journal, too."""
    from judge.runs import at_work, run

    seat = seat_of(store, model, chosen, budgets)
    with working(f"Asking {model.id}") as advance:
        result = at_work(
            opened(model, budgets, seat.options.terms),
            lambda complete: run(
                cases,
                method,
                complete,
                seat.journal,
                seat.options,
                progress=lambda now: advance(now.n_done, now.n_total),
            ),
        )
    return result, seat.journal


def progress_of(advance: Advance) -> Callable[["Progress"], None]:
    """Show the progress of a run on a bar."""
    return lambda progress: advance(progress.n_done, progress.n_total, _so_far(progress))


def opened(
    model: Model, budgets: "Budgets", terms: "Terms | None" = None
) -> "AbstractAsyncContextManager[EndpointJudge]":
    """Open the endpoint of a model, with its key from the environment."""
    from arena.judging import ModelEndpoint
    from arena.settings import read_keys

    return ModelEndpoint(model, read_keys([model]), budgets).opened(terms)


def _so_far(progress: "Progress") -> str:
    """Describe what failed, and what was spent."""
    failed = [f", {n:,} {failure}" for failure, n in progress.failed.items()]
    spent = [] if progress.spent_usd is None else [f", ${progress.spent_usd:.2f}"]
    return "".join(failed + spent)


def roster_models(file: Path | None) -> tuple[Model, ...]:
    """Give the models of a roster; without one the toys."""
    from arena.endpoints.offline import POCKET_MODELS
    from arena.settings import read_roster

    return tuple(read_roster(file, to_battle=False)) if file else POCKET_MODELS


def roster_model(file: Path | None, name: str | None, option: str) -> Model:
    """Give a model of a roster, a built-in judge, or what a server or provider offers.

    Raises
    ------
    SettingsError
        If there is no such model.

    Parameters
    ----------
    option : str
        That names the model, for the error.
    """
    from arena.endpoints.local import JUDGE
    from arena.endpoints.offline import POCKET_JUDGE
    from arena.endpoints.trial import discover
    from arena.settings import provider_model, read_servers

    models = (*roster_models(file), POCKET_JUDGE, JUDGE)
    model = next((model for model in models if model.id == name), None)
    if model is None:
        local = asyncio.run(discover(read_servers()))
        models = (*models, *local)
        model = next((model for model in local if name in (model.id, model.model)), None)
        model = model or provider_model(name or "")
    if model is None:
        names = ", ".join(model.id for model in models)
        what = "name one of" if name is None else f"there is no model {name!r} in the roster;"
        raise SettingsError(f"{option}: {what} {names}.")
    return model


def method_of(name: str, rubric: Path | None, scale: str | None) -> "FileMethod":
    """Give a method, with the text of a rubric and a scale such as 1-10 where they are given.

    Raises
    ------
    DataError
        If there is no such method, or the scale is none.
    """
    from judge.methods import method as named

    marks = None
    if scale is not None:
        low, _, high = scale.partition("-")
        if not (low.strip().isdecimal() and high.strip().isdecimal()):
            raise DataError(f"--scale {scale!r} is not a scale: give its ends, such as 1-5.")
        marks = int(low), int(high)
    return named(name, rubric=None if rubric is None else read_text(rubric), scale=marks)


def require_references(name: str, method: "FileMethod | None") -> None:
    """Raise `DataError` for a method that shows no reference answers."""
    if method is None or "reference" not in method.fields:
        raise DataError(f"--references is for methods such as mt_bench, not for {name!r}.")


def _require_bare(task: Task) -> None:
    """Raise `DataError` for a method that needs more than answers to a prompt, and a rubric."""
    from judge.methods import method_file

    method = method_file(task.method)
    beside = {"checklist"} if method.pairwise else set()
    beside |= {"rubric"} if task.rubric is None else set()
    if beside & {*method.fields}:
        raise DataError(
            f"A probe asks about answers alone, and the method {method.name!r} needs further "
            f"input: choose one of {', '.join(PROBED)}, or a file of your own; judge probe takes "
            "a rubric with --rubric."
        )


def margin_of(method: "FileMethod", margin: int | None) -> int | None:
    """Give the length margin, None for none; raises `DataError` where the method has none."""
    if method.length_margin is None:
        if margin is not None:
            raise DataError(
                f"--length-margin {margin} is for methods that have one, such as "
                f"wildbench_reward, not for {method.name!r}."
            )
        return None
    margin = method.length_margin if margin is None else margin
    return None if margin < 0 else margin


def _cases(
    store: "Store",
    task: Task,
    files: Sequence[Files],
    warn: Callable[[str], None],
    *,
    pairs: bool,
    turns: bool,
) -> "Sequence[NamedCase]":
    from arena.judging import battle_cases, battle_responses
    from judge.tables.cases import each_pair, each_response_in, on_disk
    from judge.tables.items import read_references, with_references

    if not task.cases:  # of a probe, which brings its own
        return []
    if list(task.cases) == [ARENA]:
        if task.references is not None:
            raise DataError(
                "--references is matched by the prompt_id of a file of cases, not by battles."
            )
        return battle_cases(store) if pairs else battle_responses(store)
    tables = files or [task.chosen.cases(source) for source in task.cases]
    read = each_pair if pairs else each_response_in
    rows = read(tables, turns=turns, warn=warn)
    if task.references is not None:
        rows = with_references(rows, read_references(task.references), str(task.references))
    return on_disk(rows)


def seat_of(
    store: "Store",
    model: Model,
    chosen: JudgeOptions,
    budgets: "Budgets",
    seed: str | None = None,
    swap_share: float = 1.0,
) -> Seat:
    """Let a model judge; the secret of its run is the database's if none is given."""
    from arena.judging import former_revision_of, journal_of, revision_of, terms_of
    from arena.store.judgements import judging_seed
    from judge.calls import AGAIN, Options, RateLimits

    revision, former = revision_of(model), former_revision_of(model)
    journal = journal_of(store, revision, model.price)
    options = Options(
        judge=revision,
        formerly=former if journal.holds(former) else None,
        seed=seed or judging_seed(store, datetime.now(UTC)),
        concurrency=chosen.concurrency,
        swap_share=swap_share,
        price=model.price,
        limit_usd=chosen.budget,
        limits=RateLimits(chosen.requests_per_minute, chosen.tokens_per_minute),
        again=AGAIN[chosen.again] if chosen.again else frozenset(),
        terms=terms_of(model, journal),
    )
    return Seat(model=model, options=options, journal=journal, budgets=budgets)
