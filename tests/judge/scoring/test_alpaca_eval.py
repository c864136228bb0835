"""AlpacaEval's figures of one model, and how a preference is read."""

import json
import math
from collections import defaultdict
from pathlib import Path

import numpy as np
import pytest

from judge.scoring.benchmarks import alpaca_eval_scores, preferences_from_logprobs, wins
from judge.tables.native import model_shown_first
from tests.judge.published import Row, rows


def annotations(folder: Path) -> dict[str, list[Row]]:
    by_model: dict[str, list[Row]] = defaultdict(list)
    for row in rows(folder / "judge" / "alpacaeval_annotations.parquet"):
        by_model[row["model"]].append(row)
    return by_model


@pytest.mark.published
def test_sixteen_models_reach_their_published_figures(published_data: Path) -> None:
    by_model = annotations(published_data)
    published = rows(published_data / "judge" / "alpacaeval_published.csv")
    assert len(published) == 16
    for want in published:
        got = alpaca_eval_scores(np.array([r["preference"] for r in by_model[want["model"]]]))
        ours = [got[name] for name in ("n", "n_wins", "n_ties", "n_losses", "n_dropped")]
        theirs = [want[name] for name in ("n_total", "n_wins", "n_draws", "n_wins_base")]
        assert ours == [*theirs, 0]
        assert got["win_rate"] == pytest.approx(want["win_rate"], abs=1e-9)
        assert got["standard_error"] == pytest.approx(want["standard_error"], abs=1e-9)
        assert got["discrete_win_rate"] == pytest.approx(want["discrete_win_rate"], abs=1e-9)


@pytest.mark.published
def test_published_preferences_follow_from_the_logprobs(published_data: Path) -> None:
    result = [row for many in annotations(published_data).values() for row in many]
    shown = [row for row in result if row["lp_m"] is not None]
    assert len(shown) == 10_429
    columns = {name: np.array([row[name] for row in shown]) for name in shown[0]}
    # duckdb renames the second of two columns that differ only in case.
    ours = preferences_from_logprobs(columns["lp_m"], columns["lp_M_1"], columns["is_switched"])
    np.testing.assert_allclose(ours, columns["preference"], rtol=0, atol=1e-9)


@pytest.mark.published
def test_the_order_of_every_published_row_follows_from_its_instruction(
    published_data: Path,
) -> None:
    outputs = json.loads((published_data / "outputs" / "gpt4_1106_preview.json").read_text())
    items = rows(published_data / "judge" / "alpacaeval_items.csv")
    assert len(items) == len(outputs) == 805
    drawn = {item["idx"]: item["is_switched"] for item in items}
    ours = {at: model_shown_first(row["instruction"]) for at, row in enumerate(outputs)}
    assert ours == drawn
    published = [row for many in annotations(published_data).values() for row in many]
    assert all(row["is_switched"] == ours[row["idx"]] for row in published)


def test_rows_without_a_preference_are_counted_and_left_out() -> None:
    scores = alpaca_eval_scores(np.array([2.0, 1.0, np.nan, 2.5, -1.0, np.inf]))
    assert (scores["n"], scores["n_dropped"], scores["win_rate"]) == (2, 4, 50.0)
    assert scores["standard_error"] == pytest.approx(50.0)  # of 1 and 0, in per cent


def test_no_row_gives_no_number() -> None:
    scores = alpaca_eval_scores(np.array([np.nan]))
    assert (scores["n"], scores["n_wins"]) == (0, 0)
    assert all(math.isnan(scores[name]) for name in ("win_rate", "discrete_win_rate"))
    assert math.isnan(alpaca_eval_scores(np.array([1.2]))["standard_error"])


def test_zero_is_a_draw_as_in_annotations_of_the_first_version() -> None:
    assert alpaca_eval_scores(np.array([0.0, 0.0])) == alpaca_eval_scores(np.array([1.5, 1.5]))


def test_two_labels_at_odds_of_three_to_one_give_a_quarter() -> None:
    first, second = np.log([0.6, 0.6]), np.log([0.2, 0.2])
    read = preferences_from_logprobs(first, second, np.array([False, True]))
    np.testing.assert_allclose(read, [1.25, 1.75])
    np.testing.assert_allclose(wins(read), [0.25, 0.75])


def test_a_label_that_is_missing_has_no_chance_and_two_leave_the_row_unread() -> None:
    none = -np.inf
    first, second = np.array([none, -1.0, none]), np.array([-1.0, none, none])
    read = preferences_from_logprobs(first, second, np.array([False, False, True]))
    np.testing.assert_array_equal(read, [2.0, 1.0, np.nan])
