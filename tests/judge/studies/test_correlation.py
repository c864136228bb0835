"""Correlations over models."""

import json
import math
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import kendalltau, pearsonr, spearmanr

from judge.studies.correlation import correlations, row_correlations
from rating.errors import DataError
from tests.judge.published import rows

values = st.lists(st.tuples(st.integers(0, 6), st.integers(0, 6)), min_size=3, max_size=15)


def test_fourteen_models_reach_the_published_correlations() -> None:
    file = Path(__file__).parents[2] / "golden" / "wildbench_correlations.json"
    golden = json.loads(file.read_text())
    elo = np.array(golden["data"]["elo"], dtype=float)
    for name, scores in golden["data"]["scores"].items():
        found = correlations(np.array(scores), elo)
        ours = [found.pearson_top, found.pearson, found.spearman, found.kendall]
        assert ours == pytest.approx(golden["expected"][name], abs=0.001), name


@pytest.mark.published
def test_the_published_table_of_correlations(published_data: Path) -> None:
    models = rows(published_data / "judge" / "wildbench_paper_table2_14models.csv")
    elo = np.array([row["ArenaElo"] for row in models])
    published = rows(published_data / "judge" / "wildbench_paper_table3.csv")
    assert len(published) == 8
    for want in published:
        found = correlations(np.array([row[want["metric"]] for row in models]), elo)
        ours = [found.pearson_top, found.pearson, found.spearman, found.kendall]
        printed = [want[f"{name}_pub"] for name in ("p_top", "p_all", "s_all", "k_all")]
        for our, their in zip(ours, printed, strict=True):
            assert their is None or our == pytest.approx(their, abs=0.001), want["metric"]


@pytest.mark.parametrize("cells", [1, 300, 1 << 20])
def test_rows_are_correlated_one_by_one_to_the_last_digit(
    cells: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("judge.studies.correlation._CELLS", cells)
    draw = np.random.default_rng(4)
    scores = np.asfortranarray(np.round(draw.normal(1000, 9, size=(20, 11)), 1))
    reference = np.round(draw.normal(size=11), 1) + 0.05 * scores
    scores[3] = 1000.1
    found = row_correlations(scores, reference)
    alone = [correlations(*both) for both in zip(scores, reference, strict=True)]
    for kind, values in found.items():
        assert np.array_equal(values, [getattr(one, kind) for one in alone], equal_nan=True)
    assert math.isnan(found["kendall"][3])
    assert np.isfinite(found["kendall"]).sum() == 19


def test_models_without_a_score_are_left_out() -> None:
    found = correlations(np.array([1, 2, np.nan, 3.0]), np.array([1, 2, 9, 3.0]))
    assert found.n_models == 3
    assert found.pearson == pytest.approx(1)


def test_a_score_that_does_not_vary_has_no_correlation() -> None:
    assert math.isnan(correlations(np.ones(4), np.arange(4.0)).kendall)


def test_what_has_no_correlation_is_refused() -> None:
    with pytest.raises(DataError, match="2 models have both scores"):
        correlations(np.array([1.0, 2.0]), np.array([1.0, 2.0]))
    with pytest.raises(DataError, match="2 scores and 3 of the reference"):
        correlations(np.zeros(2), np.zeros(3))


@settings(max_examples=30)
@given(values)
def test_another_program_finds_the_same(pairs: list[tuple[int, int]]) -> None:
    x, y = (np.array(column, dtype=float) for column in zip(*pairs, strict=True))
    found = correlations(x, y)
    if len(set(x)) == 1 or len(set(y)) == 1:
        assert math.isnan(found.pearson)
        return
    assert found.pearson == pytest.approx(pearsonr(x, y).statistic)
    assert found.spearman == pytest.approx(spearmanr(x, y).statistic)
    assert found.kendall == pytest.approx(kendalltau(x, y).statistic)
