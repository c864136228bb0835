"""What judges were asked and answered, on both kinds of database."""

import asyncio
import signal
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import date
from pathlib import Path

import pytest
from sqlmodel import select

from arena.errors import StoreError
from arena.store.judgements import StoredJournal, judging_seed
from arena.store.store import Store
from arena.store.tables import JudgementClaimRow, JudgementRow, VerdictRow
from arena.store.verify import back_up, restore
from judge.budget import Price
from judge.calls import Key
from judge.case import FailureClass, Message, Parameters, Reply, Request, TokenLogprob
from judge.grammar import Preference
from tests.arena.store.battles import NOW

ASKED = Request(
    (Message("user", "\x00 A or B? \ud800"),), Parameters(max_tokens=1, top_logprobs=5)
)
LABEL = TokenLogprob("m", -0.25, {"m": -0.25, "M": -1.5})
REPLY = Reply(
    text="m\x00\ud800", logprobs=(LABEL,), tokens_in=1_000_000, tokens_out=2, latency_s=0.5
)
PRICE = Price(2.0, 1.0, date(2026, 1, 1))
A, B, C = Key("a" * 64), Key("b" * 64), Key("c" * 64)

CLAIMS = """
import asyncio, sys
from datetime import UTC, datetime
from arena.store.judgements import StoredJournal
from arena.store.store import Store
journal = StoredJournal(Store(sys.argv[1]), "judge", None, lambda: datetime.now(UTC))
print(*sorted(asyncio.run(journal.claim(sys.argv[2:]))), flush=True)
sys.stdin.read()
"""
"""A process of its own, as the kernel tells whether it lives."""


@pytest.fixture
def store(database_url: str) -> Iterator[Store]:
    store = Store(database_url)
    yield store
    store.close()


@pytest.fixture
def journal(store: Store) -> StoredJournal:
    return of(store)


def of(store: Store) -> StoredJournal:
    return StoredJournal(store, "judge", PRICE, lambda: NOW)


def claims(store: Store) -> set[str]:
    with store.reading() as session:
        return set(session.exec(select(JudgementClaimRow.hash)))


async def test_a_reply_is_kept_as_it_came_and_the_first_one_stays(
    journal: StoredJournal, store: Store
) -> None:
    assert await journal.recall([A]) == {}
    assert await journal.claim([A, B]) == {A, B}
    await journal.keep(A, ASKED, REPLY)
    await journal.keep(A, ASKED, Reply(text="M"))
    assert await journal.recall([A, B]) == {A: REPLY}
    assert claims(store) == {B}
    with store.reading() as session:
        row = session.exec(select(JudgementRow)).one()
    assert (row.judge, row.cost, row.duration_s) == ("judge", 2.000002, 0.5)
    assert row.request["messages"] == [["user", "\x00 A or B? \ud800"]]


async def test_only_what_has_neither_reply_nor_holder_is_claimed(
    journal: StoredJournal, store: Store
) -> None:
    await journal.keep(A, ASKED, REPLY)
    assert await journal.claim([A, B]) == {B}
    assert await journal.claim([A, B, C]) == {C}
    await journal.release([B])
    assert await journal.claim([B]) == {B}
    await journal.release([A, B, C])
    assert claims(store) == set()


def test_of_several_connections_that_claim_at_once_each_key_goes_to_one(
    store: Store, database_url: str
) -> None:
    """Two asked in opposite orders must not wait for each other either."""
    others = [Store(database_url) for _ in range(3)]
    journals = [of(one) for one in (store, *others)]
    keys = [Key(f"{number:064}") for number in range(200)]
    with ThreadPoolExecutor(4) as pool:
        asked = [keys if n % 2 else keys[::-1] for n in range(4)]
        taken = list(pool.map(lambda j, k: asyncio.run(j.claim(k)), journals, asked))
    assert sum(map(len, taken)) == len(frozenset().union(*taken)) == len(keys)
    for one in others:
        one.close()


async def test_replies_that_come_together_are_all_durable_when_they_are_told_to_be(
    journal: StoredJournal, database_url: str
) -> None:
    keys = [Key(f"{number:064}") for number in range(1200)]
    await asyncio.gather(*(journal.keep(key, ASKED, REPLY) for key in keys))
    other = Store(database_url)
    assert len(await of(other).recall(keys)) == len(keys)
    other.close()


async def test_a_reply_that_cannot_be_written_is_said_to_whoever_waits(
    journal: StoredJournal, store: Store
) -> None:
    with store.writing() as session:
        JudgementClaimRow.__table__.drop(session.connection())  # type: ignore[attr-defined]
    both = await asyncio.gather(
        *(journal.keep(key, ASKED, REPLY) for key in (A, B)), return_exceptions=True
    )
    assert [type(error) for error in both] == [StoreError, StoreError]


async def test_each_version_of_a_parser_has_one_reading_of_a_reply(
    journal: StoredJournal, store: Store
) -> None:
    await journal.keep(A, ASKED, REPLY)
    await journal.note("pairwise/1", {A: FailureClass.UNPARSED})
    await journal.note("pairwise/1", {A: Preference(0.0)})
    await journal.note("pairwise/2", {A: FailureClass.UNPARSED})
    with store.reading() as session:
        rows = session.exec(select(VerdictRow).order_by("parser_version")).all()
        verdicts = [(row.parser_version, row.outcome, row.detail) for row in rows]
    assert verdicts == [
        ("pairwise/1", "model_b", {"first": 0.0}),
        ("pairwise/2", None, {"failure": "unparsed"}),
    ]


@pytest.mark.sampled(2)
def test_the_claims_of_a_living_process_stand_and_those_of_a_dead_one_return(
    journal: StoredJournal, database_url: str
) -> None:
    assert asyncio.run(journal.claim([A])) == {A}
    with subprocess.Popen(
        [sys.executable, "-c", CLAIMS, database_url, A, B],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        cwd=Path(__file__).parents[3],
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline().split() == [B]
        assert [journal.release_abandoned_claims(looks=1) for _ in range(3)] == [0, 0, 0]
        assert asyncio.run(journal.claim([B])) == frozenset()
        process.send_signal(signal.SIGKILL)
        process.wait(timeout=10)
    assert any(journal.release_abandoned_claims(looks=2) for _ in range(10_000))
    assert asyncio.run(journal.claim([A, B])) == {B}


def test_the_seed_is_made_once(store: Store, database_url: str) -> None:
    other = Store(database_url)
    seed = judging_seed(store, NOW)
    assert judging_seed(other, NOW) == seed
    assert len(seed) == 32
    other.close()


async def test_a_backup_holds_what_judges_said(
    journal: StoredJournal, store: Store, database_url: str, tmp_path: Path
) -> None:
    seed = judging_seed(store, NOW)
    await journal.keep(A, ASKED, REPLY)
    await journal.note("pairwise/1", {A: Preference(1.0)})
    await journal.claim([B])
    back_up(database_url, tmp_path / "backup.db", lambda done, total: None)
    restore(tmp_path / "backup.db", f"sqlite:///{tmp_path}/new.db", lambda done, total: None)
    restored = Store(f"sqlite:///{tmp_path}/new.db")
    assert await of(restored).recall([A]) == {A: REPLY}
    assert judging_seed(restored, NOW) == seed
    assert claims(restored) == {B}
    restored.close()
