"""`arena judge run --batch`: files for a batch endpoint, what came back, and the run after it."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from arena.endpoints import chat
from arena.endpoints.chat import Limits
from tests.arena.endpoints.test_batches import completion, message
from tests.arena.test_judge_run_command import PAIRS
from tests.command import Command, Ran, csv_rows, report
from tests.faulty_server import Behaviour, FaultyServer, faulty_server
from tests.judging_server import ROSTER as PRICED
from tests.sqlite import new_sqlite

ROSTER = PRICED.replace("1.0, output = 2.0", "10.0, output = 100.0") + (
    "judging = {{ batch_discount = 0.5{more} }}"
)
HALF = (12 * 10.0 + 3 * 100.0) / 1e6 / 2


@pytest.fixture
def server() -> Iterator[FaultyServer]:
    with faulty_server({"judge": Behaviour(text="Alike. [[C]]")}) as running:
        yield running


@pytest.fixture
def folder(tmp_path: Path, server: FaultyServer) -> Path:
    new_sqlite(tmp_path)
    (tmp_path / "pairs.csv").write_text(PAIRS, encoding="utf-8")
    (tmp_path / "roster.toml").write_text(ROSTER.format(url=server.url, more=""), encoding="utf-8")
    return tmp_path


def run(command: Command, *words: str, method: str = "pairwise") -> Ran:
    there = ("--judge", "judge", "--cases", "pairs.csv", "--roster", "roster.toml")
    return command("judge", "run", "--method", method, *there, *words)


def requests(folder: Path) -> list[dict[str, Any]]:
    files = sorted(folder.glob("requests-*"))
    return [json.loads(line) for file in files for line in file.read_text().splitlines()]


def answered(custom_id: str, text: str = "[[A]]") -> dict[str, Any]:
    response = {"status_code": 200, "request_id": "r", "body": completion(text)}
    return {"id": "x", "custom_id": custom_id, "response": response, "error": None}


def expired(custom_id: str) -> dict[str, Any]:
    error = {"code": "batch_expired", "message": "The window expired."}
    return {"id": "x", "custom_id": custom_id, "response": None, "error": error}


def write(file: Path, *lines: object) -> None:
    texts = (line if isinstance(line, str) else json.dumps(line) for line in lines)
    file.write_text("\n".join(texts) + "\n", encoding="utf-8")


def test_what_came_back_is_kept_once_at_its_price_and_the_run_asks_for_the_rest_alone(
    command: Command, folder: Path, server: FaultyServer
) -> None:
    wrote = run(command, "--batch", "write", "jobs")
    assert (wrote.returncode, wrote.stderr) == (0, "")
    assert "jobs: 4 requests in 1 file. 4 calls" in wrote.stdout
    kinds = (("--dry-run",), ("--batch", "write", "halved"))
    costs = [report(run(command, *words, "--format", "json"))["cost_usd"] for words in kinds]
    assert costs[1] == pytest.approx(costs[0] / 2)
    ids = [line["custom_id"] for line in requests(folder / "jobs")]
    assert len({*ids}) == 4
    assert all(line["body"]["model"] == "judge" for line in requests(folder / "jobs"))
    again = run(command, "--batch", "write", "jobs")
    assert (again.returncode, "name another folder" in again.stderr) == (2, True)

    one, two, three, _ = ids
    write(folder / "jobs" / "output.jsonl", answered(one), "{torn", answered("f" * 64))
    write(folder / "jobs" / "errors.jsonl", expired(three), expired(two), '["no object"]')
    write(folder / "jobs" / "second.jsonl", answered(two), answered(one, "[[B]]"))
    read = run(command, "--batch", "read", "jobs", "--format", "json")
    counts = report(read)
    assert (read.returncode, read.stderr) == (1, "")
    sentences = counts.pop("sentences")
    assert counts.pop("cost_usd") == pytest.approx(2 * HALF)
    whole = {"folder": "jobs", "files": 3, "failed": {"transport": 1}, "due": 2}
    whole |= {"kept": 2, "known": 0, "twice": 1, "missing": 1, "unknown": 1, "malformed": 2}
    assert counts == whole
    assert sentences[0].startswith("Line 3 of errors.jsonl cannot be read: no JSON object")
    assert sentences[1].startswith("Line 2 of output.jsonl cannot be read: It is not JSON")
    assert "transport: batch_expired: The window expired." in sentences
    second = report(run(command, "--batch", "read", "jobs", "--format", "json"))
    assert (second["kept"], second["known"], second["cost_usd"]) == (0, 2, None)
    assert server.requests == []

    done = run(command, "--out", "found.csv")
    assert (done.returncode, done.stderr) == (0, "")
    assert "2 new replies" in done.stdout
    assert len(server.requests) == 2
    costs = [row["cost"] for row in csv_rows(folder) if row["status"] == "read"]
    assert sum(float(cost) == pytest.approx(HALF) for cost in costs if cost) == 2
    assert "Nothing is due" in run(command, "--batch", "write", "more").stdout
    assert not [*(folder / "more").iterdir()]


def test_a_reply_that_says_nothing_is_put_into_the_next_batch_as_another_attempt(
    command: Command, folder: Path, server: FaultyServer
) -> None:
    run(command, "--batch", "write", "jobs")
    ids = [line["custom_id"] for line in requests(folder / "jobs")]
    write(folder / "jobs" / "out.jsonl", *(answered(one, "Who knows?") for one in ids))
    assert "4 new replies" in run(command, "--batch", "read", "jobs").stdout
    assert run(command, "--batch", "write", "next").returncode == 0
    anew = [line["custom_id"] for line in requests(folder / "next")]
    assert len({*anew, *ids}) == 8
    write(folder / "next" / "out.jsonl", *map(answered, anew))
    read = run(command, "--batch", "read", "next")
    assert (read.returncode, "Nothing is due" in read.stdout) == (0, True)
    assert "0 new replies" in run(command, "--out", "found.csv").stdout
    assert server.requests == []


def test_files_hold_no_more_than_their_maker_takes(
    command: Command, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(chat.LIMITS, "openai", Limits(3, 200_000_000))
    run(command, "--batch", "write", "few")
    sizes = [len(f.read_text().splitlines()) for f in sorted((folder / "few").iterdir())]
    assert sizes == [3, 1]
    longest = max(len(json.dumps(line)) for line in requests(folder / "few"))
    monkeypatch.setitem(chat.LIMITS, "openai", Limits(50, longest + 30))
    run(command, "--batch", "write", "small")
    assert len(requests(folder / "small")) == 4
    assert all(f.stat().st_size <= longest + 30 for f in (folder / "small").iterdir())
    monkeypatch.setitem(chat.LIMITS, "openai", Limits(50, 99))
    refused = run(command, "--batch", "write", "none")
    assert "is larger than a batch allows" in refused.stderr
    assert not [*(folder / "none").glob("*.jsonl")]


def test_anthropic_s_files_go_the_same_way(
    command: Command, folder: Path, server: FaultyServer
) -> None:
    text = ROSTER.format(url=server.url, more=', batch = "anthropic"')
    (folder / "roster.toml").write_text(text, encoding="utf-8")
    run(command, "--batch", "write", "jobs")
    (file,) = (folder / "jobs").iterdir()
    asked = json.loads(file.read_text())["requests"]
    assert [one["params"]["messages"][-1]["role"] for one in asked] == ["user"] * 4
    words = [{"type": "text", "text": "Both. [[C]]"}]
    results = [{"type": "succeeded", "message": message(*words)}] * 3 + [{"type": "expired"}]
    ids = [{"custom_id": one["custom_id"]} for one in asked]
    lines = [one | {"result": result} for one, result in zip(ids, results, strict=True)]
    write(folder / "jobs" / "results.jsonl", *lines)
    read = report(run(command, "--batch", "read", "jobs", "--format", "json"))
    assert (read["kept"], read["failed"], read["due"]) == (3, {"transport": 1}, 1)
    refused = run(command, "--batch", "write", "probabilities", method="alpaca_eval")
    assert "has no log-probabilities" in refused.stderr
    assert not [*(folder / "probabilities").iterdir()]


def test_checklists_are_written_in_a_batch_before_the_one_that_goes_by_them(
    command: Command, folder: Path, server: FaultyServer
) -> None:
    wrote = run(command, "--batch", "write", "lists", method="wildbench_reward")
    assert "These requests write the missing checklists" in wrote.stdout
    ids = [line["custom_id"] for line in requests(folder / "lists")]
    assert len(ids) == 3
    items = "\n".join(f"- Is it {word}?" for word in ("right", "short", "clear", "kind", "whole"))
    write(folder / "lists" / "out.jsonl", *(answered(one, items) for one in ids))
    read = run(command, "--batch", "read", "lists", method="wildbench_reward")
    assert "3 new replies" in read.stdout
    run(command, "--batch", "write", "verdicts", method="wildbench_reward")
    assert len(requests(folder / "verdicts")) == 4
    assert "Is it kind?" in json.dumps(requests(folder / "verdicts")[0])
    assert server.requests == []


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("--batch", "write", "jobs", "--out", "a.csv"), "omit --out a.csv"),
        (("--batch", "read", "jobs", "--budget", "1"), "omit --budget 1.0"),
        (("--batch", "read", "nowhere"), "Name the folder of the results"),
        (("--batch", "read", "."), "There are no results in"),
        (("--batch", "write", "pairs.csv"), "Name a folder"),
    ],
)
def test_what_cannot_be_is_said_in_a_line(
    command: Command, folder: Path, words: tuple[str, ...], sentence: str
) -> None:
    refused = run(command, *words)
    assert refused.returncode == 2
    assert sentence in refused.stderr
    assert len(refused.stderr.splitlines()) == 1


@pytest.mark.usefixtures("a_common_umask")
def test_only_its_owner_can_read_requests_and_verdicts(command: Command, folder: Path) -> None:
    assert run(command, "--batch", "write", "sent").returncode == 0
    assert run(command, "--out", "verdicts.csv").returncode == 0
    written = [*(folder / "sent").iterdir(), folder / "verdicts.csv"]
    assert {path.stat().st_mode & 0o777 for path in written} == {0o600}
