"""How providers and gateways end a reply, in which document, and what an arena makes of it."""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
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

CUT_SHORT = {"deltas": ({"content": BEGUN},), "text": BEGUN, "cut": True}
BLOCKED = {"deltas": ({"content": BEGUN},), "end": Failure.CONTENT_FILTER}
BROKEN = {"deltas": ({"content": BEGUN},), "end": Failure.OVERLOADED}


def _of(source: str, finish: str | None, kind: Mapping[str, Any] = {}) -> ProviderReply:
    return ProviderReply(source=source, finish=finish, **kind)


def _error(source: str, last: str, **values: Any) -> ProviderReply:
    kind = {"end": Failure.OVERLOADED} | values
    return ProviderReply(
        source=source, deltas=({"content": BEGUN},), last=last, only_streamed=True, **kind
    )


_openrouter = partial(ProviderReply, source=OPENROUTER, deltas=({"content": BEGUN},))
REPLIES: Mapping[str, ProviderReply] = {
    "openai-stop": _of(OPENAI, "stop"),
    "openai-length": _of(OPENAI, "length", CUT_SHORT),
    "openai-filter": _of(OPENAI, "content_filter", BLOCKED),
    "openai-refusal": ProviderReply(
        what="`refusal` in the message",
        source=OPENAI,
        deltas=({"content": None, "refusal": "I'm sorry, I cannot help with that."},),
        end=Failure.CONTENT_FILTER,
    ),
    "openai-tools": ProviderReply(
        what="`tool_calls` without text",
        source=OPENAI,
        deltas=({"content": None, "tool_calls": [{"index": 0, "id": "x", "type": "function"}]},),
        finish="tool_calls",
        end=Failure.EMPTY,
    ),
    "openai-tools-and-text": _of(OPENAI, "tool_calls"),
    "openai-function": ProviderReply(
        what="`function_call` without text",
        source=OPENAI,
        deltas=({"content": None},),
        finish="function_call",
        end=Failure.EMPTY,
    ),
    "azure-filter-begun": _of(AZURE, "content_filter", BLOCKED),
    "azure-content-filtered": _of(AZURE, "content_filtered", BLOCKED),
    "anthropic-end": _of(ANTHROPIC, "end_turn"),
    "anthropic-sequence": _of(ANTHROPIC, "stop_sequence"),
    "anthropic-tokens": _of(ANTHROPIC, "max_tokens", CUT_SHORT),
    "anthropic-window": _of(ANTHROPIC, "model_context_window_exceeded", CUT_SHORT),
    "anthropic-refusal": _of(ANTHROPIC, "refusal", BLOCKED),
    "anthropic-pause": _of(ANTHROPIC, "pause_turn", BROKEN),
    "anthropic-tool": ProviderReply(
        what="`tool_use` without text",
        source=ANTHROPIC,
        deltas=({"content": None},),
        finish="tool_use",
        end=Failure.EMPTY,
    ),
    "anthropic-error-event": _error(
        "Anthropic API, streaming messages, error events",
        "event: error\ndata: "
        + json.dumps({"type": "error", "error": {"type": "overloaded_error", "message": "Busy"}})
        + "\n\n",
        done=False,
        what="`event: error`",
    ),
    "gemini-stop": _of(GEMINI, "STOP"),
    "gemini-tokens": _of(GEMINI, "MAX_TOKENS", CUT_SHORT),
    "gemini-safety": _of(GEMINI, "SAFETY", BLOCKED),
    "gemini-recitation": _of(GEMINI, "RECITATION", BLOCKED),
    "gemini-blocklist": _of(GEMINI, "BLOCKLIST", BLOCKED),
    "gemini-prohibited": _of(GEMINI, "content_filter: PROHIBITED_CONTENT", BLOCKED),
    "gemini-spii": _of(GEMINI, "SPII", BLOCKED),
    "gemini-image": _of(GEMINI, "IMAGE_SAFETY", BLOCKED),
    "gemini-other": _of(GEMINI, "OTHER", BROKEN),
    "gemini-language": _of(GEMINI, "LANGUAGE", BROKEN),
    "gemini-call": _of(GEMINI, "MALFORMED_FUNCTION_CALL", BROKEN),
    "mistral-model-length": _of(MISTRAL, "model_length", CUT_SHORT),
    "mistral-error": _of(MISTRAL, "error", BROKEN),
    "mistral-thinking": ProviderReply(
        what="parts of type `thinking` and `text`",
        source=MISTRAL,
        deltas=(
            {"content": [{"type": "thinking", "thinking": [{"type": "text", "text": THOUGHT}]}]},
            {"content": [{"type": "text", "text": BEGUN}]},
            {"content": TEXT[20:]},
        ),
        message={
            "content": [
                {"type": "thinking", "thinking": [{"type": "text", "text": THOUGHT}]},
                {"type": "text", "text": TEXT},
            ]
        },
        reasoning=THOUGHT,
    ),
    "parts-of-text": ProviderReply(
        what="content as parts of type `text`",
        source="LiteLLM, content as a list of parts",
        deltas=(
            {"content": [{"type": "text", "text": BEGUN}, {"type": "text", "text": TEXT[20:]}]},
        ),
        message={"content": [{"type": "text", "text": TEXT}]},
    ),
    "parts-with-a-refusal": ProviderReply(
        what="content as a part of type `refusal`",
        source=OPENAI,
        deltas=({"content": [{"type": "refusal", "refusal": "I cannot."}]},),
        message={"content": [{"type": "refusal", "refusal": "I cannot."}]},
        end=Failure.CONTENT_FILTER,
    ),
    "bedrock-end": _of(BEDROCK, "end_turn"),
    "bedrock-guardrail": _of(BEDROCK, "guardrail_intervened", BLOCKED),
    "bedrock-filtered": _of(BEDROCK, "content_filtered", BLOCKED),
    "bedrock-output": _of(BEDROCK, "malformed_model_output", BROKEN),
    "cohere-complete": _of(COHERE, "COMPLETE"),
    "cohere-sequence": _of(COHERE, "STOP_SEQUENCE"),
    "cohere-tokens": _of(COHERE, "MAX_TOKENS", CUT_SHORT),
    "cohere-error": _of(COHERE, "ERROR", BROKEN),
    "cohere-toxic": _of(COHERE, "ERROR_TOXIC", BLOCKED),
    "cohere-limit": _of(COHERE, "ERROR_LIMIT", BROKEN),
    "cohere-timeout": _of(COHERE, "TIMEOUT", BROKEN),
    "openrouter-finish": _of(OPENROUTER, "error", BROKEN),
    "openrouter-choice": _openrouter(
        what="`error` in the choice",
        finish="error",
        choice={"error": {"code": 502, "message": "Provider returned error"}},
        end=Failure.OVERLOADED,
    ),
    "openrouter-top": _openrouter(
        what="`error` beside the choice",
        finish="error",
        fields={"error": {"code": 429, "message": "Rate limited"}},
        end=Failure.RATE_LIMIT,
    ),
    "openrouter-native": _openrouter(
        what="`native_finish_reason: MAX_TOKENS` beside `stop`",
        choice={"native_finish_reason": "MAX_TOKENS"},
        text=BEGUN,
        cut=True,
    ),
    "vllm-abort": _of(VLLM, "abort", BROKEN),
    "vllm-error": _of(VLLM, "error", BROKEN),
    "sglang-abort": _of(SGLANG, "abort", BROKEN),
    "tgi-eos": _of(TGI, "eos_token"),
    "together-eos": _of(TOGETHER, "eos"),
    "deepseek-resource": _of(DEEPSEEK, "insufficient_system_resource", BROKEN),
    "zhipu-sensitive": _of(ZHIPU, "sensitive", BLOCKED),
    "zhipu-network": _of(ZHIPU, "network_error", BROKEN),
    "ollama-load": _of(OLLAMA, "load", BROKEN),
    "ollama-unload": _of(OLLAMA, "unload", BROKEN),
    "litellm-guardrail": _of(LITELLM, "guardrail_intervened", BLOCKED),
    "strands-camel": _of(STRANDS, "contentFiltered", BLOCKED),
    "strands-end": _of(STRANDS, "endTurn"),
    "llama-cpp-error-line": _error(
        LLAMA_CPP,
        'error: {"code": 500, "message": "context shift", "type": "server_error"}\n\n',
        what="a line `error:`",
    ),
    "llama-cpp-error-data": _error(
        LLAMA_CPP,
        _event({"error": {"code": 500, "message": "no slot", "type": "server_error"}}),
        what="an event with `error`",
    ),
    "fastchat-code": _error(
        FASTCHAT,
        _event({"text": "**NETWORK ERROR**", "error_code": 50001}),
        what="an event with `error_code`",
    ),
    "fastapi-detail": _error(
        "FastAPI, HTTPException",
        _event({"detail": "Internal error"}),
        what="an event with `detail`",
    ),
    "envoy-message": _error(
        "Envoy, upstream errors behind a gateway",
        _event({"message": "upstream connect error", "code": 503, "type": "server_error"}),
        what="an event with `code` and `message`",
    ),
    "bedrock-exception": _error(
        "Amazon Bedrock API, ResponseStream, exceptions",
        _event({"internalServerException": {"message": "failed"}}),
        what="an event with `internalServerException`",
    ),
    "responses-failed": _error(
        "OpenAI API reference, responses, status",
        _event({"status": "failed", "message": "x"}),
        what="an event with `status: failed`",
    ),
    "error-as-text": _error(
        "LM Studio, errors as text",
        _event({"error": "model crashed"}),
        what="an event with `error` as text",
    ),
    "unknown-word": _of(
        "none: a word that no document has", "gone_fishing", {**BROKEN, "end": Failure.MALFORMED}
    ),
    "no-reason": _of("Ollama and llama.cpp of early versions", None),
}


def _chunk(delta: object, finish: str | None = None, **fields: object) -> str:
    return _event(
        {"id": "c1", "choices": [{"index": 0, "delta": delta, "finish_reason": finish}]} | fields
    )


_STOP, _DONE = _chunk({}, "stop"), "data: [DONE]\n\n"
_USAGE = {"prompt_tokens": 5, "completion_tokens": 0, "total_tokens": 5}


def _with_text(*before: str, after: str = "") -> str:
    return "".join(before) + _chunk({"content": TEXT}) + after + _STOP + _DONE


SHAPES: Mapping[str, tuple[str, str, Failure | None]] = {
    "an empty choice before the text": (
        "Azure OpenAI, asynchronous content filter",
        _with_text(
            _event({"id": "", "choices": [], "prompt_filter_results": [{"prompt_index": 0}]}),
            after=_event(
                {
                    "id": "",
                    "choices": [{"index": 0, "content_filter_results": {}, "finish_reason": None}],
                }
            ),
        ),
        None,
    ),
    "comments that keep a connection open": (
        OPENROUTER,
        _with_text(": OPENROUTER PROCESSING\n\n"),
        None,
    ),
    "a usage before the text": (
        VLLM,
        _with_text(_chunk({"role": "assistant"}, usage=_USAGE)),
        None,
    ),
    "a usage as the last event": (
        OPENAI,
        _with_text(after="") + _event({"choices": [], "usage": _USAGE}),
        None,
    ),
    "a null delta": (LITELLM, _with_text(_chunk(None)), None),
    "null choices": (LITELLM, _with_text(_event({"id": "c1", "choices": None})), None),
    "another choice first": (
        OPENAI,
        _with_text(
            _event({"id": "c1", "choices": [{"index": 1, "delta": {"content": "Other."}}]})
        ),
        None,
    ),
    "a message in place of a delta": (
        OLLAMA,
        _event({"choices": [{"index": 0, "message": {"content": TEXT}, "finish_reason": "stop"}]}),
        None,
    ),
    "a text in place of a delta": (
        "OpenAI API reference, completions",
        _event({"choices": [{"index": 0, "text": TEXT, "finish_reason": "stop"}]}) + _DONE,
        None,
    ),
    "reasoning as an object": (
        OPENROUTER,
        _with_text(_chunk({"reasoning": {"text": THOUGHT}})),
        None,
    ),
    "reasoning as details": (
        OPENROUTER,
        _with_text(_chunk({"reasoning_details": [{"type": "reasoning.text", "text": THOUGHT}]})),
        None,
    ),
    "choices as an object": (
        "none: a gateway that rewrites lists",
        _event({"choices": {"0": {"delta": {"content": TEXT}}}}) + _STOP + _DONE,
        Failure.MALFORMED,
    ),
    "a finish reason as an object": (
        "none: a gateway that rewrites words",
        _chunk({"content": TEXT}) + _chunk({}, {"type": "stop"}) + _DONE,  # type: ignore[arg-type]
        Failure.MALFORMED,
    ),
    "an event that is no JSON": (
        "none: a gateway that pings",
        _with_text("data: ping\n\n"),
        Failure.MALFORMED,
    ),
    "a stream that ends in the middle": (VLLM, _chunk({"content": BEGUN}), Failure.DROPPED),
    "no text at all": (VLLM, _STOP + _DONE, Failure.EMPTY),
    "an error as the only event": (
        FASTCHAT,
        _event({"text": "**NETWORK ERROR**", "error_code": 50001}),
        Failure.OVERLOADED,
    ),
    "a usage before text that breaks off": (
        VLLM,
        _event({"choices": [], "usage": _USAGE}) + _chunk({"content": BEGUN}),
        Failure.DROPPED,
    ),
    "a stop before text that breaks off": (
        "none: a gateway that reorders",
        _chunk({}, "stop") + _chunk({"content": BEGUN}),
        Failure.DROPPED,
    ),
    "a filter, and then a stop": (
        AZURE,
        _chunk({"content": BEGUN}) + _chunk({}, "content_filter") + _STOP + _DONE,
        Failure.CONTENT_FILTER,
    ),
    "a native filter beside a stop": (
        OPENROUTER,
        _chunk({"content": BEGUN})
        + _event(
            {"choices": [{"delta": {}, "finish_reason": "stop", "native_finish_reason": "SAFETY"}]}
        )
        + _DONE,
        Failure.CONTENT_FILTER,
    ),
    "an error with an id": (
        OPENROUTER,
        _chunk({"content": BEGUN}) + _event({"id": "c1", "code": 500, "message": "Crash"}) + _DONE,
        Failure.OVERLOADED,
    ),
    "an error by its type": (
        ANTHROPIC,
        _chunk({"content": BEGUN}) + _event({"type": "error", "message": "Overloaded"}) + _DONE,
        Failure.OVERLOADED,
    ),
    "a message alone": (
        "AWS API Gateway, errors",
        _chunk({"content": BEGUN}) + _event({"message": "Internal server error"}) + _DONE,
        Failure.OVERLOADED,
    ),
    "an error in the delta": (
        LITELLM,
        _chunk({"content": BEGUN}) + _chunk({"error": {"message": "Crash"}}) + _DONE,
        Failure.OVERLOADED,
    ),
    "a response that failed": (
        OPENAI,
        _chunk({"content": BEGUN})
        + _event({"type": "response.failed", "response": {"status": "failed", "message": "x"}})
        + _DONE,
        Failure.OVERLOADED,
    ),
    "a prompt that was blocked": (
        GEMINI,
        _event({"promptFeedback": {"blockReason": "SAFETY"}}) + _DONE,
        Failure.CONTENT_FILTER,
    ),
    "characters that cannot be seen": (
        "none: a model that writes zero-width spaces",
        _chunk({"content": "\u200b\u200d"}) + _STOP + _DONE,
        Failure.EMPTY,
    ),
    "a message that repeats the text": (
        OLLAMA,
        _chunk({"content": TEXT})
        + _event(
            {"choices": [{"delta": {}, "message": {"content": TEXT}, "finish_reason": "stop"}]}
        )
        + _DONE,
        None,
    ),
    "a text beside the role": (
        TGI,
        _event({"choices": [{"delta": {"role": "assistant"}, "text": TEXT}]}) + _STOP + _DONE,
        None,
    ),
    "two choices, the second first": (
        OPENAI,
        _event(
            {
                "choices": [
                    {"index": 1, "delta": {"content": "Other."}},
                    {"index": 0, "delta": {"content": TEXT}},
                ]
            }
        )
        + _STOP
        + _DONE,
        None,
    ),
    "parts without types": (
        LITELLM,
        _chunk(
            {"content": [BEGUN, {"text": TEXT[20:30]}, {"type": "output_text", "text": TEXT[30:]}]}
        )
        + _STOP
        + _DONE,
        None,
    ),
    "reasoning that is marked as a thought": (
        "Gemini API, OpenAI compatibility, thoughts",
        _chunk({"content": THOUGHT, "extra_content": {"google": {"thought": True}}})
        + _chunk({"content": TEXT})
        + _STOP
        + _DONE,
        None,
    ),
    "reasoning in a part that is a thought": (
        GEMINI,
        _chunk({"content": [{"text": THOUGHT, "thought": True}, {"text": TEXT}]}) + _STOP + _DONE,
        None,
    ),
    "the end in small letters": (LITELLM, _chunk({"content": TEXT}) + "data: [done]\n\n", None),
    "a page": (
        "LM Studio, its start page",
        "<!DOCTYPE html><html><body>LM Studio</body></html>",
        Failure.MALFORMED,
    ),
    "an error as one object": (
        "Ollama API, errors",
        json.dumps({"error": {"message": "Model not loaded", "type": "model_not_found"}}),
        Failure.NOT_FOUND,
    ),
}
"""Streams by what is peculiar about them: where that is described, the stream, and its end."""
