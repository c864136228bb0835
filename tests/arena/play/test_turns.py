"""Several turns, new attempts, retries and re-picked models, with real endpoints."""

import asyncio
import threading
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from arena.domain.battle import AnswerStatus, BattleState
from arena.domain.vote import Choice
from arena.errors import BadPromptError, NotReadyError, UnknownBattleError
from arena.play.battles import Battles
from arena.store.chain import AnswerKey
from arena.store.store import Store
from tests.arena.play.test_live import ADA, BOB, FAST, PATIENT, answers, arena, server, watch
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
        with pytest.raises(NotReadyError):
            await b.regenerate(battle_id, ADA)
    assert sorted(a.attempt for a in answers(tmp_path)) == [1, 1, 2, 2]


async def test_a_later_turn_that_failed_is_retried_with_the_same_models(
    server: FaultyServer, tmp_path: Path
) -> None:
    async with arena(server, tmp_path, x=Behaviour(), y=Behaviour(), z=Behaviour()) as b:
        battle_id = await ready(b)
        pair = {a.model_id for a in answers(tmp_path)}
        server.behaviours |= dict.fromkeys("xyz", BROKEN)
        await b.reply(battle_id, ADA, "Second?")
        failed = (await watch(b, battle_id))[-1]
        assert (failed.state, failed.turn) == (BattleState.FAILED, 2)
        with pytest.raises(NotReadyError):
            await b.reply(battle_id, ADA, "Third?")
        server.behaviours |= dict.fromkeys("xyz", Behaviour(text="Well again."))
        await b.retry(battle_id, ADA)
        last = (await watch(b, battle_id))[-1]
        assert last.state is BattleState.READY
        assert last.turns[1].a.text == "Well again."
    assert {a.model_id for a in answers(tmp_path)} == pair


async def test_a_side_that_fails_unseen_goes_to_another_model(
    server: FaultyServer, tmp_path: Path
) -> None:
    well = Behaviour(text="All is well.")
    async with arena(server, tmp_path, x=BROKEN, y=BROKEN, u=well, v=well) as battles:
        for _ in range(6):
            battle_id = await ready(battles)
            receipt = await battles.vote(battle_id, ADA, Choice.TIE, "k")
            assert receipt.reveal is not None
            assert {receipt.reveal.a.id, receipt.reveal.b.id} == {"u", "v"}
    rows = answers(tmp_path)
    failed = [row for row in rows if row.status == AnswerStatus.FAILED]
    assert {row.model_id for row in failed} <= {"x", "y"}
    assert failed, "a broken model was drawn at least once in six battles"
    assert all(row.error_class == "overloaded" for row in failed)


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


async def test_models_are_repicked_twice_at_most(server: FaultyServer, tmp_path: Path) -> None:
    behaviours = dict.fromkeys("stuvwxyz", BROKEN)
    async with arena(server, tmp_path, FAST, PATIENT, **behaviours) as battles:
        opened = await battles.open(ADA, "Why?")
        last = (await watch(battles, opened.battle_id))[-1]
    assert last.state is BattleState.FAILED
    assert len(answers(tmp_path)) == 4


async def test_a_side_that_fails_after_it_was_seen_is_not_repicked(
    server: FaultyServer, tmp_path: Path
) -> None:
    drops = Behaviour(text="Seen. " * 20, delay_s=0.03, fault=Fault.DROP, fault_after=60)
    async with arena(server, tmp_path, x=drops, y=drops, z=drops) as battles:
        opened = await battles.open(ADA, "Why?")
        assert (await watch(battles, opened.battle_id))[-1].state is BattleState.FAILED
    assert len(answers(tmp_path)) == 2


async def test_a_failure_that_passes_is_asked_again_before_the_first_token(
    server: FaultyServer, tmp_path: Path
) -> None:
    busy = Behaviour(status=429, headers={"retry-after": "0"})
    rules = replace(FAST, retry_pauses_s=(0.2, 0.4))
    async with arena(server, tmp_path, rules, x=busy, y=Behaviour()) as battles:
        opened = await battles.open(ADA, "Why?")
        while not any(seen.model == "x" for seen in server.requests):  # noqa: ASYNC110
            await asyncio.sleep(0.01)
        server.behaviours["x"] = Behaviour(text="Now I have time.")
        last = (await watch(battles, opened.battle_id))[-1]
    assert last.state is BattleState.READY
    assert sum(seen.model == "x" for seen in server.requests) == 2
    assert len(answers(tmp_path)) == 2, "asking again is the same attempt"


@pytest.mark.parametrize(
    ("broken", "asked"),
    [
        (Behaviour(status=401), 1),
        (Behaviour(status=400), 1),
        (Behaviour(text=""), 1),
        (Behaviour(status=429, headers={"retry-after": "60"}), 1),
        (Behaviour(status=503), 3),
        (Behaviour(fault=Fault.DROP), 3),
        (Behaviour(fault=Fault.DROP, fault_after=5), 1),
    ],
    ids=["auth", "bad request", "empty", "too long a wait", "overloaded", "dropped", "begun"],
)
async def test_only_what_may_pass_is_asked_again(
    server: FaultyServer, tmp_path: Path, broken: Behaviour, asked: int
) -> None:
    async with arena(server, tmp_path, x=broken, y=Behaviour(delay_s=0.1)) as battles:
        opened = await battles.open(ADA, "Why?")
        assert (await watch(battles, opened.battle_id))[-1].state is BattleState.FAILED
    assert sum(seen.model == "x" for seen in server.requests) == asked


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


async def test_a_skipped_battle_does_not_go_on(server: FaultyServer, tmp_path: Path) -> None:
    async with arena(server, tmp_path, x=Behaviour(), y=Behaviour()) as battles:
        battle_id = await ready(battles)
        await battles.vote(battle_id, ADA, Choice.SKIP, "k")
        with pytest.raises(NotReadyError):
            await battles.go_on(battle_id, ADA, "More?")


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


async def test_nobody_else_goes_on_in_a_battle(server: FaultyServer, tmp_path: Path) -> None:
    async with arena(server, tmp_path, x=Behaviour(), y=Behaviour()) as battles:
        battle_id = await ready(battles)
        for attempt in (
            battles.reply(battle_id, BOB, "More?"),
            battles.regenerate(battle_id, BOB),
            battles.retry(battle_id, BOB),
            battles.go_on(battle_id, BOB, "More?"),
        ):
            with pytest.raises(UnknownBattleError):
                await attempt


async def test_an_empty_turn_is_refused(server: FaultyServer, tmp_path: Path) -> None:
    async with arena(server, tmp_path, x=Behaviour(), y=Behaviour()) as battles:
        battle_id = await ready(battles)
        with pytest.raises(BadPromptError):
            await battles.reply(battle_id, ADA, "  ")
        assert (await battles.look(battle_id, ADA)).turn == 1
