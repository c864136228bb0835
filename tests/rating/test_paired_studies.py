"""How often intervals of paired differences hold, on runs simulated with a known difference."""

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from rating.leave_out import quantile
from rating.paired import CompareOptions, Comparison, ScoredItems, compare
from rating.typing import Floats, Ints
from tests.simulation import monte_carlo_error, runs

RUNS = runs(400)
LEAD = 0.06


def binary(rng: np.random.Generator, n: int, lead: float = LEAD, each: int = 1) -> Floats:
    """Right or wrong, shape (n, 2, each): items differ in difficulty, and in who finds them hard.

    The first model is right more often by ``lead`` on average over items.
    """
    level, own = rng.uniform(0.3, 0.7, n), rng.uniform(-0.15, 0.15, n)
    p = np.stack([level + lead / 2 + own, level - lead / 2 - own], axis=1)
    return np.asarray(rng.random((n, 2, each)) < p[..., None], dtype=np.float64)


def graded(rng: np.random.Generator, n: int) -> Floats:
    """Marks that are skewed: the noise of the first model is that of an exponential time."""
    level = rng.normal(5, 2, n)
    noise = np.stack([rng.exponential(1.0, n) - 1, rng.normal(0, 0.5, n)], axis=1)
    return (level[:, None] + [LEAD, 0] + noise)[..., None]


def in_clusters(rng: np.random.Generator, n: int, each: int = 5) -> tuple[Floats, Ints]:
    """Items of one passage favour the same model."""
    own = np.repeat(rng.uniform(-0.35, 0.35, n), each)
    p = np.stack([0.5 + LEAD / 2 + own, 0.5 - LEAD / 2 - own], axis=1)
    right = np.asarray(rng.random(p.shape) < p, dtype=np.float64)
    return right[..., None], np.repeat(np.arange(n), each)


def with_gaps(rng: np.random.Generator, n: int) -> Floats:
    score = binary(rng, n)
    score[rng.random(score.shape) < 0.2] = np.nan
    return score


def compared(score: Floats, cluster: Ints | None = None, **options: Any) -> Comparison:
    """Compare scores of shape (n_items, n_models, repeats)."""
    n, k, _ = score.shape
    item, model, _ = (part.ravel() for part in np.indices(score.shape))
    names = tuple("abcdef"[:k]), tuple(map(str, range(n)))
    data = ScoredItems.of(*names, (item, model, score.ravel()), cluster)
    return compare(data, CompareOptions(**options))


DESIGNS: dict[str, Callable[[np.random.Generator], Comparison]] = {
    "binary, 200 items": lambda rng: compared(binary(rng, 200)),
    "graded, 100 items": lambda rng: compared(graded(rng, 100)),
    "binary, 40 clusters of 5": lambda rng: compared(*in_clusters(rng, 40)),
    "binary, 80 items, 5 repeats": lambda rng: compared(binary(rng, 80, each=5)),
    "binary, 200 items, 20% missing": lambda rng: compared(with_gaps(rng, 200)),
    "binary, 30 items": lambda rng: compared(binary(rng, 30)),
}


@pytest.mark.slow
@pytest.mark.parametrize("design", DESIGNS)
def test_paired_intervals_cover(
    design: str, record_property: Callable[[str, object], None]
) -> None:
    rng = np.random.default_rng([len(design), 11])
    inside = []
    for _ in range(RUNS):
        pair = DESIGNS[design](rng).pairs[0]
        assert pair.lower is not None
        assert pair.upper is not None
        inside.append(pair.lower <= LEAD <= pair.upper)
    covered = float(np.mean(inside))
    record_property("Paired intervals, 95 %", {"design": design, "covered": round(covered, 4)})
    assert abs(covered - 0.95) <= 0.02 + monte_carlo_error(0.95, RUNS)


@pytest.mark.slow
def test_items_alone_do_not_cover_where_passages_differ() -> None:
    """An injected error: the clusters are not named."""
    rng = np.random.default_rng(3)
    inside = []
    for _ in range(RUNS):
        pair = compared(in_clusters(rng, 40)[0]).pairs[0]
        inside.append((pair.lower or -1) <= LEAD <= (pair.upper or 1))
    assert np.mean(inside) < 0.9


@pytest.mark.slow
@pytest.mark.parametrize("n", [100, 400, 1600])
def test_models_that_differ_by_the_margin_are_rarely_equivalent(
    n: int, record_property: Callable[[str, object], None]
) -> None:
    rng = np.random.default_rng([n, 5])
    equivalent = float(
        np.mean(
            [compared(binary(rng, n, 0.05), margin=0.05).pairs[0].equivalent for _ in range(RUNS)]
        )
    )
    record_property("Equivalence at the margin", {"items": n, "equivalent": round(equivalent, 4)})
    assert equivalent <= 0.05


@pytest.mark.slow
@pytest.mark.parametrize("models", [3, 6])
def test_equal_models_are_rarely_separated_together(
    models: int, record_property: Callable[[str, object], None]
) -> None:
    rng = np.random.default_rng([models, 17])
    together, alone = [], []
    for _ in range(RUNS):
        level = rng.uniform(0.2, 0.8, (150, 1, 1))
        right = np.asarray(rng.random((150, models, 1)) < level, dtype=np.float64)
        pairs = compared(right).pairs
        together.append(any(pair.answer != "inconclusive" for pair in pairs))
        ratios = [abs(pair.difference) / (pair.se or math.inf) for pair in pairs]
        alone.append(max(ratios) > quantile(0.95, pairs[0].df or math.inf))
    claimed = float(np.mean(together))
    row = {"models": models, "claimed": round(claimed, 4), "unadjusted": float(np.mean(alone))}
    record_property("All pairs of equal models", row)
    assert claimed <= 0.05 + 3 * monte_carlo_error(0.05, RUNS)
    assert np.mean(alone) > 0.09


@pytest.mark.slow
def test_as_many_items_as_planned_show_the_difference_four_times_out_of_five(
    record_property: Callable[[str, object], None],
) -> None:
    rng = np.random.default_rng(23)
    needed = compared(binary(rng, 20_000), margin=LEAD).pairs[0].needed
    assert needed is not None
    shown = [compared(binary(rng, needed)).pairs[0].answer == "better" for _ in range(RUNS)]
    power = float(np.mean(shown))
    record_property("Power of the items planned", {"items": needed, "power": round(power, 4)})
    assert power == pytest.approx(0.8, abs=0.01 + 3 * monte_carlo_error(0.8, RUNS))
    ask: dict[str, Any] = {"margin": LEAD, "require": "equivalent"}
    needed = compared(binary(rng, 20_000, 0), **ask).pairs[0].needed
    assert needed is not None
    shown = [compared(binary(rng, needed, 0), **ask).passes is True for _ in range(RUNS)]
    power = float(np.mean(shown))
    record_property("Power of equivalence", {"items": needed, "power": round(power, 4)})
    assert power == pytest.approx(0.8, abs=0.01 + 3 * monte_carlo_error(0.8, RUNS))
