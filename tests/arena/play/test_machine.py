"""Battles under any order of opens, looks, stops, votes, kills and returns, on both databases."""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from random import Random
from typing import TypeVar

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    Bundle,
    RuleBasedStateMachine,
    invariant,
    multiple,
    rule,
    run_state_machine_as_test,
)
from sqlmodel import col, select

from arena.domain.battle import BattleState, Snapshot
from arena.domain.model import Model, Roster
from arena.domain.vote import Choice, Chunk, FailureClass, Finished, Receipt, TextDelta, Voter
from arena.errors import AlreadyVotedError, EndpointError, NotReadyError, UnknownBattleError
from arena.play.battles import Battles
from arena.play.matchmaking import INTERRUPTED, Rules
from arena.store.store import Store
from arena.store.tables import BattleRow, VoteRow
from arena.store.verify import verify
from judge.case import Message

RULES = Rules(
    characters_per_s=3000, prior_delay_s=0, tick_s=0.002, checkpoint_s=0.004, retry_pauses_s=()
)
ROSTER = Roster(
    tuple(Model(id=f"m{n}", name=f"M{n}", endpoint="pocket://", model=f"m{n}") for n in range(4))
)
VOTERS = (Voter("ada"), Voter("bob"))
T = TypeVar("T")


async def ask(model: Model, messages: Sequence[Message]) -> AsyncGenerator[Chunk]:
    """Answer as the prompt says, each model at its own pace."""
    for n in range(6):
        await asyncio.sleep(0.001 * int(model.id[1]))
        yield TextDelta(f"{model.model} says {n}. ")
        if "fail" in messages[-1].content and n == 3 and model.id in ("m1", "m2"):
            raise EndpointError(FailureClass.DROPPED, "as asked for")
    yield Finished("stop", 1, 6)


class Play(RuleBasedStateMachine):
    """A server with two visitors; what it acknowledged is remembered and must stay true."""

    url = ""
    battles_seen = Bundle("battles_seen")

    def __init__(self) -> None:
        super().__init__()
        self.loop = asyncio.new_event_loop()
        self.owner: dict[str, Voter] = {}
        self.acknowledged: dict[str, tuple[Receipt, str]] = {}
        self.start()

    def start(self) -> None:
        self.threads = ThreadPoolExecutor(4)
        self.loop.set_default_executor(self.threads)
        self.store = Store(self.url)
        self.store.hold_lease()
        self.store.register(tuple(ROSTER), datetime.now(UTC))
        self.store.interrupt_running(INTERRUPTED)
        self.battles = Battles(
            store=self.store,
            ask=ask,
            roster=ROSTER,
            rules=RULES,
            recorded={},
            rng=Random(len(self.owner)),
            now=lambda: datetime.now(UTC),
        )

    def run(self, awaitable: Awaitable[T]) -> T:
        return self.loop.run_until_complete(awaitable)

    def attempt(self, battle: str, do: Callable[[Voter], Awaitable[T]], voter: Voter) -> T | None:
        """Do something that may be refused; somebody else must be refused."""
        if voter != self.owner[battle]:
            try:
                self.run(do(voter))
            except UnknownBattleError:
                return None
            raise AssertionError("somebody else was let in")
        try:
            return self.run(do(voter))
        except (NotReadyError, AlreadyVotedError):
            return None

    @rule(target=battles_seen, voter=st.sampled_from(VOTERS), fails=st.booleans())
    def open(self, voter: Voter, fails: bool) -> str:
        opened = self.run(self.battles.open(voter, "Please fail." if fails else "Please."))
        self.owner[opened.battle_id] = voter
        return opened.battle_id

    @rule(seconds=st.sampled_from((0.001, 0.01, 0.05)))
    def wait(self, seconds: float) -> None:
        self.run(asyncio.sleep(seconds))

    @rule(battle=battles_seen, voter=st.sampled_from(VOTERS))
    def look(self, battle: str, voter: Voter) -> None:
        seen = self.attempt(battle, lambda v: self.battles.look(battle, v), voter)
        if seen is not None:
            self.check(seen)

    @rule(battle=battles_seen)
    def watch_to_the_end(self, battle: str) -> None:
        async def collect() -> list[Snapshot]:
            return [seen async for seen in self.battles.watch(battle, self.owner[battle])]

        snapshots = self.run(asyncio.wait_for(collect(), 60))
        assert not snapshots[-1].state.running, "no battle hangs"
        for seen in snapshots:
            self.check(seen)

    @rule(battle=battles_seen, voter=st.sampled_from(VOTERS))
    def stop(self, battle: str, voter: Voter) -> None:
        seen = self.attempt(battle, lambda v: self.battles.stop(battle, v), voter)
        if seen is not None:
            assert not seen.state.running
            self.check(seen)

    @rule(
        battle=battles_seen,
        voter=st.sampled_from(VOTERS),
        choice=st.sampled_from(Choice),
        key=st.sampled_from(("k1", "k2")),
    )
    def vote(self, battle: str, voter: Voter, choice: Choice, key: str) -> None:
        receipt = self.attempt(battle, lambda v: self.battles.vote(battle, v, choice, key), voter)
        if receipt is None:
            return
        assert (receipt.reveal is None) == (choice is Choice.SKIP)
        assert self.acknowledged.setdefault(battle, (receipt, key)) == (receipt, key)

    @rule(battle=battles_seen)
    def ask_more(self, battle: str) -> None:
        self.attempt(battle, lambda v: self.battles.reply(battle, v, "More."), self.owner[battle])

    @rule(battle=battles_seen)
    def ask_anew(self, battle: str) -> None:
        self.attempt(battle, lambda v: self.battles.regenerate(battle, v), self.owner[battle])

    @rule(battle=battles_seen)
    def try_again(self, battle: str) -> None:
        self.attempt(battle, lambda v: self.battles.retry(battle, v), self.owner[battle])

    @rule(target=battles_seen, battle=battles_seen)
    def go_on(self, battle: str) -> object:
        owner = self.owner[battle]
        more = self.attempt(battle, lambda v: self.battles.go_on(battle, v, "On."), owner)
        if more is None:
            return multiple()
        assert self.acknowledged[battle][0].reveal is not None
        self.owner[more.battle_id] = owner
        return more.battle_id

    @rule()
    def kill(self) -> None:
        """Let every task end where it is, and start again on the same database."""
        tasks = asyncio.all_tasks(self.loop)
        for task in tasks:
            task.cancel()
        self.run(asyncio.wait(tasks) if tasks else asyncio.sleep(0))
        self.threads.shutdown()
        self.store.close()
        self.start()

    def check(self, seen: Snapshot) -> None:
        """Hold one view of a battle to what the design promises."""
        last = seen.turns[-1]
        known = seen.battle_id in self.acknowledged
        assert (seen.receipt is not None) == known
        if seen.receipt is not None:
            assert seen.receipt == self.acknowledged[seen.battle_id][0]
            assert seen.state in (BattleState.VOTED, BattleState.SKIPPED)
        if seen.state.running:
            assert len(last.a.text) == len(last.b.text), "both sides show the same length"
        if seen.state in (BattleState.FAILED, BattleState.STOPPED, BattleState.INTERRUPTED):
            assert seen.message

    @invariant()
    def acknowledged_votes_are_in_the_log_once(self) -> None:
        query = (
            select(BattleRow.public_id)
            .join(VoteRow, col(VoteRow.battle_id) == col(BattleRow.id))
            .where(col(BattleRow.public_id).in_(self.owner))
        )
        with self.store.reading() as session:
            assert sorted(session.exec(query)) == sorted(self.acknowledged)
            assert verify(session).problem is None

    def teardown(self) -> None:
        self.run(self.battles.close())
        self.threads.shutdown()
        self.store.close()
        self.loop.close()


def play(url: str, monkeypatch: pytest.MonkeyPatch, *, games: int) -> None:
    monkeypatch.setattr(Play, "url", url)
    run_state_machine_as_test(Play, settings=settings(max_examples=games, stateful_step_count=25))


def test_no_order_of_events_breaks_a_promise(
    database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The rules are the same on both; fewer games on PostgreSQL, where each costs more."""
    play(database_url, monkeypatch, games=6 if database_url.startswith("sqlite") else 4)


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_no_order_of_events_breaks_a_promise_in_many_games(
    database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    play(database_url, monkeypatch, games=60)
