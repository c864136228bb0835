"""The store: every transaction that the live path makes, and what boards read."""

import threading
import time
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Concatenate, ParamSpec, TypeVar

from sqlalchemy import Engine, func, select, text
from sqlalchemy.exc import SQLAlchemyError
from sqlmodel import Session

from arena.errors import StoreError
from arena.store import battles, log, voting
from arena.store.chain import StoredBattle
from arena.store.engine import (
    LOCK_TIMEOUT_S,
    WAIT_S,
    Lease,
    Notifications,
    clear_space,
    describe,
    migrate,
    named,
    open_engine,
    reading_existing,
    require_sessions,
    shown,
    snapshot,
    sqlite_file,
)

P = ParamSpec("P")
T = TypeVar("T")
_Act = Callable[Concatenate[Session, P], T]
"""What is done in a transaction, such as a function of `arena.store.battles`."""

SOLE = 0x736F6C65
"""PostgreSQL advisory locks of tasks that one process does at a time."""

CHECK_S = 1.0
"""How long a look at whether the database takes writes waits for others who write."""


class _OpenFile:
    """A SQLite file: one thread writes at a time, and none once the file was moved or deleted."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._turn = threading.Lock()
        self._opened = self._identity()

    @contextmanager
    def alone(self, wait_s: float) -> Iterator[float]:
        """Let one thread write at a time; gives the seconds that are left to wait for others.

        SQLite has one writer: here the threads queue, where the file's own lock would let them
        sleep and try again.

        Raises
        ------
        StoreError
            If it is not this thread's turn in time, or the file is no longer where it was: what
            is written then would be lost.
        """
        began = time.monotonic()
        if self._identity() != self._opened:
            raise StoreError(
                f"The database {str(self._path)!r} was moved or deleted while it was in use. "
                "Stop the arena, put the file back, and start it again."
            )
        if not self._turn.acquire(timeout=wait_s):
            msg = f"The database {str(self._path)!r} was locked by others for {wait_s:g} s."
            raise StoreError(msg)
        try:
            yield max(0.0, began + wait_s - time.monotonic())
        finally:
            self._turn.release()

    def _identity(self) -> tuple[int, int] | None:
        try:
            stat = self._path.stat()
        except OSError:
            return None
        return stat.st_dev, stat.st_ino


def _transaction(act: _Act[P, T]) -> "Callable[Concatenate[Store, P], T]":
    """Make the method that does an act in a transaction of its own: all of it, or nothing."""

    def method(store: "Store", /, *args: P.args, **kwargs: P.kwargs) -> T:
        return store.write(act, *args, **kwargs)

    method.__doc__ = act.__doc__
    return method


class Store:
    """A migrated database. Its methods block: call them off the event loop.

    Parameters
    ----------
    url : str
        ``sqlite:///file.db`` or ``postgresql://user@host/name``.
    lock_timeout_s : float
        How long a transaction waits for the locks of others before it fails.

    Raises
    ------
    StoreError
        If the database cannot be opened or migrated; every method, if it goes away or was
        closed.
    """

    def __init__(self, url: str, lock_timeout_s: float = LOCK_TIMEOUT_S) -> None:
        self.engine: Engine = open_engine(url, lock_timeout_s)
        try:
            with named(f"use the database {shown(self.engine)}"):
                require_sessions(self.engine)
            migrate(self.engine)
        except StoreError:
            self.engine.dispose()
            raise
        self._reader = snapshot(self.engine)
        self.lock_timeout_s = lock_timeout_s
        sqlite = self.engine.dialect.name == "sqlite"
        self._file = _OpenFile(sqlite_file(self.engine.url)) if sqlite else None
        self._lease = Lease(self.engine)
        self._transactions = 0
        self._closed = False
        self._changed = threading.Condition()
        self._thread = threading.local()

    def close(self) -> None:
        """Wait for the transactions that have begun, give up the lease, and disconnect.

        Later transactions are refused: a thread that is late would connect again, and nobody
        would close its connection.
        """
        with self._changed:
            self._closed = True
            self._changed.wait_for(lambda: self._transactions == 0)
        self._lease.drop()
        self.engine.dispose()

    def hold_lease(self) -> None:
        """Show that this process lives, before it runs battles and all the time that it does.

        Again at every pulse: a lease that was lost with its connection is taken again.
        """
        with _named(self.engine):
            self._lease.hold()

    @property
    def process(self) -> int | None:
        """Number under which this process runs battles; None without a lease."""
        return self._lease.process if self._lease.held else None

    def notifications(self) -> Notifications | None:
        """Give what reaches the other processes; None on SQLite, and with other drivers."""
        reaches = self.engine.dialect.driver == "psycopg"
        return Notifications(self.engine, self._lease.process) if reaches else None

    def check(self) -> None:
        """Raise `StoreError` unless the database takes a write; nothing in it grows."""
        with self._under_way(), _named(self.engine):
            require_sessions(self.engine)
        with self.writing(CHECK_S) as session:
            if self._file:
                n = session.scalar(text("PRAGMA user_version")) or 0
                session.execute(text(f"PRAGMA user_version = {(n + 1) % 1000}"))
            else:
                session.execute(text(f"SET LOCAL lock_timeout = '{CHECK_S}s'"))
                session.execute(text("UPDATE alembic_version SET version_num = version_num"))

    @contextmanager
    def writing(self, wait_s: float | None = None) -> Iterator[Session]:
        """Give a transaction that commits at the end, or leaves nothing behind.

        ``session.info["process"]`` is the number of this process.

        Parameters
        ----------
        wait_s : float or None
            How long to wait for others who write to SQLite; None waits as long as the store does.
        """
        wait_s = self.lock_timeout_s if wait_s is None else wait_s
        alone = self._file.alone(wait_s) if self._file else nullcontext(wait_s)
        self._refuse_in_reading()
        with (
            self._under_way(),
            _named(self.engine),
            alone as left_s,
            Session(self.engine, info={"process": self.process}) as session,
            session.begin(),
        ):
            session.connection(execution_options={WAIT_S: left_s})
            yield session

    def clear_space(self) -> None:
        """Write the files again in which erased words may still lie.

        SQLite's file and the log beside it; PostgreSQL's tables of words, and its samples of their
        values. Others who write wait meanwhile.

        Raises
        ------
        StoreError
            If the database is in use for so long that it cannot be done; nothing is lost then.
        """
        wait_s = self.lock_timeout_s
        alone = self._file.alone(wait_s) if self._file else nullcontext(wait_s)
        self._refuse_in_reading()
        with self._under_way(), _named(self.engine), alone:
            clear_space(self.engine, wait_s)

    @contextmanager
    def reading(self) -> Iterator[Session]:
        """Give a transaction that only reads, all of it as of one moment.

        Its thread writes after it: who clears space waits for all who read, and all who write
        wait for them.
        """
        outer, self._thread.reads = getattr(self._thread, "reads", False), True
        try:
            with self._under_way(), _named(self.engine), Session(self._reader) as session:
                yield session
        finally:
            self._thread.reads = outer

    def read(self, query: _Act[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Read what a query gives, in a transaction of its own."""
        with self.reading() as session:
            return query(session, *args, **kwargs)

    def write(self, act: _Act[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Do what an act writes, in a transaction of its own."""
        with self.writing() as session:
            return act(session, *args, **kwargs)

    @contextmanager
    def sole(self, task: str) -> Iterator[bool]:
        """Hold a task alone until the end, if no other process does, with nothing read or written.

        On SQLite, which one process serves as a rule, none is: two would do the same.
        """
        if self._file:
            yield True
            return
        key = (SOLE, func.hashtext(task))
        engine = self.engine.execution_options(isolation_level="AUTOCOMMIT")
        with self._under_way(), _named(self.engine), engine.connect() as connection:
            mine = bool(connection.scalar(select(func.pg_try_advisory_lock(*key))))
            try:
                yield mine
            finally:
                if mine:
                    connection.execute(select(func.pg_advisory_unlock(*key)))

    def _refuse_in_reading(self) -> None:
        if getattr(self._thread, "reads", False):
            raise RuntimeError("A thread that reads must end that before it writes.")

    @contextmanager
    def _under_way(self) -> Iterator[None]:
        """Count a transaction for as long as it lasts."""
        with self._changed:
            if self._closed:
                raise StoreError(f"The database {shown(self.engine)} was closed.")
            self._transactions += 1
        try:
            yield
        finally:
            with self._changed:
                self._transactions -= 1
                self._changed.notify_all()

    register = _transaction(log.register)
    open_battle = _transaction(battles.open_battle)
    add_turn = _transaction(battles.add_turn)
    add_attempts = _transaction(battles.add_attempts)
    replace_answer = _transaction(battles.replace_answer)
    checkpoint = _transaction(battles.checkpoint)
    close_answers = _transaction(battles.close_answers)
    fail = _transaction(battles.fail)
    cast = _transaction(voting.cast)
    remark = _transaction(battles.remark)

    def interrupt_running(self, message: str, *, looks: int = 1) -> int:
        """Mark the running battles of dead processes, and those of none, as interrupted.

        Parameters
        ----------
        looks : int
            Calls in a row, this one among them, that must have found a process without a lease.

        Returns
        -------
        int
            How many there were.
        """
        with self.reading() as session:
            running = battles.processes_of_running(session)
            others = {process for process in running if process is not None}
            dead = self.dead(session, others, looks)
        if not dead and None not in running:
            return 0
        with self.writing() as session:
            return battles.interrupt(session, dead, message)

    def dead(self, session: Session, processes: Collection[int], looks: int) -> set[int]:
        """Tell which of the other processes had no lease at this many looks in a row."""
        return self._lease.dead(session, processes, looks)

    def battle(self, battle_id: str, owner: str) -> StoredBattle:
        """Read a battle for its owner: see `arena.store.battles.stored_battle`."""
        return self.read(battles.stored_battle, battle_id, owner)


@contextmanager
def existing(url: str) -> Iterator[Store]:
    """Open a database that is there, and close it at the end: a wrong name makes none.

    Raises
    ------
    StoreError
        If there is none, it has not the schema of this version, or cannot be opened.
    """
    with reading_existing(url):
        pass
    store = Store(url)
    try:
        yield store
    finally:
        store.close()


@contextmanager
def _named(engine: Engine) -> Iterator[None]:
    try:
        yield
    except SQLAlchemyError as error:
        raise StoreError(f"The database {shown(engine)} failed: {describe(error)}.") from error
