"""`arena compare`, as a person and a job of continuous integration type it."""

import csv
import json
import shutil
from pathlib import Path

import numpy as np
import pytest

from tests.command import Command, examples, refused, unexplained

ROOT = Path(__file__).parents[2]
DOCUMENT = (ROOT / "docs/guides/gate-and-compare.md").read_text("utf-8")
EXAMPLES = ROOT / "docs/examples"


@pytest.fixture
def runs(tmp_path: Path) -> Path:
    """The runs of the page."""
    for name in ("new.csv", "old.csv"):
        shutil.copy(EXAMPLES / name, tmp_path / name)
    return tmp_path


@pytest.mark.parametrize(
    ("words", "code"),
    [
        (("new.csv", "old.csv"), 0),
        (("old.csv", "new.csv"), 1),
        (("old.csv", "new.csv", "--margin", "0.01", "--require", "not-worse"), 1),
        (("new.csv", "old.csv", "--margin", "0.1", "--require", "equivalent"), 3),
    ],
)
def test_the_exit_code_says_whether_the_requirement_is_shown(
    command: Command, runs: Path, words: tuple[str, ...], code: int
) -> None:
    result = command("compare", *words, "--format", "json")
    assert (result.returncode, result.stderr) == (code, "")
    assert json.loads(result.stdout)["passes"] is {0: True, 1: False, 3: None}[code]


def test_every_format_has_the_same_figures(command: Command, runs: Path) -> None:
    words = ("compare", "new.csv", "old.csv", "--margin", "0.05")
    pair = json.loads(command(*words, "--format", "json").stdout)["pairs"][0]
    (row,) = csv.DictReader(command(*words, "--format", "csv").stdout.splitlines())
    assert list(row) == list(pair)
    assert float(row["lower"]) == pair["lower"]
    shown = f"{pair['difference']:+.3f}"
    for form in ("table", "markdown", "latex"):
        text = command(*words, "--format", form, COLUMNS="140").stdout
        assert shown in text
        assert f"{pair['lower']:+.3f}" in text
    assert r"\begin{tabular}{llrrrrrr}" in command(*words, "--format", "latex").stdout
    assert "| A | B |" in command(*words, "--format", "markdown").stdout


def test_a_comment_is_headed_by_the_answer_once(command: Command, tmp_path: Path) -> None:
    rows = [f"{name},q{n},{n // k % 2}" for name, k in (("x", 1), ("y", 2)) for n in range(40)]
    (tmp_path / "a.csv").write_text("\n".join(["model,item,score", *rows]) + "\n")
    text = command("compare", "a.csv", "--format", "markdown").stdout
    assert text.startswith("### Inconclusive: which of x and y scores higher.\n")


def test_names_from_files_do_nothing(command: Command, tmp_path: Path) -> None:
    rows = [f'"{name}",q{n},{n % 2}' for name in ("<b>|$x", "=1+1") for n in range(20)]
    (tmp_path / "a.csv").write_text("\n".join(["model,item,score", *rows]) + "\n")
    text = command("compare", "a.csv", "--format", "csv").stdout
    assert "'=1+1" in text
    assert "\\|" in command("compare", "a.csv", "--format", "markdown").stdout
    lines = [
        line.replace("=1+1", "one\nline") for line in (tmp_path / "a.csv").read_text().split("\n")
    ]
    (tmp_path / "a.csv").write_text("\n".join(lines))
    assert (
        "$x and one\ufffdline scores higher.\n"
        in command("compare", "a.csv", COLUMNS="140").stdout
    )
    assert r"\$x" in command("compare", "a.csv", "--format", "latex").stdout


def test_several_models_are_compared_together(command: Command, tmp_path: Path) -> None:
    rng = np.random.default_rng(1)
    right = {"x": 0.9, "y": 0.5, "z": 0.48}
    rows = [f"{m},q{n},{int(rng.random() < p)}" for m, p in right.items() for n in range(200)]
    (tmp_path / "all.csv").write_text("\n".join(["model,item,score", *rows]) + "\n")
    result = command("compare", "all.csv", COLUMNS="140")
    assert result.returncode == 0
    assert result.stdout.startswith("x against 2 models, better: shown for 2 (y, z).\n")
    assert "Items: 200. Intervals hold for all 3 pairs together." in result.stdout
    assert command("compare", "all.csv", "--models", "y,z").returncode == 3
    assert command("compare", "all.csv", "--where", "model <> 'x'").returncode == 3


def test_names_with_commas_are_chosen_by_themselves(command: Command, tmp_path: Path) -> None:
    rows = [f'"{m}",q{n},{n % 2}' for m in ("a, b", "c", "d") for n in range(20)]
    (tmp_path / "all.csv").write_text("\n".join(["model,item,score", *rows]) + "\n")
    words = ("compare", "all.csv", "--format", "json", "--models")
    for given, models in (
        (("a, b", "--models", "c"), ["a, b", "c"]),
        (("d, c",), ["d", "c"]),
        (("a, b", "--models", "d,c"), ["a, b", "d", "c"]),
    ):
        report = json.loads(command(*words, *given).stdout)
        assert [one["model"] for one in report["models"]] == models
    refused(command(*words, "a, b,c"), "no model 'a'", "Repeat --models")


def test_every_mean_has_its_number_of_items_and_its_metric(
    command: Command, tmp_path: Path
) -> None:
    for name, n in (("new", 40), ("old", 20)):
        rows = [f"q{i},{i % 2 - 1}" for i in range(n)]
        (tmp_path / f"{name}.csv").write_text("\n".join(["item,acc", *rows]) + "\n")
    words = ("compare", "new.csv", "old.csv", "--column", "score=acc")
    text = command(*words, COLUMNS="140").stdout
    assert "Model ┃ Scored ┃ Missing ┃ Compared ┃ Mean acc" in text
    assert "│ new   │     40 │       0 │       20 │   −0.500 │ −0.740 to −0.260" in text
    assert "With missing scores as 0, over 40 items, the difference is" in text
    assert json.loads(command(*words, "--format", "json").stdout)["metric"] == "acc"
    assert command(*words, "--format", "csv").stderr.startswith("arena: 20 of 40 items have no")


def test_what_cannot_be_compared_is_said_in_one_line(command: Command, runs: Path) -> None:
    refused(command("compare", "new.csv"), "two models", "'new'")
    refused(command("compare", "new.csv", "none.csv"), "'none.csv'")
    refused(command("compare", "new.csv", "old.csv", "--margin=-1"), "--margin -1")
    refused(command("compare", "new.csv", "old.csv", "--require", "equivalent"), "--margin")
    (runs / "other.csv").write_text("item,score\nx1,1\n")
    refused(command("compare", "new.csv", "other.csv"), "'other' has 'x1'")


def test_its_examples_run(command: Command, runs: Path) -> None:
    lines = examples("compare")
    assert [command(*words).returncode for words in lines] == [0, 0]


def test_every_key_of_a_comparison_is_explained(command: Command, runs: Path) -> None:
    report = json.loads(command("compare", "new.csv", "old.csv", "--format", "json").stdout)
    assert unexplained("Scored runs", report, report["models"][0], report["pairs"][0]) == []


def test_the_python_of_the_page_runs(
    runs: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(runs)
    exec(DOCUMENT.split("```python\n")[1].split("```")[0], {})
    assert capsys.readouterr().out == "True 0.093\n"


def test_the_two_unpaired_intervals_of_the_page_overlap(command: Command, runs: Path) -> None:
    report = json.loads(command("compare", "new.csv", "old.csv", "--format", "json").stdout)
    new, old = report["models"]
    assert old["upper"] > new["lower"]
    assert report["pairs"][0]["lower"] > 0
