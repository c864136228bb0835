"""Where the deployment's files are, and the programs that check them."""

import os
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import pytest
from sqlalchemy.engine import make_url

from arena.server import OTHER_FILES
from arena.settings import Settings
from tests.serving import free_port

ROOT = Path(__file__).parents[2]
DEPLOY = ROOT / "deploy"
ROSTERS = sorted((DEPLOY / "rosters").glob("*.toml"))
TOOLS = Path(sys.executable).parent
ENVIRONMENT = {"PATH": f"{TOOLS}:{os.environ['PATH']}:/usr/sbin:/sbin"}
NGINX = shutil.which("nginx", path=ENVIRONMENT["PATH"])
ANALYZE = shutil.which("systemd-analyze", path=ENVIRONMENT["PATH"])
PGBOUNCER = shutil.which("pgbouncer", path=ENVIRONMENT["PATH"])
needs_nginx = pytest.mark.skipif(NGINX is None, reason="nginx is not installed")
needs_pgbouncer = pytest.mark.skipif(PGBOUNCER is None, reason="pgbouncer is not installed")
needs_systemd = pytest.mark.skipif(ANALYZE is None, reason="systemd-analyze is not installed")


def read(name: str) -> str:
    return (DEPLOY / name).read_text(encoding="utf-8")


def run(*words: str | Path, **env: str) -> subprocess.CompletedProcess[str]:
    """Run a program, and give what it said on both streams."""
    return subprocess.run(
        [str(word) for word in words],
        env=ENVIRONMENT | env,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
        timeout=60,
    )


def needed_files() -> int:
    """Files that the arena may open with its default settings."""
    settings = Settings()
    return settings.connections + 2 * settings.running_battles + OTHER_FILES


def assert_content(*words: str | Path) -> None:
    """Run a checker, which has to find nothing."""
    done = run(*words)
    assert done.returncode == 0, done.stdout


def here(folder: Path, port: int, *replicas: str, changes: Mapping[str, str] = {}) -> Path:
    """Write a copy of nginx.conf that fits this machine and changes nothing else unasked."""
    servers = "".join(f"server {replica} fail_timeout=2s;" for replica in replicas)
    text = read("nginx.conf")
    for old, new in (
        ("server app:7860 fail_timeout=2s;", servers),
        ("listen 8080;", f"listen 127.0.0.1:{port};"),
        (" /tmp/", f" {folder}/"),
        ("worker_processes auto;", "worker_processes 1;"),
        ("/dev/stdout", f"{folder}/access.log"),
        *changes.items(),
    ):
        assert old in text
        text = text.replace(old, new)
    if os.geteuid() == 0:
        text = f"user root;\n{text}"
    path = folder / "nginx.conf"
    path.write_text(text, encoding="utf-8")
    return path


@contextmanager
def proxied(folder: Path, *replicas: str, changes: Mapping[str, str] = {}) -> Iterator[str]:
    """Run nginx in front of replicas, each a host and a port; gives its address."""
    assert NGINX
    folder.mkdir()
    port = free_port()
    conf = here(folder, port, *replicas, changes=changes)
    words = (NGINX, "-p", folder, "-c", conf, "-g", "daemon off;")
    with (folder / "error.log").open("w") as log, subprocess.Popen(words, stderr=log) as nginx:
        try:
            wait_for(port)
            yield f"http://127.0.0.1:{port}"
        finally:
            nginx.terminate()


@contextmanager
def pooled(
    database: str, mode: str, port: int | None = None, certificate: Path | None = None
) -> Iterator[str]:
    """Run PgBouncer, which pools what its mode says, before a database; gives the URL there.

    With a certificate, and its key in the same file, it takes connections over TLS alone.
    """
    assert PGBOUNCER
    url = make_url(database)
    folder = Path(str(url.query["host"]))
    port = port or free_port()
    file = folder / f"pgbouncer-{port}.ini"
    file.write_text(
        f"[databases]\n* = host={folder} user={url.username}\n[pgbouncer]\nauth_type = any\n"
        f"listen_addr = 127.0.0.1\nlisten_port = {port}\nunix_socket_dir =\npool_mode = {mode}\n"
    )
    if certificate:
        shutil.copyfile(certificate, copy := folder / "pgbouncer.pem")
        with file.open("a") as settings:
            settings.write(f"client_tls_sslmode = require\nclient_tls_cert_file = {copy}\n")
            settings.write(f"client_tls_key_file = {copy}\n")
    owner = folder.stat().st_uid if os.geteuid() == 0 else None  # it refuses to run as root
    with subprocess.Popen([PGBOUNCER, "--quiet", file], user=owner) as pooler:
        try:
            wait_for(port)
            yield f"postgresql://{url.username}@127.0.0.1:{port}/{url.database}"
        finally:
            pooler.terminate()


def wait_for(port: int, within_s: float = 60.0) -> None:
    deadline = time.monotonic() + within_s
    while True:
        try:
            socket.create_connection(("127.0.0.1", port), timeout=1).close()
        except OSError:
            assert time.monotonic() < deadline, "it did not start"
            time.sleep(0.02)
        else:
            return
