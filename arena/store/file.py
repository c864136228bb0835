"""A SQLite file that this process writes to."""

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from arena.errors import StoreError


class OpenFile:
    """The file as it was opened, and the turn of the one thread that writes to it."""

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
