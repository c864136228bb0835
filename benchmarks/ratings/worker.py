"""One task of one program in a process of its own: prints its times, memory and ratings as JSON.

`python -m benchmarks.ratings.worker TOOL TASK KIND FILE`
"""

import gc
import json
import resource
import sys
import time
from pathlib import Path

from benchmarks.ratings import peers
from benchmarks.ratings.tasks import Points, Task, source_of

REPEATS = 3
ENOUGH_S = 10


def _resident_mb() -> float:
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * resource.getpagesize() / 1e6


def _peak_mb() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / 1e6


def _cpu_s() -> float:
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


def _task(tool: str, task: str) -> Task:
    if tool in peers.TOOLS:
        return peers.TOOLS[tool][task]
    from benchmarks.ratings import ours

    if tool == "numpy":
        from rating import covariance

        covariance.COMPILED_FROM = sys.maxsize
    return ours.TASKS[task]


def _measure(tool: str, task: str, kind: str, path: Path) -> dict[str, object]:
    source = source_of(path, kind, task)
    if task == "fresh":
        gc.collect()
    before, walls, cpus = _resident_mb(), [], []
    points: Points = {}
    began, cpu = time.perf_counter(), _cpu_s()
    run = _task(tool, task)(source)
    if task != "fresh":
        began, cpu = time.perf_counter(), _cpu_s()
    while True:
        points = run()
        walls.append(time.perf_counter() - began)
        cpus.append(_cpu_s() - cpu)
        if task == "fresh" or len(walls) == REPEATS or sum(walls) > ENOUGH_S:
            break
        began, cpu = time.perf_counter(), _cpu_s()
    return {
        "first_s": walls[0],
        "best_s": min(walls),
        "cpu_s": min(cpus),
        "more_mb": _peak_mb() - before,
        "peak_mb": _peak_mb(),
        "points": dict(points),
    }


if __name__ == "__main__":
    tool, task, kind, file = sys.argv[1:]
    print(json.dumps(_measure(tool, task, kind, Path(file))))
