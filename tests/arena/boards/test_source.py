"""`arena rate` of the database that an arena writes."""

from collections.abc import Sequence
from pathlib import Path

import pytest

from arena.boards.fitted import votes_of
from arena.domain.battle import BattleState
from arena.domain.vote import Choice
from arena.errors import SchemaError, StoreError
from arena.play.upkeep import label_votes
from arena.store.store import Store
from rating import RateOptions, read_groups
from rating.tables.columns import Reading
from tests.arena.store.battles import A1, B1, MODELS, NOW, ballot, complete, new_battle, ready
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
    with pytest.raises(StoreError, match=r"No database .*gone\.db"):
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


def test_votes_are_parted_by_whether_an_answer_declines(database_url: str) -> None:
    store = Store(database_url)
    store.hold_lease()
    store.register(MODELS, NOW)
    for i in range(12):
        battle = f"b{i}"
        store.open_battle(new_battle(battle))
        texts = ("I cannot help with that." if i % 3 == 0 else "Scattering.", "Scattering.")
        answers = dict(zip((A1, B1), map(complete, texts), strict=True))
        store.close_answers(battle, BattleState.READY, answers, message=None, now=NOW)
        store.cast(ballot(battle, Choice.B if i % 3 == 0 or i % 2 else Choice.A, key=f"k{i}"))
    label_votes(store, lambda: NOW)
    store.close()
    votes = votes_of(database_url)
    groups = read_groups(votes, Reading.of(RateOptions(by="refusal")))
    assert {name: group.data.n_votes for name, group in groups.items()} == {"a": 4, "none": 8}
