import numpy as np
import pytest

from arena.boards.encounters import fit_check, pair_cells
from arena.boards.fitted import fit_log
from arena.domain.vote import Choice
from rating import win_rates
from rating.tables.counts import count_votes
from rating.tables.reading import Reading
from tests.arena.boards.log import Vote, logged, many


def cycle(n: int) -> list[Vote]:
    """Votes that no order describes: a beats b beats c beats a, nine times out of ten."""
    pairs = (("a", "b"), ("b", "c"), ("c", "a"))
    return [
        Vote(*pair, Choice.A if i % 10 else Choice.B, voter=f"v{i}")
        for pair in pairs
        for i in range(n)
    ]


def test_a_cell_holds_what_the_ratings_expect_with_its_interval() -> None:
    log = logged(many())
    fitted = fit_log(log)
    rates = win_rates(fitted.inference)
    cells = {(c.row, c.column): c for c in pair_cells(fitted.data, fitted)}
    first = cells["m0", "m1"]
    assert len(cells) == 3
    assert (first.expected, first.low, first.high) == (
        rates.expected[0, 1],
        rates.low[0, 1],
        rates.high[0, 1],
    )
    assert (first.share, first.n) == (rates.observed[0, 1], 20)


def test_pairs_that_are_not_rated_are_counted_and_no_more() -> None:
    log = logged([*many(), Vote("new", "m0", Choice.A, voter="v1")])
    everyone = count_votes(log, Reading()).data
    (cell,) = [c for c in pair_cells(everyone, fit_log(log)) if c.column == "new"]
    assert (cell.row, cell.share, cell.n) == ("m0", 0.0, 1)
    assert cell.expected is cell.low is cell.high is None


def test_rated_pairs_that_never_met_are_expected_and_not_counted() -> None:
    votes = [v for v in many() if {v.a, v.b} != {"m0", "m2"}]
    fitted = fit_log(logged(votes))
    cells = {(c.row, c.column): c for c in pair_cells(fitted.data, fitted)}
    assert (cells["m0", "m2"].n, cells["m0", "m2"].share) == (0, None)
    assert 0.5 < (cells["m0", "m2"].expected or 0) < 1


def test_a_cycle_is_told_from_the_better_model_of_each_pair() -> None:
    found = fit_check(fit_log(logged(cycle(40))), ["c", "b", "a"])
    assert found is not None
    assert (found.pairs, found.far, found.left_out) == (3, 3, 0)
    assert {(m.row, m.column): m.share for m in found.worst} == {
        ("b", "a"): pytest.approx(0.1),
        ("c", "b"): pytest.approx(0.1),
        ("c", "a"): pytest.approx(0.9),
    }
    assert all(m.expected == pytest.approx(0.5) and m.n == 40 for m in found.worst)
    assert found.p == 1 / 500, "no draw is as far off"


def test_votes_that_follow_the_ratings_are_seldom_far() -> None:
    rng, strengths = np.random.default_rng(5), np.linspace(0.8, -0.8, 6)
    votes = []
    for i in range(1200):
        a, b = rng.choice(6, 2, replace=False)
        won = rng.random() < 1 / (1 + np.exp(strengths[b] - strengths[a]))
        votes.append(Vote(f"m{a}", f"m{b}", Choice.A if won else Choice.B, voter=f"v{i}"))
    found = fit_check(fit_log(logged(votes)), [f"m{i}" for i in range(6)])
    assert found is not None
    assert found.pairs == 15
    assert found.far <= 4  # more in 1 of 2,000 draws
    assert (found.p or 0) > 0.05
    assert found.by_chance == pytest.approx(15 * 0.0455, abs=0.15)


def test_pairs_of_few_votes_are_not_held_against_the_ratings() -> None:
    found = fit_check(fit_log(logged(cycle(3))), ["a", "b", "c"])
    assert found is not None
    assert (found.pairs, found.left_out, found.worst) == (0, 3, ())


def test_a_pair_that_the_ratings_follow_whatever_its_votes_is_left_out() -> None:
    lone = [Vote("d", "a", Choice.A if i % 3 else Choice.B, voter=f"v{i}") for i in range(30)]
    found = fit_check(fit_log(logged([*cycle(40), *lone])), ["a", "b", "c", "d"])
    assert found is not None
    assert (found.pairs, found.left_out) == (3, 1)


def test_few_voters_say_nothing_of_chance() -> None:
    votes = [Vote(v.a, v.b, v.outcome, voter=f"v{i % 5}") for i, v in enumerate(cycle(40))]
    found = fit_check(fit_log(logged(votes)), ["a", "b", "c"])
    assert found is not None
    assert (found.far, found.p, found.by_chance) == (3, None, None)


def test_where_any_votes_would_fit_nothing_is_said() -> None:
    votes = [Vote("x", "y", outcome, voter=f"v{outcome}") for outcome in (Choice.A, Choice.B)]
    assert fit_check(fit_log(logged(votes)), ["x", "y"]) is None
