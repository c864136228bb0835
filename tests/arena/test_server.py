"""How a serving process rests, and how it ends."""

import os
import resource
import signal
import socket
import sqlite3
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from http.client import HTTPConnection
from pathlib import Path
from typing import Any

import httpx2
import pytest

from arena.errors import SettingsError
from arena.server import OTHER_FILES, allow_files, listen
from arena.settings import read_settings
from tests.command import ARENA, captured
from tests.faulty_server import Behaviour, faulty_server
from tests.process import Process
from tests.serving import Served, Visitor, write_roster

SLOW = Behaviour(text="So it goes on. " * 20, delay_s=0.05)
ENDLESS = Behaviour(text="On and on. " * 500, delay_s=0.1)


@contextmanager
def process(
    folder: Path, model: Behaviour = SLOW, **env: str
) -> Iterator[tuple[Process, Visitor]]:
    """Serve two such models in a process, and let somebody in."""
    with faulty_server({"x": model, "y": model}) as server:
        roster = write_roster(folder / "r.toml", server, *server.behaviours)
        words = ["serve", "--port", "0", "--roster", str(roster)]
        with (
            Process(words, folder, {"ARENA_CHARACTERS_PER_S": "50000"} | env) as running,
            Served(running.url(), "").visitor() as ada,
        ):
            yield running, ada


def until(answer: httpx2.Response, ada: Visitor) -> httpx2.Response:
    """Ask until a new battle is refused."""
    for _ in range(100):
        if answer.status_code != 201:
            break
        time.sleep(0.02)
        answer = ada.post("/api/v1/battles", json={"prompt": "Hi"})
    return answer


@pytest.mark.slow
def test_an_arena_that_nobody_visits_rests(tmp_path: Path) -> None:
    """Each look for work is a change of context; Gradio's own pace makes a thousand a second."""
    with process(tmp_path, ARENA_PAGE="1") as (running, ada):
        assert ada.get("/").status_code == 200
        before = looks(running)
        time.sleep(2)
        assert looks(running) - before < 400


@pytest.mark.slow
def test_a_connection_is_still_there_after_a_while_of_reading(tmp_path: Path) -> None:
    """The server is not to let go of it just when a vote comes in over it."""
    with process(tmp_path) as (_, ada):
        url = ada.client.base_url
        with closing(HTTPConnection(url.host, url.port)) as connection:
            for pause_s in (0, 6):
                time.sleep(pause_s)
                connection.request("GET", "/health/ready")
                answer = connection.getresponse()
                assert (answer.status, answer.read() != b"") == (200, True)


@pytest.mark.slow
@pytest.mark.parametrize("visited", [False, True])
def test_ctrl_c_ends_a_demo_well_and_without_a_complaint(tmp_path: Path, visited: bool) -> None:
    """As in a terminal, which sends it to whatever the arena has started, too."""
    words, env = [ARENA, "demo", "--toys", "--port", "0"], {"ARENA_SECRET_KEY": "k" * 32}
    pipes: dict[str, Any] = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    with subprocess.Popen(
        words, cwd=tmp_path, env=os.environ | env, text=True, start_new_session=True, **pipes
    ) as demo:
        assert demo.stdout
        url = demo.stdout.readline().split()[4]
        page = "/" if visited else "/health/live"  # the page waits for a process of its own
        assert httpx2.get(url + page, timeout=60).status_code == 200
        os.killpg(demo.pid, signal.SIGINT)
        _, errors = demo.communicate(timeout=60)
    assert (demo.returncode, errors) == (0, "")


def looks(running: Process) -> int:
    status = Path(f"/proc/{running.pid}/status").read_text(encoding="utf-8")
    return int(status.partition("voluntary_ctxt_switches:")[2].split()[0])


@pytest.mark.parametrize("sent", [signal.SIGTERM, signal.SIGINT])
def test_a_running_battle_ends_well_while_new_ones_are_refused_in_words(
    tmp_path: Path, sent: signal.Signals
) -> None:
    with process(tmp_path) as (running, ada):
        battle_id = ada.open()
        events: list[str] = []
        follow = threading.Thread(
            target=lambda: events.extend(h.event for h in ada.follow(battle_id))
        )
        follow.start()
        running.send(sent)
        refused = until(ada.post("/api/v1/battles", json={"prompt": "Hi"}), ada)
        assert refused.status_code == 503
        assert refused.json()["detail"] == ("The arena is being restarted. Try again in a minute.")
        assert ada.get("/health/ready").status_code == 503
        follow.join(timeout=60)
        assert events[-1] == "ready"
        running.wait()
    with closing(sqlite3.connect(tmp_path / "arena.db")) as connection:
        states = connection.execute("SELECT state FROM battle").fetchall()
    assert set(states) == {("ready",)}


def test_what_does_not_end_in_time_is_interrupted_and_its_stream_ends(tmp_path: Path) -> None:
    with process(tmp_path, ENDLESS, ARENA_SHUTDOWN_GRACE_S="0.5") as (running, ada):
        battle_id = ada.open()
        threading.Timer(0.5, running.send, [signal.SIGTERM]).start()
        events = ada.follow(battle_id)
        assert [h.event for h in events[-2:]] == ["failed", "failed"]
        assert "restarted while the models were answering" in events[-1].data["message"]
        running.wait()
    with closing(sqlite3.connect(tmp_path / "arena.db")) as connection:
        assert connection.execute("SELECT state FROM battle").fetchall() == [("interrupted",)]


def test_a_second_signal_does_not_wait(tmp_path: Path) -> None:
    with process(tmp_path, ENDLESS, ARENA_SHUTDOWN_GRACE_S="60") as (running, ada):
        ada.open()
        began = time.monotonic()
        running.send(signal.SIGTERM)
        until(ada.post("/api/v1/battles", json={"prompt": "Hi"}), ada)
        running.send(signal.SIGTERM)
        running.wait(15)
        assert time.monotonic() - began < 10


@pytest.mark.parametrize(
    ("host", "reached"), [("::1", "::1"), ("::", "::1"), ("::", "127.0.0.1"), ("localhost", "")]
)
def test_an_arena_is_served_on_addresses_of_either_family(host: str, reached: str) -> None:
    with listen(read_settings(host=host, port=0)) as listener:
        address = (reached or "localhost", listener.getsockname()[1])
        socket.create_connection(address).close()
        with pytest.raises(SettingsError, match=f"Cannot serve on {host}:"):
            listen(read_settings(host=host, port=address[1]))


def test_a_process_may_open_as_many_files_as_its_connections_need() -> None:
    limits = resource.getrlimit(resource.RLIMIT_NOFILE)
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (256, limits[1]))
        allow_files(read_settings(connections=300, running_battles=20))
        assert resource.getrlimit(resource.RLIMIT_NOFILE)[0] == 300 + 2 * 20 + OTHER_FILES
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, limits)


UNASKED = """
import sys
from starlette.testclient import TestClient
from arena.app import create_app
from arena.settings import read_settings
with TestClient(create_app(read_settings()), "http://127.0.0.1") as visitor:
    for page in ("/", "/leaderboard", "/health/ready"):
        visitor.get(page).raise_for_status()
    heavy = {"scipy.sparse", "scipy.special", "scipy.stats", "sklearn", "numba", "matplotlib"}
    heavy |= {"gradio", "pandas", "pyarrow", "authlib", "numpy.f2py", "fontTools.subset"}
    print(sorted(heavy & {*sys.modules}))
"""


@pytest.mark.slow
def test_an_arena_in_which_nobody_votes_loads_no_statistics(tmp_path: Path) -> None:
    with faulty_server({"one": SLOW, "two": SLOW}) as models:
        roster = write_roster(tmp_path / "r.toml", models, "one", "two")
        env = os.environ | {"ARENA_ROSTER": str(roster), "ARENA_LOG_LEVEL": "error"}
        ended = captured([sys.executable, "-c", UNASKED], tmp_path, env)
    assert (ended.returncode, ended.stdout) == (0, "[]\n"), ended.stderr
