"""Runs a judge over HTTP and over what is kept, and prints tables."""

import argparse
import asyncio
import gc
import json
import os
import random
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from itertools import islice
from pathlib import Path

import aiohttp

from arena.commands.judge_work import NEW_OBJECTS
from arena.domain.model import Model
from arena.judging import ModelEndpoint, journal_of
from arena.store.judgements import StoredJournal
from arena.store.store import Store
from judge.calls import Options, Questions, call_of
from judge.case import Case, Message, Reply, Request
from judge.methods import method as named
from judge.report.run import rows_and_report
from judge.runs import Progress, judge_all, run
from judge.tables.cases import each_pair, on_disk
from judge.tables.verdicts import write_judged

SERVER = Path(__file__).with_name("server.py")
DELAY_S = 0.2
WORDS = ["tea", "house", "river", "green", "seven", "late", "north", "paper", "because"]
METHOD = named("pairwise")
SECOND = Reply(text="The other is. [[B]]", tokens_in=500, tokens_out=7, latency_s=DELAY_S)
REPLY = Reply(text="The first is fuller. [[A]]", tokens_in=500, tokens_out=9, latency_s=DELAY_S)


def made_cases(n: int) -> list[Case]:
    """Make pairs of answers of some hundred words, no two alike."""
    rng = random.Random(5)
    return [
        Case((Message("user", f"Question {i}?"),), _text(rng, f"a{i}"), _text(rng, f"b{i}"))
        for i in range(n)
    ]


def _text(rng: random.Random, name: str) -> str:
    return " ".join([name, *rng.choices(WORDS, k=rng.randint(60, 240))])


@contextmanager
def slow_judge() -> Iterator[str]:
    """Run the server in a process of its own; gives its URL."""
    words = [sys.executable, str(SERVER)]
    with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as run:
        assert run.stdin
        assert run.stdout
        yield f"http://127.0.0.1:{int(run.stdout.readline())}/v1"
        run.stdin.close()


def resident_mb() -> float:
    """Memory that this process holds now."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * resource.getpagesize() / 1e6


class Watch:
    """Notes the memory in the course of a run."""

    def __init__(self) -> None:
        self.memory: list[float] = []

    def note(self, progress: Progress) -> None:
        """Look when a tenth, half and all of the questions are done."""
        tenth = progress.n_total // 10
        if progress.n_done in (tenth, 5 * tenth, progress.n_total):
            self.memory.append(resident_mb())


async def ask_all(
    cases: Sequence[Case], store: Store, url: str, concurrency: int, watch: Watch
) -> None:
    """Judge every case over HTTP, with a journal in the database."""
    model = Model(id="judge", name="Judge", endpoint=url, model="judge")
    options = Options(judge="judge", seed="secret", concurrency=concurrency)
    async with ModelEndpoint(model).opened() as judge:
        journal = journal_of(store, "judge", None)
        await run(cases, METHOD, judge, journal, options, progress=watch.note)


async def bare(cases: Sequence[Case], url: str, concurrency: int) -> None:
    """Ask the same of the same server with aiohttp, and keep nothing."""
    asked = iter(
        {
            "model": "judge",
            "messages": [{"role": "user", "content": f"{one.prompt[0].content}\n{text}"}],
        }
        for one in cases
        for text in (f"{one.response_a}\n{one.response_b}", f"{one.response_b}\n{one.response_a}")
    )
    connector = aiohttp.TCPConnector(limit=concurrency)
    async with aiohttp.ClientSession(connector=connector) as session:

        async def work() -> None:
            for body in asked:
                async with session.post(f"{url}/chat/completions", json=body) as answer:
                    await answer.json()

        await asyncio.gather(*(work() for _ in range(concurrency)))


def throughput(n_cases: int, concurrency: int, folder: str) -> None:
    """Print how near a run comes to what the server's delay allows, and a bare loop beside it."""
    cases, watch, rows = made_cases(n_cases), Watch(), []
    with closing(Store(f"sqlite:///{folder}/run.db")) as store, slow_judge() as url:
        for what, work in (
            ("a bare loop of aiohttp", bare(cases, url, concurrency)),
            ("a run", ask_all(cases, store, url, concurrency, watch)),
            ("a bare loop of aiohttp", bare(cases, url, concurrency)),
        ):
            began, cpu = time.perf_counter(), time.process_time()
            asyncio.run(work)
            rows.append((what, time.perf_counter() - began, time.process_time() - cpu))
    calls = 2 * n_cases
    ideal = calls * DELAY_S / concurrency
    print("| what | calls | at once | took | ideal | of ideal | calls/s | CPU a call |")
    print("|---|---|---|---|---|---|---|---|")
    for what, took, cpu in rows:
        print(
            f"| {what} | {calls:,} | {concurrency} | {took:.1f} s | {ideal:.1f} s "
            f"| {ideal / took:.0%} | {calls / took:,.0f} | {1000 * cpu / calls:.2f} ms |"
        )
    memory = " / ".join(f"{mb:.0f}" for mb in watch.memory)
    print(f"\nMemory of the run at 10 / 50 / 100 %: {memory} MB.")


async def keep_all(cases: Sequence[Case], journal: StoredJournal, options: Options) -> None:
    """Fill the journal as a run would have done."""
    calls = (call_of(question, METHOD, options) for question in Questions(cases, METHOD, options))
    while some := [*islice(calls, 2000)]:
        await asyncio.gather(*(journal.keep(call.key, call.request, REPLY) for call in some))


async def never(request: Request) -> Reply:
    """Stand in for a judge that is not to be asked."""
    raise AssertionError(request)


async def recall_all(cases: Sequence[Case], journal: StoredJournal, options: Options) -> None:
    """Run again over the replies in the journal."""
    again = await run(cases, METHOD, never, journal, options)
    assert again.n_asked == 0


def recalling(n_cases: int, folder: str) -> None:
    """Print how long kept replies take to be read again."""
    cases = made_cases(n_cases)
    options = Options(judge="judge", seed="secret")
    with closing(Store(f"sqlite:///{folder}/kept.db")) as store:
        journal = journal_of(store, "judge", None)
        asyncio.run(keep_all(cases, journal, options))
        print("| what | replies | took | CPU | memory |")
        print("|---|---|---|---|---|")
        for what in ("the same run again", "and once more"):
            with _timed(what, 2 * n_cases):
                asyncio.run(recall_all(cases, journal, options))


@contextmanager
def _timed(what: str, n: int) -> Iterator[None]:
    began, cpu = time.perf_counter(), time.process_time()
    yield
    took, cpu = time.perf_counter() - began, time.process_time() - cpu
    print(f"| {what} | {n:,} | {took:.1f} s | {cpu:.1f} s | {resident_mb():.0f} MB |")


def written(n_cases: int, path: Path) -> None:
    """Write pairs of answers of some 900 characters into a file, a line each."""
    rng = random.Random(5)
    with path.open("w", encoding="utf-8") as file:
        for i in range(n_cases):
            a, b = _text(rng, f"a{i}"), _text(rng, f"b{i}")
            row = {"prompt": f"Question {i}?", "response_a": a, "response_b": b}
            file.write(json.dumps(row | {"model_a": f"m{i % 7}", "model_b": "base"}) + "\n")


async def at_once(request: Request) -> Reply:
    """Stand in for a judge that takes no time."""
    return REPLY if len(request.messages[-1].content) % 2 else SECOND


def remembering(n_cases: int, folder: str) -> None:
    """Print the memory of a whole run, from a file of cases to one of verdicts."""
    pairs, begun = Path(folder, "pairs.jsonl"), resident_mb()
    written(n_cases, pairs)
    options = Options(judge="judge", seed="secret", concurrency=128)
    cases, memory = on_disk(each_pair([pairs])), [begun]
    memory.append(resident_mb())
    with closing(Store(f"sqlite:///{folder}/memory.db")) as store:
        journal = journal_of(store, "judge", None)
        run = asyncio.run(judge_all(cases, METHOD, at_once, journal, options, lambda _: None))
    memory.append(resident_mb())
    rows, _ = rows_and_report("judge", METHOD, cases, run, 1.0)
    memory.append(resident_mb())
    write_judged(rows, Path(folder, "verdicts.parquet"))
    memory.append(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / 1e6)
    print("| calls | before | cases | and the run | and the report | peak, Parquet written |")
    print("|---|---|---|---|---|---|")
    print(f"| {2 * n_cases:,} | " + " | ".join(f"{mb:.0f} MB" for mb in memory) + " |")


def main() -> None:
    """Print both tables, and how busy the machine was."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cases", type=int, default=10_000)
    parser.add_argument("--concurrency", type=int, default=128)
    parser.add_argument(
        "--kept", type=int, default=50_000, help="cases read again, two replies each"
    )
    parser.add_argument(
        "--memory", type=int, default=0, help="cases of a run that is looked at for its memory"
    )
    options = parser.parse_args()
    gc.set_threshold(NEW_OBJECTS, *gc.get_threshold()[1:])  # as the command does
    print(f"Load before: {os.getloadavg()[0]:.2f}.\n")
    with tempfile.TemporaryDirectory() as folder:
        if options.cases:
            throughput(options.cases, options.concurrency, folder)
        if options.kept:
            print()
            recalling(options.kept, folder)
        if options.memory:
            print()
            remembering(options.memory, folder)


if __name__ == "__main__":
    main()
