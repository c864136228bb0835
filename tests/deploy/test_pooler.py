"""A real PgBouncer between the arena and PostgreSQL, with either thing that it can pool."""

import gc
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path

import pytest
from sqlalchemy import create_engine, inspect, text

from arena.api.routes import FRESH_S
from arena.errors import PoolingError, StoreError
from arena.store.engine import PULSE_S, require_sessions
from arena.store.store import Store
from tests.arena.api.test_health import becomes
from tests.command import invoke
from tests.deploy.tools import needs_pgbouncer, pooled
from tests.postgresql import new_database
from tests.serving import free_port, quick_arena

pytestmark = [needs_pgbouncer, pytest.mark.filterwarnings("ignore::ResourceWarning")]


@pytest.fixture
def direct(postgresql: str) -> Iterator[str]:
    with new_database(postgresql) as url:
        yield url
    gc.collect()  # what SQLAlchemy leaves open of a broken connection, lest a later test warn


def test_battles_and_votes_go_on_behind_a_pooler_of_sessions(direct: str, tmp_path: Path) -> None:
    with (
        pooled(direct, "session") as url,
        quick_arena(tmp_path, database=url) as served,
        served.visitor() as ada,
    ):
        assert ada.vote(ada.play(), "tie").json()["outcome"] == "tie"
        assert ada.get("/health/ready").status_code == 200


def test_a_pooler_of_transactions_is_refused_and_nothing_is_made(direct: str) -> None:
    with pooled(direct, "transaction") as url:
        done = invoke(["serve", "--port", "0", "--database", url])
    assert done.returncode == 2
    assert done.stderr.count("\n") == 1
    assert "needs session pooling: set pool_mode = session" in done.stderr
    engine = create_engine(direct)
    assert inspect(engine).get_table_names() == []
    engine.dispose()


def test_a_pooler_of_transactions_is_found_out_however_many_use_it(direct: str) -> None:
    """Its sessions are lent to others meanwhile, and many of them are idle."""
    with pooled(direct, "transaction") as url, ThreadPoolExecutor(8) as others:
        engine = create_engine(url, pool_size=10)

        def ask(_: int) -> None:
            with engine.connect() as connection:
                connection.execute(text("SELECT pg_sleep(0.001)"))

        asked = others.map(ask, range(400))
        for _ in range(20):
            with pytest.raises(PoolingError):
                require_sessions(engine)
        list(asked)
        engine.dispose()


def test_an_arena_is_not_ready_once_its_pooler_pools_transactions(
    direct: str, tmp_path: Path
) -> None:
    port = free_port()
    with ExitStack() as before:
        url = before.enter_context(pooled(direct, "session", port))
        with quick_arena(tmp_path, database=url) as served, served.visitor() as ada:
            assert ada.get("/health/ready").status_code == 200
            before.close()
            with pooled(direct, "transaction", port):
                time.sleep(FRESH_S)
                answer = ada.get("/health/ready")
    assert answer.status_code == 503
    assert "needs session pooling" in answer.json()["detail"]


def test_an_arena_goes_on_when_its_pooler_comes_back(
    direct: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    port = free_port()
    with ExitStack() as before:
        url = before.enter_context(pooled(direct, "session", port))
        with quick_arena(tmp_path, database=url) as served, served.visitor() as ada:
            battle = ada.play()
            before.close()
            time.sleep(2 * PULSE_S)
            with pooled(direct, "session", port):
                becomes(served.url, 200)
                assert ada.vote(battle, "tie").json()["outcome"] == "tie"
                assert ada.vote(ada.play(), "tie").json()["outcome"] == "tie"
    assert "fault of ours" not in caplog.text


def test_the_certificate_of_a_database_is_checked_as_the_url_asks(direct: str) -> None:
    certificate = Path(__file__).parents[1] / "arena" / "endpoints" / "localhost.pem"
    with pooled(direct, "session", certificate=certificate) as url:
        Store(f"{url}?sslmode=verify-full&sslrootcert={certificate}").close()
        for options in ("sslmode=verify-full&sslrootcert=system", "sslmode=disable"):
            with pytest.raises(StoreError, match="SSL"):
                Store(f"{url}?{options}")
