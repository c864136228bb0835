"""Readiness, and votes, while a database is locked, full, moved or gone."""

import asyncio
import resource
import socket
import sqlite3
import threading
import time
import uuid
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import httpx2
import pytest

from arena.api.routes import PATIENCE_S, Recent
from arena.errors import StoreError
from arena.store.engine import open_engine
from arena.store.store import Store
from tests.faulty_server import Behaviour, faulty_server
from tests.process import Process, until
from tests.serving import Served, client_of, quick_arena, write_roster

LOCK_S = 0.8
BOUND_S = 30.0
SERVE = ("serve", "--port", "0", "--roster")


@contextmanager
def locked(url: str) -> Iterator[None]:
    """Hold what every writer needs, as a program beside the arena may."""
    engine = open_engine(url)
    with engine.connect() as connection:
        if engine.dialect.name == "postgresql":
            tables = "vote_chain, alembic_version, battle, voter, person"
            connection.exec_driver_sql(f"LOCK TABLE {tables} IN EXCLUSIVE MODE")
        else:
            connection.begin()
        yield
    engine.dispose()


def readiness(url: str) -> int:
    """Ask whether the arena is ready, which has to be answered in time."""
    began = time.monotonic()
    with client_of(url) as client:
        answer = client.get("/health/ready")
    assert time.monotonic() - began < BOUND_S
    return answer.status_code


def becomes(url: str, status: int) -> None:
    until(lambda: readiness(url) == status)


def test_a_locked_database_is_not_ready_until_it_is_free(
    database_url: str, tmp_path: Path
) -> None:
    with quick_arena(tmp_path, database=database_url) as served:
        assert readiness(served.url) == 200
        with locked(database_url):
            becomes(served.url, 503)
            assert httpx2.get(f"{served.url}/health/live").is_success
        becomes(served.url, 200)


@pytest.mark.parametrize("path", ["live", "ready"])
def test_monitors_and_load_balancers_may_ask_by_head_and_without_a_host(
    quick: Served, path: str
) -> None:
    assert httpx2.head(f"{quick.url}/health/{path}").status_code == 200
    host, port = quick.url.removeprefix("http://").split(":")
    with socket.create_connection((host, int(port)), timeout=5) as line:
        line.sendall(f"GET /health/{path} HTTP/1.0\r\n\r\n".encode())
        assert line.recv(100).startswith(b"HTTP/1.1 200")


def test_a_vote_under_a_lock_ends_in_words_and_counts_when_it_is_sent_again(
    database_url: str, tmp_path: Path
) -> None:
    settings = {"database": database_url, "lock_timeout_s": LOCK_S}
    with quick_arena(tmp_path, **settings) as served, served.visitor() as ada:
        battle, key = ada.play(), str(uuid.uuid4())
        with locked(database_url):
            began = time.monotonic()
            answer = ada.vote(battle, "tie", key)
            assert LOCK_S * 0.8 < time.monotonic() - began < LOCK_S + 5
        assert answer.status_code == 503
        assert "Send the same request again" in answer.json()["detail"]
        assert ada.vote(battle, "tie", key).json()["outcome"] == "tie"


@pytest.mark.slow
def test_votes_that_queue_behind_a_lock_all_end_in_the_same_time(tmp_path: Path) -> None:
    """However many they are; and who reads does not wait behind them."""
    with quick_arena(tmp_path, lock_timeout_s=LOCK_S) as served, served.visitor() as ada:
        battles = [ada.play() for _ in range(40)]
        codes = []

        def vote(battle: str) -> None:
            with client_of(served.url, cookies=ada.client.cookies) as client:
                body = {"outcome": "tie", "key": str(uuid.uuid4())}
                codes.append(client.post(f"/api/v1/battles/{battle}/vote", json=body).status_code)

        with locked(served.database):
            began = time.monotonic()
            threads = [threading.Thread(target=vote, args=(battle,)) for battle in battles]
            for thread in threads:
                thread.start()
            assert ada.look(battles[0])["state"] == "ready"
            assert not codes
            for thread in threads:
                thread.join()
            assert time.monotonic() - began < 4.5 * LOCK_S  # five waves of eight would take longer
        assert codes == [503] * 40


@pytest.mark.parametrize("deed", ["moved", "deleted", "replaced"])
def test_a_file_that_is_no_longer_there_is_not_ready_and_takes_no_vote(
    tmp_path: Path, deed: str
) -> None:
    """What is written to a file that nobody can open again is lost."""
    with quick_arena(tmp_path) as served, served.visitor() as ada:
        battle, file = ada.play(), tmp_path / "arena.db"
        assert readiness(served.url) == 200
        content = file.read_bytes()
        file.rename(tmp_path / "moved.db")
        if deed == "deleted":
            (tmp_path / "moved.db").unlink()
        elif deed == "replaced":
            file.write_bytes(content)
        assert ada.vote(battle, "tie").status_code == 503
        becomes(served.url, 503)


def test_a_full_disk_is_not_ready_until_there_is_room(tmp_path: Path) -> None:
    """No file of the process may grow: to SQLite that is a full disk."""
    with (
        faulty_server({"x": Behaviour(), "y": Behaviour()}) as models,
        Process(
            [*SERVE, str(write_roster(tmp_path / "r.toml", models, "x", "y"))], tmp_path
        ) as process,
    ):
        url = process.url()
        assert readiness(url) == 200
        resource.prlimit(process.pid, resource.RLIMIT_FSIZE, (0, resource.RLIM_INFINITY))
        becomes(url, 503)
        unlimited = (resource.RLIM_INFINITY, resource.RLIM_INFINITY)
        resource.prlimit(process.pid, resource.RLIMIT_FSIZE, unlimited)
        becomes(url, 200)


def test_many_checks_do_not_let_the_database_grow(database_url: str) -> None:
    with closing(Store(database_url)) as store:
        for _ in range(20):
            store.check()
        before = size(store)
        for _ in range(300):
            store.check()
        assert size(store) <= before + 8192


def size(store: Store) -> int:
    """Bytes of the database; of SQLite without its journal, which is used over and over."""
    with store.reading() as session:
        if store.engine.dialect.name == "postgresql":
            name = "pg_total_relation_size('alembic_version')"
            return int(session.connection().exec_driver_sql(f"SELECT {name}").scalar_one())
    return Path(str(store.engine.url.database)).stat().st_size


def test_a_stranger_who_asks_often_lets_the_arena_write_once_a_second(quick: Served) -> None:
    file = quick.database.removeprefix("sqlite:///")

    def writes() -> int:
        with closing(sqlite3.connect(file)) as connection:
            return int(connection.execute("PRAGMA user_version").fetchone()[0])

    before, began = writes(), time.monotonic()
    with client_of(quick.url) as client:
        for _ in range(100):
            assert client.get("/health/ready").is_success
    assert 1 <= writes() - before <= time.monotonic() - began + 2


async def test_a_check_that_hangs_is_not_waited_for_and_is_not_begun_again() -> None:
    begun, end = [], threading.Event()

    def hang() -> None:
        begun.append(1)
        end.wait(30)

    ready = Recent(hang)
    began = time.monotonic()
    answers = await asyncio.gather(*(ready.check() for _ in "123"), return_exceptions=True)
    end.set()
    assert time.monotonic() - began < PATIENCE_S + 5
    assert [type(answer) for answer in answers] == [StoreError] * 3
    assert begun == [1]
