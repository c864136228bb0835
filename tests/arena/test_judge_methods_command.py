"""`arena judge methods`, and `--method` with a file of somebody's own, as they are typed."""

import json
import re
from collections.abc import Mapping
from pathlib import Path

import pytest

from judge.methods import PUBLISHED, published
from tests.command import Command, csv_rows, examples, json_lines, refused
from tests.judging_server import fenced, judging_server
from tests.sqlite import new_sqlite

TURNS = {
    "prompt": ["2 + 2?", "Plus 1?"],
    "response_a": ["Four.", "Five, of course."],
    "response_b": ["4.", "Six."],
    "model_a": "basalt",
    "model_b": "flint",
}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with a database that nobody has used, and pairs.jsonl with turns on each side."""
    new_sqlite(tmp_path)
    lines = [TURNS, TURNS | {"prompt": ["3 + 3?", "Plus 2?"], "reference": ["6", "8"]}]
    json_lines(tmp_path / "pairs.jsonl", lines)
    return tmp_path


def test_the_examples_list_the_methods_and_print_the_file_of_one(
    command: Command, folder: Path
) -> None:
    every, one, as_json = examples("judge methods")
    table = command(*every, COLUMNS="200")
    assert (table.returncode, table.stderr) == (0, "")
    for name in PUBLISHED:
        method = published(name)
        about = f"{name}: {method.about}. After {method.description.source}."
        assert " - ".join([about, *method.changes]) in " ".join(table.stdout.split())
    values = json.loads(command(*every, "--format", "json").stdout)["methods"]
    assert [row["name"] for row in values] == list(PUBLISHED)
    assert values[0]["changes"] == list(published("pairwise").changes)
    assert command(*one).stdout == published("pairwise").text
    assert json.loads(command(*as_json).stdout)["reply"]["grammar"] == "bracketed"
    refused(command("judge", "methods", "elo"), "There is no method 'elo'", "mt_bench")


def test_the_words_of_a_source_are_sent_as_they_stand_and_their_cost_is_stated(
    command: Command, folder: Path
) -> None:
    text = command("judge", "methods", "pairwise").stdout.split("[template]")[0]
    user = r'user = "Q: ${prompt}\nA: ${response_a}\nB: ${response_b}"'
    text = f'upstream = true\n{text}[template]\nsystem = ""\n{user}\n'
    (folder / "theirs.toml").write_text(text, encoding="utf-8")
    (folder / "one.csv").write_text("prompt,response_a,response_b\nWhy?,So.,Thus.\n")
    words = ("--method", "./theirs.toml", "--judge", "judge", "--roster", "roster.toml")
    with judging_server(lambda _: "[[A]]", folder) as server:
        done = command("judge", "run", *words, "--cases", "one.csv", "--out", "theirs.csv")
        assert (done.returncode, done.stderr) == (0, "")
        assert {*server.asked} == {"Q: Why?\nA: So.\nB: Thus.", "Q: Why?\nA: Thus.\nB: So."}
    shown = " ".join(done.stdout.split())
    assert "'theirs' shows response_a and response_b without a fence (upstream = true)" in shown


def test_a_printed_file_is_a_method_of_one_s_own_wherever_a_name_is(
    command: Command, folder: Path
) -> None:
    text = command("judge", "methods", "pairwise").stdout
    text = text.replace(
        'fields = ["prompt", "response_a", "response_b"]', 'fields = ["turns_a", "turns_b"]'
    )
    user = r'user = "Code ${nonce}\n${turns_a}\n${turns_b}\nWhich ends better?"'
    text = text.split("[template]")[0]
    text += f'[template]\nsystem = "You weigh endings."\n{user}\n'
    (folder / "mine.toml").write_text(text, encoding="utf-8")
    longest = lambda prompt: "[[A]]" if len(fenced(prompt)[0]) > 6 else "[[B]]"  # noqa: E731
    words = ("--method", "./mine.toml", "--judge", "judge", "--roster", "roster.toml")
    with judging_server(longest, folder) as server:
        done = command("judge", "run", *words, "--cases", "pairs.jsonl", "--out", "mine.csv")
        assert (done.returncode, done.stderr) == (0, "")
        assert "Which ends better?" in server.asked[0]
        assert "does not use the column 'reference'" in done.stdout
        winners = {(r["method"], r["winner"]) for r in csv_rows(folder, "mine.csv")}
        assert winners == {("mine", "model_a")}
        helped = command("judge", "work", *words, "--cases", "pairs.jsonl")
        assert "0 new replies" in helped.stdout
        probed = command("judge", "probe", *words, "--dry-run")
        assert (probed.returncode, probed.stderr) == (0, "")
    (folder / "mine.toml").write_text(text.replace("max_tokens", "max_token"), encoding="utf-8")
    wrong = command("judge", "run", *words, "--cases", "pairs.jsonl", "--out", "mine.csv")
    refused(wrong, "'max_token'")


def test_mt_bench_marks_the_last_turn_by_a_right_answer_where_there_is_one(
    command: Command, folder: Path
) -> None:
    mark = lambda prompt: f"Fine. [[{9 if '[begin reference' in prompt else 5}]]"  # noqa: E731
    words = ("--judge", "judge", "--roster", "roster.toml", "--cases", "pairs.jsonl")
    with judging_server(mark, folder) as server:
        done = command("judge", "run", "--method", "mt_bench", *words, "--out", "marks.csv")
        assert (done.returncode, done.stderr) == (0, "")
        assert any("[begin reference" in text for text in server.asked)
        both = command("judge", "run", "--method", "arena_hard", *words, "--out", "x.csv")
        refused(both, "has 2 turns on each side", "mt_bench")
    assert [row["score"] for row in csv_rows(folder, "marks.csv")] == ["5.0", "5.0", "9.0", "9.0"]


def written(path: Path, *lines: Mapping[str, object]) -> None:
    path.write_text("\n".join(map(json.dumps, lines)), encoding="utf-8")


def by_fastchat(question: int, model: str, *turns: str) -> dict[str, object]:
    choices = [{"index": 0, "turns": turns}]
    return {"question_id": question, "model_id": model, "choices": choices}


def shown(asked: list[str]) -> set[str]:
    """Give what stands between the fences of right answers in what a judge was asked."""
    matches = (re.search(r"\[begin reference [^]]*\]\n(.*?)\n\[end", text, re.S) for text in asked)
    return {match[1] if match else "" for match in matches}


def test_reference_answers_of_a_file_stand_in_the_place_of_those_of_the_cases(
    command: Command, folder: Path
) -> None:
    noted = {"prompt": ["Hi?", "So?"], "prompt_id": "81", "reference": ["A note", "Another"]}
    once = {"model_a": "x", "model_b": "y", "response_a": "Ho.", "response_b": "He."}
    once |= {"prompt": "Hi?", "prompt_id": "101"}
    written(folder / "pairs.jsonl", TURNS | {"prompt_id": "101"}, TURNS | noted, once)
    written(folder / "references.jsonl", by_fastchat(101, "gpt-4", "It is 4.", "It is 5."))
    written(folder / "others.jsonl", by_fastchat(7, "gpt-4", "It is 4.", "It is 5."))
    words = ("--judge", "judge", "--roster", "roster.toml", "--cases", "pairs.jsonl")
    with judging_server(lambda _: "Fine. [[5]]", folder) as server:
        run = ("judge", "run", "--method", "mt_bench", *words, "--out", "marks.csv")
        done = command(*run, "--references", "references.jsonl", "--format", "json")
        assert done.returncode == 0, done.stderr
        assert shown(server.asked) == {"It is 4.\n\nIt is 5.", "It is 4.", ""}
        assert json.loads(done.stdout)["changes"] == list(published("mt_bench").changes)
        others = command(*run, "--references", "others.jsonl")
        assert others.returncode == 2
        assert "'others.jsonl' answers no prompt of the cases: its items are '7'" in others.stderr
        pairs = ("judge", "run", "--method", "pairwise", *words, "--out", "x.csv")
        refused(command(*pairs, "--references", "references.jsonl"), "mt_bench", "'pairwise'")


def test_a_bench_of_mt_bench_shows_reference_answers_as_upstream_and_no_notes(
    command: Command, folder: Path
) -> None:
    notes = {"reference": ["A note", "Another"], "turns": ["2 + 2?", "Plus 1?"]}
    kinds = {101: "reasoning", 111: "math", 121: "coding", 131: "extraction"}
    questions = [notes | {"question_id": n, "category": kind} for n, kind in kinds.items()]
    written(folder / "question.jsonl", *questions)
    written(folder / "flint.jsonl", *(by_fastchat(n, "flint", "4", "5") for n in kinds))
    right = [by_fastchat(n, "gpt-4", f"{kind} 4", f"{kind} 5") for n, kind in kinds.items()]
    written(folder / "gpt-4.jsonl", *right)
    words = ("--models", "flint", "--answers", "flint.jsonl", "--judge", "judge")
    run = ("bench", "mt_bench", "--items", "question.jsonl", *words, "--roster", "roster.toml")
    with judging_server(lambda _: "Fine. [[5]]", folder) as server:
        plain = command(*run, "--out", "plain")
        assert plain.returncode == 0, plain.stderr
        assert "No case has a reference answer; upstream shows one" in plain.stdout
        assert shown(server.asked) == {""}
        server.asked.clear()
        assert command(*run, "--references", "gpt-4.jsonl", "--out", "by").returncode == 0
        of_three = [f"{kind} 4" for kind in ("reasoning", "math", "coding")]
        both = {f"{text}\n\n{text.replace('4', '5')}" for text in of_three}
        assert shown(server.asked) == {*of_three, *both}


def test_a_method_says_by_itself_whether_both_orders_are_asked(
    command: Command, folder: Path
) -> None:
    text = published("mt_bench_pairs").text
    (folder / "once.toml").write_text(f'orders = "one"\n{text}', encoding="utf-8")
    words = ("--judge", "pocket-judge", "--cases", "pairs.jsonl", "--dry-run")
    assert command("judge", "run", "--method", "once.toml", *words).stdout.startswith("2 calls")
    more = (*words, "--swap-share", "1")
    assert command("judge", "run", "--method", "once.toml", *more).stdout.startswith("4 calls")
