"""`arena cold-start`, as it is typed."""

import json
from pathlib import Path
from typing import Any

import numpy as np

from arena.boards.leaderboard import read_newcomers
from tests.command import Command, refused
from tests.judge.studies.newcomers import NEW, Planted

PLANTED = Planted(n_known=8, n_votes=800, n_verdicts=800, n_on_new=80, n_prompts=100, signal=2.5)
WINNERS = {1: "model_a", 0: "tie", -1: "model_b"}


def write(folder: Path, more: str = "preference") -> None:
    """Write a planted set as files, with a column of what the judge gave beside its verdicts."""
    data, _ = PLANTED.draw(1)
    items, people, verdicts = data.items, data.people, data.judges[0].verdicts
    sides = [",".join(items.models[model] for model in pair) for pair in items.pairs.tolist()]
    rows = [
        f"i{item},p{items.prompt[item]},{sides[item]},{WINNERS[label]},v{rater}"
        for item, rater, label in zip(people.item, people.rater, people.label, strict=True)
    ]
    head = "item_id,prompt_id,model_a,model_b,winner,voter"
    (folder / "votes.csv").write_text("\n".join([head, *rows]) + "\n", encoding="utf-8")
    odds = np.log(verdicts.probability / (1 - verdicts.probability))
    given = {
        "preference": [str(x) for x in verdicts.probability],
        "score_a,score_b": [f"{5 + x},5" for x in odds],
        "confidence": [str(x) for x in np.abs(odds)],
        "": [""] * verdicts.n,
    }[more]
    rows = [
        f"i{item},p{items.prompt[item]},{sides[item]},{WINNERS[label]},owl,{value}"
        for item, label, value in zip(verdicts.item, verdicts.label, given, strict=True)
    ]
    head = f"item_id,prompt_id,model_a,model_b,winner,judge,{more or 'note'}"
    (folder / "verdicts.csv").write_text("\n".join([head, *rows]) + "\n", encoding="utf-8")


ASKED = ("cold-start", "--votes", "votes.csv", "--verdicts", "verdicts.csv", "--model", NEW)


def test_the_json_has_the_keys_that_programs_read(command: Command, tmp_path: Path) -> None:
    write(tmp_path)
    report = json.loads(command(*ASKED, "--format", "json").stdout)
    assert {"rating", "lower", "upper", "by", "calibrated_on"} <= set(report)
    assert report["lower"] < report["rating"] < report["upper"]
    assert (report["by"], report["calibrated_on"], report["judge"]) == ("judge only", 8, "owl")
    assert json.loads(command(*ASKED, "--format", "json").stdout) == report
    file = tmp_path / "newcomer.json"
    file.write_text(json.dumps(report), encoding="utf-8")
    (shown,) = read_newcomers(file)
    assert (shown.model, shown.calibrated_on) == (NEW, 8), "the leaderboard reads it"
    assert shown.shift(_people(report)) == 0


def _people(report: dict[str, Any]) -> dict[str, float]:
    return {row["model"]: row["rating"] for row in report["board"] if row["by"] == "people"}


def test_what_a_judge_gives_beside_its_verdict_is_used(command: Command, tmp_path: Path) -> None:
    """Log-odds as a probability, a gap of marks and a confidence are one signal."""
    ratings, signals = [], []
    for more in ("preference", "score_a,score_b", "confidence", ""):
        write(tmp_path, more)
        report = json.loads(command(*ASKED, "--format", "json").stdout)
        ratings.append(report["rating"])
        signals.append(report["signal"])
    assert signals == ["probabilities", "marks", "confidence", "verdicts"]
    assert max(ratings[:3]) - min(ratings[:3]) < 1
    assert abs(ratings[3] - ratings[0]) < 100


def test_an_interval_from_the_judge_alone_takes_eight_known_models_unless_said_otherwise(
    command: Command, tmp_path: Path
) -> None:
    write(tmp_path)
    seven = command(*ASKED, "--anchors", "m00,m01,m02,m03,m04,m05,m06", COLUMNS="120").stdout
    assert "No interval from the judge alone: 7 known models, 8 needed" in " ".join(seven.split())
    asked = command(*ASKED, "--anchors", "m0[0-6]", "--fewest-known", "7", COLUMNS="120").stdout
    assert "No interval" not in asked


def test_what_cannot_be_rated_is_said_in_one_line(command: Command, tmp_path: Path) -> None:
    write(tmp_path)
    refused(command(*ASKED[:-1], "elsewhere"), "'elsewhere'")
    refused(command(*ASKED, "--judge", "crow"), "'crow'", "owl")
    refused(command(*ASKED, "--level", "2"), "--level 2")
    few = command(*ASKED, "--anchors", "m00,m01")
    assert few.returncode == 3
    assert "Not enough known models" in few.stderr


def test_a_negative_confidence_is_quoted(command: Command, tmp_path: Path) -> None:
    write(tmp_path, "confidence")
    file = tmp_path / "verdicts.csv"
    text = file.read_text(encoding="utf-8").splitlines()
    text[1] = text[1].rpartition(",")[0] + ",-3"
    file.write_text("\n".join(text) + "\n", encoding="utf-8")
    refused(command(*ASKED), "-3")
