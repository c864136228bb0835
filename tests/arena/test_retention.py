"""What is older than the settings keep it goes by itself, and it is written down what went."""

from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from sqlalchemy import text

from arena.domain.battle import BattleState
from arena.domain.people import Perishable
from arena.domain.vote import Choice
from arena.errors import SettingsError
from arena.play.upkeep import UPKEEP, clear_out
from arena.settings import read_settings
from arena.store import erasing, people
from arena.store.store import Store
from arena.store.tables import JudgementRow
from arena.store.verify import verify
from tests.arena.store.battles import (
    A1,
    B1,
    MODELS,
    NOW,
    at_once,
    ballot,
    complete,
    new_battle,
    ready,
)
from tests.process import until
from tests.serving import quick_arena
from tests.sqlite import new_sqlite

LATER = NOW + timedelta(days=10)


@pytest.fixture
def store(database_url: str) -> Iterator[Store]:
    """Keep a vote, two battles that wait for theirs, and one that runs, all of one moment."""
    with closing(Store(database_url)) as store:
        store.register(MODELS, NOW)
        store.hold_lease()
        for name in ("voted", "left", "left too"):
            ready(store, name)
        store.cast(ballot("voted", Choice.A))
        store.open_battle(new_battle("running"))
        yield store


def battles(store: Store) -> dict[str, bool]:
    """Say of each battle whether its words are there."""
    with store.reading() as session:
        turns = "SELECT public_id, prompt <> '' FROM battle JOIN turn ON battle_id = battle.id"
        return {name: bool(there) for name, there in session.connection().execute(text(turns))}


def test_words_and_battles_without_a_vote_go_after_their_days(store: Store) -> None:
    days = {Perishable.WORDS: 9, Perishable.UNVOTED: 10}
    request = {"messages": [["user", "Which is better?\nWhy is the sky blue?"]]}
    with store.writing() as session:
        session.add(JudgementRow(hash="j", judge="m", request=request, response={}, created=NOW))
    clear_out(store, days, NOW + timedelta(days=9))
    assert all(battles(store).values())
    clear_out(store, days, LATER)
    assert battles(store) == {"voted": False, "left": False, "left too": False, "running": True}
    later = LATER + timedelta(hours=1)
    clear_out(store, days, later)
    assert battles(store) == {"voted": False, "running": True}
    with store.reading() as session:
        assert (verify(session).problem, verify(session).erased) == (None, 3)
        assert session.get(JudgementRow, "j") is None
        went = erasing.gone(session)
        acts = [(act.by, act.act, act.subject) for act in reversed(people.acts(session)[0])]
    assert went == {Perishable.WORDS: (3, LATER), Perishable.UNVOTED: (2, later)}
    clearing = (UPKEEP, "clear space", "")
    expected = [(UPKEEP, "expire", kind) for kind in (Perishable.WORDS, Perishable.UNVOTED)]
    assert acts == [expected[0], clearing, expected[1], clearing]
    ready(store, "another")
    clear_out(store, {Perishable.WORDS: 9}, later)
    assert store.read(erasing.gone)[Perishable.WORDS] == (4, later)


def test_an_arena_that_is_served_lets_go_by_itself_of_what_its_settings_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("arena.play.upkeep.REST_S", 0.05)
    database, begun = new_sqlite(tmp_path), datetime.now(UTC) - timedelta(days=3)
    ends = {A1: complete(), B1: complete()}
    with closing(Store(database)) as store:
        store.register(MODELS, begun)
        store.open_battle(replace(new_battle("left"), created=begun))
        store.close_answers("left", BattleState.READY, ends, message=None, now=begun)
        with quick_arena(tmp_path, database=database, keep_unvoted_days=2):
            until(lambda: battles(store) == {})


def test_a_battle_whose_vote_was_deleted_stays_while_another_goes_on_from_it(store: Store) -> None:
    store.open_battle(replace(new_battle("more"), turn=2, continues="voted"))
    with store.writing() as session:
        erasing.take_out(session, erasing.battles_of(session, ["ada"]), NOW)
    clear_out(store, {Perishable.UNVOTED: 10}, LATER + timedelta(hours=1))
    assert battles(store).keys() == {"voted", "more", "running"}


def test_nothing_goes_unless_the_settings_say_so(store: Store) -> None:
    clear_out(store, read_settings().retention_days(), NOW + timedelta(days=10_000))
    assert len(battles(store)) == sum(battles(store).values()) == 4
    assert store.read(people.acts)[0] == ()


def test_replicas_that_look_at_once_let_each_battle_go_once(
    store: Store, database_url: str
) -> None:
    def look(_number: int) -> None:
        with closing(Store(database_url)) as other:
            erasing.expire(other, Perishable.WORDS, 5, UPKEEP, LATER)

    at_once(3, look)
    with store.reading() as session:
        assert erasing.gone(session)[Perishable.WORDS][0] == 3
        assert verify(session).problem is None


@pytest.mark.parametrize("days", [1, 0, -5, 10**9, "ten"])
def test_days_that_cannot_be_kept_are_refused(days: object) -> None:
    for kind in ("words", "unvoted"):
        with pytest.raises(SettingsError, match=f"keep-{kind}-days.*{days}"):
            read_settings(**{f"keep_{kind}_days": days})


def test_the_method_page_says_what_is_kept_and_what_went(tmp_path: Path) -> None:
    database = new_sqlite(tmp_path)
    with (
        quick_arena(tmp_path, database=database, keep_words_days=30) as served,
        served.visitor() as ada,
    ):
        page = ada.get("/method").text
        assert "The texts of a battle are deleted after 30 days; its vote stays." in page
        assert "So far" not in page
        ada.play()
        with closing(Store(database)) as store:
            now = datetime.now(UTC) + timedelta(days=31)
            assert erasing.expire(store, Perishable.WORDS, 30, UPKEEP, now) == 1
        assert "So far, the texts of 1 battle were deleted" in ada.get("/method").text
    with quick_arena(tmp_path, database=database) as served, served.visitor() as bob:
        assert "Prompts and answers are kept until they are deleted." in bob.get("/method").text
