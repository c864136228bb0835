"""Files of a judge's run: each case counts once, whatever reads them."""

import json
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pytest

from judge.scoring.annotated import judge_score
from rating import RateOptions, Report
from rating.comparisons import Votes
from rating.tables.coding import Coded
from rating.tables.columns import Columns, Reading
from rating.tables.counts import rate_source, read_votes
from rating.tables.vote_filter import IN_BOTH, beside_both
from rating.tables.voter_report import check_source
from tests.rating.boards.rated import planned

A, B, TIE = "model_a", "model_b", "tie"


def case(
    name: str, *orders: tuple[str, str | None], judge: str = "quartz"
) -> list[dict[str, Any]]:
    return [
        {
            "battle_id": name,
            "prompt_id": name,
            "model_a": "basalt",
            "model_b": "flint",
            "winner": winner,
            "judge": judge,
            "method": "pairwise",
            "order": order,
            "status": "read" if winner else "unparsed",
        }
        for order, winner in orders
    ]


ROWS = [
    *case("b1", ("ab", A), ("ba", A), ("both", A)),
    *case("b2", ("ab", A), ("ba", B), ("both", TIE)),
    *case("b3", ("ba", None), ("ab", B), ("both", None)),
    *case("b4", ("ba", B)),
    *case("b5", ("ab", None)),
]


def counted(votes: Votes) -> tuple[int, dict[str, int]]:
    return votes.data.n_votes, dict(votes.dropped)


def write(folder: Path, rows: list[dict[str, Any]], ending: str = "jsonl") -> Path:
    path = folder / "found.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    if ending != "jsonl":
        duckdb.execute(f"COPY (FROM '{path}') TO '{folder}/found.{ending}'")
    return folder / f"found.{ending}"


@pytest.mark.parametrize("ending", ["jsonl", "csv", "parquet"])
def test_a_case_counts_by_both_orders_or_by_the_one_it_was_asked_in(
    tmp_path: Path, ending: str
) -> None:
    votes = read_votes(write(tmp_path, ROWS, ending))
    assert counted(votes) == (3, {IN_BOTH: 6, "no verdict: unparsed": 2})


@pytest.mark.parametrize("frame", [pd.DataFrame, pl.DataFrame])
def test_tables_in_memory_are_read_alike(frame: Any) -> None:
    assert counted(read_votes(frame(ROWS))) == (3, {IN_BOTH: 6, "no verdict: unparsed": 2})


def test_the_board_and_the_pairwise_score_count_the_same_and_the_board_says_so(
    tmp_path: Path,
) -> None:
    path = write(tmp_path, ROWS)
    report = rate_source(str(path), RateOptions(interval="none"))
    assert isinstance(report, Report)
    assert report.warnings[0].startswith("6 rows of single orders are excluded")
    assert report.to_dict()["votes"]["used"] == 3
    scored = judge_score(path, "pairwise")
    assert [(row["n"], row["n_wins"], row["n_ties"]) for row in scored["models"]] == [
        (3, 1, 1),
        (3, 1, 1),
    ]


def test_a_case_of_another_judge_or_pair_is_another_case(tmp_path: Path) -> None:
    rows = [*ROWS[:3], *case("b1", ("ab", B), judge="slate")]
    other = [row | {"model_b": "slate"} for row in case("b1", ("ba", B))]
    votes = read_votes(write(tmp_path, [*rows, *other]))
    assert counted(votes) == (3, {IN_BOTH: 2})
    scored = judge_score(tmp_path / "found.jsonl", "pairwise")["models"]
    assert [(row["judge"], row["model"], row["n"]) for row in scored] == [
        ("quartz", "basalt", 2), ("quartz", "flint", 1), ("quartz", "slate", 1),
        ("slate", "basalt", 1), ("slate", "flint", 1),
    ]  # fmt: skip


def test_a_case_of_another_method_is_another_case(tmp_path: Path) -> None:
    other = [row | {"method": "pairwise_short"} for row in case("b1", ("ab", B))]
    votes = read_votes(write(tmp_path, [*ROWS[:3], *other]))
    assert counted(votes) == (2, {IN_BOTH: 2})


def test_without_battles_the_rows_of_both_stand_alone(tmp_path: Path) -> None:
    rows = [{n: v for n, v in row.items() if n != "battle_id"} for row in ROWS[:6] + ROWS[9:10]]
    assert counted(read_votes(write(tmp_path, rows))) == (2, {IN_BOTH: 5})


def test_groups_by_order_are_each_read_whole(tmp_path: Path) -> None:
    path = write(tmp_path, ROWS[:6])
    report = rate_source(str(path), RateOptions(interval="none", by="order", ridge=1.0))
    groups = report.to_dict()["groups"]
    expected = {"ab": 2, "ba": 2, "both": 2}
    assert {order: group["votes"]["used"] for order, group in groups.items()} == expected


@pytest.mark.parametrize("orders", [["1", "2"], ["both", "neither"], ["ab", ""]])
def test_a_column_of_another_meaning_changes_nothing(tmp_path: Path, orders: list[str]) -> None:
    rows = [
        row | {"order": order, "battle_id": f"case {number}"}
        for number, row in enumerate(ROWS[:2])
        for order in orders
    ]
    assert counted(read_votes(write(tmp_path, rows, "csv"))) == (4, {})


def test_a_column_of_numbers_or_moments_is_no_order() -> None:
    frame = pd.DataFrame(ROWS[:2]).assign(order=[1.5, 2.5])
    assert counted(read_votes(frame)) == (2, {})
    assert counted(read_votes(frame, Reading(columns=Columns(voter="judge")))) == (2, {})


@pytest.mark.parametrize("ending", ["jsonl", "csv", "parquet"])
def test_a_judge_as_a_voter_has_one_vote_a_case_and_the_notes_say_so(
    tmp_path: Path, ending: str
) -> None:
    report = check_source(str(write(tmp_path, ROWS, ending)), Columns(voter="judge"))
    assert (report.votes, report.dropped) == (3, {IN_BOTH: 6, "no verdict: unparsed": 2})
    assert [(who.voter, who.votes, who.ties) for who in report.voters] == [("quartz", 3, 1)]
    assert report.notes[0].startswith("6 rows of single orders are excluded")


def test_people_have_no_orders_and_no_note_on_them(tmp_path: Path) -> None:
    rows = [row | {"order": n} for n, row in enumerate(ROWS[:3])]
    report = check_source(str(write(tmp_path, rows)), Columns(voter="judge"))
    assert (report.votes, report.dropped) == (3, {})
    assert "single orders" not in " ".join(report.notes)


def test_a_plan_counts_each_case_once(tmp_path: Path) -> None:
    plan = planned(write(tmp_path, ROWS))
    assert (plan.votes, plan.neighbours[0].met) == (3, 3)


@pytest.mark.parametrize(("other", "beside"), [(4097, False), (1, True)])
def test_cases_too_many_to_number_are_told_apart_all_the_same(other: int, beside: bool) -> None:
    """Five columns of 8,191 names: in 64 bits the models 1 and 4,097 would be one."""
    names = tuple(map(str, range(8191)))
    roles = {role: Coded(names, np.array([7, 7])) for role in ("model_b", "case", "judge")}
    roles |= {"method": roles["case"], "model_a": Coded(names, np.array([other, 1]))}
    order = Coded(("ab", "both"), np.array([0, 1]))
    assert beside_both({"order": order, **roles}).tolist() == [beside, False]
