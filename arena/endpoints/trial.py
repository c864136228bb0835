"""A tiny request to each model: does it answer, and what does its endpoint say if it does not."""

import asyncio
import time
from collections.abc import Iterable, Mapping, Sequence
from contextlib import aclosing

from arena.domain.answer import FailureClass
from arena.domain.model import Model
from arena.domain.room_view import Trial
from arena.endpoints.client import Endpoints
from arena.errors import EndpointError
from judge.case import Message

PROMPT = "Say hello in one word."
WHOLE_S = 60.0
"""Longest that anybody waits for all models."""
NO_ANSWER = f"no whole answer within {WHOLE_S:g} s"


async def try_all(
    endpoints: Endpoints, models: Iterable[Model], recorded: Mapping[str, Sequence[str]]
) -> Mapping[str, Trial]:
    """Ask all models at once; gives what became of it by id. It may cost money.

    Parameters
    ----------
    recorded : mapping
        Prompts of those that answer from recordings.
    """
    asked = list(models)
    prompts = [next(iter(recorded.get(model.id, ())), PROMPT) for model in asked]
    trials = await asyncio.gather(
        *(_try(endpoints, model, prompt) for model, prompt in zip(asked, prompts, strict=True))
    )
    return {model.id: trial for model, trial in zip(asked, trials, strict=True)}


async def _try(endpoints: Endpoints, model: Model, prompt: str) -> Trial:
    began = time.monotonic()
    first_s = None
    try:
        async with asyncio.timeout(WHOLE_S):
            async with aclosing(endpoints.stream(model, [Message("user", prompt)])) as answer:
                async for _chunk in answer:
                    first_s = first_s or time.monotonic() - began
    except TimeoutError:
        return Trial(None, failure=FailureClass.TIMEOUT, sentence=NO_ANSWER)
    except EndpointError as error:
        return Trial(None, failure=error.failure, sentence=error.detail)
    return Trial(time.monotonic() - began, first_s, without=endpoints.refused(model))
