"""Exports of an arena with many votes: how long they take, and in what memory.

    python -m benchmarks.exports --votes 300000                  # SQLite, in a folder of its own
    python -m benchmarks.exports --votes 10000000 --database postgresql://user@host/empty

Fills an empty database with battles of two short answers, and exports votes, battles and answers,
each in a process of its own. The memory is the most that the process had resident.
"""

import argparse
import resource
import tempfile
import time
from contextlib import ExitStack, redirect_stdout
from io import StringIO
from multiprocessing import get_context
from pathlib import Path

from arena.cli import main as arena
from benchmarks.boards import database_of, fill

WHAT = ("votes", "battles", "answers")


def main() -> None:
    """Fill a database, export what is in it, and print what was measured."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--votes", type=int, default=300_000)
    parser.add_argument("--models", type=int, default=100)
    parser.add_argument("--database", default="sqlite", help="sqlite, postgresql, or the URL")
    parser.add_argument("--filled", action="store_true", help="the database was filled before")
    options = parser.parse_args()
    with ExitStack() as stack:
        url = database_of(options.database, stack)
        if not options.filled:
            fill(url, options.votes, options.models)
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        for what in WHAT:
            child = get_context("spawn").Process(target=_export, args=(what, url, folder))
            child.start()
            child.join()


def _export(what: str, url: str, folder: Path) -> None:
    path = folder / f"{what}.parquet"
    began, used = time.monotonic(), time.process_time()
    with redirect_stdout(StringIO()):
        arena(["export", what, "--to", str(path), "--database", url])
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(
        f"{what}: {time.monotonic() - began:.0f} s ({time.process_time() - used:.0f} s of a "
        f"processor), {peak:.0f} MB resident at most, {path.stat().st_size / 1e6:.0f} MB written",
        flush=True,
    )


if __name__ == "__main__":
    main()
