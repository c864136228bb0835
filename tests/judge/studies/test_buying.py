"""How many votes to buy and on which items: the formula both ways, and chances that add up."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from judge.studies.plan import Signal, half_width, plan_votes, sending, votes_to_buy
from judge.studies.powered import powered_ratings
from judge.studies.rows import Items, Labels
from rating.errors import DataError, NotIdentifiedError
from tests.judge.studies.planted import Planted
from tests.judge.studies.simulated import Study

Z = 1.959964


def effective_sample(n: int, n_judged: int, correlation: float) -> float:
    """How many votes alone would do as well as n with more verdicts (arXiv 2403.07008)."""
    return n * (n + n_judged) / (n + (1 - correlation**2) * n_judged)


@given(
    explained=st.floats(0, 0.99),
    half_width=st.floats(0.012, 0.2),
    n_items=st.integers(5_000, 100_000),
)
def test_the_votes_bought_are_worth_as_many_as_wanted(
    explained: float, half_width: float, n_items: int
) -> None:
    bought = votes_to_buy(Signal(0.25, explained, 10, n_items), half_width)
    wanted = 0.25 * (Z / half_width) ** 2
    if not bought.enough_items:
        assert bought.votes == bought.without_judge > n_items
        return
    correlation = np.sqrt(explained)
    assert effective_sample(bought.votes, n_items - bought.votes, correlation) >= wanted * 0.999999
    if bought.votes > 1:
        fewer = bought.votes - 1
        assert effective_sample(fewer, n_items - fewer, correlation) <= wanted * 1.000001
    assert bought.saved >= 0


def test_a_judge_without_signal_saves_nothing_and_a_perfect_one_all_but_the_pool() -> None:
    plain = votes_to_buy(Signal(0.25, 0.0, 100, 10_000), 0.02)
    assert (plain.votes, plain.more, plain.saved) == (2401, 2301, 0)
    perfect = votes_to_buy(Signal(0.25, 1.0, 100, 10_000), 0.02)
    assert (perfect.votes, perfect.more) == (1, 0)
    width = 1.959963984540054 * 0.5 / 100
    assert votes_to_buy(Signal(0.25, 1.0, 100, 10_000), width * 1.0000001).votes <= 10_000


def test_too_few_judged_items_are_said_to_be_too_few() -> None:
    bought = votes_to_buy(Signal(0.25, 0.9, 100, 2_000), 0.02)
    assert not bought.enough_items
    assert bought.votes == bought.without_judge == 2401


def test_buying_what_the_ratings_have_gives_their_half_width() -> None:
    study = Study(n_prompts=9_000, n_voted=1_000, signal=2.0, suits=1.5)
    powered = powered_ratings(*study.draw(np.random.default_rng(2)))
    signal = Signal.of_ratings(powered)
    assert votes_to_buy(signal, half_width(powered.ratings)).votes == pytest.approx(
        1_000, rel=0.03
    )
    assert 0.1 < signal.explained < 0.9
    with pytest.raises(NotIdentifiedError, match="the judge's value is unknown"):
        Signal.of_ratings(replace(powered, explained=None))


def test_a_plan_is_for_the_next_widths_and_sends_open_items_by_pair() -> None:
    data = Planted("person", n_prompts=300).data()
    data = replace(data, people=data.people.only(data.people.item < 180))
    judge = data.judges[0]
    powered = powered_ratings(data.items, data.people, judge.verdicts)
    plan = plan_votes(data, judge, powered, np.random.default_rng(1))
    assert plan.half_width == half_width(powered.ratings)
    wanted = [width for width in (100, 50, 30, 20, 10, 5) if width < plan.half_width]
    assert [*plan.purchases] == wanted[:3]
    signal = Signal.of_ratings(powered)
    assert {w: votes_to_buy(signal, w) for w in plan.purchases} == plan.purchases
    assert (len(plan.sent), min(plan.sent) >= 180) == (100, True)
    there = np.unique(data.items.pairs[180:], axis=0, return_counts=True)
    for (a, b), n in zip(*there, strict=True):
        pair = data.items.models[a], data.items.models[b]
        assert plan.by_pair[pair][1] == pytest.approx(n / 120)
    sent = [share for share, _ in plan.by_pair.values()]
    assert sent == sorted(sent, reverse=True)
    assert sum(sent) == pytest.approx(1)


def test_a_judge_of_the_items_with_votes_alone_shows_its_signal_all_the_same() -> None:
    study = Study(n_prompts=9_000, n_voted=2_000, n_judged=4_000, signal=2.0, suits=1.5)
    items, people, judge = study.draw(np.random.default_rng(3))
    whole = powered_ratings(items, people, judge)
    alone = powered_ratings(items, people, judge.only(judge.item < 2_000))
    assert alone.gain.value == 1
    assert alone.explained == pytest.approx(whole.explained)
    assert whole.explained is not None
    # What PPI++ gains at its best is 1 / (1 - explained N / (n + N)).
    assert whole.gain.value == pytest.approx(1 / (1 - whole.explained * 2 / 3), rel=0.03)


def test_a_plan_out_of_range_is_refused() -> None:
    signal = Signal(0.25, 0.5, 100, 1_000)
    with pytest.raises(DataError, match=r"not 0\.0"):
        votes_to_buy(signal, 0.0)
    with pytest.raises(DataError, match=r"not 1\.5"):
        votes_to_buy(signal, 0.1, level=1.5)


def half_sure(
    seed: int, n: int = 3_000, n_voted: int = 600
) -> tuple[Items, Labels, Labels, Labels]:
    """A judge that is people's voice where it is sure, and a coin where it is not.

    Returns the items, the votes so far, the verdicts, and what people would say of each item.
    """
    rng = np.random.default_rng(seed)
    study = Study(n_models=4, n_prompts=n, n_voted=n, n_judged=0, suits=0.0)
    items, people, judge = study.draw(rng)
    sure = rng.random(n) < 0.5
    p_shown = np.where(sure, 0.5 + 0.45 * people.label, 0.5 + 0.05 * judge.label)
    verdicts = replace(judge, probability=p_shown)
    return items, people.only(people.item < n_voted), verdicts, people


def test_votes_go_where_the_judge_leaves_most_open() -> None:
    items, people, judge, _ = half_sure(1)
    plan = sending(items, people, judge, 300)
    sure = np.abs(judge.probability[plan.item] - 0.5) > 0.2
    assert plan.probability[~sure].mean() > 2 * plan.probability[sure].mean()


def test_a_tenth_of_the_votes_is_spread_and_the_chances_sum_to_what_is_bought() -> None:
    items, people, judge, _ = half_sure(2)
    for n in (1, 300, 2_300, 2_400):
        plan = sending(items, people, judge, n)
        assert plan.probability.sum() == pytest.approx(n, rel=1e-9)
        assert plan.probability.max() <= 1
        assert plan.probability.min() >= 0.1 * n / 2_400
        drawn = plan.draw(np.random.default_rng(0))
        assert len(set(drawn.tolist())) == n
        assert not np.isin(drawn, people.item).any()


def test_each_item_is_drawn_as_often_as_its_chance_says() -> None:
    items, people, judge, _ = half_sure(3, n=300, n_voted=200)
    plan = sending(items, people, judge, 40)
    rng, rounds = np.random.default_rng(1), 4_000
    times = np.bincount(np.concatenate([plan.draw(rng) for _ in range(rounds)]), minlength=300)
    error = np.sqrt(plan.probability * (1 - plan.probability) / rounds).clip(min=1e-9)
    assert np.abs((times[plan.item] / rounds - plan.probability) / error).max() < 4.5


def test_the_overall_chance_is_of_this_draw_or_the_one_before() -> None:
    items, people, judge, _ = half_sure(4)
    plan = sending(items, people, judge, 300)
    assert plan.overall[plan.item] == pytest.approx(0.2 + 0.8 * plan.probability)
    assert (plan.overall[people.item] > 0.2).all()
    assert plan.overall.sum() == pytest.approx(900, rel=0.03)


def test_models_nobody_voted_on_get_no_votes_by_this_rule() -> None:
    items, people, judge, _ = half_sure(5)
    unseen = ~(items.pairs[people.item] == 3).any(axis=1)
    plan = sending(items, people.only(unseen), judge, 100)
    assert not (items.pairs[plan.item] == 3).any()
    assert plan.probability.sum() == pytest.approx(100)


def test_what_cannot_be_sent_is_refused() -> None:
    items, people, judge, _ = half_sure(6)
    with pytest.raises(DataError, match="0 items to send, of 2400"):
        sending(items, people, judge, 0)
    with pytest.raises(DataError, match="2401 items to send, of 2400"):
        sending(items, people, judge, 2_401)
    with pytest.raises(NotIdentifiedError, match="the judge's value is unknown"):
        sending(items, people, judge.only(judge.item >= 600), 10)
