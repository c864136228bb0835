"""A run asks each question once."""

from dataclasses import replace

import pytest

from judge.case import Order, Reply, Request
from judge.grammar import Items, Preference, Rating
from judge.methods import WRITER, published, unanswered, written
from judge.methods import method as named
from judge.report.run import rows_and_report
from judge.tables.cases import NamedCase
from judge.verdict import position_effect_of, verdicts
from rating import Outcome
from rating.errors import DataError
from tests.judge.runs import judge, never, statuses
from tests.judge.scripted import OPTIONS, Memory, MemoryJournal, case, cases, fence, judged


async def test_each_case_is_judged_in_both_orders_and_reconciled() -> None:
    some, asked = cases(5), judge()
    run = await judged(some, named("pairwise"), asked, MemoryJournal())
    assert [(row.case_id, row.order) for row in run.judged] == [
        (one.id, order) for one in some for order in Order
    ]
    assert statuses(run.judged) == {"read"}
    assert {v.outcome for v in verdicts(run.judged).values()} == {Outcome.A}
    assert set(asked.asked.values()) == {1}
    assert (run.n_asked, run.n_recalled, run.n_estimated, run.stopped) == (10, 0, 0, None)


async def test_a_reading_is_in_the_sides_as_shown_and_turned_back_on_request() -> None:
    run = await judged([case()], named("pairwise"), judge(), MemoryJournal())
    assert [row.reading for row in run.judged] == [Preference(1.0), Preference(0.0)]
    assert [row.for_a for row in run.judged] == [Preference(1.0), Preference(1.0)]


async def test_a_rerun_asks_nothing_and_finds_the_same() -> None:
    memory = Memory()
    first = await judged(cases(6), named("pairwise"), judge(), MemoryJournal(memory))
    again = await judged(cases(6), named("pairwise"), judge(never), MemoryJournal(memory))
    assert [replace(row, recalled=False) for row in again.judged] == list(first.judged)
    assert (again.n_asked, again.n_recalled) == (0, 12)
    assert all(row.recalled for row in again.judged)


async def test_a_reply_is_read_again_by_another_parser_without_being_paid_again() -> None:
    memory = Memory()
    await judged(cases(3), named("pairwise"), judge(), MemoryJournal(memory))
    assert {parser for parser, _ in memory.notes} == {"pairwise/3"}
    assert {key for _, key in memory.notes} == set(memory.replies)
    assert next(iter(memory.notes.values())) in (Preference(1.0), Preference(0.0))


async def test_more_cases_only_ask_what_is_new() -> None:
    memory, asked = Memory(), judge()
    await judged(cases(3), named("pairwise"), asked, MemoryJournal(memory))
    await judged([case(9), *cases(5)], named("pairwise"), asked, MemoryJournal(memory))
    assert len(asked.asked) == 12
    assert set(asked.asked.values()) == {1}


async def test_another_judge_another_seed_or_another_method_is_asked_anew() -> None:
    memory, asked = Memory(), judge(lambda request, before: Reply(text="[[A]] [[5]]"))
    journal = MemoryJournal(memory)
    for options in (OPTIONS, replace(OPTIONS, judge="judge-2"), replace(OPTIONS, seed="other")):
        await judged(cases(2), named("pairwise"), asked, journal, options)
    await judged(cases(2), named("rubric", rubric="1 bad, 10 good"), asked, journal)
    assert len(memory.replies) == 3 * 4 + 2


async def test_a_case_that_comes_twice_is_asked_once() -> None:
    asked = judge()
    run = await judged([*cases(2), *cases(2)], named("pairwise"), asked, MemoryJournal())
    assert len(run.judged) == 4
    assert asked.asked.total() == 4


async def test_equal_responses_are_settled_without_asking() -> None:
    same = case(1, "same", "same")
    run = await judged([same], named("pairwise"), judge(never), MemoryJournal())
    assert statuses(run.judged) == {"settled"}
    assert verdicts(run.judged)[same.id].outcome is Outcome.TIE
    with pytest.raises(DataError, match=r"^0 case in both orders"):
        position_effect_of(run.judged)


async def test_no_call_ever_carries_the_fence_of_another() -> None:
    fences: list[str] = []

    def script(request: Request, before: int) -> Reply:
        fences.append(fence(request))
        return Reply(text="[[A]]")

    await judged(cases(10), named("pairwise"), judge(script), MemoryJournal())
    assert len(set(fences)) == len(fences) == 20


async def test_the_verdicts_name_every_model_that_answered() -> None:
    """Behind one name an endpoint may change what answers, within a case too."""
    answers = iter(["owl-1", "owl-1", "owl-1", "owl-2"])

    def script(request: Request, before: int) -> Reply:
        return Reply(text="[[A]]", model=next(answers), fingerprint="fp_1")

    options = replace(OPTIONS, concurrency=1)
    pairs = cases(2)
    pairwise = named("pairwise")
    run = await judged(pairs, pairwise, judge(script), MemoryJournal(), options)
    both = [NamedCase(f"b{i}", f"p{i}", ("basalt", "flint"), one) for i, one in enumerate(pairs)]
    rows, _ = rows_and_report("owl", pairwise, both, run, 1.0)
    models = [row["resolved_model"] for row in rows if row["order"] == "both"]
    assert sorted(models) == ["owl-1", "owl-1, owl-2"]
    assert {row["system_fingerprint"] for row in rows} == {"fp_1"}
    assert [row["latency"] for row in rows] == [1.0, 1.0, None] * 2, "seconds of each order"
    assert run.to_dict()["n_estimated"] == 4, "nobody counted tokens"


async def test_as_many_are_asked_at_once_as_is_allowed_and_no_more() -> None:
    asked = judge()
    run = await judged(cases(40), named("pairwise"), asked, MemoryJournal())
    assert asked.most_at_once == OPTIONS.concurrency
    assert asked.clock.now() == pytest.approx(80 / OPTIONS.concurrency, abs=2.0)
    assert run.judged[0].latency_s == 1.0


async def test_a_checklist_is_written_once_for_a_prompt_and_used_for_all_its_responses() -> None:
    lines = "\n".join(f"- Is it {word}?" for word in ("right", "short", "kind", "clear", "new"))
    checks = "\n".join(f"{n}: [[yes]]" for n in range(1, 6))

    def script(request: Request, before: int) -> Reply:
        writes = "write checklists" in request.messages[0].content
        return Reply(text=lines if writes else checks)

    prompts = [unanswered(one) for one in (case(1), case(1, "other"), case(2))]
    asked, journal = judge(script), MemoryJournal()
    lists = written((await judged(prompts, published(WRITER), asked, journal)).judged, prompts)
    assert asked.asked.total() == 2
    run = await judged(
        [case(1), case(1, "other")], named("checklist").with_checklists(lists), asked, journal
    )
    assert [row.reading for row in run.judged] == [Items((True,) * 5)] * 2


def test_the_secret_of_a_run_is_not_printed() -> None:
    assert OPTIONS.seed not in repr(OPTIONS)


async def test_samples_are_asked_apart_and_read_together() -> None:
    answers = iter("mmMmM" + "MMMM?" + "M")

    def script(request: Request, before: int) -> Reply:
        return Reply(text=next(answers))

    asked = judge(script)
    options = replace(OPTIONS, concurrency=1)
    run = await judged([case()], named("alpaca_eval_sampled"), asked, MemoryJournal(), options)
    assert [row.reading for row in run.judged] == [Preference(0.6), Preference(0.0)]
    assert len(asked.asked) == 11


async def test_a_method_for_one_response_asks_in_one_order() -> None:
    asked = judge(lambda request, before: Reply(text="[[7]]"))
    run = await judged(
        [case(b=None)], named("rubric", rubric="1 bad, 10 good"), asked, MemoryJournal()
    )
    assert [row.reading for row in run.judged] == [Rating(7)]
    assert verdicts(run.judged) == {}


async def test_a_budgeted_run_asks_some_in_both_orders_and_learns_what_the_place_is_worth() -> (
    None
):
    asked = judge(lambda request, before: Reply(text="[[A]]"))
    options = replace(OPTIONS, swap_share=0.3)
    run = await judged(cases(100), named("pairwise"), asked, MemoryJournal(), options)
    both = len(verdicts(run.judged))
    assert 15 < both < 45
    assert asked.asked.total() == 100 + both
    effect = position_effect_of(run.judged)
    assert (effect.effect, effect.n) == (0.5, both)
