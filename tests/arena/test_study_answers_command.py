"""`arena study create --models`: models answer the prompts, once, and people rate the answers."""

import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from arena.domain.vote import Voter
from arena.store import studies
from arena.store.store import Store
from tests.arena.benches import asked, in_journal
from tests.command import Command, json_lines, refused
from tests.faulty_server import Behaviour, FaultyServer, faulty_server, last_message
from tests.process import Process, until
from tests.sqlite import new_sqlite

MODELS = ("flint", "slate", "chert")
AT_ONCE = 4
PRICE = "price = { input = 3.0, output = 4.0, date = 2026-01-01 }"


def answering(name: str) -> Callable[[Mapping[str, Any]], Behaviour]:
    return lambda body: Behaviour(text=f"{name} says of {last_message(body)}")


@pytest.fixture
def server() -> Iterator[FaultyServer]:
    with faulty_server({name: answering(name) for name in MODELS}) as running:
        yield running


@pytest.fixture
def folder(tmp_path: Path, server: FaultyServer) -> Path:
    new_sqlite(tmp_path)
    roster = "\n".join(
        f'[[models]]\nid = "{name}"\nname = "{name.title()}"\nendpoint = "{server.url}"\n'
        f'model = "{name}"\n{PRICE}\n'
        for name in MODELS
    )
    (tmp_path / "roster.toml").write_text(roster, encoding="utf-8")
    return tmp_path


def prompts(folder: Path, n: int, **more: Any) -> None:
    rows = [{"id": f"q{k}", "prompt": f"Question {k}?"} | more for k in range(n)]
    json_lines(folder / "prompts.jsonl", rows)


def create(name: str, models: str, *more: str) -> tuple[str, ...]:
    given = ("--items", "prompts.jsonl", "--models", models, "--raters-per-item", "1")
    return ("study", "create", name, *given, "--roster", "roster.toml", *more)


def url(folder: Path) -> str:
    return f"sqlite:///{folder}/arena.db"


def shown(folder: Path, name: str) -> list[Mapping[str, str]]:
    """Give what a rater sees of the first item."""
    with closing(Store(url(folder))) as store, store.writing() as session:
        _, first = studies.give(session, name, Voter("ada"), datetime.now(UTC))
    assert first is not None
    return [one for answer in first.answers for one in answer]


def test_two_models_answer_and_are_compared_and_a_second_study_asks_nothing(
    command: Command, folder: Path, server: FaultyServer
) -> None:
    prompts(folder, 3)
    most = ("--max-tokens", "99")
    ran = command(*create("one", "flint,slate", *most))
    assert ran.returncode == 0, ran.stderr
    assert ran.stdout.startswith("6 new answers, 0 reused, $")
    assert "has 3 items with 1 rating each" in ran.stdout
    assert asked(server) == {"flint": 3, "slate": 3}
    assert {one["content"] for one in shown(folder, "one")} == {
        "flint says of Question 0?",
        "slate says of Question 0?",
    }
    again = command(*create("two", "flint,slate,chert", *most))
    assert {one.body["max_tokens"] for one in server.requests} == {99}
    assert again.stdout.startswith("3 new answers, 6 reused")
    assert len(shown(folder, "two")) == 3
    refused(command(*create("two", "flint,slate")), "There is a study 'two' already")
    assert asked(server) == dict.fromkeys(MODELS, 3)


def test_answers_that_failed_are_listed_and_are_no_items(
    command: Command, folder: Path, server: FaultyServer
) -> None:
    def refusing(body: Mapping[str, Any]) -> Behaviour:
        refuses = "Question 1" in last_message(body)
        return Behaviour(finish_reason="content_filter", text="") if refuses else good(body)

    good = answering("slate")
    server.behaviours["slate"] = refusing
    prompts(folder, 3)
    ran = command(*create("one", "flint,slate"))
    assert ran.returncode == 0, ran.stderr
    assert "No item: slate on 'q1': refusal" in ran.stderr
    assert "1 of 3 prompts give no item" in ran.stderr
    assert "has 2 items" in ran.stdout
    with closing(Store(url(folder))) as store, store.reading() as session:
        assert [name for name, _ in studies.items(session, "one")] == ["q0", "q2"]
    server.behaviours["slate"] = Behaviour(finish_reason="content_filter", text="")
    prompts(folder, 1, prompt="Something else?")
    refused(command(*create("none", "flint,slate")), "was answered by all of flint, slate")


def test_dialogues_are_answered_turn_by_turn(
    command: Command, folder: Path, server: FaultyServer
) -> None:
    row = {"question_id": 1, "turns": ["Hello?", "And in short?"]}
    (folder / "prompts.jsonl").write_text(json.dumps(row), encoding="utf-8")
    assert command(*create("talk", "flint,slate")).returncode == 0
    turns = [one["role"] for one in shown(folder, "talk")]
    assert turns == ["assistant", "user", "assistant"] * 2


def test_a_study_that_is_killed_while_models_answer_goes_on_and_pays_nothing_twice(
    command: Command, folder: Path, server: FaultyServer
) -> None:
    n = 30
    prompts(folder, n)
    words = create("live", "flint,slate")
    with Process(words, folder) as process:
        until(lambda: asked(server)["flint"] >= 12)
        server.behaviours["flint"] = Behaviour(silent=True)
        until(lambda: len(in_journal(folder)) >= 1)
        process.kill()
    server.behaviours["flint"] = answering("flint")
    with closing(Store(url(folder))) as store:
        assert store.read(studies.names) == []
    known, before = in_journal(folder), len(server.requests)
    ran = command(*words)
    assert ran.returncode == 0, ran.stderr
    again = [(one.model, last_message(one.body)) for one in server.requests[before:]]
    assert len(again) == len({*again}) == 2 * n - len(known)
    assert not {text for model, text in again if model == "flint"} & known
    assert f"{len(known):,} reused" in ran.stdout
    assert "has 30 items" in ran.stdout


def test_a_budget_stops_it_before_there_is_a_study(
    command: Command, folder: Path, server: FaultyServer
) -> None:
    prompts(folder, 20)
    ran = command(*create("dear", "flint,slate", "--budget", "0.00001"))
    assert ran.returncode == 1
    assert "Stopped: flint" in ran.stderr
    assert "No study was created" in ran.stderr
    with closing(Store(url(folder))) as store:
        assert store.read(studies.names) == []


@pytest.mark.parametrize(
    ("models", "more", "words"),
    [
        ("flint", (), "--models names 1 (flint): give 2 to 12"),
        ("flint,nobody", (), "there is no model 'nobody' in the roster"),
        ("flint,slate", ("--outputs", "prompts.jsonl"), "omit --outputs and --prompts"),
    ],
)
def test_what_cannot_be_answered_is_refused_before_anybody_is_asked(
    command: Command,
    folder: Path,
    server: FaultyServer,
    models: str,
    more: tuple[str, ...],
    words: str,
) -> None:
    prompts(folder, 1)
    refused(command(*create("s", models, *more)), words)
    assert server.requests == []
