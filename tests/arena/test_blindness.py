"""Before the vote, nothing that the server sends tells who answers."""

import json
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import httpx
import pytest

from tests.arena.test_metrics import figures
from tests.faulty_server import Behaviour, Fault, FaultyServer, faulty_server
from tests.serving import (
    Served,
    StreamEvent,
    Visitor,
    free_port,
    logging_to,
    parse_events,
    serve,
    side_text,
)
from tests.sqlite import new_sqlite

TEXT = "The same answer in the same words, at some length. " * 12
SENTINELS = ("zanzibar", "quagmire", "xylophone", "918273", "645546", "vermilion", "ottoman")
LOUD = Behaviour(
    text=TEXT,
    usage=(918273, 645546),
    request_id="vermilion-request",
    headers={"x-request-id": "vermilion-header", "x-model": "ottoman", "server": "ottoman"},
    reasoning="vermilion thoughts",
    error={"message": "vermilion overload", "code": "ottoman"},
)
BREAKS_IN_SIGHT = replace(LOUD, fault=Fault.ERROR, fault_after=200, delay_s=0.02)
TWO_AND_A_BROKEN_ONE = {
    "xylophone-one": LOUD,
    "xylophone-two": LOUD,
    "xylophone-three": replace(LOUD, status=401),
}
ROSTER = """
[[models]]
id = "zanzibar-id"
name = "Zanzibar Large"
organisation = "Quagmire Labs"
endpoint = "{url}"
model = "xylophone-one"
system_prompt = "You are Zanzibar by Quagmire."
price = {{ input = 918273.0, output = 645546.0, date = 2026-01-01 }}

[[models]]
id = "quagmire-id"
name = "Quagmire Mini"
organisation = "Zanzibar Inc"
endpoint = "{url}"
model = "xylophone-two"
kind = "system"
licence = "vermilion"
contamination_report = "https://vermilion.example/xylophone"
"""

FIELDS = {
    *("battle_id", "state", "turn", "created", "turns", "message", "vote", "models", "remarks"),
    *("prompt", "a", "b", "text", "status", "html"),  # a turn
    *("side", "blocks", "tail"),  # an event
    *("type", "title", "detail"),  # a problem
}
"""All that JSON may hold before the vote: whoever adds to it says here that it is no hint."""
HEADERS = {
    *("date", "server", "x-request-id", "set-cookie", "cache-control", "x-accel-buffering"),
    *("content-language", "vary"),
    *("content-type", "content-length", "transfer-encoding"),
    *("content-security-policy", "x-content-type-options", "referrer-policy"),
}


@pytest.mark.parametrize(
    "broken",
    [
        LOUD,
        replace(LOUD, status=429, headers={"retry-after": "918273", "x-model": "ottoman"}),
        replace(LOUD, status=401),
        replace(LOUD, fault=Fault.ERROR, fault_after=40),
        replace(LOUD, fault=Fault.DROP, fault_after=40),
        replace(LOUD, fault=Fault.MALFORMED, fault_after=40),
        replace(LOUD, text=""),
    ],
    ids=["well", "429", "401", "error", "drop", "malformed", "empty"],
)
def test_no_byte_before_the_vote_names_a_model(tmp_path: Path, broken: Behaviour) -> None:
    with blind(tmp_path, {"xylophone-one": LOUD, "xylophone-two": broken}) as (server, ada):
        battle_id = ada.open("Who are you?")
        ada.look(battle_id)
        ada.vote(battle_id, "model_a")
        rendered = ada.get(f"/api/v1/battles/{battle_id}/events?html=1").text
        ada.follow(battle_id)
        ada.look(battle_id)
        ada.get(f"/api/v1/battles/{battle_id}?html=1")
        ada.post(f"/api/v1/battles/{battle_id}/stop")
        ada.get("/votes")
        ada.get(f"/?b={battle_id}")
        before = "".join(ada.received).casefold()
        voted = ada.vote(battle_id, "model_b")
    assert len(server.requests) == 2
    assert ("<p" in rendered) == (broken is LOUD)
    assert [word for word in SENTINELS if word in before] == []
    assert ("zanzibar" in voted.text.casefold()) == (broken is LOUD)


def test_no_byte_of_turns_attempts_and_retries_names_a_model(tmp_path: Path) -> None:
    with blind(tmp_path, {"xylophone-one": LOUD, "xylophone-two": LOUD}) as (server, ada):
        battle_id = ada.play("Who are you?")
        ada.post(f"/api/v1/battles/{battle_id}/regenerate")
        ada.follow(battle_id)
        server.behaviours["xylophone-two"] = replace(LOUD, fault=Fault.ERROR, fault_after=40)
        ada.post(f"/api/v1/battles/{battle_id}/turns", json={"prompt": "And your maker?"})
        ada.follow(battle_id)
        ada.look(battle_id)
        server.behaviours["xylophone-two"] = LOUD
        ada.post(f"/api/v1/battles/{battle_id}/retry")
        ada.follow(battle_id)
        ada.look(battle_id)
        ada.post(f"/api/v1/battles/{battle_id}/continue", json={"prompt": "More?"})
        before = "".join(ada.received).casefold()
        revealed = ada.vote(battle_id, "tie").text.casefold()
    assert [word for word in SENTINELS if word in before] == []
    assert "zanzibar large" in revealed


def test_a_repicked_side_tells_nothing(tmp_path: Path) -> None:
    with blind(tmp_path, TWO_AND_A_BROKEN_ONE) as (server, ada):
        for _ in range(8):
            ada.play("Who are you?")
        before = "".join(ada.received).casefold()
    assert three_were_asked(server)
    assert [word for word in SENTINELS if word in before] == []


def test_swapping_the_models_changes_no_field_but_the_text(tmp_path: Path) -> None:
    other = replace(LOUD, text=TEXT.upper(), usage=(1, 1), headers={}, reasoning="")
    seen: dict[str, tuple[str, list[tuple[object, ...]]]] = {}
    with blind(tmp_path, {"xylophone-one": LOUD, "xylophone-two": other}) as (_server, ada):
        for _ in range(30):
            battle_id = ada.open("Who are you?")
            events = ada.follow(battle_id)
            first = side_text(events, "a")
            seen[first] = (masked(ada.look(battle_id)), [(h.event, *h.data) for h in events[-3:]])
            if len(seen) == 2:
                break
    assert set(seen) == {TEXT, TEXT.upper()}, "both orders came up"
    assert seen[TEXT] == seen[TEXT.upper()]


def test_a_fast_and_a_slow_model_are_released_alike(tmp_path: Path) -> None:
    slow = replace(LOUD, text=TEXT.upper(), chunk_size=5, delay_s=0.01, first_token_s=0.4)
    by_text: dict[str, list[StreamEvent]] = {}
    with blind(
        tmp_path, {"xylophone-one": LOUD, "xylophone-two": slow}, characters_per_s=2000
    ) as (_server, ada):
        for _ in range(30):
            events = ada.follow(ada.open("Who are you?"))
            by_text[side_text(events, "a")] = events
            if len(by_text) == 2:
                break
    assert set(by_text) == {TEXT, TEXT.upper()}, "the slow model stood on either side"
    for events in by_text.values():
        are_released_alike(events)


def are_released_alike(events: list[StreamEvent]) -> None:
    """Both sides move in turn by the same number of characters, and end together."""
    deltas = [h for h in events if h.event == "delta"]
    sides = [h.data["side"] for h in deltas]
    sizes = [len(h.data["text"]) for h in deltas]
    assert len(deltas) > 10
    assert sides == ["a", "b"] * (len(sides) // 2)
    assert sizes[::2] == sizes[1::2]
    assert [h.event for h in events[-3:]] == ["done", "done", "ready"]


def test_no_field_or_header_before_the_vote_is_a_time_a_count_or_a_cost(tmp_path: Path) -> None:
    answers: list[httpx.Response] = []
    late = replace(LOUD, first_token_s=1.0)
    with blind(tmp_path, {"xylophone-one": LOUD, "xylophone-two": late}) as (server, ada):
        ada.client.event_hooks["response"].append(answers.append)
        battle_id = ada.open("Who are you?")
        path = f"/api/v1/battles/{battle_id}"
        ada.look(battle_id)
        assert ada.vote(battle_id, "model_a").status_code == 409
        ada.get(f"{path}/events?html=1")
        ada.follow(battle_id)
        ada.get(f"{path}?html=1")
        server.behaviours["xylophone-two"] = LOUD
        ada.post(f"{path}/turns", json={"prompt": "And your maker?"})
        ada.follow(battle_id)
        ada.post(f"{path}/regenerate")
        ada.follow(battle_id)
        server.behaviours["xylophone-two"] = replace(LOUD, status=401)
        ada.post(f"{path}/turns", json={"prompt": "And theirs?"})
        ada.follow(battle_id)
        ada.look(battle_id)
        ada.post(f"{path}/stop")
    assert {name for answer in answers for name in answer.headers} <= HEADERS
    fields = [field for answer in answers for field in fields_of(answer)]
    assert {name for name, _ in fields} == FIELDS
    assert {name for name, value in fields if isinstance(value, int | float)} == {"turn", "status"}


def fields_of(answer: httpx.Response) -> Iterator[tuple[str, object]]:
    """Every field of a body of JSON, or of each event of a stream."""
    if not answer.headers["content-type"].startswith("text/event-stream"):
        yield from walk(answer.json())
        return
    for line in answer.text.splitlines():
        assert re.fullmatch(r"|: still here|data: .*|event: \w+|id: \d+(\.\d+){4}", line)
    for event in parse_events(answer.text):
        yield from walk(event.data)


def walk(value: object) -> Iterator[tuple[str, object]]:
    if isinstance(value, list):
        for item in value:
            yield from walk(item)
    if isinstance(value, dict):
        for name, inside in value.items():
            yield name, inside
            yield from walk(inside)


def test_the_figures_tell_nothing_of_who_answers_before_the_vote(tmp_path: Path) -> None:
    port = free_port()
    scraped: list[str] = []
    with blind(tmp_path, TWO_AND_A_BROKEN_ONE, characters_per_s=150, metrics_port=port) as (
        server,
        ada,
    ):
        battle_id = ""
        while not three_were_asked(server):
            battle_id = ada.open("Who are you?")
            assert figures(port)["arena_battles_running"] == 1
            scraped.append(httpx.get(f"http://127.0.0.1:{port}/metrics").text)
            ada.follow(battle_id)
            ada.look(battle_id)
            scraped.append(httpx.get(f"http://127.0.0.1:{port}/metrics").text)
            assert len(scraped) < 60, "the broken model was never drawn"
    metrics = "".join(scraped)
    assert 'arena_answer_failures_total{class="auth"} 1.0' in metrics
    assert [word for word in (*SENTINELS, battle_id) if word in metrics.casefold()] == []
    assert set(re.findall(r'[{,](\w+)="', metrics)) == {"state", "class", "route", "status", "le"}


def test_no_line_of_the_log_before_the_vote_puts_a_model_to_a_battle(tmp_path: Path) -> None:
    log = tmp_path / "log"
    env = {"ARENA_LOG_LEVEL": "debug", "ARENA_CHARACTERS_PER_S": "5000"}
    with faulty_server(TWO_AND_A_BROKEN_ONE) as server, log.open("w") as file:
        path = roster_of_three(tmp_path, server.url)
        words = ("serve", "--port", "0", "--roster", str(path))
        with (
            logging_to(file, tmp_path, words, env) as url,
            Served(url, "").visitor() as ada,
        ):
            played = (ada.play("Who are you?") for _ in range(30))
            battle_id = next(each for each in played if three_were_asked(server))
            server.behaviours |= dict.fromkeys(server.behaviours, BREAKS_IN_SIGHT)
            ada.post(f"/api/v1/battles/{battle_id}/turns", json={"prompt": "And theirs?"})
            ada.follow(battle_id)
    text = log.read_text()
    lines = [json.loads(line) for line in text.splitlines()]
    events = [line["event"] for line in lines if line.get("battle") == battle_id]
    assert {"Models asked", "Answer replaced", "Answers ended"} <= set(events)
    assert [word for word in SENTINELS if word in text.casefold()] == []
    assert {"side", "model", "a", "b"}.isdisjoint(name for line in lines for name in line)


@contextmanager
def blind(
    folder: Path, behaviours: Mapping[str, Behaviour], **settings: object
) -> Iterator[tuple[FaultyServer, Visitor]]:
    """Serve models with telling names, two or three, and let somebody in."""
    models = roster_of_three if len(behaviours) == 3 else roster
    with (
        faulty_server(behaviours) as server,
        serve(
            database=new_sqlite(folder),
            roster=models(folder, server.url),
            **{"characters_per_s": 5000} | settings,
        ) as served,
        served.visitor() as ada,
    ):
        yield server, ada


def roster(folder: Path, url: str) -> Path:
    path = folder / "roster.toml"
    path.write_text(ROSTER.format(url=url), encoding="utf-8")
    return path


def three_were_asked(server: FaultyServer) -> bool:
    return len({seen.model for seen in server.requests}) == 3


def roster_of_three(folder: Path, url: str) -> Path:
    third = ROSTER.split("[[models]]")[2].replace("quagmire-id", "ottoman-id")
    third = third.replace("Quagmire Mini", "Ottoman").replace("xylophone-two", "xylophone-three")
    path = roster(folder, url)
    path.write_text(path.read_text() + "[[models]]" + third.format(url=url))
    return path


def masked(battle: dict[str, object]) -> str:
    """A battle as JSON, without what belongs to this one: its id, its time, its text."""
    text = json.dumps(battle | {"battle_id": "", "created": ""})
    return text.replace(TEXT, "").replace(TEXT.upper(), "")
