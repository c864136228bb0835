import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from multiprocessing.synchronize import Barrier
from pathlib import Path

import pytest
from sqlalchemy import create_engine, text
from sqlmodel import col, select, update

from arena.domain.battle import AnswerStatus, BattleState
from arena.errors import StoreError
from arena.store.engine import Lease
from arena.store.store import Store
from arena.store.tables import AnswerRow, BattleRow, ModelEventRow, ModelRow
from tests.arena.store.battles import A1, B1, MODELS, NOW, complete, new_battle, ready
from tests.postgresql import new_database
from tests.process import FORKS

AT_ONCE = 4
ROUNDS = 5

RUNS_A_BATTLE = """
import sys
from arena.store.engine import Lease
from arena.store.store import Store
from tests.arena.store.battles import new_battle
store = Store(sys.argv[1])
store.hold_lease()
store.open_battle(new_battle(sys.argv[2]))
print("running", flush=True)
sys.stdin.read()
store.close()
print("closed", flush=True)
sys.stdin.read()
"""
"""A process of its own, as the kernel tells whether it lives."""


@contextmanager
def another(url: str, battle_id: str) -> Iterator[subprocess.Popen[str]]:
    """Let another process run a battle."""
    with subprocess.Popen(
        [sys.executable, "-c", RUNS_A_BATTLE, url, battle_id],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        cwd=Path(__file__).parents[3],
    ) as process:
        try:
            assert process.stdout is not None
            assert process.stdout.readline() == "running\n"
            yield process
        finally:
            process.kill()


@pytest.fixture
def store(database_url: str) -> Iterator[Store]:
    store = Store(database_url)
    store.hold_lease()
    store.register(MODELS, NOW)
    yield store
    store.close()


def states(store: Store) -> dict[str, str]:
    with store.reading() as session:
        rows = session.exec(select(BattleRow.public_id, BattleRow.state)).all()
    return dict(rows)


def dies(process: subprocess.Popen[str]) -> None:
    process.send_signal(signal.SIGKILL)
    process.wait(timeout=10)


def leaves(process: subprocess.Popen[str]) -> None:
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.close()
    assert process.stdout.readline() == "closed\n"


@pytest.mark.sampled(3)
@pytest.mark.parametrize("ends", [dies, leaves])
def test_the_battles_of_a_living_process_run_on_and_those_of_a_dead_one_end(
    store: Store, database_url: str, ends: Callable[[subprocess.Popen[str]], None]
) -> None:
    store.open_battle(new_battle("mine"))
    with another(database_url, "theirs") as process:
        assert [store.interrupt_running("-") for _ in range(4)] == [0, 0, 0, 0]
        assert states(store) == {"mine": "created", "theirs": "created"}
        ends(process)
        until(lambda: store.interrupt_running("The end.") == 1)
    assert states(store) == {"mine": "created", "theirs": "interrupted"}
    theirs = store.battle("theirs", "ada")
    assert theirs.message == "The end."
    assert theirs.turns[0].a.status is AnswerStatus.INTERRUPTED


def until(holds: Callable[[], bool]) -> None:
    """Look again: PostgreSQL takes a moment to see that a connection has gone."""
    assert any(holds() for _ in range(10_000))


def test_a_process_counts_as_dead_only_after_as_many_looks_as_were_asked_for(
    store: Store, database_url: str
) -> None:
    other = Store(database_url)
    other.open_battle(new_battle("b1"))
    with store.writing() as session:
        session.exec(update(BattleRow).values(process=7))
    assert [store.interrupt_running("-", looks=3) for _ in range(4)] == [0, 0, 1, 0]
    with store.writing() as session:
        session.exec(update(BattleRow).values(process=8, state=BattleState.STREAMING))
    assert [store.interrupt_running("-", looks=3) for _ in range(2)] == [0, 0]
    assert states(other) == {"b1": "streaming"}
    other.close()


def test_a_battle_that_no_process_runs_is_interrupted_at_once(
    store: Store, database_url: str
) -> None:
    with_no_lease = Store(database_url)
    with_no_lease.open_battle(new_battle("b1"))
    assert store.interrupt_running("-", looks=3) == 1
    with_no_lease.close()


@pytest.mark.sampled(2)
def test_whoever_takes_a_battle_up_again_runs_it(store: Store, database_url: str) -> None:
    with another(database_url, "b1") as process:
        dies(process)
        until(lambda: store.interrupt_running("-") == 1)
    store.add_attempts("b1", "ada", NOW, only_incomplete=True)
    assert store.interrupt_running("-") == 0
    ready(store, "b2")
    with store.writing() as session:
        session.exec(update(BattleRow).values(process=None))
    store.add_turn("b2", "ada", "And then?", NOW)
    with store.reading() as session:
        runs_b2 = select(BattleRow.process).where(col(BattleRow.public_id) == "b2")
        assert session.exec(runs_b2).one() == store.process


def test_a_lease_that_was_lost_with_its_connection_is_taken_again(url: str) -> None:
    ours, theirs = Store(url), Store(url)
    ours.hold_lease()
    ours.register(MODELS, NOW)
    ours.open_battle(new_battle("b1"))
    hang_up(url)
    assert theirs.interrupt_running("-", looks=2) == 0, "not at the first look"
    ours.hold_lease()
    assert [theirs.interrupt_running("-", looks=2) for _ in range(3)] == [0, 0, 0]
    ours.hold_lease()
    ours.close()
    assert [theirs.interrupt_running("-", looks=2) for _ in range(2)] == [0, 1]
    theirs.close()


def hang_up(url: str) -> None:
    """Close all connections to the database, as a restart of the server does."""
    admin = create_engine(url)
    with admin.connect() as connection:
        connection.execute(
            text(
                "SELECT pg_terminate_backend(pid, 10000) FROM pg_stat_activity "
                "WHERE datname = current_database() AND pid != pg_backend_pid()"
            )
        )
    admin.dispose()


def test_a_lease_that_was_given_up_is_free_at_once(url: str) -> None:
    """Else an arena that begins again leaves the battles before it running, until a later look."""
    later = Store(url)
    later.register(MODELS, NOW)
    engine = create_engine(url)
    for _ in range(100):
        lease = Lease(engine)
        lease.hold()
        lease.drop()
        with later.reading() as session:
            assert later.dead(session, {lease.process}, looks=1)
    engine.dispose()
    later.close()


def test_a_lock_that_somebody_else_holds_is_said(url: str) -> None:
    store = Store(url)
    admin = create_engine(url)
    with admin.connect() as connection:
        connection.execute(text("SELECT pg_advisory_lock(:n)"), {"n": store._lease.process})
        with pytest.raises(StoreError, match="still held"):
            store.hold_lease()
        connection.execute(text("SELECT pg_advisory_unlock_all()"))
    admin.dispose()
    store.hold_lease()
    assert store.process is not None
    store.close()


def test_a_lease_takes_no_connection_from_the_pool(url: str) -> None:
    store = Store(url)
    store.hold_lease()
    assert store.engine.pool.status().count("Current Checked out connections: 0") == 1
    store.close()


def test_a_lease_that_was_given_up_is_not_taken_again_by_a_late_pulse(database_url: str) -> None:
    store = Store(database_url)
    store.hold_lease()
    store.close()
    store.hold_lease()
    assert store.process is None


def test_a_file_that_cannot_be_locked_is_said(tmp_path: Path) -> None:
    store = Store(f"sqlite:///{tmp_path}/arena.db")
    (tmp_path / "arena.db-lock").mkdir()
    with pytest.raises(StoreError, match=r"Cannot lock .*arena\.db-lock.*local disk"):
        store.hold_lease()
    store.close()


def test_the_first_end_of_a_battle_stands(store: Store) -> None:
    """A process that counted as dead, and lives, does not write over what came after."""
    store.open_battle(new_battle("b1"))
    with store.writing() as session:
        session.exec(update(BattleRow).values(process=None))
    assert store.interrupt_running("-") == 1
    both = {key: complete() for key in (A1, B1)}
    end = BattleState.READY
    assert store.close_answers("b1", end, both, message=None, now=NOW) is BattleState.INTERRUPTED
    store.add_attempts("b1", "ada", NOW, only_incomplete=True)
    assert store.close_answers("b1", end, both, message=None, now=NOW) is BattleState.CREATED
    with store.reading() as session:
        answers = session.exec(select(AnswerRow.attempt, AnswerRow.status, AnswerRow.text)).all()
    assert sorted(answers) == 2 * [(1, "interrupted", "")] + 2 * [(2, "streaming", "")]


def first_start(url: str) -> None:
    """Begin at the same moment as the others; who fails lets nobody wait."""
    meet.wait(timeout=60)
    try:
        store = Store(url)
        store.hold_lease()
        store.register(MODELS, NOW)
        store.interrupt_running("-")
        store.open_battle(new_battle(f"battle of {store.process}"))
    except StoreError:
        meet.abort()
        raise
    meet.wait(timeout=60)  # whoever leaves is dead to those that still begin
    store.close()


def let_meet(barrier: Barrier) -> None:
    global meet
    meet = barrier


meet: Barrier


@pytest.mark.parametrize("kind", ["sqlite", "postgresql"])
def test_four_processes_that_begin_at_once_on_an_empty_database_all_do(
    kind: str, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    everybody = FORKS.Barrier(AT_ONCE)
    with ProcessPoolExecutor(AT_ONCE, FORKS, let_meet, (everybody,)) as pool:
        for number in range(ROUNDS):
            with empty_database(kind, request, tmp_path / f"{number}.db") as url:
                list(pool.map(first_start, [url] * AT_ONCE))
                store = Store(url)
                with store.reading() as session:
                    assert sorted(session.exec(select(ModelRow.id))) == ["basalt", "quartz"]
                    assert sorted(session.exec(select(ModelEventRow.event))) == ["added"] * 2
                assert list(states(store).values()) == AT_ONCE * ["created"]
                store.close()


@contextmanager
def empty_database(kind: str, request: pytest.FixtureRequest, file: Path) -> Iterator[str]:
    if kind == "sqlite":
        yield f"sqlite:///{file}"
    else:
        with new_database(request.getfixturevalue("postgresql")) as url:
            yield url
