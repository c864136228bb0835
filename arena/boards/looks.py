"""Work beside requests that looks again and again whether votes were added."""

import asyncio
import logging
import time
from collections.abc import Callable

from arena.errors import StoreError

logger = logging.getLogger(__name__)


async def keep_looking(look: Callable[[], None], what: str, least_s: float, rest: float) -> None:
    """Look in a thread, rest, and look again, until cancelled; a fault ends one look only.

    Parameters
    ----------
    look : callable
        Works something out, if votes were added.
    what : str
        Names it at the beginning of a sentence of the log.
    least_s, rest : float
        Between two looks pass at least ``least_s``, and ``rest`` times as long as the last took.
    """
    while True:
        began = time.monotonic()
        try:
            await asyncio.to_thread(look)
        except StoreError as error:
            logger.warning("%s could not be read: %s", what, error)
        except Exception:
            logger.exception("%s ended in a fault of ours", what)
        await asyncio.sleep(max(least_s, rest * (time.monotonic() - began)))
