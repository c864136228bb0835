"""How a reply ended: decided here for streams, whole replies and lines of a batch alike."""

import re
from collections.abc import Mapping
from typing import Any

from arena.domain.answer import FailureClass
from arena.endpoints.failures import IN_A_REPLY, from_error
from arena.errors import EndpointError
from judge.completion import CUT, FILTERED

CAMEL = re.compile("(?<=[a-z])(?=[A-Z])")

WHOLE = frozenset(
    {
        *("stop", "eos", "eos_token", "end_turn", "stop_sequence", "complete", "completed"),
        *("finish", "done"),
    }
)
"""Finish reasons of an answer that came to its end, in lower case.

OpenAI, vLLM, SGLang, llama.cpp, Ollama, Mistral and Gemini (``STOP``): ``stop``; Text Generation
Inference: ``eos_token``; Together: ``eos``; Anthropic and Bedrock: ``end_turn``,
``stop_sequence``; Cohere: ``COMPLETE``.
"""
TRUNCATED = frozenset(
    {"length", "max_tokens", "max_output_tokens", "model_length", "model_context_window_exceeded"}
)
"""Finish reasons of an answer that was cut at a limit of tokens.

``model_length`` is Mistral's, ``model_context_window_exceeded`` Anthropic's.
"""
CALLS = frozenset({"tool_calls", "tool_call", "tool_use", "function_call"})
"""Finish reasons of a reply that calls tools: an answer if it also holds text."""
BLOCKED = (
    *("content_filter", "contentfilter", "safety", "recitation", "prohibited_content"),
    *("blocklist", "spii", "sensitive", "refusal", "guardrail", "error_toxic", "blocked"),
    *("image_safety", "censored", "moderation"),
)
"""Beginnings of finish reasons of a reply that was filtered; ``error_toxic`` is Cohere's."""
BROKEN = frozenset(
    {
        *("error", "abort", "aborted", "cancelled", "canceled", "user_cancel", "timeout"),
        *("network_error", "insufficient_system_resource", "error_limit", "load", "unload"),
        *("malformed_model_output", "malformed_function_call", "malformed_tool_use"),
        *("pause_turn", "interrupt", "language", "other"),
    }
)
"""Finish reasons of a reply that broke off; ``insufficient_system_resource`` is DeepSeek's."""
ERROR_FIELDS = frozenset({"error_code", "errors", "exception", "detail"})
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
    word = _word(reason)
    is_blocked, refusal = word.startswith(BLOCKED), refusal.strip()
    if as_it_is and (is_blocked or refusal):
        return FILTERED
    if is_blocked:
        raise EndpointError(FailureClass.CONTENT_FILTER, f"the answer was filtered ({reason})")
    if refusal:
        raise EndpointError(FailureClass.CONTENT_FILTER, f"the model refused: {refusal}")
    if word in BROKEN:
        detail = f"the answer broke off (finish reason {reason!r})"
        raise EndpointError(FailureClass.OVERLOADED, detail)
    if word and word not in WHOLE | TRUNCATED | CALLS:
        raise EndpointError(FailureClass.MALFORMED, f"unknown finish reason {reason!r}")
    if not (has_text or as_it_is):
        detail = f"no visible text (finish reason {reason or 'none'})"
        raise EndpointError(FailureClass.EMPTY, detail)
    return CUT if is_truncated(reason) else reason


def _word(reason: str) -> str:
    return re.sub("[-_ ]+", "_", CAMEL.sub("_", reason.strip())).lower()


def is_truncated(reason: str) -> bool:
    """Tell whether a finish reason is that of an answer that was cut at a limit of tokens."""
    return _word(reason) in TRUNCATED


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
    if choices or event.get("usage") or event.get("id"):
        return
    names = {name.lower() for name in event}
    is_error = (
        names & ERROR_FIELDS or {"code", "message"} <= names or event.get("status") == "failed"
    )
    if is_error or any(name.endswith("exception") for name in names):
        raise from_error(event, status=IN_A_REPLY)
