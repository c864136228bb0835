"""Baseball games of 1987, a golden table: strengths, home effect, fit, and what holds a rank."""

import numpy as np
import pytest

from rating import fewest_to_flip, fit, goodness_of_fit, hessian_covariance
from rating.influence import removals
from tests.rating.builders import baseball_games, counts, golden, leads

GAMES = counts(baseball_games())


def test_the_teams_reach_the_published_strengths_errors_and_deviance() -> None:
    expected = golden("bradley_terry_baseball")["expected"]
    fitted = fit(GAMES)
    ours = leads(fitted, expected["reference"])
    assert {n: lead for n, (lead, _) in ours.items()} == pytest.approx(expected["theta"], abs=5e-5)
    assert {n: error for n, (_, error) in ours.items()} == pytest.approx(expected["se"], abs=5e-5)
    assert fitted.deviance is not None
    assert fitted.deviance.value == pytest.approx(expected["deviance"], abs=5e-4)
    assert fitted.deviance.df == expected["df"]


def test_both_grounds_of_a_pair_merged_leave_the_published_deviance_by_pair() -> None:
    by_pair = goodness_of_fit(fit(GAMES), GAMES)
    expected = golden("bradley_terry_baseball")["expected"]["g2_of_21_pairs"]
    assert by_pair.g2_total == pytest.approx(expected, abs=5e-3)
    assert by_pair.df == 21 - 6


def test_playing_at_home_has_the_published_effect() -> None:
    expected = golden("bradley_terry_baseball")["expected"]
    fitted = fit(GAMES, order_effect=True)
    home = expected["home"]
    assert fitted.parameters[0].value == pytest.approx(home["effect"], abs=5e-5)
    error = np.sqrt(hessian_covariance(fitted)[-1, -1])
    assert error == pytest.approx(home["se"], abs=5e-5)
    assert fitted.deviance is not None
    assert fitted.deviance.value == pytest.approx(home["deviance"], abs=5e-4)
    assert fitted.deviance.df == expected["df"] - 1
    ours = leads(fitted, expected["reference"])
    assert {n: lead for n, (lead, _) in ours.items()} == pytest.approx(home["theta"], abs=5e-5)
    worth = np.exp(fitted.theta) / np.exp(fitted.theta).sum()
    shares = dict(zip(fitted.models, worth.tolist(), strict=True))
    assert shares == pytest.approx(home["shares"], abs=5e-4)


def test_four_games_hold_milwaukee_above_detroit() -> None:
    """Without three games the teams are level, without four Detroit leads."""
    expected = golden("influence_baseball")["expected"]
    names = expected["above"], expected["below"]
    fitted = fit(GAMES)
    pair = fitted.models.index(names[0]), fitted.models.index(names[1])
    removal = next(iter(removals(fitted, GAMES, "vote", [pair], 10)))
    ks = (1, 2, 3, 4)
    foreseen, shown = [removal.predicted(k) for k in ks], [removal.refitted(k) for k in ks]
    assert foreseen == pytest.approx(expected["foreseen"], abs=5e-4)
    assert shown == pytest.approx(expected["refitted"], abs=5e-4)
    flip = fewest_to_flip(fitted, GAMES, pairs=[names])[0]
    fewest, games = expected["fewest"], expected["games"]
    assert (flip.k, flip.predicted_k, flip.share) == (fewest, fewest, fewest / games)
