"""Published boards, refitted."""

from pathlib import Path

import duckdb
import numpy as np
import pytest

from rating import Comparisons, fit_bradley_terry, hessian_covariance, to_points
from tests.rating.builders import golden, strength

pytestmark = pytest.mark.published


def read_votes(file: Path) -> Comparisons:
    columns = duckdb.read_parquet(str(file)).fetchnumpy()
    return Comparisons.from_arrays(columns["model_a"], columns["model_b"], columns["winner"])


def read_rows(file: Path, name: str, value: str, where: str = "true") -> list[tuple[str, float]]:
    query = f"select {name}, {value} from read_csv(?) where {where}"
    return [(str(n), float(v)) for n, v in duckdb.execute(query, [str(file)]).fetchall()]


def test_the_crowd_votes_of_llmfao_give_the_expected_scores(published_data: Path) -> None:
    folder = published_data / "votes" / "llmfao"
    ours = strength(fit_bradley_terry(read_votes(folder / "votes.parquet")))
    scores = read_rows(
        folder / "expected_scores.csv", "item", "score", "algorithm = 'bradley_terry'"
    )
    logs = np.log([score for _, score in scores])
    expected = dict(zip([name for name, _ in scores], logs - logs.mean(), strict=True))
    assert ours == pytest.approx(expected, abs=1e-6)


def test_agent_arena_without_its_self_battles_gives_the_published_board(
    published_data: Path,
) -> None:
    folder = published_data / "votes" / "agent_arena"
    data = read_votes(folder / "votes_models.parquet")
    fit = fit_bradley_terry(data)
    ours = dict(zip(fit.models, to_points(fit.theta).tolist(), strict=True))
    expected = dict(
        read_rows(folder / "published_bt.csv", "name", "published_elo", "kind = 'model'")
    )
    assert data.n_self == 304
    assert ours == pytest.approx(expected, abs=0.006)


def test_a_ridge_reaches_the_published_board_of_the_embedding_arena(published_data: Path) -> None:
    folder = published_data / "votes" / "mteb_arena"
    fit = fit_bradley_terry(read_votes(folder / "votes_retrieval.parquet"), ridge=0.0943)
    ours = dict(zip(fit.models, to_points(fit.theta).tolist(), strict=True))
    column = '"Arena Elo rating (anony)"'
    expected = dict(read_rows(folder / "published_leaderboard.csv", "key", column))
    # The published table is an optimiser stopped early, .052 points from this optimum.
    assert ours == pytest.approx(expected, abs=0.06)


def test_baseball_reaches_the_published_strengths_errors_and_deviance(
    published_data: Path,
) -> None:
    expected = golden("bradley_terry_baseball")["expected"]
    table = duckdb.read_csv(str(published_data / "votes/classic/baseball.pair_counts.csv"))
    rows = [
        (a, b, outcome)
        for a, b, *counts in table.fetchall()
        for outcome, n in zip(["model_a", "model_b", "tie"], counts, strict=True)
        for _ in range(n)
    ]
    a, b, outcome = zip(*rows, strict=True)
    fit = fit_bradley_terry(Comparisons.from_arrays(a, b, outcome))
    covariance = hessian_covariance(fit)
    base = fit.models.index(expected["reference"])
    for name, theta in expected["theta"].items():
        i = fit.models.index(name)
        variance = covariance[i, i] + covariance[base, base] - 2 * covariance[i, base]
        assert fit.theta[i] - fit.theta[base] == pytest.approx(theta, abs=5e-5)
        assert np.sqrt(variance) == pytest.approx(expected["se"][name], abs=5e-5)
    saturated = sum(
        n * np.log(n / (won + lost))
        for _, _, won, lost, _ in table.fetchall()
        for n in (won, lost)
        if n
    )
    assert 2 * (saturated - fit.log_likelihood) == pytest.approx(expected["deviance"], abs=5e-4)
