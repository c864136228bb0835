"""What endpoints that send beyond all measure cost the arena: memory, stalls, and how it ends.

Starts the arena, page and all, with models that answer with one bomb after another, and lets
visitors battle under each. Beside them somebody asks ``/health/live`` every 10 ms: the longest
answer is the longest stall, seen from outside, with what the machine adds. Judges ask for whole
answers, each in a process of its own, in which the stall is that of its own event loop.

With ``--files``, what small files that unpack to gigabytes cost the commands that read them.
"""

import argparse
import asyncio
import json
import multiprocessing
import os
import re
import signal
import socket
import sqlite3
import ssl
import subprocess
import sys
import tempfile
import threading
import time
import zlib
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from functools import cache
from itertools import chain, repeat
from pathlib import Path

import httpx2

from tests import file_bombs
from tests.file_bombs import Make, measured

CERTIFICATE = Path(__file__).parents[1] / "tests" / "arena" / "endpoints" / "localhost.pem"
TRUSTING = f"""
import ssl, arena.cli, arena.endpoints.client
arena.endpoints.client._trust = lambda: ssl.create_default_context(cafile="{CERTIFICATE}")
arena.cli.main()
"""
SERVE = [sys.executable, "-c", TRUSTING, "serve"]
"""The arena as it is installed, except one more certificate that it trusts."""

MODELS = ("one", "two", "three", "four")
PATIENCE = {
    "ARENA_FIRST_TOKEN_TIMEOUT_S": "5",
    "ARENA_IDLE_TIMEOUT_S": "5",
    "ARENA_ANSWER_TIMEOUT_S": "20",
    "ARENA_CHARACTERS_PER_S": "50000",
    "ARENA_PRIOR_DELAY_S": "0",
    "ARENA_LOG_LEVEL": "error",
    "ARENA_SHUTDOWN_GRACE_S": "0",
    "ARENA_PORT": "0",
}
OK = b"HTTP/1.1 200 OK\r\n"
STREAM = OK + b"Content-Type: text/event-stream\r\n"
WHOLE = OK + b"Content-Type: application/json\r\n"
END = b"data: [DONE]\n\n"
MEGABYTE = 2**20


def event(delta: object, **more: object) -> bytes:
    """An event of a stream."""
    return f"data: {json.dumps({'choices': [{'delta': delta}], **more})}\n\n".encode()


def usage(tokens: int) -> bytes:
    """A short answer that counts so many tokens."""
    count = {"prompt_tokens": tokens, "completion_tokens": tokens}
    return event({"content": "Well."}, usage=count) + END


def zipped() -> Iterator[bytes]:
    """Gzip of zeros, a kilobyte for each megabyte."""
    packer = zlib.compressobj(9, wbits=31)
    yield packer.compress(bytes(MEGABYTE)) + packer.flush(zlib.Z_FULL_FLUSH)
    yield from repeat((packer.compress(bytes(MEGABYTE)) + packer.flush(zlib.Z_FULL_FLUSH)) * 64)


def drip(piece: bytes) -> Iterator[bytes]:
    """One small piece after another, for ever."""
    for again in repeat(piece):
        time.sleep(0.05)
        yield again


def flood(piece: bytes) -> Iterator[bytes]:
    """A piece again and again, in writes of about 64 kB."""
    return repeat(piece * max(1, 2**16 // len(piece)))


Bomb = Callable[[], Iterator[bytes]]


def once(head: bytes, body: bytes = b"") -> Bomb:
    """Something that ends."""
    return lambda: iter((head + b"\r\n" + body,))


def after(head: bytes, pieces: Callable[[], Iterator[bytes]]) -> Bomb:
    """Something that does not."""
    return lambda: chain((head + b"\r\n",), pieces())


GZIP = b"Content-Encoding: gzip\r\n"
CHUNKED = b"Transfer-Encoding: chunked\r\n"
WORDS = event({"content": "All is well. " * 20}) * 10 + END
LISTS = b'data: {"choices": [], "x": [' + b"[]," * 80_000 + b"[]]}\n\n"
STREAMED: dict[str, Bomb] = {
    "an answer as it should be": once(STREAM, WORDS),
    "gzip of zeros": after(STREAM + GZIP, zipped),
    "a line without end": after(STREAM, lambda: flood(b"x")),
    "an event without end": after(STREAM, lambda: flood(b"data: x\n")),
    "reasoning without end": after(STREAM, lambda: flood(event({"reasoning": "Hm. " * 9}))),
    "text without end": after(STREAM, lambda: flood(event({"content": "Hm. " * 9}))),
    "text without end, a character an event": after(
        STREAM, lambda: flood(event({"content": "x"}))
    ),
    "events of 240 kB": after(STREAM, lambda: repeat(LISTS)),
    "empty events without end": after(STREAM, lambda: flood(b"data: {}\n\n")),
    "comments without end": after(STREAM, lambda: flood(b":\n")),
    "blank lines without end": after(STREAM, lambda: flood(b"\n")),
    "chunks of one byte": after(STREAM + CHUNKED, lambda: flood(b"1\r\nx\r\n")),
    "comments that drip": after(STREAM, lambda: drip(b": here\n\n")),
    "reasoning that drips": after(STREAM, lambda: drip(event({"reasoning": "Hm."}))),
    "a header of 1 MB": once(OK + b"X-Padding: " + b"x" * MEGABYTE + b"\r\n"),
    "128 headers of 8 kB": once(OK + (b"X-Padding: " + b"x" * 8000 + b"\r\n") * 120, WORDS),
    "a header without end": after(OK + b"X-Padding: ", lambda: flood(b"x")),
    "interim responses without end": lambda: flood(b"HTTP/1.1 100 Continue\r\n\r\n"),
    "a redirect": once(b"HTTP/1.1 302 Found\r\nLocation: http://127.0.0.1:9/\r\n"),
    "an error without end": after(b"HTTP/1.1 500 Oops\r\n", lambda: flood(b"x")),
    "JSON nested 100,000 deep": once(STREAM, b"data: " + b"[" * 100_000 + b"\n\n"),
    "2^63 tokens": once(STREAM, usage(2**63)),
    "-5 tokens": once(STREAM, usage(-5)),
    "half an emoji": once(STREAM, event({"content": "so \ud83d"}) + END),
}
WHOLES: dict[str, Bomb] = {
    "an answer as it should be": once(WHOLE, b'{"choices": [{"message": {"content": "m"}}]}'),
    "gzip of zeros": after(WHOLE + GZIP, zipped),
    "a body without end": after(WHOLE, lambda: flood(b" ")),
    "a body that drips": after(WHOLE, lambda: drip(b" ")),
    "4 MB of empty lists": once(WHOLE, b'{"x": [' + b"[]," * 1_390_000 + b"[]]}"),
}


def serve_bombs(listener: socket.socket) -> None:
    """Answer each request with the bomb that its address names: a process of its own."""
    while True:
        client, _ = listener.accept()
        threading.Thread(target=_answer, args=(client,), daemon=True).start()


def _answer(client: socket.socket) -> None:
    with suppress(OSError):
        if client.recv(1, socket.MSG_PEEK) == b"\x16":  # a handshake of TLS
            trust = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
            trust.load_cert_chain(CERTIFICATE)
            client = trust.wrap_socket(client, server_side=True)
    with client, suppress(OSError):
        named = re.match(rb"POST /(\w+)/(\d+)/", client.recv(MEGABYTE))
        if named is None:
            return
        kind, number = named.groups()
        bombs = STREAMED if kind == b"streamed" else WHOLES
        client.settimeout(30)
        for piece in list(bombs.values())[int(number)]():
            client.sendall(piece)


@dataclass(frozen=True, slots=True)
class Arena:
    """The running arena."""

    url: str
    pid: int
    database: Path

    def forget_peak(self) -> None:
        """Let the peak of memory begin again."""
        Path(f"/proc/{self.pid}/clear_refs").write_text("5")


def peak_mb(pid: int | str) -> int:
    """Most resident memory so far."""
    status = Path(f"/proc/{pid}/status").read_text()
    return int(re.findall(r"VmHWM:\s+(\d+)", status)[0]) // 1024


@contextmanager
def serving(bombs: str, number: int) -> Iterator[Arena]:
    """Run the arena with four models that answer with a bomb."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "roster.toml").write_text(
            "\n".join(
                f'[[models]]\nid = "{m}"\nname = "{m}"\nmodel = "{m}"\n'
                f'endpoint = "{bombs}/streamed/{number}"\n'
                "price = { input = 1.0, output = 2.0, date = 2026-01-01 }"
                for m in MODELS
            )
        )
        env = os.environ | PATIENCE | {"ARENA_ROSTER": "roster.toml"}
        with subprocess.Popen(
            [sys.executable, "-c", TRUSTING, "serve"],
            cwd=folder,
            env=env,
            stdout=subprocess.PIPE,
            text=True,
        ) as process:
            assert process.stdout is not None
            url = re.search(r"http://\S+", process.stdout.readline())
            assert url is not None
            httpx2.get(f"{url.group()}/health/live", timeout=60)
            try:
                yield Arena(url.group(), process.pid, folder / "arena.db")
            finally:
                process.send_signal(signal.SIGINT)
                process.wait(30)


class Stalls:
    """Asks for a sign of life every 10 ms, and keeps the longest wait in milliseconds."""

    def __init__(self, url: str) -> None:
        self.longest_ms = 0.0
        self._client = httpx2.Client(base_url=url, timeout=120, trust_env=False, verify=False)
        self._over = threading.Event()
        self._client.get("/health/live")
        self._thread = threading.Thread(target=self._look)
        self._thread.start()

    def _look(self) -> None:
        while not self._over.wait(0.01):
            began = time.perf_counter()
            self._client.get("/health/live")
            self.longest_ms = max(self.longest_ms, 1000 * (time.perf_counter() - began))

    def end(self) -> None:
        """Ask no more."""
        self._over.set()
        self._thread.join()
        self._client.close()


def play(url: str) -> str:
    """Play a battle to its end; gives how it ended."""
    with httpx2.Client(base_url=url, timeout=120, trust_env=False, verify=False) as client:
        opened = client.post("/api/v1/battles", json={"prompt": "Go"}).raise_for_status().json()
        battle = f"/api/v1/battles/{opened['battle_id']}"
        client.get(f"{battle}/events")
        return str(client.get(battle).json()["state"])


def classes(database: Path) -> str:
    """Classes of the failed answers."""
    with closing(sqlite3.connect(database)) as connection:
        rows = connection.execute("SELECT DISTINCT error_class FROM answer WHERE error_class > ''")
        return ", ".join(sorted(row[0] for row in rows))


def measure(bombs: str, number: int, n: int) -> str:
    """Let so many visitors battle under one bomb; gives a row of the table."""
    with serving(bombs, number) as arena, ThreadPoolExecutor(n) as pool:
        time.sleep(2)  # what the start leaves to do
        arena.forget_peak()
        stalls = Stalls(arena.url)
        began = time.perf_counter()
        ends = Counter(pool.map(play, [arena.url] * n))
        took = time.perf_counter() - began
        stalls.end()
        memory, failures = peak_mb(arena.pid), classes(arena.database)
    ended = ", ".join(f"{count} {state}" for state, count in sorted(ends.items()))
    because = f" ({failures})" if failures else ""
    name = [*STREAMED][number]
    stall = f"{stalls.longest_ms:.0f} ms"
    return f"| {name} | {memory} MB | {stall} | {ended}{because} in {took:.1f} s |"


async def ask(url: str, n: int) -> None:
    """Ask a judge for so many whole answers at once, and print a row: in a process of its own."""
    from arena.domain.model import Model
    from arena.endpoints import client
    from arena.endpoints.client import Endpoints, Timeouts
    from arena.errors import EndpointError
    from judge.case import Message

    longest = 0.0

    client._trust = cache(lambda: ssl.create_default_context(cafile=CERTIFICATE))

    async def look() -> None:
        nonlocal longest
        while True:
            began = time.perf_counter()
            await asyncio.sleep(0.001)
            longest = max(longest, time.perf_counter() - began)

    async def one() -> str:
        try:
            await endpoints.complete(model, (Message("user", "Go"),))
        except EndpointError as error:
            return error.failure.value
        return "answered"

    endpoints = Endpoints({}, timeouts=Timeouts(whole_s=5))
    model = Model(id="m", name="m", endpoint=url, model="m")
    looking = asyncio.create_task(look())
    await asyncio.sleep(0.1)
    longest, began = 0.0, time.perf_counter()
    ends = Counter(await asyncio.gather(*(one() for _ in range(n))))
    took = time.perf_counter() - began
    await asyncio.sleep(0.01)
    looking.cancel()
    await endpoints.aclose()
    ended = ", ".join(f"{count} {end}" for end, count in sorted(ends.items()))
    print(f"{peak_mb('self')} MB | {1000 * longest:.0f} ms | {ended} in {took:.1f} s |")


FILES: tuple[tuple[dict[str, tuple[str, Make]], tuple[tuple[str, ...], ...]], ...] = (
    (file_bombs.TABLES, file_bombs.READ_TABLES),
    (file_bombs.WITHIN, file_bombs.READ_TABLES),
    (file_bombs.RECORDS, file_bombs.VERIFY),
    (file_bombs.OTHERS, file_bombs.READ_OTHERS),
)
"""Files, and the commands that read them."""


def measure_files(only: str) -> None:
    """Print a table for each kind of files: peak memory and exit code of each command."""
    for bombs, commands in FILES:
        heads = [" ".join(words[: 2 - words[1].startswith(("{", "-"))]) for words in commands]
        print(f"| file | bytes | {' | '.join(heads)} | first words |")
        print(f"|---|---|{'---|' * len(heads)}---|")
        for what, (name, make) in bombs.items():
            if only in what:
                print(f"| {what} | {measure_file(name, make, commands)} |", flush=True)
        print()


def measure_file(name: str, make: Make, commands: tuple[tuple[str, ...], ...]) -> str:
    """Let commands read a file; gives the rest of its row."""
    with tempfile.TemporaryDirectory() as folder:
        size = file_bombs.given(Path(folder), name, make).stat().st_size
        all_ended = [
            measured(Path(folder), *(word.format(name) for word in words)) for words in commands
        ]
    cells = [f"{one.peak_mb} MB, {one.code}" for one in all_ended]
    refused = (one.stderr for one in all_ended if one.code == 2)
    return " | ".join([f"{size:,}", *cells, first_words(next(refused, ""))])


def first_words(stderr: str) -> str:
    """Give the beginning of what a command said."""
    lines = [line.removeprefix("arena: ") for line in stderr.splitlines()]
    return " ".join(lines[-1].split()[:12]) if lines else ""


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--battles", type=int, default=5)
    parser.add_argument("--only", default="", help="part of the names of the bombs to send")
    parser.add_argument("--tls", action="store_true", help="send them over TLS")
    parser.add_argument("--files", action="store_true", help="have files read, none sent")
    parser.add_argument("--ask", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.ask:
        asyncio.run(ask(options.ask, options.battles))
        return
    if options.files:
        measure_files(options.only)
        return
    heads = "| {} | peak memory | longest stall | end |\n|---|---|---|---|"
    with socket.create_server(("127.0.0.1", 0), backlog=512) as listener:
        bombs = f"http{'s' * options.tls}://127.0.0.1:{listener.getsockname()[1]}"
        server = multiprocessing.get_context("fork").Process(
            target=serve_bombs, args=(listener,), daemon=True
        )
        server.start()
        print(heads.format(f"{options.battles} battles under"))
        for number, name in enumerate(STREAMED):
            if options.only in name:
                print(measure(bombs, number, options.battles), flush=True)
        print("\n" + heads.format(f"{options.battles} whole answers"))
        for number, name in enumerate(WHOLES):
            if options.only in name:
                print(f"| {name} | ", end="", flush=True)
                url = f"{bombs}/whole/{number}"
                again = [
                    sys.executable,
                    "-m",
                    "benchmarks.bombs",
                    "--battles",
                    str(options.battles),
                ]
                subprocess.run([*again, "--ask", url], check=True)
        server.kill()


if __name__ == "__main__":
    main()
