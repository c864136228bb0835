"""Decisiveness and bias of a judge as a ranker of models."""

from pathlib import Path

import numpy as np
import pytest
import scipy
from hypothesis import given, settings
from hypothesis import strategies as st

from judge.studies.boards import curve, decisiveness, system_ranking
from judge.studies.data import read_study
from judge.studies.estimates import Draws
from judge.studies.rows import Items, Labels
from rating.errors import NotIdentifiedError
from rating.typing import Floats

RATES = st.lists(st.floats(0.02, 0.98), min_size=3, max_size=30)


def draws(rounds: int = 200) -> Draws:
    return Draws(np.random.default_rng(1), rounds)


@pytest.mark.parametrize("alpha", [0.3, 0.8, 1.0, 1.84, 4.76, 12.0])
def test_the_decisiveness_of_a_judge_without_bias_is_recovered(alpha: float) -> None:
    gold = np.linspace(0.05, 0.95, 19)[None]
    assert decisiveness(gold, curve(gold, np.array(alpha)))[0] == pytest.approx(alpha, rel=0.002)


def test_the_fit_is_the_least_squares_of_another_implementation() -> None:
    rng = np.random.default_rng(3)
    gold = rng.uniform(0.1, 0.9, (5, 40))
    own = np.clip(curve(gold, np.array(2.5)) + rng.normal(0, 0.1, gold.shape), 0, 1)
    for row, alpha in enumerate(decisiveness(gold, own)):
        loss = lambda a, row=row: ((own[row] - scipy.stats.beta.cdf(gold[row], a, a)) ** 2).sum()  # noqa: E731
        best = scipy.optimize.minimize_scalar(loss, bounds=(0.05, 20), method="bounded").x
        assert alpha == pytest.approx(best, rel=0.002)


@settings(max_examples=40)
@given(RATES, st.data())
def test_turning_the_sides_of_any_pairs_changes_no_decisiveness(
    rates: list[float], data: st.DataObject
) -> None:
    gold = np.array([rates])
    own = np.array([[data.draw(st.floats(0, 1)) for _ in rates]])
    turned = np.array([[data.draw(st.booleans()) for _ in rates]])
    again = decisiveness(np.where(turned, 1 - gold, gold), np.where(turned, 1 - own, own))
    assert again == pytest.approx(decisiveness(gold, own), rel=1e-6)


def planted(rates: Floats, own: Floats, n: int = 100) -> tuple[Items, Labels, Labels]:
    """Give n items a pair of models, one a prompt, won as often as planted: shares of hundreds."""
    k = len(rates)
    pairs = [(a, b) for a in range(k) for b in range(a + 1, k)]
    items = Items(
        tuple(f"m{model}" for model in range(k)),
        np.repeat(np.array(pairs), n, axis=0),
        np.tile(np.arange(n), len(pairs)),
    )
    order = np.random.default_rng(5).permutation(n)

    def labels(table: Floats) -> Labels:
        won = [np.arange(n)[order] < round(n * table[a, b]) for a, b in pairs]
        every = np.arange(items.n)
        return Labels.of_one_rater(every, np.where(np.concatenate(won), 1, -1))

    return items, labels(rates), labels(own)


def of_strengths(theta: list[float]) -> Floats:
    gaps = np.subtract.outer(np.array(theta), np.array(theta))
    return np.asarray(1 / (1 + np.exp(-gaps)))


def test_a_judge_who_says_what_people_say_is_neither_decisive_nor_biased() -> None:
    rates = of_strengths([1.5, 0.5, 0.0, -1.0])
    result = system_ranking(*planted(rates, rates), draws())
    assert result.decisiveness.value == pytest.approx(1, abs=0.001)
    assert result.n_pairs == 6
    assert [one.value for one in result.bias.values()] == pytest.approx([0] * 4, abs=0.001)
    assert result.bias_sd.value == pytest.approx(0, abs=0.001)
    assert result.bias_sd_noise_freed == pytest.approx(0, abs=0.001)


def test_bias_by_hand() -> None:
    # People see three equals; the judge gives m0 .6 against both others, so .1 to it, and to
    # each of the others the mean of -.1 and 0.
    rates, own = np.full((3, 3), 0.5), np.full((3, 3), 0.5)
    own[0, 1:] = 0.6
    result = system_ranking(*planted(rates, own), draws())
    values = [one.value for one in result.bias.values()]
    assert values == pytest.approx([0.1, -0.05, -0.05])
    assert result.bias_sd.value == pytest.approx(np.std([0.1, -0.05, -0.05]))
    assert 0 < result.bias_sd_noise_freed < (result.bias_sd.value or 0)
    assert all(one.lower < one.value < one.upper for one in result.bias.values())  # type: ignore[operator]


def test_swapping_the_sides_of_items_changes_nothing() -> None:
    rates = of_strengths([1.0, 0.2, -0.5])
    items, people, judge = planted(rates, curve(rates, np.array(2.0)))
    turned = np.arange(items.n) % 2 == 0
    other = Items(
        items.models, np.where(turned[:, None], items.pairs[:, ::-1], items.pairs), items.prompt
    )

    def swapped(labels: Labels) -> Labels:
        return Labels.of_one_rater(labels.item, np.where(turned, -labels.label, labels.label))

    assert system_ranking(other, swapped(people), swapped(judge), draws()) == system_ranking(
        items, people, judge, draws()
    )


def test_few_items_of_a_pair_rank_nothing() -> None:
    rates = of_strengths([1.0, 0.0, -1.0])
    with pytest.raises(NotIdentifiedError, match="0 pairs of models have at least 20 items"):
        system_ranking(*planted(rates, rates, n=19), draws())
    assert system_ranking(*planted(rates, rates, n=20), draws()).n_pairs == 3


@pytest.mark.published
def test_gpt_4_on_mt_bench_widens_gaps_and_favours_itself(published_data: Path) -> None:
    folder = published_data / "votes" / "mtbench"
    data = read_study(folder / "votes.parquet", folder / "judgments.parquet")
    result = system_ranking(data.items, data.people, data.judges[0].verdicts, draws(1000))
    alpha, own, other = result.decisiveness, result.bias["gpt-4"], result.bias["gpt-3.5-turbo"]
    assert (result.n_pairs, round(alpha.value or 0, 2)) == (15, 1.87)
    assert (alpha.lower or 0) > 1
    assert (round(own.value or 0, 3), round(other.value or 0, 3)) == (0.050, -0.068)
    assert (own.lower or 0) > 0 > (other.upper or 0)
    assert (round(result.bias_sd.value or 0, 3)) == 0.036
    assert round(result.bias_sd_noise_freed, 2) == 0.03


ROUNDS = 200


@pytest.mark.slow
@pytest.mark.parametrize("lift", [0.0, 0.1])
def test_intervals_hold_the_planted_decisiveness_and_bias(lift: float) -> None:
    """A judge of decisiveness 2, who may favour one of six models; 150 prompts, all pairs on each.

    One vote of people an item, so their win rates have noise as well.
    """
    rng = np.random.default_rng(11)
    rates = of_strengths([1.2, 0.7, 0.2, -0.2, -0.7, -1.2])
    own = curve(rates, np.array(2.0))
    own[2, :] += lift
    own[:, 2] -= lift
    own = np.clip(own, 0.0, 1.0)
    items, _, _ = planted(rates, own, n=150)
    truth = system_ranking(*planted(rates, own, n=20_000), draws(2))
    held, spreads = np.zeros(2), np.zeros((ROUNDS, 2))
    sides = items.pairs[:, 0], items.pairs[:, 1]
    every = np.arange(items.n)

    def votes(table: Floats) -> Labels:
        return Labels.of_one_rater(every, np.where(rng.random(items.n) < table[sides], 1, -1))

    for number in range(ROUNDS):
        result = system_ranking(items, votes(rates), votes(own), Draws(rng, 100))
        pairs = ((result.decisiveness, truth.decisiveness), (result.bias["m2"], truth.bias["m2"]))
        for place, (one, true) in enumerate(pairs):
            held[place] += one.lower <= true.value <= one.upper  # type: ignore[operator]
        spreads[number] = result.bias_sd.value, result.bias_sd_noise_freed
    spread, freed = spreads.mean(axis=0)
    print(  # noqa: T201
        f"lift {lift}: held {held / ROUNDS}, spread {spread:.3f}, freed {freed:.3f}, "
        f"true {truth.bias_sd.value:.3f}"
    )
    assert (held / ROUNDS >= 0.87).all(), held / ROUNDS
    assert spread > freed
    assert freed == pytest.approx(truth.bias_sd.value or 0, abs=0.010)
