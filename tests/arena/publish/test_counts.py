"""Votes in: the same votes give the same cells, from wherever; nothing is passed over."""

import gzip
import json
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import duckdb
import narwhals as nw
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from arena.domain.policy import DEFAULT
from arena.domain.vote import Choice
from arena.domain.voter import VoterKind
from arena.errors import DataError
from arena.publish.columns import Columns
from arena.publish.counts import (
    REST,
    Votes,
    comparisons,
    logged_votes,
    read_groups,
    read_votes,
)
from arena.publish.dataset import export_votes
from arena.publish.reading import Reading
from arena.publish.sieve import OUTCOMES
from arena.publish.sources import N, count_alike
from arena.store.records import LoggedColumns
from tests.arena.publish.test_leaderboard import vote

Row = Mapping[str, Any]
Source = Callable[[Sequence[Row], Path], Any]

PLAIN = Reading(voters=False)

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
        told = pd.DataFrame(columns(rows), dtype=object).to_csv(index=False, sep=separator)
    elif ending == "json":
        told = json.dumps(rows)
    else:
        told = "".join(json.dumps(row) + "\n" for row in rows)
    data = told.encode()
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
    "duckdb": relation,
}
each_source = pytest.mark.parametrize("source", SOURCES.values(), ids=SOURCES)


def cells(votes: Votes) -> Counter[tuple[str, ...]]:
    """Cells by name; voters and prompts first, where they are known."""
    counted: Counter[tuple[str, ...]] = Counter()
    for i, n in enumerate(votes.votes):
        voter = () if votes.voter is None else (votes.voters[votes.voter[i]],)
        prompt = () if votes.prompt is None else (votes.prompts[votes.prompt[i]],)
        pair = (votes.models[votes.model_a[i]], votes.models[votes.model_b[i]])
        counted[(*voter, *prompt, *pair, OUTCOMES[votes.outcome[i]].value)] += int(n)
    return counted


def by_hand(rows: Sequence[Row], *keys: str) -> Counter[tuple[str, ...]]:
    label = {"tie (bothbad)": "both_bad"}
    return Counter(
        (*(row[key] for key in keys), row["model_a"], row["model_b"], label.get(w, w))
        for row in rows
        if row["model_a"] != row["model_b"]
        for w in [row["winner"]]
    )


@each_source
@pytest.mark.parametrize("keys", [(), ("voter",), ("prompt_id",), ("voter", "prompt_id")])
def test_the_same_votes_are_the_same_from_every_source(
    source: Source, keys: tuple[str, ...], tmp_path: Path
) -> None:
    reading = Reading(voters="voter" in keys, prompts="prompt_id" in keys)
    votes = read_votes(source(ROWS, tmp_path), reading)
    assert cells(votes) == by_hand(ROWS, *keys)
    assert votes.models == ("x", "y", "z", "Ä, 'ö' \"2\"")
    assert votes.voters == (tuple(sorted({r["voter"] for r in ROWS})) if "voter" in keys else ())
    assert votes.report.read == 8
    assert votes.report.used == 7
    assert votes.report.self_battles == 1
    assert votes.report.dropped == {}
    assert votes.data_hash == read_votes(arrow(ROWS[::-1], tmp_path), reading).data_hash


@each_source
def test_a_window_and_a_half_life_weigh_the_same_from_every_source(
    source: Source, tmp_path: Path
) -> None:
    since, until = datetime(2026, 1, 2, tzinfo=UTC), datetime(2026, 1, 7, 12, tzinfo=UTC)
    reading = Reading(voters=False, since=since, until=until, half_life_days=2)
    votes = read_votes(source(ROWS, tmp_path), reading)
    assert votes.report.dropped == {"outside the window": 2}
    assert votes.report.self_battles == 1
    found = dict(zip(cells(votes), votes.weight.tolist(), strict=True))  # type: ignore[union-attr]
    assert found["z", "x", "model_a"] == 1
    assert found["x", "y", "both_bad"] == pytest.approx(0.5**0.5)
    assert found["x", "y", "model_a"] == pytest.approx(0.5**1.5)
    assert votes.data_hash == read_votes(arrow(ROWS[::-1], tmp_path), reading).data_hash


def test_moments_read_the_same_in_every_type() -> None:
    moments = [datetime.fromisoformat(row["tstamp"]) for row in ROWS]
    reading = Reading(voters=False, half_life_days=2)
    want = read_votes(pa.table(columns(ROWS)), reading).data_hash
    naive = [moment.replace(tzinfo=None) for moment in moments]
    abroad = [moment.astimezone(tz=None) for moment in moments]
    seconds = [moment.timestamp() for moment in moments]
    for values in (moments, naive, abroad, seconds, [str(s) for s in seconds]):
        table = columns(ROWS) | {"tstamp": values}
        for frame in (pl.DataFrame(table), pd.DataFrame(table), pa.table(table)):
            assert read_votes(frame, reading).data_hash == want
        assert read_votes(duckdb.from_arrow(pa.table(table)), reading).data_hash == want


def test_pairs_with_counts_are_the_votes_that_they_count(tmp_path: Path) -> None:
    pairs: list[Row] = [
        {"model_a": "x", "model_b": "y", "n_model_a": 3, "n_model_b": 0, "n_tie": 2},
        {"model_a": "y", "model_b": "x", "n_model_a": 1, "n_model_b": 5, "n_tie": 0},
        {"model_a": "y", "model_b": "y", "n_model_a": 1, "n_model_b": 0, "n_tie": 1},
    ]
    names = {"n_model_a": "model_a", "n_model_b": "model_b", "n_tie": "tie"}
    rows = [
        {"model_a": pair["model_a"], "model_b": pair["model_b"], "winner": winner}
        for pair in pairs
        for name, winner in names.items()
        for _ in range(int(pair[name]))
    ]
    want = read_votes(pa.table(columns(rows)))
    assert want.report.read == 13
    assert want.report.self_battles == 2
    for name, source in SOURCES.items():
        if name not in ("polars categorical", "pandas category", "pyarrow dictionaries"):
            found = read_votes(source(pairs, tmp_path))
            assert found.data_hash == want.data_hash, name
            assert found.report == want.report
            with_bad = [{**pair, "n_both_bad": 4} for pair in pairs]
            assert cells(read_votes(source(with_bad, tmp_path)))["x", "y", "both_bad"] == 4


@pytest.mark.parametrize("count", [-1, 1.5, None])
def test_counts_that_are_no_numbers_of_votes_are_refused(count: float | None) -> None:
    pair = {"model_a": ["x"], "model_b": ["y"], "n_model_a": [1.0], "n_model_b": [1.0]}
    with pytest.raises(DataError, match=f"A count is {np.nan if count is None else count}"):
        read_votes(pl.DataFrame({**pair, "n_tie": [count]}, strict=False))


names = st.sampled_from(["x", "y", "z", "w w", "0", "null", "ÿ"])
votes_of = st.lists(
    st.fixed_dictionaries(
        {
            "model_a": names,
            "model_b": names,
            "winner": st.sampled_from(["model_a", "model_b", "tie", "both_bad"]),
            "voter": st.text("ab0 ,\"'\n1", min_size=1, max_size=3).filter(str.strip),
        }
    ),
    min_size=1,
    max_size=30,
).filter(lambda rows: any(row["model_a"] != row["model_b"] for row in rows))


@given(rows=votes_of, seed=st.integers(0, 9))
@settings(max_examples=25)
@pytest.mark.parametrize("name", ["pyarrow", "polars", "pandas category", "pandas object"])
def test_any_votes_in_any_order_have_one_hash(name: str, rows: list[Row], seed: int) -> None:
    source, nowhere = SOURCES[name], Path()
    votes = read_votes(source(rows, nowhere))
    assert cells(votes) == by_hand(rows, "voter")
    shuffled = [rows[i] for i in np.random.default_rng(seed).permutation(len(rows))]
    assert read_votes(source(shuffled, nowhere)).data_hash == votes.data_hash
    lazily = read_votes(relation(shuffled, nowhere))
    assert lazily.data_hash == votes.data_hash
    assert lazily.report == votes.report


@given(rows=votes_of)
def test_another_vote_is_another_hash(rows: list[Row]) -> None:
    nowhere = Path()
    before = read_votes(arrow(rows, nowhere), PLAIN).data_hash
    first = next(row for row in rows if row["model_a"] != row["model_b"])
    more = read_votes(arrow([*rows, first], nowhere), PLAIN)
    assert more.data_hash != before
    renamed = [
        {**row, "model_a": row["model_a"] + "2", "model_b": row["model_b"] + "2"} for row in rows
    ]
    assert read_votes(arrow(renamed, nowhere), PLAIN).data_hash != before


@pytest.mark.parametrize("name", ["duckdb", "polars lazy"])
def test_one_expression_counts_in_every_engine(name: str, tmp_path: Path) -> None:
    keys = ["model_a", "model_b", "winner"]
    frame = nw.from_native(SOURCES[name](ROWS, tmp_path))
    assert isinstance(frame, nw.LazyFrame)
    rows = count_alike(frame, keys).collect("pyarrow").rows(named=True)
    found = {tuple(row[key] for key in keys): row[N] for row in rows}
    for eager in ("pandas object", "pandas str", "pandas category", "polars", "pyarrow"):
        other = nw.from_native(SOURCES[eager](ROWS, tmp_path), eager_only=True)
        counted = count_alike(other.lazy(), keys).collect().rows(named=True)
        assert {tuple(row[key] for key in keys): row[N] for row in counted} == found
    assert found["x", "y", "model_a"] == 2


def broken(**changes: object) -> list[Row]:
    """The votes with the third one changed."""
    return [*ROWS[:2], {**ROWS[2], **changes}, *ROWS[3:]]


@each_source
@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"winner": "Model_A"}, r"Unknown labels in the winner: 'Model_A' \(1 votes\)"),
        ({"winner": "tie (inconsistent)"}, r"'tie \(inconsistent\)' \(1 votes\)"),
        ({"winner": None}, "The winner is missing or blank in 1 votes"),
        ({"model_a": None}, "The model_a is missing or blank in 1 votes"),
        ({"model_b": " "}, "The model_b is missing or blank in 1 votes"),
        (
            {"model_a": "x "},
            r"only in case or spaces: 'x' \(7 votes\) and 'x ' \(1 votes\)",
        ),
        ({"model_b": "Z"}, r"'Z' \(1 votes\) and 'z' \(1 votes\)"),
        ({"voter": None}, "The voter is missing or blank in 1 votes"),
    ],
)
def test_what_cannot_be_read_is_said_with_its_number(
    source: Source, changes: dict[str, object], said: str, tmp_path: Path
) -> None:
    with pytest.raises(DataError, match=said):
        read_votes(source(broken(**changes), tmp_path))


@each_source
def test_the_first_row_of_a_missing_name_is_told(
    source: Source, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    with pytest.raises(DataError) as told:
        read_votes(source(broken(model_a=None), tmp_path), PLAIN)
    lazy = "polars lazy" in request.node.name  # it has no order that could be relied on
    assert ("first in row 3" in str(told.value)) is not lazy


@pytest.mark.parametrize("value", [float("nan"), None, pd.NA, pd.NaT])
def test_a_missing_outcome_is_no_outcome_however_it_is_missing(value: Any) -> None:
    frame = pd.DataFrame(columns(ROWS), dtype=object)
    frame.loc[1, "winner"] = value
    with pytest.raises(DataError, match="missing or blank in 1 votes, first in row 2"):
        read_votes(frame)


@pytest.mark.parametrize("value", [1.5, True, ("x",)])
def test_a_name_that_is_no_name_is_refused(value: Any) -> None:
    frame = pd.DataFrame(columns(ROWS), dtype=object)
    frame.at[1, "model_a"] = value
    with pytest.raises(DataError, match="make text or whole numbers"):
        read_votes(frame)


def test_names_may_be_whole_numbers_but_not_fractions() -> None:
    table = {"model_a": [1, 2], "model_b": [2, 10], "winner": ["model_a", "tie"]}
    for frame in (pl.DataFrame(table), pd.DataFrame(table), pa.table(table)):
        assert read_votes(frame).models == ("1", "10", "2")
    assert read_votes(duckdb.from_arrow(pa.table(table))).models == ("1", "10", "2")
    floats = pa.table({**table, "model_a": [1.0, 2.0]})
    for refused in (floats, duckdb.from_arrow(floats)):
        with pytest.raises(DataError, match="make text or whole numbers"):
            read_votes(refused)


@each_source
def test_no_votes_at_all_is_an_error(source: Source, tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"No votes to count: 1 read, 1 of a model against itself"):
        read_votes(source(ROWS[6:7], tmp_path))


def test_an_empty_table_is_an_error() -> None:
    empty = pl.DataFrame({"model_a": [], "model_b": [], "winner": []})
    for source in (
        empty,
        empty.to_arrow(),
        empty.to_pandas(),
        duckdb.from_arrow(empty.to_arrow()),
    ):
        with pytest.raises(DataError, match="No votes to count: 0 read"):
            read_votes(source)


def test_a_model_seen_only_on_side_b_is_a_model() -> None:
    table = {"model_a": ["x", "x"], "model_b": ["y", "z"], "winner": ["model_a", "tie"]}
    assert read_votes(pl.DataFrame(table)).models == ("x", "y", "z")


def test_voters_that_nobody_names_are_not_known() -> None:
    table = pa.table(columns([{**row, "voter": None} for row in ROWS]))
    for source in (table, duckdb.from_arrow(table)):
        votes = read_votes(source)
        assert votes.voter is None
        assert votes.voters == ()


def test_columns_can_be_named() -> None:
    new = {"model_a": "left", "model_b": "right", "winner": "verdict", "voter": "who"}
    table = pa.table({new.get(name, name): values for name, values in columns(ROWS).items()})
    named = Columns(model_a="left", model_b="right", winner="verdict", voter="who")
    votes = read_votes(table, Reading(columns=named))
    assert votes.data_hash == read_votes(pa.table(columns(ROWS))).data_hash
    with pytest.raises(DataError, match="No column 'model_a' for the model_a; there are 'left'"):
        read_votes(table)
    with pytest.raises(DataError, match="There is no column 'whom'; there are 'left'"):
        read_votes(table, Reading(columns=replace(named, voter="whom")))


def test_both_bad_is_an_outcome_a_tie_or_left_out() -> None:
    table = pa.table(columns(ROWS))
    own = cells(read_votes(table, PLAIN))
    assert own["x", "y", "both_bad"] == own["x", "y", "tie"] == 1
    tie = read_votes(table, replace(PLAIN, both_bad="tie"))
    assert cells(tie)["x", "y", "tie"] == 2
    assert tie.votes.max() == 2
    dropped = read_votes(table, replace(PLAIN, both_bad="drop"))
    assert dropped.report.dropped == {"both bad": 1}
    assert cells(dropped) == own - Counter({("x", "y", "both_bad"): 1})


def test_groups_part_the_votes() -> None:
    for source in (pa.table(columns(ROWS)), relation(ROWS, Path())):
        groups = read_groups(source, replace(PLAIN, columns=Columns(by="language")))
        assert list(groups) == ["English", "Finnish", REST]
        assert sum((cells(votes) for votes in groups.values()), Counter()) == by_hand(ROWS)
        assert cells(groups["Finnish"]) == {("x", "y", "model_a"): 2}
        assert cells(groups[REST]) == {("x", "y", "tie"): 1}
        assert groups["English"].report.self_battles == 1


def test_a_weight_counts_in_the_sums_and_not_in_the_votes() -> None:
    table = columns(ROWS) | {"pair_probability": [0.5, 0.25, 1, 1, 1, 1, 1, 1], "w": range(8)}
    for source in (pa.table(table), pl.DataFrame(table), duckdb.from_arrow(pa.table(table))):
        votes = read_votes(source, replace(PLAIN, weight="sampling"))
        cell = list(cells(votes)).index(("x", "y", "model_a"))
        assert votes.votes[cell] == 2
        assert votes.weight is not None
        assert votes.weight_sq is not None
        assert votes.weight[cell] == 6
        assert votes.weight_sq[cell] == 20
        given_ones = read_votes(source, replace(PLAIN, weight="w")).weight
        assert given_ones is not None
        assert given_ones.sum() == sum(range(8)) - 6


@pytest.mark.parametrize(
    ("column", "value", "said"),
    [
        ("pair_probability", 0.0, "A pair probability is 0.0, in 1 rows"),
        ("pair_probability", None, "A pair probability is nan, in 1 rows"),
        ("w", -1.0, "A weight in 'w' is -1.0, in 1 rows"),
        ("w", float("inf"), "A weight in 'w' is inf"),
    ],
)
def test_a_weight_that_is_none_is_refused(column: str, value: float | None, said: str) -> None:
    table = pa.table(columns(ROWS) | {column: [value] + [1.0] * 7})
    weight = "sampling" if column == "pair_probability" else column
    for source in (table, duckdb.from_arrow(table), pl.DataFrame(table)):
        with pytest.raises(DataError, match=said):
            read_votes(source, replace(PLAIN, weight=weight))


def test_a_missing_moment_matters_only_where_time_does() -> None:
    table = pa.table(columns(broken(tstamp=None)))
    for source in (table, duckdb.from_arrow(table)):
        assert read_votes(source, PLAIN).report.used == 7
        with pytest.raises(DataError, match="The time is missing in 1 votes"):
            read_votes(source, replace(PLAIN, half_life_days=2))
    with pytest.raises(DataError, match="Cannot read the moment 'noon'"):
        read_votes(pa.table(columns(broken(tstamp="noon"))), replace(PLAIN, half_life_days=2))
    with pytest.raises(DataError, match="A half-life of 0 days"):
        read_votes(pa.table(columns(ROWS)), replace(PLAIN, half_life_days=0))


def test_styles_are_compared_and_standardised() -> None:
    table = columns(ROWS) | {
        "length_a": [3, 1, 1, 1, 1, 1, 1, 1],
        "length_b": [1, 1, 3, 1, 1, 1, 1, 1],
        "tone": [0.5, 0, 0, 0, 0, 0, 9, 0],
    }
    reading = replace(PLAIN, style=("length", "tone"))
    sources = [pa.table(table), pd.DataFrame(table), duckdb.from_arrow(pa.table(table))]
    for votes in (read_votes(source, reading) for source in sources):
        assert votes.votes.tolist() == [1] * 7  # the battle of y with itself has no say
        assert votes.features is not None
        assert votes.feature_scale is not None
        lengths, tones = (votes.features * votes.feature_scale).T
        assert sorted(lengths.tolist()) == pytest.approx([-0.5, 0, 0, 0, 0, 0, 0.5])
        assert sorted(tones.tolist()) == pytest.approx([0] * 6 + [0.5])
        assert votes.features.std(axis=0) == pytest.approx([1, 1])
        won = lengths > 0.1
        assert (votes.models[votes.model_a[won][0]], votes.outcome[won][0]) == ("x", 0)
        assert (
            votes.data_hash
            == read_votes(
                pa.table(table).slice(0)[::-1] if False else sources[0], reading
            ).data_hash
        )
    with pytest.raises(DataError, match="There is no column 'lists'"):
        read_votes(sources[0], replace(PLAIN, style=("lists",)))
    same = pa.table({**table, "tone": [1] * 8})
    with pytest.raises(DataError, match="The style 'tone' is the same for all votes"):
        read_votes(same, replace(PLAIN, style=("tone",)))


@pytest.mark.parametrize("ending", ["parquet", "csv", "jsonl"])
def test_an_export_of_ours_reads_back_with_its_reasons(tmp_path: Path, ending: str) -> None:
    logged = [
        vote("m0", "m1", Choice.A),
        vote("m0", "m1", Choice.SKIP),
        vote("m1", "m2", Choice.BOTH_BAD, voter="eve", kind=VoterKind.SIMULATED),
        vote("m1", "m2", Choice.B, exclusions=("fast",)),
        vote("m1", "m1", Choice.B),
    ]
    path = tmp_path / f"votes.{ending}"
    export_votes(logged, DEFAULT, path, everything=True)
    votes = read_votes(path)
    assert cells(votes) == {("ada", "m0", "m1", "model_a"): 1}
    assert votes.report.dropped == {"skipped": 1, "simulated voter": 1, "fast": 1}
    assert votes.report.self_battles == 1
    assert votes.report.read == 5
    export_votes(logged, DEFAULT, path)
    assert read_votes(path).data_hash == votes.data_hash


def test_the_log_gives_the_votes_that_its_export_gives(tmp_path: Path) -> None:
    logged = [
        replace(vote("m0", "m1", Choice.A), pair_probability=0.5),
        vote("m1", "m0", Choice.SKIP),
        vote("m1", "m0", Choice.TIE, voter="bo", exclusions=("fast",)),
        replace(
            vote("m1", "m0", Choice.TIE, voter="bo"), created=datetime(2026, 11, 1, tzinfo=UTC)
        ),
    ]
    columns_of = LoggedColumns(
        model_a=[v.model_a for v in logged],
        model_b=[v.model_b for v in logged],
        outcome=[v.outcome.value for v in logged],
        voter=[v.voter for v in logged],
        prompt=[v.prompt_id for v in logged],
        created=[v.created for v in logged],
        pair_probability=[v.pair_probability for v in logged],
        left_out=[DEFAULT.why_not(v.outcome, v.voter_kind, v.exclusions) for v in logged],
    )
    path = tmp_path / "votes.parquet"
    export_votes(logged, DEFAULT, path, everything=True)
    readings = [
        Reading(),
        Reading(prompts=True, weight="sampling"),
        Reading(voters=False, half_life_days=7, since=datetime(2026, 11, 1, tzinfo=UTC)),
    ]
    for reading in readings:
        ours, read = logged_votes(columns_of, reading), read_votes(path, reading)
        assert (ours.data_hash, ours.report) == (read.data_hash, read.report)
    with pytest.raises(DataError, match="The log holds no styles"):
        logged_votes(columns_of, Reading(style=("length",)))


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("votes.xlsx", "name a file that ends in .parquet, .csv"),
        ("nowhere.csv", "there is no such file"),
        ("broken.parquet", "Cannot read the votes of"),
        ("broken.jsonl", "Cannot read the votes of"),
    ],
)
def test_a_file_that_cannot_be_read_is_said(tmp_path: Path, name: str, said: str) -> None:
    for broken_file in ("votes.xlsx", "broken.parquet", "broken.jsonl"):
        (tmp_path / broken_file).write_text('{"model_a": [')
    with pytest.raises(DataError, match=said):
        read_votes(tmp_path / name)


def test_a_source_of_another_kind_is_refused() -> None:
    with pytest.raises(DataError, match="Cannot read votes from a list"):
        read_votes([("x", "y", "model_a")])


def test_the_estimators_get_the_same_votes() -> None:
    data = comparisons(read_votes(pa.table(columns(ROWS))))
    assert data.models == ("x", "y", "z", "Ä, 'ö' \"2\"")
    assert data.n_votes == 7
    assert data.n_voters == 5
    assert data.wins().tolist() == [[0, 4, 0, 0], [1, 0, 0, 0], [1, 0, 0, 0], [1, 0, 0, 0]]


@pytest.mark.published
@pytest.mark.parametrize(
    ("file", "want"),
    [
        ("llmfao/votes", {"used": 8931, "models": 59, "voters": 124, "prompts": 13, "tie": 3471}),
        ("mtbench/votes", {"used": 3355, "models": 6, "voters": 65, "prompts": 80, "tie": 780}),
        (
            "agent_arena/votes_models",
            {"used": 1754, "models": 16, "voters": 0, "prompts": 0, "self": 304},
        ),
        (
            "wmt15_fin_eng/votes",
            {"used": 31577, "models": 14, "voters": 46, "prompts": 874, "model_a": 11640},
        ),
    ],
)
def test_published_votes_are_read_whole(
    published_data: Path, file: str, want: dict[str, int]
) -> None:
    votes = read_votes(published_data / "votes" / f"{file}.parquet", Reading(prompts=True))
    outcomes = np.bincount(votes.outcome, votes.votes, len(OUTCOMES))
    found = dict(zip((o.value for o in OUTCOMES), outcomes, strict=True)) | {
        "used": votes.report.used,
        "self": votes.report.self_battles,
        "models": len(votes.models),
        "voters": len(votes.voters),
        "prompts": len(votes.prompts),
    }
    assert {name: found[name] for name in want} == want
    assert votes.report.read == votes.report.used + votes.report.self_battles
    assert votes.report.dropped == {}


@pytest.mark.published
def test_published_pair_counts_are_read_whole(published_data: Path) -> None:
    folder = published_data / "votes" / "classic"
    used = {
        name: read_votes(folder / f"{name}.pair_counts.csv").report.used
        for name in ("baseball", "citations", "pudding")
    }
    assert used == {"baseball": 273, "citations": 3727, "pudding": 745}
