"""Several files, folders and patterns, some of their rows and other labels, on each command."""

import json
import os
import shlex
import subprocess
from pathlib import Path
from typing import Any

import pytest

import judge
import rating
from tests.command import Command, refused

HEAD = "item,left,right,choice,who,language"
SIDES = {"1": "model_a", "2": "model_b", "-": "tie"}
MODELS = ("basalt", "flint", "quartz")
ROLES = "model_a=left model_b=right winner=choice voter=who prompt=item"
COLUMNS = [word for role in ROLES.split() for word in ("--column", role)]
LABELS = [word for theirs, ours in SIDES.items() for word in ("--label", f"{theirs}={ours}")]
ENGLISH = ["--where", "language = 'en'"]
DATABASE = "sqlite:///arena.db"


def rows(n: int = 96) -> list[list[str]]:
    pairs = [(a, b) for a in MODELS for b in MODELS if a != b]
    return [
        [f"p{i // 6}", *pairs[i % 6], "12-"[(i // 7) % 3], f"v{i % 8}", ("en", "fi")[i % 5 == 0]]
        for i in range(n)
    ]


def write(path: Path, head: str, lines: list[list[str]]) -> None:
    path.parent.mkdir(exist_ok=True)
    path.write_text("\n".join([head, *map(",".join, lines)]) + "\n", encoding="utf-8")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Votes under names of theirs, in three files; and those in English, in ours, in one."""
    every = rows()
    for name, part in (("a", every[:30]), ("b", every[30:31]), ("c", every[31:])):
        write(tmp_path / "votes" / f"{name}.csv", HEAD, part)
    ours = "prompt_id,model_a,model_b,winner,voter,language"
    english = [[*row[:3], SIDES[row[3]], *row[4:]] for row in every if row[5] == "en"]
    write(tmp_path / "ours.csv", ours, english)
    verdicts = [[*row, "owl", row[4]] for row in english]
    for name, part in (("1", verdicts[:40]), ("2", verdicts[40:])):
        write(tmp_path / "verdicts" / f"{name}.csv", f"{ours},judge,turn", part)
    return tmp_path


def test_the_command_that_an_unknown_layout_is_answered_with_reads_it(
    command: Command, folder: Path
) -> None:
    first = command("rate", str(folder / "votes"), *ENGLISH)
    refused(first, "layout", "is not known")
    words = shlex.split(first.stderr.splitlines()[-1])
    assert words[:2] == ["arena", "rate"]
    again, _ = asked(command, *words[1:])
    ours, _ = asked(command, "rate", str(folder / "ours.csv"))
    assert again["votes"] == ours["votes"]


def asked(command: Command, *words: str) -> tuple[dict[str, Any], list[str]]:
    result = command(*words, "--format", "json")
    assert result.returncode == 0, result.stderr
    return json.loads(result.stdout), result.stderr.splitlines()


@pytest.mark.parametrize(
    "sources", [["votes"], ["votes/*.csv"], ["votes/a.csv", "votes/b.csv", "votes/c.csv"]]
)
def test_votes_of_others_are_rated_as_ours_are(
    sources: list[str], folder: Path, command: Command
) -> None:
    theirs, words = asked(command, "rate", *sources, *COLUMNS, *LABELS, *ENGLISH)
    ours, silence = asked(command, "rate", "ours.csv")
    assert theirs["method"]["data_hash"] == ours["method"]["data_hash"]
    assert theirs["ratings"] == ours["ratings"]
    name = sources[0] if len(sources) == 1 else "votes/a.csv and 2 more"
    words_of = f"arena: {name} (3 files) is read as votes; rows excluded: 20 by where"
    assert (words, silence) == ([words_of], [])


@pytest.mark.slow
def test_plan_voters_and_the_audit_of_a_board_take_the_same(
    folder: Path, command: Command
) -> None:
    chosen = [*COLUMNS, *LABELS, *ENGLISH]
    for *words, option, value in (
        ["plan", "--level", "0.9"],
        ["voters", "--least", "5"],
        ["probe", "board", "--arenas", "20"],
    ):
        theirs, _ = asked(command, *words, "votes", option, value, *chosen)
        assert theirs == asked(command, *words, "ours.csv", option, value)[0]
    weighted = ["--weighted", "w.csv"]
    assert command("voters", "votes", *COLUMNS, *LABELS, *ENGLISH, *weighted).returncode == 0
    lines = (folder / "w.csv").read_text().splitlines()
    assert (lines[0], len(lines)) == (f"{HEAD},voter_weight,voter_reason", 77)
    into = ["--weighted", "votes/b.csv"]
    result = command("voters", "votes", *COLUMNS, *LABELS, *into)
    assert result.returncode == 2
    assert "'votes' cannot be read and written at once" in result.stderr


def test_pictures_and_groups_are_of_all_files(folder: Path, command: Command) -> None:
    drawn = ["--by", "language", "--plots", "pictures"]
    board, _ = asked(command, "rate", "votes", *COLUMNS, *LABELS, *drawn)
    assert sum(one["votes"]["used"] for one in board["groups"].values()) == 96
    assert sorted(path.name for path in (folder / "pictures").iterdir()) == ["en", "fi"]


def test_scores_and_a_study_take_the_same(folder: Path, command: Command) -> None:
    score = ["--method", "pairwise"]
    theirs, _ = asked(command, "judge", "score", "votes", *score, *COLUMNS, *LABELS, *ENGLISH)
    assert theirs == asked(command, "judge", "score", "ours.csv", *score)[0]
    options = ["--rounds", "100"]
    ours, _ = asked(command, "study", "judge", "ours.csv", "verdicts", *options)
    chosen = [*COLUMNS[6:], *ENGLISH]  # the verdicts are under our names, and in English
    head = HEAD.replace("item,left,right,choice", "item,model_a,model_b,winner")
    write(folder / "votes.csv", head, rows())
    line = ("study", "judge", "votes.csv", "verdicts", *options, *chosen, *LABELS)
    study, words = asked(command, *line)
    assert study == ours
    assert words == [
        "arena: votes.csv is read as votes; rows excluded: 20 by where",
        "arena: verdicts (2 files) is read as verdicts; rows excluded: 0 by where",
    ]
    made = command(*line, "--format", "md")
    assert "'--where=language = '" in made.stdout
    assert "--column=person=who" in made.stdout
    again = ("study", "judge", "votes.csv", "verdicts", *LABELS)
    refused(command(*again, "--column", "judge=nobody"), "no column 'nobody'")
    refused(command(*again, "--where", "nobody = 1"), "nobody = 1", "not found")


def test_each_word_of_a_probe_is_a_run(folder: Path, command: Command) -> None:
    write(folder / "again.csv", *_verdicts(folder))
    card, _ = asked(command, "probe", "judge", "verdicts", "again.csv")
    assert card["about"]["files"] == ["verdicts", "again.csv"]
    assert card["about"]["judges"]["owl"]["runs"] == ["verdicts", "again.csv"]


def _verdicts(folder: Path) -> tuple[str, list[list[str]]]:
    parts = [(folder / "verdicts" / f"{n}.csv").read_text().splitlines() for n in (1, 2)]
    return parts[0][0], [line.split(",") for part in parts for line in part[1:]]


def test_cases_are_read_from_folders_and_chosen(folder: Path, command: Command) -> None:
    cases = [[f"q{i}", "Why?", f"Because {i}.", "No.", "x", "y", str(i % 2)] for i in range(6)]
    head = "prompt_id,question,response_a,response_b,model_a,model_b,turn"
    for name, part in (("1.csv", cases[:2]), ("2.csv", cases[2:])):
        write(folder / "cases" / name, head, part)
    result = command(
        "judge", "run", "--method", "pairwise", "--judge", "pocket-judge", "--cases", "cases",
        "--column", "prompt=question", "--where", "turn = '1'", "--dry-run",
    )  # fmt: skip
    assert result.returncode == 0, result.stderr
    assert result.stdout.startswith("6 calls")
    assert "cases (2 files) is read as cases; rows excluded: 3 by where" in result.stderr


def test_from_python_several_files_are_one(folder: Path) -> None:
    paths = sorted((folder / "verdicts").iterdir())
    whole = rating.read_votes(folder / "ours.csv").data_hash
    assert rating.read_votes(paths).data_hash == whole
    assert rating.read_votes(f"{folder}/verdicts/*.csv").data_hash == whole
    study, same = (
        judge.study(folder / "ours.csv", source, rounds=100)
        for source in (paths, folder / "verdicts")
    )
    assert study.to_dict() == same.to_dict()
    head = "prompt,response_a,response_b"
    for n in (1, 2):
        write(folder / "pairs" / f"{n}.csv", head, [["Why?", f"a {n}", "b"]])
    cases = judge.read_cases(folder / "pairs")
    assert [one.case.response_a for one in cases] == ["a 1", "a 2"]
    assert judge.read_cases([*(folder / "pairs").iterdir()]) != []


@pytest.mark.parametrize(
    ("words", "quoted"),
    [
        (["--where", "nope = 1"], ["nope = 1", "not found"]),
        (["--label", "left"], ["'left'", "THEIRS=OURS"]),
        (
            ["--label", "1=tie", "--label", "1=model_a"],
            ["'1' has two values, 'tie' and 'model_a'"],
        ),
        (["verdicts"], ["lacks 'item'", "unlike 'votes/a.csv'"]),
        ([DATABASE], [DATABASE, "from no other source", "arena export votes"]),
    ],
)
def test_what_cannot_be_read_together_is_refused_in_a_line(
    words: list[str], quoted: list[str], folder: Path, command: Command
) -> None:
    refused(command("rate", "votes", *words), *quoted)


def test_a_printed_command_runs_whatever_the_names_of_its_file_and_columns_hold(
    folder: Path, command: Command
) -> None:
    lines = [["x", "y", "left"], ["y", "x", "right"], ["y", "x", "left"]]
    write(folder / "-dash.csv", "a model\x1b[31m,b model's,choice\u202e", lines)
    refusal = command("rate", "--interval", "none", "--", "-dash.csv")
    assert refusal.returncode == 2
    line = refusal.stderr.splitlines()[-1].strip()
    assert "\x1b" not in line
    script = f"printf '%s\\0' {line.removeprefix('arena ')}"
    shell = {"LC_ALL": "C.UTF-8", "PATH": os.environ["PATH"]}
    words = subprocess.run(["bash", "-c", script], capture_output=True, check=True, env=shell)
    made = command(*words.stdout.decode().split("\0")[:-1])
    assert made.returncode == 0, made.stderr
