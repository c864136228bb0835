"""What the Gradio chat costs beside the page, and what its battles cost the page's votes.

``python -m benchmarks.chat`` serves an arena of two recorded models with ``ARENA_CHAT=/chat``, and
drives the chat by Gradio's own protocol, from the same machine: see `benchmarks.live`.
"""

import argparse
import asyncio
import json
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager

import httpx2

from benchmarks.live import (
    MANY,
    MARKDOWN,
    RATE,
    Updates,
    measure,
    measure_votes,
    rendered,
    serving,
    wait_for,
)
from benchmarks.recordings import Server, serving_recordings

IDLE_S = 20.0
VOTES = 60


@contextmanager
def beside(seconds: float) -> Iterator[Server]:
    """Run the arena with the chat beside its page."""
    text = (MARKDOWN * 100)[: int(RATE * seconds)]
    with serving_recordings({"Go": text}, RATE, ARENA_CHAT="/chat", **MANY) as server:
        wait_for(server.url)
        yield server


async def in_chat(visitor: httpx2.AsyncClient, url: str) -> Updates:
    """Play a battle in the chat, to the end of its stream."""
    updates = Updates(time.perf_counter())
    session, queue = uuid.uuid4().hex[:11], f"{url}/chat/gradio_api/queue"
    # The first of the chat's functions takes what is asked, and the id of no battle; the second
    # and the third, the id of the battle that it began.
    data = ["Go", ""]
    line = ""
    for number in range(3):
        asked = {"fn_index": number, "session_hash": session, "data": data}
        (await visitor.post(f"{queue}/join", json=asked)).raise_for_status()
        async with visitor.stream("GET", f"{queue}/data?session_hash={session}") as stream:
            async for line in stream.aiter_lines():
                if number == 1 and "process_" in line:
                    updates.times.append(time.perf_counter())
                elif number == 0 and "process_completed" in line:
                    done = json.loads(line.removeprefix("data: "))
                    data = [done["output"]["data"][-1]]
    assert len(updates.times) > 3, line
    return updates


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--battles", type=int, default=50)
    parser.add_argument("--seconds", type=float, default=5.0)
    options = parser.parse_args()
    n = options.battles
    print("| at rest | memory | of one core |\n|---|---|---|")
    for name, serve in (("page alone", serving), ("with the chat", beside)):
        with serve(options.seconds) as server:
            time.sleep(IDLE_S)
            before = server.cpu_s()
            time.sleep(IDLE_S)
            used = (server.cpu_s() - before) / IDLE_S
            print(f"| {name} | {server.memory_mb():.0f} MB | {used:.1%} |", flush=True)
    print(
        "\n| battles in | battles | CPU for each | CPU of one core | first text p50 / p95 "
        "| lag p50 / p95 | memory |"
    )
    print("|---|---|---|---|---|---|---|")
    for name, serve, act in (("page", serving, rendered), ("chat", beside, in_chat)):
        print(asyncio.run(measure(serve, name, act, n, options.seconds)), flush=True)
    print("\n| votes of the page beside | battles streaming | votes | p50 | p95 |")
    print("|---|---|---|---|---|")
    for name, streaming, serve, act in (
        ("nothing", 0, beside, rendered),
        ("the page", n, serving, rendered),
        ("the chat", n, beside, in_chat),
    ):
        row = measure_votes(serve, name, VOTES, streaming, 2 * options.seconds, act)
        print(asyncio.run(row), flush=True)


if __name__ == "__main__":
    main()
