"""Battles and their answers: what is logged, when, and what is never overwritten."""

from contextlib import closing
from dataclasses import replace
from datetime import timedelta
from typing import Any
from uuid import uuid4

import pytest
from sqlmodel import col, select

from arena.domain.battle import AnswerStatus, BattleState
from arena.domain.model import Kind, Standing
from arena.domain.vote import DEFAULT, Voter
from arena.errors import RoomError, StoreError, UnknownBattleError
from arena.store import kept_boards, log, roster
from arena.store.chain import AnswerOutcome, Took
from arena.store.store import Store
from arena.store.tables import AnswerRow, BattleRow, ModelEventRow, VoteRow, fingerprint
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


def test_a_battle_is_in_the_log_before_any_answer(store: Store) -> None:
    store.open_battle(new_battle("b1"))
    with store.reading() as session:
        battle = session.exec(select(BattleRow)).one()
        answers = session.exec(select(AnswerRow)).all()
    assert (battle.state, battle.pair_probability, battle.side_seed) == ("created", 1.0, 2**31 - 1)
    assert [(a.side, a.status, a.decoding) for a in answers] == [
        ("a", "streaming", {"temperature": 0.5}),
        ("b", "streaming", {"temperature": 0.5}),
    ]


def test_an_answer_is_logged_with_what_it_took(store: Store) -> None:
    ready(store, "b1")
    with store.reading() as session:
        answer = session.exec(select(AnswerRow)).first()
    assert answer is not None
    assert answer.cost == pytest.approx((10 * 1.0 + 100 * 10.0) / 1e6)
    assert answer.price_date == NOW.date()
    assert answer.first_token_s == 0.5


def test_what_answers_took_is_recalled_by_model_the_newest_last(store: Store) -> None:
    for n in range(4):
        store.open_battle(new_battle(f"b{n}"))
        a = replace(complete("x" * n), needs=[0.0, n / 2])
        both = {A1: a, B1: replace(complete(), status=AnswerStatus.STOPPED)}
        store.close_answers(f"b{n}", BattleState.READY, both, message=None, now=NOW)
    model_a, model_b = (model.id for model in MODELS[:2])
    assert store.read(log.times, [model_a, model_b], 3) == {
        model_a: [Took([0.0, n / 2], 2.0, n) for n in (1, 2, 3)],
        model_b: [],
    }


def test_the_status_says_of_a_day_how_each_model_answered_and_who_it_cost_most(
    store: Store,
) -> None:
    ends = (None, "timeout", "dropped", None, "timeout", None)
    for n, end in enumerate(ends):
        store.open_battle(new_battle(f"b{n}", Voter("ada" if n else "eve")))
        b = replace(complete(), first_token_s=1.0 + n)
        if end is not None:
            sentence = f"no. {n}"
            status = AnswerStatus.FAILED
            b = AnswerOutcome(text="", status=status, error_class=end, error_detail=sentence)
        both = {A1: replace(complete(), first_token_s=(n + 1) / 10), B1: b}
        store.close_answers(f"b{n}", BattleState.READY, both, message=None, now=NOW)
    store.open_battle(replace(new_battle("old"), created=NOW - timedelta(seconds=2)))
    day = store.read(kept_boards.status, NOW + timedelta(days=1, seconds=-1), 2.5)
    assert (day["running"], day["battles"], day["votes"], day["budget"]) == (1, 6, 0, 2.5)
    failed, well = day["models"]
    assert (failed["name"], failed["answers"], failed["tokens_out"]) == ("Quartz", 6, 300)
    times = ("first_token_p50_s", "first_token_p95_s", "dollars")
    assert [failed[name] for name in times] == pytest.approx([4.0, 6.0, 0.00303])
    assert [(one["failure"], one["times"], one["sentence"]) for one in failed["failures"]] == [
        ("timeout", 2, "no. 4"),
        ("dropped", 1, "no. 2"),
    ]
    assert (well["name"], well["answers"], well["failures"]) == ("Basalt", 6, [])
    assert [well[name] for name in times] == pytest.approx([0.3, 0.6, 0.00606])
    assert day["dollars"] == pytest.approx(0.00909)
    assert [(one["voter"], one["answers"]) for one in day["spenders"]] == [("ada", 7), ("eve", 2)]
    assert [one["dollars"] for one in day["spenders"]] == pytest.approx([0.00707, 0.00202])


def test_ten_failures_of_an_endpoint_in_a_row_pause_a_model_of_three(store: Store) -> None:
    third = replace(MODELS[0], id="flint", name="Flint")
    store.write(roster.add, (*MODELS, third), "ada", NOW - timedelta(days=1))

    def failing(*ends: str, days: int = 0) -> str | None:
        for end in ends:
            battle = replace(new_battle(uuid4().hex), created=NOW + timedelta(days=days))
            store.open_battle(battle)
            b = replace(complete(), status=AnswerStatus.FAILED, error_class=end)
            both = {A1: complete(), B1: b if end else complete()}
            store.close_answers(battle.public_id, BattleState.READY, both, message=None, now=NOW)
        return store.read(roster.failing, "quartz")

    nine = ["timeout"] * 9
    for end in ("content_filter", "context_length", ""):
        assert (failing(end, *nine), failing("auth")) == (None, "auth")
    assert store.write(roster.pause, "quartz", NOW) == "auth"
    for model, standing in (("quartz", Standing.ENABLED), ("flint", Standing.DISABLED)):
        store.write(roster.change, model, "ada", NOW + timedelta(days=1), standing=standing)
    assert (failing(*nine, days=2), failing("auth", days=2)) == (None, "auth")
    with pytest.raises(RoomError, match="would leave 1"):
        store.write(roster.pause, "quartz", NOW)


def test_what_a_voter_asked_for_and_cost_since_a_moment_is_read_the_oldest_first(
    store: Store,
) -> None:
    moments = [NOW + timedelta(minutes=minute) for minute in (0, 3, 1, 2)]
    for n, when in enumerate(moments):
        new = new_battle(f"b{n}", Voter("eve" if n == 3 else "ada"))
        store.open_battle(replace(new, created=when))
        both = {A1: complete(), B1: complete()}
        store.close_answers(f"b{n}", BattleState.READY, both, message=None, now=when)
    with store.reading() as session:
        assert [*log.prompts_of(session, "ada", NOW)] == [moments[2], moments[1]]
        spent = log.spent(session, NOW, "ada")
        assert [when for when, _ in spent] == [moments[2]] * 2 + [moments[1]] * 2
        assert [cost for _, cost in spent] == pytest.approx([0.00101] * 4)
        assert len(log.spent(session, NOW)) == 6


def test_a_checkpoint_keeps_text_but_never_overwrites_an_end(store: Store) -> None:
    store.open_battle(new_battle("b1"))
    store.checkpoint({"b1": {A1: ("Scat", "hm")}})
    with store.reading() as session:
        texts = {a.side: a.text for a in session.exec(select(AnswerRow))}
        assert texts == {"a": "Scat", "b": ""}
        assert session.exec(select(BattleRow.state)).one() == BattleState.STREAMING
    both = {key: complete() for key in (A1, B1)}
    store.close_answers("b1", BattleState.READY, both, message=None, now=NOW)
    store.checkpoint({"b1": {A1: ("Scatter", "")}})
    assert store.battle("b1", "ada").turns[0].a.text == "Scattering."
    assert store.battle("b1", "ada").state is BattleState.READY


@pytest.mark.parametrize("odd", ["a\x00b", "a\ud800b"], ids=["NUL", "half a surrogate pair"])
def test_text_that_no_database_can_hold_is_kept_readable(store: Store, odd: str) -> None:
    store.open_battle(replace(new_battle("b1"), prompt=odd))
    both = {key: complete(odd) for key in (A1, B1)}
    store.close_answers("b1", BattleState.READY, both, message=None, now=NOW)
    turn = store.battle("b1", "ada").turns[0]
    assert (turn.prompt, turn.a.text) == ("a\ufffdb", "a\ufffdb")


def test_a_battle_is_shown_to_its_owner_only(store: Store) -> None:
    ready(store, "b1")
    with pytest.raises(UnknownBattleError):
        store.battle("b1", "bob")
    with pytest.raises(UnknownBattleError):
        store.battle("b2", "ada")


def test_a_new_voter_may_open_several_battles_at_once(store: Store) -> None:
    at_once(8, lambda n: store.open_battle(new_battle(f"b{n}", Voter("eve"))))
    with store.reading() as session:
        assert len(session.exec(select(BattleRow)).all()) == 8


def test_a_checkpoint_that_comes_after_a_repick_leaves_the_new_answer_alone(store: Store) -> None:
    store.open_battle(new_battle("b1"))
    failed = replace(complete("Wrong"), status=AnswerStatus.FAILED, error_class="dropped")
    assert store.replace_answer("b1", A1, failed, new_battle("").b, NOW)
    store.checkpoint({"b1": {A1: ("Wrong way", "hm"), B1: ("Right", "")}})
    with store.reading() as session:
        rows = session.exec(select(AnswerRow).order_by(col(AnswerRow.id))).all()
    assert [(a.side, a.attempt, a.status, a.text, a.reasoning) for a in rows] == [
        ("a", 1, "failed", "Wrong", ""),
        ("b", 1, "streaming", "Right", ""),
        ("a", 2, "streaming", "", ""),
    ]
    assert not store.replace_answer("b1", A1, failed, new_battle("").b, NOW), "it has ended"


def test_a_retry_keeps_the_figures_of_the_answer_that_was_complete(store: Store) -> None:
    store.open_battle(new_battle("b1"))
    failed = replace(complete(""), status=AnswerStatus.FAILED, error_class="timeout")
    both = {A1: complete(), B1: failed}
    store.close_answers("b1", BattleState.FAILED, both, message="-", now=NOW)
    store.add_attempts("b1", "ada", NOW, only_incomplete=True)
    taken_up = replace(complete(), first_token_s=None, duration_s=None, tokens_in=None)
    both = {A1: taken_up, replace(B1, attempt=2): complete()}
    assert store.close_answers("b1", BattleState.READY, both, message=None, now=NOW) == "ready"
    with store.reading() as session:
        a = session.exec(select(AnswerRow).where(col(AnswerRow.side) == "a")).one()
    assert (a.first_token_s, a.duration_s, a.tokens_in) == (0.5, 2.0, 10)
    store.cast(ballot("b1"))
    with store.reading() as session:
        attempts = session.exec(select(VoteRow.attempt_a, VoteRow.attempt_b)).one()
    assert tuple(attempts) == (1, 2)


def test_a_checkpoint_that_comes_with_the_end_never_overwrites_it(store: Store) -> None:
    for n in range(20):
        store.open_battle(new_battle(f"b{n}"))

    def write(n: int) -> None:
        for b in range(20):
            if n % 2:
                store.checkpoint({f"b{b}": {A1: ("Scat", "")}})
            else:
                both = {key: complete() for key in (A1, B1)}
                store.close_answers(f"b{b}", BattleState.READY, both, message=None, now=NOW)

    at_once(4, write)
    shown = [store.battle(f"b{b}", "ada") for b in range(20)]
    assert {(b.state, b.turns[0].a.text) for b in shown} == {(BattleState.READY, "Scattering.")}


def test_what_was_running_is_interrupted_at_the_next_start(store: Store) -> None:
    store.open_battle(new_battle("b1"))
    ready(store, "b2")
    assert store.interrupt_running("Nothing was counted.") == 1
    assert store.battle("b1", "ada").state is BattleState.INTERRUPTED
    assert store.battle("b1", "ada").message == "Nothing was counted."
    assert store.battle("b1", "ada").turns[0].a.status is AnswerStatus.INTERRUPTED
    assert store.battle("b2", "ada").state is BattleState.READY


def test_a_model_that_changes_under_its_id_is_noticed(store: Store) -> None:
    changed = replace(MODELS[0], system_prompt="Answer in rhyme.")
    assert store.register(MODELS, NOW) == []
    assert store.register((changed, MODELS[1]), NOW) == ["basalt"]
    with store.reading() as session:
        events = [(e.model_id, e.event) for e in session.exec(select(ModelEventRow))]
    assert events == [("basalt", "added"), ("quartz", "added"), ("basalt", "changed")]


@pytest.mark.parametrize(
    ("change", "same"),
    [
        ({"endpoint": "https://elsewhere.example/v1"}, False),
        ({"model": "another"}, False),
        ({"kind": Kind.SYSTEM}, False),
        ({"system_prompt": "Answer in rhyme."}, False),
        ({"decoding": {"temperature": 0.25}}, False),
        ({"recording": "answers.jsonl"}, False),
        ({"name": "Its new name"}, True),
        ({"organisation": "Another"}, True),
        ({"weight": 2.5}, True),
    ],
)
def test_what_answers_otherwise_is_another_model_and_what_is_said_of_it_makes_none(
    change: dict[str, Any], same: bool
) -> None:
    assert (fingerprint(replace(MODELS[0], **change)) == fingerprint(MODELS[0])) is same


def test_a_thread_that_reads_is_not_let_wait_for_its_own_reading(store: Store) -> None:
    with store.reading():
        with pytest.raises(RuntimeError, match="must end that before"), store.writing():
            pass
        with pytest.raises(RuntimeError, match="must end that before"):
            store.clear_space()
    store.clear_space()


def test_a_board_that_is_being_made_keeps_nobody_from_clearing_space(store: Store) -> None:
    with store.sole("the board") as mine:
        assert mine
        store.read(kept_boards.votes, DEFAULT)
        store.clear_space()


def test_one_replica_at_a_time_is_at_a_task(store: Store) -> None:
    others = store.engine.dialect.name == "sqlite"  # which one process serves
    with store.sole("the board"), store.sole("the board") as mine:
        assert mine == others
    with store.sole("the board") as mine:
        assert mine


def test_space_is_cleared_only_when_nobody_reads_what_was_there_before(
    store: Store, database_url: str
) -> None:
    with closing(Store(database_url, lock_timeout_s=0.3)) as hasty:
        with store.reading() as session:
            session.exec(select(BattleRow)).all()
            with pytest.raises(StoreError, match=r"was read by others for 0\.3 s"):
                hasty.clear_space()
        hasty.clear_space()
