"""Replicas of the arena on one PostgreSQL behind nginx, and a reader who comes back if cut off."""

import time
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path

import httpx2
from sqlalchemy import text

import arena.parts
from arena.domain.vote import DEFAULT
from arena.store import blocks
from arena.store.engine import opened
from arena.store.store import Store
from arena.store.verify import verify
from rating.tables.coding import LoggedVotes
from tests.deploy.tools import proxied
from tests.kills import SETTINGS
from tests.process import Process
from tests.serving import StreamEvent, Visitor, client_of, parse_events, side_text

IN_TURN = {"hash $visitor consistent;": ""}
"""What makes of deploy/nginx.conf one that asks the replicas in turn."""
LEAVE = {"limit_conn connections 200;": "limit_conn connections 2000;"}
LEAVE["rate=50r/s"] = "rate=5000r/s"
"""What lets one machine play many visitors."""
CLOCK = "CLOCK"
"""Names a file with the seconds by which the first replica's clock is ahead."""
BACK_S = 0.2
"""How soon a reader whose stream was cut comes back."""


def jumping_clock(file: str) -> None:
    """Let the arena of this process read the time with what a file adds to it."""

    def now() -> datetime:
        return datetime.now(UTC) + timedelta(seconds=float(Path(file).read_text() or 0))

    arena.parts._now = now


@dataclass(slots=True)
class Replicas:
    """Processes that serve one database.

    Attributes
    ----------
    url : str
        Where nginx is.
    """

    url: str
    database: str
    processes: list[Process]
    urls: list[str]

    def kill_runner_of(self, battle_id: str) -> None:
        """Kill the replica that runs a battle: the one that holds the lock of its number."""
        query = text(
            "SELECT activity.application_name FROM pg_locks JOIN pg_stat_activity AS activity"
            " USING (pid) JOIN battle ON battle.process = (classid::bigint << 32) + objid::bigint"
            " WHERE locktype = 'advisory' AND public_id = :battle"
        )
        with opened(self.database) as engine, engine.connect() as connection:
            name = connection.scalar(query, {"battle": battle_id})
        self.processes[int(name)].kill()

    def visitor(self, replica: int | None = None, timeout_s: float = 30) -> Visitor:
        """Let a visitor come in by nginx, or straight to one replica; a battle gives a cookie."""
        url = self.url if replica is None else self.urls[replica]
        return Visitor(client_of(url, timeout=timeout_s, headers={"Origin": url}))


@contextmanager
def replicas(
    folder: Path,
    database: str,
    roster: Path,
    *,
    n: int = 2,
    changes: dict[str, str] = IN_TURN,
    first: str | None = None,
    **env: str,
) -> Iterator[Replicas]:
    """Run replicas behind nginx, which asks them in turn if nothing else is said.

    Parameters
    ----------
    first : str or None
        Where the first one finds the database, if by another way than the others.
    **env : str
        Settings; of the clocks only that of the first jumps, see `CLOCK`.
    """
    words = ["serve", "--port", "0", "--roster", str(roster), "--database"]
    clock = env.pop(CLOCK, None)
    with ExitStack() as stack:
        noise = stack.enter_context((folder / "arena.log").open("a"))
        processes = []
        for number in range(n):
            settings = SETTINGS | env | {"PGAPPNAME": str(number)}
            url = database if number else first or database
            prepare = partial(jumping_clock, clock) if clock and not number else None
            process = Process([*words, url], folder, settings, noise, prepare)
            processes.append(stack.enter_context(process))
        urls = [process.url() for process in processes]
        hosts = [url.removeprefix("http://") for url in urls]
        nginx = proxied(folder / "nginx", *hosts, changes=LEAVE | changes)
        yield Replicas(stack.enter_context(nginx), database, processes, urls)


@dataclass(slots=True)
class Reading:
    """What a reader has had of a battle, over all connections."""

    events: list[StreamEvent] = field(default_factory=list)
    cuts: int = 0

    def text(self, side: str) -> str:
        """Put together what one side wrote."""
        return side_text(self.events, side)


def follow(visitor: Visitor, battle_id: str, within_s: float = 60.0) -> Reading:
    """Read a battle to its end as a browser does: a stream that is cut is asked for again."""
    reading = Reading()
    deadline = time.monotonic() + within_s
    while time.monotonic() < deadline:
        last = reading.events[-1].id if reading.events else ""
        headers = {"Last-Event-ID": last} if last else {}
        path = f"/api/v1/battles/{battle_id}/events"
        try:
            with visitor.client.stream("GET", path, headers=headers) as answer:
                if answer.status_code == 204:
                    return reading
                if answer.status_code == 200:
                    _take(answer, reading)
        except httpx2.TransportError:
            reading.cuts += 1
        time.sleep(BACK_S)
    raise TimeoutError(f"no end of {battle_id} after {within_s:g} s")


def _take(answer: httpx2.Response, reading: Reading) -> None:
    block = ""
    for line in answer.iter_lines():
        block += f"{line}\n"
        if not line:
            reading.events += parse_events(block)
            block = ""


def logged(database: str) -> LoggedVotes:
    """Read every vote in the log, which has to hold."""
    with closing(Store(database)) as store, store.reading() as session:
        assert verify(session).problem is None
        return blocks.columns(session, DEFAULT)
