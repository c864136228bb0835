"""What processes send one another over PostgreSQL, with its NOTIFY and LISTEN.

Nothing of it is stored, and what is sent while nobody listens is lost: whoever needs an answer
asks again.
"""

from collections.abc import Sequence
from typing import Any

from sqlalchemy import Connection, Engine, String, bindparam, func, select, text
from sqlalchemy.dialects.postgresql import ARRAY
from sqlalchemy.exc import SQLAlchemyError

from arena.errors import StoreError
from arena.store.lease import KEEPALIVE

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
    """One process's way to send messages to the others, and to get theirs.

    Parameters
    ----------
    process : int
        Its number, under which others reach it: see `arena.store.lease`.
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
            received = _driver(connection).notifies(timeout=wait_s, stop_after=1)
            return [notify.payload for notify in received]
        except (SQLAlchemyError, self._engine.dialect.loaded_dbapi.Error) as error:
            self.close()
            raise _cut_off(error) from error

    def close(self) -> None:
        """Listen no longer."""
        if self._listening is not None:
            self._listening.close()
            self._listening = None

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


def _driver(connection: Connection) -> Any:
    """Give psycopg's own connection: SQLAlchemy knows no notifications."""
    return connection.connection.dbapi_connection


def _cut_off(error: Exception) -> StoreError:
    reason = str(error).strip().partition("\n")[0]
    return StoreError(f"This process cannot reach the others: {reason}")
