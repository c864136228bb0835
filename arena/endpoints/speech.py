"""The server's half of the chat format: a known answer, spoken at a pace without a socket."""

import asyncio
import json
from collections.abc import AsyncGenerator, Iterator
from dataclasses import dataclass
from typing import NamedTuple

import httpx

from judge.case import Message


@dataclass(frozen=True, slots=True)
class Question:
    """What a request asks, as read from its body."""

    model: str
    messages: tuple[Message, ...]
    stream: bool

    @property
    def prompt(self) -> str:
        """What the visitor said last; empty when there is nothing of theirs."""
        questions = [m.content for m in self.messages if m.role == "user"]
        return questions[-1] if questions else ""


class Piece(NamedTuple):
    """A piece of an answer, due ``at_s`` seconds after the question."""

    at_s: float
    text: str


@dataclass(frozen=True, slots=True)
class Speech:
    """A whole answer and its pace.

    Attributes
    ----------
    pieces : tuple of Piece
        In order; their texts together are the answer, byte for byte.
    """

    pieces: tuple[Piece, ...]

    @property
    def text(self) -> str:
        """The answer in one piece."""
        return "".join(piece.text for piece in self.pieces)


class SpeechStream(httpx.AsyncByteStream):
    """Body of a response that is being spoken; closing it ends the speech."""

    def __init__(self, events: AsyncGenerator[bytes]) -> None:
        self._events = events

    def __aiter__(self) -> AsyncGenerator[bytes]:
        return self._events

    async def aclose(self) -> None:
        """End the speech where it is."""
        await self._events.aclose()


async def read_question(request: httpx.Request) -> Question:
    """Read what a request of our own client asks."""
    body = json.loads(await request.aread())
    messages = tuple(Message(m["role"], m["content"]) for m in body["messages"])
    return Question(body["model"], messages, body["stream"])


def reply(question: Question, speech: Speech) -> httpx.Response:
    """Response that gives ``speech``: at its pace if streamed, at once if not."""
    if question.stream:
        headers = {"Content-Type": "text/event-stream"}
        return httpx.Response(200, headers=headers, stream=SpeechStream(_spoken(question, speech)))
    message = {"role": "assistant", "content": speech.text}
    choice = {"index": 0, "message": message, "finish_reason": "stop"}
    return httpx.Response(200, json={"choices": [choice], "usage": _usage(question, speech)})


def refusal(status: int, code: str, message: str) -> httpx.Response:
    """Response that says why there is no answer."""
    return httpx.Response(status, json={"error": {"code": code, "message": message}})


async def _spoken(question: Question, speech: Speech) -> AsyncGenerator[bytes]:
    loop = asyncio.get_running_loop()
    asked = loop.time()
    for piece in speech.pieces:
        await asyncio.sleep(asked + piece.at_s - loop.time())
        yield _event(choices=[{"index": 0, "delta": {"content": piece.text}}])
    yield _event(choices=[{"index": 0, "delta": {}, "finish_reason": "stop"}])
    yield _event(choices=[], usage=_usage(question, speech))
    yield b"data: [DONE]\n\n"


def _event(**fields: object) -> bytes:
    return f"data: {json.dumps(fields)}\n\n".encode()


def _usage(question: Question, speech: Speech) -> dict[str, int]:
    """Words, for want of a tokenizer."""
    return {
        "prompt_tokens": sum(len(m.content.split()) for m in question.messages),
        "completion_tokens": len(speech.text.split()),
    }


def paced(text: str, characters_per_s: float, piece_s: float) -> Iterator[Piece]:
    """Cut a text into pieces that follow each other by about ``piece_s`` seconds.

    Examples
    --------
    >>> [(piece.at_s, piece.text) for piece in paced("abcde", 20.0, 0.1)]
    [(0.1, 'ab'), (0.2, 'cd'), (0.25, 'e')]
    """
    size = max(1, round(characters_per_s * piece_s))
    for start in range(0, len(text), size):
        piece = text[start : start + size]
        yield Piece((start + len(piece)) / characters_per_s, piece)
