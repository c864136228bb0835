"""A run: every question recalled or asked once, whatever happens on the way."""

import asyncio
import time
from collections.abc import Callable, Coroutine, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any

import numpy as np

from judge.asking import Asker
from judge.budget import cost_of
from judge.case import Case, CaseId, Order
from judge.completion import Complete, Reply, Request
from judge.errors import CallError, FailureClass
from judge.hardening import nonce
from judge.journal import Journal, Key, key_of
from judge.options import Options, Progress, Tally
from judge.protocol import Method
from judge.reading import Reading, noted, pooled
from judge.results import Judged, Run, Stop
from judge.throttle import Now, Sleep
from judge.verdict import orders_within_budget


@dataclass(frozen=True, slots=True)
class Question:
    """One sample of what a judge says of one case in one order."""

    case_id: CaseId
    order: Order
    sample: int
    shown: Case

    @property
    def name(self) -> tuple[CaseId, Order, int]:
        """What tells a question from all others."""
        return self.case_id, self.order, self.sample


@dataclass(frozen=True, slots=True)
class Call:
    """A question as it is sent; a later attempt is another call with another key."""

    question: Question
    attempt: int
    request: Request
    key: Key


def questions(
    cases: Iterable[Case],
    method: Method,
    *,
    seed: str,
    swap_share: float = 1.0,
    as_given: bool = False,
) -> Iterator[Question]:
    """Yield what there is to ask; a case that comes twice is asked about once.

    Parameters
    ----------
    swap_share : float
        Share of the cases that are asked in both orders; the rest are asked in one that a fair
        coin picks (`judge.verdict.orders_within_budget`).
    as_given : bool
        Ask with side A first alone.
    """
    description = method.description
    both = description.pairwise and not as_given
    seen = set()
    for case in cases:
        case_id = case.id
        if case_id in seen:
            continue
        seen.add(case_id)
        for order in _orders(case_id, seed, swap_share) if both else (Order.AB,):
            shown = case.shown(order)
            for sample in range(description.samples):
                yield Question(case_id, order, sample, shown)


def call_of(question: Question, method: Method, *, judge: str, seed: str, attempt: int) -> Call:
    """Return the call for an attempt at a question: the same on every run with the same seed."""
    draw = question.sample
    if attempt:
        draw += method.description.samples * attempt
    fence = nonce(seed, question.case_id, question.order, str(draw))
    request = method.ask(question.shown, fence)
    return Call(question, attempt, request, key_of(request, judge, question.order, draw))


def _orders(case_id: CaseId, seed: str, swap_share: float) -> tuple[Order, ...]:
    if swap_share == 1:
        return (Order.AB, Order.BA)
    return orders_within_budget(case_id, seed=seed, share=swap_share)


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
    told: Callable[[Progress], None] = lambda _: None,
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
    told : callable
        Called with a `Progress` whenever a question is done.

    Raises
    ------
    DataError
        If a case does not fit the method.
    """
    asked = tuple(
        questions(
            cases,
            method,
            seed=options.seed,
            swap_share=options.swap_share,
            as_given=options.as_given,
        )
    )
    expected = method.description.tokens_out
    rng = rng or np.random.default_rng()
    asker = Asker(complete, options, tokens_out=expected, now=now, sleep=sleep, rng=rng)
    runner = _Runner(asked, method, journal, options, asker, now, sleep, told)
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
class _Found:
    """What is known of a question so far."""

    reading: Reading | None = None
    failure: FailureClass | None = None
    detail: str = ""
    keys: tuple[Key, ...] = ()
    cost_usd: float | None = None
    latency_s: float | None = None
    recalled: bool = True

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
        asked: tuple[Question, ...],
        method: Method,
        journal: Journal,
        options: Options,
        asker: Asker,
        now: Now,
        sleep: Sleep,
        told: Callable[[Progress], None],
    ) -> None:
        self._questions, self._method, self._journal = asked, method, journal
        self._options, self._asker = options, asker
        self._now, self._sleep, self._told = now, sleep, told
        self._began = now()
        self._tally = Tally(len(asked))
        self._queue: asyncio.Queue[Call | None] = asyncio.Queue(options.concurrency)
        self._found = {question.name: _Found() for question in asked}
        self._elsewhere: list[Question] = []
        self._held: set[Key] = set()
        self._notes: dict[Key, dict[str, Any]] = {}
        self._n_asked = self._n_recalled = 0
        self._n_workers = 2 * options.concurrency  # while one keeps a reply, another one asks

    async def run(self) -> Run:
        try:
            async with asyncio.TaskGroup() as tasks:
                workers = [tasks.create_task(self._work()) for _ in range(self._n_workers)]
                await self._feed()
                for _ in workers:
                    await self._queue.put(None)
        finally:
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
        calls = [self._call(question, 0) for question in batch if not self._settled(question)]
        replies = await self._journal.recall([call.key for call in calls])
        for call in calls:
            if call.key in replies:
                again = await self._read(call, replies[call.key], recalled=True)
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
            return await self._read(call, replies[call.key], recalled=True)
        if await self._claimed([call.key]):
            return call
        self._elsewhere.append(call.question)
        return None

    async def _asked(self, call: Call) -> Call | None:
        """Ask; keep the reply before anybody reads it; return the attempt that is due next."""
        try:
            reply = await self._asker.reply(call.request)
        except CallError as error:
            await self._give_up(call.key)
            if error.failure is not FailureClass.DENIED:
                self._done(call.question, error.failure, error.detail)
            return None
        if reply is None:
            await self._give_up(call.key)
            return None
        await _to_its_end(self._kept(call, reply))
        return await self._read(call, reply, recalled=False)

    async def _kept(self, call: Call, reply: Reply) -> None:
        await self._journal.keep(call.key, call.request, reply)
        self._held.discard(call.key)

    async def _read(self, call: Call, reply: Reply, *, recalled: bool) -> Call | None:
        """Read a kept reply; return the next attempt if this one says nothing."""
        self._book(call, reply, recalled=recalled)
        said = self._method.read(call.question.shown, reply)
        await self._note(call.key, said)
        last = call.attempt + 1 == self._options.attempts or self._asker.stopped
        if said in self._options.anew and not last:
            return self._call(call.question, call.attempt + 1)
        self._done(call.question, said)
        return None

    def _book(self, call: Call, reply: Reply, *, recalled: bool) -> None:
        """Remember what a reply cost; a question that is looked at again has it booked already."""
        found = self._found[call.question.name]
        if call.key in found.keys:
            return
        cost = cost_of(call.request, reply, self._options.price)
        found.book((call.key,), cost, reply.latency_s)
        found.recalled &= recalled
        self._n_recalled += recalled
        self._n_asked += not recalled

    def _done(self, question: Question, said: Reading | FailureClass, detail: str = "") -> None:
        found = self._found[question.name]
        if isinstance(said, FailureClass):
            found.failure, found.detail = said, detail
        else:
            found.reading = said
        asked = found.failure is not None or bool(found.keys)
        self._tally.add(found.failure, recalled=found.recalled, settled=not asked)
        if alike := self._tally.all_alike(ALIKE):
            self._asker.stop(Stop.ALIKE, f"the first {ALIKE} questions all failed: {alike}")
        self._told(self._progress())

    def _progress(self) -> Progress:
        return self._tally.progress(
            faults=self._asker.faults,
            spent_usd=self._asker.spent_usd,
            elapsed_s=self._now() - self._began,
        )

    def _call(self, question: Question, attempt: int) -> Call:
        judge, seed = self._options.judge, self._options.seed
        return call_of(question, self._method, judge=judge, seed=seed, attempt=attempt)

    async def _claimed(self, keys: Sequence[Key]) -> frozenset[Key]:
        ours = await self._journal.claim(keys) if keys else frozenset[Key]()
        self._held.update(ours)
        return ours

    async def _give_up(self, key: Key) -> None:
        await self._journal.release([key])
        self._held.discard(key)

    async def _note(self, key: Key, said: Reading | FailureClass) -> None:
        self._notes[key] = noted(said)
        if len(self._notes) >= _NOTES:
            await self._note_all()

    async def _note_all(self) -> None:
        notes, self._notes = self._notes, {}
        if notes:
            await self._journal.note(self._method.description.parser_name, notes)

    def _ended(self) -> Run:
        in_rows = groupby(self._questions, key=lambda question: question.name[:2])
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
        found = _together([self._found[question.name] for question in samples])
        return Judged(
            case_id=samples[0].case_id,
            order=samples[0].order,
            reading=found.reading,
            failure=found.failure,
            detail=found.detail,
            keys=found.keys,
            cost_usd=found.cost_usd,
            latency_s=found.latency_s,
            recalled=found.recalled,
        )


def _together(samples: Sequence[_Found]) -> _Found:
    """Make one of all samples of a question; it is pending while any of them is."""
    if len(samples) == 1:
        return samples[0]
    whole = _Found(recalled=all(f.recalled for f in samples))
    for f in samples:
        whole.book(f.keys, f.cost_usd, f.latency_s)
    readings = [f.reading for f in samples if f.reading is not None]
    failed = [f for f in samples if f.failure is not None]
    if len(readings) + len(failed) < len(samples):
        return whole
    if readings:
        whole.reading = pooled(readings)
    else:
        whole.failure, whole.detail = failed[0].failure, failed[0].detail
    return whole


async def _to_its_end(work: Coroutine[Any, Any, None]) -> None:
    """Let a write finish even if its caller is cancelled: what it writes was paid for."""
    task = asyncio.ensure_future(work)
    try:
        await asyncio.shield(task)
    except asyncio.CancelledError:
        await task
        raise
