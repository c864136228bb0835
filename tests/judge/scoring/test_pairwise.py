"""Mean scores of pairwise verdicts, and judges in both orders against LLMBar's figures."""

import math
from collections import defaultdict
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.metrics import cohen_kappa_score

from judge.scoring.benchmarks import pairwise_scores, swap_scores
from rating import Outcome
from rating.errors import DataError
from tests.judge.published import Row, rows

battle = st.sampled_from([("x", "y"), ("y", "z"), ("z", "x")])
battles = st.lists(st.tuples(battle, st.sampled_from(tuple(Outcome))), min_size=1)


def test_four_battles_by_hand() -> None:
    outcomes = [Outcome.A, Outcome.A, Outcome.TIE, Outcome.B]
    x, y = pairwise_scores(["x", "x", "x", "y"], ["y", "y", "y", "x"], outcomes)
    names = ("model", "n", "n_wins", "n_ties", "n_losses", "win_rate")
    assert [x[name] for name in names] == ["x", 4, 3, 1, 0, 87.5]
    assert [y[name] for name in names] == ["y", 4, 0, 1, 3, 12.5]
    # 1 1 .5 1 has a standard deviation of 1/4, and a standard error of 1/8.
    assert x["standard_error"] == pytest.approx(12.5)


def test_many_verdicts_on_one_prompt_count_as_one() -> None:
    outcomes = [Outcome.A, Outcome.B, Outcome.A, Outcome.B]
    names = (["x"] * 4, ["y"] * 4)
    alone, _ = pairwise_scores(*names, outcomes, ["p", "q", "r", "s"])
    tripled, _ = pairwise_scores(["x"] * 12, ["y"] * 12, outcomes * 3, ["p", "q", "r", "s"] * 3)
    assert tripled["standard_error"] == pytest.approx(alone["standard_error"])
    assert alone["standard_error"] == pairwise_scores(*names, outcomes)[0]["standard_error"]


def test_one_prompt_shows_no_spread() -> None:
    scores, _ = pairwise_scores(["x", "x"], ["y", "y"], [Outcome.A, Outcome.B], ["p", "p"])
    assert math.isnan(scores["standard_error"])


def test_columns_of_different_lengths_are_refused() -> None:
    with pytest.raises(DataError, match="1, 2 rows"):
        pairwise_scores(["x", "x"], ["y", "y"], [Outcome.A])


@settings(max_examples=30)
@given(battles)
def test_swapping_all_sides_changes_nothing(rows: list[tuple[tuple[str, str], Outcome]]) -> None:
    a, b = [pair[0] for pair, _ in rows], [pair[1] for pair, _ in rows]
    outcomes = [outcome for _, outcome in rows]
    scores = pairwise_scores(a, b, outcomes)
    turned = pairwise_scores(b, a, [outcome.swapped() for outcome in outcomes])
    for one, other in zip(scores, turned, strict=True):
        assert one == pytest.approx(other, nan_ok=True)
    assert sum(one["n_wins"] for one in scores) == sum(one["n_losses"] for one in scores)


verdict = st.sampled_from(["1", "2", None])
cases = st.lists(st.tuples(st.sampled_from(["1", "2"]), verdict, verdict), min_size=1)


@pytest.mark.published
def test_every_cell_reaches_its_published_figures(published_data: Path) -> None:
    cells: dict[tuple[str, ...], list[Row]] = defaultdict(list)
    for row in rows(published_data / "judge" / "llmbar_swap.parquet"):
        cells[row["subset"], row["llm"], row["strategy"]].append(row)
    published = rows(published_data / "judge" / "llmbar_published.csv")
    assert len(published) == len(cells) == 168
    names = {name: name for name in ("correct_both", "equal", "kappa_agreement", "n")} | {
        "correct_as_is": "correct_False",
        "correct_swapped": "correct_True",
        "miscoded_kappa_as_is": "kappa_False",
        "miscoded_kappa_swapped": "kappa_True",
        "correct_mean": "correct_average",
    }
    for want in published:
        cell = cells[want["subset"], want["llm"], want["strategy"]]
        columns = [[row[name] for row in cell] for name in ("label", "w_ab", "w_ba")]
        scores = swap_scores(*columns)
        for ours, theirs in names.items():
            assert scores[ours] == pytest.approx(want[theirs], abs=1e-12), (ours, want)


def test_four_cases_by_hand() -> None:
    scores = swap_scores(["1", "2", "1", "2"], ["1", "2", "1", None], ["1", "2", "2", None])
    names = ("correct_as_is", "correct_swapped", "correct_mean")
    assert [scores[name] for name in names] == [75.0, 50.0, 62.5]
    assert (scores["correct_both"], scores["equal"], scores["n_unread"]) == (50.0, 75.0, 2)
    assert (scores["n_first"], scores["n_second"], scores["wrong_both"]) == (1, 0, 0.0)
    ties = swap_scores(["1", "2"], ["tie", "2"], ["tie", "tie"])
    assert (ties["n_tied"], ties["correct_mean"], ties["equal"]) == (3, 25.0, 50.0)
    # 1 1 2 2 ... with None as "2": orders 1 2 1 2 and 1 2 2 2, so (3/4 - 1/2) / (1 - 1/2).
    assert scores["kappa_agreement"] == pytest.approx(0.5)


def test_a_perfect_judge_has_a_miscoded_kappa_that_says_otherwise() -> None:
    label = ["1", "2"] * 10
    scores = swap_scores(label, label, label)
    assert (scores["correct_both"], scores["kappa_agreement"]) == (100.0, 1.0)
    assert scores["miscoded_kappa_as_is"] == pytest.approx(1 / 3)


@pytest.mark.parametrize(
    ("label", "as_is", "swapped", "message"),
    [
        (["1"], ["3"], ["1"], "'3'"),
        (["1"], ["1", "2"], ["1"], "1 labels, 2 and 1 verdicts"),
        ([], [], [], "0 labels"),
        (["None"], ["1"], ["1"], "only cases with a label"),
    ],
)
def test_what_cannot_be_scored_is_quoted(
    label: list[str], as_is: list[str | None], swapped: list[str | None], message: str
) -> None:
    with pytest.raises(DataError, match=message):
        swap_scores(label, as_is, swapped)


@settings(max_examples=30)
@given(cases)
def test_kappa_is_that_of_another_program(rows: list[tuple[str, str | None, str | None]]) -> None:
    label, as_is, swapped = (list(column) for column in zip(*rows, strict=True))
    ours = swap_scores([str(one) for one in label], as_is, swapped)["kappa_agreement"]
    coded = [[one or "2" for one in column] for column in (as_is, swapped)]
    if len(set(coded[0]) | set(coded[1])) > 1:
        assert ours == pytest.approx(cohen_kappa_score(*coded))
    else:
        assert math.isnan(ours)
