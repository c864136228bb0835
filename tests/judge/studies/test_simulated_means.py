"""What prediction-powered means promise with votes on few prompts, on simulated studies."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache

import numpy as np
import pytest
from numpy.typing import NDArray

from judge.studies.prediction_powered import powered_mean
from rating.uncertainty.student import quantile
from tests.simulation import Share

pytestmark = pytest.mark.slow

Record = Callable[[str, object], None]
Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

STUDIES = 1000
SEED = 1
JUDGED = 400


@dataclass(frozen=True, slots=True)
class Means:
    """Scores to draw: one normal a prompt, or ten wins and losses that share a prompt's liking.

    ``follows`` is the correlation of verdicts with normal votes, or the share of the wins and
    losses that the judge repeats, the others being a coin.
    """

    name: str
    rows: int
    follows: float

    def draw(self, rng: np.random.Generator, n_voted: int) -> tuple[Floats, Floats, Ints]:
        n_prompts = n_voted + JUDGED
        prompt = np.repeat(np.arange(n_prompts), self.rows)
        liking = rng.normal(size=n_prompts)[prompt]
        if self.rows == 1:
            vote = liking
            noise = rng.normal(size=len(prompt))
            verdict = 0.3 + self.follows * vote + np.sqrt(1 - self.follows**2) * noise
        else:
            vote = (rng.random(len(prompt)) < 1 / (1 + np.exp(-liking))).astype(np.float64)
            copied = rng.random(len(prompt)) < self.follows
            verdict = np.where(copied, vote, rng.random(len(prompt)) < 0.7)
        return np.where(prompt < n_voted, vote, np.nan), verdict, prompt

    @property
    def truth(self) -> float:
        return 0.0 if self.rows == 1 else 0.5


DESIGNS = (
    Means("one score a prompt", 1, 0.8),
    Means("one score a prompt", 1, 0.0),
    Means("ten wins and losses a prompt", 10, 0.8),
    Means("ten wins and losses a prompt", 10, 0.3),
)
N_VOTED = (5, 10, 20, 80)


@cache
def study(of: Means, n_voted: int) -> dict[str, Share]:
    """Coverage of the mean, and of the gain by the ratio of the squared errors."""
    rng = np.random.default_rng(SEED)
    inside, errors, gains = [], [], []
    for _ in range(STUDIES):
        mean = powered_mean(*of.draw(rng, n_voted))
        assert mean.people_only.value is not None
        inside.append(float(mean.lower <= of.truth <= mean.upper))
        errors.append([mean.people_only.value - of.truth, mean.value - of.truth])
        assert n_voted >= 20 or mean.gain.lower is None
        if n_voted >= 20 and mean.gain.value is not None:
            gains.append([mean.gain.lower or 1.0, mean.gain.upper or 1.0])
    had = float(np.divide(*(np.array(errors) ** 2).mean(axis=0)))
    shares = {"covered": Share.of(np.array(inside)), "gain": Share(had, 0.0)}
    if gains:
        lower, upper = np.array(gains).T
        # Of a gain near 1, two per cent are no news to anybody.
        held = (0.98 * lower <= had) & (had <= 1.02 * upper)
        shares["its interval"] = Share.of(held.astype(np.float64))
    return shares


@pytest.mark.parametrize("n_voted", N_VOTED)
@pytest.mark.parametrize("of", DESIGNS, ids=str)
def test_intervals_hold_the_mean_from_five_prompts_on(
    of: Means, n_voted: int, record_property: Record
) -> None:
    means = study(of, n_voted)
    row = {"scores": of.name, "follows": of.follows, "prompts with votes": n_voted}
    record_property(
        f"powered means, {STUDIES} studies",
        row
        | {"covered": str(means["covered"]), "gain": f"{means['gain'].mean:.2f}"}
        | {"its interval": str(means.get("its interval", "none"))},
    )
    share = means["covered"]
    assert 0.93 - 3 * share.error <= share.mean <= 0.98 + 3 * share.error


@pytest.mark.parametrize("of", [one for one in DESIGNS if one.follows == 0.8], ids=str)
@pytest.mark.parametrize("n_voted", [20, 80])
def test_the_interval_of_the_gain_holds_the_gain_that_is_had(of: Means, n_voted: int) -> None:
    share = study(of, n_voted)["its interval"]
    assert share.mean + 3 * share.error > 0.9


def published(people: Floats, judge: Floats) -> tuple[float, float]:
    """Return the mean and half its interval with the weight tuned on the votes themselves."""
    voted = ~np.isnan(people)
    y, f, rest = people[voted], judge[voted], judge[~voted]
    n, more = len(y), len(rest)
    lam = np.clip(np.cov(y, f, ddof=0)[0, 1] / (f.var() + n / more * rest.var()), 0, 1)
    variance = (y - lam * f).var(ddof=1) / n + lam**2 * rest.var() / more * n / (n - 1)
    value = y.mean() + lam * (rest.mean() - f.mean())
    return float(value), quantile(0.95, n - 1) * float(np.sqrt(variance))


@pytest.mark.parametrize("n_voted", [2, 3, 5])
def test_a_weight_tuned_on_its_own_few_votes_makes_intervals_too_narrow(
    n_voted: int, record_property: Record
) -> None:
    rng, inside = np.random.default_rng(SEED), []
    for _ in range(4 * STUDIES):
        people, judge, _ = DESIGNS[0].draw(rng, n_voted)
        value, half = published(people, judge)
        inside.append(float(abs(value) <= half))
    share = Share.of(np.array(inside))
    record_property(
        f"means with a weight tuned on all votes, {4 * STUDIES} studies",
        {"prompts with votes": n_voted, "covered": str(share)},
    )
    assert share.mean + 3 * share.error < 0.92
