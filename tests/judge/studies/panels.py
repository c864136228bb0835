"""Panels of judges with planted errors, as arrays and as files."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from scipy.stats import multivariate_normal, norm

from judge.studies.options import StudyOptions
from judge.studies.panel import Errors, Panel, study_panel
from rating.tables.files import Files

Floats = NDArray[np.float64]
HEAD = "item_id,model_a,model_b,winner,label,judge"
SIDES = ("model_a", "model_b")


def latent(
    rng: np.random.Generator, n: int, rates: Sequence[float], loading: float
) -> NDArray[np.bool_]:
    """Draw errors of judges that share a latent factor with a loading, shape (n, k)."""
    shared = rng.normal(size=(n, 1))
    own = rng.normal(size=(n, len(rates)))
    errs: NDArray[np.bool_] = loading * shared + np.sqrt(1 - loading**2) * own < norm.ppf(rates)
    return errs


def true_n_eff(rate: float, loading: float, k: int) -> float:
    """Return n_eff of equally good judges with such errors, by the bivariate normal."""
    z = norm.ppf(rate)
    both = multivariate_normal([0, 0], [[1, loading**2], [loading**2, 1]]).cdf([z, z])
    rho = (both - rate**2) / (rate * (1 - rate))
    return float(k / (1 + (k - 1) * rho))


def errors_of(wrong: NDArray[np.bool_], prompt: NDArray[np.int64] | None = None) -> Errors:
    """Name the judges j0, j1 and so on; a prompt an item unless they are given."""
    n, k = wrong.shape
    names = tuple(f"j{j}" for j in range(k))
    return Errors(names, wrong.astype(np.float64), np.arange(n) if prompt is None else prompt)


def written(path: Path, rows: Sequence[Sequence[str]], head: str = HEAD) -> Files:
    path.write_text("\n".join([head, *map(",".join, rows)]) + "\n", encoding="utf-8")
    return Files((str(path),))


def labelled(
    wrong: NDArray[np.bool_], names: Sequence[str] | None = None
) -> list[tuple[str, ...]]:
    """Write errors as verdicts on x and y with labels, the right side in turn."""
    names = [f"j{j}" for j in range(wrong.shape[1])] if names is None else names
    return [
        (f"i{item}", "x", "y", SIDES[(item + erred) % 2], SIDES[item % 2], name)
        for item, row in enumerate(wrong.tolist())
        for name, erred in zip(names, row, strict=True)
    ]


def studied(folder: Path, rows: Sequence[Sequence[str]], *, rounds: int = 100) -> Panel:
    files = written(folder / "verdicts.csv", rows)
    return study_panel([files], None, StudyOptions(rounds=rounds))


def by_people(
    rng: np.random.Generator, n: int, voters: int, rates: Sequence[float], clear: float = 0.0
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Draw votes, shape (n, voters), and verdicts of independent judges, (n, k): 1 or -1.

    People are right with probability 0.75, judges by their rates; with ``clear`` items differ in
    how clear they are, by this sd of the logit, for people and judges alike.
    """
    truth, hard = rng.choice([-1, 1], n), rng.normal(0, clear, (n, 1))

    def answers(right: Sequence[float]) -> NDArray[np.int64]:
        odds = np.log(np.array(right) / (1 - np.array(right))) + hard
        is_right = rng.random(odds.shape) < 1 / (1 + np.exp(-odds))
        return np.asarray(np.where(is_right, 1, -1) * truth[:, None], dtype=np.int64)

    return answers([0.75] * voters), answers(rates)


def judged_by_people(folder: Path, votes: NDArray[np.int64], verdict: NDArray[np.int64]) -> Panel:
    """Write votes and verdicts as files, and study the panel."""
    names = {1: "model_a", 0: "tie", -1: "model_b"}
    cast = [
        (f"i{item}", "x", "y", names[one], f"p{person}")
        for item, row in enumerate(votes.tolist())
        for person, one in enumerate(row)
    ]
    given = [
        (f"i{item}", "x", "y", names[one], f"j{j}")
        for item, row in enumerate(verdict.tolist())
        for j, one in enumerate(row)
    ]
    people = written(folder / "votes.csv", cast, "item_id,model_a,model_b,winner,voter")
    files = written(folder / "verdicts.csv", given, "item_id,model_a,model_b,winner,judge")
    return study_panel([files], people, StudyOptions(rounds=200))
