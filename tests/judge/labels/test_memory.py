"""A planted memoriser is seen by its order, and nobody else is; sizes and powers of the test."""

from collections.abc import Callable, Mapping, Sequence

import numpy as np
import pytest

from judge.labels.files import BETWEEN, NGrams, memory, orders, planted
from rating.errors import DataError


def items(n: int, rng: np.random.Generator) -> list[str]:
    """Items of words that all share, so that models have something to go by."""
    words = np.array([f"w{i}" for i in range(60)])
    return [" ".join(rng.choice(words, 6)) for _ in range(n)]


def asked_of(toy: NGrams) -> Callable[[Sequence[str]], Mapping[str, float]]:
    return lambda texts: {text: toy.log_likelihood(text) for text in texts}


def test_a_memoriser_is_seen_and_one_who_knows_the_items_is_not() -> None:
    results = planted(seed=0, shards=20, permutations=19)
    assert results["knows the order"]["p"] == 1 / 20
    assert results["knows the order"]["p_shards"] < 1e-6
    assert results["knows the order"]["lower"] > 0
    assert results["knows the items"]["p"] > 0.05
    assert results["knows the items"]["p_shards"] > 0.05


def test_the_figures_are_those_of_the_formula() -> None:
    asked = orders(["a", "b", "c", "d", "e", "f"], 2, 3, seed=1)
    assert [shard[0] for shard in asked] == [BETWEEN.join("abc"), BETWEEN.join("def")]
    known = {text: 0.0 for shard in asked for text in shard}
    tied = memory(asked, lambda texts: known)
    assert (tied["p"], tied["p_shards"]) == (1.0, 1.0)
    known |= {shard[0]: 3.0 for shard in asked}
    best = memory(asked, lambda texts: known)
    own = [[text == shard[0] for text in shard[1:]] for shard in asked]
    ties = sum(map(all, zip(*own, strict=True)))
    assert best["p"] == (1 + ties) / 4
    known |= {shard[0]: worth for shard, worth in zip(asked, (3.0, 5.0), strict=True)}
    uneven = memory(asked, lambda texts: known, level=0.8)
    first, second = (w * (1 - np.mean(row)) for w, row in zip((3, 5), own, strict=True))
    mean, error = (first + second) / 2, abs(first - second) / 2
    reach = 3.077684 * error  # Student's t of one degree of freedom
    ends = (uneven["gain"], uneven["lower"], uneven["upper"])
    assert ends == pytest.approx((mean, mean - reach, mean + reach))
    assert uneven["p_shards"] == pytest.approx(0.5 - np.arctan(mean / error) / np.pi)


def test_too_few_items_and_what_is_not_finite_are_refused_in_words() -> None:
    with pytest.raises(DataError, match="5 items are too few for 2 shards"):
        orders(["a"] * 5, 2, 3, seed=1)
    asked = orders([*"abcdef"], 2, 3, seed=1)
    with pytest.raises(DataError, match="not finite"):
        memory(asked, lambda texts: dict.fromkeys(texts, -np.inf))


def share_rejected(
    runs: int, toy_of: Callable[[list[str], np.random.Generator], NGrams]
) -> tuple[float, float]:
    """How often each of the two tests rejects at .05."""
    rejected = np.zeros(2)
    for seed in range(runs):
        rng = np.random.default_rng(seed)
        benchmark = items(60, rng)
        result = memory(orders(benchmark, 10, 39, seed), asked_of(toy_of(benchmark, rng)))
        rejected += [result["p"] <= 0.05, result["p_shards"] <= 0.05]
    exact, by_shards = rejected / runs
    return float(exact), float(by_shards)


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_the_exact_test_rejects_five_in_a_hundred_who_saw_another_order_and_the_other_no_more(
    record_property: Callable[[str, object], None],
) -> None:
    runs = 250

    def shuffled(benchmark: list[str], rng: np.random.Generator) -> NGrams:
        return NGrams([BETWEEN.join(benchmark[i] for i in rng.permutation(len(benchmark)))])

    exact, by_shards = share_rejected(runs, shuffled)
    record_property("Memory: size", {"exact": exact, "shards": by_shards})
    most = 0.05 + 3 * (0.05 * 0.95 / runs) ** 0.5
    assert 0.02 < exact < most
    assert by_shards < most  # gains are skewed: it rejects too seldom here


@pytest.mark.slow
def test_both_tests_see_a_memoriser_nine_times_in_ten(
    record_property: Callable[[str, object], None],
) -> None:
    exact, by_shards = share_rejected(
        100, lambda benchmark, rng: NGrams([BETWEEN.join(benchmark)])
    )
    record_property("Memory: power", {"exact": exact, "shards": by_shards})
    assert min(exact, by_shards) > 0.9
