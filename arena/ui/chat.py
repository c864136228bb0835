"""The arena as a plain Gradio chat: for a notebook, a Space, or an application of one's own.

It plays the same `Battles` as the battle page, and its visitors are the same voters. What Gradio
serves beside that is closed: see `_Guard`.
"""

import re
import sys
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterator
from contextlib import AbstractAsyncContextManager, aclosing, contextmanager, suppress
from functools import partial
from string import punctuation
from time import monotonic
from typing import Any
from uuid import uuid4

import gradio as gr
from fastapi import FastAPI, Request
from starlette.datastructures import MutableHeaders
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.middleware.exceptions import ExceptionMiddleware
from starlette.routing import Mount
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from arena.api.middleware import NOT_SAVED, POLICY, BodyLimit, Entrance, SecurityHeaders
from arena.domain.battle import AnswerStatus, BattleState, Remarks, Side, Snapshot
from arena.domain.vote import Choice, Voter
from arena.errors import CHOICE_WORDS, NotReadyError, PlayError, StoreError, UnknownBattleError
from arena.guard.access import Access, RequestFacts
from arena.parts import Parts
from arena.ui.battle_page import CHIPS, INVITATION, LABELS
from rating.tables.files import storable

OPEN = re.compile(
    r"(GET|HEAD) /(config|theme\.css|assets/.+|static/.+)?"
    r"|GET /gradio_api/queue/data|POST /gradio_api/queue/join"
)
"""What a page of the chat asks for; uploads, files, the API and all else of Gradio is closed."""
BEGUN = "GET /gradio_api/startup-events"
"""What `launch` asks for once; a mounted chat would begin a second time with it."""
EVERY_S = 0.2
"""How often at most what is written is sent: Gradio compares all of it with what was sent."""
SESSIONS = 2000
"""Pages that are remembered; Gradio has as many."""
UNMOUNTED = "This chat is mounted without its guard: pass **chat.options to mount_gradio_app."
VOTES = (Choice.A, Choice.TIE, Choice.BOTH_BAD, Choice.B)
WELCOME = (
    "# Which answer is better?\nTwo anonymous models answer. You vote, then see who they were."
)
READABLE = " Once you have voted, everyone here can read the battle."
_LINKS = "\n\n[Leaderboard](/leaderboard) · [My battles](/votes) · [Method](/method)"
CSS = """
.gradio-container { width: 100% !important; max-width: 1240px !important; }
.gradio-container { margin: 0 auto !important; }
#answers > .block { min-width: min(20rem, 100%) !important; flex: 1 1 20rem !important; }
#answers > .block { height: max(14rem, 50dvh) !important; padding-top: 1.8rem; }
#answers label[data-testid="block-label"] { margin-top: -1.8rem; }
#answers > .block, #answers .message-content { contain: content; }
#answers .message-content { overflow-x: auto; }
#answers .top-panel, #answers .prose :is(form, input, select, textarea),
#answers .prose :is(img, video, audio, iframe) { display: none; }
#votes, #actions { display: grid; grid-template-columns: repeat(4, 1fr); }
#note { min-height: 1.5rem; }
@media (max-width: 640px) {
  #answers > .block { height: 34dvh !important; }
  #votes, #actions { grid-template-columns: 1fr 1fr; }
}
"""
_ENGLISH = """<script>{
const page = document.documentElement, mark = () => page.lang === "en" || (page.lang = "en");
new MutationObserver(mark).observe(page, { attributeFilter: ["lang"] });
mark();
}</script>"""
"""Gradio marks the page with the browser's language; all texts here are English."""

LATEX: list[dict[str, str | bool]] = [
    {"left": "$$", "right": "$$", "display": True},
    {"left": r"\[", "right": r"\]", "display": True},
    {"left": r"\(", "right": r"\)", "display": False},
]
NOT_PLAIN = re.compile(f"([{re.escape(punctuation)}])")
"""What could be Markdown in a name."""
GOLD = (
    " The first answers here were recorded, and one of them is known to be right: this shows how "
    "people vote, and counts for no rank."
)
View = dict[Any, Any]
Act = Callable[[str, Voter, str], Awaitable[Snapshot]]
"""What a button does, by the id of the battle, for a voter, with what the prompt holds."""


class _Guard:
    """Lets through what a page of the chat asks for, and knows who asks.

    Gradio calls a page by a random name, its session; it answers only the voter who began one.
    Who keeps no cookie, as in the frame of another site, is another voter on each page.
    """

    def __init__(self, app: ASGIApp, chat: "Chat") -> None:
        self.app, self.chat = app, chat

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on, or refuse it."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        request, chat = Request(scope), self.chat
        path = scope["path"].removeprefix(scope.get("root_path", "")) or "/"
        asked = f"{request.method} {path}"
        if not OPEN.fullmatch(asked) and not (asked == BEGUN and chat.has_launched):
            raise HTTPException(404)
        facts = RequestFacts.of(scope, known=False)
        if facts.origin and not facts.from_own_page:  # Gradio would let pages of others read it
            raise HTTPException(403)
        first, personal = path == "/", path == "/" or path.startswith("/gradio_api/")
        everywhere = bool(chat.share or chat.space_id)  # under names that Gradio gives
        await Access(greets=first, personal=personal, by_any_name=everywhere)(request)
        if not chat.answers(request.query_params.get("session_hash", ""), request.state.voter):
            raise HTTPException(404)

        async def guarded(message: Message) -> None:
            if message["type"] == "http.response.start":
                MutableHeaders(scope=message)["content-security-policy"] = chat.policy
            await send(message)

        await self.app(scope, receive, guarded)


class Chat(gr.Blocks):
    """The chat of an arena.

    Parameters
    ----------
    lifespan : callable, optional
        Runs the arena beside the chat, where nothing else does.

    Attributes
    ----------
    options : dict
        What `launch` and `gradio.mount_gradio_app` are called with.
    """

    def __init__(
        self,
        parts: Parts,
        lifespan: Callable[[FastAPI], AbstractAsyncContextManager[None]] | None = None,
    ) -> None:
        super().__init__(title="Arena", analytics_enabled=False)
        self.parts = parts
        self.sessions: dict[str, tuple[Voter | None, Voter]] = {}
        self.followed: set[tuple[str, str]] = set()
        self.state_session_capacity = SESSIONS
        self.max_threads = 2 * parts.settings.running_battles
        self.policy = POLICY.replace("script-src 'self'", "script-src 'self' 'unsafe-inline'")
        self.policy += "; form-action 'self'"
        if lifespan:
            self.policy = self.policy.replace("; frame-ancestors 'self'", "")
        alone = (
            Middleware(SecurityHeaders),
            Middleware(BodyLimit, most=parts.settings.max_body_bytes),
            Middleware(Entrance, trust=parts.trust),
            Middleware(ExceptionMiddleware),
            Middleware(_Guard, chat=self),
        )
        self.options: dict[str, Any] = {
            "theme": gr.themes.Base(
                font=["system-ui", "sans-serif"], font_mono=["ui-monospace", "monospace"]
            ),
            "css": CSS,
            "head": _ENGLISH,
            "footer_links": [],
            "run_history": False,
            "ssr_mode": False,
            "pwa": False,
            "show_error": False,
            "app_kwargs": {"middleware": alone, "lifespan": lifespan} if lifespan else {},
        }
        self._lay_out(_LINKS * (lifespan is None))
        self.queue(default_concurrency_limit=None)
        self._queue.sleep_when_free = 0.02  # its own 1 ms takes a twentieth of a core at rest
        self._queue.ANAYLTICS_CACHE_FREQUENCY = sys.maxsize  # each time it reads all that happened
        self._queue.ANALYTICS_MAX_EVENTS = 1

    def launch(self, *args: Any, **given: Any) -> Any:
        """Serve the chat alone: see `gradio.Blocks.launch`."""
        return super().launch(*args, **{"max_threads": self.max_threads} | self.options | given)

    def answers(self, session: str, voter: Voter | None) -> bool:
        """Tell whether a page is not another voter's."""
        return self.sessions.get(session, (voter,))[0] == voter

    def _voter(self, request: gr.Request) -> Voter:
        """Give who sends an event: a new voter where a page begins without a cookie."""
        if not hasattr(request.state, "voter"):
            raise gr.Error(UNMOUNTED, print_exception=False)
        known: Voter | None = request.state.voter
        session, address = request.session_hash or "", request.client.host
        if not self.answers(session, known):
            raise UnknownBattleError
        if session not in self.sessions:
            addresses = self.parts.addresses
            stranger = Voter(
                uuid4().hex,
                address=addresses.pseudonym(address),
                network=addresses.network_pseudonym(address),
            )
            if len(self.sessions) >= SESSIONS:
                del self.sessions[next(iter(self.sessions))]
            self.sessions[session] = known, known or stranger
        return known or self.sessions[session][1]

    def _lay_out(self, links: str) -> None:
        battles, settings = self.parts.battles, self.parts.settings
        prompts = battles.prompts or self.parts.examples

        def button(name: str) -> gr.Button:
            return gr.Button(str(LABELS[name]), interactive=False, elem_id=name)

        with self:
            gr.Markdown(WELCOME + READABLE * settings.show_battles + links)
            with gr.Row(elem_id="answers", visible=False) as panes:
                self.panes = {
                    side: gr.Chatbot(
                        label=side.upper(),
                        buttons=["copy"],
                        allow_tags=False,
                        layout="panel",
                        latex_delimiters=LATEX,
                        elem_id=f"answer-{side}",
                    )
                    for side in Side
                }
            self.note = gr.Markdown(elem_id="note")
            with gr.Row(elem_id="votes", visible=False) as voting:
                votes = {choice: button(f"vote-{choice}") for choice in VOTES}
            self.prompt = gr.Textbox(
                label="Prompt",
                show_label=False,
                placeholder=str(INVITATION),
                max_lines=8,
                submit_btn=True,
                autofocus=True,
                elem_id="prompt",
            )
            with gr.Row(elem_id="actions", visible=False) as actions:
                self.stop, self.again, skip, self.new = (
                    button(f"do-{name}") for name in ("stop", "regenerate", "skip", "new")
                )
            self.prompts = gr.Dataset(
                components=[self.prompt],
                samples=[[str(prompt)] for prompt in prompts],
                samples_per_page=CHIPS,
                label="Prompts to try",
            )
            self.rows = panes, voting, actions
            self.battle = gr.Textbox(visible=False, elem_id="battle")
            self.running = gr.Textbox(visible=False, elem_id="running")
            self.choices = {**votes, Choice.SKIP: skip}
            outputs = [
                *self.panes.values(),
                *self.choices.values(),
                *self.rows,
                self.note, self.prompt, self.stop, self.again, self.new, self.prompts,
                self.battle, self.running,
            ]  # fmt: skip
            asked = [self.prompt, self.battle]
            quiet: dict[str, Any] = {"show_progress": "hidden", "api_visibility": "private"}
            listen = partial(gr.on, inputs=asked, outputs=outputs, **quiet)

            def play(trigger: Any, act: Act, **given: Any) -> None:
                begun = listen(trigger, self._doing(act), **given)
                # Gradio rebuilds every output of a function at each yield.
                seen = begun.success(self._follow, self.running, [*self.panes.values()], **quiet)
                seen.then(self._settle, self.running, outputs, **quiet)

            play(self.prompt.submit, self._ask)
            play(self.prompts.click, self._ask, inputs=[self.prompts, self.battle])
            play(self.again.click, lambda one, voter, _: battles.regenerate(one, voter))
            listen(self.stop.click, self._doing(lambda one, voter, _: battles.stop(one, voter)))
            for choice, one in self.choices.items():
                listen(one.click, self._doing(partial(self._vote, choice)))
            listen(self.new.click, self._blank, inputs=[])

    def _doing(self, act: Act) -> Callable[..., Awaitable[View]]:
        """Make what answers a button: it acts, and shows the battle as it is then."""

        async def do(prompt: Any, battle_id: Any, request: gr.Request) -> View:
            text = str(prompt[0] if isinstance(prompt, list) else prompt or "")
            with self._noted() as shown:
                asked = storable(battle_id or ""), self._voter(request), text
                shown |= self._shown(await act(*asked))
            return shown

        return do

    async def _follow(self, battle_id: str, request: gr.Request) -> AsyncGenerator[View]:
        """Show what a battle's models write, until they end; a second time beside it nothing."""
        battles, due, is_running = self.parts.battles, monotonic(), True
        voter = self._voter(request)
        if not battle_id or (voter.id, battle_id) in self.followed:
            yield gr.skip()  # Gradio empties the outputs of a generator without a yield
            return
        self.followed.add((voter.id, battle_id))
        with suppress(PlayError, StoreError):  # `_settle` notes it
            try:
                yield gr.skip()
                async with aclosing(battles.watch(battle_id, voter)) as looks:
                    with battles.reading(voter):
                        async for battle in looks:
                            is_running = battle.state.running
                            if monotonic() >= due:
                                due = monotonic() + EVERY_S
                                yield self._written(battle)
            finally:
                self.followed.discard((voter.id, battle_id))
                if is_running:  # the page was closed: nobody can come back to it
                    await battles.stop(battle_id, voter)

    async def _settle(self, battle_id: str, request: gr.Request) -> View:
        """Show how a battle ended, if it did."""
        with self._noted() as shown:
            if battle_id:
                battle = await self.parts.battles.look(battle_id, self._voter(request))
                if not battle.state.running:
                    shown |= self._shown(battle)
        return shown or gr.skip()

    @contextmanager
    def _noted(self) -> Iterator[View]:
        """Let changes of the page be collected, or one that tells why there are none."""
        shown: View = {}
        try:
            yield shown
        except PlayError as error:
            shown |= {self.note: str(error)}
        except StoreError:
            shown |= {self.note: str(NOT_SAVED)}

    async def _ask(self, battle_id: str, voter: Voter, prompt: str) -> Snapshot:
        battles = self.parts.battles
        if battle_id:
            try:
                return await battles.reply(battle_id, voter, prompt)
            except NotReadyError:  # the vote may be on its way to the page
                if (await battles.look(battle_id, voter)).receipt is None:
                    raise
        return await battles.open(voter, prompt)

    async def _vote(self, choice: Choice, battle_id: str, voter: Voter, _prompt: str) -> Snapshot:
        battles = self.parts.battles
        receipt = await battles.vote(battle_id, voter, choice, key=battle_id)
        if receipt.reveal is None and choice is not Choice.SKIP:
            return await battles.remark(battle_id, voter, Remarks())
        return await battles.look(battle_id, voter)

    def _blank(self) -> View:
        idle = gr.Button(interactive=False)
        buttons = (*self.choices.values(), self.stop, self.again, self.new)
        return {
            **{pane: [] for pane in self.panes.values()},
            **dict.fromkeys(buttons, idle),
            self.note: "",
            self.battle: "",
            self.prompts: gr.Dataset(visible=True),
            **dict.fromkeys(self.rows, gr.Row(visible=False)),
        }

    def _written(self, battle: Snapshot) -> View:
        """Show the conversation with each side."""
        panes: View = {self.panes[side]: [] for side in Side}
        for turn in battle.turns:
            for side, answer in ((Side.A, turn.a), (Side.B, turn.b)):
                one = [{"role": "user", "content": turn.prompt}]
                two = [{"role": "assistant", "content": answer.text}] if answer.text else []
                panes[self.panes[side]] += one + two
        return panes

    def _shown(self, battle: Snapshot) -> View:
        """Show how a battle stands."""
        running, receipt = battle.state.running, battle.receipt
        ready = gr.Button(interactive=battle.state is BattleState.READY)
        return self._written(battle) | {
            self.prompt: "" if running else gr.skip(),
            self.running: battle.battle_id if running else "",
            **dict.fromkeys(self.choices.values(), ready),
            self.stop: gr.Button(interactive=running),
            self.again: gr.Button(interactive=not running and not receipt),
            self.new: gr.Button(interactive=not running),
            self.note: _note(battle),
            self.battle: "" if receipt else battle.battle_id,
            self.prompts: gr.Dataset(visible=False),
            **dict.fromkeys(self.rows, gr.Row(visible=True)),
        }


def _note(battle: Snapshot) -> str:
    """Describe the state of a battle, as Markdown."""
    receipt, last = battle.receipt, battle.turns[-1]
    if battle.message:
        return str(battle.message)
    if receipt is None and battle.state.running:
        return "Both models are answering."
    if receipt is None:
        if AnswerStatus.STOPPED in (last.a.status, last.b.status):
            return "Stopped. You can vote on what you see."
        return "Both finished. You can vote."
    if receipt.reveal is None:
        return "Skipped. Nothing was counted, and the names stay hidden."
    a, b = (NOT_PLAIN.sub(r"\\\1", one.name) for one in (receipt.reveal.a, receipt.reveal.b))
    vote = CHOICE_WORDS[receipt.choice]
    return f"Saved. Your vote: {vote}. A is **{a}**, B is **{b}**.{GOLD * receipt.gold}"


def add_chat(app: FastAPI, parts: Parts, path: str) -> None:
    """Serve the chat beside an arena's page."""
    chat = Chat(parts)
    gr.mount_gradio_app(app, chat, path, **chat.options)
    mount = app.routes[-1]
    assert isinstance(mount, Mount)
    mount.app = _Guard(mount.app, chat)
