"""Which processes live: each holds a lock that goes when it dies, however it dies.

A lock rather than a heartbeat, so that no clock is compared with another machine's and a killed
process is known to be dead at once. PostgreSQL drops the advisory locks of a connection that has
gone; the kernel drops the file locks of a process that has gone.
"""

import fcntl
import os
import secrets
import threading
from collections.abc import Collection
from contextlib import suppress
from pathlib import Path

from sqlalchemy import Connection, Engine, func, select, text
from sqlalchemy.exc import SQLAlchemyError
from sqlmodel import Session

from arena.errors import StoreError
from arena.store.engine import sqlite_file

PULSE_S = 2.0
"""How often a process makes sure of its lock, and looks for the locks of others."""

PATIENCE = 3
"""Looks in a row that find no lock before a process counts as dead.

A process that lost its connection, but lives, takes its lock again at its next pulse: that is
sooner than the third look of anybody else.
"""

KEEPALIVE = (
    "SET tcp_keepalives_idle = 10",
    "SET tcp_keepalives_interval = 5",
    "SET tcp_keepalives_count = 3",
)
"""So the server notices within 25 seconds that a machine has lost its power."""


class AdvisoryLock:
    """A PostgreSQL advisory lock, held by a connection that does nothing else."""

    def __init__(self, engine: Engine, process: int) -> None:
        self._engine = engine
        self._process = process
        self._connection: Connection | None = None

    def hold(self) -> None:
        """Take the lock, or make sure that the connection which holds it is still there."""
        try:
            if self._connection is not None:
                self._connection.execute(text("SELECT 1"))
                return
        except SQLAlchemyError:
            self._close()
        self._connection = self._take()

    def drop(self) -> None:
        """Give the lock up; others see that at once.

        Only to close the connection leaves the lock until the server has seen it: whoever begins
        in that moment would take this process for one that lives.
        """
        if self._connection is not None:
            with suppress(SQLAlchemyError):  # lost with its connection
                self._connection.execute(select(func.pg_advisory_unlock(self._process)))
            self._close()

    def _close(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def is_free(self, session: Session, process: int) -> bool:
        """Whether nobody holds a process's lock; shared, so that two may ask at once."""
        return bool(session.scalar(select(func.pg_try_advisory_xact_lock_shared(process))))

    def _take(self) -> Connection:
        connection = self._engine.connect().execution_options(isolation_level="AUTOCOMMIT")
        connection.detach()  # not one of the pool's, and closed when it is let go
        try:
            for statement in KEEPALIVE:
                connection.execute(text(statement))
            if connection.scalar(select(func.pg_try_advisory_lock(self._process))):
                return connection
        except SQLAlchemyError:
            connection.close()
            raise
        connection.close()
        msg = "This process's lock is still held by a connection that it lost, or looked at."
        raise StoreError(msg)


class FileLock:
    """One byte of a file beside a SQLite database, locked for the process whose number it is.

    Such a lock belongs to the whole process: a process takes one lease on a file, not two.
    """

    def __init__(self, file: Path, process: int) -> None:
        self._file = file
        self._process = process
        self._open: int | None = None

    def hold(self) -> None:
        """Take the lock; the kernel keeps it until the process ends."""
        try:
            fcntl.lockf(self._descriptor(), fcntl.LOCK_EX | fcntl.LOCK_NB, 1, self._process)
        except OSError as error:
            msg = (
                f"Cannot lock {str(self._file)!r}: {error.strerror}. "
                "Keep a SQLite database in a folder of a local disk that the arena may write to."
            )
            raise StoreError(msg) from error

    def drop(self) -> None:
        """Give the lock up; the file stays, as others may have it open."""
        if self._open is not None:
            os.close(self._open)
            self._open = None

    def is_free(self, _session: Session, process: int) -> bool:
        """Whether nobody holds a process's lock."""
        try:
            fcntl.lockf(self._descriptor(), fcntl.LOCK_EX | fcntl.LOCK_NB, 1, process)
        except (BlockingIOError, PermissionError):
            return False
        fcntl.lockf(self._descriptor(), fcntl.LOCK_UN, 1, process)
        return True

    def _descriptor(self) -> int:
        if self._open is None:
            self._open = os.open(self._file, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        return self._open


class Lease:
    """The proof that this process lives, and what it sees of the others.

    Attributes
    ----------
    process : int
        Its number: random, of 63 bits.
    held : bool
        Whether it was ever taken; a process without a lease runs no battles of its own.
    """

    def __init__(self, engine: Engine) -> None:
        self.process = secrets.randbits(63)
        self.held = False
        self._lock = _lock(engine, self.process)
        self._missed: dict[int, int] = {}
        self._given_up = False
        self._one_at_a_time = threading.Lock()

    def hold(self) -> None:
        """Take it, or make sure of it and take it again if it was lost; not once given up."""
        with self._one_at_a_time:
            if not self._given_up:
                self._lock.hold()
                self.held = True

    def drop(self) -> None:
        """Give it up for good, whatever a pulse may be doing in this moment."""
        with self._one_at_a_time:
            self._lock.drop()
            self._given_up, self.held = True, False

    def dead(self, session: Session, processes: Collection[int], looks: int) -> set[int]:
        """Tell which of the other processes had no lock at so many looks in a row."""
        with self._one_at_a_time:
            self._missed = {
                process: self._missed.get(process, 0) + 1
                for process in processes
                if process != self.process and self._lock.is_free(session, process)
            }
            return {process for process, looked in self._missed.items() if looked >= looks}


def _lock(engine: Engine, process: int) -> AdvisoryLock | FileLock:
    if engine.dialect.name == "postgresql":
        return AdvisoryLock(engine, process)
    file = sqlite_file(engine.url)
    return FileLock(file.with_name(f"{file.name}-lock"), process)
