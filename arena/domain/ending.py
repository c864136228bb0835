"""How an answer ended, by the finish reason that its endpoint gave: decided here alone."""

import re
from collections.abc import Iterable
from enum import StrEnum

from rating.sentences import Sentence

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
MAX_CHARACTERS = "max_answer_chars"
"""The arena's own finish reason of an answer that it cut: see `arena.play.rules`."""
TRUNCATED = frozenset(
    {
        *("length", "max_tokens", "max_output_tokens", "model_length"),
        *("model_context_window_exceeded", MAX_CHARACTERS),
    }
)
"""Finish reasons of an answer that was cut at a limit of tokens or characters.

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


class End(StrEnum):
    """How an answer ended."""

    WHOLE = "whole"
    TRUNCATED = "truncated"
    CALLS = "calls"
    FILTERED = "filtered"
    BROKEN = "broken"
    UNKNOWN = "unknown"


ANSWERS = frozenset({End.WHOLE, End.TRUNCATED, End.CALLS})
"""Ends of an answer that is shown and voted on; a reply with another end is a failure."""


def end_of(reason: str | None) -> End:
    """Classify a finish reason, in whatever case and however its words are joined.

    Parameters
    ----------
    reason : str or None
        As the endpoint gave it; empty or None where it gave none although the reply is complete.

    Examples
    --------
    >>> [str(end_of(reason)) for reason in ("STOP", "MaxTokens", "content_filter: HATE", "bye")]
    ['whole', 'truncated', 'filtered', 'unknown']
    """
    word = re.sub("[-_ ]+", "_", CAMEL.sub("_", (reason or "").strip())).lower()
    if word.startswith(BLOCKED):
        return End.FILTERED
    if word in BROKEN:
        return End.BROKEN
    if word in TRUNCATED:
        return End.TRUNCATED
    if word in CALLS:
        return End.CALLS
    return End.WHOLE if not word or word in WHOLE else End.UNKNOWN


class Cut(StrEnum):
    """The limit at which an answer was cut."""

    TOKENS = "tokens"
    CHARACTERS = "characters"


CUTS = {
    Cut.TOKENS: Sentence("This answer was cut at its token limit."),
    Cut.CHARACTERS: Sentence("This answer was cut at this arena's character limit."),
}
"""What is said of such an answer after the vote. Before it the mark could give a model away."""


def cut_of(reason: str | None) -> Cut | None:
    """Return the limit at which an answer with this finish reason was cut; None if it was not.

    Examples
    --------
    >>> cut_of("length"), cut_of("stop")
    (<Cut.TOKENS: 'tokens'>, None)
    """
    if reason == MAX_CHARACTERS:
        return Cut.CHARACTERS
    return Cut.TOKENS if end_of(reason) is End.TRUNCATED else None


def is_on_broken_answer(
    answers: Iterable[tuple[int, str, int, str | None]], turn: int, attempts: dict[str, int]
) -> bool:
    """Return whether an answer that a voter was shown ended otherwise than an answer does.

    Parameters
    ----------
    answers : iterable of tuple
        Turn, side, attempt and finish reason of each answer of a battle, in order of attempts.
    turn : int
        The turn that was voted on.
    attempts : dict
        The attempt of each side that the vote is about. Of earlier turns the last ones were shown.
    """
    shown = {
        (of_turn, side): reason
        for of_turn, side, attempt, reason in answers
        if of_turn < turn or (of_turn == turn and attempt == attempts.get(side))
    }
    return any(end_of(reason) not in ANSWERS for reason in shown.values())
