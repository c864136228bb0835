"""A model that is better on prompts from before its cutoff is seen, and one that is not is not."""

from collections.abc import Callable
from datetime import UTC, date, datetime
from typing import Any

import numpy as np
import pytest

from judge.labels.files import before_and_after
from judge.labels.material import duplicates, first_written
from tests.judge.labels.test_overlap import MODELS, votes

CUTOFF = date(2026, 3, 1)
END = datetime(2026, 3, 2, tzinfo=UTC).timestamp()


def around(n: int, rng: np.random.Generator, gain: float) -> dict[str, dict[str, Any]]:
    """Votes of which a third are on prompts from before the cutoff, where the first gains."""
    log, before = votes(n, rng, gain)
    first = np.where(before, END - 1, END)
    cutoffs = dict.fromkeys(MODELS[:2], CUTOFF)
    changes, not_rated = before_and_after(log, first, cutoffs, 0.95)
    assert not_rated == {}
    return {change["model"]: change for change in changes}


def test_a_planted_memory_is_seen_in_points_against_the_others() -> None:
    changes = around(6000, np.random.default_rng(1), gain=1.0)
    first, second = changes["basalt"], changes["marble"]
    points = 400 / np.log(10)
    assert first["difference"] == pytest.approx(points, rel=0.25)
    assert first["lower"] > 0
    # Against the others' mean another model loses a third of what the first gains.
    assert second["difference"] == pytest.approx(-points / 3, rel=0.6)
    assert changes["basalt"]["p"] < 1e-6
    assert changes["basalt"]["before"] + changes["basalt"]["after"] == 6000
    assert changes["basalt"]["cutoff"] == "2026-03-01"


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_without_a_memory_five_of_a_hundred_differences_are_significant(
    record_property: Callable[[str, object], None],
) -> None:
    rejections, runs = 0, 150
    rng = np.random.default_rng(2)
    for _ in range(runs):
        log, before = votes(900, rng, 0.0)
        first = np.where(before, END - 1, END)
        ((change,), _) = before_and_after(log, first, {"basalt": CUTOFF}, 0.95)
        rejections += change["p"] < 0.05
    record_property("Cutoffs: size", {"share": rejections / runs})
    assert rejections / runs < 0.05 + 3 * (0.05 * 0.95 / runs) ** 0.5


def test_a_model_without_votes_on_either_side_says_why() -> None:
    log, _ = votes(200, np.random.default_rng(3), 0.0)
    changes, not_rated = before_and_after(
        log, np.full(200, END), {"basalt": CUTOFF, "gone": CUTOFF}, 0.95
    )
    assert changes == []
    assert "were there before the cutoff identify no rating" in not_rated["basalt"]
    halves = np.where(np.arange(200) % 2, END, END - 1)
    _, not_rated = before_and_after(log, halves, {"gone": CUTOFF}, 0.95)
    assert not_rated == {"gone": "It has no votes."}


def test_p_values_are_corrected_for_the_number_of_models() -> None:
    log, before = votes(600, np.random.default_rng(5), 0.5)
    first = np.where(before, END - 1, END)

    def p_values(*models: str) -> list[float]:
        cutoffs = dict.fromkeys(models, CUTOFF)
        return sorted(one["p"] for one in before_and_after(log, first, cutoffs, 0.95)[0])

    small, large = sorted(p_values(MODELS[0]) + p_values(MODELS[1]))
    assert p_values(*MODELS[:2]) == pytest.approx([2 * small, max(2 * small, large)])


def test_a_prompt_is_as_old_as_the_first_one_like_it() -> None:
    groups = duplicates(["Why is the sky blue?", "why is the  sky blue", *["Hello there"] * 2])
    first = first_written(groups, np.array([5.0, 3.0, np.nan, np.nan]))
    assert first.tolist() == [3.0, 3.0, np.inf, np.inf]


def test_votes_without_words_are_later_ones() -> None:
    log, _ = votes(400, np.random.default_rng(4), 0.0)
    first = np.where(np.arange(400) % 2, END - 1, np.inf)
    ((change,), _) = before_and_after(log, first, {"basalt": CUTOFF}, 0.95)
    assert (change["before"], change["after"]) == (200, 200)
