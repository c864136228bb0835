"""What went wrong at an endpoint, read from its status, its error object or the connection."""

import json
import math
import re
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any

import httpx

from arena.domain.answer import FailureClass
from arena.endpoints.dialect import refused_in
from arena.errors import EndpointError

Json = Mapping[str, Any]

BY_STATUS = {
    401: FailureClass.AUTH,
    402: FailureClass.NO_CREDIT,
    403: FailureClass.AUTH,
    404: FailureClass.NOT_FOUND,
    408: FailureClass.TIMEOUT,
    413: FailureClass.CONTEXT_LENGTH,
    429: FailureClass.RATE_LIMIT,
}
IN_A_REPLY = 200
"""Status of an error that comes in the place of a reply, and has none of its own."""

BY_CODE = {
    "context_length_exceeded": FailureClass.CONTEXT_LENGTH,
    "string_above_max_length": FailureClass.CONTEXT_LENGTH,
    "content_filter": FailureClass.CONTENT_FILTER,
    "content_policy_violation": FailureClass.CONTENT_FILTER,
    "model_not_found": FailureClass.NOT_FOUND,
    "not_found_error": FailureClass.NOT_FOUND,
    "invalid_api_key": FailureClass.AUTH,
    "authentication_error": FailureClass.AUTH,
    "permission_error": FailureClass.AUTH,
    "ThrottlingException": FailureClass.RATE_LIMIT,
    "rate_limit_error": FailureClass.RATE_LIMIT,
    "rate_limit_exceeded": FailureClass.RATE_LIMIT,
    "overloaded_error": FailureClass.OVERLOADED,
    "server_error": FailureClass.OVERLOADED,
}
"""Values of ``code`` or ``type`` in the error objects of OpenAI and those who follow it."""

BY_WORDS = {
    "context length": FailureClass.CONTEXT_LENGTH,
    "context window": FailureClass.CONTEXT_LENGTH,
    "maximum context": FailureClass.CONTEXT_LENGTH,
    "prompt is too long": FailureClass.CONTEXT_LENGTH,
    "too many tokens": FailureClass.CONTEXT_LENGTH,
    "content filter": FailureClass.CONTENT_FILTER,
    "content management policy": FailureClass.CONTENT_FILTER,
    "content policy": FailureClass.CONTENT_FILTER,
    "api key not valid": FailureClass.AUTH,
    "invalid api key": FailureClass.AUTH,
    "unexpected endpoint": FailureClass.NOT_FOUND,
}
"""Words of the message, for servers that give no code; not read where a server broke down.

Google says so of a key under the status 400, LM Studio of an address under 200.
"""

NO_CREDIT = re.compile(
    r"insufficient[_ ](?:quota|balance|credits?|funds?)|"
    r"credits?[_ ]balance[_ ](?:is too low|exhaust)|"
    r"billing[_ ](?:hard[_ ]limit|not[_ ]active)|"
    r"(?:spend|spending|usage)[_ ]limit[_ ](?:exceeded|reached)|"
    r"exceeded[_ ](?:your )?(?:current[_ ]quota|monthly included credits)|"
    r"(?:plan|account) and billing|payment[_ ]required|out of credits?|no (?:more )?credits?\b|"
    r"all available credits|not[_ ]enough[_ ]balance|out of (?:credit|funds|balance)|"
    r"monthly spending limit|key limit exceeded|account is not active|account[_ ]?overdue|"
    r"overdue (?:account|balance)|arrearage|"
    r"balance (?:is )?(?:insufficient|not enough)|余额不足|欠费",
    re.IGNORECASE,
)
"""Codes and words of an account that has nothing left to spend, or pays no more.

OpenAI (``insufficient_quota``, ``credit_balance_exhausted``), Anthropic, Moonshot
(``exceeded_current_quota_error``), DeepSeek, OpenRouter, xAI, Alibaba (``Arrearage``), Volcengine
(``AccountOverdueError``), Zhipu. Google says the same of limits that pass, with a time to wait.
"""
SPENT_STATUS = frozenset({IN_A_REPLY, 400, 401, 403, 412, 429, 500})
"""Statuses under which providers say so in words alone; 500 is MiniMax's."""

MOST_READ = 4000
"""Characters of a message that are looked through: it may quote a prompt, and be long."""
INSIDE = ("error", "errors", "fault", "base_resp", "message", "detail", "metadata")
"""Where the fields of an error are, if not at the top.

``fault`` is Apigee's, ``base_resp`` MiniMax's; ``metadata`` has the provider's own at OpenRouter.
"""
MESSAGES = (
    *("message", "Message", "faultstring", "detail", "msg", "error_msg", "error_message"),
    *("error_description", "status_msg", "description", "title", "text"),
)
"""Names of what an error says, the first that is there."""
CODES = ("code", "type", "status", "error_code", "errorCode", "errorcode", "status_code", "__type")
PAGE = re.compile(r"\s*(?:<\?xml[^>]*>\s*)?<(?:!doctype\s+html|html|head|body)\b", re.IGNORECASE)
TITLE = re.compile(r"<(title|h1)\b[^>]*>\s*(.*?)\s*</\1", re.IGNORECASE | re.DOTALL)
RETRY_IN = re.compile(r"(?:retry|try again) (?:in|after) (\d+(?:\.\d+)?) ?s", re.IGNORECASE)
DEEPEST = 4
"""Errors within errors that are looked into: gateways put the provider's into their own."""

BY_EXCEPTION: tuple[tuple[type[Exception], FailureClass], ...] = (
    (httpx.ConnectError, FailureClass.UNREACHABLE),
    (httpx.ConnectTimeout, FailureClass.UNREACHABLE),
    (httpx.UnsupportedProtocol, FailureClass.UNREACHABLE),
    (httpx.InvalidURL, FailureClass.UNREACHABLE),
    (httpx.TimeoutException, FailureClass.TIMEOUT),
)
"""The first that fits; anything else on the wire is a connection that broke."""

LONGEST_WAIT_S = 3600.0
"""Longest wait that a server can ask for; nobody here waits nearly as long."""


def from_exception(error: Exception) -> EndpointError:
    """Failure behind an exception of the HTTP client."""
    fits = (failure for kind, failure in BY_EXCEPTION if isinstance(error, kind))
    failure = next(fits, FailureClass.DROPPED)
    return EndpointError(failure, str(error) or type(error).__name__)


def from_response(response: httpx.Response, text: str, now: datetime) -> EndpointError:
    """Failure told by a response, whose body is ``text`` and whose status is not a success.

    ``retry_after_s`` is counted from the response's own date, where it has one: the clocks
    need not agree.
    """
    wait_s = retry_after_s(response.headers, now)
    return from_error(_decoded(text), status=response.status_code, retry_after_s=wait_s)


def from_redirect(response: httpx.Response) -> EndpointError:
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
    is_filtered = any(BY_CODE.get(code) is FailureClass.CONTENT_FILTER for code in codes)
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
        return _titled(value)
    if isinstance(value, list) and all(isinstance(one, Mapping) for one in value):
        return "; ".join(
            f"{'.'.join(map(str, one['loc']))}: {one.get('msg')}"
            if isinstance(one.get("loc"), list)
            else json.dumps(one)
            for one in value
        )
    return json.dumps(value)


def _titled(text: str) -> str:
    """Give a text as it is, and of a page of HTML its title."""
    if not PAGE.match(text):
        return text
    title = TITLE.search(text[:MOST_READ])
    words = " ".join(re.sub(r"<[^>]*>", " ", title[2]).split()) if title else ""
    return f"a page of HTML titled {words!r}" if words else "a page of HTML without a title"


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
    if status in BY_STATUS:
        return BY_STATUS[status]
    named = [BY_CODE[code] for code in codes if code in BY_CODE]
    if named:
        return named[0]
    if refuses:
        return FailureClass.BAD_REQUEST
    if status >= 500:
        return FailureClass.OVERLOADED
    words = message.lower().replace("_", " ")
    matches = (failure for phrase, failure in BY_WORDS.items() if phrase in words)
    unknown = FailureClass.OVERLOADED if status == IN_A_REPLY else FailureClass.BAD_REQUEST
    return next(matches, unknown)


def _is_spent(status: int, codes: list[str], message: str, *, waits: bool) -> bool:
    """Tell an account without credit from a limit that passes, and from an error of a server."""
    if status == 402 or any(map(NO_CREDIT.search, codes)):
        return True
    in_words = status in SPENT_STATUS and not waits
    return in_words and NO_CREDIT.search(message) is not None


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
