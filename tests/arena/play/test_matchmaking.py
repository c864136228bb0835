from collections import Counter
from itertools import combinations
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from arena.domain.battle import Sampler
from arena.domain.model import Model
from arena.play.matchmaking import draw_pair, sides


def models(*weights: float) -> list[Model]:
    return [
        Model(id=f"m{i}", name=f"M{i}", endpoint="pocket://", model="x", weight=weight)
        for i, weight in enumerate(weights)
    ]


@given(st.integers(2, 8), st.integers(0, 2**32))
def test_uniform_pairs_have_the_same_probability(n: int, seed: int) -> None:
    draw = draw_pair(models(*[1.0] * n), Sampler.UNIFORM, Random(seed))
    assert draw.a.id != draw.b.id
    assert draw.pair_probability == pytest.approx(2 / (n * (n - 1)))


@given(st.lists(st.floats(0.1, 10), min_size=2, max_size=6), st.integers(0, 2**32))
def test_weighted_probability_is_the_pair_s_share_of_the_products(
    weights: list[float], seed: int
) -> None:
    pool = models(*weights)
    draw = draw_pair(pool, Sampler.WEIGHTED, Random(seed))
    total = sum(a.weight * b.weight for a, b in combinations(pool, 2))
    assert draw.pair_probability == pytest.approx(draw.a.weight * draw.b.weight / total)


def test_pairs_come_as_often_as_their_logged_probability_says() -> None:
    rng, pool, n = Random(1), models(1, 2, 5, 0.5), 20_000
    draws = [draw_pair(pool, Sampler.WEIGHTED, rng) for _ in range(n)]
    seen = Counter(frozenset((d.a.id, d.b.id)) for d in draws)
    stated = {frozenset((d.a.id, d.b.id)): d.pair_probability for d in draws}
    assert sum(stated.values()) == pytest.approx(1)
    for pair, p in stated.items():
        assert abs(seen[pair] / n - p) < 4 * (p * (1 - p) / n) ** 0.5


def test_sides_follow_from_the_logged_seed_and_are_even() -> None:
    rng, pool, n = Random(2), models(1, 1), 4_000
    draws = [draw_pair(pool, Sampler.UNIFORM, rng) for _ in range(n)]
    assert all(sides((d.b, d.a), d.side_seed) == (d.a, d.b) for d in draws)
    assert abs(sum(d.a.id == "m0" for d in draws) / n - 0.5) < 4 * (0.25 / n) ** 0.5


def test_a_model_of_weight_zero_is_never_drawn() -> None:
    rng, pool = Random(3), models(1, 0, 1)
    drawn = {
        m.id
        for _ in range(50)
        for d in [draw_pair(pool, Sampler.WEIGHTED, rng)]
        for m in (d.a, d.b)
    }
    assert drawn == {"m0", "m2"}


@pytest.mark.parametrize("weights", [(1.0,), (1.0, 0.0)])
def test_two_models_are_needed(weights: tuple[float, ...]) -> None:
    with pytest.raises(ValueError, match="two models"):
        draw_pair(models(*weights), Sampler.WEIGHTED, Random(0))
