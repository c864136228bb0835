"""Rows that are in a file more than once: one vote where an id tells, else a warning."""

import shlex
import subprocess
import sys
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from rating.options import RateOptions
from rating.report import Report
from rating.tables import by_voter
from rating.tables.columns import Reading
from rating.tables.counts import rate_source, read_rows
from rating.tables.files import Files
from tests.rating.tables.peer_rows import (
    Row,
    of_alpaca,
    of_fastchat,
    of_hard,
    of_kaggle,
    of_lmarena,
    written,
)
from tests.rating.tables.sources import cells, noticed

ENDINGS = ("json", "jsonl", "csv", "parquet")


def of_battle(number: int, winner: str = "model_a", **more: Any) -> dict[str, Any]:
    return {"battle_id": f"b{number}", "model_a": "x", "model_b": "y", "winner": winner, **more}


@pytest.mark.parametrize("ending", ENDINGS)
def test_a_battle_counts_once_by_its_first_row(ending: str, tmp_path: Path) -> None:
    winners = ("model_a", "model_b", "tie", "model_a")
    rows = [of_battle(number, winner) for number, winner in enumerate(winners)]
    path = written(tmp_path, f"votes.{ending}", [*rows, *rows, of_battle(0, "model_b")])
    votes, words = noticed(path)
    assert cells(votes) == Counter(("x", "y", winner) for winner in winners)
    assert (votes.dropped, votes.read) == ({"repeated": 5}, 9)
    assert words == [
        f"{path}: 1 of the repeated rows name another winner than an earlier row with their "
        "battle_id. The first row counts.",
        f"{path} is read as votes; rows excluded: 5 repeated",
    ]
    every, words = noticed(Files((path,), where="battle_id IS NOT NULL"))
    assert every.data.n_votes == 9
    assert words == [f"{path} is read as votes; rows excluded: 0 by where"]


@pytest.mark.parametrize("ending", ENDINGS)
def test_votes_in_their_order_count_a_battle_once(ending: str, tmp_path: Path) -> None:
    rows = [of_battle(number, voter="ada") for number in range(3)]
    path = written(tmp_path, f"votes.{ending}", [*rows, rows[0]])
    votes = read_rows(path, Reading(ordered=True))
    assert (votes.n_votes, votes.dropped) == (3, {"repeated": 1})


@pytest.mark.parametrize(
    "rows",
    [
        [of_kaggle("x", "y", 1, 0, 0), of_kaggle("x", "y", 0, 1, 0)],
        [of_lmarena(n, "model_a", "s") for n in range(2)],
    ],
)
def test_the_id_of_a_format_tells_repeated_rows(rows: Sequence[Row], tmp_path: Path) -> None:
    path = written(tmp_path, "votes.jsonl", [*rows, rows[0]])
    votes, words = noticed(path)
    assert (votes.data.n_votes, votes.dropped) == (2, {"repeated": 1})
    assert words[0].endswith("; rows excluded: 1 repeated")
    assert noticed(Files((path,), where="id IS NOT NULL"))[0].data.n_votes == 3


@pytest.mark.parametrize(
    "rows",
    [
        [of_battle(1, voter=name) for name in ("ada", "bob")],
        [of_battle(1, judge=name) for name in ("gpt", "claude")],
        [of_battle(1, turn=turn) for turn in (1, 2)],
        [of_battle(1), {**of_battle(1), "model_b": "z"}],
        [{**of_battle(1), "battle_id": None}] * 2,
        [of_battle(1), of_battle(1, left_out="not anonymous")],
    ],
)
def test_what_is_no_repeated_vote_is_counted(rows: Sequence[Row], tmp_path: Path) -> None:
    votes, _ = noticed(written(tmp_path, "votes.jsonl", rows))
    assert "repeated" not in votes.dropped
    assert votes.read == 2


def test_both_orders_of_a_judge_are_no_repeated_rows_and_a_run_twice_is(tmp_path: Path) -> None:
    rows = [of_battle(1, judge="j", order=order) for order in ("ab", "ba", "both")]
    votes, _ = noticed(written(tmp_path, "run.jsonl", rows))
    assert votes.data.n_votes == 1
    assert "repeated" not in votes.dropped
    twice, _ = noticed(written(tmp_path, "twice.jsonl", [*rows, *rows]))
    assert (twice.data.n_votes, twice.dropped["repeated"]) == (1, 3)


def test_rows_that_are_alike_without_an_id_of_their_own_are_announced_and_counted(
    tmp_path: Path,
) -> None:
    rows = [
        {"question_id": n, "model_a": "x", "model_b": "y", "winner": "tie", "voter": f"v{n % 2}"}
        for n in range(4)
    ]
    path = written(tmp_path, "votes.csv", [*rows, *rows[:3], {**rows[3], "winner": "model_a"}])
    votes, words = noticed(path)
    assert votes.data.n_votes == 8
    (warning,) = words
    assert "3 rows repeat an earlier one in question_id, winner, model_a, model_b" in warning
    command = shlex.split(warning.partition("without them: ")[2])
    subprocess.run([sys.executable, *command[1:]], cwd=tmp_path, check=True)
    once, words = noticed(tmp_path / "once.parquet")
    assert (once.data.n_votes, words) == (5, [])
    assert noticed(Files((path,), where="question_id IS NOT NULL"))[1][0].endswith("0 by where")


@pytest.mark.parametrize(
    "more",
    [{"vote_id": 7}, {"uuid": "7a"}, {"prompt": "2 + 2?", "timestamp": 1.7e9, "voter": "ada"}],
)
def test_copies_of_rows_are_announced_in_each_way_to_tell_them(more: Row, tmp_path: Path) -> None:
    row = {"model_a": "x", "model_b": "y", "winner": "tie"}
    votes, words = noticed(written(tmp_path, "votes.csv", [{**row, **more}] * 2))
    assert votes.data.n_votes == 2
    assert "1 row repeats an earlier one in " in words[0]


@pytest.mark.parametrize("name", ["annotator_id", "evaluator", "rater", "workerName"])
def test_votes_of_several_people_on_a_battle_are_no_repeats(name: str, tmp_path: Path) -> None:
    rows = [of_battle(0, **{name: f"r{n}"}) for n in range(4)]
    path = written(tmp_path, "votes.csv", rows)
    votes, words = noticed(path, Reading())
    assert votes.data.n_votes == 4
    assert words == [
        f"{path}: voters are not known. If {name!r} names them, add --column voter={name}."
    ]


@pytest.mark.parametrize(
    "row",
    [
        of_alpaca("Hi.", 1.2),
        of_fastchat("model_1", "model_1", 3),
        of_hard("uid", "A>B", "B>A", baseline="x"),
        of_battle(0, user_prompt="Why?", user_agent="Firefox", user_text="Hm."),
    ],
)
def test_columns_of_known_formats_and_of_texts_are_not_proposed_as_voters(
    row: Row, tmp_path: Path
) -> None:
    _, words = noticed(written(tmp_path, "votes.jsonl", [row]), Reading())
    assert not [one for one in words if "voters are not known" in one]


def test_votes_without_any_id_may_be_alike(tmp_path: Path) -> None:
    row = {"model_a": "x", "model_b": "y", "winner": "tie", "voter": "ada"}
    votes, words = noticed(written(tmp_path, "votes.csv", [row] * 3))
    assert (votes.data.n_votes, words) == (3, [])


def test_a_board_by_voter_of_repeated_rows_is_that_of_the_file_without_them(
    tmp_path: Path,
) -> None:
    winners = ("model_a", "model_b", "tie", "model_a", "model_b", "model_a")
    rows = [of_battle(n, winners[n % 6], voter=f"v{n % 7}") for n in range(60)]
    once = written(tmp_path, "once.parquet", rows)
    twice = written(tmp_path, "twice.parquet", [*rows, *rows])
    assert by_voter.Source.of(once, RateOptions()) is not None
    assert by_voter.Source.of(twice, RateOptions()) is None
    boards = [rate_source(path, RateOptions(cluster="voter")) for path in (once, twice)]
    ratings = [
        [(row.rating, row.lower) for row in board.ratings]
        for board in boards
        if isinstance(board, Report)
    ]
    np.testing.assert_allclose(ratings[0], ratings[1], rtol=1e-9)
