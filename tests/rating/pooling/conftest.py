from pathlib import Path

import pytest

from rating import Votes
from tests.rating.pooling.planted import mtbench, read


@pytest.fixture(scope="session")
def mtbench_file(published_data: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return mtbench(published_data, tmp_path_factory.mktemp("mtbench") / "votes.parquet")


@pytest.fixture(scope="session")
def mtbench_votes(mtbench_file: Path) -> dict[str, Votes]:
    return read(mtbench_file)
