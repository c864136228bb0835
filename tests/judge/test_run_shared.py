"""A run that is cut off, or shared by several processes, pays for no answer twice."""

import asyncio
from collections.abc import Collection, Sequence
from dataclasses import replace

import numpy as np
import pytest

from judge.calls import Key, Options, forecast
from judge.case import CUT, Case, FailureClass, Reply, Request
from judge.grammar import Preference
from judge.methods import method as named
from judge.protocol import Description, Method
from rating.errors import DataError
from tests.judge.runs import EACH, GOOD, PRICE, error, judge, statuses
from tests.judge.scripted import (
    OPTIONS,
    Clock,
    Memory,
    MemoryJournal,
    Script,
    ScriptedJudge,
    case,
    cases,
    judged,
)


class Unreadable(Method):
    @property
    def description(self) -> Description:
        return named("pairwise").description

    def ask(self, case: Case, nonce: str) -> Request:
        return named("pairwise").ask(case, nonce)

    def read(self, case: Case, reply: Reply) -> Preference:
        raise ZeroDivisionError("planted in the parser")


async def test_a_reply_is_kept_before_anybody_reads_it() -> None:
    memory, asked = Memory(), judge()
    with pytest.raises(ZeroDivisionError, match="planted"):
        await judged(cases(1), Unreadable(), asked, MemoryJournal(memory))
    assert len(memory.replies) >= 1
    assert memory.holders == {}
    run = await judged(cases(1), named("pairwise"), asked, MemoryJournal(memory))
    assert statuses(run.judged) == {"read"}
    assert run.n_recalled >= 1


async def cancelled_after(
    seconds: float, some: Sequence[Case], asked: ScriptedJudge, journal: MemoryJournal
) -> None:
    task = asyncio.create_task(judged(some, named("pairwise"), asked, journal))
    await asked.clock.sleep(seconds)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


async def test_a_cancelled_run_keeps_what_was_answered_and_holds_nothing() -> None:
    memory, asked = Memory(), judge()
    await cancelled_after(3.5, cases(20), asked, MemoryJournal(memory))
    assert len(memory.replies) == asked.answered.total() == 3 * OPTIONS.concurrency
    assert memory.holders == {}
    assert len(memory.notes) == len(memory.replies)
    run = await judged(cases(20), named("pairwise"), asked, MemoryJournal(memory))
    assert run.n_recalled == 12
    assert set(asked.answered.values()) == {1}


class SlowJournal(MemoryJournal):
    """Takes its time to write."""

    clock: Clock

    async def keep(self, key: Key, request: Request, reply: Reply) -> None:
        await self.clock.sleep(5.0)
        await super().keep(key, request, reply)


async def test_a_reply_that_is_being_written_when_the_run_is_cancelled_is_written() -> None:
    asked, memory = judge(), Memory()
    journal = SlowJournal(memory)
    journal.clock = asked.clock
    await cancelled_after(2.0, cases(10), asked, journal)
    assert len(memory.replies) == asked.answered.total() == OPTIONS.concurrency
    assert memory.holders == {}


async def test_two_runs_on_one_journal_share_the_work_and_both_see_all_of_it() -> None:
    memory, asked = Memory(), judge()
    first, second = await asyncio.gather(
        judged(cases(15), named("pairwise"), asked, MemoryJournal(memory, "one")),
        judged(cases(15), named("pairwise"), asked, MemoryJournal(memory, "two")),
    )
    assert set(asked.asked.values()) == {1}
    assert first.n_asked + second.n_asked == 30
    assert min(first.n_asked, second.n_asked) > 5
    assert statuses(first.judged) == statuses(second.judged) == {"read"}


async def test_what_a_dead_process_held_is_taken_up_by_another() -> None:
    memory, asked = Memory(), judge()
    dead = asyncio.create_task(
        judged(cases(6), named("pairwise"), asked, MemoryJournal(memory, "dead"))
    )
    await asked.clock.sleep(1.5)
    held = dict(memory.holders)
    dead.cancel()
    with pytest.raises(asyncio.CancelledError):
        await dead
    memory.holders = held  # killed, it gave up nothing
    other = asyncio.create_task(
        judged(cases(6), named("pairwise"), asked, MemoryJournal(memory, "two"))
    )
    await asked.clock.sleep(20)
    assert not other.done()
    memory.bury("dead")
    run = await other
    assert statuses(run.judged) == {"read"}
    assert set(asked.answered.values()) == {1}


class HeldOnce(MemoryJournal):
    """Somebody else holds what the second claim asks for, until the third."""

    n_claims = 0

    async def claim(self, keys: Collection[Key]) -> frozenset[Key]:
        self.n_claims += 1
        return frozenset() if self.n_claims == 2 else await super().claim(keys)


async def test_a_question_that_had_to_wait_for_another_process_is_booked_once() -> None:
    replies = iter([Reply(text="Well.", tokens_in=100, tokens_out=10)])

    def script(request: Request, before: int) -> Reply | Exception:
        return next(replies, None) or GOOD(request, before)

    options = replace(OPTIONS, concurrency=1, price=PRICE, swap_share=0.0)
    asked = judge(script)
    run = await judged([case()], named("pairwise"), asked, HeldOnce(), options)
    (row,) = run.judged
    assert len(row.keys) == 2
    assert row.cost_usd == pytest.approx(2 * EACH)
    assert (run.n_asked, run.n_recalled) == (2, 0)


def faulty(rng: np.random.Generator) -> Script:
    """Everything that can go wrong, at random."""

    def script(request: Request, before: int) -> Reply | Exception:
        draw = rng.uniform()
        if draw < 0.1:
            return error(FailureClass.RATE_LIMIT, 2.0)
        if draw < 0.2:
            return error(FailureClass.OVERLOADED)
        if draw < 0.3:
            return error(FailureClass.TRANSPORT)
        if draw < 0.35:
            return Reply(text="I cannot help with that.")
        if draw < 0.4:
            return Reply(text="Hm.")
        if draw < 0.45:
            return Reply(text="[[A]]", finish_reason=CUT)
        return GOOD(request, before)

    return script


async def test_a_run_that_is_cut_off_ten_times_amid_faults_pays_for_no_answer_twice() -> None:
    rng = np.random.default_rng(11)
    memory, asked, some = Memory(), judge(faulty(rng)), cases(150)
    for _ in range(10):
        await cancelled_after(float(rng.uniform(3, 12)), some, asked, MemoryJournal(memory))
    run = await judged(some, named("pairwise"), asked, MemoryJournal(memory))
    assert run.stopped is None
    assert len(run.judged) == 300
    assert set(run.by_status) <= {"read", "refusal", "unparsed", "truncated", "transport"}
    assert run.by_status["read"] > 250
    assert set(asked.answered.values()) == {1}
    assert asked.answered.total() == len(memory.replies)
    assert memory.holders == {}


@pytest.mark.parametrize("wrong", [{"concurrency": 0}, {"attempts": 0}])
def test_a_run_needs_at_least_one_worker_and_one_attempt(wrong: dict[str, int]) -> None:
    with pytest.raises(DataError, match="at least 1"):
        Options(judge="j", seed="s", **wrong)  # type: ignore[arg-type]


async def test_replies_under_a_former_name_of_the_judge_are_not_paid_for_again() -> None:
    memory = Memory()
    before = replace(OPTIONS, judge="judge@127.0.0.1")
    await judged(cases(3), named("pairwise"), judge(), MemoryJournal(memory), before)
    options = replace(OPTIONS, judge="judge", formerly="judge@127.0.0.1")
    foreseen = await forecast(cases(5), named("pairwise"), MemoryJournal(memory), options)
    assert foreseen.n_calls == 4
    run = await judged(cases(5), named("pairwise"), judge(), MemoryJournal(memory), options)
    assert (run.n_asked, run.n_recalled) == (4, 6)
    assert {key for row in run.judged for key in row.keys} == memory.replies.keys()
    assert {key for _, key in memory.notes} == memory.replies.keys()
