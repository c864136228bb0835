"""Where a judge answers and where its replies are kept, for `judge.run` from Python."""

from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, closing, contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime

from arena.domain.model import Model, Roster
from arena.endpoints.client import reach
from arena.endpoints.judge_ports import EndpointJudge
from arena.endpoints.offline import PocketTransport
from arena.store.judgements import StoredJournal, judging_seed
from arena.store.log import fingerprint
from arena.store.store import Store
from judge.budget import Price

KEY = "API_KEY"


@dataclass(frozen=True, slots=True)
class ModelEndpoint:
    """A model at an endpoint."""

    model: Model
    api_key: str | None = field(default=None, repr=False)
    price: Price | None = None

    @property
    def name(self) -> str:
        """What the judge is called in verdicts."""
        return self.model.id

    @property
    def revision(self) -> str:
        """What answers: a change of endpoint, model or decoding is another judge."""
        return revision_of(self.model)

    @asynccontextmanager
    async def opened(self) -> AsyncIterator[EndpointJudge]:
        """Hold connections for a run."""
        keys = {} if self.api_key is None else {KEY: self.api_key}
        endpoints = reach(Roster((self.model,)), keys, {}, PocketTransport())
        try:
            yield EndpointJudge(endpoints, self.model)
        finally:
            await endpoints.aclose()


@dataclass(frozen=True, slots=True)
class DatabaseJournal:
    """A journal in a database: SQLite or PostgreSQL, the arena's own or one for runs alone."""

    url: str

    @contextmanager
    def opened(self, judge: str, price: Price | None) -> Iterator[tuple[StoredJournal, str]]:
        """Open the journal of a judge, and give the secret from which its runs are drawn."""
        with closing(Store(self.url)) as store:
            seed = judging_seed(store, datetime.now(UTC))
            yield StoredJournal(store, judge, price, lambda: datetime.now(UTC)), seed


def endpoint(
    url: str,
    model: str,
    *,
    api_key: str | None = None,
    price: Price | None = None,
    name: str | None = None,
    **decoding: object,
) -> ModelEndpoint:
    """Name a model at any server that speaks OpenAI's format.

    Parameters
    ----------
    url : str
        Base URL, with ``/v1``; or ``pocket://local/v1`` with the model ``judge``, a toy.
    api_key : str, optional
        Sent as a bearer token; take it from the environment.
    price : judge.Price, optional
        What it charges: a budget of a run needs it.
    name : str, optional
        What the judge is called in verdicts: its model's name if not given.
    **decoding
        Sent as they stand: ``temperature`` and the like.
    """
    entry = Model(
        id=name or model,
        name=name or model,
        endpoint=url,
        model=model,
        api_key_env=None if api_key is None else KEY,
        decoding=decoding,
    )
    return ModelEndpoint(entry, api_key, price)


def journal(place: str) -> DatabaseJournal:
    """Name the journal: a file such as ``runs.db``, or the URL of a database."""
    return DatabaseJournal(place if "://" in place else f"sqlite:///{place}")


def revision_of(model: Model) -> str:
    """Name what answers, down to its revision."""
    return f"{model.id}@{fingerprint(model)[:16]}"


def price_of(model: Model) -> Price | None:
    """Return the price of a model as runs count it."""
    price = model.price
    return None if price is None else Price(price.input, price.output, price.date)
