"""Residuals of pairs are as large as chance makes them, and their test is one of all pairs."""

import numpy as np
import pytest

from rating import (
    Comparisons,
    MisfitTest,
    Ties,
    fit,
    fit_bradley_terry,
    goodness_of_fit,
    misfit_test,
)
from rating.covariance import grouping
from tests.rating.builders import counts
from tests.rating.drawn import draw
from tests.simulation import at

ALL = np.ones(45, dtype=bool)


@pytest.mark.parametrize("tie_rate", [0.0, 0.3, 0.5])
def test_one_pair_in_twenty_two_of_a_true_board_is_beyond_two_standard_errors(
    tie_rate: float,
) -> None:
    design = at("D1", 0.0, tie_rate=tie_rate)
    rng = design.generator(1)
    boards = [design.draw(rng) for _ in range(60)]
    far = [np.abs(goodness_of_fit(fit_bradley_terry(data), data).residual) > 2 for data in boards]
    assert np.mean(far) == pytest.approx(0.0455, abs=3 * np.sqrt(0.0455 / 60 / 45))


def test_without_ties_a_residual_is_haberman_s() -> None:
    """Written out with the hat matrix of a logistic regression on the pairs."""
    data = at("D1", 0.4).draw(np.random.default_rng(2))
    fitted = fit_bradley_terry(data)
    wins = data.wins()
    pairs = np.argwhere(np.triu(wins + wins.T) > 0)
    i, j = pairs.T
    n = (wins + wins.T)[i, j]
    probability = 1 / (1 + np.exp(fitted.theta[j] - fitted.theta[i]))
    design = np.eye(10)[i] - np.eye(10)[j]
    weight = n * probability * (1 - probability)
    root = np.sqrt(weight)[:, None] * design
    hat = np.einsum("ij,jk,ik->i", root, np.linalg.pinv(root.T @ root), root)
    expected = (wins[i, j] - n * probability) / np.sqrt(weight * (1 - hat))
    assert goodness_of_fit(fitted, data).residual == pytest.approx(expected)


@pytest.mark.parametrize("ties", ["half", "davidson", "rao-kupper", "grounded"])
def test_the_sides_do_not_matter(ties: Ties) -> None:
    rows = draw(np.random.default_rng(3), ties, n=2000)
    data = rows.comparisons()
    swapped = Comparisons.from_codes(
        data.models,
        data.pairs[:, 1],
        data.pairs[:, 0],
        np.array([1, 0, 2, 3])[data.outcome],
        votes=data.votes,
    )
    one, other = (goodness_of_fit(fit(each, ties=ties), each) for each in (data, swapped))
    assert one.residual == pytest.approx(other.residual, abs=1e-6)


def test_a_pair_that_the_fit_follows_whatever_its_votes_has_no_residual() -> None:
    data = Comparisons.from_arrays(["x"] * 4, ["y"] * 4, ["model_a"] * 3 + ["model_b"])
    assert np.isnan(goodness_of_fit(fit(data), data).residual).all()


def test_pairs_of_nothing_but_ties_are_close_to_what_is_expected() -> None:
    sides = [("x", "y"), ("y", "z"), ("z", "x")] * 10
    data = Comparisons.from_arrays([a for a, _ in sides], [b for _, b in sides], ["tie"] * 30)
    goodness = goodness_of_fit(fit(data), data)
    assert np.nan_to_num(goodness.residual) == pytest.approx(np.zeros(3))


def test_residuals_of_a_ring_of_upsets_with_ties_are_those_calculated_by_hand() -> None:
    """All are even, and each of three beats the next by two votes more than half."""
    sides = [("x", "y", [10, 6, 4]), ("y", "z", [7, 3, 0]), ("z", "x", [7, 3, 0])]
    data = counts(sides)
    n = np.array([20, 10, 10])
    # Tie rates are those of a pair and of five votes that tie as all do, 4 in 40.
    rate = (np.array([4, 0, 0]) + 5 * 0.1) / (n + 5)
    # The fit leaves what is common to the ring, the mean of n_i / n_i by the inverses of n.
    variance = (n / 4 * (1 - rate) / n**2).sum() / (1 / n).sum() ** 2
    residual = goodness_of_fit(fit(data), data).residual
    assert residual == pytest.approx(np.array([1, -1, 1]) * 2 / np.sqrt(variance))


def test_votes_that_hang_together_are_not_taken_as_many() -> None:
    """Each voter votes ten times alike on a pair: by vote it is misfit, by voter it is none."""
    design = at("D1", 0.0)
    rng = np.random.default_rng(4)
    data = design.draw(rng)

    def repeated(times: int) -> Comparisons:
        votes, voter = times * data.votes, np.arange(len(data.votes))
        a, b = data.pairs.T
        return Comparisons.from_codes(data.models, a, b, data.outcome, votes=votes, voter=voter)

    def tested(data: Comparisons, *, by_voter: bool) -> MisfitTest:
        groups = grouping(data, "voter") if by_voter else None
        rng = np.random.default_rng(5)
        return misfit_test(fit_bradley_terry(data), data, groups, ALL, rng=rng)

    by_vote, by_voter = (tested(repeated(10), by_voter=each) for each in (False, True))
    assert by_vote.p < 0.05 < by_voter.p
    assert by_voter.n_far > 10 > 4 > by_vote.n_far
    assert by_voter.p == tested(repeated(1), by_voter=True).p


def test_a_misfit_that_no_draw_reaches_has_the_p_value_of_one_in_all_values() -> None:
    # Each of three models wins 180 of 200 votes against the next: draws are near 0, not near 20.
    votes = np.tile([180, 20], 3)
    data = Comparisons.from_codes(
        ("a", "b", "c"),
        np.repeat([0, 1, 2], 2),
        np.repeat([1, 2, 0], 2),
        np.tile([0, 1], 3),
        votes=votes,
    )
    rng = np.random.default_rng(1)
    tested = misfit_test(fit(data), data, None, np.ones(3, dtype=bool), rng=rng, draws=9)
    assert tested.p == 1 / 10


def test_one_voter_a_vote_is_no_voters_known() -> None:
    data = at("D1", 0.4, tie_rate=0.2).draw(np.random.default_rng(6))
    rows = np.repeat(np.arange(len(data.votes)), data.votes)
    a, b = data.pairs.T
    alone = Comparisons.from_codes(
        data.models, a[rows], b[rows], data.outcome[rows], voter=np.arange(len(rows))
    )
    fitted = fit_bradley_terry(alone)
    groups = (None, grouping(alone, "voter"))
    tests = [
        misfit_test(fitted, alone, each, ALL, rng=np.random.default_rng(7)) for each in groups
    ]
    assert tests[0].p == pytest.approx(tests[1].p, abs=0.1)
    assert tests[0].n_far == pytest.approx(tests[1].n_far, abs=0.3)
    assert tests[0].n_far == pytest.approx(45 * 0.0455, abs=0.3)


def test_votes_that_move_the_gap_alone_are_summed_as_all_others_are(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    data = at("D1", 0.4, tie_rate=0.2).draw(np.random.default_rng(8))
    fitted, groups = fit_bradley_terry(data), grouping(data, "voter")

    def tested() -> MisfitTest:
        return misfit_test(fitted, data, groups, ALL, rng=np.random.default_rng(9))

    quick = tested()
    monkeypatch.setattr("rating.goodness.is_plain", lambda fit: False)
    assert tested().p == quick.p
    assert tested().n_far == pytest.approx(quick.n_far, rel=1e-9)
