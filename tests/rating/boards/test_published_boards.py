"""`arena rate` gives the boards that were published with the votes."""

from pathlib import Path

import duckdb
import pytest

from tests.rating.boards.rated import column, rated

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
    assert (board["method"]["cluster"], board["votes"]["voters"]) == ("both", 124)
    assert 30 < board["votes"]["effective_voters"] < 59
    assert board["design_effect"]["prompt"] > 3  # thirteen prompts
    assert "124 voters" in board["warnings"][0]
    ranges = {(row["rank_low"], row["rank_high"]) for row in board["ratings"]}
    assert all((high or 59) - (low or 1) > 30 for low, high in ranges)
    assert column(board, "quasi_se")["GPT 4"] is None
    assert board["quasi_se_error"] > 0.1


def test_mtbench_claims_ranks(published_data: Path) -> None:
    board = rated(published_data / "votes" / "mtbench" / "votes.parquet")
    ranks = {row["model"]: (row["rank_low"], row["rank_high"]) for row in board["ratings"]}
    assert ranks["gpt-4"] == (1, 2)  # by voter alone it is the first
    assert ranks["llama-13b"] == (6, 6)
    assert (board["votes"]["used"], board["votes"]["voters"]) == (3355, 65)
