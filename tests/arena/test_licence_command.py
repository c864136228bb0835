"""A judge's licence as it is typed: granted, watched, and scored under."""

import csv
import json
import re
import shutil
from pathlib import Path

import numpy as np
import pytest

from judge.methods import published
from judge.studies.licence import read_licence
from tests.command import Command, examples, invoke, json_lines, refused
from tests.judge.studies.licensed import BY, World, write
from tests.sqlite import new_sqlite

GRANT = ("study", "judge", "votes.csv", "verdicts.csv", "--rounds", "100")
LICENSED = (*GRANT, "--certificate", "judge.toml", "--margin", "12")
WATCH = ("judge", "drift", "judge.toml")
WORLD = World(favoured=1, favour=0.5)


@pytest.fixture(scope="module")
def studied(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with votes, verdicts, and what the judge is licensed for by them."""
    folder, rng = tmp_path_factory.mktemp("studied"), np.random.default_rng(3)
    write(folder, "", WORLD.draw(rng, 3000))
    write(folder, "new-", WORLD.draw(rng, 300), first=10_000)
    write(folder, "fallen-", WORLD.draw(rng, 600, 0.15), first=20_000)
    write(folder, "cases-", WORLD.draw(rng, 300), first=30_000)
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        assert invoke(LICENSED).returncode == 0
    return folder


@pytest.fixture
def folder(studied: Path, tmp_path: Path) -> Path:
    shutil.copytree(studied, tmp_path, ignore=lambda *_: ["judge.toml"], dirs_exist_ok=True)
    return tmp_path


@pytest.fixture
def licensed(studied: Path, folder: Path) -> Path:
    return Path(shutil.copy(studied / "judge.toml", folder))


def test_a_licence_is_written_and_shown_with_a_sentence_a_model(
    command: Command, folder: Path
) -> None:
    result = command(*LICENSED, COLUMNS="200")
    assert (result.returncode, result.stderr) == (0, "")
    head = "The judge may replace human raters for flint, quartz, slate, umber, with"
    assert head in result.stdout
    assert re.search(r"basalt │ +FAIL", result.stdout)
    assert "basalt: the win rate by the judge differs from" in result.stdout
    assert result.stdout.rstrip().endswith("The validation certificate is judge.toml.")
    assert read_licence(folder / "judge.toml").passed == ("flint", "quartz", "slate", "umber")


def test_json_and_the_report_hold_the_licence(command: Command, folder: Path) -> None:
    words = (*LICENSED, "--by", "category", "--until", "2099-01-31", "--format", "json")
    licence = json.loads(command(*words, "--out", "study").stdout)["certificate"]
    assert licence["until"] == "2099-01-31"
    assert (licence["column"], licence["categories"]) == ("category", ["chat", "code"])
    assert {row["grade"] for row in licence["models"]} == {"PASS", "FAIL"}
    page = (folder / "study" / "report.html").read_text(encoding="utf-8")
    assert "Validation certificate of owl" in page
    assert "--until 2099-01-31" in page
    assert "INCONCLUSIVE" not in page
    whole = json.loads((folder / "study" / "report.json").read_text(encoding="utf-8"))
    assert whole["certificate"] == whole["licence"] == licence
    rows = (folder / "study" / "report.md").read_text(encoding="utf-8").splitlines()
    for one in licence["models"]:
        ends = f"{one['error']:+.1f} ({one['lower']:+.1f} to {one['upper']:+.1f})"
        cells = (ends.replace("-", "−"), f"{one['votes']:,}", f"{one['prompts']:,}")
        of = " | ".join([one["name"], one["grade"], *cells, f"{one['outside']:.0%}"])
        assert any(of in row.replace("**", "") for row in rows), of


@pytest.mark.parametrize(
    ("words", "quoted"),
    [
        (("--certificate", "judge.toml"), ("margin", "--margin")),
        (("--margin", "5"), ("--margin 5", "--certificate")),
        (("--until", "2099-01-31"), ("--until 2099-01-31", "--certificate")),
        (("--certificate", "judge.json", "--margin", "5"), ("'judge.json'", ".toml")),
        (("--certificate", "no/judge.toml", "--margin", "5"), ("'no/judge.toml'", "folder")),
        (("--certificate", "judge.toml", "--margin", "0"), ("--margin 0", "points")),
        (
            ("--certificate", "judge.toml", "--margin", "nan"),
            ("--margin", "'nan' is no finite number"),
        ),
        (
            ("--certificate", "j.toml", "--margin", "5", "--until", "2020-01-31"),
            ("2020-01-31", "is in the past"),
        ),
        (
            ("--certificate", "j.toml", "--margin", "5", "--votes-a-year", "20"),
            ("--votes-a-year 20", "300"),
        ),
    ],
)
def test_terms_that_cannot_be_are_quoted(
    command: Command, folder: Path, words: tuple[str, ...], quoted: tuple[str, ...]
) -> None:
    refused(command(*GRANT, *words), *quoted)
    assert not [*folder.glob("*.toml")]


def test_a_licence_is_not_written_over(command: Command, licensed: Path) -> None:
    before = licensed.read_bytes()
    refused(command(*LICENSED[:-1], "30"), "'judge.toml'", "exists and is not overwritten")
    assert licensed.read_bytes() == before


def test_an_unchanged_judge_keeps_its_licence_and_a_fallen_one_loses_it(
    command: Command, licensed: Path
) -> None:
    valid = command(*WATCH, "new-votes.csv", "new-verdicts.csv", COLUMNS="200")
    assert valid.returncode == 0, valid.stdout + valid.stderr
    assert valid.stdout.startswith("owl: Not revoked after ")
    assert "does not pass the model 'basalt' (FAIL)" in valid.stdout
    words = (*WATCH, "fallen-votes.csv", "fallen-verdicts.csv", "--format", "json")
    revoked = command(*words)
    assert revoked.returncode == 1
    answer = json.loads(revoked.stdout)
    assert answer["status"] == "revoked"
    assert answer["last"]["fall"] > answer["last"]["bound"]
    assert answer["last"]["votes"] <= 300
    assert answer["false_alarms_a_year"] == 0.05
    assert command(*words).stdout == revoked.stdout


def test_a_watch_that_cannot_say_ends_with_three(command: Command, licensed: Path) -> None:
    folder = licensed.parent
    few = (folder / "new-votes.csv").read_text().splitlines()[:20]
    (folder / "few.csv").write_text("\n".join(few) + "\n")
    result = command(*WATCH, "few.csv", "new-verdicts.csv")
    assert (result.returncode, "at least 30 are needed" in result.stdout) == (3, True)
    same = command(*WATCH, "votes.csv", "verdicts.csv")
    assert (same.returncode, "the drift monitor needs later ones" in same.stdout) == (3, True)
    text = licensed.read_text(encoding="utf-8")
    over = re.sub(r"made = \S+\nuntil = \S+", "made = 2020-01-31\nuntil = 2020-07-31", text)
    licensed.write_text(over, encoding="utf-8")
    late = command(*WATCH, "new-votes.csv", "new-verdicts.csv")
    assert (late.returncode, "expired on 2020-07-31" in late.stdout) == (3, True)


def test_the_votes_of_a_year_are_used_up(command: Command, licensed: Path) -> None:
    text = licensed.read_text(encoding="utf-8")
    year = re.sub("votes_a_year = 3000", "votes_a_year = 100", text)
    licensed.write_text(year, encoding="utf-8")
    for name in ("votes", "verdicts"):  # a fall after the votes of the year revokes nothing
        both = [(licensed.parent / f"{when}-{name}.csv").read_text() for when in ("new", "fallen")]
        (licensed.parent / f"both-{name}.csv").write_text(both[0] + both[1].partition("\n")[2])
    result = command(*WATCH, "both-votes.csv", "both-verdicts.csv", COLUMNS="200")
    used_up = "100 votes declared for a year are used up" in result.stdout
    assert (result.returncode, used_up) == (3, True), result.stdout


def test_another_answering_model_is_named_and_not_counted(
    command: Command, licensed: Path
) -> None:
    folder = licensed.parent
    drawn = WORLD.draw(np.random.default_rng(8), 200)
    write(folder, "moved-", drawn, first=40_000, by={"resolved_model": "owl-2027-02-02"})
    words = ("moved-votes.csv", "moved-verdicts.csv")
    result = command(*WATCH, *words, COLUMNS="200")
    assert result.returncode == 3
    assert "No verdict counts under the" in result.stdout
    assert ("the resolved model 'owl-2027-02-02', which differs") in result.stdout
    scored = ("judge", "score", "moved-verdicts.csv", "--method", "pairwise")
    refused(command(*scored, "--certificate", "judge.toml"), "No verdict", "'owl-2027-02-02'")


def test_scores_under_a_licence_are_of_its_own_verdicts(command: Command, licensed: Path) -> None:
    words = ("judge", "score", "new-verdicts.csv", "--format=json", "--certificate", "judge.toml")
    report = json.loads(command(*words, "--method", "pairwise").stdout)
    assert {row["model"] for row in report["models"]} == {"flint", "quartz", "slate", "umber"}
    assert "does not pass the model 'basalt' (FAIL)" in report["warnings"][0]
    refused(command(*words, "--method", "llmbar"), "--certificate", "'llmbar'")
    text = licensed.read_text(encoding="utf-8")
    over = re.sub(r"made = \S+\nuntil = \S+", "made = 2020-01-31\nuntil = 2020-07-31", text)
    licensed.write_text(over, encoding="utf-8")
    refused(command(*words, "--method", "pairwise"), "expired on 2020-07-31")


def test_cases_to_ask_next_are_shown_and_written(command: Command, licensed: Path) -> None:
    words = (*WATCH, "new-votes.csv", "new-verdicts.csv", "--next", "12")
    result = command(*words, "--from", "cases-verdicts.csv", "--out", "next.csv", COLUMNS="160")
    assert result.returncode == 0, result.stderr
    assert "Collect votes on these cases next" in result.stdout
    assert "Worth a vote" in result.stdout
    lines = (licensed.parent / "next.csv").read_text().splitlines()
    assert len(lines) == 13
    for line in csv.reader(lines[1:]):
        cells = (*line[:5], f"{float(line[6]):.2f}")
        assert f"│ {' │ '.join(cells)} │".split() in [x.split() for x in result.stdout.split("\n")]
    assert lines[0] == "row,prompt,battle,model_a,model_b,kind,worth,vote_cost"
    refused(command(*words), "--next 12", "--from")
    refused(command(*words[:-2], "--out", "next.csv"), "'next.csv'", "--next")
    refused(command(*words[:-1], "0", "--from", "cases-verdicts.csv"), "--next 0")


def test_a_file_that_is_no_licence_is_refused(command: Command, folder: Path) -> None:
    refused(command(*WATCH, "new-votes.csv", "new-verdicts.csv"), "'judge.toml'")
    (folder / "judge.toml").write_text("judge = 5", encoding="utf-8")
    refused(command(*WATCH, "new-votes.csv", "new-verdicts.csv"), "has no version")


def test_the_examples_of_the_watch_run(command: Command, licensed: Path) -> None:
    (licensed.parent / "cases.csv").write_text(
        (licensed.parent / "cases-verdicts.csv").read_text(encoding="utf-8"), encoding="utf-8"
    )
    for words in examples("judge drift"):
        result = command(*words)
        assert (result.returncode, result.stderr) == (0, "")


OWL = """
[[models]]
id = "owl"
name = "Owl"
endpoint = "pocket://local/v1"
model = "judge"
"""
RUN = ("judge", "run", "--judge", "owl", "--roster", "owl.toml", "--certificate", "judge.toml")


def test_a_run_says_what_its_licence_is_not_for_before_anything_is_asked(
    command: Command, licensed: Path
) -> None:
    folder = licensed.parent
    new_sqlite(folder)
    (folder / "owl.toml").write_text(OWL, encoding="utf-8")
    rows = [
        {"prompt": f"{i}?", "response_a": "Yes.", "response_b": "No.", "model_a": a, "model_b": b}
        for i, (a, b) in enumerate([("basalt", "flint"), ("flint", "slate"), ("quartz", "umber")])
    ]
    json_lines(folder / "cases.jsonl", rows)
    words = (*RUN, "--cases", "cases.jsonl", "--out", "run.csv")
    refused(command(*words, "--method", "pairwise"), "No verdict of this run", "the template")
    refused(command(*words, "--method", "checklist"), "is for pairs of responses", "'checklist'")
    assert not (folder / "run.csv").exists()

    text = licensed.read_text(encoding="utf-8")
    ours = published("pairwise").template.hash
    licensed.write_text(text.replace(BY["template"], ours), encoding="utf-8")
    done = command(*words, "--method", "pairwise", "--format", "json")
    assert done.returncode == 0, done.stderr
    sentence = (
        "1 verdict is not counted: the validation certificate does not pass the model 'basalt' "
        "(FAIL)."
    )
    assert sentence in done.stderr
    assert json.loads(done.stdout)["warnings"][0] == sentence

    over = re.sub(r"made = \S+\nuntil = \S+", "made = 2020-01-31\nuntil = 2020-07-31", text)
    licensed.write_text(over, encoding="utf-8")
    refused(command(*words, "--method", "pairwise"), "expired on 2020-07-31")
