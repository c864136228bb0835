"""Planted deviations are recovered, their intervals hold, and pooling beats both extremes."""

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
import pytest
from numpy.typing import NDArray

from rating import RateOptions
from rating.leave_out import quantile
from rating.likelihood import solve
from rating.mix import Mix, PooledFit, board_of_mix, pooled_fit, whole_of
from rating.options import Clusters
from rating.pooling import Tau, fit_pooled
from tests.rating.pooling.planted import NAMES, SHARES, planted
from tests.simulation import monte_carlo_error, runs

pytestmark = pytest.mark.slow

POOL = RateOptions(by="category", pool=True)
TASTE = 0.4
MIXES = (np.array(SHARES), np.full(8, 1 / 8), np.eye(8)[5])
"""As the votes are, even, and nothing but a category with 7 % of the votes."""


@dataclass(frozen=True)
class Study:
    """What came out, run by run."""

    tau: NDArray[np.float64]
    gain: NDArray[np.float64]
    covered: NDArray[np.float64]
    error: NDArray[np.float64]


def average_voter(strengths: NDArray[np.float64]) -> NDArray[np.float64]:
    """Bradley-Terry strengths of voters with tastes, together, under uniform pairs."""
    nodes, weights = np.polynomial.hermite_e.hermegauss(21)
    gap = strengths[:, None] - strengths[None, :]
    p = (1 / (1 + np.exp(-gap[..., None] - np.sqrt(2) * TASTE * nodes))) @ (
        weights / weights.sum()
    )
    np.fill_diagonal(p, 0.0)
    return solve(p, np.zeros(len(p))).theta


def study(tau: float, runs: int) -> Study:
    taus, gains, covered, errors = [], [], [], []
    for seed in range(runs):
        world = planted(np.random.default_rng([seed, round(100 * tau)]), tau, taste=TASTE)
        truth = np.array([average_voter(own) for own in world.strengths])
        fitted = pooled_fit(world.groups, POOL)
        taus.append(fitted.variance.tau)
        gains.append(fitted.variance.gain)
        tree, best = fitted.best.tree, fitted.best.strengths
        each = [best, *(fit_pooled(tree, Tau(at)).strengths for at in (20.0, 1e-3))]
        errors.append([np.sqrt(((one - truth) ** 2).mean()) for one in each])
        covered.append([_covered(fitted, mix, truth) for mix in MIXES])
    return Study(*map(np.array, (taus, gains, covered, errors)))


def rounded(x: float) -> float:
    """Round to a number of Python's, as workers of the tests can pass it on."""
    return round(float(x), 3)


@pytest.mark.timeout(900)
@pytest.mark.parametrize("tau", [0.1, 0.2, 0.4])
def test_planted_deviations_are_recovered_and_intervals_of_mixes_hold(
    tau: float, record_property: Callable[[str, object], None]
) -> None:
    came = study(tau, 200)
    shares, (pooled, apart, one) = came.covered.mean(axis=0), came.error.mean(axis=0)
    row = {"tau": tau, "mean": rounded(came.tau.mean()), "sd": rounded(came.tau.std())}
    row |= dict(zip(("as voted", "even", "7 %"), shares.round(3).tolist(), strict=True))
    errors = zip(("pooled", "apart", "one"), (pooled, apart, one), strict=True)
    record_property("Pooled categories", row | {name: rounded(x) for name, x in errors})
    if tau > 0.1:
        assert came.tau.mean() == pytest.approx(tau, rel=0.2)
        assert pooled < 0.95 * min(apart, one)
    assert (shares > 0.92).all()
    assert (shares < 0.985).all()


@pytest.mark.timeout(900)
def test_with_shared_prompts_a_level_of_them_is_needed(
    record_property: Callable[[str, object], None],
) -> None:
    mixes = (np.full(8, 1 / 8), np.eye(8)[5], np.r_[0.5, 0.5, np.zeros(6)])
    inside: dict[Clusters | None, list[list[float]]] = {None: [], "voter": []}
    taus = []
    for seed in range(100):
        rng = np.random.default_rng([seed, 77])
        size = {"n_models": 6, "n_votes": 3300, "n_voters": 65, "n_prompts": 10}
        world = planted(rng, 0.25, taste=TASTE, shares=(1,) * 8, suit=0.5, **size)
        truth = np.array([average_voter(own) for own in world.strengths])
        for cluster, rows in inside.items():
            fitted = pooled_fit(world.groups, replace(POOL, cluster=cluster))
            rows.append([_covered(fitted, mix, truth) for mix in mixes])
            taus += [fitted.variance.tau] if cluster is None else []
    nested, simple = (np.mean(rows, axis=0) for rows in inside.values())
    names = ("even", "one", "two")
    row = {"mean tau": rounded(float(np.mean(taus)))}
    row |= dict(zip(names, nested.round(3).tolist(), strict=True))
    record_property("Pooled categories, shared prompts", row)
    simply = {
        f"{name}, no level": rounded(share) for name, share in zip(names, simple, strict=True)
    }
    record_property("The same, prompts as if not known", simply)
    assert np.mean(taus) == pytest.approx(0.25, rel=0.2)
    assert (nested > 0.92).all()
    assert (nested < 0.985).all()
    assert (simple < 0.92).all()


def _covered(fitted: PooledFit, mix: NDArray[np.float64], truth: NDArray[np.float64]) -> float:
    """Return the share of models whose 95 % interval on a mix holds the truth."""
    covariance = np.einsum("c,cidj,d->ij", mix, fitted.covariance, mix)
    off = np.abs(mix @ (fitted.best.strengths - truth))
    wide = quantile(0.95, fitted.df)
    return float((off <= wide * np.sqrt(np.diag(covariance))).mean())


@pytest.mark.timeout(900)
def test_without_deviations_the_likelihood_hardly_prefers_any(
    record_property: Callable[[str, object], None],
) -> None:
    came = study(0.0, 200)
    below = (came.gain < 1.35).mean()
    row = {"below 1.35": rounded(below), "none": rounded((came.tau == 0).mean())}
    record_property("Categories that are alike", row)
    assert below >= 0.9
    pooled, apart, one = came.error.mean(axis=0)
    assert pooled < 1.1 * one < apart


@pytest.mark.timeout(900)
def test_intervals_of_preferences_hold_on_given_mixes_and_on_counted_prompts(
    record_property: Callable[[str, object], None],
) -> None:
    """With 40 prompts of one's own the truth is that of the mix from which they come."""
    names = [f"m{i:02}" for i in range(6)]
    held: dict[str, list[float]] = {"given": [], "40 prompts": [], "40 prompts, as if given": []}
    for seed in range(150):
        rng = np.random.default_rng([seed, 41])
        world = planted(rng, 0.4, n_models=6, taste=TASTE)
        strengths = np.array([average_voter(own) for own in world.strengths])
        q = rng.dirichlet(np.full(8, 2.0))
        p = 1 / (1 + np.exp(strengths[:, None, :] - strengths[:, :, None]))
        truth = np.einsum("c,cij->ij", q, p)
        fitted = pooled_fit(world.groups, POOL)
        whole = whole_of(world.groups, fitted)
        prompts = dict(zip(NAMES, rng.multinomial(40, q).tolist(), strict=True))
        counted = Mix.of_counts(prompts)
        mixes = (Mix.of_shares(dict(zip(NAMES, q.tolist(), strict=True))), counted)
        for name, mix in zip(held, (*mixes, replace(counted, prompts=None)), strict=True):
            pairs = board_of_mix(fitted, whole, mix, POOL).pairs
            inside = [
                x.lower <= truth[names.index(x.a), names.index(x.b)] <= x.upper for x in pairs
            ]
            held[name].append(float(np.mean(inside)))
    shares = {name: rounded(float(np.mean(each))) for name, each in held.items()}
    record_property("Preferences on a mix", shares)
    assert 0.92 <= shares["given"] <= 0.985
    assert 0.92 <= shares["40 prompts"] <= 0.985
    assert shares["40 prompts, as if given"] < shares["40 prompts"]


@pytest.mark.timeout(900)
@pytest.mark.parametrize(
    ("tau", "odd", "sd", "least"),
    [
        (0.0, None, 0.0, 0.0), (0.1, None, 0.0, 0.0), (0.3, None, 0.0, 0.0), (0.1, 0, 0.8, 0.9),
        (0.1, 4, 0.8, 0.7), (0.1, 6, 0.8, 0.5), (0.2, 0, 0.8, 0.6), (0.1, 6, 0.4, 0.0),
    ],
)  # fmt: skip
def test_an_odd_category_is_named_and_others_seldom(
    tau: float,
    odd: int | None,
    sd: float,
    least: float,
    record_property: Callable[[str, object], None],
) -> None:
    """All deviate by tau, and perhaps one category by sd: ``least`` is how often it is named."""
    sds, count = np.full(8, tau), runs(40)
    place = 6 if odd is None else odd
    if odd is not None:
        sds[odd] = sd
    flagged, covered = np.zeros((count, 8), dtype=bool), np.zeros(count)
    for seed in range(count):
        world = planted(np.random.default_rng([seed, 9]), sds, taste=TASTE)
        fitted = pooled_fit(world.groups, POOL)
        flagged[seed] = fitted.odd < 0.05
        truth = np.array([average_voter(own) for own in world.strengths])
        covered[seed] = _covered(fitted, np.eye(8)[place], truth)
    own = 0.0 if odd is None else float(flagged[:, odd].mean())
    if odd is not None:
        flagged[:, odd] = False
    false = float(flagged.any(axis=1).mean())
    row = {"tau": tau, "odd": "" if odd is None else f"{SHARES[odd]:.0%}", "sd": sd}
    row |= {"named": rounded(own), "others": rounded(false), "covered": rounded(covered.mean())}
    record_property(f"Odd category, {count} boards", row)
    assert false <= 0.05 + 2 * monte_carlo_error(0.05, count)
    assert own >= least - 2 * monte_carlo_error(least, count)
