"""Asks until there is a reply: within the rates, within the budget, and with patience."""

import asyncio
from collections import Counter
from dataclasses import replace
from itertools import count

import numpy as np

from judge.budget import Ledger, request_tokens
from judge.completion import Complete, Reply, Request
from judge.errors import CallError, FailureClass
from judge.options import Options, wait_before_retry
from judge.results import Stop
from judge.throttle import Now, Sleep, Throttle


class Asker:
    """Asks on behalf of one run, and knows when the run has to stop.

    Attributes
    ----------
    faults : Counter
        Tries that brought no reply, by class.
    stopped : Stop or None
        Once set, nothing is sent any more.
    """

    def __init__(
        self,
        complete: Complete,
        options: Options,
        *,
        tokens_out: int,
        now: Now,
        sleep: Sleep,
        rng: np.random.Generator,
    ) -> None:
        self._complete, self._now, self._sleep, self._rng = complete, now, sleep, rng
        self._throttle = Throttle(options.limits, now=now, sleep=sleep, rng=rng)
        self._ledger = Ledger(options.price, options.limit_usd, tokens_out=tokens_out)
        self._limit_usd = options.limit_usd
        self._limits_tokens = options.limits.tokens_per_minute is not None
        self._priced = options.price is not None
        self._places = asyncio.Semaphore(options.concurrency)
        self._calls = count()
        self.faults: Counter[FailureClass] = Counter()
        self.stopped: Stop | None = None
        self.why = ""

    @property
    def spent_usd(self) -> float | None:
        """Dollars booked; None without a price."""
        return self._ledger.spent_usd if self._priced else None

    @property
    def n_estimated(self) -> int:
        """Replies whose tokens the endpoint did not count."""
        return self._ledger.n_estimated

    def stop(self, stop: Stop, why: str) -> None:
        """Send nothing any more; the first reason stands."""
        if self.stopped is None:
            self.stopped, self.why = stop, why

    async def reply(self, request: Request) -> Reply | None:
        """Return the reply to a request; None if the run stopped before there was one.

        Raises
        ------
        CallError
            If the last try failed, or the failure is of a class that is not tried again.
        """
        async with self._places:
            return await self._answered(request)

    async def _answered(self, request: Request) -> Reply | None:
        number = next(self._calls)
        tokens = request_tokens(request) if self._limits_tokens else 0.0
        tries = 0
        while not self.stopped:
            await self._throttle.admit(tokens)
            if self.stopped or not self._affordable(number, request):
                return None
            try:
                return await self._once(number, request)
            except CallError as error:
                tries += 1
                await self._failed(error, tries)
        return None

    async def _once(self, number: int, request: Request) -> Reply:
        began = self._now()
        try:
            reply = await self._complete(request)
        except BaseException:
            self._ledger.withdraw(number)
            raise
        if reply.latency_s is None:
            reply = replace(reply, latency_s=self._now() - began)
        self._ledger.book(number, request, reply)
        return reply

    async def _failed(self, error: CallError, tries: int) -> None:
        """Wait for the next try, or raise the error again."""
        self.faults[error.failure] += 1
        if error.failure is FailureClass.DENIED:
            self.stop(Stop.DENIED, error.detail)
        wait = wait_before_retry(error, tries, self._rng)
        if wait is None:
            raise error
        if error.failure is FailureClass.RATE_LIMIT:
            self._throttle.pause(wait)
        else:
            await self._sleep(wait)

    def _affordable(self, number: int, request: Request) -> bool:
        if self._ledger.promise(number, request):
            return True
        self.stop(Stop.BUDGET, f"the next request would exceed the budget of ${self._limit_usd:g}")
        return False
