"""Before the vote, nothing that the server sends tells who answers."""

import io
import json
import re
import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import replace
from datetime import UTC, datetime
from functools import cache, partial
from pathlib import Path
from tempfile import TemporaryDirectory

import httpx2
import pyarrow.parquet
import pytest

from arena.app import create_app
from arena.domain.vote import POLICIES
from arena.play.upkeep import label_self_naming, label_votes
from arena.settings import read_settings
from arena.store import kept_boards
from arena.store.engine import sqlite_file
from arena.store.store import Store
from arena.ui.battle_page import VERSION
from tests import serving
from tests.arena.api.test_who_may_ask import routes_of
from tests.arena.test_metrics import figures
from tests.faulty_server import Behaviour, Fault, FaultyServer, faulty_server
from tests.process import until
from tests.serving import Served, StreamEvent, Visitor, client_of, logging_to, serve, side_text
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
STREAMS = replace(LOUD, text=TEXT * 40, delay_s=0.05)
"""Writes for minutes: all is read while it does."""
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

Shown = tuple[int, str]
"""Status and body of an answer."""
PROMPTS = ("What does yield do in Python?", "Write a poem about the rain in autumn.")
KEY = "k" * 32
VOTES = 36
BOARDS = ("/leaderboard", "/leaderboard.json")
"""A vote changes them."""
MASKS = {
    r"\d{4}-\d\d-\d\d[T ][\d:.]+(Z|\+00:00)?": "when it was made, or read",
    r"\d{1,2} [A-Z][a-z]+( \d{4})?, \d\d:\d\d UTC": "the same in words",
    r"just now|\d+ minutes? ago": "how long ago that was",
    r"http://127\.0\.0\.1:\d+": "the port at which it was read",
}
"""What may differ between two readings of one page, and why it tells nothing of a battle."""

FIELDS = {
    "battle_id", "state", "turn", "created", "turns", "message", "vote", "models", "remarks",
    "prompt", "a", "b", "text", "status", "html",  # a turn
    "side", "blocks", "tail",  # an event
    "type", "title", "detail",  # a problem
}  # fmt: skip
"""All that JSON may hold before the vote: whoever adds to it says here that it is no hint."""
HEADERS = {
    "date", "server", "x-request-id", "set-cookie", "cache-control", "x-accel-buffering",
    "content-language", "vary",
    "content-type", "content-length", "transfer-encoding",
    "content-security-policy", "x-content-type-options", "referrer-policy",
    "x-arena-page",  # the version of the page, the same in every answer
}  # fmt: skip


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
        server.flowing.clear()
        battle_id = ada.open("Who are you?")
        ada.look(battle_id)
        assert ada.vote(battle_id, "model_a").status_code == 409
        server.flowing.set()
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
    ids = re.findall(r"^id: (\d+\.\d+)\.", before, re.MULTILINE)
    assert {*ids} == {"1.1"}, "that a model was replaced does not show in the ids of events"


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
    answers: list[httpx2.Response] = []
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
    assert {answer.headers.get("x-arena-page") for answer in answers} == {VERSION}
    fields = [field for answer in answers for field in fields_of(answer)]
    assert {name for name, _ in fields} == FIELDS
    assert {name for name, value in fields if isinstance(value, int | float)} == {"turn", "status"}


def fields_of(answer: httpx2.Response) -> Iterator[tuple[str, object]]:
    """Every field of a body of JSON, or of each event of a stream."""
    if not answer.headers["content-type"].startswith("text/event-stream"):
        yield from walk(answer.json())
        return
    for line in answer.text.splitlines():
        assert re.fullmatch(r"|: still here|data: .*|event: \w+|id: \d+(\.\d+){4}", line)
    for event in serving.parse_events(answer.text):
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
    port = serving.free_port()
    scraped: list[str] = []
    with blind(tmp_path, TWO_AND_A_BROKEN_ONE, characters_per_s=150, metrics_port=port) as (
        server,
        ada,
    ):
        battle_id = ""
        while not three_were_asked(server):
            battle_id = ada.open("Who are you?")
            assert figures(port)["arena_battles_running"] == 1
            scraped.append(httpx2.get(f"http://127.0.0.1:{port}/metrics").text)
            ada.follow(battle_id)
            ada.look(battle_id)
            scraped.append(httpx2.get(f"http://127.0.0.1:{port}/metrics").text)
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
        with logging_to(file, tmp_path, words, env) as url, Served(url, "").visitor() as ada:
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


@pytest.mark.sampled(2)
@pytest.mark.parametrize("new", [{"new": STREAMS}, {}], ids=["a new model", "equal models"])
def test_no_public_figure_changes_from_the_begin_of_a_battle_to_its_vote(
    tmp_path: Path, new: Mapping[str, Behaviour]
) -> None:
    with voted_arena(tmp_path, new) as (server, served, ada):
        before = public_figures(served, tmp_path / "before")
        server.behaviours |= dict.fromkeys(server.behaviours, STREAMS)
        battle_id = ada.open(PROMPTS[0])
        until(lambda: ada.look(battle_id)["state"] == "streaming")
        during = public_figures(served, tmp_path / "during")
        assert ada.post(f"/api/v1/battles/{battle_id}/stop").json()["state"] == "ready"
        after = public_figures(served, tmp_path / "after")
        assert ada.vote(battle_id, "tie").status_code == 200
        voted = public_figures(served, tmp_path / "voted", BOARDS)
    assert "Against price" in str(before["copy /value"])
    assert changed(before, during) == {}
    assert changed(before, after) == {}
    assert {address for address, shown in voted.items() if shown != before[address]} == {*voted}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("broken", "end"),
    [(BREAKS_IN_SIGHT, "failed"), (replace(LOUD, status=401), "ready")],
    ids=["in sight", "before its first word"],
)
def test_no_public_figure_tells_who_failed_in_a_battle_before_its_vote(
    tmp_path: Path, broken: Behaviour, end: str
) -> None:
    with voted_arena(tmp_path, {"new": broken}) as (server, served, ada):
        before = public_figures(served, tmp_path / "before")
        battle_id = ada.open(PROMPTS[0])
        assert ada.follow(battle_id)[-1].event == end
        assert "new" in {seen.model for seen in server.requests}
        after = public_figures(served, tmp_path / "after")
        if end == "failed":
            server.behaviours["new"] = LOUD
            ada.post(f"/api/v1/battles/{battle_id}/retry")
            ada.follow(battle_id)
        assert ada.vote(battle_id, "tie").status_code == 200
        voted = public_figures(served, tmp_path / "voted", BOARDS)
    assert changed(before, after) == {}
    assert {address for address, shown in voted.items() if shown != before[address]} == {*voted}


@contextmanager
def voted_arena(
    folder: Path, new: Mapping[str, Behaviour]
) -> Iterator[tuple[FaultyServer, Served, Visitor]]:
    """Serve three rated models that are alike, and a new one that every battle draws."""
    known = dict.fromkeys(("one", "two", "three"), replace(LOUD, usage=(10, 300)))
    settings: dict[str, object] = {"database": new_sqlite(folder), "secret_key": KEY, "page": True}
    settings |= {"characters_per_s": 50_000, "sampler": "weighted", "exploration": 1e-9}
    price = "price = { input = 3.0, output = 15.0, date = 2026-11-01 }\n\n"
    with faulty_server({**known, **new}) as server:
        roster = folder / "known.toml"
        serving.write_roster(roster, server, *known)
        tables = roster.read_text().replace("[[models]]", f"{price}[[models]]")
        roster.write_text(tables.removeprefix(price) + "\n" + price)
        with serve(roster=roster, **settings) as served:
            for n in range(VOTES):
                with served.visitor() as bob:
                    battle_id = bob.play(f"{PROMPTS[n % 2]} This is question {n}.")
                    bob.vote(battle_id, ("model_a", "model_b", "tie")[n % 3])
        with closing(Store(served.database)) as store:
            label_votes(store, lambda: datetime.now(UTC))
            label_self_naming(store, lambda: datetime.now(UTC))
        all_of_them = folder / "all.toml"
        added = serving.write_roster(folder / "new.toml", server, *new, weight=1e6).read_text()
        all_of_them.write_text(roster.read_text() + (f"{added}\n{price}" if new else ""))
        with serve(roster=all_of_them, **settings) as served, served.visitor() as ada:
            yield server, served, ada


def public_figures(served: Served, folder: Path, paths: Sequence[str] = ()) -> dict[str, Shown]:
    """Read all paths that anybody may read, or only some: of the arena, and of one on a copy.

    The arena makes its leaderboards again before; all that the other one shows is new.
    """
    folder.mkdir()
    file, moment = folder / "arena.db", datetime.now(UTC)
    with closing(Store(served.database)) as store:
        until(partial(is_made_again, store, moment))
        until(partial(shows_one_version, served))
        read = {f"live {address}": shown for address, shown in walked(served, paths).items()}
        original = sqlite_file(store.engine.url)
    with closing(sqlite3.connect(original)) as source, closing(sqlite3.connect(file)) as copy:
        source.backup(copy)
    with closing(Store(f"sqlite:///{file}")) as store, store.writing() as session:
        kept_boards.drop(session)
    with serve(database=f"sqlite:///{file}", secret_key=KEY, page=True) as other:
        return read | {f"copy {address}": shown for address, shown in walked(other, paths).items()}


def shows_one_version(served: Served) -> bool:
    """Tell whether the evaluation card is that of the board which is shown."""
    with served.visitor() as anybody:
        board = anybody.get("/api/v1/leaderboard").json()
        card = anybody.get("/api/v1/evaluation").json()
    return bool(board["ratings"] and card["interpretation"]["version"] == board["version"])


def is_made_again(store: Store, moment: datetime) -> bool:
    """Tell whether all leaderboards are of figures counted after a moment, or see to it."""
    boards = [store.read(kept_boards.read, policy.name, KEY.encode()) for policy in POLICIES]
    if any(one and (one.health_counted is None or one.health_counted < moment) for one in boards):
        with store.writing() as session:
            kept_boards.drop(session)
        return False
    return all(boards)


def walked(served: Served, paths: Sequence[str]) -> dict[str, Shown]:
    """Ask every address that can be read, as somebody new each time; gives what they show."""
    with client_of(served.url) as client:
        until(lambda: client.get("/api/v1/leaderboard").json()["record"] is not None)
        until(lambda: "being worked out" not in client.get("/value").text)
        until(lambda: client.get("/mix.json").status_code != 503)
        until(lambda: "being counted" not in client.get("/api/v1/evaluation").text)
        until(lambda: "being worked out" not in client.get("/leaderboard?category=code").text)
        *_, oldest = re.findall(r'href="/battles/([0-9a-f]{32})"', client.get("/battles").text)
        shown = {}
        for address in paths or addresses():
            address = re.sub(r"{\w+}", "x", address.replace("{battle_id}", oldest))
            client.cookies.clear()
            answer = client.get(address)
            assert answer.status_code < 500, address
            shown[address] = (answer.status_code, masked_body(answer))
    return shown


@cache
def addresses() -> list[str]:
    """Give the path of every route that can be read, and boards of other policies and labels."""
    with TemporaryDirectory() as folder:
        app = create_app(read_settings(database=new_sqlite(Path(folder)), page=True))
    paths = [route.removeprefix("GET ") for route in routes_of(app.routes) if "GET " in route]
    boards = [path for path in paths if path.startswith("/leaderboard") and path[-1] != "/"]
    more = [f"policy={policy.name}" for policy in POLICIES] + ["category=code"]
    return [*paths, *(f"{path}?{query}" for path in boards for query in more)]


def masked_body(answer: httpx2.Response) -> str:
    """Give what an answer shows, without what differs from one reading to the next."""
    text = answer.text
    if answer.headers.get("content-type", "").endswith("parquet"):
        text = str(pyarrow.parquet.read_table(io.BytesIO(answer.content)).to_pylist())
    for pattern in MASKS:
        text = re.sub(pattern, "", text)
    return text


def changed(before: Mapping[str, Shown], after: Mapping[str, Shown]) -> dict[str, Shown]:
    """Give what is shown where something else was shown before."""
    assert before.keys() == after.keys()
    assert len(before) > 100
    return {address: shown for address, shown in after.items() if shown != before[address]}


@contextmanager
def blind(
    folder: Path, behaviours: Mapping[str, Behaviour], **settings: object
) -> Iterator[tuple[FaultyServer, Visitor]]:
    """Serve models with telling names, two or three, and let somebody in."""
    models = roster_of_three if len(behaviours) == 3 else roster
    settings = {"database": new_sqlite(folder), "characters_per_s": 5000} | settings
    with (
        faulty_server(behaviours) as server,
        serve(roster=models(folder, server.url), **settings) as served,
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
