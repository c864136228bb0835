"""What the page asks of Gradio: anything else would come back as a fault of ours."""

import json
import math
from collections.abc import Mapping
from types import NoneType

from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.types import ASGIApp, Message, Receive, Scope, Send

PREFIX = "/gradio_api/"
JOIN = f"{PREFIX}queue/join"
CALLS = {JOIN, f"{PREFIX}cancel", f"{PREFIX}reset"}
"""All that the page ever posts; Gradio would take more, such as files."""

KINDS: Mapping[str, tuple[type, ...]] = {
    "data": (list,),
    "fn_index": (int,),
    "session_hash": (str,),
    "event_id": (str, NoneType),
    "oauth_token": (str, NoneType),
    "trigger_id": (int, NoneType),
}
"""What Gradio expects in a body that joins its queue."""


class PageCalls:
    """Refuses posts that the page would not make, before Gradio fails at them.

    Parameters
    ----------
    inputs : mapping of int to int
        How many values each of the page's events takes, by its ``fn_index``.
    """

    def __init__(self, app: ASGIApp, inputs: Mapping[int, int]) -> None:
        self.app = app
        self.inputs = inputs

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on; raises `HTTPException`, which the arena answers, to refuse it."""
        path = scope["path"].rstrip("/")
        if scope["type"] == "http" and scope["method"] == "POST" and path.startswith(PREFIX):
            if path not in CALLS:
                raise HTTPException(404, "The page does not ask this. Programs: /api/v1/battles.")
            if path == JOIN:
                try:
                    body = await Request(scope, receive).body()
                except ClientDisconnect:
                    return
                self._check(body)
                receive = _again(body, receive)
        await self.app(scope, receive, send)

    def _check(self, body: bytes) -> None:
        try:
            said = json.loads(body, parse_float=_finite, parse_constant=_finite)
        except (ValueError, RecursionError) as error:
            raise HTTPException(422, "The body is not JSON that can be read.") from error
        said = said if isinstance(said, dict) else {}
        wrong = [name for name, kinds in KINDS.items() if type(said.get(name)) not in kinds]
        if not wrong and said["fn_index"] not in self.inputs:
            wrong = ["fn_index"]
        if not wrong and len(said["data"]) < self.inputs[said["fn_index"]]:
            wrong = ["data"]
        if wrong:
            sent = repr(said.get(wrong[0]))[:60]
            raise HTTPException(422, f"The page never sends {wrong[0]} {sent}: load it again.")


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
