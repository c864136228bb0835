"""What `--dry-run` says of recorded outputs, beside what the run then books."""

import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.command import Command
from tests.faulty_server import Behaviour, FaultyServer, faulty_server
from tests.judging_server import ROSTER
from tests.sqlite import new_sqlite

PIECES = re.compile(r" ?[A-Za-z]+| ?\d{1,3}|[^\S\n]*\n+|[^\S\n]+| ?[^\sA-Za-z\d]")
"""What tokenisers cut a text into before they look for its longest known pieces."""

LONGEST = 9
"""Letters that are one token: so the count is 9 to 10 % above that of o200k_base."""

BEGINNINGS = (
    "Both answers do what was asked, and neither is wrong.",
    "The one names its sources and the other does not, which matters for this question.",
    "They are alike up to a detail.",
)


def tokens(text: str) -> int:
    """Count as a tokeniser would; nothing of this is the rule of characters."""
    return sum(map(_tokens_of_piece, PIECES.findall(text)))


def _tokens_of_piece(piece: str) -> int:
    word = piece.strip()
    if not word.isascii():
        return max(1, len(word.encode()) // 2)
    return -(-len(word) // LONGEST) if word.isalpha() else 1


def counted(body: Mapping[str, Any]) -> Behaviour:
    """Answer a request and count its tokens.

    Replies differ little in length: whichever were there when a budget ended a run, their
    mean is within a few percent of the others'.
    """
    sent = sum(tokens(message["content"]) + 4 for message in body["messages"]) + 3
    if body["max_tokens"] == 1:
        return Behaviour(
            text="m", logprobs=(("m", -0.1, {"m": -0.1, "M": -2.4}),), usage=(sent, 1)
        )
    text = " ".join(BEGINNINGS[: 2 + sent % 2] * (4 + sent % 2)) + " [[C]]"
    return Behaviour(text=text, usage=(sent, tokens(text)))


@pytest.fixture
def judge(tmp_path: Path) -> Iterator[FaultyServer]:
    new_sqlite(tmp_path)
    with faulty_server({"judge": counted}) as running:
        priced = ROSTER.replace("1.0, output = 2.0", "2.5, output = 10.0").format(url=running.url)
        (tmp_path / "roster.toml").write_text(priced, encoding="utf-8")
        yield running


def words(published_data: Path, method: str, model: str, every: int, folder: Path) -> list[str]:
    """Write some of the recorded outputs, and name them as cases."""
    result = ["judge", "run", "--method", method, "--judge", "judge", "--roster", "roster.toml"]
    for name in ("gpt4_1106_preview", model):
        outputs = json.loads((published_data / "outputs" / f"{name}.json").read_text("utf-8"))
        (folder / f"{name}.json").write_text(json.dumps(outputs[::every]), encoding="utf-8")
        result += ["--cases", f"{name}.json"]
    return [*result, "--concurrency", "32"]


def estimated(command: Command, run: list[str]) -> dict[str, float]:
    done = command(*run, "--dry-run", "--format", "json")
    assert done.returncode == 0, done.stderr
    return dict(json.loads(done.stdout))


def booked(judge: FaultyServer, since: int) -> dict[str, float]:
    """Tokens and dollars of the requests from one on, by the server's own count."""
    answers = [counted(seen.body).usage or (0, 0) for seen in judge.requests[since:]]
    total_in, total_out = (sum(column) for column in zip(*answers, strict=True))
    cost = (2.5 * total_in + 10.0 * total_out) / 1e6
    return {"tokens_in": total_in, "tokens_out": total_out, "cost_usd": cost}


def within_a_tenth(text: Mapping[str, float], truth: Mapping[str, float]) -> None:
    off = {name: text[name] / true - 1 for name, true in truth.items()}
    assert max(map(abs, off.values())) < 0.1, off


@pytest.mark.sampled(2)
@pytest.mark.published
@pytest.mark.parametrize("model", ["OpenHermes-2.5-Mistral-7B", "falcon-7b-instruct"])
def test_an_estimate_by_the_rule_of_characters_is_within_a_tenth_of_what_is_booked(
    command: Command, tmp_path: Path, published_data: Path, judge: FaultyServer, model: str
) -> None:
    run = words(published_data, "alpaca_eval", model, 5, tmp_path)
    text = estimated(command, run)
    assert text["calibrated_on"] == 0
    done = command(*run, "--out", "found.csv", "--format", "json")
    assert done.returncode == 0, done.stderr
    truth = booked(judge, 0)
    assert json.loads(done.stdout)["spent_usd"] == pytest.approx(truth["cost_usd"])
    assert text["n_calls"] == len(judge.requests)
    within_a_tenth(text, truth)


@pytest.mark.published
def test_an_estimate_that_kept_replies_calibrate_is_within_a_tenth_of_what_is_booked_then(
    command: Command, tmp_path: Path, published_data: Path, judge: FaultyServer
) -> None:
    """How long the judge's comparisons are, only its own replies can tell."""
    run = words(published_data, "pairwise", "oasst-sft-pythia-12b", 5, tmp_path)
    run += ["--seed", "one that makes the fences, and so the replies, the same each time"]
    stopped = command(*run, "--out", "found.csv", "--budget", "0.2")
    assert stopped.returncode == 1
    n_before = len(judge.requests)
    text = estimated(command, run)
    assert text["calibrated_on"] == n_before
    assert command(*run, "--out", "found.csv").returncode == 0
    assert text["n_calls"] == len(judge.requests) - n_before > n_before
    within_a_tenth(text, booked(judge, n_before))
