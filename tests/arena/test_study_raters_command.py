"""`arena study raters`, as it is typed: the keys of its JSON are a promise."""

import json
import re

import numpy as np
import pytest

from tests.command import Command, examples, refused, unexplained
from tests.judge.studies.crowds import Crowd, exported, write_csv

KEYS = [
    "study", "raters", "agreement", "retest", "left", "left_in_repeats", "by_confidence",
    "surer", "side_warnings", "share", "variance", "plan", "alpha", "alpha_plan",
    "left_out", "sentences", "warnings",
]  # fmt: skip
OF_RATER = [
    "rater", "rated", "skipped", "seconds", "gold_right", "gold_rated", "gold",
    "consensus", "agreement", "retest", "left",
]  # fmt: skip
OF_PLAN = [
    "enough", "n_items", "n_ratings", "raters", "designs", "one_more", "same_on_new",
    "twice_as_many", "sentences",
]  # fmt: skip
OF_ALPHA = ["enough", "n_items", "each", "designs", "one_more", "same_on_new", "sentences"]


@pytest.fixture
def files(command: Command) -> Command:
    """The export of a study of eight raters, who saw ten items again and six of gold."""
    crowd = Crowd(item=1.2, rater=0.2, lean=0.25, ties=0.1)
    rows = exported(crowd, np.random.default_rng(3), (120, 8, 4), repeats=10, gold=6)
    write_csv(rows, command.folder / "ratings.csv")
    return command


def test_the_examples_say_what_raters_are_like_and_what_more_would_buy(files: Command) -> None:
    table, in_json = [files(*words, COLUMNS="160") for words in examples("study raters")]
    assert (table.returncode, table.stderr) == (0, "")
    text = " ".join(table.stdout.split())
    assert "Raters prefer the left" in text
    assert "±3 cannot be reached. With twice as many raters" in text
    report = json.loads(in_json.stdout)
    assert list(report) == KEYS
    assert [list(one) for one in report["raters"]] == [OF_RATER] * 8
    assert list(report["plan"]) == OF_PLAN
    assert list(report["alpha_plan"]) == OF_ALPHA
    assert report["plan"]["enough"]["wanted"] == 0.05
    assert report["alpha_plan"]["enough"]["wanted"] == 0.1
    of_plan = (OF_PLAN, OF_ALPHA, report["plan"]["enough"])
    assert unexplained("Raters", KEYS, OF_RATER, report["variance"], *of_plan) == []

    def share(figure: dict[str, float]) -> str:
        return rf"{figure['value']:.0%} \(\d+–\d+\)"

    for one in report["raters"]:
        shares = [share(one[name]) for name in ("agreement", "retest", "left")]
        row = [one["rater"], f"{one['rated']}", f"{one['seconds']:.0f}", *shares]
        assert re.search(" │ ".join(row), text), row
        gold = f"{one['gold_right']} of {one['gold_rated']}"
        row = [one["rater"], gold, share(one["gold"]), share(one["consensus"])]
        assert re.search(" │ ".join(row), text), row
    for one, sure in zip(report["by_confidence"], ("a guess", "fairly sure", "sure"), strict=True):
        assert re.search(f"│ {sure} │ {share(one)} │ {one['n']:,} │", text)
    for one in report["plan"]["designs"]:
        assert f"│ {one['each']} │ ±{100 * one['half_width']:.1f} │ –" in text
    for one in report["alpha_plan"]["designs"]:
        more = ["–" if x is None else f"{x:,}" for x in (one["items"], one["ratings"])]
        assert f"│ {one['each']} │ ±{one['half_width']:.2f} │ {' │ '.join(more)} │" in text


def test_the_report_leads_to_its_command(files: Command) -> None:
    words = ("study", "raters", "ratings.csv", "--until", "0.03")
    assert files(*words, "--out", "report").returncode == 0
    html = (files.folder / "report" / "raters.html").read_text("utf-8")
    assert "arena study raters ratings.csv --until 0.03 --out report" in html
    assert (files.folder / "report" / "raters.parquet").exists()


def test_rows_are_chosen_and_columns_renamed(files: Command) -> None:
    path = files.folder / "ratings.csv"
    path.write_text(path.read_text("utf-8").replace("choice", "picked"), "utf-8")
    words = ("study", "raters", "ratings.csv", "--until-alpha", "0.2", "--format", "json")
    refused(files(*words), "no column 'choice'")
    where = "rater <> 'r01'"
    report = json.loads(files(*words, "--column", "choice=picked", "--where", where).stdout)
    assert report["alpha_plan"]["enough"]["wanted"] == 0.2
    assert [one["rater"] for one in report["raters"]] == [f"r{n:02}" for n in range(2, 9)]


def test_what_cannot_be_studied_is_one_clear_line(files: Command) -> None:
    refused(files("study", "raters", "ratings.csv", "--until", "0.7"), "--until 0.7 is no half")
    alpha = ("--until-alpha", "1")
    refused(files("study", "raters", "ratings.csv", *alpha), "--until-alpha 1 is no half-width")
    refused(files("study", "raters", "none.csv"), "none.csv")
