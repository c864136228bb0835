"""Overlap with a benchmark is seen, and so is who does better on it, and who does not."""

import numpy as np
import pytest
from scipy.stats import t

from judge.labels.files import SIDES_OF_A_BENCHMARK, _boards_apart, rated_apart
from judge.labels.material import Benchmark, compared, overlapping
from rating.errors import NotIdentifiedError
from rating.tables.coding import Coded, LoggedVotes, coded_list
from rating.typing import Bools

ITEM = "A mill grinds 40 sacks a day and sells half of them on Monday; how many are left?"
MODELS = ("basalt", "marble", "quartz", "slate")
WINNERS = ("model_b", "model_a")


def test_thirteen_words_in_a_row_overlap_and_twelve_do_not() -> None:
    benchmark = Benchmark([ITEM, "Why?"])
    words = ITEM.split()
    assert benchmark.holds("Please: " + " ".join(words[2:15]).upper())
    assert not benchmark.holds(" ".join(words[:12]) + " for you, my friend")
    assert benchmark.holds("why")
    assert not benchmark.holds("why not")
    assert not benchmark.holds("")
    hits = overlapping([["Hello", ITEM], ["Hello"], []], benchmark)
    assert hits.tolist() == [True, False, False]


def votes(n: int, rng: np.random.Generator, gain: float) -> tuple[LoggedVotes, Bools]:
    """Votes of 100 people, a third on prompts of the benchmark, where the first model gains."""
    strengths = np.array([0.0, 0.3, -0.3, 0.1])
    overlaps = rng.random(n) < 1 / 3
    pairs = np.array([rng.choice(4, 2, replace=False) for _ in range(n)])
    theta = strengths[pairs] + gain * (pairs == 0) * overlaps[:, None]
    a_wins = rng.random(n) < 1 / (1 + np.exp(theta[:, 1] - theta[:, 0]))
    texts = {
        "model_a": Coded(MODELS, pairs[:, 0]),
        "model_b": Coded(MODELS, pairs[:, 1]),
        "winner": Coded(WINNERS, a_wins.astype(int)),
        "voter": coded_list(f"v{i % 100}" for i in range(n)),
        "prompt": coded_list(f"p{i}" for i in range(n)),
        "left_out": Coded(("a ring",), np.full(n, -1)),
    }
    return LoggedVotes(texts=texts, created=np.zeros(n, dtype=np.int64)), overlaps


def test_a_model_that_gains_on_the_benchmark_is_seen() -> None:
    result = rated_apart(*votes(3000, np.random.default_rng(1), gain=1.0), 0.95)
    first = result["models"][0]
    assert (first["model"], result["votes"]) == ("basalt", 3000)
    assert first["p"] < 0.01
    true = 0.75 * 400 / np.log(10)  # the others go down by a quarter
    assert first["lower"] < true < first["upper"]


def test_a_difference_is_that_of_two_boards_and_less_sure_than_either() -> None:
    log, overlaps = votes(600, np.random.default_rng(4), gain=0.0)
    boards = _boards_apart(log, overlaps, 0.95, SIDES_OF_A_BENCHMARK)
    rated = [{row["model"]: row for row in one.to_dict()["ratings"]} for one in boards]
    result, p_values = compared(*boards, 0.5), []
    for one in result["models"]:
        on, off = (rows[one["model"]] for rows in rated)
        df = min(row.get("df") or np.inf for row in (on, off))
        gap, error = on["rating"] - off["rating"], np.hypot(on["se"], off["se"])
        reach = t.ppf(0.75, df) * error
        ends = (one["difference"], one["lower"], one["upper"])
        assert ends == pytest.approx((gap, gap - reach, gap + reach))
        assert (one["overlapping"], one["others"]) == (on["rating"], off["rating"])
        p_values.append(2 * t.sf(abs(gap) / error, df))
    gains = [one["difference"] for one in result["models"]]
    assert gains == sorted(gains, reverse=True)
    least = min(one["p"] for one in result["models"])
    assert least == pytest.approx(min(1.0, 4 * min(p_values)))
    assert (result["votes"], result["overlapping"]) == (600, overlaps.sum())


@pytest.mark.slow
def test_without_a_gain_a_model_is_named_in_at_most_one_of_twenty() -> None:
    rng = np.random.default_rng(2)
    named = [
        min(one["p"] for one in rated_apart(*votes(600, rng, gain=0.0), 0.95)["models"]) < 0.05
        for _ in range(200)
    ]
    assert np.mean(named) < 0.05 + 2 * np.sqrt(0.05 * 0.95 / 200)


def test_votes_of_one_kind_alone_are_refused() -> None:
    log, overlaps = votes(200, np.random.default_rng(3), gain=0.0)
    with pytest.raises(NotIdentifiedError, match="prompts that overlap with the benchmark"):
        rated_apart(log, np.zeros_like(overlaps), 0.95)
