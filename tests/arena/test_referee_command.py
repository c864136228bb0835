"""`arena referee`, as it is typed."""

import json
import re
from pathlib import Path

import duckdb
import pytest

from tests.command import Command, examples, refused
from tests.rating.test_referee import N_PROMPTS, drawn

WINNERS = ("model_a", "model_b", "tie", "both_bad")


def votes(folder: Path, n: int = 400, both_bad: float = 0.0) -> Path:
    rows = drawn(n, both_bad=both_bad)
    lines = ["model_a,model_b,winner,voter,prompt_id,kind,ts"]
    for at in range(rows.n):
        a, b = rows.models[rows.a[at]], rows.models[rows.b[at]]
        voter, prompt, kind = (rows.groups[role][at] for role in ("voter", "prompt", "by"))
        winner = WINNERS[rows.outcome[at]]
        lines.append(f"{a},{b},{winner},v{voter},p{prompt},k{kind},{1_700_000_000 + at}")
    file = folder / "votes.csv"
    file.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return file


def prompts(folder: Path) -> Path:
    """Write a file of prompts on two subjects."""
    subjects = ("dough yeast flour oven", "rook bishop pawn checkmate")
    file = folder / "prompts.csv"
    lines = [f"p{at},Tell me of {subjects[at % 2]}" for at in range(N_PROMPTS)]
    file.write_text("\n".join(["prompt_id,text", *lines]) + "\n", encoding="utf-8")
    return file


def test_the_json_has_a_row_for_every_fold_and_a_difference_of_every_two(
    command: Command, tmp_path: Path
) -> None:
    votes(tmp_path)
    words = ("referee", "votes.csv", "--by", "kind", "--format", "json")
    report = json.loads(command(*words).stdout)
    names = {row["model"] for row in report["rows"]}
    assert names == {"base", "half", "davidson", "rao-kupper", "prompt", "category", "elo"}
    assert len(report["rows"]) == 6 * len(names)
    assert set(report["rows"][0]) == {"model", "fold", "votes", "log_loss", "perplexity"}
    assert len(report["differences"]) == len(names) * (len(names) - 1) // 2
    assert set(report["differences"][0]) == {
        *("a", "b", "difference", "lower", "upper", "better"),
    }
    assert report["warnings"] == [
        "Elo goes by the order of the votes, which is drawn here: it counts when time is held out."
    ]
    assert json.loads(command(*words).stdout) == report


def test_a_terminal_names_the_models_that_are_not_shown_to_be_worse(
    command: Command, tmp_path: Path
) -> None:
    votes(tmp_path, both_bad=0.1)
    words = ("referee", "votes.csv", "--both-bad", "outcome", "--hold-out", "time")
    shown = command(*words, "--model", "grounded", "--model", "davidson", COLUMNS="120").stdout
    assert "Held out by time." in shown
    assert re.search("No difference to (grounded|davidson) is shown: (grounded|davidson)", shown)


@pytest.mark.slow
def test_the_examples_of_its_help_can_be_typed(command: Command, tmp_path: Path) -> None:
    known = duckdb.read_csv(str(votes(tmp_path))).project("*, kind AS category")
    known.write_parquet(str(tmp_path / "votes.parquet"))
    typed = examples(command, "referee")
    prompts(tmp_path)
    assert len(typed) == 4
    for words in typed:
        assert command(*words).returncode == 0, words


@pytest.mark.parametrize(
    ("words", "wanted"),
    [
        (("--model", "moon"), "no model 'moon'"),
        (("--model", "grounded"), "both bad as an outcome"),
        (("--model", "category"), "no column that parts them"),
        (("--models", "half,pooled"), "no column that parts them"),
        (("--folds", "1"), "folds must be 2 or more"),
        (("--folds", "99"), "40 voters are too few for 99 folds"),
        (("--by", "moon"), "'moon'"),
        (("--out", "referee.csv"), "ends in .json"),
        (("--ridge", "0", "--model", "prompt"), "a ridge above 0"),
        (("--model", "topical"), "name a file of their texts"),
        (("--model", "topical", "--prompts", "votes.csv"), "has no text of the prompts"),
        (("--model", "topical", "--prompts", "few.csv"), "does not name the prompt"),
    ],
)
def test_what_cannot_be_used_is_refused_with_its_name(
    command: Command, tmp_path: Path, words: tuple[str, ...], wanted: str
) -> None:
    votes(tmp_path, n=200)
    (tmp_path / "few.csv").write_text("prompt_id,text\np1,bread dough oven\n", "utf-8")
    refused(command("referee", "votes.csv", *words), wanted)


def test_every_option_is_explained(command: Command) -> None:
    document = (Path(__file__).parents[2] / "docs" / "referee.md").read_text(encoding="utf-8")
    shown = command("referee", "--help", COLUMNS="200").stdout.split("Examples")[0]
    options = set(re.findall(r"--[a-z-]+", shown)) - {"--help"}
    assert [option for option in options if f"`{option}" not in document] == []
    keys = ("rows", "differences", "fold", "log_loss", "perplexity", "lower", "better", "units")
    assert [key for key in keys if f"`{key}`" not in document] == []


PUBLISHED = (
    ("mtbench", "mt_bench_questions.jsonl", "voter", (0.8801, 0.8708), "topical"),
    ("mtbench", "mt_bench_questions.jsonl", "prompt", (0.8823, 0.8886), None),
    ("llmfao", "prompts.jsonl", "voter", (1.0325, 0.9996), "topical"),
    ("llmfao", "prompts.jsonl", "prompt", (1.0641, 1.0616), None),
)


@pytest.mark.slow
@pytest.mark.published
@pytest.mark.parametrize(("name", "prompts", "hold_out", "losses", "better"), PUBLISHED)
def test_words_of_prompts_foresee_other_people_and_not_new_prompts(
    command: Command,
    published_data: Path,
    name: str,
    prompts: str,
    hold_out: str,
    losses: tuple[float, float],
    better: str | None,
) -> None:
    folder = published_data / "votes" / name
    words = ("--hold-out", hold_out, "--models", "half,topical", "--format", "json")
    files = (str(folder / "votes.parquet"), "--prompts", str(folder / prompts))
    report = json.loads(command("referee", *files, *words).stdout)
    whole = {row["model"]: row["log_loss"] for row in report["rows"] if row["fold"] == "all"}
    assert whole == pytest.approx(dict(zip(("half", "topical"), losses, strict=True)), abs=5e-4)
    assert report["differences"][0]["better"] == better
