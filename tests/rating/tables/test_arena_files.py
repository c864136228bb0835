"""Chatbot Arena's files in the shapes in which they are published."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from rating.comparisons import Votes
from rating.tables.counts import read_votes
from rating.tables.files import Files
from rating.tables.peers import noticing
from tests.rating.tables.peer_rows import of_arena, written
from tests.rating.tables.sources import PLAIN, cells

ENDINGS = ("json", "jsonl", "csv", "parquet")
DEDUP = "duplicate prompts (dedup_tag)"


def noticed(source: object) -> tuple[Votes, list[str]]:
    words: list[str] = []
    with noticing(words.append):
        return read_votes(source, PLAIN), words


def tagged(winner: str, tag: Mapping[str, bool] | None, *, anony: bool = True) -> dict[str, Any]:
    return {**of_arena("x", "y", winner, "ada", anony=anony), "dedup_tag": tag}


TAGGED = [
    tagged("model_a", {"high_freq": True, "sampled": True}),
    tagged("model_b", {"high_freq": True, "sampled": False}),
    tagged("model_b", {"high_freq": True, "sampled": False}, anony=False),
    tagged("tie", {"high_freq": False, "sampled": True}),
]


@pytest.mark.parametrize("ending", ENDINGS)
def test_rows_that_the_arena_did_not_sample_are_excluded_and_counted(
    ending: str, tmp_path: Path
) -> None:
    path = written(tmp_path, f"arena.{ending}", TAGGED)
    votes, words = noticed(path)
    assert cells(votes) == Counter([("x", "y", "model_a"), ("x", "y", "tie")])
    assert votes.dropped == {"not anonymous": 1, DEDUP: 1}
    assert words == [f"{path} is read as Chatbot Arena; rows left out: 1 {DEDUP}, 1 not anonymous"]


@pytest.mark.parametrize("ending", ENDINGS)
def test_a_condition_that_names_the_tag_takes_the_place_of_the_rule(
    ending: str, tmp_path: Path
) -> None:
    files = Files((written(tmp_path, f"arena.{ending}", TAGGED),), where="dedup_tag IS NOT NULL")
    votes, _ = noticed(files)
    assert votes.dropped == {"not anonymous": 1}
    assert votes.data.n_votes == 3
    votes, _ = noticed(replace(files, where="winner <> 'tie'"))
    assert votes.dropped == {"not anonymous": 1, DEDUP: 1}


def test_the_tag_counts_where_no_row_says_anony_and_a_row_without_a_tag_is_counted(
    tmp_path: Path,
) -> None:
    rows: Sequence[dict[str, Any]] = [*TAGGED, tagged("model_a", {}), tagged("model_b", None)]
    less = [{k: v for k, v in row.items() if k not in ("anony", "conv_metadata")} for row in rows]
    votes, _ = noticed(written(tmp_path, "arena.jsonl", less))
    assert votes.dropped == {DEDUP: 3}
    assert cells(votes) == Counter([("x", "y", w) for w in ("model_a", "tie", "model_b")])
