"""`arena judge probe` against judges behind a real HTTP server."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

from judge.probe.injections import honest_cases, injections, probes
from tests.command import Command, examples, refused
from tests.judging_server import fenced, judging_server
from tests.sqlite import new_sqlite

PROBE = ("judge", "probe", "--judge", "judge", "--roster", "roster.toml", "--concurrency", "8")
HONEST = {case.response_a for case in honest_cases()}
N = len(HONEST) * len(injections())
OBEYED = re.compile(
    r"judge|verdict|prefer|evaluat|\[ \[|\"choice\"|labels|guidelines|standard", re.IGNORECASE
)


def preferring(good: Any) -> Any:
    def script(prompt: str) -> str:
        first, second = (good(answer) for answer in fenced(prompt))
        return "[[C]]" if first == second else "[[A]]" if first else "[[B]]"

    return script


def probed(command: Command, good: Any, *words: str) -> dict[str, Any]:
    new_sqlite(command.folder)
    with judging_server(preferring(good)) as server:
        server.roster(command.folder)
        done = command(*PROBE, *words, "--format", "json")
        assert (done.returncode, done.stderr) == (0, "")
        result: dict[str, Any] = json.loads(done.stdout)
        assert len(server.asked) == result["n_asked"]
        again = json.loads(command(*PROBE, *words, "--format", "json").stdout)
        assert (again["n_asked"], again["n_recalled"]) == (0, result["n_asked"])
        assert [row["success_rate"] for row in again["kinds"]] == [
            row["success_rate"] for row in result["kinds"]
        ]
    return result


@pytest.mark.slow
def test_nothing_succeeds_with_a_robust_judge(command: Command) -> None:
    result = probed(command, lambda answer: answer in HONEST)
    assert (result["n"], result["n_won"], result["n_not_lost"]) == (N, 0, 0)
    assert [row["kind"] for row in result["kinds"]] == list(injections())
    assert {row["success_rate"] for row in result["kinds"]} == {0.0}
    assert result["success_rate"] == result["attack"]["lower"] == 0.0
    assert result["upper"] > 0.2, "eight prompts do not show that none ever succeeds"
    assert (result["n_asked"], result["control"]["n"]) == (4 * N, N)


def test_everything_succeeds_with_a_gullible_judge(command: Command) -> None:
    result = probed(command, lambda answer: OBEYED.search(answer) is not None)
    assert {(row["n"], row["success_rate"]) for row in result["kinds"]} == {(8, 1.0)}
    assert (result["n_won"], result["success_rate"], result["upper"]) == (N, 1.0, 1.0)
    assert all(row["lower"] > 0 for row in result["kinds"])


@pytest.mark.slow
def test_nothing_succeeds_with_a_judge_who_reads_nothing_but_length(command: Command) -> None:
    def script(prompt: str) -> str:
        first, second = map(len, fenced(prompt))
        return "[[C]]" if first == second else "[[A]]" if first > second else "[[B]]"

    new_sqlite(command.folder)
    with judging_server(script) as server:
        server.roster(command.folder)
        result = json.loads(command(*PROBE, "--format", "json").stdout)
        table = " ".join(command(*PROBE, COLUMNS="120").stdout.split())
    assert result["attack"]["rate"] == result["control"]["rate"] > 0.8
    for row in (result, *result["kinds"]):
        assert row["success_rate"] == 0
        assert row["lower"] < 0 < row["upper"]
    assert re.search(r"│ all │ 136 │ 9\d% │ 9\d% │ 0% \(-\d+% to \d+%\) │", table)


def test_a_dry_run_counts_the_fillers_too(command: Command) -> None:
    new_sqlite(command.folder)
    words = ("judge", "probe", "--judge", "pocket-judge", "--dry-run")
    done = command(*words).stdout
    assert done.startswith(f"{4 * N} calls, ")
    assert f"{N} injected answers, and for each a filler of the same length" in done
    assert json.loads(command(*words, "--format", "json").stdout)["n_calls"] == 4 * N


def test_replies_from_before_the_fillers_are_not_asked_for_again(command: Command) -> None:
    good = preferring(lambda answer: answer in HONEST)
    pairs = [
        {
            "prompt": probe.case.prompt[-1].content,
            "response_a": probe.case.response_a,
            "response_b": probe.case.response_b,
        }
        for probe in probes(honest_cases())
    ]
    (command.folder / "pairs.json").write_text(json.dumps(pairs), encoding="utf-8")
    new_sqlite(command.folder)
    run = ("judge", "run", *PROBE[2:], "--method", "pairwise", "--cases", "pairs.json")
    with judging_server(good) as server:
        server.roster(command.folder)
        assert command(*run, "--out", "found.csv").returncode == 0
        result = json.loads(command(*PROBE, "--format", "json").stdout)
    assert (result["n_recalled"], result["n_asked"]) == (2 * N, 2 * N)


def test_honest_answers_may_come_from_a_file(command: Command) -> None:
    pair = {"prompt": "Why?", "response_a": "So it is.", "response_b": "[[A]]"}
    (command.folder / "own.jsonl").write_text(json.dumps(pair), encoding="utf-8")
    result = probed(command, lambda answer: answer == "So it is.", "--cases", "own.jsonl")
    assert result["n"] == len(injections())
    assert result["n_won"] == 0


def test_honest_answers_of_a_file_are_chosen_and_renamed(command: Command) -> None:
    rows = "question,response_a,response_b,lang\nWhy?,So it is.,No.,en\nWarum?,Darum.,Nein.,de\n"
    (command.folder / "own.csv").write_text(rows, encoding="utf-8")
    new_sqlite(command.folder)
    words = ("--cases", "own.csv", "--column", "prompt=question", "--where", "lang = 'en'")
    with judging_server(preferring(lambda answer: answer == "So it is.")) as server:
        server.roster(command.folder)
        done = command(*PROBE, *words, "--format", "json")
    result = json.loads(done.stdout)
    assert (result["n"], result["n_won"]) == (len(injections()), 0)
    assert done.stderr == "arena: own.csv is read as cases; rows left out: 1 by where\n"


def test_a_judge_without_a_verdict_has_no_rate(command: Command) -> None:
    new_sqlite(command.folder)
    with judging_server(lambda prompt: "Hm.") as server:
        server.roster(command.folder)
        done = command(*PROBE)
    assert done.returncode == 1
    assert "Stopped: the last 20 requests all failed: unparsed" in done.stderr
    assert f"{N:,} and {N:,} have no verdict" in " ".join(done.stdout.split())


@pytest.mark.slow
def test_the_examples_run(command: Command) -> None:
    new_sqlite(command.folder)
    table, as_json = examples(command, "judge probe")
    done = command(*table, COLUMNS="120")
    assert (done.returncode, done.stderr) == (0, "")
    assert "null answer" in done.stdout
    result = json.loads(command(*as_json).stdout)
    assert result["method"] == "arena_hard"
    assert result["headline"] == "No intervention is shown to move it."
    assert command(*table, "--dry-run").stdout.startswith("0 calls, ")


def test_interventions_speak_for_the_answer_that_labels_say_is_worse(command: Command) -> None:
    """Whichever stands first in the file, and harmful answers among them."""
    rows = [
        {"prompt": f"Question {i}?", **sides, "label": label}
        for i in range(12)
        for sides, label in [
            ({"response_a": f"Harm {i}.", "response_b": f"Help {i}."}, "B>A")
            if i % 2
            else ({"response_a": f"Help {i}.", "response_b": f"Harm {i}."}, "A>B")
        ]
    ]
    (command.folder / "pairs.json").write_text(json.dumps(rows), encoding="utf-8")
    new_sqlite(command.folder)
    words = (*PROBE, "--cases", "pairs.json", "--intervention", "authority")
    with judging_server(preferring(lambda answer: "Annals of" in answer)) as server:
        server.roster(command.folder)
        result = json.loads(command(*words, "--format", "json").stdout)
        table = " ".join(command(*words, COLUMNS="120").stdout.split())
    (row,) = result["interventions"]
    assert (result["better_by"], result["prompts"], result["tried"]) == ("labels", 12, 24)
    assert (row["finding"], row["success_rate"], row["control"]["rate"]) == ("moved", 1.0, 0.0)
    assert result["headline"] == "It is moved by authority."
    assert "judge: It is moved by authority. With each of these the poorer answer wins" in table
    assert "24 answers with an intervention, and for each its control, in both orders." in table


def test_marks_take_answers_one_at_a_time(command: Command) -> None:
    new_sqlite(command.folder)
    words = ("--judge", "pocket-judge", "--method", "wildbench_score")
    done = command("judge", "probe", *words, "--intervention", "authority", COLUMNS="120")
    text = " ".join(done.stdout.split())
    assert done.returncode == 0
    assert "Mark" in text
    assert "one at a time" in text
    assert "one at a time" in command("judge", "probe", *words, "--dry-run").stdout


RUBRIC = ("--method", "rubric", "--rubric", "rubric.txt", "--scale", "1-5", "--format", "json")


def test_marks_by_a_rubric_tell_a_judge_that_a_citation_moves_from_one_that_reads_length(
    command: Command, tmp_path: Path
) -> None:
    def believing(prompt: str) -> str:
        (answer,) = fenced(prompt)
        return "[[5]]" if "(Source:" in answer else "[[2]]"

    def measuring(prompt: str) -> str:
        (answer,) = fenced(prompt)
        return f"[[{min(5, 1 + len(answer) // 60)}]]"

    (tmp_path / "rubric.txt").write_text("5 is right, 1 is wrong.", encoding="utf-8")
    rows = {}
    for name, script in (("believing", believing), ("measuring", measuring)):
        new_sqlite(tmp_path)
        with judging_server(script) as server:
            server.roster(tmp_path)
            done = command(*PROBE, *RUBRIC, "--intervention", "authority", "--seed", name)
            assert (done.returncode, done.stderr) == (0, "")
            result = json.loads(done.stdout)
            assert all("5 is right, 1 is wrong." in one for one in server.asked)
            (rows[name],) = result["interventions"]
        (tmp_path / "arena.db").unlink()
    marks = {arm: rows["believing"][arm]["rate"] for arm in ("attack", "control")}
    assert marks == {"attack": 1.0, "control": 0.25}, "(5 - 1) / 4 and (2 - 1) / 4"
    assert rows["believing"]["success_rate"] == 0.75
    assert rows["believing"]["finding"] == "moved"
    assert rows["measuring"]["success_rate"] == 0
    assert rows["measuring"]["finding"] != "moved"


def test_what_cannot_be_probed_is_one_clear_line(command: Command, tmp_path: Path) -> None:
    new_sqlite(tmp_path)
    words = ("judge", "probe", "--judge", "pocket-judge")
    refused(
        command(*words, "--method", "rubric"),
        "the method 'rubric' needs something else: choose one of pairwise",
    )
    refused(command("judge", "probe", "--judge", "nobody"), "no model 'nobody'")
    refused(command("judge", "probe"), "--judge: name one of", "pocket-judge")
    refused(command(*words, "--where", "lang = 'en'"), "name them with --cases")
    refused(command(*words, "--intervention", "charm"), "'charm'", "authority", "all")
    marks = ("--method", "checklist", "--intervention", "position")
    refused(command(*words, *marks), "'position' compares two answers")
    (tmp_path / "own.csv").write_text("prompt,response_a,response_b,label\nq,a,b,left\n", "utf-8")
    refused(command(*words, "--cases", "own.csv"), "label 'left'", "A>B")
