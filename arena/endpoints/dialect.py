"""Which parameters an endpoint refuses by name, and a request without them."""

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import islice
from typing import Any

from arena.domain.model import OPTIONAL, SYSTEM, TOKEN_LIMITS, Model

Json = Mapping[str, Any]

_UNMISTAKABLE = frozenset(
    {*(name for name in OPTIONAL if "_" in name), "temperature", "logprobs", "dimensions"}
)
"""Names that are no words of English; the others are read only where they are marked as names."""

_CAMEL = re.compile(r"(?<=[a-z])(?=[A-Z])")
_REFUSED = re.compile(
    r"unsupported|(?:not|n't|n’t|no longer|cannot)\s+(?:be\s+)?(?:currently\s+|yet\s+|a\s+)?"
    r"(?:support|permit|allow|accept|recogni[sz]e|enable|available|valid|specified)|"
    r"unknown|unrecogni[sz]ed|unexpected|extraneous|extra[_ .](?:inputs|fields|forbidden)|"
    r"additional propert|(?:is|are) deprecated|不支持",
    re.IGNORECASE,
)
"""Words of a refusal of what was sent."""
_VALUE = re.compile(
    r"too (?:large|high|low|small|many|long|big)|at (?:most|least)|(?:less|greater|more) than|"
    r"exceed|maximum|minimum|between|out of range|strictly positive|must be (?:a|an|one)\b|"
    r"larger|smaller|limit is|supported values|expected a value|in \[|length is",
    re.IGNORECASE,
)
"""Words that blame the value of a parameter, not that it was sent."""
_CODES = frozenset({"unsupported_parameter", "unknown_parameter", "unsupported_value"})
_EXTRA = re.compile(r"extra[_.]?forbidden|value_error\.extra")
_HINT = re.compile(r"did you mean.*|supported (?:parameters|fields|arguments)\b.*", re.I | re.S)
"""What an endpoint proposes: the names in it are not those that it refuses."""
_NAMED = re.compile(
    r"(?:[\"'`‘“\[{]\s*|(?:parameters?|arguments?|propert(?:y|ies)|fields?|keys?|options?|inputs?"
    r"|supplied|model)\W{1,3})?\b([A-Za-z_]+)\b(?=([\"'`’”\]}]|\s*:|\s(?:is|are)\s(?:not|un|no))?)",
    re.IGNORECASE,
)
_MESSAGES = re.compile(r"messages[.\[]\d")
_NO_SYSTEM = re.compile(
    r"system\s*(?:role|message|prompt|instruction)s?\W+(?:\w+\W+){0,4}?(?:not|n't|unsupported)"
    r"|(?:not|n't)\s+(?:support|accept|allow)\w*\W+(?:the\W+)?(?:\w+\W+)?[\"'`]?system\b"
    r"|role\W{1,4}system\b.*?(?:not|unsupported|unknown|invalid)|unexpected role\W+system"
    r"|(?:only|must)\W+(?:\w+\W+){0,3}?user\W+(?:and|or|/)?\W*assistant\b"
    r"|value\W+system\W+at\W+messages|developer instruction is not enabled",
    re.IGNORECASE | re.DOTALL,
)


def refused_in(error: Json, message: str) -> tuple[str, ...]:
    """Name the optional parameters that an error says the endpoint does not take.

    Parameters
    ----------
    error : mapping
        The error's fields.
    message : str
        What it says.

    Examples
    --------
    >>> refused_in({}, "Unrecognized request argument supplied: stream_options")
    ('stream_options',)
    >>> refused_in({}, "property 'tools' is unsupported, did you mean 'top_k'?")
    ()
    >>> refused_in({}, "'temperature' is too high")
    ()
    """
    if located := [name for name in _located(error) if name in OPTIONAL]:
        return tuple(dict.fromkeys(located))
    if _NO_SYSTEM.search(message) and "context" not in message:
        return (SYSTEM,)
    code, param = error.get("code"), error.get("param")
    is_stated = isinstance(code, str) and code in _CODES
    if not is_stated and (not _REFUSED.search(message) or _VALUE.search(message)):
        return ()
    if isinstance(param, str) and param not in ("", "None", "null"):
        name = _plain(re.split(r"[.\[]", param)[0])
        is_value = name in TOKEN_LIMITS and _VALUE.search(message)
        return (name,) if name in OPTIONAL and not is_value else ()
    if _MESSAGES.search(message):
        return ()
    return tuple(dict.fromkeys(_written(_HINT.sub("", message))))


def _written(message: str) -> Iterator[str]:
    """Name the optional parameters in a sentence, in their order."""
    for match in _NAMED.finditer(message):
        name = _plain(match[1])
        is_marked = match.start(1) > match.start() or match[2]
        if name in _UNMISTAKABLE or (is_marked and name in OPTIONAL):
            yield name


def _plain(name: str) -> str:
    return _CAMEL.sub("_", name).lower()


def _located(error: Json) -> Iterator[str]:
    """Name the fields of the request that a validator calls too many, wherever it lists them.

    Pydantic has a ``loc`` for each, JSON Schema's validators an ``additionalProperty``.
    """
    for part in islice(_objects(error), 100):
        place, params = part.get("loc"), part.get("params")
        if isinstance(params, Mapping) and "additionalProperty" in params:
            yield str(params["additionalProperty"])
        if not isinstance(place, Sequence) or isinstance(place, str):
            continue
        if _EXTRA.search(str(part.get("type"))) and "messages" not in place:
            yield from (str(step) for step in place if step != "body")


def _objects(value: object, depth: int = 8) -> Iterator[Json]:
    if isinstance(value, Mapping):
        yield value
    inside = value.values() if isinstance(value, Mapping) else value
    if depth and isinstance(value, Mapping | list):
        for part in inside:  # type: ignore[attr-defined]
            yield from _objects(part, depth - 1)


def refused_by(refuses: Sequence[str], body: Json) -> str | None:
    """Give the first of the refused parameters that a request has; None if it has none."""
    return next((name for name in refuses if name in body or _has_system(name, body)), None)


def _has_system(name: str, body: Json) -> bool:
    messages = body.get("messages") if name == SYSTEM else None
    return any(turn["role"] == SYSTEM for turn in messages or ())


def known_as(model: Model) -> str:
    """Name what refuses: a model at an address."""
    return f"{model.endpoint.rstrip('/')} {model.model}"


def without(body: Json, refused: Collection[str]) -> dict[str, Any]:
    """Give a request without the optional parameters that are refused.

    The limit of tokens goes under its other name, unless that is refused, too. The system's text
    goes before that of the first message of the user.

    Examples
    --------
    >>> without({"max_tokens": 5, "temperature": 0}, ["max_tokens", "temperature"])
    {'max_completion_tokens': 5}
    """
    left = {name: value for name, value in body.items() if name not in OPTIONAL & {*refused}}
    if "logprobs" in refused:
        left.pop("top_logprobs", None)
    for name, other in (TOKEN_LIMITS, TOKEN_LIMITS[::-1]):
        if name in refused and name in body and other not in refused:
            left.setdefault(other, body[name])
    if SYSTEM in refused and _has_system(SYSTEM, body):
        left["messages"] = _folded(body["messages"])
    return left


def _folded(messages: Sequence[Json]) -> list[Json]:
    system = "\n\n".join(str(turn["content"]) for turn in messages if turn["role"] == SYSTEM)
    turns = [turn for turn in messages if turn["role"] != SYSTEM]
    first = next((n for n, turn in enumerate(turns) if turn["role"] == "user"), None)
    if first is None:
        return [{"role": "user", "content": system}, *turns]
    content = turns[first]["content"]
    if isinstance(content, str):
        content = f"{system}\n\n{content}"
    else:
        content = [{"type": "text", "text": system}, *content]
    return [*turns[:first], {**turns[first], "content": content}, *turns[first + 1 :]]
