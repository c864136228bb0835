from collections.abc import AsyncIterator, Iterator

import pytest

from arena.endpoints.client import Endpoints, Timeouts
from tests.arena.endpoints.asking import KEY
from tests.faulty_server import FaultyServer, faulty_server

IMPATIENT = Timeouts(first_token_s=0.5, idle_s=0.3, whole_s=0.5)


@pytest.fixture(scope="session")
def server() -> Iterator[FaultyServer]:
    with faulty_server({}) as running:
        yield running


@pytest.fixture
async def endpoints() -> AsyncIterator[Endpoints]:
    """A client that waits for a busy machine: what it fails at, it was sent."""
    client = Endpoints({"TEST_KEY": KEY})
    yield client
    await client.aclose()


@pytest.fixture
async def impatient() -> AsyncIterator[Endpoints]:
    """A client for servers that say nothing."""
    client = Endpoints({"TEST_KEY": KEY}, timeouts=IMPATIENT)
    yield client
    await client.aclose()
