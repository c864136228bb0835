"""The same votes give the same cells, wherever they come from."""

from contextlib import nullcontext
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from arena.boards.export import export_votes
from arena.domain.vote import DEFAULT, Choice, VoterKind
from rating.errors import DataError
from rating.tables.coding import LoggedVotes, coded_list, microseconds
from rating.tables.columns import Columns, Reading
from rating.tables.counts import count_votes, read_groups, read_votes
from rating.tables.vote_filter import REPLACED
from tests.arena.boards.log import linked, vote
from tests.rating.tables.sources import (
    PLAIN,
    ROWS,
    SOURCES,
    Row,
    Source,
    arrow,
    as_many,
    by_hand,
    cells,
    columns,
    counted,
    each_source,
)


@pytest.mark.sampled(4)
@each_source
@pytest.mark.parametrize("keys", [(), ("voter",), ("prompt_id",), ("voter", "prompt_id")])
def test_the_same_votes_are_the_same_from_every_source(
    source: Source, keys: tuple[str, ...], tmp_path: Path
) -> None:
    reading = Reading(voters="voter" in keys, prompts="prompt_id" in keys)
    votes = read_votes(source(ROWS, tmp_path), reading)
    assert cells(votes) == by_hand(ROWS, *keys)
    assert votes.data.models == ("x", "y", "z", "Ä, 'ö' \"2\"")
    assert votes.voters == (tuple(sorted({r["voter"] for r in ROWS})) if "voter" in keys else ())
    assert (votes.read, votes.data.n_votes, votes.self_battles, votes.dropped) == (8, 7, 1, {})
    assert votes.data_hash == read_votes(arrow(ROWS[::-1], tmp_path), reading).data_hash


@pytest.mark.parametrize("few", [7, 8])
def test_no_row_is_lost_where_few_rows_end(
    few: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("rating.tables.coding.FEW", few)
    votes = read_votes(SOURCES["parquet"](ROWS, tmp_path))
    assert votes.read == len(ROWS) == 8
    assert cells(votes) == by_hand(ROWS, "voter")


@each_source
def test_a_window_and_a_half_life_weigh_the_same_from_every_source(
    source: Source, tmp_path: Path
) -> None:
    since, until = datetime(2026, 1, 2, tzinfo=UTC), datetime(2026, 1, 7, 12, tzinfo=UTC)
    reading = Reading(voters=False, since=since, until=until, half_life_days=2)
    votes = read_votes(source(ROWS, tmp_path), reading)
    assert (votes.dropped, votes.self_battles) == ({"outside the window": 2}, 1)
    weights = dict(zip(cells(votes), votes.data.weight.tolist(), strict=True))
    assert weights["z", "x", "model_a"] == 1
    assert weights["x", "y", "both_bad"] == pytest.approx(0.5**0.5)
    assert weights["x", "y", "model_a"] == pytest.approx(0.5**1.5)
    assert votes.data_hash == read_votes(arrow(ROWS[::-1], tmp_path), reading).data_hash


@pytest.mark.usefixtures("as_many")
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
    assert (want.read, want.self_battles) == (13, 2)
    for name, source in SOURCES.items():
        if name not in ("polars categorical", "pandas category", "pyarrow dictionaries"):
            with as_many() if name == "duckdb" else nullcontext():
                votes = read_votes(source(pairs, tmp_path))
                assert votes.data_hash == want.data_hash, name
                assert counted(votes) == counted(want)
                with_bad = [{**pair, "n_both_bad": 4} for pair in pairs]
                assert cells(read_votes(source(with_bad, tmp_path)))["x", "y", "both_bad"] == 4
    with pytest.raises(DataError, match="model_b is missing or blank in 5 votes"):
        read_votes(pl.DataFrame([{**pairs[0], "model_b": None}, *pairs[1:]]))


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


@pytest.mark.sampled(4)
@given(rows=votes_of, seed=st.integers(0, 9))
@settings(max_examples=25)
@pytest.mark.parametrize(
    ("name", "many"),
    [
        ("pyarrow", False), ("polars", False), ("polars lazy", False),
        ("pandas category", False), ("pandas object", False), ("duckdb", False),
        ("duckdb", True),
    ],
)  # fmt: skip
def test_any_votes_in_any_order_have_one_hash(
    name: str, many: bool, rows: list[Row], seed: int
) -> None:
    nowhere = Path()
    votes = read_votes(arrow(rows, nowhere))
    assert cells(votes) == by_hand(rows, "voter")
    shuffled = [rows[i] for i in np.random.default_rng(seed).permutation(len(rows))]
    with as_many() if many else nullcontext():
        result = read_votes(SOURCES[name](shuffled, nowhere))
    assert cells(result) == by_hand(rows, "voter")
    assert result.data_hash == votes.data_hash
    assert counted(result) == counted(votes)


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


def test_many_votes_with_a_style_have_one_hash(tmp_path: Path) -> None:
    rng = np.random.default_rng(1)
    names, n = np.array(["x", "y", "z"]), 200_000
    a = rng.integers(3, size=n)
    sides = {"model_a": names[a], "model_b": names[(a + 1 + rng.integers(2, size=n)) % 3]}
    votes = sides | {"winner": rng.choice(["model_a", "model_b", "tie"], n)}
    table = pa.table(votes | {"voter": rng.integers(9_000, size=n), "tone": rng.random(n)})
    pq.write_table(table, tmp_path / "votes.parquet", row_group_size=20_000)
    sources = [table, table.to_pandas(), pl.DataFrame(table), tmp_path / "votes.parquet"]
    style = Reading(style=("tone",))
    assert len({read_votes(one, style).data_hash for one in sources for _ in range(2)}) == 1


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
    export_votes(linked(logged), DEFAULT, path, everything=True, total=len(logged))
    votes = read_votes(path)
    assert cells(votes) == {("ada", "m0", "m1", "model_a"): 1}
    assert votes.dropped == {"skipped": 1, "simulated voter": 1, "fast": 1}
    assert (votes.self_battles, votes.read) == (1, 5)
    export_votes(linked(logged), DEFAULT, path, total=len(logged))
    assert read_votes(path).data_hash == votes.data_hash


@pytest.mark.parametrize("everything", [True, False])
def test_the_log_gives_the_votes_that_its_export_gives(tmp_path: Path, everything: bool) -> None:
    logged = [
        replace(vote("m0", "m1", Choice.A), pair_probability=0.5),
        vote("m1", "m0", Choice.SKIP),
        vote("m1", "m0", Choice.TIE, voter="bo", exclusions=("fast",)),
        replace(
            vote("m1", "m0", Choice.TIE, voter="bo"), created=datetime(2026, 11, 1, tzinfo=UTC)
        ),
        replace(vote("m1", "m0", Choice.B), repicks=1),
    ]
    named = {role: role for role in ("model_a", "model_b", "voter")}
    named |= {"winner": "outcome", "prompt": "prompt_id"}
    why = [DEFAULT.why_not(v.outcome, v.voter_kind, v.exclusions) for v in logged]
    texts = {role: coded_list([getattr(v, n) for v in logged]) for role, n in named.items()}
    columns_of = LoggedVotes(
        texts=texts | {"left_out": coded_list(why)},
        created=np.array([microseconds(v.created) for v in logged]),
        numbers={
            "weight": np.array([v.pair_probability for v in logged]),
            "repicks": np.array([v.repicks for v in logged], dtype=np.float64),
        },
    )
    path = tmp_path / "votes.parquet"
    export_votes(linked(logged), DEFAULT, path, everything=everything, total=len(logged))
    readings = [
        Reading(),
        Reading(prompts=True, weight="sampling"),
        Reading(voters=False, half_life_days=7, since=datetime(2026, 11, 1, tzinfo=UTC)),
    ]
    for reading in readings:
        ours, read = count_votes(columns_of, reading), read_votes(path, reading)
        assert (ours.data_hash, counted(ours)) == (read.data_hash, counted(read))
    assert count_votes(columns_of, readings[1]).dropped[REPLACED] == 1
    moment = logged[0].created
    assert len(columns_of.before(moment)) == sum(one.created < moment for one in logged)
    labelled = replace(columns_of, labels={"category": ["law", *[None] * 4]})
    assert [*read_groups(labelled, Reading(Columns(by="category")))] == ["law", "(none)"]
    with pytest.raises(DataError, match="The log holds no styles"):
        count_votes(columns_of, Reading(style=("length",)))
