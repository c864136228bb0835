"""The audit of a judge by its verdicts: noise, order, models told apart, and what stays open."""

import json
from dataclasses import replace

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.stats import t

from judge.probe.verdicts import Verdicts, _board, _reach, audit_verdicts, verdicts_changed
from judge.studies.rows import Items
from rating.errors import DataError
from tests.judge.probe.texts import rng

Floats = NDArray[np.float64]


def judged(
    *,
    wavers: float = 0.0,
    lean: float = 0.0,
    n_models: int = 6,
    n_prompts: int = 60,
    n_runs: int = 3,
    unread: float = 0.0,
    spread: float = 1.5,
) -> Verdicts:
    """Verdicts that differ from their own ones in a share of the runs, leaning to the left."""
    draw = rng(1)
    first, second = np.triu_indices(n_models, 1)
    pairs = np.tile(np.column_stack([first, second]), (n_prompts, 1))
    prompt = np.repeat(np.arange(n_prompts), len(first))
    strength = np.linspace(-spread, spread, n_models)
    gap = strength[pairs[:, 0]] - strength[pairs[:, 1]] + draw.logistic(size=len(pairs))

    def labels(lean: float, wavers: float) -> Floats:
        label = np.sign(gap + lean)
        label[draw.random(len(gap)) < wavers] *= -1
        label[draw.random(len(gap)) < unread] = np.nan
        return label

    runs = {f"run {i + 1}": labels(0.0, wavers) for i in range(n_runs)}
    orders = {"A first": labels(lean, 0.0), "B first": labels(-lean, 0.0)}
    cases = Items(tuple(f"m{i}" for i in range(n_models)), pairs, prompt)
    return Verdicts(cases, runs, orders)


def test_a_judge_that_says_the_same_again_passes_what_can_be_told() -> None:
    result = audit_verdicts("steady", judged(), rng=rng())
    assert [one.passed for one in result.desiderata] == [True, None, True, True, None]
    assert result["reruns"].numbers["verdicts_changed"]["value"] == 0.0
    assert "do not determine this" in result["validity"].text


def test_a_judge_with_noise_of_its_own_fails_by_its_reruns() -> None:
    result = audit_verdicts("wavering", judged(wavers=0.3), rng=rng())
    assert "reruns" in result.failed
    numbers = result["reruns"].numbers
    changed, least = numbers["verdicts_changed"], t.ppf(0.975, 2 * 900) * np.sqrt(2)
    assert changed["lower"] < 2 * 0.3 * 0.7 < changed["upper"]
    shares = [f"{100 * changed[name]:.1f}" for name in ("value", "lower", "upper")]
    words = "Two runs differ on {}% ({} to {}) of the cases."
    assert result["reruns"].text.endswith(words.format(*shares))
    figures = [numbers[name] / numbers["sd"] for name in ("smallest", "smallest_averaged", "cv")]
    assert figures == pytest.approx([least, least / np.sqrt(3), 2]), "the mean win rate is a half"


def test_noise_of_a_win_rate_is_what_flipped_verdicts_make_it() -> None:
    verdicts = judged(wavers=0.2, n_runs=60)
    reruns = audit_verdicts("x", verdicts, rng=rng())["reruns"]
    cases_of_a_model = 5 * 60
    known = np.sqrt(0.2 * 0.8 / cases_of_a_model)
    assert reruns.numbers["sd"] == pytest.approx(known, rel=0.15)


def test_orders_turned_round_altogether_contradict_each_other() -> None:
    label = judged().orders["A first"]
    against = replace(judged(), orders={"A": label, "B": -label})
    result = audit_verdicts("x", against, rng=rng())
    assert result.failed == ("consistency",)
    consistency = result["consistency"]
    assert consistency.numbers["contradictions"][-1][-2] > 5
    assert consistency.numbers["orders_changed"]["value"] == 1
    assert consistency.numbers["lean_to_first"] == pytest.approx(lean := label.mean())
    assert "With the order exchanged, the verdict changes on 100.0%" in consistency.text
    assert f"position shifts it by {lean:+.3f} towards the answer shown first" in consistency.text


def test_models_that_are_alike_are_not_told_apart() -> None:
    result = audit_verdicts("x", judged(spread=0.0, wavers=0.3), rng=rng())
    assert result["discriminability"].passed is None


def test_a_steady_judge_of_models_that_are_alike_fails_nothing() -> None:
    result = audit_verdicts("steady", judged(spread=0.0), rng=rng())
    assert [one.passed for one in result.desiderata] == [True, None, None, True, None]
    assert "The models may be equal." in result["discriminability"].text


def test_few_prompts_tell_nothing_of_a_good_judge_and_do_not_fail_it() -> None:
    result = audit_verdicts("good", judged(n_prompts=12, wavers=0.03, spread=0.5), rng=rng())
    assert result.failed == ()
    for name in ("reruns", "discriminability", "consistency"):
        assert result[name].passed is None
        assert result[name].text.startswith("Inconclusive with 12 prompts.")
    for n, passed in ((19, None), (20, True)):
        result = audit_verdicts("steady", judged(n_prompts=n), rng=rng())
        assert result["consistency"].passed is passed


def test_the_interval_of_the_noise_is_over_prompts() -> None:
    """By leaving out one prompt at a time, on the log scale."""
    verdicts = judged(n_prompts=80, wavers=0.1)
    numbers = audit_verdicts("x", verdicts, rng=rng())["reruns"].numbers
    logs = []
    for one in range(80):
        rest = replace(verdicts.only(verdicts.cases.prompt != one), orders={})
        left = audit_verdicts("x", rest, rng=rng())["reruns"].numbers
        logs.append(np.log(left["sd"]))
    spread = np.sqrt(79 / 80 * ((np.array(logs) - np.mean(logs)) ** 2).sum())
    reach = np.log(numbers["sd_upper"] / numbers["sd_lower"]) / 2
    assert reach == pytest.approx(1.99 * spread, rel=0.05)
    assert numbers["lower"] < numbers["ratio"] < numbers["upper"]


def test_the_ends_of_the_noise_over_three_prompts_are_those_calculated_by_hand() -> None:
    # Of sums of 4 and 4 the three prompts hold 1/4 and 2/4, 1/4 and 1/4, 2/4 and 1/4.
    error = np.sqrt(3 / 2 * (1 / 16 + 0 + 1 / 16))
    factor = _reach(np.array([1.0, 1.0, 2.0]), np.array([2.0, 1.0, 1.0]))
    assert factor**2 == pytest.approx(np.exp(t.ppf(0.975, 3 - 1) * error))


def test_a_judge_that_changed_nothing_on_few_cases_has_not_shown_that_it_never_does() -> None:
    few = judged(n_prompts=20, n_models=2)
    reruns = audit_verdicts("x", few, rng=rng())["reruns"]
    assert reruns.passed is None
    assert reruns.numbers["upper"] == pytest.approx(np.sqrt(2 * (1 - 0.025 ** (1 / 20))))
    many = judged(n_prompts=80, n_models=2)
    assert audit_verdicts("x", many, rng=rng())["reruns"].passed is True


def test_what_was_not_read_in_one_run_is_left_out_of_all_and_is_no_tie() -> None:
    holes = judged(unread=0.1)
    used = holes.read_by_all()
    every = np.array([*holes.runs.values(), *holes.orders.values()])
    assert used.cases.n == int((~np.isnan(every)).all(axis=0).sum())
    assert verdicts_changed(used, rng=rng()).reruns.value == 0.0  # type: ignore[union-attr]


def test_one_run_and_no_orders_leave_everything_open() -> None:
    result = audit_verdicts("x", replace(judged(n_runs=1), orders={}), rng=rng())
    assert [one.passed for one in result.desiderata] == [None] * 5
    assert "judge the same cases again" in result["reruns"].text


def test_errors_are_over_prompts_and_not_over_cases() -> None:
    few = judged(n_prompts=20, wavers=0.1)
    again = replace(few.only(np.tile(np.arange(few.cases.n), 4)), orders={})
    one, other = (audit_verdicts("x", v, rng=rng())["reruns"].numbers for v in (few, again))
    assert one["se"] == pytest.approx(other["se"])


def test_a_model_without_a_case_that_was_read_is_named() -> None:
    plain = judged()
    label = plain.runs["run 1"].copy()
    label[(plain.cases.pairs == 5).any(axis=1)] = np.nan
    with pytest.raises(DataError, match="has m5"):
        audit_verdicts("x", replace(plain, runs={"a": label}, orders={}), rng=rng())


def test_cases_of_one_prompt_are_refused() -> None:
    plain = judged(n_prompts=1)
    with pytest.raises(DataError, match="one prompt"):
        audit_verdicts("x", plain, rng=rng())


def test_the_audit_is_plain_json() -> None:
    result = audit_verdicts("x", judged(wavers=0.2, lean=0.4), rng=rng()).to_dict()
    assert json.loads(json.dumps(result, allow_nan=False)) == result


def test_the_error_of_a_win_rate_is_that_of_leaving_out_a_prompt() -> None:
    verdicts = judged(n_prompts=50, n_runs=2)
    se = audit_verdicts("x", verdicts, rng=rng())["reruns"].numbers["se"]
    score = (1 + verdicts.runs["run 1"]) / 2

    def rates(used: Floats) -> Floats:
        won = np.zeros((2, 6))
        for side, gain in ((0, score), (1, 1 - score)):
            np.add.at(won[0], verdicts.cases.pairs[used, side], gain[used])
            np.add.at(won[1], verdicts.cases.pairs[used, side], 1)
        return np.asarray(won[0] / won[1])

    left_out = np.array([rates(verdicts.cases.prompt != one) for one in range(50)])
    known = 49 / 50 * ((left_out - left_out.mean(axis=0)) ** 2).sum(axis=0)
    assert se == pytest.approx(np.sqrt(known.mean()), rel=1e-6)


def test_what_prompts_add_to_the_squared_errors_sums_to_their_mean_over_models() -> None:
    verdicts = judged(n_prompts=25, n_runs=2)
    board = _board(verdicts, verdicts.runs["run 1"])
    assert board.by_prompt.sum() == pytest.approx((board.se**2).mean())
