"""The card of a judge, from its answers to trials."""

from collections import Counter

import numpy as np
import pytest

from judge.case import Order
from judge.errors import FailureClass
from judge.grammar import Preference
from judge.probe.axes import NO_VALUE, Axis, compare
from judge.probe.similarity import BAG_OF_WORDS, LENGTH_COUNTER, Measure, random_measure
from judge.probe.trials import JUDGED, SIDE_SWAP, Group, JudgePlan, judge_card
from judge.verdict import Judged
from rating.errors import DataError
from tests.judge.probe.texts import texts, voted


def plan(n: int = 60) -> JudgePlan:
    return JudgePlan.plan(voted(n), "made up", rng=np.random.default_rng(1))


def axes(probabilities: np.ndarray, of: JudgePlan | None = None) -> tuple[Axis, ...]:
    return judge_card("toy", "planted", of or plan(), probabilities, seed=1).axes


def scored(measure: Measure, of: JudgePlan | None = None) -> tuple[Axis, ...]:
    """Ask what prefers the response that a measure scores higher for the prompt."""
    of = of or plan()
    scorer = measure.fit(texts(5))
    prompts = [trial.prompt for trial in of.trials]
    first = scorer.rows(prompts, [trial.first for trial in of.trials])
    second = scorer.rows(prompts, [trial.second for trial in of.trials])
    return axes((1 + compare(first, second)) / 2, of)


def truth(of: JudgePlan) -> np.ndarray:
    """What an oracle answers: what most people prefer; the original, by the dose."""
    sides = np.sign(of.voted.votes[:, 0] - of.voted.votes[:, 1])
    answers = [
        sides[trial.row]
        if trial.group in (Group.AS_IS, Group.SUPERFICIAL)
        else float(trial.group is Group.MEANING) or trial.dose / (1 + trial.dose)
        for trial in of.trials
    ]
    turned = np.array([trial.turned for trial in of.trials])
    return np.asarray((1 + np.where(turned, -1, 1) * np.array(answers)) / 2)


def test_an_oracle_is_at_one() -> None:
    for axis in axes(truth(plan())):
        assert axis.estimate.value == pytest.approx(1), axis.name


def test_lots_hold_nothing() -> None:
    of, held = plan(), Counter[str]()
    for seed in range(12):
        for axis in scored(random_measure(seed), of):
            assert axis.estimate.lower is not None
            assert axis.estimate.upper is not None
            held[axis.name] += axis.estimate.lower <= 0 <= axis.estimate.upper
    assert min(held.values()) >= 8  # of 95 %: fewer by chance once in 5,000


def test_a_length_counter_is_exposed() -> None:
    _, robustness, sensitivity = scored(LENGTH_COUNTER)
    for name in ("word shuffle", "sentence shuffle", "number changed"):
        assert robustness.part("net sensitivity", name).value == 0
    assert robustness.part("net sensitivity", "negation").value == -1
    assert robustness.estimate.value == 0
    assert sensitivity.part("removal", "0.25").value == 1
    assert sensitivity.part("insertion", "0.25").value == -1
    assert sensitivity.estimate.value == pytest.approx(0, abs=0.1)


def test_a_bag_of_words_sees_no_order() -> None:
    _, robustness, _ = scored(BAG_OF_WORDS)
    assert robustness.part("net sensitivity", "word shuffle").value == 0
    assert robustness.part("unchanged", "wide spacing").value == 1
    assert robustness.part("unchanged", SIDE_SWAP).value == 1


def test_a_judge_that_likes_what_comes_first_is_caught_by_the_swap() -> None:
    alignment, robustness, sensitivity = axes(np.ones(len(plan().trials)))
    assert robustness.part("unchanged", SIDE_SWAP).value == 0
    assert robustness.part("unchanged", "random case").value == 1
    for axis in (robustness, sensitivity):
        assert axis.estimate.value == pytest.approx(0, abs=0.25)
    assert alignment.estimate.value == 1  # every vote here is for side A


def test_a_judge_that_always_ties_has_no_dose_and_response() -> None:
    alignment, robustness, sensitivity = axes(np.full(len(plan().trials), 0.5))
    assert alignment.estimate.value == 0
    assert robustness.estimate.value == 0
    assert sensitivity.estimate.value is None
    assert NO_VALUE in sensitivity.warnings


def test_what_has_no_verdict_is_left_out_and_counted() -> None:
    of = plan()
    probabilities = truth(of)
    lost = np.arange(0, len(probabilities), 5)
    probabilities[lost] = np.nan
    for axis in axes(probabilities, of):
        assert axis.estimate.value == pytest.approx(1)
        want = f"{len(lost)} of {len(probabilities)} questions have no verdict: left out."
        assert want in axis.warnings
    nothing = axes(np.full(len(probabilities), np.nan), of)
    assert [axis.estimate.value for axis in nothing] == [None, None, None]


def test_prompts_that_come_often_make_wider_intervals() -> None:
    one = voted(60)
    alone = JudgePlan(one, plan().trials, "made up")
    few = voted(60)
    few = type(few)(
        few.name, few.prompts, few.responses_a, few.responses_b, few.prompt // 10, few.votes
    )
    together = JudgePlan(few, plan().trials, "made up")
    by_prompt = np.repeat(np.random.default_rng(3).random(6), 10)
    probabilities = np.array([by_prompt[trial.row] for trial in alone.trials])
    narrow, wide = (axes(probabilities, of)[0].estimate for of in (alone, together))
    assert narrow.value == wide.value
    assert wide.upper is not None
    assert wide.lower is not None
    assert narrow.upper is not None
    assert narrow.lower is not None
    assert wide.upper - wide.lower > 1.5 * (narrow.upper - narrow.lower)
    assert axes(probabilities, together)[0].warnings


def test_every_pair_is_asked_about_in_every_way() -> None:
    of = plan(10)
    counts = Counter((trial.group, trial.name, trial.dose) for trial in of.trials)
    assert counts[Group.AS_IS, "", 0] == counts[Group.ITSELF, "", 0] == 10
    assert counts[Group.SUPERFICIAL, SIDE_SWAP, 0] == 10
    names = {each.name for each in JUDGED} - {"Markdown stripped", "labels renamed"}
    assert names == {name for _, name, _ in counts} - {"", SIDE_SWAP}
    assert {dose for group, _, dose in counts if group is Group.REMOVAL} == {0.1, 0.25, 0.5, 0.75}
    assert {dose for group, _, dose in counts if group is Group.INSERTION} == {0.25, 0.5, 1.0}


def test_a_trial_is_a_case_in_the_order_it_is_shown() -> None:
    of = plan(10)
    for trial in of.trials:
        shown = trial.case.shown(Order.AB)
        assert (shown.response_a, shown.response_b) == (trial.first, trial.second)
        assert shown.prompt[-1].content == of.voted.prompts[trial.row]
    sides = Counter(trial.turned for trial in of.trials if trial.group is Group.REMOVAL)
    assert set(sides) == {True, False}


def test_what_a_run_found_is_laid_to_the_trials() -> None:
    of = plan(10)
    ids = [trial.case.id for trial in of.trials]
    assert len(set(ids)) < len(ids), "equal questions are one to a judge"
    probability = {case_id: i / len(ids) for i, case_id in enumerate(dict.fromkeys(ids))}
    rows = [
        Judged(
            case_id=case_id,
            order=Order.AB,
            reading=None if case_id == ids[3] else Preference(p),
            failure=FailureClass.UNPARSED if case_id == ids[3] else None,
        )
        for case_id, p in reversed(probability.items())
    ]
    want = [np.nan if case_id == ids[3] else probability[case_id] for case_id in ids]
    np.testing.assert_array_equal(of.probabilities(rows), want)


def test_answers_that_do_not_fit_are_refused() -> None:
    of = plan(10)
    with pytest.raises(DataError, match="3 probabilities for"):
        axes(np.ones(3), of)
    with pytest.raises(DataError, match="not from 0 to 2"):
        axes(2 * truth(of), of)
    with pytest.raises(DataError, match="1 pairs with votes"):
        plan(1)
