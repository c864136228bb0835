"""The one engine of the process: nothing of one reading is left for the next."""

from pathlib import Path

import duckdb
import numpy as np
import pytest

from rating.tables.counts import read_votes
from rating.tables.duckdb_engine import connected
from tests.rating.tables.sources import cells


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_a_file_that_was_replaced_is_read_anew(tmp_path: Path, ending: str) -> None:
    path = tmp_path / f"votes.{ending}"
    for winner in ("model_a", "model_b"):
        row = f"SELECT 'x' AS model_a, 'y' AS model_b, '{winner}' AS winner"
        duckdb.execute(f"COPY ({row}) TO '{path}'")
        assert cells(read_votes(path)) == {("x", "y", winner): 1}


def test_what_one_connection_registers_no_other_one_sees() -> None:
    with connected() as one, connected() as other:
        one.register("votes", {"n": np.array([1])})
        assert one.execute("SELECT n FROM votes").fetchall() == [(1,)]
        with pytest.raises(duckdb.CatalogException, match="votes"):
            other.execute("SELECT n FROM votes")


def test_an_error_and_the_end_of_a_reading_leave_the_engine_to_others() -> None:
    with pytest.raises(duckdb.ParserException), connected() as broken:
        broken.execute("SELEC")
    with connected() as next_one:
        assert next_one.execute("SELECT 1").fetchall() == [(1,)]
