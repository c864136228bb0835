"""Battles, answers and ballots as a store takes them."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import UTC, datetime, timedelta

from arena.domain.battle import AnswerStatus, BattleState, Mode, Pacing, Side
from arena.domain.model import Model
from arena.domain.vote import Choice, Policy, Voter
from arena.store import voting
from arena.store.chain import AnswerKey, AnswerOutcome, Ballot, NewBattle
from arena.store.store import Store
from judge.budget import Price

NOW = datetime(2026, 11, 20, 12, tzinfo=UTC)
MODELS = tuple(
    Model(id=m, name=m.title(), endpoint="pocket://x", model=m) for m in ("basalt", "quartz")
)
ADA = Voter("ada")
A1, B1 = (AnswerKey(1, side, 1) for side in Side)


def new_battle(public_id: str, owner: Voter = ADA) -> NewBattle:
    a, b = (replace(model, decoding={"temperature": 0.5}) for model in MODELS)
    return NewBattle(
        public_id=public_id,
        owner=owner,
        mode=Mode.ANONYMOUS,
        prompt="Why is the sky blue?",
        a=a,
        b=b,
        side_seed=2**31 - 1,
        sampler="uniform",
        sampler_version="1",
        pair_probability=1.0,
        pacing=Pacing.PACED,
        prompt_set=None,
        prompt_id="p1",
        created=NOW,
        app_version="0",
    )


def complete(text: str = "Scattering.") -> AnswerOutcome:
    return AnswerOutcome(
        text=text,
        status=AnswerStatus.COMPLETE,
        finish_reason="stop",
        first_token_s=0.5,
        duration_s=2.0,
        tokens_in=10,
        tokens_out=100,
        price=Price(input=1.0, output=10.0, date=NOW.date()),
    )


def ready(store: Store, public_id: str, owner: Voter = ADA) -> str:
    store.open_battle(new_battle(public_id, owner))
    store.close_answers(
        public_id, BattleState.READY, {A1: complete(), B1: complete()}, message=None, now=NOW
    )
    return public_id


def ballot(
    battle_id: str, choice: Choice = Choice.A, key: str = "k", voter: str = "ada"
) -> Ballot:
    return Ballot(
        battle_id=battle_id, voter=voter, choice=choice, key=key, cast=NOW + timedelta(seconds=9)
    )


def exclude(store: Store, battle_id: str, policy: Policy, reason: str) -> None:
    with store.writing() as session:
        voting.exclude(
            session, battle_id, policy=policy.name, rule="r", version="1", reason=reason, now=NOW
        )


def at_once(n_threads: int, act: Callable[[int], object]) -> None:
    """Let threads act at the same time, each with its number; what one raises is raised here."""
    with ThreadPoolExecutor(n_threads) as pool:
        list(pool.map(act, range(n_threads)))


def two_turns(store: Store, battle_id: str, voter: str) -> None:
    """Play a battle of two turns, the second with a new attempt, and vote a tie on it."""
    ready(store, battle_id, Voter(voter))
    store.add_turn(battle_id, voter, "And at night?", NOW)
    second = {AnswerKey(2, side, 1): complete(f"{side} is dark.") for side in Side}
    store.close_answers(battle_id, BattleState.READY, second, message=None, now=NOW)
    store.add_attempts(battle_id, voter, NOW, only_incomplete=False)
    again = {AnswerKey(2, side, 2): complete(f"{side}: no sun.") for side in Side}
    store.close_answers(battle_id, BattleState.READY, again, message=None, now=NOW)
    store.cast(ballot(battle_id, Choice.TIE, voter=voter))
