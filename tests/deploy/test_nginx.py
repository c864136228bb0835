"""A real nginx with the configuration of deploy/, before real arenas."""

import json
import re
import socket
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import httpx2
import pytest

from tests.deploy.tools import DEPLOY, NGINX, here, needs_nginx, proxied, read, run
from tests.replicas import IN_TURN
from tests.serving import Visitor, client_of, free_port, quick_arena

PAUSE_S = 0.4
"""Between the two pieces of a stream."""


class Echo(BaseHTTPRequestHandler):
    """Answers with the headers it was sent, its port, and enough to be worth compressing."""

    def do_GET(self) -> None:
        sent = {name.lower(): value for name, value in self.headers.items()}
        port = self.connection.getsockname()[1]
        streams = self.path == "/stream"
        body = json.dumps(sent | {"port": port, "padding": "x" * (1 if streams else 2000)})
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream" if streams else "application/json")
        self.send_header("X-Content-Type-Options", "nosniff")
        if streams:
            self.send_header("X-Accel-Buffering", "no")
        self.end_headers()
        self.wfile.write(body.encode())
        if streams:
            time.sleep(PAUSE_S)
            self.wfile.write(b"the end")

    def log_message(self, *_: object) -> None:
        pass


@contextmanager
def echoing(port: int = 0) -> Iterator[str]:
    """Serve `Echo`; gives its host and port."""
    with ThreadingHTTPServer(("127.0.0.1", port), Echo) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"127.0.0.1:{server.server_port}"
        server.shutdown()


def visitor(url: str) -> Visitor:
    return Visitor(client_of(url))


@needs_nginx
def test_nginx_accepts_its_configuration(tmp_path: Path) -> None:
    done = run(str(NGINX), "-t", "-p", tmp_path, "-c", here(tmp_path, 8080, "127.0.0.1:7860"))
    assert done.returncode == 0, done.stdout
    assert "[warn]" not in done.stdout


@needs_nginx
def test_the_replicas_of_the_page_are_those_that_nginx_then_asks(tmp_path: Path) -> None:
    page = read("../docs/guides/deploy.md")
    [command] = re.findall(r"^(sed .*) > nginx.conf$", page, re.MULTILINE)
    ports = re.findall(r"^arena serve --port (\d+)$", page, re.MULTILINE)
    (tmp_path / "deploy").symlink_to(DEPLOY)
    made = run("sh", "-c", f"cd {tmp_path} && {command}").stdout
    assert len(ports) == 2
    servers = [f"server 127.0.0.1:{port} fail_timeout=2s;" for port in ports]
    assert re.findall(r"^ +(server 127.*)$", made, re.MULTILINE) == [" ".join(servers)]
    (tmp_path / "nginx.conf").write_text(made.replace(" /tmp/", f" {tmp_path}/"), encoding="utf-8")
    done = run(str(NGINX), "-t", "-c", tmp_path / "nginx.conf")
    assert done.returncode == 0, done.stdout


@needs_nginx
def test_a_replica_that_is_back_is_asked_when_the_next_one_stops(tmp_path: Path) -> None:
    port = free_port()
    with ExitStack() as first:
        other = first.enter_context(echoing())
        with (
            proxied(tmp_path / "nginx", f"127.0.0.1:{port}", other, changes=IN_TURN) as url,
            visitor(url) as ada,
        ):
            assert {ada.get("/").json()["port"] for _ in range(4)} == {int(other.split(":")[1])}
            with echoing(port):
                first.close()
                time.sleep(3.1)
                assert ada.get("/").json()["port"] == port


@needs_nginx
def test_nginx_tells_the_app_who_asks_and_not_what_they_claim(tmp_path: Path) -> None:
    claims = {
        "X-Forwarded-For": "203.0.113.9",
        "X-Forwarded-Proto": "https",
        "X-Forwarded-Host": "evil.example",
        "X-Real-IP": "203.0.113.9",
        "Forwarded": "for=203.0.113.9",
        "X-Gradio-Server": "https://evil.example",
    }
    with echoing() as app, proxied(tmp_path / "nginx", app) as url, visitor(url) as ada:
        headers: Mapping[str, str] = ada.get("/", headers=claims).json()
    assert headers["x-forwarded-for"] == headers["x-real-ip"] == "127.0.0.1"
    assert headers["x-forwarded-proto"] == "http"
    assert headers["x-forwarded-host"] == headers["host"] == url.removeprefix("http://")
    assert "forwarded" not in headers
    assert "x-gradio-server" not in headers


@needs_nginx
@pytest.mark.parametrize("is_named", [True, False])
def test_the_scheme_and_address_that_a_named_outer_proxy_gives_are_kept(
    tmp_path: Path, is_named: bool
) -> None:
    outer = {
        "# set_real_ip_from 192.0.2.10;": "set_real_ip_from 127.0.0.1;",
        "# 192.0.2.10 1;": "127.0.0.1 1;",
    }
    claims = {"X-Forwarded-For": "203.0.113.9", "X-Forwarded-Proto": "https"}
    changes = outer if is_named else {}
    with (
        echoing() as app,
        proxied(tmp_path / "nginx", app, changes=changes) as url,
        visitor(url) as ada,
    ):
        headers: Mapping[str, str] = ada.get("/", headers=claims).json()
    seen = (headers["x-forwarded-for"], headers["x-forwarded-proto"])
    assert seen == (("203.0.113.9", "https") if is_named else ("127.0.0.1", "http"))


@needs_nginx
def test_files_of_the_page_are_not_limited(tmp_path: Path) -> None:
    few = {"rate=50r/s": "rate=1r/s", "burst=500": "burst=3"}
    with (
        echoing() as app,
        proxied(tmp_path / "nginx", app, changes=few) as url,
        visitor(url) as ada,
    ):
        assert {ada.get(f"/look/{n}.js").status_code for n in range(20)} == {200}
        assert {ada.get("/").status_code for _ in range(20)} == {200, 429}


USERS = (
    "Remote-User", "Remote-Email", "X-Remote-User", "X-User", "X-Webauth-User",
    "X-Auth-Request-User", "X-Auth-Request-Email", "X-Auth-Request-Preferred-Username",
    "X-Forwarded-User", "X-Forwarded-Email", "X-Forwarded-Preferred-Username",
    "X-Authentik-Username", "X-Authentik-Email",
)  # fmt: skip
"""Headers in which proxies that ask for a login usually say whose it is."""


@needs_nginx
def test_the_cookies_of_a_proxy_that_signs_people_in_get_through(tmp_path: Path) -> None:
    with (
        quick_arena(tmp_path) as served,
        proxied(tmp_path / "nginx", served.url.removeprefix("http://")) as url,
        visitor(url) as ada,
    ):
        assert ada.get("/votes", headers={"Cookie": f"alb={'y' * 16_000}"}).status_code == 200


@needs_nginx
def test_no_visitor_tells_the_app_by_a_header_who_has_logged_in(tmp_path: Path) -> None:
    named = re.findall(r"such as `([A-Za-z-]+)`", read("../docs/reference/settings.md"))
    assert set(USERS) & set(named), "the example of the documents is one of them"
    with echoing() as app, proxied(tmp_path / "nginx", app) as url, visitor(url) as ada:
        headers: Mapping[str, str] = ada.get("/", headers=dict.fromkeys(USERS, "admin")).json()
    assert [name for name in USERS if name.lower() in headers] == []


@needs_nginx
def test_behind_nginx_nobody_is_who_they_say_they_are(tmp_path: Path) -> None:
    settings = {"user_header": "Remote-User", "trusted_proxies": "127.0.0.1", "admins": "ada"}
    with quick_arena(tmp_path, secret_key="k" * 32, **settings) as served:
        place = served.url.removeprefix("http://")
        with proxied(tmp_path / "nginx", place) as url, visitor(url) as mallory:
            assert mallory.get("/admin", headers={"Remote-User": "ada"}).status_code == 401


def test_the_configuration_clears_every_header_that_says_who_has_logged_in() -> None:
    cleared = re.findall(r'proxy_set_header ([A-Za-z-]+) "";', read("nginx.conf"))
    assert set(USERS) <= set(cleared)


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
def test_nginx_refuses_who_asks_too_often_in_words(tmp_path: Path) -> None:
    few = {"rate=50r/s": "rate=1r/s", "burst=500": "burst=3"}
    with (
        echoing() as app,
        proxied(tmp_path / "nginx", app, changes=few) as url,
        visitor(url) as ada,
    ):
        answers = [ada.get("/") for _ in range(8)]
    assert [a.status_code for a in answers[:4]] == [200] * 4
    assert answers[-1].status_code == 429
    assert answers[-1].headers["content-type"] == "application/problem+json"
    assert "Wait a minute" in answers[-1].json()["detail"]


@needs_nginx
def test_nginx_gives_one_address_so_many_streams(tmp_path: Path) -> None:
    two = {"limit_conn connections 200;": "limit_conn connections 2;"}
    with (
        echoing() as app,
        proxied(tmp_path / "nginx", app, changes=two) as url,
        visitor(url) as ada,
        ada.client.stream("GET", "/stream") as one,
        ada.client.stream("GET", "/stream") as other,
    ):
        assert (one.status_code, other.status_code) == (200, 200)
        assert ada.get("/").status_code == 429


@needs_nginx
def test_nginx_lets_go_of_who_sends_half_a_request(tmp_path: Path) -> None:
    soon = {"client_header_timeout 10s;": "client_header_timeout 1s;"}
    with echoing() as app, proxied(tmp_path / "nginx", app, changes=soon) as url:
        place = httpx2.URL(url)
        with socket.create_connection((place.host, place.port or 80), timeout=5) as sock:
            sock.sendall(b"GET / HTTP/1.1\r\n")
            with suppress(ConnectionResetError):
                assert sock.recv(65536) == b""


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
def test_a_stream_passes_nginx_and_an_outer_one_that_buffers_piece_by_piece(
    tmp_path: Path,
) -> None:
    defaults = {"proxy_buffering off;": "", "proxy_http_version 1.1;": ""}
    with (
        echoing() as app,
        proxied(tmp_path / "nginx", app) as inner,
        proxied(tmp_path / "outer", inner.removeprefix("http://"), changes=defaults) as url,
        visitor(url) as ada,
        ada.client.stream("GET", "/stream") as answer,
    ):
        times = [time.monotonic() for _ in answer.iter_raw()]
    assert times[-1] - times[0] > PAUSE_S / 2


@needs_nginx
@pytest.mark.parametrize("before", ["", "__Host-", "xarena_voter=one; other=two; "])
def test_a_visitor_stays_with_one_replica_and_visitors_spread_over_both(
    tmp_path: Path, before: str
) -> None:
    cookies = [{"Cookie": f"{before}arena_voter=v{n}"} for n in range(32)]
    with (
        echoing() as one,
        echoing() as two,
        proxied(tmp_path / "nginx", one, two) as url,
        visitor(url) as person,
    ):
        reached = [{person.get("/", headers=c).json()["port"] for _ in "123"} for c in cookies]
    assert {len(replicas) for replicas in reached} == {1}
    assert len(set.union(*reached)) == 2
