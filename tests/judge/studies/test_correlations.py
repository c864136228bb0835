"""Correlations over models, and of scores from elsewhere with ratings."""

import json
import math
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import kendalltau, pearsonr, spearmanr

from judge.studies.boards import (
    FIGURES,
    KINDS,
    NOISE_FREED,
    ScoreCorrelations,
    correlations,
    row_correlations,
    score_correlations,
)
from judge.studies.estimates import Draws, Estimate
from rating.errors import DataError
from tests.judge.published import rows
from tests.judge.studies.labels import held

ORDER = ("pearson_top", "pearson", "spearman", "kendall")
values = st.lists(st.tuples(st.integers(0, 6), st.integers(0, 6)), min_size=3, max_size=15)


def test_fourteen_models_reach_the_published_correlations() -> None:
    file = Path(__file__).parents[2] / "golden" / "wildbench_correlations.json"
    golden = json.loads(file.read_text())
    elo = np.array(golden["data"]["elo"], dtype=float)
    for name, scores in golden["data"]["scores"].items():
        correlated = correlations(np.array(scores), elo)
        ours = [correlated[name] for name in ORDER]
        assert ours == pytest.approx(golden["expected"][name], abs=0.001), name


@pytest.mark.published
def test_the_published_table_of_correlations(published_data: Path) -> None:
    models = rows(published_data / "judge" / "wildbench_paper_table2_14models.csv")
    elo = np.array([row["ArenaElo"] for row in models])
    published = rows(published_data / "judge" / "wildbench_paper_table3.csv")
    assert len(published) == 8
    for want in published:
        correlated = correlations(np.array([row[want["metric"]] for row in models]), elo)
        ours = [correlated[name] for name in ORDER]
        printed = [want[f"{name}_pub"] for name in ("p_top", "p_all", "s_all", "k_all")]
        for our, their in zip(ours, printed, strict=True):
            assert their is None or our == pytest.approx(their, abs=0.001), want["metric"]


@pytest.mark.parametrize("cells", [1, 300, 1 << 20])
def test_rows_are_correlated_one_by_one_to_the_last_digit(
    cells: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("judge.studies.boards._CELLS", cells)
    draw = np.random.default_rng(4)
    scores = np.asfortranarray(np.round(draw.normal(1000, 9, size=(20, 11)), 1))
    reference = np.round(draw.normal(size=11), 1) + 0.05 * scores
    scores[3] = 1000.1
    by_kind = row_correlations(scores, reference)
    alone = [correlations(*both) for both in zip(scores, reference, strict=True)]
    for kind, values in by_kind.items():
        assert np.array_equal(values, [one[kind] for one in alone], equal_nan=True)
    assert math.isnan(by_kind["kendall"][3])
    assert np.isfinite(by_kind["kendall"]).sum() == 19


def test_models_without_a_score_are_left_out() -> None:
    correlated = correlations(np.array([1, 2, np.nan, 3.0]), np.array([1, 2, 9, 3.0]))
    assert correlated == correlations(np.array([1, 2, 3.0]), np.array([1, 2, 3.0]))
    assert correlated["pearson"] == pytest.approx(1)


def test_what_has_no_correlation_is_refused() -> None:
    with pytest.raises(DataError, match="2 models have both scores"):
        correlations(np.array([1.0, 2.0]), np.array([1.0, 2.0]))
    with pytest.raises(DataError, match="2 scores and 3 of the reference"):
        correlations(np.zeros(2), np.zeros(3))


@settings(max_examples=30)
@given(values)
def test_another_program_finds_the_same(pairs: list[tuple[int, int]]) -> None:
    x, y = (np.array(column, dtype=float) for column in zip(*pairs, strict=True))
    correlated = correlations(x, y)
    if len(set(x)) == 1 or len(set(y)) == 1:
        assert math.isnan(correlated["pearson"])
        return
    assert correlated["pearson"] == pytest.approx(pearsonr(x, y).statistic)
    assert correlated["spearman"] == pytest.approx(spearmanr(x, y).statistic)
    assert correlated["kendall"] == pytest.approx(kendalltau(x, y).statistic)


def _correlated(
    ratings: object, error: float | None, scores: object, rounds: int = 200
) -> ScoreCorrelations:
    theta = np.asarray(ratings, dtype=float)
    covariance = None if error is None else np.eye(len(theta)) * error**2
    return score_correlations(
        theta,
        covariance,
        np.asarray(scores, dtype=float),
        draws=Draws(np.random.default_rng(1), rounds),
    )


@pytest.mark.published
def test_the_published_correlations_of_benchmarks_with_arena_ratings(published_data: Path) -> None:
    models = rows(published_data / "judge" / "wildbench_paper_table2_14models.csv")
    elo = [row["ArenaElo"] for row in models]
    for want in rows(published_data / "judge" / "wildbench_paper_table3.csv"):
        correlated = _correlated(elo, 5.0, [row[want["metric"]] for row in models], 50)
        ours = [correlated.figures[kind].value for kind in ("pearson", "spearman", "kendall")]
        for our, name in zip(ours, ("p_all_pub", "s_all_pub", "k_all_pub"), strict=True):
            assert want[name] is None or our == pytest.approx(want[name], abs=0.001), want


@pytest.mark.published
def test_alpaca_eval_goes_with_the_arena_as_published(published_data: Path) -> None:
    """0.98 with length controlled and 0.93 without; models drawn again leave both wide."""
    models = rows(published_data / "judge" / "alpacaeval_vs_arena_feb2024.csv")
    elo = [row["arena_elo_2024_02_02"] for row in models]
    for name, value, lower, upper in (
        ("length_controlled_winrate", 0.9746, 0.934, 0.986),
        ("win_rate", 0.9305, 0.817, 0.977),
    ):
        correlated = _correlated(elo, None, [row[name] for row in models], 2000)
        assert correlated.figures["spearman"].value == pytest.approx(value, abs=0.0001)
        assert correlated.other_models["spearman"] == pytest.approx((lower, upper), abs=0.012)


def test_ratings_without_an_error_give_no_interval_and_no_noise_to_be_freed_of() -> None:
    scores = [1, 3, 2, 4, 5, 7, 6, 8, 9, 11, 10, 12]
    sure, unsure = (_correlated(range(12), error, scores) for error in (0.0, 1.0))
    assert (sure.figures["spearman"].lower, sure.figures["spearman"].upper) == (None, None)
    assert sure.figures["spearman_noise_freed"].value == pytest.approx(
        sure.figures["spearman"].value
    )
    assert unsure.figures["spearman"].value == sure.figures["spearman"].value
    assert unsure.figures["spearman"].lower is not None
    assert unsure.figures["spearman"].lower < (unsure.figures["spearman"].value or 0)
    assert (unsure.figures["spearman_noise_freed"].value or 0) > (
        unsure.figures["spearman"].value or 1
    )


def test_what_moves_all_ratings_alike_moves_no_correlation() -> None:
    ratings, scores = np.random.default_rng(3).normal(size=(2, 12))
    alone, shifted = (
        score_correlations(ratings, cov, scores, Draws(np.random.default_rng(1), 200))
        for cov in (np.eye(12), np.eye(12) + np.ones((12, 12)))
    )
    for name in FIGURES:
        assert shifted.figures[name].value == pytest.approx(alone.figures[name].value), name


def _covered(error: float, runs: int) -> dict[str, float]:
    """Return how often intervals hold the correlation of the scores with the true ratings."""
    rng = np.random.default_rng(5)
    inside = dict.fromkeys(KINDS, 0)
    for _ in range(runs):
        true = np.linspace(-0.5, 0.5, 12)
        scores = true + rng.normal(0, 0.15, 12)
        correlated = score_correlations(
            true + rng.normal(0, error, 12), np.eye(12) * error**2, scores, draws=Draws(rng, 100)
        )
        truth = correlations(scores, true)
        for kind in KINDS:
            inside[kind] += held(correlated.figures[kind + NOISE_FREED], truth[kind])
    return {kind: hits / runs for kind, hits in inside.items()}


def test_intervals_hold_the_correlation_with_ratings_of_endless_votes() -> None:
    assert min(_covered(0.15, 40).values()) >= 0.85


@pytest.mark.slow
def test_intervals_hold_it_as_often_as_they_say() -> None:
    for error in (0.05, 0.15):
        assert min(_covered(error, 400).values()) >= 0.92, error


def test_what_is_not_defined_is_none_with_a_warning() -> None:
    two = _correlated([1, 2, 3], 0.1, [1, np.nan, 3])
    assert two.figures["spearman"] == Estimate(None, None, None, 2)
    assert two.other_models["spearman"] == (None, None)
    assert two.warnings == ("2 models have a score and a rating: a correlation needs 3 or more.",)
    same = _correlated([1, 2, 3, 4], 0.1, [5, 5, 5, 5])
    assert same.figures["pearson"] == Estimate(None, None, None, 4)
    assert "are equal" in same.warnings[0]
    unknown = _correlated(range(12), None, range(12))
    assert unknown.figures["spearman"] == Estimate(1.0, None, None, 12)


def test_few_models_are_warned_of() -> None:
    assert "over 9 models says little" in _correlated(range(9), 0.1, range(9)).warnings[0]
    assert _correlated(range(10), 0.1, range(10)).warnings == ()


def test_one_score_a_model_is_asked_for() -> None:
    with pytest.raises(DataError, match="3 ratings and 2 scores"):
        _correlated([1, 2, 3], None, [1, 2])


@settings(max_examples=20, deadline=None)
@given(st.lists(st.integers(0, 9), min_size=4, max_size=12, unique=True), st.floats(0.5, 20))
def test_the_unit_of_scores_and_ratings_does_not_matter(values: list[int], unit: float) -> None:
    ratings = np.arange(len(values), dtype=float)
    one, other = (
        _correlated(ratings, 0.3, values, 30),
        _correlated(unit * ratings, 0.3 * unit, values, 30),
    )
    turned = _correlated(ratings, 0.3, [-unit * value for value in values], 30)
    for name in FIGURES:
        here = one.figures[name]
        assert other.figures[name].lower == pytest.approx(here.lower)
        if here.upper is None:
            assert turned.figures[name].lower is None
        else:
            assert turned.figures[name].lower == pytest.approx(-here.upper, abs=1e-9)
