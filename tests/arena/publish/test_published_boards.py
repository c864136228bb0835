"""`arena rate` gives the boards that were published with the votes."""

from pathlib import Path

import duckdb
import pytest

from rating.scale import POINTS_PER_NAT
from tests.arena.publish.rated import column, rated
from tests.rating.builders import golden

pytestmark = pytest.mark.published


def published(file: Path, name: str, value: str, where: str = "true") -> dict[str, float]:
    query = f"select {name}, {value} from read_csv(?) where {where}"
    return {str(n): float(v) for n, v in duckdb.execute(query, [str(file)]).fetchall()}


def test_llmfao_gives_the_expected_scores_with_intervals_by_voter(published_data: Path) -> None:
    folder = published_data / "votes" / "llmfao"
    board = rated(folder / "votes.parquet")
    scores = published(
        folder / "expected_scores.csv", "item", "ln(score)", "algorithm = 'bradley_terry'"
    )
    mean = sum(scores.values()) / len(scores)
    expected = {name: score - mean for name, score in scores.items()}
    assert column(board, "strength") == pytest.approx(expected, abs=1e-6)
    assert board["method"]["cluster"] == "voter"
    assert board["votes"]["voters"] == 124
    assert 30 < board["votes"]["effective_voters"] < 59
    assert set(column(board, "rank_high").values()) == {59}
    assert column(board, "quasi_se")["GPT 4"] is None
    assert board["quasi_se_error"] > 0.1


def test_mtbench_claims_ranks(published_data: Path) -> None:
    board = rated(published_data / "votes" / "mtbench" / "votes.parquet")
    ranks = {row["model"]: (row["rank_low"], row["rank_high"]) for row in board["ratings"]}
    assert ranks["gpt-4"] == (1, 1)
    assert ranks["llama-13b"] == (6, 6)
    assert board["votes"]["used"] == 3355
    assert board["votes"]["voters"] == 65


def test_agent_arena_gives_the_published_board(published_data: Path) -> None:
    folder = published_data / "votes" / "agent_arena"
    board = rated(folder / "votes_models.parquet")
    expected = published(folder / "published_bt.csv", "name", "published_elo", "kind = 'model'")
    assert column(board, "rating") == pytest.approx(expected, abs=0.006)
    assert board["votes"]["self"] == 304
    assert board["votes"]["used"] == 2058 - 304


def test_the_embedding_arena_is_reached_with_a_ridge(published_data: Path) -> None:
    folder = published_data / "votes" / "mteb_arena"
    board = rated(folder / "votes_retrieval.parquet", ridge=0.0943)
    name = '"Arena Elo rating (anony)"'
    expected = published(folder / "published_leaderboard.csv", "key", name)
    assert column(board, "rating") == pytest.approx(expected, abs=0.06)


def test_baseball_gives_the_published_estimates_and_errors(published_data: Path) -> None:
    expected = golden("bradley_terry_baseball")["expected"]
    file = published_data / "votes" / "classic" / "baseball.pair_counts.csv"
    board = rated(file, interval="hessian", reference="Baltimore")
    for name, strength in expected["theta"].items():
        assert column(board, "strength")[name] == pytest.approx(strength, abs=5e-5)
        error = column(board, "se")[name] / POINTS_PER_NAT
        assert error == pytest.approx(expected["se"][name], abs=5e-5)
    assert column(board, "se")["Baltimore"] == 0
    assert board["deviance"] == pytest.approx(expected["deviance"], abs=5e-4)
    home = rated(file, interval="hessian", reference="Baltimore", order_effect=True)
    effect = home["parameters"]["order_effect"]
    assert effect["value"] == pytest.approx(expected["home"]["effect"], abs=5e-5)
    assert effect["se"] == pytest.approx(expected["home"]["se"], abs=5e-5)
    assert home["deviance"] == pytest.approx(expected["home"]["deviance"], abs=5e-4)


def test_the_puddings_give_davidson_s_parameter(published_data: Path) -> None:
    expected = golden("ties_puddings")["expected"]["davidson"]
    file = published_data / "votes" / "classic" / "pudding.pair_counts.csv"
    board = rated(file, ties="davidson", interval="hessian")
    nu = board["parameters"]["nu"]
    assert nu["value"] == pytest.approx(expected["parameter"], abs=1e-6)
    assert nu["se"] == pytest.approx(expected["se_log"], abs=5e-5)
