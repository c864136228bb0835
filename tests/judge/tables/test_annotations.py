"""Recorded annotations keep the names of their columns, and no column twice."""

from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from judge.tables.annotations import read_annotations
from rating.errors import DataError


def parquet(folder: Path, **columns: int) -> Path:
    path = folder / "scores.parquet"
    pq.write_table(pa.table({name: [value] for name, value in columns.items()}), path)
    return path


def plain(folder: Path, **columns: int) -> Path:
    path = folder / "scores.csv"
    rows = [",".join(columns), ",".join(map(str, columns.values()))]
    path.write_text("\n".join(rows) + "\n", encoding="utf-8")
    return path


@pytest.mark.parametrize("write", [parquet, plain])
@pytest.mark.parametrize(
    "columns",
    [
        {"score": 1, "score_1": 2},
        {"score_1": 2, "score": 1},
        {"Score": 1, "score_1": 2},
        {"lp_m": 1, "lp_M": 2},
        {"m": 1, "M": 2, "M_1": 3},
    ],
)
def test_every_column_keeps_its_name_and_values(
    write: Callable[..., Path], columns: dict[str, int], tmp_path: Path
) -> None:
    table = read_annotations(write(tmp_path, **columns))
    result = {name: table.numbers(name).tolist() for name in table.columns}
    assert result == {name: [value] for name, value in columns.items()}


def test_a_column_that_stands_twice_is_refused_by_its_name(tmp_path: Path) -> None:
    path = tmp_path / "twice.parquet"
    twice = pa.Table.from_arrays([pa.array([1]), pa.array([2])], names=["score", "score"])
    pq.write_table(twice, path)
    with pytest.raises(DataError, match="two columns 'score'"):
        read_annotations(path)
    text = tmp_path / "twice.csv"
    text.write_text("score,model,score\n1,x,2\n", encoding="utf-8")
    with pytest.raises(DataError, match="two columns 'score'"):
        read_annotations(text)
