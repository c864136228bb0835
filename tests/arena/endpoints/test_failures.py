"""Error objects and waiting times, as servers really send them."""

from datetime import UTC, datetime

import pytest

from arena.domain.answer import FailureClass
from arena.endpoints.failures import from_error, retry_after_s

NOW = datetime(2026, 1, 1, tzinfo=UTC)


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
    error = from_error("context window", status=502)
    assert error.failure is FailureClass.OVERLOADED


def test_a_date_to_wait_for_is_counted_from_the_date_of_the_response() -> None:
    headers = {
        "retry-after": "Thu, 01 Jan 2026 09:00:30 GMT",
        "date": "Thu, 01 Jan 2026 09:00:00 GMT",
    }
    assert retry_after_s(headers, NOW) == 30.0


def test_a_date_in_the_past_is_no_wait() -> None:
    assert retry_after_s({"retry-after": "Wed, 31 Dec 2025 00:00:00 GMT"}, NOW) == 0.0
