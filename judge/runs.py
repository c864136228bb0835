"""A run: every question recalled or asked once, whatever happens on the way."""

import asyncio
import time
from collections import Counter
from collections.abc import Callable, Coroutine, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from itertools import groupby
from typing import Any, TypeVar

import numpy as np

from judge.asking import Asker, Now, Sleep
from judge.budget import cost_of
from judge.calls import Call, Journal, Key, Options, Question, call_of, questions
from judge.case import Case
from judge.completion import Complete, Reply
from judge.errors import CallError, FailureClass
from judge.grammar import Reading, pooled
from judge.protocol import Method
from judge.verdict import Judged, Run, Stop

J = TypeVar("J")
T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class Progress:
    """Where a run stands. Its unit is the question: a case in one order, or a sample of one.

    Attributes
    ----------
    n_done, n_total : int
        Questions with a reading or a final failure; and all.
    n_recalled : int
        Of those done, the ones that cost nothing in this run.
    failed : mapping
        Of those done, the ones without a reading, by class.
    faults : mapping
        Tries without a reply so far, by class.
    spent_usd : float or None
        None without a price.
    elapsed_s : float
        Since the run began.
    """

    n_done: int
    n_total: int
    n_recalled: int
    failed: Mapping[FailureClass, int]
    faults: Mapping[FailureClass, int]
    spent_usd: float | None
    elapsed_s: float

    @property
    def left_s(self) -> float | None:
        """Seconds left at the pace so far; None before the first reply of this run."""
        paid = self.n_done - self.n_recalled
        if not paid:
            return None
        return self.elapsed_s / paid * (self.n_total - self.n_done)


class Tally:
    """Counts what is done as it is done."""

    def __init__(self, n_total: int) -> None:
        self._n_total = n_total
        self._n_done = 0
        self._n_recalled = 0
        self._n_settled = 0
        self._failed: Counter[FailureClass] = Counter()

    def add(self, failure: FailureClass | None, *, recalled: bool, settled: bool = False) -> None:
        """Count a question as done; one that was settled without asking says nothing of asking."""
        self._n_done += 1
        self._n_recalled += recalled
        self._n_settled += settled
        if failure is not None:
            self._failed[failure] += 1

    def all_alike(self, n: int) -> FailureClass | None:
        """Return the class in which all asked failed so far, if that was at least ``n`` times."""
        n_asked = self._n_done - self._n_settled
        if len(self._failed) != 1 or self._failed.total() < n_asked or n_asked < n:
            return None
        return next(iter(self._failed))

    def progress(
        self, *, faults: Mapping[FailureClass, int], spent_usd: float | None, elapsed_s: float
    ) -> Progress:
        """Return where the run stands."""
        return Progress(
            n_done=self._n_done,
            n_total=self._n_total,
            n_recalled=self._n_recalled,
            failed=dict(self._failed),
            faults=dict(faults),
            spent_usd=spent_usd,
            elapsed_s=elapsed_s,
        )


ALIKE = 20
"""Failures of one class, without a single reading, after which a run gives up."""

POLL_S = 2.0
"""Wait before looking again at questions that another process is asking."""

_RECALLS, _NOTES = 500, 500
"""Keys in one look at the journal, and readings in one note."""


async def run(
    cases: Iterable[Case],
    method: Method,
    complete: Complete,
    journal: Journal,
    options: Options,
    *,
    now: Now = time.monotonic,
    sleep: Sleep = asyncio.sleep,
    rng: np.random.Generator | None = None,
    progress: Callable[[Progress], None] = lambda _: None,
) -> Run:
    """Judge every case, each question once.

    What the journal holds is recalled; the rest is claimed, asked, kept, and only then read. A
    failure is retried by its class, then stands as such. The run stops early, with what is under
    way finished and kept, when the budget is used up, when the endpoint denies every request, or
    when the first `ALIKE` questions all failed alike; the rest is pending, and the same call
    takes it up. Cancelled, it drops the requests under way, keeps the replies that are in, and
    gives up its claims.

    Several runs may share a journal: none asks what another is asking, and each ends when all is
    answered, by whomever.

    Parameters
    ----------
    now, sleep : callable
        A clock that never goes back, and how to wait on it.
    rng : numpy.random.Generator, optional
        Spreads retries; nothing that is asked depends on it.
    progress : callable
        Called with a `Progress` whenever a question is done.

    Raises
    ------
    DataError
        If a case does not fit the method.
    """
    asked = questions(cases, method, options)
    expected = method.description.tokens_out
    rng = rng or np.random.default_rng()
    asker = Asker(complete, options, tokens_out=expected, now=now, sleep=sleep, rng=rng)
    runner = _Runner(asked, method, journal, options, asker, now, sleep, progress)
    try:
        async with journal.alive():
            return await runner.run()
    except ExceptionGroup as group:
        raise _first(group) from group


def _first(group: ExceptionGroup) -> Exception:
    error: Exception = group
    while isinstance(error, ExceptionGroup):
        error = error.exceptions[0]
    return error


@dataclass(slots=True)
class _State:
    """What is known of a question so far."""

    reading: Reading | None = None
    failure: FailureClass | None = None
    detail: str = ""
    keys: tuple[Key, ...] = ()
    cost_usd: float | None = None
    latency_s: float | None = None
    recalled: bool = True
    models: frozenset[str] = frozenset()
    fingerprints: frozenset[str] = frozenset()

    def name(self, models: frozenset[str], fingerprints: frozenset[str]) -> None:
        """Add what answered."""
        self.models |= models
        self.fingerprints |= fingerprints

    def book(self, keys: tuple[Key, ...], cost_usd: float | None, latency_s: float | None) -> None:
        """Add what replies cost; None is unknown, and the sum of what is known stands."""
        self.keys += keys
        if cost_usd is not None:
            self.cost_usd = (self.cost_usd or 0.0) + cost_usd
        if latency_s is not None:
            self.latency_s = (self.latency_s or 0.0) + latency_s


class _Runner:
    def __init__(
        self,
        asked: Sequence[Question],
        method: Method,
        journal: Journal,
        options: Options,
        asker: Asker,
        now: Now,
        sleep: Sleep,
        progress: Callable[[Progress], None],
    ) -> None:
        self._questions, self._method, self._journal = asked, method, journal
        self._options, self._asker = options, asker
        self._now, self._sleep, self._show = now, sleep, progress
        self._began = now()
        self._tally = Tally(len(asked))
        self._queue: asyncio.Queue[Call | None] = asyncio.Queue(options.concurrency)
        self._states = [_State() for _ in asked]
        self._elsewhere: list[Question] = []
        self._held: set[Key] = set()
        self._notes: dict[Key, Reading | FailureClass] = {}
        self._n_asked = self._n_recalled = 0
        # While one stores a reply, another one asks.
        self._n_workers = min(2 * options.concurrency, len(asked))

    async def run(self) -> Run:
        try:
            async with asyncio.TaskGroup() as tasks:
                workers = [tasks.create_task(self._work()) for _ in range(self._n_workers)]
                await self._feed()
                for _ in workers:
                    await self._queue.put(None)
        finally:
            if self._held:
                await self._journal.release(self._held)
            await self._note_all()
        return self._ended()

    async def _feed(self) -> None:
        """Hand out the questions; those that somebody else is asking, again and again."""
        due: Sequence[Question] = self._questions
        while due and not self._asker.stopped:
            self._elsewhere = []
            for start in range(0, len(due), _RECALLS):
                await self._start(due[start : start + _RECALLS])
                if self._asker.stopped:
                    break
            await self._queue.join()
            due = self._elsewhere
            if due and not self._asker.stopped:
                await self._sleep(POLL_S)

    async def _start(self, batch: Sequence[Question]) -> None:
        """Settle and recall what can be, and put the rest in the queue."""
        calls = [self._call(question) for question in batch if not self._settled(question)]
        replies = await self._journal.recall([call.key for call in calls])
        for call in calls:
            if call.key in replies:
                again = await self._recalled(call, replies[call.key])
                if again is not None:
                    await self._queue.put(again)
        new = [call for call in calls if call.key not in replies]
        size = self._options.concurrency
        for start in range(0, len(new), size):
            await self._start_new(new[start : start + size])

    async def _start_new(self, calls: Sequence[Call]) -> None:
        """Claim no more than will soon be asked: what others hold, they will ask."""
        if self._asker.stopped:
            return
        ours = await self._claimed([call.key for call in calls])
        for call in calls:
            if call.key in ours:
                await self._queue.put(call)
            else:
                self._elsewhere.append(call.question)

    def _settled(self, question: Question) -> bool:
        reading = self._method.settled(question.shown)
        if reading is not None:
            self._done(question, reading)
        return reading is not None

    async def _work(self) -> None:
        while (call := await self._queue.get()) is not None:
            try:
                await self._answer(call)
            finally:
                self._queue.task_done()

    async def _answer(self, call: Call) -> None:
        """Bring a call to its end, with all attempts that follow from it."""
        due: Call | None = call
        while due is not None:
            due = await (self._asked(due) if due.key in self._held else self._taken_up(due))

    async def _taken_up(self, call: Call) -> Call | None:
        """Recall or claim a later attempt, and return what is due next."""
        replies = await self._journal.recall([call.key])
        if call.key in replies:
            return await self._recalled(call, replies[call.key])
        if await self._claimed([call.key]):
            return call
        self._elsewhere.append(call.question)
        return None

    async def _asked(self, call: Call) -> Call | None:
        """Ask; keep the reply before anybody reads it; return the attempt that is due next."""
        try:
            answer = await self._asker.reply(call.request)
        except CallError as error:
            await self._give_up(call.key)
            if error.failure is not FailureClass.DENIED:
                self._done(call.question, error.failure, error.detail)
            return None
        if answer is None:
            await self._give_up(call.key)
            return None
        reply, cost = answer
        await self._store(call, reply)
        return await self._read(call, reply, cost, recalled=False)

    async def _store(self, call: Call, reply: Reply) -> None:
        """Let the write finish even if this is cancelled: what it writes was paid for."""
        write = asyncio.ensure_future(self._journal.keep(call.key, call.request, reply))
        try:
            await asyncio.shield(write)
        finally:
            await write
            self._held.discard(call.key)

    async def _recalled(self, call: Call, reply: Reply) -> Call | None:
        cost = cost_of(call.request, reply, self._options.price)
        return await self._read(call, reply, cost, recalled=True)

    async def _read(
        self, call: Call, reply: Reply, cost: float | None, *, recalled: bool
    ) -> Call | None:
        """Read a kept reply; return the next attempt if this one says nothing."""
        self._book(call, reply, cost, recalled=recalled)
        reading = self._method.read(call.question.shown, reply)
        await self._note(call.key, reading)
        last = call.attempt + 1 == self._options.attempts or self._asker.stopped
        if reading in self._options.anew and not last:
            return self._call(call.question, call.attempt + 1)
        self._done(call.question, reading)
        return None

    def _book(self, call: Call, reply: Reply, cost: float | None, *, recalled: bool) -> None:
        """Remember what a reply cost; a question that is looked at again has it booked already."""
        state = self._states[call.question.number]
        if call.key in state.keys:
            return
        state.book((call.key,), cost, reply.latency_s)
        state.name(frozenset([reply.model]), frozenset([reply.fingerprint]))
        state.recalled &= recalled
        self._n_recalled += recalled
        self._n_asked += not recalled

    def _done(self, question: Question, reading: Reading | FailureClass, detail: str = "") -> None:
        state = self._states[question.number]
        if isinstance(reading, FailureClass):
            state.failure, state.detail = reading, detail
        else:
            state.reading = reading
        asked = state.failure is not None or bool(state.keys)
        self._tally.add(state.failure, recalled=state.recalled, settled=not asked)
        if alike := self._tally.all_alike(ALIKE):
            self._asker.stop(Stop.ALIKE, f"the first {ALIKE} questions all failed: {alike}")
        self._show(
            self._tally.progress(
                faults=self._asker.faults,
                spent_usd=self._asker.spent_usd,
                elapsed_s=self._now() - self._began,
            )
        )

    def _call(self, question: Question, attempt: int = 0) -> Call:
        return call_of(question, self._method, self._options, attempt)

    async def _claimed(self, keys: Sequence[Key]) -> frozenset[Key]:
        ours = await self._journal.claim(keys) if keys else frozenset[Key]()
        self._held.update(ours)
        return ours

    async def _give_up(self, key: Key) -> None:
        await self._journal.release([key])
        self._held.discard(key)

    async def _note(self, key: Key, reading: Reading | FailureClass) -> None:
        self._notes[key] = reading
        if len(self._notes) >= _NOTES:
            await self._note_all()

    async def _note_all(self) -> None:
        notes, self._notes = self._notes, {}
        if notes:
            await self._journal.note(self._method.description.parser_name, notes)

    def _ended(self) -> Run:
        in_rows = groupby(self._questions, key=lambda question: (question.case_id, question.order))
        return Run(
            judged=tuple(self._row(list(samples)) for _, samples in in_rows),
            stopped=self._asker.stopped,
            why=self._asker.why,
            n_asked=self._n_asked,
            n_recalled=self._n_recalled,
            n_estimated=self._asker.n_estimated,
            faults=dict(self._asker.faults),
            spent_usd=self._asker.spent_usd,
        )

    def _row(self, samples: Sequence[Question]) -> Judged:
        state = _together([self._states[question.number] for question in samples])
        return Judged(
            case_id=samples[0].case_id,
            order=samples[0].order,
            reading=state.reading,
            failure=state.failure,
            detail=state.detail,
            keys=state.keys,
            cost_usd=state.cost_usd,
            latency_s=state.latency_s,
            recalled=state.recalled,
            models=state.models,
            fingerprints=state.fingerprints,
        )


def _together(samples: Sequence[_State]) -> _State:
    """Make one of all samples of a question; it is pending while any of them is."""
    if len(samples) == 1:
        return samples[0]
    whole = _State(recalled=all(f.recalled for f in samples))
    for f in samples:
        whole.book(f.keys, f.cost_usd, f.latency_s)
        whole.name(f.models, f.fingerprints)
    readings = [f.reading for f in samples if f.reading is not None]
    failed = [f for f in samples if f.failure is not None]
    if len(readings) + len(failed) < len(samples):
        return whole
    if readings:
        whole.reading = pooled(readings)
    else:
        whole.failure, whole.detail = failed[0].failure, failed[0].detail
    return whole


def at_work(
    opening: AbstractAsyncContextManager[J], work: Callable[[J], Coroutine[Any, Any, T]]
) -> T:
    """Open a judge, let it work and close it, also where a loop runs already: in a notebook."""

    async def opened() -> T:
        async with opening as judge:
            return await work(judge)

    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return asyncio.run(opened())
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(asyncio.run, opened()).result()
