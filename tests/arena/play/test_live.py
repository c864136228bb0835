"""Battles through the real client, from a real server that misbehaves on demand."""

import asyncio
import threading
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, closing
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from random import Random
from typing import Any

import pytest
from sqlmodel import col, select

from arena.domain.battle import AnswerStatus, BattleState, Pacing, Snapshot
from arena.domain.model import Model, Roster
from arena.domain.vote import (
    Choice,
    Chunk,
    FailureClass,
    Finished,
    ReasoningDelta,
    TextDelta,
    Voter,
)
from arena.endpoints.client import Endpoints, Timeouts
from arena.errors import BadPromptError, NotReadyError, StoreError
from arena.play.battles import Battles
from arena.play.live import LiveBattle
from arena.play.matchmaking import INTERRUPTED, NOT_SAVED, STOPPED, Rules
from arena.play.pace import RATES, Paces
from arena.store import log
from arena.store.chain import NewBattle, StoredBattle
from arena.store.store import Store
from arena.store.tables import AnswerRow
from judge.case import Message
from tests.faulty_server import Behaviour, Fault, FaultyServer, faulty_server

ADA, BOB = Voter("ada"), Voter("bob")
FAST = Rules(
    characters_per_s=100_000,
    prior_delay_s=0,
    tick_s=0.01,
    checkpoint_s=0.05,
    retry_pauses_s=(0.01, 0.01),
)
PATIENT = Timeouts()
LONG = "A sentence that goes on. " * 40


@pytest.fixture
def server() -> Iterator[FaultyServer]:
    with faulty_server({}) as server:
        yield server


@asynccontextmanager
async def playing(
    url: str,
    models: Sequence[Model],
    rules: Rules,
    ask: Any = None,
    now: Callable[[], datetime] = lambda: datetime.now(UTC),
    timeouts: Timeouts = PATIENT,
) -> AsyncIterator[Battles]:
    """Battles between models, which the real client asks unless somebody else does."""
    endpoints = Endpoints({}, timeouts=timeouts)
    with closing(Store(url)) as store:
        store.hold_lease()
        store.register(tuple(models), now())
        battles = Battles(
            store=store,
            ask=ask or endpoints.stream,
            roster=Roster(tuple(models)),
            rules=rules,
            recorded={},
            rng=Random(0),
            now=now,
        )
        try:
            yield battles
        finally:
            await battles.close()
            await endpoints.aclose()


def models_of(server: FaultyServer, behaviours: Mapping[str, Any]) -> list[Model]:
    """Give the server behaviours, each of which is a model."""
    server.behaviours |= behaviours
    return [Model(id=name, name=name, endpoint=server.url, model=name) for name in behaviours]


@asynccontextmanager
async def arena(
    server: FaultyServer,
    tmp_path: Path,
    rules: Rules = FAST,
    timeouts: Timeouts = PATIENT,
    **behaviours: Behaviour,
) -> AsyncIterator[Battles]:
    """Battles between two models of the server, ``left`` and ``right`` by name only."""
    models, url = models_of(server, behaviours), f"sqlite:///{tmp_path}/arena.db"
    async with playing(url, models, rules, timeouts=timeouts) as battles:
        yield battles


async def watch(battles: Battles, battle_id: str) -> list[Snapshot]:
    """Watch a battle to its end, which is the one that the log has."""
    looks = [snapshot async for snapshot in battles.watch(battle_id, ADA)]
    assert looks[-1] == await battles.look(battle_id, ADA)
    return looks


async def end_of(battles: Battles) -> Snapshot:
    """Open a battle, and watch it to its end."""
    opened = await battles.open(ADA, "Why?")
    return (await asyncio.wait_for(watch(battles, opened.battle_id), 60))[-1]


def answers(tmp_path: Path) -> list[AnswerRow]:
    store = Store(f"sqlite:///{tmp_path}/arena.db")
    with store.reading() as session:
        rows = list(session.exec(select(AnswerRow).order_by(col(AnswerRow.side))))
    store.close()
    return rows


async def until(holds: Callable[[], bool]) -> None:
    async with asyncio.timeout(60):
        while not holds():  # noqa: ASYNC110 - what it waits for happens in a thread
            await asyncio.sleep(0.01)


async def test_both_answers_end_whole_and_together(server: FaultyServer, tmp_path: Path) -> None:
    async with arena(
        server, tmp_path, x=Behaviour(text=LONG), y=Behaviour(text="Short.")
    ) as battles:
        opened = await battles.open(ADA, "Why?")
        snapshots = await watch(battles, opened.battle_id)
    assert snapshots[-1].state is BattleState.READY
    last = snapshots[-1].turns[0]
    assert sorted((last.a.text, last.b.text)) == [LONG, "Short."]
    for snapshot in snapshots[:-1]:
        turn = snapshot.turns[0]
        assert turn.a.status == turn.b.status == AnswerStatus.STREAMING


async def test_a_fault_of_ours_interrupts_the_battle_and_nobody_waits_for_ever(
    server: FaultyServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def run(*_: object, **__: object) -> None:
        raise RuntimeError("a bug")

    monkeypatch.setattr(LiveBattle, "run", run)
    async with arena(server, tmp_path, x=Behaviour(), y=Behaviour()) as battles:
        last = await end_of(battles)
    assert (last.state, last.message) == (BattleState.INTERRUPTED, INTERRUPTED)


async def test_the_other_model_is_let_go_when_one_fails(
    server: FaultyServer, tmp_path: Path
) -> None:
    endless = Behaviour(fault=Fault.ENDLESS, fault_after=10, delay_s=0.01)
    async with arena(server, tmp_path, e=endless, broken=Behaviour(status=500)) as battles:
        await end_of(battles)
        assert await server.saw_disconnect("e")


async def test_an_answer_that_takes_too_long_fails(server: FaultyServer, tmp_path: Path) -> None:
    slow = Behaviour(text=LONG, delay_s=0.05)
    rules = replace(FAST, answer_timeout_s=0.2)
    async with arena(server, tmp_path, rules, e=slow, x=Behaviour()) as battles:
        assert (await end_of(battles)).state is BattleState.FAILED
    assert {a.error_class for a in answers(tmp_path)} == {"timeout", None}


async def test_a_stop_keeps_what_was_seen_and_lets_vote_on_it(
    server: FaultyServer, tmp_path: Path
) -> None:
    slow = Behaviour(text=LONG, delay_s=0.02)
    async with arena(server, tmp_path, x=slow, y=slow) as battles:
        opened = await battles.open(ADA, "Why?")
        async for snapshot in battles.watch(opened.battle_id, ADA):
            if len(snapshot.turns[0].a.text) > 20:
                break
        stopped = await battles.stop(opened.battle_id, ADA)
        assert stopped.state is BattleState.READY
        assert stopped.turns[0].a.status is AnswerStatus.STOPPED
        assert len(stopped.turns[0].a.text) == len(stopped.turns[0].b.text) < len(LONG)
        receipt = await battles.vote(opened.battle_id, ADA, Choice.TIE, "k")
        assert receipt.reveal is not None
        assert await battles.stop(opened.battle_id, ADA) == await battles.look(
            opened.battle_id, ADA
        )


async def test_a_stop_before_any_text_ends_the_battle_without_a_vote(
    server: FaultyServer, tmp_path: Path
) -> None:
    waiting = Behaviour(first_token_s=1.5)
    async with arena(server, tmp_path, x=waiting, y=waiting) as battles:
        opened = await battles.open(ADA, "Why?")
        stopped = await battles.stop(opened.battle_id, ADA)
        assert (stopped.state, stopped.message) == (BattleState.STOPPED, STOPPED)
        with pytest.raises(NotReadyError):
            await battles.vote(opened.battle_id, ADA, Choice.A, "k")


async def test_unfinished_answers_are_checkpointed_and_interrupted_at_the_end(
    server: FaultyServer, tmp_path: Path
) -> None:
    slow = Behaviour(text=LONG, delay_s=0.02)
    async with arena(server, tmp_path, x=slow, y=slow) as battles:
        opened = await battles.open(ADA, "Why?")
        await until(lambda: all(a.text for a in answers(tmp_path)))
        await battles.close()
        snapshot = await battles.look(opened.battle_id, ADA)
    assert (snapshot.state, snapshot.message) == (BattleState.INTERRUPTED, INTERRUPTED)
    assert {a.status for a in answers(tmp_path)} == {AnswerStatus.INTERRUPTED}


@pytest.mark.parametrize("one_runs", [True, False])
async def test_a_battle_that_is_being_written_when_the_end_comes_ends_well(
    server: FaultyServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, one_runs: bool
) -> None:
    """The end waits for all that was let in, not for those alone that run when it comes."""
    written, may_go_on = threading.Event(), threading.Event()
    begin = Store.open_battle

    def slowly(store: Store, new: NewBattle) -> StoredBattle:
        stored = begin(store, new)
        written.set()
        may_go_on.wait()
        return stored

    short = Behaviour(text="Short.", delay_s=0.02)
    async with arena(server, tmp_path, x=short, y=short) as battles:
        first = await battles.open(ADA, "Why?") if one_runs else None
        monkeypatch.setattr(Store, "open_battle", slowly)
        opening = asyncio.create_task(battles.open(ADA, "And why?"))
        await asyncio.to_thread(written.wait)
        draining = asyncio.create_task(battles.drain(10))
        if first is not None:
            await watch(battles, first.battle_id)
        await asyncio.sleep(0.1)
        may_go_on.set()
        await draining
        assert (await battles.look((await opening).battle_id, ADA)).state is BattleState.READY


async def test_a_vote_is_taken_until_the_very_end(server: FaultyServer, tmp_path: Path) -> None:
    async with arena(server, tmp_path, x=Behaviour(), y=Behaviour()) as battles:
        battle_id = (await end_of(battles)).battle_id
        await battles.drain(0)
        assert (await battles.vote(battle_id, ADA, Choice.A, "k")).reveal is not None


async def test_the_longest_prompt_is_accepted_and_one_character_more_is_refused(
    server: FaultyServer, tmp_path: Path
) -> None:
    rules = replace(FAST, max_prompt_chars=30)
    async with arena(server, tmp_path, rules, x=Behaviour(), y=Behaviour()) as battles:
        opened = await battles.open(ADA, "ä" * 30)
        assert (await watch(battles, opened.battle_id))[-1].state is BattleState.READY
        with pytest.raises(BadPromptError, match="has 31 characters; up to 30 can be sent"):
            await battles.open(BOB, "ä" * 31)


async def test_answers_that_cannot_be_saved_are_not_there_to_vote_on(
    server: FaultyServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: Any, **__: Any) -> None:
        raise StoreError("disk full")

    async with arena(server, tmp_path, x=Behaviour(), y=Behaviour()) as battles:
        monkeypatch.setattr(Store, "close_answers", broken)
        last = await end_of(battles)
    assert (last.state, last.message) == (BattleState.FAILED, NOT_SAVED)


@pytest.mark.parametrize("mode", Pacing)
async def test_every_mode_ends_with_both_answers_whole(
    server: FaultyServer, tmp_path: Path, mode: Pacing
) -> None:
    rules = replace(FAST, pacing=mode)
    async with arena(
        server, tmp_path, rules, x=Behaviour(text=LONG), y=Behaviour(text=LONG, delay_s=0.002)
    ) as battles:
        last = await end_of(battles)
    assert last.turns[0].a.text == last.turns[0].b.text == LONG


async def test_a_battle_goes_at_the_pace_of_the_answers_before_it_and_after_a_restart(
    server: FaultyServer, tmp_path: Path
) -> None:
    rules = replace(FAST, characters_per_s=1000, prior_characters_per_s=1000)
    slow = Behaviour(text=LONG, chunk_size=20, delay_s=0.05)
    async with arena(server, tmp_path, rules, x=slow, y=Behaviour(text=LONG)) as battles:
        assert battles.paces.of(["x", "y"]).rate == 1000
        for _ in range(2):
            await end_of(battles)
        pace = battles.paces.of(["x", "y"])
    assert pace.rate < 1000
    store = Store(f"sqlite:///{tmp_path}/arena.db")
    again = Paces(rules, ["x", "y"])
    again.recall(store.read(log.times, ["x", "y"], 9))
    store.close()
    assert again.of(["y", "x"]) == pace
    assert all(a.needs is not None and len(a.needs) == len(RATES) for a in answers(tmp_path))


async def test_reasoning_that_was_shown_as_an_answer_fails_it(tmp_path: Path) -> None:
    was_read = asyncio.Event()

    async def ask(model: Model, messages: Sequence[Message]) -> AsyncGenerator[Chunk]:
        yield TextDelta("I am R1, so. ")
        await was_read.wait()
        yield TextDelta("And more of it.")
        yield ReasoningDelta("", retracts=True)
        yield TextDelta("Four.")
        yield Finished("stop")

    models = [Model(id=name, name=name, endpoint="x://", model=name) for name in "xy"]
    async with playing(f"sqlite:///{tmp_path}/arena.db", models, FAST, ask) as battles:
        opened = await battles.open(ADA, "Why?")
        async for look in battles.watch(opened.battle_id, ADA):
            if look.turns[0].a.text and look.turns[0].b.text:
                was_read.set()
        assert look.state is BattleState.FAILED
        with pytest.raises(NotReadyError):
            await battles.vote(opened.battle_id, ADA, Choice.A, "key")
        with pytest.raises(NotReadyError, match="showed its reasoning"):
            await battles.retry(opened.battle_id, ADA)
        with pytest.raises(NotReadyError):
            await battles.regenerate(opened.battle_id, ADA)
    for answer in answers(tmp_path):
        assert "And more" not in answer.text
        assert answer.status is not AnswerStatus.COMPLETE
    assert FailureClass.REVEALED in [answer.error_class for answer in answers(tmp_path)]


async def test_reasoning_that_was_not_shown_yet_is_no_part_of_an_answer(
    server: FaultyServer, tmp_path: Path
) -> None:
    text = "I am R1, so.</think>Four."
    behaviour = Behaviour(text=text, chunk_size=5)
    rules = replace(FAST, prior_delay_s=30, characters_per_s=1)
    async with arena(server, tmp_path, rules, x=behaviour, y=behaviour) as battles:
        for _ in range(2):
            opened = await battles.open(ADA, "Why?")
            looks = await watch(battles, opened.battle_id)
            assert looks[-1].state is BattleState.READY
            assert not [look for look in looks if "R1" in repr(look)]
    assert {(a.text, a.reasoning) for a in answers(tmp_path)} == {("Four.", "I am R1, so.")}
