from collections.abc import Iterator

import pytest

from arena.store.store import Store
from tests.arena.store.battles import MODELS, NOW


@pytest.fixture
def store(database_url: str) -> Iterator[Store]:
    store = Store(database_url)
    store.register(MODELS, NOW)
    yield store
    store.close()
