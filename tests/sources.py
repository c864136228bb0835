"""Applications that are registered, and what they send."""

import uuid
from collections.abc import Sequence
from contextlib import closing
from datetime import UTC, datetime
from typing import Any

import httpx2

from arena.guard.access import new_token, token_hash
from arena.store import people, sources
from arena.store.store import Store
from tests.serving import Served, client_of

PAGE = "https://app.example.org"


def registered(
    served: Served,
    name: str | None = None,
    *,
    origins: Sequence[str] = (PAGE,),
    per_hour: int = 600,
    share: float = 0.1,
) -> "Application":
    """Register an application, by a name of its own if none is given."""
    token, name = new_token(), name or f"app-{uuid.uuid4().hex[:8]}"
    limits: dict[str, Any] = {"origins": origins, "per_hour": per_hour, "share": share}
    by, now = people.TERMINAL, datetime.now(UTC)
    with closing(Store(served.database)) as store, store.writing() as session:
        sources.add(session, name, token_hash(token), by, now, **limits)
    return Application(served.url, name, token)


class Application:
    """An application's server, which talks to the arena by its token."""

    def __init__(self, url: str, name: str, token: str) -> None:
        self.url, self.name, self.token = url, name, token

    def ask(self, method: str, path: str, **kwargs: Any) -> httpx2.Response:
        headers = {"Authorization": f"Bearer {self.token}"}
        with client_of(self.url) as client:
            return client.request(method, f"/api/v1/{path}", headers=headers, **kwargs)

    def compare(self, **changes: Any) -> httpx2.Response:
        return self.ask("POST", "comparisons", json=comparison(**changes))

    def open_pair(self, **changes: Any) -> httpx2.Response:
        return self.ask("POST", "pairs", json=pair(**changes))


def comparison(**changes: Any) -> dict[str, Any]:
    """Give the body of a comparison of the versions v7 and v8, under a key of its own."""
    return {
        "key": str(uuid.uuid4()),
        "prompt": "Where is my parcel?",
        "rater": "u-1",
        "a": {"version": "v7", "text": "It is on its way."},
        "b": {"version": "v8", "text": "It arrives tomorrow."},
        "outcome": "model_b",
        "seconds": 8.5,
        **changes,
    }


def pair(**changes: Any) -> dict[str, Any]:
    """Give the body of a pair of the versions v7 and v8, under a key of its own."""
    return {
        "key": str(uuid.uuid4()),
        "prompt": "Where is my parcel?",
        "rater": "u-1",
        "champion": {"version": "v7", "text": "It is **on its way**."},
        "challenger": {"version": "v8", "text": "It arrives *tomorrow*."},
        **changes,
    }
