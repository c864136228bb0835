"""Makes the releases of topics: once a week, in a process of its own."""

import asyncio
import json
import logging
import os
import sys
from collections.abc import Callable
from contextlib import closing, suppress
from datetime import UTC, datetime, timedelta
from signal import SIGINT, SIGTERM
from subprocess import DEVNULL, PIPE, Popen
from threading import Thread

from arena.domain.vote import DEFAULT
from arena.endpoints.local_server import end_with_parent
from arena.errors import StoreError
from arena.store import log
from arena.store.store import Store
from judge.labels.material import open_release, private_release
from judge.labels.topics import LEAST
from rating.errors import DataError

logger = logging.getLogger(__name__)

WEEK = timedelta(days=7)
REST_S = 3600.0
"""Between two looks whether a release is due."""
TOO_FEW = 3
"""Exit code where there are too few prompts for topics."""


async def keep_releasing(
    store: Store, database: str, now: Callable[[], datetime], *, private: bool
) -> None:
    """Let a release be made where one is due, rest, and look again, until cancelled."""
    while True:
        try:
            if await asyncio.to_thread(is_due, store, now(), private=private):
                await _apart(database, private=private)
        except StoreError as error:
            logger.warning("Topics could not be released: %s", error)
        except Exception:
            logger.exception("Releasing topics ended in a fault of ours")
        await asyncio.sleep(REST_S)


def is_due(store: Store, now: datetime, *, private: bool) -> bool:
    """Return whether the last release is a week old, or there are votes enough for the first."""
    last = store.read(log.newest_topics, private=private)
    return store.read(log.newest_vote) >= LEAST if last is None else now - last.created >= WEEK


def release_topics(store: Store, now: datetime, *, private: bool) -> None:
    """Make and store the next release.

    Raises
    ------
    DataError
        If there are too few prompts for topics.
    StoreError
        If the database fails.
    """
    last = store.read(log.newest_topics, private=private)
    before = store.read(log.state) if private else None
    after, also = (before.until, before.batches.waiting) if before else (0, ())
    asked = store.read(log.asked, DEFAULT, after, also)
    if private:
        made, state = private_release(before, asked)
    else:
        made, state = open_release([one.text for one in asked]), None
    store.write(log.add, made, state, last.number + 1 if last else 1, now)


async def _apart(database: str, *, private: bool) -> None:
    """Release in a process of low priority, which ends with this task, or when this one is killed.

    The event loop holds nothing of it that a cancelled task could leave open.
    """
    process = Popen(  # noqa: S603, ASYNC220 - ours
        [sys.executable, "-m", __name__], bufsize=0, stdin=PIPE, stdout=DEVNULL, stderr=PIPE
    )
    order = json.dumps({"database": database, "private": private}).encode()

    def ended() -> bytes:
        with process:
            assert process.stdin is not None and process.stderr is not None  # noqa: PT018
            with suppress(BrokenPipeError):  # it has ended already, and its words give the reason
                process.stdin.write(order + b"\n")
            return process.stderr.read()

    try:
        why = await asyncio.to_thread(ended)
    finally:
        process.kill()
    words = why.decode(errors="replace").strip()
    # Ctrl+C and systemd stop it with the arena.
    level = logging.INFO if process.returncode in (TOO_FEW, -SIGINT, -SIGTERM) else logging.ERROR
    if process.returncode:
        logger.log(level, "Topics could not be released: %s", words or "stopped")


def _main() -> int:
    """Release the topics of the database that a line of standard input names."""
    os.nice(10)
    order = json.loads(sys.stdin.readline())
    Thread(target=end_with_parent, daemon=True).start()
    with closing(Store(order["database"])) as store:
        if not is_due(store, datetime.now(UTC), private=order["private"]):
            return 0  # another process was quicker
        try:
            release_topics(store, datetime.now(UTC), private=order["private"])
        except DataError as error:
            sys.stderr.write(f"{error}\n")
            return TOO_FEW
    return 0


if __name__ == "__main__":
    sys.exit(_main())
