"""The battle page: a few components of Gradio's around an element of our own, as one document.

Gradio brings the components, their theme and their script. What it serves for them is asked of it
once, in this process; no visitor's request reaches it, and nothing of a battle goes through it.
The element ``arena-battle`` (static/battle.js) talks to the HTTP API.
"""

import asyncio
import json
import re
from collections.abc import Sequence
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import Any

import gradio as gr
import httpx
from fastapi import APIRouter, FastAPI
from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup, escape
from starlette.responses import HTMLResponse, Response
from starlette.staticfiles import StaticFiles

from rating.tables.escaping import shown

FOLDER = Path(__file__).parent
STATIC = FOLDER / "static"
ASSETS = Path(gr.__file__).parent / "templates" / "frontend" / "assets"
NAME = "Arena"
DESCRIPTION = "Two anonymous models answer your prompt. You vote, then see who they were."
CHIPS = 6
"""Prompts offered on the empty page; of recordings, the others are in a sheet."""
FOR_A_YEAR = "public, max-age=31536000, immutable"
"""For files whose names change with what is in them."""

VOTES = {
    "model_a": "A is better",
    "tie": "Tie",
    "both_bad": "Both are bad",
    "model_b": "B is better",
}
"""Words of the vote bar by outcome, from left to right: the keys 1 to 4."""
ACTIONS = {"stop": "Stop", "regenerate": "Regenerate", "skip": "Skip", "new": "New battle"}
KEYS = (
    *((str(number), words) for number, words in enumerate(VOTES.values(), 1)),
    ("R", "Both answer anew, before the vote"),
    ("N", "New battle"),
    ("G", "Go on with these two, after the vote"),
    ("/", "Write a prompt"),
    ("Enter", "Send it; with Shift, a new line"),
    ("Esc", "Stop both answers"),
    ("?", "This sheet"),
)

_CONFIG = re.compile(r"window\.gradio_config = (\{.*?\});</script>", re.DOTALL)
_ENTRY = re.compile(r'<script type="module"[^>]* src="\.(/assets/[^"]+\.js)"')
_STYLES = re.compile(r'<link rel="stylesheet"[^>]* href="\.(/assets/[^"]+\.css)"')


def page_router(
    examples: Sequence[str], recorded: Sequence[str] | None, *, readable: bool, longest: int
) -> APIRouter:
    """Routes of the battle page and of all that it loads.

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
        "name": NAME,
        "description": DESCRIPTION,
        "invitation": "Ask anything…" if recorded is None else "Ask a recorded prompt…",
    }
    parts = asyncio.Lock(), dict[str, str]()
    router = APIRouter(include_in_schema=False)

    async def part(name: str) -> str:
        making, made = parts
        async with making:
            if not made:
                made.update(await _document_and_theme(values))
        return made[name]

    @router.api_route("/", methods=["GET", "HEAD"])
    async def page() -> Response:
        return HTMLResponse(await part("document"))

    @router.api_route("/theme.css", methods=["GET", "HEAD"])
    async def theme() -> Response:
        return Response(await part("theme"), media_type="text/css")

    return router


def add_assets(app: FastAPI) -> None:
    """Serve Gradio's script and styles, whose names change with what is in them."""
    app.mount("/assets", _Immutable(directory=ASSETS))


class _Immutable(StaticFiles):
    """Files that a browser need not ask about again."""

    def file_response(self, *args: Any, **kwargs: Any) -> Response:
        response = super().file_response(*args, **kwargs)
        response.headers["Cache-Control"] = FOR_A_YEAR
        return response


async def _document_and_theme(values: dict[str, Any]) -> dict[str, str]:
    """Ask Gradio what it would serve, and write our own document around it."""
    served = gr.mount_gradio_app(
        FastAPI(),
        _components(values),
        path="/",
        theme=gr.themes.Base(
            font=["system-ui", "sans-serif"], font_mono=["ui-monospace", "monospace"]
        ),
        footer_links=[],
        run_history=False,
        ssr_mode=False,
        pwa=False,
        mcp_server=False,
        enable_monitoring=False,
    )
    transport = httpx.ASGITransport(app=served)
    async with httpx.AsyncClient(transport=transport, base_url="http://gradio") as client:
        index = (await client.get("/")).raise_for_status().text
        theme = (await client.get("/theme.css")).raise_for_status().text
    document = (
        environment()
        .get_template("document.html")
        .render(
            config=json.loads(_first(_CONFIG, index)) | {"root": ""},
            gradio=_first(_ENTRY, index),
            styles=[
                _first(_STYLES, index),
                *map(address, ("tokens.css", "battle.css")),
                "/look/rendered.css",
            ],
            script=address("battle.js"),
            **values,
        )
    )
    return {"document": document, "theme": theme}


def _components(values: dict[str, Any]) -> gr.Blocks:
    """Build what Gradio shows: the element with the panes, the prompt and the buttons."""
    html = environment().get_template("battle.html").render(values)
    battle = "\n".join(filter(str.strip, html.splitlines()))  # or Markdown begins
    page = gr.Blocks(title=NAME, analytics_enabled=False)
    with page, gr.Column(elem_id="arena"):
        gr.Markdown(battle, sanitize_html=False, latex_delimiters=[], elem_id="battle")
        with gr.Row(elem_id="votes"):
            for outcome, words in VOTES.items():
                gr.Button(words, elem_id=f"vote-{outcome}")
        with gr.Row(elem_id="ask"):
            gr.Textbox(
                placeholder=values["invitation"],
                label="Prompt",
                show_label=False,
                container=False,
                lines=1,
                max_lines=8,
                elem_id="prompt",
            )
            gr.Button("Send", variant="primary", elem_id="send")
        with gr.Row(elem_id="actions"):
            for name, words in ACTIONS.items():
                gr.Button(words, elem_id=f"do-{name}")
    return page


@cache
def environment() -> Environment:
    """Templates of the page; a name that one of them misses raises."""
    return Environment(
        loader=FileSystemLoader(FOLDER / "templates"),
        autoescape=True,
        finalize=_as_written,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )


def _as_written(value: Any) -> Any:
    """Give what a template shows on one line: a prompt of several keeps them to the letter."""
    if not isinstance(value, str) or hasattr(value, "__html__"):
        return value
    return Markup(escape(shown(value)).replace("\n", Markup("&#10;")))  # noqa: S704 - escaped


def address(name: str) -> str:
    """Address of a static file; it changes with the file, so no browser keeps an old one."""
    version = sha256((STATIC / name).read_bytes()).hexdigest()[:8]
    return f"/look/{name}?v={version}"


def _first(pattern: re.Pattern[str], index: str) -> str:
    match = pattern.search(index)
    if match is None:
        raise RuntimeError(f"the page of Gradio {gr.__version__} has no {pattern.pattern}")
    return match[1]
