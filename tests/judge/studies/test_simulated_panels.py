"""Simulated panels: intervals hold as often as they say, and what is planted is recovered."""

from collections.abc import Callable

import numpy as np
import pytest

from judge.studies.options import StudyOptions
from judge.studies.panel import Errors, card
from tests.judge.studies.labels import holds
from tests.judge.studies.panels import by_people, errors_of, latent, true_n_eff
from tests.simulation import monte_carlo_error, runs

pytestmark = pytest.mark.slow

N_RUNS = runs(400)


@pytest.mark.parametrize("each", [1, 3])
def test_the_gap_of_independent_judges_covers_zero(each: int) -> None:
    rng, inside, options = np.random.default_rng(1), 0, StudyOptions(rounds=300)
    prompt = np.arange(300) // each
    for _ in range(N_RUNS):
        hard = rng.choice([-0.1, 0.1], (prompt.max() + 1, 5))[prompt]  # of one judge alone
        wrong = rng.random((300, 5)) < np.array([0.2, 0.25, 0.3, 0.35, 0.4]) + hard
        gap = card(errors_of(wrong, prompt), options).gap
        inside += holds(gap, 0)
    assert inside / N_RUNS == pytest.approx(0.95, abs=3 * monte_carlo_error(0.95, N_RUNS))


@pytest.mark.parametrize("loading", [0.4, 0.7, 0.9])
def test_n_eff_of_a_latent_factor_is_recovered_and_its_interval_holds_it(loading: float) -> None:
    rng, options = np.random.default_rng(2), StudyOptions(rounds=300)
    truth, inside, values = true_n_eff(0.3, loading, 9), 0, []
    count = runs(100)
    for _ in range(count):
        one = card(errors_of(latent(rng, 1000, [0.3] * 9, loading)), options).n_eff
        assert one.value is not None
        values.append(one.value)
        inside += holds(one, truth)
    assert np.abs(np.array(values) - truth).mean() < 0.2
    assert np.mean(values) == pytest.approx(truth, abs=0.1)
    assert inside / count >= 0.95 - 3 * monte_carlo_error(0.95, count)


DESIGNS = [
    (voters, rates, clear)
    for voters in (1, 2, 3, 5)
    for rates, clear in (([0.75] * 5, 0.0), ([0.6, 0.7, 0.75, 0.8, 0.9], 0.0))
] + [(2, [0.75] * 5, 1.0), (3, [0.75] * 5, 1.0)]


@pytest.mark.parametrize(("voters", "rates", "clear"), DESIGNS)
def test_the_lower_figure_against_votes_is_not_above_independent_judges(
    voters: int, rates: list[float], clear: float, record_property: Callable[[str, object], None]
) -> None:
    """Five independent judges, people right in 0.75: "at least" holds in ten of ten designs."""
    rng, options = np.random.default_rng(3), StudyOptions(rounds=300)
    count = runs(20)
    lower, upper, below = [], [], []
    for _ in range(count):
        votes, verdict = by_people(rng, 600, voters, rates, clear)
        total = votes.sum(axis=1)
        product = (total**2 - voters) / max(voters * (voters - 1), 1) * (voters > 1)
        of_people = np.column_stack([total / voters, product, np.full(600, voters > 1)])
        wrong = (verdict != np.sign(total)[:, None]).astype(np.float64)
        one = card(
            Errors(tuple("abcde"), wrong, np.arange(600), verdict.astype(np.float64), of_people),
            options,
        )
        lower.append(one.n_eff.value)
        upper.append(one.at_most.value)  # None where people agree too little to tell
        below.append(one.at_most.lower)
    least = float(np.mean(np.array(lower, dtype=np.float64)))
    row = {"voters": voters, "people right": rates, "clear": clear, "at least": least}
    record_property("a panel of five independent judges", row)
    assert least <= 5
    if voters > 1 and not clear:
        assert np.nanmedian(np.array(upper, dtype=np.float64)) == pytest.approx(5, abs=0.5)
        ends = np.array(below, dtype=np.float64)
        error = monte_carlo_error(0.975, count)
        assert (ends[~np.isnan(ends)] <= 5).mean() >= 0.975 - 3 * error
