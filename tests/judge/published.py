"""Tables of published judge annotations, and their contents as rows."""

from pathlib import Path
from typing import Any

import duckdb

Row = dict[str, Any]


def rows(file: Path) -> list[Row]:
    """Read a CSV or Parquet file as dictionaries; a missing number is None."""
    read = duckdb.read_parquet if file.suffix == ".parquet" else duckdb.read_csv
    with duckdb.connect() as connection:
        voted = read(str(file), connection=connection)
        return [dict(zip(voted.columns, row, strict=True)) for row in voted.fetchall()]
