"""What ten visitors notice while others want everything that the arena has.

Serves the arena in a process of its own, before a server of models that write for a minute. One
visitor asks for 499 battles at once, another opens 450 streams on one battle, and then ten others
play a battle each. Prints what the first two were refused, how soon, and when the ten began and
ended. In a second run the first two forget their cookie with every request, and so are new people
at one address. ``python -m benchmarks.greed`` runs it; ``--battles`` and ``--streams`` change it.
"""

import argparse
import asyncio
import json
import os
import re
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from multiprocessing import get_context
from pathlib import Path

import httpx2

from tests.faulty_server import Behaviour, FaultyServer, faulty_server, last_message
from tests.serving import write_roster

ARENA = str(Path(sys.executable).parent / "arena")
GREEDY, STREAMER = "203.0.113.1", "203.0.113.2"
OTHERS = [f"198.51.100.{n}" for n in range(1, 11)]
SLOW, SHORT = "Write for a minute", "Write a line"
BATTLES = "/api/v1/battles"
START_S = 10.0
"""Until everything begins: a fresh process reads its libraries for seconds."""
HOLD_S = 10.0
"""How long a stream is held."""


@dataclass(frozen=True, slots=True)
class Answered:
    """How a request was answered, and after how many seconds."""

    status: int
    after_s: float
    words: str = ""


@dataclass(frozen=True, slots=True)
class Played:
    """Seconds from Send until a battle was there, wrote, and was ready."""

    opened_s: float
    first_s: float
    ready_s: float


def answer(body: Mapping[str, object]) -> Behaviour:
    """Write for a minute, or for a second."""
    n = 600 if last_message(body) == SLOW else 10
    return Behaviour(text="Word and " * n, chunk_size=9, delay_s=0.1)


@contextmanager
def serving(models: FaultyServer) -> Iterator[str]:
    """Run the arena with its defaults, and believe what this program says of addresses."""
    with tempfile.TemporaryDirectory() as name:
        env = os.environ | {
            "ARENA_ROSTER": str(write_roster(Path(name) / "roster.toml", models, "x", "y")),
            "ARENA_PORT": "0",
            "ARENA_TRUSTED_PROXIES": "127.0.0.1",
            "ARENA_LOG_LEVEL": "error",
            "ARENA_SHUTDOWN_GRACE_S": "0",
        }
        with subprocess.Popen(
            [ARENA, "serve"], cwd=name, env=env, stdout=subprocess.PIPE, text=True
        ) as process:
            assert process.stdout is not None
            url = re.search(r"http://\S+", process.stdout.readline())
            assert url is not None
            try:
                wait_for(url.group())
                yield url.group()
            finally:
                process.send_signal(signal.SIGINT)
                process.wait(30)


def wait_for(url: str) -> None:
    while True:
        try:
            httpx2.get(f"{url}/health/ready", timeout=20).raise_for_status()
            return
        except httpx2.HTTPError:
            time.sleep(0.1)


def client(url: str, address: str) -> httpx2.Client:
    """Come from an address."""
    headers = {"X-Forwarded-For": address}
    return httpx2.Client(base_url=url, headers=headers, timeout=60, trust_env=False, verify=False)


async def ask(url: httpx2.URL, request: str, hold_s: float = 0.0) -> Answered:
    """Send a request on a connection of its own; what is not refused is held for a while.

    Over plain sockets: a library's time for a thousand requests at once would be taken for the
    arena's.
    """
    began = time.perf_counter()
    reader, writer = await asyncio.open_connection(url.host, url.port)
    writer.write(request.encode())
    status = int((await reader.readline()).split()[1])
    after = time.perf_counter() - began
    if status == 200:
        await asyncio.sleep(hold_s)
    rest = b"" if status == 200 else await reader.read()
    writer.close()
    _, _, body = rest.partition(b"\r\n\r\n")
    return Answered(status, after, json.loads(body).get("detail", "") if body else "")


def request(method: str, path: str, address: str, cookie: str, body: str = "") -> str:
    """Write a request."""
    return (
        f"{method} {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n"
        f"X-Forwarded-For: {address}\r\nCookie: {cookie}\r\n"
        f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n{body}"
    )


def play(url: str, address: str, at: float) -> Played:
    """Play a battle to its end, from a moment on."""
    with client(url, address) as visitor:
        time.sleep(max(0.0, at - time.time()))
        began, first_s = time.perf_counter(), None
        opened = visitor.post(BATTLES, json={"prompt": SHORT})
        opened.raise_for_status()
        opened_s = time.perf_counter() - began
        battle = f"{BATTLES}/{opened.json()['battle_id']}"
        with visitor.stream("GET", f"{battle}/events") as stream:
            for line in stream.iter_lines():
                if first_s is None and line == "event: delta":
                    first_s = time.perf_counter() - began
        ready_s = time.perf_counter() - began
        state = visitor.get(battle).json()["state"]
    assert state == "ready"
    assert first_s is not None
    return Played(opened_s, first_s, ready_s)


def want_everything(
    url: str, at: float, battles: int, streams: int, *, forget: bool
) -> list[list[Answered]]:
    """Ask, at a time, for so many battles and streams at once."""
    with client(url, GREEDY) as greedy, client(url, STREAMER) as streamer:
        greedy.post(BATTLES, json={"prompt": SLOW})
        opened = streamer.post(BATTLES, json={"prompt": SLOW}).json()
        cookies = ["" if forget else cookie_of(greedy), cookie_of(streamer)]
    more = request("POST", BATTLES, GREEDY, cookies[0], json.dumps({"prompt": SLOW}))
    events = f"{BATTLES}/{opened['battle_id']}/events"
    stream = request("GET", events, STREAMER, cookies[1])

    async def want() -> list[list[Answered]]:
        await asyncio.sleep(at - time.time())
        opening = [ask(httpx2.URL(url), more) for _ in range(battles)]
        following = [ask(httpx2.URL(url), stream, HOLD_S) for _ in range(streams)]
        answers = await asyncio.gather(*opening, *following)
        return [answers[:battles], answers[battles:]]

    return asyncio.run(want())


def cookie_of(visitor: httpx2.Client) -> str:
    """Give a visitor's cookies as a header."""
    return "; ".join(f"{name}={value}" for name, value in visitor.cookies.items())


def greed(url: str, battles: int, streams: int, *, forget: bool) -> list[str]:
    """Let two want everything, and ten play; gives the rows of the table."""
    at = time.time() + START_S
    with (
        ProcessPoolExecutor(1, get_context("spawn")) as pool,
        ThreadPoolExecutor(len(OTHERS)) as threads,
    ):
        wanting = pool.submit(want_everything, url, at, battles, streams, forget=forget)
        playing = [threads.submit(play, url, address, at + 0.2) for address in OTHERS]
        opened, followed = wanting.result()
        played = [one.result() for one in playing]
    return [row(f"{battles} battles", opened), row(f"{streams} streams", followed), others(played)]


def row(what: str, answers: Sequence[Answered]) -> str:
    """Describe how many were let in, and how soon the others were refused."""
    refused = [1000 * a.after_s for a in answers if a.status in (429, 503)]
    soon = f"{statistics.median(refused):.0f} / {max(refused):.0f} ms" if refused else "-"
    statuses = sorted(Counter(a.status for a in answers).items())
    counts = ", ".join(f"{n} × {status}" for status, n in statuses)
    words = Counter(a.words for a in answers if a.words).most_common(1)
    return f"| {what} | {counts} | {soon} | {words[0][0] if words else ''} |"


def others(played: Sequence[Played]) -> str:
    """Say when the others began and ended."""
    parts = (
        f"{name} {statistics.median(times):.2f} / {max(times):.2f} s"
        for name, times in (
            ("there", [p.opened_s for p in played]),
            ("writing", [p.first_s for p in played]),
            ("ready", [p.ready_s for p in played]),
        )
    )
    return f"| ten others | {len(played)} ready | | {'; '.join(parts)} |"


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--battles", type=int, default=499)
    parser.add_argument("--streams", type=int, default=450)
    options = parser.parse_args()
    for forget in (False, True):
        who = "a new person each time, of one address" if forget else "one visitor"
        print(f"\n| wanted by {who} | answered | refused after, p50 / last | |\n|---|---|---|---|")
        with faulty_server({"x": answer, "y": answer}) as models, serving(models) as url:
            print(
                "\n".join(greed(url, options.battles, options.streams, forget=forget)), flush=True
            )


if __name__ == "__main__":
    main()
