"""Keys by content, and replies that survive their way to disk and back."""

import hashlib
import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from judge.calls import Key, key_of
from judge.case import Message, Order, Parameters, Reply, Request, TokenLogprob
from rating.errors import DataError

ASKED = Request(
    (Message("system", "Judge."), Message("user", "A or B?")), Parameters(max_tokens=1)
)


def key(
    request: Request = ASKED, judge: str = "judge-1", order: Order = Order.AB, draw: int = 0
) -> Key:
    return key_of(request, judge, order, draw)


def test_the_key_of_a_call_is_the_same_in_every_process_and_version() -> None:
    """The content written out by hand, and its ``sha256sum``."""
    content = (
        '{"draw":0,"judge":"judge-1","messages":[["system","Judge."],["user","A or B?"]],'
        '"order":"ab","parameters":{"max_tokens":1},"schema":1}'
    )
    assert key() == hashlib.sha256(content.encode()).hexdigest()
    assert key() == "162dd7189dab51ef77995dfbf839cfcf999a1d0d243f94b840bee0a287325ff1"


ROLES = st.sampled_from(["system", "user", "assistant"])
REQUESTS = st.builds(
    Request,
    st.lists(st.builds(Message, ROLES, st.text()), max_size=3).map(tuple),
    st.builds(
        Parameters,
        max_tokens=st.integers(min_value=1),
        temperature=st.none() | st.integers(0, 2) | st.floats(0, 2),
        top_logprobs=st.none() | st.integers(0, 20),
        json_object=st.booleans(),
    ),
)


@settings(max_examples=50)
@given(REQUESTS, st.text(), st.sampled_from(Order), st.integers(min_value=0))
def test_a_key_is_the_hash_of_canonical_json(
    request: Request, judge: str, order: Order, draw: int
) -> None:
    """As Python's own encoder writes it, whatever the texts hold."""
    content = {
        "messages": [[turn.role, turn.content] for turn in request.messages],
        "judge": judge,
        "parameters": request.parameters.to_dict(),
        "order": order.value,
        "draw": draw,
        "schema": 1,
    }
    text = json.dumps(content, sort_keys=True, separators=(",", ":"))
    assert key(request, judge, order, draw) == hashlib.sha256(text.encode()).hexdigest()


def test_every_part_of_a_call_changes_its_key() -> None:
    messages, sent = ASKED.messages, ASKED.parameters
    others = [
        key(Request((*messages[:1], Message("user", "A or B??")), sent)),
        key(Request((Message("user", "Judge."), *messages[1:]), sent)),
        key(Request(messages, Parameters(max_tokens=2))),
        key(Request(messages, Parameters(max_tokens=1, temperature=0.0))),
        key(Request(messages, Parameters(max_tokens=1, top_logprobs=5))),
        key(Request(messages, Parameters(max_tokens=1, json_object=True))),
        key(judge="judge-2"), key(order=Order.BA), key(draw=1),
    ]  # fmt: skip
    assert len({key(), *others}) == 1 + len(others)


def test_a_temperature_of_zero_is_not_a_temperature_that_is_left_to_the_endpoint() -> None:
    assert Parameters(max_tokens=1, temperature=0.0).to_dict() == {
        "max_tokens": 1,
        "temperature": 0.0,
    }


def test_a_prompt_with_a_lone_surrogate_has_a_key() -> None:
    assert len(key(Request((Message("user", "\ud800"),), ASKED.parameters))) == 64


NUMBERS = st.none() | st.integers(min_value=0, max_value=10**6)
LOGS = st.floats(max_value=0, allow_nan=False, allow_infinity=False)
WORDS = st.text(max_size=5)
TOKENS = st.builds(TokenLogprob, WORDS, LOGS, st.dictionaries(WORDS, LOGS, max_size=2))
REPLIES = st.builds(
    Reply,
    text=WORDS,
    logprobs=st.none() | st.lists(TOKENS, max_size=2).map(tuple),
    finish_reason=st.sampled_from(["", "stop", "length"]),
    tokens_in=NUMBERS,
    tokens_out=NUMBERS,
    latency_s=st.none() | st.floats(0, 100),
    model=WORDS,
    fingerprint=WORDS,
)


@settings(max_examples=30)
@given(REPLIES)
def test_a_reply_comes_back_from_json_as_it_was(reply: Reply) -> None:
    assert Reply.from_dict(json.loads(json.dumps(reply.to_dict()))) == reply


def test_a_reply_that_was_kept_before_models_were_named_is_read() -> None:
    fields = Reply(text="[[A]]").to_dict()
    del fields["model"], fields["fingerprint"]
    assert Reply.from_dict(fields) == Reply(text="[[A]]")


@pytest.mark.parametrize("fields", [{}, {"text": "x"}, {"logprobs": [["a"]], "text": "x"}])
def test_what_is_no_recorded_reply_is_refused(fields: dict[str, object]) -> None:
    with pytest.raises(DataError, match="no recorded reply"):
        Reply.from_dict(fields)
