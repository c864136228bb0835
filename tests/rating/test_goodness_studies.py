"""How often pairs of true boards lie far off, and a planted pair that breaks the order is."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pytest

from rating import Comparisons, fit_bradley_terry, goodness_of_fit, misfit_test
from rating.covariance import grouping
from tests.simulation import Design, at

pytestmark = pytest.mark.slow

BOARDS = 400
PLANTED = (2, 6)
Record = Callable[[str, object], None]


@dataclass(frozen=True, slots=True)
class Seen:
    """Over boards: pairs beyond two standard errors, as many by chance, and the test of all.

    ``without`` is the planted error: residuals of the first kind, ``r / sqrt(n p (1 - p))``,
    that know neither ties nor what the fit has taken.
    """

    far: float
    by_chance: float
    without: float
    small: float
    planted: float


def seen(design: Design, seed: int, lead: float = 0.0) -> Seen:
    """Draw boards on which the pair `PLANTED` is off by ``lead`` nats."""
    rng = design.generator(seed)
    rows = []
    for _ in range(BOARDS):
        data = _drawn(design, rng, lead)
        fit = fit_bradley_terry(data)
        goodness = goodness_of_fit(fit, data)
        judged = ~np.isnan(goodness.residual)
        tested = misfit_test(fit, data, grouping(data, "voter"), judged, rng=rng, draws=199)
        off = np.abs(goodness.residual[judged]) > 2
        plain = goodness.pearson[judged] > 4
        at = (goodness.pairs[judged] == PLANTED).all(axis=1)
        rows.append(
            (
                off.mean(),
                tested.n_far / judged.sum(),
                plain.mean(),
                tested.p <= 0.05,
                off[at].any(),
            )
        )
    return Seen(*np.mean(rows, axis=0).tolist())


def _drawn(design: Design, rng: np.random.Generator, lead: float) -> Comparisons:
    voter, a, b = design.draw_pairs(rng)
    gap = design.draw_gaps(rng, voter, a, b)
    first, second = PLANTED
    gap += lead * (((a == first) & (b == second)) * 1.0 - ((a == second) & (b == first)))
    outcome = np.where(rng.random(len(voter)) < 1 / (1 + np.exp(-gap)), 0, 1)
    outcome = np.where(rng.random(len(voter)) < design.tie_rate, 2, outcome)
    return Comparisons.from_codes(design.names, a, b, outcome, voter=voter)


@pytest.mark.parametrize("tie_rate", [0.0, 0.3])
@pytest.mark.parametrize("taste", [0.0, 0.4, 0.8])
@pytest.mark.parametrize("name", ["D1", "D3"])
def test_a_true_board_has_as_many_pairs_far_off_as_is_said(
    name: str, taste: float, tie_rate: float, record_property: Record
) -> None:
    result = seen(at(name, taste, tie_rate=tie_rate), seed=1)
    row = {"board": name, "taste": taste, "ties": tie_rate, "far": f"{result.far:.3f}"}
    row |= {"by_chance": f"{result.by_chance:.3f}", "p_under_.05": f"{result.small:.3f}"}
    row |= {"without": f"{result.without:.3f}"}
    record_property("pairs of true boards beyond two standard errors", row)
    error = np.sqrt(0.0455 / BOARDS / 45)
    assert abs(result.far - result.by_chance) <= 4 * error
    assert abs(result.far - 0.0455) <= 4 * error
    assert result.small <= 0.05 + 3 * np.sqrt(0.05 * 0.95 / BOARDS)


@pytest.mark.parametrize(
    ("name", "lead", "tie_rate", "least"),
    [("D1", 0.8, 0.0, 0.6), ("D1", 0.8, 0.3, 0.5), ("D3", 0.8, 0.0, 0.9), ("D3", 0.8, 0.3, 0.7)],
)
def test_a_pair_that_breaks_the_order_is_seen(
    name: str, lead: float, tie_rate: float, least: float, record_property: Record
) -> None:
    result = seen(at(name, 0.4, tie_rate=tie_rate), seed=2, lead=lead)
    row = {"board": name, "lead": lead, "ties": tie_rate, "seen": f"{result.planted:.2f}"}
    row |= {"p_under_.05": f"{result.small:.2f}"}
    record_property("a planted pair that breaks the order", row)
    assert result.planted >= least
    assert result.small > 0.15


def test_one_pair_in_twenty_two_is_not_true_of_residuals_that_know_no_ties() -> None:
    result = seen(at("D1", 0.4, tie_rate=0.3), seed=3)
    assert result.without < 0.02 < result.far
