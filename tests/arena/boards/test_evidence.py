from dataclasses import replace

import numpy as np
import pytest

from arena.boards import evaluation
from arena.boards.evaluation import FROM, fit_check, holds, in_groups, pair_cells
from arena.boards.fitted import fit_log
from arena.domain.board_view import Fewest
from arena.domain.vote import Choice
from rating import fewest_to_flip, neighbour_gaps, win_rates
from rating.covariance import Grouping, grouping
from rating.goodness import goodness_of_fit, misfit_test
from rating.tables.columns import Reading
from rating.tables.counts import count_votes
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
    check = fit_check(fit_log(logged(cycle(40))), ["c", "b", "a"])
    assert check is not None
    assert (check.pairs, check.far, check.left_out) == (3, 3, 0)
    assert {(m.row, m.column): m.share for m in check.worst} == {
        ("b", "a"): pytest.approx(0.1),
        ("c", "b"): pytest.approx(0.1),
        ("c", "a"): pytest.approx(0.9),
    }
    assert all(m.expected == pytest.approx(0.5) and m.n == 40 for m in check.worst)
    assert check.p == 1 / 500, "no draw is as far off"
    also = [
        Vote(*p, Choice.A if i % 10 < 7 else Choice.B, voter=f"w{i}")
        for p in (("c", "d"), ("d", "e"), ("e", "c"))
        for i in range(40)
    ]
    more = fit_check(fit_log(logged([*cycle(40), *also])), [*"cbade"])
    assert more is not None
    assert (more.pairs, more.far, len(more.worst)) == (6, 6, 3)
    assert {m.row for m in more.worst} | {m.column for m in more.worst} == {*"abc"}, "the furthest"


def test_votes_that_follow_the_ratings_are_seldom_far() -> None:
    rng, strengths = np.random.default_rng(5), np.linspace(0.8, -0.8, 6)
    votes = []
    for i in range(1200):
        a, b = rng.choice(6, 2, replace=False)
        won = rng.random() < 1 / (1 + np.exp(strengths[b] - strengths[a]))
        votes.append(Vote(f"m{a}", f"m{b}", Choice.A if won else Choice.B, voter=f"v{i}"))
    check = fit_check(fit_log(logged(votes)), [f"m{i}" for i in range(6)])
    assert check is not None
    assert check.pairs == 15
    assert check.far <= 4  # more in 1 of 2,000 draws
    assert (check.p or 0) > 0.05
    assert check.by_chance == pytest.approx(15 * 0.0455, abs=0.15)


def test_pairs_of_few_votes_are_not_held_against_the_ratings() -> None:
    check = fit_check(fit_log(logged(cycle(3))), ["a", "b", "c"])
    assert check is not None
    assert (check.pairs, check.left_out, check.worst) == (0, 3, ())


def test_a_pair_that_the_ratings_follow_whatever_its_votes_is_left_out() -> None:
    lone = [Vote("d", "a", Choice.A if i % 3 else Choice.B, voter=f"v{i}") for i in range(30)]
    check = fit_check(fit_log(logged([*cycle(40), *lone])), ["a", "b", "c", "d"])
    assert check is not None
    assert (check.pairs, check.left_out) == (3, 1)


def test_few_voters_say_nothing_of_chance() -> None:
    votes = [Vote(v.a, v.b, v.outcome, voter=f"v{i % 5}") for i, v in enumerate(cycle(40))]
    check = fit_check(fit_log(logged(votes)), ["a", "b", "c"])
    assert check is not None
    assert (check.far, check.p, check.by_chance) == (3, None, None)


def test_where_any_votes_would_fit_nothing_is_said() -> None:
    votes = [Vote("x", "y", outcome, voter=f"v{outcome}") for outcome in (Choice.A, Choice.B)]
    assert fit_check(fit_log(logged(votes)), ["x", "y"]) is None


SEVEN_TO_FIVE = [
    Vote("x", "y", Choice.A if i < 7 else Choice.B, voter=f"v{i % 4}", prompt=f"p{i % 3}")
    for i in range(12)
]


def test_seven_wins_to_five_turn_without_three_of_them() -> None:
    """Without two of the seven the models are level, without three the other one leads."""
    (hold,) = holds(fit_log(logged(SEVEN_TO_FIVE)))
    assert (hold.above, hold.below) == ("x", "y")
    assert hold.votes.k == 3
    assert hold.votes.of == 12
    assert hold.lead == pytest.approx(400 * np.log10(7 / 5))


def test_voters_and_prompts_are_those_of_the_library() -> None:
    fitted = fit_log(logged(SEVEN_TO_FIVE))
    (hold,) = holds(fitted)
    for unit, result, of in (("voter", hold.voters, 4), ("prompt", hold.prompts, 3)):
        (flip,) = fewest_to_flip(fitted.fit, fitted.data, unit=unit)  # type: ignore[arg-type]
        assert result == Fewest(k=flip.k, tried=flip.tried, of=of)


def test_prompts_count_only_where_every_vote_has_one() -> None:
    votes = [replace(SEVEN_TO_FIVE[0], prompt=None), *SEVEN_TO_FIVE[1:]]
    assert holds(fit_log(logged(votes)))[0].prompts is None
    aside = replace(SEVEN_TO_FIVE[0], prompt=None, left_out="skipped")
    assert holds(fit_log(logged([*SEVEN_TO_FIVE, aside])))[0].prompts is not None


def test_one_voter_cannot_be_taken_away() -> None:
    votes = [replace(vote, voter="ada") for vote in SEVEN_TO_FIVE]
    assert holds(fit_log(logged(votes)))[0].voters is None


def test_votes_taken_away_really_turn_the_order() -> None:
    """The second and third change places without as many votes as are said, put to the test."""
    fitted = fit_log(logged(many()))
    first, hold = holds(fitted)
    rows = {row.model: row.rating for row in fitted.report().ratings}
    for one, gap in zip((first, hold), neighbour_gaps(fitted.inference), strict=True):
        assert one.lead == pytest.approx(rows[one.above] - rows[one.below])
        assert (one.separated, one.more_votes) == (gap.separated, gap.more_votes)
    flip = fewest_to_flip(fitted.fit, fitted.data)[1]
    left = list(many())
    for cell in flip.dropped:
        for _ in range(cell.times):
            left.remove(
                next(v for v in left if is_alike(v, cell.model_a, cell.model_b, cell.outcome))
            )
    after = fit_log(logged(left)).fit
    assert len(many()) - len(left) == hold.votes.k
    strength = dict(zip(after.models, after.theta, strict=True))
    assert strength[hold.below] > strength[hold.above]


def test_the_votes_to_come_are_those_of_the_whole_board_and_not_of_the_pair_alone() -> None:
    fitted = fit_log(logged(of_tastes(1, 0.0, voters=150, models=4)))
    gaps = neighbour_gaps(fitted.inference)
    assert any(gap.more_votes != gap.more_votes_pair for gap in gaps)
    assert [one.more_votes for one in holds(fitted)] == [gap.more_votes for gap in gaps]


def is_alike(vote: Vote, a: str, b: str, outcome: str) -> bool:
    return (vote.a, vote.b, vote.outcome.value) == (a, b, outcome)


def test_a_long_board_is_looked_at_from_the_top(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(evaluation, "MOST_PAIRS", 1)
    (hold,) = holds(fit_log(logged(many())))
    assert hold.above == "m0"


def of_tastes(seed: int, taste: float, voters: int = 4000, models: int = 6) -> list[Vote]:
    """Three votes a voter, each voter with strengths of their own around a common line."""
    rng = np.random.default_rng(seed)
    votes = []
    for voter in range(voters):
        own = np.linspace(0, 1, models) + taste * rng.normal(size=models)
        for _ in range(3):
            a, b = rng.choice(models, 2, replace=False)
            won = rng.random() < 1 / (1 + np.exp(own[b] - own[a]))
            votes.append(Vote(f"m{a}", f"m{b}", Choice.A if won else Choice.B, voter=f"v{voter}"))
    return votes


@pytest.mark.parametrize("taste", [0.0, 1.0])
def test_voters_whose_signs_change_together_say_what_each_by_itself_does(taste: float) -> None:
    fitted = fit_log(logged(of_tastes(5, taste)))
    judged = ~np.isnan(goodness_of_fit(fitted.fit, fitted.data).residual)
    alone = grouping(fitted.data, "voter")
    together = in_groups(alone, 400, np.random.default_rng(1))
    assert (alone.size, together.size) == (4000, 400)
    apart, grouped = (
        misfit_test(
            fitted.fit, fitted.data, voters, judged, rng=np.random.default_rng(2), draws=2000
        )
        for voters in (alone, together)
    )
    # Of 15 pairs .68 are far by themselves; the variance of 400 groups is known to 7 %.
    assert grouped.n_far == pytest.approx(apart.n_far, abs=0.15)
    assert grouped.p == pytest.approx(apart.p, abs=0.06)


def test_few_voters_have_signs_of_their_own() -> None:
    few = Grouping(np.arange(8 * FROM), 8 * FROM)
    assert in_groups(few, 8, np.random.default_rng(0)) is few


def test_of_very_many_votes_voters_are_not_taken_away(monkeypatch: pytest.MonkeyPatch) -> None:
    fitted = fit_log(logged(many()))
    assert all(hold.voters for hold in holds(fitted))
    monkeypatch.setattr(evaluation, "MOST_BY_VOTER", 59)
    assert [hold.voters for hold in holds(fitted)] == [None, None]
    assert all(hold.votes for hold in holds(fitted))
