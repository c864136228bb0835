"""Failures of endpoints by class, and the parameters that an endpoint refuses by name.

`from_response`, `from_error` and `from_exception` make an `EndpointError`; the signs of each class
are in ``failures.toml``. `refused_in` finds which parameters an error refuses by name, and
`without` gives a request without them.
"""

import json
import math
import re
import tomllib
from collections.abc import Collection, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from importlib.resources import files
from itertools import islice
from typing import Any

import httpx2

from arena.domain.model import OPTIONAL, SYSTEM, TOKEN_LIMITS, Model
from arena.domain.vote import FailureClass
from arena.errors import EndpointError

# Refused parameters

Json = Mapping[str, Any]

_UNMISTAKABLE = frozenset(
    {*(name for name in OPTIONAL if "_" in name), "temperature", "logprobs", "dimensions"}
)
"""Names that are no words of English; the others are read only where they are marked as names."""

_FORMS = tomllib.loads((files("arena.endpoints") / "failures.toml").read_text("utf-8"))
_BY_STATUS, _BY_CODE, _BY_WORDS = (
    {sign: FailureClass(name) for name, signs in _FORMS[table].items() for sign in signs}
    for table in ("by_status", "by_code", "by_words")
)
_NO_CREDIT, _REFUSED, _VALUE, _HINT, _NO_SYSTEM = (
    re.compile("|".join(_FORMS["patterns"][name]), re.IGNORECASE | re.DOTALL)
    for name in ("no_credit", "refused", "value", "hint", "no_system")
)
_CAMEL = re.compile(r"(?<=[a-z])(?=[A-Z])")
_CODES = frozenset({"unsupported_parameter", "unknown_parameter", "unsupported_value"})
_EXTRA = re.compile(r"extra[_.]?forbidden|value_error\.extra")
_NAMED = re.compile(
    r"(?:[\"'`‘“\[{]\s*|(?:parameters?|arguments?|propert(?:y|ies)|fields?|keys?|options?|inputs?"
    r"|supplied|model)\W{1,3})?\b([A-Za-z_]+)\b(?=([\"'`’”\]}]|\s*:|\s(?:is|are)\s(?:not|un|no))?)",
    re.IGNORECASE,
)
_MESSAGES = re.compile(r"messages[.\[]\d")


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


# Failures

IN_A_REPLY = 200
"""Status of an error that comes in the place of a reply, and has none of its own."""

SPENT_STATUS = frozenset({IN_A_REPLY, 400, 401, 403, 412, 429, 500})
"""Statuses under which providers say in words alone that an account is spent; 500 is MiniMax's."""

MOST_READ = 4000
"""Characters of a message that are looked through: it may quote a prompt, and be long."""
INSIDE = ("error", "errors", "fault", "base_resp", "message", "detail", "metadata")
"""Where the fields of an error are, if not at the top.

``fault`` is Apigee's, ``base_resp`` MiniMax's; ``metadata`` has the provider's own at OpenRouter.
"""
MESSAGES = (
    "message", "Message", "faultstring", "detail", "msg", "error_msg", "error_message",
    "error_description", "status_msg", "description", "title", "text",
)  # fmt: skip
"""Names of what an error says, the first that is there."""
CODES = ("code", "type", "status", "error_code", "errorCode", "errorcode", "status_code", "__type")
PAGE = re.compile(r"\s*(?:<\?xml[^>]*>\s*)?<(?:!doctype\s+html|html|head|body)\b", re.IGNORECASE)
TITLE = re.compile(r"<(title|h1)\b[^>]*>\s*(.*?)\s*</\1", re.IGNORECASE | re.DOTALL)
RETRY_IN = re.compile(r"(?:retry|try again) (?:in|after) (\d+(?:\.\d+)?) ?s", re.IGNORECASE)
DEEPEST = 4
"""Errors within errors that are looked into: gateways put the provider's into their own."""

BY_EXCEPTION: tuple[tuple[type[Exception], FailureClass], ...] = (
    (httpx2.ConnectError, FailureClass.UNREACHABLE),
    (httpx2.ConnectTimeout, FailureClass.UNREACHABLE),
    (httpx2.UnsupportedProtocol, FailureClass.UNREACHABLE),
    (httpx2.InvalidURL, FailureClass.UNREACHABLE),
    (httpx2.TimeoutException, FailureClass.TIMEOUT),
)
"""The first that fits; anything else on the wire is a connection that broke."""

LONGEST_WAIT_S = 3600.0
"""Longest wait that a server can ask for; nobody here waits nearly as long."""


def from_exception(error: Exception) -> EndpointError:
    """Failure behind an exception of the HTTP client."""
    fits = (failure for kind, failure in BY_EXCEPTION if isinstance(error, kind))
    failure = next(fits, FailureClass.DROPPED)
    return EndpointError(failure, str(error) or type(error).__name__)


def from_response(response: httpx2.Response, text: str, now: datetime) -> EndpointError:
    """Failure told by a response, whose body is ``text`` and whose status is not a success.

    ``retry_after_s`` is counted from the response's own date, where it has one: the clocks
    need not agree.
    """
    wait_s = retry_after_s(response.headers, now)
    return from_error(_decoded(text), status=response.status_code, retry_after_s=wait_s)


def from_redirect(response: httpx2.Response) -> EndpointError:
    """Failure of an endpoint that sends us elsewhere: the key and the prompt are for it alone."""
    return EndpointError(
        FailureClass.NOT_FOUND,
        f"status {response.status_code}, a redirect to {response.headers['location']!r}, which is "
        "not followed: put the address that answers into the roster",
    )


def from_error(body: object, *, status: int, retry_after_s: float | None = None) -> EndpointError:
    """Failure told by an error object, or by whatever is in its place.

    Parameters
    ----------
    body : object
        Decoded JSON: ``{"error": {"message", "type", "code"}}``, its inside, a list of such, or
        a text.
    status : int
        HTTP status; an error object that carries a status of its own overrides it.
    retry_after_s : float or None
        Seconds to wait, if a header gives them; else the body may.
    """
    parts = [*_each(body)]
    coded = [*parts, *(d for fields in parts if isinstance(d := fields.get("details"), Mapping))]
    codes = [str(fields[name]) for fields in coded for name in CODES if _is_code(fields.get(name))]
    own = (int(code) for code in codes if len(code) == 3 and code.isascii() and code.isdigit())
    status = next((code for code in own if 400 <= code < 600), status)
    message = " | ".join(dict.fromkeys(filter(None, map(_message, parts))))
    read = message[:MOST_READ]
    wait_s = _wait_s(parts, read) if retry_after_s is None else retry_after_s
    refuses: tuple[str, ...] = ()
    is_filtered = any(_BY_CODE.get(code) is FailureClass.CONTENT_FILTER for code in codes)
    if status in (IN_A_REPLY, 400, 422) and not is_filtered:  # which quotes the prompt
        refuses = next((names for fields in parts if (names := refused_in(fields, read))), ())
    failure = _failure(status, codes, read, waits=wait_s is not None, refuses=bool(refuses))
    spent = "the account has no credit left: " if failure is FailureClass.NO_CREDIT else ""
    detail = f"{spent}status {status}, {message or 'with no message'}"
    return EndpointError(failure, detail, retry_after_s=wait_s, refuses=refuses)


def _decoded(text: str) -> object:
    try:
        return json.loads(text)
    except ValueError:
        return text


def _each(body: object, depth: int = DEEPEST) -> Iterator[Json]:
    """Give the fields of an error, the outer before the inner; of a text, the text as a message.

    A gateway may quote what the provider sent, as JSON within a text.
    """
    if isinstance(body, list):
        body = next((part for part in body if isinstance(part, Mapping | str)), "")
    if not isinstance(body, Mapping):
        yield {"message": body}
        return
    opened = {name: _opened(body.get(name)) for name in INSIDE}
    inside = {name: value for name, value in opened.items() if value is not None}
    yield {name: value for name, value in body.items() if name not in inside}
    for part in inside.values() if depth else ():
        yield from _each(part, depth - 1)


def _opened(value: object) -> object:
    """Give the error that a field holds, also as JSON in a text; None if it holds none."""
    if isinstance(value, str) and value.lstrip()[:1] in ("{", "["):
        value = _decoded(value.strip())
    if isinstance(value, Mapping):
        raw = value.get("raw")
        return (_opened(raw) or raw) if isinstance(raw, str) else value
    if isinstance(value, list) and not any("loc" in one for one in value if isinstance(one, dict)):
        return value
    return None


def _is_code(value: object) -> bool:
    return isinstance(value, str | int) and not isinstance(value, bool)


def _message(fields: Json) -> str:
    """Give what the fields of an error say, in a line."""
    values = [fields[name] for name in MESSAGES if fields.get(name)][:1]
    if isinstance(text := fields.get("error"), str):
        values.insert(0, text)
    return ": ".join(dict.fromkeys(map(_in_words, values)))


def _in_words(value: object) -> str:
    """Write what is in the place of a message; of a validator's faults each with its place."""
    if isinstance(value, str):
        if not PAGE.match(value):
            return value
        title = TITLE.search(value[:MOST_READ])
        words = " ".join(re.sub(r"<[^>]*>", " ", title[2]).split()) if title else ""
        return f"a page of HTML titled {words!r}" if words else "a page of HTML without a title"
    if isinstance(value, list) and all(isinstance(one, Mapping) for one in value):
        return "; ".join(
            f"{'.'.join(map(str, one['loc']))}: {one.get('msg')}"
            if isinstance(one.get("loc"), list)
            else json.dumps(one)
            for one in value
        )
    return json.dumps(value)


def _wait_s(parts: list[Json], message: str) -> float | None:
    """Give the seconds to wait that an error names: Google's ``RetryInfo``, or in words."""
    for fields in parts:
        details = fields.get("details")
        for one in details if isinstance(details, list) else ():
            if isinstance(one, Mapping) and str(one.get("@type")).endswith("RetryInfo"):
                delay = str(one.get("retryDelay"))
                return _bounded(_number(delay.removesuffix("s")))
    words = RETRY_IN.search(message)
    return _bounded(float(words[1])) if words else None


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return math.nan


def _bounded(seconds: float) -> float | None:
    return min(max(seconds, 0.0), LONGEST_WAIT_S) if math.isfinite(seconds) else None


def _failure(
    status: int, codes: list[str], message: str, *, waits: bool, refuses: bool
) -> FailureClass:
    if _is_spent(status, codes, message, waits=waits):
        return FailureClass.NO_CREDIT
    if status in _BY_STATUS:
        return _BY_STATUS[status]
    named = [_BY_CODE[code] for code in codes if code in _BY_CODE]
    if named:
        return named[0]
    if refuses:
        return FailureClass.BAD_REQUEST
    if status >= 500:
        return FailureClass.OVERLOADED
    words = message.lower().replace("_", " ")
    matches = (failure for phrase, failure in _BY_WORDS.items() if phrase in words)
    unknown = FailureClass.OVERLOADED if status == IN_A_REPLY else FailureClass.BAD_REQUEST
    return next(matches, unknown)


def _is_spent(status: int, codes: list[str], message: str, *, waits: bool) -> bool:
    """Tell an account without credit from a limit that passes, and from an error of a server."""
    if status == 402 or any(map(_NO_CREDIT.search, codes)):
        return True
    in_words = status in SPENT_STATUS and not waits
    return in_words and _NO_CREDIT.search(message) is not None


def retry_after_s(headers: Mapping[str, str], now: datetime) -> float | None:
    """Seconds that a server asks to wait, an hour at most; None when it does not say readably.

    Examples
    --------
    >>> retry_after_s({"retry-after": "2"}, datetime(2026, 1, 1, tzinfo=UTC))
    2.0
    >>> headers = {"retry-after": "Thu, 01 Jan 2026 00:00:30 GMT"}
    >>> retry_after_s(headers, datetime(2026, 1, 1, tzinfo=UTC))
    30.0
    """
    wait = headers.get("retry-after", "")
    seconds = _number(wait)
    if math.isnan(seconds):
        until, sent = _http_date(wait), _http_date(headers.get("date", ""))
        seconds = (until - (sent or now)).total_seconds() if until else math.nan
    return _bounded(seconds)


def _http_date(text: str) -> datetime | None:
    try:
        return parsedate_to_datetime(text).replace(tzinfo=UTC)
    except (ValueError, OverflowError):
        return None
