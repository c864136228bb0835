"""`arena study judges`, as it is typed: one row per judge, best first, and figures by hand."""

import csv
import json
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pytest

from tests.command import Command, examples

KEYS = [
    "judge", "verdict", "agreement", "agreement_with_ties", "human_agreement",
    "human_agreement_with_ties", "kappa", "human_kappa", "kendall", "consistency",
    "people_prefer_longer", "prefers_longer", "people_prefer_lists", "prefers_lists",
    "rerun_variance",
    "own_model_bias", "own_model", "unparsed", "usd_per_thousand", "seconds_per_thousand",
    "items", "why",
]  # fmt: skip
MODELS = ("flint", "owl-2", "quartz", "umber")
SIDES = {1: "model_a", 0: "tie", -1: "model_b"}
WITH_LIST = "- one\n- two"
HEAD = "prompt_id,model_a,model_b,winner,judge,order,run,cost,latency,response_a,response_b"
Row = dict[str, Any]


@pytest.fixture
def arena(command: Command) -> Command:
    written(command.folder)
    return command


def written(folder: Path, n: int = 120) -> None:
    """Write votes of five people, and verdicts: owl is right in 9 of 10 cases, crow in 6.

    Owl is asked twice in each order; crow prefers lists, and every tenth verdict is unparsed.
    """
    rng = np.random.default_rng(5)
    votes, verdicts = [], []
    for k in range(n):
        a, b = (MODELS[i] for i in rng.choice(4, 2, replace=False))
        better, with_list = rng.choice([-1, 1], 2).tolist()
        answers = [WITH_LIST if side == with_list else "A plain answer." for side in (1, -1)]
        for who in rng.choice(5, 3, replace=False):
            side = better if rng.random() < 0.8 else -better
            votes.append([f"p{k}", a, b, SIDES[side], f"v{who}"])
        for order in ("ab", "ba"):
            for run in ("1", "2"):
                side = better if rng.random() < 0.9 else -better
                spent = [order, run, "0.002", "1.5", *answers]
                verdicts.append([f"p{k}", a, b, SIDES[side], "owl", *spent])
            side = with_list if rng.random() < 0.7 else better
            winner = "" if k % 10 == 0 else SIDES[side]
            verdicts.append([f"p{k}", a, b, winner, "crow", order, "1", "", "", *answers])
    for name, head, rows in (
        ("votes.csv", "prompt_id,model_a,model_b,winner,voter", votes),
        ("verdicts.csv", HEAD, verdicts),
    ):
        with (folder / name).open("w", encoding="utf-8", newline="") as file:
            csv.writer(file).writerows([head.split(","), *rows])


def board(arena: Command, *words: str) -> list[Row]:
    files = ("votes.csv", "verdicts.csv")
    result = arena("study", "judges", *files, "--rounds", "100", "--format", "json", *words)
    assert (result.returncode, result.stderr) == (0, "")
    rows: list[Row] = json.loads(result.stdout)["judges"]
    return rows


def of(folder: Path, judge: str) -> list[Row]:
    with (folder / "verdicts.csv").open(encoding="utf-8", newline="") as file:
        return [row for row in csv.DictReader(file) if row["judge"] == judge]


def test_the_judge_that_agrees_most_comes_first_with_every_figure(
    arena: Command, tmp_path: Path
) -> None:
    owl, crow = board(arena)
    assert [list(row) for row in (owl, crow)] == [KEYS, KEYS]
    assert (owl["judge"], crow["judge"]) == ("owl", "crow")
    assert owl["agreement"]["lower"] > crow["agreement"]["value"]
    assert owl["kappa"]["value"] > crow["kappa"]["value"]
    spent = (owl["usd_per_thousand"], owl["seconds_per_thousand"])
    assert spent == pytest.approx((8.0, 6000.0))
    assert crow["usd_per_thousand"] is crow["seconds_per_thousand"] is None
    assert (owl["unparsed"], crow["unparsed"]) == (0.0, pytest.approx(0.1))
    assert owl["own_model"] == "owl-2"
    assert crow["rerun_variance"] is None
    assert owl["kendall"]["lower"] <= owl["kendall"]["value"] <= owl["kendall"]["upper"]


def test_shares_are_those_of_counting_by_hand(arena: Command, tmp_path: Path) -> None:
    owl, crow = board(arena)
    read = [row for row in of(tmp_path, "crow") if row["winner"]]
    to_list = [
        (row["winner"] == "model_a") == (row["response_a"] == WITH_LIST)
        for row in read  # one of the two answers is a list, and the shorter one
    ]
    assert crow["prefers_lists"]["value"] == pytest.approx(np.mean(to_list))
    assert crow["prefers_longer"]["value"] == pytest.approx(1 - np.mean(to_list))
    assert crow["prefers_lists"]["n"] == len(read)
    by_cell = {
        (row["prompt_id"], row["order"], row["run"]): row["winner"] for row in of(tmp_path, "owl")
    }
    cells = {key[:2] for key in by_cell}
    changed = [by_cell[*cell, "1"] != by_cell[*cell, "2"] for cell in cells]
    assert owl["rerun_variance"]["value"] == pytest.approx(np.mean(changed) / 2)
    assert owl["rerun_variance"]["n"] == len(cells)
    alike = [
        by_cell[prompt, "ab", one] == by_cell[prompt, "ba", other]
        for prompt in {key[0] for key in by_cell}
        for one in "12"
        for other in "12"
    ]
    assert owl["consistency"]["value"] == pytest.approx(np.mean(alike))


def add(folder: Path, judge: str, **other: str) -> None:
    """Add a judge that says what crow says, with other cells."""
    rows = [row | {"judge": judge} | other for row in of(folder, "crow")]
    with (folder / "verdicts.csv").open("a", encoding="utf-8", newline="") as file:
        csv.DictWriter(file, HEAD.split(",")).writerows(rows)


def test_a_judge_that_ties_nearly_always_is_last_and_other_orders_are_warned_of(
    arena: Command, tmp_path: Path
) -> None:
    add(tmp_path, "timid", winner="tie", order="both")
    with (tmp_path / "verdicts.csv").open("a", encoding="utf-8", newline="") as file:
        right = [row | {"judge": "timid", "order": "both"} for row in of(tmp_path, "owl")[:8:4]]
        csv.DictWriter(file, HEAD.split(",")).writerows(right)
    words = ("study", "judges", "votes.csv", "verdicts.csv", "--rounds", "100")
    result = json.loads(arena(*words, "--format", "json").stdout)
    assert [row["judge"] for row in result["judges"]] == ["owl", "crow", "timid"]
    timid = result["judges"][-1]
    assert timid["verdict"] == "inconclusive"
    assert "With ties as a third answer, judge and person agree in" in timid["why"]
    assert result["warnings"][0] == (
        "Verdicts in single orders (crow, owl) and combined ones, in which opposite verdicts are "
        "ties (timid), are not comparable."
    )
    own = [text.startswith("crow: ") for text in result["warnings"]]
    assert own[1], "what concerns one judge comes before what concerns all"
    assert f"n = {timid['agreement']['n']}" in arena(*words, "--format", "md").stdout


@pytest.mark.parametrize(
    ("cells", "why", "unparsed", "items"),
    [
        ({"winner": ""}, "no verdict could be read: 240 of 240", 1.0, 120),
        ({"prompt_id": "else"}, "no parsed verdict is on an item with votes: 0 of 216", 0.1, 6),
    ],
)
def test_a_judge_without_figures_is_the_last_row_and_the_others_are_ranked(
    arena: Command, tmp_path: Path, cells: dict[str, str], why: str, unparsed: float, items: int
) -> None:
    ranked = board(arena)
    add(tmp_path, "ant", cost="0.002", latency="1.5", **cells)
    words = ("votes.csv", "verdicts.csv", "--rounds", "100")
    result = json.loads(arena("study", "judges", *words, "--format", "json").stdout)
    *others, last = result["judges"]
    assert others == ranked
    known = {"judge": "ant", "unparsed": unparsed, "items": 0, "why": why}
    spent = {"usd_per_thousand": 480 / items, "seconds_per_thousand": 360_000 / items}
    assert last == pytest.approx(dict.fromkeys(KEYS) | known | spent)
    assert result["warnings"][0] == f"ant: {why}."
    study = json.loads(arena("study", "judge", *words, "--format", "json").stdout)
    assert study["leaderboard"] == result["judges"]
    assert [*study["judges"]] == ["crow", "owl"]
    agreement = study["judges"]["owl"]["agreement"]["without_ties"]
    assert agreement["rate"] == ranked[0]["agreement"]["value"]
    shown = arena("study", "judges", *words, COLUMNS="200").stdout
    assert shown.index("crow") < shown.index("ant") < shown.index("Two people")
    assert why.split(":")[0][:20] in shown


def test_where_no_judge_has_a_verdict_the_error_says_so(arena: Command, tmp_path: Path) -> None:
    file = tmp_path / "verdicts.csv"
    add(tmp_path, "ant", winner="")
    rows = [",".join(row.values()) for row in of(tmp_path, "ant")]
    file.write_text("\n".join([HEAD, *(row.replace("\n", " ") for row in rows)]))
    result = arena("study", "judges", "votes.csv", "verdicts.csv")
    assert result.returncode == 2
    assert "No judge has a parsed verdict on an item that people voted on" in result.stderr
    assert "no verdict could be read: 240 of 240" in result.stderr


def test_judges_of_any_name_and_of_one_item_have_rows_of_their_own(
    arena: Command, tmp_path: Path
) -> None:
    for name in ("Two people", "Owl ", "<b>|$x"):
        add(tmp_path, name)
    rows = of(tmp_path, "owl")[:1]
    with (tmp_path / "verdicts.csv").open("a", encoding="utf-8", newline="") as file:
        csv.DictWriter(file, HEAD.split(",")).writerows([rows[0] | {"judge": "once"}])
    words = ("study", "judges", "votes.csv", "verdicts.csv", "--rounds", "100", "--format")
    result = json.loads(arena(*words, "json").stdout)
    names = [row["judge"] for row in result["judges"]]
    assert sorted(names) == sorted(["owl", "crow", "Two people", "Owl ", "<b>|$x", "once"])
    assert any("'Owl ', 'owl'" in text for text in result["warnings"])
    assert len({text for text in result["warnings"] if "24 of 240 verdicts" in text}) == 1
    table = arena(*words, "md").stdout.split("\n\n")[4]
    assert table.count("| Two people |") == 2
    once = result["judges"][-1]  # the best estimate, of too few items to lead
    assert (once["judge"], once["items"], once["agreement_with_ties"]["value"]) == ("once", 1, 1)
    best = {"owl", "once"} & {names[0], names[1]}
    assert all(best & set(one.split()) for one in result["against_each_other"]["sentences"])


def test_every_table_has_its_figures_in_json_and_parquet(arena: Command, tmp_path: Path) -> None:
    words = ("votes.csv", "verdicts.csv", "--rounds", "100")
    result = json.loads(arena("study", "judges", *words, "--format", "json").stdout)
    study = json.loads(arena("study", "judge", *words, "--format", "json").stdout)
    assert list(study) == ["judges", "leaderboard", "against_each_other"]
    assert result["against_each_other"] == study["against_each_other"]
    owl = result["judges"][0]
    (pair,) = result["against_each_other"]["pairs"]
    page = arena("study", "judges", *words, "--format", "md").stdout
    assert f"| {100 * owl['agreement']['value']:.0f}% " in page
    assert f"| {owl['items']} |" in page
    assert f"| {owl['human_kappa']['value']:.2f} " in page
    assert f"| crow minus owl | −{-100 * pair['without_ties']['value']:.0f} " in page
    for sentence in result["against_each_other"]["sentences"]:
        assert sentence in page
    arena("study", "judges", *words, "--out", "board")
    rows = duckdb.read_parquet(str(tmp_path / "board" / "judges.parquet")).fetchall()
    by_name = {(judge, other, name): cells for judge, other, name, *cells in rows}
    difference = by_name["crow", "owl", "difference.without_ties"]
    assert difference == [*pair["without_ties"].values(), None]
    assert by_name["crow", "owl", "difference.items"][0] == pair["items"]
    assert by_name["owl", None, "verdict"][-1] == owl["verdict"]
    assert {name for judge, _, name in by_name if judge == "owl"} >= {*KEYS} - {"judge"}


def test_the_terminal_names_each_judge_once_per_table_and_people_last(arena: Command) -> None:
    words = ("study", "judges", "votes.csv", "verdicts.csv", "--rounds", "100")
    result = arena(*words, COLUMNS="160")
    first = result.stdout.split("└")[0]
    assert first.index("owl") < first.index("crow") < first.index("Two people")
    assert "Prefers lists" in result.stdout
    assert "Rerun variance" in result.stdout


def test_the_report_has_every_form(arena: Command, tmp_path: Path) -> None:
    words = ("study", "judges", "votes.csv", "verdicts.csv", "--rounds", "100", "--out", "board")
    assert arena(*words).stdout == "The report is board/judges.html.\n"
    endings = {path.suffix for path in (tmp_path / "board").iterdir()}
    assert endings == {".html", ".md", ".tex", ".json", ".parquet"}
    page = (tmp_path / "board" / "judges.html").read_text(encoding="utf-8")
    assert "Leaderboard of judges" in page
    assert "arena study judges votes.csv verdicts.csv --rounds 100 --out board" in page


def test_the_examples_of_the_help_run(arena: Command) -> None:
    commands = examples("study judges")
    assert len(commands) == 2
    for words in commands:
        assert arena(*words, "--rounds", "100").returncode == 0
