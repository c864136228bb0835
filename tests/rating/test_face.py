"""`import rating`: votes in, a board out, in three lines."""

import math
import re
import subprocess
import sys
from dataclasses import replace

import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import rating
from rating import DataError, Report, Votes

ROWS = {
    "model_a": ["x", "y", "<i>z</i>", "x", "y", "<i>z</i>"] * 4,
    "model_b": ["y", "<i>z</i>", "x", "<i>z</i>", "x", "y"] * 4,
    "winner": ["model_a", "model_a", "tie", "model_a", "model_b", "model_b", *["model_a"] * 6] * 2,
    "voter": [f"v{i}" for i in range(24)],
}


@pytest.fixture(scope="module")
def votes() -> Votes:
    return rating.read_votes(pa.table(ROWS))


@pytest.fixture(scope="module")
def board(votes: Votes) -> Report:
    return rating.rate(votes)


def test_to_import_it_loads_neither_duckdb_nor_pandas_nor_matplotlib() -> None:
    heavy = ["duckdb", "pandas", "matplotlib", "narwhals", "pyarrow", "polars", "pyspark"]
    heavy += ["sqlalchemy"]
    code = f"import sys, rating; print([name for name in {heavy} if name in sys.modules])"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == "[]"


def test_a_board_of_votes_that_were_read_says_where_they_came_from(
    votes: Votes, board: Report
) -> None:
    assert (board.provenance.data_hash, board.votes.used) == (votes.data_hash, 24)
    bare = rating.rate(votes.data)
    assert [row.rating for row in bare.ratings] == [row.rating for row in board.ratings]


def test_a_board_shows_itself_in_a_notebook_and_no_name_in_it_acts(board: Report) -> None:
    page = board._repr_html_()
    assert "<td>&lt;i&gt;z&lt;/i&gt;</td>" in page
    assert "<i>" not in page
    first, options = board.ratings[0], replace(board.options, level=0.9)
    row = replace(first, model="q", lower=-math.inf, rank_low=2, rank_high=3, votes=1234)
    page = replace(board, ratings=(row,), options=options, warnings=("a < b",))._repr_html_()
    cells = ["q", f"{first.rating:.0f}", f"? to {first.upper:.0f}", "2 to 3", "1,234"]
    assert re.findall("<td>(.*?)</td>", page) == cells
    assert "<th>rating</th><th>90% interval</th><th>ranks</th>" in page
    assert page.endswith("<ul><li>a &lt; b</li></ul>")


def test_a_frame_holds_every_number_in_the_library_asked_for(board: Report) -> None:
    models = [row.model for row in board.ratings]
    in_pandas = rating.frame(board, "pandas")
    assert isinstance(in_pandas, pd.DataFrame)
    assert in_pandas["model"].tolist() == models
    in_polars = rating.frame(board, "polars")
    assert isinstance(in_polars, pl.DataFrame)
    assert in_polars["rating"].to_list() == [row.rating for row in board.ratings]
    streamed = pa.table(rating.frame(board))
    assert streamed.equals(rating.frame(board, "pyarrow"))
    assert streamed["votes"].to_pylist() == [row.votes for row in board.ratings]


def test_a_board_is_drawn_by_the_name_of_the_picture(votes: Votes, board: Report) -> None:
    for picture in (rating.plot(board), rating.plot(board, "votes", votes)):
        assert picture._repr_png_().startswith(b"\x89PNG")
    assert rating.plot(board, "win-rates", votes).title == "Head-to-head win rates"


def test_what_cannot_be_made_is_quoted(board: Report) -> None:
    with pytest.raises(DataError, match="no frame of 'dask': choose one of pandas, polars"):
        rating.frame(board, "dask")
    with pytest.raises(DataError, match="no picture 'pie' of a board: choose one of intervals"):
        rating.plot(board, "pie")
    with pytest.raises(DataError, match=r"plot\(board, 'votes', votes\) needs the votes"):
        rating.plot(board, "votes")


def test_boards_of_categories_and_of_a_mix_are_two_lines() -> None:
    rows = pa.table({**ROWS, "topic": ["law", "art"] * 12})
    options = rating.RateOptions(by="topic", pool=True)
    boards = rating.rate_source(rows, options)
    assert isinstance(boards, rating.PooledBoards)
    assert list(boards.reports) == ["art", "law"]
    mix = rating.read_mix(pa.table({"topic": ["law", "law", "law", "art"]}), "topic")
    assert mix.shares == {"law": 0.75, "art": 0.25}
    with pytest.raises(DataError, match="2 prompts have no topic"):
        rating.read_mix(pa.table({"topic": ["law", " ", None]}), "topic")
    board = rating.rate_mix_of(rows, mix, options)
    assert {row.model for row in board.report.ratings} == {"x", "y", "<i>z</i>"}
    assert "&lt;i&gt;z&lt;/i&gt;" in board.report._repr_html_()
