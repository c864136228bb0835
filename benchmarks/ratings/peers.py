"""The tasks, as others do them; each program is imported only where it is measured.

arena-rank's own bootstrap starts processes by fork below a running JAX, and hangs on Linux:
its sandwich is measured instead.
"""

import importlib
import math
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import numpy as np
import pandas as pd

from benchmarks.ratings.tasks import Points, Task, as_frame
from benchmarks.ratings.work import STYLES

POINTS_PER_NAT = 400 / math.log(10)
FEW_ROUNDS = 3
"""Rounds that stand for a hundred, where a hundred would take minutes."""


def _arena_rank(task: str, source: Any) -> Points:
    data = importlib.import_module("arena_rank.utils.data_utils")
    models = importlib.import_module("arena_rank.models.bradley_terry")
    dataset = data.PairDataset.from_pandas(as_frame(source, task))
    model = models.BradleyTerry(n_competitors=len(dataset.competitors))
    if task == "fit":
        model.fit(dataset)
        points = 1000 + POINTS_PER_NAT * np.asarray(model.params["ratings"])
    else:
        points = np.asarray(model.compute_ratings_and_cis(dataset)["ratings"])
    return dict(zip(dataset.competitors, points.tolist(), strict=True))


def _arena_rank_style(source: Any) -> Points:
    data = importlib.import_module("arena_rank.utils.data_utils")
    models = importlib.import_module("arena_rank.models.contextual_bradley_terry")
    frame = as_frame(source, "style")
    dataset = data.ContextualPairDataset.from_pandas(frame, list(STYLES), reweighted=False)
    model = models.ContextualBradleyTerry(len(dataset.competitors), len(STYLES), reg=1e-12)
    ratings = model.compute_ratings_and_cis(dataset)
    return dict(zip(ratings["competitors"], np.asarray(ratings["ratings"]).tolist(), strict=True))


def _winners(frame: pd.DataFrame) -> pd.Series:
    winner = importlib.import_module("evalica").Winner
    return frame["winner"].map({"model_a": winner.X, "model_b": winner.Y, "tie": winner.Draw})


def _evalica(task: str, source: Any) -> Points:
    frame = as_frame(source, task)
    evalica = importlib.import_module("evalica")
    method = evalica.elo if task == "elo" else evalica.bradley_terry
    scores = method(frame["model_a"], frame["model_b"], _winners(frame)).scores
    points = scores if task == "elo" else POINTS_PER_NAT * np.log(scores)
    return {model: float(value) for model, value in points.items()}


def _choix(source: Any) -> Points:
    """Count in numpy, for choix counts only lists; its dense solver does the rest."""
    choix = importlib.import_module("choix")
    wins, names = _wins(as_frame(source, "fit"))
    points = POINTS_PER_NAT * choix.ilsr_pairwise_dense(wins)
    return dict(zip(names, points.tolist(), strict=True))


def _wins(frame: pd.DataFrame) -> tuple[np.ndarray, list[str]]:
    """Return the score of row against column, and the models."""
    codes, names = pd.factorize(pd.concat([frame["model_a"], frame["model_b"]]), sort=True)
    score, labels = frame["winner"].factorize()
    score_a = (
        pd.Index(labels).map({"model_a": 1.0, "model_b": 0.0, "tie": 0.5}).to_numpy(float)[score]
    )
    k, n = len(names), len(frame)
    a, b = codes[:n], codes[n:]
    won = np.bincount(a * k + b, score_a, k * k) + np.bincount(b * k + a, 1 - score_a, k * k)
    return won.reshape(k, k), list(names)


def _scikit_learn(source: Any) -> Points:
    """Rate as the published notebook describes it.

    Pivot tables count wins and ties; each pair of models gives two rows, one for either side
    winning, weighted by two for a win and one for a tie; a logistic regression without intercept
    or penalty gives the ratings.
    """
    linear = importlib.import_module("sklearn.linear_model")
    doubled, names = _doubled(as_frame(source, "fit"))
    k = len(names)
    a, b = np.triu_indices(k, 1)
    rows = np.zeros((2 * len(a), k))
    for first, sign in ((0, 1), (len(a), -1)):
        at = first + np.arange(len(a))
        rows[at, a], rows[at, b] = sign * math.log(10), -sign * math.log(10)
    weight = np.concatenate([doubled[a, b], doubled[b, a]])
    won = np.ones(len(rows))
    won[1::2] = 0  # so that both sides occur: a row turned round says the same
    rows[1::2] *= -1
    model = linear.LogisticRegression(fit_intercept=False, C=np.inf, tol=1e-6)
    model.fit(rows[weight > 0], won[weight > 0], sample_weight=weight[weight > 0])
    return dict(zip(names, (400 * model.coef_[0]).tolist(), strict=True))


def _pivot(frame: pd.DataFrame, label: str) -> pd.DataFrame:
    names = sorted({*frame["model_a"].unique(), *frame["model_b"].unique()})
    rows = frame[frame["winner"] == label]
    counts = pd.pivot_table(
        rows, index="model_a", columns="model_b", aggfunc="size", fill_value=0, observed=False
    )
    return counts.reindex(index=names, columns=names, fill_value=0).fillna(0)


def _doubled(frame: pd.DataFrame) -> tuple[np.ndarray, list[str]]:
    """Return twice the score of row against column."""
    a, b, tie = (_pivot(frame, label) for label in ("model_a", "model_b", "tie"))
    return (2 * a + 2 * b.T + tie + tie.T).to_numpy(float), list(a.index)


def _again(fit: Callable[[Any], Points], source: Any) -> Points:
    """Fit, and fit to rows drawn again."""
    frame, rng = as_frame(source, "fit"), np.random.default_rng(0)
    for _ in range(FEW_ROUNDS):
        fit(frame.iloc[rng.integers(len(frame), size=len(frame))])
    return {}


def _timed(task: Any) -> Task:
    return lambda source: partial(task, source)


TOOLS: dict[str, dict[str, Task]] = {
    "arena-rank": {
        **{task: _timed(partial(_arena_rank, task)) for task in ("fit", "sandwich", "fresh")},
        "style": _timed(_arena_rank_style),
    },
    "evalica": {
        **{task: _timed(partial(_evalica, task)) for task in ("fit", "elo", "fresh")},
        "rounds-100": _timed(partial(_again, partial(_evalica, "fit"))),
    },
    "choix": {"fit": _timed(_choix)},
    "scikit-learn": {
        "fit": _timed(_scikit_learn),
        "fresh": _timed(_scikit_learn),
        "rounds-100": _timed(partial(_again, _scikit_learn)),
    },
}
MODULES = {
    "arena-rank": "arena_rank",
    "evalica": "evalica",
    "choix": "choix",
    "scikit-learn": "sklearn",
}
FROM_FEW: Mapping[tuple[str, str], float] = dict.fromkeys(
    [("evalica", "rounds-100"), ("scikit-learn", "rounds-100")], 100 / FEW_ROUNDS
)
"""What the time of a task is multiplied by, where a few rounds stand for many."""
