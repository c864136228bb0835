"""Follows the roster in the database: every process battles with it seconds after a change."""

import asyncio
import logging
from collections.abc import Callable, Sequence

from arena.domain.model import Entry
from arena.errors import ArenaError
from arena.store import roster
from arena.store.store import Store

logger = logging.getLogger(__name__)

LOOK_S = 2.0
"""How often each process looks whether the roster has changed."""


class LiveRoster:
    """Puts the roster to use whenever it has changed.

    Parameters
    ----------
    use : callable
        Called with all entries; may block, and raise an `ArenaError`: those before then stay.
    """

    def __init__(self, store: Store, use: Callable[[Sequence[Entry]], None]) -> None:
        self._store = store
        self._use = use
        self._version = 0
        self._failed = 0

    def look(self) -> None:
        """Read the roster, and put it to use, if it has changed; may block."""
        with self._store.reading() as session:
            version = roster.version(session)
            if version in (self._version, self._failed):
                return
            entries = roster.entries(session)
            problems = roster.unusable(session)
        for problem in problems.values():
            logger.error("%s", problem)
        try:
            self._use(entries)
        except ArenaError as error:
            logger.error("The changed roster cannot be used: %s", error)  # noqa: TRY400 - for people
            self._failed = version
        else:
            self._version = version
            logger.info("The roster has changed: version %d, %d entries", version, len(entries))

    async def keep_up(self) -> None:
        """Look every few seconds, off the event loop, until cancelled."""
        while True:
            try:
                await asyncio.to_thread(self.look)
            except ArenaError as error:
                logger.warning("The roster could not be read: %s", error)
            except Exception:
                logger.exception("A change of the roster ended in a fault of ours")
            await asyncio.sleep(LOOK_S)
