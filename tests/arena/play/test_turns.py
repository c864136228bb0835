"""Several turns, new attempts, retries and re-picked models, with real endpoints."""

import threading
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from arena.domain.battle import VOTE_WITHIN, BattleState
from arena.domain.vote import Choice
from arena.errors import BadPromptError, NotReadyError
from arena.play.battles import Battles
from arena.store.chain import AnswerKey
from arena.store.store import Store
from tests.arena.play.test_live import ADA, FAST, answers, arena, models_of, playing, server, watch
from tests.faulty_server import Behaviour, Fault, FaultyServer

__all__ = ["server"]

BROKEN = Behaviour(status=500, error={"message": "no"})


async def ready(battles: Battles, prompt: str = "Why?") -> str:
    opened = await battles.open(ADA, prompt)
    assert (await watch(battles, opened.battle_id))[-1].state is BattleState.READY
    return opened.battle_id


async def test_the_next_turn_tells_each_model_its_own_side(
    server: FaultyServer, tmp_path: Path
) -> None:
    async with arena(
        server, tmp_path, x=Behaviour(text="I am x."), y=Behaviour(text="I am y.")
    ) as battles:
        battle_id = await ready(battles, "First?")
        await battles.reply(battle_id, ADA, "Second?")
        last = (await watch(battles, battle_id))[-1]
        assert [turn.prompt for turn in last.turns] == ["First?", "Second?"]
        assert last.turn == 2
        await battles.vote(battle_id, ADA, Choice.A, "k")
    asked = {seen.model: seen.body["messages"] for seen in server.requests[2:]}
    for name in ("x", "y"):
        assert [m["content"] for m in asked[name]] == ["First?", f"I am {name}.", "Second?"]
        assert [m["role"] for m in asked[name]] == ["user", "assistant", "user"]


async def test_new_attempts_replace_both_answers_and_the_vote_pins_them(
    server: FaultyServer, tmp_path: Path
) -> None:
    async with arena(server, tmp_path, x=Behaviour(text="One."), y=Behaviour(text="Two.")) as b:
        battle_id = await ready(b)
        server.behaviours |= {"x": Behaviour(text="Three."), "y": Behaviour(text="Four.")}
        again = await b.regenerate(battle_id, ADA)
        assert again.turns[-1].attempt > 1
        last = (await watch(b, battle_id))[-1]
        assert {last.turns[0].a.text, last.turns[0].b.text} == {"Three.", "Four."}
        await b.vote(battle_id, ADA, Choice.TIE, "k")
    assert sorted(a.attempt for a in answers(tmp_path)) == [1, 1, 2, 2]


async def test_a_checkpoint_in_flight_during_a_repick_leaves_the_new_answer_alone(
    server: FaultyServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    checkpoint, replace_answer = Store.checkpoint, Store.replace_answer
    replaced = threading.Event()
    wrote: list[set[str]] = []

    def when_replaced(
        store: Store, so_far: Mapping[str, Mapping[AnswerKey, tuple[str, str]]]
    ) -> None:
        in_flight = not replaced.is_set()
        replaced.wait(timeout=20)
        checkpoint(store, so_far)
        if in_flight:
            wrote.append({a.model_id for a in answers(tmp_path) if a.reasoning})

    def and_say_so(*args: Any) -> bool:
        done = replace_answer(*args)
        replaced.set()
        return done

    monkeypatch.setattr(Store, "checkpoint", when_replaced)
    monkeypatch.setattr(Store, "replace_answer", and_say_so)
    thinks, well = Behaviour(reasoning="Hm. " * 40, delay_s=0.02, fault=Fault.DROP), Behaviour()
    async with arena(server, tmp_path, x=thinks, u=well, v=well) as battles:
        while not replaced.is_set():  # until x is drawn
            await ready(battles)
    assert wrote, "a checkpoint was under way"
    assert all(models <= {"x"} for models in wrote)


async def test_a_battle_that_another_process_ended_stays_ended_and_can_be_retried(
    server: FaultyServer, tmp_path: Path
) -> None:
    slow = Behaviour(text="So it goes on. " * 10, delay_s=0.02)
    async with arena(server, tmp_path, x=slow, y=slow) as battles:
        opened = await battles.open(ADA, "Why?")
        other = Store(f"sqlite:///{tmp_path}/arena.db")
        assert other.interrupt_running("The end.") == 1, "nobody holds a lease"
        other.close()
        last = (await watch(battles, opened.battle_id))[-1]
        assert (last.state, last.message) == (BattleState.INTERRUPTED, "The end.")
        await battles.retry(opened.battle_id, ADA)
        assert (await watch(battles, opened.battle_id))[-1].state is BattleState.READY
    assert sorted((a.attempt, a.status) for a in answers(tmp_path)) == [
        *2 * [(1, "interrupted")],
        *2 * [(2, "complete")],
    ]


async def test_after_the_reveal_the_two_go_on_uncounted(
    server: FaultyServer, tmp_path: Path
) -> None:
    async with arena(server, tmp_path, x=Behaviour(text="X."), y=Behaviour(text="Y.")) as b:
        battle_id = await ready(b, "First?")
        with pytest.raises(NotReadyError, match="Vote first"):
            await b.go_on(battle_id, ADA, "More?")
        receipt = await b.vote(battle_id, ADA, Choice.B, "k")
        more = await b.go_on(battle_id, ADA, "More?")
        assert more.battle_id != battle_id
        last = (await watch(b, more.battle_id))[-1]
        assert [turn.prompt for turn in last.turns] == ["First?", "More?"]
        assert last.models is not None
        assert receipt.reveal is not None
        assert (last.models.a.id, last.models.b.id) == (receipt.reveal.a.id, receipt.reveal.b.id)
        with pytest.raises(NotReadyError, match="not counted"):
            await b.vote(more.battle_id, ADA, Choice.A, "k2")
        await b.reply(more.battle_id, ADA, "And more?")
        assert (await watch(b, more.battle_id))[-1].turn == 3
    contents = [m["content"] for m in server.requests[-1].body["messages"]]
    assert contents[0] == "First?"
    assert contents[-1] == "And more?"
    assert len(contents) == 5
    assert sorted(a.turn for a in answers(tmp_path)) == [1, 1, 2, 2, 3, 3]


async def test_a_running_battle_takes_no_turn_and_no_attempt(
    server: FaultyServer, tmp_path: Path
) -> None:
    slow = Behaviour(text="Slow. " * 40, delay_s=0.05)
    async with arena(server, tmp_path, x=slow, y=slow) as battles:
        opened = await battles.open(ADA, "Why?")
        for attempt in (
            battles.reply(opened.battle_id, ADA, "More?"),
            battles.regenerate(opened.battle_id, ADA),
            battles.retry(opened.battle_id, ADA),
        ):
            with pytest.raises(NotReadyError):
                await attempt


async def test_an_empty_turn_is_refused(server: FaultyServer, tmp_path: Path) -> None:
    async with arena(server, tmp_path, x=Behaviour(), y=Behaviour()) as battles:
        battle_id = await ready(battles)
        with pytest.raises(BadPromptError):
            await battles.reply(battle_id, ADA, "  ")
        assert (await battles.look(battle_id, ADA)).turn == 1


async def test_a_battle_expires_when_it_is_left_for_longer_than_a_day(
    server: FaultyServer, tmp_path: Path
) -> None:
    now = [datetime(2026, 11, 24, 12, tzinfo=UTC)]
    models = models_of(server, {"x": Behaviour(), "y": Behaviour()})
    url = f"sqlite:///{tmp_path}/arena.db"
    async with playing(url, models, FAST, now=lambda: now[0]) as battles:
        battle_id = await ready(battles)
        now[0] += VOTE_WITHIN
        assert (await battles.look(battle_id, ADA)).state is BattleState.READY
        now[0] += timedelta(seconds=1)
        assert (await battles.look(battle_id, ADA)).state is BattleState.EXPIRED
