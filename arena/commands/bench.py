"""`arena bench`: run a benchmark of models, judged by another model or by rules.

`bench` reads its options from the command line or a file (`_BenchOptions`), `_prepared` reads all
that it needs before anything is paid for, and `_Desk` asks models and then the judge, within the
budget, and keeps what they answer in the database.
"""

import asyncio
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, field, fields, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Parameter

from arena.commands.arguments import Database, File, Flat, RosterFile, TableOrJson, names
from arena.commands.judge import on_fallback, with_second
from arena.commands.judge_work import (
    IFEVAL,
    JudgeOptions,
    Seat,
    in_words,
    judged_by,
    margin_of,
    method_of,
    opened,
    progress_of,
    require_references,
    roster_model,
    seat_of,
    second_judge,
)
from arena.domain.model import Model
from arena.domain.vote import attributes
from arena.errors import SettingsError
from arena.terminal import (
    announced,
    interval,
    plain,
    say,
    show,
    stop,
    table,
    warnings,
    working,
    write_json,
)
from rating.errors import DataError
from rating.sentences import plural
from rating.tables.files import Files, parsed_toml, read_text

if TYPE_CHECKING:
    from arena.endpoints.sse import Budgets
    from arena.store.store import Store
    from judge.bench import Control, Given
    from judge.budget import Estimate
    from judge.calls import Key
    from judge.case import Parameters, Reply
    from judge.methods import FileMethod
    from judge.tables.items import Item, Turns
    from judge.tables.verdicts import Benched
    from judge.verdict import Run


# Options


@dataclass(frozen=True, slots=True, kw_only=True)
class _BenchOptions:
    """Options of a benchmark, on the command line or in a file.

    Attributes
    ----------
    items : str or None
        Prompts: the file of the benchmark, or columns prompt and optionally id, checklist,
        reference.
    where : str or None
        Use only items that satisfy this SQL condition, such as category = 'hard_prompt'.
    models : tuple of str or None
        Models of the leaderboard, separated by commas: from the roster, or recorded.
    answers : list of str or None
        Recorded answers: AlpacaEval outputs, WildBench results, FastChat or Arena-Hard model
        answers, or columns prompt, response, model; repeatable.
    baseline : str or None
        Baseline of pairwise comparisons; by default the answers in the items, or the upstream
        baseline.
    judge : str or None
        Model id in the roster, or pocket-judge (a toy); not used by ifeval.
    budget : float or None
        Stop before the cost of answers and verdicts exceeds this amount.
    max_tokens : int or None
        Maximum number of tokens per answer; by default that of the roster (4096).
    rubric : Path or None
        File with the meaning of the scores, for the method rubric.
    scale : str or None
        Scale of the rubric; default 1-10.
    length_margin : int or None
        wildbench_reward: a slight win by an answer that is longer by more than this many
        characters is a tie; default 500, negative for never.
    swap_share : float or None
        Share of pairs judged in both orders; the others are judged in one random order. Default:
        that of the method.
    difficulties : Path or None
        alpaca_eval: published difficulty of each instruction, for length control.
    regularisation : Path or None
        alpaca_eval: rows of gamed baselines, for length control.
    references : Path or None
        Reference answers for the judge, such as FastChat's reference_answer/gpt-4.jsonl; for
        MT-bench, used for math, reasoning and coding only.
    fallback_judge : str or None
        Model in the roster that replaces the judge when its endpoint fails or it refuses a case.
    concurrency : int or None
        Maximum number of parallel requests; default 16.
    requests_per_minute : float or None
        Rate limit of each endpoint.
    tokens_per_minute : float or None
        Token rate limit of each endpoint.
    seed : str or None
        Seed for delimiters instead of the database's secret.
    out : Path or None
        Output folder.
    """

    items: Annotated[str | None, Parameter(metavar="FILE")] = None
    where: Annotated[str | None, Parameter(metavar="SQL")] = None
    models: Annotated[tuple[str, ...] | None, Parameter(metavar="A,B,C", converter=names)] = None
    answers: Annotated[Sequence[str] | None, Parameter(metavar="FILE")] = None
    baseline: Annotated[str | None, Parameter(metavar="MODEL")] = None
    judge: Annotated[str | None, Parameter(metavar="MODEL")] = None
    budget: Annotated[float | None, Parameter(metavar="USD")] = None
    max_tokens: int | None = None
    rubric: File = None
    scale: Annotated[str | None, Parameter(metavar="LOW-HIGH")] = None
    length_margin: Annotated[int | None, Parameter(metavar="K")] = None
    swap_share: Annotated[float | None, Parameter(metavar="SHARE")] = None
    difficulties: File = None
    regularisation: File = None
    references: File = None
    fallback_judge: Annotated[str | None, Parameter(metavar="MODEL")] = None
    concurrency: int | None = None
    requests_per_minute: float | None = None
    tokens_per_minute: float | None = None
    seed: Annotated[str | None, Parameter(metavar="TEXT")] = None
    database: Database = None
    roster: RosterFile = None
    out: Annotated[Path | None, Parameter(metavar="FOLDER")] = None


def _as_typed(method: str, options: _BenchOptions) -> tuple[str, _BenchOptions]:
    """Take a bench from its file, if there is one; what the command line says stands before it."""
    if not method.endswith(".toml"):
        return method, options
    path = Path(method)
    content = parsed_toml(read_text(path), repr(str(path)))
    if "items" not in content and options.items is not None:
        return method, options  # a method of one's own
    values = {name: _value(path, name, value) for name, value in content.items()}
    named = values.pop("method", None)
    if named is None:
        msg = f"{str(path)!r} has no key 'method': name one, such as method = \"alpaca_eval\"."
        raise DataError(msg)
    given = {one.name: getattr(options, one.name) for one in fields(options)}
    typed = {name: value for name, value in given.items() if value is not None}
    return named, replace(_BenchOptions(**values), **typed)


def _text(value: Any) -> str | None:
    return value if isinstance(value, str) and value.strip() else None


def _texts(value: Any) -> tuple[str, ...] | None:
    if isinstance(value, str):
        value = list(dict.fromkeys(filter(None, map(str.strip, value.split(",")))))
    whole = isinstance(value, list) and value and all(map(_text, value))
    return tuple(value) if whole else None


def _number(value: Any) -> float | None:
    is_finite = type(value) in (int, float) and -sys.float_info.max <= value <= sys.float_info.max
    return value if is_finite else None


_TEXT, _NUMBER, _WHOLE = (
    (_text, "a text"),
    (_number, "a number"),
    (lambda value: value if type(value) is int else None, "a whole number"),
)
_TEXTS = (_texts, "a list of texts")
_FILES = ("items", "rubric", "roster", "out", "difficulties", "regularisation", "references")
"""Keys of files, which lie beside the bench's."""
KEYS: Mapping[str, tuple[Callable[[Any], Any], str]] = {
    **dict.fromkeys(("method", "baseline", "judge", "fallback_judge", "where"), _TEXT),
    **dict.fromkeys((*_FILES, "scale", "seed", "database"), _TEXT),
    **dict.fromkeys(("models", "answers"), _TEXTS),
    **dict.fromkeys(("budget", "requests_per_minute", "tokens_per_minute", "swap_share"), _NUMBER),
    **dict.fromkeys(("max_tokens", "length_margin", "concurrency"), _WHOLE),
}
"""Keys of a bench's file, how each is read, and what it may be."""


def _value(path: Path, name: str, value: Any) -> Any:
    if name not in KEYS:
        msg = f"{str(path)!r}: there is no key {name!r} (with {value!r}): use {', '.join(KEYS)}."
        raise DataError(msg)
    read, wanted = KEYS[name]
    result = read(value)
    if result is None:
        raise DataError(f"{str(path)!r}: the key {name!r} is {wanted}, not {value!r}.")
    if name == "answers":
        return [str(path.parent / one) for one in result]
    if name not in _FILES:
        return result
    file = path.parent / result
    return str(file) if name == "items" else file


# Answers and verdicts

MAX_TOKENS = 4096
"""Most tokens of an answer, where neither the roster nor the command states how many."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Bench:
    """All that a bench needs.

    Attributes
    ----------
    method : FileMethod or None
        None of IFEval, which no judge reads.
    models : tuple of str
        Whom the leaderboard is of.
    baseline : str or None
        Whom they are compared with.
    known : mapping
        Recorded answers, by model and by the item's name.
    asked : mapping of str to Model
        The models of the roster that give the answers that are missing.
    swap_share : float
        Share of the pairs to ask in both orders.
    control : tuple
        Difficulties and gamed baselines for the length control, or None for each.
    fallback_judge : str or None
        Who judges in the judge's place where that cannot be asked or will not answer.
    margin : int or None
        Length margin of WB-Reward.
    """

    name: str
    items: "Sequence[Item]"
    method: "FileMethod | None"
    models: tuple[str, ...]
    baseline: str | None
    known: "Mapping[str, Mapping[str, Turns]]"
    asked: Mapping[str, Model]
    judge: Model | None
    options: JudgeOptions
    seed: str | None = None
    swap_share: float = 1.0
    fallback_judge: str | None = None
    control: "Control" = (None, None)
    max_tokens: int | None = None
    margin: int | None = None

    @property
    def sides(self) -> tuple[str, ...]:
        """Everybody whose answers are needed."""
        return tuple(dict.fromkeys([*self.models, *([self.baseline] if self.baseline else [])]))

    def due(self, name: str) -> "list[Item]":
        """Give the items of which a model's answer is not recorded."""
        known = self.known.get(name, {})
        return [item for item in self.items if item.id not in known]

    def parameters(self, model: Model) -> "Parameters":
        """Give the most tokens of an answer; all else of its decoding is the roster's."""
        from judge.case import Parameters

        own = model.decoding.get("max_tokens")
        return Parameters(max_tokens=self.max_tokens or (own if type(own) is int else MAX_TOKENS))


@dataclass(frozen=True, slots=True, kw_only=True)
class _Played:
    """What came of a bench.

    Attributes
    ----------
    given : mapping
        What models said when they were asked, by model.
    run : Run or None
        The judge's; None where there was no judge, or it was not reached.
    replies : mapping
        The judge's replies.
    handed_over : mapping of str to int
        Cases for the fallback judge, by what became of them at the judge.
    why : str
        Why it stopped; empty where it came to its end.
    """

    given: "Mapping[str, Sequence[Given]]"
    cases: "Sequence[Benched]"
    missing: Mapping[str, int]
    run: "Run | None" = None
    replies: "Mapping[Key, Reply]" = field(default_factory=dict)
    handed_over: Mapping[str, int] = field(default_factory=dict)
    why: str = ""
    n_asked: int = 0
    n_recalled: int = 0
    spent_usd: float | None = None


@contextmanager
def at_desk(bench: Bench, database: str | None, roster: Path | None) -> "Iterator[_Desk]":
    """Open the database in which answers and verdicts are kept."""
    from arena.settings import read_settings
    from arena.store.store import Store

    settings = read_settings(database=database, roster=roster)
    with announced(), closing(Store(settings.database)) as store:
        budgets = settings.budgets()
        second = second_judge(
            store,
            settings.roster,
            bench.options,
            budgets,
            bench.method,
            bench.seed,
            bench.swap_share,
            bench.fallback_judge,
        )
        yield _Desk(bench, store, budgets, second)


class _Desk:
    """Asks on behalf of one bench, within what is left of its budget."""

    def __init__(
        self, bench: Bench, store: "Store", budgets: "Budgets", second: Seat | None
    ) -> None:
        self._bench, self._store, self._budgets = bench, store, budgets
        self._second = second
        self.spent_usd: float | None = None
        """What answers and verdicts cost so far."""
        self.n_asked = self.n_recalled = 0

    def estimate(self) -> "tuple[dict[str, Estimate], Estimate | None]":
        """Estimate what is still to be asked of each model, and of the judge."""
        from judge.bench import contest, forecast_answers, recalled_answers, with_stand_ins
        from judge.runs import forecast_all

        bench, answers = self._bench, {name: dict(own) for name, own in self._bench.known.items()}
        of_models = {}
        for name, model in bench.asked.items():
            due, parameters = bench.due(name), bench.parameters(model)
            seat = self._seat(model)
            asked = (due, parameters, seat.journal, seat.options)
            of_models[name] = asyncio.run(forecast_answers(*asked))
            in_journal = asyncio.run(recalled_answers(*asked))
            answers[name] = {**answers.get(name, {}), **in_journal}
        if bench.method is None or bench.judge is None:
            return of_models, None
        filled = {**answers, **with_stand_ins(bench.items, [*bench.asked], answers)}
        cases = contest(bench.method, bench.items, bench.models, bench.baseline, filled)[0]
        seat, named = self._seat(bench.judge), [case.named for case in cases]
        estimate = forecast_all(named, bench.method, seat.journal, seat.options)
        return of_models, asyncio.run(estimate)

    def answer(self) -> "tuple[dict[str, Sequence[Given]], str]":
        """Let models answer what is not recorded; gives the answers, and why it stopped if so."""
        given: dict[str, Sequence[Given]] = {}
        for name, model in self._bench.asked.items():
            given[name], run = self._answered(name, model)
            if run.stopped is not None:
                return given, f"{name}: {run.why}"
        return given, ""

    def play(self) -> _Played:
        """Let models answer, and the judge judge."""
        from judge.bench import contest

        bench, answers = self._bench, {name: dict(own) for name, own in self._bench.known.items()}
        given, why = self.answer()
        for name, every in given.items():
            own = {one.item.id: one.texts for one in every if one.whole}
            answers[name] = {**answers.get(name, {}), **own}
        cases, missing = contest(bench.method, bench.items, bench.models, bench.baseline, answers)
        played = _Played(given=given, cases=cases, missing=missing, why=why)
        if not why and bench.method is not None and bench.judge is not None:
            played = self._judged(bench.judge, bench.method, played)
        return replace(
            played, n_asked=self.n_asked, n_recalled=self.n_recalled, spent_usd=self.spent_usd
        )

    def _answered(self, name: str, model: Model) -> "tuple[Sequence[Given], Run]":
        from judge.bench import answered
        from judge.runs import at_work

        due, parameters = self._bench.due(name), self._bench.parameters(model)
        seat = self._seat(model)
        with working(f"{name} answers") as advance:
            given, run = at_work(
                opened(model, self._budgets, seat.options.terms),
                lambda complete: answered(
                    due, parameters, complete, seat.journal, seat.options, progress_of(advance)
                ),
            )
        self._count(run)
        return given, run

    def _judged(self, model: Model, method: "FileMethod", played: _Played) -> _Played:
        from judge.methods import margined
        from judge.runs import reasons
        from judge.tables.verdicts import total

        named, seat = [case.named for case in played.cases], self._seat(model)
        run = first = judged_by(seat, "Judging", named, method)
        if self._second is not None:
            spent = total([self.spent_usd, first.spent_usd])
            run = with_second(first, self._second, named, method, spent)
        keys = [key for row in run.judged for key in row.keys]
        replies = asyncio.run(seat.journal.recall(keys))
        self._count(run)
        if self._bench.margin is not None:
            cases = {one.case.id: one.case for one in named}
            run = replace(run, judged=margined(run.judged, cases, self._bench.margin))
        return replace(
            played,
            run=run,
            replies=replies,
            handed_over={} if run is first else reasons(first),
            why=run.why if run.stopped else "",
        )

    def _seat(self, model: Model) -> Seat:
        """Give a model its journal, with what is left of the budget."""
        bench = self._bench
        seat = seat_of(
            self._store, model, bench.options, self._budgets, bench.seed, bench.swap_share
        )
        if (limit := seat.options.limit_usd) is None:
            return seat
        left = max(limit - (self.spent_usd or 0), 0.0)
        return replace(seat, options=replace(seat.options, limit_usd=left))

    def _count(self, run: "Run") -> None:
        self.n_asked += run.n_asked
        self.n_recalled += run.n_recalled
        if run.spent_usd is not None:
            self.spent_usd = (self.spent_usd or 0.0) + run.spent_usd


def cast(
    names: Sequence[str], known: Mapping[str, Any], items: int, roster: Path | None, option: str
) -> dict[str, Model]:
    """Give the models that are to be asked: those of the roster, unless all is recorded.

    Parameters
    ----------
    items : int
        How many there are.
    option : str
        That names the models, for the error.

    Raises
    ------
    DataError, SettingsError
        If a name is neither in the roster nor in the recorded answers.
    """
    asked = {}
    for name in names:
        own = known.get(name, {})
        if len(own) == items:
            continue
        try:
            asked[name] = roster_model(roster, name, option)
        except SettingsError:
            if not own:
                raise
    return asked


def require_prices(asked: Mapping[str, Model], judge: Model | None) -> None:
    """Raise `DataError` unless everybody who is asked has a price: a budget counts it."""
    everybody = [*asked.values(), *([judge] if judge else [])]
    if unknown := [model.id for model in everybody if model.price is None]:
        msg = f"--budget counts dollars, and {unknown[0]!r} has no price in the roster: add it."
        raise DataError(msg)


def _judged_by(name: str, judge: str | None, roster: Path | None) -> Model | None:
    """Give the judge; none of IFEval, which goes by rules.

    Raises
    ------
    DataError, SettingsError
        If there is none in the roster, or one has no use.
    """
    if name != IFEVAL:
        return roster_model(roster, judge, "--judge")
    if judge is not None:
        raise DataError(f"ifeval uses no judge: omit --judge {judge}.")
    return None


# Command


def bench(
    method: str,
    /,
    *,
    options: Annotated[_BenchOptions, Flat] = _BenchOptions(),
    dry_run: bool = False,
    form: TableOrJson = "table",
) -> None:
    """Run a benchmark: generate missing answers, judge them, and print a leaderboard.

    Models of the roster generate missing answers. The judge compares each answer with the
    baseline, or scores it. The leaderboard is that of `arena judge score`. Replies are stored in
    the database, so that an interrupted run resumes: no stored reply is paid for again.
    Exit code 1: stopped before the end.

    Parameters
    ----------
    method
        alpaca_eval, wildbench, wildbench_reward, arena_hard, mt_bench, ifeval, rubric, pairwise or
        another method of `arena judge run`, including a method file; or a TOML file with the
        method and all options.
    dry_run
        Only show the number of requests and their cost.
    form
        Output format.

    Examples
    --------
    arena bench bench.toml
    arena bench bench.toml --models pocket-retrieval --dry-run
    """
    from judge.bench import require_folder

    chosen_method, chosen = _as_typed(method, options)
    prepared = _prepared(chosen_method, chosen)
    if not dry_run:
        if chosen.out is None:
            msg = "Name the folder for the results with --out, or ask for the cost with --dry-run."
            raise DataError(msg)
        require_folder(chosen.out)
    with at_desk(prepared, chosen.database, chosen.roster) as desk:
        if dry_run or chosen.out is None:
            _show_estimate(*desk.estimate(), prepared, form)
            return
        played = desk.play()
    _show(_report(prepared, played, chosen.out), form)


def _prepared(method: str, chosen: _BenchOptions) -> Bench:
    """Read what a bench needs, before anything is paid for."""
    from arena.settings import read_settings
    from judge.bench import ALIASES, baseline_answers, baseline_of
    from judge.tables.items import answer_to, read_answers, read_items, read_references, referred

    if chosen.items is None or not chosen.models:
        missing = "the prompts with --items" if chosen.items is None else "models with --models"
        raise DataError(f"The bench {method!r} needs prompts and models: name {missing}.")
    roster = read_settings(database=chosen.database, roster=chosen.roster).roster
    name = ALIASES.get(method, method)
    asked_by = None if name == IFEVAL else method_of(name, chosen.rubric, chosen.scale)
    judge = _judged_by(name, chosen.judge, roster)
    with announced():
        items = read_items(Files((chosen.items,), where=chosen.where))
        recorded = read_answers(chosen.answers or ())
        if chosen.references is not None:
            require_references(name, asked_by)
            items = referred(items, read_references(chosen.references))
    _require_turns(name, asked_by, items)
    known = {
        model: {item.id: texts for item in items if (texts := answer_to(item, own)) is not None}
        for model, own in recorded.items()
    }
    baseline = None
    if asked_by is not None and asked_by.pairwise:
        with announced():
            baseline = baseline_of(name, chosen.baseline, items, [*known, *chosen.models])
        known[baseline] = baseline_answers(baseline, items) | known.get(baseline, {})
    elif chosen.baseline is not None:
        raise DataError(
            f"--baseline {chosen.baseline!r} is for methods of pairs; {method} marks single ones."
        )
    models = tuple(one for one in chosen.models if one != baseline)
    if not models:
        msg = f"{baseline!r} is the baseline, and no other model is named with --models."
        raise DataError(msg)
    if asked_by is None and chosen.length_margin is not None:
        msg = f"--length-margin {chosen.length_margin} is for methods that have one, such as "
        raise DataError(msg + "wildbench_reward.")
    asked = cast(models, known, len(items), roster, "--models")
    if baseline is not None:
        asked |= cast([baseline], known, len(items), roster, "--baseline")
    if chosen.budget is not None:
        require_prices(asked, judge)
    return Bench(
        name=method,
        items=items,
        method=asked_by,
        models=models,
        baseline=baseline,
        known=known,
        asked=asked,
        judge=judge,
        options=JudgeOptions(
            **attributes(chosen, "judge", "budget", "database", "roster"),
            **attributes(chosen, "requests_per_minute", "tokens_per_minute"),
            concurrency=16 if chosen.concurrency is None else chosen.concurrency,
        ),
        seed=chosen.seed,
        swap_share=_swap_share(asked_by, chosen.swap_share),
        fallback_judge=chosen.fallback_judge,
        control=_control(asked_by, chosen, items),
        max_tokens=chosen.max_tokens,
        margin=None if asked_by is None else margin_of(asked_by, chosen.length_margin),
    )


def _swap_share(method: "FileMethod | None", share: float | None) -> float:
    from judge.calls import require_share

    if method is None or not method.pairwise:
        if share is not None:
            raise DataError(
                f"--swap-share {share} is for methods of pairs, which have two orders."
            )
        return 1.0
    share = method.swap_share if share is None else share
    require_share(share)
    return share


def _control(
    method: "FileMethod | None", chosen: _BenchOptions, items: "Sequence[Item]"
) -> "Control":
    """Read what the length control goes by, under the items' own names."""
    from judge.tables.items import of_items, read_difficulties, read_regularisation

    if chosen.difficulties is None and chosen.regularisation is None:
        return None, None
    if method is None or method.score != "alpaca_eval":
        raise DataError(
            "--difficulties and --regularisation are for the length control of alpaca_eval, not "
            f"for {method and method.name!r}."
        )
    if chosen.difficulties is None:
        raise DataError(
            f"--regularisation {str(chosen.regularisation)!r} needs the difficulties of "
            "AlpacaEval's instructions: give them with --difficulties."
        )
    gamed = chosen.regularisation
    block = None if gamed is None else read_regularisation(gamed)
    return of_items(read_difficulties(chosen.difficulties), block, items)


def _require_turns(name: str, method: "FileMethod | None", items: "Sequence[Item]") -> None:
    """Raise `DataError` for items of several turns under a method that shows one."""
    if method is not None and {"turns_a", "turns_b"} & {*method.fields}:
        return
    several = next((item for item in items if item.further), None)
    if several is not None:
        raise DataError(
            f"The item {several.id!r} has {len(several.further) + 1} turns, and {name} shows one: "
            "choose a method with turns_a, such as mt_bench."
        )


def _show_estimate(
    of_models: Mapping[str, "Estimate"], judging: "Estimate | None", bench: Bench, form: str
) -> None:
    """Show what would be asked for answers, and for verdicts."""
    parts = [*of_models.values(), *([judging] if judging else [])]
    costs = [part.cost_usd for part in parts]
    known = [cost for cost in costs if cost is not None]
    recorded = {name: len(bench.known.get(name, {})) for name in bench.sides}
    report = {
        "method": bench.name,
        "n_calls": sum(part.n_calls for part in parts),
        "cost_usd": sum(known) if len(known) == len(costs) else None,
        "answers": {name: part.to_dict() for name, part in of_models.items()},
        "judging": judging and judging.to_dict(),
        "recorded": recorded,
    }
    if form == "json":
        write_json(report)
        return
    for name, n in recorded.items():
        say(f"{name}: {n:,} of {len(bench.items):,} answers are recorded.")
    for name, part in of_models.items():
        say(f"Answers of {name}: {in_words(part)}")
    if judging is not None:
        say(f"Judging: {in_words(judging)}")


def _report(bench: Bench, played: _Played, out: Path) -> dict[str, Any]:
    """Write what came out, and say it: no leaderboard before all is judged."""
    from judge.bench import (
        failures,
        leaderboard,
        on_order,
        order_of,
        write_answers,
        write_leaderboard,
        write_results,
    )
    from judge.report.page import fallback_of
    from judge.report.run import differences, repeats

    write_answers(played.given, out)
    rows, kinds = _rows(bench, played)
    status = {
        "method": bench.name,
        "judge": None if bench.judge is None else bench.judge.id,
        "baseline": bench.baseline,
        "items": len(bench.items),
        "n_asked": played.n_asked,
        "n_recalled": played.n_recalled,
        "spent_usd": played.spent_usd,
        "failures": failures(rows, played.given),
        "missing": {name: n for name, n in played.missing.items() if n},
        "stopped": played.why or None,
        "out": str(out),
    }
    if played.why:
        return {"models": [], "cost": None, "failed": None, "warnings": [], **status}
    if not rows:
        msg = f"No item has all the answers that {bench.name} needs: nothing was judged."
        raise DataError(msg)
    results = write_results(rows, kinds, out)
    missing = played.missing
    board = leaderboard(rows, results, bench.models, played.given, missing, bench.control)
    repeated = repeats([case.named for case in played.cases])
    if bench.method is not None and bench.method.pairwise:
        board |= {"swap_share": bench.swap_share, **on_order(rows)}
    if bench.method is not None:
        cases = (case.named for case in played.cases)
        board["changes"] = differences(bench.method, cases)
    if bench.judge is not None and bench.fallback_judge is not None:
        by = partial(order_of, kinds=kinds)
        second, why = bench.fallback_judge, played.handed_over
        board["fallback"] = fallback_of(bench.judge.id, second, why, rows, by)
    report = board | status | {"warnings": [*board["warnings"], *repeated]}
    write_leaderboard(report, out)
    return report


def _rows(bench: Bench, played: _Played) -> tuple[list[dict[str, Any]], Mapping[str, str]]:
    from judge.bench import checked
    from judge.tables.verdicts import MARKS, PAIRS, bench_results, constraint_rows, kinds_of

    cases, run = played.cases, played.run
    if bench.method is None and not played.why:
        rows = constraint_rows([case.named for case in cases], checked(cases, bench.items))
        with_more = zip(rows, cases, strict=True)
        return [{**row, **case.more} for row, case in with_more], kinds_of(MARKS)
    if run is None or bench.method is None or bench.judge is None:
        return [], kinds_of(MARKS)
    judged = bench_results(cases, run, played.replies, bench.judge.id, bench.method)
    return [*judged], kinds_of(PAIRS if bench.method.pairwise else MARKS)


def _show(report: Mapping[str, Any], form: str) -> None:
    """Show the leaderboard; end with 1 if the bench stopped before there was one."""
    if form == "json":
        write_json(report)
    elif report["stopped"] is None:
        lines = [plain(line) for line in (*_on_order(report), *on_fallback(report))]
        show(plain(_caption(report)), _board(report["models"]), *lines, *warnings(_notes(report)))
        if report["method"].startswith("mt_bench"):
            say("\n".join(["Differs from upstream:", *report["changes"]]), keep="\n")
    if report["stopped"] is not None:
        stop(report["stopped"])


def _caption(report: Mapping[str, Any]) -> str:
    judge = "" if report["judge"] is None else f", judged by {report['judge']}"
    against = "" if report["baseline"] is None else f" against {report['baseline']}"
    cost = "" if report["cost"] is None else f" ${report['cost']:.4g} in all."
    return (
        f"{report['method']}{against}{judge}: {report['items']:,} items. {report['n_asked']:,} "
        f"new replies, {report['n_recalled']:,} reused.{cost} Written to {report['out']}."
    )


def _on_order(report: Mapping[str, Any]) -> list[str]:
    """Describe what standing first is worth, where not every pair was asked in both orders."""
    if report.get("swap_share", 1.0) == 1:
        return []
    place = report["first_place"]
    if place is None:
        return ["The position effect is not estimated: too few prompts have both orders."]
    ends = f"{place['lower']:+z.3f} to {place['upper']:+z.3f}"
    return [
        f"Effect of being shown first: {place['effect']:+z.3f} ({ends}) wins, from "
        f"{plural(place['n'], 'pair')}."
    ]


OTHERS = {
    "lc_win_rate": "Length-controlled",
    "style_score": "Style-controlled",
    "task_macro": "Task macro",
}
"""Columns of a leaderboard beside its first figure, where a row has them."""


def _board(models: Sequence[Mapping[str, Any]]) -> Any:
    from judge.bench import value_of

    value = value_of(models[0])
    figure, others = "Win rate" if value == "win_rate" else "Score", dict(OTHERS)
    rows = models
    if any("adjusted" in row for row in models):  # WB-Score, of marks from 1 to 10
        value, figure, others["score"] = "adjusted", "WB-Score", "1–10 mean"
        ends = ("lower", "upper")
        rows = [
            {**row, **{x: None if row[x] is None else 2 * (row[x] - 5) for x in ends}}
            for row in models
        ]
    others = {key: head for key, head in others.items() if any(key in row for row in rows)}
    head = ["Model", figure, "95% interval", *others.values(), "n", "Failed", "Cost"]
    cells = [
        [
            row["model"],
            _figure(row.get(value)),
            interval(row["lower"], row["upper"], ".2f"),
            *(_figure(row.get(column)) for column in others),
            f"{row['n']:,}",
            f"{row['failed']:,}",
            "–" if row["cost"] is None else f"${row['cost']:.4g}",
        ]
        for row in rows
    ]
    return table(head, cells)


def _figure(value: float | None) -> str:
    return "–" if value is None else f"{value:.2f}"


def _notes(report: Mapping[str, Any]) -> list[str]:
    missing = [
        f"{name!r}: {plural(n, 'item')} without an answer (or one of the baseline): excluded."
        for name, n in report["missing"].items()
    ]
    return [*missing, *report["warnings"]]
