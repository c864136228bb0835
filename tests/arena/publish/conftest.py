from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.arena.publish.rated import Write
from tests.arena.publish.sources import SOURCES, Source, as_many


@pytest.fixture
def write(tmp_path: Path) -> Write:
    """Write a file of votes, and give its path."""

    def written(text: str) -> str:
        path = tmp_path / "votes.csv"
        path.write_text(text, encoding="utf-8")
        return str(path)

    return written


@pytest.fixture(name="as_many")
def of_many_rows() -> Iterator[None]:
    """Read relations and files as those of many rows are read."""
    with as_many():
        yield


@pytest.fixture
def source(request: pytest.FixtureRequest) -> Source:
    """Votes in some form: a relation of duckdb is read as one of many rows, a file as of few."""
    name: str = request.param
    if name == "duckdb":
        request.getfixturevalue("as_many")
    return SOURCES[name]
