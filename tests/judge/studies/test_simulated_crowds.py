"""What is said of raters and of designs, on planted crowds: docs/evidence.md has the tables."""

import math
from collections.abc import Callable

import numpy as np
import pytest

from judge.ifeval import wilson
from judge.studies.estimates import NAMES, Draws, Estimate, variance_shares
from judge.studies.plan import enough, plan_ratings, preference, rater_plan_half_width
from judge.studies.raters import FOLDS, _left, _left_in_repeats, _retest, accuracies
from judge.studies.rows import Items
from tests.judge.studies.crowds import Crowd
from tests.judge.studies.test_latent_classes import planted

pytestmark = pytest.mark.slow

Record = Callable[[str, object], None]
STUDIES = 400
ERROR = math.sqrt(0.95 * 0.05 / STUDIES)

ALIKE = Crowd(item=1.5, lean=0.4)
DIFFERENT = Crowd(item=1.5, rater=0.6, taste=0.5, lean=0.3, ties=0.15)
EQUAL = Crowd(item=0.0)
TASTES = Crowd(item=1.0, rater=0.8)
LEANING = Crowd(item=1.5, rater=0.3, lean=0.4, leans=0.5, ties=0.1)
OWN = Crowd(item=1, taste=1)
MANY = Crowd(item=1, lean=0.3)
ONE_SIDED = Crowd(item=1, mean=1.5)
SMALL = Crowd(item=0.5, mean=0.5, taste=0.5)
TIED = Crowd(item=1.5, rater=0.6, ties=0.15)
FEW = Crowd(item=1, rater=0.3)
CLEAR = Crowd(item=3, mean=1)
WORDS = {
    ALIKE: "alike",
    DIFFERENT: "different",
    EQUAL: "equal",
    TASTES: "tastes",
    LEANING: "leaning",
    OWN: "own",
    MANY: "many",
    ONE_SIDED: "one-sided",
    SMALL: "small",
    TIED: "tied",
    FEW: "few",
    CLEAR: "clear",
}
Sizes = tuple[int, int, int, int]


def holds(one: Estimate, value: float) -> bool:
    assert one.lower is not None
    assert one.upper is not None
    return one.lower - 1e-9 <= value <= one.upper + 1e-9


@pytest.mark.parametrize(
    ("crowd", "sizes"),
    [
        (ALIKE, (240, 8, 3, 20)), (LEANING, (400, 20, 4, 25)), (OWN, (100, 6, 3, 12)),
        (MANY, (1000, 40, 2, 6)),
    ],
    ids=str,
)  # fmt: skip
def test_repeats_recover_agreement_with_oneself_and_the_lean_to_a_side(
    crowd: Crowd, sizes: Sizes, record_property: Record
) -> None:
    rng, truth = np.random.default_rng(1), crowd.truth
    figures: dict[str, list[Estimate]] = {"retest": [], "left": [], "left in repeats": []}
    for _ in range(STUDIES):
        items, labels, twice = crowd.draw(rng, *sizes)
        draws = [Draws(np.random.default_rng(0), 300) for _ in range(3)]
        figures["retest"].append(_retest(items, twice, draws[0]))
        figures["left"].append(_left(items, labels, draws[1]))
        figures["left in repeats"].append(_left_in_repeats(items, twice, draws[2]))
    for name, estimates in figures.items():
        want = truth.retest if name == "retest" else truth.left
        values = np.array([one.value for one in estimates], dtype=np.float64)
        error = float(values.std() / math.sqrt(STUDIES))
        held = float(np.mean([holds(one, want) for one in estimates]))
        row = {"of": name, "off": f"{values.mean() - want:+.4f}", "held": f"{held:.3f}"}
        record_property(f"repeats, {STUDIES} studies a row", {"crowd": WORDS[crowd]} | row)
        assert abs(values.mean() - want) < 3 * error
        assert 0.93 - 3 * ERROR <= held <= 0.985


@pytest.mark.parametrize(
    ("crowd", "sizes"),
    [
        (ALIKE, (120, 6, 3, 20)), (DIFFERENT, (200, 8, 4, 25)), (EQUAL, (100, 5, 3, 15)),
        (TASTES, (300, 20, 5, 15)),
    ],
    ids=str,
)  # fmt: skip
def test_shares_of_the_variance_are_what_was_planted(
    crowd: Crowd, sizes: Sizes, record_property: Record
) -> None:
    rng, parts = np.random.default_rng(2), crowd.truth.parts
    within = parts.within or 0.0
    want = dict(
        zip(
            NAMES,
            (parts.item, parts.rater, parts.rest, max(0.0, parts.rest - within), within),
            strict=True,
        )
    )
    held: dict[str, list[bool]] = {name: [] for name in NAMES}
    means = []
    for _ in range(STUDIES):
        items, labels, twice = crowd.draw(rng, *sizes)
        shares = variance_shares(items, labels, twice)
        for name in NAMES:
            held[name].append(holds(getattr(shares, name), want[name] / parts.total))
        assert shares.components is not None
        means.append([shares.components.item, shares.components.rater, shares.components.rest])
    share = {name: float(np.mean(values)) for name, values in held.items()}
    row = {name: f"{one:.3f}" for name, one in share.items()}
    record_property(f"variance, {STUDIES} studies a row", {"crowd": WORDS[crowd]} | row)
    off = np.mean(means, axis=0) - [parts.item, parts.rater, parts.rest]
    assert (np.abs(off) < 3 * np.std(means, axis=0) / math.sqrt(STUDIES) + 0.001).all()
    assert min(share.values()) >= 0.93 - 3 * ERROR


@pytest.mark.parametrize(
    ("crowd", "pilot", "design"),
    [
        (ALIKE, (200, 6, 3), (600, 6, 2)), (SMALL, (200, 10, 3), (200, 10, 5)),
        (TIED, (200, 12, 3), (400, 12, 2)), (FEW, (200, 8, 2), (200, 16, 3)),
        (CLEAR, (150, 8, 2), (150, 8, 5)),
    ],
    ids=str,
)  # fmt: skip
def test_the_half_width_planned_is_the_half_width_had(
    crowd: Crowd,
    pilot: tuple[int, int, int],
    design: tuple[int, int, int],
    record_property: Record,
) -> None:
    rng, truth, (n, people, each) = np.random.default_rng(3), crowd.truth, design
    planned, had, held = [], [], []
    for _ in range(STUDIES):
        items, labels, _ = crowd.draw(rng, *pilot)
        parts = variance_shares(items, labels).components
        assert parts is not None
        planned.append(rater_plan_half_width(parts, n, each, people))
        items, labels, _ = crowd.draw(rng, *design)
        share = preference(items, labels, Draws(np.random.default_rng(0), 300))
        had.append(enough(share, 0.05, ratings=labels.n, prompts=n).half_width or 0.0)
        held.append(holds(share, truth.share))
    by_truth = rater_plan_half_width(truth.parts, n, each, people)
    mean, by_pilot, share_held = (float(np.mean(x)) for x in (had, planned, held))
    row = {"had": mean, "by parts": by_truth, "by pilot": by_pilot, "held": share_held}
    words = {name: f"{value:.4f}" for name, value in row.items()}
    record_property(f"plans, {STUDIES} studies a row", {"crowd": WORDS[crowd]} | words)
    assert by_truth == pytest.approx(mean, rel=0.1)
    assert by_pilot == pytest.approx(mean, rel=0.1)
    assert share_held >= 0.93 - 3 * ERROR


def test_where_items_share_prompts_the_half_width_planned_is_the_half_width_had(
    record_property: Record,
) -> None:
    rng, crowd = np.random.default_rng(7), Crowd(item=0.5, prompt=1.5, of_prompt=3)
    planned, had = [], []
    for _ in range(STUDIES):
        items, labels, _ = crowd.draw(rng, 240, 8, 2)
        parts = variance_shares(items, labels).components
        assert parts is not None
        share = preference(items, labels, Draws(np.random.default_rng(0), 300))
        plan = plan_ratings(items, labels, parts, share, 0.05, 0.95)
        planned.append(plan.same_on_new)  # 360 items
        items, labels, _ = crowd.draw(rng, 360, 8, 2)
        share = preference(items, labels, Draws(np.random.default_rng(0), 300))
        had.append(enough(share, 0.05, ratings=720, prompts=120).half_width or 0.0)
    row = {"had": f"{np.mean(had):.4f}", "by pilot": f"{np.mean(planned):.4f}"}
    record_property("plans, items that share prompts", row)
    assert np.mean(planned) == pytest.approx(np.mean(had), rel=0.1)


@pytest.mark.parametrize(
    ("crowd", "wanted"), [(ALIKE, 0.06), (ONE_SIDED, 0.06), (TASTES, 0.08)], ids=str
)
def test_to_stop_by_the_half_width_keeps_the_coverage_however_often_one_looks(
    crowd: Crowd, wanted: float, record_property: Record
) -> None:
    rng, truth, n = np.random.default_rng(4), crowd.truth, 700
    held, at = [], []
    for _ in range(STUDIES):
        items, labels, _ = crowd.draw(rng, n, 40, 2)
        for stop in range(20, n + 1, 10):  # 20 ratings at a time
            so_far = labels.only(labels.item < stop)
            some = Items(items.models, items.pairs[:stop], items.prompt[:stop])
            share = preference(some, so_far, Draws(np.random.default_rng(0), 200))
            if enough(share, wanted, ratings=so_far.n, prompts=stop).reached:
                break
        else:
            raise AssertionError(f"not reached by {n} items")
        held.append(holds(share, truth.share))
        at.append(stop)
    row = {"held": f"{np.mean(held):.3f}", "items": f"{np.mean(at):.0f}"}
    record_property(f"stops, {STUDIES} studies a row", {"crowd": WORDS[crowd]} | row)
    assert np.mean(held) >= 0.93 - 3 * ERROR


@pytest.mark.parametrize(
    ("n_items", "each", "k", "gold"),
    [(600, 5, 2, 0.0), (1000, 3, 2, 0.05), (1000, 5, 3, 0.0), (600, 4, 2, 0.1)],
)
def test_the_accuracy_of_raters_is_recovered(
    n_items: int, each: int, k: int, gold: float, record_property: Record
) -> None:
    rng, off, held = np.random.default_rng(5), [], []
    for _ in range(60):
        right = rng.uniform(0.6, 0.95, 8)
        item, rater, label, truth = planted(rng, n_items, each, right, k)
        known = np.where(rng.random(n_items) < gold, truth, -1)
        value, error = accuracies(item, rater, label, known, np.arange(n_items))
        assert value is not None
        assert error is not None
        off.append(np.abs(value - right))
        for share, one, want in zip(value, error, right, strict=True):
            ends = wilson(float(share), float(share * (1 - share) / one**2), 0.95, FOLDS - 1)
            held.append(ends[0] <= want <= ends[1])
    row: dict[str, object] = {"items": n_items, "each": each, "classes": k, "gold": gold}
    row |= {"off": f"{np.mean(off):.3f}", "held": f"{np.mean(held):.3f}"}
    record_property("accuracy without gold, 60 studies a row", row)
    assert np.mean(off) < 0.03
    assert np.mean(held) > 0.93 - 3 * math.sqrt(0.95 * 0.05 / len(held))
