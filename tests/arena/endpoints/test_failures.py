"""Error objects and waiting times, as servers really send them."""

import json
from dataclasses import replace
from datetime import UTC, datetime

import httpx2
import pytest
from hypothesis import given
from hypothesis import strategies as st

from arena.domain.vote import FailureClass
from arena.endpoints.failures import from_error, from_response, retry_after_s
from tests.provider_errors import BLAMED, PASSING, REFUSALS, SHAPES, SPENT, TOO_LONG, ProviderError

NOW = datetime(2026, 1, 1, tzinfo=UTC)
SPENT_ERRORS = {
    name: replace(
        error, end=FailureClass.NO_CREDIT, says=error.says or "the account has no credit"
    )
    for name, error in SPENT.items()
}
KINDS = {
    "refusal": REFUSALS,
    "blamed": BLAMED,
    "spent": SPENT_ERRORS,
    "passing": PASSING,
    "shape": SHAPES,
    "too-long": TOO_LONG,
}
ERRORS = {f"{kind}-{name}": one for kind, each in KINDS.items() for name, one in each.items()}


@pytest.mark.parametrize("error", ERRORS.values(), ids=ERRORS)
def test_the_error_of_a_provider_is_read_as_it_is_described(error: ProviderError) -> None:
    read = from_response(httpx2.Response(error.status), error.text, NOW)
    assert read.failure is error.end, read.detail
    assert (read.refuses[:1], read.retry_after_s) == (
        (error.refuses,) if error.refuses else (),
        error.wait_s,
    )
    assert error.says in read.detail
    assert "<html" not in read.detail
    assert '{"' not in read.detail, "neither a page nor JSON is quoted"


def test_a_time_to_wait_in_a_header_goes_before_that_of_the_body_and_is_a_limit_that_passes() -> (
    None
):
    response = httpx2.Response(429, headers={"retry-after": "2"})
    assert from_response(response, PASSING["gemini"].text, NOW).retry_after_s == 2.0
    spoken = from_response(response, SPENT["openai-inactive"].text, NOW)
    assert spoken.failure is FailureClass.RATE_LIMIT
    coded = from_response(response, SPENT["openai"].text, NOW)
    assert coded.failure is FailureClass.NO_CREDIT


FIELDS = (
    "error", "errors", "message", "detail", "fault", "code", "type", "loc", "param", "details",
    "metadata", "raw", "base_resp", "params", "retryDelay", "@type",
)  # fmt: skip
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inside: (
        st.lists(inside, max_size=3)
        | st.dictionaries(st.sampled_from(FIELDS) | st.text(), inside, max_size=4)
    ),
)


@given(body=JSON, status=st.sampled_from([200, 400, 402, 422, 429, 500]))
def test_whatever_a_server_sends_is_a_typed_failure(body: object, status: int) -> None:
    assert isinstance(from_error(body, status=status).failure, FailureClass)
    assert isinstance(from_error([{"error": json.dumps(body)}], status=status).detail, str)


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ({"error": {"message": "gone"}}, "gone"),
        ({"error": "gone"}, "gone"),
        ({"object": "error", "message": "gone", "code": 500}, "gone"),
        ({"detail": "gone"}, "gone"),
        ("<h1>gone</h1>", "<h1>gone</h1>"),
        ({"error": {}}, "with no message"),
        ("", "with no message"),
        (None, "with no message"),
    ],
)
def test_the_message_is_found_wherever_it_stands(body: object, message: str) -> None:
    error = from_error(body, status=500)
    assert (error.failure, error.detail) == (FailureClass.OVERLOADED, f"status 500, {message}")


def test_a_page_of_a_broken_server_that_mentions_the_context_window_is_still_its_fault() -> None:
    assert from_error("context window", status=502).failure is FailureClass.OVERLOADED


def test_a_date_to_wait_for_is_counted_from_the_date_of_the_response() -> None:
    headers = {
        "retry-after": "Thu, 01 Jan 2026 09:00:30 GMT",
        "date": "Thu, 01 Jan 2026 09:00:00 GMT",
    }
    assert retry_after_s(headers, NOW) == 30.0


def test_a_date_in_the_past_is_no_wait_and_the_longest_is_an_hour() -> None:
    assert retry_after_s({"retry-after": "Wed, 31 Dec 2025 00:00:00 GMT"}, NOW) == 0.0
    waits = [retry_after_s({"retry-after": wait}, NOW) for wait in ("3599", "7200", "inf")]
    assert waits == [3599.0, 3600.0, None]
