"""How many battles stream at once, as text and rendered for the page.

Starts the arena with two recorded models of 200 characters a second (about 50 tokens) for
five seconds, and drives it over raw HTTP from the same machine, so the figures share the
processor with the load. ``bare.py``, the least that could stream, is driven alike beside it, once
without and once with what any arena does: to read two models, and to store what they write.
``parts.py`` says what the arena's time goes to.
``make bench`` runs it; ``--battles`` and ``--seconds`` change the size.
"""

import argparse
import asyncio
import json
import os
import re
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import time
import uuid
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from contextlib import AbstractContextManager, AsyncExitStack, asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar

import httpx2

from benchmarks.recordings import ARENA, Server, serving_recordings

T = TypeVar("T")
TEXT = re.compile('"(text|tail)": ?"[^"]')
MARKDOWN = """**A heap** keeps the least of its items on top, and the others in no order.

1. Put an item in: `heapq.heappush(heap, item)`.
2. Take the least one out: `heapq.heappop(heap)`.

```python
def largest(numbers, k):
    return heapq.nlargest(k, numbers)  # sorts no more than it must
```

"""
PARTS = (
    "recordings", "model streams", "pace", "battles", "events", "rendering", "HTTP",
    "event loop", "storing",
)  # fmt: skip
"""As ``parts.py`` calls them."""
TICK_S = 0.1
WARM_UP_S = 35.0
RATE = 200
"""Characters a second: as the floor streams, too."""
MANY = {
    "ARENA_BATTLES_PER_ADDRESS_HOUR": "1000000",
    "ARENA_RUNNING_PER_ADDRESS": "500",
    "ARENA_STREAMS_PER_ADDRESS": "500",
    "ARENA_CONNECTIONS": "2000",
    "ARENA_CONNECTIONS_PER_ADDRESS": "2000",
    "ARENA_PRIOR_DELAY_S": "0",
    "ARENA_SHUTDOWN_GRACE_S": "0",
}
"""Settings with which one machine plays many visitors."""


@dataclass(slots=True)
class Updates:
    """When one reader heard from a battle; seconds on the reader's clock."""

    began: float
    times: list[float] = field(default_factory=list)

    @property
    def first_s(self) -> float:
        """Time to the first text."""
        return self.times[0] - self.began

    @property
    def lags_s(self) -> list[float]:
        """How much later than a tick after the one before each update came."""
        return [max(0.0, b - a - TICK_S) for a, b in zip(self.times, self.times[1:], strict=False)]


Serve = Callable[[float], AbstractContextManager[Server]]
Act = Callable[[httpx2.AsyncClient, str], Awaitable[Updates]]


@contextmanager
def bare(seconds: float, *with_what: str) -> Iterator[Server]:
    """Run the least that could stream."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    url = f"http://127.0.0.1:{port}"
    script = str(Path(__file__).with_name("bare.py"))
    command = [sys.executable, script, str(port), str(seconds), *with_what]
    with tempfile.TemporaryDirectory() as folder, subprocess.Popen(command, cwd=folder) as process:
        try:
            wait_for(url)
            yield Server(url, process.pid)
        finally:
            process.kill()


def bare_with_models(seconds: float) -> AbstractContextManager[Server]:
    """Run the least that could stream what two models write, and store it."""
    return bare(seconds, "models")


@contextmanager
def serving(seconds: float, command: Sequence[str] = (ARENA,)) -> Iterator[Server]:
    """Run the arena with two recordings that speak for so many seconds."""
    text = (MARKDOWN * 100)[: int(RATE * seconds)]
    with serving_recordings({"Go": text}, RATE, command, **MANY) as server:
        wait_for(server.url)
        yield server


def wait_for(url: str) -> None:
    while True:
        try:
            httpx2.get(f"{url}/health/ready", timeout=20)
            return
        except httpx2.TransportError:
            time.sleep(0.1)


async def as_text(visitor: httpx2.AsyncClient, url: str, query: str = "") -> Updates:
    """Open a battle and follow its events."""
    updates = Updates(time.perf_counter())
    opened = await visitor.post(f"{url}/api/v1/battles", json={"prompt": "Go"})
    events = f"{url}/api/v1/battles/{opened.json()['battle_id']}/events{query}"
    async with visitor.stream("GET", events) as stream:
        async for line in stream.aiter_lines():
            if '"side":"a"' in line.replace(" ", "") and TEXT.search(line):
                updates.times.append(time.perf_counter())
    return updates


async def rendered(visitor: httpx2.AsyncClient, url: str) -> Updates:
    """Follow a battle as its page does: finished blocks come as HTML."""
    return await as_text(visitor, url, "?html=1")


async def play(visitor: httpx2.AsyncClient, url: str) -> str:
    """Play a battle to its end; gives where to vote."""
    opened = await visitor.post(f"{url}/api/v1/battles", json={"prompt": "Go"})
    battle = f"{url}/api/v1/battles/{opened.json()['battle_id']}"
    await visitor.get(f"{battle}/events")
    return f"{battle}/vote"


async def vote(visitor: httpx2.AsyncClient, address: str) -> float:
    """Vote, and time it."""
    body = {"outcome": "tie", "key": str(uuid.uuid4())}
    began = time.perf_counter()
    answer = await visitor.post(address, json=body)
    answer.raise_for_status()
    return time.perf_counter() - began


@asynccontextmanager
async def visitors(n: int, url: str) -> AsyncIterator[list[httpx2.AsyncClient]]:
    """Let so many visitors come, one after another."""
    async with AsyncExitStack() as stack:
        come = []
        for _ in range(n):
            client = httpx2.AsyncClient(timeout=120, trust_env=False, verify=False)
            visitor = await stack.enter_async_context(client)
            await visitor.get(url)  # the page, and a cookie
            come.append(visitor)
        yield come


async def at_once(
    come: list[httpx2.AsyncClient],
    act: Callable[[httpx2.AsyncClient, str], Awaitable[T]],
    url: str,
) -> list[T]:
    """Let the visitors act, begun within one second."""

    async def one(number: int, visitor: httpx2.AsyncClient) -> T:
        await asyncio.sleep(number / len(come))
        return await act(visitor, url)

    return list(await asyncio.gather(*(one(*who) for who in enumerate(come))))


def centile(values: list[float], percent: int) -> float:
    """A percentile in milliseconds."""
    if len(values) < 2:
        return 1000 * (values[0] if values else float("nan"))
    return 1000 * statistics.quantiles(values, n=100)[percent - 1]


async def measure(serve: Serve, name: str, act: Act, n: int, seconds: float) -> str:
    """Stream so many battles, and make a row of the table."""
    with serve(seconds) as server:
        async with visitors(2, server.url) as clients:
            await at_once(clients, act, server.url)
        async with visitors(n, server.url) as clients:
            cpu, began = server.cpu_s(), time.perf_counter()
            readers = await at_once(clients, act, server.url)
            used, took = server.cpu_s() - cpu, time.perf_counter() - began
        memory = server.memory_mb()
    first = [h.first_s for h in readers]
    lags = [lag for h in readers for lag in h.lags_s]
    return (
        f"| {name} | {n} | {1000 * used / n:.0f} ms | {used / took:.0%} "
        f"| {centile(first, 50):.0f} / {centile(first, 95):.0f} ms "
        f"| {centile(lags, 50):.0f} / {centile(lags, 95):.0f} ms | {memory:.0f} MB |"
    )


async def measure_parts(name: str, act: Act, n: int, seconds: float) -> str:
    """Stream so many battles, and say what the arena's processor time goes to."""
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder) / "parts.json"
        command = [sys.executable, str(Path(__file__).with_name("parts.py")), str(report)]
        with serving(seconds, command) as server:
            async with visitors(2, server.url) as clients:
                await at_once(clients, act, server.url)
            async with visitors(n, server.url) as clients:
                os.kill(server.pid, signal.SIGUSR1)
                await at_once(clients, act, server.url)
                os.kill(server.pid, signal.SIGUSR1)
        spent: dict[str, float] = json.loads(report.read_text())
    cells = " | ".join(f"{1000 * spent.get(part, 0) / n:.1f}" for part in PARTS)
    return f"| {name} | {n} | {1000 * sum(spent.values()) / n:.1f} | {cells} |"


async def measure_votes(
    serve: Serve, name: str, n: int, streaming: int, seconds: float, act: Act = as_text
) -> str:
    """Time votes, one after another, while other battles stream: none begins or ends meanwhile.

    A vote before them makes the first leaderboard and its page, and within `WARM_UP_S` all else
    that an arena works out of votes for the first time.
    """
    with serve(seconds) as server:
        async with visitors(n, server.url) as voters, visitors(streaming, server.url) as readers:
            (first,) = await at_once(readers[:1] or voters[:1], play, server.url)
            await vote((readers or voters)[0], first)
            await asyncio.sleep(WARM_UP_S)
            battles = await at_once(voters, play, server.url)
            reading = asyncio.create_task(at_once(readers, act, server.url))
            began, all_begun, last_second = time.monotonic(), 1.5, seconds - 1.5
            times = []
            for place, (voter, battle) in enumerate(zip(voters, battles, strict=True)):
                at = began + all_begun + (last_second - all_begun) * place / n
                await asyncio.sleep(max(0.0, at - time.monotonic()))
                times.append(await vote(voter, battle))
            await reading
    middle, slow = centile(times, 50), centile(times, 95)
    return f"| {name} | {streaming} | {n} | {middle:.1f} ms | {slow:.1f} ms |"


VOTED_ON: dict[str, Serve] = {
    "arena": serving,
    "bare, models and storing": bare_with_models,
    "bare": bare,
}


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--battles", type=int, nargs="*", default=[100, 200, 400])
    parser.add_argument("--seconds", type=float, default=5.0)
    options = parser.parse_args()
    with serving(1.0) as server:
        time.sleep(3)
        print(f"Idle, page loaded: {server.memory_mb():.0f} MB\n")
    print(
        "| events | battles | CPU for each | CPU of one core | first text p50 / p95 "
        "| lag p50 / p95 | memory |"
    )
    print("|---|---|---|---|---|---|---|")
    for n in options.battles:
        rows: tuple[tuple[str, Serve, Act], ...] = (
            ("bare", bare, as_text),
            ("bare, models and storing", bare_with_models, as_text),
            ("text", serving, as_text),
            ("rendered", serving, rendered),
        )
        for name, serve, act in rows:
            print(asyncio.run(measure(serve, name, act, n, options.seconds)), flush=True)
    print(f"\n| ms each | battles | all | {' | '.join(PARTS)} |\n{'|---' * (len(PARTS) + 3)}|")
    for n in options.battles:
        for name, act in (("text", as_text), ("rendered", rendered)):
            print(asyncio.run(measure_parts(name, act, n, options.seconds)), flush=True)
    print("\n| | battles streaming | votes | p50 | p95 |\n|---|---|---|---|---|")
    for streaming in (0, 120):
        for name, serve in VOTED_ON.items():
            row = measure_votes(serve, name, 120, streaming, 2 * options.seconds)
            print(asyncio.run(row), flush=True)


if __name__ == "__main__":
    main()
