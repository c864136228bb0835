"""What a serving process does besides: it shows that it lives, and ends what the dead left."""

import asyncio
import logging

from arena.errors import StoreError
from arena.play import words
from arena.store.lease import PATIENCE, PULSE_S
from arena.store.store import Store

logger = logging.getLogger(__name__)


def enter(store: Store) -> None:
    """Take the lease, and end at once what this arena was answering when it was killed."""
    store.hold_lease()
    _interrupt(store, looks=1)


async def keep_up(store: Store) -> None:
    """Keep the lease, and end the battles of processes that have died, until cancelled."""
    while True:
        await asyncio.sleep(PULSE_S)
        try:
            await asyncio.to_thread(_pulse, store)
        except StoreError as error:
            logger.warning("Not sure of this process's lease: %s", error)


def _pulse(store: Store) -> None:
    store.hold_lease()
    _interrupt(store, looks=PATIENCE)


def _interrupt(store: Store, looks: int) -> None:
    if interrupted := store.interrupt_running(words.INTERRUPTED, looks=looks):
        logger.warning("Marked %d unfinished battles as interrupted", interrupted)
