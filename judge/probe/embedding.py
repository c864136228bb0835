"""Cosine of embeddings: a port to whatever embeds texts, and the journal that remembers it."""

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager

import numpy as np

from judge.asking import REPORTED_S, in_words, wait_before_retry
from judge.calls import Journal, Key, key_of
from judge.case import Message, Order
from judge.completion import Parameters, Reply, Request
from judge.errors import CallError
from judge.probe.axes import Plan
from judge.probe.similarity import Measure, Products
from rating.errors import DataError
from rating.tables.peers import mention
from rating.typing import Floats

Vectors = Mapping[str, Floats]

AT_ONCE = 64
"""Texts in one request."""
LOOK_AGAIN_S = 1.0
"""Between looks for texts that another process asks about."""
_EMBEDDED = Parameters(max_tokens=0)


Embed = Callable[[Sequence[str]], Awaitable[Sequence[Sequence[float]]]]
"""Embeds texts with one model, once: a vector for each, in their order. Raises `CallError`."""


def embedding_measure(model: str, vectors: Vectors) -> Measure:
    """Return the cosine of a model's embeddings; a vector of zeros is like nothing."""

    def units(texts: Sequence[str]) -> Floats:
        rows = np.array([vectors[text] for text in texts])
        length = np.linalg.norm(rows, axis=1, keepdims=True)
        return np.asarray(rows / np.where(length > 0, length, 1))

    scorer = Products(lambda references, texts: (units(references), units(texts)))
    return Measure(f"{model} cosine", f"cosine of embeddings by {model}", lambda _: scorer)


def texts_asked(plans: Iterable[Plan]) -> tuple[str, ...]:
    """Return every text that is scored under these plans, once."""
    met: dict[str, None] = {}

    def noted(references: Sequence[str], texts: Sequence[str]) -> tuple[Floats, Floats]:
        met.update(dict.fromkeys([*references, *texts]))
        return np.zeros((len(references), 1)), np.zeros((len(texts), 1))

    for plan in plans:
        plan.ask(Measure("texts", "notes what it is asked", lambda _: Products(noted)))
    return tuple(met)


async def embed_all(
    texts: Iterable[str],
    embed: Embed,
    journal: Journal,
    *,
    model: str,
    sleep: Callable[[float], Awaitable[None]],
    rng: np.random.Generator,
    progress: Callable[[int, int], None] = lambda done, of: None,
) -> Vectors:
    """Embed texts, each once for ever: what the journal holds is not asked again.

    A vector is kept as the reply to its text, as JSON, under a key of the text and the model. A
    run that broke off goes on where it was, and what another process asks about is waited for.

    Parameters
    ----------
    model : str
        What embeds, down to its revision.
    progress : callable
        Takes the number of texts that have a vector, and the number of all.

    Raises
    ------
    CallError
        If the endpoint fails for good; what came before is kept.
    DataError
        If it returns another number of vectors, or vectors of another length.
    """
    request = {text: Request((Message("user", text),), _EMBEDDED) for text in dict.fromkeys(texts)}
    key = {text: key_of(one, f"embedding: {model}", Order.AB) for text, one in request.items()}
    vectors = await _recalled(journal, key)
    left = [text for text in key if text not in vectors]
    while left:
        for start in range(0, len(left), AT_ONCE):
            progress(len(vectors), len(key))
            batch = {text: key[text] for text in left[start : start + AT_ONCE]}
            async with _claimed(journal, batch) as ours:
                if ours:
                    made = await _patiently(embed, ours, sleep, rng)
                    replies = [Reply(text=json.dumps([*map(float, one)])) for one in made]
                    rows = zip(ours, replies, strict=True)
                    await asyncio.gather(*(journal.keep(key[t], request[t], r) for t, r in rows))
            vectors |= await _recalled(journal, batch)
        left = [text for text in left if text not in vectors]
        if left:
            await sleep(LOOK_AGAIN_S)
    progress(len(vectors), len(key))
    if len({len(vector) for vector in vectors.values()}) > 1:
        raise DataError(f"Embeddings by {model} differ in length: is it one model?")
    return vectors


async def _recalled(journal: Journal, key: Mapping[str, Key]) -> dict[str, Floats]:
    replies = await journal.recall(list(key.values()))
    return {
        text: np.array(json.loads(replies[name].text), dtype=np.float64)
        for text, name in key.items()
        if name in replies
    }


@asynccontextmanager
async def _claimed(journal: Journal, key: Mapping[str, Key]) -> AsyncIterator[list[str]]:
    """Give the texts that are ours to ask about; without an answer the claim is given up."""
    claimed = await journal.claim(list(key.values()))
    try:
        yield [text for text, name in key.items() if name in claimed]
    except BaseException:
        replies = await journal.recall(claimed)
        await journal.release(claimed - replies.keys())
        raise


async def _patiently(
    embed: Embed,
    batch: Sequence[str],
    sleep: Callable[[float], Awaitable[None]],
    rng: np.random.Generator,
) -> Sequence[Sequence[float]]:
    tries, waited = 0, 0.0
    while True:
        try:
            vectors = await embed(batch)
        except CallError as error:
            tries += 1
            wait = wait_before_retry(error, tries, rng, waited)
            if wait is None:
                raise
            if wait > REPORTED_S:
                mention(in_words(wait, error))
            waited += wait
            await sleep(wait)
        else:
            if len(vectors) != len(batch):
                raise DataError(f"{len(vectors)} embeddings for {len(batch)} texts.")
            return vectors
