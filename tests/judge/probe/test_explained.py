"""What explains how alike prompts are: least squares, planted terms, and permuted prompts."""

import numpy as np
import pytest
from numpy.typing import NDArray

from judge.probe.findings import explain, terms_of
from rating.errors import DataError
from tests.judge.probe.texts import rng

Floats = NDArray[np.float64]


def symmetric(draw: np.random.Generator, n: int) -> Floats:
    """Alike by a hidden property of each prompt, so that pairs depend on each other."""
    hidden = draw.normal(size=(n, 2))
    return np.asarray(hidden @ hidden.T)


def same(n: int, groups: int) -> Floats:
    codes = np.arange(n) % groups
    return np.asarray(codes[:, None] == codes[None, :], dtype=np.float64)


def test_slopes_and_shares_are_those_of_least_squares_over_pairs() -> None:
    n = 20
    first, second, y = (symmetric(rng(seed), n) for seed in range(3))
    second, y = second + first, y + 0.5 * first
    result = explain(y, {"x": first, "z": second}, draws=9, rng=rng())
    upper = np.triu_indices(n, 1)
    columns = [(one[upper] - one[upper].mean()) / one[upper].std() for one in (first, second, y)]
    design, target = np.column_stack(columns[:2]), columns[2]
    slopes, (whole,), *_ = np.linalg.lstsq(design, target, rcond=None)
    assert [term["slope"] for term in result["terms"]] == pytest.approx(slopes)
    assert result["r2"] == pytest.approx(1 - whole / (target @ target))
    without = target - design[:, 1] * (design[:, 1] @ target) / (design[:, 1] @ design[:, 1])
    assert result["terms"][0]["partial_r2"] == pytest.approx(1 - whole / (without @ without))
    assert (result["prompts"], result["pairs"]) == (20, 190)


def test_a_planted_term_is_found_and_one_beside_it_is_not() -> None:
    n = 40
    terms = {"same topic": same(n, 4), "same month": same(n, 7)}
    alike = symmetric(rng(1), n) + 2 * terms["same topic"]
    topic, month = explain(alike, terms, draws=199, rng=rng())["terms"]
    assert (topic["p"] <= 0.01, topic["slope"] > 0, month["p"] > 0.05) == (True, True, True)


def test_a_term_that_no_permutation_reaches_has_the_p_value_of_one_in_all_values() -> None:
    topic = same(40, 4)
    (term,) = explain(topic, {"same topic": topic}, draws=9, rng=rng())["terms"]
    assert (term["slope"], term["partial_r2"], term["p"]) == pytest.approx((1, 1, 1 / 10))


def test_what_does_not_vary_or_says_the_same_twice_has_no_slope() -> None:
    n = 12
    one = symmetric(rng(2), n)
    terms = {"all": np.ones((n, n)), "x": one, "twice": 2 * one}
    result = explain(symmetric(rng(3), n), terms, draws=9, rng=rng())
    assert [(term["slope"], term["p"]) for term in result["terms"]] == [(None, None)] * 3
    assert result["r2"] > 0


def test_too_few_prompts_and_equal_ones_are_refused() -> None:
    with pytest.raises(DataError, match="4 prompts are too few"):
        explain(symmetric(rng(), 4), {}, draws=9, rng=rng())
    with pytest.raises(DataError, match="equally similar"):
        explain(np.ones((8, 8)), {}, draws=9, rng=rng())


def test_properties_of_two_prompts() -> None:
    texts = ["write a poem", "write a song", "solve the equation now"]
    failed = np.array([1.0, 1.0, 0.0])
    terms = terms_of(texts, {"kind": np.array([0, 0, 1])}, failed)
    words, length, kind, both = terms.values()
    assert [*terms] == [
        "similar words (TF-IDF cosine)", "difference of log lengths",
        "same kind", "failed by all models, both",
    ]  # fmt: skip
    assert words[0, 1] > words[0, 2] == 0
    assert length[0, 2] == pytest.approx(np.log(23 / 13))
    assert (kind[0, 1], kind[0, 2], both[0, 1], both[0, 2]) == (1, 0, 1, 0)
    assert terms_of(["", "?"], {}) == {}


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_a_term_that_explains_nothing_is_seldom_seen_though_pairs_depend_on_each_other() -> None:
    """300 worlds of 25 prompts; beside it a term that does explain, and goes with it."""
    n, runs, seen = 25, 300, 0
    for seed in range(runs):
        draw = rng(seed)
        cause = symmetric(draw, n)
        beside = 0.5 * cause + symmetric(draw, n)
        alike = symmetric(draw, n) + 0.5 * cause
        terms = explain(alike, {"cause": cause, "beside": beside}, draws=99, rng=draw)["terms"]
        seen += (terms[1]["p"] or 1) <= 0.05
    assert seen / runs <= 0.05 + 3 * np.sqrt(0.05 * 0.95 / runs)
