"""Embeddings for `arena probe similarity`: each text asked for once, and kept."""

import asyncio
import math
from collections.abc import Callable, Sequence
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path

import numpy as np

from arena.domain.model import Model, Roster
from arena.endpoints.discover import reach
from arena.endpoints.judging import EndpointEmbedder
from arena.endpoints.pocket import PocketTransport
from arena.endpoints.sse import Budgets
from arena.errors import SettingsError
from arena.settings import read_keys, read_roster, read_settings
from arena.store.judging import StoredJournal
from arena.store.models import fingerprint
from arena.store.store import Store
from arena.terminal import working
from judge.probe.embedding import Vectors, embed_all, embedding_measure
from judge.probe.similarity import Measure


def embedding_of(
    name: str, database: str | None, roster: Path | None
) -> Callable[[Sequence[str]], Measure]:
    """Return what makes a measure of texts: it asks for those that the database does not hold.

    Raises
    ------
    SettingsError
        If the roster has no such model, or cannot be read.
    """
    settings = read_settings(database=database, roster=roster)
    model = _model(name, settings.roster)

    def measure(texts: Sequence[str]) -> Measure:
        with closing(Store(settings.database)) as store:
            asked = _asked(model, settings.budgets(), store, texts)
            return embedding_measure(model.id, asyncio.run(asked))

    return measure


def _model(name: str, file: Path | None) -> Model:
    models = read_roster(file, to_battle=False) if file else ()
    model = next((one for one in models if one.id == name), None)
    if model is None:
        known = ", ".join(one.id for one in models) or "none: name its file with --roster"
        msg = f"--embeddings: there is no model {name!r} in the roster. There are {known}."
        raise SettingsError(msg)
    return model


async def _asked(model: Model, budgets: Budgets, store: Store, texts: Sequence[str]) -> Vectors:
    revision = f"{model.id}@{fingerprint(model)[:16]}"
    roster, pocket = Roster((model,)), PocketTransport(speedup=math.inf)
    endpoints = reach(roster, read_keys(roster), {}, pocket, budgets=budgets)
    try:
        with working("Embedding") as told:
            return await embed_all(
                texts,
                EndpointEmbedder(endpoints, model),
                StoredJournal(store, revision, None, lambda: datetime.now(UTC)),
                model=revision,
                sleep=asyncio.sleep,
                rng=np.random.default_rng(),
                progress=told,
            )
    finally:
        await endpoints.aclose()
