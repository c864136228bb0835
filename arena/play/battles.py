"""Battles from the prompt to the reveal: the only way in for pages, API and simulations."""

import asyncio
import hashlib
import logging
import uuid
from collections.abc import AsyncGenerator, Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from random import Random

from arena import __version__
from arena.domain.answer import Message
from arena.domain.battle import BattleState, Pacing, Sampler, Side, Snapshot
from arena.domain.model import Model, Roster
from arena.domain.vote import Choice, Receipt
from arena.domain.voter import Voter
from arena.errors import BadPromptError, StoreError, UnknownBattleError
from arena.play import words
from arena.play.live import Ask, LiveAnswer, LiveBattle
from arena.play.matchmaking import VERSION, Draw, draw_pair
from arena.play.pacing import Pacer
from arena.play.snapshots import (
    answer_outcome,
    lost_snapshot,
    receipt,
    running_snapshot,
    stored_snapshot,
)
from arena.store.records import Ballot, NewAnswer, NewBattle
from arena.store.store import Store

logger = logging.getLogger(__name__)

POLL_S = 0.5
"""How often a battle that another process runs is looked up."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rules:
    """How battles are played; logged with each of them where it matters.

    Attributes
    ----------
    characters_per_s : float
        Pace at which answers are shown.
    answer_timeout_s : float
        Longest that one answer may take in all.
    tick_s, checkpoint_s : float
        Seconds between releases of text, and between writes of unfinished answers.
    """

    pacing: Pacing = Pacing.PACED
    sampler: Sampler = Sampler.UNIFORM
    characters_per_s: float = 300.0
    max_prompt_chars: int = 20_000
    max_answer_chars: int = 40_000
    answer_timeout_s: float = 180.0
    tick_s: float = 0.1
    checkpoint_s: float = 2.0


@dataclass(slots=True)
class _Running:
    """A battle that this process runs; ``final`` holds an end that could not be stored."""

    owner: str
    created: datetime
    prompt: str
    live: LiveBattle
    task: asyncio.Task[None] | None = None
    final: Snapshot | None = None

    def snapshot(self, battle_id: str) -> Snapshot:
        """Show what the owner may see of the battle now."""
        return self.final or running_snapshot(battle_id, self.created, self.prompt, self.live)


class Battles:
    """Opens battles, shows them, and takes votes.

    Parameters
    ----------
    recorded : mapping of str to tuple of str
        Prompts that a model can answer, by model id; other models answer any.
    rng : random.Random
        Draws pairs and sides.
    """

    def __init__(
        self,
        *,
        store: Store,
        ask: Ask,
        roster: Roster,
        rules: Rules,
        recorded: Mapping[str, tuple[str, ...]],
        rng: Random,
        now: Callable[[], datetime],
    ) -> None:
        self._store = store
        self._ask = ask
        self._roster = roster
        self._rules = rules
        self._recorded = {model: frozenset(prompts) for model, prompts in recorded.items()}
        self._as_recorded = {p.strip(): p for prompts in recorded.values() for p in prompts}
        self._rng = rng
        self._now = now
        self._running: dict[str, _Running] = {}
        self.prompts = _offered(roster, recorded)
        """Prompts that can be answered, when only recordings battle; None when any can."""

    async def open(self, voter: Voter, prompt: str) -> Snapshot:
        """Draw a pair, write the battle down, and let both models begin.

        Raises
        ------
        BadPromptError
            Before anything is written.
        """
        prompt = self._as_recorded.get(prompt.strip(), prompt)
        self._refuse(prompt)
        draw = draw_pair(self._able(prompt), self._rules.sampler, self._rng)
        new = self._new_battle(voter, prompt, draw)
        await asyncio.to_thread(self._store.open_battle, new)
        running = _Running(voter.id, new.created, prompt, self._live(draw))
        self._running[new.public_id] = running
        running.task = asyncio.create_task(self._run(new.public_id, running))
        return running.snapshot(new.public_id)

    async def look(self, battle_id: str, voter: Voter) -> Snapshot:
        """Show a battle to its owner as it stands.

        Raises
        ------
        UnknownBattleError
            If there is none, or it is somebody else's.
        """
        if (running := self._running.get(battle_id)) is not None:
            if running.owner != voter.id:
                raise UnknownBattleError
            return running.snapshot(battle_id)
        stored = await asyncio.to_thread(self._store.battle, battle_id, voter.id)
        return stored_snapshot(stored)

    async def watch(self, battle_id: str, voter: Voter) -> AsyncGenerator[Snapshot]:
        """Show a battle again whenever more of it may be seen, until it has ended."""
        last = None
        while True:
            running = self._running.get(battle_id)
            changed = running.live.changed if running else None
            snapshot = await self.look(battle_id, voter)
            if snapshot != last:
                yield snapshot
            if not snapshot.state.running:
                return
            last = snapshot
            await (changed.wait() if changed else asyncio.sleep(POLL_S))

    async def stop(self, battle_id: str, voter: Voter) -> Snapshot:
        """End a running battle with what its reader has seen; an ended one stays as it is."""
        snapshot = await self.look(battle_id, voter)
        running = self._running.get(battle_id)
        if running is None or running.task is None:
            return snapshot
        running.live.stop()
        await asyncio.shield(running.task)
        return await self.look(battle_id, voter)

    async def vote(self, battle_id: str, voter: Voter, choice: Choice, key: str) -> Receipt:
        """Commit a vote, then reveal the models.

        The vote is committed before this returns, and no name is shown for a battle without
        one. The same key with the same choice gives the same receipt again.

        Raises
        ------
        UnknownBattleError, NotReadyError, AlreadyVotedError
            Nothing is written then.
        StoreError
            The vote may not be committed: send it again with the same key.
        """
        await self.look(battle_id, voter)
        ballot = Ballot(
            battle_id=battle_id, voter=voter.id, choice=choice, key=key, cast=self._now()
        )
        stored = await asyncio.to_thread(self._store.cast, ballot)
        return receipt(stored, choice)

    async def close(self) -> None:
        """End all running battles as interrupted."""
        tasks = [running.task for running in self._running.values() if running.task]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def _refuse(self, prompt: str) -> None:
        if not prompt.strip():
            raise BadPromptError(words.EMPTY_PROMPT)
        if len(prompt) > self._rules.max_prompt_chars:
            raise BadPromptError(words.too_long(len(prompt), self._rules.max_prompt_chars))
        if len(self._able(prompt)) < 2:
            raise BadPromptError(words.NOT_RECORDED)

    def _able(self, prompt: str) -> list[Model]:
        return [
            model
            for model in self._roster
            if model.id not in self._recorded or prompt in self._recorded[model.id]
        ]

    def _new_battle(self, voter: Voter, prompt: str, draw: Draw) -> NewBattle:
        recorded = draw.a.id in self._recorded or draw.b.id in self._recorded
        return NewBattle(
            public_id=uuid.uuid4().hex,
            owner=voter,
            mode="anonymous",
            prompt=prompt,
            a=_new_answer(draw.a),
            b=_new_answer(draw.b),
            side_seed=draw.side_seed,
            sampler=self._rules.sampler,
            sampler_version=VERSION,
            pair_probability=draw.pair_probability,
            pacing=self._rules.pacing,
            prompt_set="recorded" if recorded else None,
            prompt_id=_hash(prompt),
            created=self._now(),
            app_version=__version__,
        )

    def _live(self, draw: Draw) -> LiveBattle:
        return LiveBattle(
            answers={Side.A: LiveAnswer(draw.a), Side.B: LiveAnswer(draw.b)},
            pacer=Pacer(self._rules.pacing, self._rules.characters_per_s),
            max_answer_chars=self._rules.max_answer_chars,
            answer_timeout_s=self._rules.answer_timeout_s,
        )

    async def _run(self, battle_id: str, running: _Running) -> None:
        live = running.live
        keeper = asyncio.create_task(self._checkpoint(battle_id, live))
        try:
            await live.run(self._ask, [Message("user", running.prompt)], tick_s=self._rules.tick_s)
            state, message = _ending(live)
        except asyncio.CancelledError:
            state, message = BattleState.INTERRUPTED, words.INTERRUPTED
        finally:
            keeper.cancel()
        await self._finish(battle_id, running, state, message)

    async def _finish(
        self, battle_id: str, running: _Running, state: BattleState, message: str | None
    ) -> None:
        outcomes = {side: answer_outcome(running.live, side, state) for side in Side}
        try:
            await asyncio.to_thread(
                self._store.close_answers,
                battle_id,
                state,
                outcomes,
                message=message,
                now=self._now(),
            )
        except StoreError:
            logger.exception("Battle %s ended, but could not be written", battle_id)
            running.final = lost_snapshot(battle_id, running.created, running.prompt)
        else:
            del self._running[battle_id]
        running.live.announce()

    async def _checkpoint(self, battle_id: str, live: LiveBattle) -> None:
        written: dict[Side, int] = dict.fromkeys(Side, 0)
        while True:
            await asyncio.sleep(self._rules.checkpoint_s)
            for side, answer in live.answers.items():
                if len(answer.text) + len(answer.reasoning) == written[side]:
                    continue
                written[side] = len(answer.text) + len(answer.reasoning)
                await asyncio.to_thread(
                    self._store.checkpoint, battle_id, side, answer.text, answer.reasoning
                )


def _offered(roster: Roster, recorded: Mapping[str, tuple[str, ...]]) -> tuple[str, ...] | None:
    """Prompts for which two recordings have an answer, in the order of the first of them."""
    if sum(model.id not in recorded for model in roster) >= 2:
        return None
    needed = 2 - sum(model.id not in recorded for model in roster)
    counts: dict[str, int] = {}
    for prompts in recorded.values():
        for prompt in prompts:
            counts[prompt] = counts.get(prompt, 0) + 1
    return tuple(prompt for prompt, count in counts.items() if count >= needed)


def _hash(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def _new_answer(model: Model) -> NewAnswer:
    return NewAnswer(
        model_id=model.id,
        system_prompt_hash=_hash(model.system_prompt),
        decoding=model.decoding,
    )


def _ending(live: LiveBattle) -> tuple[BattleState, str | None]:
    if (side := live.failed_side) is not None:
        return BattleState.FAILED, words.failed(side)
    if live.stopping and not all(live.shown(side) for side in Side):
        return BattleState.STOPPED, words.STOPPED
    return BattleState.READY, None
