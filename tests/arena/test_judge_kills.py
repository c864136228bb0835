"""kill -9 in the middle of a judge's run, again and again: what is paid twice was under way."""

import json
import random
import threading
import time
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path

import httpx2
import pytest

from tests.arena.benches import in_journal
from tests.command import Command, csv_rows
from tests.judging_server import JudgingServer, judging_server
from tests.process import Process, until
from tests.sqlite import new_sqlite

KILLS, AT_ONCE, N = 10, 8, 150
RUN = (
    "judge", "run", "--method", "pairwise", "--judge", "judge", "--roster", "roster.toml",
    "--cases", "pairs.jsonl", "--concurrency", str(AT_ONCE), "--out", "found.csv",
)  # fmt: skip


def slow(prompt: str) -> str:
    time.sleep(0.05)
    return "Alike. [[C]]"


def killed(folder: Path, server: JudgingServer, n: int) -> set[str]:
    """Kill a run after some more requests; give the questions whose replies are kept."""
    before = len(server.asked)
    with Process(RUN, folder) as process:
        until(lambda: len(server.asked) >= before + n, by=process)
        process.kill()
        process.wait()
    httpx2.get(server.url)  # it is accepted last: after what was sent before the kill
    until(lambda: not any("process_request" in one.name for one in threading.enumerate()))
    return in_journal(folder)


@pytest.mark.slow
def test_a_kill_pays_again_for_no_more_than_was_under_way(
    command: Command, record_property: Callable[[str, object], None]
) -> None:
    rng, replies = random.Random(8), list[set[str]]()
    pairs = [{"prompt": f"{i}?", "response_a": f"{i}.", "response_b": "No."} for i in range(N)]
    new_sqlite(command.folder)
    (command.folder / "pairs.jsonl").write_text("\n".join(map(json.dumps, pairs)))
    with judging_server(slow, command.folder) as server:
        ends = [0]
        for _ in range(KILLS):
            replies.append(killed(command.folder, server, rng.randrange(5, 25)))
            ends.append(len(server.asked))
        done = command(*RUN)
        assert (done.returncode, done.stderr) == (0, "")
        asked = [*server.asked]
    lost = [
        len({*asked[begin:end]} - stored)
        for (begin, end), stored in zip(pairwise(ends), replies, strict=True)
    ]
    again = len(asked) - 2 * N
    tally = {"kills": KILLS, "under way": KILLS * AT_ONCE, "paid twice": again, "most": max(lost)}
    record_property("kill -9 in the middle of a judge's run", tally)
    assert len({*asked}) == 2 * N
    assert max(lost) <= AT_ONCE
    assert 0 < again == sum(lost)
    assert {row["status"] for row in csv_rows(command.folder)} == {"read"}
