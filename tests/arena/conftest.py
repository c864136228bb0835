from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.serving import Served, quick_arena


@pytest.fixture
def served(database_url: str, tmp_path: Path) -> Iterator[Served]:
    with quick_arena(tmp_path, database=database_url, secret_key="k" * 32) as served:
        yield served
