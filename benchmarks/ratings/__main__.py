"""Runs every task of every program that is there, and prints tables."""

import argparse
import importlib.util
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from benchmarks.ratings import peers
from benchmarks.ratings.exact import exact_points
from benchmarks.ratings.tasks import FROM_CODES, KINDS, TASKS, Points
from benchmarks.ratings.work import SIZES, made

OURS = "ours"
NUMPY = "numpy"
"""Ours without compiled loops."""
ROOT = Path(__file__).resolve().parents[2]
FROM_ALL_KINDS = ("fit",)
FROM_FILES = ("sandwich", "style", "rounds-100", "voters-100", "cr3")
WITH_MAXIMUM = ("fit", "sandwich", "fresh")


@dataclass(frozen=True, slots=True)
class Job:
    """One task of one program, from one kind of source."""

    size: str
    task: str
    kind: str
    tool: str


@dataclass(frozen=True, slots=True)
class Result:
    """What a job took; the times of a few rounds stand for all."""

    first_s: float
    best_s: float
    cpu_s: float
    more_mb: float
    peak_mb: float
    points: Points


def main() -> None:
    """Measure, tell the progress on stderr, and print Markdown on stdout."""
    options = _options()
    with tempfile.TemporaryDirectory() as scratch:
        folder = options.folder or Path(scratch)
        folder.mkdir(parents=True, exist_ok=True)
        tools = [OURS, NUMPY, *_installed(options.tools)]
        for size in options.sizes:
            began = time.perf_counter()
            path = made(folder, size, options.seed)
            _tell(f"{size}: votes made in {time.perf_counter() - began:.0f} s")
            jobs = [job for job in _jobs(size, options) if job.tool in tools]
            _print_table(size, jobs, path, options.limit)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Rate the same votes with several programs.")
    parser.add_argument("--sizes", nargs="+", choices=SIZES, default=["a", "b"])
    parser.add_argument("--tasks", nargs="+", choices=TASKS, default=[*TASKS])
    parser.add_argument("--kinds", nargs="+", choices=KINDS, default=[*KINDS])
    parser.add_argument("--tools", nargs="*", choices=peers.TOOLS, default=[*peers.TOOLS])
    parser.add_argument("--limit", type=float, default=600, help="seconds that a job may take")
    parser.add_argument("--folder", type=Path, help="where the votes are kept for another run")
    parser.add_argument("--seed", type=int, default=0)
    return parser.parse_args()


def _installed(tools: list[str]) -> Iterator[str]:
    for tool in tools:
        if importlib.util.find_spec(peers.MODULES[tool]):
            yield tool
        else:
            _tell(f"{tool} is not installed: excluded (`make bench-rating` installs it)")


def _jobs(size: str, options: argparse.Namespace) -> Iterator[Job]:
    """Yield jobs so that those which are compared follow one another."""
    for task in options.tasks:
        if (task == "fresh") != (size == "tiny"):
            continue
        for kind in options.kinds:
            file = kind == "parquet" and task in FROM_FILES
            if kind == "str" or task in FROM_ALL_KINDS or file:
                yield Job(size, task, kind, OURS)
                tools = [tool for tool in options.tools if task in peers.TOOLS[tool] and not file]
                tools += [NUMPY] if task in FROM_CODES else []
                yield from (Job(size, task, kind, tool) for tool in tools)


def _print_table(size: str, jobs: list[Job], path: Path, limit: float) -> None:
    votes, models = SIZES[size].votes, SIZES[size].models
    print(f"\n### {size}: {votes:,} votes on {models} models\n")
    print("| task | from | program | first | best | CPU | to ours | off by | memory (added) |")
    print("|---|---|---|---|---|---|---|---|---|")
    best = exact_points(path) if any(job.task in WITH_MAXIMUM for job in jobs) else {}
    ours: dict[tuple[str, str], float] = {}
    for job in jobs:
        result = _run(job, path, limit)
        if isinstance(result, Result) and job.tool == OURS:
            ours[job.task, job.kind] = result.cpu_s
        print(_row(job, result, ours.get((job.task, job.kind)), best), flush=True)


def _run(job: Job, path: Path, limit: float) -> Result | str:
    _tell(f"{job.size}: {TASKS[job.task]}, from {job.kind}, {job.tool}")
    command = [sys.executable, "-m", "benchmarks.ratings.worker", job.tool, job.task, job.kind]
    try:
        done = subprocess.run(
            [*command, str(path)], cwd=ROOT, capture_output=True, text=True, timeout=limit
        )
    except subprocess.TimeoutExpired:
        return f"over {limit:.0f} s"
    if done.returncode:
        return f"failed: {done.stderr.strip().splitlines()[-1:]}"
    result = Result(**json.loads(done.stdout.splitlines()[-1]))
    times = peers.FROM_FEW.get((job.tool, job.task), 1)
    return Result(
        result.first_s * times,
        result.best_s * times,
        result.cpu_s * times,
        result.more_mb,
        result.peak_mb,
        result.points,
    )


def _row(job: Job, result: Result | str, ours_s: float | None, best: Points) -> str:
    start = f"| {TASKS[job.task]} | {job.kind} | {job.tool} |"
    if isinstance(result, str):
        return f"{start} {result} | | | | | |"
    about = "~" if (job.tool, job.task) in peers.FROM_FEW else ""
    times = " | ".join(
        about + _seconds(value) for value in (result.first_s, result.best_s, result.cpu_s)
    )
    faster = f"{result.cpu_s / ours_s:.3g}x" if ours_s and job.tool != OURS else ""
    off = f"{_off(result.points, best):.1e}" if job.task in WITH_MAXIMUM else ""
    return f"{start} {times} | {faster} | {off} | {result.peak_mb:.0f} ({result.more_mb:.0f}) MB |"


def _seconds(value: float) -> str:
    return f"{value:.3f} s" if value < 1 else f"{value:.3g} s"


def _off(points: Points, best: Points) -> float:
    """Return the largest difference from the exact maximum, both with a mean of zero."""
    names = sorted(best)
    if set(points) != set(names):
        return float("nan")
    there, here = (np.array([of[name] for name in names]) for of in (best, points))
    return float(np.abs((there - there.mean()) - (here - here.mean())).max())


def _tell(text: str) -> None:
    print(f"[{time.strftime('%H:%M:%S')}] {text}", file=sys.stderr, flush=True)


if __name__ == "__main__":
    main()
