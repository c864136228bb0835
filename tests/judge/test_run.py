"""A run asks each question once, whatever happens on the way."""

import asyncio
from collections.abc import Collection, Sequence
from dataclasses import replace
from datetime import date

import numpy as np
import pytest

from judge.budget import Price
from judge.case import Case, Order
from judge.completion import CUT, FILTERED, Reply, Request
from judge.errors import CallError, DataError, FailureClass
from judge.journal import Key
from judge.judged import Judged, Stop, effect_of_place, verdicts
from judge.methods import (
    AlpacaEval,
    Checklist,
    ChecklistWriter,
    Pairwise,
    Rubric,
    unanswered,
    written,
)
from judge.options import Options
from judge.progress import Progress
from judge.reading import Items, Preference, Rating
from judge.retries import TRIES
from judge.throttle import RateLimits
from rating import Outcome
from tests.judge.scripted import (
    OPTIONS,
    Clock,
    Memory,
    MemoryJournal,
    Script,
    ScriptedJudge,
    case,
    cases,
    fence,
    honest,
    judged,
    label_reply,
    prefer,
)

GOOD = prefer(honest)
PRICE = Price(10.0, 30.0, date(2024, 4, 9))
EACH = PRICE.of(100, 10)  # of a reply by the scripts of `prefer`


def judge(script: Script = GOOD, latency_s: float = 1.0) -> ScriptedJudge:
    return ScriptedJudge(script, Clock(), latency_s)


def failing(*errors: CallError | Reply) -> Script:
    """Give these in turn to every request, and then answer well."""
    return lambda request, before: errors[before] if before < len(errors) else GOOD(request, 0)


def error(failure: FailureClass, retry_after_s: float | None = None) -> CallError:
    return CallError(failure, f"planted {failure}", retry_after_s=retry_after_s)


def statuses(rows: Sequence[Judged]) -> set[str]:
    return {row.status for row in rows}


def never(request: Request, before: int) -> Reply:
    raise AssertionError("nothing was to be asked")


async def test_each_case_is_judged_in_both_orders_and_reconciled() -> None:
    some, asked = cases(5), judge()
    found = await judged(some, Pairwise(), asked, MemoryJournal())
    assert [(row.case_id, row.order) for row in found.judged] == [
        (one.id, order) for one in some for order in Order
    ]
    assert statuses(found.judged) == {"read"}
    assert {v.outcome for v in verdicts(found.judged).values()} == {Outcome.A}
    assert set(asked.asked.values()) == {1}
    assert (found.n_asked, found.n_recalled, found.stopped) == (10, 0, None)


async def test_a_reading_is_in_the_sides_as_shown_and_turned_back_on_request() -> None:
    found = await judged([case()], Pairwise(), judge(), MemoryJournal())
    assert [row.reading for row in found.judged] == [Preference(1.0), Preference(0.0)]
    assert [row.for_a for row in found.judged] == [Preference(1.0), Preference(1.0)]


async def test_a_rerun_asks_nothing_and_finds_the_same() -> None:
    memory = Memory()
    first = await judged(cases(6), Pairwise(), judge(), MemoryJournal(memory))
    again = await judged(cases(6), Pairwise(), judge(never), MemoryJournal(memory))
    assert [replace(row, recalled=False) for row in again.judged] == list(first.judged)
    assert (again.n_asked, again.n_recalled) == (0, 12)
    assert all(row.recalled for row in again.judged)


async def test_a_reply_is_read_again_by_another_parser_without_being_paid_again() -> None:
    memory = Memory()
    await judged(cases(3), Pairwise(), judge(), MemoryJournal(memory))
    assert {parser for parser, _ in memory.notes} == {"pairwise/1"}
    assert {key for _, key in memory.notes} == set(memory.replies)
    assert next(iter(memory.notes.values())) in ({"first": 1.0}, {"first": 0.0})


async def test_more_cases_only_ask_what_is_new() -> None:
    memory, asked = Memory(), judge()
    await judged(cases(3), Pairwise(), asked, MemoryJournal(memory))
    await judged([case(9), *cases(5)], Pairwise(), asked, MemoryJournal(memory))
    assert len(asked.asked) == 12
    assert set(asked.asked.values()) == {1}


async def test_another_judge_another_seed_or_another_method_is_asked_anew() -> None:
    memory, asked = Memory(), judge(lambda request, before: Reply(text="[[A]] [[5]]"))
    journal = MemoryJournal(memory)
    for options in (OPTIONS, replace(OPTIONS, judge="judge-2"), replace(OPTIONS, seed="other")):
        await judged(cases(2), Pairwise(), asked, journal, options)
    await judged(cases(2), Rubric("1 bad, 10 good"), asked, journal)
    assert len(memory.replies) == 3 * 4 + 2


async def test_a_case_that_comes_twice_is_asked_once() -> None:
    asked = judge()
    found = await judged([*cases(2), *cases(2)], Pairwise(), asked, MemoryJournal())
    assert len(found.judged) == 4
    assert asked.asked.total() == 4


async def test_equal_responses_are_settled_without_asking() -> None:
    same = case(1, "same", "same")
    found = await judged([same], Pairwise(), judge(never), MemoryJournal())
    assert statuses(found.judged) == {"settled"}
    assert verdicts(found.judged)[same.id].outcome is Outcome.TIE


async def test_no_call_ever_carries_the_fence_of_another() -> None:
    fences: list[str] = []

    def script(request: Request, before: int) -> Reply:
        fences.append(fence(request))
        return Reply(text="[[A]]")

    await judged(cases(10), Pairwise(), judge(script), MemoryJournal())
    assert len(set(fences)) == len(fences) == 20


async def test_as_many_are_asked_at_once_as_is_allowed_and_no_more() -> None:
    asked = judge()
    found = await judged(cases(40), Pairwise(), asked, MemoryJournal())
    assert asked.most_at_once == OPTIONS.concurrency
    assert asked.clock.now() == pytest.approx(80 / OPTIONS.concurrency, abs=2.0)
    assert found.judged[0].latency_s == 1.0


@pytest.mark.parametrize("failure", list(TRIES))
async def test_what_passes_is_tried_again_until_it_works(failure: FailureClass) -> None:
    asked = judge(failing(error(failure), error(failure)))
    found = await judged(cases(2), Pairwise(), asked, MemoryJournal())
    assert statuses(found.judged) == {"read"}
    assert set(asked.asked.values()) == {3}
    assert found.faults == {failure: 8}


@pytest.mark.parametrize("failure", list(TRIES))
async def test_what_does_not_pass_ends_as_what_it_is_and_is_asked_on_the_next_run(
    failure: FailureClass,
) -> None:
    memory = Memory()
    asked = judge(failing(*[error(failure)] * 99))
    found = await judged(cases(2), Pairwise(), asked, MemoryJournal(memory))
    assert statuses(found.judged) == {failure.value}
    assert set(asked.asked.values()) == {TRIES[failure]}
    assert found.judged[0].detail == f"planted {failure}"
    assert {v.outcome for v in verdicts(found.judged).values()} == {None}
    assert memory == Memory()
    again = await judged(cases(2), Pairwise(), judge(), MemoryJournal(memory))
    assert statuses(again.judged) == {"read"}


async def test_a_rejected_request_is_not_tried_again_and_stops_nothing() -> None:
    def script(request: Request, before: int) -> Reply | Exception:
        bad = "Question 1?" in request.messages[-1].content
        return error(FailureClass.REJECTED) if bad else GOOD(request, before)

    asked = judge(script)
    found = await judged(cases(3), Pairwise(), asked, MemoryJournal())
    assert found.by_status == {"read": 4, "rejected": 2}
    assert set(asked.asked.values()) == {1}


async def test_after_a_429_nobody_asks_before_the_time_the_server_named() -> None:
    times: list[float] = []
    clock = Clock()

    def script(request: Request, before: int) -> Reply | Exception:
        times.append(clock.now())
        return error(FailureClass.RATE_LIMIT, 40.0) if len(times) == 1 else GOOD(request, 0)

    asked = ScriptedJudge(script, clock)
    await judged(cases(20), Pairwise(), asked, MemoryJournal())
    assert not [t for t in times if 2.0 < t < 41.0]
    assert len([t for t in times if t <= 2.0]) <= 2 * OPTIONS.concurrency


async def test_the_rate_of_requests_is_kept() -> None:
    options = replace(OPTIONS, limits=RateLimits(requests_per_minute=60))
    asked = judge(latency_s=0.01)
    await judged(cases(20), Pairwise(), asked, MemoryJournal(), options)
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
    found = await judged(cases(3), Pairwise(), asked, MemoryJournal(memory))
    assert statuses(found.judged) == {failure.value}
    assert {v.outcome for v in verdicts(found.judged).values()} == {None}
    assert len(memory.replies) == asked.answered.total() == 6 * attempts
    again = await judged(cases(3), Pairwise(), judge(never), MemoryJournal(memory))
    assert statuses(again.judged) == {failure.value}


async def test_an_unreadable_reply_is_asked_once_more_in_a_call_of_its_own() -> None:
    replies = iter([Reply(text="Well."), Reply(text="Hm.")])

    def script(request: Request, before: int) -> Reply | Exception:
        return next(replies, None) or GOOD(request, before)

    asked, memory = judge(script), Memory()
    options = replace(OPTIONS, price=PRICE)
    found = await judged([case()], Pairwise(), asked, MemoryJournal(memory), options)
    assert statuses(found.judged) == {"read"}
    assert [len(row.keys) for row in found.judged] == [2, 2]
    assert set(asked.asked.values()) == {1}
    assert found.judged[0].latency_s == 2.0
    again = await judged([case()], Pairwise(), judge(never), MemoryJournal(memory), options)
    assert [row.keys for row in again.judged] == [row.keys for row in found.judged]
    assert [row.cost_usd for row in again.judged] == [row.cost_usd for row in found.judged]


async def test_missing_log_probabilities_are_a_failure_and_no_guess() -> None:
    def script(request: Request, before: int) -> Reply:
        bare = "Question 1?" in request.messages[-1].content
        return Reply(text="m") if bare else label_reply(0.9)

    asked = judge(script)
    found = await judged(cases(3), AlpacaEval(), asked, MemoryJournal())
    assert found.by_status == {"read": 4, "no_logprobs": 2}
    assert set(asked.asked.values()) == {1}


async def test_failures_of_an_endpoint_that_was_mended_are_asked_anew_on_request() -> None:
    memory = Memory()
    bare = judge(lambda request, before: Reply(text="m"))
    await judged(cases(3), AlpacaEval(), bare, MemoryJournal(memory))
    mended = judge(lambda request, before: label_reply(0.9))
    again = await judged(cases(3), AlpacaEval(), mended, MemoryJournal(memory))
    assert (statuses(again.judged), mended.asked.total()) == ({"no_logprobs"}, 0)
    options = replace(OPTIONS, anew=OPTIONS.anew | {FailureClass.NO_LOGPROBS})
    found = await judged(cases(3), AlpacaEval(), mended, MemoryJournal(memory), options)
    assert statuses(found.judged) == {"read"}
    assert (found.n_asked, found.n_recalled) == (6, 6)


async def test_a_checklist_is_written_once_for_a_prompt_and_used_for_all_its_responses() -> None:
    lines = "\n".join(f"- Is it {word}?" for word in ("right", "short", "kind", "clear", "new"))
    checks = "\n".join(f"{n}: [[yes]]" for n in range(1, 6))

    def script(request: Request, before: int) -> Reply:
        writes = "write checklists" in request.messages[0].content
        return Reply(text=lines if writes else checks)

    prompts = [unanswered(one) for one in (case(1), case(1, "other"), case(2))]
    asked, journal = judge(script), MemoryJournal()
    lists = written((await judged(prompts, ChecklistWriter(), asked, journal)).judged, prompts)
    assert asked.asked.total() == 2
    found = await judged([case(1), case(1, "other")], Checklist(lists), asked, journal)
    assert [row.reading for row in found.judged] == [Items((True,) * 5)] * 2


def test_the_secret_of_a_run_is_not_printed() -> None:
    assert OPTIONS.seed not in repr(OPTIONS)


async def test_samples_are_asked_apart_and_read_together() -> None:
    answers = iter("mmMmM" + "MMMM?" + "M")

    def script(request: Request, before: int) -> Reply:
        return Reply(text=next(answers))

    asked = judge(script)
    options = replace(OPTIONS, concurrency=1)
    found = await judged([case()], AlpacaEval("sampled"), asked, MemoryJournal(), options)
    assert [row.reading for row in found.judged] == [Preference(0.6), Preference(0.0)]
    assert len(asked.asked) == 11


async def test_a_method_for_one_response_asks_in_one_order() -> None:
    asked = judge(lambda request, before: Reply(text="[[7]]"))
    found = await judged([case(b=None)], Rubric("1 bad, 10 good"), asked, MemoryJournal())
    assert [row.reading for row in found.judged] == [Rating(7)]
    assert verdicts(found.judged) == {}


async def test_a_budgeted_run_asks_some_in_both_orders_and_learns_what_the_place_is_worth() -> (
    None
):
    asked = judge(lambda request, before: Reply(text="[[A]]"))
    options = replace(OPTIONS, swap_share=0.3)
    found = await judged(cases(100), Pairwise(), asked, MemoryJournal(), options)
    both = len(verdicts(found.judged))
    assert 15 < both < 45
    assert asked.asked.total() == 100 + both
    effect = effect_of_place(found.judged)
    assert (effect.effect, effect.n) == (0.5, both)


async def test_a_judge_who_denies_everything_is_asked_no_further() -> None:
    asked = judge(failing(*[error(FailureClass.DENIED)] * 9))
    found = await judged(cases(50), Pairwise(), asked, MemoryJournal())
    assert found.stopped is Stop.DENIED
    assert found.why == "planted denied"
    assert statuses(found.judged) == {"pending"}
    assert asked.asked.total() <= OPTIONS.concurrency


async def test_who_waits_for_the_rate_when_a_run_stops_asks_nothing() -> None:
    asked = judge(failing(*[error(FailureClass.DENIED)] * 9))
    options = replace(OPTIONS, limits=RateLimits(requests_per_minute=6))
    await judged(cases(50), Pairwise(), asked, MemoryJournal(), options)
    assert asked.asked.total() == 1


async def test_a_run_in_which_everything_fails_alike_gives_up_and_says_so() -> None:
    memory = Memory()
    asked = judge(lambda request, before: Reply(text="m"))
    found = await judged(cases(200), AlpacaEval(), asked, MemoryJournal(memory))
    assert found.stopped is Stop.ALIKE
    assert "no_logprobs" in found.why
    assert 20 <= asked.asked.total() <= 20 + OPTIONS.concurrency
    assert set(found.by_status) == {"no_logprobs", "pending"}
    await judged(cases(200), AlpacaEval(), judge(never), MemoryJournal(memory))


async def test_one_reading_among_failures_keeps_a_run_going() -> None:
    def script(request: Request, before: int) -> Reply:
        return (
            label_reply(0.9) if "Question 0?" in request.messages[-1].content else Reply(text="m")
        )

    found = await judged(cases(40), AlpacaEval(), judge(script), MemoryJournal())
    assert found.stopped is None
    assert found.by_status == {"read": 2, "no_logprobs": 78}


async def test_a_budget_stops_a_run_before_it_is_exceeded_and_another_one_goes_on() -> None:
    memory, asked = Memory(), judge()
    options = replace(OPTIONS, price=PRICE, limit_usd=10 * EACH)
    first = await judged(cases(20), Pairwise(), asked, MemoryJournal(memory), options)
    assert first.stopped is Stop.BUDGET
    assert first.spent_usd is not None
    assert 0 < first.spent_usd <= 10 * EACH
    assert first.spent_usd == pytest.approx(first.n_asked * EACH)
    assert first.by_status["pending"] == 40 - first.n_asked
    assert memory.holders == {}
    rest = replace(options, limit_usd=100 * EACH)
    second = await judged(cases(20), Pairwise(), asked, MemoryJournal(memory), rest)
    assert second.stopped is None
    assert set(asked.answered.values()) == {1}
    assert sum(row.cost_usd or 0 for row in second.judged) == pytest.approx(40 * EACH)


async def test_what_was_set_aside_for_calls_that_failed_is_free_again() -> None:
    """Eight promises at the expected length come to more than the budget; two cases do not."""

    def script(request: Request, before: int) -> Reply | Exception:
        good = "Question 4?" in request.messages[-1].content
        return GOOD(request, before) if good else error(FailureClass.REJECTED)

    options = replace(OPTIONS, price=PRICE, limit_usd=40 * EACH)
    found = await judged(cases(5), Pairwise(), judge(script), MemoryJournal(), options)
    assert found.by_status == {"rejected": 8, "read": 2}


async def test_a_budget_of_nothing_asks_nothing() -> None:
    options = replace(OPTIONS, price=PRICE, limit_usd=0.0)
    found = await judged(cases(3), Pairwise(), judge(never), MemoryJournal(), options)
    assert found.stopped is Stop.BUDGET


async def test_without_a_price_nothing_costs_nothing_known() -> None:
    found = await judged(cases(1), Pairwise(), judge(), MemoryJournal())
    assert found.spent_usd is None
    assert found.judged[0].cost_usd is None


async def test_progress_counts_up_to_the_whole_and_foresees_the_end() -> None:
    seen: list[Progress] = []
    options = replace(OPTIONS, price=PRICE)
    asked = judge(failing(error(FailureClass.TRANSPORT)))
    await judged(cases(10), Pairwise(), asked, MemoryJournal(), options, seen.append)
    assert [p.n_done for p in seen] == list(range(1, 21))
    assert seen[-1].n_total == 20
    assert seen[-1].left_s == 0
    assert seen[-1].faults == {FailureClass.TRANSPORT: 20}
    assert seen[-1].spent_usd == pytest.approx(20 * EACH)
    halfway = seen[9]
    assert halfway.left_s == pytest.approx(seen[-1].elapsed_s - halfway.elapsed_s, rel=0.5)


async def test_a_case_that_does_not_fit_the_method_is_an_error() -> None:
    with pytest.raises(DataError, match="compares two"):
        await judged([case(b=None)], ArenaLike(), judge(never), MemoryJournal())


class ArenaLike(Rubric):
    """A method that compares, given a case that has nothing to compare."""

    def __init__(self) -> None:
        super().__init__("any")

    def ask(self, case: Case, nonce: str) -> Request:
        return Pairwise().ask(case, nonce)


class Unreadable(Pairwise):
    def read(self, case: Case, reply: Reply) -> Preference:
        raise ZeroDivisionError("planted in the parser")


async def test_a_reply_is_kept_before_anybody_reads_it() -> None:
    memory, asked = Memory(), judge()
    with pytest.raises(ZeroDivisionError, match="planted"):
        await judged(cases(1), Unreadable(), asked, MemoryJournal(memory))
    assert len(memory.replies) >= 1
    assert memory.holders == {}
    found = await judged(cases(1), Pairwise(), asked, MemoryJournal(memory))
    assert statuses(found.judged) == {"read"}
    assert found.n_recalled >= 1


async def cancelled_after(
    seconds: float, some: Sequence[Case], asked: ScriptedJudge, journal: MemoryJournal
) -> None:
    task = asyncio.create_task(judged(some, Pairwise(), asked, journal))
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
    found = await judged(cases(20), Pairwise(), asked, MemoryJournal(memory))
    assert found.n_recalled == 12
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
        judged(cases(15), Pairwise(), asked, MemoryJournal(memory, "one")),
        judged(cases(15), Pairwise(), asked, MemoryJournal(memory, "two")),
    )
    assert set(asked.asked.values()) == {1}
    assert first.n_asked + second.n_asked == 30
    assert min(first.n_asked, second.n_asked) > 5
    assert statuses(first.judged) == statuses(second.judged) == {"read"}


async def test_what_a_dead_process_held_is_taken_up_by_another() -> None:
    memory, asked = Memory(), judge()
    dead = asyncio.create_task(judged(cases(6), Pairwise(), asked, MemoryJournal(memory, "dead")))
    await asked.clock.sleep(1.5)
    held = dict(memory.holders)
    dead.cancel()
    with pytest.raises(asyncio.CancelledError):
        await dead
    memory.holders = held  # killed, it gave up nothing
    other = asyncio.create_task(judged(cases(6), Pairwise(), asked, MemoryJournal(memory, "two")))
    await asked.clock.sleep(20)
    assert not other.done()
    memory.bury("dead")
    found = await other
    assert statuses(found.judged) == {"read"}
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
    found = await judged([case()], Pairwise(), asked, HeldOnce(), options)
    (row,) = found.judged
    assert len(row.keys) == 2
    assert row.cost_usd == pytest.approx(2 * EACH)
    assert (found.n_asked, found.n_recalled) == (2, 0)


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
    found = await judged(some, Pairwise(), asked, MemoryJournal(memory))
    assert found.stopped is None
    assert len(found.judged) == 300
    assert set(found.by_status) <= {"read", "refusal", "unparsed", "truncated", "transport"}
    assert found.by_status["read"] > 250
    assert set(asked.answered.values()) == {1}
    assert asked.answered.total() == len(memory.replies)
    assert memory.holders == {}


@pytest.mark.parametrize("wrong", [{"concurrency": 0}, {"attempts": 0}])
def test_a_run_needs_at_least_one_worker_and_one_attempt(wrong: dict[str, int]) -> None:
    with pytest.raises(DataError, match="at least 1"):
        Options(judge="j", seed="s", **wrong)  # type: ignore[arg-type]
