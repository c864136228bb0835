import asyncio
import time
from contextlib import suppress
from itertools import pairwise

import pytest

from arena.boards.fitted import keep_looking
from arena.errors import StoreError

TOOK_S, REST = 0.05, 4


async def test_it_rests_in_proportion_to_what_a_look_took_and_goes_on_after_a_fault(
    caplog: pytest.LogCaptureFixture,
) -> None:
    began: list[float] = []
    loop, looked_often = asyncio.get_running_loop(), asyncio.Event()

    def look() -> None:
        began.append(time.monotonic())
        time.sleep(TOOK_S)
        if len(began) == 1:
            raise StoreError("the disk is full")
        if len(began) == 2:
            raise ZeroDivisionError
        if len(began) == 4:
            loop.call_soon_threadsafe(looked_often.set)

    looking = asyncio.create_task(keep_looking(look, "The race", 0.01, REST))
    await looked_often.wait()
    looking.cancel()
    with suppress(asyncio.CancelledError):
        await looking
    assert min(b - a for a, b in pairwise(began)) >= TOOK_S * (1 + REST)
    assert [record.getMessage() for record in caplog.records] == [
        "The race could not be read: the disk is full",
        "The race ended in a fault of ours",
    ]
