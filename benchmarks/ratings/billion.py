"""Votes by the billion: made in pieces, counted, and rated with everybody excluded once.

`python -m benchmarks.ratings.billion --folder FOLDER --votes 1000000000` runs four programs, each
in a process of its own: one that makes ``votes.parquet`` there unless it is there, duckdb's
GROUP BY of the three columns, `arena rate --interval none`, and `arena rate` with the default
intervals; with ``--programs board spark`` the last of these and the same in a local Spark of two
workers. Printed are wall time, processor time of all processes, peak memory of the program and of
all its processes together, and the most disk that it took besides its result. Stopped and begun
again with the same ``--folder``, `arena rate` goes on with the part that it was at, and the row is
of what was left; ``--programs`` excludes what was measured.
"""

import argparse
import os
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks.ratings.work import OUTCOMES, STRENGTH_SD, outcomes_of, pairs_of

PIECE = 2_000_000
VOTES_PER_VOTER = 20
GROUPS = 4096
"""Groups of equally busy voters: a lognormal law, without a number for each of them."""
BUSY_SD = 1.4
COUNT = """
import duckdb, sys
rows = duckdb.sql(
    "SELECT model_a, model_b, winner, count(*) FROM read_parquet(?) GROUP BY ALL",
    params=[sys.argv[1]],
).fetchall()
print(f"{len(rows):,} cells")
"""


def main() -> None:
    """Make the votes, run the programs, and print a row of each."""
    options = _options()
    options.folder.mkdir(parents=True, exist_ok=True)
    path = options.folder / "votes.parquet"
    if options.only_make:
        _make(path, options.votes, options.models, options.seed)
        return

    def rate(name: str, source: str, *words: str) -> list[str]:
        start = "from arena.cli import main; main()"
        out = str(options.folder / f"{name}.json")
        return [sys.executable, "-c", start, "rate", source, *words, "--out", out]

    again = [sys.executable, "-m", "benchmarks.ratings.billion", *sys.argv[1:], "--only-make"]
    programs = {
        "made": again,
        "duckdb": [sys.executable, "-c", COUNT, str(path)],
        "none": rate("none", str(path), "--interval", "none"),
        "board": rate("board", str(path)),
        "spark": rate("spark", "spark://local[2]", "--table", str(path)),
    }
    print("| votes | program | wall | processor | memory | of all processes | disk |")
    print("|---|---|---|---|---|---|---|")
    cpu = {}
    for name in [*([] if path.exists() else ["made"]), *options.programs]:
        row, cpu[name], status = _measured(programs[name], options.folder / "work")
        print(f"| {options.votes:,} | {name} | {row} |", flush=True)
        if status:
            sys.exit(f"{name} ended with status {status}; its work is kept for another run.")
    print(f"votes.parquet: {path.stat().st_size / 1e9:.2f} GB")
    if {"board", "spark"} <= {*cpu}:
        print(f"spark / board, processor: {cpu['spark'] / cpu['board']:.1f}")


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Rate votes by the billion.")
    parser.add_argument("--folder", type=Path, required=True)
    parser.add_argument("--votes", type=int, default=1_000_000_000)
    parser.add_argument("--models", type=int, default=300)
    parser.add_argument("--seed", type=int, default=0)
    names = ["duckdb", "none", "board"]
    parser.add_argument("--programs", nargs="*", choices=[*names, "spark"], default=names)
    parser.add_argument("--only-make", action="store_true", help=argparse.SUPPRESS)
    return parser.parse_args()


def _measured(command: list[str], scratch: Path) -> tuple[str, float, int]:
    """Run a program; what it took in words, its processor time, and how it ended."""
    scratch.mkdir(exist_ok=True)
    began = time.perf_counter()
    run = subprocess.Popen(
        command,
        env=os.environ | {"TMPDIR": str(scratch)},
        stdout=subprocess.DEVNULL,
        start_new_session=True,
    )
    watch = _Watch(run.pid, scratch)
    watch.start()
    try:
        _, status, used = os.wait4(run.pid, 0)
    except KeyboardInterrupt:
        run.terminate()
        raise
    finally:
        watch.ended.set()
        watch.join()
    wall = time.perf_counter() - began
    if not status:
        shutil.rmtree(scratch)
    cpu = max(watch.cpu_s, used.ru_utime + used.ru_stime)
    row = (
        f"{wall:.1f} s | {cpu:.1f} s | {watch.own / 1e6:.0f} MB | "
        f"{watch.memory / 1e6:.0f} MB | {watch.disk / 1e9:.2f} GB"
    )
    return row, cpu, status


class _Watch(threading.Thread):
    """Looks every fifth of a second at the processes of a session, and at a folder.

    Those of Spark are nobody's children at the end, so that no call tells what they took.
    """

    def __init__(self, session: int, folder: Path) -> None:
        super().__init__()
        self.ended = threading.Event()
        self._session, self._folder = session, folder
        self._ticks: dict[int, int] = {}
        self.own = self.memory = self.disk = 0

    @property
    def cpu_s(self) -> float:
        return sum(self._ticks.values()) / os.sysconf("SC_CLK_TCK")

    def run(self) -> None:
        while self._look() or not self.ended.wait(0.2):
            time.sleep(0.2)

    def _look(self) -> bool:
        """Take a look; whether a process is there."""
        pages, there = 0, False
        for stat in Path("/proc").glob("[0-9]*/stat"):
            try:
                words = stat.read_text().rpartition(")")[2].split()
            except OSError:  # ended a moment ago
                continue
            if int(words[3]) == self._session and words[0] != "Z":
                there = True
                if stat.parent.name == str(self._session):
                    self.own = max(self.own, _peak(stat.with_name("status")))
                self._ticks[int(stat.parent.name)] = int(words[11]) + int(words[12])
                pages += int(words[21])
        self.memory = max(self.memory, pages * os.sysconf("SC_PAGE_SIZE"))
        self.disk = max(self.disk, sum(map(_size, self._folder.rglob("*"))))
        return there


def _peak(status: Path) -> int:
    """Return the largest memory that a process has had, in bytes.

    What `wait4` says of it may be the memory of the process that started it.
    """
    try:
        lines = [line.split() for line in status.read_text().splitlines()]
    except OSError:  # ended a moment ago
        return 0
    return next((int(words[1]) * 1024 for words in lines if words[0] == "VmHWM:"), 0)


def _size(file: Path) -> int:
    try:
        return file.stat().st_size
    except OSError:
        return 0


def _make(path: Path, votes: int, models: int, seed: int) -> None:
    unfinished = path.with_suffix(".unfinished")
    parts = _pieces(votes, models, np.random.default_rng(seed))
    first = next(parts)
    with pq.ParquetWriter(unfinished, first.schema, compression="zstd") as writer:
        writer.write_table(first)
        for part in parts:
            writer.write_table(part)
    unfinished.rename(path)


def _pieces(votes: int, models: int, rng: np.random.Generator) -> Iterator[pa.Table]:
    names = [f"vendor-{m % 17}/model-{m:03d}-instruct" for m in range(models)]
    strength = rng.normal(0, STRENGTH_SD, models)
    popular = rng.permutation(np.exp(-np.linspace(0, 4.0, models)))
    voters = max(votes // VOTES_PER_VOTER, 10)
    busy = np.exp(BUSY_SD * np.sort(rng.normal(size=GROUPS)))
    upto = np.cumsum(busy) / busy.sum()
    for first in range(0, votes, PIECE):
        n = min(PIECE, votes - first)
        a, b = pairs_of(popular / popular.sum(), n, rng)
        outcome = outcomes_of(strength[a] - strength[b], rng)
        group = np.searchsorted(upto, rng.random(n)).clip(max=GROUPS - 1)
        voter = ((group + rng.random(n)) * (voters / GROUPS)).astype(np.uint64)
        yield pa.table(
            {
                "model_a": _of_names(a, names),
                "model_b": _of_names(b, names),
                "winner": _of_names(outcome, OUTCOMES),
                "voter": _hex(voter),
            }
        )


def _of_names(codes: np.ndarray, names: list[str] | tuple[str, ...]) -> pa.Array:
    return pa.DictionaryArray.from_arrays(pa.array(codes), names).cast(pa.string())


def _hex(numbers: np.ndarray) -> pa.Array:
    """Sixteen hexadecimal digits of each number, mixed: as random names look."""
    mixed = numbers + np.uint64(0x9E3779B97F4A7C15)
    for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
        mixed = (mixed ^ (mixed >> np.uint64(shift))) * np.uint64(factor)
    mixed ^= mixed >> np.uint64(31)
    pairs = np.array([f"{value:02x}" for value in range(256)], dtype="S2").view(np.uint16)
    digits = pairs[mixed.view(np.uint8)]
    offsets = np.arange(len(numbers) + 1, dtype=np.int32) * 16
    return pa.StringArray.from_buffers(len(numbers), pa.py_buffer(offsets), pa.py_buffer(digits))


if __name__ == "__main__":
    main()
