"""The battle page in Gradio: where its parts stand and which handler writes them.

The script ``static/arena.js`` votes, stops and reveals over the HTTP API; the page itself
only takes prompts and shows the battles' text.
"""

from collections.abc import AsyncGenerator, AsyncIterator, Callable, Sequence
from contextlib import AbstractContextManager, aclosing
from functools import partial
from hashlib import sha256
from pathlib import Path
from typing import Any

from fastapi import FastAPI
from starlette.routing import Mount

from arena.domain.vote import Voter
from arena.ui import fixed
from arena.ui.loading import gr
from arena.ui.markdown import DISPLAY_MATHS, INLINE_MATHS
from arena.ui.page_calls import PageCalls
from arena.ui.view import Battles, PageView, ask, attach, empty_view

STATIC = Path(__file__).parent / "static"
REFUSALS = 100
"""Events that may run beside the streams: who comes when Gradio has no place for one waits."""
LOOK_S = 0.02
"""How long an event, such as a prompt that was sent, waits at most to be seen."""

MATHS: list[dict[str, str | bool]] = [
    {"left": DISPLAY_MATHS[0], "right": DISPLAY_MATHS[1], "display": True},
    {"left": INLINE_MATHS[0], "right": INLINE_MATHS[1], "display": False},
]

Update = list[Any]
"""A value for each output; Gradio sends the browser only what differs from the last one."""


def build_page(
    battles: Battles,
    identify: Callable[[gr.Request], Voter],
    examples: Sequence[str],
    *,
    readable: bool,
    streams: int,
) -> gr.Blocks:
    """Build the battle page.

    Parameters
    ----------
    identify : callable
        The voter behind a request; asked again for each event.
    examples : sequence of str
        Prompts to try; not shown when only recordings battle.
    readable : bool
        Whether visitors can read battles that were voted on, which the page then says.
    streams : int
        How many battles are watched at a time; ``battles`` refuses more.
    """
    page = gr.Blocks(title="Arena", analytics_enabled=False)
    with page:
        with gr.Column(elem_id="arena"):
            _fixed(fixed.TOP, "top")
            with gr.Row(elem_id="ask"):
                prompt = gr.Textbox(
                    placeholder="Ask anything…"
                    if battles.prompts is None
                    else "Ask a recorded prompt…",
                    label="Prompt",
                    show_label=False,
                    container=False,
                    lines=1,
                    max_lines=8,
                    elem_id="prompt",
                )
                send = gr.Button("Send", variant="primary", elem_id="send")
            _fixed(fixed.TABS, "tabs")
            with gr.Row(elem_id="panes"):
                history_a, asked_a, answer_a = _pane("a")
                history_b, asked_b, answer_b = _pane("b")
            _fixed(fixed.prompts_to_try(examples, battles.prompts, readable=readable), "try")
            _fixed(fixed.BAR, "bar")
            _fixed(fixed.HELP + "\n" + fixed.prompt_sheet(battles.prompts), "sheets")
            news = gr.Markdown(elem_id="news", latex_delimiters=[])
            refresh = gr.Button("Refresh", elem_id="refresh")
            intent = gr.Textbox(elem_id="intent")
            battle = gr.Textbox(elem_id="battle")

        async def on_send(
            prompt: str, intent: str, battle_id: str, request: gr.Request
        ) -> AsyncGenerator[Update]:
            who = partial(identify, request)
            async with aclosing(ask(battles, who, prompt, intent, battle_id)) as views:
                async for update in _updates(views):
                    yield update

        async def on_open(request: gr.Request) -> AsyncGenerator[Update]:
            battle_id = request.query_params.get("b")
            if not battle_id:
                yield _values(empty_view())
                return
            async with aclosing(attach(battles, partial(identify, request), battle_id)) as views:
                async for update in _updates(views):
                    yield update

        # in the order of `_values`
        shown = [news, history_a, history_b, asked_a, asked_b, answer_a, answer_b]
        # Without Gradio's postprocessing, which would strip tabs and indentation from answers.
        quiet: dict[str, Any] = {
            "outputs": shown,
            "postprocess": False,
            "show_progress": "hidden",
            "trigger_mode": "multiple",
            "api_visibility": "private",
            "concurrency_limit": None,
        }
        send.click(on_send, [prompt, intent, battle], **quiet)
        refresh.click(on_open, **quiet)
        page.load(on_open, **quiet)
    page.max_threads = streams + REFUSALS
    page.queue(default_concurrency_limit=None)
    # Gradio looks for events a thousand times a second and for their progress a hundred times,
    # which takes a twelfth of a core of an arena that nobody visits.
    page._queue.sleep_when_free = LOOK_S
    page._queue.progress_update_sleep_when_free = 1.0  # no event of ours tells any
    return page


def mount_page(
    app: FastAPI,
    page: gr.Blocks,
    admit: Callable[[Voter], None],
    hold: Callable[[Voter], AbstractContextManager[object]],
) -> FastAPI:
    """Serve the page at ``/``: the last thing to mount, for it takes every path left.

    The files of ``static`` are expected at ``/look``: Gradio has a ``/static`` of its own.
    ``admit`` is called with who uses the page, and ``hold`` holds a place while they read what
    it sends; both raise to refuse it.
    """
    styles = "".join(
        f'<link rel="stylesheet" href="{_address(name)}">' for name in ("tokens.css", "battle.css")
    )
    gr.mount_gradio_app(
        app,
        page,
        path="/",
        head=f'{styles}<script src="{_address("arena.js")}" defer></script>',
        theme=gr.themes.Base(
            font=["system-ui", "sans-serif"], font_mono=["ui-monospace", "monospace"]
        ),
        footer_links=[],
        run_history=False,
        show_error=False,
        ssr_mode=False,
        pwa=False,
        mcp_server=False,
        enable_monitoring=False,
    )
    mounted = app.routes[-1]
    assert isinstance(mounted, Mount)
    assert isinstance(mounted.app, gr.routes.App)
    # It would let pages of other hosts, and of other ports of this one, act as the visitor.
    cors: object = gr.route_utils.CustomCORSMiddleware
    mounted.app.user_middleware = [m for m in mounted.app.user_middleware if m.cls is not cors]
    inputs = {number: len(event.inputs) for number, event in page.fns.items()}
    mounted.app = PageCalls(
        mounted.app, inputs, page._queue.pending_messages_per_session, admit, hold
    )
    return app


def _fixed(html: str, name: str) -> None:
    """Place HTML of our own, which needs no cleaning."""
    gr.Markdown(
        html,
        sanitize_html=False,
        latex_delimiters=[],
        elem_id=name,
        elem_classes="fixed",
    )


def _pane(side: str) -> tuple[gr.Markdown, gr.Markdown, gr.Markdown]:
    """One response: its head, the finished turns, and the latest prompt and answer."""
    with gr.Column(elem_id=f"pane-{side}", elem_classes="pane"):
        _fixed(fixed.pane_head(side), f"head-{side}")
        with gr.Column(elem_id=f"scroll-{side}", elem_classes="scroll"):
            history = gr.Markdown(
                elem_id=f"history-{side}",
                elem_classes=["history", "answer"],
                latex_delimiters=MATHS,
            )
            with gr.Column(elem_id=f"turn-{side}", elem_classes="turn"):
                asked = gr.Markdown(
                    elem_id=f"asked-{side}", elem_classes="asked", latex_delimiters=[]
                )
                _fixed(fixed.SKELETON, f"skeleton-{side}")
                answer = gr.Markdown(
                    elem_id=f"answer-{side}", elem_classes="answer", latex_delimiters=MATHS
                )
    return history, asked, answer


def _values(view: PageView) -> list[str | None]:
    return [
        view.news,
        view.history_a,
        view.history_b,
        view.asked,
        view.asked,
        view.answer_a,
        view.answer_b,
    ]


async def _updates(views: AsyncIterator[PageView]) -> AsyncIterator[Update]:
    """Give views as updates: what a view leaves as it stands is said again.

    Gradio has a way to leave an output out, but makes the component anew for it, each time.
    """
    before: Update = [gr.skip()] * len(_values(empty_view()))
    async for view in views:
        update = [
            old if new is None else new for old, new in zip(before, _values(view), strict=True)
        ]
        if update != before:
            yield update
        before = update


def _address(name: str) -> str:
    """Address of a static file; it changes with the file, so no browser keeps an old one."""
    version = sha256((STATIC / name).read_bytes()).hexdigest()[:8]
    return f"/look/{name}?v={version}"
