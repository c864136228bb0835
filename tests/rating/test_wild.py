from itertools import product

import numpy as np
import pytest
from scipy.stats import norm, studentized_range

from rating import Comparisons, fit, infer, rank_ranges, sandwich_covariance
from rating.covariance import LeftOut, SignSums, grouping, jackknife, leave_one_out
from rating.ranks import joint_rank_ranges
from tests.rating.builders import random_votes, votes
from tests.simulation import D1, Design

# Five thousand draws leave about .03 on the quantile, boards of 400 voters about as much.
ERROR = 0.12


def drawn(data: Comparisons, level: float = 0.95, draws: int = 5000, seed: int = 1) -> float:
    signs = SignSums(data.n_models, np.random.default_rng(seed), draws)
    matrix = jackknife(fit(data), data, grouping(data, "voter"), signs)[0]
    return signs.critical_value(matrix, np.triu_indices(data.n_models, k=1), level=level)


def every_sign(data: Comparisons) -> np.ndarray:
    """The largest statistic under every choice of signs, from the definition."""
    parts = list(leave_one_out(fit(data), data, grouping(data, "voter")))
    shift, share = (
        np.concatenate([getattr(part, name) for part in parts]) for name in ("shift", "share")
    )
    first, second = np.triu_indices(data.n_models, k=1)
    a = shift[:, first] - shift[:, second]
    largest = []
    for signs in product([-1, 1], repeat=len(a)):
        moved = np.array(signs) @ a
        left = (np.array(signs)[:, None] * a - share[:, None] * moved) / (1 - share[:, None])
        largest.append((np.abs(moved) / np.sqrt((len(a) - 1) * (left**2).mean(axis=0))).max())
    return np.array(largest)


@pytest.mark.parametrize("level", [0.5, 0.8, 0.95])
def test_few_voters_give_the_quantile_over_all_their_signs(level: float) -> None:
    data = votes(random_votes(np.random.default_rng(2), n=400, n_models=4, n_voters=9))
    exact = every_sign(data)
    low, high = np.quantile(exact, [level - 0.03, min(level + 0.03, 1.0)])
    assert low - 1e-9 <= drawn(data, level) <= high + 1e-9


@pytest.mark.parametrize("models", [2, 8])
def test_many_even_voters_need_tukeys_studentized_range(models: int) -> None:
    board = Design(n_models=models, n_voters=400, tail=0.1).draw(np.random.default_rng(4))
    tukey = studentized_range.ppf(0.95, models, np.inf) / np.sqrt(2)
    assert drawn(board) == pytest.approx(tukey, abs=ERROR)


def test_heavy_voters_raise_the_bar() -> None:
    even, heavy = (
        Design(n_voters=200, tail=tail, taste=0.8).draw(np.random.default_rng(5))
        for tail in (0.1, 1.4)
    )
    assert drawn(heavy) > drawn(even) + ERROR


def test_a_voter_who_votes_twice_as_one_hundred_weights_is_the_same() -> None:
    rows = random_votes(np.random.default_rng(6), n=500, n_models=4, n_voters=30)
    columns = list(zip(*rows, strict=True))
    plain, heavy = (
        Comparisons.from_arrays(*columns[:3], voter=columns[3], weight=[weight] * len(rows))
        for weight in (1.0, 100.0)
    )
    assert drawn(plain) == pytest.approx(drawn(heavy), rel=1e-6)


def test_the_same_generator_gives_the_same_bar_and_the_order_of_votes_none() -> None:
    rows = random_votes(np.random.default_rng(7), n=300)
    assert drawn(votes(rows)) == drawn(votes(rows[::-1]))


def test_ties_that_alone_join_two_groups_count_with_their_known_variance() -> None:
    """The voters show no spread there: the bar stays finite, near that of a normal."""
    rng = np.random.default_rng(8)
    inside = [(a, b, o, v) for a, b, o, v in random_votes(rng, n=400, n_models=2)]
    other = [(a.replace("m", "z"), b.replace("m", "z"), o, v) for a, b, o, v in inside]
    between = [("m0", "z0", "tie", f"v{n % 20}") for n in range(40)]
    bar = drawn(votes([*inside, *other, *between]))
    assert 1.9 < bar < 4


def test_two_voters_and_known_noise_give_the_quantile_calculated_by_hand() -> None:
    contrast = np.array([0.5, -0.5])
    signs = SignSums(2, np.random.default_rng(11), 20_000)
    signs.add(LeftOut(np.arange(2), np.tile(contrast, (2, 1)), np.full(2, 0.5), stranded=False))
    # The jackknife of two voters has the factor 1/2, and noise adds the variance 1.
    matrix = (1 / 2 * 2 + 1) * np.outer(contrast, contrast)
    bar = signs.critical_value(matrix, (np.array([0]), np.array([1])), level=0.6)
    # Alike, the voters move the difference by 2 and leave no residual: |2 sqrt(1/2) + z| / 1.
    # With opposite signs each residual is 1 / (1 - 1/2): |z| / sqrt((1/2)^2 (4 + 4) + 1).
    alike = norm.cdf(bar - np.sqrt(2)) - norm.cdf(-bar - np.sqrt(2))
    opposite = 2 * norm.cdf(bar * np.sqrt(3)) - 1
    assert (alike + opposite) / 2 == pytest.approx(0.6, abs=0.01)


def test_the_bar_is_the_draw_that_has_the_level_of_all_draws_and_one_more() -> None:
    shift = np.outer(np.sqrt(np.arange(1, 10)), [0.5, -0.5])
    signs = SignSums(2, np.random.default_rng(12), 12)
    signs.add(LeftOut(np.arange(9), shift, np.full(9, 1 / 9), stranded=False))
    matrix, pairs = 8 / 9 * signs.spread, (np.array([0]), np.array([1]))
    ordered = np.sort(signs._largest(matrix, pairs))
    assert len(np.unique(ordered)) == 12
    # 12 draws and the board itself are 13 values: 6 of 13 are fewer than a half, 7 are more.
    for level, number in ((0.5, 7), (0.45, 6), (0.99, 12)):
        assert signs.critical_value(matrix, pairs, level=level) == ordered[number - 1]


def test_without_voters_the_bar_is_drawn_from_the_normal() -> None:
    data = D1.draw(np.random.default_rng(10))
    fitted = fit(data)
    ranges = joint_rank_ranges(infer(fitted, data, ()), rng=np.random.default_rng(2))
    same = rank_ranges(
        fitted.theta, sandwich_covariance(fitted, data), rng=np.random.default_rng(2)
    )
    assert (ranges.low.tolist(), ranges.high.tolist()) == (same.low.tolist(), same.high.tolist())


@pytest.mark.parametrize("limit", ["WILD_UP_TO", "SIGNS_UP_TO"])
def test_many_models_or_voters_have_the_bar_of_the_multivariate_t(
    limit: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = D1.draw(np.random.default_rng(10))
    fitted = fit(data)
    monkeypatch.setattr(f"rating.contrasts.{limit}", 9)
    inference = infer(fitted, data, ("voter",), rng=np.random.default_rng(1))
    ranges = joint_rank_ranges(inference, rng=np.random.default_rng(2))
    by_voter = inference.kinds[0]
    df = by_voter.activity.effective - 1
    same = rank_ranges(fitted.theta, by_voter.matrix, rng=np.random.default_rng(2), df=df)
    assert ranges.low.tolist() == same.low.tolist()
