"""The leaderboard of an arena with many votes: its page, how it is made, and what that takes.

    python -m benchmarks.boards --votes 1000000                 # SQLite, in a folder of its own
    python -m benchmarks.boards --votes 10000000 --database postgresql://user@host/empty
    python -m benchmarks.boards --votes 1000000 --database postgresql    # a server of its own

Fills an empty database: battles of two short answers, with votes whose hashes hold (`--verify`
follows all of them). A process then makes the board step by step. Last an arena is served, which
also follows the chain and labels prompts: somebody reads the leaderboard over and over, one more
vote is cast, and the board is made again.
"""

import argparse
import hashlib
import resource
import sqlite3
import statistics
import tempfile
import threading
import time
import uuid
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from functools import cache
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np
import psycopg
from sqlalchemy import text
from sqlalchemy.engine import make_url

from arena.boards.fitted import History
from arena.boards.leaderboard import Leaderboard, make_board
from arena.domain.battle import VOTE_WITHIN, BattleState
from arena.domain.model import Model
from arena.domain.vote import DEFAULT, Choice
from arena.store import chain, kept_boards, log
from arena.store.engine import opened, sqlite_file
from arena.store.store import Store
from arena.store.verify import verify
from benchmarks.recordings import Server
from tests.arena.store.battles import A1, B1, NOW, ballot, complete, new_battle
from tests.postgresql import postgresql_server
from tests.process import Process
from tests.serving import client_of

AT_ONCE = 20_000
"""Votes that are written together."""
VOTES_A_VOTER = 20
DAYS = 90
FIRST = datetime(2026, 1, 1, tzinfo=UTC)
CHOICES = (Choice.A, Choice.B, Choice.TIE, Choice.BOTH_BAD, Choice.SKIP)
READ_EVERY_S = 0.05
IDLE_S = 30.0
PATIENCE_S = 3600.0
LOOK_S = 60.0
AT_REST = 0.5
"""An arena rests that used less of one processor than this for `LOOK_S`.

What is left is done at its own pace: the record takes a quarter, labels of prompts a twentieth.
"""

Rows = dict[str, list[tuple[Any, ...]]]

COLUMNS = {
    "voter": ("id", "kind", "created"),
    "battle": (
        "id", "public_id", "owner", "mode", "model_a", "model_b", "side_seed", "sampler",
        "sampler_version", "pair_probability", "repicks", "system_prompt_hash_a",
        "system_prompt_hash_b", "pacing", "state", "created", "ready", "app_version",
    ),
    "turn": ("id", "battle_id", "turn", "prompt", "nonce", "created"),
    "answer": (
        "id", "battle_id", "model_id", "turn", "side", "attempt", "text", "nonce", "reasoning",
        "status", "duration_s", "decoding", "created",
    ),
    "vote": (
        "id", "battle_id", "voter_id", "turn", "attempt_a", "attempt_b", "outcome", "key",
        "order_shown", "seconds_to_vote",
        "fingerprint_a", "fingerprint_b", "created", "link", "content", "previous_hash", "hash",
    ),
}  # fmt: skip


def main() -> None:
    """Fill a database, serve it, and print what was measured."""
    options = _options()
    with ExitStack() as stack:
        url = database_of(options.database, stack)
        began = time.monotonic()
        if not options.filled:
            fill(url, options.votes, options.models)
            took = time.monotonic() - began
            print(f"filled in {took:.0f} s, {_size(url) / 1e9:.2f} GB", flush=True)
        if options.verify:
            began = time.monotonic()
            with closing(Store(url)) as store, store.reading() as session:
                print(verify(session), f"in {time.monotonic() - began:.0f} s", flush=True)
        child = get_context("spawn").Process(target=_make, args=(url,))
        child.start()
        child.join()
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        _serve(url, folder, 60 * options.rest)
        print(f"database {_size(url) / 1e9:.2f} GB")


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--votes", type=int, default=1_000_000)
    parser.add_argument("--models", type=int, default=100)
    parser.add_argument("--database", default="sqlite", help="sqlite, postgresql, or the URL")
    parser.add_argument("--filled", action="store_true", help="the database was filled before")
    parser.add_argument("--verify", action="store_true", help="follow the chain once it is filled")
    words = "let a new arena finish what it does beside, for at most so many minutes"
    parser.add_argument("--rest", type=float, default=0, help=words)
    return parser.parse_args()


def database_of(name: str, stack: ExitStack) -> str:
    """Give the URL of a new database, or of the one that is named."""
    match name:
        case "sqlite":
            folder = stack.enter_context(tempfile.TemporaryDirectory())
            return f"sqlite:///{folder}/arena.db"
        case "postgresql":
            return stack.enter_context(postgresql_server(careful=True))
    return name


# --- filling


def fill(url: str, votes: int, n_models: int) -> None:
    """Write votes of battles of two short answers, with hashes that hold, into a new database."""
    models = [f"model-{n:03d}" for n in range(n_models)]
    with closing(Store(url)) as store:
        roster = [Model(id=m, name=m.title(), endpoint="pocket://x", model=m) for m in models]
        store.register(roster, FIRST)
    with ExitStack() as stack:
        write, end = _writer(url, stack)
        links, head = 0, ""
        for rows, done in _batches(votes, models):
            write(rows)
            links, head = done
            print(f"\r{links:,} votes", end="", flush=True)
        print(end="\r")
        end(head, links)


def _batches(votes: int, models: Sequence[str]) -> Iterator[tuple[Rows, tuple[int, str]]]:
    """Give the rows of votes, some at a time, with how many there are now and the last hash."""
    rng = np.random.default_rng(1)
    n_voters = max(2, votes // VOTES_A_VOTER)
    busy = rng.lognormal(0, 1.2, n_voters).cumsum()
    strength = rng.normal(0, 0.6, len(models))
    met = 1 / np.arange(1, len(models) + 1) ** 0.5
    seen: set[int] = set()
    head, link = "", 0
    for first in range(0, votes, AT_ONCE):
        n = min(AT_ONCE, votes - first)
        voter = np.searchsorted(busy, rng.random(n) * busy[-1])
        a = rng.choice(len(models), n, p=met / met.sum())
        b = (a + rng.integers(1, len(models), n)) % len(models)
        wins = rng.random(n) < 1 / (1 + np.exp(strength[b] - strength[a]))
        kind = rng.random(n)
        outcome = np.select(
            [kind < 0.05, kind < 0.12, kind < 0.3], [4, 3, 2], np.where(wins, 0, 1)
        )
        rows: Rows = {name: [] for name in COLUMNS}
        for i in range(n):
            link += 1
            when = FIRST + timedelta(seconds=DAYS * 86_400 * link / votes)
            who, vote = int(voter[i]), (models[a[i]], models[b[i]], CHOICES[outcome[i]])
            if who not in seen:
                seen.add(who)
                rows["voter"].append((f"{who:032x}", "anonymous", when))
            head = _add(rows, link, f"{who:032x}", vote, when, head)
        yield rows, (link, head)


def _add(
    rows: Rows, link: int, voter: str, vote: tuple[str, str, Choice], when: datetime, head: str
) -> str:
    """Add a vote, with its battle; gives its hash."""
    a, b, choice = vote
    name = f"b{link:09d}"
    bound = {
        "battle_id": name,
        "prompt_set": None,
        "prompt_id": None,
        "mode": "anonymous",
        "model_a": a,
        "model_b": b,
        "fingerprint_a": "f",
        "fingerprint_b": "f",
        "sampler": "uniform",
        "sampler_version": "2",
        "pair_probability": 0.0002,
        "repicks": 0,
        "pacing": "paced",
        "turn": 1,
        "attempt_a": 1,
        "attempt_b": 1,
        "order_shown": "ab",
        "winner": choice.value,
        "voter": voter,
        "voter_kind": "anonymous",
        "ts": when,
        "seconds_to_vote": 5.0,
        "transcript_hash": _transcript(a, b),
    }
    content = chain.vote_content(bound)
    after = chain.link_hash(head, link, "vote", content)
    state = "skipped" if choice is Choice.SKIP else "voted"
    drawn = (link, name, voter, "anonymous", a, b, 0, "uniform", "2", 0.0002, 0, "", "", "paced")
    rows["battle"].append((*drawn, state, when, when, "0"))
    rows["turn"].append((link, link, 1, "Why?", "n", when))
    for side, model in (("a", a), ("b", b)):
        key = 2 * link + (side == "b")
        rows["answer"].append(
            (key, link, model, 1, side, 1, "So.", "n", "", "complete", _seconds(model), "{}", when)
        )
    cast = (link, link, voter, 1, 1, 1, choice.value, "k", "ab", 5.0, "f", "f")
    rows["vote"].append((*cast, when, link, content, head, after))
    return after


def _seconds(model: str) -> float:
    return 1.0 + int(model[-3:]) / 100


@cache
def _transcript(a: str, b: str) -> str:
    """Hash what was asked and answered, as `arena.store.chain` does."""
    rows = {"turn": 1, "attempt": 1, "status": "complete", "words": chain.text_hash("n", "So.")}
    answered = []
    for side, model in (("a", a), ("b", b)):
        figures = dict.fromkeys(chain.FIGURES) | rows
        figures |= {"side": side, "model_id": model, "duration_s": _seconds(model)}
        answered.append([*(chain.plain(figures[n]) for n in chain.FIGURES), figures["words"]])
    asked = [[1, chain.text_hash("n", "Why?")]]
    return hashlib.sha256(chain.canonical([asked, answered]).encode()).hexdigest()


def _writer(
    url: str, stack: ExitStack
) -> tuple[Callable[[Rows], None], Callable[[str, int], None]]:
    """Give what writes rows, and what moves the end of the chain."""
    moved = "UPDATE vote_chain SET head = {0}, links = {0}"
    if url.startswith("sqlite"):
        lite = stack.enter_context(closing(sqlite3.connect(sqlite_file(make_url(url)))))
        for pragma in (
            "synchronous = OFF",
            "cache_size = -1500000",
            "wal_autocheckpoint = 100000",
        ):
            lite.execute(f"PRAGMA {pragma}")

        def insert(rows: Rows) -> None:
            for table, values in rows.items():
                marks = ", ".join("?" * len(COLUMNS[table]))
                names = ", ".join(COLUMNS[table])
                into = f"INSERT INTO {table} ({names}) VALUES ({marks})"
                lite.executemany(into, map(_as_text, values))
            lite.commit()

        def ended(head: str, links: int) -> None:
            lite.execute(moved.format("?"), (head, links))
            lite.execute("PRAGMA optimize = 0x10002")
            lite.commit()

        return insert, ended
    plain = make_url(url).set(drivername="postgresql").render_as_string(hide_password=False)
    full = stack.enter_context(psycopg.connect(plain))

    def copy(rows: Rows) -> None:
        with full.cursor() as cursor:
            for table, values in rows.items():
                names = ", ".join(COLUMNS[table])
                with cursor.copy(f"COPY {table} ({names}) FROM STDIN") as copied:
                    for row in values:
                        copied.write_row(row)
        full.commit()

    def end(head: str, links: int) -> None:
        full.execute(moved.format("%s"), (head, links))
        for table in COLUMNS.keys() - {"voter"}:
            last = 2 * links + 1
            full.execute(f"SELECT setval(pg_get_serial_sequence('{table}', 'id'), {last})")
        full.commit()
        full.autocommit = True
        full.execute("VACUUM ANALYZE")

    return copy, end


def _as_text(row: tuple[Any, ...]) -> tuple[Any, ...]:
    """Write moments as SQLAlchemy does for SQLite."""
    return tuple(f"{v:%Y-%m-%d %H:%M:%S.%f}" if isinstance(v, datetime) else v for v in row)


# --- reading


@dataclass(slots=True)
class Reader:
    """Somebody who reads the leaderboard over and over, and notes how long it takes.

    Attributes
    ----------
    took_s : list of (float, float)
        When each page was asked for, and the seconds until it was there.
    """

    url: str
    took_s: list[tuple[float, float]] = field(default_factory=list)
    ends: threading.Event = field(default_factory=threading.Event)
    bytes: int = 0

    def read(self) -> None:
        with client_of(self.url) as client:
            while not self.ends.wait(READ_EVERY_S):
                began = time.monotonic()
                page = client.get("/leaderboard")
                page.raise_for_status()
                self.bytes = len(page.content)
                self.took_s.append((began, time.monotonic() - began))

    def between(self, since: float, until: float) -> str:
        """Put the times of some pages into words."""
        times = [took for began, took in self.took_s if since <= began < until]
        if len(times) < 2:
            return "too few pages"
        centiles = statistics.quantiles(times, n=100)
        p50, p95 = (1000 * centiles[c - 1] for c in (50, 95))
        return f"p50 {p50:.0f} ms, p95 {p95:.0f} ms, longest {1000 * max(times):.0f} ms"


def _make(url: str) -> None:
    """Make a board step by step, and print what each takes; in a process of its own."""
    with closing(Store(url)) as store:
        stage = _Stage()
        board = Leaderboard(store, DEFAULT, _now)
        board._fill()
        stage.ends("blocks of all votes")
        records = store.read(log.model_records, _now() - VOTE_WITHIN, DEFAULT.kinds)
        stage.ends("how battles ended")
        state, columns = store.read(kept_boards.votes, DEFAULT)
        stage.ends("votes read")
        made = make_board(columns, records, DEFAULT, state, _now())
        stage.ends("board made of them")
        print(f"{made.votes:,} votes by {made.voters:,} people count, memory {stage.memory}")
        *_, past = History().read(columns, _now())
        stage.ends(f"{len(past)} past dates")
        board.refresh()


@dataclass(slots=True)
class _Stage:
    """How long a step takes, by the clock and on the processor."""

    wall: float = field(default_factory=time.monotonic)
    cpu: float = field(default_factory=time.process_time)

    def ends(self, name: str) -> None:
        wall, cpu = time.monotonic(), time.process_time()
        print(f"{name}: {wall - self.wall:.1f} s, {cpu - self.cpu:.1f} s of processor", flush=True)
        self.wall, self.cpu = wall, cpu

    @property
    def memory(self) -> str:
        return f"{resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e3:.0f} MB"


def _now() -> datetime:
    return datetime.now(UTC)


def _serve(url: str, folder: Path, patience_s: float) -> None:
    """Read the leaderboard of an arena over and over, before a vote and until it is there."""
    words = ["serve", "--port", "0", "--database", url]
    quiet = {"ARENA_LOG_LEVEL": "error"}
    with Process(words, folder, quiet) as arena, closing(Store(url)) as store:
        server = Server(arena.url(), arena.pid)
        reader = Reader(server.url)
        _rest(server, patience_s)
        thread = threading.Thread(target=reader.read)
        thread.start()
        try:
            began = time.monotonic()
            time.sleep(IDLE_S)
            voted = time.monotonic()
            pages = reader.between(began, voted)
            print(f"pages: {pages}, {reader.bytes / 1e3:.0f} kB", flush=True)
            before = store.read(kept_boards.written, DEFAULT.name)
            _vote(store)
            again = _next_board(store, before.version if before else None)
            made = time.monotonic()
            print(f"made again in {again.took_s:.1f} s, {made - voted:.0f} s after a vote")
            print(f"pages while it is made: {reader.between(made - again.took_s, made)}")
            print(f"memory of the arena at most: {_peak(arena.pid) / 1e6:.0f} MB", flush=True)
        finally:
            reader.ends.set()
            thread.join()


def _rest(arena: Server, patience_s: float) -> None:
    """Wait until an arena has made what it makes beside requests, labels excluded."""
    began = time.monotonic()
    while (rested := time.monotonic() - began) < patience_s:
        used = arena.cpu_s()
        time.sleep(LOOK_S)
        share = (arena.cpu_s() - used) / LOOK_S
        if share < AT_REST:
            print(f"after {rested:.0f} s the arena takes {share:.0%} of a processor", flush=True)
            return
    if patience_s:
        print(f"not at rest after {patience_s:.0f} s", flush=True)


def _next_board(store: Store, version: str | None) -> kept_boards.Written:
    deadline = time.monotonic() + PATIENCE_S
    while time.monotonic() < deadline:
        written = store.read(kept_boards.written, DEFAULT.name)
        if written is not None and written.version != version:
            return written
        time.sleep(0.1)
    raise TimeoutError


def _vote(store: Store) -> None:
    """Play a battle, and vote on it."""
    name = uuid.uuid4().hex  # a database that is filled may have had such a vote before
    battle = new_battle(name)
    a, b = (replace(battle.a, id=f"model-{n:03d}") for n in (0, 1))
    store.open_battle(replace(battle, a=a, b=b, prompt_id=None))
    ends = {A1: complete(), B1: complete()}
    store.close_answers(name, BattleState.READY, ends, message=None, now=NOW)
    store.cast(ballot(name))


def _peak(pid: int) -> int:
    """Give the most memory that a process has had, in bytes."""
    status = Path(f"/proc/{pid}/status").read_text(encoding="utf-8")
    return 1024 * int(status.partition("VmHWM:")[2].split()[0])


def _size(url: str) -> int:
    """Give the bytes of a database, its log excluded."""
    with opened(url) as engine, engine.connect() as connection:
        if engine.dialect.name == "postgresql":
            return int(connection.scalar(text("SELECT pg_database_size(current_database())")) or 0)
        return sqlite_file(engine.url).stat().st_size


if __name__ == "__main__":
    main()
