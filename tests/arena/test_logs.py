"""What the process writes while people battle: enough for an operator, and nobody's words."""

import io
import json
import logging
import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from arena.domain.battle import BattleState, Notice
from arena.domain.vote import Choice, FailureClass
from arena.errors import StoreError
from arena.logs import log_notice, set_up
from tests.faulty_server import Behaviour, Fault, faulty_server
from tests.serving import Served, logging_to, write_roster

WELL = Behaviour(text="The secret word is vermilion. " * 5, reasoning="zanzibar thoughts")
BROKEN = replace(WELL, fault=Fault.ERROR, fault_after=60, error={"message": "quagmire overload"})


@pytest.fixture(autouse=True)
def logging_as_before() -> Iterator[None]:
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    yield
    root.handlers, root.level = handlers, level


def written(stream: io.StringIO) -> list[dict[str, Any]]:
    return [json.loads(line) for line in stream.getvalue().splitlines()]


@pytest.mark.parametrize("level", ["info", "debug"])
def test_no_word_key_cookie_or_address_is_logged(tmp_path: Path, level: str) -> None:
    env = {"ARENA_LOG_LEVEL": level, "ARENA_BATTLES_PER_VOTER_HOUR": "2"}
    env |= {"ARENA_SECRET_KEY": "xylophone-secret", "SOME_KEY": "ottoman-key"}
    env["ARENA_TRUSTED_PROXIES"] = "127.0.0.1"
    log = tmp_path / "log"
    with faulty_server({"well": WELL, "ill": BROKEN}) as server, log.open("w") as file:
        names, key = ("well", "ill", "well"), {"api_key_env": "SOME_KEY"}
        roster = write_roster(tmp_path / "r.toml", server, *names, **key)
        text = roster.read_text().replace("id-well", "id-also", 1).replace("Name well", "Also", 1)
        roster.write_text(text)
        words = ("serve", "--port", "0", "--roster", str(roster))
        with logging_to(file, tmp_path, words, env) as url:
            cookie = battle_of_all_sorts(url)
    logged = log.read_text()
    assert logged.count('"event": "Models asked"') == 2
    assert '"event": "Answers ended"' in logged
    secrets = "vermilion zanzibar quagmire xylophone ottoman sesame 203.0.113.9 127.0.0.1"
    assert [word for word in (*secrets.split(), cookie) if word in logged] == []


def battle_of_all_sorts(url: str) -> str:
    """Open, follow, vote, be refused, and send what cannot be read; gives the cookie."""
    with Served(url, "").visitor() as ada:
        ada.client.headers["X-Forwarded-For"] = "203.0.113.9"
        for _ in range(2):
            battle_id = ada.open("Open sesame")
            ada.follow(battle_id)
            ada.vote(battle_id, "tie")
        ada.post("/api/v1/battles", json={"prompt": "Open sesame"})
        ada.post("/api/v1/battles", json={"prompt": ["sesame"]})
        ada.post("/api/v1/battles", content=b'{"prompt": "sesame')
        ada.get("/sesame?sesame=sesame")
        return str(ada.client.cookies["arena_voter"])


def test_a_request_is_logged_with_id_template_status_and_battle(tmp_path: Path) -> None:
    log = tmp_path / "log"
    with faulty_server({"x": WELL, "y": WELL}) as server, log.open("w") as file:
        roster = write_roster(tmp_path / "r.toml", server, "x", "y")
        words = ("serve", "--port", "0", "--roster", str(roster))
        with logging_to(file, tmp_path, words, {}) as url, Served(url, "").visitor() as ada:
            battle_id = ada.open("Hi")
            request_id = ada.get(f"/api/v1/battles/{battle_id}").headers["x-request-id"]
    lines = [json.loads(line) for line in log.read_text().splitlines()]
    (looked,) = [line for line in lines if line.get("request_id") == request_id]
    assert looked["event"] == "Request"
    assert looked["route"] == "/api/v1/battles/{battle_id}"
    assert (looked["method"], looked["status"], looked["battle"]) == ("GET", 200, battle_id)
    assert 0 < looked["seconds"] < 5
    (opened,) = [line for line in lines if line["event"] == "Models asked"]
    (asked,) = [line for line in lines if line.get("route") == "/api/v1/battles"]
    assert opened["battle"] == battle_id
    assert opened["request_id"] == asked["request_id"]


def test_what_happens_in_a_battle_is_a_line_each() -> None:
    stream = io.StringIO()
    set_up("info", stream)
    log_notice(Notice("asked", "b1"))
    log_notice(Notice("ended", "b1", BattleState.FAILED, (FailureClass.TIMEOUT,), (0.2,)))
    log_notice(Notice("voted", "b2", choice=Choice.TIE))
    lines = [{k: v for k, v in line.items() if k != "timestamp"} for line in written(stream)]
    ended = {"event": "Answers ended", "battle": "b1", "state": "failed", "failures": ["timeout"]}
    voted = {"event": "Voted", "battle": "b2", "choice": "tie"}
    events = ({"event": "Models asked", "battle": "b1"}, ended, voted)
    assert lines == [{"level": "info", "logger": "arena.battles"} | event for event in events]


def test_an_exception_is_told_by_place_and_kind_and_quotes_only_ourselves() -> None:
    stream = io.StringIO()
    set_up("info", stream)
    try:
        try:
            int("a visitor's prompt")
        except ValueError as error:
            raise StoreError("The database failed: disk full.") from error
    except StoreError:
        logging.getLogger("x").exception("It ended")
    text = written(stream)[0]["exception"]
    assert "StoreError: The database failed: disk full." in text
    assert re.search(r"test_logs\.py:\d+ in test_an_exception", text)
    assert text.endswith("ValueError")
    assert "prompt" not in stream.getvalue()


def test_a_terminal_gets_lines_that_people_read() -> None:
    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    stream = Terminal()
    set_up("warning", stream)
    logging.getLogger("arena.app").warning("Mind the gap", extra={"battle": "b1"})
    logging.getLogger("arena.app").info("not this")
    (line,) = stream.getvalue().splitlines()
    assert "Mind the gap" in line
    assert not line.startswith("{")
