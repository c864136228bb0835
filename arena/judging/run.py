"""Let a judge work through cases, with a journal that other processes may share."""

import asyncio
import time
from collections.abc import Callable, Sequence

import numpy as np

from arena.store.judging import StoredJournal
from arena.store.lease import PATIENCE, PULSE_S
from judge.case import Case
from judge.completion import Complete
from judge.options import Options, Progress
from judge.protocol import Method
from judge.results import Run
from judge.runs import run


async def judge_cases(
    cases: Sequence[Case],
    method: Method,
    complete: Complete,
    journal: StoredJournal,
    options: Options,
    told: Callable[[Progress], None],
) -> Run:
    """Judge every case once; what dead processes were asking is taken over.

    Raises
    ------
    rating.errors.RatingError, StoreError
        If a case does not fit the method, or the database goes away.
    """
    await asyncio.to_thread(journal.free_the_dead, looks=1)
    try:
        async with asyncio.TaskGroup() as tasks:
            pulse = tasks.create_task(_pulse(journal))
            found = await run(
                cases,
                method,
                complete,
                journal,
                options,
                now=time.monotonic,
                sleep=asyncio.sleep,
                rng=np.random.default_rng(),
                told=told,
            )
            pulse.cancel()
    except ExceptionGroup as group:
        raise group.exceptions[0] from group
    return found


async def _pulse(journal: StoredJournal) -> None:
    while True:
        await asyncio.sleep(PULSE_S)
        await asyncio.to_thread(journal.free_the_dead, looks=PATIENCE)
