"""Asks until there is a reply: within the rates, within the budget, and with patience."""

import asyncio
import math
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import replace
from itertools import count

import numpy as np

from judge.budget import Ledger, request_tokens
from judge.calls import Options, RateLimits, Terms
from judge.case import CallError, Complete, FailureClass, Reply, Request
from judge.verdict import Stop
from rating.tables.peers import mention

TRIES: Mapping[FailureClass, int] = {
    FailureClass.RATE_LIMIT: 10,
    FailureClass.OVERLOADED: 8,
    FailureClass.TRANSPORT: 5,
}
"""Most tries of one call, by the class of the last failure; a class not named is final.

A request that was rejected will be rejected again. An error that an endpoint repeats for one
request, and for that one only, ends after a few tries rather than never.
"""

PATIENCE_S: Mapping[FailureClass, float] = {FailureClass.OVERLOADED: 30.0}
"""Seconds after the first failure of one request in which it may be tried again."""

LONGEST_WAIT_S = 300.0
"""An endpoint that asks for more than this is not waited for; the case fails as rate-limited."""

REPORTED_S = 10.0
"""Waits longer than this are reported."""

_FIRST_S, _MOST_S = 0.5, 60.0
_DETAIL = 200
"""Characters of what an endpoint says."""


def wait_before_retry(
    error: CallError, tries: int, rng: np.random.Generator, failing_s: float = 0.0
) -> float | None:
    """Return the seconds to wait before another try, or None if there is to be none.

    The wait that the endpoint asked for, if it did; else doubling from half a second to a minute,
    of which a random half is excluded, so that callers who failed together do not come back
    together.

    Parameters
    ----------
    tries : int
        Tries made so far, at least one.
    failing_s : float
        Seconds since the first of them failed; no try begins after `PATIENCE_S`.

    References
    ----------
    .. [1] M. Brooker, "Exponential backoff and jitter", AWS Architecture Blog, 2015 ("equal
       jitter").
    """
    if tries >= TRIES.get(error.failure, 1):
        return None
    wait = error.retry_after_s
    if wait is None:
        wait = float(min(_MOST_S, _FIRST_S * 2 ** (tries - 1)) * rng.uniform(0.5, 1.0))
    left = PATIENCE_S.get(error.failure, math.inf) - failing_s
    return wait if wait <= min(LONGEST_WAIT_S, left) else None


def in_words(wait: float, error: CallError) -> str:
    """Give the length of a wait and its reason in words."""
    detail = f", {error.detail[:_DETAIL]}" if error.detail else ""
    return f"waiting {wait:.0f} s before the next try ({error.failure.value}{detail})"


Now = Callable[[], float]
"""Seconds of a clock that never goes back."""

Sleep = Callable[[float], Awaitable[None]]


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
    notice : callable
        Called with the seconds that a request waits because of the rates.
    """

    def __init__(
        self,
        limits: RateLimits,
        *,
        now: Now,
        sleep: Sleep,
        rng: np.random.Generator,
        notice: Callable[[float], None] = lambda _: None,
    ) -> None:
        allowed = (limits.requests_per_minute, limits.tokens_per_minute)
        self._buckets = [None if one is None else TokenBucket(one) for one in allowed]
        self._now, self._sleep, self._rng, self._notice = now, sleep, rng, notice
        self._peace_until, self._ended = -math.inf, False

    def end(self) -> None:
        """Hold nobody any more."""
        self._ended = True

    def pause(self, seconds: float) -> None:
        """Let nothing through for so long."""
        self._peace_until = max(self._peace_until, self._now() + seconds)

    async def admit(self, tokens: float) -> None:
        """Wait until one request of this many tokens may be sent."""
        now = self._now()
        waits = [
            bucket.take(amount, now)
            for bucket, amount in zip(self._buckets, (1.0, tokens), strict=True)
            if bucket is not None
        ]
        if wait := max(waits, default=0.0):
            self._notice(wait)
            await self._sleep(wait)
        while (wait := self._peace_until - self._now()) > 0 and not self._ended:
            await self._sleep(wait + self._rng.uniform(0, 0.1 * wait))


STOPS = {FailureClass.DENIED: Stop.DENIED, FailureClass.NO_LOGPROBS: Stop.NO_LOGPROBS}
"""Failures without a reply that no other request of the run can escape."""

DENIED = (
    "top up the account, or correct the key or the model's name, and run the same command again: "
    "replies so far are kept, and none is paid for twice"
)
"""What to do where an endpoint denies every request."""


class Asker:
    """Asks on behalf of one run, and knows when the run has to stop.

    Attributes
    ----------
    faults : Counter
        Tries that brought no reply, by class.
    spent_usd : float or None
        Dollars booked; None without a price.
    stopped : Stop or None
        Once set, nothing is sent any more.
    why : str
        Why it stopped, in words.
    """

    def __init__(
        self,
        complete: Complete,
        options: Options,
        terms: Terms,
        *,
        now: Now,
        sleep: Sleep,
        rng: np.random.Generator,
    ) -> None:
        self._complete, self._now, self._sleep, self._rng = complete, now, sleep, rng
        self._throttle = Throttle(
            options.limits, now=now, sleep=self._wait, rng=rng, notice=self._mention_limits
        )
        self._began, self._reported_until, self._limits_mentioned = now(), -math.inf, False
        self._ended = asyncio.Event()
        self._ledger = Ledger(options.price, options.limit_usd)
        self._terms, self._limit_usd = terms, options.limit_usd
        self._booked = asyncio.Event()
        self._limits_tokens = options.limits.tokens_per_minute is not None
        self._places = asyncio.Semaphore(options.concurrency)
        self._calls = count()
        self.faults: Counter[FailureClass] = Counter()
        self.stopped: Stop | None = None
        self.why = ""
        self.spent_usd = None if options.price is None else 0.0

    @property
    def n_estimated(self) -> int:
        """Replies whose tokens the endpoint did not count."""
        return self._ledger.n_estimated

    def stop(self, stop: Stop, why: str) -> None:
        """Send nothing any more; the first reason stands."""
        if self.stopped is None:
            self.stopped, self.why = stop, why
            self._throttle.end()
            self._ended.set()

    async def reply(self, request: Request) -> tuple[Reply, float | None] | None:
        """Return the reply to a request and its cost; None if the run stopped before it came.

        Raises
        ------
        CallError
            If the last try failed, or the failure is of a class that is not tried again.
        """
        async with self._places:
            number = next(self._calls)
            tokens = request_tokens(request) if self._limits_tokens else 0.0
            tries, first = 0, math.inf
            while not self.stopped:
                await self._throttle.admit(tokens)
                if not await self._affordable(number, request):
                    break
                try:
                    return await self._once(number, request)
                except CallError as error:
                    tries, first = tries + 1, min(first, self._now())
                    await self._failed(error, tries, first)
        return None

    async def _once(self, number: int, request: Request) -> tuple[Reply, float | None]:
        began = self._now()
        try:
            reply = await self._complete(request)
        except BaseException as error:
            paid = error.paid if isinstance(error, CallError) else None
            if paid is None:
                self._ledger.withdraw(number)
                self._booked.set()
            else:
                self._book(number, request, paid)
            raise
        if reply.latency_s is None:
            reply = replace(reply, latency_s=self._now() - began)
        self._terms.saw(reply, request.parameters)
        return reply, self._book(number, request, reply)

    def _book(self, number: int, request: Request, reply: Reply) -> float | None:
        cost = self._ledger.book(number, request, reply)
        self._booked.set()
        if cost is not None:
            self.spent_usd = self._ledger.spent_usd
        return cost

    async def _failed(self, error: CallError, tries: int, first: float) -> None:
        """Wait for the next try, or raise the error again; ``first`` is when the first failed."""
        self.faults[error.failure] += 1
        if error.failure in STOPS:
            denied = error.failure is FailureClass.DENIED
            self.stop(
                STOPS[error.failure], f"{error.detail}: {DENIED}" if denied else error.detail
            )
        wait = wait_before_retry(error, tries, self._rng, self._now() - first)
        if wait is None:
            raise error
        self._mention_wait(wait, error)
        if error.failure is FailureClass.RATE_LIMIT:
            self._throttle.pause(wait)
        else:
            await self._wait(wait)

    async def _wait(self, seconds: float) -> None:
        """Wait, but no longer than the run goes on."""
        tasks = [asyncio.ensure_future(one) for one in (self._sleep(seconds), self._ended.wait())]
        try:
            await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in tasks:
                task.cancel()

    def _mention_wait(self, wait: float, error: CallError) -> None:
        """Report a wait of which more than `REPORTED_S` has not been reported for others."""
        now = self._now()
        if now + wait - max(now, self._reported_until) > REPORTED_S:
            self._reported_until = now + wait
            mention(f"{in_words(wait, error)}; {now - self._began:,.0f} s since the run began")

    def _mention_limits(self, wait: float) -> None:
        """Report once that the rates given make requests wait."""
        if wait > REPORTED_S and not self._limits_mentioned:
            self._limits_mentioned = True
            mention(f"the rates allowed make requests wait, now for {wait:.0f} s")

    async def _affordable(self, number: int, request: Request) -> bool:
        """Wait until the budget allows for the dearest reply; False once it never will."""
        if self._limit_usd is None:
            return not self.stopped
        most = self._terms.most_tokens(request.parameters)
        while not self.stopped:
            if self._ledger.promise(number, request, most):
                return True
            if not self._ledger.waits:
                self.stop(Stop.BUDGET, self._too_dear(request, most))
                break
            self._booked.clear()
            await self._booked.wait()
        return False

    def _too_dear(self, request: Request, most: int) -> str:
        dearest = self._ledger.most_usd(request, most)
        return (
            f"the next request would exceed the budget of ${self._limit_usd:g}: with a reply of "
            f"{most:,} tokens, the most that it may have, it costs up to ${dearest:.2g}, and "
            f"${self._ledger.left_usd:.2g} is left"
        )
