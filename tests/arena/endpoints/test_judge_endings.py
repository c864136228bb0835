"""No verdict of a reply that did not end well: asked now, in a batch, or kept before."""

import json
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path

import pytest

from arena.domain.vote import FailureClass as Failure
from arena.endpoints.chat import answer_of, line_of
from arena.endpoints.client import Endpoints
from arena.errors import EndpointError
from arena.judging import EndpointJudge, as_it_ended, filtered, journal_of, reply_of
from arena.store.judgements import StoredJournal
from arena.store.store import Store
from judge.case import CallError, FailureClass, Reply
from judge.grammar import SIDES, Reading
from judge.methods import method
from judge.protocol import reading_of
from judge.runs import run
from tests.arena.endpoints.asking import serve
from tests.faulty_server import Behaviour, FaultyServer
from tests.judge.scripted import OPTIONS, case
from tests.provider_replies import REPLIES, VERDICT
from tests.sqlite import new_sqlite

PAIRWISE = method("pairwise")
NAMES = [name for name, reply in REPLIES.items() if not reply.only_streamed]
GOOD = {None, Failure.EMPTY}
"""With a verdict in it, a reply without a text is none any more."""


def is_good(name: str) -> bool:
    """Whether a reply ended well, and was not truncated."""
    return REPLIES[name].end in GOOD and not REPLIES[name].cut


def as_stored(name: str) -> Reply:
    """Give the reply as a version that knew no bad ends kept it."""
    return Reply(text=VERDICT, finish_reason=REPLIES[name].finish or "")


def read(reply: Reply) -> Reading | FailureClass:
    return reading_of(PAIRWISE, case(), reply)


@pytest.mark.sampled(3, 1)
@pytest.mark.parametrize("name", NAMES)
async def test_a_verdict_before_a_bad_end_of_a_reply_is_none(
    server: FaultyServer, endpoints: Endpoints, name: str
) -> None:
    judge = EndpointJudge(
        endpoints, serve(server, Behaviour(body=REPLIES[name].whole(verdict=True)))
    )
    try:
        reading = read(await judge(PAIRWISE.ask(case(), "0" * 16)))
    except CallError as error:
        reading = error.failure
    assert (reading == SIDES["A"]) == is_good(name)
    assert is_good(name) or isinstance(reading, FailureClass)


@pytest.mark.parametrize("end", ["error", "who knows"])
async def test_a_reply_that_ended_badly_tells_what_it_cost(
    server: FaultyServer, endpoints: Endpoints, end: str
) -> None:
    choice = {"message": {"content": "[[A]]"}, "finish_reason": end}
    usage = {"prompt_tokens": 1000, "completion_tokens": 20}
    body = {"choices": [choice], "usage": usage}
    judge = EndpointJudge(endpoints, serve(server, Behaviour(body=body)))
    with pytest.raises(CallError) as caught:
        await judge(PAIRWISE.ask(case(), "0" * 16))
    assert caught.value.paid is not None
    assert (caught.value.paid.tokens_in, caught.value.paid.tokens_out) == (1000, 20)


@pytest.mark.sampled(3)
@pytest.mark.parametrize("name", NAMES)
def test_a_verdict_before_a_bad_end_in_a_batch_is_none(name: str) -> None:
    body = REPLIES[name].whole(verdict=True)
    response = {"status_code": 200, "request_id": "r", "body": body}
    line = line_of(json.dumps({"custom_id": "1", "response": response, "error": None}))
    assert line is not None
    try:
        reading: Reading | FailureClass | None = read(reply_of(answer_of(line)))
    except EndpointError as error:
        refusal = filtered(error)
        reading = None if refusal is None else read(refusal)
    assert (reading == SIDES["A"]) == is_good(name)


ANTHROPIC = ("refusal", "pause_turn", "max_tokens", "model_context_window_exceeded", "who knows")
"""https://docs.anthropic.com/en/api/handling-stop-reasons"""


@pytest.mark.parametrize("reason", ["end_turn", "stop_sequence", *ANTHROPIC])
def test_a_verdict_before_a_bad_end_in_a_batch_of_anthropic_s_is_none(reason: str) -> None:
    message = {"id": "m", "content": [{"type": "text", "text": VERDICT}], "stop_reason": reason}
    result = {"type": "succeeded", "message": message}
    line = line_of(json.dumps({"custom_id": "1", "result": result}))
    assert line is not None
    try:
        reading: Reading | FailureClass | None = read(reply_of(answer_of(line)))
    except EndpointError:
        reading = None
    assert (reading == SIDES["A"]) == (reason not in ANTHROPIC)


@pytest.mark.sampled(3, 2)
@pytest.mark.parametrize("name", NAMES)
def test_a_verdict_before_a_bad_end_that_was_kept_before_is_none(name: str) -> None:
    if not REPLIES[name].choice and not REPLIES[name].fields:  # an error beside was never kept
        reading = read(as_it_ended(as_stored(name)))
        good = is_good(name) or REPLIES[name].finish in ("stop", None)
        assert (reading == SIDES["A"]) == good


@pytest.mark.parametrize(
    ("reason", "status"), [("error", "truncated"), ("SAFETY", "refusal"), ("abort", "truncated")]
)
async def test_a_run_asks_again_after_a_kept_reply_that_broke_off_and_not_after_a_refusal(
    server: FaultyServer, endpoints: Endpoints, tmp_path: Path, reason: str, status: str
) -> None:
    with closing(Store(new_sqlite(tmp_path))) as store:
        before = StoredJournal(store, "judge", None, lambda: datetime.now(UTC))

        async def old(request: object) -> Reply:
            return Reply(text=VERDICT, finish_reason=reason)

        first = await run([case()], PAIRWISE, old, before, OPTIONS)
        assert first.by_status == {"read": 2}, "as it was once read"
        judge = EndpointJudge(endpoints, serve(server, Behaviour(text="[[B]]")))
        now = await run([case()], PAIRWISE, judge, journal_of(store, "judge", None), OPTIONS)
        asks = status == "truncated"
        assert now.by_status == {"read" if asks else status: 2}
        assert now.n_asked == (2 if asks else 0)
