"""A run stops at its budget and where nothing works, and tells how far it is."""

import re
from dataclasses import replace

import numpy as np
import pytest

from judge.calls import AGAIN, Profile, RateLimits, Terms, forecast
from judge.case import FILTERED, CallError, FailureClass, Reply, Request
from judge.methods import WRITER, published
from judge.methods import method as named
from judge.runs import Progress, judge_all
from judge.tables.cases import NamedCase
from judge.verdict import Stop
from rating.errors import DataError
from tests.judge.runs import EACH, GOOD, PRICE, Comparing, error, failing, judge, never, statuses
from tests.judge.scripted import OPTIONS, Memory, MemoryJournal, case, cases, judged, label_reply


async def test_a_judge_who_denies_everything_is_asked_no_further() -> None:
    asked = judge(failing(*[error(FailureClass.DENIED)] * 9))
    run = await judged(cases(50), named("pairwise"), asked, MemoryJournal())
    assert run.stopped is Stop.DENIED
    assert run.why == (
        "planted denied: top up the account, or correct the key or the model's name, and run the "
        "same command again: replies so far are kept, and none is paid for twice"
    )
    assert statuses(run.judged) == {"pending"}
    assert asked.asked.total() <= OPTIONS.concurrency


async def test_who_waits_to_try_again_when_a_run_stops_waits_no_longer() -> None:
    def script(request: Request, before: int) -> Reply | Exception:
        if "Question 0?" not in request.messages[-1].content:
            return error(FailureClass.RATE_LIMIT, 290.0)
        clock_times.append(asked.clock.now())
        return error(FailureClass.DENIED)

    clock_times: list[float] = []
    asked = judge(script)
    options = replace(OPTIONS, concurrency=3)
    run = await judged(cases(2), named("pairwise"), asked, MemoryJournal(), options)
    assert (run.stopped, statuses(run.judged)) == (Stop.DENIED, {"pending"})
    assert asked.clock.now() == max(clock_times)


async def test_who_waits_for_the_rate_when_a_run_stops_asks_nothing() -> None:
    asked = judge(failing(*[error(FailureClass.DENIED)] * 9))
    options = replace(OPTIONS, limits=RateLimits(requests_per_minute=6))
    await judged(cases(50), named("pairwise"), asked, MemoryJournal(), options)
    assert asked.asked.total() == 1


async def test_a_run_whose_last_requests_all_failed_alike_gives_up_and_says_so() -> None:
    memory = Memory()
    asked = judge(lambda request, before: Reply(text="m"))
    run = await judged(cases(200), named("alpaca_eval"), asked, MemoryJournal(memory))
    assert run.stopped is Stop.ALIKE
    assert run.why == "the last 20 requests all failed: no_logprobs"
    assert 20 <= asked.asked.total() <= 20 + OPTIONS.concurrency
    assert set(run.by_status) == {"no_logprobs", "pending"}


async def test_what_is_known_not_to_work_is_not_paid_for_again() -> None:
    memory, terms = Memory(), Terms()
    options = replace(OPTIONS, terms=terms)
    asked = judge(lambda request, before: Reply(text="m"))
    await judged(cases(200), named("alpaca_eval"), asked, MemoryJournal(memory), options)
    with pytest.raises(DataError, match=r"gives no log-probabilities.*20 replies in a row"):
        await judged(
            cases(200), named("alpaca_eval"), judge(never), MemoryJournal(memory), options
        )
    with pytest.raises(DataError, match="gives no log-probabilities"):
        await forecast(cases(9), named("alpaca_eval"), MemoryJournal(memory), options)


async def test_ties_that_need_no_question_do_not_hide_that_all_else_fails_alike() -> None:
    alike = [case(number, "Same.", "Same.") for number in range(5)]
    asked = judge(lambda request, before: Reply(text="m"))
    run = await judged([*alike, *cases(50)], named("alpaca_eval"), asked, MemoryJournal())
    assert run.stopped is Stop.ALIKE
    assert sum(asked.asked.values()) < 30
    assert statuses(run.judged[:10]) == {"settled"}


async def test_an_endpoint_that_dies_in_the_middle_stops_the_run() -> None:
    def script(request: Request, before: int) -> Reply:
        n = int(re.findall(r"Question (\d+)", request.messages[-1].content)[0])
        return Reply(text="m") if n > 60 else label_reply(0.9)

    run = await judged(cases(400), named("alpaca_eval"), judge(script), MemoryJournal())
    assert run.stopped is Stop.ALIKE
    assert run.by_status["read"] >= 100


async def test_a_run_ends_whose_first_cases_are_all_refused() -> None:
    """And each later run, which looks only at what it asks itself."""

    def script(request: Request, before: int) -> Reply | Exception:
        n = int(re.findall(r"Question (\d+)", request.messages[-1].content)[0])
        return Reply(text="", finish_reason=FILTERED) if n < 40 else GOOD(request, before)

    memory = Memory()
    run = await judged(cases(60), named("pairwise"), judge(script), MemoryJournal(memory))
    assert run.stopped is None
    assert run.by_status == {"refusal": 80, "read": 40}
    more = await judged(cases(70), named("pairwise"), judge(script), MemoryJournal(memory))
    assert (more.stopped, more.n_asked) == (None, 20)


async def test_a_run_ends_in_which_everything_is_refused_or_too_long() -> None:
    refuses = judge(lambda request, before: Reply(text="", finish_reason=FILTERED))
    run = await judged(cases(60), named("pairwise"), refuses, MemoryJournal())
    assert (run.stopped, run.by_status) == (None, {"refusal": 120})
    long = judge(failing(*[error(FailureClass.TOO_LONG)] * 9))
    run = await judged(cases(60), named("pairwise"), long, MemoryJournal())
    assert (run.stopped, run.by_status) == (None, {"too_long": 120})


async def test_a_refusal_is_asked_again_only_on_request_and_what_then_came_is_kept() -> None:
    memory = Memory()
    refuses = judge(lambda request, before: Reply(text="", finish_reason=FILTERED))
    await judged(cases(3), named("pairwise"), refuses, MemoryJournal(memory))
    stands = await judged(cases(3), named("pairwise"), judge(never), MemoryJournal(memory))
    assert statuses(stands.judged) == {"refusal"}
    again = replace(OPTIONS, again=frozenset({FailureClass.REFUSAL}))
    for n_replies in (12, 18):  # one more of each, every time
        run = await judged(cases(3), named("pairwise"), refuses, MemoryJournal(memory), again)
        assert (statuses(run.judged), run.n_asked) == ({"refusal"}, 6)
        assert len(memory.replies) == n_replies
    run = await judged(cases(3), named("pairwise"), judge(), MemoryJournal(memory), again)
    assert statuses(run.judged) == {"read"}
    later = await judged(cases(3), named("pairwise"), judge(never), MemoryJournal(memory))
    assert statuses(later.judged) == {"read"}, "what was paid for is read without being asked for"


async def test_an_unparsed_question_is_asked_again_on_request_as_often_as_that_is_told() -> None:
    memory, vague = Memory(), judge(lambda request, before: Reply(text="Who knows?"))
    run = await judged(cases(2), named("pairwise"), vague, MemoryJournal(memory))
    assert (run.by_status, run.n_asked) == ({"unparsed": 4}, 8)
    again = replace(OPTIONS, again=AGAIN["unparsed"])
    for _ in range(3):
        run = await judged(cases(2), named("pairwise"), vague, MemoryJournal(memory), again)
        assert (run.by_status, run.n_asked) == ({"unparsed": 4}, 4)
    clear = judge()
    run = await judged(cases(2), named("pairwise"), clear, MemoryJournal(memory), again)
    assert (run.by_status, run.n_asked) == ({"read": 4}, 4)
    later = await judged(cases(2), named("pairwise"), judge(never), MemoryJournal(memory))
    assert (later.by_status, later.n_recalled) == ({"read": 4}, 4 * 6)
    estimate = await forecast(cases(2), named("pairwise"), MemoryJournal(memory), again)
    assert estimate.n_calls == 0


async def test_requests_that_are_all_rejected_stop_a_run_and_some_do_not() -> None:
    all_of_them = judge(failing(*[error(FailureClass.REJECTED)] * 9))
    run = await judged(cases(200), named("pairwise"), all_of_them, MemoryJournal())
    assert run.stopped is Stop.ALIKE
    assert run.why == "the last 20 requests all failed: rejected (planted rejected)"

    def the_first(request: Request, before: int) -> Reply | Exception:
        n = int(re.findall(r"Question (\d+)", request.messages[-1].content)[0])
        return error(FailureClass.REJECTED) if n < 50 else GOOD(request, before)

    run = await judged(cases(200), named("pairwise"), judge(the_first), MemoryJournal())
    assert (run.stopped, run.by_status) == (None, {"rejected": 100, "read": 300})

    def refused_once(request: Request, before: int) -> Reply | Exception:
        once = not one.asked.total() - 1
        return Reply(text="", finish_reason=FILTERED) if once else error(FailureClass.REJECTED)

    one = judge(refused_once)
    options = replace(OPTIONS, concurrency=1)
    run = await judged(cases(20), named("pairwise"), one, MemoryJournal(), options)
    assert (run.stopped, run.by_status) == (None, {"refusal": 1, "rejected": 39}), "a reply came"


DEAREST = PRICE.cost(0, 1024)  # a reply of pairwise


async def test_a_budget_stops_a_run_before_it_is_exceeded_and_another_one_goes_on() -> None:
    memory, asked = Memory(), judge()
    limit = 10 * EACH + DEAREST
    options = replace(OPTIONS, price=PRICE, limit_usd=limit)
    first = await judged(cases(20), named("pairwise"), asked, MemoryJournal(memory), options)
    assert first.stopped is Stop.BUDGET
    assert first.spent_usd is not None
    assert 4 * EACH < first.spent_usd <= limit
    assert "with a reply of 1,024 tokens" in first.why
    assert first.why.endswith(f"${limit - first.spent_usd:.2g} is left")
    assert first.spent_usd == pytest.approx(first.n_asked * EACH)
    assert first.by_status["pending"] == 40 - first.n_asked
    assert memory.holders == {}
    rest = replace(options, limit_usd=100 * EACH)
    second = await judged(cases(20), named("pairwise"), asked, MemoryJournal(memory), rest)
    assert second.stopped is None
    assert set(asked.answered.values()) == {1}
    assert sum(row.cost_usd or 0 for row in second.judged) == pytest.approx(40 * EACH)


async def test_checklists_and_the_verdicts_by_them_are_paid_from_one_budget() -> None:
    lines = "\n".join(f"- Is it {word}?" for word in ("right", "short", "kind", "clear", "new"))
    checks = "\n".join(f"{n}: [[yes]]" for n in range(1, 6))

    def script(request: Request, before: int) -> Reply:
        writes = "write checklists" in request.messages[0].content
        return Reply(text=lines if writes else checks, tokens_in=100, tokens_out=10)

    responses = [NamedCase(f"b{n}", f"p{n}", ("flint",), case(n, b=None)) for n in range(30)]
    methods = named("checklist"), published(WRITER)
    most = max(one.description.parameters.max_tokens for one in methods)
    limit = PRICE.cost(2000, most) + 40 * EACH  # 30 checklists, and some of 30 verdicts
    options = replace(OPTIONS, price=PRICE, limit_usd=limit, concurrency=1)
    of_script, journal = judge(script), MemoryJournal()
    run = await judge_all(responses, methods[0], of_script, journal, options, lambda _: None)
    assert run.stopped is Stop.BUDGET
    assert run.spent_usd == pytest.approx(run.n_asked * EACH)
    assert 30 < run.n_asked < 60
    assert (run.spent_usd or 0.0) <= limit
    nothing = replace(options, limit_usd=0.0)
    run = await judge_all(responses, methods[0], of_script, MemoryJournal(), nothing, print)
    assert (run.stopped, run.n_asked, run.by_status) == (Stop.BUDGET, 0, {"pending": 30})
    assert run.why.startswith("the next request would exceed the budget of $0")


async def test_replies_that_ended_badly_are_booked_and_count_towards_the_budget() -> None:
    paid = Reply(text="", tokens_in=1000, tokens_out=100)
    broken = CallError(FailureClass.TRANSPORT, "broke off", paid=paid)
    options = replace(OPTIONS, price=PRICE, limit_usd=1.0)
    asked = judge(failing(broken))
    run = await judged(cases(1), named("pairwise"), asked, MemoryJournal(), options)
    assert (run.by_status, run.faults) == ({"read": 2}, {FailureClass.TRANSPORT: 2})
    assert run.spent_usd == pytest.approx(2 * EACH + 2 * PRICE.cost(1000, 100))


@pytest.mark.parametrize("declared", [True, False])
async def test_a_budget_holds_with_a_judge_that_thinks(declared: bool) -> None:
    """It thinks 500 to 4,000 tokens, whatever limit of tokens it is given."""
    rng = np.random.default_rng(3)

    def script(request: Request, before: int) -> Reply:
        thought = int(rng.integers(500, 4000))
        return Reply(
            text=f"<think>{'hm ' * 9}[[B]]</think>[[A]]",
            tokens_in=100,
            tokens_out=thought + 10,
            tokens_thinking=thought,
        )

    profile = Profile(thinking_tokens=4000) if declared else Profile()
    options = replace(OPTIONS, concurrency=64, price=PRICE, limit_usd=5.0, terms=Terms(profile))
    run = await judged(cases(200), named("pairwise"), judge(script), MemoryJournal(), options)
    assert run.stopped is Stop.BUDGET
    assert run.spent_usd is not None
    assert 4.5 < run.spent_usd <= 5.0


async def test_what_was_set_aside_for_calls_that_failed_is_free_again() -> None:
    """Eight replies of any length come to more than the budget; two do not."""

    def script(request: Request, before: int) -> Reply | Exception:
        good = "Question 4?" in request.messages[-1].content
        return GOOD(request, before) if good else error(FailureClass.REJECTED)

    options = replace(OPTIONS, price=PRICE, limit_usd=2.5 * DEAREST)
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
    assert (seen[-1].n_total, seen[-1].left_s) == (20, 0)
    assert seen[-1].faults == {FailureClass.TRANSPORT: 20}
    assert seen[-1].spent_usd == pytest.approx(20 * EACH)
    memory, again = Memory(), list[Progress]()
    await judged(cases(5), named("pairwise"), judge(), MemoryJournal(memory))
    journal = MemoryJournal(memory)
    await judged(cases(10), named("pairwise"), judge(), journal, options, again.append)
    assert (again[9].n_recalled, again[9].left_s) == (10, None), "what was recalled took no time"
    assert again[14].left_s == again[14].elapsed_s > 0


async def test_a_case_that_does_not_fit_the_method_is_an_error() -> None:
    with pytest.raises(DataError, match="compares two"):
        await judged([case(b=None)], Comparing(), judge(never), MemoryJournal())
