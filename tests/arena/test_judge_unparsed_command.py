"""Replies of a judge that hold no verdict: counted, shown, asked again on request, and no ties."""

import itertools
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.command import Command, Ran, csv_rows, endpoint_roster, json_lines, report, unexplained
from tests.faulty_server import Behaviour, FaultyServer, faulty_server, last_message
from tests.sqlite import new_sqlite

N, FEW = 10, 4
"""Pairs in a file, and in one that is judged before twenty replies in a row are alike."""
NONE = "Both answers are fine.\n\x1b[31mI would go with the first‮ one."


@pytest.fixture
def server() -> Iterator[FaultyServer]:
    with faulty_server({"judge": Behaviour(text=NONE)}) as running:
        yield running


@pytest.fixture
def folder(tmp_path: Path, server: FaultyServer) -> Path:
    new_sqlite(tmp_path)
    endpoint_roster(tmp_path, server.url, "judge")
    pairs = [
        {"prompt": f"Number {n}?", "battle_id": f"b{n}", "model_a": "basalt", "model_b": "flint"}
        | {"response_a": f"Yes, {n}.", "response_b": "No."}
        for n in range(N)
    ]
    json_lines(tmp_path / "pairs.jsonl", pairs)
    json_lines(tmp_path / "few.jsonl", pairs[:FEW])
    return tmp_path


def judge(command: Command, *words: str, verb: str = "run", cases: str = "pairs.jsonl") -> Ran:
    """Judge with the method pairwise, unless another one is named later."""
    there = ("--judge", "judge", "--cases", cases, "--roster", "roster.toml")
    method = () if "--method" in words else ("--method", "pairwise")
    return command("judge", verb, *method, *there, *words)


def unparsed(*numbers: int) -> Any:
    """Answer some prompts in no format, and the others with a verdict."""

    def chosen(body: Mapping[str, Any]) -> Behaviour:
        text = last_message(body)
        return Behaviour(text=NONE if any(f"Number {n}?" in text for n in numbers) else "[[A]]")

    return chosen


OUT = ("--out", "found.csv")


def test_a_run_of_which_no_reply_is_parsed_shows_the_first_and_what_is_wanted(
    command: Command, folder: Path
) -> None:
    ran = judge(command, *OUT, cases="few.jsonl")
    assert ran.returncode == 1
    assert ran.stderr == (
        "arena: 100% of the questions with a reply are unparsed, more than --max-unparsed 0.1 "
        "allows. The method pairwise needs [[A]], [[B]] or [[C]], as its last verdict. The first "
        r'unparsed reply is "Both answers are fine.\n\u001b[31mI would go with the first� one.". '
        "--again unparsed asks only these once more, and pays for them.\n"
    )
    assert "! 8 of 8 questions with a reply (100%) are unparsed" in ran.stdout
    statuses = [(row["winner"], row["preference"], row["status"]) for row in csv_rows(folder)]
    assert statuses == [("", "", "unparsed")] * 3 * FEW, "nothing is dropped, and nothing is a tie"


def test_the_json_has_the_share_and_replies(command: Command, folder: Path) -> None:
    ran = judge(command, *OUT, "--format", "json", cases="few.jsonl")
    assert ran.returncode == 1
    outcome = report(ran)
    assert unexplained("Judge runs", outcome) == []
    assert outcome["unparsed"] == {"n": 8, "of": 8, "share": 1.0}
    assert any("8 of 8 questions with a reply (100%)" in text for text in outcome["warnings"])
    assert outcome["wanted"].startswith("pairwise needs [[A]], [[B]] or [[C]]")
    assert len(outcome["examples"]) == 5
    asked = {"battle_id": "b0", "prompt_id": outcome["examples"][1]["prompt_id"], "order": "ab"}
    replied = {"status": "unparsed", "finish_reason": "stop", "reply": NONE}
    assert outcome["examples"][0] == asked | replied


def test_a_long_reply_is_cut_in_its_middle(
    command: Command, folder: Path, server: FaultyServer
) -> None:
    server.behaviours["judge"] = Behaviour(text="Begin " + "so " * 500 + "the end")
    (example, *_) = report(judge(command, *OUT, "--format", "json"))["examples"]
    assert len(example["reply"]) == 100 + 3 + 200
    assert example["reply"].startswith("Begin so so")
    assert example["reply"].endswith("so the end")


@pytest.mark.parametrize(
    ("numbers", "limit", "code"),
    [((3,), "0.1", 0), ((3, 4), "0.1", 1), ((3, 4), "0.2", 0), ((3,), "0", 1), ((), "0", 0)],
)
@pytest.mark.usefixtures("folder")
def test_the_exit_code_is_1_beyond_the_share_that_is_allowed(
    command: Command, server: FaultyServer, numbers: tuple[int, ...], limit: str, code: int
) -> None:
    server.behaviours["judge"] = unparsed(*numbers)
    ran = judge(command, *OUT, "--max-unparsed", limit)
    assert (ran.returncode, bool(ran.stderr)) == (code, bool(code))
    assert ("are unparsed" in ran.stdout) == bool(numbers)
    assert ("The first unparsed reply is " in ran.stdout + ran.stderr) == bool(numbers)
    helper = judge(command, "--max-unparsed", limit, verb="work")
    assert helper.returncode == code


@pytest.mark.parametrize("share", ["-0.1", "1.5", "ten"])
def test_a_share_that_is_none_is_refused(command: Command, folder: Path, share: str) -> None:
    assert judge(command, *OUT, "--max-unparsed", share).returncode == 2


def test_unparsed_questions_alone_are_asked_again_on_request_and_what_then_came_stands(
    command: Command, folder: Path, server: FaultyServer
) -> None:
    server.behaviours["judge"] = unparsed(1, 2, 3)
    assert report(judge(command, *OUT, "--format", "json"))["n_asked"] == 2 * N + 2 * 3
    server.behaviours["judge"] = Behaviour(text="[[C]]")
    still = report(judge(command, *OUT, "--format", "json"))
    assert (still["n_asked"], still["by_status"]) == (0, {"read": 14, "unparsed": 6})
    assert judge(command, "--dry-run", "--again", "unparsed").stdout.startswith("6 calls, ")
    again = report(judge(command, *OUT, "--again", "unparsed", "--format", "json"))
    assert (again["n_asked"], again["by_status"]) == (6, {"read": 2 * N})
    assert again["spent_usd"] == pytest.approx(6 * (7 + 2 * 11) / 1e6)
    later = report(judge(command, *OUT, "--format", "json"))
    assert (later["n_asked"], later["by_status"]) == (0, {"read": 2 * N})
    assert judge(command, "--dry-run").stdout.startswith("0 calls, ")


def test_a_batch_takes_unparsed_questions_alone_on_request(
    command: Command, folder: Path, server: FaultyServer
) -> None:
    server.behaviours["judge"] = unparsed(1, 2, 3)
    judge(command, *OUT)
    assert "Nothing is due" in judge(command, "--batch", "write", "none").stdout
    wrote = judge(command, "--again", "unparsed", "--batch", "write", "jobs")
    assert wrote.stdout.startswith("jobs: 6 requests in 1 file.")


def test_a_truncated_reply_is_counted_shown_and_asked_again_as_one_without_a_verdict(
    command: Command, folder: Path, server: FaultyServer
) -> None:
    server.behaviours["judge"] = Behaviour(text="[[A]] or rather", finish_reason="length")
    words = (*OUT, "--format", "json")
    ran = judge(command, *words, cases="few.jsonl")
    assert (ran.returncode, report(ran)["by_status"]) == (1, {"truncated": 2 * FEW})
    assert report(ran)["examples"][0]["status"] == "truncated"
    server.behaviours["judge"] = Behaviour(text="[[C]]")
    again = report(judge(command, *words, "--again", "unparsed", cases="few.jsonl"))
    assert again["by_status"] == {"read": 2 * FEW}


def test_a_run_that_gives_up_because_no_reply_is_parsed_shows_the_first_as_well(
    command: Command, folder: Path
) -> None:
    ran = judge(command, *OUT)
    unread, stopped = ran.stderr.splitlines()
    assert "The first unparsed reply is " in unread
    assert stopped.startswith("arena: Stopped: the last 20 requests all failed: unparsed")


def test_refusals_and_ties_that_need_no_question_are_no_unparsed_replies(
    command: Command, folder: Path, server: FaultyServer
) -> None:
    def chosen(body: Mapping[str, Any]) -> Behaviour:
        if "Number 1?" in last_message(body):
            return Behaviour(text=NONE)
        if "Number 2?" in last_message(body):
            return Behaviour(text="[[A]]")
        return Behaviour(text="", finish_reason="content_filter")

    server.behaviours["judge"] = chosen
    ran = judge(command, *OUT, "--format", "json")
    assert report(ran)["unparsed"] == {"n": 2, "of": 2 * N, "share": 0.1}
    assert ran.returncode == 0


def test_a_checklist_that_cannot_be_parsed_is_shown_with_what_its_writer_is_to_write(
    command: Command, folder: Path, server: FaultyServer
) -> None:
    server.behaviours["judge"] = Behaviour(text="No list today.")
    ran = judge(command, *OUT, "--method", "checklist")
    assert ran.returncode == 1
    assert (
        "The method checklist_writer needs 5 to 10 lines that begin with '- ' and end with a "
        'question mark. The first unparsed reply is "No list today.".'
    ) in ran.stderr


@pytest.mark.parametrize(
    ("method", "wanted"),
    [
        ("arena_hard", "needs [[A>>B]], [[A>B]], [[A=B]], [[B>A]] or [[B>>A]], as its last"),
        ("mt_bench", "needs a mark from 1 to 10 in double brackets, as in [[10]]"),
        ("alpaca_eval_sampled", "needs m or M, and nothing else"),
    ],
)
def test_each_method_says_what_it_wants(
    command: Command, folder: Path, method: str, wanted: str
) -> None:
    ran = judge(command, *OUT, "--method", method)
    assert ran.returncode == 1
    assert wanted in ran.stdout + ran.stderr
    assert "The first unparsed reply is " in ran.stdout + ran.stderr


def test_no_rate_score_or_study_takes_an_unparsed_reply_for_a_tie(
    command: Command, folder: Path, server: FaultyServer
) -> None:
    """Of ten cases, six are won in both orders, one is a tie, and three are unparsed."""
    ties = itertools.count()

    def chosen(body: Mapping[str, Any]) -> Behaviour:
        text = last_message(body)
        if any(f"Number {n}?" in text for n in (7, 8, 9)):
            return Behaviour(text=NONE)
        if "Number 6?" in text:
            return Behaviour(text=f"[[C]] {next(ties)}")
        return Behaviour(text="[[A]]" if text.find("Yes") < text.find("No.") else "[[B]]")

    server.behaviours["judge"] = chosen
    outcome = report(judge(command, *OUT, "--max-unparsed", "1", "--format", "json"))
    counts = {"n_consistent": 7, "n_first": 0, "n_second": 0, "n_undecided": 3}
    assert outcome["consistency"] == counts | {"rate": 1.0, "first_rate": None}
    assert outcome["first_place"]["n"] == 7
    scored = report(command("judge", "score", "found.csv", "--format", "json"))
    assert [(row["n"], row["n_ties"]) for row in scored["models"]] == [(7, 1), (7, 1)]
    assert any("3" in text and "no verdict" in text for text in scored["warnings"])
    rated = report(command("rate", "found.csv", "--cluster", "prompt", "--format", "json"))
    assert {row["votes"] for row in rated["ratings"]} == {7}
    votes = [
        {"battle_id": f"b{n}", "model_a": "basalt", "model_b": "flint", "winner": "model_a"}
        | {"voter": f"v{n}", "prompt_id": row["prompt_id"]}
        for n, row in enumerate(row for row in csv_rows(folder) if row["order"] == "both")
    ]
    json_lines(folder / "votes.jsonl", votes)
    study = command("study", "judge", "votes.jsonl", "found.csv", "--format", "json")
    assert (study.returncode, study.stderr) == (0, ""), study.stderr
    outcome = report(study)
    assert outcome["n_unread"] == 3
    assert outcome["agreement"]["with_ties"]["n"] == outcome["kappa"]["n"] == 7
    assert outcome["agreement"]["without_ties"]["n"] == 6
