"""What fails in a run is typed, tried again where that may help, and never a verdict."""

from dataclasses import replace

import pytest

from judge.asking import PATIENCE_S, TRIES
from judge.calls import RateLimits
from judge.case import CUT, FILTERED, FailureClass, Reply, Request
from judge.methods import method as named
from judge.report.run import rows_and_report
from judge.tables.cases import NamedCase
from judge.verdict import verdicts
from rating.tables.peers import noticing
from tests.judge.runs import GOOD, PRICE, error, failing, judge, never, statuses
from tests.judge.scripted import (
    OPTIONS,
    Clock,
    Memory,
    MemoryJournal,
    ScriptedJudge,
    case,
    cases,
    judged,
    label_reply,
)


@pytest.mark.parametrize("failure", list(TRIES))
async def test_what_passes_is_tried_again_until_it_works(failure: FailureClass) -> None:
    asked = judge(failing(error(failure), error(failure)))
    run = await judged(cases(2), named("pairwise"), asked, MemoryJournal())
    assert statuses(run.judged) == {"read"}
    assert set(asked.asked.values()) == {3}
    assert run.faults == {failure: 8}


@pytest.mark.parametrize("failure", list(TRIES))
async def test_what_does_not_pass_ends_as_what_it_is_and_is_asked_on_the_next_run(
    failure: FailureClass,
) -> None:
    memory = Memory()
    asked = judge(failing(*[error(failure)] * 99))
    run = await judged(cases(2), named("pairwise"), asked, MemoryJournal(memory))
    assert statuses(run.judged) == {failure.value}
    tries = set(asked.asked.values())
    assert tries == {TRIES[failure]} or (failure in PATIENCE_S and max(tries) < TRIES[failure])
    assert run.judged[0].detail == f"planted {failure}"
    assert {v.outcome for v in verdicts(run.judged).values()} == {None}
    assert memory == Memory()
    again = await judged(cases(2), named("pairwise"), judge(), MemoryJournal(memory))
    assert statuses(again.judged) == {"read"}


async def test_a_rejected_request_is_not_tried_again_and_stops_nothing() -> None:
    def script(request: Request, before: int) -> Reply | Exception:
        bad = "Question 1?" in request.messages[-1].content
        return error(FailureClass.REJECTED) if bad else GOOD(request, before)

    asked = judge(script)
    run = await judged(cases(3), named("pairwise"), asked, MemoryJournal())
    assert run.by_status == {"read": 4, "rejected": 2}
    assert set(asked.asked.values()) == {1}


async def test_an_overloaded_endpoint_is_tried_for_half_a_minute_and_no_longer() -> None:
    times: list[float] = []
    clock = Clock()

    def script(request: Request, before: int) -> Reply | Exception:
        times.append(clock.now())
        return error(FailureClass.OVERLOADED)

    options = replace(OPTIONS, swap_share=0.0)
    asked = ScriptedJudge(script, clock)
    run = await judged(cases(1), named("pairwise"), asked, MemoryJournal(), options)
    assert run.by_status == {"overloaded": 1}
    assert 4 <= len(times) <= 8
    assert 10 <= times[-1] - times[0] <= 30


@pytest.mark.parametrize("wait", [31.0, 299.0])
async def test_an_overloaded_endpoint_that_asks_for_more_is_not_waited_for(wait: float) -> None:
    asked = judge(failing(error(FailureClass.OVERLOADED, wait)))
    run = await judged(cases(1), named("pairwise"), asked, MemoryJournal())
    assert run.by_status == {"overloaded": 2}
    assert asked.clock.now() == 1.0


async def test_a_wait_of_more_than_ten_seconds_is_reported_once_for_all_who_wait() -> None:
    clock = Clock()

    def script(request: Request, before: int) -> Reply | Exception:
        late = clock.now() > 2
        return GOOD(request, 0) if late else error(FailureClass.RATE_LIMIT, 40.0)

    reports: list[str] = []
    with noticing(reports.append):
        asked = ScriptedJudge(script, clock)
        await judged(cases(20), named("pairwise"), asked, MemoryJournal())
    (report,) = reports
    assert report.startswith("waiting 40 s before the next try (rate_limit, planted rate_limit);")
    assert report.endswith("; 1 s since the run began")


@pytest.mark.parametrize("failure", [FailureClass.RATE_LIMIT, FailureClass.OVERLOADED])
async def test_waits_after_one_another_are_each_reported(failure: FailureClass) -> None:
    asked = judge(failing(error(failure, 11.0), error(failure, 12.0), error(failure, 9.0)))
    reports: list[str] = []
    with noticing(reports.append):
        options = replace(OPTIONS, swap_share=0.0)
        await judged(cases(1), named("pairwise"), asked, MemoryJournal(), options)
    waits = [report.partition(" before")[0] for report in reports]
    assert waits == ["waiting 11 s", "waiting 12 s"]


async def test_waits_for_the_rates_that_were_allowed_are_reported_once() -> None:
    options = replace(OPTIONS, limits=RateLimits(requests_per_minute=4))
    reports: list[str] = []
    with noticing(reports.append):
        await judged(cases(9), named("pairwise"), judge(), MemoryJournal(), options)
    assert reports == ["the rates allowed make requests wait, now for 15 s"]


async def test_after_a_429_nobody_asks_before_the_time_the_server_named() -> None:
    times: list[float] = []
    clock = Clock()

    def script(request: Request, before: int) -> Reply | Exception:
        times.append(clock.now())
        return error(FailureClass.RATE_LIMIT, 40.0) if len(times) == 1 else GOOD(request, 0)

    asked = ScriptedJudge(script, clock)
    await judged(cases(20), named("pairwise"), asked, MemoryJournal())
    assert not [t for t in times if 2.0 < t < 41.0]
    assert len([t for t in times if t <= 2.0]) <= 2 * OPTIONS.concurrency


async def test_the_rate_of_requests_is_kept() -> None:
    options = replace(OPTIONS, limits=RateLimits(requests_per_minute=60))
    asked = judge(latency_s=0.01)
    await judged(cases(20), named("pairwise"), asked, MemoryJournal(), options)
    assert asked.clock.now() >= 40 - 2 - 1


READ_FAILURES = [
    (Reply(text="Both are fine."), FailureClass.UNPARSED, 2),
    (Reply(text="[[A]]", finish_reason=CUT), FailureClass.TRUNCATED, 2),
    (Reply(text="", finish_reason=FILTERED), FailureClass.REFUSAL, 1),
]


@pytest.mark.parametrize(("reply", "failure", "attempts"), READ_FAILURES)
async def test_a_reply_without_a_verdict_is_kept_typed_and_never_paid_for_again(
    reply: Reply, failure: FailureClass, attempts: int
) -> None:
    memory = Memory()
    asked = judge(lambda request, before: reply)
    run = await judged(cases(3), named("pairwise"), asked, MemoryJournal(memory))
    assert statuses(run.judged) == {failure.value}
    assert {v.outcome for v in verdicts(run.judged).values()} == {None}
    assert len(memory.replies) == asked.answered.total() == 6 * attempts
    again = await judged(cases(3), named("pairwise"), judge(never), MemoryJournal(memory))
    assert statuses(again.judged) == {failure.value}


async def test_an_unreadable_reply_is_asked_once_more_in_a_call_of_its_own() -> None:
    replies = iter([Reply(text="Well."), Reply(text="Hm.")])

    def script(request: Request, before: int) -> Reply | Exception:
        return next(replies, None) or GOOD(request, before)

    asked, memory = judge(script), Memory()
    options = replace(OPTIONS, price=PRICE)
    run = await judged([case()], named("pairwise"), asked, MemoryJournal(memory), options)
    assert statuses(run.judged) == {"read"}
    assert [len(row.keys) for row in run.judged] == [2, 2]
    assert set(asked.asked.values()) == {1}
    assert run.judged[0].latency_s == 2.0
    again = await judged([case()], named("pairwise"), judge(never), MemoryJournal(memory), options)
    assert [row.keys for row in again.judged] == [row.keys for row in run.judged]
    assert [row.cost_usd for row in again.judged] == [row.cost_usd for row in run.judged]


async def test_missing_log_probabilities_are_a_failure_and_no_guess() -> None:
    def script(request: Request, before: int) -> Reply:
        bare = "Question 1?" in request.messages[-1].content
        return Reply(text="m") if bare else label_reply(0.9)

    asked = judge(script)
    run = await judged(cases(3), named("alpaca_eval"), asked, MemoryJournal())
    assert run.by_status == {"read": 4, "no_logprobs": 2}
    assert set(asked.asked.values()) == {1}
    those = [NamedCase(f"b{n}", "p", ("basalt", "flint"), one) for n, one in enumerate(cases(3))]
    _, report = rows_and_report("owl", named("alpaca_eval"), those, run, 1.0)
    assert report["warnings"] == ["Replies without log-probabilities or verdict: 2."]


async def test_failures_of_an_endpoint_that_was_mended_are_asked_anew_on_request() -> None:
    memory = Memory()
    bare = judge(lambda request, before: Reply(text="m"))
    await judged(cases(3), named("alpaca_eval"), bare, MemoryJournal(memory))
    mended = judge(lambda request, before: label_reply(0.9))
    again = await judged(cases(3), named("alpaca_eval"), mended, MemoryJournal(memory))
    assert (statuses(again.judged), mended.asked.total()) == ({"no_logprobs"}, 0)
    options = replace(OPTIONS, anew=OPTIONS.anew | {FailureClass.NO_LOGPROBS})
    run = await judged(cases(3), named("alpaca_eval"), mended, MemoryJournal(memory), options)
    assert statuses(run.judged) == {"read"}
    assert (run.n_asked, run.n_recalled) == (6, 6)
