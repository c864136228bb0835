"""Why two published rules for anomalous voters are not built: each in a few lines, failing."""

import numpy as np
import pytest
from scipy.stats import chi2, combine_pvalues

from tests.rating.builders import golden
from tests.rating.crowd import Crowd, Kind, win_probabilities

ALPHA = 0.05
PAST = 150
"""Votes on each pair before the voter came."""


def test_fishers_combination_by_hand() -> None:
    example = golden("fisher_combination")
    combined = [combine_pvalues(p) for p in example["data"]["p"]]
    expected = example["expected"]
    assert [one.statistic for one in combined] == pytest.approx(expected["statistic"], abs=5e-5)
    assert [one.pvalue for one in combined] == pytest.approx(expected["combined"], abs=5e-8)


def p_values(kind: Kind, seed: int, n_voters: int) -> np.ndarray:
    """``(1 + past votes at least as high) / (n + 1)``: equation 10 of arXiv 2403.04132."""
    crowd, rng = Crowd(taste=0.0), np.random.default_rng(seed)
    votes = crowd.draw(rng, n_voters, 100, kind)
    past = rng.binomial(PAST, win_probabilities(crowd.theta)[votes.left, votes.right])
    as_high = np.where(votes.score == 1, past, PAST)
    return np.asarray((1 + as_high) / (PAST + 1)).reshape(n_voters, 100)


@pytest.mark.parametrize("kind", ["coin", "shill", "always-left"])
def test_fishers_rule_finds_no_one_by_votes_with_two_outcomes(kind: Kind) -> None:
    """A loss has p-value one, and so half of all votes say nothing."""
    doubt = (-2 * np.log(p_values(kind, 1, 200))).cumsum(axis=1)
    bar = chi2.ppf(1 - ALPHA / 5, 2 * np.arange(1, 101))
    assert (doubt >= bar).any(axis=1).mean() < 0.02


def test_one_over_twice_the_p_value_is_no_bet() -> None:
    """A fair bet returns one on average; this returns half the harmonic number of the past."""
    for n, mean in ((150, 2.8), (15_000, 5.1)):
        p = np.arange(1, n + 1) / n
        assert (1 / (2 * p)).mean() == pytest.approx(mean, abs=0.05)


def test_fastchats_product_flags_nearly_every_honest_voter_on_smooth_p_values() -> None:
    """Its ``randomized`` p-values are uniform for an honest voter, as they should be."""
    p = np.random.default_rng(2).random((200, 50))
    product = (-np.log(2 * p)).cumsum(axis=1)
    assert (product.max(axis=1) > np.log(1 / ALPHA)).mean() > 0.95
