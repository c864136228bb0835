"""What every request passes, over real HTTP."""

from collections.abc import Iterator

import pytest

from tests.serving import Served, client_of


def pieces(size: int) -> Iterator[bytes]:
    """A body that does not say how long it is."""
    yield b'{"prompt": "'
    for _ in range(size // 1000):
        yield b"x" * 1000
    yield b'"}'


@pytest.mark.parametrize("path", ["/api/v1/battles", "/api/v1/battles/none/vote"])
def test_a_body_that_is_too_large_is_refused_whether_it_says_so_or_not(
    quick: Served, path: str
) -> None:
    body = b"".join(pieces(1_100_000))
    with client_of(quick.url) as client:
        for content in (body, pieces(1_100_000)):
            answer = client.post(
                path, content=content, headers={"content-type": "application/json"}
            )
            assert answer.status_code == 413
            assert answer.headers["content-type"] == "application/problem+json"
            assert "1,048,576 bytes" in answer.json()["detail"]
            assert "content-security-policy" in answer.headers


def test_a_body_within_the_limit_passes_in_pieces(quick: Served) -> None:
    with client_of(quick.url) as client:
        answer = client.post(
            "/api/v1/battles",
            content=pieces(5_000),
            headers={"content-type": "application/json"},
        )
    assert answer.status_code == 201
