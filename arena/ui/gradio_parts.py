"""Ask Gradio for what it serves to the battle page: ``python -m arena.ui.gradio_parts``.

``gradio.json`` beside this module holds the answer for the version of Gradio that is locked. With
another version, `arena.ui.battle_page` runs this module in a process of its own: Gradio takes
seconds to load and a hundred megabytes, and nothing of it is needed to serve what it gave.
It asks for what Gradio's own clients ask for (``/config``, ``/theme.css``), and reads the file by
which pages elsewhere load Gradio (``gradio.js``).
"""

import json
import sys
from pathlib import Path

import gradio as gr
from fastapi import FastAPI
from starlette.testclient import TestClient

from arena.domain.vote import Choice

FRONTEND = Path(gr.__file__).parent / "templates" / "frontend"


def _parts(frontend: Path = FRONTEND) -> dict[str, str]:
    """Give the configuration, as JSON, the theme, and the addresses of script and styles.

    Raises
    ------
    RuntimeError
        If this version of Gradio begins in another way.
    """
    # A place for our element, the prompt and the buttons; the page writes the labels.
    page = gr.Blocks(title="Arena", analytics_enabled=False)
    with page, gr.Column(elem_id="arena"):
        gr.Markdown("battle", sanitize_html=False, latex_delimiters=[], elem_id="battle")
        with gr.Row(elem_id="votes"):
            for outcome in (Choice.A, Choice.TIE, Choice.BOTH_BAD, Choice.B):  # keys 1 to 4
                gr.Button(outcome.value, elem_id=f"vote-{outcome}")
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
            for name in ("help", "rest", "stop", "regenerate", "skip", "new"):
                gr.Button(name, elem_id=f"do-{name}")
    served = gr.mount_gradio_app(
        FastAPI(),
        page,
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
        config = client.get("/config").raise_for_status().json()
        theme = client.get("/theme.css").raise_for_status().text
    begins, _, script = (frontend / "gradio.js").read_text().strip().partition('"./')
    script = script.removesuffix('");')
    if begins != "import(" or not (frontend / script).is_file():
        raise RuntimeError(f"gradio.js of Gradio {gr.__version__} does not import one script.")
    styles = [path.name for path in (frontend / "assets").glob("index-*.css")]
    if len(styles) != 1:
        raise RuntimeError(f"Gradio {gr.__version__} has {len(styles)} files assets/index-*.css.")
    for one in config["components"]:
        one["component_class_id"] = one["type"]  # else a hash of where Gradio is installed
    config |= {"app_id": 0, "current_page": ""}
    return {
        "version": gr.__version__,
        "script": f"/{script}",
        "style": f"/assets/{styles[0]}",
        "config": json.dumps(config, separators=(",", ":")),
        "theme": theme,
    }


if __name__ == "__main__":
    json.dump(_parts(), sys.stdout, indent=1)
    print()  # noqa: T201
