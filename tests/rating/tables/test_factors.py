"""Votes on systems from files: which columns hold the parts, and what is refused."""

import csv
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import rating
from rating.errors import DataError
from rating.tables.counts import read_factors
from tests.systems import World

BOTH = ["model", "scaffold"]


def written(path: Path, **changes: Any) -> Path:
    votes = World(voters=5).draw(np.random.default_rng(0))
    rows = []
    for a, b, winner, voter in zip(*votes.values(), strict=True):
        (model_a, scaffold_a), (model_b, scaffold_b) = a.split(" · "), b.split(" · ")
        row = {"model_a": model_a, "model_b": model_b, "winner": winner, "voter": voter}
        rows.append(row | {"scaffold_a": scaffold_a, "scaffold_b": scaffold_b})
    rows[3] |= changes
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, rows[0])
        writer.writeheader()
        writer.writerows(rows)
    return path


def test_systems_are_named_by_their_parts(tmp_path: Path) -> None:
    votes, levels = read_factors(written(tmp_path / "v.csv"), BOTH)
    assert (votes.data.n_votes, votes.data.n_voters) == (60, 5)
    assert "m1 · tools" in votes.data.models
    assert (levels["model"]["m1 · tools"], levels["scaffold"]["m1 · tools"]) == ("m1", "tools")


def test_parts_are_rated_from_a_file_in_one_line(tmp_path: Path) -> None:
    report = rating.rate_factors(*rating.read_factors(written(tmp_path / "v.csv"), BOTH))
    assert [len(levels) for levels in report.factors.values()] == [3, 2]
    assert report.votes == 60


def test_votes_that_do_not_count_need_no_parts(tmp_path: Path) -> None:
    file = written(tmp_path / "v.csv", winner="skip")
    votes, _ = read_factors(file, BOTH)
    assert (votes.data.n_votes, dict(votes.dropped)) == (59, {"skipped": 1})


@pytest.mark.parametrize(
    ("factors", "changes", "words"),
    [
        (["model", "tool"], {}, "no column 'tool_a'"),
        (["model", "model"], {}, "'model' is named twice"),
        (BOTH, {"scaffold_a": " "}, "scaffold_a is missing in 1 vote"),
        (BOTH, {"model_b": ""}, "model_b is missing in 1 vote"),
    ],
)
def test_parts_that_are_not_there_are_refused(
    tmp_path: Path, factors: list[str], changes: dict[str, str], words: str
) -> None:
    with pytest.raises(DataError, match=words):
        read_factors(written(tmp_path / "v.csv", **changes), factors)


def test_two_systems_of_one_name_are_refused(tmp_path: Path) -> None:
    file = tmp_path / "v.csv"
    file.write_text(
        "model_a,scaffold_a,model_b,scaffold_b,winner\nx · y,z,x,y · z,tie\n", encoding="utf-8"
    )
    with pytest.raises(DataError, match="would both be called 'x · y · z'"):
        read_factors(file, BOTH)
