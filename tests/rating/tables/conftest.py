from collections.abc import Iterator

import pytest

from tests.rating.tables.sources import SOURCES, Source, as_many


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
