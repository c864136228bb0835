"""The files of deploy/ are sound, as far as can be seen without a network and without Docker."""

import json
import os
import re
import shutil
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import httpx
import pytest
from ruamel.yaml import YAML

from arena.settings import Settings, read_roster
from tests.faulty_server import Behaviour, faulty_server
from tests.serving import Served, Visitor, client_of, served_by

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


def assert_content(*words: str | Path) -> None:
    """Run a checker, which has to find nothing."""
    done = run(*words)
    assert done.returncode == 0, done.stdout


# The image


def test_the_dockerfile_gives_its_linter_nothing_to_say() -> None:
    done = run("hadolint", "--no-color", "--failure-threshold", "style", DEPLOY / "Dockerfile")
    assert (done.returncode, done.stdout) == (0, "")


def test_the_image_is_pinned_locked_and_not_root_s() -> None:
    dockerfile = read("Dockerfile")
    bases = re.findall(r"^FROM (\S+)", dockerfile, re.MULTILINE)
    assert [b for b in bases if not re.fullmatch(r"python:3\.\d+\.\d+-slim-\w+", b)] == []
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


def test_the_health_check_tells_a_ready_arena_from_none(quick: Served) -> None:
    found = re.search(r"HEALTHCHECK .*\\\n\s+CMD (\[.+\])", read("Dockerfile"))
    assert found
    _python, *words = json.loads(found[1])
    port = str(httpx.URL(quick.url).port)
    assert run(sys.executable, *words, ARENA_PORT=port).returncode == 0
    assert run(sys.executable, *words, ARENA_PORT=str(free_port())).returncode != 0


# Compose


@pytest.fixture(scope="module")
def compose() -> Any:
    return YAML(typ="safe", pure=True).load(read("compose.yaml"))


def test_the_compose_file_follows_the_specification() -> None:
    schema = ("--builtin-schema", "vendor.compose-spec")
    assert_content("check-jsonschema", *schema, DEPLOY / "compose.yaml")


def test_only_nginx_is_published_and_on_this_machine_only(compose: Any) -> None:
    published = {n: s["ports"] for n, s in compose["services"].items() if "ports" in s}
    assert published == {"nginx": ["127.0.0.1:8080:8080"]}


def test_every_service_is_confined(compose: Any) -> None:
    for name, service in compose["services"].items():
        assert service["read_only"] is True, name
        assert "/tmp" in service["tmpfs"], name
        assert service["cap_drop"] == ["ALL"], name
        assert "cap_add" not in service, name
        assert service["security_opt"] == ["no-new-privileges:true"], name
        assert re.fullmatch(r"[1-9]\d*:[1-9]\d*", service["user"]), name


def test_the_app_runs_as_the_user_who_owns_its_data(compose: Any) -> None:
    user = re.findall(r"^USER (\S+)", read("Dockerfile"), re.MULTILINE)[-1]
    assert compose["services"]["app"]["user"] == user


def test_every_service_waits_until_what_it_needs_is_healthy(compose: Any) -> None:
    services = compose["services"]
    needs = {n: sorted(s.get("depends_on", {})) for n, s in services.items()}
    assert needs == {"app": ["database"], "database": [], "nginx": ["app"]}
    for service in services.values():
        for needed in service.get("depends_on", {}).values():
            assert needed["condition"] == "service_healthy"
    assert [n for n, s in services.items() if "healthcheck" not in s] == ["app"]
    assert "HEALTHCHECK" in read("Dockerfile")


def test_the_database_is_out_of_reach_of_nginx_and_of_the_network(compose: Any) -> None:
    services = compose["services"]
    assert services["database"]["networks"] == ["back"]
    assert services["nginx"]["networks"] == ["front"]
    assert compose["networks"]["back"]["internal"] is True


def test_what_must_survive_lies_in_named_volumes(compose: Any) -> None:
    assert compose["volumes"].keys() == {"data", "database"}
    assert "database:/var/lib/postgresql" in compose["services"]["database"]["volumes"]
    kept = {(v["source"], v["target"]) for v in compose["services"]["app"]["volumes"]}
    assert ("data", "/data") in kept


def test_no_secret_stands_in_the_compose_file(compose: Any) -> None:
    for service in compose["services"].values():
        for name, value in service.get("environment", {}).items():
            if re.search(r"KEY|SECRET|PASSWORD", name):
                assert re.fullmatch(rf"\$\{{{name}:\?.+\}}", value), name
    assert re.findall(r"://\w+:([^@]+)@", read("compose.yaml")) == [
        "${POSTGRES_PASSWORD:?fill in deploy/.env}"
    ]


def test_the_example_of_the_environment_names_all_that_compose_asks_for_and_no_value() -> None:
    wanted = set(re.findall(r"\$\{(\w+)", read("compose.yaml")))
    given = dict(re.findall(r"^(\w+)=(.*)$", read("env.example"), re.MULTILINE))
    assert given == dict.fromkeys(wanted, "")


# nginx


PAUSE_S = 0.4
"""Between the two pieces of a stream."""


class Echo(BaseHTTPRequestHandler):
    """Answers with the headers it was sent, its port, and enough to be worth compressing."""

    def do_GET(self) -> None:
        sent = {name.lower(): value for name, value in self.headers.items()}
        port = self.connection.getsockname()[1]
        body = json.dumps(sent | {"port": port, "padding": "x" * 2000})
        streams = self.path == "/stream"
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream" if streams else "application/json")
        self.send_header("X-Content-Type-Options", "nosniff")
        self.end_headers()
        self.wfile.write(body.encode())
        if streams:
            time.sleep(PAUSE_S)
            self.wfile.write(b"the end")

    def log_message(self, *_: object) -> None:
        pass


@contextmanager
def echoing() -> Iterator[str]:
    """Serve `Echo`; gives its host and port."""
    with ThreadingHTTPServer(("127.0.0.1", 0), Echo) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"127.0.0.1:{server.server_port}"
        server.shutdown()


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return int(listener.getsockname()[1])


def here(folder: Path, port: int, *replicas: str) -> Path:
    """Write a copy of nginx.conf that fits this machine and changes nothing else."""
    servers = "".join(f"server {replica};" for replica in replicas)
    text = read("nginx.conf")
    for old, new in (
        ("server app:7860;", servers),
        ("listen 8080;", f"listen 127.0.0.1:{port};"),
        (" /tmp/", f" {folder}/"),
        ("worker_processes auto;", "worker_processes 1;"),
        ("/dev/stdout", f"{folder}/access.log"),
    ):
        assert old in text
        text = text.replace(old, new)
    if os.geteuid() == 0:
        text = f"user root;\n{text}"
    path = folder / "nginx.conf"
    path.write_text(text, encoding="utf-8")
    return path


@contextmanager
def proxied(folder: Path, *replicas: str) -> Iterator[str]:
    """Run nginx in front of replicas, each a host and a port; gives its address."""
    assert NGINX
    folder.mkdir()
    port = free_port()
    words = (NGINX, "-p", folder, "-c", here(folder, port, *replicas), "-g", "daemon off;")
    with (folder / "error.log").open("w") as log, subprocess.Popen(words, stderr=log) as nginx:
        try:
            wait_for(port)
            yield f"http://127.0.0.1:{port}"
        finally:
            nginx.terminate()


def wait_for(port: int, within_s: float = 10.0) -> None:
    deadline = time.monotonic() + within_s
    while True:
        try:
            socket.create_connection(("127.0.0.1", port), timeout=1).close()
        except OSError:
            assert time.monotonic() < deadline, "nginx did not start"
            time.sleep(0.02)
        else:
            return


def visitor(url: str) -> Visitor:
    return Visitor(client_of(url))


def place(served: Served) -> str:
    return served.url.removeprefix("http://")


@needs_nginx
def test_nginx_accepts_its_configuration(tmp_path: Path) -> None:
    done = run(str(NGINX), "-t", "-p", tmp_path, "-c", here(tmp_path, 8080, "127.0.0.1:7860"))
    assert done.returncode == 0, done.stdout
    assert "[warn]" not in done.stdout


@needs_nginx
def test_nginx_tells_the_app_who_asks_and_not_what_they_claim(tmp_path: Path) -> None:
    claims = {
        "X-Forwarded-For": "203.0.113.9",
        "X-Forwarded-Proto": "https",
        "X-Forwarded-Host": "evil.example",
        "X-Real-IP": "203.0.113.9",
        "Forwarded": "for=203.0.113.9",
    }
    with echoing() as app, proxied(tmp_path / "nginx", app) as url, visitor(url) as ada:
        heard: Mapping[str, str] = ada.get("/", headers=claims).json()
    assert heard["x-forwarded-for"] == heard["x-real-ip"] == "127.0.0.1"
    assert heard["x-forwarded-proto"] == "http"
    assert heard["x-forwarded-host"] == heard["host"] == url.removeprefix("http://")
    assert "forwarded" not in heard


@needs_nginx
def test_nginx_compresses_pages_but_no_stream_and_repeats_no_header(tmp_path: Path) -> None:
    with echoing() as app, proxied(tmp_path / "nginx", app) as url, visitor(url) as ada:
        page, stream = ada.get("/"), ada.get("/stream")
    assert page.headers["content-encoding"] == "gzip"
    assert "content-encoding" not in stream.headers
    assert page.headers.get_list("x-content-type-options") == ["nosniff"]


@needs_nginx
def test_nginx_refuses_a_body_that_no_prompt_can_be(tmp_path: Path) -> None:
    with echoing() as app, proxied(tmp_path / "nginx", app) as url, visitor(url) as ada:
        assert ada.post("/", content=b"x" * 1_500_000).status_code == 413


@needs_nginx
def test_the_log_of_nginx_keeps_no_address_no_cookie_and_no_query(tmp_path: Path) -> None:
    folder = tmp_path / "nginx"
    with echoing() as app, proxied(folder, app) as url, visitor(url) as ada:
        ada.get("/seen?hidden=1", headers={"Cookie": "arena_voter=hidden"})
    log = (folder / "access.log").read_text("utf-8")
    assert "GET /seen 200" in log
    assert "hidden" not in log
    assert "127.0.0.1" not in log


@needs_nginx
def test_a_stream_passes_nginx_piece_by_piece(tmp_path: Path) -> None:
    with (
        echoing() as app,
        proxied(tmp_path / "nginx", app) as url,
        visitor(url) as ada,
        ada.client.stream("GET", "/stream") as answer,
    ):
        times = [time.monotonic() for _ in answer.iter_raw()]
    assert times[-1] - times[0] > PAUSE_S / 2


@needs_nginx
def test_visitors_battle_through_nginx_on_two_replicas(tmp_path: Path) -> None:
    model = Behaviour(text="So be it. " * 5, delay_s=0.05)
    shared = {"database": f"sqlite:///{tmp_path}/shared.db", "secret_key": "shared"}
    with (
        faulty_server({"x": model, "y": model}) as models,
        served_by(models, tmp_path, **shared) as one,
        served_by(models, tmp_path, **shared) as two,
        proxied(tmp_path / "nginx", place(one), place(two)) as url,
    ):
        for _ in range(8):
            with visitor(url) as person:
                person.get("/")  # gives the cookie, as the battle page does
                assert person.vote(person.play(), "tie").status_code == 200


@needs_nginx
def test_a_visitor_stays_with_one_replica_and_visitors_spread_over_both(tmp_path: Path) -> None:
    cookies = [{"Cookie": f"arena_voter=v{n}"} for n in range(32)]
    with (
        echoing() as one,
        echoing() as two,
        proxied(tmp_path / "nginx", one, two) as url,
        visitor(url) as person,
    ):
        reached = [{person.get("/", headers=c).json()["port"] for _ in "123"} for c in cookies]
    assert {len(replicas) for replicas in reached} == {1}
    assert len(set.union(*reached)) == 2


# systemd


@pytest.fixture
def unit(tmp_path: Path) -> Path:
    """Copy the unit, with a program that is there on every machine."""
    text = re.sub(r"(?m)^ExecStart=\S+", "ExecStart=/bin/true", read("arena.service"))
    path = tmp_path / "arena.service"
    path.write_text(text, encoding="utf-8")
    return path


@needs_systemd
def test_systemd_accepts_the_unit(unit: Path) -> None:
    done = run(str(ANALYZE), "verify", "--man=no", unit)
    assert done.returncode == 0, done.stdout
    assert [line for line in done.stdout.splitlines() if unit.name in line] == []


@needs_systemd
def test_the_service_is_exposed_little(unit: Path) -> None:
    """On systemd's own scale, 0 to 100; a unit without any hardening scores 96."""
    assert_content(str(ANALYZE), "security", "--offline=true", "--threshold=20", unit)


def test_the_service_writes_only_where_its_database_is() -> None:
    unit_file = read("arena.service")
    for line in ("DynamicUser=yes", "ProtectSystem=strict", "StateDirectory=arena"):
        assert re.search(rf"^{line}$", unit_file, re.MULTILINE), line
    assert "ARENA_DATABASE=sqlite:////var/lib/arena/" in unit_file
    assert "ReadWritePaths" not in unit_file


# Backups

FAKE = """#!/usr/bin/env bash
set -eu
[ "$1 $2" = "backup --to" ]
printf 'some of %s' "$ARENA_DATABASE" > "$3"
{ending}
"""


def back_up(
    tmp_path: Path, *words: str, ending: str = "", **env: str
) -> subprocess.CompletedProcess[str]:
    """Run the script where `arena` writes a line and ends as it is told."""
    arena = tmp_path / "bin" / "arena"
    arena.parent.mkdir(exist_ok=True)
    arena.write_text(FAKE.format(ending=ending), encoding="utf-8")
    arena.chmod(0o755)
    environment = {"PATH": f"{arena.parent}:{ENVIRONMENT['PATH']}", "ARENA_DATABASE": "a url"}
    return run("bash", DEPLOY / "backup.sh", *words, **environment | env)


def test_the_scripts_are_sound_shell() -> None:
    for script in (DEPLOY / "backup.sh", ROOT / ".ci" / "run"):
        assert_content("bash", "-n", script)
        assert_content("shellcheck", script)
    assert os.access(DEPLOY / "backup.sh", os.X_OK)


def test_a_backup_keeps_the_newest_ones_and_touches_nothing_else(tmp_path: Path) -> None:
    folder = tmp_path / "a folder with blanks"
    folder.mkdir()
    bystander = folder / "arena notes.txt"
    bystander.touch()
    told = []
    for _ in range(4):
        done = back_up(tmp_path, str(folder), "2")
        assert done.returncode == 0, done.stdout
        told.append(Path(done.stdout.strip()))
    assert sorted(folder.iterdir()) == sorted([bystander, *told[-2:]])
    assert told[-1].read_text("utf-8") == "some of a url"
    assert told[-1].stat().st_mode & 0o077 == 0


def test_a_backup_that_fails_removes_no_older_one_and_leaves_no_half(tmp_path: Path) -> None:
    folder = tmp_path / "backups"
    assert back_up(tmp_path, str(folder), "1").returncode == 0
    before = sorted(folder.iterdir())
    assert back_up(tmp_path, str(folder), "1", ending="exit 3").returncode == 3
    assert sorted(folder.iterdir()) == before


def test_a_backup_taken_while_the_arena_runs_can_be_restored(
    quick: Served, tmp_path: Path
) -> None:
    with quick.visitor() as ada:
        assert ada.vote(ada.play(), "tie").status_code == 200
        folder = tmp_path / "backups"
        done = run("bash", DEPLOY / "backup.sh", folder, ARENA_DATABASE=quick.database)
    assert done.returncode == 0, done.stdout
    (file,) = folder.iterdir()
    restored = f"sqlite:///{tmp_path}/restored.db"
    assert_content("arena", "restore", file, "--database", restored)
    votes = tmp_path / "votes.csv"
    assert_content("arena", "export", "votes", "--to", votes, "--database", restored)
    assert len(votes.read_text("utf-8").splitlines()) == 2


@pytest.mark.parametrize("words", [(), ("there", "0"), ("there", "-1"), ("there", "two")])
def test_a_backup_that_is_asked_for_wrongly_is_refused(
    words: tuple[str, ...], tmp_path: Path
) -> None:
    given = [str(tmp_path / word) if word == "there" else word for word in words]
    assert back_up(tmp_path, *given).returncode == 2
    assert not (tmp_path / "there").exists()


def test_a_backup_of_no_named_database_is_refused(tmp_path: Path) -> None:
    done = back_up(tmp_path, str(tmp_path / "there"), ARENA_DATABASE="")
    assert done.returncode == 2
    assert "ARENA_DATABASE" in done.stdout


# Rosters


@pytest.mark.parametrize("path", ROSTERS, ids=lambda path: path.stem)
def test_every_roster_can_be_read_and_names_two_models_with_a_dated_price(path: Path) -> None:
    models = tuple(read_roster(path))
    assert len(models) == 2
    for model in models:
        assert model.price
        assert model.decoding
        assert model.licence
    assert path.read_text("utf-8").count("example") >= 2


def test_the_rosters_can_be_joined_into_one(tmp_path: Path) -> None:
    assert [path.stem for path in ROSTERS] == ["anthropic", "gemini", "ollama", "openai", "vllm"]
    joined = tmp_path / "roster.toml"
    joined.write_text("\n".join(path.read_text("utf-8") for path in ROSTERS), encoding="utf-8")
    assert len(read_roster(joined)) == 2 * len(ROSTERS)


def test_the_example_of_the_environment_names_every_hosted_provider_s_key() -> None:
    hosted = [DEPLOY / "rosters" / f"{name}.toml" for name in ("openai", "anthropic", "gemini")]
    keys = {model.api_key_env for path in hosted for model in read_roster(path)}
    assert [key for key in keys if f"#{key}=\n" not in read("env.example")] == []


# Words


def test_every_setting_that_deploy_names_exists() -> None:
    known = {f"ARENA_{name.upper()}" for name in Settings.model_fields}
    for path in DEPLOY.rglob("*"):
        if path.is_file():
            named = set(re.findall(r"\bARENA_[A-Z_]+\b", path.read_text("utf-8")))
            assert named <= known, path.name


def test_every_local_link_of_the_deployment_s_page_leads_somewhere() -> None:
    links = re.findall(r"\]\((?!https?://|#)([^)#]+)", read("README.md"))
    assert links
    assert [link for link in links if not (DEPLOY / link).exists()] == []
