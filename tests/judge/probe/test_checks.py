"""Checks of judges whose answers to changed pairs are known."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from judge.case import Case, CaseId, Message, Order, Reply
from judge.grammar import Preference
from judge.methods import method
from judge.probe.findings import FAMILY, MARGIN, checks, dose_response, scores_of
from judge.probe.robustness import Probe
from judge.probe.similarity import LENGTH_COUNTER, Measure
from judge.probe.verdicts import DOSES, SIDE_SWAP, Pair, altered, kinds
from judge.verdict import Judged
from tests.judge.probe.texts import pairs, texts
from tests.judge.scripted import Clock, MemoryJournal, ScriptedJudge, judged, shown

ROUNDS = 200
PAIRS = [Pair(case) for case in pairs(24)]
ORIGINALS = {text for pair in PAIRS for text in (pair.case.response_a, pair.case.response_b)}
CHANGED = ("harmless", "meaning", "missing")

Tried = dict[str, tuple[Probe, ...]]
Judge = Callable[[Case], float]
"""From a case as it is shown to the probability that its first answer is the better."""


def plan(given: Sequence[Pair] = PAIRS, *groups: str) -> Tried:
    return {group: altered(group, given, kinds()[group]) for group in groups or CHANGED}


def asked(tried: Tried, judge: Judge) -> list[Judged]:
    """Ask about both cases of each probe in both orders."""
    both = [case for of in tried.values() for one in of for case in (one.case, one.control)]
    return [
        Judged(case_id=name, order=order, reading=Preference(judge(case.shown(order))))
        for name, case in {case.id: case for case in both}.items()
        for order in Order
    ]


def rows_of(tried: Tried, rows: Sequence[Judged]) -> dict[str, dict[str, Any]]:
    return {row["kind"]: row for row in checks(tried, scores_of(rows), {})}


def scoring(measure: Measure) -> Judge:
    """Prefer the answer that a measure of similarity to the prompt scores higher."""
    scorer = measure.fit(texts(5))

    def judge(case: Case) -> float:
        prompt = case.prompt[-1].content
        first, second = scorer.rows([prompt, prompt], [case.response_a, case.response_b or ""])
        return float((1 + np.sign(first - second)) / 2)

    return judge


def knowing(case: Case) -> float:
    """Prefer an answer as people wrote it to a copy, and of two such, or two copies, neither."""
    first, second = (text in ORIGINALS for text in (case.response_a, case.response_b))
    return 0.5 if first == second else float(first)


def test_a_judge_that_knows_the_original_does_all_that_is_expected() -> None:
    tried = plan()
    rows = rows_of(tried, asked(tried, knowing))
    assert {row["finding"] for row in rows.values()} == {"as_expected"}
    assert {row["rate"] for row in rows.values()} == {1.0}
    assert all(row["lower"] > row["expected_above"] for row in rows.values())
    asked_of = {kind for group in CHANGED for kind in kinds()[group]}
    assert asked_of - rows.keys() == {"Markdown stripped", "labels renamed"}, "nothing to change"


def test_a_judge_of_length_is_exposed() -> None:
    tried = plan()
    judgements = asked(tried, scoring(LENGTH_COUNTER))
    rows = rows_of(tried, judgements)
    for kind in ("word shuffle", "sentence shuffle", "number changed"):
        assert (rows[kind]["rate"], rows[kind]["finding"]) == (0.5, "cannot_tell")
    for kind in ("negation", "25% inserted", "50% inserted", "100% inserted"):
        assert (rows[kind]["rate"], rows[kind]["finding"]) == (0, "not_as_expected")
    for kind in ("conclusion dropped", "25% removed", "75% removed", SIDE_SWAP):
        assert (rows[kind]["rate"], rows[kind]["finding"]) == (1, "as_expected")
    response = dose_response(tried["missing"], judgements, (0, 1))
    assert response["removed"]["lower"] > 0.3
    assert response["inserted"]["upper"] < -0.3


def test_a_judge_of_the_first_place_is_caught_by_the_swap_alone() -> None:
    tried = plan()
    judgements = asked(tried, lambda case: 1.0)
    rows = rows_of(tried, judgements)
    assert (rows[SIDE_SWAP]["rate"], rows[SIDE_SWAP]["finding"]) == (0, "not_as_expected")
    assert (rows["random case"]["rate"], rows["random case"]["finding"]) == (1, "as_expected")
    for group in ("meaning", "missing"):
        rates = {row["rate"] for row in rows.values() if row["group"] == group}
        assert rates == {0.5}
    assert dose_response(tried["missing"], judgements, (0, 1))["removed"]["value"] is None


def test_a_judge_that_is_surer_the_more_is_gone_follows_the_dose() -> None:
    tried = plan(PAIRS, "missing")
    by_pair = {
        frozenset((one.case.response_a, one.case.response_b)): DOSES[one.kind][1]
        for one in tried["missing"]
    }

    def judge(case: Case) -> float:
        dose = by_pair.get(frozenset((case.response_a, case.response_b)), 0.0)
        first = case.response_a in ORIGINALS
        return 0.5 + dose / 4 if first else 0.5 - dose / 4

    response = dose_response(tried["missing"], asked(tried, judge), (0, 1))
    assert [one["value"] for one in response.values()] == [pytest.approx(1)] * 2
    few = plan(PAIRS[:3], "missing")
    assert dose_response(few["missing"], asked(few, judge), (0, 1))["removed"] == {
        **{"value": pytest.approx(1), "lower": None, "upper": None},
        "n": 3 * 5,
    }


def test_what_has_no_verdict_is_counted_and_in_no_share() -> None:
    tried = plan(PAIRS, "meaning")
    lost = {one.case.id for one in tried["meaning"] if one.kind == "negation"} - {
        tried["meaning"][0].control.id
    }
    read = [row for row in asked(tried, knowing) if row.case_id not in lost]
    rows = rows_of(tried, read)
    assert rows["negation"]["n_undecided"] == 24
    assert (rows["negation"]["n"], rows["negation"]["rate"]) == (0, None)
    assert rows["negation"]["finding"] == "cannot_tell"
    assert (rows["word shuffle"]["n"], rows["word shuffle"]["n_undecided"]) == (24, 0)


def test_people_s_votes_are_agreed_with_by_the_vote() -> None:
    cases = [pair.case for pair in PAIRS]
    tried = {"people": tuple(Probe("votes", case, case) for case in cases)}
    votes = dict.fromkeys(cases, ((1, 0), (1, 0), (1, 0), (0, 1)))
    (row,) = checks(tried, {case.id: 0.0 for case in cases}, votes)
    assert (row["rate"], row["n"], row["prompts"]) == (0.75, 96, 24)
    assert row["finding"] == "as_expected"
    assert row["lower"] > 0.5
    (other,) = checks(tried, {case.id: 1.0 for case in cases}, votes)
    assert (other["rate"], other["finding"]) == (0.25, "not_as_expected")
    (tie,) = checks(tried, {case.id: 0.5 for case in cases}, votes)
    assert (tie["rate"], tie["finding"]) == (0.5, "cannot_tell")
    for n, findings in ((8, ["as_expected", "not_as_expected"]), (7, ["cannot_tell"] * 2)):
        some, alike = {"people": tried["people"][:n]}, dict.fromkeys(cases, ((1, 0),))
        rows = [checks(some, {case.id: for_b for case in cases}, alike) for for_b in (0.0, 1.0)]
        assert [row["finding"] for (row,) in rows] == findings
    alike = dict.fromkeys(cases, ((1, 0),))
    for more, finding in ((plan(PAIRS, "meaning"), "cannot_tell"), ({}, "not_as_expected")):
        six = checks(tried | more, {case.id: float(n >= 6) for n, case in enumerate(cases)}, alike)
        assert six[0]["finding"] == finding, "six of 24: p is 0.023"


def test_pairs_of_one_prompt_count_as_one() -> None:
    prompt = (Message("user", "Why?"),)
    same = [Pair(replace(pair.case, prompt=prompt)) for pair in PAIRS]
    tried = plan(same, "meaning")
    (row, *_) = rows_of(tried, asked(tried, knowing)).values()
    assert (row["n"], row["prompts"], row["finding"]) == (24, 1, "cannot_tell")
    assert row["lower"] < 0.3


def test_more_pairs_and_other_kinds_change_no_question() -> None:
    every = plan()
    for group in CHANGED:
        few = altered(group, PAIRS, kinds()[group], most=12)
        assert few == every[group][: len(few)]
    alone = altered("meaning", PAIRS, ("negation",))
    assert [one for one in every["meaning"] if one.kind == "negation"] == [*alone]


def test_harmless_changes_keep_the_sides_of_the_file_and_others_take_the_better_answer() -> None:
    pair = Pair(PAIRS[0].case, turned=True)
    harmless, meaning = (
        altered(group, [pair], kinds()[group]) for group in ("harmless", "meaning")
    )
    assert {one.control for one in harmless} == {pair.case.swapped()}
    assert {one.control.response_a for one in meaning} == {pair.case.response_a}
    assert {one.case.response_a for one in meaning} == {pair.case.response_a}


def test_a_conversation_stays_one() -> None:
    turns = (Message("user", "Hi"), Message("user", "Why is that so?"))
    case = Case(turns, "It is so.", "It was so.", ("Hello.",), ("Hey.",))
    (one,) = altered("meaning", [Pair(case)], ("negation",))
    assert (one.case.prompt, one.case.earlier_a) == (turns, ("Hello.",))
    assert (one.case.earlier_b, one.case.response_b) == (("Hello.",), "It is not so.")


async def test_marks_fall_where_an_answer_is_cut() -> None:
    single = altered("missing", PAIRS, kinds()["missing"], single=True)
    assert all(one.case.response_b is None for one in single)
    longest = max(len(text) for text in ORIGINALS if text)

    def script(request: Any, before: int) -> Reply:
        (answer,) = shown(request)
        return Reply(text=f"[[{min(10, 1 + 8 * len(answer) // longest)}]]")

    both = [case for one in single for case in (one.case, one.control)]
    run = await judged(
        both,
        method("rubric", rubric="10 is long, 1 is short."),
        ScriptedJudge(script, Clock(), latency_s=0),
        MemoryJournal(),
    )
    rows = {
        row["kind"]: row for row in checks({"missing": single}, scores_of(run.judged, (1, 10)), {})
    }
    assert (rows["75% removed"]["rate"], rows["75% removed"]["finding"]) == (1, "as_expected")
    assert rows["100% inserted"]["finding"] == "not_as_expected"
    assert dose_response(single, run.judged, (1, 10))["removed"]["value"] > 0.7


def simulated(n: int, group: str, right: float, wrong: float) -> tuple[float, float, float]:
    """Return how often a kind is as expected, how often not, and in how many audits any is not.

    ``right`` is how often a verdict is as expected, ``wrong`` what side B gets where it is not.
    """
    rng, tried = np.random.default_rng(n), plan(PAIRS[:n], group)
    findings = []
    for _ in range(ROUNDS):
        drawn: dict[CaseId | tuple[CaseId, Order], float] = {}
        for one in tried[group]:
            drawn[one.control.id] = 0.5 if group == "meaning" else 0.0
            drawn[one.case.id] = 0.0 if rng.random() < right else wrong
        kinds_drawn = {group: tuple(one for one in tried[group] if not one.by_order)}
        findings.append([row["finding"] for row in checks(kinds_drawn, drawn, {})])
    expected, not_expected = (
        np.mean([one.count(finding) / len(one) for one in findings])
        for finding in ("as_expected", "not_as_expected")
    )
    return (
        float(expected),
        float(not_expected),
        float(np.mean(["not_as_expected" in one for one in findings])),
    )


@pytest.mark.slow
@pytest.mark.parametrize("n", [8, 24])
def test_a_coin_is_seldom_found_to_notice_or_to_miss_anything(n: int) -> None:
    notices, _, misses = simulated(n, "meaning", 0.5, 1.0)
    assert misses <= FAMILY + 3 * np.sqrt(FAMILY * (1 - FAMILY) / ROUNDS)
    assert notices <= 0.025 + 3 * np.sqrt(0.025 * 0.975 / ROUNDS)


@pytest.mark.slow
def test_a_judge_that_changes_as_often_as_the_margin_is_seldom_found_to_keep_its_verdict() -> None:
    unchanged, _, _ = simulated(24, "harmless", 1 - MARGIN, 0.5)
    assert unchanged <= 0.025 + 3 * np.sqrt(0.025 * 0.975 / ROUNDS)


@pytest.mark.slow
def test_a_judge_that_notices_nine_of_ten_changes_is_found_to_with_24_prompts() -> None:
    notices, misses, _ = simulated(24, "meaning", 0.9, 1.0)
    assert notices > 0.9
    assert misses == 0
