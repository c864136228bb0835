"""Files of batches are read as OpenAI and Anthropic write them, and nothing in them breaks us."""

import json
from contextlib import suppress
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from arena.domain.model import Model
from arena.domain.vote import Completion, FailureClass
from arena.endpoints.chat import Line, answer_of, format_of, line_of, request_of
from arena.errors import EndpointError
from judge.calls import Profile
from judge.case import Message

OPENAI = Model(id="a", name="A", endpoint="https://api.openai.com/v1", model="gpt-9")
ANTHROPIC = Model(
    id="b",
    name="B",
    endpoint="https://api.anthropic.com/v1",
    model="claude-9",
    system_prompt="Be fair.",
    decoding={"top_p": 0.9},
)
TEXT = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0<[◁"))
LEAVES = st.none() | st.booleans() | st.floats() | st.integers() | st.text(max_size=5)
NAMES = st.sampled_from(
    ["response", "error", "result", "body", "status_code", "choices", "message", "content", "type"]
)
VALUES = st.recursive(
    LEAVES, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NAMES, inner, max_size=5)
)


def of_openai(body: Any, status: int = 200) -> dict[str, Any]:
    response = {"status_code": status, "request_id": "req_1", "body": body}
    return {"id": "batch_req_1", "custom_id": "c", "response": response, "error": None}


def completion(text: str, **more: Any) -> dict[str, Any]:
    choice = {"index": 0, "message": {"role": "assistant", "content": text}} | more
    usage = {"prompt_tokens": 12, "completion_tokens": 3, "total_tokens": 15}
    return {"id": "chatcmpl-1", "object": "chat.completion", "model": "gpt-9-2026-01-01"} | {
        "choices": [{"finish_reason": "stop", "logprobs": None, **choice}],
        "usage": usage,
        "system_fingerprint": "fp_1",
    }


def of_anthropic(kind: str, **more: Any) -> dict[str, Any]:
    return {"custom_id": "c", "result": {"type": kind, **more}}


def message(*blocks: dict[str, str], stop: str = "end_turn") -> dict[str, Any]:
    cached = {"cache_creation_input_tokens": 4, "cache_read_input_tokens": 2}
    usage = {"input_tokens": 6, **cached, "output_tokens": 3}
    named = {"id": "msg_1", "type": "message", "role": "assistant", "model": "claude-9-2026"}
    return {**named, "content": [*blocks], "stop_reason": stop, "usage": usage}


def read(line: dict[str, Any]) -> Line:
    line_read = line_of(json.dumps(line))
    assert line_read is not None
    return line_read


def failure(line: dict[str, Any]) -> EndpointError:
    with pytest.raises(EndpointError) as raised:
        answer_of(read(line))
    return raised.value


@given(TEXT)
def test_what_either_writes_is_the_answer_with_its_tokens_and_who_gave_it(text: str) -> None:
    one = answer_of(read(of_openai(completion(text))))
    thought = {"type": "thinking", "thinking": "Well."}
    blocks = (thought, {"type": "text", "text": text[:3]}, {"type": "text", "text": text[3:]})
    other = answer_of(read(of_anthropic("succeeded", message=message(*blocks))))
    assert one.text == other.text == text
    named = (one.model, one.fingerprint, other.model)
    assert named == ("gpt-9-2026-01-01", "fp_1", "claude-9-2026")
    tokens = [(each.finished.tokens_in, each.finished.tokens_out) for each in (one, other)]
    assert tokens == [(12, 3)] * 2
    assert (one.finished.finish_reason, other.finished.finish_reason) == ("stop", "end_turn")
    assert other.reasoning == "Well."


@given(st.lists(TEXT, min_size=1, max_size=3), TEXT)
def test_what_is_written_is_what_was_asked(turns: list[str], system: str) -> None:
    asked = [Message("system", system), *(Message("user", turn) for turn in turns)]
    decoding = {"max_tokens": 5, "temperature": 0.0, "max_completion_tokens": None}
    one = json.loads(request_of(OPENAI, "k" * 64, asked, decoding))
    to = ("k" * 64, "POST", "/v1/chat/completions")
    assert (one["custom_id"], one["method"], one["url"]) == to
    assert one["body"] == {
        "model": "gpt-9",
        "messages": [{"role": turn.role, "content": turn.content} for turn in asked],
        "max_tokens": 5,
        "temperature": 0.0,
    }
    other = json.loads(request_of(ANTHROPIC, "k" * 64, asked, decoding))
    assert other["params"] == {
        "model": "claude-9",
        "messages": [{"role": "user", "content": turn} for turn in turns],
        "system": f"Be fair.\n\n{system}",
        "max_tokens": 5,
        "temperature": 0.0,
        "top_p": 0.9,
    }
    assert line_of(json.dumps(one)) is line_of(json.dumps(other)) is None


def test_images_are_sent_as_either_takes_them_and_a_limit_of_tokens_to_who_wants_one() -> None:
    images = ("data:image/png;base64,QUJD", "https://h/x.png")
    one, other = (
        json.loads(request_of(model, "k", [Message("user", "What?", images)], {"n": None}))
        for model in (OPENAI, ANTHROPIC)
    )
    text = {"type": "text", "text": "What?"}
    urls = [{"type": "image_url", "image_url": {"url": image}} for image in images]
    assert one["body"]["messages"] == [{"role": "user", "content": [text, *urls]}]
    inside = {"type": "base64", "media_type": "image/png", "data": "QUJD"}
    sources = [inside, {"type": "url", "url": images[1]}]
    blocks = [{"type": "image", "source": source} for source in sources]
    assert other["params"]["messages"] == [{"role": "user", "content": [text, *blocks]}]
    assert (one["body"].get("max_tokens"), other["params"]["max_tokens"]) == (None, 4096)
    few = request_of(ANTHROPIC, "k", [Message("user", "?")], {"max_completion_tokens": 7})
    assert json.loads(few)["params"]["max_tokens"] == 7


@pytest.mark.parametrize(
    ("endpoint", "expected"),
    [
        ("https://api.anthropic.com/v1", "anthropic"),
        ("https://api.anthropic.com", "anthropic"),
        ("https://API.anthropic.com:443?beta=1", "anthropic"),
        ("https://api.anthropic.com.example.org/v1", "openai"),
        ("https://h/v1?to=https://api.anthropic.com/", "openai"),
    ],
)
def test_the_format_of_a_batch_follows_the_host(endpoint: str, expected: str) -> None:
    assert format_of(replace(OPENAI, endpoint=endpoint)) == expected


def test_a_model_that_is_to_think_is_given_room_and_no_temperature() -> None:
    thinker = Model(
        id="c",
        name="C",
        endpoint="https://proxy.example/v1",
        model="claude-9",
        judging=Profile(batch="anthropic", thinking_tokens=2048),
    )
    sent = {"max_tokens": 2100, "temperature": 0.0, "response_format": {"type": "json_object"}}
    line = json.loads(request_of(thinker, "k", [Message("user", "?")], sent))
    assert line["params"]["thinking"] == {"type": "enabled", "budget_tokens": 2048}
    assert line["params"].keys() == {"model", "messages", "max_tokens", "thinking"}
    assert format_of(thinker) == "anthropic"


def test_each_way_to_fail_has_its_class_and_the_words_of_whoever_failed() -> None:
    expired = {"custom_id": "c", "response": None} | {
        "error": {"code": "batch_expired", "message": "The window expired."}
    }
    too_long = {"error": {"code": "context_length_exceeded", "message": "Too long."}}
    invalid = {"type": "error", "error": {"type": "invalid_request_error", "message": "No."}}
    overloaded = {"type": "error", "error": {"type": "overloaded_error", "message": "Later."}}
    expected = [
        (expired, FailureClass.TIMEOUT, "batch_expired: The window expired."),
        (of_openai(too_long, 400), FailureClass.CONTEXT_LENGTH, "Too long."),
        (of_openai({"error": {"message": "Slow."}}, 429), FailureClass.RATE_LIMIT, "Slow."),
        (of_openai({"choices": []}), FailureClass.MALFORMED, "no choices"),
        (of_openai("gone"), FailureClass.MALFORMED, "not a JSON object"),
        (of_anthropic("errored", error=invalid), FailureClass.BAD_REQUEST, "No."),
        (of_anthropic("errored", error=overloaded), FailureClass.OVERLOADED, "Later."),
        (of_anthropic("expired"), FailureClass.TIMEOUT, "expired"),
        (of_anthropic("canceled"), FailureClass.TIMEOUT, "canceled"),
        (of_anthropic("new"), FailureClass.MALFORMED, "'new'"),
        (of_anthropic("succeeded", message={}), FailureClass.MALFORMED, "no list of content"),
    ]
    for line, kind, words in expected:
        error = failure(line)
        assert (error.failure, words in error.detail) == (kind, True), error


def test_a_refusal_and_a_reply_that_was_cut_are_answers_that_were_paid_for() -> None:
    refused = answer_of(read(of_anthropic("succeeded", message=message(stop="refusal"))))
    cut = answer_of(read(of_anthropic("succeeded", message=message(stop="max_tokens"))))
    theirs = answer_of(read(of_openai(completion("", finish_reason="content_filter"))))
    assert [each.finished.finish_reason for each in (refused, cut, theirs)] == [
        "content_filter",
        "length",
        "content_filter",
    ]


@given(st.dictionaries(NAMES, VALUES, max_size=6))
def test_no_line_of_json_does_more_than_fail_in_a_known_way(fields: dict[str, Any]) -> None:
    with suppress(ValueError, EndpointError):
        line = line_of(json.dumps({"custom_id": "c", **fields}))
        if line is not None:
            assert isinstance(answer_of(line), Completion)
