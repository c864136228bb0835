"""Runs of a judge: every question asked once or recalled, checklists, and a second judge.

`judge_all` is the entry: it first writes checklists that a method needs and nobody gave, then
`run` judges every case. `Progress` reports the state of a run. `handed_over` and `together` are
for a second judge, which takes the cases that the first cannot or will not judge.

A run may have a million questions, so their states are packed into some sixty bytes each; rows and
questions are made when they are looked at.
"""

import asyncio
import math
import time
from array import array
from collections import Counter, deque
from collections.abc import (
    AsyncIterator,
    Callable,
    Coroutine,
    Iterable,
    Iterator,
    Mapping,
    Sequence,
)
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, replace
from itertools import chain, islice
from typing import Any, Generic, TypeVar, overload

import numpy as np

from judge.asking import STOPS, Asker, Now, Sleep
from judge.budget import Estimate, cost_of
from judge.calls import (
    Call,
    Journal,
    Key,
    Options,
    Question,
    Questions,
    Take,
    Terms,
    able,
    call_of,
    due_calls,
    forecast,
    no_replies,
    recall,
    recalled,
)
from judge.case import CallError, Case, Complete, FailureClass, Order, Reply
from judge.grammar import Preference, Reading, pooled
from judge.grammar import Questions as QuestionTexts
from judge.methods import WRITER, FileMethod, published, unanswered, written
from judge.methods.file import TYPICAL, Checklists
from judge.protocol import Method, reading_of
from judge.tables.cases import NamedCase, bare
from judge.tables.verdicts import total
from judge.verdict import NO_CHECKLIST, PENDING, Judged, Run, Stop, by_case

# States of questions


T = TypeVar("T")

_KEY_BYTES = 32
_COMMON = (0.0, 0.5, 1.0)
"""Preferences that many questions share; of some methods each has a number of its own."""


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

    def book(self, other: "_State") -> None:
        """Add replies: what they cost, of which the sum of what is known stands, and by whom."""
        self.keys += other.keys
        if other.cost_usd is not None:
            self.cost_usd = (self.cost_usd or 0.0) + other.cost_usd
        if other.latency_s is not None:
            self.latency_s = (self.latency_s or 0.0) + other.latency_s
        self.recalled &= other.recalled
        self.models |= other.models
        self.fingerprints |= other.fingerprints


class _Numbered(Generic[T]):
    """Values that many questions share, each kept once; 0 is the first."""

    def __init__(self, first: T) -> None:
        self._numbers, self._values = {first: 0}, [first]

    def number(self, value: T) -> int:
        number = self._numbers.setdefault(value, len(self._values))
        if number == len(self._values):
            self._values.append(value)
        return number

    def __getitem__(self, number: int) -> T:
        return self._values[number]


class _States:
    """States of questions in some sixty bytes each; as objects they took six hundred.

    Parameters
    ----------
    n : int
        Questions; nothing is known of them.
    """

    def __init__(self, n: int) -> None:
        blank = _State()
        self._readings = _Numbered[tuple[Reading | None, FailureClass | None, str]](
            (None, None, "")
        )
        self._names = _Numbered((blank.models, blank.fingerprints))
        self._numbers = array("i", bytes(4 * n)), array("i", bytes(4 * n))
        self._first = array("d", [math.nan]) * n
        self._cost, self._latency = array("d", [math.nan]) * n, array("d", [math.nan]) * n
        self._recalled, self._n_keys = bytearray(b"\1") * n, bytearray(n)
        self._keys = bytearray(_KEY_BYTES * n)
        self._further: dict[int, tuple[Key, ...]] = {}

    def put(self, at: int, state: _State) -> None:
        """Keep the state of a question, in place of the one before."""
        readings, names = self._numbers
        if isinstance(state.reading, Preference) and state.reading.first not in _COMMON:
            self._first[at] = state.reading.first
        else:
            readings[at] = self._readings.number((state.reading, state.failure, state.detail))
        names[at] = self._names.number((state.models, state.fingerprints))
        self._cost[at] = math.nan if state.cost_usd is None else state.cost_usd
        self._latency[at] = math.nan if state.latency_s is None else state.latency_s
        self._recalled[at], self._n_keys[at] = state.recalled, min(len(state.keys), 2)
        if state.keys:
            self._keys[_KEY_BYTES * at : _KEY_BYTES * (at + 1)] = bytes.fromhex(state.keys[0])
        if state.keys[1:]:
            self._further[at] = state.keys[1:]

    def __getitem__(self, at: int) -> _State:
        """Make the state of a question."""
        reading, failure, detail = self._readings[self._numbers[0][at]]
        if not math.isnan(self._first[at]):
            reading = Preference(self._first[at])
        models, fingerprints = self._names[self._numbers[1][at]]
        keys: tuple[Key, ...] = ()
        if self._n_keys[at]:
            first = self._keys[_KEY_BYTES * at : _KEY_BYTES * (at + 1)].hex()
            keys = (Key(first), *self._further.get(at, ()))
        cost, latency = (
            None if math.isnan(column[at]) else column[at]
            for column in (self._cost, self._latency)
        )
        return _State(
            reading,
            failure,
            detail,
            keys,
            cost,
            latency,
            bool(self._recalled[at]),
            models,
            fingerprints,
        )


class _Outcomes(Sequence[Judged]):
    """A row for each case and order, made when it is looked at."""

    def __init__(self, questions: Questions, states: _States) -> None:
        self._questions, self._states = questions, states
        self._rows = range(questions.n_rows)

    def __len__(self) -> int:
        """Count the cases, each in each order."""
        return len(self._rows)

    @overload
    def __getitem__(self, at: int) -> Judged: ...
    @overload
    def __getitem__(self, at: slice) -> list[Judged]: ...
    def __getitem__(self, at: int | slice) -> Judged | list[Judged]:
        """Make the row at a place, or those of a slice."""
        if isinstance(at, slice):
            return [self[i] for i in self._rows[at]]
        row = self._rows[at]
        samples = self._questions.samples
        state = _together([self._states[row * samples + i] for i in range(samples)])
        case_id, order = self._questions.row(row)
        fields = {name: getattr(state, name) for name in _State.__slots__}
        return Judged(case_id=case_id, order=order, **fields)


def _together(samples: Sequence[_State]) -> _State:
    """Make one of all samples of a question; it is pending while any of them is."""
    if len(samples) == 1:
        return samples[0]
    whole = _State()
    for f in samples:
        whole.book(f)
    readings = [f.reading for f in samples if f.reading is not None]
    failed = [f for f in samples if f.failure is not None]
    if len(readings) + len(failed) < len(samples):
        return whole
    if readings:
        whole.reading = pooled(readings)
    else:
        whole.failure, whole.detail = failed[0].failure, failed[0].detail
    return whole


J = TypeVar("J")


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
        return self.elapsed_s / paid * (self.n_total - self.n_done) if paid else None


# Run


ALIKE = 20
"""Requests in a row that fail alike, after which a run gives up."""

OF_THE_CASE = frozenset({FailureClass.REFUSAL, FailureClass.TOO_LONG})
"""Failures that say nothing of the next request: a file may hold any number in a row."""


class _Breaker:
    """Looks at the last requests of a run: when none of them worked, the next will not either.

    Kept replies are no requests, so a run that is taken up gets as far as it would have before.
    Requests that are rejected stop a run only before the first reply: later, they are the cases'.

    Examples
    --------
    >>> breaker = _Breaker(2)
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
    questions = Questions(cases, method, options)
    rng = rng or np.random.default_rng()
    asker = Asker(complete, options, terms, now=now, sleep=sleep, rng=rng)
    runner = _Runner(questions, method, journal, options, asker, terms, now, sleep, progress)
    try:
        async with journal.alive():
            return await runner.run()
    except ExceptionGroup as group:
        error: Exception = group
        while isinstance(error, ExceptionGroup):
            error = error.exceptions[0]
        raise error from group


def _spread(asked: Sequence[Question]) -> Iterator[Question]:
    """Put `ALIKE` questions from all over the cases first.

    A file that begins with cases which no endpoint takes would else stop its run for ever.
    """
    step = max(len(asked) // ALIKE, 1)
    first = range(0, min(step * ALIKE, len(asked)), step)
    return chain(
        (asked[i] for i in first), (asked[i] for i in range(len(asked)) if i not in first)
    )


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
        self._breaker = _Breaker()
        self._n_done = self._n_known = 0
        self._failed: Counter[FailureClass] = Counter()
        self._queue: asyncio.Queue[Call | None] = asyncio.Queue(options.concurrency)
        self._states, self._open = _States(len(asked)), dict[int, _State]()
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
        """Hand out the questions; those that another process is asking, again and again."""
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
                await self._read(call, replies[call.key]) for call in calls if call.key in replies
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
            return await self._read(call, replies[call.key])
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

    async def _read(
        self, call: Call, reply: Reply, cost: float | None = None, *, recalled: bool = True
    ) -> Call | None:
        """Read a kept reply; return the next attempt if this one says nothing."""
        if recalled:
            cost = cost_of(call.request, reply, self._options.price)
        self._book(call, reply, cost, recalled=recalled)
        reading = reading_of(self._method, call.question.shown, reply)
        self._notes[call.key] = reading
        if len(self._notes) >= _NOTES:
            await self._note_all()
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
            self._terms.lessons.learn("logprobs", f"{ALIKE} replies in a row came without them")

    def _book(self, call: Call, reply: Reply, cost: float | None, *, recalled: bool) -> None:
        """Remember what a reply cost; a question that is looked at again has it booked already."""
        state = self._state(call.question)
        if call.key in state.keys:
            return
        state.book(
            _State(
                keys=(call.key,),
                cost_usd=cost,
                latency_s=reply.latency_s,
                recalled=recalled,
                models=frozenset([reply.model]),
                fingerprints=frozenset([reply.fingerprint]),
            )
        )
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
        self._n_done += 1
        self._n_known += state.recalled
        if state.failure is not None:
            self._failed[state.failure] += 1
        self._show(
            Progress(
                n_done=self._n_done,
                n_total=len(self._questions),
                n_recalled=self._n_known,
                failed=dict(self._failed),
                faults=dict(self._asker.faults),
                spent_usd=self._asker.spent_usd,
                elapsed_s=self._now() - self._began,
            )
        )

    def _state(self, question: Question) -> _State:
        return self._open.setdefault(question.number, _State())

    def _call(self, question: Question, attempt: int = 0) -> Call:
        return call_of(question, self._method, self._options, attempt)

    async def _claimed(self, keys: Sequence[Key]) -> frozenset[Key]:
        ours = await self._journal.claim(keys) if keys else frozenset[Key]()
        self._held.update(ours)
        return ours

    async def _give_up(self, key: Key) -> None:
        await self._journal.release([key])
        self._held.discard(key)

    async def _note_all(self) -> None:
        notes, self._notes = self._notes, {}
        if notes:
            await self._journal.note(self._method.description.parser_name, notes)

    def _ended(self) -> Run:
        for number, state in self._open.items():
            self._states.put(number, state)
        return Run(
            judged=_Outcomes(self._questions, self._states),
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


# Checklists


async def judge_all(
    cases: Sequence[NamedCase],
    method: FileMethod,
    complete: Complete,
    journal: Journal,
    options: Options,
    progress: Callable[[Progress], None],
) -> Run:
    """Judge every case, with checklists where the method goes by them: see `run`.

    The judge writes those that were not given itself, before it sees any response. They are
    replies like others: kept in the journal, and paid for once; the run counts them in. The rows
    of a prompt without a checklist have the status of the writing.

    Raises
    ------
    rating.errors.RatingError
        As `run`.
    """
    unnamed = bare(cases)
    if not method.by_checklist:
        return await run(unnamed, method, complete, journal, options, progress=progress)
    given = _given(cases)
    due = _due(unnamed, given)
    first = await run(due, published(WRITER), complete, journal, options, progress=progress)
    checklists = {**given, **written(first.judged, due)}
    ready = [case for case in unnamed if case.prompt_id in checklists]
    left = options.limit_usd
    if left is not None:
        options = replace(options, limit_usd=max(left - (first.spent_usd or 0.0), 0.0))
    method = method.with_checklists(checklists)
    second = await run(
        ready if first.stopped is None else [],
        method,
        complete,
        journal,
        options,
        progress=progress,
    )
    writing = {row.case_id: row for row in first.judged}
    by_prompt = {case.prompt_id: writing[case.id] for case in due}
    asked = {row.case_id for row in second.judged}
    unlisted = [
        row
        for case in {case.id: case for case in unnamed}.values()
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


async def forecast_all(
    cases: Sequence[NamedCase], method: FileMethod, journal: Journal, options: Options
) -> Estimate:
    """Estimate what `judge_all` would ask; an unknown checklist is taken as `TYPICAL`."""
    unnamed = bare(cases)
    if not method.by_checklist:
        return await forecast(unnamed, method, journal, options)
    given = _given(cases)
    due = _due(unnamed, given)
    writing = await forecast(due, published(WRITER), journal, options)
    checklists: Checklists = {
        **{case.prompt_id: TYPICAL for case in due},
        **given,
        **await _written(due, journal, options),
    }
    return writing + await forecast(unnamed, method.with_checklists(checklists), journal, options)


async def _written(due: Sequence[Case], journal: Journal, options: Options) -> Checklists:
    """Read the checklists that the journal holds, by prompt."""
    known = await recalled(due, published(WRITER), journal, options)
    prompts = {case.id: case.prompt_id for case in due}
    return {
        prompts[case_id]: reading.items
        for case_id, reading in known.items()
        if isinstance(reading, QuestionTexts)
    }


def _due(cases: Sequence[Case], given: Checklists) -> list[Case]:
    """Return each prompt without a checklist, once, without its responses."""
    prompts = {case.prompt_id: case for case in cases if case.prompt_id not in given}
    return [unanswered(case) for case in prompts.values()]


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


# Second judge


HANDED_OVER = frozenset(
    {
        FailureClass.RATE_LIMIT,
        FailureClass.OVERLOADED,
        FailureClass.TRANSPORT,
        FailureClass.TOO_LONG,
        FailureClass.REJECTED,
        FailureClass.DENIED,
        FailureClass.REFUSAL,
    }
)
"""Failures of which a case goes to the second judge: no reply for good, or a refusal.

A reply in which no verdict can be read stands: the case was judged, and badly.
"""
OUT = frozenset({Stop.ALIKE, Stop.DENIED})
"""Ends of a run that say that its endpoint is out: what is pending goes to the second judge."""


def handed_over(cases: Iterable[NamedCase], first: Run) -> list[NamedCase]:
    """Give the cases for the second judge, whole: a verdict is of one judge in both orders.

    None where the first run stopped at its budget: the same call takes it up.
    """
    out = first.stopped in OUT
    if first.stopped is not None and not out:
        return []
    theirs = {row.case_id for row in first.judged if _is_handed_over(row, out=out)}
    known = first.checklists  # also those that the first judge wrote
    return [
        replace(named, checklist=known.get(named.case.prompt_id, named.checklist))
        for named in cases
        if named.case.id in theirs
    ]


def reasons(first: Run) -> Mapping[str, int]:
    """Count the cases that are handed over, by what became of the first of their orders that was.

    Those that an endpoint which is out was not asked any more are `PENDING`.
    """
    out = first.stopped in OUT
    whole = (
        [row.status for row in rows if _is_handed_over(row, out=out)]
        for rows in by_case(first.judged)
    )
    return dict(Counter(statuses[0] for statuses in whole if statuses))


def together(first: Run, second: Run, judge: str) -> Run:
    """Return both runs as one: rows of the second, by name, for the cases that it was given.

    What the first judge took for a case that it then would not answer counts in the costs.
    """
    paid = {(row.case_id, row.order): row.cost_usd for row in first.judged}
    theirs = {row.case_id for row in second.judged}
    return replace(
        second.after(first),
        judged=[
            *(row for row in first.judged if row.case_id not in theirs),
            *(
                replace(
                    row,
                    judge=judge,
                    cost_usd=total([row.cost_usd, paid.get((row.case_id, row.order))]),
                )
                for row in second.judged
            ),
        ],
        checklists={**second.checklists, **first.checklists},
    )


def _is_handed_over(row: Judged, *, out: bool) -> bool:
    return row.failure in HANDED_OVER or (out and row.status == PENDING)
