"""Published boards, refitted."""

from pathlib import Path

import duckdb
import numpy as np
import pytest

from rating import (
    Comparisons,
    Fit,
    fit,
    fit_bradley_terry,
    goodness_of_fit,
    hessian_covariance,
    to_points,
)
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
    found = fit_bradley_terry(data)
    ours = dict(zip(found.models, to_points(found.theta).tolist(), strict=True))
    expected = dict(
        read_rows(folder / "published_bt.csv", "name", "published_elo", "kind = 'model'")
    )
    assert data.n_self == 304
    assert ours == pytest.approx(expected, abs=0.006)


def test_a_ridge_reaches_the_published_board_of_the_embedding_arena(published_data: Path) -> None:
    folder = published_data / "votes" / "mteb_arena"
    found = fit(read_votes(folder / "votes_retrieval.parquet"), ridge=0.0943)
    ours = dict(zip(found.models, to_points(found.theta).tolist(), strict=True))
    column = '"Arena Elo rating (anony)"'
    expected = dict(read_rows(folder / "published_leaderboard.csv", "key", column))
    # The published table is an optimiser stopped early, .052 points from this optimum.
    assert ours == pytest.approx(expected, abs=0.06)


def read_baseball(folder: Path) -> Comparisons:
    table = duckdb.read_csv(str(folder / "votes/classic/baseball.pair_counts.csv"))
    rows = [
        (a, b, outcome, n)
        for a, b, *counts in table.fetchall()
        for outcome, n in enumerate(counts)
    ]
    names = sorted({row[0] for row in rows})
    a, b = (np.array([names.index(row[side]) for row in rows]) for side in (0, 1))
    outcome, votes = (np.array([row[at] for row in rows]) for at in (2, 3))
    return Comparisons.from_codes(names, a, b, outcome, votes=votes)


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


def test_baseball_reaches_the_published_strengths_errors_and_deviance(
    published_data: Path,
) -> None:
    expected = golden("bradley_terry_baseball")["expected"]
    data = read_baseball(published_data)
    found = fit(data)
    for name, (lead, error) in leads(found, expected["reference"]).items():
        assert lead == pytest.approx(expected["theta"][name], abs=5e-5)
        assert error == pytest.approx(expected["se"][name], abs=5e-5)
    assert found.deviance is not None
    assert found.deviance.value == pytest.approx(expected["deviance"], abs=5e-4)
    assert found.deviance.df == expected["df"]
    by_pair = goodness_of_fit(found, data)
    assert by_pair.g2_total == pytest.approx(expected["g2_of_21_pairs"], abs=5e-3)
    assert by_pair.df == 21 - 6


def test_baseball_reaches_the_published_home_effect(published_data: Path) -> None:
    expected = golden("bradley_terry_baseball")["expected"]
    found = fit(read_baseball(published_data), order_effect=True)
    home = expected["home"]
    assert found.parameters[0].value == pytest.approx(home["effect"], abs=5e-5)
    error = np.sqrt(hessian_covariance(found)[-1, -1])
    assert error == pytest.approx(home["se"], abs=5e-5)
    assert found.deviance is not None
    assert found.deviance.value == pytest.approx(home["deviance"], abs=5e-4)
    assert found.deviance.df == expected["df"] - 1
    for name, (lead, _) in leads(found, expected["reference"]).items():
        assert lead == pytest.approx(home["theta"][name], abs=5e-5)
