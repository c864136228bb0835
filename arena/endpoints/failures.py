"""What went wrong at an endpoint, read from its status, its error object or the connection."""

import json
import math
from collections.abc import Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime

import httpx

from arena.domain.answer import FailureClass
from arena.errors import EndpointError

BY_STATUS = {
    401: FailureClass.AUTH,
    402: FailureClass.AUTH,
    403: FailureClass.AUTH,
    404: FailureClass.NOT_FOUND,
    408: FailureClass.TIMEOUT,
    413: FailureClass.CONTEXT_LENGTH,
    429: FailureClass.RATE_LIMIT,
}
"""402 is an account without credit: like a wrong key, only the operator can mend it."""

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
    "rate_limit_error": FailureClass.RATE_LIMIT,
    "rate_limit_exceeded": FailureClass.RATE_LIMIT,
    "insufficient_quota": FailureClass.RATE_LIMIT,
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
}
"""Words of the message, for servers that give no code; read only where the request is blamed."""

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
    try:
        body = json.loads(text)
    except ValueError:
        body = text
    error = from_error(body, status=response.status_code)
    wait_s = retry_after_s(response.headers, now)
    return EndpointError(error.failure, error.detail, retry_after_s=wait_s)


def from_redirect(response: httpx.Response) -> EndpointError:
    """Failure of an endpoint that sends us elsewhere: the key and the prompt are for it alone."""
    return EndpointError(
        FailureClass.NOT_FOUND,
        f"status {response.status_code}, a redirect to {response.headers['location']!r}, which is "
        "not followed: put the address that answers into the roster",
    )


def from_error(body: object, *, status: int) -> EndpointError:
    """Failure told by an error object, or by whatever stands in its place.

    Parameters
    ----------
    body : object
        Decoded JSON: ``{"error": {"message", "type", "code"}}``, its inside, or a text.
    status : int
        HTTP status; an error object that carries a status of its own overrides it.
    """
    inside = body.get("error", body) if isinstance(body, Mapping) else body
    fields = inside if isinstance(inside, Mapping) else {"message": inside}
    code = fields.get("code")
    if isinstance(code, int) and 400 <= code < 600:
        status = code
    message = str(fields.get("message") or fields.get("detail") or "")
    failure = _failure(status, (code, fields.get("type")), message)
    return EndpointError(failure, f"status {status}, {message or 'with no message'}")


def _failure(status: int, codes: tuple[object, ...], message: str) -> FailureClass:
    if status in BY_STATUS:
        return BY_STATUS[status]
    named = [BY_CODE[code] for code in codes if isinstance(code, str) and code in BY_CODE]
    if named:
        return named[0]
    if status >= 500:
        return FailureClass.OVERLOADED
    words = message.lower().replace("_", " ")
    matches = (failure for phrase, failure in BY_WORDS.items() if phrase in words)
    return next(matches, FailureClass.BAD_REQUEST)


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
    try:
        seconds = float(wait)
    except ValueError:
        until, sent = _http_date(wait), _http_date(headers.get("date", ""))
        seconds = (until - (sent or now)).total_seconds() if until else math.nan
    return min(max(seconds, 0.0), LONGEST_WAIT_S) if math.isfinite(seconds) else None


def _http_date(text: str) -> datetime | None:
    try:
        return parsedate_to_datetime(text).replace(tzinfo=UTC)
    except (ValueError, OverflowError):
        return None
