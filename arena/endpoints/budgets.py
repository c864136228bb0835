"""How much an endpoint may send: what goes beyond is not read, and the request is closed."""

from collections.abc import AsyncGenerator
from dataclasses import dataclass

import httpx

from arena.domain.answer import FailureClass
from arena.errors import EndpointError


@dataclass(frozen=True, slots=True, kw_only=True)
class Budgets:
    """The most that one response may hold.

    Attributes
    ----------
    response_bytes : int
        Of an answer, streamed or whole, and of an error.
    numbers_bytes : int
        Of embeddings, and of an answer with log-probabilities.
    line_bytes : int
        Of one line, or one event, of a stream.
    header_bytes : int
        Of all headers together.
    reasoning_chars : int
        Of the reasoning in a streamed answer.
    """

    response_bytes: int = 4_194_304
    numbers_bytes: int = 67_108_864
    line_bytes: int = 262_144
    header_bytes: int = 65_536
    reasoning_chars: int = 200_000


BYTES_A_VALUE = 20
"""A list or object in an answer takes more: the alternatives to a token, say."""

DEFAULT_BUDGETS = Budgets()


def check_headers(response: httpx.Response, most: int) -> None:
    """Raise `EndpointError` if the headers are over budget, or the body is compressed."""
    if sum(len(name) + len(value) for name, value in response.headers.raw) > most:
        raise over(f"headers of more than {most:,} bytes")
    encoding = response.headers.get("content-encoding", "identity")
    if encoding.strip().lower() not in ("", "identity"):
        raise EndpointError(
            FailureClass.MALFORMED,
            f"the response is compressed ({encoding}), though it was asked for as it is",
        )


async def read_pieces(response: httpx.Response, most: int) -> AsyncGenerator[bytes]:
    """Yield the body as it comes.

    Raises
    ------
    EndpointError
        After the first ``most`` bytes, if there are more.
    """
    left = most
    async for piece in response.aiter_bytes():
        yield piece[:left]
        if len(piece) > left:
            raise over(f"a response of more than {most:,} bytes")
        left -= len(piece)


async def read_whole(response: httpx.Response, most: int) -> str:
    """Read a body to its end, as UTF-8 whatever the header says; raises as `read_pieces` does."""
    body = bytearray()
    async for piece in read_pieces(response, most):
        body += piece
    return body.decode(errors="replace")


async def read_json(response: httpx.Response, most: int) -> str:
    """Read a body that is to be JSON; raises also if it has lists and objects beyond all need.

    To parse 4 MB of empty lists takes half a second, in which nothing else is done.
    """
    text = await read_whole(response, most)
    if text.count("[") + text.count("{") > (values := most // BYTES_A_VALUE):
        raise over(f"more than {values:,} lists and objects in one response")
    return text


def over(sent: str) -> EndpointError:
    """Say what an endpoint sent too much of."""
    return EndpointError(FailureClass.MALFORMED, f"the endpoint sent {sent}; the rest is not read")
