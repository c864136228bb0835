"""Every case judged; checklists that a method goes by and nobody gave are written first."""

from collections.abc import AsyncIterator, Callable, Coroutine, Mapping, Sequence
from dataclasses import replace
from typing import Any

from judge.budget import Estimate
from judge.calls import Call, Journal, Options, Take, due_calls, forecast, no_replies, recalled
from judge.case import Case, Order
from judge.completion import Complete
from judge.grammar import Questions
from judge.methods import WRITER, FileMethod, published, unanswered, written
from judge.methods.checklist import TYPICAL, Checklists
from judge.runs import Progress, run
from judge.tables.cases import NamedCase, bare
from judge.verdict import NO_CHECKLIST, Judged, Run


async def judge_with_checklists(
    cases: Sequence[Case],
    given: Checklists,
    method: FileMethod,
    complete: Complete,
    journal: Journal,
    options: Options,
    progress: Callable[[Progress], None],
) -> Run:
    """Write the checklists that were not given, and judge by all of them.

    The judge writes them itself, before it sees any response. They are replies like others: kept
    in the journal, and paid for once; the run counts them in. The rows of a prompt without a
    checklist have the status of the writing.

    Raises
    ------
    rating.errors.RatingError
        As `judge.runs.run`.
    """
    due = _due(cases, given)
    first = await run(due, published(WRITER), complete, journal, options, progress=progress)
    checklists = {**given, **written(first.judged, due)}
    ready = [case for case in cases if case.prompt_id in checklists]
    if first.stopped is not None:
        ready = []
    left = options.limit_usd
    if left is not None:
        options = replace(options, limit_usd=max(left - (first.spent_usd or 0.0), 0.0))
    method = method.with_checklists(checklists)
    second = await run(ready, method, complete, journal, options, progress=progress)
    by_prompt = {case.prompt_id: row for case, row in _with_rows(due, first)}
    asked = {row.case_id for row in second.judged}
    unlisted = [
        row
        for case in {case.id: case for case in cases}.values()
        if case.id not in asked
        for row in _unlisted(case, by_prompt.get(case.prompt_id), method)
    ]
    return replace(
        second.after(first),
        judged=(*second.judged, *unlisted),
        stopped=first.stopped or second.stopped,
        why=first.why or second.why,
        checklists=checklists,
    )


async def forecast_with_checklists(
    cases: Sequence[Case],
    given: Checklists,
    method: FileMethod,
    journal: Journal,
    options: Options,
) -> Estimate:
    """Estimate what `judge_with_checklists` would ask; an unknown list is taken as `TYPICAL`."""
    due = _due(cases, given)
    writing = await forecast(due, published(WRITER), journal, options)
    rest = await _written(due, journal, options)
    checklists: Mapping[str, tuple[str, ...]] = {
        **{case.prompt_id: TYPICAL for case in due},
        **given,
        **rest,
    }
    return writing + await forecast(cases, method.with_checklists(checklists), journal, options)


async def _written(due: Sequence[Case], journal: Journal, options: Options) -> Checklists:
    """Read the checklists that the journal holds, by prompt."""
    known = await recalled(due, published(WRITER), journal, options)
    prompts = {case.id: case.prompt_id for case in due}
    return {
        prompts[case_id]: reading.items
        for case_id, reading in known.items()
        if isinstance(reading, Questions)
    }


def _due(cases: Sequence[Case], given: Checklists) -> list[Case]:
    """Return each prompt without a checklist, once, without its responses."""
    prompts = {case.prompt_id: case for case in cases if case.prompt_id not in given}
    return [unanswered(case) for case in prompts.values()]


def _with_rows(due: Sequence[Case], run: Run) -> list[tuple[Case, Judged]]:
    rows = {row.case_id: row for row in run.judged}
    return [(case, rows[case.id]) for case in due]


def _unlisted(case: Case, writing: Judged | None, method: FileMethod) -> list[Judged]:
    """Give the rows of a case that was not asked about: as its writing failed, or pending."""
    orders = (Order.AB, Order.BA) if method.pairwise else (Order.AB,)
    failure = None if writing is None else writing.failure
    detail, keys = (NO_CHECKLIST, writing.keys) if writing and failure else ("", ())
    return [
        Judged(
            case_id=case.id, order=order, reading=None, failure=failure, detail=detail, keys=keys
        )
        for order in orders
    ]


def judge_all(
    cases: Sequence[NamedCase],
    method: FileMethod,
    complete: Complete,
    journal: Journal,
    options: Options,
    progress: Callable[[Progress], None],
) -> Coroutine[Any, Any, Run]:
    """Judge every case, with checklists where the method goes by them: see `judge.runs.run`."""
    unnamed = bare(cases)
    if not method.by_checklist:
        return run(unnamed, method, complete, journal, options, progress=progress)
    given = _given(cases)
    return judge_with_checklists(unnamed, given, method, complete, journal, options, progress)


def forecast_all(
    cases: Sequence[NamedCase], method: FileMethod, journal: Journal, options: Options
) -> Coroutine[Any, Any, Estimate]:
    """Estimate what `judge_all` would ask."""
    unnamed = bare(cases)
    if not method.by_checklist:
        return forecast(unnamed, method, journal, options)
    return forecast_with_checklists(unnamed, _given(cases), method, journal, options)


async def each_due(
    cases: Sequence[NamedCase],
    method: FileMethod,
    journal: Journal,
    options: Options,
    take: Take = no_replies,
) -> AsyncIterator[Call]:
    """Give the calls that `judge_all` would make now, of `judge.calls.due_calls`.

    While checklists are to be written, these alone: what is asked by them is not known before.
    """
    unnamed: Sequence[Case] = bare(cases)
    if method.by_checklist:
        given, n = _given(cases), 0
        unlisted, writer = _due(unnamed, given), published(WRITER)
        async for call in due_calls(unlisted, writer, journal, options, take):
            n += 1
            yield call
        if n:
            return
        checklists = {**given, **await _written(unlisted, journal, options)}
        unnamed, method = (
            [case for case in unnamed if case.prompt_id in checklists],
            method.with_checklists(checklists),
        )
    async for call in due_calls(unnamed, method, journal, options, take):
        yield call


def _given(cases: Sequence[NamedCase]) -> Checklists:
    return {named.case.prompt_id: named.checklist for named in cases if named.checklist}
