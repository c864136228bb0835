"""The length-controlled win rate: identities, the whole fit's error, another optimiser."""

import math
from dataclasses import replace

import numpy as np
import pytest
from scipy.optimize import minimize

from judge.scoring.length_control import (
    Annotated,
    Block,
    LengthControlled,
    length_controlled,
    length_term,
)
from judge.scoring.logistic import Difficulty, estimate_difficulty
from rating.errors import DataError, NotIdentifiedError
from tests.judge.scoring.synthetic import Leaderboard, leaderboard, resampled


def board(n: int = 200, **how: float) -> Leaderboard:
    return leaderboard(np.random.default_rng(11), n=n, **how)  # type: ignore[arg-type]


def block(n: int) -> Block:
    rng = np.random.default_rng(12)
    rate = rng.uniform(0.05, 0.95, 2 * n)
    length = np.tanh(rng.normal(size=2 * n))
    return Block(rate, length, np.full(2 * n, 0.1), np.tile(np.arange(n), 2))


def estimated(models: tuple[Annotated, ...], *, order: bool = False) -> Difficulty:
    data = Leaderboard(models, np.zeros(0), np.zeros(0))
    model, instruction, share, length, shown = data.stacked()
    n = len(models[0].share)
    return estimate_difficulty(
        model, instruction, share, length, shown if order else None, n_instructions=n
    )


def test_a_general_optimiser_finds_the_same_win_rate() -> None:
    data, given, extra = board().models[2], board().difficulty, block(200)
    x = np.r_[length_term(data.length_gap), extra.length]
    d = np.r_[given, given[extra.instruction]]
    one = np.r_[np.ones(200), np.zeros(400)]
    weight, share = np.r_[np.ones(200), extra.weight], np.r_[data.share, extra.share]

    def loss(b: np.ndarray) -> float:
        logit = b[0] * x + b[1] * d + b[2] * one
        return float(weight @ (np.logaddexp(0, logit) - share * logit))

    b = minimize(loss, np.zeros(3), method="BFGS", options={"gtol": 1e-8}).x
    controlled = length_controlled(data, Difficulty.given(given), extra)
    probability = 1 / (1 + np.exp(-(b[1] * given + b[2])))
    assert controlled.win_rate == pytest.approx(100 * probability.mean(), abs=1e-4)
    assert [controlled.length, controlled.difficulty, controlled.intercept] == pytest.approx(
        list(b), abs=1e-5
    )
    sem = 100 * probability.std(ddof=1) / math.sqrt(200)
    assert controlled.compat_standard_error == pytest.approx(sem, abs=1e-4)


@pytest.mark.parametrize("order", [False, True])
def test_swapping_the_sides_turns_the_win_rate_round(order: bool) -> None:
    data, extra = board(order_effect=-1).models[3], block(200)
    given = Difficulty.given(board().difficulty)
    assert data.order is not None
    turned = Annotated(1 - data.share, -data.length_gap, data.instruction, -data.order)
    other = replace(extra, share=1 - extra.share, length=-extra.length)
    for blocks in ((None, None), (extra, other)):
        controlled = length_controlled(data, given, blocks[0], order=order)
        swapped = length_controlled(turned, given, blocks[1], order=order)
        assert swapped.win_rate == pytest.approx(100 - controlled.win_rate, abs=1e-7)
        assert swapped.standard_error == pytest.approx(controlled.standard_error, abs=1e-7)


def test_copies_of_a_row_hang_together_in_its_instruction() -> None:
    data, given = board().models[1], Difficulty.given(board().difficulty)
    twice = Annotated(
        np.tile(data.share, 2), np.tile(data.length_gap, 2), np.tile(data.instruction, 2)
    )
    result, other = length_controlled(data, given), length_controlled(twice, given)
    # The standard deviation of the lengths divides by n - 1, so copies move it a little.
    assert other.win_rate == pytest.approx(result.win_rate, abs=0.02)
    assert other.standard_error == pytest.approx(result.standard_error, rel=0.01)


def test_a_longer_copy_moves_the_raw_rate_and_not_the_controlled_one() -> None:
    rng = np.random.default_rng(5)
    n = 4000
    given = rng.normal(size=n)
    rates = []
    for padding in (0.0, 900.0):
        gap = rng.normal(0, 800, n) - padding
        # People and judges reward the length itself, not its place in this model's own spread.
        probability = 1 / (1 + np.exp(-(-0.5 - 1.5 * length_term(gap) + given)))
        data = Annotated(probability, gap, np.arange(n))
        controlled = length_controlled(data, Difficulty.given(given))
        rates.append((100 * probability.mean(), controlled.win_rate))
    assert rates[1][0] - rates[0][0] > 15
    assert abs(rates[1][1] - rates[0][1]) < 1


def test_an_order_term_takes_out_what_one_order_adds() -> None:
    data = board(n=2000, order_effect=-3).models[2]
    assert data.order is not None
    chosen = (data.order > 0) | (np.arange(2000) % 10 == 0)  # mostly shown first
    lopsided = Annotated(
        data.share[chosen], data.length_gap[chosen], data.instruction[chosen], data.order[chosen]
    )
    truth = board(n=2000, order_effect=-3).truth[2]
    given = Difficulty.given(board(n=2000, order_effect=-3).difficulty)
    without = length_controlled(lopsided, given).win_rate
    controlled = length_controlled(lopsided, given, order=True)
    assert abs(without - truth) > 5 * controlled.standard_error
    assert abs(controlled.win_rate - truth) < 3 * controlled.standard_error
    assert controlled.order == pytest.approx(-3, abs=0.5)


def test_terms_that_are_left_out_are_no_number() -> None:
    controlled = length_controlled(board().models[0])
    assert math.isnan(controlled.difficulty)
    assert math.isnan(controlled.order)
    assert controlled.n == 200


def test_what_cannot_be_controlled_is_named() -> None:
    data = board().models[0]
    with pytest.raises(NotIdentifiedError, match="differ by the same in every row"):
        length_controlled(replace(data, length_gap=np.full(200, 7.0)))
    with pytest.raises(NotIdentifiedError, match="separated"):
        length_controlled(replace(data, share=np.ones(200)))
    with pytest.raises(NotIdentifiedError, match="differ by the same in every row"):
        length_controlled(replace(data, length_gap=np.full(200, 0.1)))
    with pytest.raises(NotIdentifiedError, match="effect of 'difficulty' from length"):
        length_controlled(data, Difficulty.given(np.ones(200)))
    with pytest.raises(NotIdentifiedError, match="effect of 'order' from length, intercept"):
        length_controlled(replace(data, order=np.full(200, 0.5)), order=True)
    with pytest.raises(DataError, match=r"A share is 1\.5"):
        length_controlled(replace(data, share=np.full(200, 1.5)))
    with pytest.raises(DataError, match="which response was shown first"):
        length_controlled(replace(data, order=None), order=True)


@pytest.mark.parametrize(("sign", "how"), [(1.0, "shorter"), (-1.0, "longer")])
def test_what_would_be_at_equal_length_is_not_told_from_one_side_of_it(
    sign: float, how: str
) -> None:
    rng = np.random.default_rng(3)
    gap = sign * rng.uniform(200, 500, 60)
    data = Annotated(rng.uniform(0.2, 1.0, 60), gap, np.arange(60))
    with pytest.raises(NotIdentifiedError, match=f"Every response is {how}"):
        length_controlled(data)
    gap[0] *= -1
    assert 0 < length_controlled(data).win_rate < 100


@pytest.mark.parametrize("estimate", [False, True])
def test_the_standard_error_adds_up_how_far_each_instruction_moves_the_whole_fit(
    estimate: bool,
) -> None:
    # Twenty copies of every instruction, and one more or one less of each in turn: central
    # differences in an instruction's weight, with everything estimated again.
    n, copies = 15, 20
    models = tuple(
        replace(one, length_gap=one.length_gap**3)  # heavy tails: their spread is uncertain
        for one in board(n=n, order_effect=-1).models
    )
    given = board(n=n).difficulty
    base = np.tile(np.arange(n), copies)

    def fitted(at: np.ndarray) -> LengthControlled:
        drawn = tuple(resampled(one, at) for one in models)
        result = estimated(drawn, order=True) if estimate else Difficulty.given(given[at])
        return length_controlled(drawn[0], result, order=estimate)

    moved = [
        fitted(np.r_[base, i]).win_rate - fitted(np.delete(base, i)).win_rate for i in range(n)
    ]
    spread = math.sqrt(sum((change / 2) ** 2 for change in moved) * copies)
    assert fitted(base).standard_error == pytest.approx(spread, rel=0.01)


def bootstrapped(models: tuple[Annotated, ...], draws: int, *, estimate: bool) -> np.ndarray:
    rng, n = np.random.default_rng(21), len(models[0].share)
    given, extra = board(n=n).difficulty, block(n)
    rates = []
    for _ in range(draws):
        at = rng.integers(0, n, n)
        drawn = tuple(resampled(one, at) for one in models)
        result = estimated(drawn, order=True) if estimate else Difficulty.given(given[at])
        both = np.r_[at, n + at]
        again = replace(extra, share=extra.share[both], length=extra.length[both])
        rates.append(
            [length_controlled(one, result, again, order=estimate).win_rate for one in drawn]
        )
    return np.asarray(np.std(rates, axis=0, ddof=1))


def of_the_whole_fit(models: tuple[Annotated, ...], *, estimate: bool) -> list[LengthControlled]:
    n = len(models[0].share)
    given = Difficulty.given(board(n=n).difficulty)
    result = estimated(models, order=True) if estimate else given
    return [length_controlled(one, result, block(n), order=estimate) for one in models]


@pytest.mark.slow
@pytest.mark.parametrize("estimate", [False, True])
def test_the_standard_error_is_that_of_refits_on_resampled_instructions(estimate: bool) -> None:
    models = board(n=400, order_effect=-1).models
    ours = of_the_whole_fit(models, estimate=estimate)
    draws = 400
    theirs = bootstrapped(models, draws, estimate=estimate)
    # A standard deviation from so many draws is off by 1 / sqrt(2 draws) = 3.5 %.
    np.testing.assert_allclose([one.standard_error for one in ours], theirs, rtol=0.14)
    assert all(one.standard_error > 1.2 * one.compat_standard_error for one in ours)


@pytest.mark.slow
def test_intervals_cover_the_truth_with_estimated_difficulties() -> None:
    rng = np.random.default_rng(31)
    inside = []
    for _ in range(150):
        drawn = leaderboard(rng, n_models=10, n=300, order_effect=-1, soft=False)
        estimate = estimated(drawn.models, order=True)
        for one, truth in zip(drawn.models, drawn.truth, strict=True):
            got = length_controlled(one, estimate, order=True)
            inside.append(abs(got.win_rate - truth) <= 1.96 * got.standard_error)
    # Models of a draw share instructions: 150 draws of ten correlated intervals. The truth is
    # that of the drawn instructions, so an interval that allows for their draw covers more.
    assert 0.93 <= np.mean(inside) <= 0.995
