from collections.abc import Callable

import numpy as np
import pytest
from scipy.stats import norm, t

from rating import Cluster, Comparisons, Inference, fit, infer
from rating.errors import DataError
from rating.planning import (
    neighbour_gaps,
    votes_to_separate,
)
from tests.rating.builders import golden, votes, wins


def test_a_head_to_head_needs_the_votes_of_the_golden_table() -> None:
    example = golden("votes_to_separate")
    leads, votes = example["data"]["lead"], example["expected"]["votes"]
    assert [votes_to_separate(lead) for lead in leads] == votes
    assert [votes_to_separate(-lead) for lead in leads] == votes


def test_ties_are_votes_that_decide_nothing() -> None:
    assert votes_to_separate(50, tie_rate=0.5) == pytest.approx(2 * 382, abs=2)


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
    gap = neighbour_gaps(judged(data))[0]
    assert not gap.separated
    assert gap.more_votes is not None
    se_then = gap.se * np.sqrt(420 / (420 + gap.more_votes))
    assert gap.gap / se_then == pytest.approx(norm.ppf(0.975), rel=1e-3)


def test_few_voters_ask_for_more_votes_than_the_normal_law() -> None:
    """Five voters of fifty-five wins and forty-five losses each, or nearly."""
    rows = [
        ("x", "y", "model_a" if i < 50 + 4 * (v - 1) else "model_b", f"v{v}")
        for v in range(5)
        for i in range(100)
    ]
    data = votes(rows)
    by_voter = neighbour_gaps(judged(data, "voter"))[0]
    assert by_voter.more_votes is not None
    needed = (500 + by_voter.more_votes) / 500 * (by_voter.gap / by_voter.se) ** 2
    assert needed == pytest.approx(t.ppf(0.975, 4) ** 2, rel=0.01)


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
