"""`arena rate` of the database that an arena writes."""

from collections.abc import Sequence
from pathlib import Path

import pytest

from arena.boards.source import votes_of
from arena.domain.vote import Choice
from arena.errors import SchemaError, StoreError
from arena.store.store import Store
from tests.arena.store.battles import MODELS, NOW, ballot, ready
from tests.rating.boards.rated import rated, refused


def stored(url: str, choices: Sequence[Choice]) -> None:
    store = Store(url)
    store.hold_lease()
    store.register(MODELS, NOW)
    for i, choice in enumerate(choices):
        store.cast(ballot(ready(store, f"b{i}"), choice))
    store.close()


def test_a_database_is_rated_and_left_as_it_is(database_url: str) -> None:
    stored(database_url, [Choice.A, Choice.A, Choice.B, Choice.SKIP])
    board = rated(votes_of(database_url))
    assert board["votes"]["used"] == 3
    assert board["votes"]["dropped"] == {"skipped": 1}
    assert board["votes"]["voters"] == 1
    assert any("One voter" in text for text in board["warnings"])
    refused(votes_of(database_url), ["no column 'topic'", "export"], by="topic")


def test_a_database_that_cannot_be_rated_is_said_and_not_made(tmp_path: Path) -> None:
    missing = tmp_path / "gone.db"
    with pytest.raises(StoreError, match=r"gone\.db.*no such database"):
        rated(votes_of(f"sqlite:///{missing}"))
    assert not missing.exists()
    other = tmp_path / "other.db"
    other.touch()
    with pytest.raises(SchemaError, match="holds no arena"):
        rated(votes_of(f"sqlite:///{other}"))
    url = f"sqlite:///{tmp_path}/arena.db"
    stored(url, [Choice.SKIP])
    refused(votes_of(url), ["No votes to count", "1 dropped (skipped)"])


def test_the_log_takes_no_names_of_columns(database_url: str) -> None:
    refused(votes_of(database_url), ["voter=who", "--column"], columns=(("voter", "who"),))
