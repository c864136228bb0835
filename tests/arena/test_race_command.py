"""`arena race`, as it is typed."""

import json
from pathlib import Path

import numpy as np

from tests.command import Command, refused
from tests.rating.raced import Field


def expit(x: float) -> float:
    return float(1 / (1 + np.exp(-x)))


ASKED = ("race", "votes.csv", "--between", "m0,m1")


def write(folder: Path, lead: float = 150, n: int = 1500) -> None:
    votes = Field(lead=lead, n_models=4).draw(n, 1)
    rows = [
        f"p{row},{votes.models[a]},{votes.models[b]},{'model_a' if score else 'model_b'},v{voter}"
        for row, (a, b, score, voter) in enumerate(
            zip(votes.a, votes.b, votes.score, votes.voter, strict=True)
        )
    ]
    head = "prompt_id,model_a,model_b,winner,voter"
    (folder / "votes.csv").write_text("\n".join([head, *rows]) + "\n", encoding="utf-8")


def write_verdicts(folder: Path, *, beyond: int) -> None:
    """Give a verdict on each vote of the file, and on so many battles of each pair beside.

    The latter are won as often as those of the votes.
    """
    rng = np.random.default_rng(2)
    lines = (folder / "votes.csv").read_text(encoding="utf-8").splitlines()[1:]
    battles = [line.split(",")[:4] for line in lines]
    rows = [
        f"{prompt},{a},{b},{winner},{expit(rng.normal(1 if winner == 'model_a' else -1, 1))}"
        for prompt, a, b, winner in battles
    ]
    for i in range(4):
        for j in range(i + 1, 4):
            pair = [row for row in battles if {row[1], row[2]} == {f"m{i}", f"m{j}"}]
            won = np.mean([(row[1] == f"m{i}") == (row[3] == "model_a") for row in pair])
            for more in range(beyond):
                signal = 1 if rng.random() < won else -1
                winner = "model_a" if signal > 0 else "model_b"
                rows.append(f"q{more}{i}{j},m{i},m{j},{winner},{expit(rng.normal(signal, 1))}")
    head = "prompt_id,model_a,model_b,winner,preference"
    (folder / "verdicts.csv").write_text("\n".join([head, *rows]) + "\n", encoding="utf-8")


def test_models_with_a_comma_are_named_one_by_one(command: Command, tmp_path: Path) -> None:
    write(tmp_path)
    votes = tmp_path / "votes.csv"
    votes.write_text(votes.read_text().replace("m0", '"m, 0"'))
    words = ("race", "votes.csv", "--format", "json", "--between", "m, 0", "--between", "m1")
    assert json.loads(command(*words).stdout)["between"] == ["m, 0", "m1"]


def test_a_terminal_says_who_is_ahead_and_up_to_the_budget_it_goes_on(
    command: Command, tmp_path: Path
) -> None:
    write(tmp_path)
    shown = " ".join(command(*ASKED).stdout.split())
    assert shown.startswith("m0 is ahead of m1 after")
    assert "separated, however often one looked (95%)" in shown
    whole = command(*ASKED, "--until", "budget", "--budget", "1000", "--format", "json")
    report = json.loads(whole.stdout)
    assert report["votes"] == 1000
    assert report["history"][-1]["votes"] == 1000


def test_a_judge_with_verdicts_beyond_the_votes_makes_the_lead_more_precise(
    command: Command, tmp_path: Path
) -> None:
    write(tmp_path)
    write_verdicts(tmp_path, beyond=400)
    words = (*ASKED, "--looks", "3", "--planned", "1200", "--until", "budget", "--format", "json")
    alone = json.loads(command(*words).stdout)
    helped = json.loads(command(*words, "--verdicts", "verdicts.csv").stdout)
    assert alone["judge_weight"] is None
    assert helped["judge_weight"] > 0.2
    widths = [row["interval"][1] - row["interval"][0] for row in (alone, helped)]
    assert widths[1] < 0.97 * widths[0]


def test_a_judge_that_saw_the_votes_alone_adds_nothing(command: Command, tmp_path: Path) -> None:
    """Its averages would be those of the very votes that they are to make precise."""
    write(tmp_path)
    write_verdicts(tmp_path, beyond=0)
    words = ("--looks", "1", "--verdicts", "verdicts.csv", "--format", "json")
    report = json.loads(command(*ASKED, *words).stdout)
    assert (report["judge_weight"], len(report["history"])) == (0.0, 1)


def test_the_looks_are_those_that_were_asked_for(command: Command, tmp_path: Path) -> None:
    write(tmp_path, lead=0, n=800)
    words = ("--until", "budget", "--format", "json")
    asked = ("--looks", "4", "--planned", "400", "--level", "0.9")
    report = json.loads(command(*ASKED, *asked, *words).stdout)
    assert (report["looks"], report["planned"], report["power"]) == (4, 400, 0.8)
    assert 0 < len(report["history"]) <= 4
    assert report["level"] == 0.9
    by_default = json.loads(command(*ASKED, *words).stdout)
    assert (by_default["looks"], by_default["planned"]) == ("any", 2000)


def test_what_makes_no_race_is_said_in_one_line(command: Command, tmp_path: Path) -> None:
    write(tmp_path, n=300)
    refused(command("race", "votes.csv", "--between", "m0"), "'m0'", "basalt,quartz")
    refused(command("race", "votes.csv", "--between", "m0,owl"), "'owl'")
    refused(command(*ASKED, "--judge", "owl"), "--verdicts")
    refused(command(*ASKED, "--budget", "0"), "--budget 0")
    refused(command(*ASKED, "--looks", "0"), "--looks must be any, or a number from 1 on, not 0")
    refused(command(*ASKED, "--planned", "0"), "--planned must be 1 vote or more, not 0")
