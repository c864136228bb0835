"""Posts to Gradio, past the page: a real arena refuses them in words, and none is a fault."""

import json
import logging
from collections.abc import Iterator
from typing import Any

import httpx
import pytest

from tests.arena.test_blindness import config_of
from tests.faulty_server import Behaviour, faulty_server
from tests.serving import Visitor, page_of, write_roster

JOIN = "/gradio_api/queue/join"
AS_JSON = {"content-type": "application/json"}
GOOD: dict[str, Any] = {"data": ["Hi", "", ""], "fn_index": 0, "session_hash": "s"}


@pytest.fixture(scope="module")
def visitor(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Visitor]:
    """Somebody who has loaded the page."""
    folder = tmp_path_factory.mktemp("page")
    with faulty_server({name: Behaviour(text=f"So says {name}.") for name in "xy"}) as server:
        roster = write_roster(folder / "roster.toml", server, "x", "y")
        with page_of(folder, roster) as served, served.visitor() as ada:
            send = next(d for d in config_of(ada.get("/").text)["dependencies"] if d["inputs"])
            assert (send["id"], len(send["inputs"])) == (GOOD["fn_index"], len(GOOD["data"]))
            yield ada


def detail(answer: httpx.Response, status: int) -> str:
    assert answer.status_code == status, answer.text
    assert answer.headers["content-type"] == "application/problem+json"
    return str(answer.json()["detail"])


@pytest.mark.parametrize(
    ("change", "named"),
    [
        ({"fn_index": 999}, "fn_index 999"),
        ({"fn_index": -1}, "fn_index -1"),
        ({"fn_index": 10**30}, "fn_index 1000000"),
        ({"fn_index": "999"}, "fn_index '999'"),
        ({"fn_index": True}, "fn_index True"),
        ({"fn_index": None}, "fn_index None"),
        ({"session_hash": None}, "session_hash None"),
        ({"session_hash": 5}, "session_hash 5"),
        ({"data": "\ud800"}, r"data '\ud800'"),
        ({"data": ["Hi"]}, "data ['Hi']"),
        ({"trigger_id": {}}, "trigger_id {}"),
    ],
)
def test_what_the_page_never_sends_is_named(
    visitor: Visitor, caplog: pytest.LogCaptureFixture, change: dict[str, Any], named: str
) -> None:
    message = detail(visitor.post(JOIN, content=json.dumps(GOOD | change), headers=AS_JSON), 422)
    assert message.startswith(f"The page never sends {named}")
    assert message.endswith(": load it again.")
    assert [record for record in caplog.records if record.levelno >= logging.ERROR] == []


@pytest.mark.parametrize(
    "body",
    [
        b"{",
        b"\xff",
        b"[" * 100_000,
        b'{"data": NaN}',
        b'{"data": 1e999}',
        b'{"fn_index": ' + b"9" * 5000 + b"}",
    ],
    ids=["broken", "not text", "deep", "not a number", "endless", "of 5,000 digits"],
)
def test_a_body_that_is_not_json_is_refused(visitor: Visitor, body: bytes) -> None:
    answer = visitor.post(JOIN, content=body, headers=AS_JSON)
    assert detail(answer, 422) == "The body is not JSON that can be read."


def test_a_list_has_none_of_what_the_page_sends(visitor: Visitor) -> None:
    assert "data None" in detail(visitor.post(JOIN, json=[1]), 422)


ABSENT = "The page does not ask this. Programs: /api/v1/battles."


@pytest.mark.parametrize("path", ["run/x", "api/predict", "call/x", "call/v2/x", "upload"])
def test_what_the_page_does_not_use_of_gradio_is_not_there(visitor: Visitor, path: str) -> None:
    assert detail(visitor.post(f"/gradio_api/{path}", json=GOOD), 404) == ABSENT


@pytest.mark.parametrize("path", ["heartbeat/x", "dev/reload", "call/v2/x/y", "info", "file=x"])
def test_little_of_gradio_can_be_read(visitor: Visitor, path: str) -> None:
    """Some of it would send signs of life for as long as somebody reads."""
    assert detail(visitor.get(f"/gradio_api/{path}"), 404) == ABSENT


def test_what_the_page_sends_is_answered(visitor: Visitor) -> None:
    joined = visitor.post(JOIN, json=GOOD | {"trigger_id": 5, "event_data": None})
    assert joined.status_code == 200
    updates = visitor.get("/gradio_api/queue/data?session_hash=s").text
    assert "So says" in updates
    assert '"success":true' in updates


@pytest.mark.parametrize("session", ["never-joined", ""])
def test_a_session_that_has_not_joined_is_told_so_without_a_fault(
    visitor: Visitor, caplog: pytest.LogCaptureFixture, session: str
) -> None:
    answer = visitor.get("/gradio_api/queue/data", params={"session_hash": session})
    assert answer.status_code == 200
    assert answer.headers["content-type"].startswith("text/event-stream")
    message = json.loads(answer.text.removeprefix("data: "))
    assert message["session_not_found"] is True
    assert [record for record in caplog.records if record.levelno >= logging.ERROR] == []
