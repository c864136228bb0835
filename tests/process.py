"""The command in a process of its own, forked from one that has imported what it needs.

A fresh Python reads the arena's libraries for seconds; a fork has them at once. It is a process
like any other: its own memory, threads, files and signals, and ``kill -9`` ends it alone.
"""

import ctypes
import multiprocessing
import os
import re
import signal
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from multiprocessing.reduction import DupFd
from pathlib import Path
from subprocess import TimeoutExpired
from types import TracebackType
from typing import IO, Any, Self

from arena.cli import main

FORKS = multiprocessing.get_context("forkserver")
PR_SET_PDEATHSIG = 1
FORKS.set_forkserver_preload(["arena.app", "arena.server", "arena.cli"])


class Process:
    """A running command.

    Parameters
    ----------
    words : sequence of str
        What is typed after ``arena``.
    folder : Path
        Where it runs.
    env : mapping
        What its environment has beside that of the tests.
    log : file
        Where its errors go; those of the tests if None.
    prepare : callable
        Called in the process before the command.
    """

    def __init__(
        self,
        words: Sequence[str],
        folder: Path,
        env: Mapping[str, str] | None = None,
        log: IO[Any] | None = None,
        prepare: Callable[[], None] | None = None,
    ) -> None:
        environment = (
            os.environ | {"ARENA_PAGE": "0", "ARENA_PRIOR_DELAY_S": "0"} | dict(env or {})
        )
        reads, writes = os.pipe()
        self.stdout = os.fdopen(reads, encoding="utf-8")
        with os.fdopen(writes, "w") as out:
            files = (_File(out.fileno()), _File(log.fileno() if log else 2))
            self._process = FORKS.Process(
                target=_run, args=(words, folder, environment, *files, prepare)
            )
            self._process.start()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        _type: type[BaseException] | None,
        _value: BaseException | None,
        _traceback: TracebackType | None,
    ) -> None:
        self.kill()
        self._process.join()
        self.stdout.close()

    def url(self) -> str:
        """Wait until it serves; gives its address."""
        line = self.stdout.readline()
        address = re.search(r"http://\S+", line)
        assert address, f"it ended without an address: {line!r}"
        return address.group()

    @property
    def pid(self) -> int:
        """Number of the process."""
        assert self._process.pid
        return self._process.pid

    def send(self, number: signal.Signals) -> None:
        """Send a signal, unless it has ended."""
        if self._process.is_alive():
            with suppress(ProcessLookupError):  # its end is told after it is gone
                os.kill(self.pid, number)

    def kill(self) -> None:
        """End it as if the power had gone."""
        self.send(signal.SIGKILL)

    def poll(self) -> int | None:
        """Give its exit code, None while it runs; a signal that ended it is negative."""
        return self._process.exitcode

    def wait(self, within_s: float = 60.0) -> int:
        """Wait for its end, and give its exit code."""
        self._process.join(within_s)
        code = self._process.exitcode
        if code is None:
            raise TimeoutExpired(["arena"], within_s)
        return code


def until(holds: Callable[[], bool], within_s: float = 60.0, by: Process | None = None) -> None:
    """Wait for something that another process or thread does, as long as it is there."""
    deadline = time.monotonic() + within_s
    while not holds():
        assert time.monotonic() < deadline
        assert by is None or by.poll() is None, "the process has ended"
        time.sleep(0.01 if by is None else 0.001)


class _File:
    """A file that the process has from its beginning."""

    def __init__(self, descriptor: int) -> None:
        self.descriptor = descriptor

    def __reduce__(self) -> tuple[Callable[[Any], "_File"], tuple[Any]]:
        return _received, (DupFd(self.descriptor),)


def _received(sent: Any) -> _File:
    return _File(sent.detach())


def _run(
    words: Sequence[str],
    folder: Path,
    environment: Mapping[str, str],
    out: _File,
    errors: _File,
    prepare: Callable[[], None] | None,
) -> None:
    if sys.platform == "linux":  # whoever kills its parent kills it, too
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(environment)
    os.dup2(out.descriptor, 1)
    os.dup2(errors.descriptor, 2)
    os.close(out.descriptor)
    os.close(errors.descriptor)
    if prepare is not None:
        prepare()
    main(words)
