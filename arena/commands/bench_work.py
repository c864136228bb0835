"""What a bench does with endpoints and the database: asks models, then the judge."""

import asyncio
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from arena.commands.judge_second import with_second
from arena.commands.judge_work import (
    IFEVAL,
    JudgeOptions,
    Second,
    opened,
    progress_of,
    roster_model,
    run_options,
    second_judge,
)
from arena.domain.model import Model
from arena.errors import SettingsError
from arena.terminal import announced, working
from rating.errors import DataError

if TYPE_CHECKING:
    from arena.endpoints.sse import Budgets
    from arena.store.judgements import StoredJournal
    from arena.store.store import Store
    from judge.bench.answering import Given
    from judge.bench.contest import Contest
    from judge.bench.leaderboard import Control
    from judge.budget import Estimate
    from judge.calls import Key, Options
    from judge.completion import Parameters, Reply
    from judge.methods import FileMethod
    from judge.tables.items import Item, Turns
    from judge.verdict import Run

MAX_TOKENS = 4096
"""Most tokens of an answer, where neither the roster nor the command says how many."""


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
        from judge.completion import Parameters

        own = model.decoding.get("max_tokens")
        return Parameters(max_tokens=self.max_tokens or (own if type(own) is int else MAX_TOKENS))


@dataclass(frozen=True, slots=True, kw_only=True)
class Played:
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
    contest: "Contest"
    run: "Run | None" = None
    replies: "Mapping[Key, Reply]" = field(default_factory=dict)
    handed_over: Mapping[str, int] = field(default_factory=dict)
    why: str = ""
    n_asked: int = 0
    n_recalled: int = 0
    spent_usd: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Answers:
    """What models said when they were asked, as `Played` has it."""

    given: "Mapping[str, Sequence[Given]]"
    why: str
    n_asked: int
    n_recalled: int
    spent_usd: float | None


@contextmanager
def at_desk(bench: Bench, database: str | None, roster: Path | None) -> "Iterator[_Desk]":
    """Open the database in which answers and verdicts are kept."""
    from arena.settings import read_settings
    from arena.store.store import Store

    settings = read_settings(database=database, roster=roster)
    with announced(), closing(Store(settings.database)) as store:
        second = second_judge(
            store,
            settings.roster,
            bench.fallback_judge,
            bench.options,
            bench.method,
            bench.seed,
            bench.swap_share,
        )
        yield _Desk(bench, store, settings.budgets(), second)


class _Desk:
    """Asks on behalf of one bench, within what is left of its budget."""

    def __init__(
        self, bench: Bench, store: "Store", budgets: "Budgets", second: Second | None
    ) -> None:
        self._bench, self._store, self._budgets = bench, store, budgets
        self._second = second
        self._spent: float | None = None
        self._n_asked = self._n_recalled = 0

    def estimate(self) -> "tuple[dict[str, Estimate], Estimate | None]":
        """Estimate what is still to be asked of each model, and of the judge."""
        from judge.bench.answering import forecast_answers, recalled_answers
        from judge.bench.contest import contest, with_stand_ins
        from judge.checklists import forecast_all

        bench, answers = self._bench, {name: dict(own) for name, own in self._bench.known.items()}
        of_models = {}
        for name, model in bench.asked.items():
            due, parameters = bench.due(name), bench.parameters(model)
            journal, options = self._journal(model)
            of_models[name] = asyncio.run(forecast_answers(due, parameters, journal, options))
            in_journal = asyncio.run(recalled_answers(due, parameters, journal, options))
            answers[name] = {**answers.get(name, {}), **in_journal}
        if bench.method is None or bench.judge is None:
            return of_models, None
        filled = {**answers, **with_stand_ins(bench.items, [*bench.asked], answers)}
        cases = contest(bench.method, bench.items, bench.models, bench.baseline, filled).cases
        journal, options = self._journal(bench.judge)
        named = [case.named for case in cases]
        return of_models, asyncio.run(forecast_all(named, bench.method, journal, options))

    def answer(self) -> Answers:
        """Let models answer what is not recorded."""
        given: dict[str, Sequence[Given]] = {}
        why = ""
        for name, model in self._bench.asked.items():
            given[name], run = self._answered(name, model)
            if run.stopped is not None:
                why = f"{name}: {run.why}"
                break
        return Answers(
            given=given,
            why=why,
            n_asked=self._n_asked,
            n_recalled=self._n_recalled,
            spent_usd=self._spent,
        )

    def play(self) -> Played:
        """Let models answer, and the judge judge."""
        from judge.bench.contest import contest

        bench, answers = self._bench, {name: dict(own) for name, own in self._bench.known.items()}
        answered = self.answer()
        given, why = answered.given, answered.why
        for name, every in given.items():
            own = {one.item.id: one.texts for one in every if one.whole}
            answers[name] = {**answers.get(name, {}), **own}
        cases = contest(bench.method, bench.items, bench.models, bench.baseline, answers)
        played = Played(given=given, contest=cases, why=why)
        if not why and bench.method is not None and bench.judge is not None:
            played = self._judged(bench.judge, bench.method, played)
        return replace(
            played,
            n_asked=self._n_asked,
            n_recalled=self._n_recalled,
            spent_usd=self._spent,
        )

    def _answered(self, name: str, model: Model) -> "tuple[Sequence[Given], Run]":
        from judge.bench.answering import answered
        from judge.runs import at_work

        due, parameters = self._bench.due(name), self._bench.parameters(model)
        journal, options = self._journal(model)
        with working(f"{name} answers") as advance:
            given, run = at_work(
                opened(model, self._budgets, options.terms),
                lambda complete: answered(
                    due, parameters, complete, journal, options, progress_of(advance)
                ),
            )
        self._count(run)
        return given, run

    def _judged(self, model: Model, method: "FileMethod", played: Played) -> Played:
        from judge.checklists import judge_all
        from judge.fallback import reasons
        from judge.methods import margined
        from judge.runs import at_work
        from judge.tables.verdicts import total

        named = [case.named for case in played.contest.cases]
        journal, options = self._journal(model)

        with working("Judging") as advance:
            first = at_work(
                opened(model, self._budgets, options.terms),
                lambda judge: judge_all(
                    named, method, judge, journal, options, progress_of(advance)
                ),
            )
        run, second = first, self._second
        if second is not None:
            spent = total([self._spent, first.spent_usd])
            run = with_second(first, second, named, method, self._budgets, spent)
        replies = asyncio.run(journal.recall([key for row in run.judged for key in row.keys]))
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

    def _journal(self, model: Model) -> "tuple[StoredJournal, Options]":
        """Open a model's journal, with what is left of the budget."""
        from arena.judging import journal_of

        bench = self._bench
        options = run_options(self._store, model, bench.options, bench.seed, bench.swap_share)
        if options.limit_usd is not None:
            options = replace(options, limit_usd=max(options.limit_usd - (self._spent or 0), 0.0))
        return journal_of(self._store, options.judge, model.price), options

    def _count(self, run: "Run") -> None:
        self._n_asked += run.n_asked
        self._n_recalled += run.n_recalled
        if run.spent_usd is not None:
            self._spent = (self._spent or 0.0) + run.spent_usd


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


def judged_by(name: str, judge: str | None, roster: Path | None) -> Model | None:
    """Give the judge; none of IFEval, which goes by rules.

    Raises
    ------
    DataError, SettingsError
        If there is none in the roster, or one has no use.
    """
    if name != IFEVAL:
        return roster_model(roster, judge, "--judge")
    if judge is not None:
        msg = f"ifeval asks no judge: leave --judge {judge} out."
        raise DataError(msg)
    return None
