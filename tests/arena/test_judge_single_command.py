"""`arena judge run` on single responses and with checklists, as it is typed."""

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from arena.store.store import Store
from judge.methods import published
from tests.arena.store.battles import MODELS, NOW, ready
from tests.command import Command, csv_rows, refused
from tests.judging_server import EACH_USD, fenced, judging_server
from tests.sqlite import new_sqlite

RUN = ("judge", "run", "--judge", "judge", "--roster", "roster.toml")
GIVEN = ["Is it short?", "Is it right?"]
RESPONSES = [
    {"session_id": "s1", "instruction": "1?", "output": "First.", "generator": "basalt"},
    {"session_id": "s2", "instruction": "2?", "output": "Second, long.", "generator": "basalt"},
    {"session_id": "s1", "instruction": "1?", "output": "Other one.", "generator": "flint"},
]
WRITTEN = [f"Does it hold point {number}?" for number in range(5)]


def write(path: Path, rows: list[dict[str, Any]]) -> str:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path.name


def judge(prompt: str) -> str:
    """Write a checklist where it is asked for one; else mark by the length of the answer."""
    if "One question a line" in prompt:
        return "\n".join(f"- {item}" for item in WRITTEN)
    (answer,) = fenced(prompt)
    if '"score"' in prompt:
        return json.dumps({"strengths": "Some.", "score": len(answer)})
    if "[begin list" in prompt:
        return f"fine - 1: [[yes]]\nno - 2: [[{'no' if len(answer) > 6 else 'yes'}]]"
    return f"By the rubric. [[{len(answer) // 3}]]"


ANY = ("--max-unparsed", "1")


def kinds(asked: list[str]) -> Counter[str]:
    return Counter("written" if "One question a line" in each else "marked" for each in asked)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    new_sqlite(tmp_path)
    write(tmp_path / "responses.jsonl", RESPONSES)
    return tmp_path


def test_wildbench_scores_are_written_once_and_scored_again_from_the_file(
    command: Command, folder: Path
) -> None:
    """One checklist a prompt, one mark a response; `arena judge score` reads what was written."""
    script = lambda prompt: judge(prompt) if "Second" not in prompt else "No mark."  # noqa: E731
    words = (*RUN, "--method", "wildbench_score", "--cases", "responses.jsonl", *ANY)
    with judging_server(script) as server:
        server.roster(folder)
        assert command(*words, "--dry-run").stdout.startswith("5 calls, ")
        done = command(*words, "--out", "marks.csv")
        assert (done.returncode, done.stderr) == (0, "")
        assert kinds(server.asked) == {"written": 2, "marked": 4}, "the unread one is asked again"
        assert all(item in server.asked[-1] for item in WRITTEN)
        assert "0 new replies" in command(*words, "--out", "marks.csv").stdout
        assert command(*words, "--dry-run").stdout.startswith("0 calls, ")
    assert "basalt: mean 6 of 1, 1 without a score.\nflint: mean 10 of 1." in done.stdout
    result = csv_rows(folder, "marks.csv")
    assert [(r["session_id"], r["model"], r["score"], r["status"]) for r in result] == [
        ("s1", "basalt", "6.0", "read"),
        ("s2", "basalt", "", "unparsed"),
        ("s1", "flint", "10.0", "read"),
    ]
    assert {r["template"] for r in result} == {published("wildbench_score").template.hash}
    assert json.loads(result[0]["detail"]) == {"checklist": WRITTEN}
    assert float(result[0]["cost"]) == pytest.approx(EACH_USD)
    scored = command("judge", "score", "marks.csv", "--method", "wildbench", "--format", "json")
    names = ("model", "n", "score", "adjusted")
    assert [tuple(row[name] for name in names) for row in json.loads(scored.stdout)["models"]] == [
        ("basalt", 1, 6.0, 2.0),
        ("flint", 1, 10.0, 10.0),
    ]
    assert "1 of 2 rows have no score" in scored.stdout


def test_items_of_the_tasks_are_found_by_their_session(command: Command, folder: Path) -> None:
    tags = ["Coding & Debugging", "Math", "Planning", "Editing", "Advice seeking"]
    items = [{"session_id": session, "tags": ";".join(tags)} for session in ("s1", "s2")]
    write(folder / "tags.jsonl", items)
    with judging_server(judge) as server:
        server.roster(folder)
        write(folder / "short.jsonl", RESPONSES[:1])
        words = (*RUN, "--method", "wildbench_score", "--cases", "short.jsonl")
        assert command(*words, "--out", "marks.parquet").returncode == 0
    score = ("judge", "score", "marks.parquet", "--method", "wildbench", "--items", "tags.jsonl")
    (row,) = json.loads(command(*score, "--format", "json").stdout)["models"]
    assert row["task_macro"] == pytest.approx(2.0)


def test_a_checklist_that_is_given_is_not_written_and_each_item_has_a_verdict(
    command: Command, folder: Path
) -> None:
    write(folder / "given.jsonl", [row | {"checklist": GIVEN} for row in RESPONSES])
    with judging_server(judge) as server:
        server.roster(folder)
        words = (*RUN, "--method", "checklist", "--cases", "given.jsonl")
        done = command(*words, "--out", "checked.csv", "--format", "json")
        assert kinds(server.asked) == {"marked": 3}
    result = csv_rows(folder, "checked.csv")
    assert [row["score"] for row in result] == ["1.0", "0.5", "0.5"]
    assert json.loads(result[1]["detail"])["items"] == [
        {"item": "Is it short?", "met": True},
        {"item": "Is it right?", "met": False},
    ]
    assert json.loads(done.stdout)["models"] == [
        {"model": "basalt", "n": 2, "unread": 0, "score": 0.75},
        {"model": "flint", "n": 1, "unread": 0, "score": 0.5},
    ]


def test_an_item_without_a_verdict_leaves_the_response_without_a_score(
    command: Command, folder: Path
) -> None:
    write(folder / "given.jsonl", [row | {"checklist": GIVEN} for row in RESPONSES[:1]])
    with judging_server(lambda prompt: "1: [[yes]]") as server:
        server.roster(folder)
        words = (*RUN, "--method", "checklist", "--cases", "given.jsonl", "--out", "checked.csv")
        assert "basalt: no score of 0, 1 without a score." in command(*words).stdout
    (row,) = csv_rows(folder, "checked.csv")
    assert (row["score"], row["status"]) == ("", "partly_read")
    assert [item["met"] for item in json.loads(row["detail"])["items"]] == [True, None]


def test_a_prompt_without_a_readable_checklist_is_not_judged(
    command: Command, folder: Path
) -> None:
    def script(prompt: str) -> str:
        return "I have none." if "2?" in prompt else judge(prompt)

    with judging_server(script) as server:
        server.roster(folder)
        words = (*RUN, "--method", "wildbench_score", "--cases", "responses.jsonl", *ANY)
        done = command(*words, "--out", "marks.csv")
        assert done.returncode == 0
    assert "! 1 case has no checklist" in done.stdout
    result = csv_rows(folder, "marks.csv")
    assert [(row["status"], row["detail"]) for row in result][1] == ("unparsed", "")


def test_a_budget_that_ends_with_the_checklists_leaves_the_marks_pending(
    command: Command, folder: Path
) -> None:
    with judging_server(judge) as server:
        server.roster(folder)
        words = (*RUN, "--method", "wildbench_score", "--cases", "responses.jsonl", *ANY)
        done = command(*words, "--out", "marks.csv", "--budget", "0.0009")
        assert done.returncode == 1
        assert {row["status"] for row in csv_rows(folder, "marks.csv")} == {"pending"}
        n = len(server.asked)
        assert command(*words, "--out", "marks.csv").returncode == 0
        assert len(server.asked) == len(set(server.asked)), "nothing was asked twice"
        assert len(server.asked) > n


def test_a_rubric_marks_on_its_own_scale(command: Command, folder: Path) -> None:
    (folder / "rubric.txt").write_text("1 is poor, 4 is good.", encoding="utf-8")
    words = (*RUN, "--method", "rubric", "--cases", "responses.jsonl")
    with judging_server(judge) as server:
        server.roster(folder)
        done = command(*words, "--rubric", "rubric.txt", "--scale", "1-4", "--out", "marks.csv")
        assert (done.returncode, done.stderr) == (0, "")
        assert "1 is poor, 4 is good." in server.asked[0]
        assert "from 1 to 4" in server.asked[0]
        assert [row["score"] for row in csv_rows(folder, "marks.csv")] == ["2.0", "4.0", "3.0"]
        refused(command(*words, "--dry-run"), "needs a rubric")
        mixed = (*RUN, "--method", "checklist", "--cases", "responses.jsonl", "--dry-run")
        refused(command(*mixed, "--rubric", "rubric.txt"), "A rubric is for methods that show one")
        refused(command(*mixed, "--scale", "1-4"), "A scale is for methods that show it")
        dry = (*words, "--dry-run", "--rubric")
        refused(command(*dry, "rubric.txt", "--scale", "low"), "'low' is not a scale")
        refused(command(*dry, "none.txt"), "'none.txt'")


def test_each_answer_of_a_battle_is_marked(command: Command, folder: Path) -> None:
    store = Store(new_sqlite(folder))
    store.register(MODELS, NOW)
    ready(store, "b1")
    store.close()
    words = ("judge", "run", "--judge", "pocket-judge", "--cases", "arena")
    assert command(*words, "--method", "wildbench_score", "--out", "marks.csv").returncode == 0
    result = csv_rows(folder, "marks.csv")
    assert [(row["battle_id"], row["model"]) for row in result] == [
        ("b1", "basalt"),
        ("b1", "quartz"),
    ]


def test_rewards_against_several_baselines_allow_for_length(
    command: Command, folder: Path
) -> None:
    """A slight win of what is longer by more than K is a tie, and another K asks nothing."""

    def outputs(name: str, *texts: str) -> str:
        made = [
            {"instruction": f"{n}?", "output": text, "generator": name, "checklist": GIVEN}
            for n, text in enumerate(texts)
        ]
        return write(folder / f"{name}.jsonl", made)

    def script(prompt: str) -> str:
        first, second = (text.startswith("Good") for text in fenced(prompt))
        return json.dumps({"choice": "A=B" if first == second else "A+" if first else "B+"})

    files = [
        outputs("basalt", "Good" + "!" * 501, "Good" + "!" * 500),
        outputs("flint", "Bad.", "Bad."),
        outputs("quartz", "Good, too.", "Poor"),
    ]
    sources = [word for file in files for word in ("--cases", file)]
    words = (*RUN, "--method", "wildbench_reward", *sources, "--out", "found.csv")
    with judging_server(script) as server:
        server.roster(folder)
        done = json.loads(command(*words, "--format", "json").stdout)
        assert len(server.asked) == 8
        result = csv_rows(folder)
        free = json.loads(command(*words, "--length-margin", "-1", "--format", "json").stdout)
        assert free["n_asked"] == 0
    assert [(r["model_b"], r["winner"]) for r in result if r["order"] == "both"] == [
        ("flint", "tie"),
        ("flint", "model_a"),
        ("quartz", "tie"),
        ("quartz", "model_a"),
    ]
    rewards = [(row["baseline"], row["n"], row["reward"], row["mix"]) for row in done["rewards"]]
    assert rewards == [("flint", 4, 0.25, 0.25), ("quartz", 4, 0.25, 0.25)]
    free_rewards = [(row["reward"], row["mix"]) for row in free["rewards"]]
    assert free_rewards == [(0.5, 0.375), (0.25, 0.375)], "the mix is of both baselines"
    margin = ("--method", "pairwise", "--length-margin", "5", *sources, "--dry-run")
    refused(
        command(*RUN, *margin),
        "--length-margin 5 is for methods that have one, such as wildbench_reward",
    )
