"""Two replicas on one PostgreSQL behind a real nginx: any of them serves any battle."""

import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pytest

from tests.deploy.tools import needs_nginx
from tests.faulty_server import Behaviour, FaultyServer, faulty_server
from tests.process import Process
from tests.replicas import IN_TURN, follow, logged, replicas
from tests.serving import Visitor, parse_events, write_roster

pytestmark = needs_nginx

KEY = "0b8f3c1e-6c0e-4a36-9d2d-6a5f4f1f7a55"
WORK = (
    "judge", "work", "--method", "pairwise", "--judge", "pocket-judge", "--cases", "arena",
    "--format", "json",
)  # fmt: skip
PROMPTS = [f"What is {number}?" for number in range(8)]
TEXT = "So be it, and so on. " * 15
OTHER = "Let it be, say I so. " * 15
FAR = re.compile(r"id: (1\.1\.\d{3}\.\d{3}\.0)").fullmatch
"""A place in a stream at which both sides have a hundred characters and more."""
SLOW = Behaviour(text=TEXT, chunk_size=10, delay_s=0.05)
ALIKE = replace(SLOW, text=OTHER)


@pytest.fixture(scope="module")
def models() -> Iterator[FaultyServer]:
    with faulty_server({"x": SLOW, "y": ALIKE}) as server:
        yield server


def roster(folder: Path, models: FaultyServer) -> Path:
    return write_roster(folder / "roster.toml", models, *models.behaviours)


@pytest.mark.sampled(2)
@pytest.mark.parametrize("changes", [IN_TURN, {}], ids=["in turn", "by the cookie"])
def test_visitors_battle_on_two_replicas_however_they_are_chosen(
    url: str, models: FaultyServer, tmp_path: Path, changes: Mapping[str, str]
) -> None:
    def play(person: Visitor, prompt: str) -> str:
        with person:
            battle_id = person.open(prompt)
            reading = follow(person, battle_id)
            assert {reading.text("a"), reading.text("b")} == {TEXT, OTHER}
            assert reading.cuts == 0
            assert sum(one.event == "delta" for one in reading.events) > 10, "piece by piece"
            assert reading.events[-1].event == "ready"
            assert person.vote(battle_id, "tie").status_code == 200
        return battle_id

    with (
        replicas(tmp_path, url, roster(tmp_path, models), changes=dict(changes)) as served,
        ThreadPoolExecutor(8) as pool,
    ):
        battles = list(pool.map(play, [served.visitor() for _ in range(8)], PROMPTS))
        with Process([*WORK, "--database", url], tmp_path) as worker:
            judged = json.loads(worker.stdout.read())
    assert judged["by_status"] == {"read": 2 * len(battles)}, "a judge works beside them"
    assert sorted(logged(url).values("battle")) == sorted(battles)


def test_a_reader_goes_on_at_another_replica_and_may_stop_there(
    url: str, models: FaultyServer, tmp_path: Path
) -> None:
    with (
        replicas(tmp_path, url, roster(tmp_path, models)) as served,
        served.visitor(0) as here,
        served.visitor(1) as there,
        served.visitor(1) as page,
        ThreadPoolExecutor(1) as pool,
    ):
        battle_id = here.open()
        there.client.cookies = page.client.cookies = here.client.cookies
        with here.client.stream("GET", f"/api/v1/battles/{battle_id}/events") as stream:
            last = next(filter(None, map(FAR, stream.iter_lines())))[1]
        body = there.look(battle_id)["turns"][0]
        assert len(body["a"]["text"]) == len(body["b"]["text"]) >= 100
        html = pool.submit(page.get, f"/api/v1/battles/{battle_id}/events?html=1")
        events = there.follow(battle_id, last)
        more = [one.data for one in events if one.event == "delta"]
        rest = "".join(one["text"] for one in more if one["side"] == "a")
        whole = next(text for text in (TEXT, OTHER) if text.startswith(body["a"]["text"]))
        assert rest == whole[int(last.split(".")[2]) :], "nothing twice, and nothing missing"
        assert events[-1].id == f"1.1.{len(TEXT)}.{len(TEXT)}.4"
        rendered = parse_events(html.result().text)
        assert rendered[-1].id == events[-1].id
        blocks = str([one.data["blocks"] for one in rendered if one.event == "blocks"])
        assert f'<p dir="auto">{TEXT.strip()}</p>' in blocks
        assert f'<p dir="auto">{OTHER.strip()}</p>' in blocks
        assert "id-x" not in html.result().text + str(body)
        again = there.post(f"/api/v1/battles/{battle_id}/regenerate")
        assert again.status_code == 201, "the other replica runs it from here on"
        stopped = here.post(f"/api/v1/battles/{battle_id}/stop").json()
        assert stopped["state"] in ("ready", "stopped")


def test_a_replica_that_is_killed_interrupts_its_battles_alone_and_votes_count_once(
    url: str, models: FaultyServer, tmp_path: Path
) -> None:
    def read_and_vote(person: Visitor, battle_id: str) -> tuple[str, bool]:
        interrupted = follow(person, battle_id).events[-1].event == "failed"
        if interrupted:
            body = person.look(battle_id)
            assert body["state"] == "interrupted"
            assert "Nothing was counted" in body["message"]
            assert person.post(f"/api/v1/battles/{battle_id}/retry").status_code == 201
            assert follow(person, battle_id).events[-1].event == "ready"
        assert person.vote(battle_id, "model_b", KEY).status_code == 200
        assert person.vote(battle_id, "model_b", KEY).status_code == 200
        return battle_id, interrupted

    with (
        replicas(tmp_path, url, roster(tmp_path, models)) as served,
        ThreadPoolExecutor(6) as pool,
    ):
        people = [served.visitor() for _ in range(6)]
        models.flowing.clear()
        begun = [(person, person.open()) for person in people]
        ends = [pool.submit(read_and_vote, *one) for one in begun]
        served.processes[0].kill()
        models.flowing.set()
        results = [end.result() for end in ends]
    assert Counter(interrupted for _, interrupted in results) == {True: 3, False: 3}
    assert sorted(logged(url).values("battle")) == sorted(battle_id for battle_id, _ in results)
