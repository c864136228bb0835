"""Judging in the database: requests to judges, their replies, and what endpoints refuse.

`StoredJournal` is a database as `judge.calls.Journal`. A request is claimed while it is asked, so
that two processes do not pay for it twice. Lessons are the parameters that an endpoint refuses,
each in the endpoint's own words; live battles keep to them, too.
"""

import asyncio
import secrets
from collections import defaultdict
from collections.abc import AsyncGenerator, Callable, Collection, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager
from datetime import datetime, timedelta
from typing import Any, TypeVar

from sqlalchemy import bindparam, delete, select
from sqlalchemy.dialects import postgresql  # SQLite spells its conflicts alike
from sqlmodel import Session, col

from arena.store.engine import PATIENCE, PULSE_S
from arena.store.store import Store
from arena.store.tables import (
    EndpointLessonRow,
    JudgementClaimRow,
    JudgementRow,
    JudgingSeedRow,
    VerdictRow,
)
from judge.budget import Price, cost_of
from judge.calls import Key
from judge.case import FailureClass, Reply, Request
from judge.grammar import Preference, Reading, noted

BATCH = 500
"""Keys in one statement."""

TOGETHER_S = 0.03
"""Wait for more replies before a commit: it takes the processor as long as ten replies do."""

Row = dict[str, Any]
T = TypeVar("T")


RECALL = select(col(JudgementRow.hash), col(JudgementRow.response)).where(
    col(JudgementRow.hash).in_(bindparam("keys", expanding=True))
)
TAKE = (
    postgresql.insert(JudgementClaimRow)
    .on_conflict_do_nothing()
    .returning(col(JudgementClaimRow.hash))
)
KEEP = postgresql.insert(JudgementRow).on_conflict_do_nothing()
_NEW = postgresql.insert(VerdictRow)
NOTE = _NEW.on_conflict_do_update(
    index_elements=["judgement_hash", "parser_version"],
    set_={name: _NEW.excluded[name] for name in ("outcome", "detail", "created")},
)
"""Statements for many rows at once: made and compiled one time, whatever the number of rows."""


def judging_seed(store: Store, now: datetime) -> str:
    """Give the secret of all runs on this database; the first one to ask makes it."""
    new = {"id": 1, "seed": secrets.token_hex(16), "created": now}
    with store.writing() as session:
        make = postgresql.insert(JudgingSeedRow).values(new).on_conflict_do_nothing()
        session.connection().execute(make)
        return str(session.scalars(select(col(JudgingSeedRow.seed))).one())


class StoredJournal:
    """A journal in the arena's database, which several processes may share.

    A process claims with its lease, so its claims return when it dies, however it dies: runs that
    live see to that, each while it is `alive`.

    Parameters
    ----------
    judge : str
        What answers.
    price : Price or None
        To note what each reply cost; None notes no cost.
    recalled : callable
        What a reply that was kept counts as now.
    """

    def __init__(
        self,
        store: Store,
        judge: str,
        price: Price | None,
        now: Callable[[], datetime],
        recalled: Callable[[Reply], Reply] = lambda reply: reply,
    ) -> None:
        self._store, self._judge, self._price, self._now = store, judge, price, now
        self._recalled = recalled
        self._due: list[tuple[Row, asyncio.Future[None]]] = []
        self._writer: asyncio.Task[None] | None = None
        store.hold_lease()

    @asynccontextmanager
    async def alive(self) -> AsyncGenerator[None]:
        """Drop claims of processes that died, now and again and again while a run lasts."""
        await asyncio.to_thread(self.release_abandoned_claims, looks=1)
        async with asyncio.TaskGroup() as tasks:
            pulse = tasks.create_task(self._pulse())
            yield
            pulse.cancel()

    async def _pulse(self) -> None:
        while True:
            await asyncio.sleep(PULSE_S)
            await asyncio.to_thread(self.release_abandoned_claims, looks=PATIENCE)

    def holds(self, judge: str) -> bool:
        """Whether a judge of this name has replied."""
        theirs = select(col(JudgementRow.hash)).where(col(JudgementRow.judge) == judge).limit(1)
        with self._store.reading() as session:
            return session.scalars(theirs).first() is not None

    def lessons(self, endpoint: str) -> Mapping[str, str]:
        """Return what is known of an endpoint."""
        return self._store.read(lessons_of, endpoint, self._now())

    def learn(self, endpoint: str, name: str, sentence: str) -> None:
        """Keep what an endpoint has taught; it takes a moment, a few times in the life of one."""
        self._store.write(keep_lesson, endpoint, name, sentence, self._now())

    async def recall(self, keys: Collection[Key]) -> Mapping[Key, Reply]:
        """Return the kept replies among these keys."""
        return await asyncio.to_thread(self._recall, keys)

    async def claim(self, keys: Collection[Key]) -> frozenset[Key]:
        """Take the keys that have no reply and no holder; return those that are ours."""
        return await asyncio.to_thread(self._claim, keys)

    def keep(self, key: Key, request: Request, reply: Reply) -> "asyncio.Future[None]":
        """Store a reply and end the claim on it; replies that come together share a commit."""
        done = asyncio.get_running_loop().create_future()
        self._due.append((self._row(key, request, reply), done))
        if self._writer is None or self._writer.done():
            self._writer = asyncio.create_task(self._write_due())
        return done

    async def release(self, keys: Collection[Key]) -> None:
        """Give up claims on keys that got no reply."""
        await asyncio.to_thread(self._store.write, self._drop, keys)

    async def note(self, parser: str, readings: Mapping[Key, Reading | FailureClass]) -> None:
        """Store what this version of a parser read, in place of what it read before."""
        await asyncio.to_thread(self._note, parser, readings)

    def release_abandoned_claims(self, looks: int) -> int:
        """Show that this process lives, and drop the claims of those that do not.

        Parameters
        ----------
        looks : int
            Calls in a row, this one among them, that must have found a process without a lease.

        Returns
        -------
        int
            How many claims there were.
        """
        self._store.hold_lease()
        holder = col(JudgementClaimRow.process)
        with self._store.reading() as session:
            holders = set(session.scalars(select(holder).distinct()))
            dead = self._store.dead(session, holders, looks)
        if not dead:
            return 0
        with self._store.writing() as session:
            gone = delete(JudgementClaimRow).where(holder.in_(dead))
            return session.connection().execute(gone).rowcount

    def _recall(self, keys: Collection[Key]) -> dict[Key, Reply]:
        replies = {}
        with self._store.reading() as session:
            for some in _parts(keys):
                for key, reply in session.connection().execute(RECALL, {"keys": some}):
                    replies[Key(key)] = self._recalled(Reply.from_dict(reply))
        return replies

    def _claim(self, keys: Collection[Key]) -> frozenset[Key]:
        """Claim first and look for replies then: between the two, none can come any more."""
        with self._store.writing() as session:
            claim = {"process": self._store.process, "created": self._now()}
            claims = [{"hash": key, **claim} for key in sorted(keys)]
            ours = {Key(key) for (key,) in session.connection().execute(TAKE, claims)}
            answered = {key for some in _parts(ours) for key in _answered(session, some)}
            self._drop(session, answered)
        return frozenset(ours - answered)

    def _drop(self, session: Session, keys: Collection[Key]) -> None:
        ours = delete(JudgementClaimRow).where(
            col(JudgementClaimRow.process) == self._store.process
        )
        for some in _parts(keys):
            session.connection().execute(ours.where(col(JudgementClaimRow.hash).in_(some)))

    async def _write_due(self) -> None:
        while self._due:
            await asyncio.sleep(TOGETHER_S)
            due, self._due = self._due, []
            try:
                await asyncio.to_thread(self._keep, [row for row, _ in due])
            except Exception as error:  # noqa: BLE001 - raised where it is awaited
                for done in (done for _, done in due if not done.done()):
                    done.set_exception(error)
            else:
                for done in (done for _, done in due if not done.done()):
                    done.set_result(None)

    def _keep(self, rows: Sequence[Row]) -> None:
        with self._store.writing() as session:
            session.connection().execute(KEEP, sorted(rows, key=lambda row: str(row["hash"])))
            self._drop(session, [row["hash"] for row in rows])

    def _row(self, key: Key, request: Request, reply: Reply) -> Row:
        return {
            "hash": key,
            "judge": self._judge,
            "request": {
                "messages": [
                    [turn.role, turn.content, *([turn.image_hashes] if turn.images else [])]
                    for turn in request.messages
                ],
                "parameters": request.parameters.to_dict(),
            },
            "response": reply.to_dict(),
            "cost": cost_of(request, reply, self._price),
            "duration_s": reply.latency_s,
            "created": self._now(),
        }

    def _note(self, parser: str, readings: Mapping[Key, Reading | FailureClass]) -> None:
        now = self._now()
        rows = [_verdict(key, parser, readings[key], now) for key in sorted(readings)]
        if rows:
            with self._store.writing() as session:
                session.connection().execute(NOTE, rows)


def _parts(values: Collection[T]) -> Iterator[list[T]]:
    """Give values in as many pieces as statements are needed."""
    items = list(values)
    return (items[start : start + BATCH] for start in range(0, len(items), BATCH))


def _answered(session: Session, keys: Sequence[Key]) -> Iterator[Key]:
    hashes = select(col(JudgementRow.hash)).where(col(JudgementRow.hash).in_(keys))
    return (Key(key) for key in session.scalars(hashes))


def _verdict(key: Key, parser: str, reading: Reading | FailureClass, now: datetime) -> Row:
    return {
        "judgement_hash": key,
        "parser_version": parser,
        "outcome": reading.outcome.value if isinstance(reading, Preference) else None,
        "detail": noted(reading),
        "created": now,
    }


# What endpoints refuse

VALID_FOR = timedelta(days=30)
"""For so long a lesson holds: endpoints change, and what is omitted changes the answers."""


def lessons(session: Session, now: datetime) -> Mapping[str, Mapping[str, str]]:
    """Return what is known of every endpoint: its sentence by parameter, by its name."""
    row = EndpointLessonRow
    columns = (col(row.endpoint), col(row.name), col(row.sentence))
    by_endpoint: dict[str, dict[str, str]] = defaultdict(dict)
    for endpoint, name, sentence in session.connection().execute(
        select(*columns).where(col(row.created) > now - VALID_FOR)
    ):
        by_endpoint[endpoint][name] = sentence
    return by_endpoint


def lessons_of(session: Session, endpoint: str, now: datetime) -> Mapping[str, str]:
    """Return what is known of an endpoint."""
    return lessons(session, now).get(endpoint, {})


def keep_lesson(session: Session, endpoint: str, name: str, sentence: str, now: datetime) -> None:
    """Write a lesson down, in the place of what was learnt of the same before."""
    values = {"endpoint": endpoint, "name": name, "sentence": sentence, "created": now}
    new = postgresql.insert(EndpointLessonRow).values(values)
    again = {column: new.excluded[column] for column in ("sentence", "created")}
    session.connection().execute(
        new.on_conflict_do_update(index_elements=["endpoint", "name"], set_=again)
    )
