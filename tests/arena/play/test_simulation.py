"""Simulated voters vote through the same code as people, and are told apart from them."""

import asyncio
import re
import sqlite3
import time
from collections import Counter
from collections.abc import AsyncGenerator, Iterator, Sequence
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path
from random import Random

import pytest

from arena.boards.leaderboard import Leaderboard
from arena.domain.model import Model, Roster
from arena.domain.vote import DEFAULT, SIMULATED, Choice, Chunk, Finished, TextDelta
from arena.endpoints.offline import POCKET_MODELS, TOY_EXAMPLES
from arena.play.simulation import TASTES, Simulation, Tastes
from arena.store.store import Store
from judge.case import Message
from tests.command import Command, examples, refused
from tests.serving import serve
from tests.sqlite import new_sqlite

NOON = datetime(2026, 5, 3, 12, 0, tzinfo=UTC)
ROSTER = Roster(POCKET_MODELS)


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    made = Store(new_sqlite(tmp_path))
    made.register(POCKET_MODELS, NOON)
    yield made
    made.close()


async def ask(model: Model, _messages: Sequence[Message]) -> AsyncGenerator[Chunk]:
    """Answer in a word: simulated voters look at who answers, not at what is said."""
    yield TextDelta(model.id)
    yield Finished("stop", 1, 1)


async def vote(store: Store, votes: int, seed: int = 3) -> int:
    simulation = Simulation(
        store, ask, ROSTER, TASTES, prompts=TOY_EXAMPLES, seed=seed, now=lambda: NOON
    )
    progress: list[tuple[int, int]] = []
    made = await simulation.run(votes, lambda done, whole: progress.append((done, whole)))
    assert progress[-1:] == ([(votes, votes)] if made else [])
    return made


def logged(folder: Path, name: str = "arena.db") -> list[tuple[object, ...]]:
    query = (
        "SELECT v.outcome, v.voter_id, b.model_a, b.model_b, w.kind FROM vote v "
        "JOIN battle b ON b.id = v.battle_id JOIN voter w ON w.id = v.voter_id ORDER BY v.id"
    )
    with closing(sqlite3.connect(folder / name)) as connection:
        return connection.execute(query).fetchall()


async def test_a_run_that_was_broken_off_goes_on_as_if_it_had_not_been(
    tmp_path: Path, store: Store
) -> None:
    assert [await vote(store, n) for n in (7, 12, 12, 5)] == [7, 5, 0, 0]
    (tmp_path / "whole").mkdir()
    other = Store(new_sqlite(tmp_path / "whole"))
    other.register(POCKET_MODELS, NOON)
    await vote(other, 12)
    other.close()
    assert logged(tmp_path) == logged(tmp_path / "whole")
    assert {row[-1] for row in logged(tmp_path)} == {"simulated"}


async def test_another_seed_adds_other_voters(tmp_path: Path, store: Store) -> None:
    await vote(store, 6, seed=1)
    await vote(store, 6, seed=2)
    votes = logged(tmp_path)
    assert len(votes) == 12
    assert len({row[1] for row in votes}) == 12
    assert votes[:6] != votes[6:]


async def test_the_default_board_leaves_them_out_and_their_own_finds_the_tastes(
    store: Store,
) -> None:
    await vote(store, 150)
    default = Leaderboard(store, DEFAULT, lambda: NOON).refresh()
    assert default.votes == 0
    assert default.left_out["simulated voter"] == 150
    assert default.health == ()
    board = Leaderboard(store, SIMULATED, lambda: NOON).refresh()
    assert board.votes == 150
    order = [row.model for row in board.rows]
    assert order[0] == "pocket-retrieval"
    assert order[-1] == "pocket-unigram"
    assert sum(health.battles for health in board.health) == 300


def test_a_vote_is_drawn_by_the_planted_tastes() -> None:
    tastes = Tastes({"x": 1.0, "y": 0.0}, both_bad=0.1, tie=0.2)
    rng = Random(5)
    n = 20_000
    counts = Counter(tastes.choose("x", "y", rng) for _ in range(n))
    decided = 0.9 * 0.8
    for choice, expected in (
        (Choice.BOTH_BAD, 0.1),
        (Choice.TIE, 0.9 * 0.2),
        (Choice.A, decided * 0.7310586),
        (Choice.B, decided * 0.2689414),
    ):
        error = (expected * (1 - expected) / n) ** 0.5
        assert counts[choice] / n == pytest.approx(expected, abs=4 * error)


def test_their_board_is_shown_only_when_asked_for_and_says_what_it_is(
    tmp_path: Path, command: Command
) -> None:
    url = f"sqlite:///{tmp_path}/arena.db"
    run = command("simulate", "--votes", "25", "--database", url)
    assert "pocket-retrieval +1.5" in run.stdout
    assert "25 votes cast with seed 0" in run.stdout
    with serve(database=url) as served, served.visitor() as ada:
        plain = ada.get("/leaderboard").text
        asked = ada.get("/leaderboard?policy=simulated-v1").text
        unknown = ada.get("/leaderboard?policy=other")
    assert "These votes are simulated" not in plain
    assert "25 votes</a> by 20" not in plain
    assert "These votes are simulated" in asked
    assert re.search(r"25 votes</a> by 20", asked)
    assert unknown.status_code == 404
    assert "no board of that policy" in unknown.text


def test_the_examples_of_simulate_cast_the_same_votes_on_a_machine_a_million_times_slower(
    tmp_path: Path, command: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    cast = []
    for by in (1, 1_000_000):
        monkeypatch.setattr(asyncio.BaseEventLoop, "time", lambda _, by=by: by * time.monotonic())
        command.folder = tmp_path / f"{by}"
        command.folder.mkdir()
        for line in examples("simulate"):
            assert command(*line).returncode == 0, line
        cast += [logged(command.folder, name) for name in ("arena-demo.db", "try.db")]
    assert list(map(len, cast)) == [20, 30, 20, 30]
    assert cast[:2] == cast[2:]


def test_a_simulated_log_is_rated_exported_and_verified_by_its_policy(
    command: Command, tmp_path: Path
) -> None:
    url = f"sqlite:///{tmp_path}/arena-demo.db"
    assert command("simulate", "--votes", "60").returncode == 0
    assert command("rate", url).returncode == 2
    rated = command("rate", url, "--policy", "simulated-v1", "--format", "csv")
    assert rated.returncode == 0
    assert "pocket-unigram" in rated.stdout
    words = ("export", "votes", "--to", "v.csv", "--policy", "simulated-v1", "--database", url)
    done = command(*words).stdout
    assert done.startswith("v.csv: 60 of 60 logged votes, policy simulated-v1.\n")
    assert "vote log verified, 60 links" in command("verify", "v.csv").stdout
    assert command("rate", "v.csv", "--format", "csv").stdout == rated.stdout
    forged = (tmp_path / "v.csv").read_text().replace("simulated-v1", "default-v3")
    (tmp_path / "v.csv").write_text(forged)
    assert (
        "by the policy and the days it is 'simulated voter'" in command("verify", "v.csv").stdout
    )


def test_a_policy_that_is_not_there_is_refused_with_the_list(
    command: Command, tmp_path: Path
) -> None:
    url = new_sqlite(tmp_path)
    known = "choose one of default-v3, default-v2, default-v1, simulated-v1"
    for words in (
        *((name, url, "--policy", "best") for name in ("rate", "plan", "voters")),
        ("export", "votes", "--to", "v.csv", "--policy", "best", "--database", url),
    ):
        refused(command(*words), "no policy 'best'", known)
    (tmp_path / "v.csv").write_text("model_a,model_b,winner\nx,y,model_a\n")
    refused(command("rate", "v.csv", "--policy", "default-v1"), "'default-v1'", "omit --policy")
    words = ("voters", url, "--apply", "--policy", "simulated-v1")
    refused(command(*words), "--apply", "'simulated-v1'")
