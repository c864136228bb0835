from pathlib import Path

import pytest

from tests.rating.boards.rated import Write


@pytest.fixture
def write(tmp_path: Path) -> Write:
    """Write a file of votes, and give its path."""

    def written(text: str) -> str:
        path = tmp_path / "votes.csv"
        path.write_text(text, encoding="utf-8")
        return str(path)

    return written
