"""A judge in both orders against labels."""

import math
from collections import defaultdict
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.metrics import cohen_kappa_score

from judge.scoring.llmbar import swap_scores
from rating.errors import DataError
from tests.judge.published import Row, rows

verdict = st.sampled_from(["1", "2", None])
cases = st.lists(st.tuples(st.sampled_from(["1", "2"]), verdict, verdict), min_size=1)


@pytest.mark.published
def test_every_cell_reaches_its_published_figures(published_data: Path) -> None:
    cells: dict[tuple[str, ...], list[Row]] = defaultdict(list)
    for row in rows(published_data / "judge" / "llmbar_swap.parquet"):
        cells[row["subset"], row["llm"], row["strategy"]].append(row)
    published = rows(published_data / "judge" / "llmbar_published.csv")
    assert len(published) == len(cells) == 168
    names = {
        "correct_as_is": "correct_False",
        "correct_swapped": "correct_True",
        "correct_mean": "correct_average",
        "correct_both": "correct_both",
        "equal": "equal",
        "kappa_agreement": "kappa_agreement",
        "miscoded_kappa_as_is": "kappa_False",
        "miscoded_kappa_swapped": "kappa_True",
        "n": "n",
    }
    for want in published:
        cell = cells[want["subset"], want["llm"], want["strategy"]]
        columns = [[row[name] for row in cell] for name in ("label", "w_ab", "w_ba")]
        found = swap_scores(*columns)
        for ours, theirs in names.items():
            assert getattr(found, ours) == pytest.approx(want[theirs], abs=1e-12), (ours, want)


def test_four_cases_by_hand() -> None:
    found = swap_scores(["1", "2", "1", "2"], ["1", "2", "1", None], ["1", "2", "2", None])
    assert (found.correct_as_is, found.correct_swapped, found.correct_mean) == (75.0, 50.0, 62.5)
    assert (found.correct_both, found.equal, found.n_unread) == (50.0, 75.0, 2)
    # 1 1 2 2 ... with None as "2": orders 1 2 1 2 and 1 2 2 2, so (3/4 - 1/2) / (1 - 1/2).
    assert found.kappa_agreement == pytest.approx(0.5)


def test_a_perfect_judge_has_a_miscoded_kappa_that_says_otherwise() -> None:
    label = ["1", "2"] * 10
    found = swap_scores(label, label, label)
    assert (found.correct_both, found.kappa_agreement) == (100.0, 1.0)
    assert found.miscoded_kappa_as_is == pytest.approx(1 / 3)


def test_a_judge_that_says_one_thing_has_no_kappa() -> None:
    assert math.isnan(swap_scores(["1", "2"], ["1", "1"], ["1", "1"]).kappa_agreement)


@pytest.mark.parametrize(
    ("label", "as_is", "swapped", "said"),
    [
        (["1"], ["3"], ["1"], "'3'"),
        (["1"], ["1", "2"], ["1"], "1 labels, 2 and 1 verdicts"),
        ([], [], [], "0 labels"),
        (["None"], ["1"], ["1"], "only cases with a label"),
    ],
)
def test_what_cannot_be_scored_is_quoted(
    label: list[str], as_is: list[str | None], swapped: list[str | None], said: str
) -> None:
    with pytest.raises(DataError, match=said):
        swap_scores(label, as_is, swapped)


@settings(max_examples=30)
@given(cases)
def test_kappa_is_that_of_another_program(rows: list[tuple[str, str | None, str | None]]) -> None:
    label, as_is, swapped = (list(column) for column in zip(*rows, strict=True))
    ours = swap_scores([str(one) for one in label], as_is, swapped).kappa_agreement
    coded = [[one or "2" for one in column] for column in (as_is, swapped)]
    if len(set(coded[0]) | set(coded[1])) > 1:
        assert ours == pytest.approx(cohen_kappa_score(*coded))
    else:
        assert math.isnan(ours)


@settings(max_examples=30)
@given(cases)
def test_renaming_the_responses_changes_no_accuracy(
    rows: list[tuple[str, str | None, str | None]],
) -> None:
    other: dict[str | None, str | None] = {"1": "2", "2": "1", None: None}
    label, as_is, swapped = (list(column) for column in zip(*rows, strict=True))
    found = swap_scores([str(one) for one in label], as_is, swapped)
    turned = swap_scores(
        [str(other[one]) for one in label],
        [other[one] for one in as_is],
        [other[one] for one in swapped],
    )
    assert (found.correct_both, found.equal) == (turned.correct_both, turned.equal)
