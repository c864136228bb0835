"""Judges as their endpoints are: one that thinks, one that takes no max_tokens, and more."""

import random
from collections.abc import Callable, Mapping
from typing import Any

from arena.endpoints.offline import LongerAnswer
from tests.faulty_server import Behaviour, last_message

Body = Mapping[str, Any]
Endpoint = Callable[[Body], Behaviour]
THOUGHT = 3000
"""Tokens that the thinking ones think before they answer."""


def longer(body: Body) -> str:
    """What is preferred is longer; said in whichever form is asked for."""
    prompt = last_message(body)
    if "label alone" in prompt:
        first, second = (
            part.split("[end answer")[0] for part in prompt.split("[begin answer")[1:]
        )
        return "m" if len(first) > len(second) else "M"
    return LongerAnswer().answer(prompt, random.Random(1))


def plain(body: Body) -> Behaviour:
    """Take everything."""
    text = longer(body)
    shares = {text[:1]: -0.1, "x": -3.0}
    asks = body.get("logprobs")
    return Behaviour(text=text, logprobs=((text[:1], -0.1, shares),) if asks else None)


def refusing(name: str, sentence: str, then: Endpoint = plain) -> Endpoint:
    """Refuse every request with a parameter, in a sentence of its own."""

    def asked(body: Body) -> Behaviour:
        return Behaviour(status=400, error={"message": sentence}) if name in body else then(body)

    return asked


def thinking(limit: str, *, aloud: bool = False) -> Endpoint:
    """Think first, within the limit of tokens of the name given; aloud, in the text itself."""

    def asked(body: Body) -> Behaviour:
        left = body.get(limit, 10**6) - THOUGHT
        text = longer(body) if left > 0 else ""
        if aloud:
            text = "<think>Would [[B]] do? " + ("</think>\n\n" + text if left > 0 else "")
        used = min(THOUGHT, body.get(limit, 10**6))
        usage = {"prompt_tokens": 100, "completion_tokens": used + (10 if left > 0 else 0)}
        details = {} if aloud else {"completion_tokens_details": {"reasoning_tokens": used}}
        reason = "stop" if left > 0 else "length"
        choice = {"index": 0, "message": {"content": text}, "finish_reason": reason}
        return Behaviour(body={"id": "1", "choices": [choice], "usage": usage | details})

    return asked


NO_MAX_TOKENS = (
    "Unsupported parameter: 'max_tokens' is not supported with this model. Use "
    "'max_completion_tokens' instead."
)
ONE_TEMPERATURE = (
    "Unsupported value: 'temperature' does not support 0.0 with this model. Only the default (1) "
    "value is supported."
)
NO_LOGPROBS = "You are not allowed to request logprobs from this model."
NO_FORMAT = "Unknown name 'response_format': cannot find field."


def temperature_of_one(then: Endpoint) -> Endpoint:
    """Refuse every temperature but 1."""

    def asked(body: Body) -> Behaviour:
        if body.get("temperature", 1) == 1:
            return then(body)
        return Behaviour(status=400, error={"message": ONE_TEMPERATURE})

    return asked


ODD: Mapping[str, Endpoint] = {
    "plain": plain,
    "o1": refusing(
        "max_tokens",
        NO_MAX_TOKENS,
        temperature_of_one(refusing("logprobs", NO_LOGPROBS, thinking("max_completion_tokens"))),
    ),
    "no-logprobs": refusing("logprobs", NO_LOGPROBS),
    "no-format": refusing("response_format", NO_FORMAT),
    "thinker": refusing("logprobs", NO_LOGPROBS, thinking("max_tokens", aloud=True)),
}
"""By the name of their model."""
