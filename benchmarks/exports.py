"""Exports of an arena with many votes: how long they take, and in what memory.

    python -m benchmarks.exports --votes 300000                  # SQLite, in a folder of its own
    python -m benchmarks.exports --votes 10000000 --database postgresql://user@host/empty
    python -m benchmarks.exports --votes 10000000 --only votes   # without battles and answers

Fills an empty database with battles of two short answers, exports votes, battles and answers, and
verifies the file of votes. Each is done in a process of its own. The memory is the most that the
process had resident.
"""

import argparse
import tempfile
import time
from collections.abc import Sequence
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
    parser.add_argument("--only", choices=WHAT, help="export this alone")
    options = parser.parse_args()
    with ExitStack() as stack:
        url = database_of(options.database, stack)
        if not options.filled:
            fill(url, options.votes, options.models)
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        files = [folder / f"{what}.parquet" for what in WHAT if options.only in (None, what)]
        for file in files:
            _apart("export", file.stem, "--all", "--to", str(file), "--database", url)
            print(f"{file.name}: {file.stat().st_size / 1e6:.0f} MB", flush=True)
        if folder / "votes.parquet" in files:
            _apart("verify", str(folder / "votes.parquet"))


def _apart(*words: str) -> None:
    child = get_context("spawn").Process(target=_run, args=(words,))
    child.start()
    child.join()


def _run(words: Sequence[str]) -> None:
    """Run a command, and print how long it took, and in what memory."""
    began, used = time.monotonic(), time.process_time()
    with redirect_stdout(StringIO()):
        arena(words)
    status = Path("/proc/self/status").read_text(encoding="utf-8")  # rusage counts who began it
    peak = int(status.partition("VmHWM:")[2].split()[0]) / 1024
    print(
        f"{' '.join(words[:2])}: {time.monotonic() - began:.0f} s "
        f"({time.process_time() - used:.0f} s of a processor), {peak:.0f} MB resident at most",
        flush=True,
    )


if __name__ == "__main__":
    main()
