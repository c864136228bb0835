"""A tiny request to each model: does it answer, and what does its endpoint say if it does not."""

import asyncio
import time
from collections.abc import Iterable, Mapping
from contextlib import aclosing

from arena.domain.model import Model
from arena.domain.room_view import Trial
from arena.endpoints.client import Endpoints
from arena.errors import EndpointError
from judge.case import Message

PROMPT = "Say hello in one word."
WHOLE_S = 60.0
"""Longest that anybody waits for all models."""


async def try_all(endpoints: Endpoints, models: Iterable[Model]) -> Mapping[str, Trial]:
    """Ask all models at once; gives what became of it by id. It may cost money."""
    asked = list(models)
    trials = await asyncio.gather(*(_try(endpoints, model) for model in asked))
    return {model.id: trial for model, trial in zip(asked, trials, strict=True)}


async def _try(endpoints: Endpoints, model: Model) -> Trial:
    began = time.monotonic()
    try:
        async with asyncio.timeout(WHOLE_S):
            async with aclosing(endpoints.stream(model, [Message("user", PROMPT)])) as answer:
                async for _chunk in answer:
                    pass
    except TimeoutError:
        return Trial(None, f"no whole answer within {WHOLE_S:g} s")
    except EndpointError as error:
        return Trial(None, error.detail)
    return Trial(time.monotonic() - began)
