"""How a reply ended, for every provider's words: streamed, whole, and as a line of a batch."""

import json
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from arena.domain.vote import (
    BLOCKED,
    BROKEN,
    CALLS,
    TRUNCATED,
    WHOLE,
    FailureClass,
    Finished,
    ReasoningDelta,
    TextDelta,
)
from arena.endpoints.chat import answer_of, finish_reason, line_of
from arena.endpoints.client import Endpoints
from arena.errors import EndpointError
from judge.case import CUT, FILTERED
from tests.arena.endpoints.asking import PROMPT, ask, failure, serve, visible, whole_failure
from tests.faulty_server import Behaviour, FaultyServer
from tests.judge.test_thoughts import MARKED
from tests.provider_replies import REPLIES, VERDICT

NAMES = [*REPLIES]


@pytest.mark.parametrize("name", NAMES)
async def test_a_stream_ends_as_its_provider_says(
    server: FaultyServer, endpoints: Endpoints, name: str
) -> None:
    reply = REPLIES[name]
    for write_bytes in (None, 3):
        model = serve(server, Behaviour(stream=reply.stream(), write_bytes=write_bytes))
        if reply.end:
            assert (await failure(endpoints, model)).failure is reply.end
            continue
        chunks = await ask(endpoints, model)
        assert "".join(c.text for c in chunks if isinstance(c, TextDelta)) == reply.text
        assert "".join(c.text for c in chunks if isinstance(c, ReasoningDelta)) == reply.reasoning
        assert isinstance(chunks[-1], Finished)
        assert (chunks[-1].finish_reason == CUT) is reply.cut


WHOLE_REPLIES = [name for name in NAMES if not REPLIES[name].only_streamed]


@pytest.mark.sampled(3)  # the lines of a batch are all of them
@pytest.mark.parametrize("name", WHOLE_REPLIES)
async def test_a_whole_reply_ends_as_its_provider_says(
    server: FaultyServer, endpoints: Endpoints, name: str
) -> None:
    reply = REPLIES[name]
    model = serve(server, Behaviour(body=reply.whole()))
    if reply.end:
        assert (await whole_failure(endpoints, model)).failure is reply.end
    else:
        completion = await endpoints.complete(model, PROMPT)
        assert (completion.text, completion.reasoning) == (reply.text, reply.reasoning)
        assert (completion.finished.finish_reason == CUT) is reply.cut


@pytest.mark.parametrize("name", WHOLE_REPLIES)
def test_a_line_of_a_batch_ends_as_its_provider_says(name: str) -> None:
    """A reply that was filtered or holds nothing was paid for, and so is one."""
    reply = REPLIES[name]
    response = {"status_code": 200, "request_id": "r", "body": reply.whole(verdict=True)}
    line = line_of(json.dumps({"custom_id": "1", "response": response, "error": None}))
    assert line is not None
    if reply.end in (None, FailureClass.EMPTY):
        assert answer_of(line).text.endswith(VERDICT)
    elif reply.end is FailureClass.CONTENT_FILTER:
        assert answer_of(line).finished.finish_reason == FILTERED
    else:
        with pytest.raises(EndpointError) as raised:
            answer_of(line)
        assert raised.value.failure is reply.end


GOOD = WHOLE | TRUNCATED | CALLS


@given(st.text(min_size=1).filter(str.strip))
def test_any_other_finish_reason_is_a_failure_that_quotes_it(word: str) -> None:
    plain = re.sub("[^a-z0-9]", "", word.lower())
    known, blocked = ([one.replace("_", "") for one in many] for many in (GOOD | BROKEN, BLOCKED))
    if plain in known or plain.startswith(tuple(blocked)):
        return
    with pytest.raises(EndpointError) as raised:
        finish_reason(word, has_text=True)
    assert raised.value.failure is FailureClass.MALFORMED
    assert repr(word) in raised.value.detail


@pytest.mark.parametrize("spelling", ["length", "LENGTH", "max_tokens", "maxTokens", "Max-Tokens"])
def test_a_truncated_answer_has_one_finish_reason(spelling: str) -> None:
    assert finish_reason(spelling, has_text=True) == CUT


@pytest.mark.parametrize(
    "kind", ["application/octet-stream", "text/plain", "TEXT/EVENT-STREAM", ""]
)
async def test_an_event_stream_is_known_by_its_first_bytes(
    server: FaultyServer, endpoints: Endpoints, kind: str
) -> None:
    stream = REPLIES["openai-stop"].stream()
    for write_bytes in (None, 1):
        behaviour = Behaviour(
            stream=stream, headers={"content-type": kind}, write_bytes=write_bytes
        )
        chunks = await ask(endpoints, serve(server, behaviour))
        text = "".join(c.text for c in chunks if isinstance(c, TextDelta))
        assert text == REPLIES["openai-stop"].text


@pytest.mark.parametrize("as_lines", [True, False], ids=["lines", "one reply"])
async def test_json_in_place_of_a_stream_is_read(
    server: FaultyServer, endpoints: Endpoints, *, as_lines: bool
) -> None:
    reply = REPLIES["openai-stop"]
    body = json.dumps(reply.whole(), indent=2)
    if as_lines:
        events = reply.stream().replace("data: [DONE]", "").split("data: ")
        body = "\n".join(one.strip() for one in events if one.strip())
    behaviour = Behaviour(stream=body, headers={"content-type": "application/json"})
    chunks = await ask(endpoints, serve(server, behaviour))
    assert "".join(c.text for c in chunks if isinstance(c, TextDelta)) == reply.text


async def test_a_page_in_place_of_a_stream_is_quoted(
    server: FaultyServer, endpoints: Endpoints
) -> None:
    page = "<!DOCTYPE html><html><body>LM Studio</body></html>" + " " * 300
    model = serve(server, Behaviour(stream=page, headers={"content-type": "text/html"}))
    error = await failure(endpoints, model)
    assert error.failure is FailureClass.MALFORMED
    assert "LM Studio" in error.detail


DIALECTS = {
    "done in quotes": ("data: [DONE]\n\n", 'data: "[DONE]"\n\n'),
    "done with spaces": ("data: [DONE]\n\n", "data: [DONE]  \n\n"),
    "numbers as ids": ('"c1"', "17"),
    "returns": ("\n", "\r\n"),
    "a mark of the byte order": ("data: ", "\ufeffdata: "),
    "no usage as a list": ('"choices"', '"usage": [], "choices"'),
    "no usage as a text": ('"choices"', '"usage": "", "choices"'),
    "a ping": ("data: ", "event: ping\ndata: {}\n\ndata: "),
}


@pytest.mark.parametrize("dialect", DIALECTS)
async def test_dialects_of_a_stream_are_read(
    server: FaultyServer, endpoints: Endpoints, dialect: str
) -> None:
    old, new = DIALECTS[dialect]
    count = 1 if dialect in ("a ping", "a mark of the byte order") else -1
    stream = REPLIES["openai-stop"].stream().replace(old, new, count)
    chunks = await ask(endpoints, serve(server, Behaviour(stream=stream)))
    text = "".join(c.text for c in chunks if isinstance(c, TextDelta))
    assert text == REPLIES["openai-stop"].text


async def test_a_model_that_closes_what_it_did_not_open_is_held_from_then_on(
    server: FaultyServer, endpoints: Endpoints, caplog: pytest.LogCaptureFixture
) -> None:
    model = serve(server, Behaviour(text="I am R1.</think>\n\nFour.", chunk_size=5))
    chunks = await ask(endpoints, model)
    assert [c.retracts for c in chunks if isinstance(c, ReasoningDelta)] == [True, False]
    assert "reasoning parser" in caplog.text
    closes = ("I am R1.</think>\n\nFour.", "I am R1.\n\n", 3)
    for text, reasoning, pieces in (closes, closes, ("Four.", "", 1), ("Four.", "", 3)):
        server.behaviours[model.model] = Behaviour(text=text, chunk_size=2)
        chunks = await ask(endpoints, model)
        thoughts = [c for c in chunks if isinstance(c, ReasoningDelta)]
        assert ("".join(c.text for c in thoughts), visible(chunks)) == (reasoning, "Four.")
        assert not any(c.retracts for c in thoughts)
        assert sum(isinstance(c, TextDelta) for c in chunks) == pieces


@pytest.mark.parametrize(("text", "reasoning"), [(text, own) for _, text, own in MARKED])
async def test_reasoning_in_a_whole_reply_is_no_part_of_it(
    server: FaultyServer, endpoints: Endpoints, text: str, reasoning: str
) -> None:
    completion = await endpoints.complete(serve(server, Behaviour(text=text)), PROMPT)
    body = {"id": "c", "choices": [{"message": {"content": text}, "finish_reason": "stop"}]}
    fields = {"custom_id": "1", "response": {"status_code": 200, "body": body}}
    message = {"content": [{"type": "text", "text": text}], "stop_reason": "end_turn"}
    result = {"custom_id": "1", "result": {"type": "succeeded", "message": message}}
    lines = [line_of(json.dumps(one)) for one in (fields, result)]
    for one in (completion, *(answer_of(line) for line in lines if line)):
        assert (one.text, one.reasoning) == ("Four.", reasoning)
