"""A record that was changed is shown to be, whatever was changed."""

import json
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Connection, text
from sqlmodel import Session

from arena.boards.leaderboard import Leaderboard
from arena.domain.battle import BattleState
from arena.domain.vote import DEFAULT, Choice, Voter
from arena.store import blocks
from arena.store.chain import text_hash
from arena.store.store import Store
from arena.store.verify import Verified, restore, verify
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
from tests.sqlite import new_sqlite

GOLDEN = Path(__file__).parents[2] / "golden" / "arena_with_a_mark.json"
WORDS = {A1: complete("Scattering."), B1: complete("It mirrors the sea.")}


def played(url: str) -> Store:
    """Keep five votes, a skip, a reply, a new attempt, an exclusion, and a leaderboard of all."""
    store = Store(url)
    store.register(MODELS, NOW)
    for name, choice in (("b1", Choice.A), ("b2", Choice.B), ("b3", Choice.SKIP)):
        store.open_battle(new_battle(name))
        store.close_answers(name, BattleState.READY, WORDS, message=None, now=NOW)
        store.cast(ballot(name, choice))
    exclude(store, "b1", DEFAULT, "a known bot")
    two_turns(store, "b4", "bob")
    ready(store, "b5", Voter("bob"))
    store.cast(ballot("b5", Choice.A, voter="bob"))
    Leaderboard(store, DEFAULT, lambda: NOW).refresh()
    return store


@pytest.fixture(scope="module")
def whole(either_database: str) -> Iterator[Store]:
    with closing(played(either_database)) as store:
        yield store


def tampered(store: Store, statements: Sequence[str]) -> Verified:
    """Verify what somebody left who can write to the database; nothing of it is kept."""
    loose = "PRAGMA defer_foreign_keys = ON"
    if store.engine.dialect.name == "postgresql":
        loose = "SET LOCAL session_replication_role = replica"
    with store.engine.connect() as connection:
        connection.exec_driver_sql(loose)
        for statement in statements:
            assert changed(connection, statement), f"changes nothing: {statement}"
        with Session(connection) as session:
            return verify(session)


def changed(connection: Connection, statement: str) -> bool:
    infinity = "9e999" if connection.dialect.name == "sqlite" else "'Infinity'"
    statement = statement.replace("INFINITY", infinity)
    result = connection.execute(text(statement))
    return not statement.startswith(("UPDATE", "DELETE", "INSERT")) or result.rowcount > 0


def test_a_record_that_nobody_changed_is_whole(whole: Store) -> None:
    with whole.reading() as session:
        verified = verify(session)
    assert (verified.links, verified.marked) == (6, None)
    assert (verified.erased, verified.problem) == (0, None)


OF_BATTLE = (
    "model_a = 'quartz', model_b = 'basalt', mode = 'continued', prompt_id = 'p2', "
    "prompt_set = 'other', pair_probability = 0.5, repicks = 1, pacing = 'raw', "
    "sampler = 'weighted', sampler_version = '2', public_id = 'b9'"
)
OF_VOTE = (
    "outcome = 'model_b', voter_id = 'bob', turn = 2, attempt_a = 2, attempt_b = 2, "
    "order_shown = 'ba', seconds_to_vote = 1.5, fingerprint_a = '9', fingerprint_b = '9', "
    "created = '2026-11-20 12:00:08.000000', content = '9', hash = '9', previous_hash = '9'"
)
OF_ANSWER = (
    "text = 'Magic.', model_id = 'quartz', status = 'failed', error_class = 'timeout', "
    "finish_reason = 'length', first_token_s = 9, duration_s = 9, tokens_in = 9, "
    "tokens_out = 9, cost = 9, side = 'c', attempt = 9, turn = 9, nonce = '9'"
)
"""One change each."""
FIRST = "(SELECT id FROM battle WHERE public_id = 'b1')"


@pytest.mark.parametrize(
    "statement",
    [
        *(
            f"UPDATE battle SET {change} WHERE public_id = 'b1'"
            for change in OF_BATTLE.split(", ")
        ),
        *(f"UPDATE vote SET {change} WHERE battle_id = {FIRST}" for change in OF_VOTE.split(", ")),
        f"UPDATE turn SET prompt = 'Why?' WHERE battle_id = {FIRST}",
        *(
            f"UPDATE answer SET {change} WHERE battle_id = {FIRST} AND side = 'a'"
            for change in (
                *OF_ANSWER.split(", "),
                "nonce = nonce || substr(text, 1, 4), text = substr(text, 5)",
                "nonce = NULL, text = nonce || text",
                "nonce = nonce || text, text = ''",
                "nonce = NULL, text = '', text_hash = '9'",
                "cost = INFINITY",
            )
        ),
        f"UPDATE vote SET seconds_to_vote = INFINITY WHERE battle_id = {FIRST}",
        f"UPDATE turn SET turn = 2 WHERE battle_id = {FIRST}",
        "UPDATE voter SET kind = 'simulated' WHERE id = 'ada'",
        f"DELETE FROM answer WHERE battle_id = {FIRST} AND side = 'a'",
        f"DELETE FROM turn WHERE battle_id = {FIRST}",
    ],
)
def test_a_changed_value_is_found_in_the_first_vote_that_it_touches(
    whole: Store, statement: str
) -> None:
    problem = tampered(whole, [statement]).problem
    assert problem is not None
    name = "b9" if "'b9'" in statement else "b1"
    assert problem.startswith(f"Link 1, the vote on battle {name!r}, ")


INSERTED_VOTE = (
    "INSERT INTO vote (battle_id, voter_id, turn, attempt_a, attempt_b, outcome, key, "
    "order_shown, seconds_to_vote, fingerprint_a, fingerprint_b, created, link, content, "
    "previous_hash, hash) SELECT battle_id + 100, voter_id, turn, attempt_a, attempt_b, outcome, "
    "key, order_shown, seconds_to_vote, fingerprint_a, fingerprint_b, created, {link}, content, "
    "previous_hash, 'new' FROM vote WHERE link = 6"
)
INSERTED_MARK = (
    "INSERT INTO chain_mark (link, content, previous_hash, hash, created) "
    "SELECT {link}, content, hash, 'x', created FROM vote WHERE link = 6"
)
INSERTED_EXCLUSION = (
    "INSERT INTO exclusion (vote_id, policy, rule, version, reason, created, link) "
    "SELECT vote_id, policy, rule, version, reason, created, {link} FROM exclusion"
)


@pytest.mark.parametrize(
    ("statements", "problem"),
    [
        (
            ["UPDATE answer SET text = 'x' WHERE turn = 2 AND attempt = 1 AND side = 'a'"],
            "Link 5, the vote on battle 'b4', is not as it was recorded",
        ),
        (
            ["UPDATE answer SET text = 'x', nonce = NULL, text_hash = 'y' WHERE id = 1"],
            "Link 1, the vote on battle 'b1', is not as it was recorded",
        ),
        (["DELETE FROM vote WHERE link = 6"], "The chain ends at link 5 and should end at 6"),
        (
            [
                "DELETE FROM vote WHERE link = 6",
                "UPDATE vote_chain SET links = 5, head = (SELECT hash FROM vote WHERE link = 5)",
            ],
            "The leaderboard of 2026-11-20 12:00:00 was made of votes that are no longer",
        ),
        (
            [
                "DELETE FROM vote WHERE link = 6",
                "UPDATE vote_chain SET links = 5, head = (SELECT hash FROM vote WHERE link = 5)",
                "DELETE FROM rating_run",
            ],
            "The battle 'b5' does not fit its vote",
        ),
        (
            ["UPDATE vote SET link = 9 WHERE link = 1", "UPDATE vote SET link = 1 WHERE link = 2"],
            "Link 1, the vote on battle 'b2', does not follow from the link before it",
        ),
        (["UPDATE exclusion SET policy = 'x'"], "Link 4, an exclusion of the vote at link 1"),
        ([INSERTED_VOTE.format(link=7), "INSERT_BATTLE"], "does not follow from the link before"),
        ([INSERTED_VOTE.format(link="NULL")], "The chain has 6 links, and there are 7"),
        ([INSERTED_EXCLUSION.format(link="NULL")], "The chain has 6 links, and there are 7"),
        (["UPDATE battle SET state = 'ready' WHERE public_id = 'b5'"], "The battle 'b5' does not"),
        (
            [INSERTED_MARK.format(link=n) for n in (7, 8)],
            "The vote log holds what the arena never",
        ),
        (["UPDATE vote SET content = NULL WHERE link = 2"], "Link 2, the vote on battle 'b2'"),
    ],
)
def test_what_is_swapped_deleted_inserted_or_reordered_is_found(
    whole: Store, statements: list[str], problem: str
) -> None:
    copied = (
        "INSERT INTO battle (id, public_id, owner, mode, model_a, model_b, side_seed, sampler, "
        "sampler_version, pair_probability, system_prompt_hash_a, system_prompt_hash_b, pacing, "
        "state, created, app_version) SELECT id + 100, 'b6', owner, mode, model_a, model_b, "
        "side_seed, sampler, sampler_version, pair_probability, system_prompt_hash_a, "
        "system_prompt_hash_b, pacing, state, created, app_version FROM battle "
        "WHERE public_id = 'b5'"
    )
    verified = tampered(whole, [copied if s == "INSERT_BATTLE" else s for s in statements])
    assert verified.problem is not None
    assert problem in verified.problem


@pytest.mark.parametrize(
    "change", ["created = 'yesterday'", "content = x'00ff'", "seconds_to_vote = 'long'"]
)
def test_what_the_arena_never_writes_is_said_to_be_there(tmp_path: Path, change: str) -> None:
    """SQLite alone lets anything stand in any column."""
    store = played(new_sqlite(tmp_path))
    problem = tampered(store, [f"UPDATE vote SET {change} WHERE link = 2"]).problem
    store.close()
    assert problem is not None


def test_words_can_be_erased_with_their_nonces_and_the_chain_still_holds(whole: Store) -> None:
    with whole.reading() as session:
        query = text(f"SELECT nonce, prompt FROM turn WHERE battle_id = {FIRST}")
        row = session.connection().execute(query).one()
    left = text_hash(row.nonce, row.prompt)
    erase = f"UPDATE turn SET prompt = '', nonce = NULL, text_hash = '{left}'"
    verified = tampered(whole, [f"{erase} WHERE battle_id = {FIRST}"])
    assert (verified.problem, verified.erased) == (None, 1)


def test_a_nonce_is_another_one_for_each_text(whole: Store) -> None:
    with whole.reading() as session:
        query = "SELECT nonce FROM turn UNION ALL SELECT nonce FROM answer"
        nonces = session.connection().execute(text(query)).scalars().all()
    assert len(set(nonces)) == len(nonces)
    assert {len(nonce) for nonce in nonces} == {32}


def test_a_vote_binds_the_fingerprints_that_its_models_had(database_url: str) -> None:
    store = played(database_url)
    store.register([replace(model, decoding={"temperature": 1.0}) for model in MODELS], NOW)
    ready(store, "b7")
    store.cast(ballot("b7"))
    with store.reading() as session:
        prints = session.connection().execute(text("SELECT fingerprint_a FROM vote")).scalars()
        assert len(set(prints)) == 2
        assert verify(session).problem is None
    store.close()


@pytest.fixture(params=["in place", "sqlite", "postgresql"])
def marked(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Store]:
    """An arena with a mark, of 0.1.0: migrated in its file, or restored into a database."""
    old = tmp_path / "old.db"
    with closing(sqlite3.connect(old)) as connection:
        connection.executescript("\n".join(golden()["sql"]))
    on_sqlite = {"in place": f"sqlite:///{old}", "sqlite": f"sqlite:///{tmp_path}/new.db"}
    url = on_sqlite.get(request.param) or request.getfixturevalue("url")
    if request.param != "in place":
        restore(old, url, lambda _done, _total: None)
    with closing(Store(url)) as store:
        yield store


def golden() -> dict[str, Any]:
    return dict(json.loads(GOLDEN.read_text(encoding="utf-8")))


def test_an_arena_with_a_mark_has_the_same_leaderboard(marked: Store) -> None:
    board = Leaderboard(marked, DEFAULT, lambda: NOW + timedelta(hours=2)).refresh()
    old = golden()
    assert (board.votes, dict(board.left_out)) == (old["votes"], old["left_out"])
    for row, before in zip(board.rows, old["rows"], strict=True):
        assert before["price_per_1000"] == 1.01  # the public reads two digits by now
        for name, value in (before | {"price_per_1000": 1.0}).items():
            wanted = pytest.approx(value, rel=1e-9) if isinstance(value, float) else value
            assert getattr(row, name) == wanted


def test_an_arena_with_a_mark_is_whole_from_the_mark_on(marked: Store) -> None:
    with marked.reading() as session:
        verified = verify(session)
    assert (verified.problem, verified.marked, verified.links) == (None, 41, 42)
    waiting = f"{100:032x}"
    marked.cast(ballot(waiting, voter=f"{1:032x}"))
    with marked.reading() as session:
        verified = verify(session)
        newest = blocks.columns(session, DEFAULT).values("battle")[-1]
    assert (verified.problem, verified.links, newest) == (None, 43, waiting)


def test_a_hash_that_was_noted_is_found_where_it_was(marked: Store) -> None:
    with marked.reading() as session:
        assert verify(session, golden()["head"]).noted == 40
        assert verify(session, verify(session).head[:8]).noted == 42
        assert "rewritten" in (verify(session, "c0ffee00").problem or "")


@pytest.mark.sampled(5)
@pytest.mark.parametrize(
    ("statement", "problem"),
    [
        ("UPDATE vote SET outcome = 'tie' WHERE link = 3", "Link 3, the vote on battle"),
        ("UPDATE vote SET key = 'x' WHERE link = 3", "Link 3, the vote on battle"),
        (
            "UPDATE battle SET model_a = model_b, model_b = model_a "
            "WHERE id = (SELECT battle_id FROM vote WHERE link = 3)",
            "Link 3, the vote on battle",
        ),
        ("UPDATE vote SET content = 'x' WHERE link = 3", "Link 3, the vote on battle"),
        ("UPDATE chain_mark SET content = 'x'", "Link 41, the mark, is not as it was recorded"),
        ("DELETE FROM chain_mark", "Link 1, the vote on battle"),
    ],
)
def test_a_change_of_a_vote_from_before_the_mark_shows(
    marked: Store, statement: str, problem: str
) -> None:
    assert problem in (tampered(marked, [statement]).problem or "")


def test_a_vote_of_before_whose_content_was_made_anew_does_not_fit_the_mark(marked: Store) -> None:
    with marked.writing() as session:
        session.connection().exec_driver_sql("UPDATE vote SET fingerprint_a = 'x' WHERE link = 3")
        problem = verify(session).problem
        assert problem == (
            f"Link 3, the vote on battle {f'{3:032x}'!r}, is not as it was recorded."
        )
