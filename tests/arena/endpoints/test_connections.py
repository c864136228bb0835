"""One connection for each request under way, and the same ones for those that follow."""

import asyncio
import json
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

import httpx2
import pytest

from arena.domain.model import Model
from arena.domain.vote import FailureClass
from arena.endpoints import client
from arena.endpoints.client import Endpoints
from arena.errors import SettingsError
from tests.arena.endpoints.asking import PROMPT, ask, failure, serve, visible, whole_failure
from tests.faulty_server import Behaviour, Fault, FaultyServer


@pytest.fixture
async def endpoints() -> AsyncIterator[Endpoints]:
    patient = Endpoints({"TEST_KEY": "secret"})
    yield patient
    await patient.aclose()


def ports(server: FaultyServer, model: Model, since: int = 0) -> set[int]:
    seen = [seen.port for seen in server.requests if seen.model == model.model]
    return set(seen[since:])


async def test_a_hundred_and_fifty_requests_at_a_time_leave_their_connections_to_the_next(
    server: FaultyServer, endpoints: Endpoints
) -> None:
    model = serve(server, Behaviour(first_token_s=1.0))
    await asyncio.gather(*(endpoints.complete(model, PROMPT) for _ in range(150)))
    first = ports(server, model)
    assert len(first) > 110, "too few of them were under way together"
    await asyncio.gather(*(endpoints.complete(model, PROMPT) for _ in range(100)))
    assert ports(server, model, since=150) <= first


async def test_requests_one_after_another_share_one_connection(
    server: FaultyServer, endpoints: Endpoints
) -> None:
    model = serve(server, Behaviour())
    for _ in range(3):
        await endpoints.complete(model, PROMPT)
    assert len(ports(server, model)) == 1


async def test_a_connection_that_broke_is_not_used_again(
    server: FaultyServer, endpoints: Endpoints
) -> None:
    model = serve(server, Behaviour(fault=Fault.DROP))
    for _ in range(2):
        await whole_failure(endpoints, model)
    assert len(ports(server, model)) == 2


async def test_who_finds_no_place_waits_for_one(
    server: FaultyServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(client, "MOST", 2)
    endpoints = Endpoints({"TEST_KEY": "secret"})
    model = serve(server, Behaviour(first_token_s=0.02))
    await asyncio.gather(*(endpoints.complete(model, PROMPT) for _ in range(6)))
    assert len(ports(server, model)) == 2
    await endpoints.aclose()


CERTIFICATE = Path(__file__).with_name("localhost.pem")
"""For 127.0.0.1, with its key: worth nothing anywhere else."""


@asynccontextmanager
async def hasty_server(pieces: int) -> AsyncIterator[str]:
    """Serve over TLS one answer, sent at once, after which the connection is closed."""
    events = [json.dumps({"choices": [{"delta": {"content": "Hm. " * 9}}]})] * pieces
    body = [f"data: {event}\n\n".encode() for event in [*events, "[DONE]"]]
    head = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n"
    chunks = b"".join(b"%x\r\n%b\r\n" % (len(event), event) for event in body)
    chunked = b"Transfer-Encoding: chunked\r\n\r\n%b0\r\n\r\n" % chunks

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(head + chunked)
        await writer.drain()
        writer.close()

    trust = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    trust.load_cert_chain(CERTIFICATE)
    async with await asyncio.start_server(answer, "127.0.0.1", 0, ssl=trust) as server:
        yield f"https://127.0.0.1:{server.sockets[0].getsockname()[1]}"


async def test_an_answer_over_tls_is_read_to_its_end_though_its_server_has_gone(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    trust = ssl.create_default_context(cafile=CERTIFICATE)
    monkeypatch.setattr(client, "_trust", lambda: trust)
    async with hasty_server(pieces=2000) as url:
        endpoints = Endpoints({})
        model = Model(id="m", name="m", endpoint=url, model="m")
        for _ in range(3):
            assert visible(await ask(endpoints, model)) == "Hm. " * 18_000
        await endpoints.aclose()


async def test_much_that_comes_at_once_is_read_a_little_at_a_time(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    trust = ssl.create_default_context(cafile=CERTIFICATE)
    monkeypatch.setattr(client, "_trust", lambda: trust)
    async with (
        hasty_server(pieces=2000) as url,
        httpx2.AsyncClient(transport=client.Connections(5)) as asking,
        asking.stream("GET", url) as answer,
    ):
        pieces = [len(piece) async for piece in answer.aiter_raw()]
    assert sum(pieces) > 100_000
    assert max(pieces) <= 2 * client.PARSED_AT_ONCE


@pytest.mark.parametrize("trusted", [True, False])
async def test_a_private_certificate_authority_is_trusted_if_the_environment_names_it(
    monkeypatch: pytest.MonkeyPatch, trusted: bool
) -> None:
    if trusted:
        monkeypatch.setenv("SSL_CERT_FILE", str(CERTIFICATE))
    client._trust.cache_clear()
    async with hasty_server(pieces=2) as url:
        endpoints = Endpoints({})
        model = Model(id="m", name="m", endpoint=url, model="m")
        if trusted:
            assert visible(await ask(endpoints, model)) == "Hm. " * 18
        else:
            assert "certificate" in str(await failure(endpoints, model)).lower()
        await endpoints.aclose()
    client._trust.cache_clear()


def test_certificates_that_cannot_be_read_stop_the_start(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SSL_CERT_FILE", "nowhere.pem")
    client._trust.cache_clear()
    with pytest.raises(SettingsError, match=r"^SSL_CERT_FILE or .* cannot be read: No such file"):
        Endpoints({})


@asynccontextmanager
async def connect_proxy(status: int, reaches: str) -> AsyncIterator[tuple[str, list[str]]]:
    """Answer CONNECT with a status, and tunnel to a server whatever host was asked for."""
    asked: list[str] = []
    to = httpx2.URL(reaches)

    async def pipe(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while piece := await reader.read(65_536):
            writer.write(piece)
        writer.close()

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = await reader.readuntil(b"\r\n\r\n")
        asked.append(head.split(b"\r\n")[0].decode())
        writer.write(b"HTTP/1.1 %d Said\r\n\r\n" % status)
        if status != 200:
            writer.close()
            return
        there, back = await asyncio.open_connection(to.host, to.port)
        await asyncio.gather(pipe(reader, back), pipe(there, writer), return_exceptions=True)

    async with await asyncio.start_server(answer, "127.0.0.1", 0) as server:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}", asked


@pytest.fixture
def anybody(monkeypatch: pytest.MonkeyPatch) -> None:
    """Trust the test's certificate under any name of a host."""
    trust = ssl.create_default_context(cafile=CERTIFICATE)
    trust.check_hostname = False
    monkeypatch.setattr(client, "_trust", lambda: trust)
    client._proxy_of.cache_clear()


@pytest.mark.usefixtures("anybody")
async def test_models_are_asked_through_the_proxy_of_the_environment(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async with hasty_server(pieces=2) as url, connect_proxy(200, url) as (proxy, asked):
        monkeypatch.setenv("HTTPS_PROXY", proxy.removeprefix("http://"))
        monkeypatch.setenv("NO_PROXY", "internal.example")
        endpoints = Endpoints({})
        model = Model(id="m", name="m", endpoint="https://models.example/v1", model="m")
        assert visible(await ask(endpoints, model)) == "Hm. " * 18
        for host in ("127.0.0.1", "localhost"):
            here = replace(model, endpoint=url.replace("127.0.0.1", host))
            assert visible(await ask(endpoints, here)) == "Hm. " * 18
        inside = replace(model, endpoint="https://internal.example/v1")
        assert (await failure(endpoints, inside)).failure is FailureClass.UNREACHABLE
        await endpoints.aclose()
    assert asked == ["CONNECT models.example:443 HTTP/1.1"]


@pytest.mark.usefixtures("anybody")
@pytest.mark.parametrize(
    ("scheme", "proxy", "why"),
    [("https", None, "connect: HTTP 407"), ("http", "socks5://me:secret@p", "HTTP_PROXY is of")],
)
async def test_what_a_proxy_refuses_is_reported_as_its_refusal(
    monkeypatch: pytest.MonkeyPatch, scheme: str, proxy: str | None, why: str
) -> None:
    async with connect_proxy(407, "http://127.0.0.1:9") as (refusing, _):
        monkeypatch.setenv(f"{scheme.upper()}_PROXY", proxy or refusing)
        endpoints = Endpoints({})
        model = Model(id="m", name="m", endpoint=f"{scheme}://models.example/v1", model="m")
        failed = await failure(endpoints, model)
        await endpoints.aclose()
    assert failed.failure is FailureClass.UNREACHABLE
    assert why in str(failed)
    assert "secret" not in str(failed)
