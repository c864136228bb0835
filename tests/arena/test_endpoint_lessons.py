"""What an endpoint refuses is kept in the database, for battles and for judges alike."""

import json
from collections.abc import Iterator, Mapping
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from arena.store import judgements
from arena.store.store import Store
from tests.command import Command, endpoint_roster
from tests.faulty_server import Behaviour, FaultyServer, faulty_server
from tests.provider_errors import REFUSALS, SPENT
from tests.serving import Served, served_by

TEXT = "All is well. " * 20
NAMES = ("zanzibar", "quagmire")


def without_options(body: Mapping[str, Any]) -> Behaviour:
    error = REFUSALS["fastapi"]
    refused = Behaviour(status=error.status, stream=error.text)
    return refused if "stream_options" in body else Behaviour(text=TEXT)


@pytest.fixture
def server() -> Iterator[FaultyServer]:
    with faulty_server(dict.fromkeys(NAMES, without_options)) as server:
        yield server


def known(served: Served) -> dict[str, list[str]]:
    with closing(Store(served.database)) as store:
        each = store.read(judgements.lessons, datetime.now(UTC))
    return {endpoint.split()[1]: [*names] for endpoint, names in each.items()}


def refused(server: FaultyServer) -> int:
    return sum("stream_options" in seen.body for seen in server.requests)


def test_a_battle_goes_on_at_once_and_another_process_is_not_refused_again(
    tmp_path: Path, server: FaultyServer
) -> None:
    with served_by(server, tmp_path) as served, served.visitor() as ada:
        battle_id = ada.play()
        assert {ada.look(battle_id)["turns"][0][side]["text"] for side in "ab"} == {TEXT}
        assert ada.vote(battle_id, "tie").status_code == 200
        ada.play()
        assert refused(server) == 2, "each model refuses once"
    assert known(served) == {name: ["stream_options"] for name in NAMES}
    with served_by(server, tmp_path) as served, served.visitor() as ada:
        ada.play()
    assert refused(server) == 2


def test_the_log_says_what_is_left_out_and_names_no_model_while_it_battles(
    tmp_path: Path, server: FaultyServer, caplog: pytest.LogCaptureFixture
) -> None:
    with served_by(server, tmp_path) as served, served.visitor() as ada:
        caplog.clear()
        ada.play()
        lines = [record.getMessage() for record in caplog.records]
    assert "An endpoint refuses stream_options: it is asked without from here on" in lines
    assert [line for line in lines for name in NAMES if name in line] == []
    caplog.clear()
    with caplog.at_level("INFO"), served_by(server, tmp_path):
        lines = [record.getMessage() for record in caplog.records]
    without = "is asked without stream_options: its endpoint refuses it"
    assert {f"Model 'id-{name}' {without}" for name in NAMES} <= {*lines}


def test_models_check_says_what_is_left_out_and_that_an_account_is_spent(
    command: Command, tmp_path: Path, server: FaultyServer
) -> None:
    error = SPENT["openai"]
    server.behaviours["poor"] = Behaviour(status=error.status, stream=error.text)
    endpoint_roster(tmp_path, server.url, *server.behaviours)
    ran = command("models", "check", "--roster", "roster.toml", COLUMNS="300")
    assert ran.returncode == 1
    assert ran.stdout.count("answered, without stream_options") == 2
    assert "no_credit: the account has no credit left: status 429, You exceeded" in ran.stdout


def test_a_judge_leaves_out_what_a_battle_has_learnt_and_its_batch_too(
    command: Command, tmp_path: Path
) -> None:
    error = REFUSALS["openai-temperature"]

    def judge(body: Mapping[str, Any]) -> Behaviour:
        refused = Behaviour(status=error.status, stream=error.text)
        return refused if "temperature" in body else Behaviour(text="[[A]]")

    row = {"prompt": "Why?", "response_a": "Yes.", "response_b": "No."}
    (tmp_path / "pairs.jsonl").write_text(json.dumps(row))
    database = f"sqlite:///{tmp_path / 'arena.db'}"
    with faulty_server({"wren": judge, "owl": Behaviour(text=TEXT)}) as server:
        cold = "decoding = { temperature = 0.0 }\n"
        endpoint_roster(tmp_path, server.url, "wren", "owl", more=cold)
        roster = (tmp_path / "roster.toml").rename(tmp_path / "judges.toml")
        with served_by(server, tmp_path, database=database, roster=roster) as served:
            served.visitor().play()
        assert known(served) == {"wren": ["temperature"]}
        before = len(server.requests)
        words = ("judge", "run", "--method", "pairwise", "--judge", "wren", "--cases")
        there = ("pairs.jsonl", "--roster", "judges.toml", "--database", database)
        command(*words, *there, "--batch", "write", "batch")
        (file,) = (tmp_path / "batch").iterdir()
        lines = [json.loads(line)["body"] for line in file.read_text().splitlines()]
        assert [line.get("temperature") for line in lines] == [None, None]
        ran = command(*words, *there, "--out", "out.jsonl", "--format", "json")
        assert json.loads(ran.stdout)["by_status"] == {"read": 2}
        judged = server.requests[before:]
        assert [one.body.get("temperature") for one in judged] == [None, None]
        warnings = " ".join(json.loads(ran.stdout)["warnings"])
        assert "The endpoint refuses temperature" in warnings


def test_a_lesson_holds_for_thirty_days(database_url: str) -> None:
    learnt = datetime(2026, 11, 1, tzinfo=UTC)
    with closing(Store(database_url)) as store:
        with store.writing() as session:
            judgements.keep_lesson(session, "https://h/v1 m", "seed", "no", learnt)
            judgements.keep_lesson(session, "https://h/v1 m", "seed", "never", learnt)
        for days, holds in ((0, True), (29, True), (30, False)):
            lessons = {"seed": "never"} if holds else {}
            now = learnt + timedelta(days=days)
            assert store.read(judgements.lessons_of, "https://h/v1 m", now) == lessons
        assert store.read(judgements.lessons_of, "https://h/v1 other", learnt) == {}
