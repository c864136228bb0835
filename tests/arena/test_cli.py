"""The command as a person runs it: in a process of its own, with its exit code."""

import os
import re
import socket
import sqlite3
import subprocess
from contextlib import closing
from pathlib import Path

import httpx
import pytest
from typer.testing import CliRunner

from arena.cli import cli
from arena.store.store import Store
from tests.faulty_server import Behaviour, faulty_server
from tests.serving import ARENA, Served, running, write_roster

GOOD = """
[[models]]
id = "x"
name = "X"
endpoint = "pocket://local/v1"
model = "unigram"

[[models]]
id = "y"
name = "Y"
endpoint = "pocket://local/v1"
model = "bigram"
"""


def run(folder: Path, *words: str, **env: str) -> subprocess.CompletedProcess[str]:
    environment = os.environ | {"ARENA_PAGE": "0"} | env
    return subprocess.run(
        [ARENA, *words],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def refused(run: subprocess.CompletedProcess[str], *words: str) -> None:
    """Check that a command ended in one clear line."""
    lines = [line for line in run.stderr.splitlines() if line.startswith("arena: ")]
    assert run.returncode == 2, run.stderr
    assert len(lines) == 1, run.stderr
    assert "Traceback" not in run.stderr
    assert [word for word in words if word not in lines[0]] == [], lines[0]


def roster(folder: Path, text: str = GOOD) -> str:
    path = folder / "roster.toml"
    path.write_text(text, encoding="utf-8")
    return str(path)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("[[models]\n", ["roster.toml", "not TOML"]),
        (GOOD + "colour = 'red'\n", ["unknown key 'colour'", "'red'"]),
        (GOOD.replace('"y"', '"x"'), ["'id'", "'x' twice"]),
        (GOOD + "api_key_env = 'NO_SUCH_KEY'\n", ["'NO_SUCH_KEY'", "not set"]),
        (
            "[[models]]\nid='r'\nname='R'\nendpoint='recorded://f'\nrecording='gone.json'\n"
            + GOOD,
            ["gone.json", "cannot be read"],
        ),
    ],
    ids=["bad TOML", "unknown key", "duplicate id", "missing variable", "missing recording"],
)
def test_a_bad_roster_is_one_clear_line(tmp_path: Path, text: str, words: list[str]) -> None:
    refused(run(tmp_path, "serve", "--port", "0", "--roster", roster(tmp_path, text)), *words)


def test_a_port_in_use_is_one_clear_line(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        refused(run(tmp_path, "demo", "--port", port), port, "in use", "--port")
    assert not (tmp_path / "arena-demo.db").exists()


def test_a_read_only_database_is_one_clear_line(tmp_path: Path) -> None:
    Store(f"sqlite:///{tmp_path}/arena.db").close()
    url = f"sqlite:///file:{tmp_path}/arena.db?mode=ro&uri=true"
    refused(run(tmp_path, "serve", "--port", "0", "--database", url), "readonly database")


def test_a_newer_schema_is_one_clear_line(tmp_path: Path) -> None:
    Store(f"sqlite:///{tmp_path}/arena.db").close()
    with closing(sqlite3.connect(tmp_path / "arena.db")) as connection:
        connection.execute("UPDATE alembic_version SET version_num = '9999'")
        connection.commit()
    refused(run(tmp_path, "serve", "--port", "0"), "'9999'", "newer arena")


def test_a_bad_setting_is_one_clear_line(tmp_path: Path) -> None:
    refused(run(tmp_path, "serve", ARENA_PORT="lots"), "ARENA_PORT", "'lots'")


def test_the_demo_plays_without_key_or_network_and_keeps_its_votes(tmp_path: Path) -> None:
    with running(tmp_path, "demo", "--port", "0", ARENA_CHARACTERS_PER_S="9000") as url:
        visitor = Served(url, "").visitor()
        with visitor:
            receipt = visitor.vote(visitor.play(), "tie").json()
            assert "toy" in receipt["models"]["a"]["name"]
    with running(tmp_path, "demo", "--port", "0") as url:
        assert httpx.get(f"{url}/api/v1/leaderboard").json()["votes"] == 1
    assert (tmp_path / "arena-demo.db").exists()


def test_serve_takes_its_settings_from_the_environment(tmp_path: Path) -> None:
    env = {
        "ARENA_ROSTER": roster(tmp_path),
        "ARENA_DATABASE": f"sqlite:///{tmp_path}/elsewhere.db",
        "ARENA_PORT": "0",
    }
    with running(tmp_path, "serve", **env) as url:
        assert httpx.get(f"{url}/health/ready").status_code == 200
    assert (tmp_path / "elsewhere.db").exists()


def test_a_check_prints_what_answers_and_what_failed(tmp_path: Path) -> None:
    behaviours = {
        "well": Behaviour(),
        "ill": Behaviour(status=401, error={"message": "no such key"}),
    }
    with faulty_server(behaviours) as server:
        path = write_roster(tmp_path / "roster.toml", server, "well", "ill")
        told = run(tmp_path, "models", "check", "--roster", str(path), COLUMNS="200")
    assert told.returncode == 1
    assert re.search(r"id-well.* s .*answered", told.stdout)
    assert re.search(r"id-ill.*auth: .*401, no such key", told.stdout)


def test_an_export_says_how_much_it_wrote(tmp_path: Path, quick: Served) -> None:
    with quick.visitor() as ada:
        ada.vote(ada.play(), "model_a")
        ada.vote(ada.play(), "skip")
    told = run(tmp_path, "export", "votes", "--to", "v.csv", "--database", quick.database)
    assert told.stdout == "v.csv: 1 of 2 logged votes, policy default-v1.\n"
    assert len((tmp_path / "v.csv").read_text().splitlines()) == 2
    refused(
        run(tmp_path, "export", "votes", "--to", "v.doc", "--database", quick.database),
        "'v.doc'",
        ".parquet",
    )


def commands() -> list[list[str]]:
    return [["serve"], ["demo"], ["models", "check"], ["export", "votes"]]


@pytest.mark.parametrize("command", commands(), ids=" ".join)
def test_every_help_ends_in_two_examples(command: list[str]) -> None:
    told = CliRunner().invoke(cli, [*command, "--help"], env={"COLUMNS": "100"})
    assert told.exit_code == 0
    examples = told.output.split("Examples")[1]
    assert len(re.findall(r"^\s*arena " + " ".join(command), examples, re.MULTILINE)) == 2


def test_the_examples_of_export_run(tmp_path: Path) -> None:
    Store(f"sqlite:///{tmp_path}/arena.db").close()
    Store(f"sqlite:///{tmp_path}/arena-demo.db").close()
    told = run(tmp_path, "export", "votes", "--help", COLUMNS="200")
    for line in re.findall(r"^\s*(arena export votes .*?)\s*$", told.stdout, re.MULTILINE):
        assert run(tmp_path, *line.split()[1:]).returncode == 0, line
