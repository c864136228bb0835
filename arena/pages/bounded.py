"""Responses of a provider of OpenID Connect, as large as they may be."""

from collections.abc import AsyncIterator

from httpx2 import AsyncByteStream, DecodingError, Response

MOST_BYTES = 1_000_000
"""Of one response of a provider's."""


class _Bounded(AsyncByteStream):
    """The body of a response, up to `MOST_BYTES`."""

    def __init__(self, stream: AsyncByteStream) -> None:
        self._stream = stream

    async def __aiter__(self) -> AsyncIterator[bytes]:
        taken = 0
        async for piece in self._stream:
            taken += len(piece)
            if taken > MOST_BYTES:
                msg = f"it sends more than {MOST_BYTES:,} bytes."
                raise DecodingError(msg)
            yield piece

    async def aclose(self) -> None:
        await self._stream.aclose()


async def bound(response: Response) -> None:
    """Bound a response before its body is read: what is packed could become any size.

    Raises
    ------
    DecodingError
        If it is packed; later, if it is too large.
    """
    if (packed := response.headers.get("content-encoding", "identity")) != "identity":
        msg = f"it sends what was not asked for, a response packed by {packed[:40]!r}."
        raise DecodingError(msg)
    assert isinstance(response.stream, AsyncByteStream)
    response.stream = _Bounded(response.stream)
