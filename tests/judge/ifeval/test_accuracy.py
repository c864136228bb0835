"""The four scores and their intervals."""

import math
from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import t

from judge.ifeval import Checked, Share, _effective_size, accuracy, share
from rating.errors import DataError

Results = tuple[bool | None, ...]


def one(prompt: str, strict: Results, loose: Results | None = None) -> Checked:
    ids = tuple(f"family{i % 2}:name{i}" for i in range(len(strict)))
    return Checked(prompt, ids, strict, strict if loose is None else loose)


def test_what_is_unread_is_counted_and_not_scored() -> None:
    scores = accuracy([one("p", (True, None)), one("q", (False, None)), one("r", (True, True))])
    assert scores.prompt_strict.rate == 1.0
    assert (scores.prompt_strict.n, scores.prompt_strict.n_unread) == (1, 2)
    assert (scores.instruction_strict.n, scores.instruction_strict.n_unread) == (4, 2)
    assert scores.instruction_strict.rate == 0.75


def test_nothing_read_is_not_a_number() -> None:
    interval = share([("p", None)])
    assert math.isnan(interval.rate)
    assert (interval.low, interval.high, interval.n, interval.n_unread) == (0.0, 1.0, 0, 1)


def test_one_result_a_cluster_gives_wilsons_interval() -> None:
    """Newcombe, Statistics in Medicine 17, 1998, table I, method 3: 81 of 263, 15 of 148."""
    for hits, n, low, high in [(81, 263, 0.2553, 0.3662), (15, 148, 0.0624, 0.1605)]:
        interval = share([(str(i), i < hits) for i in range(n)])
        assert (round(interval.low, 4), round(interval.high, 4)) == (low, high)


def test_all_followed_has_wilsons_interval_on_the_prompts() -> None:
    """Newcombe, table I: 0 of 20 gives 0 to .1611; here 20 prompts with 3 instructions each."""
    interval = share([(str(i % 20), True) for i in range(60)])
    assert (round(interval.low, 4), interval.high) == (0.8389, 1.0)


def test_copies_within_a_prompt_add_nothing() -> None:
    single = [(str(i), i % 3 == 0) for i in range(60)]
    once, fourfold = share(single), share(single * 4)
    assert fourfold.rate == once.rate
    assert fourfold.high - fourfold.low == pytest.approx(once.high - once.low, rel=0.04)


def test_results_independent_of_their_prompt_lose_little() -> None:
    rng = np.random.default_rng(3)
    results = [(str(i // 2), bool(rng.random() < 0.7)) for i in range(2000)]
    pretended = [(str(i), followed) for i, (_, followed) in enumerate(results)]
    clustered, independent = share(results), share(pretended)
    ratio = (clustered.high - clustered.low) / (independent.high - independent.low)
    assert 1 <= ratio < 1.08


@given(
    st.lists(
        st.tuples(st.sampled_from("pqrs"), st.sampled_from([True, False, None])), max_size=30
    ),
    st.floats(0.5, 0.99),
)
def test_an_interval_holds_its_rate_and_mirrors(
    results: list[tuple[str, bool | None]], level: float
) -> None:
    interval = share(results, level=level)
    mirrored = share([(c, None if r is None else not r) for c, r in results], level=level)
    assert interval.n + interval.n_unread == len(results)
    if interval.n:
        assert 0 <= interval.low <= interval.rate <= interval.high <= 1
        assert mirrored.low == pytest.approx(1 - interval.high, abs=1e-9)


def test_a_level_outside_zero_to_one_is_refused() -> None:
    with pytest.raises(DataError, match="not 95"):
        share([("p", True)], level=95)


def covered(shares: Sequence[Share], truth: float) -> float:
    return float(np.mean([each.low <= truth <= each.high for each in shares]))


@pytest.mark.slow
def test_intervals_cover_when_instructions_of_a_prompt_stand_together() -> None:
    """120 prompts of 1 to 3 instructions, beta(1.6, .4) chances; ignoring prompts covers less."""
    rng = np.random.default_rng(11)
    clustered, pretended = [], []
    for _ in range(4000):
        size = rng.integers(1, 4, 120)
        prompt = np.repeat(np.arange(120), size)
        followed = rng.random(len(prompt)) < np.repeat(rng.beta(1.6, 0.4, 120), size)
        pairs = [(str(p), bool(f)) for p, f in zip(prompt, followed, strict=True)]
        clustered.append(share(pairs))
        pretended.append(share([(str(i), f) for i, (_, f) in enumerate(pairs)]))
    assert 0.935 < covered(clustered, 0.8) < 0.965
    assert covered(pretended, 0.8) < 0.92


def test_the_effective_size_of_six_results_on_two_prompts_is_that_calculated_by_hand() -> None:
    followed, prompt = np.array([1.0, 1, 1, 0, 1, 0]), np.array([0, 0, 0, 1, 1, 1])
    # The mean is 2/3, from which the sums of the prompts are off by 1 and -1.
    clustered, independent = 2 / 1 * (1 + 1), 6 / 5 * 6 * 2 / 9
    few = t.ppf(0.975, 5) / t.ppf(0.975, 1)
    size = _effective_size(followed, prompt, 0.95)
    assert size == pytest.approx(6 * independent / clustered * few**2)
