"""`arena mix` and `arena rate --pool`, as they are typed."""

import csv
import json
import re
import shlex
from pathlib import Path

import duckdb
import pytest

from tests.command import Command, examples, options_of, refused

PROMPTS = "text,category\nSum 1 to 9,coding\nSort a list,coding\nWrite an ode,writing\n"


@pytest.fixture
def votes(tmp_path: Path) -> Path:
    """Votes on three models in three categories, one of which is rare."""
    models = "CASE (i + {}) % 3 WHEN 0 THEN 'basalt' WHEN 1 THEN 'quartz' ELSE 'flint' END"
    query = f"""
        SELECT *, 'v' || i // 6 AS voter, 'p' || i % 50 AS prompt_id,
               CASE WHEN i % 7 = 0 THEN 'tie' WHEN i % 5 < 2 THEN 'model_a'
                    WHEN model_a = best THEN 'model_a' ELSE 'model_b' END AS winner
        FROM (SELECT i, {models.format(0)} AS model_a, {models.format(1)} AS model_b,
                     CASE WHEN i % 50 = 49 THEN 'law' WHEN i % 2 THEN 'coding' ELSE 'writing' END
                         AS category,
                     CASE WHEN i % 2 THEN 'basalt' ELSE 'flint' END AS best
              FROM range(300) AS rows(i))
    """
    file = tmp_path / "votes.parquet"
    duckdb.execute(f"COPY ({query}) TO '{file}'")
    (tmp_path / "prompts.csv").write_text(PROMPTS, encoding="utf-8")
    return file


def test_the_examples_run(command: Command, votes: Path) -> None:
    for words in examples("mix"):
        result = command(*words)
        assert (result.returncode, result.stderr) == (0, ""), words


def test_the_examples_of_the_document_run_and_name_every_option(
    command: Command, votes: Path
) -> None:
    document = (Path(__file__).parents[2] / "docs/guides/rate.md").read_text(encoding="utf-8")
    lines = re.findall(r"^(arena mix .*)$", document, re.MULTILINE)
    for line in lines:
        words = shlex.split(line.removeprefix("arena "), comments=True)
        result = command(*words)
        assert (result.returncode, result.stderr) == (0, ""), line
    section = document.split("\n## Prompt mix\n")[1]
    missing = [x for x in options_of("mix") if x not in section]
    assert missing == []


def test_a_file_of_prompts_is_a_mix_of_their_categories(command: Command, votes: Path) -> None:
    result = json.loads(command("mix", "prompts.csv", "votes.parquet", "--format", "json").stdout)
    assert result["mix"] == pytest.approx({"coding": 2 / 3, "writing": 1 / 3})
    assert result["n_prompts"] == 3
    given = "coding=2,writing=1"
    words = ("mix", "votes.parquet", "--mix", given, "--format", "json")
    same = json.loads(command(*words).stdout)
    for row, other in zip(same["ratings"], result["ratings"], strict=True):
        assert row == pytest.approx(other)
    assert same["n_prompts"] is None


LABELLED = """
Write a Python function that sorts a list
{"prompt": "Write a poem about rain"}

["Refactor this Python class", "Now write the unit tests in pytest"]
"""


def test_prompts_without_a_category_are_labelled_as_votes_are(
    command: Command, votes: Path, tmp_path: Path
) -> None:
    ours = "CASE category WHEN 'coding' THEN 'code' WHEN 'writing' THEN 'creative' END"
    query = f"SELECT * REPLACE (coalesce({ours}, 'other') AS category) FROM '{votes}'"
    duckdb.execute(f"COPY ({query}) TO '{tmp_path / 'labelled.parquet'}'")
    (tmp_path / "mine.txt").write_text(LABELLED, encoding="utf-8")
    lines = [line for line in LABELLED.splitlines() if line]
    with (tmp_path / "mine.csv").open("w", encoding="utf-8", newline="") as file:
        csv.writer(file).writerows(
            [["prompt"], [lines[0]], ["Write a poem about rain"], [lines[2]]]
        )
    for name in ("mine.txt", "mine.csv"):
        words = ("mix", name, "labelled.parquet", "--format", "json")
        result = json.loads(command(*words).stdout)
        assert result["mix"] == pytest.approx({"code": 2 / 3, "creative": 1 / 3})
        assert result["n_prompts"] == 3


def test_a_mix_of_few_votes_is_a_hint_and_ranks_go_as_far_as_is_asked_for(
    command: Command, votes: Path
) -> None:
    words = ("mix", "votes.parquet", "--mix", "law=1", "--kappa", "3")
    shown = command(*words, COLUMNS="120").stdout
    assert "This mix has 6 effective votes: under 30, the result is only a hint" in shown
    assert "3 x" in shown
    assert "1.5 x" not in shown


def test_files_of_every_format_are_written(command: Command, votes: Path, tmp_path: Path) -> None:
    for ending in ("json", "csv", "md", "tex", "parquet"):
        out = tmp_path / f"board.{ending}"
        done = command("mix", "prompts.csv", "votes.parquet", "--out", str(out))
        assert (done.returncode, done.stdout) == (0, ""), done.stderr
        assert out.stat().st_size > 100
    names = duckdb.read_parquet(str(tmp_path / "board.parquet")).columns
    assert "borrowed" in names


def test_what_cannot_be_used_is_refused_in_a_line(
    command: Command, votes: Path, tmp_path: Path
) -> None:
    refused(command("mix", "votes.parquet"), "your own prompts", "--mix")
    refused(command("mix", "votes.parquet", "--mix", "coding"), "CATEGORY=SHARE")
    refused(command("mix", "votes.parquet", "--mix", "coding=-1"), "Shares of a mix")
    refused(command("mix", "votes.parquet", "--mix", "chess=1"), "no category 'chess'", "'law'")
    refused(command("mix", "votes.parquet", "--mix", "law=1", "--kappa", ".5"), "kappa")
    refused(command("mix", "votes.parquet", "--mix", "law=1", "--by", "topic"), "'topic'")
    (tmp_path / "bare.csv").write_text("words\nHi\n", encoding="utf-8")
    refused(command("mix", "bare.csv", "votes.parquet"), "no column 'category'")
    (tmp_path / "some.txt").write_text("Hi\n", encoding="utf-8")
    refused(command("mix", "some.txt", "votes.parquet"), "no category 'other'", "'coding'")
    refused(command("mix", "some.txt", "votes.parquet", "--by", "topic"), "'topic'", "category")
    (tmp_path / "none.txt").write_text("\n\n", encoding="utf-8")
    refused(command("mix", "none.txt", "votes.parquet"), "needs a prompt")
    (tmp_path / "odd.txt").write_text('Hi\n{"words": "Ho"}\n', encoding="utf-8")
    refused(command("mix", "odd.txt", "votes.parquet"), "Line 2 has no prompt")
    (tmp_path / "latin.txt").write_bytes("Grüße".encode("latin-1"))
    refused(command("mix", "latin.txt", "votes.parquet"), "is not UTF-8", "latin.txt")
    (tmp_path / "gap.csv").write_text("text,category\nHi,\nHo,law\n", encoding="utf-8")
    refused(command("mix", "gap.csv", "votes.parquet"), "1 prompt has no category")


def test_pooled_boards_say_in_markdown_what_they_borrow(command: Command, votes: Path) -> None:
    words = ("rate", "votes.parquet", "--by", "category", "--pool")
    markdown = command(*words, "--format", "markdown").stdout
    assert markdown.startswith("Pooled: the standard deviation between categories")
    assert "| borrowed |" in markdown
    refused(command("rate", "votes.parquet", "--pool"), "by which column")
