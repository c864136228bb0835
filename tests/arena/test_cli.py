"""The command as a person runs it: its words, its exit codes, and the arena that it starts."""

import re
import socket
import time
from dataclasses import replace
from pathlib import Path

import httpx2
import pytest
from sqlalchemy.engine import make_url

from arena import cli
from arena.commands.serve import _described, _shown
from arena.domain.model import Model
from arena.domain.room_view import Trial
from arena.endpoints.offline import POCKET_MODELS
from arena.store.engine import newest, opened
from arena.store.store import Store
from arena.terminal import working
from rating import __version__
from tests.command import GOOD, Command, examples, refused, roster, run
from tests.faulty_server import Behaviour, faulty_server
from tests.serving import Served, running, write_roster
from tests.sqlite import bring_to_revision, new_sqlite


def test_the_version_is_that_of_the_package(command: Command) -> None:
    assert command("--version").stdout == f"arena {__version__}\n"


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("[[models]\n", ["roster.toml", "not TOML"]),
        (GOOD + "colour = 'red'\n", ["unknown key 'colour'", "'red'"]),
        (GOOD.replace('"y"', '"x"'), ["'id'", "'x' twice"]),
        (GOOD + "api_key_env = 'NO_SUCH_KEY'\n", ["'NO_SUCH_KEY'", "ARENA_KEYS"]),
        (
            "[[models]]\nid='r'\nname='R'\nendpoint='recorded://f'\nrecording='gone.json'\n"
            + GOOD,
            ["gone.json", "no such file"],
        ),
    ],
    ids=["bad TOML", "unknown key", "duplicate id", "missing variable", "missing recording"],
)
def test_a_bad_roster_is_one_clear_line(
    command: Command, tmp_path: Path, text: str, words: list[str]
) -> None:
    refused(command("serve", "--port", "0", "--roster", roster(tmp_path, text)), *words)


def test_a_person_sees_the_same_line_and_exit_code_two(tmp_path: Path) -> None:
    refused(run(tmp_path, "rate", "gone.csv"), "'gone.csv'", "no such file")


def test_a_port_in_use_is_one_clear_line(command: Command, tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        refused(command("demo", "--toys", "--port", port), port, "in use", "--port")
    assert not (tmp_path / "arena-demo.db").exists()


def test_a_read_only_database_is_one_clear_line(command: Command, tmp_path: Path) -> None:
    new_sqlite(tmp_path)
    url = f"sqlite:///file:{tmp_path}/arena.db?mode=ro&uri=true"
    refused(command("serve", "--port", "0", "--database", url), "readonly database")


def test_an_older_database_is_migrated_and_nothing_else(command: Command, tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/old.db"
    bring_to_revision(url, "0017")
    refused(command("verify", url), "schema '0017'", "Start this version's arena on it once")
    for _ in range(2):
        done = command("migrate", "--database", url)
        assert (done.returncode, done.stdout) == (0, f"{url} has schema {newest()}.\n")
    assert command("verify", url).returncode == 0


def test_a_database_from_before_0_1_0_is_one_clear_line(
    command: Command, database_url: str, tmp_path: Path
) -> None:
    at = ("--database", database_url)
    assert command("backup", "--to", "old.db", *at).returncode == 0
    for url in (database_url, f"sqlite:///{tmp_path}/old.db"):
        with opened(url) as engine, engine.begin() as connection:
            connection.exec_driver_sql("UPDATE alembic_version SET version_num = '0004'")
    for words in (
        ("serve", "--port", "0", *at),
        ("migrate", *at),
        ("backup", "--to", "b.db", *at),
        ("export", "votes", "--to", "v.csv", *at),
        ("people", "list", *at),
        ("verify", database_url),
        ("verify", "old.db"),
        ("rate", database_url),
        ("restore", "old.db", "--database", "sqlite:///new.db"),
    ):
        name = "'old.db'" if "old.db" in words else make_url(database_url).render_as_string()
        advice = "Start arena 0.1.0 on it once (arena migrate is enough), and then this version."
        refused(command(*words), name, "has schema '0004'", advice)
    assert not (tmp_path / "new.db").exists()


def test_a_newer_schema_is_one_clear_line(command: Command, database_url: str) -> None:
    store = Store(database_url)
    with store.writing() as session:
        session.connection().exec_driver_sql("UPDATE alembic_version SET version_num = '9999'")
    store.close()
    result = command("serve", "--port", "0", "--database", database_url)
    refused(result, "'9999'", "newer arena")


def test_a_database_that_does_not_answer_is_one_clear_line(command: Command) -> None:
    url = "postgresql://ada:sesame@127.0.0.1:1/arena?password=sesame"
    result = command("serve", "--port", "0", "--database", url)
    refused(result, "Connection refused")
    for done in (result, command("rate", url, url), command("rank", url)):
        refused(done, "ada:***@127.0.0.1:1/arena?password=***")
        assert "sesame" not in done.stderr


def test_a_bad_setting_is_one_clear_line(command: Command) -> None:
    refused(command("serve", ARENA_PORT="lots"), "ARENA_PORT", "'lots'")


def test_the_demo_plays_without_key_or_network_and_keeps_its_votes(
    command: Command, tmp_path: Path
) -> None:
    with running(tmp_path, "demo", "--toys", "--port", "0", ARENA_CHARACTERS_PER_S="9000") as url:
        visitor = Served(url, "").visitor()
        with visitor:
            receipt = visitor.vote(visitor.play(), "tie").json()
            assert "toy" in receipt["models"]["a"]["name"]
    result = command("export", "votes", "--to", "v.csv", "--database", "sqlite:///arena-demo.db")
    assert result.stdout.startswith("v.csv: 1 of 1 logged votes")


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


def test_a_demo_says_what_battles_and_whether_it_may_cost_money() -> None:
    assert _described(POCKET_MODELS).startswith("The models are embedded toys")
    free = tuple(Model(id=m, name=m.title(), endpoint="http://x/v1", model=m) for m in ("a", "b"))
    paid = (replace(free[0], api_key_env="OPENAI_API_KEY"), free[1])
    hits, cost = "2 models were found: A, B.", " Those behind OPENAI_API_KEY may cost money."
    for models, words in ((free, hits), (paid, hits + cost)):
        assert _described(models) == f"{words} For the toy models add --toys."


def test_models_lists_a_roster_or_what_is_found(command: Command, tmp_path: Path) -> None:
    result = command("models", "--roster", roster(tmp_path), COLUMNS="200")
    assert re.search(r"\bx\b.*pocket://local/v1.*unigram", result.stdout)
    with faulty_server({"quartz": Behaviour()}) as server:
        result = command("models", OPENAI_BASE_URL=server.url, COLUMNS="200")
    assert re.search(r"OpenAI/quartz .*quartz \(OpenAI\) .*http://127", result.stdout)
    gone = command("models", OPENAI_BASE_URL=server.url, COLUMNS="200")
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
        assert httpx2.get(f"{url}/health/ready").status_code == 200
    assert (tmp_path / "elsewhere.db").exists()


def test_a_check_prints_what_answers_and_what_failed(tmp_path: Path) -> None:
    behaviours = {
        "well": Behaviour(),
        "ill": Behaviour(status=401, error={"message": "no such key"}),
    }
    with faulty_server(behaviours) as server:
        path = write_roster(tmp_path / "roster.toml", server, "well", "ill")
        result = run(tmp_path, "models", "check", "--roster", str(path), COLUMNS="200")
    assert result.returncode == 1
    assert re.search(r"id-well.* s .*answered", result.stdout)
    assert re.search(r"id-ill.*auth: .*401, no such key", result.stdout)
    whole = Trial(2.0, 0.5, without=("seed",))
    assert _shown(whole) == ("0.50 s", "2.00 s", "answered, without seed")


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
    written = ""
    with working("Backing up", after_s) as result:
        result(1, 2, ", 3 unparsed")
        deadline = time.monotonic() + 60
        while shows and "50%" not in written and time.monotonic() < deadline:
            written += capsys.readouterr().err
            time.sleep(0.01)
    rest = capsys.readouterr()
    assert rest.out == ""
    assert ("Backing up, 3 unparsed" in written and "50%" in written) == shows
    assert bool(written + rest.err) == shows


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["serv"], 'Unknown command "serv". Did you mean "serve"?'),
        (["rate"], "SOURCE requires an argument"),
        (["study", "judge", "a.csv", "b.csv", "c.csv"], "c.csv"),
        (["rate", "a.csv", "--colour", "red"], "Unknown option: --colour"),
        (["rate", "a.csv", "--out"], "--out requires an argument"),
        (["simulate", "--votes", "0"], 'Invalid value "0" for --votes'),
        (["serve", "--port", "80.5"], "'80.5' is no integer"),
        (["judge", "run", "--method", "pairwise"], "--cases requires an argument"),
        (["plan", "a.csv", "--style", "length"], "Unknown option: --style"),
    ],
)
def test_a_line_that_cannot_be_read_is_one_clear_line(
    command: Command, words: list[str], message: str
) -> None:
    refused(command(*words), message)


def test_of_an_option_that_is_given_twice_the_last_word_counts(command: Command) -> None:
    refused(command("rate", "gone.csv", "--level", "2", "--level", "3"), "not 3.0")


@pytest.mark.parametrize("group", [[], ["export"], ["judge"], ["study"], ["probe"]])
def test_a_group_alone_shows_its_commands_and_ends_in_exit_code_two(
    command: Command, group: list[str]
) -> None:
    alone, asked = command(*group), command(*group, "--help")
    assert (alone.returncode, asked.returncode) == (2, 0)
    assert alone.stdout == asked.stdout
    assert "Commands" in alone.stdout


def test_ctrl_c_while_a_command_is_loaded_ends_it_without_a_traceback(
    command: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(words: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(cli, "application", interrupted)
    done = command("rate", "votes.csv")
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "")


COMMANDS = (
    "serve", "demo", "models", "simulate", "models check",
    "export votes", "export battles", "export answers", "export models", "export ratings",
    "backup", "restore", "rate", "mix", "value", "plan",
    "voters",
    "label", "overlap", "probe duplicates", "safety",
    "attack", "exclude", "readmit", "probe names", "probe words",
    "judge score", "judge run", "judge work", "judge probe", "study judge", "study scores",
    "study truth", "study raters",
    "cold-start", "race", "rank",
    "probe similarity", "probe judge", "probe board", "probe blindness",
)  # fmt: skip


def test_every_help_ends_in_two_examples(command: Command) -> None:
    assert {name: len(examples(name)) for name in COMMANDS} == dict.fromkeys(COMMANDS, 2)
    end = command("rate", "--help", COLUMNS="200").stdout.split("Examples")[1]
    assert [" ".join(words) for words in examples("rate")] == re.findall(
        r"arena (.+?) *$", end, re.M
    )


@pytest.mark.parametrize("number", ["inf", "-inf", "nan", "1e999"])
@pytest.mark.parametrize(
    "line",
    [
        "race samples --between a,b --level=",
        "sources add shop --share=",
        "bench bench.toml --budget=",
        "study create s --items x --raters-per-item 1 --until=",
        "rate samples --anchor=basalt=",
        "mix samples --mix=coding=",
        "models weight basalt -- ",
    ],
)
def test_no_option_takes_a_number_that_is_not_finite(
    command: Command, line: str, number: str
) -> None:
    refused(command(*f"{line}{number}".split()), number)


STAY = ("rate newcomer", "export battles --licence MIT")


@pytest.mark.parametrize("line", ["newcomer", "judge watch", "gate --licence=a.toml", *STAY])
def test_names_of_the_release_before_work_and_warn(command: Command, line: str) -> None:
    shown = command(*line.split(), "--help")
    assert ("one more release" in shown.stderr) is (line not in STAY)
