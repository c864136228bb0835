"""Pairs of models told apart: by hand, by two rules, and the published tables."""

from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from judge.studies.boards import RULES, IntervalEnds, separability, separated
from judge.studies.options import StudyOptions
from judge.studies.scores import mean_win_rates, read_scores, score_tables
from rating.errors import DataError
from tests.judge.published import rows

FEW = StudyOptions(rounds=100)


def even(*values: float, reach: float) -> IntervalEnds:
    value = np.array(values)
    return IntervalEnds(value, value - reach, value + reach)


def test_pairs_are_told_apart_by_hand() -> None:
    """Gaps of 3, 10 and 7; two reaches of 2 are 4 together, and 2.83 by their squares."""
    scores = even(10, 7, 0, reach=2)
    assert separated(scores, "overlap").tolist() == [0, 1, 1]
    assert separated(scores, "pairwise").tolist() == [1, 1, 1]
    uneven = IntervalEnds(np.array([10.0, 7.0]), np.array([9.9, 0.0]), np.array([20.0, 7.1]))
    assert separated(uneven, "overlap").tolist() == [
        1
    ]  # only what they reach to each other counts


def test_agreement_counts_pairs_of_which_the_reference_is_sure() -> None:
    reference = even(30, 20, 0, reach=4)  # all three pairs
    scores = even(10, 20, 0, reach=6)  # one the other way, one not told apart, one the same way
    both = separability(
        "xyz", scores, reference.value, {"overlap": reference, "pairwise": reference}, level=0.95
    )
    assert both is not None
    assert (both["n"], both["overlap"]["separated_by_reference"]) == (3, 1)
    assert both["overlap"]["separated"] == pytest.approx(1 / 3)
    assert both["overlap"]["agreement"] == pytest.approx(1 / 3)
    sure = both["overlap"]["agreement_of_separated"], both["overlap"]["separated_of_reference"]
    assert sure == pytest.approx((1, 1 / 3))
    assert both["pairwise"]["agreement"] == pytest.approx((-1 + 1 + 1) / 3)
    sure = both["pairwise"]["agreement_of_separated"], both["pairwise"]["separated_of_reference"]
    assert sure == pytest.approx((2 / 3, 1))
    loose = even(30, 29, 0, reach=4)  # one pair is not told apart
    part = separability(
        "xyz", scores, loose.value, {"overlap": loose, "pairwise": loose}, level=0.95
    )
    assert part is not None
    assert part["overlap"]["agreement"] == pytest.approx(1 / 2)
    assert part["overlap"]["agreement_over_all"] == pytest.approx(1 / 3)
    assert part["overlap"]["left_out"] == part["pairwise"]["left_out"] == (("x", "y"),)
    assert (part["overlap"]["opposite"], both["overlap"]["left_out"]) == ((), ())
    assert both["pairwise"]["opposite"] == (("x", "y"),)  # the reference has x ahead
    turned = even(20, 30, 0, reach=4)
    swapped = separability(
        "xyz", even(20, 10, 0, reach=1), turned.value, dict.fromkeys(RULES, turned), level=0.95
    )
    assert swapped is not None
    assert swapped["overlap"]["opposite"] == (("y", "x"),)


def test_a_model_without_an_interval_is_in_no_pair() -> None:
    scores, reference = even(3, 2, 1, reach=0.1), even(30, 20, 10, reach=20)
    scores.lower[1] = np.nan
    result = separability(
        "xyz", scores, reference.value, dict.fromkeys(RULES, reference), level=0.95
    )
    assert result is not None
    assert (result["n"], result["overlap"]["left_out"]) == (2, (("x", "z"),))


def test_the_brier_of_the_order_is_that_of_the_normal_law() -> None:
    scores = even(1, 0, reach=1.959963984540054)  # a gap of 1, an error of sqrt 2
    result = separability("xy", scores, np.array([5.0, 3.0]), None, level=0.95)
    assert result is not None
    assert result["order_brier"] == pytest.approx((1 - 0.7602499) ** 2, abs=1e-6)
    assert result["overlap"]["agreement"] is None
    sure = separability("xy", even(1, 0, reach=0), np.array([3.0, 5.0]), None, level=0.95)
    assert sure is not None
    assert sure["order_brier"] == 1
    assert separability("xy", None, np.array([1.0, 2.0]), None, level=0.95) is None


@given(
    st.lists(st.floats(-100, 100), min_size=2, max_size=8),
    st.lists(st.floats(0, 20), min_size=8, max_size=8),
    st.floats(-50, 50),
)
def test_intervals_apart_are_a_difference_and_turning_all_turns_every_sign(
    values: list[float], reaches: list[float], shift: float
) -> None:
    value, reach = np.array(values), np.array(reaches[: len(values)])
    scores = IntervalEnds(value, value - reach, value + reach)
    apart, difference = (separated(scores, rule) for rule in RULES)
    assert (np.abs(apart) <= np.abs(difference) + 1e-12).all()
    turned = IntervalEnds(-value, -value - reach, -value + reach)
    assert (separated(turned, "overlap") == -apart).all()
    if np.abs(np.abs(scores.pairs()[0]) - sum(scores.pairs()[1:])).min() > 1e-6:
        moved = IntervalEnds(value + shift, value - reach + shift, value + reach + shift)
        assert (separated(moved, "overlap") == apart).all()


@pytest.mark.parametrize(
    ("head", "row", "of"),
    [
        ("score,score_lower,score_upper", "5,4,6", "score"),
        ("score,score_low,score_high", "5,4,6", "score"),
        ("other,score,rating_q025,rating_q975", "9,5,4,6", "score"),
        ("score,lower,upper", "5,4,6", "score"),
        ("score,score_se", f"5,{1 / 1.959963984540054}", "score"),
    ],
)
def test_columns_of_ends_are_no_scores(tmp_path: Path, head: str, row: str, of: str) -> None:
    file = tmp_path / "scores.csv"
    file.write_text(f"model,{head}\nx,{row}\ny,{row}\n")
    table = read_scores(file)
    assert {*table.columns} <= {"score", "other"}
    ends = table.ends_of(of, ("y", "z"))
    assert ends is not None
    assert [ends.lower[0], ends.upper[0]] == pytest.approx([4, 6])
    assert np.isnan(ends.value[1])


def test_a_reference_of_several_columns_is_named(tmp_path: Path) -> None:
    file = tmp_path / "scores.csv"
    file.write_text("model,p,q\nx,1,2\ny,2,3\nz,3,1\n")
    with pytest.raises(DataError, match="several columns, 'p', 'q': name one with --against"):
        score_tables(file, file, None, FEW)
    with pytest.raises(DataError, match="no column 'r' of numbers"):
        score_tables(file, file, "r", FEW)
    with pytest.raises(DataError, match="--top 2 is no correlation"):
        score_tables(file, file, "p", FEW, top=2)
    result = score_tables(file, file, "p", FEW)
    assert [*result.columns] == ["q"]
    assert any("taken as exact" in text for text in result.warnings)


def wins(folder: Path, text: str) -> dict[str, tuple[object, int]]:
    file = folder / "scores.csv"
    file.write_text(text, encoding="utf-8")
    return {one["model"]: (one["value"], one["n"]) for one in mean_win_rates(read_scores(file))}


def test_a_mean_win_rate_is_that_over_columns_and_a_clone_moves_it(tmp_path: Path) -> None:
    head, x, y, z = "model,p,q,r", "x,3,1,", "y,2,3,5", "z,1,2,5"
    rates = wins(tmp_path, "\n".join([head, x, y, z]))
    assert rates == {
        "y": (pytest.approx((1 / 2 + 1 + 1 / 2) / 3), 3),
        "x": (0.5, 2),
        "z": (pytest.approx((0 + 1 / 2 + 1 / 2) / 3), 3),
    }
    rates = wins(tmp_path, "\n".join([head, x, y, z, z.replace("z", "c")]))
    assert rates["x"] == (0.5, 2)
    assert rates["y"] == (pytest.approx((2 / 3 + 1 + 1 / 2) / 3), 3)
    assert rates["z"] == rates["c"] == (pytest.approx((1 / 6 + 1 / 2 + 1 / 2) / 3), 3)
    assert wins(tmp_path, "model,p\nx,1\ny,\n") == {}


@given(st.permutations(["a,1,5", "b,2,4", "c,3,3", "d,4,1"]))
def test_the_order_of_rows_changes_no_mean_win_rate(rows: list[str]) -> None:
    with TemporaryDirectory() as folder:
        rates = wins(Path(folder), "\n".join(["model,p,q", *rows]))
    assert {name: rates[name] for name in "abc"} == dict.fromkeys("abc", (0.5, 2))
    assert rates["d"] == (0.5, 2)


@pytest.mark.published
def test_table_2_of_wildbench_gives_its_table_3(published_data: Path) -> None:
    folder = published_data / "judge"
    file = folder / "wildbench_paper_table2_14models.csv"
    result = score_tables(file, file, "ArenaElo", FEW)
    published = {str(row["metric"]): row for row in rows(folder / "wildbench_paper_table3.csv")}
    both = published.keys() & result.columns.keys()
    assert {"WBscore", "ArenaHard", "AE2LC", "AE2WR"} <= both
    for name in both:
        one, row = result.columns[name], published[name]
        ours = [result.top[name]]
        ours += [one.figures[kind].value for kind in ("pearson", "spearman", "kendall")]
        wanted = [row[f"{kind}_pub"] for kind in ("p_top", "p_all", "s_all", "k_all")]
        known = [at for at, value in enumerate(wanted) if value is not None]
        assert [ours[at] for at in known] == pytest.approx(
            [wanted[at] for at in known], abs=0.0011
        ), name


@pytest.mark.published
def test_arena_hard_tells_its_own_models_apart_as_often_as_published(published_data: Path) -> None:
    file = published_data / "judge" / "arenahard_v01_leaderboard_20240731.csv"
    table = read_scores(file)
    ends = table.ends_of("score", table.models)
    result = separability(table.models, ends, table.of("score", table.models), None, level=0.95)
    assert result is not None
    assert result["n"] == 60
    assert result["overlap"]["separated"] == pytest.approx(0.903, abs=0.0005)
    assert result["pairwise"]["separated"] == pytest.approx(0.933, abs=0.0005)
