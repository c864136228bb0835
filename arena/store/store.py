"""The store: every transaction that the live path makes, and what boards read."""

import threading
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from datetime import datetime
from pathlib import Path
from typing import Concatenate, ParamSpec, TypeVar

from sqlalchemy import Engine, func, select, text
from sqlalchemy.exc import SQLAlchemyError
from sqlmodel import Session

from arena.domain.battle import BattleState, Remarks, Side
from arena.domain.model import Model
from arena.domain.vote import Receipt
from arena.errors import StoreError
from arena.store import battles, log, voting
from arena.store.battles import stored_battle, written_battle
from arena.store.chain import (
    AnswerKey,
    AnswerOutcome,
    Ballot,
    NewBattle,
    StoredBattle,
)
from arena.store.engine import (
    LOCK_TIMEOUT_S,
    WAIT_S,
    Lease,
    alone,
    clear_space,
    describe,
    migrate,
    open_engine,
    reading_existing,
    shown,
    snapshot,
    sqlite_file,
)
from arena.store.voting import Notifications, remark

P = ParamSpec("P")
T = TypeVar("T")

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
            msg = (
                f"The database {str(self._path)!r} was moved or deleted while it was in use. "
                "Stop the arena, put the file back, and start it again."
            )
            raise StoreError(msg)
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
            Session(self.engine) as session,
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

    def read(
        self, query: Callable[Concatenate[Session, P], T], *args: P.args, **kwargs: P.kwargs
    ) -> T:
        """Read what a query gives, in a transaction of its own."""
        with self.reading() as session:
            return query(session, *args, **kwargs)

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
            msg = "A thread that reads must end that before it writes."
            raise RuntimeError(msg)

    @contextmanager
    def _under_way(self) -> Iterator[None]:
        """Count a transaction for as long as it lasts."""
        with self._changed:
            if self._closed:
                msg = f"The database {shown(self.engine)} was closed."
                raise StoreError(msg)
            self._transactions += 1
        try:
            yield
        finally:
            with self._changed:
                self._transactions -= 1
                self._changed.notify_all()

    def register(self, roster: Sequence[Model], now: datetime) -> list[str]:
        """Note the roster's models; returns the ids of those that changed under their id."""
        with self.writing() as session:
            alone(session.connection())  # two that begin at once would add the same models
            return log.register(session, roster, now)

    def open_battle(self, new: NewBattle) -> StoredBattle:
        """Write a battle, its first turn and both answers, all before the first token."""
        with self.writing() as session:
            return battles.open_battle(session, new, self.process)

    def add_turn(
        self,
        battle_id: str,
        owner: str,
        prompt: str,
        now: datetime,
        *,
        asked_since: datetime | None = None,
        instead: Mapping[Side, Model] | None = None,
    ) -> StoredBattle:
        """Write the next turn of a ready battle; raises `NotReadyError` of any other."""
        with self.writing() as session:
            battles.add_turn(
                session,
                battle_id,
                owner,
                prompt,
                now,
                self.process,
                asked_since=asked_since,
                instead=instead,
            )
        return self.read(written_battle, battle_id)

    def add_attempts(
        self,
        battle_id: str,
        owner: str,
        now: datetime,
        *,
        only_incomplete: bool,
        asked_since: datetime | None = None,
        instead: Mapping[Side, Model] | None = None,
    ) -> StoredBattle:
        """Write new attempts of the latest turn: see `arena.store.battles.add_attempts`."""
        with self.writing() as session:
            battles.add_attempts(
                session,
                battle_id,
                owner,
                now,
                self.process,
                only_incomplete=only_incomplete,
                asked_since=asked_since,
                instead=instead,
            )
        return self.read(written_battle, battle_id)

    def replace_answer(
        self, battle_id: str, key: AnswerKey, failed: AnswerOutcome, new: Model, now: datetime
    ) -> bool:
        """Keep a failed answer, and let another model take its side.

        Nothing is written, and False given, if the answer has had another end in the meantime.
        """
        with self.writing() as session:
            return battles.replace_answer(session, battle_id, key, failed, new, now)

    def checkpoint(self, so_far: Mapping[str, Mapping[AnswerKey, tuple[str, str]]]) -> None:
        """Store the text of running answers, by battle; ended answers stay as they are."""
        with self.writing() as session:
            battles.checkpoint(session, so_far)

    def close_answers(
        self,
        battle_id: str,
        state: BattleState,
        outcomes: Mapping[AnswerKey, AnswerOutcome],
        *,
        message: str | None,
        now: datetime,
    ) -> BattleState:
        """Write how both answers ended and the state that follows, in one transaction.

        The first end stands: nothing is written if the battle has had another one, or goes on
        with other answers. Returns the battle's state after this.
        """
        with self.writing() as session:
            return battles.close_answers(
                session, battle_id, state, outcomes, message=message, now=now
            )

    def fail(self, battle_id: str, message: str) -> None:
        """Mark a battle of this process as failed, if it still runs in the log.

        Nothing that its models sent is written: it may be why no other end could be.
        """
        with self.writing() as session:
            battles.fail(session, battle_id, self.process, message)

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
        """Read a battle for its owner.

        Raises
        ------
        UnknownBattleError
            If there is none, or it is another user's.
        """
        return self.read(stored_battle, battle_id, owner)

    def cast(self, ballot: Ballot) -> tuple[Receipt, bool]:
        """Commit a vote, and give whom it reveals, and whether it was committed just now.

        The same key with the same choice gives the same answer again.

        Raises
        ------
        UnknownBattleError, NotReadyError, AlreadyVotedError
            Nothing is written then.
        """
        with self.writing() as session:
            return voting.cast(session, ballot)

    def remark(
        self, battle_id: str, owner: str, remarks: Remarks, now: datetime, *, asked: bool
    ) -> StoredBattle:
        """Write what is remarked beside a vote, and read the battle: see `arena.store.voting`.

        Raises
        ------
        UnknownBattleError, NotReadyError
            Nothing is written then.
        """
        with self.writing() as session:
            remark(session, battle_id, owner, remarks, now, asked=asked)
            return stored_battle(session, battle_id, owner)


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
        msg = f"The database {shown(engine)} failed: {describe(error)}."
        raise StoreError(msg) from error
