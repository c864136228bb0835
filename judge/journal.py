"""Port to the memory of a run: what was asked and answered, by content, for ever."""

import hashlib
import json
from collections.abc import Collection, Mapping
from contextlib import AbstractAsyncContextManager
from functools import cache
from json.encoder import encode_basestring_ascii as _quoted
from typing import Any, NewType, Protocol

from judge.case import Order
from judge.completion import Parameters, Reply, Request

Key = NewType("Key", str)
"""SHA-256 of a call's content, in hexadecimal."""

SCHEMA = 1
"""Version of what a key is made of; another version never finds the keys of this one."""


def key_of(request: Request, judge: str, order: Order, draw: int = 0) -> Key:
    """Name a call by its content.

    SHA-256 of the canonical JSON (sorted keys, no spaces, ASCII) of the messages, the judge, the
    parameters, the order, the draw and the schema version; written out by hand, for whoever takes
    up a run makes the keys of all of it. The name of a method, a file or a run is no part of it:
    what is sent twice is paid once, and a changed prompt is another call.

    Parameters
    ----------
    judge : str
        What answers, down to its revision: another revision is another judge.
    order : Order
        Which response stands first.
    draw : int
        Counts repetitions of the same question: further samples, and further attempts after a
        reply without a verdict.
    """
    messages = ",".join(
        [f"[{_quoted(turn.role)},{_quoted(turn.content)}]" for turn in request.messages]
    )
    content = (
        f'{{"draw":{draw},"judge":{_quoted(judge)},"messages":[{messages}],"order":"{order}",'
        f'"parameters":{_decoding(request.parameters)},"schema":{SCHEMA}}}'
    )
    return Key(hashlib.sha256(content.encode()).hexdigest())


@cache
def _decoding(parameters: Parameters) -> str:
    return json.dumps(parameters.to_dict(), sort_keys=True, separators=(",", ":"))


class Journal(Protocol):
    """Keep raw replies by key, what was read in them, and who is asking now.

    Replies are only ever added. A call that brought no reply leaves nothing behind, so a rerun
    asks again; a reply that could not be read is a reply, and a rerun reads it again for free.
    """

    def alive(self) -> AbstractAsyncContextManager[None]:
        """Hold for a run: take over what dead processes were asking, and show that we live."""
        ...

    async def recall(self, keys: Collection[Key]) -> Mapping[Key, Reply]:
        """Return the kept replies among these keys."""
        ...

    async def claim(self, keys: Collection[Key]) -> frozenset[Key]:
        """Take the keys that have no reply and no living holder; return those that are ours.

        One step for the database: two callers never get the same key. A claim ends with `keep`,
        with `release`, or with the death of its holder.
        """
        ...

    async def keep(self, key: Key, request: Request, reply: Reply) -> None:
        """Store a reply, and end the claim on it; durable on return.

        The first reply to a key stays: keeping another one is no error and changes nothing.
        """
        ...

    async def release(self, keys: Collection[Key]) -> None:
        """Give up claims on keys that got no reply."""
        ...

    async def note(self, parser: str, readings: Mapping[Key, Mapping[str, Any]]) -> None:
        """Store what this version of a parser read in replies, in place of what it read before."""
        ...
