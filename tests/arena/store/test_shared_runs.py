"""Two workers on one database share a run."""

import asyncio
from collections import Counter
from contextlib import closing
from datetime import UTC, datetime

from arena.store.judgements import StoredJournal
from arena.store.store import Store
from judge.calls import Options
from judge.case import Case, Message, Reply, Request
from judge.methods import method as named
from judge.runs import run
from judge.verdict import Run

CASES = [Case((Message("user", f"{n}?"),), f"{n}.", "No.") for n in range(20)]


async def work(store: Store, asked: Counter[Request], begins: asyncio.Barrier) -> Run:
    """Judge all cases; the first request waits until the other worker has one, too."""

    async def complete(request: Request) -> Reply:
        first = not asked
        asked[request] += 1
        await (begins.wait() if first else asyncio.sleep(0.01))
        return Reply(text="Alike. [[C]]")

    journal = StoredJournal(store, "judge", None, lambda: datetime.now(UTC))
    options = Options(judge="judge", seed="a secret", concurrency=4)
    return await run(CASES, named("pairwise"), complete, journal, options)


async def test_two_workers_judge_every_case_once_and_both_end_with_all_of_it(url: str) -> None:
    asked, begin = (Counter[Request](), Counter[Request]()), asyncio.Barrier(2)
    with closing(Store(url)) as one, closing(Store(url)) as other:
        runs = await asyncio.gather(work(one, asked[0], begin), work(other, asked[1], begin))
    assert (asked[0] + asked[1]).total() == len(asked[0] + asked[1]) == 2 * len(CASES)
    assert min(one.total() for one in asked) > 0, "they did share it"
    assert [dict(finished.by_status) for finished in runs] == [{"read": 2 * len(CASES)}] * 2
