"""How often a study gives which verdict, and names a model, by kind of judge."""

import math
from collections import Counter
from collections.abc import Callable

import numpy as np
import pytest

from judge.studies.alternative import alternative
from judge.studies.biases import favouritism
from judge.studies.one_judge import study_judge
from judge.studies.options import StudyOptions
from judge.studies.rows import Items, Labels
from tests.judge.studies.favouring import World
from tests.judge.studies.labels import items_of, labels_of
from tests.simulation import monte_carlo_error, runs

pytestmark = pytest.mark.slow

Record = Callable[[str, object], None]

STUDIES = runs(40)
MANY, FEW = World(), World(voters=12, effect=0.8)
FAIR = ("fair", "sharp", "copy", "coin", "tie")


@pytest.mark.parametrize("world", [MANY, FEW], ids=["many", "few"])
@pytest.mark.parametrize(
    ("kind", "share"),
    [
        *(("fair", share) for share in (1.0, 0.6, 0.3)),
        *(("sharp", share) for share in (1.0, 0.6)),
        *((kind, 0.0) for kind in ("copy", "coin", "longest", "tie", "sharp", "fair", "person")),
    ],
)
def test_no_judge_that_favours_a_model_is_a_yes_and_no_fair_one_is_flagged(
    kind: str, share: float, world: World, record_property: Record
) -> None:
    """At most 5% and two Monte Carlo errors."""
    verdicts: Counter[str] = Counter()
    flagged = 0
    for seed in range(STUDIES):
        data = world.study(kind, seed, share)
        options = StudyOptions(rounds=100, raters="expert")
        studied = study_judge(data, data.judges[0], options, lambda _: None)
        verdicts[studied.first_answer.verdict] += 1
        flagged += bool(studied.evidence.biased)
    row = {"judge": kind, "favours": share, "voters": world.voters, "effect": world.effect}
    row |= {name: verdicts[name] / STUDIES for name in ("yes", "no", "inconclusive")}
    record_property(f"verdicts, {STUDIES} studies a row", row | {"flagged": flagged / STUDIES})
    most = 0.05 + 2 * monte_carlo_error(0.05, STUDIES)
    if kind in ("coin", "longest", "tie") or (world is MANY and share >= 0.6):
        assert verdicts["yes"] <= most * STUDIES
    if kind in FAIR and not share:
        assert flagged <= most * STUDIES
    if kind in ("sharp", "copy") and not share and world is FEW:
        assert verdicts["yes"] > 0.5 * STUDIES, "a yes has to be possible"


@pytest.mark.parametrize(
    ("world", "share", "low", "high"),
    [
        (MANY, 0.0, 0.0, 0.02), (MANY, 0.6, 0.95, 1.0), (MANY, 1.0, 0.95, 1.0),
        (FEW, 0.0, 0.0, 0.02), (FEW, 0.6, 0.45, 1.0),
        (World(voters=40, effect=0.8), 0.6, 0.88, 1.0),
    ],
)  # fmt: skip
def test_favouritism_is_found_as_often_as_promised(
    world: World, share: float, low: float, high: float, record_property: Record
) -> None:
    count = runs(200)
    named = []
    for seed in range(count):
        data = world.study("fair", 1000 + seed, share)
        models = favouritism(data.items, data.people, data.judges[0].verdicts)
        flagged = {
            name
            for name, one in models.items()
            if one.lower is not None
            and one.upper is not None
            and (one.lower > 0.1 or one.upper < -0.1)
        }
        named.append("m9" in flagged if share else bool(flagged))
    power = float(np.mean(named))
    row = {"voters": world.voters, "effect": world.effect, "favours": share, "found": power}
    record_property(f"favouritism found, {count} studies", row)
    error = 2 * math.sqrt(max(power * (1 - power), 0.02) / count)
    assert low - error <= power <= high + error


def _crowd(n: int, right: float, rng: np.random.Generator) -> tuple[Items, Labels, Labels]:
    """Let twelve people label all items, each right as often as the item is clear, and a 13th."""
    clear = rng.beta(4 * right, 4 * (1 - right), n)
    truth = rng.choice([-1, 1], n)
    labels = np.where(rng.random((13, n)) < clear, truth, -truth)
    votes = [(i, int(x)) for row in labels[:12] for i, x in enumerate(row)]
    raters = np.repeat(np.arange(12), n).tolist()
    return items_of(n), labels_of(votes, rater=raters), labels_of(enumerate(labels[12].tolist()))


@pytest.mark.parametrize("right", [0.7, 0.8])
def test_with_as_many_items_as_decide_another_person_passes_in_nine_of_ten_studies(
    right: float, record_property: Record
) -> None:
    """Fewer for correlated tests: at least .8, as twelve people who label all items give .86."""
    rng = np.random.default_rng(5)
    test = alternative(*_crowd(200, right, rng), raters="crowd")
    assert test is not None
    assert test.decides_at is not None
    passed, count = 0, runs(60)
    for _ in range(count):
        again = alternative(*_crowd(test.decides_at, right, rng), raters="crowd")
        assert again is not None
        passed += again.winning_rate >= 0.5
    record_property("power at decides_at", {"items": test.decides_at, "power": passed / count})
    assert passed / count >= 0.8 - 2 * monte_carlo_error(0.8, count)
