"""What the page asks of Gradio: anything else would come back as a fault of ours."""

import json
import math
from collections.abc import Callable, Container, Mapping
from contextlib import AbstractContextManager
from types import NoneType

from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from arena.domain.vote import Voter

PREFIX = "/gradio_api/"
JOIN = f"{PREFIX}queue/join"
EVENTS = f"{PREFIX}queue/data"
CALLS = {
    "GET": {EVENTS, f"{PREFIX}app_id"},
    "POST": {JOIN, f"{PREFIX}cancel", f"{PREFIX}reset"},
}
"""All that the page ever asks; Gradio would take files, and send signs of life without end.

It asks for the id of the app once its stream has broken, and loads the page again when it comes.
"""
ACCOUNTS = {"/login", "/logout"}
"""Gradio's, who sets cookies there; the arena knows its visitors by one of its own."""

KINDS: Mapping[str, tuple[type, ...]] = {
    "data": (list,),
    "fn_index": (int,),
    "session_hash": (str,),
    "event_id": (str, NoneType),
    "oauth_token": (str, NoneType),
    "trigger_id": (int, NoneType),
}
"""What Gradio expects in a body that joins its queue."""

UNKNOWN_SESSION = {
    "msg": "unexpected_error",
    "message": "The arena has no such session. Load the page again.",
    "session_not_found": True,
    "success": False,
}
"""What Gradio's script is told of a session that has not joined, as one from before a restart.

Gradio would say so too, and then fail: a traceback in the log for each page that was open.
"""


NOBODY = Voter("nobody")
"""All those without a cookie, who are answered that they need one."""


class PageCalls:
    """Refuses what the page would not ask, before Gradio fails at it.

    Parameters
    ----------
    inputs : mapping of int to int
        How many values each of the page's events takes, by its ``fn_index``.
    sessions : container of str
        The sessions that have joined the queue and have events to come.
    admit : callable
        Called with who joins; raises to refuse it.
    hold : callable
        Holds a place while a visitor reads events; raises to refuse it.
    """

    def __init__(
        self,
        app: ASGIApp,
        inputs: Mapping[int, int],
        sessions: Container[str],
        admit: Callable[[Voter], None],
        hold: Callable[[Voter], AbstractContextManager[object]],
    ) -> None:
        self.app = app
        self.inputs = inputs
        self.sessions = sessions
        self.admit = admit
        self.hold = hold

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on; what it raises to refuse it, the arena answers."""
        path = scope["path"].rstrip("/") if scope["type"] == "http" else ""
        if path in ACCOUNTS:
            raise HTTPException(404, "Nobody logs in here: the arena knows you by its cookie.")
        if path.startswith(PREFIX) and path not in CALLS.get(scope["method"], ()):
            raise HTTPException(404, "The page does not ask this. Programs: /api/v1/battles.")
        if path == JOIN:
            await self._join(scope, receive, send)
        elif path == EVENTS:
            await self._read(scope, receive, send)
        else:
            await self.app(scope, receive, send)

    async def _join(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            body = await Request(scope, receive).body()
        except ClientDisconnect:
            return
        self._check(body)
        self.admit(_voter_of(scope))
        await self.app(scope, _again(body, receive), send)

    async def _read(self, scope: Scope, receive: Receive, send: Send) -> None:
        if Request(scope).query_params.get("session_hash") not in self.sessions:
            event = f"data: {json.dumps(UNKNOWN_SESSION)}\n\n"
            await Response(event, media_type="text/event-stream")(scope, receive, send)
            return
        with self.hold(_voter_of(scope)):
            await self.app(scope, receive, send)

    def _check(self, body: bytes) -> None:
        try:
            call = json.loads(body, parse_float=_finite, parse_constant=_finite)
        except (ValueError, RecursionError) as error:
            raise HTTPException(422, "The body is not JSON that can be read.") from error
        call = call if isinstance(call, dict) else {}
        wrong = [name for name, kinds in KINDS.items() if type(call.get(name)) not in kinds]
        if not wrong and call["fn_index"] not in self.inputs:
            wrong = ["fn_index"]
        if not wrong and len(call["data"]) < self.inputs[call["fn_index"]]:
            wrong = ["data"]
        if wrong:
            sent = repr(call.get(wrong[0]))[:60]
            raise HTTPException(422, f"The page never sends {wrong[0]} {sent}: load it again.")


def _voter_of(scope: Scope) -> Voter:
    voter: Voter | None = scope["state"]["voter"]
    return voter or NOBODY


def _finite(text: str) -> float:
    if not math.isfinite(value := float(text)):
        raise ValueError(text)
    return value


def _again(body: bytes, receive: Receive) -> Receive:
    """Give a body that was read once more, and then what comes after it."""
    first: list[Message] = [{"type": "http.request", "body": body, "more_body": False}]

    async def received() -> Message:
        return first.pop() if first else await receive()

    return received
