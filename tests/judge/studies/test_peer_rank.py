"""Peers who weigh each other by their own scores."""

from itertools import combinations
from pathlib import Path

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from judge.studies.options import StudyOptions
from judge.studies.panel import Panel, study_panel
from judge.studies.peer_rank import peer_weights, scores
from rating.typing import Floats
from tests.judge.studies.panels import labelled, studied, written

RATES = arrays(np.float64, (4, 4), elements=st.floats(0.05, 0.95))
OWN = np.arange(4)


def test_three_peers_by_hand() -> None:
    # At rest m1 is last and has no weight: w = (v, 0, 1 - v), S0 = .8 - .2 v, S1 = .1 + .3 v,
    # S2 = .6 - .1 v, so v = (.7 - .5 v) / (1.2 - .9 v), or .9 v^2 - 1.7 v + .7 = 0.
    v = (1.7 - np.sqrt(1.7**2 - 4 * 0.9 * 0.7)) / (2 * 0.9)
    rates = np.array([[0.6, 0.4, 0.5], [0.5, 0.5, 0.5], [0.8, 0.1, 0.6]])
    assert peer_weights(rates, np.arange(3)) == pytest.approx([v, 0, 1 - v])


def test_peers_who_say_the_same_give_their_common_win_rates() -> None:
    rates = np.tile([0.7, 0.5, 0.3], (3, 1))
    weights = peer_weights(rates, np.arange(3))
    assert weights == pytest.approx([2 / 3, 1 / 3, 0])
    assert scores(rates, weights) == pytest.approx([0.7, 0.5, 0.3])


def test_peers_of_one_score_have_no_weights() -> None:
    assert np.isnan(peer_weights(np.full((3, 3), 0.5), np.arange(3))).all()


def at_rest(rates: Floats) -> Floats:
    """Weigh peers that differ by more than the last digits of their scores."""
    weights = peer_weights(rates, OWN)
    assume(not np.isnan(weights).any())
    own = scores(rates, weights)
    assume((own - own.min()).sum() > 0.05)
    return weights


@settings(max_examples=60)
@given(RATES)
def test_weights_at_rest_are_those_that_their_scores_give(rates: Floats) -> None:
    weights = at_rest(rates)
    own = scores(rates, weights)
    over = own - own.min()
    assert weights == pytest.approx(over / over.sum(), abs=1e-5)
    assert weights.sum() == pytest.approx(1)
    assert weights.min() == 0


@settings(max_examples=60)
@given(RATES, st.permutations(range(4)))
def test_another_sequence_of_peers_and_models_changes_nothing(
    rates: Floats, order: list[int]
) -> None:
    weights = at_rest(rates)
    turned = peer_weights(rates[np.ix_(order, order)], OWN)
    assert turned == pytest.approx(weights[order], abs=1e-5)


@settings(max_examples=30)
@given(RATES, st.floats(0.1, 0.9), st.floats(-0.04, 0.04))
def test_a_scale_of_win_rates_that_is_other_for_all_changes_no_weight(
    rates: Floats, slope: float, shift: float
) -> None:
    weights = at_rest(rates)
    assert peer_weights(shift + slope * rates, OWN) == pytest.approx(weights, abs=1e-5)


def rated_by_each_other(folder: Path, n: int = 40) -> Panel:
    """Three models judge each other's answers: alpaca leans to itself, gpt wins by the others."""
    names = ("alpaca-13b", "gpt-4", "vicuna-7b")
    strength = {"alpaca-13b": 0.0, "gpt-4": 2.0, "vicuna-7b": 1.0}
    rng, rows = np.random.default_rng(2), []
    for item in range(n):
        for a, b in combinations(names, 2):
            for judge in names:
                own = {
                    name: strength[name] + 3 * (name == judge == "alpaca-13b") for name in names
                }
                wins = own[a] + rng.normal() > own[b] + rng.normal()
                winner = "model_a" if wins else "model_b"
                truth = "model_a" if strength[a] > strength[b] else "model_b"
                rows.append((f"i{item}/{a}/{b}", f"i{item}", a, b, winner, truth, judge))
    head = "item_id,prompt_id,model_a,model_b,winner,label,judge"
    files = written(folder / "verdicts.csv", rows, head)
    return study_panel([files], None, StudyOptions(rounds=100))


def test_a_panel_of_peers_ranks_its_models_and_a_judge_that_is_last_has_no_say(
    tmp_path: Path,
) -> None:
    peers = rated_by_each_other(tmp_path).to_dict()["peer_rank"]
    assert [row["model"] for row in peers["scores"]] == ["gpt-4", "vicuna-7b", "alpaca-13b"]
    weights = {row["judge"]: row["value"] for row in peers["weights"]}
    assert weights["alpaca-13b"] == 0
    assert weights["gpt-4"] > weights["vicuna-7b"] > 0
    assert all(row["lower"] <= row["value"] <= row["upper"] for row in peers["scores"])
    assert {row["judge"]: row["model"] for row in peers["weights"]} == {n: n for n in weights}


def test_judges_that_are_no_models_have_no_peer_rank(tmp_path: Path) -> None:
    errs = np.random.default_rng(0).random((30, 3)) < 0.3
    assert studied(tmp_path, labelled(errs)).to_dict()["peer_rank"] is None
