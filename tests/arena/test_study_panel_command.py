"""`arena study panel`, as it is typed: the keys of its JSON are a promise."""

import json
import re
from pathlib import Path
from typing import Any

import numpy as np

from tests.command import Command, examples, options_of, refused, unexplained
from tests.judge.studies.panels import HEAD, labelled, latent, written


def verdicts(folder: Path, n: int = 120, name: str = "verdicts.csv") -> None:
    wrong = latent(np.random.default_rng(1), n, [0.2, 0.3, 0.35, 0.4], 0.6)
    written(folder / name, labelled(wrong, ["gpt-4", "claude-2", "llama", "gpt-3"]))


def message(command: Command, *words: str) -> dict[str, Any]:
    result = command("study", "panel", *words, "--format", "json", "--rounds", "100")
    assert (result.returncode, result.stderr) == (0, "")
    report: dict[str, Any] = json.loads(result.stdout)
    return report


def test_failures_are_counted_on_the_terminal_and_are_no_errors(
    command: Command, tmp_path: Path
) -> None:
    verdicts(tmp_path)
    whole = message(command, "verdicts.csv")
    lines = (tmp_path / "verdicts.csv").read_text(encoding="utf-8").splitlines()
    unread = [line.split(",") for line in lines[1:5]]
    lines[1:5] = [",".join([*row[:3], "", *row[4:]]) for row in unread]  # the four of an item
    (tmp_path / "verdicts.csv").write_text("\n".join(lines) + "\n", encoding="utf-8")
    report = message(command, "verdicts.csv")
    assert (report["unread"], report["items"], whole["items"]) == (4, 119, 120)
    result = command("study", "panel", "verdicts.csv", "--rounds", "100", COLUMNS="200")
    shown = " ".join(result.stdout.split())
    assert "4 of 480 verdicts were not parsed: excluded, not counted as errors." in shown
    assert "1 item of 120 is excluded" in shown
    assert "Correlation of errors" in shown
    assert "Without the family" in shown
    right = report["accuracy"]
    for row, value in (
        ("Equivalent independent judges", f"{report['n_eff']:.2f}"),
        (f"Accuracy: the best judge ({report['best_judge']})", f"{right['best']:.0%}"),
        ("Accuracy: majority of independent judges", f"{right['independent']:.0%}"),
        ("Gap to independent judges, percentage points", f"{100 * report['gap']:+.0f}"),
    ):
        assert f"│ {row} │ {value.replace('-', '−')} (" in shown
    for one in report["judges"]:
        left_out = f"│ {one['unread']} │ {one['items_left_out']} │"
        row = rf"│ {one['judge']} │ {one['family']} │ {one['accuracy']:.0%} \([^)]*\) {left_out}"
        assert re.search(row, shown), row


def test_the_report_has_a_heat_map_and_every_form(command: Command, tmp_path: Path) -> None:
    verdicts(tmp_path)
    result = command("study", "panel", "verdicts.csv", "--out", "report", "--rounds", "100")
    assert result.stdout == "The report is report/panel.html.\n"
    names = {path.name for path in (tmp_path / "report").iterdir()}
    assert names == {f"panel.{form}" for form in ("html", "md", "tex", "json", "parquet")}
    html = (tmp_path / "report" / "panel.html").read_text(encoding="utf-8")
    assert 'aria-label="Correlation of errors"' in html
    assert "arena study panel verdicts.csv --rounds 100 --out report" in html


def test_several_files_are_several_tables(command: Command, tmp_path: Path) -> None:
    verdicts(tmp_path)
    whole = message(command, "verdicts.csv")
    lines = (tmp_path / "verdicts.csv").read_text(encoding="utf-8").splitlines()[1:]
    for name in ("gpt-4", "claude-2", "llama", "gpt-3"):
        own = [line.rpartition(",")[0] for line in lines if line.endswith(f",{name}")]
        text = "\n".join([HEAD.removesuffix(",judge"), *own])
        (tmp_path / f"{name}.csv").write_text(text + "\n", encoding="utf-8")
    apart = message(command, "gpt-4.csv", "claude-2.csv", "llama.csv", "gpt-3.csv")
    assert apart == whole
    words = ("study", "panel", "verdicts.csv", "--where", "judge <> 'llama'")
    fewer = command(*words, "--format", "json")
    assert json.loads(fewer.stdout)["k"] == 3
    assert "120 by where" in fewer.stderr


def test_what_cannot_be_used_ends_in_one_line(command: Command, tmp_path: Path) -> None:
    verdicts(tmp_path)
    refused(command("study", "panel", "none.csv"), "none.csv")
    refused(command("study", "panel", "verdicts.csv", "--votes", "none.csv"), "none.csv")
    refused(command("study", "panel", "verdicts.csv", "--rounds", "1"), "--rounds 1")
    refused(command("study", "panel", "verdicts.csv", "--voters", "x*"), "--voters 'x*'")
    text = (tmp_path / "verdicts.csv").read_text(encoding="utf-8").replace(",label,", ",gold,")
    (tmp_path / "verdicts.csv").write_text(text, encoding="utf-8")
    refused(command("study", "panel", "verdicts.csv"), "--votes", "'label'")
    report = message(command, "verdicts.csv", "--column", "label=gold")
    assert report["k"] == 4


def test_hostile_names_reach_no_page_as_markup(command: Command, tmp_path: Path) -> None:
    wrong = latent(np.random.default_rng(1), 60, [0.2, 0.3], 0.6)
    evil = "<script>alert(1)</script>"
    written(tmp_path / "verdicts.csv", labelled(wrong, [evil, "b\x1b[31m"]))
    result = command("study", "panel", "verdicts.csv", "--format", "html", "--rounds", "100")
    assert evil not in result.stdout
    shown = command("study", "panel", "verdicts.csv", "--rounds", "100").stdout
    assert "\x1b[31m" not in shown


def test_every_option_and_key_is_explained(command: Command, tmp_path: Path) -> None:
    page = Path(__file__).parents[2] / "docs/guides/judge.md"
    document = page.read_text(encoding="utf-8").split("\n## Panels\n")[1].split("\n## ")[0]
    options = options_of("study panel") - {"--format"}
    assert [option for option in options if f"`{option}" not in document] == []
    verdicts(tmp_path, 40)
    report = message(command, "verdicts.csv")
    for name in ("n_eff", "mean_correlation", "gap"):
        assert report[f"{name}_lower"] <= report[name] <= report[f"{name}_upper"]
    keys = [*report, *report["accuracy"], *report["next"], *report["judges"][0]]
    bare = {key for key in keys if not key.endswith(("_lower", "_upper"))}
    assert unexplained("Panels", bare - {"judge"}) == []
    rows = document.split("```csv\n")[1].split("```")[0]
    (tmp_path / "verdicts.csv").write_text(rows, encoding="utf-8")
    assert message(command, "verdicts.csv")["unread"] == 1


def test_the_examples_of_the_help_work(command: Command, tmp_path: Path) -> None:
    verdicts(tmp_path, 40)
    verdicts(tmp_path, 40, "one.csv")
    wrong = latent(np.random.default_rng(2), 40, [0.3], 0.6)
    written(tmp_path / "other.csv", labelled(wrong, ["z"]))
    votes = [row[:4] for row in labelled(np.zeros((40, 1), dtype=bool))]
    written(tmp_path / "votes.csv", votes, "item_id,model_a,model_b,winner")
    for words in examples("study panel"):
        assert command(*words).returncode == 0, words
