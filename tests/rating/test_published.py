"""Published boards, refitted."""

import json
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pytest
from scipy.stats import spearmanr

from rating import Comparisons, fit, fit_bradley_terry, hessian_covariance, to_points
from tests.rating.builders import counts, leads, strength

pytestmark = pytest.mark.published


def read_votes(file: Path, where: str = "true") -> Comparisons:
    columns = duckdb.read_parquet(str(file)).filter(where).fetchnumpy()
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
    fitted = fit_bradley_terry(data)
    ours = dict(zip(fitted.models, to_points(fitted.theta).tolist(), strict=True))
    expected = dict(
        read_rows(folder / "published_bt.csv", "name", "published_elo", "kind = 'model'")
    )
    assert data.n_self == 304
    assert ours == pytest.approx(expected, abs=0.006)


def test_a_ridge_reaches_the_published_board_of_the_embedding_arena(published_data: Path) -> None:
    folder = published_data / "votes" / "mteb_arena"
    fitted = fit(read_votes(folder / "votes_retrieval.parquet"), ridge=0.0943)
    ours = dict(zip(fitted.models, to_points(fitted.theta).tolist(), strict=True))
    column = '"Arena Elo rating (anony)"'
    expected = dict(read_rows(folder / "published_leaderboard.csv", "key", column))
    # The published table is an optimiser stopped early, .052 points from this optimum.
    assert ours == pytest.approx(expected, abs=0.06)


def test_the_votes_on_translations_order_the_systems_as_the_official_scores(
    published_data: Path,
) -> None:
    folder = published_data / "votes" / "wmt15_fin_eng"
    fitted = fit(read_votes(folder / "votes.parquet"))
    lines = (folder / "published_clusters.fin-eng.txt").read_text(encoding="utf-8").splitlines()
    words = [line.split() for line in lines if line.startswith("newstest")]
    official = {
        name.removeprefix("newstest2015.").removesuffix(".txt"): float(score)
        for name, score, *_ in words
    }
    assert set(official) == set(fitted.models)
    scores = np.array([official[name] for name in fitted.models])
    assert np.corrcoef(fitted.theta, scores)[0, 1] == pytest.approx(0.9995, abs=5e-5)
    assert (np.argsort(fitted.theta) == np.argsort(scores)).all()


def test_the_votes_of_mt_bench_give_the_strengths_noted_beside_them(published_data: Path) -> None:
    ours = strength(fit(read_votes(published_data / "votes" / "mtbench" / "votes.parquet")))
    assert ours == pytest.approx(
        {
            "gpt-4": 1.021,
            "claude-v1": 0.643,
            "gpt-3.5-turbo": 0.600,
            "vicuna-13b-v1.2": -0.057,
            "alpaca-13b": -0.762,
            "llama-13b": -1.445,
        },
        abs=5.1e-4,
    )


@pytest.mark.parametrize(("judge", "correlation"), [("gpt-4", 0.731), ("gpt-3.5", 0.716)])
def test_a_judge_orders_the_models_of_llmfao_roughly_as_the_crowd(
    published_data: Path, judge: str, correlation: float
) -> None:
    folder = published_data / "votes" / "llmfao"
    crowd = fit(read_votes(folder / "votes.parquet"))
    verdicts = fit(read_votes(folder / "judgments.parquet", f"judge like '{judge}%'"))
    assert verdicts.models == crowd.models
    assert spearmanr(crowd.theta, verdicts.theta)[0] == pytest.approx(correlation, abs=5e-4)


def read_counts(folder: Path, name: str) -> Comparisons:
    """One row a pair, of the classic tables."""
    table = duckdb.read_csv(str(folder / f"votes/classic/{name}.pair_counts.csv"))
    return counts((a, b, n) for a, b, *n in table.fetchall())


def classic(folder: Path, name: str) -> dict[str, Any]:
    text = (folder / "votes/classic/published.json").read_text(encoding="utf-8")
    table: dict[str, Any] = json.loads(text)[name]
    return table


def test_the_puddings_reach_every_printed_figure(published_data: Path) -> None:
    printed = classic(published_data, "pudding_davidson1970")
    fitted = fit(read_counts(published_data, "pudding"), ties="davidson")
    stopped = 2e-4  # the printed fit ends after seven iterations, as the paper does
    against, errors = printed["log_coef_vs_item1"], printed["se"]
    for name, (lead, error) in leads(fitted, "brand1").items():
        item = name.removeprefix("brand")
        assert lead == pytest.approx(against[item], abs=stopped)
        assert error == pytest.approx(errors[item], abs=stopped)
    covariance = hessian_covariance(fitted)
    log_nu = np.sqrt(covariance[-1, -1])
    assert fitted.parameters[0].value == pytest.approx(printed["nu"], abs=stopped)
    assert fitted.parameters[0].raw == pytest.approx(against["log_nu"], abs=stopped)
    assert log_nu == pytest.approx(errors["log_nu"], abs=stopped)
    worth = np.exp(fitted.theta) / np.exp(fitted.theta).sum()
    assert worth == pytest.approx(list(printed["worth"].values()), abs=stopped)
    centred = list(printed["centered_coef"].values())
    assert fitted.theta == pytest.approx(centred, abs=stopped)
    of_centred = list(printed["centered_se"].values())
    assert np.sqrt(np.diag(covariance))[:6] == pytest.approx(of_centred, abs=stopped)
