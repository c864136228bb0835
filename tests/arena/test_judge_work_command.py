"""`arena judge work`: helpers of a run, in processes of their own."""

import json
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.command import Command, csv_rows, examples, json_lines, refused
from tests.judging_server import JudgingServer, judging_server
from tests.process import Process, until
from tests.sqlite import new_sqlite

N = 12
WORDS = (
    "--method", "pairwise", "--judge", "judge", "--roster", "roster.toml",
    "--cases", "pairs.jsonl", "--concurrency", "2",
)  # fmt: skip
NOISE = "noise.log"
RUN = ("judge", "run", *WORDS, "--out", "found.csv")
WORK = ("judge", "work", *WORDS, "--format", "json")


def slow(prompt: str) -> str:
    time.sleep(0.03)
    return "Alike. [[C]]"


def prepared(folder: Path, server: JudgingServer) -> None:
    new_sqlite(folder)
    server.roster(folder)
    pairs = [{"prompt": f"{i}?", "response_a": f"{i}.", "response_b": "No."} for i in range(N)]
    json_lines(folder / "pairs.jsonl", pairs)


@contextmanager
def helper(folder: Path) -> Iterator[Process]:
    """Run a helper in a process of its own, and let none outlive its test."""
    with (folder / NOISE).open("w") as noise, Process(WORK, folder, log=noise) as process:
        yield process


def test_a_helper_shares_a_run_and_neither_asks_what_the_other_asked(command: Command) -> None:
    with judging_server(slow) as server:
        prepared(command.folder, server)
        with helper(command.folder) as worker:
            until(lambda: bool(server.asked), by=worker)
            done = command(*RUN, "--format", "json")
            helped = json.loads(worker.stdout.read())
            assert (done.returncode, worker.wait()) == (0, 0)
        assert done.stderr + (command.folder / NOISE).read_text() == ""
        assert len(server.asked) == len(set(server.asked)) == 2 * N
    result = json.loads(done.stdout)
    assert result["by_status"] == helped["by_status"] == {"read": 2 * N}, "each sees the end"
    assert result["n_asked"] + helped["n_asked"] == 2 * N
    assert helped["out"] is None
    assert {row["status"] for row in csv_rows(command.folder)} == {"read"}


def test_what_a_killed_helper_was_asking_returns_to_the_run(command: Command) -> None:
    with judging_server(slow) as server:
        prepared(command.folder, server)
        with helper(command.folder) as worker:
            until(lambda: len(server.asked) >= 6, by=worker)
        done = command(*RUN)
        assert (done.returncode, done.stderr) == (0, "")
        assert len(set(server.asked)) == 2 * N
        assert len(server.asked) <= 2 * N + 2, "asked again: two under way or not yet kept"
    assert {row["status"] for row in csv_rows(command.folder)} == {"read"}


def test_the_first_example_runs_and_writes_nothing(command: Command) -> None:
    new_sqlite(command.folder)
    pair = "prompt,response_a,response_b\nWhy?,So.,Because it is so.\n"
    (command.folder / "pairs.csv").write_text(pair, encoding="utf-8")
    before = set(command.folder.iterdir())
    done = command(*examples("judge work")[0])
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("Nothing left: 2 verdicts parsed. 2 new replies")
    new = {path.name for path in set(command.folder.iterdir()) - before}
    assert {name for name in new if not name.startswith("arena.db")} == set()


def test_there_is_nothing_to_help_with_where_nobody_is_asked(command: Command) -> None:
    done = command("judge", "work", "--method", "ifeval", "--cases", "x.jsonl")
    refused(done, "--method ifeval asks no model")
