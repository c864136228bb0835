"""What Gradio serves for the battle page, asked of it once by ``python -m arena.ui.gradio_parts``.

In a process of its own: Gradio takes seconds to load and a hundred megabytes, and nothing of it
is needed to serve what it gave. No request of a visitor reaches it.
"""

import json
import re
import sys

import gradio as gr
from fastapi import FastAPI
from starlette.testclient import TestClient

from arena.domain.vote import Choice

BATTLE = "<!-- the battle -->"
"""Stands where the page puts its own element."""

VOTES = tuple(one.value for one in (Choice.A, Choice.TIE, Choice.BOTH_BAD, Choice.B))
"""The vote bar by outcome, in the order of the keys 1 to 4."""
ACTIONS = ("help", "rest", "stop", "regenerate", "skip", "new")

_CONFIG = re.compile(r"window\.gradio_config = (\{.*?\});</script>", re.DOTALL)
_SCRIPT = re.compile(r'<script type="module"[^>]* src="\.(/assets/[^"]+\.js)"')
_STYLE = re.compile(r'<link rel="stylesheet"[^>]* href="\.(/assets/[^"]+\.css)"')


def _components() -> gr.Blocks:
    """Build what Gradio shows: a place for our element, the prompt and the buttons.

    The page puts its own words on them: `arena.ui.battle_page.LABELS`.
    """
    page = gr.Blocks(title="Arena", analytics_enabled=False)
    with page, gr.Column(elem_id="arena"):
        gr.Markdown(BATTLE, sanitize_html=False, latex_delimiters=[], elem_id="battle")
        with gr.Row(elem_id="votes"):
            for outcome in VOTES:
                gr.Button(outcome, elem_id=f"vote-{outcome}")
        with gr.Row(elem_id="ask"):
            gr.Textbox(
                label="Prompt",
                show_label=False,
                container=False,
                lines=1,
                max_lines=8,
                elem_id="prompt",
            )
            gr.Button("Send", variant="primary", elem_id="send")
        with gr.Row(elem_id="actions"):
            for name in ACTIONS:
                gr.Button(name, elem_id=f"do-{name}")
    return page


def _parts() -> dict[str, str]:
    """Give the configuration, as JSON, the theme, and the addresses of script and styles."""
    served = gr.mount_gradio_app(
        FastAPI(),
        _components(),
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
    with TestClient(served) as client:
        index = client.get("/").raise_for_status().text
        theme = client.get("/theme.css").raise_for_status().text
    return {
        "config": first(_CONFIG, index),
        "script": first(_SCRIPT, index),
        "style": first(_STYLE, index),
        "theme": theme,
    }


def first(pattern: re.Pattern[str], index: str) -> str:
    """Find a part of Gradio's page.

    Raises
    ------
    RuntimeError
        If this version of Gradio writes another page.
    """
    match = pattern.search(index)
    if match is None:
        raise RuntimeError(f"the page of Gradio {gr.__version__} has no {pattern.pattern}")
    return match[1]


if __name__ == "__main__":
    json.dump(_parts(), sys.stdout)
