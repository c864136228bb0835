"""Comparisons written down in a test."""

import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rating import Cluster, Comparisons, Fit, activity, hessian_covariance
from rating.covariance import grouping, jackknife

GOLDEN = Path(__file__).parents[1] / "golden"


def golden(name: str) -> dict[str, Any]:
    read: dict[str, Any] = json.loads((GOLDEN / f"{name}.json").read_text(encoding="utf-8"))
    return read


def votes(rows: Sequence[Sequence[str]]) -> Comparisons:
    """Comparisons from (model_a, model_b, outcome) or (model_a, model_b, outcome, voter)."""
    if not rows:
        return Comparisons.from_arrays([], [], [])
    columns = list(zip(*rows, strict=True))
    voter = columns[3] if len(columns) == 4 else None
    return Comparisons.from_arrays(columns[0], columns[1], columns[2], voter=voter)


def wins(counts: Iterable[tuple[str, str, int]]) -> Comparisons:
    """Comparisons from (winner, loser, times)."""
    return votes([(w, loser, "model_a") for w, loser, times in counts for _ in range(times)])


def counts(rows: Iterable[tuple[str, str, Sequence[int]]]) -> Comparisons:
    """Comparisons from (model_a, model_b, times that a won, that b won and, if any, ties)."""
    cells = [(a, b, outcome, n) for a, b, ns in rows for outcome, n in enumerate(ns)]
    pairs = [(a, b) for a, b, _, _ in cells]
    names = sorted({name for pair in pairs for name in pair})
    a, b = (np.array([names.index(pair[side]) for pair in pairs]) for side in (0, 1))
    outcome, n = np.array([cell[2:] for cell in cells]).T
    return Comparisons.from_codes(names, a, b, outcome, votes=n)


def baseball_games() -> list[tuple[str, str, list[int]]]:
    """Home team, away team, and the games that each of them won."""
    home: dict[str, dict[str, list[int]]] = golden("bradley_terry_baseball")["data"]["home"]
    return [(team, other, won) for team, others in home.items() for other, won in others.items()]


def random_votes(
    rng: np.random.Generator, *, n: int = 400, n_models: int = 5, n_voters: int = 20
) -> list[tuple[str, str, str, str]]:
    """Votes of every outcome among equal models: identified, as every pair meets often."""
    a = rng.integers(n_models, size=n)
    b = (a + rng.integers(1, n_models, size=n)) % n_models
    outcome = rng.choice(["model_a", "model_b", "tie", "both_bad"], size=n, p=[0.5, 0.3, 0.1, 0.1])
    voter = rng.integers(n_voters, size=n)
    return [
        (f"m{i}", f"m{j}", str(o), f"v{v}")
        for i, j, o, v in zip(a, b, outcome, voter, strict=True)
    ]


def strength(fit: Fit) -> dict[str, float]:
    return dict(zip(fit.models, fit.theta.tolist(), strict=True))


def leads(fit: Fit, reference: str) -> dict[str, tuple[float, float]]:
    """Strength and standard error of every model against one."""
    covariance, base = hessian_covariance(fit), fit.models.index(reference)
    variance = np.diag(covariance) + covariance[base, base] - 2 * covariance[base]
    lead = fit.theta - fit.theta[base]
    return {
        name: (float(lead[i]), float(np.sqrt(variance[i])))
        for i, name in enumerate(fit.models)
        if i != base
    }


def by_cluster(fit: Fit, data: Comparisons, cluster: Cluster = "voter") -> NDArray[np.float64]:
    """Covariance of all parameters by leaving out one cluster at a time."""
    return jackknife(fit, data, grouping(data, cluster))[0]


def cr1(fit: Fit, data: Comparisons, cluster: Cluster = "voter") -> NDArray[np.float64]:
    """Covariance by the sums of scores of each cluster: the simplest that allows for clusters."""
    groups, bread = grouping(data, cluster), hessian_covariance(fit)
    score = fit.scored(data).scores(groups.index, groups.size)
    u = activity(data, cluster).n_clusters
    return np.asarray(u / (u - 1) * bread @ score.T @ score @ bread)
