"""What a vote counts as: its names, outcome, group, weight and style; and published votes."""

from collections import Counter
from dataclasses import replace
from pathlib import Path

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from rating.errors import DataError
from rating.outcome import OUTCOMES
from rating.tables.columns import UNLABELLED, Columns, Reading
from rating.tables.counts import read_groups, read_votes
from tests.rating.tables.sources import PLAIN, ROWS, by_hand, cells, columns, relation


def test_a_model_seen_only_on_side_b_is_a_model() -> None:
    table = {"model_a": ["x", "x"], "model_b": ["y", "z"], "winner": ["model_a", "tie"]}
    assert read_votes(pl.DataFrame(table)).data.models == ("x", "y", "z")


@pytest.mark.usefixtures("as_many")
def test_voters_that_nobody_names_are_not_known() -> None:
    table = pa.table(columns([{**row, "voter": None} for row in ROWS]))
    for source in (table, duckdb.from_arrow(table)):
        votes = read_votes(source)
        assert votes.data.voter is None
        assert votes.voters == ()


def test_votes_without_a_prompt_leave_prompts_out_and_are_counted() -> None:
    some = [*({**row, "prompt_id": " "} for row in ROWS[:2]), *ROWS[2:]]
    votes = read_votes(pa.table(columns(some)), Reading(prompts=True))
    assert votes.data.prompt is None
    assert votes.prompts == ()
    assert votes.warnings == (
        "2 votes name no prompt: prompts are not used; exclude such votes to let the intervals "
        "allow for prompts.",
    )
    with pytest.raises(DataError, match="The prompt is missing or blank in 2 votes"):
        read_votes(pa.table(columns(some)), Reading(prompts=True, all_prompts=True))
    whole = read_votes(pa.table(columns(ROWS)), Reading(prompts=True))
    assert (whole.data.n_prompts, whole.warnings) == (len(whole.prompts), ())


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
    assert tie.data.votes.max() == 2
    dropped = read_votes(table, replace(PLAIN, both_bad="drop"))
    assert dropped.dropped == {"both bad": 1}
    assert cells(dropped) == own - Counter({("x", "y", "both_bad"): 1})


@pytest.mark.usefixtures("as_many")
def test_groups_part_the_votes() -> None:
    table = pa.table(columns(ROWS))
    in_polars = pl.DataFrame(columns(ROWS))
    for source in (table, relation(ROWS, Path()), in_polars, in_polars.lazy()):
        groups = read_groups(source, replace(PLAIN, columns=Columns(by="language")))
        assert list(groups) == ["English", "Finnish", UNLABELLED]
        assert sum((cells(votes) for votes in groups.values()), Counter()) == by_hand(ROWS)
        assert cells(groups["Finnish"]) == {("x", "y", "model_a"): 2}
        assert cells(groups[UNLABELLED]) == {("x", "y", "tie"): 1}
        assert groups["English"].self_battles == 1


@pytest.mark.usefixtures("as_many")
def test_a_weight_counts_in_the_sums_and_not_in_the_votes() -> None:
    table = columns(ROWS) | {"pair_probability": [0.5, 0.25, 1, 1, 1, 1, 1, 1], "w": range(8)}
    in_polars = pl.DataFrame(table)
    in_arrow = pa.table(table)
    for source in (in_arrow, in_polars, in_polars.lazy(), duckdb.from_arrow(in_arrow)):
        votes = read_votes(source, replace(PLAIN, weight="sampling"))
        cell = list(cells(votes)).index(("x", "y", "model_a"))
        data = votes.data
        assert (data.votes[cell], data.weight[cell], data.weight_sq[cell]) == (2, 6, 20)
        given_ones = read_votes(source, replace(PLAIN, weight="w")).data.weight
        assert given_ones.sum() == sum(range(8)) - 6


@pytest.mark.usefixtures("as_many")
def test_styles_are_compared_and_standardised() -> None:
    table = columns(ROWS) | {
        "length_a": [3, 1, 1, 1, 1, 1, 1, 1],
        "length_b": [1, 1, 3, 1, 1, 1, 1, 1],
        "tone": [0.5, 0, 0, 0, 0, 0, 9, 0],
    }
    reading = replace(PLAIN, style=("length", "tone"))
    sources = [pa.table(table), pd.DataFrame(table), duckdb.from_arrow(pa.table(table))]
    sources += [pl.DataFrame(table), pl.LazyFrame(table)]
    for votes in (read_votes(source, reading) for source in sources):
        data = votes.data
        assert data.votes.tolist() == [1] * 7  # the battle of y with itself has no say
        assert data.features is not None
        lengths, tones = (data.features * [*votes.style_sd.values()]).T
        assert sorted(lengths.tolist()) == pytest.approx([-0.5, 0, 0, 0, 0, 0, 0.5])
        assert sorted(tones.tolist()) == pytest.approx([0] * 6 + [0.5])
        assert data.features.std(axis=0) == pytest.approx([1, 1])
        won = lengths > 0.1
        assert (data.models[data.pairs[won][0, 0]], data.outcome[won][0]) == ("x", 0)
        assert votes.data_hash == read_votes(sources[0], reading).data_hash
    with pytest.raises(DataError, match="There is no column 'lists'"):
        read_votes(sources[0], replace(PLAIN, style=("lists",)))
    same = pa.table({**table, "tone": [1] * 8})
    with pytest.raises(DataError, match="The style 'tone' is the same for all votes"):
        read_votes(same, replace(PLAIN, style=("tone",)))


def test_a_style_of_equal_differences_is_refused_by_its_name() -> None:
    """The standard deviation of a thousand times 0.1 is 2e-16, and not 0."""
    sides = {"model_a": ["x", "y"] * 500, "model_b": ["y", "x"] * 500}
    for value in (0.1, -1 / 3, 1e6 / 7):
        table = pa.table({**sides, "winner": ["model_a", "tie"] * 500, "tone": [value] * 1000})
        with pytest.raises(DataError, match="The style 'tone' is the same for all votes"):
            read_votes(table, replace(PLAIN, style=("tone",)))
    nearly = pa.table({**sides, "winner": ["model_a", "tie"] * 500, "tone": [1.0] * 999 + [1.001]})
    assert read_votes(nearly, replace(PLAIN, style=("tone",))).data.features is not None


def test_the_estimators_get_the_same_votes() -> None:
    data = read_votes(pa.table(columns(ROWS))).data
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
    outcomes = np.bincount(votes.data.outcome, votes.data.votes, len(OUTCOMES))
    counted = dict(zip((o.value for o in OUTCOMES), outcomes, strict=True)) | {
        "used": votes.data.n_votes,
        "self": votes.self_battles,
        "models": len(votes.data.models),
        "voters": len(votes.voters),
        "prompts": len(votes.prompts),
    }
    assert {name: counted[name] for name in want} == want
    assert votes.read == votes.data.n_votes + votes.self_battles
    assert votes.dropped == {}


@pytest.mark.published
def test_published_pair_counts_are_read_whole(published_data: Path) -> None:
    folder = published_data / "votes" / "classic"
    used = {
        name: read_votes(folder / f"{name}.pair_counts.csv").data.n_votes
        for name in ("baseball", "citations", "pudding")
    }
    assert used == {"baseball": 273, "citations": 3727, "pudding": 745}
