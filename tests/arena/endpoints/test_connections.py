"""One connection for each request under way, and the same ones for those that follow."""

import asyncio
from collections.abc import AsyncIterator

import pytest

from arena.domain.answer import Message
from arena.domain.model import Model
from arena.endpoints import connections
from arena.endpoints.client import Endpoints
from arena.errors import EndpointError
from tests.arena.endpoints.asking import serve
from tests.faulty_server import Behaviour, Fault, FaultyServer

PROMPT = (Message("user", "Well?"),)


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
        with pytest.raises(EndpointError):
            await endpoints.complete(model, PROMPT)
    assert len(ports(server, model)) == 2


async def test_who_finds_no_place_waits_for_one(
    server: FaultyServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connections, "MOST", 2)
    endpoints = Endpoints({"TEST_KEY": "secret"})
    model = serve(server, Behaviour(first_token_s=0.02))
    await asyncio.gather(*(endpoints.complete(model, PROMPT) for _ in range(6)))
    assert len(ports(server, model)) == 2
    await endpoints.aclose()
