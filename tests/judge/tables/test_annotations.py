"""Recorded annotations keep the names of their columns, and no column twice."""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from judge.scoring.annotated import judge_score
from judge.tables import annotations
from judge.tables.annotations import read_annotations
from rating.errors import DataError
from rating.tables.files import Files
from tests.rating.tables.peer_rows import written
from tests.rating.tables.sources import messages_of


def parquet(folder: Path, **columns: int) -> Path:
    path = folder / "scores.parquet"
    pq.write_table(pa.table({name: [value] for name, value in columns.items()}), path)
    return path


def plain(folder: Path, **columns: int) -> Path:
    return written(folder, "scores.csv", [columns])


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


HEAD = "item,lp_m,lp_M,choice"
SOURCES: Mapping[str, Callable[[Sequence[Sequence[object]]], str]] = {
    "csv": lambda rows: "\n".join([HEAD, *(",".join(map(str, row)) for row in rows)]),
    "jsonl": lambda rows: "\n".join(
        json.dumps(dict(zip(HEAD.split(","), row, strict=True))) for row in rows
    ),
}
ANNOTATED = [("a", 1, 2, "left"), ("b", 3, 4, "left"), ("c", 5, 6, "right"), ("d", 7, 8, "no")]


@pytest.mark.parametrize("ending", SOURCES)
def test_annotations_of_several_files_are_chosen_labelled_and_named(
    ending: str, tmp_path: Path
) -> None:
    for name, rows in (("1", ANNOTATED[:2]), ("2", ANNOTATED[2:])):
        (tmp_path / f"{name}.{ending}").write_text(SOURCES[ending](rows))
    files = Files(
        (tmp_path,),
        columns=(("winner", "choice"), ("item_id", "item")),
        where="choice <> 'no' AND item IN ('b', 'c', 'd')",
        labels=(("left", "model_a"), ("right", "model_b")),
    )
    table, words = messages_of(read_annotations, files)
    assert (table.texts("item_id"), table.texts("winner")) == (["b", "c"], ["model_a", "model_b"])
    assert table.numbers("lp_M").tolist() == [4, 6]
    assert words == [f"{tmp_path} (2 files) is read as annotations; rows excluded: 2 by where"]
    with pytest.raises(DataError, match="no column 'nobody'"):
        read_annotations(replace(files, columns=(("voter", "nobody"),), labels=()))
    with pytest.raises(DataError, match=r"nobody = 1.*not found"):
        read_annotations(replace(files, where="nobody = 1"))


def test_json_files_with_other_columns_are_refused_by_name(tmp_path: Path) -> None:
    (tmp_path / "1.json").write_text('[{"m": 1, "M": 2}]')
    (tmp_path / "2.json").write_text('[{"m": 1}]')
    with pytest.raises(DataError, match=r"2.json' lacks 'M', unlike '.*1.json'"):
        read_annotations(tmp_path)


def test_what_is_left_out_is_said_with_the_format_of_a_peer(tmp_path: Path) -> None:
    row = {"session_id": "s", "model_test": "x", "score": "8"}
    for name in ("1.jsonl", "2.jsonl"):
        written(tmp_path, name, [{**row, "model_test": model} for model in "xy"])
    _, words = messages_of(judge_score, Files((tmp_path,), where="model_test = 'x'"), "wildbench")
    assert words == [
        f"{tmp_path} (2 files) is read as WildBench scores; rows excluded: 2 by where"
    ]


def test_pieces_of_a_parquet_file_hold_the_values_of_the_whole_of_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "kinds.parquet"
    kinds = "i::HUGEINT AS h, i::DECIMAL(6, 2) AS d, DATE '2026-05-01' + i::INT AS day, i = 3 AS b"
    lists = "['x', null] AS texts, ['y', 'z']::VARCHAR[2] AS two, {'role': 'user', 'n': [i]} AS s"
    holes = "CASE WHEN i <> 2 THEN i END AS n, CASE WHEN i <> 2 THEN 'é' END AS m"
    duckdb.execute(f"COPY (SELECT {kinds}, {lists}, {holes} FROM range(7) t(i)) TO '{path}'")
    monkeypatch.setattr(annotations, "PIECE", 3)
    pieces = [*annotations.annotation_pieces(path, "cases")]
    assert [(piece.n, piece.first) for piece in pieces] == [(3, 0), (3, 3), (1, 6)]
    for name, values in read_annotations(path).columns.items():
        in_pieces = [annotations.plain(x) for piece in pieces for x in piece.columns[name]]
        assert [(type(x), x) for x in in_pieces] == [
            (type(y), y) for y in map(annotations.plain, values)
        ]
