"""Client-side rate limits, and the pause that a server asks for."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass

import numpy as np

from rating.errors import DataError

Now = Callable[[], float]
"""Seconds of a clock that never goes back."""

Sleep = Callable[[float], Awaitable[None]]


@dataclass(frozen=True, slots=True)
class RateLimits:
    """What an endpoint allows; None is no limit."""

    requests_per_minute: float | None = None
    tokens_per_minute: float | None = None

    def __post_init__(self) -> None:
        for limit in (self.requests_per_minute, self.tokens_per_minute):
            if limit is not None and not limit > 0:
                raise DataError(f"A rate limit is positive, not {limit}; leave it out for none.")


NO_LIMITS = RateLimits()


class TokenBucket:
    """A bucket that fills at a steady rate and holds a few seconds' worth.

    Kept as the time at which it would be full again, not as a level: taking is one addition, and
    a caller knows at once how long to wait. What is taken may be more than the bucket holds; the
    debt delays those who come after.

    Parameters
    ----------
    per_minute : float
        Rate of filling.
    burst_s : float
        Seconds of filling that the bucket holds.

    References
    ----------
    .. [1] ITU-T I.371, the generic cell rate algorithm (virtual scheduling).

    Examples
    --------
    >>> bucket = TokenBucket(60, burst_s=1)
    >>> [bucket.take(1, now=0.0) for _ in range(3)]
    [0.0, 1.0, 2.0]
    """

    def __init__(self, per_minute: float, *, burst_s: float = 2.0) -> None:
        self._per_s = per_minute / 60
        self._burst_s = max(burst_s, 1 / self._per_s)
        self._full_at = 0.0

    def take(self, amount: float, now: float) -> float:
        """Take an amount, and return the seconds to wait before it may be used."""
        self._full_at = max(self._full_at, now) + amount / self._per_s
        return max(0.0, self._full_at - self._burst_s - now)


class Throttle:
    """Lets calls through at the rates allowed, and none while the server wants peace.

    Parameters
    ----------
    rng : numpy.random.Generator
        Spreads the callers who waited for the same moment.
    """

    def __init__(
        self, limits: RateLimits, *, now: Now, sleep: Sleep, rng: np.random.Generator
    ) -> None:
        self._requests = _bucket(limits.requests_per_minute)
        self._tokens = _bucket(limits.tokens_per_minute)
        self._now, self._sleep, self._rng = now, sleep, rng
        self._peace_until = -np.inf

    def pause(self, seconds: float) -> None:
        """Let nothing through for so long."""
        self._peace_until = max(self._peace_until, self._now() + seconds)

    async def admit(self, tokens: float) -> None:
        """Wait until one request of so many tokens may be sent."""
        now = self._now()
        waits = [
            bucket.take(amount, now)
            for bucket, amount in ((self._requests, 1.0), (self._tokens, tokens))
            if bucket is not None
        ]
        if wait := max(waits, default=0.0):
            await self._sleep(wait)
        while (wait := self._peace_until - self._now()) > 0:
            await self._sleep(wait + self._rng.uniform(0, 0.1 * wait))


def _bucket(per_minute: float | None) -> TokenBucket | None:
    return None if per_minute is None else TokenBucket(per_minute)
