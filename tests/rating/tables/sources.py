"""The same votes in every form in which they can be read."""

import gzip
import json
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, ParamSpec, TypeVar

import duckdb
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from rating.comparisons import Votes
from rating.outcome import OUTCOMES
from rating.tables.columns import Reading
from rating.tables.counts import read_votes
from rating.tables.peers import noticing

Row = Mapping[str, Any]
Source = Callable[[Sequence[Row], Path], Any]
PLAIN = Reading(voters=False)
P = ParamSpec("P")
T = TypeVar("T")


def messages_of(read: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> tuple[T, list[str]]:
    """Read something, and what is said while it is read."""
    words: list[str] = []
    with noticing(words.append):
        return read(*args, **kwargs), words


def noticed(source: object, reading: Reading = PLAIN) -> tuple[Votes, list[str]]:
    return messages_of(read_votes, source, reading)


ROWS: list[Row] = [
    {
        "model_a": a,
        "model_b": b,
        "winner": winner,
        "voter": voter,
        "prompt_id": prompt,
        "tstamp": f"2026-01-0{day}T12:00:00Z",
        "language": language,
    }
    for a, b, winner, voter, prompt, day, language in [
        ("x", "y", "model_a", "007", "p1", 1, "Finnish"),
        ("x", "y", "model_a", "7", "p2", 2, "Finnish"),
        ("y", "x", "model_b", "7", "p1", 3, "English"),
        ("x", "y", "tie", "ada", "p2", 3, None),
        ("x", "y", "tie (bothbad)", "ada", "p1", 4, "English"),
        ("z", "x", "model_a", "2024-01-01", "p1", 5, "English"),
        ("y", "y", "model_a", "ada", "p1", 6, "English"),
        ("x", "Ä, 'ö' \"2\"", "model_b", "null", "NA", 7, "English"),
    ]
]


def columns(rows: Sequence[Row]) -> dict[str, list[Any]]:
    names = list(dict.fromkeys(name for row in rows for name in row))
    return {name: [row.get(name) for row in rows] for name in names}


def arrow(rows: Sequence[Row], _: Path) -> pa.Table:
    return pa.table(columns(rows))


def parquet(rows: Sequence[Row], folder: Path) -> Path:
    pq.write_table(arrow(rows, folder), folder / "votes [1].parquet")
    return folder / "votes [1].parquet"


def text(rows: Sequence[Row], folder: Path, ending: str) -> Path:
    path = folder / f"votes.{ending}"
    if ending.startswith(("csv", "tsv")):
        separator = "," if ending.startswith("csv") else "\t"
        text = pd.DataFrame(columns(rows), dtype=object).to_csv(index=False, sep=separator)
    elif ending == "json":
        text = json.dumps(rows)
    else:
        text = "".join(json.dumps(row) + "\n" for row in rows)
    data = text.encode()
    path.write_bytes(gzip.compress(data) if ending.endswith("gz") else data)
    return path


def in_text(ending: str) -> Source:
    return lambda rows, folder: text(rows, folder, ending)


def in_pandas(dtype: object) -> Source:
    return lambda rows, _: pd.DataFrame(columns(rows), dtype=object).astype(dtype)  # type: ignore[arg-type]


def in_polars(dtype: Any) -> Source:
    return lambda rows, _: pl.DataFrame(columns(rows), infer_schema_length=None).with_columns(
        pl.col(pl.String).cast(dtype)
    )


def arrow_chunks(rows: Sequence[Row], folder: Path) -> pa.Table:
    table = arrow(rows, folder)
    coded = pa.table({name: table[name].dictionary_encode() for name in table.column_names})
    return pa.concat_tables([coded.slice(0, 3), coded.slice(3)])


def relation(rows: Sequence[Row], folder: Path) -> duckdb.DuckDBPyRelation:
    return duckdb.from_arrow(arrow(rows, folder))


SOURCES: dict[str, Source] = {
    "parquet": parquet,
    "csv": in_text("csv"),
    "csv.gz": in_text("csv.gz"),
    "tsv": in_text("tsv"),
    "jsonl": in_text("jsonl"),
    "ndjson.gz": in_text("ndjson.gz"),
    "json": in_text("json"),
    "pandas object": in_pandas(object),
    "pandas str": in_pandas("str"),
    "pandas category": in_pandas("category"),
    "polars": in_polars(pl.String),
    "polars categorical": in_polars(pl.Categorical),
    "polars lazy": lambda rows, _: pl.DataFrame(columns(rows), infer_schema_length=None).lazy(),
    "pyarrow": arrow,
    "pyarrow dictionaries": arrow_chunks,
    "pyarrow reader": lambda rows, folder: arrow(rows, folder).to_reader(),
    "duckdb": relation,
}

each_source = pytest.mark.parametrize("source", SOURCES, indirect=True)


@contextmanager
def as_many() -> Iterator[None]:
    """Let duckdb code the names, as it does of more rows than a test writes."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("rating.tables.coding.FEW", -1)
        yield


def cells(votes: Votes) -> Counter[tuple[str, ...]]:
    """Cells by name; voters and prompts first, where they are known."""
    counts: Counter[tuple[str, ...]] = Counter()
    data = votes.data
    for i, n in enumerate(data.votes):
        voter = () if data.voter is None else (votes.voters[data.voter[i]],)
        prompt = () if data.prompt is None else (votes.prompts[data.prompt[i]],)
        pair = (data.models[side] for side in data.pairs[i])
        counts[(*voter, *prompt, *pair, OUTCOMES[data.outcome[i]].value)] += int(n)
    return counts


def counted(votes: Votes) -> tuple[object, ...]:
    """What became of the votes."""
    return votes.read, votes.data.n_votes, votes.self_battles, votes.dropped


def by_hand(rows: Sequence[Row], *keys: str) -> Counter[tuple[str, ...]]:
    label = {"tie (bothbad)": "both_bad"}
    return Counter(
        (*(row[key] for key in keys), row["model_a"], row["model_b"], label.get(w, w))
        for row in rows
        if row["model_a"] != row["model_b"]
        for w in [row["winner"]]
    )


def broken(**changes: object) -> list[Row]:
    """The votes with the third one changed."""
    return [*ROWS[:2], {**ROWS[2], **changes}, *ROWS[3:]]
