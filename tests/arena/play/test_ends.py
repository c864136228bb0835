"""Every battle ends, for its reader and in the log, whatever is raised on the way."""

import asyncio
from collections.abc import Awaitable, Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from sqlmodel import col, select

from arena.domain.battle import BattleState, Notice, Snapshot
from arena.errors import StoreError
from arena.play.battles import Battles
from arena.play.matchmaking import NOT_SAVED
from arena.store.store import Store
from arena.store.tables import BattleRow
from tests.arena.play import test_live
from tests.arena.play.test_live import ADA, LONG, answers, arena, end_of, server, until, watch
from tests.faulty_server import Behaviour, FaultyServer

__all__ = ["server"]


def state_in_log(tmp_path: Path, battle_id: str) -> tuple[BattleState, str | None]:
    store = Store(f"sqlite:///{tmp_path}/arena.db")
    stored = store.battle(battle_id, ADA.id)
    store.close()
    return stored.state, stored.message


def raising(error: Exception) -> Callable[..., Any]:
    def broken(*_: Any, **__: Any) -> None:
        raise error

    return broken


@pytest.mark.parametrize("error", [StoreError("disk full"), OverflowError("int too large")])
async def test_an_end_that_cannot_be_written_ends_in_words_and_is_written_later(
    server: FaultyServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    noted: list[Notice] = []
    monkeypatch.setattr(test_live, "Battles", partial(Battles, notice=noted.append))
    async with arena(server, tmp_path, x=Behaviour(), y=Behaviour()) as battles:
        with monkeypatch.context() as patch:
            patch.setattr(Store, "close_answers", raising(error))
            patch.setattr(Store, "fail", raising(error))
            last = await end_of(battles)
            assert (last.state, last.message) == (BattleState.FAILED, NOT_SAVED)
            assert [n.state for n in noted if n.event == "ended"] == [BattleState.FAILED]
            await asyncio.sleep(0.2)
            assert state_in_log(tmp_path, last.battle_id)[0].running
        failed = (BattleState.FAILED, NOT_SAVED)
        await until(lambda: state_in_log(tmp_path, last.battle_id) == failed)
        shown = await battles.look(last.battle_id, ADA)
        assert (shown.state, shown.message) == failed
        assert (await battles.retry(last.battle_id, ADA)).state is BattleState.CREATED
        again = (await asyncio.wait_for(watch(battles, last.battle_id), 60))[-1]
        assert again.state is BattleState.READY


async def test_a_notice_that_raises_changes_nothing(
    server: FaultyServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    notice = raising(RuntimeError("no more figures"))
    monkeypatch.setattr(test_live, "Battles", partial(Battles, notice=notice))
    async with arena(server, tmp_path, x=Behaviour(), y=Behaviour()) as battles:
        assert (await end_of(battles)).state is BattleState.READY


async def test_checkpoints_go_on_after_one_that_raised(
    server: FaultyServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    slow = Behaviour(text=LONG, delay_s=0.02)
    async with arena(server, tmp_path, x=slow, y=slow) as battles:
        with monkeypatch.context() as patch:
            patch.setattr(Store, "checkpoint", raising(RuntimeError("a bug")))
            opened = await battles.open(ADA, "Why?")
            await asyncio.sleep(0.2)
        await until(lambda: all(row.text for row in answers(tmp_path)))
        assert (await battles.look(opened.battle_id, ADA)).state.running


BROKEN = Behaviour(status=401)


async def test_a_re_pick_that_raises_fails_the_battle(
    server: FaultyServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Store, "replace_answer", raising(OverflowError("int too large")))
    async with arena(server, tmp_path, x=BROKEN, y=BROKEN, z=Behaviour()) as battles:
        last = await end_of(battles)
        assert last.state is BattleState.FAILED
        assert state_in_log(tmp_path, last.battle_id) == (last.state, last.message)


async def test_a_re_pick_that_was_written_but_not_confirmed_fails_the_battle(
    server: FaultyServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    replace_answer = Store.replace_answer

    def unconfirmed(*args: Any) -> bool:
        replace_answer(*args)
        raise StoreError("the connection was lost at the commit")

    monkeypatch.setattr(Store, "replace_answer", unconfirmed)
    async with arena(server, tmp_path, x=BROKEN, y=BROKEN, z=Behaviour()) as battles:
        last = await end_of(battles)
        failed = (BattleState.FAILED, NOT_SAVED)
        assert (last.state, last.message) == failed
        await until(lambda: state_in_log(tmp_path, last.battle_id) == failed)


async def test_a_battle_that_was_written_but_not_begun_fails(
    server: FaultyServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its owner has seen an error, whether it was opened, went on or was tried again."""
    async with arena(server, tmp_path, x=Behaviour(), y=Behaviour()) as battles:
        ready = (await end_of(battles)).battle_id
        other = (await end_of(battles)).battle_id
        begins: dict[str, Callable[[], Awaitable[Snapshot]]] = {
            "open_battle": lambda: battles.open(ADA, "Why?"),
            "add_turn": lambda: battles.reply(ready, ADA, "And why?"),
            "add_attempts": lambda: battles.regenerate(other, ADA),
        }
        for name, begin in begins.items():
            with monkeypatch.context() as patch:
                patch.setattr(Store, name, unread(getattr(Store, name)))
                with pytest.raises(StoreError):
                    await begin()
        failed = (BattleState.FAILED, NOT_SAVED)
        for battle_id in (ready, other, *opened_before(tmp_path)):
            await until(partial(is_logged_as, failed, tmp_path, battle_id))
        assert (await battles.retry(ready, ADA)).state is BattleState.CREATED


def is_logged_as(wanted: tuple[BattleState, str | None], tmp_path: Path, battle_id: str) -> bool:
    return state_in_log(tmp_path, battle_id) == wanted


def unread(write: Callable[..., Any]) -> Callable[..., Any]:
    """Commit, and lose the connection before anything can be read back."""

    def written(*args: Any, **kwargs: Any) -> None:
        write(*args, **kwargs)
        raise StoreError("the connection was lost after the commit")

    return written


def opened_before(tmp_path: Path) -> list[str]:
    """Ids of the battles that were opened after the first two."""
    store = Store(f"sqlite:///{tmp_path}/arena.db")
    with store.reading() as session:
        ids = session.exec(select(BattleRow.public_id).order_by(col(BattleRow.id))).all()
    store.close()
    return list(ids[2:])


async def test_a_battle_that_was_not_written_is_not_looked_for_for_ever(
    server: FaultyServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with arena(server, tmp_path, x=Behaviour(), y=Behaviour()) as battles:
        with monkeypatch.context() as patch:
            patch.setattr(Store, "open_battle", raising(StoreError("disk full")))
            with pytest.raises(StoreError):
                await battles.open(ADA, "Why?")
        keeper = battles._runner._keeper
        assert keeper is not None
        await asyncio.wait_for(asyncio.shield(keeper), 60)


async def test_a_prompt_is_asked_as_it_is_logged(server: FaultyServer, tmp_path: Path) -> None:
    async with arena(server, tmp_path, x=Behaviour(), y=Behaviour()) as battles:
        opened = await battles.open(ADA, "Half an \ud83d, and \x00?")
        assert opened.turns[0].prompt == "Half an \ufffd, and \ufffd?"
        await watch(battles, opened.battle_id)
    assert {seen.body["messages"][-1]["content"] for seen in server.requests} == {
        "Half an \ufffd, and \ufffd?"
    }
