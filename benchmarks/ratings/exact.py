"""The exact maximum of the likelihood, found without the code that is measured."""

import math
from pathlib import Path

import duckdb
import numpy as np

from benchmarks.ratings.tasks import Points

STEPS = 50
NEGLIGIBLE_NATS = 1e-13


def exact_points(path: Path) -> Points:
    """Fit Bradley-Terry, ties as half wins, by plain Newton steps on the counts of duckdb."""
    wins, names = _wins(path)
    games, theta = wins + wins.T, np.zeros(len(names))
    for _ in range(STEPS):
        probability = 1 / (1 + np.exp(theta[None, :] - theta[:, None]))
        slope = (games * probability - wins).sum(axis=1)
        curve = -games * probability * (1 - probability)
        np.fill_diagonal(curve, -curve.sum(axis=1))
        step = np.linalg.solve(curve + 1, slope)  # plus one: the strengths sum to zero
        theta -= step - step.mean()
        if np.abs(step).max() < NEGLIGIBLE_NATS:
            return dict(zip(names, (400 / math.log(10) * theta).tolist(), strict=True))
    raise RuntimeError(f"The exact maximum was not reached in {STEPS} steps.")


def _wins(path: Path) -> tuple[np.ndarray, list[str]]:
    query = "SELECT model_a, model_b, winner, count(*) FROM read_parquet($1) GROUP BY ALL"
    rows = duckdb.execute(query, [str(path)]).fetchall()
    names = sorted({name for row in rows for name in row[:2]})
    place = {name: i for i, name in enumerate(names)}
    wins = np.zeros((len(names), len(names)))
    for model_a, model_b, winner, n in rows:
        score = {"model_a": 1.0, "model_b": 0.0, "tie": 0.5}[winner]
        wins[place[model_a], place[model_b]] += n * score
        wins[place[model_b], place[model_a]] += n * (1 - score)
    return wins, names
