"""The battle page: a few components of Gradio's around an element of our own, as one document.

Nothing of a battle goes through Gradio: the element ``arena-battle`` (static/battle.js) talks to
the HTTP API, and what Gradio brings is made once, in a process of its own.
"""

import asyncio
import gzip
import json
import subprocess
import sys
from collections.abc import Sequence
from functools import cache
from hashlib import sha256
from importlib.util import find_spec
from pathlib import Path
from threading import Lock, Thread
from typing import Any

from fastapi import APIRouter, FastAPI
from starlette.datastructures import Headers
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response
from starlette.staticfiles import StaticFiles
from starlette.types import Scope

from arena.pages.rendering import environment
from arena.pages.routes import origin_of

STATIC = Path(__file__).parent / "static"
DESCRIPTION = "Two anonymous models answer your prompt. You vote, then see who they were."
CHIPS = 6
"""Prompts offered on the empty page; of recordings, the others are in a sheet."""
PACKED = {".js": "text/javascript", ".css": "text/css"}
FOR_A_YEAR = "public, max-age=31536000, immutable"
"""For files whose names change with what is in them."""
KEYS = (
    ("1 to 4", "Vote, from left to right: A, tie, both bad, B"),
    ("R", "Both answer anew, before the vote"),
    ("N", "New battle"),
    ("G", "Go on with these two, after the vote"),
    ("/", "Write a prompt"),
    ("Enter", "Send it; with Shift, a new line"),
    ("Esc", "Stop both answers"),
    ("?", "This sheet"),
)

_one_at_a_time = Lock()


def page_router(
    examples: Sequence[str], recorded: Sequence[str] | None, *, readable: bool, longest: int
) -> APIRouter:
    """Routes of the battle page and of all that it loads; begins to make what Gradio brings.

    Parameters
    ----------
    examples : sequence of str
        Prompts to try; not shown when only recordings battle.
    recorded : sequence of str or None
        The prompts that recordings answer, if only recordings battle.
    readable : bool
        Whether visitors can read battles that were voted on, which the page then says.
    longest : int
        Characters that a prompt may have.
    """
    values = {
        "prompts": examples if recorded is None else recorded,
        "recorded": recorded is not None,
        "readable": readable,
        "longest": longest,
        "keys": KEYS,
        "chips": CHIPS,
        "description": DESCRIPTION,
        "invitation": "Ask anything…" if recorded is None else "Ask a recorded prompt…",
    }
    router = APIRouter(include_in_schema=False)
    Thread(target=of_gradio, daemon=True).start()

    @router.api_route("/", methods=["GET", "HEAD"])
    async def page(request: Request) -> Response:
        made = await asyncio.to_thread(of_gradio)
        return HTMLResponse(_document(made, values | {"origin": origin_of(request)}))

    @router.api_route("/theme.css", methods=["GET", "HEAD"])
    async def theme() -> Response:
        made = await asyncio.to_thread(of_gradio)
        return Response(made["theme"], media_type="text/css")

    return router


def add_assets(app: FastAPI) -> None:
    """Serve Gradio's script and styles, whose names change with what is in them."""
    spec = find_spec("gradio")
    assert spec is not None
    assert spec.origin is not None
    folder = Path(spec.origin).parent / "templates" / "frontend" / "assets"
    app.mount("/assets", _Immutable(directory=folder))


class _Immutable(StaticFiles):
    """Files that a browser need not ask about again, compressed once for all who ask."""

    def file_response(
        self, full_path: Any, stat_result: Any, scope: Scope, status_code: int = 200
    ) -> Response:
        headers = {"Cache-Control": FOR_A_YEAR, "Vary": "Accept-Encoding"}
        kind = PACKED.get(Path(full_path).suffix)
        if kind and "gzip" in Headers(scope=scope).get("accept-encoding", ""):
            headers["Content-Encoding"] = "gzip"
            return Response(_packed(str(full_path)), media_type=kind, headers=headers)
        response = super().file_response(full_path, stat_result, scope, status_code)
        response.headers.update(headers)
        return response


@cache
def _packed(path: str) -> bytes:
    return gzip.compress(Path(path).read_bytes(), mtime=0)


def of_gradio() -> dict[str, str]:
    """Give the parts of the page that Gradio brings: see `arena.ui.gradio_parts`."""
    with _one_at_a_time:
        return _of_gradio()


@cache
def _of_gradio() -> dict[str, str]:
    command = [sys.executable, "-m", "arena.ui.gradio_parts"]
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE)  # noqa: S603 - ours
    parts: dict[str, str] = json.loads(done.stdout)
    return parts


def _document(made: dict[str, str], values: dict[str, Any]) -> str:
    html = environment().get_template("arena_battle.html").render(values)
    config = json.loads(made["config"]) | {"root": ""}
    for component in config["components"]:
        if component["props"].get("elem_id") == "battle":
            # A blank line would begin Markdown.
            component["props"]["value"] = "\n".join(filter(str.strip, html.splitlines()))
    return (
        environment()
        .get_template("document.html")
        .render(
            config=config,
            gradio=made["script"],
            styles=[made["style"], "/look/tokens.css", address("battle.css")],
            script=address("battle.js"),
            **values,
        )
    )


@cache
def address(name: str) -> str:
    """Address of a static file; it changes with the file, so no browser keeps an old one."""
    version = sha256((STATIC / name).read_bytes()).hexdigest()[:8]
    return f"/look/{name}?v={version}"
