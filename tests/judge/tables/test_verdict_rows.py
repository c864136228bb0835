"""Rows of verdicts are made as they are read, and written in pieces."""

import csv
import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import duckdb
import pytest

from judge.calls import Key, Options, Questions
from judge.case import FailureClass, Order
from judge.grammar import Preference
from judge.methods import method
from judge.report.run import LOOKED_AT, repeats, rows_and_report
from judge.tables.cases import NamedCase
from judge.tables.verdicts import Rows, judged_rows, write_judged
from judge.verdict import Judged, PositionEffect
from rating.errors import DataError
from rating.tables.duckdb_engine import AT_ONCE
from tests.judge.runs import judge
from tests.judge.scripted import MemoryJournal, case, cases, judged


def test_rows_are_made_whenever_they_are_looked_at() -> None:
    rows = Rows(lambda: ({"n": n} for n in range(3)))
    assert [row["n"] for row in rows] == [row["n"] for row in rows] == [0, 1, 2]
    assert (len(rows), rows[1], rows[-1:], rows[::2]) == (
        3,
        {"n": 1},
        [{"n": 2}],
        [rows[0], rows[2]],
    )
    with pytest.raises(IndexError):
        rows[3]


def test_a_case_is_pending_while_an_order_is_and_a_settled_one_has_no_place_to_correct() -> None:
    named = NamedCase("b", "p", ("basalt", "flint"), case())
    unread = Judged(case_id=case().id, order=Order.AB, reading=None, failure=FailureClass.UNPARSED)
    orders = [unread, replace(unread, order=Order.BA, failure=None)]
    for asked in (orders, orders[::-1]):
        rows = judged_rows([named], asked, "owl", method("pairwise"))
        assert [row["status"] for row in rows] == [asked[0].status, asked[1].status, "pending"]
    settled = Judged(case_id=case().id, order=Order.AB, reading=Preference(0.5))
    place = PositionEffect(0.1, 0.0, 2)
    for one, expected in ((settled, None), (replace(settled, keys=(Key("k"),)), 0.4)):
        (row,) = judged_rows([named], [one], "owl", method("pairwise"), place)
        assert (row["preference"], row["corrected"]) == (0.5, expected)


@pytest.mark.parametrize("ending", ["csv", "jsonl"])
def test_a_file_of_text_makes_each_row_once(ending: str, tmp_path: Path) -> None:
    made: list[int] = []

    def each() -> Iterator[dict[str, Any]]:
        for n in range(3):
            made.append(n)
            yield {"n": n}

    write_judged(Rows(each), tmp_path / f"rows.{ending}")
    assert made == [0, 1, 2]


@pytest.mark.slow
async def test_as_many_rows_are_written_as_there_are_in_every_form(tmp_path: Path) -> None:
    asked = cases(AT_ONCE // 3 + 1)
    named = [NamedCase(f"b{n}", f"p{n}", ("=basalt", "flint"), one) for n, one in enumerate(asked)]
    run = await judged(asked, method("pairwise"), judge(latency_s=0.001), MemoryJournal())
    rows, _ = rows_and_report("judge", method("pairwise"), named, run, 1.0)
    assert len(rows) == 3 * len(asked) == len([*rows]) > AT_ONCE
    for ending in ("csv", "jsonl", "parquet"):
        write_judged(rows, tmp_path / f"rows.{ending}")
    with (tmp_path / "rows.csv").open(encoding="utf-8") as lines:
        of_csv = [row["battle_id"] for row in csv.DictReader(lines)]
    text = (tmp_path / "rows.jsonl").read_text(encoding="utf-8")
    of_json = [json.loads(line) for line in text.splitlines()]
    with duckdb.connect() as connection:
        connection.execute(f"SELECT battle_id, model_a, error FROM '{tmp_path}/rows.parquet'")
        of_parquet = connection.fetchall()
    assert of_csv == [row["battle_id"] for row in of_json]
    assert sorted(of_parquet) == sorted((one, "=basalt", None) for one in of_csv)


def test_questions_are_those_of_every_case_in_each_order_and_sample() -> None:
    sampled, options = method("alpaca_eval_sampled"), Options(judge="j", seed="s")
    asked = Questions([*cases(3), case(1)], sampled, options)
    assert len(asked) == len([*asked]) == 30
    assert [one.number for one in asked] == [*range(30)]
    assert {(one.case_id, one.order, one.sample) for one in asked} == {
        (one.id, order, sample) for one in cases(3) for order in Order for sample in range(5)
    }
    assert (asked[7].shown, asked[28:]) == (cases(1)[0].swapped(), [asked[28], asked[29]])
    with pytest.raises(DataError, match="compares two"):
        Questions([case(b=None)], method("pairwise"), options)


def test_a_model_that_repeats_itself_is_named_among_more_cases_than_are_looked_at() -> None:
    null = "This answers whatever was asked, in full and in each respect, as anybody can see."
    named = [
        NamedCase(f"b{n}", f"p{n}", ("basalt", "flint"), case(n, b=null))
        for n in range(2 * LOOKED_AT)
    ]
    (warning,) = repeats(named)
    assert warning.startswith(
        f"'flint' gives much the same response to different prompts (100% of {LOOKED_AT})"
    )
