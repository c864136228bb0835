"""How providers and gateways end a reply, in which document, and what an arena makes of it."""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from arena.domain.vote import FailureClass as Failure

TEXT = "The sky is blue because air scatters short waves most."
BEGUN = TEXT[:20]
THOUGHT = "Hmm, let me think."
VERDICT = "Both are fine, but the first is right. [[A]]"


@dataclass(frozen=True, slots=True, kw_only=True)
class ProviderReply:
    """A reply, streamed and whole.

    Attributes
    ----------
    source : str
        The document that describes it.
    deltas : sequence of mapping
        Of the stream; a message is made of them where ``message`` is None.
    choice, fields : mapping
        Further fields of the last choice, and of the reply.
    last : str
        What the stream ends with in place of its last event.
    what : str
        What it does, where a finish reason alone does not say that.
    cut : bool
        Whether the answer ended at a limit of tokens.
    end : FailureClass or None
        Why it is no answer; None for one.
    """

    source: str
    deltas: Sequence[Mapping[str, Any]] = ({"content": BEGUN}, {"content": TEXT[20:]})
    finish: str | None = "stop"
    choice: Mapping[str, Any] = field(default_factory=dict)
    fields: Mapping[str, Any] = field(default_factory=dict)
    message: Mapping[str, Any] | None = None
    last: str = ""
    done: bool = True
    what: str = ""
    cut: bool = False
    end: Failure | None = None
    text: str = TEXT
    reasoning: str = ""
    only_streamed: bool = False

    def stream(self, verdict: bool = False) -> str:
        """Write it as a stream; with a verdict in place of its text, if wanted."""
        deltas = [{"role": "assistant", "content": ""}, *self.deltas]
        if verdict:
            deltas.insert(1, {"content": VERDICT})
        events = [{"index": 0, "delta": delta, "finish_reason": None} for delta in deltas]
        end = {"index": 0, "delta": {}, "finish_reason": self.finish, **self.choice}
        lines = [_event({"id": "c1", "choices": [one]}) for one in events]
        if self.last:
            lines.append(self.last)
        else:
            lines.append(_event({"id": "c1", "choices": [end], **self.fields}))
        return "".join(lines) + ("data: [DONE]\n\n" if self.done else "")

    def whole(self, verdict: bool = False) -> dict[str, Any]:
        """Write it as one reply."""
        message = dict(self.message or {"content": "".join(_texts(self.deltas)) or None})
        for delta in self.deltas if self.message is None else ():
            message |= {name: value for name, value in delta.items() if name != "content"}
        if verdict:
            parts, content = [{"type": "text", "text": VERDICT}], message.get("content")
            message["content"] = [*content, *parts] if isinstance(content, list) else VERDICT
        choice = {"index": 0, "message": {"role": "assistant", **message}, **self.choice}
        choice["finish_reason"] = self.finish
        return {"id": "c1", "object": "chat.completion", "choices": [choice], **self.fields}


def _event(value: Mapping[str, Any]) -> str:
    return f"data: {json.dumps(value)}\n\n"


def _texts(deltas: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    return (one["content"] for one in deltas if isinstance(one.get("content"), str))


OPENAI = "OpenAI API reference, chat completion object"
AZURE = "Azure OpenAI, content filtering: finish_reason"
ANTHROPIC = "Anthropic API, handling stop reasons"
GEMINI = "Gemini API, GenerateContentResponse, FinishReason"
MISTRAL = "Mistral API, chat completion, finish_reason and content chunks"
BEDROCK = "Amazon Bedrock API, Converse, stopReason"
COHERE = "Cohere API, chat, finish_reason"
OPENROUTER = "OpenRouter, errors and debugging"
VLLM = "vLLM, vllm/v1/engine, FinishReason"
SGLANG = "SGLang, managers/schedule_batch.py, FINISH_ABORT"
TGI = "Text Generation Inference, FinishReason"
DEEPSEEK = "DeepSeek API, create chat completion, finish_reason"
ZHIPU = "Zhipu BigModel API, finish_reason"
TOGETHER = "Together AI, chat completions, finish_reason"
OLLAMA = "Ollama API, done_reason"
LLAMA_CPP = "llama.cpp, tools/server, error events of a stream"
FASTCHAT = "FastChat, fastchat/constants.py, ErrorCode"
LITELLM = "LiteLLM, map_finish_reason"
STRANDS = "Strands Agents, StopReason"

WHOLE = ({"content": BEGUN}, {"content": TEXT[20:]})
CUT: Mapping[str, Any] = {"text": BEGUN, "cut": True}
BLOCKED = {"end": Failure.CONTENT_FILTER}
BROKEN = {"end": Failure.OVERLOADED}
KINDS = {"cut": CUT, "blocked": BLOCKED, "broken": BROKEN}

SORRY = {"content": None, "refusal": "I'm sorry, I cannot help with that."}
TOOLS = {"content": None, "tool_calls": [{"index": 0, "id": "x", "type": "function"}]}
NO_TEXT = {"content": None}
THINKING = {"type": "thinking", "thinking": [{"type": "text", "text": THOUGHT}]}
REFUSED = {"content": [{"type": "refusal", "refusal": "I cannot."}]}
GIVEN_UP = {"error": {"code": 502, "message": "Provider returned error"}}
LIMITED = {"error": {"code": 429, "message": "Rate limited"}}
NATIVE = {"native_finish_reason": "MAX_TOKENS"}
CRASH = {"code": 500, "message": "no slot", "type": "server_error"}
SHIFT = CRASH | {"message": "context shift"}
NETWORK = {"text": "**NETWORK ERROR**", "error_code": 50001}


def _part(text: str) -> dict[str, str]:
    return {"type": "text", "text": text}


def _odd(source: str, what: str, *deltas: Mapping[str, Any], **values: Any) -> ProviderReply:
    """Give a reply that does something else; it breaks off if no deltas are given."""
    return ProviderReply(source=source, what=what, deltas=deltas or WHOLE[:1], **values)


def _ends(source: str, finishes: str) -> Iterator[ProviderReply]:
    """Give a reply for each finish reason; after a sign of equality stands which kind it is of."""
    for finish, _, kind in (one.partition("=") for one in finishes.split(", ")):
        yield _odd(source, "", *(() if kind else WHOLE), finish=finish, **KINDS.get(kind, {}))


def _empty(source: str, finish: str, delta: Mapping[str, Any] = NO_TEXT) -> ProviderReply:
    return _odd(source, f"`{finish}` without text", delta, finish=finish, end=Failure.EMPTY)


def _error(
    source: str, what: str, last: str | Mapping[str, Any], done: bool = True
) -> ProviderReply:
    text = last if isinstance(last, str) else _event(last)
    return _odd(source, what, last=text, done=done, only_streamed=True, **BROKEN)


_REPLIES = (
    *_ends(OPENAI, "stop, length=cut, content_filter=blocked"),
    _odd(OPENAI, "`refusal` in the message", SORRY, **BLOCKED),
    _empty(OPENAI, "tool_calls", TOOLS),
    *_ends(OPENAI, "tool_calls"),
    _empty(OPENAI, "function_call"),
    *_ends(AZURE, "content_filter=blocked, content_filtered=blocked"),
    *_ends(ANTHROPIC, "end_turn, stop_sequence, max_tokens=cut"),
    *_ends(ANTHROPIC, "model_context_window_exceeded=cut, refusal=blocked, pause_turn=broken"),
    _empty(ANTHROPIC, "tool_use"),
    _error(
        "Anthropic API, streaming messages, error events",
        "`event: error`",
        "event: error\n"
        + _event({"type": "error", "error": {"type": "overloaded_error", "message": "Busy"}}),
        done=False,
    ),
    *_ends(GEMINI, "STOP, MAX_TOKENS=cut, SAFETY=blocked, RECITATION=blocked, BLOCKLIST=blocked"),
    *_ends(GEMINI, "content_filter: PROHIBITED_CONTENT=blocked, SPII=blocked"),
    *_ends(GEMINI, "IMAGE_SAFETY=blocked, OTHER=broken, LANGUAGE=broken"),
    *_ends(GEMINI, "MALFORMED_FUNCTION_CALL=broken"),
    *_ends(MISTRAL, "model_length=cut, error=broken"),
    _odd(
        MISTRAL,
        "parts of type `thinking` and `text`",
        {"content": [THINKING]},
        {"content": [_part(BEGUN)]},
        {"content": TEXT[20:]},
        message={"content": [THINKING, _part(TEXT)]},
        reasoning=THOUGHT,
    ),
    _odd(
        "LiteLLM, content as a list of parts",
        "content as parts of type `text`",
        {"content": [_part(BEGUN), _part(TEXT[20:])]},
        message={"content": [_part(TEXT)]},
    ),
    _odd(OPENAI, "content as a part of type `refusal`", REFUSED, message=REFUSED, **BLOCKED),
    *_ends(BEDROCK, "end_turn, guardrail_intervened=blocked, content_filtered=blocked"),
    *_ends(BEDROCK, "malformed_model_output=broken"),
    *_ends(COHERE, "COMPLETE, STOP_SEQUENCE, MAX_TOKENS=cut, ERROR=broken"),
    *_ends(COHERE, "ERROR_TOXIC=blocked, ERROR_LIMIT=broken, TIMEOUT=broken"),
    *_ends(OPENROUTER, "error=broken"),
    _odd(OPENROUTER, "`error` in the choice", finish="error", choice=GIVEN_UP, **BROKEN),
    _odd(
        OPENROUTER,
        "`error` beside the choice",
        finish="error",
        fields=LIMITED,
        end=Failure.RATE_LIMIT,
    ),
    _odd(OPENROUTER, "`native_finish_reason: MAX_TOKENS` beside `stop`", choice=NATIVE, **CUT),
    *_ends(VLLM, "abort=broken, error=broken"),
    *_ends(SGLANG, "abort=broken"),
    *_ends(TGI, "eos_token"),
    *_ends(TOGETHER, "eos"),
    *_ends(DEEPSEEK, "insufficient_system_resource=broken"),
    *_ends(ZHIPU, "sensitive=blocked, network_error=broken"),
    *_ends(OLLAMA, "load=broken, unload=broken"),
    *_ends(LITELLM, "guardrail_intervened=blocked"),
    *_ends(STRANDS, "contentFiltered=blocked, endTurn"),
    _error(LLAMA_CPP, "a line `error:`", f"error: {json.dumps(SHIFT)}\n\n"),
    _error(LLAMA_CPP, "an event with `error`", {"error": CRASH}),
    _error(FASTCHAT, "an event with `error_code`", NETWORK),
    _error("FastAPI, HTTPException", "an event with `detail`", {"detail": "Internal error"}),
    _error(
        "Envoy, upstream errors behind a gateway",
        "an event with `code` and `message`",
        {"message": "upstream connect error", "code": 503, "type": "server_error"},
    ),
    _error(
        "Amazon Bedrock API, ResponseStream, exceptions",
        "an event with `internalServerException`",
        {"internalServerException": {"message": "failed"}},
    ),
    _error(
        "OpenAI API reference, responses, status",
        "an event with `status: failed`",
        {"status": "failed", "message": "x"},
    ),
    _error(
        "LM Studio, errors as text", "an event with `error` as text", {"error": "model crashed"}
    ),
    _odd("none: a word that no document has", "", finish="gone_fishing", end=Failure.MALFORMED),
    _odd("Ollama and llama.cpp of early versions", "", *WHOLE, finish=None),
)
REPLIES: Mapping[str, ProviderReply] = {
    f"{one.source.split()[0].strip(',:').lower()}-{one.what or one.finish}": one
    for one in _REPLIES
}
"""By who sends them and what they do, as `openai-stop`."""


def _chunk(delta: object, finish: str | None = None, **fields: object) -> str:
    return _event(
        {"id": "c1", "choices": [{"index": 0, "delta": delta, "finish_reason": finish}]} | fields
    )


def _one(**choice: object) -> str:
    return _event({"choices": [choice]})


Shape = tuple[str, str, Failure | None]
_TEXT, _BEGIN = _chunk({"content": TEXT}), _chunk({"content": BEGUN})
_STOP, _DONE = _chunk({}, "stop"), "data: [DONE]\n\n"
_END = _STOP + _DONE
_USAGE = {"prompt_tokens": 5, "completion_tokens": 0, "total_tokens": 5}
_OF_USAGE = _event({"choices": [], "usage": _USAGE})
_FILTERED = {"index": 0, "content_filter_results": {}, "finish_reason": None}
_OTHER = {"index": 1, "delta": {"content": "Other."}}
_PARTS = [BEGUN, {"text": TEXT[20:30]}, {"type": "output_text", "text": TEXT[30:]}]


def _with_text(before: str, after: str = "") -> str:
    return before + _TEXT + after + _END


def _shape(source: str, stream: str, end: Failure | None = None) -> Shape:
    return source, stream, end


def _broken(
    source: str, event: str | Mapping[str, Any], end: Failure = Failure.OVERLOADED
) -> Shape:
    """Give a stream that says in the middle of its text that it is no answer."""
    return source, _BEGIN + (event if isinstance(event, str) else _event(event)) + _DONE, end


SHAPES: Mapping[str, Shape] = {
    "an empty choice before the text": _shape(
        "Azure OpenAI, asynchronous content filter",
        _with_text(
            _event({"id": "", "choices": [], "prompt_filter_results": [{"prompt_index": 0}]}),
            after=_event({"id": "", "choices": [_FILTERED]}),
        ),
    ),
    "comments that keep a connection open": _shape(
        OPENROUTER, _with_text(": OPENROUTER PROCESSING\n\n")
    ),
    "a usage before the text": _shape(
        VLLM, _with_text(_chunk({"role": "assistant"}, usage=_USAGE))
    ),
    "a usage as the last event": (OPENAI, _with_text("") + _OF_USAGE, None),
    "a null delta": (LITELLM, _with_text(_chunk(None)), None),
    "null choices": (LITELLM, _with_text(_event({"id": "c1", "choices": None})), None),
    "another choice first": (OPENAI, _with_text(_event({"id": "c1", "choices": [_OTHER]})), None),
    "a message in place of a delta": _shape(
        OLLAMA, _one(index=0, message={"content": TEXT}, finish_reason="stop")
    ),
    "a text in place of a delta": _shape(
        "OpenAI API reference, completions", _one(index=0, text=TEXT, finish_reason="stop") + _DONE
    ),
    "reasoning as an object": _shape(
        OPENROUTER, _with_text(_chunk({"reasoning": {"text": THOUGHT}}))
    ),
    "reasoning as details": _shape(
        OPENROUTER,
        _with_text(_chunk({"reasoning_details": [{"type": "reasoning.text", "text": THOUGHT}]})),
    ),
    "choices as an object": _shape(
        "none: a gateway that rewrites lists",
        _event({"choices": {"0": {"delta": {"content": TEXT}}}}) + _END,
        Failure.MALFORMED,
    ),
    "a finish reason as an object": _shape(
        "none: a gateway that rewrites words",
        _TEXT + _chunk({}, {"type": "stop"}) + _DONE,  # type: ignore[arg-type]
        Failure.MALFORMED,
    ),
    "an event that is no JSON": _shape(
        "none: a gateway that pings", _with_text("data: ping\n\n"), Failure.MALFORMED
    ),
    "a stream that ends in the middle": (VLLM, _BEGIN, Failure.DROPPED),
    "no text at all": (VLLM, _END, Failure.EMPTY),
    "an error as the only event": (FASTCHAT, _event(NETWORK), Failure.OVERLOADED),
    "a usage before text that breaks off": (VLLM, _OF_USAGE + _BEGIN, Failure.DROPPED),
    "a stop before text that breaks off": _shape(
        "none: a gateway that reorders", _STOP + _BEGIN, Failure.DROPPED
    ),
    "a filter, and then a stop": _broken(
        AZURE, _chunk({}, "content_filter") + _STOP, Failure.CONTENT_FILTER
    ),
    "a native filter beside a stop": _broken(
        OPENROUTER,
        _one(delta={}, finish_reason="stop", native_finish_reason="SAFETY"),
        Failure.CONTENT_FILTER,
    ),
    "an error with an id": _broken(OPENROUTER, {"id": "c1", "code": 500, "message": "Crash"}),
    "an error by its type": _broken(ANTHROPIC, {"type": "error", "message": "Overloaded"}),
    "a message alone": _broken("AWS API Gateway, errors", {"message": "Internal server error"}),
    "an error in the delta": _broken(LITELLM, _chunk({"error": {"message": "Crash"}})),
    "a response that failed": _broken(
        OPENAI, {"type": "response.failed", "response": {"status": "failed", "message": "x"}}
    ),
    "a prompt that was blocked": _shape(
        GEMINI,
        _event({"promptFeedback": {"blockReason": "SAFETY"}}) + _DONE,
        Failure.CONTENT_FILTER,
    ),
    "characters that cannot be seen": _shape(
        "none: a model that writes zero-width spaces",
        _chunk({"content": "\u200b\u200d"}) + _END,
        Failure.EMPTY,
    ),
    "a message that repeats the text": _shape(
        OLLAMA, _TEXT + _one(delta={}, message={"content": TEXT}, finish_reason="stop") + _DONE
    ),
    "a text beside the role": _shape(TGI, _one(delta={"role": "assistant"}, text=TEXT) + _END),
    "two choices, the second first": _shape(
        OPENAI, _event({"choices": [_OTHER, {"index": 0, "delta": {"content": TEXT}}]}) + _END
    ),
    "parts without types": _shape(LITELLM, _chunk({"content": _PARTS}) + _END),
    "reasoning that is marked as a thought": _shape(
        "Gemini API, OpenAI compatibility, thoughts",
        _with_text(_chunk({"content": THOUGHT, "extra_content": {"google": {"thought": True}}})),
    ),
    "reasoning in a part that is a thought": _shape(
        GEMINI, _chunk({"content": [{"text": THOUGHT, "thought": True}, {"text": TEXT}]}) + _END
    ),
    "the end in small letters": (LITELLM, _TEXT + "data: [done]\n\n", None),
    "a page": _shape(
        "LM Studio, its start page",
        "<!DOCTYPE html><html><body>LM Studio</body></html>",
        Failure.MALFORMED,
    ),
    "an error as one object": _shape(
        "Ollama API, errors",
        json.dumps({"error": {"message": "Model not loaded", "type": "model_not_found"}}),
        Failure.NOT_FOUND,
    ),
}
"""Streams by what is peculiar about them: where that is described, the stream, and its end."""
