"""Background tasks of a server: its lease, clearing up, and verifying the record."""

import asyncio
import logging
import time
from collections.abc import Callable, Mapping
from datetime import datetime

from arena.domain.board_view import RecordCheck
from arena.domain.people import Perishable
from arena.errors import StoreError
from arena.play.rules import INTERRUPTED
from arena.store import blocks, erasing, kept_boards, retention
from arena.store.lease import PATIENCE, PULSE_S
from arena.store.store import Store
from arena.store.verify import verify

logger = logging.getLogger(__name__)

UPKEEP = "upkeep"
"""Who acts where a server did so by itself."""
CLEAR_S = 3600.0
"""Between two looks for what is too old, and for erased words in the database's files."""
AT_ONCE = 100
PAUSE_S = 0.02
"""After so many links the check of the record lets others work for so long."""
REST_S = 60.0
REST = 50
"""Between two checks pass at least `REST_S`, and `REST` times as long as the last one took."""


def pulse(store: Store, looks: int) -> None:
    """Take or keep the lease, and mark the battles of processes that died as interrupted.

    Parameters
    ----------
    looks : int
        Calls in a row that must have found a process without a lease: 1 for an arena that
        begins, and may have been killed while it was answering.
    """
    store.hold_lease()
    if interrupted := store.interrupt_running(INTERRUPTED, looks=looks):
        logger.warning("Marked %d unfinished battles as interrupted", interrupted)


async def keep_up(store: Store) -> None:
    """Call `pulse` every `PULSE_S` seconds until cancelled."""
    while True:
        await asyncio.sleep(PULSE_S)
        try:
            await asyncio.to_thread(pulse, store, PATIENCE)
        except StoreError as error:
            logger.warning("Not sure of this process's lease: %s", error)


def clear_out(store: Store, days: Mapping[Perishable, int | None], now: datetime) -> None:
    """Let what is too old go, and write the files anew where anything went since the last time."""
    for kind, most in days.items():
        while most and retention.expire(store, kind, most, UPKEEP, now):
            time.sleep(PAUSE_S)
    if store.read(erasing.is_to_clear):
        erasing.clear_space(store, UPKEEP, now)


async def keep_clear(
    store: Store, days: Mapping[Perishable, int | None], now: Callable[[], datetime]
) -> None:
    """Call `clear_out` a minute after the start, and then each hour, until cancelled."""
    await asyncio.sleep(REST_S)
    while True:
        try:
            await asyncio.to_thread(clear_out, store, days, now())
        except StoreError as error:
            logger.warning("Erased words may still lie in the database: %s", error)
        except Exception:
            logger.exception("Letting go of what is too old ended in a fault of ours")
        await asyncio.sleep(CLEAR_S)


class RecordVerifier:
    """Follows the chain of the record again and again, so that boards can say whether it holds."""

    def __init__(self, store: Store, now: Callable[[], datetime]) -> None:
        self._store = store
        self._now = now
        self._closing = False
        self.check: RecordCheck | None = None
        """The last one."""

    def close(self) -> None:
        """Break off a check that is under way: nobody is to wait for it."""
        self._closing = True

    async def keep_on(self) -> None:
        """Check, rest, and check again, until cancelled."""
        while not self._closing:
            began = time.monotonic()
            try:
                await asyncio.to_thread(self.look)
            except StoreError as error:
                logger.warning("The vote log could not be read to verify it: %s", error)
            except _Closing:
                return
            except Exception:
                logger.exception("The check of the record ended in a fault of ours")
            await asyncio.sleep(max(REST_S, REST * (time.monotonic() - began)))

    def look(self) -> None:
        """Check now."""
        with self._store.reading() as session:
            verified = verify(session, progress=self._pace)
        if verified.problem:
            logger.error("The vote log could not be verified: %s", verified.problem)
        if verified.counts:
            logger.error("They are made anew. %s", verified.counts)
            with self._store.writing() as session:
                blocks.drop(session)
                kept_boards.drop(session)
        self.check = RecordCheck(
            at=self._now(),
            links=verified.links,
            head=verified.head,
            votes=verified.votes,
            hashes_only=verified.hashes_only,
            deleted=verified.deleted,
            problem=verified.problem,
        )

    def _pace(self, done: int, _total: int) -> None:
        if self._closing:
            raise _Closing
        if done % AT_ONCE == 0:
            time.sleep(PAUSE_S)


class _Closing(Exception):
    """A check of the record is broken off."""
