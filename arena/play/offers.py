"""Prompts to try that change now and then."""

import threading
import time
from collections.abc import Sequence
from random import Random

OFFER_S = 60.0
"""How long the same prompts are offered: a page with them is made once in that time."""


class Offers:
    """Draws a few of some prompts, other ones every minute; any thread may ask."""

    def __init__(self, prompts: Sequence[str], n: int, rng: Random) -> None:
        self._prompts, self._n, self._rng = prompts, n, rng
        self._turn = threading.Lock()
        self._now: tuple[str, ...] = ()
        self._until_s = 0.0

    def now(self) -> tuple[str, ...]:
        """Give the prompts that are offered now."""
        with self._turn:
            if time.monotonic() >= self._until_s:
                n = min(self._n, len(self._prompts))
                self._now = tuple(self._rng.sample(self._prompts, n))
                self._until_s = time.monotonic() + OFFER_S
            return self._now
