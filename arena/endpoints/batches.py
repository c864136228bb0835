"""Files of batches, as OpenAI and Anthropic take and give them."""

import json
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

from arena.domain.answer import Completion, FailureClass, Finished
from arena.domain.ending import End, end_of
from arena.domain.model import Model
from arena.endpoints.chat import count, label, read_completion, request_body
from arena.endpoints.ending import finish_reason, paid
from arena.endpoints.failures import from_error
from arena.errors import EndpointError
from judge.case import Message
from judge.thoughts import split
from rating.tables.escaping import storable
from rating.tables.files import parsed

Format = Literal["openai", "anthropic"]
Json = Mapping[str, Any]

OPENAI_PATH = "/v1/chat/completions"
MOST_TOKENS = 4096
"""Of a reply, where nothing says otherwise: Anthropic wants a number."""


@dataclass(frozen=True, slots=True)
class Limits:
    """The most that a file of requests may hold, as its maker says."""

    requests: int
    bytes: int


LIMITS: Mapping[Format, Limits] = {
    "openai": Limits(50_000, 200_000_000),
    "anthropic": Limits(100_000, 256_000_000),
}


def format_of(model: Model) -> Format:
    """Name the format of a model's batches: as its entry says, else by its address."""
    anthropic = re.match(r"https://api\.anthropic\.com(?![\w.-])", model.endpoint, re.IGNORECASE)
    return model.judging.batch or ("anthropic" if anthropic else "openai")


def request_of(
    model: Model,
    custom_id: str,
    messages: Sequence[Message],
    decoding: Mapping[str, object],
    refused: Collection[str] = (),
) -> str:
    """Give one request as JSON in the model's format.

    Parameters
    ----------
    decoding : mapping
        As `arena.endpoints.client.Endpoints.complete` takes it, in OpenAI's names.
    refused : collection of str
        Parameters that its endpoint is known to refuse.
    """
    body = request_body(model, messages, decoding, refused)
    if format_of(model) == "openai":
        line = {"custom_id": custom_id, "method": "POST", "url": OPENAI_PATH, "body": body}
    else:
        line = {"custom_id": custom_id, "params": _params(body, model.judging.thinking_tokens)}
    return json.dumps(line)


def _params(body: dict[str, Any], thinking_tokens: int | None) -> dict[str, Any]:
    """Give the parameters of Anthropic's messages for a request in OpenAI's."""
    most = [body.pop(name, None) for name in ("max_completion_tokens", "max_tokens")]
    for name in ("response_format", "reasoning_effort"):
        body.pop(name, None)
    turns = body.pop("messages")
    system = "\n\n".join(turn["content"] for turn in turns if turn["role"] == "system")
    params = {
        **body,
        "max_tokens": next((number for number in most if number is not None), MOST_TOKENS),
        "messages": [
            {**turn, "content": _content(turn["content"])}
            for turn in turns
            if turn["role"] != "system"
        ],
    }
    if system:
        params["system"] = system
    if thinking_tokens:
        params.pop("temperature", None)  # no other than its own is taken with thoughts
        params["thinking"] = {"type": "enabled", "budget_tokens": thinking_tokens}
    return params


def _content(content: Any) -> Any:
    """Give a text as it stands, and images as Anthropic takes them."""
    return content if isinstance(content, str) else [_part(part) for part in content]


def _part(part: dict[str, Any]) -> dict[str, Any]:
    if part["type"] == "text":
        return part
    head, _, data = part["image_url"]["url"].partition(";base64,")
    kind = {"type": "base64", "media_type": head.removeprefix("data:"), "data": data}
    return {"type": "image", "source": kind if data else {"type": "url", "url": head}}


@dataclass(frozen=True, slots=True)
class Line:
    """A line of what came back.

    Attributes
    ----------
    custom_id : str
        Of the request.
    reached : bool
        Whether it says that the model answered; `answer_of` tells whether that can be read.
    fields : mapping
        The line.
    """

    custom_id: str
    reached: bool
    fields: Json


def line_of(text: str) -> Line | None:
    """Read a line of results; None of a line of requests.

    Raises
    ------
    ValueError
        If it is neither.
    """
    fields = parsed(text, "It")
    if not isinstance(fields, dict) or not isinstance(fields.get("custom_id"), str):
        msg = "no JSON object with a custom_id"
        raise ValueError(msg)
    if "body" in fields or "params" in fields:
        return None
    if isinstance(result := fields.get("result"), dict):
        return Line(fields["custom_id"], result.get("type") == "succeeded", fields)
    if not {"response", "error"} & fields.keys():
        msg = "neither a response, nor an error, nor a result"
        raise ValueError(msg)
    response = fields.get("response")
    reached = isinstance(response, dict) and response.get("status_code") == 200
    return Line(fields["custom_id"], reached, fields)


def answer_of(line: Line) -> Completion:
    """Give the answer that a line holds, also one that was filtered: it was paid for.

    Raises
    ------
    EndpointError
        If it holds none: with what the line says of it.
    """
    if isinstance(result := line.fields.get("result"), dict):
        return _of_anthropic(result)
    response, error = line.fields.get("response"), line.fields.get("error")
    if not isinstance(response, dict):
        raise _not_carried_out(error)
    status, body = response.get("status_code"), response.get("body")
    if status == 200:
        request_id = response.get("request_id")
        return read_completion(
            json.dumps(body), request_id if isinstance(request_id, str) else "", as_it_is=True
        )
    raise from_error(body or error or "", status=status if isinstance(status, int) else 500)


def _not_carried_out(error: object) -> EndpointError:
    fields = error if isinstance(error, dict) else {}
    code, message = str(fields.get("code") or ""), str(fields.get("message") or "")
    if code in ("batch_expired", "batch_cancelled"):
        return EndpointError(FailureClass.TIMEOUT, f"{code}: {message}")
    return from_error({"error": error or "neither a response nor an error"}, status=500)


def _of_anthropic(result: Json) -> Completion:
    kind, message = result.get("type"), result.get("message")
    if kind == "errored":
        inside = result.get("error")
        inside = inside.get("error", inside) if isinstance(inside, dict) else inside
        blamed = isinstance(inside, dict) and inside.get("type") == "invalid_request_error"
        raise from_error({"error": inside}, status=400 if blamed else 500)
    if kind in ("expired", "canceled"):
        raise EndpointError(FailureClass.TIMEOUT, f"the request is {kind}")
    if kind != "succeeded" or not isinstance(message, dict):
        raise EndpointError(FailureClass.MALFORMED, f"a result of the type {kind!r}")
    return _completion(message)


def _completion(message: Json) -> Completion:
    content = message.get("content")
    if not isinstance(content, list):
        raise EndpointError(FailureClass.MALFORMED, "the message holds no list of content")
    blocks = [block for block in content if isinstance(block, dict)]
    usage = message.get("usage")
    usage = usage if isinstance(usage, dict) else {}
    reason = label(str(message.get("stop_reason") or ""))
    text, thoughts = split(_joined(blocks, "text"), is_cut=end_of(reason) is End.TRUNCATED)
    end = Finished(
        finish_reason="",
        tokens_in=_tokens_in(usage),
        tokens_out=count(usage.get("output_tokens")),
        request_id=label(str(message.get("id") or "")),
    )
    with paid(end):
        reason = finish_reason(reason, has_text=bool(text.strip()), as_it_is=True)
    return Completion(
        text,
        replace(end, finish_reason=reason),
        _joined(blocks, "thinking") + thoughts,
        model=label(str(message.get("model") or "")),
    )


def _joined(blocks: Sequence[Json], kind: str) -> str:
    return storable("".join(str(b.get(kind) or "") for b in blocks if b.get("type") == kind))


def _tokens_in(usage: Json) -> int | None:
    """Count what went in, with what was written to a cache or read from one."""
    cached = ("cache_creation_input_tokens", "cache_read_input_tokens")
    whole = count(usage.get("input_tokens"))
    return None if whole is None else whole + sum(count(usage.get(n)) or 0 for n in cached)
