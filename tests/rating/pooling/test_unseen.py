"""Pooled boards, boards apart and one board on prompts that they have not seen."""

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import ttest_1samp

from rating import Comparisons, RateOptions
from rating.mix import PooledFit, pooled_fit
from rating.pooling import (
    Categorised,
    Excess,
    Tree,
    _excess,
    fit_pooled,
    losses,
    on_unseen_prompts,
)
from tests.rating.pooling.planted import World, planted

POOL = RateOptions(by="category", pool=True)
EVEN = (1.0,) * 6


def world(seed: int, tau: float, *, n_votes: int = 2400, n_prompts: int = 20) -> World:
    rng = np.random.default_rng([seed, round(100 * tau)])
    size = {"n_models": 5, "n_votes": n_votes, "n_voters": 150, "n_prompts": n_prompts}
    return planted(rng, tau, shares=EVEN, **size)


def fitted(world: World) -> PooledFit:
    return pooled_fit(world.groups, replace(POOL, cluster="voter"))


def test_categories_that_differ_much_are_worth_boards_of_their_own() -> None:
    fit = fitted(world(0, 1.0))
    came = on_unseen_prompts(fit.best, fit.votes, np.random.default_rng(0))
    assert came is not None
    assert came.prompts == 120
    assert came.apart.is_better
    assert came.pooled.is_better
    assert came.pooled.value < came.apart.value


def test_categories_that_are_alike_are_worse_apart_than_together() -> None:
    fit = fitted(world(1, 0.0, n_votes=600))
    came = on_unseen_prompts(fit.best, fit.votes, np.random.default_rng(0))
    assert came is not None
    assert came.apart.is_worse
    assert came.pooled.value < came.apart.value


def test_losses_are_those_of_fits_to_the_other_folds_by_hand() -> None:
    fit = fitted(world(1, 0.3, n_votes=600))
    data = fit.votes.data
    assert data.prompt is not None
    fold = np.arange(data.n_prompts) % 5
    tau = fit.best.tau
    each = losses(fit.votes, [(tau, False)], fold)[0]
    seen = fold[data.prompt] != 2
    part = replace(fit.votes, data=data.subset(seen), category=fit.votes.category[seen])

    strengths = fit_pooled(Tree.of(part, nested=False), tau).strengths
    cell = int(np.flatnonzero(~seen)[0])
    a, b = data.pairs[cell]
    own = strengths[fit.votes.category[cell]]
    p = 1 / (1 + np.exp(own[b] - own[a]))
    score = data.score_a[cell]
    assert each[cell] == pytest.approx(-score * np.log(p) - (1 - score) * np.log(1 - p))


def test_with_equally_many_votes_the_interval_over_prompts_is_that_of_a_t_test() -> None:
    prompt, rng = np.repeat(np.arange(5), 4), np.random.default_rng(4)
    sides = ["a"] * 20, ["b"] * 20, ["model_a", "model_b"] * 10
    data = Comparisons.from_arrays(*sides, prompt=prompt.tolist(), voter=range(20))
    votes = Categorised(data, ("all",), np.zeros(20, dtype=np.int64))
    difference = rng.normal(size=20)
    assert data.prompt is not None
    means = [difference[data.prompt == one].mean() for one in range(5)]
    theirs = ttest_1samp(means, 0).confidence_interval(0.95)
    ours = _excess(votes, difference)
    assert (ours.lower, ours.upper) == pytest.approx((theirs.low, theirs.high))


def test_nothing_is_measured_without_prompts_or_on_a_handful() -> None:
    rng = np.random.default_rng(0)
    unknown = fitted(World(np.zeros((6, 5)), planted(rng, 0.3, n_models=5, shares=EVEN).groups))
    assert on_unseen_prompts(unknown.best, unknown.votes, rng) is None
    few = fitted(world(2, 0.3, n_prompts=3))
    assert on_unseen_prompts(few.best, few.votes, rng) is None


def test_an_interval_across_zero_shows_nothing() -> None:
    assert not Excess(0.1, -0.1, 0.3).is_worse
    assert not Excess(-0.1, -0.3, 0.1).is_better


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_what_the_page_says_of_unseen_prompts_is_rarely_wrong(
    record_property: Callable[[str, object], None],
) -> None:
    """Boards apart are truly worse without deviations, and truly better with large ones."""
    runs = 100
    wrong: dict[str, int] = {}
    for name, tau, n_votes in (("alike", 0.0, 600), ("far apart", 1.0, 2400)):
        came = []
        for seed in range(runs):
            fit = fitted(world(seed, tau, n_votes=n_votes))
            came.append(on_unseen_prompts(fit.best, fit.votes, np.random.default_rng(seed)))
        excess = [one.apart for one in came if one is not None]
        assert len(excess) == runs
        mistaken = [one.is_better if tau == 0 else one.is_worse for one in excess]
        right = [one.is_worse if tau == 0 else one.is_better for one in excess]
        wrong[name] = sum(mistaken)
        record_property(
            "Boards apart on unseen prompts", {"categories": name, "right": sum(right)}
        )
    assert wrong == {"alike": 0, "far apart": 0}
