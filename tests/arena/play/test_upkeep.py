"""A process that serves keeps its lease through whatever happens to the database."""

import asyncio
import logging

import pytest
from sqlalchemy import create_engine, text
from sqlalchemy.engine import make_url

from arena.domain.battle import BattleState
from arena.play import upkeep
from arena.play.matchmaking import INTERRUPTED
from arena.store.store import Store
from tests.arena.play.test_live import until
from tests.arena.store.battles import MODELS, NOW, new_battle
from tests.postgresql import new_database


def allow_connections(server: str, url: str, allowed: bool) -> None:
    """Let the database be there again, or take it away from everybody."""
    name = make_url(url).database
    admin = create_engine(server, isolation_level="AUTOCOMMIT")
    with admin.connect() as connection:
        connection.execute(text(f"ALTER DATABASE {name} ALLOW_CONNECTIONS {allowed}"))
        if not allowed:
            end = (
                "SELECT pg_terminate_backend(pid, 10000) FROM pg_stat_activity WHERE datname = :n"
            )
            connection.execute(text(end), {"n": name})
    admin.dispose()


async def test_a_process_outlives_a_database_that_is_away_and_keeps_its_battles(
    postgresql: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(upkeep, "PULSE_S", 0.02)
    with new_database(postgresql) as url:
        store, other = Store(url), Store(url)
        store.register(MODELS, NOW)
        upkeep.pulse(store, looks=1)
        store.open_battle(new_battle("b1"))
        keeping = asyncio.create_task(upkeep.keep_up(store))
        allow_connections(postgresql, url, allowed=False)
        await until(lambda: "not currently accepting connections" in caplog.text)
        allow_connections(postgresql, url, allowed=True)
        caplog.clear()
        await until(lambda: holds_its_lock(url))
        upkeep.pulse(other, looks=1)
        assert store.battle("b1", "ada").state is BattleState.CREATED
        keeping.cancel()
        store.close()
        keeping = asyncio.create_task(upkeep.keep_up(other))
        await until(lambda: other.battle("b1", "ada").state is BattleState.INTERRUPTED)
        assert other.battle("b1", "ada").message == INTERRUPTED
        assert ("arena.play.upkeep", logging.WARNING) in [r[:2] for r in caplog.record_tuples]
        keeping.cancel()
        other.close()


def holds_its_lock(url: str) -> bool:
    engine = create_engine(url)
    with engine.connect() as connection:
        here = "(SELECT oid FROM pg_database WHERE datname = current_database())"
        locks = f"SELECT 1 FROM pg_locks WHERE locktype = 'advisory' AND database = {here}"
        held = connection.execute(text(locks)).first() is not None
    engine.dispose()
    return held
