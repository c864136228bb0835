"""A vote is cast once, on a battle that is ready, and its place in the chain is kept."""

import threading
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import timedelta

import pytest
from sqlalchemy import event
from sqlmodel import col, select, update

from arena.domain.battle import AnswerStatus, BattleState, Mode, current_state
from arena.domain.model import Model
from arena.domain.people import PROXY, Entrance, Person
from arena.domain.vote import DEFAULT, Choice, VoterKind
from arena.errors import AlreadyVotedError, NotReadyError, StoreError, UnknownBattleError
from arena.store import battles, blocks, log, people
from arena.store.store import Store
from arena.store.tables import SETTLES, AnswerRow, BattleRow, VoteRow, fingerprint
from arena.store.verify import verify
from rating.tables.coding import microseconds
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

LATER = NOW + timedelta(days=1)


def test_a_vote_by_a_clock_that_was_set_back_took_no_time(store: Store) -> None:
    ready(store, "b1")
    store.cast(replace(ballot("b1"), cast=NOW - timedelta(seconds=9)))
    with store.reading() as session:
        assert session.exec(select(VoteRow.seconds_to_vote)).one() == 0.0


@pytest.fixture
def known(store: Store) -> Person:
    """Somebody who was ada until they signed in, with a battle that was ready by then."""
    ready(store, "b1")
    with store.writing() as session:
        return people.enter(session, Entrance(PROXY, "0", "Ada"), "ada", NOW)


def test_who_signed_in_acts_as_themself_only(store: Store, known: Person) -> None:
    for act in (
        lambda: store.cast(ballot("b1")),
        lambda: store.add_turn("b1", "ada", "More.", NOW),
        lambda: store.add_attempts("b1", "ada", NOW, only_incomplete=False),
    ):
        with pytest.raises(UnknownBattleError):
            act()
    assert store.battle("b1", known.id).state is BattleState.READY
    assert store.cast(ballot("b1", voter=known.id))[1]


def test_who_signs_in_after_somebody_else_takes_none_of_their_battles(
    store: Store, known: Person
) -> None:
    with store.writing() as session:
        people.enter(session, Entrance(PROXY, "1", "Bob"), "ada", NOW)
    assert store.battle("b1", known.id).state is BattleState.READY


@pytest.mark.parametrize(
    "state", [s for s in BattleState if s not in (BattleState.READY, BattleState.VOTED)]
)
def test_only_a_ready_battle_takes_a_vote(store: Store, state: BattleState) -> None:
    ready(store, "b1")
    with store.writing() as session:
        session.exec(update(BattleRow).values(state=state))
    with pytest.raises(NotReadyError):
        store.cast(ballot("b1"))


def test_a_vote_that_waited_for_another_model_binds_that_model(store: Store) -> None:
    """PostgreSQL drops a row that it waited for, if what was joined to it no longer fits."""
    ready(store, "b1")
    replaced = threading.Event()

    def vote() -> None:
        assert replaced.wait(60)
        store.cast(ballot("b1"))

    a, b = MODELS
    with ThreadPoolExecutor(1) as threads:
        voting = threads.submit(vote)
        with store.writing() as session:
            session.exec(update(BattleRow).values(model_a=b.id, model_b=a.id))
            replaced.set()
            time.sleep(0.3)  # the vote waits for the battle
        voting.result()
    with store.reading() as session:
        bound = session.exec(select(VoteRow.fingerprint_a, VoteRow.fingerprint_b)).one()
    assert tuple(bound) == (fingerprint(b), fingerprint(a))


def test_twenty_threads_at_once_commit_one_vote(store: Store) -> None:
    ready(store, "b1")
    words: list[str] = []

    def cast(n: int) -> None:
        try:
            store.cast(ballot("b1", Choice.A if n % 2 else Choice.B, key=f"k{n}"))
            words.append("committed")
        except AlreadyVotedError:
            words.append("refused")

    at_once(20, cast)
    assert sorted(words) == ["committed"] + ["refused"] * 19


def test_votes_at_once_on_different_battles_do_not_fork_the_chain(store: Store) -> None:
    for n in range(40):
        ready(store, f"b{n}")
    at_once(8, lambda n: [store.cast(ballot(f"b{b}")) for b in range(n, 40, 8)])
    with store.reading() as session:
        assert verify(session).problem is None
        assert len(set(session.exec(select(VoteRow.previous_hash)))) == 40


def test_the_log_gives_every_vote_back(store: Store) -> None:
    store.cast(ballot(ready(store, "b1"), Choice.BOTH_BAD))
    store.cast(ballot(ready(store, "b2"), Choice.SKIP))
    ready(store, "b3")
    with store.reading() as session:
        votes = blocks.columns(session, DEFAULT)
        past = battles.past_battles(session, "ada", NOW)
        assert battles.past_battles(session, "bob", NOW) == []
        assert battles.votes_of(session, "ada") == 1, "a skip is none"
    assert votes.values("winner") == [Choice.BOTH_BAD, Choice.SKIP]
    assert votes.values("left_out") == [None, "skipped"]
    assert votes.created[0] == microseconds(NOW + timedelta(seconds=9))
    assert [p.battle_id for p in past] == ["b3", "b2", "b1"], "newest first"
    assert [p.choice for p in past] == [None, Choice.SKIP, Choice.BOTH_BAD]
    names = [(p.model_a_name, p.model_b_name) for p in past]
    assert names == [(None, None)] * 2 + [("Basalt", "Quartz")], "only a vote reveals names"
    assert [(p.created - NOW).seconds for p in past] == [0, 9, 9], (
        "when it was voted on, if it was"
    )


def test_model_records_count_how_battles_ended(store: Store) -> None:
    store.cast(ballot(ready(store, "b1")))
    store.cast(ballot(ready(store, "b2"), Choice.SKIP))
    store.open_battle(new_battle("b3"))
    failed = replace(complete(""), status=AnswerStatus.FAILED, error_class="timeout")
    stopped = replace(complete("Sc"), status=AnswerStatus.STOPPED)
    store.close_answers("b3", BattleState.FAILED, {A1: failed, B1: stopped}, message="-", now=NOW)
    store.open_battle(new_battle("b4"))
    both = {A1: stopped, B1: stopped}
    store.close_answers("b4", BattleState.STOPPED, both, message="-", now=NOW)
    with store.writing() as session:  # an answer whose cost is not known, and a slow dear model
        of_b = col(AnswerRow.side) == "b"
        session.exec(update(AnswerRow).where(of_b).values(cost=0.003, duration_s=5.0))
        session.exec(update(AnswerRow).where(col(AnswerRow.battle_id) == 1).values(cost=None))
    with store.reading() as session:
        basalt, quartz = log.model_records(session, LATER)
    assert (basalt.battles, basalt.failed, basalt.abandoned) == (4, 1, 2)
    assert (quartz.battles, quartz.failed, quartz.abandoned) == (4, 0, 2)
    assert (basalt.price_per_1000, quartz.price_per_1000) == pytest.approx((1.01, 3.0))
    assert (basalt.median_s, quartz.median_s) == (2.0, 5.0)


STORED = [state for state in BattleState if state is not BattleState.EXPIRED]


@pytest.mark.parametrize("mode", Mode)
@pytest.mark.parametrize("state", STORED)
def test_a_battle_is_in_public_figures_once_it_can_no_longer_be_voted_on(
    store: Store, state: BattleState, mode: Mode
) -> None:
    ready(store, "b1")
    with store.writing() as session:
        session.exec(update(BattleRow).values(state=state, mode=mode))
    for asked_since in (NOW - timedelta(days=1), NOW, NOW + SETTLES, LATER):
        now = current_state(state, mode, NOW, asked_since)
        over = now in (BattleState.VOTED, BattleState.SKIPPED) or mode is Mode.CONTINUED
        over |= now is BattleState.EXPIRED and asked_since > NOW + SETTLES
        with store.reading() as session:
            basalt, quartz = log.model_records(session, asked_since)
            asked = log.card_facts(session, DEFAULT, ["basalt"], asked_since).asked
        counted = mode is Mode.ANONYMOUS and over
        assert (basalt.battles, quartz.battles) == (counted, counted)
        assert (basalt.price_per_1000 is not None, quartz.median_s is not None) == (over, over)
        assert ("basalt" in asked) == over


def test_who_failed_is_in_public_figures_once_a_battle_can_no_longer_be_voted_on(
    store: Store,
) -> None:
    failed = replace(complete(""), status=AnswerStatus.FAILED, error_class="timeout")
    store.open_battle(new_battle("b1"))
    store.close_answers(
        "b1", BattleState.FAILED, {A1: failed, B1: complete()}, message="-", now=NOW
    )
    counts = []
    for asked_since in (NOW, LATER):
        basalt, quartz = store.read(log.model_records, asked_since)
        counts.append((basalt.battles, basalt.failed, quartz.battles, quartz.failed))
    assert counts == [(0, 0, 0, 0), (1, 1, 1, 0)]


def test_a_battle_without_a_vote_expires_and_takes_none(store: Store) -> None:
    ready(store, "b1")
    broken = ready(store, "b2")
    with store.writing() as session:
        failed = update(BattleRow).where(col(BattleRow.public_id) == broken)
        session.exec(failed.values(state=BattleState.FAILED))
    since = NOW + timedelta(seconds=1)
    for act in (
        lambda: store.cast(replace(ballot("b1"), asked_since=since)),
        lambda: store.cast(replace(ballot("b1", Choice.SKIP), asked_since=since)),
        lambda: store.add_turn("b1", "ada", "More.", LATER, asked_since=since),
        lambda: store.add_attempts("b1", "ada", LATER, only_incomplete=False, asked_since=since),
        lambda: store.add_attempts(broken, "ada", LATER, only_incomplete=True, asked_since=since),
    ):
        with pytest.raises(NotReadyError, match="left for too long without a vote"):
            act()
    for asked_since, state in ((NOW, BattleState.READY), (since, BattleState.EXPIRED)):
        assert store.read(battles.past_battles, "ada", asked_since)[1].state is state
    store.cast(replace(ballot("b1"), asked_since=NOW))
    assert not store.cast(replace(ballot("b1"), asked_since=since))[1], (
        "a vote that is there stays"
    )


def test_a_turn_keeps_a_battle_open(store: Store) -> None:
    ready(store, "b1")
    store.add_turn("b1", "ada", "More.", LATER, asked_since=NOW)
    both = {replace(key, turn=2): complete() for key in (A1, B1)}
    store.close_answers("b1", BattleState.READY, both, message=None, now=LATER)
    assert store.cast(replace(ballot("b1"), cast=LATER, asked_since=LATER))[1]


def test_answers_are_not_read_for_kinds_of_voters_of_whom_nobody_was_here(store: Store) -> None:
    store.cast(ballot(ready(store, "b1")))
    seen: list[str] = []
    event.listen(store.engine, "before_cursor_execute", lambda *what: seen.append(what[2]))
    with store.reading() as session:
        nobody = log.model_records(session, LATER, {VoterKind.SIMULATED})
        assert nobody == log.models(session, {VoterKind.SIMULATED})
        assert not any("answer" in statement for statement in seen)
        log.model_records(session, LATER, {VoterKind.SIMULATED, VoterKind.ANONYMOUS})
        assert any("answer" in statement for statement in seen)


def test_a_battle_that_a_model_fails_again_and_again_is_lost_once(store: Store) -> None:
    failed = replace(complete(""), status=AnswerStatus.FAILED, error_class="timeout")
    store.open_battle(new_battle("b1"))
    for attempt in range(1, 8):
        ends = {replace(A1, attempt=attempt): failed}
        ends |= {B1: complete()} if attempt == 1 else {}
        store.close_answers("b1", BattleState.FAILED, ends, message="-", now=NOW)
        store.add_attempts("b1", "ada", NOW, only_incomplete=True)
    ends = {replace(A1, attempt=8): failed}
    store.close_answers("b1", BattleState.FAILED, ends, message="-", now=NOW)
    with store.reading() as session:
        basalt, quartz = log.model_records(session, LATER)
    assert (basalt.battles, basalt.failed) == (1, 1)
    assert (quartz.battles, quartz.failed) == (1, 0)


def test_a_battle_that_is_voted_on_after_a_failed_attempt_is_not_lost(store: Store) -> None:
    failed = replace(complete(""), status=AnswerStatus.FAILED, error_class="timeout")
    store.open_battle(new_battle("b1"))
    store.close_answers(
        "b1", BattleState.FAILED, {A1: failed, B1: complete()}, message="-", now=NOW
    )
    store.add_attempts("b1", "ada", NOW, only_incomplete=True)
    again = {replace(A1, attempt=2): complete()}
    store.close_answers("b1", BattleState.READY, again, message=None, now=NOW)
    store.cast(ballot("b1"))
    with store.reading() as session:
        records = log.model_records(session, LATER)
    assert [(r.battles, r.failed, r.abandoned) for r in records] == [(1, 0, 0), (1, 0, 0)]


def test_a_model_that_always_fails_and_is_replaced_is_counted(store: Store) -> None:
    broken = Model(id="broken", name="Broken", endpoint="pocket://x", model="broken")
    store.register((*MODELS, broken), NOW)
    failed = replace(complete(""), status=AnswerStatus.FAILED, error_class="timeout")
    for battle in ("b1", "b2"):
        new = new_battle(battle)
        store.open_battle(replace(new, b=replace(new.b, id="broken")))
        assert store.replace_answer(battle, B1, failed, new.b, NOW)
        ends = {A1: complete(), replace(B1, attempt=2): complete()}
        store.close_answers(battle, BattleState.READY, ends, message=None, now=NOW)
        store.cast(ballot(battle))
    with store.reading() as session:
        records = {record.id: record for record in log.model_records(session, LATER)}
    counts = {id_: (r.battles, r.failed, r.abandoned) for id_, r in records.items()}
    assert counts == {"basalt": (2, 0, 0), "broken": (2, 2, 0), "quartz": (2, 0, 0)}


def test_a_vote_that_cannot_be_written_is_an_error(store: Store) -> None:
    ready(store, "b1")
    with store.writing() as session:
        session.connection().exec_driver_sql("ALTER TABLE vote RENAME TO gone")
    with pytest.raises(StoreError, match=r"The database .* failed"):
        store.cast(ballot("b1"))
