"""`arena verify`, and where else a record that was changed is said to be."""

import json
import re
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import httpx2
import pytest
from sqlalchemy import create_engine, text

from tests.arena.store.test_verify import golden
from tests.command import Command, refused
from tests.process import until
from tests.serving import Served, quick_arena

CHANGE = "UPDATE vote SET outcome = 'tie' WHERE link = 1"


@pytest.fixture
def played(database_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Served]:
    """An arena on either kind of database, with a vote and a skip, that verifies all the time."""
    monkeypatch.setattr("arena.play.upkeep.REST_S", 0.05)
    with quick_arena(tmp_path, database=database_url) as served:
        with served.visitor() as ada:
            ada.vote(ada.play(), "model_a")
            ada.vote(ada.play(), "skip")
        yield served


def change(url: str, statement: str = CHANGE) -> None:
    engine = create_engine(url)
    with engine.begin() as connection:
        connection.execute(text(statement))
    engine.dispose()


def board(served: Served, *, broken: bool) -> dict[str, object]:
    """Read the leaderboard once its record is said to be so."""
    seen: dict[str, object] = {}

    def holds() -> bool:
        seen.update(httpx2.get(f"{served.url}/api/v1/leaderboard").json()["record"] or {})
        return (seen.get("links"), bool(seen.get("problem"))) == (2 * (not broken), broken)

    until(holds, within_s=300)
    return seen


@pytest.mark.slow
def test_a_record_that_is_whole_is_said_to_be(
    command: Command, tmp_path: Path, played: Served
) -> None:
    head = board(played, broken=False)["head"]
    whole = f"vote log verified, 2 links, the newest with hash {head}. "
    whole += "0 of 2 votes are hashes only.\n"
    assert command("verify", played.database).stdout.endswith(f": {whole}")
    for name in ("all.csv", "some.parquet"):
        command("export", "votes", "--to", name, "--database", played.database)
        assert command("verify", name).stdout == (
            f"{name}: {whole[:-1]} Exported with policy default-v3, votes cast at any time. "
            "Votes counted: 1; excluded: 1 skipped.\n"
        )
    command("backup", "--database", played.database, "--to", "b.db")
    before = (tmp_path / "b.db").read_bytes()
    noted = command("verify", "b.db", "--head", str(head)[:9], "--format", "json")
    none = dict.fromkeys(("marked", "scope", "problem", "counts"))
    zero = dict.fromkeys(("erased", "taken_out", "hashes_only", "deleted"), 0)
    two = {"verified": True, "whole": True, "links": 2, "head": head, "noted": 2, "votes": 2}
    assert json.loads(noted.stdout) == none | zero | two
    assert (tmp_path / "b.db").read_bytes() == before
    page = httpx2.get(f"{played.url}/leaderboard").text
    assert re.search(r"vote log</a> was verified <time .*</time>\.", page)
    method = httpx2.get(f"{played.url}/method").text
    assert str(head) in method
    assert "0 of 2 votes are hashes only." in method


def test_a_record_that_was_changed_is_said_to_be_everywhere(
    command: Command, tmp_path: Path, played: Served
) -> None:
    change(played.database)
    problem = r"Link 1, the vote on battle '\w+', is not as it was recorded\."
    result = command("verify", played.database)
    assert result.returncode == 3
    assert re.search(f": vote log not verified after 0 links. {problem}\n$", result.stdout)
    for words in (("export", "votes"), ("backup",)):
        name = f"{words[0]}.csv"
        written = command(*words, "--database", played.database, "--to", name)
        assert written.returncode == 3
        assert re.search(f"'{name}' was written, but .*{problem}", written.stderr)
        assert (tmp_path / name).exists()
    (tmp_path / "backup.csv").rename(tmp_path / "b.db")
    refusal = command("restore", "b.db", "--database", "sqlite:///other.db")
    assert refusal.returncode == 3
    assert re.search(rf"Cannot restore 'b\.db'\. {problem}", refusal.stderr)
    result = command("verify", "export.csv", "--format", "json")
    assert (result.returncode, json.loads(result.stdout)["whole"]) == (3, False)
    assert re.search(problem, str(board(played, broken=True)["problem"]))
    page = httpx2.get(f"{played.url}/leaderboard").text
    assert "<strong>The log of these votes could not be verified.</strong>" in page


@pytest.mark.slow
def test_a_hidden_vote_and_an_import_of_0_1_0_are_said_by_command_page_and_api(
    command: Command, played: Served
) -> None:
    """Both are served on."""
    with played.visitor() as ada:
        ada.board(votes=1)
    change(played.database, "UPDATE vote_chain SET imported = 2")
    words = (
        "The first 2 links came by an import of version 0.1.0, and no link proves that: they "
        "cannot be verified. 0 of 2 votes are hashes only."
    )
    assert command("verify", played.database).returncode == 3
    assert words in command("verify", played.database).stdout
    assert words in str(board(played, broken=True)["problem"])
    assert words in httpx2.get(f"{played.url}/leaderboard").text
    assert words in httpx2.get(f"{played.url}/method").text
    for statement in (
        "UPDATE vote_chain SET imported = 0",
        "INSERT INTO chain_link (link, kind, reason, bound, content, previous_hash, hash) SELECT "
        "link, 'vote', 'skipped', NULL, content, previous_hash, hash FROM vote WHERE link = 2",
        "DELETE FROM vote WHERE link = 2",
        "UPDATE battle SET state = 'stopped' WHERE state = 'skipped'",
    ):
        change(played.database, statement)
    words = "1 of 2 votes are hashes only, the first at link 2, and no deletion record names them"
    assert words in command("verify", played.database).stdout
    address = f"{played.url}/api/v1/leaderboard"
    until(lambda: words in str(httpx2.get(address).json()["record"]["problem"]), within_s=300)
    body = httpx2.get(address).json()
    assert (body["record"]["hashes_only"], body["record"]["votes"]) == (1, 2)
    assert body["votes"] == 1
    assert words in httpx2.get(f"{played.url}/leaderboard").text


def test_a_chain_that_was_written_anew_lacks_the_hash_that_somebody_noted(
    command: Command, played: Served
) -> None:
    result = command("verify", played.database, "--head", "c0ffee00")
    assert result.returncode == 3
    assert "No link has the hash 'c0ffee00': it was rewritten since." in result.stdout


def test_a_record_with_a_mark_says_from_where_on_it_binds_all(
    command: Command, tmp_path: Path
) -> None:
    with closing(sqlite3.connect(tmp_path / "old.db")) as connection:
        connection.executescript("\n".join(golden()["sql"]))
    refused(command("verify", "old.db"), "'old.db' has schema '0017'", "this version reads")
    command("restore", "old.db", "--database", "sqlite:///new.db")
    result = command("verify", "sqlite:///new.db")
    assert "vote log verified, 42 links" in result.stdout
    assert "Hashes bind all that is bound today from link 41 on." in result.stdout


def test_what_is_no_record_is_one_clear_line(command: Command, tmp_path: Path) -> None:
    refused(command("verify", "gone.db"), "'gone.db'", "no such file")
    refused(command("verify", "sqlite:///gone.db"), "No database")
    refused(command("verify", "gone.csv"), "'gone.csv'", "no such file")
    refused(command("verify", "gone.csv", "--head", "3f9c1a0"), "'3f9c1a0'", "8 to 64 characters")
    (tmp_path / "notes.txt").write_text("Dear diary" * 1000)
    refused(command("verify", "notes.txt"), "notes.txt", "not a database")
    (tmp_path / "votes.csv").write_text("model_a,model_b,winner\nx,y,model_a\n")
    refused(command("verify", "votes.csv"), "no column 'battle_id'")


def test_counts_that_are_not_those_of_the_votes_are_said_to_be_wrong(
    command: Command, tmp_path: Path, database_url: str
) -> None:
    with quick_arena(tmp_path, database=database_url) as served, served.visitor() as ada:
        ada.vote(ada.play(), "model_a")
        ada.vote(ada.play(), "skip")
    block = "INSERT INTO vote_block (last, hash, names, votes) VALUES (2, 'x', '{}', 'x')"
    change(database_url, block)  # once nothing serves that would make them again
    result = command("verify", database_url, "--format", "json")
    verified = json.loads(result.stdout)
    assert (result.returncode, verified["whole"], verified["problem"]) == (3, True, None)
    words = command("verify", database_url).stdout
    assert f"votes are hashes only. {verified['counts']}" in words
    assert verified["counts"].startswith("The counts of boards for links 1 to 2 are not those")
