"""The audit of a source of votes: its own battles, and the faults of other ways to rate them."""

import json
from pathlib import Path

import duckdb
import numpy as np
import pytest

from judge.probe.board import BoardProbe, probe_board
from judge.probe.worlds import World
from rating.errors import DataError, NotIdentifiedError


def votes_file(folder: Path, *, voters: bool = True) -> str:
    """Write votes of a simulated arena in which tastes differ much."""
    draw = np.random.default_rng(1)
    votes = World.of_size(draw, n_models=5, n_voters=60, taste=1.2).cast(draw)
    assert votes.voter is not None
    winner = np.select([votes.score == 1, votes.score == 0], ["model_a", "model_b"], "tie")
    names = np.array(votes.models)
    rows = zip(names[votes.a], names[votes.b], winner, votes.voter, strict=True)
    head = "model_a,model_b,winner" + (",voter" if voters else "")
    lines = [f"{a},{b},{w}" + (f",v{v}" if voters else "") for a, b, w, v in rows]
    path = folder / "votes.csv"
    path.write_text("\n".join([head, *lines]) + "\n", encoding="utf-8")
    return str(path)


@pytest.fixture(scope="module")
def probed(tmp_path_factory: pytest.TempPathFactory) -> BoardProbe:
    folder = tmp_path_factory.mktemp("votes")
    return probe_board(votes_file(folder), arenas=30, seed=3)


@pytest.fixture(scope="module")
def followed(tmp_path_factory: pytest.TempPathFactory) -> tuple[BoardProbe, list[tuple[int, int]]]:
    """A probe of few arenas, and what was told while it ran."""
    told: list[tuple[int, int]] = []
    votes = votes_file(tmp_path_factory.mktemp("followed"))
    return probe_board(votes, arenas=12, seed=0, told=lambda *at: told.append(at)), told


def test_the_board_s_own_way_passes_on_votes_with_tastes_and_the_others_fail(
    probed: BoardProbe,
) -> None:
    own, independent, elo = probed.audits
    assert own.failed == ()
    assert independent.failed == ("validity",)
    assert elo.failed


def test_what_was_simulated_is_like_the_votes(probed: BoardProbe) -> None:
    about = probed.about
    assert (about["models"], about["voters"], about["arenas"]) == (5, 60, 30)
    assert about["taste_sd"] == pytest.approx(1.2, abs=0.4)
    assert about["tie_rate"] == pytest.approx(0.1, abs=0.05)
    assert json.loads(json.dumps(probed.to_dict(), allow_nan=False)) == probed.to_dict()


def test_the_order_of_the_rows_leaves_no_trace(
    followed: tuple[BoardProbe, object], tmp_path: Path
) -> None:
    path = votes_file(tmp_path)
    query = f"COPY (SELECT * FROM read_csv('{path}') ORDER BY random()) TO '{tmp_path}/b.parquet'"
    duckdb.execute(query)
    other = probe_board(str(tmp_path / "b.parquet"), arenas=12, seed=0)
    assert other.to_dict() == followed[0].to_dict()


def test_without_voters_tastes_are_unknown_rather_than_none(tmp_path: Path) -> None:
    about = probe_board(votes_file(tmp_path, voters=False), arenas=12, seed=0).about
    assert (about["voters"], about["taste_sd"]) == (None, None)


def test_progress_ends_at_all_arenas_of_all_measures(
    followed: tuple[BoardProbe, list[tuple[int, int]]],
) -> None:
    assert followed[1] == [(i, 72) for i in range(1, 73)]


def test_votes_and_options_that_cannot_be_used_are_refused(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="2 simulated arenas are too few"):
        probe_board(votes_file(tmp_path), arenas=2, seed=0)
    (tmp_path / "one.csv").write_text("model_a,model_b,winner\nx,y,model_a\n", encoding="utf-8")
    with pytest.raises(NotIdentifiedError, match="no finite value"):
        probe_board(str(tmp_path / "one.csv"), arenas=12, seed=0)
