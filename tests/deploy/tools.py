"""Where the deployment's files are, and the programs that check them."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from arena.server import OTHER_FILES
from arena.settings import Settings

ROOT = Path(__file__).parents[2]
DEPLOY = ROOT / "deploy"
ROSTERS = sorted((DEPLOY / "rosters").glob("*.toml"))
TOOLS = Path(sys.executable).parent
ENVIRONMENT = {"PATH": f"{TOOLS}:{os.environ['PATH']}:/usr/sbin:/sbin"}
NGINX = shutil.which("nginx", path=ENVIRONMENT["PATH"])
ANALYZE = shutil.which("systemd-analyze", path=ENVIRONMENT["PATH"])
needs_nginx = pytest.mark.skipif(NGINX is None, reason="nginx is not installed")
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
