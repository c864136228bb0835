"""Chatbot Arena's files in the shapes in which they are published."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from rating.tables.columns import Columns, Reading
from rating.tables.counts import read_groups
from rating.tables.files import Files
from rating.tables.sources import opened
from tests.rating.tables.peer_rows import of_arena, of_lmarena, written
from tests.rating.tables.sources import PLAIN, cells, noticed

ENDINGS = ("json", "jsonl", "csv", "parquet")
DEDUP = "duplicate prompts (dedup_tag)"


def tagged(winner: str, tag: Mapping[str, bool] | None, *, anony: bool = True) -> dict[str, Any]:
    row = of_arena("x", "y", winner, "ada", anony=anony)
    return {**row, "judge_hash": "a hash", "dedup_tag": tag}


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
    assert noticed(path, Reading())[0].voters == ("a hash",)
    assert votes.dropped == {"not anonymous": 1, DEDUP: 1}
    assert words == [f"{path} is read as Chatbot Arena; rows excluded: 1 {DEDUP}, 1 not anonymous"]


@pytest.mark.parametrize("ending", ENDINGS)
def test_a_condition_that_names_the_tag_takes_the_place_of_the_rule(
    ending: str, tmp_path: Path
) -> None:
    files = Files((written(tmp_path, f"arena.{ending}", TAGGED),), where="dedup_tag IS NOT NULL")
    votes, _ = noticed(files)
    assert (votes.dropped, votes.data.n_votes) == ({"not anonymous": 1}, 3)
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


WINNERS = ("model_a", "model_b", "tie", "both_bad", "model_a")
LONG = "x" * 1_500_000
"""An image as text that is longer than what is read of a file may be."""


def lmarena() -> list[Any]:
    """300 rows by 60 sessions: images in some, several turns in others."""
    return [
        of_lmarena(
            n,
            WINNERS[n % 5],
            f"session-{n % 60}",
            turns=1 + n % 3,
            image=LONG if n == 7 else "aGk=" if n % 10 == 0 else "",
        )
        for n in range(300)
    ]


@pytest.mark.parametrize("ending", ["jsonl", "json", "parquet"])
def test_the_session_is_the_voter_of_lmarenas_votes_and_conversations_are_not_read(
    ending: str, tmp_path: Path
) -> None:
    path = written(tmp_path, f"arena.{ending}", lmarena())
    votes, words = noticed(path)
    assert words == [f"{path} is read as LMArena 140k; rows excluded: none"]
    assert cells(votes) == Counter(("x", "y", WINNERS[n % 5]) for n in range(300))
    by_session, _ = noticed(path, Reading(style=("length", "headers", "lists", "bold")))
    assert by_session.voters == tuple(sorted(f"session-{n}" for n in range(60)))
    july = Reading(since=datetime(2025, 7, 15, tzinfo=UTC), voters=False)
    assert noticed(path, july)[0].data.n_votes == sum(n % 28 >= 14 for n in range(300))


@pytest.mark.parametrize("ending", ENDINGS)
def test_styles_and_categories_of_lmarenas_votes_are_columns(ending: str, tmp_path: Path) -> None:
    rows = [of_lmarena(n, "model_a", "s") for n in range(4)]
    with opened(written(tmp_path, f"arena.{ending}", rows), list) as frame:
        of_a, of_b = "length_a, headers_a, lists_a, bold_a", "length_b, headers_b, lists_b, bold_b"
        assert frame.project(f"{of_a}, {of_b}").fetchall()[0] == (400, 4, 3, 6, 100, 2, 1, 2)
        tags = "battle_id, is_code, math, creative_writing, instruction_following"
        assert frame.project(tags).fetchall() == [
            ("row-0", "true", "true", "true", "false"),
            ("row-1", "false", "false", "false", "true"),
            ("row-2", "false", "true", "false", "false"),
            ("row-3", "false", "false", "true", "false"),
        ]
    for name in ("math", "is_code"):
        reading = replace(PLAIN, columns=Columns(by=name))
        assert [*read_groups(tmp_path / f"arena.{ending}", reading)] == ["false", "true"]
