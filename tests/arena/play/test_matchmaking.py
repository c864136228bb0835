import asyncio
import threading
from collections import Counter
from itertools import combinations
from random import Random

import numpy as np
import pytest
import scipy
from hypothesis import given, settings
from hypothesis import strategies as st

from arena.domain.battle import Sampler, Wins
from arena.domain.model import Model
from arena.errors import StoreError
from arena.play import matchmaking
from arena.play.battles import Field
from arena.play.matchmaking import Draw, Known, Matchmaker, draw_one, pair_probabilities, sides
from rating.likelihood import solve
from rating.typing import Floats

LEARNING = [Sampler.ARENA, Sampler.GAIN]
MIXED = [Sampler.WEIGHTED, *LEARNING]


def models(*weights: float) -> list[Model]:
    return [
        Model(id=f"m{i}", name=f"M{i}", endpoint="pocket://", model="x", weight=weight)
        for i, weight in enumerate(weights)
    ]


def matchmaker(
    roster: list[Model],
    sampler: Sampler,
    *,
    wins: Wins | None = None,
    exploration: float = 0.1,
    seed: int = 0,
) -> Matchmaker:
    """A matchmaker that has counted these votes."""
    known = wins or {}
    made = Matchmaker(
        roster, sampler=sampler, exploration=exploration, wins=lambda: known, rng=Random(seed)
    )
    made.refresh()
    return made


def played(n_models: int, votes: int = 200) -> Wins:
    """As many votes on every pair, the lower number ahead by three to one."""
    return {
        pair: share * votes
        for i, j in combinations(range(n_models), 2)
        for pair, share in (((f"m{i}", f"m{j}"), 0.75), ((f"m{j}", f"m{i}"), 0.25))
    }


def pair_of(draw: Draw) -> frozenset[str]:
    return frozenset((draw.a.id, draw.b.id))


def seen_and_stated(
    made: Matchmaker, candidates: list[Model], n: int
) -> tuple[Counter[frozenset[str]], dict[frozenset[str], float]]:
    draws = [made.draw(candidates) for _ in range(n)]
    return Counter(map(pair_of, draws)), {pair_of(d): d.pair_probability for d in draws}


def misfit(seen: Counter[frozenset[str]], stated: dict[frozenset[str], float]) -> float:
    """p-value of the chi-squared test that pairs came as their stated probabilities say."""
    n = sum(seen.values())
    pairs = list(stated)
    return float(
        scipy.stats.chisquare([seen[p] for p in pairs], [n * stated[p] for p in pairs]).pvalue
    )


@settings(max_examples=25)
@given(st.integers(2, 8), st.integers(0, 2**32))
def test_uniform_pairs_have_the_same_probability(n: int, seed: int) -> None:
    pool = models(*[1.0] * n)
    draw = matchmaker(pool, Sampler.UNIFORM, seed=seed).draw(pool)
    assert draw.a.id != draw.b.id
    assert draw.pair_probability == pytest.approx(2 / (n * (n - 1)))


@settings(max_examples=25)
@given(st.lists(st.floats(0.1, 10), min_size=2, max_size=6), st.floats(0.01, 1))
def test_weighted_probability_is_the_pair_s_share_of_the_products_and_of_exploration(
    weights: list[float], exploration: float
) -> None:
    pool = models(*weights)
    draw = matchmaker(pool, Sampler.WEIGHTED, exploration=exploration).draw(pool)
    pairs = list(combinations(pool, 2))
    share = draw.a.weight * draw.b.weight / sum(a.weight * b.weight for a, b in pairs)
    expected = (1 - exploration) * share + exploration / len(pairs)
    assert draw.pair_probability == pytest.approx(expected)


@pytest.mark.sampled(2)
@pytest.mark.parametrize("sampler", list(Sampler))
@pytest.mark.parametrize("candidates", [5, 4])
def test_pairs_come_as_often_as_their_logged_probability_says(
    sampler: Sampler, candidates: int
) -> None:
    pool = models(1, 2, 5, 0.5, 1)
    wins = {**played(4, votes=20), ("m4", "m0"): 2.0}
    made = matchmaker(pool, sampler, wins=wins, seed=1)
    seen, stated = seen_and_stated(made, pool[-candidates:], 2_000)
    assert len(stated) == candidates * (candidates - 1) / 2
    assert sum(stated.values()) == pytest.approx(1, abs=1e-12)
    assert misfit(seen, stated) > 1e-3


def test_a_wrong_probability_would_be_seen() -> None:
    pool = models(1, 2, 5, 0.5, 1)
    seen, stated = seen_and_stated(matchmaker(pool, Sampler.WEIGHTED), pool, 2_000)
    assert misfit(seen, dict.fromkeys(stated, 0.1)) < 1e-9


@pytest.mark.parametrize("sampler", MIXED)
@settings(max_examples=25)
@given(
    scores=st.lists(st.integers(0, 500), min_size=20, max_size=20),
    exploration=st.floats(0.01, 1),
    some=st.integers(2, 5),
)
def test_no_pair_falls_below_its_share_of_the_exploration(
    sampler: Sampler, scores: list[int], exploration: float, some: int
) -> None:
    pool = models(1, 1e3, 1e-3, 1, 1)
    pairs = [(a.id, b.id) for a in pool for b in pool if a is not b]
    known = Known.of(dict(zip(pairs, scores, strict=True)), [m.id for m in pool], sampler)
    table = pair_probabilities(pool[:some], known, sampler, exploration)
    probability = table[np.triu_indices(some, k=1)]
    assert probability.sum() == pytest.approx(1)
    assert probability.min() >= exploration / len(probability) * (1 - 1e-9)


@pytest.mark.parametrize("sampler", LEARNING)
def test_a_new_model_is_reached_at_once(sampler: Sampler) -> None:
    pool = models(*[1.0] * 6)
    made = matchmaker(pool, sampler, wins=played(5))
    seen, stated = seen_and_stated(made, pool, 300)
    new = sum(p for pair, p in stated.items() if "m5" in pair)
    assert new > 0.8  # a uniform draw: 5 pairs of 15
    assert sum(n for pair, n in seen.items() if "m5" in pair) > 200


@pytest.mark.parametrize("sampler", LEARNING)
def test_before_the_first_vote_all_pairs_are_alike(sampler: Sampler) -> None:
    pool = models(*[1.0] * 5)
    _, stated = seen_and_stated(matchmaker(pool, sampler), pool, 200)
    assert list(stated.values()) == pytest.approx([0.1] * 10)


def test_a_model_that_has_not_lost_yet_does_not_stop_the_gain_rule() -> None:
    pool = models(1, 1, 1)
    made = matchmaker(pool, Sampler.GAIN, wins={("m0", "m1"): 3.0, ("m0", "m2"): 2.0})
    _, stated = seen_and_stated(made, pool, 100)
    assert stated[frozenset({"m1", "m2"})] > 1 / 3  # nothing yet tells these two apart


RACE = ("m1", "m3")


def raced(wins: Wins, n_models: int = 5, exploration: float = 0.1) -> Floats:
    """Probabilities of the pairs while two models race."""
    pool = models(*[1.0] * n_models)
    known = Known.of(wins, [model.id for model in pool], Sampler.RACE)
    return pair_probabilities(pool, known, Sampler.RACE, exploration, RACE)


def test_a_race_draws_the_pairs_that_tell_of_the_two_and_every_pair_now_and_then() -> None:
    table = raced(played(5))
    apart = table[np.triu_indices(5, k=1)]
    assert apart.sum() == pytest.approx(1)
    assert apart.min() >= 0.1 / 10 * (1 - 1e-9)
    assert table[1, 3] == apart.max()
    with_one = table[1].sum() + table[3].sum() - table[1, 3]
    assert with_one > 0.8, "7 of 10 pairs hold one of the two, and others help less"
    assert table[0, 2] < 0.03


def test_without_votes_or_one_of_the_two_there_is_no_race() -> None:
    assert raced({})[1, 3] == pytest.approx(0.1)
    pool, known = models(1, 1, 1), Known.of(played(3), ["m0", "m1", "m2"], Sampler.RACE)
    alone = pair_probabilities(pool, known, Sampler.RACE, 0.1, RACE)
    assert np.array_equal(alone, pair_probabilities(pool, known, Sampler.GAIN, 0.1))


def test_a_race_states_the_chance_with_which_it_drew() -> None:
    pool = models(*[1.0] * 4)
    wins = played(4)
    made = Matchmaker(
        pool,
        sampler=Sampler.RACE,
        exploration=0.1,
        wins=lambda: wins,
        rng=Random(0),
        race=("m0", "m1"),
    )
    made.refresh()
    seen, stated = seen_and_stated(made, pool, 3000)
    assert sum(stated.values()) == pytest.approx(1)
    for pair, probability in stated.items():
        error = (probability * (1 - probability) / 3000) ** 0.5
        assert abs(seen[pair] / 3000 - probability) < 4 * error


def leads_of(sampler: Sampler, arenas: int, theta: Floats) -> tuple[Floats, Floats]:
    """Let arenas draw by what they learnt: the lead of m1 over m3, plain and weighed, nats."""
    pool = models(*[1.0] * len(theta))
    place = {model.id: i for i, model in enumerate(pool)}
    upper = np.triu_indices(len(theta), k=1)
    leads = np.zeros((2, arenas))
    for seed in range(arenas):
        rng = np.random.default_rng(seed)
        plain, weighed = (np.zeros((len(theta), len(theta))) for _ in range(2))
        for _ in range(12):
            cells = zip(*np.nonzero(plain), strict=True)
            wins = {(pool[i].id, pool[j].id): float(plain[i, j]) for i, j in cells}
            known = Known.of(wins, [*place], sampler)
            probability = pair_probabilities(pool, known, sampler, 0.2, RACE)[upper]
            for pair, n in enumerate(rng.multinomial(50, probability / probability.sum())):
                i, j = upper[0][pair], upper[1][pair]
                won = rng.binomial(n, 1 / (1 + np.exp(theta[j] - theta[i])))
                for table, weight in ((plain, 1.0), (weighed, 1 / probability[pair])):
                    table[i, j] += weight * won
                    table[j, i] += weight * (n - won)
        for row, table in enumerate((plain, weighed / weighed.sum() * 600)):
            fit = solve(table, np.zeros(len(theta)), ridge=0.01).theta
            leads[row, seed] = fit[1] - fit[3]
    return leads[0], leads[1]


@pytest.mark.slow
def test_a_race_tells_two_models_apart_by_fewer_votes_and_leaves_ratings_unbiased() -> None:
    theta = np.array([0.9, 0.15, 0.5, -0.15, -0.6, -0.8])
    plain, weighed = leads_of(Sampler.RACE, 120, theta)
    uniform, _ = leads_of(Sampler.UNIFORM, 120, theta)
    for leads in (plain, weighed):
        error = leads.std() / 120**0.5
        assert abs(leads.mean() - 0.3) < 3.5 * error
    assert plain.std() < 0.85 * uniform.std()


def test_the_arena_rule_is_that_of_the_paper() -> None:
    """Chiang et al. 2024, equation 9, by hand: p = 1/2 smoothed everywhere, S = 1/4."""
    pool = models(1, 1, 1)
    wins = {("m0", "m1"): 2.0, ("m1", "m0"): 2.0, ("m0", "m2"): 8.0, ("m2", "m0"): 8.0}
    made = matchmaker(pool, Sampler.ARENA, wins=wins, exploration=0.1)
    _, stated = seen_and_stated(made, pool, 200)
    gain = {n: n**-0.5 - (n + 1) ** -0.5 for n in (1, 4, 16)}
    for pair, n in (("m0", "m1"), 4), (("m0", "m2"), 16), (("m1", "m2"), 1):
        expected = 0.9 * gain[n] / sum(gain.values()) + 0.1 / 3
        assert stated[frozenset(pair)] == pytest.approx(expected)


@pytest.mark.parametrize("sampler", LEARNING)
def test_a_model_that_left_the_roster_is_not_drawn_and_still_tells_of_the_others(
    sampler: Sampler,
) -> None:
    pool = models(1, 1, 1)
    seen, stated = seen_and_stated(matchmaker(pool, sampler, wins=played(5)), pool, 100)
    assert set().union(*seen) == {"m0", "m1", "m2"}
    assert sum(stated.values()) == pytest.approx(1)


def test_votes_change_the_probabilities_only_when_they_are_counted() -> None:
    pool, votes = models(1, 1, 1), {("m0", "m1"): 0.0}
    made = Matchmaker(
        pool, sampler=Sampler.ARENA, exploration=0.1, wins=lambda: dict(votes), rng=Random(0)
    )
    votes["m0", "m1"] = 400.0
    assert list(seen_and_stated(made, pool, 100)[1].values()) == pytest.approx([1 / 3] * 3)
    made.refresh()
    after = seen_and_stated(made, pool, 400)[1]
    assert after[frozenset({"m0", "m1"})] == pytest.approx(0.1 / 3, abs=0.01)


async def test_votes_are_counted_off_the_loop_and_a_database_that_fails_stops_no_draw(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(matchmaking, "REFRESH_S", 0.001)
    seen, counted = list[int](), asyncio.Event()
    loop = asyncio.get_running_loop()

    def wins() -> Wins:
        seen.append(threading.get_ident())
        if len(seen) == 1:
            raise StoreError("The database is away.")
        loop.call_soon_threadsafe(counted.set)
        return {("m0", "m1"): 5.0}

    pool = models(1, 1, 1)
    made = Matchmaker(pool, sampler=Sampler.ARENA, exploration=0.1, wins=wins, rng=Random(0))
    keeping = asyncio.create_task(made.keep_up())
    made.draw(pool)
    await counted.wait()
    keeping.cancel()
    assert threading.get_ident() not in seen
    assert "older votes" in caplog.text


@pytest.mark.parametrize("sampler", [Sampler.UNIFORM, Sampler.WEIGHTED])
async def test_a_sampler_that_does_not_go_by_votes_never_counts_them(sampler: Sampler) -> None:
    def wins() -> Wins:
        raise AssertionError("counted for nothing")

    made = Matchmaker(models(1, 1), sampler=sampler, exploration=0.1, wins=wins, rng=Random(0))
    await made.keep_up()


def test_sides_follow_from_the_logged_seed_and_are_even() -> None:
    pool, n = models(1, 1), 2_000
    made = matchmaker(pool, Sampler.UNIFORM, seed=2)
    draws = [made.draw(pool) for _ in range(n)]
    assert all(sides((d.b, d.a), d.side_seed) == (d.a, d.b) for d in draws)
    assert abs(sum(d.a.id == "m0" for d in draws) / n - 0.5) < 4 * (0.25 / n) ** 0.5


def test_a_model_of_weight_zero_is_never_drawn() -> None:
    pool = models(1, 0, 1)
    seen, stated = seen_and_stated(matchmaker(pool, Sampler.WEIGHTED), pool, 50)
    assert set(seen) == {frozenset({"m0", "m2"})}
    assert list(stated.values()) == [1.0]


@pytest.mark.parametrize(
    ("sampler", "drawn"), [(Sampler.WEIGHTED, {"m0"}), (Sampler.ARENA, {"m0", "m1"})]
)
def test_weights_count_for_a_replacement_only_where_they_count_for_pairs(
    sampler: Sampler, drawn: set[str]
) -> None:
    rng, pool = Random(0), models(1, 0)
    assert {draw_one(pool, sampler, rng).id for _ in range(50)} == drawn


@pytest.mark.parametrize("weights", [(1.0,), (1.0, 0.0)])
def test_two_models_are_needed(weights: tuple[float, ...]) -> None:
    pool = models(*weights)
    with pytest.raises(ValueError, match="two models"):
        matchmaker(pool, Sampler.WEIGHTED).draw(pool)


def test_where_recordings_battle_the_prompts_that_two_can_answer_are_offered() -> None:
    first, second, live, other = models(1, 1, 1, 1)
    recorded = {"m0": ("p", "q"), "m1": ("q", "r")}
    assert Field.of([first, second], recorded).offered == ("q",)
    disabled = recorded | {"rested": ("p", "r")}
    assert Field.of([first, second], disabled).offered == ("q",), "who is drawn answers"
    assert Field.of([first, second, live], recorded).offered == ("p", "q", "r")
    assert Field.of([first, live, other], recorded).offered is None, "any prompt is answered"
