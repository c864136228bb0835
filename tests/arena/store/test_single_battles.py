"""Behind a number lie the battles that its policy counts, and no others."""

from dataclasses import astuple, replace
from datetime import timedelta

from sqlmodel import col, update

from arena.domain.battle import AnswerStatus, BattleState
from arena.domain.model import Model
from arena.domain.vote import DEFAULT, SIMULATED, Choice, Policy, Voter, VoterKind
from arena.play.live import stored_snapshot
from arena.store import battles, blocks
from arena.store.store import Store
from arena.store.tables import BattleRow
from tests.arena.store.battles import (
    A1,
    B1,
    MODELS,
    NOW,
    ballot,
    complete,
    exclude,
    new_battle,
    ready,
    two_turns,
)


def voted(store: Store, battle_id: str, choice: Choice, kind: VoterKind) -> None:
    who = Voter(f"{kind}-{battle_id}", kind)
    ready(store, battle_id, who)
    store.cast(ballot(battle_id, choice, voter=who.id))


def shown(store: Store, policy: Policy = DEFAULT, **wanted: object) -> list[str]:
    with store.reading() as session:
        shown = battles.counted(session, policy, **wanted)  # type: ignore[arg-type]
        assert shown is not None
        return [vote.battle_id for vote in shown.votes]


def test_what_a_policy_counts_is_shown_and_nothing_else(store: Store) -> None:
    for place, (choice, kind) in enumerate((c, k) for c in Choice for k in VoterKind):
        voted(store, f"b{place}", choice, kind)
    ready(store, "not voted on")
    exclude(store, "b0", DEFAULT, "odd")
    for policy in (DEFAULT, SIMULATED):
        with store.reading() as session:
            votes = blocks.columns(session, policy)
            reasons = zip(votes.values("battle"), votes.values("left_out"), strict=True)
            counted = [battle_id for battle_id, why_not in reasons if why_not is None]
            single = [
                battle_id
                for battle_id in votes.values("battle")
                if battles.battle(session, policy, battle_id) is not None
            ]
            assert battles.battle(session, policy, "not voted on") is None
        assert counted
        assert shown(store, policy) == counted[::-1]
        assert single == counted


def test_votes_are_read_by_model_by_pair_and_in_parts(store: Store) -> None:
    for n in range(5):
        voted(store, f"b{n}", Choice.A, VoterKind.ANONYMOUS)
    third = Model(id="third", name="Third", endpoint="pocket://x", model="third")
    store.register((*MODELS, third), NOW)
    with store.writing() as session:
        session.exec(
            update(BattleRow).where(col(BattleRow.public_id) == "b1").values(model_b="third")
        )
    wanted = (
        ["quartz"],
        ["quartz", "basalt"],
        ["third"],
        ["third", "basalt"],
        ["third", "quartz"],
    )
    others = ["b4", "b3", "b2", "b0"]
    assert [shown(store, models=models) for models in wanted] == [others] * 2 + [["b1"]] * 2 + [[]]
    with store.reading() as session:
        first = battles.counted(session, DEFAULT, most=2)
        assert first is not None
        rest = battles.counted(session, DEFAULT, before=first.older_than, most=3)
        assert rest is not None
        assert battles.counted(session, DEFAULT, models=["granite"]) is None
    assert [vote.battle_id for vote in first.votes + rest.votes] == ["b4", "b3", "b2", "b1", "b0"]
    assert (first.older_than is not None, rest.older_than) == (True, None)


def test_the_attempts_that_the_vote_pins_are_shown(store: Store) -> None:
    store.open_battle(new_battle("b"))
    late = replace(complete("Yours."), first_token_s=1.5, tokens_out=50)
    both, ended = {A1: complete("Mine."), B1: late}, NOW + timedelta(seconds=4)
    store.close_answers("b", BattleState.READY, both, message=None, now=ended)
    receipt, _ = store.cast(ballot("b", Choice.B))
    assert receipt.reveal is not None
    assert [astuple(model) for model in (receipt.reveal.a, receipt.reveal.b)] == [
        ("basalt", "Basalt", 0.5, 100, 0.00101, None),
        ("quartz", "Quartz", 1.5, 50, 0.00051, None),
    ]
    assert stored_snapshot(store.battle("b", "ada")).receipt == receipt
    with store.reading() as session:
        shown = battles.battle(session, DEFAULT, "b")
    assert shown is not None
    assert [(t.prompt, t.text_a, t.text_b) for t in shown.turns] == [
        ("Why is the sky blue?", "Mine.", "Yours.")
    ]
    assert (shown.vote.choice, shown.vote.seconds) == (Choice.B, 5.0)
    assert (shown.vote.model_a.name, shown.vote.model_b.name) == ("Basalt", "Quartz")


def test_judges_get_blind_battles_of_one_turn_that_both_models_answered(store: Store) -> None:
    ready(store, "b1")
    two_turns(store, "long", "ada")
    store.open_battle(new_battle("cut"))
    both = {A1: complete(), B1: replace(complete(), status=AnswerStatus.STOPPED)}
    store.close_answers("cut", BattleState.READY, both, message=None, now=NOW)
    others = {"gold": {"prompt_set": "gold:model_a"}, "on": {"mode": "continued"}}
    for name, change in (others | {"gone": {"erased": NOW}}).items():
        changed = update(BattleRow).where(col(BattleRow.public_id) == ready(store, name))
        with store.writing() as session:
            session.exec(changed.values(change))
    ((name, prompt_id, prompt, a, b),) = store.read(battles.answered)
    assert (name, prompt_id, prompt) == ("b1", "p1", "Why is the sky blue?")
    assert (a.model_id, b.model_id) == ("basalt", "quartz")
