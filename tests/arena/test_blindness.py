"""Before the vote, nothing that the server sends tells who answers."""

import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.faulty_server import Behaviour, Fault, faulty_server
from tests.serving import heard_text, page_of, serve

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
"""


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
    with (
        faulty_server({"xylophone-one": LOUD, "xylophone-two": broken}) as server,
        serve(
            database=f"sqlite:///{tmp_path}/arena.db", roster=roster(tmp_path, server.url)
        ) as served,
        served.visitor() as ada,
    ):
        battle_id = ada.open("Who are you?")
        ada.look(battle_id)
        ada.vote(battle_id, "model_a")
        ada.follow(battle_id)
        ada.look(battle_id)
        ada.post(f"/api/v1/battles/{battle_id}/stop")
        ada.get("/votes")
        ada.get(f"/?b={battle_id}")
        before = "".join(ada.received).casefold()
        voted = ada.vote(battle_id, "model_b")
    assert len(server.requests) == 2
    assert [word for word in SENTINELS if word in before] == []
    assert ("zanzibar" in voted.text.casefold()) == (broken is LOUD)


def test_no_byte_of_turns_attempts_and_retries_names_a_model(tmp_path: Path) -> None:
    with (
        faulty_server({"xylophone-one": LOUD, "xylophone-two": LOUD}) as server,
        serve(
            database=f"sqlite:///{tmp_path}/arena.db",
            roster=roster(tmp_path, server.url),
            characters_per_s=5000,
        ) as served,
        served.visitor() as ada,
    ):
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
    broken = replace(LOUD, status=401)
    third = ROSTER.split("[[models]]")[2].replace("quagmire-id", "ottoman-id")
    third = third.replace("Quagmire Mini", "Ottoman").replace("xylophone-two", "xylophone-three")
    with faulty_server({"xylophone-one": LOUD, "xylophone-two": LOUD}) as server:
        server.behaviours["xylophone-three"] = broken
        path = roster(tmp_path, server.url)
        path.write_text(path.read_text() + "[[models]]" + third.format(url=server.url))
        with (
            serve(
                database=f"sqlite:///{tmp_path}/arena.db", roster=path, characters_per_s=5000
            ) as served,
            served.visitor() as ada,
        ):
            for _ in range(8):
                ada.play("Who are you?")
            before = "".join(ada.received).casefold()
    assert any(seen.model == "xylophone-three" for seen in server.requests)
    assert [word for word in SENTINELS if word in before] == []


def test_swapping_the_models_changes_no_field_but_the_text(tmp_path: Path) -> None:
    other = replace(LOUD, text=TEXT.upper(), usage=(1, 1), headers={}, reasoning="")
    seen: dict[str, tuple[str, list[tuple[object, ...]]]] = {}
    with (
        faulty_server({"xylophone-one": LOUD, "xylophone-two": other}) as server,
        serve(
            database=f"sqlite:///{tmp_path}/arena.db",
            roster=roster(tmp_path, server.url),
            characters_per_s=5000,
        ) as served,
        served.visitor() as ada,
    ):
        for _ in range(30):
            battle_id = ada.open("Who are you?")
            events = ada.follow(battle_id)
            first = heard_text(events, "a")
            seen[first] = (masked(ada.look(battle_id)), [(h.event, *h.data) for h in events[-3:]])
            if len(seen) == 2:
                break
    assert set(seen) == {TEXT, TEXT.upper()}, "both orders came up"
    assert seen[TEXT] == seen[TEXT.upper()]


def test_a_fast_and_a_slow_model_are_released_alike(tmp_path: Path) -> None:
    slow = replace(LOUD, chunk_size=5, delay_s=0.01, first_token_s=0.3)
    with (
        faulty_server({"xylophone-one": LOUD, "xylophone-two": slow}) as server,
        serve(
            database=f"sqlite:///{tmp_path}/arena.db", roster=roster(tmp_path, server.url)
        ) as served,
        served.visitor() as ada,
    ):
        events = ada.follow(ada.open("Who are you?"))
    deltas = [h for h in events if h.event == "delta"]
    sides = [h.data["side"] for h in deltas]
    sizes = [len(h.data["text"]) for h in deltas]
    assert len(deltas) > 10
    assert sides == ["a", "b"] * (len(sides) // 2)
    assert sizes[::2] == sizes[1::2]
    assert [h.event for h in events[-3:]] == ["done", "done", "ready"]


def roster(folder: Path, url: str) -> Path:
    path = folder / "roster.toml"
    path.write_text(ROSTER.format(url=url), encoding="utf-8")
    return path


def masked(battle: dict[str, object]) -> str:
    """A battle as JSON, without what belongs to this one: its id, its time, its text."""
    text = json.dumps(battle | {"battle_id": "", "created": ""})
    return text.replace(TEXT, "").replace(TEXT.upper(), "")


def test_no_byte_of_the_page_s_own_stream_names_a_model(tmp_path: Path) -> None:
    with (
        faulty_server({"xylophone-one": LOUD, "xylophone-two": LOUD}) as server,
        page_of(tmp_path, roster(tmp_path, server.url), ARENA_CHARACTERS_PER_S="5000") as served,
        served.visitor() as ada,
    ):
        page = ada.get("/").text
        send = next(d for d in config_of(page)["dependencies"] if d["inputs"])
        data = ["Who are you?", *[""] * (len(send["inputs"]) - 1)]
        joined = {"data": data, "fn_index": send["id"], "session_hash": "s"}
        ada.post("/gradio_api/queue/join", json=joined)
        ada.get("/gradio_api/queue/data?session_hash=s")
        before = "".join(ada.received).casefold()
    assert "same answer in the same words" in before
    assert '\\"state\\": \\"ready\\"' in before
    assert [word for word in SENTINELS if word in before] == []


def config_of(page: str) -> dict[str, Any]:
    """Read the configuration that Gradio writes into its page."""
    found = re.search(r"window\.gradio_config = (\{.*?\});?\s*</script>", page, re.DOTALL)
    assert found
    config: dict[str, Any] = json.loads(found.group(1))
    return config
