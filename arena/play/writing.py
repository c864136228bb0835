"""Threads that write to the log, so that reading it never waits behind those who wait to write."""

import asyncio
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from typing import TypeVar

from arena.errors import StoreError

T = TypeVar("T")
THREADS = 8
"""Of PostgreSQL's 15 connections that a process opens at most, these leave some to readers."""


class Writers:
    """Runs what writes off the loop.

    Parameters
    ----------
    timeout_s : float
        How long somebody may wait for others who write, their turn for a thread included.
    """

    def __init__(self, timeout_s: float) -> None:
        self._timeout_s = timeout_s
        self._threads = ThreadPoolExecutor(THREADS, "writer")

    async def write(self, act: Callable[[], T]) -> T:
        """Run it in a thread.

        Raises
        ------
        StoreError
            If no thread was free in time; nothing was written then.
        """
        latest = time.monotonic() + self._timeout_s

        def act_in_time() -> T:
            if time.monotonic() > latest:
                msg = f"The database kept writers waiting for {self._timeout_s:g} s."
                raise StoreError(msg)
            return act()

        run = copy_context().run
        return await asyncio.get_running_loop().run_in_executor(self._threads, run, act_in_time)

    async def close(self) -> None:
        """Wait for what is being written."""
        await asyncio.to_thread(self._threads.shutdown)
