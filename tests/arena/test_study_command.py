"""`arena study judge`, as it is typed: the shape of what it says, key by key, and the figures."""

import csv
import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.command import Command, examples, refused, unexplained
from tests.sqlite import new_sqlite

SEED = 11
KEYS = [
    "verdict", "reasons", "biased_models", "reference", "decides_at", "favouritism",
    "first_answer", "agreement", "human_agreement", "ceiling", "kappa", "human_kappa", "alpha",
    "ac1", "outcomes", "tie_thresholds", "preferred", "rank_correlation", "separability",
    "system_ranking", "alternative", "bias", "moderation", "ppi", "groups", "n_unread",
    "warnings",
]  # fmt: skip
OF_ONE = [*KEYS, "parts"]
ENDS = ["value", "lower", "upper"]
GAIN = [f"effective_sample_gain{end}" for end in ("", "_lower", "_upper")]
MODELS = ("basalt", "flint", "quartz", "slate", "umber")
PAIRS = [(a, b) for a in range(5) for b in range(a)]
SIDES = ("model_a", "tie", "model_b")
Row = Sequence[object]


def written(path: Path, head: str, rows: Sequence[Row]) -> Path:
    lines = [head, *(",".join(map(str, row)) for row in rows)]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


class Arena:
    """People who mostly see which answer is better, and judges of several kinds."""

    def __init__(self, folder: Path, *, prompts: int = 60) -> None:
        self.folder = folder
        self.rng = np.random.default_rng(SEED)
        self.items: list[tuple[str, str, str, float, int, int]] = []
        for number in range(prompts):
            for pair in self.rng.choice(len(PAIRS), 3, replace=False).tolist():
                a, b = PAIRS[pair]
                lengths = self.rng.integers(50, 900, 2).tolist()
                better = 1.2 * float(a - b) / 2 + float(self.rng.normal(0, 1))
                self.items.append((f"p{number}", MODELS[a], MODELS[b], better, *lengths))

    def votes(self, *, each: int = 3) -> None:
        rows = [
            (
                *item[:3],
                self.say(item[3], 0.8),
                f"v{k}",
                "short" if item[0] < "p3" else "long",
                *item[4:],
            )
            for item in self.items
            for k in range(each)
        ]
        head = "prompt_id,model_a,model_b,winner,voter,category,len_a,len_b"
        written(self.folder / "votes.csv", head, rows)

    def say(self, better: float, noise: float) -> str:
        felt = better + float(self.rng.normal(0, noise))
        return SIDES[1] if abs(felt) < 0.25 else SIDES[0] if felt > 0 else SIDES[2]

    def verdicts(self, **judges: str) -> None:
        rows = [
            (*item[:3], self.verdict(kind, item), name, order)
            for name, kind in judges.items()
            for item in self.items
            for order in ("ab", "ba")
        ]
        head = "prompt_id,model_a,model_b,winner,judge,order"
        written(self.folder / "verdicts.csv", head, rows)

    def verdict(self, kind: str, item: tuple[str, str, str, float, int, int]) -> str:
        better, long_a, long_b = item[3:]
        match kind:
            case "longest":
                return SIDES[0] if long_a > long_b else SIDES[2] if long_a < long_b else SIDES[1]
            case "perfect":
                return SIDES[1] if abs(better) < 0.25 else SIDES[0] if better > 0 else SIDES[2]
        return self.say(better, 0.8)


@pytest.fixture
def arena(tmp_path: Path) -> Arena:
    arena = Arena(tmp_path)
    arena.votes()
    arena.verdicts(owl="good")
    return arena


def study(command: Command, *words: str) -> dict[str, Any]:
    result = command("study", "judge", "votes.csv", "verdicts.csv", "--format", "json", *words)
    assert (result.returncode, result.stderr) == (0, "")
    report: dict[str, Any] = json.loads(result.stdout)
    return report


def declining(arena: Arena) -> dict[str, set[str]]:
    """Let one model decline half of what it is asked; gives its prompts by whether it does."""
    prompts = {item[0] for item in arena.items}
    refused = {prompt for prompt in prompts if int(prompt[1:]) % 2}
    rows = [
        (
            prompt,
            model,
            "I cannot help with that." if model == "umber" and prompt in refused else "Here.",
        )
        for prompt in sorted(prompts)
        for model in MODELS
    ]
    written(arena.folder / "outputs.csv", "prompt_id,model,output", rows)
    return {"umber": refused}


def test_refusals_are_read_from_outputs_or_from_columns(command: Command, arena: Arena) -> None:
    refused = declining(arena)
    by_texts = study(command, "--rounds", "200", "--outputs", "outputs.csv")
    assert by_texts["moderation"]["people"]["n"] > 0
    assert list(by_texts["bias"]["refusal"]) == ["people", "judge", "difference"]
    head, *lines = (arena.folder / "votes.csv").read_text(encoding="utf-8").splitlines()
    rows = [line.split(",") for line in lines]
    each = [
        [*row, *(int(row[0] in refused.get(row[1 + side], ())) for side in (0, 1))] for row in rows
    ]
    written(arena.folder / "votes.csv", f"{head},refused_a,refused_b", each)
    by_columns = study(command, "--rounds", "200")
    assert by_columns["moderation"] == by_texts["moderation"]
    written(
        arena.folder / "votes.csv", f"{head},refused_a,refused_b", [[*row, 2, 0] for row in rows]
    )
    refused_run = command("study", "judge", "votes.csv", "verdicts.csv")
    assert refused_run.returncode == 2
    assert "refused_a and refused_b" in refused_run.stderr


def test_the_json_has_the_shape_that_is_promised(command: Command, arena: Arena) -> None:
    report = study(command, "--rounds", "200")
    assert list(report) == OF_ONE
    for rate in (*report["agreement"].values(), *report["human_agreement"].values()):
        assert 0 <= rate["lower"] <= rate["rate"] <= rate["upper"] <= 1
    for name in ("ceiling", "kappa", "human_kappa", "alpha", "ac1"):
        assert report[name]["lower"] <= report[name]["value"] <= report[name]["upper"]
    tested = ["winning_rate", "advantage", "margin", "people_tested", "coin", "longest"]
    tested += ["items_per_person", "person", "person_passed", "majority", "decides_at"]
    assert list(report["alternative"]) == tested
    assert report["decides_at"] == report["alternative"]["decides_at"] > 0
    reference = {"person": ("person", "person_passed"), "majority": ("majority", "majority")}
    for name, (rate, passed) in reference.items():
        assert report["reference"][name] == {
            "winning_rate": report["alternative"][rate],
            "passed": report["alternative"][passed],
        }
    assert report["verdict"] in ("yes", "no", "inconclusive")
    assert report["reasons"] == report["first_answer"]["reasons"]
    assert (report["alternative"]["margin"], report["alternative"]["people_tested"]) == (0.1, 3)
    # All items have votes: the judge adds nothing, and its gain is 1 without an interval.
    assert [report["ppi"][name] for name in GAIN] == [1, None, None]
    assert (report["groups"], report["n_unread"]) == ({}, 0)


def test_ratings_with_the_judges_help_say_what_their_intervals_rest_on(
    command: Command, arena: Arena
) -> None:
    """Three voters; then votes without a voter; then votes on three prompts of sixty."""
    known = study(command, "--rounds", "100")
    assert any("sample size is 3.0 voters" in text for text in known["warnings"])
    assert not any("do not name their voters" in text for text in known["warnings"])
    votes = arena.folder / "votes.csv"
    rows = votes.read_text(encoding="utf-8")
    votes.write_text(re.sub(r",v\d,", ",,", rows), encoding="utf-8")
    unknown = study(command, "--rounds", "100")
    assert any("do not name their voters" in text for text in unknown["warnings"])
    freedom = [[row["df"] for row in one["ppi"]["ratings"]] for one in (known, unknown)]
    assert max(freedom[0]) < min(freedom[1])
    rest = [row for row in rows.splitlines() if row.startswith(("prompt", "p1,", "p2,", "p3,"))]
    votes.write_text("\n".join(rest) + "\n", encoding="utf-8")
    few = study(command, "--rounds", "100")
    assert few["ppi"] == {"ratings": None, **dict.fromkeys(GAIN)}
    assert any("The votes are on 3 prompts: " in text for text in few["warnings"])


def test_counts_are_those_of_the_files(command: Command, arena: Arena) -> None:
    report = study(command, "--rounds", "100")
    assert report["agreement"]["with_ties"]["n"] == 180 * 3 * 2
    assert report["human_agreement"]["with_ties"]["n"] == 180 * 3
    assert report["alpha"]["n"] == 180


def test_what_the_data_cannot_give_is_null_with_a_warning(
    command: Command, tmp_path: Path
) -> None:
    head = "prompt_id,model_a,model_b,winner"
    written(
        tmp_path / "votes.csv", head, [("p1", "x", "y", "model_a"), ("p2", "x", "y", "model_a")]
    )
    written(tmp_path / "verdicts.csv", head, [("p1", "x", "y", "model_a"), ("p2", "y", "x", "")])
    report = study(command)
    assert report["n_unread"] == 1
    assert report["agreement"]["with_ties"] == pytest.approx(
        {"rate": 1, "lower": 0.025, "upper": 1, "n": 1}
    )
    assert report["alternative"] is None
    assert report["first_answer"]["verdict"] == "cannot_tell"
    assert (report["verdict"], report["biased_models"]) == ("inconclusive", [])
    assert report["reference"] == {"person": None, "majority": None}
    assert report["decides_at"] is None
    assert report["favouritism"] == {"models": [], "reversed_pairs": []}
    nothing = dict.fromkeys(("rate", "lower", "upper")) | {"n": 0}
    assert report["human_agreement"]["with_ties"] == nothing
    for name in ("ceiling", "human_kappa", "alpha", "ac1"):
        assert report[name]["value"] is None
    assert report["kappa"]["value"] == 1
    assert report["bias"] == dict.fromkeys(["position", "length", "format", "refusal", "self"])
    assert report["ppi"] == {"ratings": None, **dict.fromkeys(GAIN)}
    assert report["rank_correlation"]["kendall"] == dict.fromkeys(ENDS)
    message = " ".join(report["warnings"])
    kinds = [f"bias of {kind}" for kind in report["bias"]]
    whole = ("human_agreement", "ceiling", "alpha", "ac1", "alternative", "rank_correlation")
    for figure in (*whole, *kinds):
        assert f"Not estimated: {figure}" in message
    for part in ("Boards:", "Prediction-powered ratings:", "1 of 2 verdicts"):
        assert part in message


def test_groups_have_the_same_figures_apart(command: Command, arena: Arena) -> None:
    report = study(command, "--by", "category", "--rounds", "100")
    assert list(report["groups"]) == ["long", "short"]
    parts = [report["groups"][name]["agreement"]["with_ties"]["n"] for name in report["groups"]]
    assert sum(parts) == report["agreement"]["with_ties"]["n"]
    assert list(report["groups"]["long"]) == KEYS


def test_the_majority_is_one_vote_an_item(command: Command, arena: Arena) -> None:
    report = study(command, "--pairs", "majority", "--raters", "expert", "--rounds", "100")
    assert report["alternative"]["margin"] == 0.2
    assert report["agreement"]["with_ties"]["n"] == 180 * 2
    assert report["human_agreement"]["with_ties"]["n"] == 180 * 3


def test_the_same_seed_gives_the_same_figures(command: Command, arena: Arena) -> None:
    first, again = (study(command, "--rounds", "100", "--seed", "3") for _ in range(2))
    assert first == again
    assert first["agreement"] != study(command, "--rounds", "100", "--seed", "4")["agreement"]


def test_the_examples_run(command: Command, arena: Arena) -> None:
    in_json, table = [command(*words, COLUMNS="160") for words in examples("study judge")]
    assert (table.returncode, table.stderr) == (0, "")
    assert "Two people" in table.stdout
    assert "Longest answer" in table.stdout
    assert "Winning rate of the judge" in table.stdout
    assert json.loads(in_json.stdout)["groups"].keys() == {"long", "short"}
    assert "The validation certificate is judge.toml." in table.stdout


def test_a_judge_that_copies_the_longest_answer_is_exposed_first(
    command: Command, arena: Arena
) -> None:
    arena.verdicts(owl="longest")
    words = ("study", "judge", "votes.csv", "verdicts.csv", "--rounds", "200")
    result = command(*words, COLUMNS="200")
    first, second, *_ = result.stdout.splitlines()
    assert first == "owl: No. The judge does no better than choosing the longer answer."
    assert second.startswith("100% of its verdicts equal choosing the longer answer")
    page = command(*words, "--format", "md").stdout
    assert "## owl: No. The judge does no better than choosing the longer answer." in page[:600]
    assert f"```\narena {' '.join(words)} --format md\n```" in page
    assert "rated by both" in page.split("# Limits")[1], "a report lists every warning"


def test_the_report_is_written_in_every_form(command: Command, arena: Arena) -> None:
    words = ("study", "judge", "votes.csv", "verdicts.csv", "--rounds", "100")
    result = command(*words, "--out", "found/deep")
    assert (result.returncode, result.stderr) == (0, "")
    assert result.stdout == "The report is found/deep/report.html.\n"
    folder = arena.folder / "found" / "deep"
    ends = {path.suffix for path in folder.iterdir()}
    assert ends == {".html", ".md", ".tex", ".json", ".parquet"}
    assert "--rounds 100 --out found/deep\n```" in (folder / "report.md").read_text()
    assert list(json.loads((folder / "report.json").read_text())) == OF_ONE


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--format", "csv"], '"csv" for --format'),
        (["--pairs", "most"], '"most" for --pairs'),
        (["--raters", "guests"], '"guests" for --raters'),
        (["--by", "colour"], "There is no column 'colour'"),
        (["--voters", "expert_*"], "matches 'expert_*'"),
        (["--level", "1"], "--level 1 is no level"),
        (["--rounds", "1"], "--rounds 1 is too few"),
        (["--rounds", "199", "--level", "0.99"], "give 200 or more"),
        (["--out", "votes.csv"], "it is a file"),
        (["--outputs", "votes.csv"], "holds no response"),
        (["--outputs", "nowhere.csv"], "there is no such file"),
    ],
)
def test_what_cannot_be_used_is_told_in_a_line(
    command: Command, arena: Arena, words: list[str], message: str
) -> None:
    refused(command("study", "judge", "votes.csv", "verdicts.csv", *words), message)


def test_a_file_that_is_not_there_is_told_in_a_line(command: Command, arena: Arena) -> None:
    refused(command("study", "judge", "votes.csv", "none.csv"), "'none.csv'")
    refused(command("study", "judge", "sqlite:///none.db", "verdicts.csv"), "No database")


def test_every_key_is_explained() -> None:
    assert unexplained("Studies of judges", OF_ONE) == []


@pytest.mark.parametrize(
    ("ids", "people", "by"),
    [
        ([], 0, "prompt text and pair"),
        (["question_id", "voter"], 0, "prompt text and pair"),
        (["item_id", "voter"], 3, "item_id of votes, battle_id of verdicts and pair"),
    ],
)
def test_a_judge_s_run_on_the_votes_joins_them(
    command: Command, ids: list[str], people: int, by: str
) -> None:
    new_sqlite(command.folder)
    head = ("prompt", "response_a", "response_b", "model_a", "model_b", "winner", *ids)
    rows: list[Row] = [
        (f"{n // 3} + {n}?", n, f"{n},\nthat is {n}", "x", "y", SIDES[n % 3], *[n] * len(ids))
        for n in range(24)
    ]
    for name, first in (("cases.csv", 0), ("votes.csv", people)):
        with (command.folder / name).open("w", encoding="utf-8", newline="") as file:
            csv.writer(file).writerows(row[first:] for row in (head, *rows))
    run = ("judge", "run", "--method", "pairwise", "--judge", "pocket-judge")
    assert command(*run, "--cases", "cases.csv", "--out", "verdicts.csv").returncode == 0
    report = study(command, "--rounds", "100")
    assert report["agreement"]["with_ties"]["n"] == 24
    assert any(f"matched by {by}." in note for note in report["warnings"])
