import sqlite3
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from sqlmodel import col, select, update

from arena.domain.battle import AnswerStatus, BattleState, Mode, Pacing, Side
from arena.domain.model import Model, Price
from arena.domain.vote import Choice
from arena.domain.voter import Voter
from arena.errors import (
    AlreadyVotedError,
    NotReadyError,
    SchemaError,
    StoreError,
    UnknownBattleError,
)
from arena.store import chain, log
from arena.store.records import AnswerKey, AnswerOutcome, Ballot, NewAnswer, NewBattle, SoFar
from arena.store.store import Store
from arena.store.tables import AnswerRow, BattleRow, ModelEventRow, Table, VoteRow

NOW = datetime(2026, 11, 20, 12, tzinfo=UTC)
MODELS = tuple(
    Model(id=m, name=m.title(), endpoint="pocket://x", model=m) for m in ("basalt", "quartz")
)
ADA = Voter("ada")
A1, B1 = (AnswerKey(1, side, 1) for side in Side)


@pytest.fixture
def store(database_url: str) -> Iterator[Store]:
    store = Store(database_url)
    store.register(MODELS, NOW)
    yield store
    store.close()


def new_battle(public_id: str, owner: Voter = ADA) -> NewBattle:
    a, b = (
        NewAnswer(
            model_id=m.id, model_name=m.name, system_prompt_hash="0", decoding={"temperature": 0.5}
        )
        for m in MODELS
    )
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
        public_id,
        BattleState.READY,
        {A1: complete(), B1: complete()},
        message=None,
        now=NOW,
    )
    return public_id


def ballot(
    battle_id: str, choice: Choice = Choice.A, key: str = "k", voter: str = "ada"
) -> Ballot:
    return Ballot(
        battle_id=battle_id,
        voter=voter,
        choice=choice,
        key=key,
        cast=NOW + timedelta(seconds=9),
    )


def at_once(n_threads: int, act: Callable[[int], object]) -> None:
    """Let threads act at the same time, each with its number; what one raises is raised here."""
    with ThreadPoolExecutor(n_threads) as pool:
        list(pool.map(act, range(n_threads)))


def test_the_migrations_make_exactly_the_tables(store: Store) -> None:
    with store.engine.connect() as connection:
        context = MigrationContext.configure(connection)
        assert compare_metadata(context, Table.metadata) == []


def test_sqlite_is_opened_for_safety(tmp_path: Path) -> None:
    store = Store(f"sqlite:///{tmp_path}/arena.db")
    with store.engine.connect() as connection:
        pragma = {
            name: connection.exec_driver_sql(f"PRAGMA {name}").scalar()
            for name in ("journal_mode", "synchronous", "foreign_keys")
        }
    store.close()
    assert pragma == {"journal_mode": "wal", "synchronous": 2, "foreign_keys": 1}


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


def test_a_checkpoint_keeps_text_but_never_overwrites_an_end(store: Store) -> None:
    store.open_battle(new_battle("b1"))
    store.checkpoint("b1", {A1: SoFar("Scat", "hm")})
    with store.reading() as session:
        texts = {a.side: a.text for a in session.exec(select(AnswerRow))}
        assert texts == {"a": "Scat", "b": ""}
        assert session.exec(select(BattleRow.state)).one() == BattleState.STREAMING
    both = {key: complete() for key in (A1, B1)}
    store.close_answers("b1", BattleState.READY, both, message=None, now=NOW)
    store.checkpoint("b1", {A1: SoFar("Scatter", "")})
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


def test_one_vote_a_battle(store: Store) -> None:
    ready(store, "b1")
    assert store.cast(ballot("b1")).battle.choice is Choice.A
    assert store.cast(ballot("b1")).battle.choice is Choice.A, "the same key gives the same answer"
    for other in (ballot("b1", Choice.B), ballot("b1", key="k2"), ballot("b1", Choice.TIE, "k3")):
        with pytest.raises(AlreadyVotedError):
            store.cast(other)
    with store.reading() as session:
        assert len(session.exec(select(VoteRow)).all()) == 1


def test_nobody_else_votes_on_a_battle(store: Store) -> None:
    ready(store, "b1")
    with pytest.raises(UnknownBattleError):
        store.cast(ballot("b1", voter="bob"))


@pytest.mark.parametrize(
    "state", [s for s in BattleState if s not in (BattleState.READY, BattleState.VOTED)]
)
def test_only_a_ready_battle_takes_a_vote(store: Store, state: BattleState) -> None:
    ready(store, "b1")
    with store.writing() as session:
        session.exec(update(BattleRow).values(state=state))
    with pytest.raises(NotReadyError):
        store.cast(ballot("b1"))


def test_a_skip_closes_the_battle(store: Store) -> None:
    ready(store, "b1")
    assert store.cast(ballot("b1", Choice.SKIP)).battle.state is BattleState.SKIPPED
    with pytest.raises(AlreadyVotedError):
        store.cast(ballot("b1", Choice.A, "k2"))


def test_the_time_to_vote_counts_from_ready(store: Store) -> None:
    ready(store, "b1")
    store.cast(ballot("b1"))
    with store.reading() as session:
        assert session.exec(select(VoteRow.seconds_to_vote)).one() == 9.0


def test_twenty_threads_at_once_commit_one_vote(store: Store) -> None:
    ready(store, "b1")
    said: list[str] = []

    def cast(n: int) -> None:
        try:
            store.cast(ballot("b1", Choice.A if n % 2 else Choice.B, key=f"k{n}"))
            said.append("committed")
        except AlreadyVotedError:
            said.append("refused")

    at_once(20, cast)
    assert sorted(said) == ["committed"] + ["refused"] * 19


def test_votes_at_once_on_different_battles_do_not_fork_the_chain(store: Store) -> None:
    for n in range(40):
        ready(store, f"b{n}")
    at_once(8, lambda n: [store.cast(ballot(f"b{b}")) for b in range(n, 40, 8)])
    with store.reading() as session:
        assert chain.first_break(session) is None
        assert len(set(session.exec(select(VoteRow.previous_hash)))) == 40


def test_a_new_voter_may_open_several_battles_at_once(store: Store) -> None:
    at_once(8, lambda n: store.open_battle(new_battle(f"b{n}", Voter("eve"))))
    with store.reading() as session:
        assert len(session.exec(select(BattleRow)).all()) == 8


def test_a_checkpoint_that_comes_after_a_repick_leaves_the_new_answer_alone(
    store: Store,
) -> None:
    store.open_battle(new_battle("b1"))
    failed = replace(complete("Wrong"), status=AnswerStatus.FAILED, error_class="dropped")
    assert store.replace_answer("b1", A1, failed, new_battle("").b, NOW)
    store.checkpoint("b1", {A1: SoFar("Wrong way", "hm"), B1: SoFar("Right", "")})
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


def test_a_checkpoint_that_comes_with_the_end_never_overwrites_it(store: Store) -> None:
    for n in range(20):
        store.open_battle(new_battle(f"b{n}"))

    def write(n: int) -> None:
        for b in range(20):
            if n % 2:
                store.checkpoint(f"b{b}", {A1: SoFar("Scat", "")})
            else:
                both = {key: complete() for key in (A1, B1)}
                store.close_answers(f"b{b}", BattleState.READY, both, message=None, now=NOW)

    at_once(4, write)
    shown = [store.battle(f"b{b}", "ada") for b in range(20)]
    assert {(b.state, b.turns[0].a.text) for b in shown} == {(BattleState.READY, "Scattering.")}


def test_votes_form_a_chain_in_which_a_later_edit_shows(store: Store) -> None:
    for name in ("b1", "b2", "b3"):
        store.cast(ballot(ready(store, name)))
    with store.reading() as session:
        assert chain.first_break(session) is None
        assert (
            chain.head(session)
            == session.exec(select(VoteRow.hash).order_by(col(VoteRow.id).desc())).first()
        )
    with store.writing() as session:
        session.exec(update(VoteRow).where(col(VoteRow.id) == 2).values(outcome="model_b"))
    with store.reading() as session:
        assert chain.first_break(session) == "b2"


def test_what_was_running_is_interrupted_at_the_next_start(store: Store) -> None:
    store.open_battle(new_battle("b1"))
    ready(store, "b2")
    assert store.interrupt_running("Nothing was counted.") == 1
    assert store.battle("b1", "ada").state is BattleState.INTERRUPTED
    assert store.battle("b1", "ada").message == "Nothing was counted."
    assert store.battle("b1", "ada").turns[0].a.status is AnswerStatus.INTERRUPTED
    assert store.battle("b2", "ada").state is BattleState.READY


def test_the_log_gives_every_vote_back(store: Store) -> None:
    store.cast(ballot(ready(store, "b1"), Choice.BOTH_BAD))
    store.cast(ballot(ready(store, "b2"), Choice.SKIP))
    with store.reading() as session:
        votes = log.votes(session, "default-v1")
        past = log.past_battles(session, "ada")
    assert [v.outcome for v in votes] == [Choice.BOTH_BAD, Choice.SKIP]
    assert votes[0].created == NOW + timedelta(seconds=9)
    assert votes[0].created.tzinfo is not None
    assert [p.battle_id for p in past] == ["b2", "b1"], "newest first"


def test_model_records_count_how_battles_ended(store: Store) -> None:
    store.cast(ballot(ready(store, "b1")))
    store.cast(ballot(ready(store, "b2"), Choice.SKIP))
    store.open_battle(new_battle("b3"))
    failed = replace(complete(""), status=AnswerStatus.FAILED, error_class="timeout")
    stopped = replace(complete("Sc"), status=AnswerStatus.STOPPED)
    store.close_answers("b3", BattleState.FAILED, {A1: failed, B1: stopped}, message="-", now=NOW)
    with store.reading() as session:
        basalt, quartz = log.model_records(session)
    assert (basalt.battles, basalt.failed, basalt.abandoned) == (3, 1, 1)
    assert (quartz.battles, quartz.failed, quartz.abandoned) == (3, 0, 1)
    assert basalt.cost_per_1000 == pytest.approx(1.01)
    assert basalt.median_s == 2.0


def test_a_model_that_changes_under_its_id_is_noticed(store: Store) -> None:
    changed = replace(MODELS[0], system_prompt="Answer in rhyme.")
    assert store.register(MODELS, NOW) == []
    assert store.register((changed, MODELS[1]), NOW) == ["basalt"]
    with store.reading() as session:
        events = [(e.model_id, e.event) for e in session.exec(select(ModelEventRow))]
    assert events == [("basalt", "added"), ("quartz", "added"), ("basalt", "changed")]


def test_a_newer_schema_is_refused(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/arena.db"
    Store(url).close()
    with sqlite3.connect(tmp_path / "arena.db") as connection:
        connection.execute("UPDATE alembic_version SET version_num = '9999'")
    connection.close()
    with pytest.raises(SchemaError, match=r"'9999'.*newer"):
        Store(url)


def test_somebody_else_s_tables_are_refused(tmp_path: Path) -> None:
    with sqlite3.connect(tmp_path / "other.db") as connection:
        connection.execute("CREATE TABLE vote (id INTEGER)")
    connection.close()
    with pytest.raises(SchemaError, match="did not make"):
        Store(f"sqlite:///{tmp_path}/other.db")


@pytest.mark.parametrize(
    ("url", "words"),
    [
        ("arena.db", "Cannot read the database URL 'arena.db'"),
        ("sqlite:////no/such/folder/arena.db", "folder does not exist"),
        ("nonsense://x/y", "nonsense"),
        ("postgres://x/y", "'postgres'.*postgresql://user@host/name"),
        ("postgresql://x@127.0.0.1:1/y", "Cannot use the database .*refused"),
    ],
)
def test_a_database_that_cannot_be_opened_is_said(url: str, words: str) -> None:
    with pytest.raises(StoreError, match=words):
        Store(url)


def test_a_missing_driver_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "psycopg", None)
    with pytest.raises(StoreError, match=r"'postgresql'.*psycopg.*pip install '.\[postgres\]'"):
        Store("postgresql://x/y")


def test_a_file_that_is_no_database_is_said(tmp_path: Path) -> None:
    (tmp_path / "notes.db").write_text("Dear diary" * 1000)
    with pytest.raises(StoreError, match="not a database"):
        Store(f"sqlite:///{tmp_path}/notes.db")


def test_a_vote_that_cannot_be_written_is_an_error(store: Store) -> None:
    ready(store, "b1")
    with store.writing() as session:
        session.connection().exec_driver_sql("ALTER TABLE vote RENAME TO gone")
    with pytest.raises(StoreError, match=r"The database .* failed"):
        store.cast(ballot("b1"))
