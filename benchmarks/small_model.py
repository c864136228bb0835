"""How soon the demo's small model answers, and what that costs the arena beside it.

``python -m benchmarks.small_model`` starts ``arena demo`` where no other model server runs, plays
battles of the small model one after the other, and asks ``/health/ready`` every 50 ms meanwhile;
once with one thread for the model and once with two. The arena shares the processor with it.
"""

import argparse
import asyncio
import os
import re
import signal
import statistics
import subprocess
import tempfile
import time
from pathlib import Path

import httpx2

from arena.endpoints.local import EXAMPLES
from benchmarks.live import centile
from benchmarks.recordings import ARENA

TEXT = re.compile(r'"text": ?"((?:[^"\\]|\\.)+)"')
WORDS = 45
"""About 60 tokens of English."""


async def battle(visitor: httpx2.AsyncClient, prompt: str) -> tuple[float, dict[str, float]]:
    """Play one; gives when the first text came, and when each side had as many words."""
    began = time.perf_counter()
    opened = await visitor.post("/api/v1/battles", json={"prompt": prompt})
    events = f"/api/v1/battles/{opened.raise_for_status().json()['battle_id']}/events"
    first, written, reached = 0.0, {"a": "", "b": ""}, dict[str, float]()
    async with visitor.stream("GET", events) as stream:
        async for line in stream.aiter_lines():
            now = time.perf_counter() - began
            side = "a" if '"side":"a"' in line.replace(" ", "") else "b"
            if text := TEXT.search(line):
                first = first or now
                written[side] += text[1]
                if len(written[side].split()) >= WORDS:
                    reached.setdefault(side, now)
    return first, reached


async def measure(url: str, battles: int) -> str:
    """Give the row of a table."""
    firsts, sixty, health = [], [], []
    async with httpx2.AsyncClient(base_url=url, timeout=120) as visitor:
        running = True

        async def ask_health() -> None:
            while running:
                asked = time.perf_counter()
                (await visitor.get("/health/ready")).raise_for_status()
                health.append(time.perf_counter() - asked)
                await asyncio.sleep(0.05)

        watching = asyncio.create_task(ask_health())
        for n in range(battles):
            first, reached = await battle(visitor, EXAMPLES[n % len(EXAMPLES)])
            firsts.append(first)
            if len(reached) == 2:
                sixty.append(max(reached.values()))
        running = False
        await watching
    return (
        f"{statistics.median(firsts):.1f} s | {max(firsts):.1f} s | "
        f"{statistics.median(sixty):.1f} s ({len(sixty)}) | {centile(health, 95):.0f} ms"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--battles", type=int, default=20)
    battles = parser.parse_args().battles
    print(
        "| threads | page | first text | slowest | 45 words of both sides (battles) | health p95 |"
    )
    print("|---|---|---|---|---|---|")
    for threads in (1, 2):
        with tempfile.TemporaryDirectory() as folder:
            began = time.perf_counter()
            # One more core than threads is what the model's process is to see.
            cores = f"import os\nos.sched_getaffinity = lambda pid: {{*range({threads + 1})}}\n"
            (Path(folder) / "sitecustomize.py").write_text(cores, encoding="utf-8")
            path = f"{folder}:{os.environ.get('PYTHONPATH', '')}"
            env = os.environ | {"PYTHONPATH": path}
            with subprocess.Popen(
                [ARENA, "demo", "--port", "0"],
                cwd=folder,
                env=env,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                text=True,
            ) as demo:
                assert demo.stdout
                url = demo.stdout.readline().split()[4]
                while True:
                    try:
                        httpx2.get(url).raise_for_status()
                        break
                    except httpx2.TransportError:
                        time.sleep(0.02)
                page = time.perf_counter() - began
                print(
                    f"| {threads} | {page:.1f} s | {asyncio.run(measure(url, battles))} |",
                    flush=True,
                )
                demo.send_signal(signal.SIGINT)


if __name__ == "__main__":
    main()
