"""WildBench: scores, rewards, and the averages of both over kinds of tasks."""

import json
import math
from collections import defaultdict
from pathlib import Path

import numpy as np
import pytest

from judge.scoring.benchmarks import (
    GROUPS,
    WEIGHTS,
    category_of,
    mean_reward,
    task_macro,
    wildbench_scores,
)
from rating.errors import DataError
from tests.judge.published import Row, rows

LEVELS = ("win_much", "win", "tie", "lose", "lose_much")
CATEGORIES = tuple(WEIGHTS["v2.0625"])


def reward_of(numbers: list[int], skipped: int = 0) -> float:
    return mean_reward(np.repeat([1.0, 0.5, 0.0, -0.5, -1.0, np.nan], [*numbers, skipped]))


def counts(row: Row, of: str = "") -> list[int]:
    return [int(row[of + level]) for level in LEVELS]


@pytest.mark.published
def test_scores_and_adjusted_scores_are_the_published_ones(published_data: Path) -> None:
    by_run: dict[tuple[str, str, str], list[float]] = defaultdict(list)
    for row in rows(published_data / "judge" / "wildbench_scores.parquet"):
        by_run[row["version"], row["judge"], row["model"]].append(float(row["score"]))
    published = rows(published_data / "judge" / "wildbench_score_published.csv")
    for want in published:
        scores = wildbench_scores(np.array(by_run[want["version"], want["judge"], want["model"]]))
        assert scores["n"] == want["n"]
        assert math.isnan(scores["task_macro"])
        if want["published"]:
            assert scores["score"] == pytest.approx(want["score"], abs=1e-12)
            assert scores["adjusted"] == pytest.approx(want["adjusted_score"], abs=1e-12)
    assert sum(want["published"] for want in published) == 7


@pytest.mark.published
def test_macro_scores_of_both_versions_follow_from_the_categories(published_data: Path) -> None:
    folder = published_data / "judge"
    runs = [row for row in rows(folder / "wildbench_score_published.csv") if row["published"]]
    board = [row | {"version": "v2.0625"} for row in rows(folder / "wildbench_score_table.csv")]
    assert {row["version"] for row in runs} == set(WEIGHTS)
    for want in runs + board:
        categories = {name: want[f"cat::{name}"] for name in CATEGORIES}
        score = task_macro(categories, want["version"])
        assert score == pytest.approx(want["task_macro_score"], abs=1e-12)


@pytest.mark.published
def test_rewards_follow_from_the_published_counts(published_data: Path) -> None:
    published = rows(published_data / "judge" / "wildbench_pairwise_published.csv.gz")
    assert len(published) == 316
    for want in published:
        judged = sum(counts(want))
        assert want["total"] - judged >= 23
        reward = reward_of(counts(want), want["total"] - judged)
        assert reward * judged / want["total"] == pytest.approx(want["reward"], abs=1e-12)
        categories = {name: reward_of(counts(want, f"{name}::")) for name in CATEGORIES}
        for name, reward in categories.items():
            assert reward == pytest.approx(want[f"{name}::reward"], abs=1e-12)
        assert task_macro(categories) == pytest.approx(want["task_macro_reward"], abs=1e-12)


def test_a_published_row_gives_its_reward_and_what_skipping_hides() -> None:
    golden = json.loads((Path(__file__).parents[2] / "golden/wildbench_reward.json").read_text())
    data, want = golden["data"], golden["expected"]
    reward = reward_of(data["counts"], data["total"] - 894)
    assert reward * 894 / data["total"] == pytest.approx(want["reward"], abs=1e-12)
    assert reward == pytest.approx(-13.5 / 894)
    categories = {name: reward_of(c) for name, c in data["categories"].items()}
    assert task_macro(categories) == pytest.approx(want["task_macro"], abs=1e-12)


def test_a_task_counts_once_in_each_category_its_tags_name() -> None:
    tags = [["Math", "Data Analysis"], ["Math", "Planning"], ["Editing"]]
    scores = wildbench_scores(np.array([9.0, 7.0, 5.0]), tags)
    expected = {"Creative Tasks": 0.0, "Planning & Reasoning": 4.0, "Math & Data Analysis": 6.0}
    assert scores["categories"] == expected
    assert math.isnan(scores["task_macro"])


def test_scores_that_were_not_read_are_counted_and_left_out() -> None:
    scores = wildbench_scores(np.array([8.0, np.nan, 0.0, 11.0]))
    assert [scores[name] for name in ("n", "n_dropped", "score", "adjusted")] == [1, 3, 8.0, 6.0]
    assert math.isnan(wildbench_scores(np.array([np.nan]))["score"])


def test_all_twelve_tags_and_five_categories_are_known_and_no_other() -> None:
    assert len(GROUPS) == 12
    assert {category_of(tag.upper()) for tag in GROUPS} == set(CATEGORIES)
    assert {category_of(name) for name in CATEGORIES} == set(CATEGORIES)
    with pytest.raises(DataError, match="no task tag 'Cooking'"):
        category_of("Cooking")
    with pytest.raises(DataError, match="version 'v3'"):
        task_macro({}, "v3")


def test_skipped_rows_are_in_no_mean_and_other_levels_are_refused() -> None:
    assert mean_reward(np.array([1.0, np.nan, np.nan, 0.5])) == 0.75
    assert math.isnan(mean_reward(np.array([np.nan])))
    with pytest.raises(DataError, match=r"A level is 0\.7"):
        mean_reward(np.array([0.7]))
