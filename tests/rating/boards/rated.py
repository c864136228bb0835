"""Small files of votes, and the boards that `arena rate` makes of them."""

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from rating import RateOptions, Report
from rating.errors import DataError
from rating.planning import Plan, plan
from rating.tables.columns import Reading
from rating.tables.counts import rate_source, read_votes

PAIRS = "model_a,model_b,n_model_a,n_model_b,n_tie\nx,y,30,10,0\nx,x,1,0,0\n"
Write = Callable[[str], str]


def crowd(n_voters: int = 30, **columns: Callable[[int], object]) -> str:
    """Votes among three models, of every outcome; each voter votes on every pair."""
    models, outcomes = ["x", "y", "z"], ["model_a", "model_a", "model_b", "tie", "both_bad"]
    lines = [",".join(["model_a", "model_b", "winner", "voter", "prompt_id", *columns])]
    for i in range(3 * n_voters):
        a, b = models[i % 3], models[(i + 1) % 3]
        row = [a, b, outcomes[(i + i // 7) % 5], f"v{i // 3}", f"p{i % 40}"]
        lines.append(",".join([*row, *(str(value(i)) for value in columns.values())]))
    return "\n".join(lines) + "\n"


def rated(source: object, **options: Any) -> dict[str, Any]:
    report = rate_source(source, RateOptions(**options))
    assert isinstance(report, Report)
    plain = report.to_dict()
    json.dumps(plain, allow_nan=False)
    return plain


def planned(source: str | Path, **options: Any) -> Plan:
    chosen = RateOptions(**options)
    return plan(read_votes(source, Reading.of(chosen)).data, chosen)


def column(board: dict[str, Any], name: str) -> dict[str, Any]:
    return {row["model"]: row[name] for row in board["ratings"]}


def refused(source: object, words: Sequence[str], **options: Any) -> None:
    with pytest.raises(DataError) as error:
        rate_source(source, RateOptions(**options))
    assert [word for word in words if word not in str(error.value)] == [], error.value
