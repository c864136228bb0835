from collections.abc import Callable

import numpy as np
import pytest
from scipy.stats import norm, t

from rating import Cluster, Comparisons, Inference, fit, infer
from rating.covariance import difference_variances
from rating.errors import DataError
from rating.planning import neighbour_gaps, votes_to_separate
from rating.ranks import joint_half_widths, joint_rank_ranges
from tests.rating.builders import counts, golden, votes, wins
from tests.simulation import monte_carlo_error, runs


def test_a_head_to_head_needs_the_votes_of_the_golden_table() -> None:
    example = golden("votes_to_separate")
    leads, votes = example["data"]["lead"], example["expected"]["votes"]
    assert [votes_to_separate(lead) for lead in leads] == votes
    assert [votes_to_separate(-lead) for lead in leads] == votes


def test_more_power_and_more_certainty_take_more_votes() -> None:
    assert votes_to_separate(50, power=0.9) > votes_to_separate(50)
    assert votes_to_separate(50, level=0.99) > votes_to_separate(50)


@pytest.mark.parametrize("lead", [30, 100])
def test_the_planned_votes_have_the_planned_power(lead: float) -> None:
    n = votes_to_separate(lead)
    p = 1 / (1 + 10 ** (-lead / 400))
    wins = np.random.default_rng(1).binomial(n, p, size=20_000)
    shown = np.abs(wins / n - 0.5) > norm.ppf(0.975) * 0.5 / np.sqrt(n)
    # 20,000 runs leave .003; with 98 votes a whole vote more or less is .02.
    assert shown.mean() == pytest.approx(0.8, abs=0.02)


def judged(data: Comparisons, *clusters: Cluster) -> Inference:
    return infer(fit(data), data, clusters)


def test_neighbours_are_read_down_the_board() -> None:
    data = wins(
        [("x", "y", 300), ("y", "x", 100), ("y", "z", 300), ("z", "y", 100), ("x", "z", 1)]
    )
    gaps = neighbour_gaps(judged(data))
    assert [(data.models[gap.ahead], data.models[gap.behind]) for gap in gaps] == [
        ("x", "y"),
        ("y", "z"),
    ]
    assert [gap.gap for gap in gaps] == pytest.approx([np.log(3), np.log(3)], abs=0.01)
    assert all(gap.separated and gap.more_votes == 0 for gap in gaps)


def test_the_votes_still_needed_bring_the_gap_to_the_bar() -> None:
    data = wins([("x", "y", 220), ("y", "x", 200)])
    for level in (0.95, 0.8):
        gap = neighbour_gaps(judged(data), level=level)[0]
        assert not gap.separated
        assert gap.more_votes is not None
        assert gap.more_votes_pair is not None
        wanted = norm.ppf((1 + level) / 2) + norm.ppf(0.8)
        assert gap.gap / gap.se * np.sqrt(1 + gap.more_votes_pair / 420) == pytest.approx(
            wanted, rel=1e-3
        )
        # Of two models the bar of the board is that of the pair, except its draws.
        assert gap.more_votes == pytest.approx(gap.more_votes_pair, rel=0.05)


def of_voters(n: int) -> Comparisons:
    """Voters of a hundred votes, of which 51.5 on average are won, give or take a few."""
    won = 51.5 + np.linspace(-n / 2, n / 2, n).round()
    return votes(
        [
            ("x", "y", "model_a" if i < won[v] else "model_b", f"v{v}")
            for v in range(n)
            for i in range(100)
        ]
    )


def test_few_voters_ask_for_more_votes_than_the_normal_law() -> None:
    by_voter = neighbour_gaps(judged(of_voters(16), "voter"))[0]
    assert by_voter.more_votes_pair is not None
    needed = (1600 + by_voter.more_votes_pair) / 1600 * (by_voter.gap / by_voter.se) ** 2
    assert needed == pytest.approx((t.ppf(0.975, 15) + norm.ppf(0.8)) ** 2, rel=0.01)


def test_votes_to_come_are_not_estimated_from_fewer_than_fifteen_voters() -> None:
    gap = neighbour_gaps(judged(of_voters(14), "voter"))[0]
    assert (gap.too_few, gap.more_votes, gap.more_votes_pair) == (True, None, None)
    assert not neighbour_gaps(judged(of_voters(15), "voter"))[0].too_few


@pytest.mark.parametrize(("won", "few"), [(4, True), (5, False)])
def test_votes_to_come_are_not_estimated_of_a_model_that_won_or_lost_fewer_than_five(
    won: int, few: bool
) -> None:
    for sides, too_few in ((("y", "z"), [False, few]), (("z", "y"), [few, False])):
        gaps = neighbour_gaps(judged(counts([("x", "y", (30, 28)), (*sides, (9, won, 7))])))
        assert [gap.too_few for gap in gaps] == too_few


def test_the_board_needs_more_votes_than_the_pair_by_itself() -> None:
    """Of eight models the largest of 28 statistics is the bar, about 3.0 standard errors."""
    names = [f"m{i}" for i in range(8)]
    rows = []
    for i, ahead in enumerate(names):
        for behind in names[i + 1 :]:
            rows += [(ahead, behind, 52), (behind, ahead, 48)]
    gap = neighbour_gaps(judged(wins(rows)))[3]
    assert gap.more_votes is not None
    assert gap.more_votes_pair is not None
    times = (2800 + gap.more_votes) / (2800 + gap.more_votes_pair)
    assert times == pytest.approx(((3.03 + 0.842) / (1.96 + 0.842)) ** 2, rel=0.02)


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_a_board_claims_a_planned_gap_four_times_out_of_five(
    record_property: Callable[[str, object], None],
) -> None:
    """Eight models 40 points apart; the votes of the plan, by the true gaps, are then cast."""
    count, claimed, theta = runs(100), 0, 40 / 173.72 * np.arange(8)[::-1]

    def cast(rng: np.random.Generator, n: int) -> Comparisons:
        first = rng.integers(8, size=n)
        second = (first + rng.integers(1, 8, size=n)) % 8
        won = rng.random(n) < 1 / (1 + np.exp(theta[second] - theta[first]))
        return Comparisons.from_codes([f"m{i}" for i in range(8)], first, second, 1 - won)

    for seed in range(count):
        rng = np.random.default_rng(seed)
        pilot = judged(cast(rng, 1500))
        half = joint_half_widths(pilot, rng=rng)[3, 4]
        se = difference_variances(pilot.matrix)[3, 4] ** 0.5
        n = round(1500 * ((half + norm.ppf(0.8) * se) / (theta[3] - theta[4])) ** 2)
        ranks = joint_rank_ranges(judged(cast(rng, n)), rng=rng)
        claimed += bool(ranks.better[3, 4])
    record_property("planned gaps that the board claims", {"claimed": claimed / count})
    assert claimed / count == pytest.approx(0.8, abs=2 * monte_carlo_error(0.8, count))


def test_equal_neighbours_are_never_separated() -> None:
    gap = neighbour_gaps(judged(wins([("x", "y", 30), ("y", "x", 30)])))[0]
    assert gap.more_votes is None
    assert not gap.separated
    assert gap.to_dict()["more_votes"] is None


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: votes_to_separate(0), "lead must be finite and not zero, not 0"),
        (lambda: votes_to_separate(10, power=0.3), r"power must lie in \[1/2, 1\), not 0.3"),
        (lambda: votes_to_separate(10, level=1.0), "level must lie between 0 and 1, not 1.0"),
        (lambda: votes_to_separate(10, tie_rate=1), r"tie_rate must lie in \[0, 1\), not 1"),
    ],
)
def test_a_plan_that_cannot_be_is_refused(call: Callable[[], object], message: str) -> None:
    with pytest.raises(DataError, match=message):
        call()
