"""A run: every question recalled or asked once, whatever happens on the way."""

import asyncio
import time
from collections import Counter, deque
from collections.abc import Callable, Coroutine, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from itertools import chain, islice
from typing import Any, TypeVar

import numpy as np

from judge.asking import STOPS, Asker, Now, Sleep
from judge.budget import cost_of
from judge.calls import Call, Journal, Key, Options, Question, Questions, able, call_of, recall
from judge.case import Case
from judge.completion import Complete, Reply
from judge.errors import CallError, FailureClass
from judge.grammar import Reading
from judge.outcomes import Outcomes, State, States
from judge.profile import Terms
from judge.protocol import Method, reading_of
from judge.verdict import Run, Stop

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
        self._failed: Counter[FailureClass] = Counter()

    def add(self, failure: FailureClass | None, *, recalled: bool) -> None:
        """Count a question as done."""
        self._n_done += 1
        self._n_recalled += recalled
        if failure is not None:
            self._failed[failure] += 1

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
"""Requests in a row that fail alike, after which a run gives up."""

OF_THE_CASE = frozenset({FailureClass.REFUSAL, FailureClass.TOO_LONG})
"""Failures that say nothing of the next request: a file may hold any number in a row."""


class Breaker:
    """Looks at the last requests of a run: when none of them worked, the next will not either.

    Kept replies are no requests, so a run that is taken up gets as far as it would have before.
    Requests that are rejected stop a run only before the first reply: later, they are the cases'.

    Examples
    --------
    >>> breaker = Breaker(2)
    >>> classes = [FailureClass.REFUSAL, FailureClass.REFUSAL, FailureClass.TRANSPORT]
    >>> [breaker.trips(failure) for failure in classes]
    [False, False, False]
    >>> breaker.trips(FailureClass.TRANSPORT)
    True
    """

    def __init__(self, n: int = ALIKE) -> None:
        self._last: deque[FailureClass | None] = deque(maxlen=n)
        self._answered = False

    def trips(self, failure: FailureClass | None) -> bool:
        """Note what became of a request, None for a reading; return whether to give up."""
        self._last.append(failure)
        rejected = failure is FailureClass.REJECTED
        self._answered |= failure is None or failure is FailureClass.REFUSAL
        if failure is None or failure in OF_THE_CASE or (rejected and self._answered):
            return False
        return self._last.count(failure) == self._last.maxlen


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
    when the last `ALIKE` requests all failed alike; the rest is pending, and the same call takes
    it up. A refusal is a reply like any other, and stops nothing. Cancelled, it drops the requests
    under way, keeps the replies that are in, and gives up its claims.

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
        If a case does not fit the method, or the endpoint is known to lack what it reads.
    """
    terms = able(method, options)
    asked = Questions(cases, method, options)
    rng = rng or np.random.default_rng()
    asker = Asker(complete, options, terms, now=now, sleep=sleep, rng=rng)
    runner = _Runner(asked, method, journal, options, asker, terms, now, sleep, progress)
    try:
        async with journal.alive():
            return await runner.run()
    except ExceptionGroup as group:
        raise _first(group) from group


def _spread(asked: Sequence[Question]) -> Iterator[Question]:
    """Put `ALIKE` questions from all over the cases first.

    A file that begins with cases which no endpoint takes would else stop its run for ever.
    """
    step = max(len(asked) // ALIKE, 1)
    first = range(0, min(step * ALIKE, len(asked)), step)
    return chain(
        (asked[i] for i in first), (asked[i] for i in range(len(asked)) if i not in first)
    )


def _first(group: ExceptionGroup) -> Exception:
    error: Exception = group
    while isinstance(error, ExceptionGroup):
        error = error.exceptions[0]
    return error


class _Runner:
    def __init__(
        self,
        asked: Questions,
        method: Method,
        journal: Journal,
        options: Options,
        asker: Asker,
        terms: Terms,
        now: Now,
        sleep: Sleep,
        progress: Callable[[Progress], None],
    ) -> None:
        self._questions, self._method, self._journal = asked, method, journal
        self._options, self._asker, self._terms = options, asker, terms
        self._now, self._sleep, self._show = now, sleep, progress
        self._began = now()
        self._tally, self._breaker = Tally(len(asked)), Breaker()
        self._queue: asyncio.Queue[Call | None] = asyncio.Queue(options.concurrency)
        self._states, self._open = States(len(asked)), dict[int, State]()
        self._elsewhere: list[Question] = []
        self._held: set[Key] = set()
        self._resting: dict[Key, FailureClass] = {}
        self._notes: dict[Key, Reading | FailureClass] = {}
        self._n_asked = self._n_recalled = 0
        self._n_workers = min(options.concurrency, len(asked))

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
        due = _spread(self._questions)
        while not self._asker.stopped:
            self._elsewhere = []
            while batch := [*islice(due, _RECALLS)]:
                await self._start(batch)
                if self._asker.stopped:
                    break
            await self._queue.join()
            if not self._elsewhere:
                break
            due = iter(self._elsewhere)
            if not self._asker.stopped:
                await self._sleep(POLL_S)

    async def _start(self, batch: Sequence[Question]) -> None:
        """Settle and recall what can be, and put the rest in the queue."""
        calls: Sequence[Call] = [self._call(q) for q in batch if not self._settled(q)]
        size = self._options.concurrency
        while calls:
            calls, replies = await recall(calls, self._journal, self._options)
            read = [
                await self._recalled(call, replies[call.key])
                for call in calls
                if call.key in replies
            ]
            new = [call for call in calls if call.key not in replies and not self._rests(call)]
            for start in range(0, len(new), size):
                await self._start_new(new[start : start + size])
            calls = [call for call in read if call is not None]

    def _rests(self, call: Call) -> bool:
        """Whether a call was only looked for, and is not kept: then what it follows stands."""
        failure = self._resting.pop(call.key, None)
        if failure is not None:
            self._done(call.question, failure)
        return failure is not None

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
        (call,), replies = await recall([call], self._journal, self._options)
        if call.key in replies:
            return await self._recalled(call, replies[call.key])
        if self._rests(call):
            return None
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
            if error.failure not in STOPS:
                self._done(call.question, error.failure, error.detail)
                self._watch(error.failure, error.detail)
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
        reading = reading_of(self._method, call.question.shown, reply)
        await self._note(call.key, reading)
        failure = reading if isinstance(reading, FailureClass) else None
        if not recalled:
            self._watch(failure)
        due = None if failure is None else self._after(call, failure, recalled=recalled)
        if due is None:
            self._done(call.question, reading)
        return due

    def _after(self, call: Call, failure: FailureClass, *, recalled: bool) -> Call | None:
        """Return the attempt after one that says nothing: to be asked, or only to be looked for.

        An earlier run may have been told to ask again.
        """
        options, stopped = self._options, self._asker.stopped
        more = call.attempt + 1 < options.attempts
        asks = (failure in options.anew and more) or (recalled and failure in options.again)
        if asks and not stopped:
            return self._call(call.question, call.attempt + 1)
        if not recalled:
            return None
        due = self._call(call.question, call.attempt + 1)
        self._resting[due.key] = failure
        return due

    def _watch(self, failure: FailureClass | None, detail: str = "") -> None:
        """Stop when the last requests all failed alike."""
        if not self._breaker.trips(failure) or failure is None:
            return
        saying = f" ({detail})" if detail else ""
        self._asker.stop(Stop.ALIKE, f"the last {ALIKE} requests all failed: {failure}{saying}")
        if failure is FailureClass.NO_LOGPROBS:
            self._terms.lack_logprobs(f"{ALIKE} replies in a row came without them")

    def _book(self, call: Call, reply: Reply, cost: float | None, *, recalled: bool) -> None:
        """Remember what a reply cost; a question that is looked at again has it booked already."""
        state = self._state(call.question)
        if call.key in state.keys:
            return
        by = frozenset([reply.model]), frozenset([reply.fingerprint])
        state.book((call.key,), cost, reply.latency_s, *by)
        state.recalled &= recalled
        self._n_recalled += recalled
        self._n_asked += not recalled

    def _done(self, question: Question, reading: Reading | FailureClass, detail: str = "") -> None:
        state = self._state(question)
        if isinstance(reading, FailureClass):
            state.failure, state.detail = reading, detail
        else:
            state.reading = reading
        self._states.put(question.number, state)
        del self._open[question.number]
        self._tally.add(state.failure, recalled=state.recalled)
        self._show(
            self._tally.progress(
                faults=self._asker.faults,
                spent_usd=self._asker.spent_usd,
                elapsed_s=self._now() - self._began,
            )
        )

    def _state(self, question: Question) -> State:
        return self._open.setdefault(question.number, State())

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
        for number, state in self._open.items():
            self._states.put(number, state)
        return Run(
            judged=Outcomes(self._questions, self._states),
            stopped=self._asker.stopped,
            why=self._asker.why,
            n_asked=self._n_asked,
            n_recalled=self._n_recalled,
            n_estimated=self._asker.n_estimated,
            faults=dict(self._asker.faults),
            spent_usd=self._asker.spent_usd,
            lessons=tuple(self._terms.warnings(self._method.description.parameters)),
        )


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
