"""Quality against cost: identities, simulated worlds, and what has no price."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import t

from rating import DataError, RateOptions
from rating.rows import VoteRows
from rating.value import NEAR, Taken, dominates, paired_means, value
from tests.rating.value.planted import TEN, World, priced


def _two(
    cost: list[list[float]], voter: list[int] | None = None, prompt: list[int] | None = None
) -> VoteRows:
    zero = np.zeros(len(cost), dtype=np.int64)
    known = {"voter": voter, "prompt": prompt}
    groups = {role: np.array(codes) for role, codes in known.items() if codes is not None}
    votes = VoteRows(("x", "y"), zero, zero + 1, zero, zero + 1, groups)
    return priced(votes, np.array(cost))


def test_the_ratio_of_two_models_is_the_mean_of_their_log_ratios() -> None:
    assert np.isnan(paired_means(_two([[2.0, 1.0]] * 9), "cost").logs).all()  # fewer than ten
    figures = _two([[2.0, 1.0], [8.0, 1.0]] * 5)
    x, y = np.exp(paired_means(figures, "cost").logs)
    assert x / y == pytest.approx(4.0)  # the geometric mean of 2 and 8
    # The mean of 2 / 4, 8 / 4 and 1, 1 with the ratio taken out, is 9 / 8.
    assert y == pytest.approx((2 / 4 + 8 / 4 + 1 + 1) / 4)


def test_a_prompt_that_makes_both_answers_dearer_changes_no_ratio() -> None:
    rng = np.random.default_rng(1)
    cost = np.exp(rng.normal(size=(30, 2)))
    longer = cost * np.exp(rng.normal(0, 3, size=(30, 1)))
    ratio = []
    for some in (cost, longer):
        figures = _two(some.tolist())
        x, y = np.exp(paired_means(figures, "cost").logs)
        ratio.append(x / y)
    assert ratio[0] == pytest.approx(ratio[1])


def test_a_voter_who_votes_again_and_again_counts_once_in_the_spread() -> None:
    rng = np.random.default_rng(2)
    cost = np.exp(rng.normal(size=(40, 2)))
    alone = _two(cost.tolist(), list(range(40)))
    copied = _two(np.repeat(cost, 5, axis=0).tolist(), np.repeat(range(40), 5).tolist())
    once, again = (paired_means(one, "cost").covariance for one in (alone, copied))
    assert again == pytest.approx(once)


def test_the_variance_of_a_ratio_is_that_of_the_mean_of_log_ratios_by_voter_and_prompt() -> None:
    """Of two models the ratio is a mean, whose sums by cluster can be written down."""
    rng = np.random.default_rng(3)
    cost = np.exp(rng.normal(size=(60, 2)))
    voter, prompt = rng.integers(9, size=60), rng.integers(4, size=60)
    gap = np.log(cost[:, 0] / cost[:, 1])
    off = (gap - gap.mean()) / 60

    def squares(unit: np.ndarray) -> float:
        sums = [off[unit == one].sum() for one in np.unique(unit)]
        return len(sums) / (len(sums) - 1) * float(np.square(sums).sum())

    by_voter, by_prompt, cells = squares(voter), squares(prompt), squares(4 * voter + prompt)
    both = paired_means(_two(cost.tolist(), voter.tolist(), prompt.tolist()), "cost")
    alone = paired_means(_two(cost.tolist(), voter.tolist()), "cost")
    contrast = np.array([1.0, -1.0])
    assert contrast @ alone.covariance @ contrast == pytest.approx(by_voter, rel=0.15)
    whole = float(contrast @ both.covariance @ contrast)
    assert whole >= (1 - 1e-9) * (by_voter + max(0.0, by_prompt - cells))
    again = paired_means(_two(cost.tolist(), voter.tolist(), (3 - prompt).tolist()), "cost")
    assert again.covariance == pytest.approx(both.covariance)


def test_prompts_that_all_voters_share_widen_the_interval() -> None:
    world = World((1000.0,) * 3, (0.02, 0.01, 0.005), n_prompts=20, suits_sd=0.5)
    _, figures = world.draw(np.random.default_rng(4))
    shared = paired_means(figures, "cost")
    ignored = paired_means(replace(figures, groups={"voter": figures.voter}), "cost")
    assert (np.diag(shared.covariance) > 3 * np.diag(ignored.covariance)).all()
    assert (shared.df < 40).all()


def test_a_model_without_a_price_is_named_and_has_no_cost() -> None:
    votes, figures = TEN.draw(np.random.default_rng(0))
    cost = figures.of_answers("cost")
    cost[figures.pairs == 3] = np.nan
    late = figures.of_answers("cost")
    late[figures.pairs == 4] = np.nan
    board = value(votes, priced(figures, cost, late))
    assert board.in_words({"m3": "Mica"})[-2:] == (
        "Excluded from the costs: Mica (no price is known).",
        "Excluded from the times: m4 (no time is known).",
    )
    (row,) = [row for row in board.models if row.model == "m3"]
    assert row.cost is None
    assert board.left_out["cost"] == {"m3": "no price is known"}
    assert board.to_dict()["models"][[r.model for r in board.models].index("m3")]["cost"] is None
    assert {row.model for row in board.models} == {*TEN.models}


def test_a_price_of_nothing_has_no_place_on_a_scale_of_ratios() -> None:
    votes, figures = TEN.draw(np.random.default_rng(0))
    cost = figures.of_answers("cost")
    seconds = figures.of_answers("cost")
    cost[figures.pairs == 6] = 0.0
    seconds[figures.pairs == 5] = 0.0
    board = value(votes, priced(figures, cost, seconds))
    assert board.left_out == {
        "cost": {"m6": "answers that cost nothing have no place on a scale of ratios"},
        "seconds": {"m5": "answers that took no time have no place on a scale of ratios"},
    }
    assert all(row.cost is None or row.cost.by != "m6" for row in board.models)


def test_models_that_no_battle_compares_with_the_others_have_no_cost() -> None:
    votes, figures = TEN.draw(np.random.default_rng(0))
    cost = figures.of_answers("cost")
    apart = np.isin(figures.pairs, (8, 9)).sum(axis=1) == 1
    cost[apart] = np.nan
    board = value(votes, priced(figures, cost))
    assert {*board.left_out["cost"]} == {"m8", "m9"}
    assert set(board.left_out["cost"].values()) == {"too few battles compare it with the others"}


def test_votes_without_any_figure_are_refused() -> None:
    votes, figures = TEN.draw(np.random.default_rng(0))
    with pytest.raises(DataError, match="cost_a and cost_b"):
        value(votes, replace(figures, numbers={}))


def test_a_flat_price_for_all_leaves_the_best_alone_on_the_frontier() -> None:
    votes, figures = TEN.draw(np.random.default_rng(3))
    flat = np.full(figures.pairs.shape, 0.004)
    board = value(votes, priced(figures, flat))
    last, first = board.models[-1].cost, board.models[0]
    assert last is not None
    assert (last.dominated, last.by) == (True, first.model), "an equal price is no dearer"
    on = [row.model for row in board.models if row.cost and row.cost.on_frontier]
    assert on == [board.models[0].model]
    assert board.models[0].cost is not None
    assert board.models[0].cost.value == pytest.approx(4.0)
    assert board.models[0].cost.lower == pytest.approx(4.0)


@given(st.integers(0, 10_000), st.integers(2, 6))
def test_domination_is_an_order(seed: int, k: int) -> None:
    rng = np.random.default_rng(seed)
    quality, logs = (rng.integers(0, 3, k).astype(np.float64) for _ in range(2))
    d = dominates(quality, logs)
    assert not (d & d.T).any()
    assert not ((d.astype(int) @ d.astype(int) > 0) & ~d).any()  # transitive


def test_three_dominated_of_ten_are_recognised_and_no_other() -> None:
    votes, figures = replace(TEN, each=60).draw(np.random.default_rng(4))
    rows = {row.model: row for row in value(votes, figures).models}
    beaten = {name for name, row in rows.items() if row.cost and row.cost.dominated}
    assert beaten == {"m7", "m8", "m9"}
    assert rows["m7"].cost
    assert rows["m7"].cost.by in {"m2", "m1"}


def test_none_of_equal_models_is_dominated_on_shared_prompts() -> None:
    """The probability of a union over rivals was 0.95 and more on most such boards."""
    world = World((1000.0,) * 6, (0.005,) * 6, each=15, n_prompts=60, suits_sd=0.5, likes_sd=0.8)
    for seed in range(4):
        board = value(*world.draw(np.random.default_rng(seed)))
        assert [row.model for row in board.models if row.cost and row.cost.by] == []


def test_the_cheapest_near_the_best_is_near_the_best_and_cheap() -> None:
    world = World((1100, 1098, 900, 700), (0.02, 0.004, 0.001, 0.0005), n_voters=300, each=80)
    votes, figures = world.draw(np.random.default_rng(5))
    board = value(votes, figures)
    assert board.cheapest == "m1"
    assert board.fastest is None
    cost = figures.of_answers("cost")
    timed = value(votes, priced(figures, cost, 1 / cost))
    assert (timed.cheapest, timed.fastest) == ("m1", "m0")
    near = "Of the models that are within 20 points of the best with a probability of 95%, "
    words = timed.in_words({"m1": "Mica"})
    assert words == (f"{near}Mica costs least.", f"{near}m0 takes the least time.")
    assert board.in_words()[1:] == ("No two models have times to compare.",)
    only = "within 20 points of the best with a probability of 95%"
    alone = [row if row.model == "m1" else replace(row, cost=None) for row in timed.models]
    assert replace(timed, models=tuple(alone)).in_words() == (
        f"Of the models with a known price, only m1 is {only}.",
        f"{near}m0 takes the least time.",
    )
    untimed = tuple(replace(row, seconds=None) for row in timed.models)
    assert replace(timed, models=untimed, cheapest=None, fastest=None).in_words() == (
        f"No model with a known price is {only}: the cheapest good model is inconclusive.",
    )
    assert board.models[-1].near_best < 0.01
    assert NEAR == 20
    wide = value(votes, figures, RateOptions(scale=8000.0))  # where 20 points are a twentieth
    assert wide.cheapest is None


def test_the_same_votes_give_the_same_board() -> None:
    votes, figures = TEN.draw(np.random.default_rng(7))
    board = value(votes, figures)
    assert board.to_dict() == value(votes, figures).to_dict()
    half = value(votes, figures, RateOptions(level=0.5))
    for one, other in zip(board.models, half.models, strict=True):
        assert one.cost is not None
        assert other.cost is not None
        widths = [np.log(cost.upper / cost.lower) for cost in (one.cost, other.cost)]
        assert widths[1] / widths[0] == pytest.approx(t.ppf(0.75, 199) / t.ppf(0.975, 199))


def test_draws_of_the_strengths_have_the_intervals_of_the_board() -> None:
    votes, figures = TEN.draw(np.random.default_rng(8))
    board = value(votes, figures)
    drawn = board.strengths
    width = np.quantile(drawn, 0.975, axis=0) - np.quantile(drawn, 0.025, axis=0)
    stated = [(row.upper - row.lower) / (400 / np.log(10)) for row in board.models]
    assert width == pytest.approx(stated, rel=0.1)
    near = drawn >= drawn.max(axis=1, keepdims=True) - NEAR * np.log(10) / 400
    assert [row.near_best for row in board.models] == pytest.approx([*near.mean(axis=0)])


def test_one_voter_alone_is_named_in_a_warning() -> None:
    votes, figures = replace(TEN, n_voters=1, each=600).draw(np.random.default_rng(9))
    board = value(votes, figures)
    assert any(text.startswith("One voter cast nearly all") for text in board.warnings)
    unknown = value(votes, replace(figures, groups={})).warnings
    assert any(text.startswith("Voters are not known: costs are") for text in unknown)


def test_a_price_that_never_varies_has_no_interval() -> None:
    fixed = Taken(10.0, 10.0, 10.0 + 1e-14, 40, dominated=False, by=None, on_frontier=True)
    assert not fixed.varies
    assert replace(fixed, upper=11.0).varies
