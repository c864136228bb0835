"""A database as processes open and share it: SQLite or PostgreSQL, by its URL.

`open_engine` connects, `migrate` gives the database the schema of this version, and
`reading_existing` only reads. A process that serves holds a `Lease`, and on PostgreSQL sends
others messages by `Notifications`.

A lease is a lock rather than a heartbeat, so that no clock is compared with another machine's and
a killed process is known to be dead at once. PostgreSQL drops the advisory locks of a connection
that has gone; the kernel drops the file locks of a process that has gone.
"""

import fcntl
import math
import os
import re
import secrets
import shutil
import sqlite3
import threading
import time
from collections.abc import Collection, Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from functools import cache, partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from urllib.parse import quote

from alembic import command
from alembic.config import Config
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import (
    Connection,
    Engine,
    String,
    bindparam,
    create_engine,
    event,
    func,
    insert,
    inspect,
    select,
    text,
)
from sqlalchemy.dialects.postgresql import ARRAY
from sqlalchemy.engine import URL, make_url
from sqlalchemy.exc import ArgumentError, NoSuchModuleError, ProgrammingError, SQLAlchemyError
from sqlmodel import Session

from arena.errors import PoolingError, SchemaError, StoreError
from arena.store.tables import ChainRow, Table
from rating.tables.files import require_file

# Opening and migrating

EXAMPLES = "sqlite:///arena.db or postgresql://user@host/name"

POSTGRESQL = {
    "client_encoding": "utf8",
    "connect_timeout": 15,
    "keepalives_idle": 10,
    "keepalives_interval": 5,
    "keepalives_count": 3,
    "tcp_user_timeout": 25_000,
}
"""A server that no longer answers is given up after 15 or 25 seconds, not in hours."""

READ_ONLY = "arena_read_only"
"""Execution option of a transaction that will not write."""

WAIT_S = "arena_wait_s"
"""Execution option of a transaction on SQLite: how long it waits for the write lock."""

LOCK_TIMEOUT_S = 15.0
"""How long a statement waits for a lock that another process holds."""

OF_WORDS = (
    "turn", "answer", "battle", "vote", "vote_remark", "vote_block", "vote_style", "board",
    "exclusion", "judgement", "verdict", "topic_release", "person", "invitation", "act",
    "study_rater", "study_assignment", "study_rating",
)  # fmt: skip
"""Tables with words of people in them, or their votes."""

_READS_OLDER = text(
    "SELECT EXISTS (SELECT FROM pg_stat_activity WHERE datname = current_database()"
    " AND pid <> pg_backend_pid() AND age(backend_xmin) >= age(CAST(CAST(:now AS text) AS xid)))"
)

STARTING = 0x6172656E61
"""PostgreSQL advisory lock of a process that begins: the letters of "arena"."""


def open_engine(url: str, lock_timeout_s: float = LOCK_TIMEOUT_S) -> Engine:
    """Connect to a database; a new SQLite file is its owner's alone to read.

    Parameters
    ----------
    url : str
        ``sqlite:///file.db`` or ``postgresql://user@host/name``.

    Raises
    ------
    StoreError
        If the URL cannot be read or the database cannot be reached.
    """
    scheme, separator, rest = url.partition("://")
    fault = f"Write it like {EXAMPLES}."
    try:
        parsed = make_url(f"postgresql{separator}{rest}" if scheme == "postgres" else url)
    except (ArgumentError, ValueError):
        parsed = None
    if parsed is not None and parsed.get_backend_name() == "sqlite":
        if parsed.host:
            parsed, fault = None, "A file takes three slashes: sqlite:///file.db."
    elif parsed is not None and "@" in f"{parsed.host}{parsed.database}{[*parsed.query]}":
        parsed, fault = None, "Write special characters of the password as %40 (for @) and so on."
    if parsed is None:  # it is not quoted: it may hold a password
        raise StoreError(f"Cannot read the database URL. {fault}")
    match parsed.get_backend_name():
        case "sqlite":
            return _open_sqlite(parsed, lock_timeout_s)
        case "postgresql":
            return _open_postgresql(parsed, lock_timeout_s)
        case other:
            raise StoreError(f"Cannot use a {other!r} database: write the URL like {EXAMPLES}.")


@contextmanager
def opened(url: str) -> Iterator[Engine]:
    """Open a database, and disconnect in the end."""
    engine = open_engine(url)
    try:
        yield engine
    finally:
        engine.dispose()


@contextmanager
def named(task: str) -> Iterator[None]:
    """Raise a `StoreError` that states what could not be done, in the database's own words."""
    try:
        yield
    except SQLAlchemyError as error:
        raise StoreError(f"Cannot {task}: {describe(error)}.") from error


def describe(error: SQLAlchemyError) -> str:
    """Give the database's own words in one line, without the statement or its values."""
    return str(getattr(error, "orig", None) or error).splitlines()[0]


def shown(engine: Engine) -> str:
    """Give the database's URL without its passwords, which may also be in its query."""
    return re.sub("(password=)[^&]*", r"\1***", engine.url.render_as_string(hide_password=True))


def snapshot(engine: Engine) -> Engine:
    """Give the same database for transactions that only read, each at one moment in time."""
    if engine.dialect.name == "postgresql":
        return engine.execution_options(isolation_level="REPEATABLE READ")
    return engine.execution_options(**{READ_ONLY: True})


def sqlite_file(url: URL) -> Path:
    """File of a SQLite database."""
    return Path((url.database or "").removeprefix("file:").partition("?")[0])


def _open_postgresql(url: URL, lock_timeout_s: float) -> Engine:
    try:
        engine = create_engine(
            url, pool_pre_ping=True, pool_timeout=lock_timeout_s, connect_args=POSTGRESQL
        )
    except (NoSuchModuleError, ImportError) as error:
        reason = str(error).splitlines()[0]
        raise StoreError(
            f"Cannot use a {url.drivername!r} database: {reason}. Install the arena with its "
            "extra 'postgres': pip install 'blind-arena[postgres]'."
        ) from error
    event.listen(engine, "connect", partial(_prepare_postgresql, lock_timeout_s))
    return engine


def _prepare_postgresql(lock_timeout_s: float, connection: Any, _record: object) -> None:
    try:
        if (encoding := connection.info.parameter_status("server_encoding")) != "UTF8":
            raise StoreError(f"The database has the encoding {encoding}; it must be UTF8.")
        with connection.cursor() as cursor:
            cursor.execute(f"SET lock_timeout = {1000 * lock_timeout_s:.0f}")
        connection.commit()
    except Exception:
        connection.close()  # nobody else would: the pool has not got it yet
        raise


def require_sessions(engine: Engine) -> None:
    """Make sure that PostgreSQL gives each connection a session of its own.

    A lease is a lock of a session, and notifications reach one. A pooler of transactions lends a
    session that is idle: here to the second connection the one that the first has just used, or
    to the first, while the second is in a transaction, another one than before. Where others use
    the pooler meanwhile, about one round in ten shows neither.

    Raises
    ------
    PoolingError
        If the two connections share a session, or the first changes its own.
    """
    if engine.dialect.name != "postgresql":
        return
    session = select(func.pg_backend_pid())
    at_once = engine.execution_options(isolation_level="AUTOCOMMIT")
    try:
        with at_once.connect() as first, engine.connect() as second:
            own = first.scalar(session)
            for _ in range(10):
                if second.scalar(session) == own or first.scalar(session) != own:
                    raise PoolingError
                second.rollback()
    except ProgrammingError as error:  # a statement was prepared in another session
        raise PoolingError from error


def _open_sqlite(url: URL, lock_timeout_s: float) -> Engine:
    path = sqlite_file(url)
    if not path.absolute().parent.is_dir():
        msg = f"Cannot open {str(path)!r}: its folder does not exist. Make the folder first."
        raise StoreError(msg)
    engine = create_engine(url, connect_args={"timeout": lock_timeout_s})
    event.listen(engine, "do_connect", partial(_locate, url))
    event.listen(engine, "connect", _prepare_sqlite)
    event.listen(engine, "begin", partial(_begin_sqlite, lock_timeout_s))
    return engine


def _is_read_only(file: Path) -> bool:
    """Whether a SQLite file exists to which this process cannot write, or not beside it."""
    return file.is_file() and not all(
        os.access(path, os.W_OK) for path in (file, file.absolute().parent)
    )


def _locate(url: URL, _dialect: object, _record: object, words: list[str], options: Any) -> None:
    """Make a new file before SQLite does, which would let everybody read it.

    A file that is there is not opened: closing it again would drop SQLite's locks on it. Where it
    is read-only, and no log beside it says that others write to it, SQLite is to take it for
    immutable: it would make files beside it otherwise.
    """
    if "mode=" in str(url):  # the URL says itself whether a file may be made
        return
    file = sqlite_file(url)
    if _is_read_only(file) and not file.with_name(f"{file.name}-wal").exists():
        words[0], options["uri"] = f"file:{quote(str(file.absolute()))}?immutable=1", True
        return
    try:
        os.close(os.open(file, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600))
    except FileExistsError:
        pass
    except OSError as error:
        msg = f"Cannot make {str(file)!r}: {error.strerror}. Name a folder that can be written to."
        raise StoreError(msg) from error


def _prepare_sqlite(connection: Any, _record: object) -> None:
    connection.isolation_level = None  # the driver's own BEGIN comes too late: see _begin_sqlite
    try:
        _keep_wal(connection)
    except UnicodeDecodeError as error:  # SQLite quotes the damaged bytes
        raise sqlite3.DatabaseError("malformed database schema") from error
    for pragma in ("synchronous = FULL", "foreign_keys = ON"):
        connection.execute(f"PRAGMA {pragma}")


def _keep_wal(connection: Any) -> None:
    """Turn a new file to write-ahead logging; SQLite does not wait for others who do the same."""
    for pause_s in (0.01, 0.03, 0.1, 0.3, 1.0, 3.0):
        try:
            connection.execute("PRAGMA journal_mode = WAL")
        except sqlite3.OperationalError:
            time.sleep(pause_s)
        else:
            return
    connection.execute("PRAGMA journal_mode = WAL")


def _begin_sqlite(lock_timeout_s: float, connection: Connection) -> None:
    """Take the write lock at once, so that two writers queue rather than fail halfway."""
    options = connection.get_execution_options()
    if options.get(READ_ONLY, False):
        connection.exec_driver_sql("BEGIN")
        return
    wait_s = math.ceil(options.get(WAIT_S, lock_timeout_s))
    if connection.info.get(WAIT_S) != wait_s:
        connection.exec_driver_sql(f"PRAGMA busy_timeout = {1000 * wait_s}")
        connection.info[WAIT_S] = wait_s
    if _is_read_only(file := sqlite_file(connection.engine.url)):
        raise StoreError(
            f"The database {str(file)!r} is read-only: the arena writes to it and to its folder. "
            "Give both to the user who runs the arena, or write to a copy."
        )
    connection.exec_driver_sql("BEGIN IMMEDIATE")


def migrate(engine: Engine, name: str | None = None) -> None:
    """Give the database this version's schema: new, or by the migrations that it lacks.

    A SQLite file that is read-only must have it: whoever only reads goes on with that.

    Parameters
    ----------
    name : str or None
        What to call the database in an error; None calls it by its URL.

    Raises
    ------
    SchemaError
        If the database is newer than this version, older than 0.1.0, or holds something else.
    StoreError
        If it cannot be read or written.
    """
    name = name or shown(engine)
    if engine.dialect.name == "sqlite" and _is_read_only(sqlite_file(engine.url)):
        with named(f"read the database {name}"), Session(snapshot(engine)) as session:
            _require_schema(session, name)
        return
    with named(f"use the database {name}"), engine.begin() as connection:
        alone(connection)
        current = revision(connection, name)
        if current is None:
            if set(inspect(connection).get_table_names()) & set(Table.metadata.tables):
                raise SchemaError(
                    f"The database {name} holds tables that this arena did not make. Name "
                    "another one."
                )
            Table.metadata.create_all(connection, checkfirst=False)
            connection.execute(insert(ChainRow).values(id=1, head=""))
            MigrationContext.configure(connection).stamp(_script(), "head")
        elif current != newest():
            config = _config()
            config.attributes["connection"] = connection
            command.upgrade(config, "head")


def alone(connection: Connection) -> None:
    """Let one process at a time go on from here to its commit; on SQLite every writer is alone.

    It waits as long as the others take: a migration may be long.
    """
    if connection.dialect.name == "postgresql":
        connection.execute(text("SET LOCAL lock_timeout = 0"))
        connection.execute(select(func.pg_advisory_xact_lock(STARTING)))


def revision(connection: Connection, name: str | None = None) -> str | None:
    """Give the revision of the database's schema; None where no arena has been.

    Parameters
    ----------
    name : str or None
        What to call the database in an error; None calls it by its URL.

    Raises
    ------
    SchemaError
        If the database is newer than this version, or older than 0.1.0.
    """
    current = MigrationContext.configure(connection).get_current_revision()
    known = sorted(step.revision for step in _script().walk_revisions())
    if current is None or current in known:
        return current
    msg = f"The database {name or shown(connection.engine)} has schema {current!r}, "
    if current < known[0]:
        msg += (
            f"which is older than arena 0.1.0 (schema {known[0]!r}). Start arena 0.1.0 on it once "
            "(arena migrate is enough), and then this version."
        )
    else:
        msg += (
            "which this version does not know: it was made by a newer arena. Update the arena, "
            "or name another database."
        )
    raise SchemaError(msg)


def newest() -> str | None:
    """Revision of this version's schema."""
    return _script().get_current_head()


def clear_space(engine: Engine, wait_s: float) -> None:
    """Write the files of a database again, so that nothing is left of what was deleted."""
    if engine.dialect.name == "sqlite":
        _clear_sqlite(engine, wait_s)
        return
    tables = ", ".join(OF_WORDS)
    with engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
        for what in (f"(FULL, ANALYZE) {tables}", "(FULL) pg_statistic"):
            # Until nobody reads as of before now: what they may still see is written again, too.
            latest = time.monotonic() + wait_s
            now = connection.scalar(text("SELECT CAST(CAST(pg_current_xact_id() AS xid) AS text)"))
            while connection.scalar(_READS_OLDER, {"now": now}):
                _pause(connection.engine, latest, wait_s)
            connection.exec_driver_sql(f"VACUUM {what}")


def _clear_sqlite(engine: Engine, wait_s: float) -> None:
    latest = time.monotonic() + wait_s
    with closing(engine.raw_connection()) as connection:
        connection.execute("VACUUM")
        while connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()[0]:
            _pause(engine, latest, wait_s)


def _pause(engine: Engine, latest: float, wait_s: float) -> None:
    if time.monotonic() > latest:
        raise StoreError(
            f"The database {shown(engine)} was read by others for {wait_s:g} s: erased words may "
            "still lie in its files. Try again later."
        )
    time.sleep(0.05)


def _config() -> Config:
    config = Config()
    config.set_main_option("script_location", str(Path(__file__).parent / "migrations"))
    return config


@cache
def _script() -> ScriptDirectory:
    return ScriptDirectory.from_config(_config())


@contextmanager
def reading_existing(url: str, name: str | None = None) -> Iterator[Session]:
    """Give a transaction that only reads, as of one moment; nothing is made and nothing migrated.

    Parameters
    ----------
    name : str or None
        What to call the database in an error; None calls it by its URL.

    Raises
    ------
    SchemaError
        If the database has not the schema of this version.
    StoreError
        If there is no such database, or it cannot be read.
    """
    with opened(url) as engine, named(f"read the database {name or shown(engine)}"):
        file = sqlite_file(engine.url)
        if engine.dialect.name == "sqlite" and not file.is_file():
            raise StoreError(
                f"No database {str(file)!r}. Set --database or ARENA_DATABASE; arena serve "
                "creates it."
            )
        with Session(snapshot(engine)) as session:
            _require_schema(session, name or shown(engine))
            yield session


@contextmanager
def reading_backup(file: Path) -> Iterator[Session]:
    """Give `reading_existing` of a file, which is left as it is: opening it may write to it.

    A file that is in use, by the log beside it, is read in its place.
    """
    require_file(file, StoreError)
    if file.with_name(f"{file.name}-wal").exists():
        with reading_existing(f"sqlite:///{file}") as session:
            yield session
        return
    with TemporaryDirectory() as folder:
        copy = Path(folder) / file.name
        shutil.copyfile(file, copy)
        with reading_existing(f"sqlite:///{copy}", repr(str(file))) as session:
            yield session


def _require_schema(session: Session, name: str) -> None:
    current = revision(session.connection(), name)
    if current is None:
        msg = f"The database {name} holds no arena. Name the one that the arena was served with."
        raise SchemaError(msg)
    if current != newest():
        raise SchemaError(
            f"The database {name} has schema {current!r}, and this version reads {newest()!r}. "
            "Start this version's arena on it once, or read it with the version that wrote it."
        )


# Leases: which processes live

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


class _AdvisoryLock:
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


class _FileLock:
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
            raise StoreError(
                f"Cannot lock {str(self._file)!r}: {error.strerror}. "
                "Keep a SQLite database in a folder of a local disk that the arena may write to."
            ) from error

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
        """Tell which of the other processes had no lock at this many looks in a row."""
        with self._one_at_a_time:
            self._missed = {
                process: self._missed.get(process, 0) + 1
                for process in processes
                if process != self.process and self._lock.is_free(session, process)
            }
            return {process for process, looked in self._missed.items() if looked >= looks}


def _lock(engine: Engine, process: int) -> _AdvisoryLock | _FileLock:
    if engine.dialect.name == "postgresql":
        return _AdvisoryLock(engine, process)
    file = sqlite_file(engine.url)
    return _FileLock(file.with_name(f"{file.name}-lock"), process)


# Messages between processes

LONGEST = 7_999
"""Bytes that PostgreSQL takes in one message."""

_SENT = (
    func.unnest(
        bindparam("channels", type_=ARRAY(String)), bindparam("messages", type_=ARRAY(String))
    )
    .table_valued("channel", "message")
    .render_derived()
)
_SEND = select(
    # Nothing is lost with a message, so nobody waits until the commit is on the disk.
    func.set_config("synchronous_commit", "off", True),
    func.count(func.pg_notify(_SENT.c.channel, _SENT.c.message)),
).select_from(_SENT)


class Notifications:
    """One process's way to send messages to the others, and to get theirs, on PostgreSQL.

    Nothing is stored, and what is sent while nobody listens is lost: whoever needs an answer asks
    again.

    Parameters
    ----------
    process : int
        Its number, under which others reach it: see `Lease`.
    """

    def __init__(self, engine: Engine, process: int) -> None:
        self.process = process
        self._engine = engine
        self._listening: Connection | None = None

    def send(self, messages: Sequence[tuple[int, str]]) -> None:
        """Send messages, each to a process by its number, in one transaction.

        Raises
        ------
        StoreError
            If the database cannot be reached; nothing was sent then.
        """
        sent = {
            "channels": [_channel(process) for process, _ in messages],
            "messages": [message for _, message in messages],
        }
        try:
            with self._engine.connect() as connection:
                connection.execution_options(isolation_level="AUTOCOMMIT").execute(_SEND, sent)
        except SQLAlchemyError as error:
            raise _cut_off(error) from error

    def receive(self, wait_s: float) -> list[str]:
        """Give what others have sent, as soon as there is any; nothing after ``wait_s`` seconds.

        The first call begins to listen, and so does the next one after an error.

        Raises
        ------
        StoreError
            If the connection was lost or cannot be made: messages may have been lost.
        """
        try:
            connection = self._listening = self._listening or self._listen()
            # psycopg's own connection: SQLAlchemy knows no notifications.
            driver: Any = connection.connection.dbapi_connection
            received = driver.notifies(timeout=wait_s, stop_after=1)
            return [notify.payload for notify in received]
        except (SQLAlchemyError, self._engine.dialect.loaded_dbapi.Error) as error:
            self.close()
            raise _cut_off(error) from error

    def close(self) -> None:
        """Listen no longer."""
        listening, self._listening = self._listening, None
        if listening is not None:
            with suppress(SQLAlchemyError):  # it may be lost already
                listening.close()

    def _listen(self) -> Connection:
        connection = self._engine.connect().execution_options(isolation_level="AUTOCOMMIT")
        connection.detach()  # not one of the pool's, and closed when it is let go
        try:
            for statement in (*KEEPALIVE, f'LISTEN "{_channel(self.process)}"'):
                connection.execute(text(statement))
        except SQLAlchemyError:
            connection.close()
            raise
        return connection


def _channel(process: int) -> str:
    return f"arena_{process}"


def _cut_off(error: Exception) -> StoreError:
    reason = str(error).strip().partition("\n")[0]
    return StoreError(f"This process cannot reach the others: {reason}")
