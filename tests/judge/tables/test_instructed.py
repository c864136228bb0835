"""IFEval's checks of recorded responses, from files and as a command."""

import csv
import json
from pathlib import Path
from typing import Any

import duckdb
import pytest

from judge.ifeval import Checked, Task, check
from judge.tables.cases import NamedCase, read_instructed
from rating.errors import DataError
from rating.tables.peers import noticing
from tests.command import Command, refused

TASKS: list[dict[str, Any]] = [
    {
        "key": 1,
        "prompt": "Name two fruits. No commas, at least 3 words.",
        "instruction_id_list": ["punctuation:no_comma", "length_constraints:number_words"],
        "kwargs": [{}, {"num_words": 3, "relation": "at least"}],
    },
    {
        "key": 2,
        "prompt": "Use moon.",
        "instruction_id_list": ["keywords:existence"],
        "kwargs": [{"keywords": ["moon"]}],
    },
]
ANSWERS = ["Sure, gladly:\napple and pear", "The moon."]
RESPONSES = [
    {"prompt": task["prompt"], "response": answer, "model": "basalt"}
    for task, answer in zip(TASKS, ANSWERS, strict=True)
]
BOTH = [task | response for task, response in zip(TASKS, RESPONSES, strict=True)]


def checked(instructed: list[tuple[NamedCase, Task]]) -> list[Checked]:
    return [check(task, named.case.response_a) for named, task in instructed]


def write(path: Path, rows: list[dict[str, Any]]) -> Path:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


@pytest.mark.parametrize("kind", ["jsonl", "parquet", "csv"])
def test_instructions_are_read_beside_the_responses(tmp_path: Path, kind: str) -> None:
    path = write(tmp_path / "both.jsonl", BOTH)
    if kind == "parquet":
        duckdb.execute(f"COPY (FROM '{path}') TO '{tmp_path}/both.parquet'")
    if kind == "csv":
        as_json = [
            {name: x if isinstance(x, str) else json.dumps(x) for name, x in row.items()}
            for row in BOTH
        ]
        with (tmp_path / "both.csv").open("w", encoding="utf-8", newline="") as file:
            writer = csv.DictWriter(file, list(BOTH[0]))
            writer.writeheader()
            writer.writerows(as_json)
    outcome = checked(read_instructed([tmp_path / f"both.{kind}"]))
    assert [(one.strict, one.loose) for one in outcome] == [
        ((False, True), (True, True)),
        ((True,), (True,)),
    ]


def test_instructions_are_matched_to_responses_by_their_prompt(tmp_path: Path) -> None:
    tasks = write(tmp_path / "input_data.jsonl", TASKS)
    instructed = read_instructed([tasks, write(tmp_path / "responses.jsonl", RESPONSES[::-1])])
    assert [task.prompt for _, task in instructed] == [task["prompt"] for task in TASKS[::-1]]
    assert checked(instructed)[0].strict == (True,)


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        (RESPONSES, "No file holds instructions .* for the prompt 'Name two fruits"),
        (TASKS, "There is no response in "),
        ([BOTH[0] | {"kwargs": [{}]}], "Row 1 of .*one mapping for each of the 2 ids"),
        ([BOTH[0] | {"instruction_id_list": "no_comma"}], "Row 1 of .*'no_comma'"),
    ],
)
def test_what_cannot_be_checked_is_quoted(
    tmp_path: Path, rows: list[dict[str, Any]], message: str
) -> None:
    with pytest.raises(DataError, match=message):
        read_instructed([write(tmp_path / "rows.jsonl", rows)])


def test_the_command_checks_without_a_judge_and_without_a_database(
    command: Command, tmp_path: Path
) -> None:
    write(tmp_path / "both.jsonl", BOTH)
    words = ("judge", "run", "--method", "ifeval", "--cases", "both.jsonl")
    done = command(*words, "--out", "found.csv")
    assert (done.returncode, done.stderr) == (0, "")
    assert "basalt: prompt strict 50%" in done.stdout
    assert not (tmp_path / "arena.db").exists()
    with (tmp_path / "found.csv").open(encoding="utf-8") as lines:
        first, second = csv.DictReader(lines)
    assert (first["model"], first["score"], first["status"]) == ("basalt", "0.0", "read")
    assert json.loads(first["detail"])["items"] == [
        {"id": "punctuation:no_comma", "strict": False, "loose": True},
        {"id": "length_constraints:number_words", "strict": True, "loose": True},
    ]
    assert second["score"] == "1.0"
    shares = json.loads(command(*words, "--out", "found.csv", "--format", "json").stdout)
    (row,) = shares["models"]
    rates = [row[name]["rate"] for name in ("prompt_strict", "prompt_loose", "instruction_strict")]
    assert rates == [0.5, 1.0, pytest.approx(2 / 3)]
    refused(command(*words, "--judge", "x", "--out", "found.csv"), "leave --judge x out")
    refused(command(*words, "--dry-run"), "name the file to write with --out")


def test_a_response_that_is_null_is_no_failure_but_excluded_and_counted(tmp_path: Path) -> None:
    row = TASKS[0] | {"response": "a"}
    path, words = write(tmp_path / "both.jsonl", [row | {"response": None}, row]), list[str]()
    with noticing(words.append):
        assert len(read_instructed([path])) == 1
    assert words[0].startswith(f"{path}: 1 responses are null, of 2.")


def test_a_response_that_is_blank_follows_nothing_and_counts(tmp_path: Path) -> None:
    rows = [TASKS[0] | {"response": text} for text in ("", " ", "a")]
    assert len(instructed := read_instructed([write(tmp_path / "both.jsonl", rows)])) == 3
    assert [one.all_strict for one in checked(instructed)][:2] == [False, False]
