"""Other mixes of prompts: by words, by shares of one's own, and the ranks that any mix reaches."""

from collections.abc import Callable

import numpy as np
import pytest
from numpy.typing import NDArray

from judge.probe.ranking import boards_of_table as boards_of
from judge.probe.ranking import by_words, clusters_of, own_mix, reach_of_table
from judge.probe.similarity import tf_idf
from rating.errors import DataError
from rating.goodness import Reweighted, Weighting
from rating.mix import Mix, RankReach, envelope

Floats = NDArray[np.float64]
TEXTS = [f"{kind} {kind} {word}" for kind in ("alpha beta", "gamma delta") for word in "stuvw"]


def weightings(texts: list[str]) -> dict[str, Weighting]:
    return {one.name: one for one in by_words(texts, np.arange(len(texts)))}


def test_a_prompt_given_three_times_weighs_as_one() -> None:
    texts = ["red apples", "red apples", "red apples", "winter snow", "green tea"]
    weight = weightings(texts)["similar prompts share a weight"].each(np.ones(5))
    assert weight / weight[3] == pytest.approx([1 / 3, 1 / 3, 1 / 3, 1, 1])


def test_a_prompt_without_a_word_is_like_nothing() -> None:
    weight = weightings(["red", "green", "!!"])["similar prompts share a weight"].each(np.ones(3))
    assert weight == pytest.approx([1, 1, 1])
    assert not weightings(["!", "?"])


def test_texts_about_the_same_are_one_cluster() -> None:
    assert weightings(TEXTS)["one prompt each of 8 clusters"].totals.sum() == 8
    cosine = tf_idf(TEXTS).matrix(TEXTS, TEXTS)
    cluster = clusters_of(cosine, (2, 10))
    assert [*cluster] == [2]  # ten texts are not more than ten
    assert len({*cluster[2][:5]}) == len({*cluster[2][5:]}) == 1 < len({*cluster[2]})


def test_a_cluster_is_stood_for_by_the_text_most_like_its_others() -> None:
    texts = ["a b", "a b c", "b c", *(f"x{i}" for i in range(7))]
    chosen = weightings(texts)["one prompt each of 8 clusters"].totals
    assert [*chosen[:3]] == [0, 1, 0]


def table(
    rng: np.random.Generator, *, apart: float, models: int = 8, prompts: int = 120
) -> tuple[Floats, NDArray[np.int64], Floats]:
    """Results, groups of sizes 60, 36 and 24, and the true means of models by group."""
    group = np.repeat([0, 1, 2], [prompts // 2, 3 * prompts // 10, prompts // 5])
    true = np.linspace(0.4, 0.6, models)[:, None] + apart * rng.normal(size=(models, 3))
    return true[:, group] + 0.2 * rng.normal(size=(models, prompts)), group, true


def names(n: int = 8) -> list[str]:
    return [f"m{i}" for i in range(n)]


def boards(values: Floats, group: NDArray[np.int64], *others: Weighting) -> dict[str, Reweighted]:
    known = boards_of(names(), values, {"g": (group, tuple("xyz"))}, others, level=0.95)
    return {one.weighting: one for one in known}


def test_ones_own_mix_is_the_mean_of_groups_by_its_shares() -> None:
    values, group, _ = table(np.random.default_rng(1), apart=0.1)
    weighting = own_mix(Mix.of_shares({"x": 1, "z": 3}), "g", "xyz", group)
    one = boards(values, group, weighting)["your mix of g"]
    of_group = np.array([values[:, group == code].mean(axis=1) for code in range(3)])
    wanted = 100 / np.ptp(values) * (0.25 * of_group[0] + 0.75 * of_group[2] - values.mean(axis=1))
    moved = {move.model: move.moved for move in one.moves}
    assert [moved[name] for name in names()] == pytest.approx([*wanted])
    with pytest.raises(DataError, match="no category 'moon'"):
        own_mix(Mix.of_shares({"moon": 1}), "g", "xyz", group)


def test_the_intervals_of_moves_are_those_of_leaving_prompts_out() -> None:
    ways = ("each g the same", "unlike", "g y alone")
    values, group, _ = table(np.random.default_rng(2), apart=0.1)
    weight = np.random.default_rng(3).random(120) + 0.1

    def moved(chosen: NDArray[np.bool_]) -> list[list[float]]:
        where = np.flatnonzero(chosen)
        unlike = Weighting("unlike", np.arange(len(where)), weight[where])
        every = boards(values[:, where] / np.ptp(values[:, where]), group[where], unlike)
        return [
            [move.moved for move in sorted(every[way].moves, key=lambda move: move.model)]
            for way in ways
        ]

    without = np.array([moved(np.arange(120) != t) for t in range(120)])
    jackknife = np.sqrt(119 / 120 * ((without - without.mean(axis=0)) ** 2).sum(axis=0))
    every = boards(values, group, Weighting("unlike", np.arange(120), weight))
    for way, wanted in zip(ways, jackknife, strict=True):
        moves = sorted(every[way].moves, key=lambda move: move.model)
        reach = [(move.upper or 0) - move.moved for move in moves]
        assert np.array(reach) / 1.98 == pytest.approx(wanted, rel=0.15), way


def by_kappa(reach: tuple[RankReach, ...], kappa: float) -> dict[str, tuple[int, int]]:
    return {row.model: (row.best, row.worst) for row in reach if row.kappa == kappa}


def test_groups_that_differ_by_luck_alone_leave_most_models_one_rank() -> None:
    fixed = []
    for seed in range(40):
        values, group, _ = table(np.random.default_rng(seed), apart=0.0)
        reach = by_kappa(reach_of_table(names(), values, group), 8.0)
        fixed += [best == worst for best, worst in reach.values()]
    assert np.mean(fixed) > 0.75


def test_ranks_of_groups_alone_are_reached_where_they_differ() -> None:
    values, group, true = table(np.random.default_rng(4), apart=0.3, prompts=6000)
    reach = by_kappa(reach_of_table(names(), values, group), 8.0)
    for of_group in true.T:
        ranks = 1 + (of_group[:, None] < of_group).sum(axis=1)
        for name, rank in zip(names(), ranks, strict=True):
            assert reach[name][0] <= rank <= reach[name][1]
    close = by_kappa(reach_of_table(names(), values, group), 1.5)
    assert any(one != reach[name] for name, one in close.items())


@pytest.mark.slow
@pytest.mark.parametrize(
    ("apart", "most", "fixed"), [(0.0, 0.4, 0.8), (0.02, 0.6, 0.55), (0.05, 0.7, 0.1)]
)
def test_ends_of_ranges_are_nearer_to_the_truth_than_those_of_means(
    apart: float, most: float, fixed: float, record_property: Callable[[str, object], None]
) -> None:
    """200 tables: errors in places, of best and worst rank in any mix."""
    errors, of_means, alone = [], [], []
    for seed in range(200):
        values, group, true = table(np.random.default_rng(seed), apart=apart)
        sizes = np.bincount(group).astype(np.float64)
        means = np.array([values[:, group == code].mean(axis=1) for code in range(3)])
        ours = ends(reach_of_table(names(), values, group))
        wanted = ends(tuple(envelope(names(), true.T, sizes)))
        errors.append(np.abs(ours - wanted).mean())
        of_means.append(np.abs(ends(tuple(envelope(names(), means, sizes))) - wanted).mean())
        alone.append((ours[:, 0] == ours[:, 1]).mean())
    row = {
        "apart": apart,
        "error": round(float(np.mean(errors)), 2),
        "of means": round(float(np.mean(of_means)), 2),
        "one rank": round(float(np.mean(alone)), 2),
    }
    record_property("ranks in any mix", row)
    assert np.mean(errors) < most
    assert np.mean(errors) < np.mean(of_means)
    assert np.mean(alone) > fixed


def ends(reach: tuple[RankReach, ...]) -> Floats:
    return np.array([[row.best, row.worst] for row in reach if row.kappa == 8], dtype=np.float64)
