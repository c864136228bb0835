"""kill -9 while an application sends votes: what it sends again afterwards counts once."""

import random
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from typing import Any

import httpx2
import pytest

from arena.domain.vote import APPLICATIONS
from arena.store import blocks
from arena.store.store import Store
from arena.store.verify import verify
from tests.faulty_server import Behaviour, faulty_server
from tests.kills import arena
from tests.serving import Served, write_roster
from tests.sources import Application, comparison, registered
from tests.sqlite import new_sqlite

SENDERS, EACH = 4, 60


def test_no_vote_of_an_application_is_lost_or_doubled_by_a_kill(tmp_path: Path) -> None:
    assert_none_lost_or_doubled(new_sqlite(tmp_path), tmp_path, rounds=1)


@pytest.mark.slow
@pytest.mark.timeout(1200)
def test_none_is_lost_or_doubled_by_twenty_kills(database_url: str, tmp_path: Path) -> None:
    assert_none_lost_or_doubled(database_url, tmp_path, rounds=20)


def assert_none_lost_or_doubled(database_url: str, tmp_path: Path, rounds: int) -> None:
    """Kill the arena while votes are sent, send them all again, and hold the log against them."""
    application = registered(Served("", database_url), per_hour=100_000)
    acknowledged: dict[str, str] = {}
    cut_off = 0
    with faulty_server({name: Behaviour() for name in "xy"}) as server:
        roster = write_roster(tmp_path / "roster.toml", server, "x", "y")
        for number in range(rounds):
            bodies = [[comparison(rater=f"u-{n}") for _ in range(EACH)] for n in range(SENDERS)]
            with arena(tmp_path, database_url, roster) as (url, kill):
                application.url = url
                with ThreadPoolExecutor(SENDERS) as pool:
                    sending = [pool.submit(send, application, some) for some in bodies]
                    time.sleep(random.Random(number).uniform(0.1, 0.4))
                    kill()
                    for sent in sending:
                        acknowledged |= sent.result()
            lacking = [body for some in bodies for body in some if body["key"] not in acknowledged]
            cut_off += len(lacking)
            with arena(tmp_path, database_url, roster) as (url, _):
                application.url = url
                every = send(application, [body for some in bodies for body in some])
            assert every == every | {k: v for k, v in acknowledged.items() if k in every}
            acknowledged |= every
    with closing(Store(database_url)) as store:
        assert store.read(verify).problem is None
        battles = list(store.read(blocks.columns, APPLICATIONS).values("battle"))
    assert cut_off, "no kill came in the middle"
    assert len(battles) == len(set(battles)) == rounds * SENDERS * EACH
    assert set(acknowledged.values()) == set(battles)


def send(application: Application, bodies: list[dict[str, Any]]) -> dict[str, str]:
    """Send until all is sent or nobody answers; gives the battles that were acknowledged."""
    acknowledged = {}
    for body in bodies:
        try:
            answer = application.ask("POST", "comparisons", json=body)
        except httpx2.TransportError:
            break
        assert answer.status_code in (200, 201), answer.text
        acknowledged[body["key"]] = answer.json()["battle_id"]
    return acknowledged
