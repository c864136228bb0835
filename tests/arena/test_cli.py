"""The command as a person runs it: in a process of its own, with its exit code."""

import json
import os
import re
import socket
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import duckdb
import httpx
import pytest
from typer.testing import CliRunner

from arena.cli import cli, progress_bar
from arena.store.store import Store
from arena.terminal import working
from tests.faulty_server import Behaviour, faulty_server
from tests.serving import ARENA, Served, quick_arena, running, write_roster

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
        refused(run(tmp_path, "demo", "--toys", "--port", port), port, "in use", "--port")
    assert not (tmp_path / "arena-demo.db").exists()


def test_a_read_only_database_is_one_clear_line(tmp_path: Path) -> None:
    Store(f"sqlite:///{tmp_path}/arena.db").close()
    url = f"sqlite:///file:{tmp_path}/arena.db?mode=ro&uri=true"
    refused(run(tmp_path, "serve", "--port", "0", "--database", url), "readonly database")


def test_a_newer_schema_is_one_clear_line(tmp_path: Path, database_url: str) -> None:
    store = Store(database_url)
    with store.writing() as session:
        session.connection().exec_driver_sql("UPDATE alembic_version SET version_num = '9999'")
    store.close()
    told = run(tmp_path, "serve", "--port", "0", "--database", database_url)
    refused(told, "'9999'", "newer arena")


def test_a_database_that_does_not_answer_is_one_clear_line(tmp_path: Path) -> None:
    url = "postgresql://ada:sesame@127.0.0.1:1/arena"
    told = run(tmp_path, "serve", "--port", "0", "--database", url)
    refused(told, "postgresql://ada:***@127.0.0.1:1/arena", "Connection refused")
    assert "sesame" not in told.stderr


def test_a_bad_setting_is_one_clear_line(tmp_path: Path) -> None:
    refused(run(tmp_path, "serve", ARENA_PORT="lots"), "ARENA_PORT", "'lots'")


def test_the_demo_plays_without_key_or_network_and_keeps_its_votes(tmp_path: Path) -> None:
    with running(tmp_path, "demo", "--toys", "--port", "0", ARENA_CHARACTERS_PER_S="9000") as url:
        visitor = Served(url, "").visitor()
        with visitor:
            receipt = visitor.vote(visitor.play(), "tie").json()
            assert "toy" in receipt["models"]["a"]["name"]
    with running(tmp_path, "demo", "--toys", "--port", "0") as url:
        assert httpx.get(f"{url}/api/v1/leaderboard").json()["votes"] == 1
    assert (tmp_path / "arena-demo.db").exists()


def test_the_demo_plays_with_two_models_that_it_finds_and_says_so(tmp_path: Path) -> None:
    with faulty_server({"quartz": Behaviour(), "basalt": Behaviour()}) as server:
        env = {"OPENAI_BASE_URL": server.url, "OPENAI_API_KEY": "sesame"}
        with running(tmp_path, "demo", "--port", "0", **env) as url:
            visitor = Served(url, "").visitor()
            with visitor:
                receipt = visitor.vote(visitor.play(), "tie").json()
        asked = {seen.headers["authorization"] for seen in server.requests}
    names = {receipt["models"][side]["name"] for side in "ab"}
    assert names == {"quartz (OpenAI)", "basalt (OpenAI)"}
    assert asked == {"Bearer sesame"}


def test_models_lists_a_roster_or_what_is_found(tmp_path: Path) -> None:
    told = run(tmp_path, "models", "--roster", roster(tmp_path), COLUMNS="200")
    assert re.search(r"\bx\b.*pocket://local/v1.*unigram", told.stdout)
    with faulty_server({"quartz": Behaviour()}) as server:
        told = run(tmp_path, "models", OPENAI_BASE_URL=server.url, COLUMNS="200")
    assert re.search(r"OpenAI/quartz .*quartz \(OpenAI\) .*http://127", told.stdout)
    gone = run(tmp_path, "models", OPENAI_BASE_URL=server.url, COLUMNS="200")
    assert gone.returncode == 0
    assert "No models were found at Ollama (http://127.0.0.1:11434/v1), " in gone.stdout
    assert server.url in gone.stdout


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


@pytest.fixture
def played(database_url: str, tmp_path: Path) -> Iterator[Served]:
    """An arena on either kind of database, with a vote and a skip."""
    with quick_arena(tmp_path, database=database_url) as served:
        with served.visitor() as ada:
            ada.vote(ada.play(), "model_a")
            ada.vote(ada.play(), "skip")
        yield served


def test_a_backup_of_a_running_arena_is_restored_and_served(
    tmp_path: Path, played: Served
) -> None:
    told = run(tmp_path, "backup", "--database", played.database, "--to", "b.db")
    assert re.fullmatch(
        r"b\.db: 18 rows, among them 2 votes, the newest with hash [0-9a-f]{16}\.\n", told.stdout
    )
    again = run(tmp_path, "restore", "b.db", "--database", "sqlite:///other.db")
    assert again.stdout == told.stdout.replace("b.db:", "b.db: restored")
    env = {"ARENA_ROSTER": roster(tmp_path), "ARENA_DATABASE": "sqlite:///other.db"}
    with running(tmp_path, "serve", "--port", "0", **env) as url:
        assert httpx.get(f"{url}/api/v1/leaderboard").json()["votes"] == 1
    refused(
        run(tmp_path, "restore", "b.db", "--database", "sqlite:///other.db"),
        "sqlite:///other.db is in use",
        "new database",
    )
    refused(
        run(tmp_path, "backup", "--database", played.database, "--to", "b.db"), "'b.db' exists"
    )


def test_what_cannot_be_backed_up_or_restored_is_one_clear_line(tmp_path: Path) -> None:
    refused(run(tmp_path, "backup", "--to", "b.db"), "no database 'arena.db'", "--database")
    refused(run(tmp_path, "restore", "b.db"), "'b.db'", "No such file")
    (tmp_path / "b.db").write_text("Dear diary" * 1000)
    refused(run(tmp_path, "restore", "b.db"), "'b.db'", "not a database")
    assert [path.name for path in tmp_path.iterdir()] == ["b.db"]


@pytest.mark.parametrize(
    ("terminal", "after_s", "shows"), [("1", 60, False), ("1", 0, True), ("0", 0, False)]
)
def test_a_long_task_shows_its_progress_on_a_terminal(
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    terminal: str,
    after_s: float,
    shows: bool,
) -> None:
    monkeypatch.setenv("TTY_COMPATIBLE", terminal)
    monkeypatch.setenv("TERM", "xterm")
    with progress_bar("Backing up", after_s) as told:
        told(1, 2)
    written = capsys.readouterr()
    assert written.out == ""
    assert ("Backing up" in written.err and "50%" in written.err) == shows
    assert bool(written.err) == shows


def test_an_export_says_how_much_it_wrote(tmp_path: Path, played: Served) -> None:
    told = run(tmp_path, "export", "votes", "--to", "v.csv", "--database", played.database)
    assert told.stdout == "v.csv: 1 of 2 logged votes, policy default-v1.\n"
    assert len((tmp_path / "v.csv").read_text().splitlines()) == 2
    refused(
        run(tmp_path, "export", "votes", "--to", "v.doc", "--database", played.database),
        "'v.doc'",
        ".parquet",
    )


def commands() -> list[list[str]]:
    return [
        ["serve"],
        ["demo"],
        ["models"],
        ["simulate"],
        ["models", "check"],
        ["export", "votes"],
        ["backup"],
        ["restore"],
        ["rate"],
        ["plan"],
    ]


@pytest.mark.parametrize("command", commands(), ids=" ".join)
def test_every_help_ends_in_two_examples(command: list[str]) -> None:
    told = CliRunner().invoke(cli, [*command, "--help"], env={"COLUMNS": "100"})
    assert told.exit_code == 0
    examples = told.output.split("Examples")[1]
    assert len(re.findall(r"^\s*arena " + " ".join(command), examples, re.MULTILINE)) == 2


def test_the_examples_of_export_backup_and_restore_run(tmp_path: Path) -> None:
    Store(f"sqlite:///{tmp_path}/arena.db").close()
    Store(f"sqlite:///{tmp_path}/arena-demo.db").close()
    for command in ("export votes", "backup", "restore"):
        told = run(tmp_path, *command.split(), "--help", COLUMNS="200")
        lines = re.findall(rf"^\s*(arena {command} .*?)\s*$", told.stdout, re.MULTILINE)
        assert len(lines) == 2
        for line in lines:
            assert run(tmp_path, *line.split()[1:]).returncode == 0, line


PAIRS = "model_a,model_b,n_model_a,n_model_b,n_tie\nx,y,30,10,4\ny,z,20,15,3\n"


def votes_file(folder: Path, text: str = PAIRS) -> str:
    path = folder / "votes.csv"
    path.write_text(text, encoding="utf-8")
    duckdb.read_csv(str(path)).write_parquet(str(folder / "votes.parquet"))
    return str(path)


def test_the_examples_of_rate_and_plan_run(tmp_path: Path) -> None:
    votes_file(tmp_path)
    for command in ("rate", "plan"):
        told = run(tmp_path, command, "--help", COLUMNS="200")
        lines = re.findall(rf"^\s*(arena {command} .*?)\s*$", told.stdout, re.MULTILINE)
        assert len(lines) == 2
        for line in lines:
            told = run(tmp_path, *line.split()[1:])
            assert (told.returncode, told.stderr) == (0, ""), line
    compared = run(tmp_path, "rate", "votes.csv", "--compare", "board.json")
    assert "Both boards are of the same votes" in compared.stdout
    assert json.loads((tmp_path / "board.json").read_text())["votes"]["used"] == 82


def test_a_board_on_the_terminal_says_what_it_is_of(tmp_path: Path) -> None:
    told = run(tmp_path, "rate", votes_file(tmp_path), COLUMNS="160")
    assert told.stdout.startswith("82 votes. Bradley-Terry, ties half a win for each side; 95 %")
    assert re.search(r"│ +1(–\d)? │ x +│ +1\d\d\d ± \d+ │ +\d+ to \d+ │ +44 │", told.stdout)
    assert "! Voters are not known" in told.stdout


@pytest.mark.parametrize(
    ("text", "words", "code", "said"),
    [
        (PAIRS, ["--ties", "win"], 2, ["ties", "'win'", "davidson"]),
        (PAIRS.replace("winner", "won"), ["--by", "topic"], 2, ["'topic'"]),
        (PAIRS.replace(",10,", ",ten,"), [], 2, ["ten"]),
        (PAIRS.replace("x,y,30,10,4", "x,y,30,0,0"), [], 3, ["identify no rating", "x"]),
        (PAIRS.replace("y,z", "w,z"), [], 3, ["identify no rating", "w, z"]),
        (PAIRS.splitlines()[0] + "\n", [], 2, ["No votes to count", "0 read"]),
    ],
    ids=["bad option", "no column", "bad count", "undefeated", "apart", "empty"],
)
def test_what_cannot_be_rated_is_one_line_and_an_exit_code(
    tmp_path: Path, text: str, words: list[str], code: int, said: list[str]
) -> None:
    told = run(tmp_path, "rate", votes_file(tmp_path, text), *words)
    assert (told.returncode, told.stdout) == (code, "")
    assert told.stderr.startswith("arena: ")
    assert told.stderr.count("\n") == 1, told.stderr
    assert [word for word in said if word not in told.stderr] == [], told.stderr
    assert run(tmp_path, "plan", "votes.csv", *words).returncode in (code, 2)


def test_a_rating_that_takes_long_shows_that_it_goes_on(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")
    with working("Rating", after_s=0.05) as told:
        told(1, 3)
        time.sleep(0.4)
    assert "Rating" in capfd.readouterr().err
    with working("Quick"):
        pass
    assert capfd.readouterr().err == ""
