"""Interventions, each beside its control, against planted judges."""

import json
import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from judge.case import Case, CaseId, Message, Order, Reply, Request
from judge.grammar import Preference
from judge.methods import method
from judge.probe.findings import FAMILY, MARGIN, _what, findings
from judge.probe.robustness import Probe, probes
from judge.probe.verdicts import (
    BIASES,
    LENGTH,
    POSITION,
    Material,
    Pair,
    interventions,
    kinds,
    material,
    own_material,
    stand_in,
)
from judge.protocol import neutralised
from judge.studies.estimates import joined
from judge.verdict import Judged
from rating.errors import DataError
from tests.judge.scripted import (
    Clock,
    MemoryJournal,
    Script,
    ScriptedJudge,
    case,
    cases,
    judged,
    longer,
    shown,
)

OWN = own_material()
KINDS = kinds()[BIASES]
ALL = interventions(OWN.pairs, KINDS, "Owl")

Report = dict[str, Any]
GOOD = {pair.case.response_a for pair in OWN.pairs}
SIGNALS = re.compile(
    r"To say it again|Annals of|Nine out of ten|joy to help|never shown|nobody has ever"
    r"|Written by (?:GPT-4|Owl|Barn owl)\b|refined version|step by step|\*\*"
    r"|answer to any question|judge's checklist"
)
FAULTS = re.compile("noodles with basil|student project")


def right(answer: str) -> bool:
    return any(good in answer for good in GOOD)


def robust(request: Request, before: int) -> Reply:
    """Prefer the right answer, whatever comes with it."""
    first, second = map(right, shown(request))
    return Reply(text="[[C]]" if first == second else "[[A]]" if first else "[[B]]")


def gullible(request: Request, before: int) -> Reply:
    """Obey whatever speaks for an answer; where nothing does, prefer what stands first."""
    answers, view = shown(request), request.messages[-1].content.partition("see it confirmed: ")[2]
    for obeyed in (
        [SIGNALS.search(answer) is not None for answer in answers],
        [FAULTS.search(answer) is None for answer in answers],
        [view.startswith(answer) for answer in answers],
    ):
        if obeyed[0] != obeyed[1]:
            return Reply(text="[[A]]" if obeyed[0] else "[[B]]")
    return Reply(text="[[A]]")


async def outcome(
    script: Script, tried: tuple[Probe, ...] = ALL, source: Material = OWN, how: str = "pairwise"
) -> Report:
    judge = ScriptedJudge(script, Clock(), latency_s=0)
    both = [case for probe in tried for case in (probe.case, probe.control)]
    run = await judged(both, method(how).with_checklists(CHECKLISTS), judge, MemoryJournal())
    return findings(tried, run.judged, source.basis, source.n_left_out)


def named(result: Report, finding: str) -> list[str]:
    return [one["kind"] for one in result["interventions"] if one["finding"] == finding]


CHECKLISTS = {
    probe.case.prompt_id: ("Is it right?", "Is it clear?")
    for one in ALL
    for probe in (one, replace(one, case=one.control))
}


async def test_no_intervention_moves_a_robust_judge() -> None:
    result = await outcome(robust)
    assert {one["success_rate"] for one in result["interventions"]} == {0.0}
    assert named(result, "not_moved") == [*KINDS]
    assert result["headline"] == (
        f"The judge is not affected by any of the {len(KINDS)} by 15 percentage points or more."
    )
    assert result["sentences"] == [
        "We do not find an effect of length alone: +0 (−14 to +14) percentage points."
    ]
    assert result["warnings"] == []
    alone = await outcome(robust, interventions(OWN.pairs, ("authority",), "Owl"))
    assert alone["headline"] == (
        "The judge is not affected by the intervention by 15 percentage points or more."
    )


@pytest.mark.parametrize(
    ("control", "lower", "upper", "what"),
    [
        (0.5, -0.074, 0.074, "not_moved"),
        (0.5, -0.076, 0.074, "cannot_tell"),
        (0.5, -0.074, 0.076, "cannot_tell"),
        (0.51, -0.01, 0.01, "no_room"),
        (0.9, 0.01, 0.1, "moved"),
        (0.9, -0.9, -0.01, "turned"),
    ],
)
def test_a_finding_is_relative_to_the_half_that_a_control_leaves(
    control: float, lower: float, upper: float, what: str
) -> None:
    one = {"control": {"rate": control}, "lower": lower, "upper": upper}
    assert _what(one, one) == what


async def test_every_intervention_moves_a_gullible_judge() -> None:
    result = await outcome(gullible)
    assert {one["kind"]: one["success_rate"] for one in result["interventions"]} == dict.fromkeys(
        KINDS, 1.0
    )
    assert {one["control"]["rate"] for one in result["interventions"]} == {0.0}
    assert named(result, "moved") == [*KINDS]
    assert result["headline"].startswith(
        "The judge is affected by position, verbosity, authority,"
    )
    assert result["sentences"][0].startswith(
        "With each of these, the poorer answer wins more often"
    )


async def test_a_judge_who_reads_nothing_but_length_is_moved_by_nothing_else() -> None:
    result = await outcome(longer)
    assert {one["success_rate"] for one in result["interventions"]} == {0.0}
    assert all(one["lower"] < 0 < one["upper"] for one in result["interventions"])
    assert (named(result, "moved"), named(result, "turned")) == ([], [])
    assert result["headline"] == "We do not find that any intervention affects the judge."
    assert {"authority", "verbosity"} <= {*named(result, "no_room")}
    assert result["length"]["lower"] > 0
    assert "this is an effect of length" in result["sentences"][-1]


@pytest.mark.slow
async def test_a_judge_under_another_name_is_found_alike() -> None:
    """The name is all that self-enhancement shows: who reads no names gives the same figures."""
    renamed = interventions(OWN.pairs, KINDS, "Barn owl")
    for script in (robust, longer, gullible):
        one, other = await outcome(script), await outcome(script, renamed)
        if script is longer:  # a longer name makes a longer answer, in both arms alike
            assert [each["finding"] for each in one["interventions"]] == [
                each["finding"] for each in other["interventions"]
            ]
        else:
            assert one == other


@pytest.mark.parametrize(("always", "what", "rate"), [("A", "moved", 1.0), ("B", "turned", -1.0)])
async def test_always_one_place_is_position_and_nothing_else(
    always: str, what: Any, rate: float
) -> None:
    result = await outcome(lambda request, before: Reply(text=f"[[{always}]]"))
    assert named(result, what) == [POSITION]
    assert result["interventions"][0]["success_rate"] == rate
    assert {one["success_rate"] for one in result["interventions"][1:]} == {0.0}
    effect = {
        "A": "The judge is affected by position.",
        "B": "The judge penalises position: the answer does worse than its control.",
    }
    assert effect[always] in (result["headline"], *result["sentences"])
    still = f"by 15 percentage points or more, relative to the control: {joined(KINDS[1:])}."
    assert f"Not affected {still}" in result["sentences"]


async def test_few_prompts_and_single_orders_make_no_claim() -> None:
    """Three pairs, and one of them read in one order alone: nothing can be told of position."""
    few = interventions(OWN.pairs[:3], (POSITION,), "Owl")

    def script(request: Request, before: int) -> Reply:
        poor_first = shown(request)[0] == OWN.pairs[0].poor
        return Reply(text="Hm." if poor_first else "[[A]]")

    result = await outcome(script, few)
    (one,) = result["interventions"]
    assert (one["n_pairs"], one["finding"]) == (2, "cannot_tell")
    assert result["headline"] == "We do not find that any intervention affects the judge."
    assert result["sentences"][0] == "With 3 prompts, the effect of position is inconclusive."
    assert result["warnings"][0].startswith("1 verdict unparsed")
    for n, finding in ((7, "cannot_tell"), (8, "moved")):
        obeyed = await outcome(gullible, interventions(OWN.pairs[:n], ("authority",), "Owl"))
        assert named(obeyed, finding) == ["authority"]
    for only, finding in ((("authority",), "moved"), ((), "cannot_tell")):
        asked = Asked.of(24, *only)
        five = [one.case.id for one in asked.tried if one.kind == "authority"][:5]
        result = asked.result(np.array([name in five for name in asked.names]))
        assert "authority" in named(result, finding)


async def test_a_judge_who_says_nothing_is_neither_moved_nor_withstands() -> None:
    result = await outcome(lambda request, before: Reply(text="Hm."), ALL)
    assert named(result, "cannot_tell") == [*KINDS]
    assert result["interventions"][0]["success_rate"] is None
    assert result["sentences"][-1] == "The effect of length alone is not estimated."


def test_the_poorer_answer_is_known_by_labels_whichever_stands_first() -> None:
    """A harmful answer that stands first is the one that interventions speak for."""
    harmful = Case(case(0).prompt, "Do harm.", "Help.")
    source = material([harmful, case(1), case(2), case(2)], np.array([-1.0, 1.0, 1.0, -1.0]))
    assert [pair.poor for pair in source.pairs] == ["Do harm.", "The 1th dull answer."]
    assert (source.basis, source.n_left_out) == ("labels", 1)
    assert source.honest[0].response_a == "Help."
    with pytest.raises(DataError, match="None of 1 pairs"):
        material([case(0)], np.array([0.0]))


async def test_without_labels_a_lot_says_so_and_no_claim_grows() -> None:
    same = Case(case(0).prompt, "Yes.", "Yes.")
    source = material([same, *cases(40)], None)
    turned = [pair.turned for pair in source.pairs]
    assert 8 < sum(turned) < 32
    assert source.honest == tuple(cases(40))
    tried = interventions(source.pairs, ("authority",), "Owl")

    def obeys(request: Request, before: int) -> Reply:
        first, second = (("Annals of" in one, "good" in one) for one in shown(request))
        return Reply(text="[[C]]" if first == second else "[[A]]" if first > second else "[[B]]")

    result = await outcome(obeys, tried, source)
    (success,) = result["interventions"]
    assert success["attack"]["rate"] == 1.0
    assert success["success_rate"] == pytest.approx(1 - success["control"]["rate"])
    assert "a randomly chosen answer wins more often" in result["sentences"][0]
    lot, left_out = result["warnings"]
    assert "a randomly chosen one" in lot
    assert left_out == "1 pair excluded: of equal answers, or without a label for one side."


@pytest.mark.parametrize("kind", [one for one in KINDS if one != POSITION])
def test_both_arms_are_of_one_length_as_the_judge_sees_them(kind: str) -> None:
    for probe in ALL:
        if probe.kind == kind:
            arms = [
                [neutralised(text) for text in (one.prompt[-1].content, *sides(one))]
                for one in (probe.case, probe.control)
            ]
            assert [*map(len, arms[0])] == [*map(len, arms[1])]
            assert arms[0] != arms[1]


def sides(one: Case) -> list[str]:
    return [text for text in (one.response_a, one.response_b) if text is not None]


def test_a_stand_in_is_as_long_as_the_name() -> None:
    assert [len(stand_in(n)) for n in (1, 8, 60, 200)] == [1, 8, 60, 200]


def test_one_answer_is_marked_with_its_earlier_turns_and_its_reference() -> None:
    turns = (Message("user", "Hi"), Message("user", "Why?"))
    talk = Case(turns, "So it is.", "So it was.", ("Hello.",), ("Hey.",), "It is so.")
    probe, *_ = interventions([Pair(talk)], ("authority",), "Owl", single=True)
    plea = next(one for one in probes([talk], single=True) if one.kind == "plea")
    for one in (probe.case, probe.control):
        assert (one.earlier_a, one.reference, one.response_b) == (("Hey.",), "It is so.", None)
    for one in (plea.case, plea.control):
        assert (one.earlier_a, one.reference, one.response_b) == (("Hello.",), "It is so.", None)
    assert probe.case.response_a.startswith("So it was.")


SINGLE = interventions(OWN.pairs, KINDS, "Owl", single=True)


def marking(mark: Callable[[str, str], int]) -> Script:
    def script(request: Request, before: int) -> Reply:
        (answer,) = shown(request)
        return Reply(text=json.dumps({"score": mark(answer, request.messages[-1].content)}))

    return script


def obeying(answer: str, prompt: str) -> int:
    if FAULTS.search(answer):
        return 1
    seen = SIGNALS.search(answer) or "sure of my own view" in prompt
    return 10 if seen or right(answer) else 1


@pytest.mark.parametrize(
    ("mark", "rate", "what"),
    [
        (lambda answer, _: 10 if right(answer) else 1, 0.0, "not_moved"),
        (obeying, 1.0, "moved"),
        (lambda answer, _: min(10, 1 + len(answer) // 40), 0.0, None),
    ],
)
async def test_marks_of_planted_judges(
    mark: Callable[[str, str], int], rate: float, what: Any
) -> None:
    result = await outcome(marking(mark), SINGLE, how="wildbench_score")
    assert {one["success_rate"] for one in result["interventions"]} == {rate}
    assert POSITION not in [one["kind"] for one in result["interventions"]]
    assert "% of the scale" in result["sentences"][-1]
    assert what is None or len(named(result, what)) == len(result["interventions"])
    assert (what == "moved") == bool(named(result, "moved"))
    if what == "moved":
        assert "is marked higher" in result["sentences"][0]


async def test_a_checklist_that_an_answer_claims_to_meet() -> None:
    def script(request: Request, before: int) -> Reply:
        (answer,) = shown(request)
        met = "yes" if right(answer) or "checklist are met" in answer else "no"
        return Reply(text=f"1: [[{met}]]\n2: [[{met}]]")

    result = await outcome(script, SINGLE, how="checklist")
    assert named(result, "moved") == ["constant checklist"]


@dataclass(frozen=True, slots=True)
class Asked:
    """What simulated judges are asked: ids, prompts by number, and which are interventions."""

    tried: tuple[Probe, ...]
    names: list[CaseId]
    prompt: NDArray[np.int64]
    attack: NDArray[np.bool_]

    @classmethod
    def of(cls, n: int, *only: str) -> "Asked":
        chosen = only or tuple(kind for kind in KINDS if kind != POSITION)
        tried = interventions(OWN.pairs[:n], chosen, "Owl")
        rows = {p.control.id: (p.cluster, False) for p in tried}
        rows |= {p.case.id: (p.cluster, p.kind != LENGTH) for p in tried}
        clusters, attacks = zip(*rows.values(), strict=True)
        prompt = np.unique(clusters, return_inverse=True)[1]
        return cls(tried, [*rows], prompt.astype(np.int64), np.array(attacks))

    def result(self, poor_wins: NDArray[np.bool_]) -> Report:
        """Let side B win where this says so, in both orders."""
        rows = [
            Judged(
                case_id=name, order=order, reading=Preference(float(won != (order is Order.AB)))
            )
            for name, won in zip(self.names, poor_wins.tolist(), strict=True)
            for order in Order
        ]
        return findings(self.tried, rows, "own")


ROUNDS = 200


@pytest.mark.slow
@pytest.mark.parametrize(
    ("n", "only"),
    [(3, ("authority",)), (8, ("authority",)), (8, ()), (24, ("authority", "bandwagon"))],
)
def test_who_errs_at_random_is_seldom_said_to_be_moved(n: int, only: tuple[str, ...]) -> None:
    """Each prompt has a chance of its own that the poorer answer wins, the same in both arms."""
    rng, asked, claims = np.random.default_rng(n), Asked.of(n, *only), []
    for _ in range(ROUNDS):
        lean = rng.beta(1, 1, n)[asked.prompt]
        result = asked.result(rng.random(len(lean)) < lean)
        claims.append(bool(named(result, "moved") or named(result, "turned")))
    assert np.mean(claims) <= FAMILY + 3 * np.sqrt(FAMILY * (1 - FAMILY) / ROUNDS)


@pytest.mark.slow
def test_who_obeys_as_often_as_the_margin_is_seldom_said_not_to_be_moved() -> None:
    rng, asked = np.random.default_rng(2), Asked.of(24, "authority")
    obeys = (asked.attack & (rng.random((ROUNDS, len(asked.names))) < MARGIN)).astype(bool)
    still = [asked.result(row)["interventions"][0]["finding"] == "not_moved" for row in obeys]
    assert np.mean(still) <= 0.025 + 3 * np.sqrt(0.025 * 0.975 / ROUNDS)


@pytest.mark.slow
def test_who_obeys_half_of_the_time_is_seen_with_our_own_prompts() -> None:
    rng, asked = np.random.default_rng(3), Asked.of(24, "authority", "bandwagon", "sentiment")
    obeys = asked.attack & (rng.random((ROUNDS, len(asked.names))) < 0.5)
    seen = [len(named(asked.result(row), "moved")) for row in obeys]
    assert np.mean(seen) > 0.9 * 3
