"""How a reply ended: decided here for streams, whole replies and lines of a batch alike."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from arena.domain.answer import FailureClass, Finished
from arena.domain.ending import End, end_of
from arena.endpoints.failures import IN_A_REPLY, from_error
from arena.errors import EndpointError
from judge.completion import CUT, FILTERED

ERROR_FIELDS = frozenset({"error_code", "errors", "exception", "detail", "message", "statuscode"})
"""Fields of an event that is nothing but an error; FastChat sends ``error_code``."""


def finish_reason(
    reason: str, *, has_text: bool, refusal: str = "", as_it_is: bool = False
) -> str:
    """Give the finish reason of an answer in one spelling.

    Parameters
    ----------
    reason : str
        As the endpoint gave it; empty where it gave none although the reply is complete.
    has_text : bool
        Whether the answer holds anything that can be seen.
    refusal : str
        What the model says in place of an answer, where the protocol has a field for it.
    as_it_is : bool
        Whether a reply that was filtered or holds nothing counts as one: it was paid for.

    Returns
    -------
    str
        `CUT` for a truncated answer, `FILTERED` for one that was filtered or refused, else the
        reason as it came.

    Raises
    ------
    EndpointError
        If the reply broke off, or ended for a reason that is not known here; unless
        ``as_it_is``, also if it was filtered or refused, or holds nothing.

    Examples
    --------
    >>> finish_reason("MAX_TOKENS", has_text=True), finish_reason("STOP", has_text=True)
    ('length', 'STOP')
    """
    end, refusal = end_of(reason), refusal.strip()
    if as_it_is and (end is End.FILTERED or refusal):
        return FILTERED
    if end is End.FILTERED:
        raise EndpointError(FailureClass.CONTENT_FILTER, f"the answer was filtered ({reason})")
    if refusal:
        raise EndpointError(FailureClass.CONTENT_FILTER, f"the model refused: {refusal}")
    if end is End.BROKEN:
        detail = f"the answer broke off (finish reason {reason!r})"
        raise EndpointError(FailureClass.OVERLOADED, detail)
    if end is End.UNKNOWN:
        raise EndpointError(FailureClass.MALFORMED, f"unknown finish reason {reason!r}")
    if not (has_text or as_it_is):
        detail = f"no visible text (finish reason {reason or 'none'})"
        raise EndpointError(FailureClass.EMPTY, detail)
    return CUT if end is End.TRUNCATED else reason


@contextmanager
def paid(counted: Finished) -> Iterator[None]:
    """Add to an error what the endpoint counted of the reply that it is about."""
    try:
        yield
    except EndpointError as error:
        error.counted = counted
        raise


def check_error(event: Mapping[str, Any]) -> None:
    """Raise the error that an event or a reply carries in place of an answer, or beside one.

    Raises
    ------
    EndpointError
        If it has an error object, or neither choices nor a usage but the fields of an error.
    """
    if event.get("error") or event.get("object") == "error":
        raise from_error(event, status=IN_A_REPLY)
    if isinstance(base := event.get("base_resp"), Mapping) and base.get("status_code"):
        raise from_error({"base_resp": base}, status=IN_A_REPLY)
    choices = event.get("choices")
    first = choices[0] if isinstance(choices, list) and choices else None
    if isinstance(first, Mapping) and first.get("error"):
        raise from_error({"error": first["error"]}, status=IN_A_REPLY)
    code, status = event.get("code"), event.get("status")
    if status in ("failed", "incomplete") or (isinstance(code, int) and code >= 400):
        raise from_error(event, status=IN_A_REPLY)
    inside, feedback = event.get("response"), event.get("promptFeedback")
    if isinstance(inside, Mapping) and inside.get("status") in ("failed", "incomplete"):
        raise from_error(inside, status=IN_A_REPLY)
    if isinstance(feedback, Mapping) and feedback.get("blockReason"):
        detail = f"the prompt was filtered ({feedback['blockReason']})"
        raise EndpointError(FailureClass.CONTENT_FILTER, detail)
    if choices or event.get("usage"):
        return
    names = {name.lower() for name in event}
    is_error = names & ERROR_FIELDS or event.get("type") == "error"
    if is_error or any(name.endswith("exception") for name in names):
        raise from_error(event, status=IN_A_REPLY)
