"""Which hosts are ours, which pages may act, and whose word is taken for who asks."""

from ipaddress import ip_network
from pathlib import Path

import pytest
from starlette.exceptions import HTTPException
from starlette.types import Scope

from arena.guard.access import PROBES, Access, RequestFacts, Trust, take_forwarded
from tests.faulty_server import Behaviour, faulty_server
from tests.serving import Served, client_of, page_of, write_roster

PROXY = Trust(proxies=(ip_network("10.0.0.0/8"), ip_network("fd00::/8")))
NAMED = Trust(host="0.0.0.0", names=frozenset({"arena.example.org"}))


@pytest.mark.parametrize(
    ("trust", "host", "ours"),
    [
        (Trust(), "127.0.0.1:7860", True),
        (Trust(), "localhost", True),
        (Trust(), "LocalHost:7860", True),
        (Trust(), "[::1]:7860", True),
        (Trust(), "192.168.1.5:7860", True),
        (Trust(), "[2001:db8::1]", True),
        (Trust(), "rebound.evil.example:7860", False),
        (Trust(), "localhost.evil.example", False),
        (Trust(), "evil.localhost", False),
        (Trust(), "192.168.1.5.evil.example", False),
        (Trust(), "user@localhost", False),
        (Trust(), "localhost, evil.example", False),
        (Trust(), "localhost:7860/path", False),
        (Trust(host="box.lan"), "box.lan:7860", True),
        (NAMED, "arena.example.org", True),
        (NAMED, "Arena.Example.org:443", True),
        (NAMED, "127.0.0.1:7860", True),
        (NAMED, "192.168.1.5:7860", False),
        (NAMED, "other.example.org", False),
        (NAMED, "arena.example.org.evil.example", False),
    ],
)
def test_the_arena_answers_to_its_own_names_only(trust: Trust, host: str, ours: bool) -> None:
    refusal = Access().refusal(RequestFacts("GET", "http", host), trust)
    assert (refusal is None) is ours
    if refusal:
        assert refusal.status_code == 421
        assert repr(host) in refusal.detail
        assert "ARENA_HOSTS" in refusal.detail


def test_a_request_without_a_host_is_refused_but_a_probe_of_health_is_not() -> None:
    refusal = Access().refusal(RequestFacts("GET", "http", None), Trust())
    assert refusal
    assert refusal.status_code == 400
    probes = PROBES.dependency
    assert isinstance(probes, Access)
    for host in (None, "app:7860"):
        assert probes.refusal(RequestFacts("GET", "http", host), NAMED) is None


@pytest.mark.parametrize(
    ("scheme", "host", "origin", "site", "allowed"),
    [
        ("http", "localhost:7860", None, "same-origin", True),
        ("http", "localhost:7860", None, None, True),
        ("http", "localhost:7860", "http://localhost:7860", None, True),
        ("http", "localhost:7860", "http://localhost:7860", "none", True),
        ("https", "arena.example.org", "https://arena.example.org", None, True),
        ("https", "arena.example.org:443", "https://arena.example.org", None, True),
        ("http", "Arena.example.org:80", "http://arena.example.org", None, True),
        # what a browser vouches for goes before what the server knows of its scheme
        ("http", "arena.example.org", "https://arena.example.org", "same-origin", True),
        ("http", "arena.example.org", "https://arena.example.org", None, False),
        ("http", "localhost:7860", "http://localhost:8000", None, False),
        ("http", "localhost:7860", "http://127.0.0.1:7860", None, False),
        ("http", "localhost:7860", "null", None, False),
        ("http", "localhost:7860", "null", "none", False),
        ("http", "localhost:7860", None, "same-site", False),
        ("http", "localhost:7860", None, "cross-site", False),
        ("http", "localhost:7860", "http://localhost:7860", "cross-site", False),
        ("http", "localhost:7860", None, "same-origin, cross-site", False),
        ("http", "localhost:7860", None, "anything", False),
    ],
)
def test_only_a_page_of_ours_or_a_program_changes_anything(
    scheme: str, host: str, origin: str | None, site: str | None, allowed: bool
) -> None:
    trust = Trust(names=frozenset({"arena.example.org"}))
    refusal = Access().refusal(RequestFacts("POST", scheme, host, origin, site), trust)
    assert (refusal is None) is allowed
    if refusal:
        assert refusal.status_code == 403
        assert repr(origin) in refusal.detail or origin is None


def scope(peer: str, *headers: tuple[str, str]) -> Scope:
    raw = [(name.lower().encode(), value.encode("latin1")) for name, value in headers]
    return {
        "type": "http",
        "scheme": "http",
        "client": (peer, 5),
        "headers": [(b"host", b"app"), *raw],
    }


CLAIMS = (
    ("X-Forwarded-For", "203.0.113.9"),
    ("X-Forwarded-Proto", "https"),
    ("X-Forwarded-Host", "arena.example.org"),
    ("X-Forwarded-Prefix", "/evil"),
    ("X-Gradio-Server", "https://evil.example"),
    ("X-Real-IP", "203.0.113.9"),
    ("Forwarded", "for=203.0.113.9;host=evil.example"),
)


@pytest.mark.parametrize(
    ("peer", "client", "scheme", "host"),
    [
        ("198.51.100.1", "198.51.100.1", "http", b"app"),
        ("10.1.2.3", "203.0.113.9", "https", b"arena.example.org"),
        ("::ffff:10.1.2.3", "203.0.113.9", "https", b"arena.example.org"),
        ("fd00::1", "203.0.113.9", "https", b"arena.example.org"),
    ],
)
def test_a_trusted_proxy_is_believed_and_what_anybody_claimed_is_gone(
    peer: str, client: str, scheme: str, host: bytes
) -> None:
    asked = scope(peer, *CLAIMS, ("Cookie", "a=b"))
    take_forwarded(asked, PROXY)
    assert (asked["client"][0], asked["scheme"]) == (client, scheme)
    assert sorted(asked["headers"]) == [(b"cookie", b"a=b"), (b"host", host)]


@pytest.mark.parametrize(
    ("value", "client"),
    [
        ("203.0.113.9", "203.0.113.9"),
        ("not read, 203.0.113.9", "203.0.113.9"),
        ("198.51.100.1,\t203.0.113.9 , 10.4.4.4", "203.0.113.9"),
        ("10.4.4.4,10.5.5.5", "10.4.4.4"),
        ("203.0.113.9:4711", "203.0.113.9"),
        ("[2001:db8::7]:4711", "2001:db8::7"),
        ("2001:db8::7", "2001:db8::7"),
        ("", "10.1.2.3"),
    ],
)
def test_the_visitor_is_the_last_address_that_is_no_proxy_s(value: str, client: str) -> None:
    asked = scope("10.1.2.3", ("X-Forwarded-For", value))
    take_forwarded(asked, PROXY)
    assert asked["client"][0] == client


@pytest.mark.parametrize(
    ("header", "value"),
    [
        ("X-Forwarded-For", "unknown"),
        ("X-Forwarded-For", "203.0.113.9, "),
        ("X-Forwarded-For", "203.0. 113.9"),
        ("X-Forwarded-For", "<script>"),
        ("X-Forwarded-Proto", "https, http"),
        ("X-Forwarded-Proto", "gopher"),
        ("X-Forwarded-Host", "arena.example.org/path"),
        ("X-Forwarded-Host", "evil.example, arena.example.org"),
        ("X-Forwarded-Host", "\xff"),
    ],
)
def test_what_a_trusted_proxy_cannot_mean_is_refused_in_words(header: str, value: str) -> None:
    with pytest.raises(HTTPException) as refused:
        take_forwarded(scope("10.1.2.3", (header, value)), PROXY)
    assert refused.value.status_code == 400
    assert refused.value.detail.startswith(f"The proxy sent {header} ")
    take_forwarded(scope("198.51.100.1", (header, value)), PROXY)


@pytest.mark.parametrize(
    ("proxies", "root"),
    [("", "http://127.0.0.1:"), ("127.0.0.1", "https://arena.example.org")],
    ids=["from anybody", "from a trusted proxy"],
)
def test_the_page_takes_its_own_address_from_a_trusted_proxy_only(
    tmp_path: Path, proxies: str, root: str
) -> None:
    with (
        faulty_server({name: Behaviour(text=name) for name in "xy"}) as server,
        page_of(
            tmp_path,
            write_roster(tmp_path / "roster.toml", server, "x", "y"),
            trusted_proxies=proxies,
            hosts="arena.example.org",
        ) as served,
        client_of(served.url, headers=dict(CLAIMS)) as client,
    ):
        page = client.get("/")
    assert ("Secure" in page.headers["set-cookie"]) is bool(proxies)
    assert f'<meta property="og:image" content="{root}' in page.text
    assert "evil" not in page.text


def test_a_foreign_name_is_refused_in_words_with_the_usual_headers(quick: Served) -> None:
    """Its owner can have it resolve to this machine, and read what the arena answers there."""
    with client_of(quick.url, headers={"Host": "rebound.evil.example"}) as client:
        answers = [client.get(path) for path in ("/", "/leaderboard", "/api/v1/leaderboard")]
        answers.append(client.post("/api/v1/battles", json={"prompt": "Hi"}))
        assert client.get("/health/ready").status_code == 200
    for answer in answers:
        assert answer.status_code == 421
        assert "'rebound.evil.example'" in answer.json()["detail"]
        assert "content-security-policy" in answer.headers
        assert "set-cookie" not in answer.headers
