"""What the estimates of bias promise, on simulated studies with planted biases."""

from collections import defaultdict
from collections.abc import Callable
from functools import cache

import numpy as np
import pytest

from judge.studies.biases import Biases, biases, self_preference
from judge.studies.boards import Preferences, preferences
from judge.studies.estimates import Estimate
from rating.variants import POINTS_PER_NAT
from tests.judge.studies.moved import MovedStudy, Mover
from tests.simulation import Share

pytestmark = pytest.mark.slow

Record = Callable[[str, object], None]

STUDIES = 500
SEED = 1
PLANTED = MovedStudy(
    people=Mover(position=0.1, length=0.3),
    judge=Mover(position=0.5, length=0.6, favour=0.8),
    n=4000,
    tie_rate=0.0,
    shared=0.0,
)
ALIKE = MovedStudy(people=Mover(position=0.2, length=0.4), judge=Mover(position=0.2, length=0.4))
"""People and judge are moved alike, share likings of the prompts, and say ties."""

TRUTH = {"position": 0.4, "length": 0.3, "self": 0.8}
"""Nats that PLANTED adds to the judge beyond people."""

MOST_COVERED = {"position": 0.975, "length": 0.975, "self": 0.995}
"""An interval for its own model holds the truth too often where the judge likes all models alike:
that it does so is not known of it."""

FAVOURS = (0.0, 0.2, 0.4, 0.8)
"""Sd in nats by which a judge likes each model for itself."""


def parts(measured: Biases) -> dict[str, Estimate]:
    """The biases, and as a planted error the judge's own slope taken for one."""
    assert measured.effects["position"].difference is not None
    assert measured.effects["length"].difference is not None
    assert measured.effects["length"].judge is not None
    assert measured.self_preference is not None
    return {
        "position": measured.effects["position"].difference,
        "length": measured.effects["length"].difference,
        "self": measured.self_preference.excess,
        "length, people excluded": measured.effects["length"].judge,
    }


@cache
def study(of: MovedStudy) -> dict[str, list[tuple[float, float, float]]]:
    """Value, lower and upper end of each part in nats, of many studies."""
    rng, result = np.random.default_rng(SEED), defaultdict(list)
    for _ in range(STUDIES):
        for name, one in parts(biases(*of.draw(rng), own_model=of.models[-1])).items():
            assert one.value is not None
            assert one.lower is not None
            assert one.upper is not None
            ends = np.array([one.value, one.lower, one.upper]) / POINTS_PER_NAT
            result[name].append((float(ends[0]), float(ends[1]), float(ends[2])))
    return dict(result)


def off_and_covered(of: MovedStudy, name: str, truth: float) -> tuple[Share, Share]:
    value, lower, upper = np.array(study(of)[name]).T
    held = ((lower <= truth) & (truth <= upper)).astype(np.float64)
    return Share.of(value - truth), Share.of(held)


@pytest.mark.parametrize("name", TRUTH)
def test_planted_biases_are_recovered(name: str, record_property: Record) -> None:
    off, covered = off_and_covered(PLANTED, name, TRUTH[name])
    row = {"bias": name, "planted": TRUTH[name], "off by": f"{off.mean:+.4f}±{off.error:.4f}"}
    record_property(f"planted biases, {STUDIES} studies", row | {"covered": str(covered)})
    # Maximum likelihood stretches every coefficient, here by .3 %.
    assert abs(off.mean) < 3 * off.error + 0.005 * TRUTH[name]
    assert 0.92 <= covered.mean <= MOST_COVERED[name]


@pytest.mark.parametrize("name", TRUTH)
def test_a_judge_moved_as_people_are_is_seldom_called_biased(
    name: str, record_property: Record
) -> None:
    off, covered = off_and_covered(ALIKE, name, 0.0)
    row = {"bias": name, "planted": 0.0, "off by": f"{off.mean:+.4f}±{off.error:.4f}"}
    record_property(f"planted biases, {STUDIES} studies", row | {"covered": str(covered)})
    assert abs(off.mean) < 3 * off.error
    assert 1 - MOST_COVERED[name] <= 1 - covered.mean <= 0.075


@pytest.mark.parametrize("of", [PLANTED, ALIKE], ids=["planted", "alike"])
def test_what_people_like_as_well_is_mistaken_for_bias_if_they_are_left_out(
    of: MovedStudy,
) -> None:
    truth = TRUTH["length"] if of is PLANTED else 0.0
    off, covered = off_and_covered(of, "length, people excluded", truth)
    assert abs(off.mean) > 0.2
    assert covered.mean + 3 * covered.error < 0.5


@cache
def renamed(favours: float, n_models: int) -> dict[str, Share]:
    """Share of the names under which verdicts are certain to favour their own, of many studies.

    The judge likes every model by an amount of its own and none because it is its own; its
    verdicts are declared to be those of each model in turn. ``sampling`` is the planted error:
    an interval from the uncertainty of the ratings alone.
    """
    rng, result = np.random.default_rng(SEED), defaultdict(list)
    of = MovedStudy(judge=Mover(scale=1.3, favours=favours), n_models=n_models, n_prompts=200)
    for _ in range(STUDIES):
        items, people, judge = of.draw(rng)
        boards = preferences(items, people), preferences(items, judge)
        certain = np.array([_certain(*boards, name) for name in of.models])
        for name, share in zip(("ours", "sampling"), certain.mean(axis=0), strict=True):
            result[name].append(float(share))
    return {name: Share.of(np.array(shares)) for name, shares in result.items()}


def _certain(people: Preferences, judge: Preferences, name: str) -> tuple[bool, bool]:
    own = self_preference(people, judge, name)
    if own is None:
        return False, False
    value, lower, upper = own.excess.value, own.excess.lower, own.excess.upper
    assert value is not None
    assert lower is not None
    assert upper is not None
    return lower > 0 or upper < 0, abs(value) > sampling_alone(people, judge, name, own.scale)


def sampling_alone(people: Preferences, judge: Preferences, name: str, scale: float) -> float:
    """Half an interval, in points, from the prompts' influences on both lines."""
    others = tuple(model for model in people.models if model != name)
    (a, moved_a), (b, moved_b) = (board.of_models((*others, name)) for board in (people, judge))
    x, y, m = a[:-1] - a[:-1].mean(), b[:-1] - b[:-1].mean(), len(others)
    ahead, spread = a[-1] - a[:-1].mean(), x @ x
    by_b = np.r_[-1 / m - ahead * x / spread, 1.0]
    by_a = np.r_[scale / m - ahead * (y - 2 * scale * x) / spread, -scale]
    return float(1.97 * POINTS_PER_NAT * np.linalg.norm(moved_a @ by_a + moved_b @ by_b))


@pytest.mark.parametrize("favours", FAVOURS)
@pytest.mark.parametrize("n_models", [5, 6, 10])
def test_verdicts_under_other_names_are_seldom_certain_to_favour_their_own(
    n_models: int, favours: float, record_property: Record
) -> None:
    shares = renamed(favours, n_models)
    row = {"models": n_models, "likings, nats": favours, "certain": str(shares["ours"])}
    record_property(
        f"verdicts under every name, {STUDIES} studies",
        row | {"sampling alone": str(shares["sampling"])},
    )
    assert shares["ours"].mean <= 0.05 + 3 * shares["ours"].error
    if favours >= 0.2:
        assert shares["sampling"].mean - 3 * shares["sampling"].error > 0.1


def test_a_judge_that_lifts_its_own_far_above_the_others_is_found() -> None:
    """By 1.2 nats, where it lifts and lowers others by .2."""
    of = MovedStudy(judge=Mover(favour=1.2, favours=0.2), n=4000, n_models=10, n_prompts=200)
    rng, result = np.random.default_rng(SEED), []
    for _ in range(100):
        items, people, judge = of.draw(rng)
        boards = preferences(items, people), preferences(items, judge)
        result.append(_certain(*boards, of.models[-1])[0])
    assert np.mean(result) > 0.8
