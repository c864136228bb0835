"""Numbers that a model of the roster gives for texts, asked for once, kept in the database."""

import asyncio
from collections.abc import Callable, Sequence
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING

from arena.commands.judge_work import opened
from arena.domain.model import Model
from arena.errors import SettingsError
from arena.terminal import working

if TYPE_CHECKING:
    from arena.endpoints.sse import Budgets
    from arena.store.store import Store
    from judge.probe.embedding import Vectors


def embedded_by(
    name: str, database: str | None, roster: Path | None
) -> "Callable[[Sequence[str]], Vectors]":
    """Return what embeds texts: it asks for those that the database does not hold.

    Raises
    ------
    SettingsError
        If there is no such model in the roster.
    """
    from arena.settings import read_settings
    from arena.store.store import Store

    settings = read_settings(database=database, roster=roster)
    model = _model(name, settings.roster, "--embeddings")

    def embedded(texts: Sequence[str]) -> "Vectors":
        with closing(Store(settings.database)) as store:
            return asyncio.run(_asked(model, settings.budgets(), store, texts))

    return embedded


def likely_by(
    name: str, database: str | None, roster: Path | None
) -> "Callable[[Sequence[str]], dict[str, float]]":
    """Return what says how likely texts are to a model, in nats; as `embedded_by`."""
    from arena.settings import read_settings
    from arena.store.store import Store

    settings = read_settings(database=database, roster=roster)
    model = _model(name, settings.roster, "--model")

    def likely(texts: Sequence[str]) -> dict[str, float]:
        with closing(Store(settings.database)) as store:
            asked = _asked(model, settings.budgets(), store, texts, likelihoods=True)
            return {text: float(vector[0]) for text, vector in asyncio.run(asked).items()}

    return likely


def _model(name: str, file: Path | None, option: str) -> Model:
    from arena.settings import read_roster

    models = read_roster(file, to_battle=False) if file else ()
    model = next((one for one in models if one.id == name), None)
    if model is None:
        known = ", ".join(one.id for one in models) or "none: name its file with --roster"
        msg = f"{option}: there is no model {name!r} in the roster. There are {known}."
        raise SettingsError(msg)
    return model


async def _asked(
    model: Model,
    budgets: "Budgets",
    store: "Store",
    texts: Sequence[str],
    *,
    likelihoods: bool = False,
) -> "Vectors":
    import numpy as np

    from arena.judging import journal_of, revision_of
    from judge.probe.embedding import embed_all

    revision = revision_of(model)
    with working("Asking" if likelihoods else "Embedding") as advance:
        async with opened(model, budgets) as judge:
            return await embed_all(
                texts,
                judge.log_likelihoods if likelihoods else judge.embed,
                journal_of(store, revision, None),
                model=f"{revision}, log-likelihood" if likelihoods else revision,
                sleep=asyncio.sleep,
                rng=np.random.default_rng(),
                progress=advance,
            )
