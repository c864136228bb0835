"""Battles read, stopped and gone on with where they do not run: two processes, one PostgreSQL."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import replace
from datetime import UTC, datetime

import psycopg
import pytest
from sqlalchemy.engine import make_url

from arena.api.battles import Position, events_since
from arena.domain.battle import AnswerStatus, BattleState, Pacing, ShownAnswer, ShownTurn, Snapshot
from arena.domain.vote import Choice
from arena.errors import NotReadyError, UnknownBattleError
from arena.play.battles import Battles
from arena.play.matchmaking import Rules
from arena.play.pace import RATES
from arena.play.runner import Reached, Relayed
from arena.store.chain import Took
from tests.arena.play.test_live import ADA, BOB, LONG, models_of, playing, server, watch
from tests.faulty_server import Behaviour, Fault, FaultyServer

__all__ = ["server"]

RULES = Rules(
    characters_per_s=2500, prior_delay_s=0, tick_s=0.02, checkpoint_s=0.1, retry_pauses_s=()
)
SLOW = Behaviour(text=LONG, chunk_size=20, delay_s=0.02)
QUICK = Behaviour(text=LONG)
ENDLESS = Behaviour(text=LONG, fault=Fault.IDLE, fault_after=200)


@asynccontextmanager
async def process(
    url: str, server: FaultyServer, rules: Rules = RULES, **behaviours: Behaviour
) -> AsyncIterator[Battles]:
    """Serve battles between the server's models as one process does."""
    async with playing(url, models_of(server, behaviours), rules) as battles:
        battles.relay.start()
        yield battles


@asynccontextmanager
async def two(
    url: str, server: FaultyServer, rules: Rules = RULES, **behaviours: Behaviour
) -> AsyncIterator[tuple[Battles, Battles]]:
    async with AsyncExitStack() as stack:
        here, there = [
            await stack.enter_async_context(process(url, server, rules, **behaviours))
            for _ in range(2)
        ]
        yield here, there


def texts(snapshot: Snapshot) -> tuple[str, str]:
    last = snapshot.turns[-1]
    return last.a.text, last.b.text


async def until_text(battles: Battles, battle_id: str, least: int = 1) -> Snapshot:
    """Watch until so much of both answers is shown."""
    async for snapshot in battles.watch(battle_id, ADA):
        if min(map(len, texts(snapshot))) >= least:
            return snapshot
    raise AssertionError("it ended before")


async def test_a_battle_is_shown_elsewhere_as_where_it_runs(
    url: str, server: FaultyServer
) -> None:
    async with two(url, server, x=SLOW, y=QUICK) as (here, there):
        opened = await here.open(ADA, "Why?")
        seen_here, seen_there = await asyncio.gather(
            watch(here, opened.battle_id), watch(there, opened.battle_id)
        )
    assert seen_there[-1] == seen_here[-1]
    assert seen_there[-1].state is BattleState.READY
    shown = set(map(texts, seen_here))
    assert [one for one in map(texts, seen_there) if one not in shown] == []
    streamed = [texts(one) for one in seen_there if one.state.running]
    assert any(a for a, _ in streamed), "nothing was shown before the end"
    assert all(len(a) == len(b) for a, b in streamed)


async def test_a_reader_goes_on_elsewhere_at_the_same_place(
    url: str, server: FaultyServer
) -> None:
    async with two(url, server, x=SLOW, y=SLOW) as (here, there):
        opened = await here.open(ADA, "Why?")
        before = list(events_since(await until_text(here, opened.battle_id, 100), Position()))
        reached = before[-1].position
        after = []
        async for snapshot in there.watch(opened.battle_id, ADA):
            events = list(events_since(snapshot, reached))
            after += events
            reached = events[-1].position if events else reached
    text = "".join(
        str(e.data["text"])
        for e in before + after
        if e.data.get("side") == "b" and e.name == "delta"
    )
    assert text == LONG
    assert after[-1].name == "ready"
    assert reached == (1, 1, len(LONG), len(LONG), 4)


async def test_a_look_at_a_battle_elsewhere_shows_what_its_reader_has_seen(
    url: str, server: FaultyServer
) -> None:
    async with two(url, server, x=ENDLESS, y=ENDLESS) as (here, there):
        opened = await here.open(ADA, "Why?")
        seen = await until_text(here, opened.battle_id, 200)
        assert await there.look(opened.battle_id, ADA) == seen
        with pytest.raises(UnknownBattleError):
            await there.look(opened.battle_id, BOB)
        following = asyncio.create_task(anext(there.watch(opened.battle_id, ADA)))
        assert await following == seen
        with pytest.raises(UnknownBattleError):
            await there.stop(opened.battle_id, BOB)


async def test_a_stop_elsewhere_ends_the_battle_with_what_was_seen(
    url: str, server: FaultyServer
) -> None:
    async with two(url, server, x=ENDLESS, y=ENDLESS) as (here, there):
        opened = await here.open(ADA, "Why?")
        seen = texts(await until_text(here, opened.battle_id, 200))
        stopped = await there.stop(opened.battle_id, ADA)
        assert stopped.state is BattleState.READY
        assert texts(stopped) == seen
        assert await here.look(opened.battle_id, ADA) == stopped
        receipt = await there.vote(opened.battle_id, ADA, Choice.TIE, "key")
        assert await here.vote(opened.battle_id, ADA, Choice.TIE, "key") == receipt


async def test_the_rest_is_offered_and_shown_elsewhere(url: str, server: FaultyServer) -> None:
    unhurried = replace(RULES, characters_per_s=150)
    async with two(url, server, unhurried, x=SLOW, y=SLOW) as (here, there):
        for model in ("x", "y"):  # it ends soon: so the rest can be offered soon
            for _ in range(400):
                here.paces.learn(model, Took([0.0] * len(RATES), 0.1, len(LONG)))
        battle_id = (await here.open(ADA, "Why?")).battle_id
        with pytest.raises(NotReadyError):
            await there.show_rest(battle_id, ADA)
        async for snapshot in there.watch(battle_id, ADA):
            if snapshot.rest_offered:
                break
        seen = await there.show_rest(battle_id, ADA)
        assert (seen.state, texts(seen)) == (BattleState.READY, (LONG, LONG))
        assert await there.show_rest(battle_id, ADA) == await here.look(battle_id, ADA) == seen


async def test_the_next_turn_and_another_attempt_go_on_wherever_they_are_asked_for(
    url: str, server: FaultyServer
) -> None:
    async with two(url, server, x=QUICK, y=QUICK) as (here, there):
        battle_id = (await here.open(ADA, "Why?")).battle_id
        assert (await watch(there, battle_id))[-1].state is BattleState.READY
        assert (await there.regenerate(battle_id, ADA)).turns[-1].attempt == 3
        seen = await watch(here, battle_id)
        assert {one.turns[-1].attempt for one in seen} == {3}
        assert (await here.reply(battle_id, ADA, "And then?")).turn == 2
        last = (await watch(there, battle_id))[-1]
        assert (last.turn, last.state, texts(last)) == (2, BattleState.READY, (LONG, LONG))
        await there.vote(battle_id, ADA, Choice.A, "key")
        more = await here.go_on(battle_id, ADA, "More.")
        end = (await watch(there, more.battle_id))[-1]
        assert end.models is not None
        assert end.turn == 3


async def test_another_model_takes_over_elsewhere_too(url: str, server: FaultyServer) -> None:
    broken = Behaviour(fault=Fault.MALFORMED, first_token_s=0.1)
    async with two(url, server, x=broken, y=broken, z=SLOW, w=SLOW) as (here, there):
        for _ in range(6):
            battle_id = (await here.open(ADA, "Why?")).battle_id
            seen = await watch(there, battle_id)
            replaced = there._store.battle(battle_id, ADA.id).repicks
            if seen[-1].state is BattleState.READY and replaced:
                assert texts(seen[-1]) == (LONG, LONG)
                assert {one.turns[-1].attempt for one in seen} == {1}, "nobody can tell"
                return
    raise AssertionError("no model was replaced")


async def test_what_a_message_does_not_hold_comes_in_several(
    url: str, server: FaultyServer
) -> None:
    text = '\N{GRINNING FACE}ä"\\\n' * 1500
    rules = Rules(pacing=Pacing.RAW, tick_s=0.02, checkpoint_s=0.1)
    long = Behaviour(text=text, chunk_size=3000, delay_s=0.3)
    async with two(url, server, rules, x=long, y=long) as (here, there):
        battle_id = (await here.open(ADA, "Why?")).battle_id
        seen = await watch(there, battle_id)
    assert texts(seen[-1]) == (text, text)
    running = [texts(one)[0] for one in seen if one.state.running]
    assert max(map(len, running)) > 2000
    assert all(text.startswith(one) for one in running)


async def test_a_reader_elsewhere_outlasts_lost_connections(
    url: str, server: FaultyServer
) -> None:
    async with two(url, server, x=SLOW, y=SLOW) as (here, there):
        battle_id = (await here.open(ADA, "Why?")).battle_id
        following = asyncio.create_task(watch(there, battle_id))
        await until_text(here, battle_id, 100)
        cut = await asyncio.to_thread(cut_all, url)
        seen = await asyncio.wait_for(following, 20)
    assert cut >= 2, "both listened"
    assert all(LONG.startswith(text) for one in seen for text in texts(one))
    assert texts(seen[-1]) == (LONG, LONG)


async def test_no_message_holds_more_than_the_reader_may_see(
    url: str, server: FaultyServer
) -> None:
    names = {"secret-left": SLOW, "secret-right": QUICK}
    async with two(url, server, RULES, **names) as (here, there):
        battle_id = (await here.open(ADA, "Why?")).battle_id
        process = there._store.process
        with psycopg.connect(plain(url), autocommit=True) as spy:
            spy.execute(f'LISTEN "arena_{process}"')
            seen = await watch(there, battle_id)
            sent = [notify.payload for notify in spy.notifies(timeout=0.5)]
    shown = max(len(texts(one)[0]) for one in seen if one.state.running)
    messages = [json.loads(one) for one in sent]
    assert {m["deed"] for m in messages} == {"show", "end"}
    assert all(m.keys() <= {"deed", "battle", "at", "a", "b"} for m in messages)
    assert not any("secret" in one for one in sent)
    assert max(m["at"][2] + len(m["a"]) for m in messages if m["deed"] == "show") <= max(
        shown, len(LONG)
    )


async def test_a_battle_that_has_gone_on_meanwhile_is_looked_up_anew(
    url: str, server: FaultyServer
) -> None:
    async with two(url, server, x=ENDLESS, y=ENDLESS) as (here, there):
        battle_id = (await here.open(ADA, "Why?")).battle_id
        following = asyncio.create_task(until_text(there, battle_id, 200))
        await until_text(here, battle_id, 1)
        relayed = there.relay.get(battle_id)
        assert relayed is not None
        there.relay._take("show", battle_id, at=[2, 1, 0, 0, False], a="Another", b="turn")
        assert relayed.over.is_set()
        assert texts(await asyncio.wait_for(following, 60)) == (LONG[:200], LONG[:200])


async def test_a_stop_that_comes_late_ends_no_later_turn(url: str, server: FaultyServer) -> None:
    async with two(url, server, x=ENDLESS, y=ENDLESS) as (here, _there):
        battle_id = (await here.open(ADA, "Why?")).battle_id
        here.relay._take("stop", battle_id, turn=0)
        seen = await until_text(here, battle_id, 200)
        assert seen.state.running
        here.relay._take("stop", battle_id, turn=1)
        assert (await watch(here, battle_id))[-1].state is BattleState.READY


async def relayed_so_far() -> Relayed:
    now = datetime.now(UTC)
    empty = ShownAnswer("", AnswerStatus.STREAMING)
    begun = Snapshot("b", BattleState.CREATED, now, (ShownTurn(1, "Why?", empty, empty),))
    relayed = Relayed("ada", 1, begun, Reached(1, 1))
    assert relayed.take(Reached(1, 1), "one two", "uno")
    return relayed


async def test_nothing_is_taken_in_that_something_is_missing_before() -> None:
    relayed = await relayed_so_far()
    changed = relayed.changed
    assert not relayed.take(Reached(1, 1, 8, 3), "three", "")
    assert not relayed.take(Reached(1, 1, 7, 4), "", "tre")
    assert texts(relayed.snapshot) == ("one two", "uno")
    assert not changed.is_set()


async def test_what_comes_twice_is_taken_in_once() -> None:
    relayed = await relayed_so_far()
    assert relayed.take(Reached(1, 1, 4, 0), "two three", "uno due")
    assert relayed.take(Reached(1, 1), "one", "uno")
    assert texts(relayed.snapshot) == ("one two three", "uno due")


async def test_another_attempt_begins_anew_and_one_that_is_over_adds_nothing() -> None:
    relayed = await relayed_so_far()
    assert relayed.take(Reached(1, 2, rest=True), "new", "nuovo")
    assert relayed.take(Reached(1, 1, 7, 3), " more", " di più")
    assert texts(relayed.snapshot) == ("new", "nuovo")
    assert (relayed.snapshot.turns[-1].attempt, relayed.snapshot.rest_offered) == (2, True)
    assert relayed.take(Reached(1, 3), "", "")
    assert texts(relayed.snapshot) == ("", "")
    assert not relayed.snapshot.rest_offered


def cut_all(url: str) -> int:
    """End every connection of the two processes; gives how many of them listened."""
    with psycopg.connect(plain(url), autocommit=True) as admin:
        ended = admin.execute(
            "SELECT query LIKE 'LISTEN%', pg_terminate_backend(pid) FROM pg_stat_activity"
            " WHERE datname = current_database() AND pid <> pg_backend_pid()"
        ).fetchall()
    return sum(listened for listened, _ in ended)


def plain(url: str) -> str:
    return make_url(url).set(drivername="postgresql").render_as_string(hide_password=False)
