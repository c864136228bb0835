"""A run stops at its budget and where nothing works, and tells how far it is."""

from dataclasses import replace

import pytest

from judge.calls import RateLimits
from judge.completion import Reply, Request
from judge.errors import FailureClass
from judge.methods import method as named
from judge.runs import Progress
from judge.verdict import Stop
from rating.errors import DataError
from tests.judge.runs import EACH, GOOD, PRICE, Comparing, error, failing, judge, never, statuses
from tests.judge.scripted import (
    OPTIONS,
    Memory,
    MemoryJournal,
    case,
    cases,
    judged,
    label_reply,
)


async def test_a_judge_who_denies_everything_is_asked_no_further() -> None:
    asked = judge(failing(*[error(FailureClass.DENIED)] * 9))
    run = await judged(cases(50), named("pairwise"), asked, MemoryJournal())
    assert run.stopped is Stop.DENIED
    assert run.why == "planted denied"
    assert statuses(run.judged) == {"pending"}
    assert asked.asked.total() <= OPTIONS.concurrency


async def test_who_waits_for_the_rate_when_a_run_stops_asks_nothing() -> None:
    asked = judge(failing(*[error(FailureClass.DENIED)] * 9))
    options = replace(OPTIONS, limits=RateLimits(requests_per_minute=6))
    await judged(cases(50), named("pairwise"), asked, MemoryJournal(), options)
    assert asked.asked.total() == 1


async def test_a_run_in_which_everything_fails_alike_gives_up_and_says_so() -> None:
    memory = Memory()
    asked = judge(lambda request, before: Reply(text="m"))
    run = await judged(cases(200), named("alpaca_eval"), asked, MemoryJournal(memory))
    assert run.stopped is Stop.ALIKE
    assert "no_logprobs" in run.why
    assert 20 <= asked.asked.total() <= 20 + OPTIONS.concurrency
    assert set(run.by_status) == {"no_logprobs", "pending"}
    await judged(cases(200), named("alpaca_eval"), judge(never), MemoryJournal(memory))


async def test_ties_that_need_no_question_do_not_hide_that_all_else_fails_alike() -> None:
    alike = [case(number, "Same.", "Same.") for number in range(5)]
    asked = judge(lambda request, before: Reply(text="m"))
    run = await judged([*alike, *cases(50)], named("alpaca_eval"), asked, MemoryJournal())
    assert run.stopped is Stop.ALIKE
    assert sum(asked.asked.values()) < 30
    assert statuses(run.judged[:10]) == {"settled"}


async def test_one_reading_among_failures_keeps_a_run_going() -> None:
    def script(request: Request, before: int) -> Reply:
        return (
            label_reply(0.9) if "Question 0?" in request.messages[-1].content else Reply(text="m")
        )

    run = await judged(cases(40), named("alpaca_eval"), judge(script), MemoryJournal())
    assert run.stopped is None
    assert run.by_status == {"read": 2, "no_logprobs": 78}


async def test_a_budget_stops_a_run_before_it_is_exceeded_and_another_one_goes_on() -> None:
    memory, asked = Memory(), judge()
    options = replace(OPTIONS, price=PRICE, limit_usd=10 * EACH)
    first = await judged(cases(20), named("pairwise"), asked, MemoryJournal(memory), options)
    assert first.stopped is Stop.BUDGET
    assert first.spent_usd is not None
    assert 0 < first.spent_usd <= 10 * EACH
    assert first.spent_usd == pytest.approx(first.n_asked * EACH)
    assert first.by_status["pending"] == 40 - first.n_asked
    assert memory.holders == {}
    rest = replace(options, limit_usd=100 * EACH)
    second = await judged(cases(20), named("pairwise"), asked, MemoryJournal(memory), rest)
    assert second.stopped is None
    assert set(asked.answered.values()) == {1}
    assert sum(row.cost_usd or 0 for row in second.judged) == pytest.approx(40 * EACH)


async def test_what_was_set_aside_for_calls_that_failed_is_free_again() -> None:
    """Eight promises at the expected length come to more than the budget; two cases do not."""

    def script(request: Request, before: int) -> Reply | Exception:
        good = "Question 4?" in request.messages[-1].content
        return GOOD(request, before) if good else error(FailureClass.REJECTED)

    options = replace(OPTIONS, price=PRICE, limit_usd=40 * EACH)
    run = await judged(cases(5), named("pairwise"), judge(script), MemoryJournal(), options)
    assert run.by_status == {"rejected": 8, "read": 2}


async def test_a_budget_of_nothing_asks_nothing() -> None:
    options = replace(OPTIONS, price=PRICE, limit_usd=0.0)
    run = await judged(cases(3), named("pairwise"), judge(never), MemoryJournal(), options)
    assert run.stopped is Stop.BUDGET


async def test_without_a_price_nothing_costs_nothing_known() -> None:
    run = await judged(cases(1), named("pairwise"), judge(), MemoryJournal())
    assert run.spent_usd is None
    assert run.judged[0].cost_usd is None


async def test_progress_counts_up_to_the_whole_and_foresees_the_end() -> None:
    seen: list[Progress] = []
    options = replace(OPTIONS, price=PRICE)
    asked = judge(failing(error(FailureClass.TRANSPORT)))
    await judged(cases(10), named("pairwise"), asked, MemoryJournal(), options, seen.append)
    assert [p.n_done for p in seen] == list(range(1, 21))
    assert seen[-1].n_total == 20
    assert seen[-1].left_s == 0
    assert seen[-1].faults == {FailureClass.TRANSPORT: 20}
    assert seen[-1].spent_usd == pytest.approx(20 * EACH)
    halfway = seen[9]
    assert halfway.left_s == pytest.approx(seen[-1].elapsed_s - halfway.elapsed_s, rel=0.5)


async def test_a_case_that_does_not_fit_the_method_is_an_error() -> None:
    with pytest.raises(DataError, match="compares two"):
        await judged([case(b=None)], Comparing(), judge(never), MemoryJournal())
