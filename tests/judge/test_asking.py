"""Rates, pauses and waits."""

import asyncio
import itertools

import numpy as np
import pytest

from judge.asking import LONGEST_WAIT_S, TRIES, Throttle, TokenBucket, wait_before_retry
from judge.calls import NO_LIMITS, RateLimits
from judge.case import CallError, FailureClass
from rating.errors import DataError
from tests.judge.scripted import Clock

RETRIED = list(TRIES)


def throttle(limits: RateLimits, clock: Clock) -> Throttle:
    return Throttle(limits, now=clock.now, sleep=clock.sleep, rng=np.random.default_rng(1))


async def admitted(n: int, limits: RateLimits, *, tokens: float = 1.0) -> list[float]:
    """Times at which n callers who come at once are let through."""
    clock, times = Clock(), list[float]()
    gate = throttle(limits, clock)

    async def call() -> None:
        await gate.admit(tokens)
        times.append(clock.now())

    await asyncio.gather(*(call() for _ in range(n)))
    return times


async def test_without_limits_everybody_is_let_through_at_once() -> None:
    assert await admitted(50, NO_LIMITS) == [0.0] * 50


async def test_in_any_minute_no_more_than_the_limit_and_a_burst_are_let_through() -> None:
    times = await admitted(300, RateLimits(requests_per_minute=120))
    in_a_minute = max(sum(start <= t < start + 60 for t in times) for start in times)
    assert in_a_minute <= 120 + 4 + 1  # two seconds' burst
    assert times[-1] == pytest.approx((300 - 4) / 2)


async def test_the_tokens_are_limited_as_the_requests_are() -> None:
    for requests in (None, 120):  # of two limits the stricter one holds
        times = await admitted(10, RateLimits(requests, 6000), tokens=1000)
        assert np.diff(times[1:]) == pytest.approx(np.full(8, 10.0))


async def test_a_pause_holds_everybody_and_lets_them_go_apart() -> None:
    clock, times = Clock(), list[float]()
    gate = throttle(NO_LIMITS, clock)
    gate.pause(30.0)
    gate.pause(5.0)  # ends no longer one

    async def call() -> None:
        await gate.admit(1)
        times.append(clock.now())

    await asyncio.gather(*(call() for _ in range(20)))
    assert 30.0 <= min(times) < max(times) <= 33.1


def test_a_bucket_that_rested_holds_no_more_than_its_burst() -> None:
    bucket = TokenBucket(60, burst_s=2)
    waits = [bucket.take(1, now=1000.0) for _ in range(4)]
    assert waits == [0.0, 0.0, 1.0, 2.0]


@pytest.mark.parametrize("limit", [0.0, -1.0, float("nan")])
def test_a_rate_limit_is_positive(limit: float) -> None:
    with pytest.raises(DataError, match="positive"):
        RateLimits(requests_per_minute=limit)


@pytest.mark.parametrize("failure", FailureClass)
def test_a_class_is_tried_as_often_as_the_table_says(failure: FailureClass) -> None:
    rng, error = np.random.default_rng(1), CallError(failure, "x")
    waits = (wait_before_retry(error, tries, rng) for tries in itertools.count(1))
    retries = list(itertools.takewhile(lambda wait: wait is not None, waits))
    most = {"rate_limit": 10, "overloaded": 8, "transport": 5}
    assert len(retries) == most.get(failure, 1) - 1


@pytest.mark.parametrize("failure", RETRIED)
def test_waits_double_up_to_a_minute_and_keep_at_least_half(failure: FailureClass) -> None:
    rng, error = np.random.default_rng(1), CallError(failure, "x")
    for tries in range(1, TRIES[failure]):
        wait = wait_before_retry(error, tries, rng)
        longest = min(60.0, 0.5 * 2 ** (tries - 1))
        assert wait is not None
        assert longest / 2 <= wait <= longest


def test_the_wait_that_was_asked_for_is_kept_unless_it_is_out_of_reason() -> None:
    rng = np.random.default_rng(1)
    asked = CallError(FailureClass.RATE_LIMIT, "x", retry_after_s=17.0)
    long = CallError(FailureClass.RATE_LIMIT, "x", retry_after_s=LONGEST_WAIT_S + 1)
    assert wait_before_retry(asked, 1, rng) == 17.0
    assert wait_before_retry(long, 1, rng) is None
