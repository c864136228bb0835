"""Votes one by one: what is read of a table, what is excluded, and in which order."""

from typing import Any

import duckdb
import numpy as np
import polars as pl
import pytest

from rating import fit
from rating.errors import DataError
from rating.tables.columns import UNLABELLED, Columns, Reading
from rating.tables.counts import read_rows, read_votes

VOTES: dict[str, list[Any]] = {
    "model_a": ["x", "y", "x", "x", "z"],
    "model_b": ["y", "z", "x", "z", "x"],
    "winner": ["model_a", "both_bad", "model_b", "tie", "skip"],
    "voter": ["v2", "v1", "v1", "v2", "v1"],
    "prompt_id": ["p", "q", "q", "p", "p"],
    "kind": ["k", None, "k", " ", "k"],
}
FULL = Reading(Columns(by="kind"), prompts=True)


def test_self_battles_and_skips_are_left_out() -> None:
    rows = read_rows(pl.DataFrame(VOTES), FULL)
    assert (rows.models, rows.n_votes, dict(rows.dropped)) == (("x", "y", "z"), 3, {"skipped": 1})
    of = {role: [rows.names[role][c] for c in rows.groups[role]] for role in rows.groups}
    columns = (rows.a.tolist(), rows.b.tolist(), rows.outcome.tolist())
    assert {*zip(*columns, of["voter"], of["prompt"], of["by"], strict=True)} == {
        (0, 1, 0, "v2", "p", "k"),
        (1, 2, 3, "v1", "q", UNLABELLED),
        (0, 2, 2, "v2", "p", UNLABELLED),
    }


@pytest.mark.parametrize(("both_bad", "outcomes"), [("tie", [0, 2, 2]), ("drop", [0, 2])])
def test_both_bad_counts_as_asked(both_bad: Any, outcomes: list[int]) -> None:
    rows = read_rows(pl.DataFrame(VOTES), Reading(both_bad=both_bad))
    assert sorted(rows.outcome.tolist()) == outcomes
    assert rows.groups.keys() == {"voter"}


def test_they_count_to_what_a_rating_reads() -> None:
    draw = np.random.default_rng(1)
    sides = [draw.choice(["x", "y", "z"], 2, replace=False).tolist() for _ in range(200)]
    winner = draw.choice(["model_a", "model_b", "tie"], 200).tolist()
    table = pl.DataFrame(
        {"model_a": [a for a, _ in sides], "model_b": [b for _, b in sides], "winner": winner}
    )
    counted = read_votes(table, Reading()).data
    rows = read_rows(duckdb.from_arrow(table.to_arrow()), Reading())
    own = rows.comparisons()
    assert fit(own).theta == pytest.approx(fit(counted).theta)
    assert own.n_votes == counted.n_votes == rows.apart().n


def test_of_several_known_names_of_a_column_the_first_counts() -> None:
    prompts = ["prompt", "instruction_id", "question_id", "prompt_id"]
    voters = ["judge_hash", "user_id", "user", "voter_id", "voter", "person"]
    for role, names in (("prompt", prompts), ("voter", voters)):
        assert [Columns().find(role, names[: n + 1]) for n in range(len(names))] == names


def test_votes_that_do_not_count_are_named() -> None:
    nothing = pl.DataFrame({"model_a": ["x"], "model_b": ["y"], "winner": ["skip"]})
    with pytest.raises(DataError, match="No votes to count: 1 skipped"):
        read_rows(nothing, Reading())
