"""The battle page: a few components of Gradio around an element of the arena, as one document.

Nothing of a battle goes through Gradio: the element ``arena-battle`` (static/page.js) talks to
the HTTP API, and what Gradio brings is made once, in a process of its own. `battle_view` renders
what is shown beside the answers, from a `Snapshot`, in which a model has a name only once a
committed vote has revealed it.
"""

import asyncio
import gzip
import json
import logging
import subprocess
import sys
from collections.abc import Mapping, Sequence
from functools import cache, lru_cache, partial
from hashlib import sha256
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from threading import Lock, Thread
from typing import Any

from fastapi import APIRouter, FastAPI
from markupsafe import Markup
from starlette.datastructures import Headers
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response
from starlette.routing import Mount
from starlette.staticfiles import StaticFiles
from starlette.types import Scope

from arena.catalogue import Language, words_in
from arena.domain.battle import (
    CONFIDENCE,
    KINDS,
    LONGEST_COMMENT,
    REASONS,
    Followed,
    Intent,
    Snapshot,
    WhenAsked,
)
from arena.domain.vote import DEFAULT, Choice, Voter
from arena.endpoints.local import SCHEME, local_model
from arena.guard.access import FRONT_PAGE, VISITORS
from arena.pages.rendering import environment, visit_to
from arena.parts import Parts
from arena.play.matchmaking import ENDS
from arena.store.battles import votes_of
from judge.render.pages import htmlsafe_json_dumps
from rating.sentences import Sentence

logger = logging.getLogger(__name__)

STATIC = Path(__file__).parent / "static"
STORED = Path(__file__).parent / "gradio.json"
CHIPS = 6
"""Prompts offered on the empty page; of recordings, the others are in a sheet."""
INVITATION = Sentence("Ask anything…")
RECORDED_INVITATION = Sentence("Ask a recorded prompt…")
PACKED = {".js": "text/javascript", ".css": "text/css"}
FOR_A_YEAR = "public, max-age=31536000, immutable"
"""For files whose addresses change with what is in them."""
VERSION = sha256(b"".join(file.read_bytes() for file in sorted(STATIC.iterdir()))).hexdigest()[:8]
LOOK = f"/look/{VERSION}"
"""Where the page's own files are; it changes with them, so no browser keeps an old one."""
MODULES = ("page", "answer", "stream", "vote", "remarks")
"""Scripts of the page; each imports only those before it."""


REMARKS: tuple[tuple[str, Sentence, Mapping[str, Sentence]], ...] = (
    (
        "confidence",
        Sentence("How sure are you?"),
        {str(level): sure for level, sure in CONFIDENCE.items()},
    ),
    (
        "intent",
        Sentence("Did you know the answer?"),
        {
            Intent.QUIZZING: Sentence("yes"),
            Intent.ASKING: Sentence("no"),
            Intent.PLAYING: Sentence("just playing"),
        },
    ),
)
"""Remarks with one of a few values, by their names in the API: the question, and the choices."""
KEYS = (
    (Sentence("Enter"), Sentence("Send the prompt; with Shift, a new line")),
    ("Esc", Sentence("Stop both answers; when they have ended, go to the vote buttons")),
    (Sentence("Shift+Tab"), Sentence("Go from the prompt to the vote buttons")),
    (Sentence("1 to 4"), Sentence("On the vote buttons: A, tie, both bad, B")),
    ("← →", Sentence("On the vote buttons and the reasons: the next button")),
)
WHY_KEYS = (
    ("Esc", Sentence("In “Why?”: close it")),
    (Sentence("Enter"), Sentence("Show the names")),
)
LABELS = {
    f"vote-{Choice.A}": Sentence("A is better"),
    f"vote-{Choice.TIE}": Sentence("Tie"),
    f"vote-{Choice.BOTH_BAD}": Sentence("Both are bad"),
    f"vote-{Choice.B}": Sentence("B is better"),
    "send": Sentence("Send"),
    "do-help": Sentence("Keys"),
    "do-rest": Sentence("Show the rest"),
    "do-stop": Sentence("Stop"),
    "do-regenerate": Sentence("Regenerate"),
    "do-skip": Sentence("Skip"),
    "do-new": Sentence("New battle"),
}
"""Words on Gradio's buttons, by their ids."""
SCRIPT_WORDS = {
    "prompt": Sentence("Prompt"),
    "choice": Sentence("Your choice"),
    "copy": Sentence("Copy"),
    "copied": Sentence("Copied"),
    "unsaved": Sentence("Your vote is not saved yet. We are trying again."),
    "away": Sentence(
        "We cannot reach the arena. What is written is kept, and we are trying again."
    ),
    "unsent": Sentence(
        "We cannot reach the arena. Your prompt is kept: send it again when you are back online."
    ),
    "busy": Sentence(
        "We cannot follow this battle at the moment, perhaps because too many of your pages "
        "are open. We are trying again."
    ),
    "noCookie": Sentence(
        "The arena needs a cookie to know your battles. Allow it and load the page again."
    ),
    "stopFirst": Sentence("Both are still writing. Press Esc to stop them, then vote."),
    "notShown": Sentence("The arena cannot show this battle now."),
    "notTaken": Sentence("The arena did not take this."),
    "remarked": Sentence("Remarks saved."),
    "remarksUnsaved": Sentence("Your vote is saved, but your feedback is not: send it again."),
    "characters": Sentence("%(n)s of %(longest)s characters"),
}
"""What the scripts write, by the names that they know; they put in the values."""


async def battle_view(
    parts: Parts, snapshot: Snapshot, *, voter: Voter, language: Language
) -> str:
    """Render the state of a battle and its hint, and after the vote names, ratings and facts."""
    followed: Sequence[Followed] | None = ()
    votes = 0
    if snapshot.receipt is not None:
        votes = await asyncio.to_thread(parts.store.read, votes_of, voter.id)
        if snapshot.receipt.reveal and parts.settings.instructions is not None:
            try:
                followed = await parts.battles.followed(snapshot.battle_id, voter)
            except Exception:
                logger.exception("Instructions could not be checked after a vote")
                followed = None
    elif snapshot.models is not None and not snapshot.state.running:
        snapshot = await parts.battles.look(snapshot.battle_id, voter)  # it has what they cost
    messages = {str(end): end for end in ENDS}  # the log has them in English
    return (
        environment(language)
        .get_template("battle_view.html")
        .render(
            battle=snapshot,
            message=messages.get(snapshot.message or "", snapshot.message),
            votes=votes,
            followed=followed,
            rated={row.model: row for row in parts.boards[DEFAULT.name].read().rows},
            kinds=KINDS,
            recorded=parts.battles.prompts is not None,
            when=parts.settings.reasons,
        )
    )


def page_router(parts: Parts) -> APIRouter:
    """Routes of the battle page and of all that it loads; begins to make what Gradio brings."""
    settings, battles = parts.settings, parts.battles
    recorded = battles.prompts
    own = parts.examples if recorded is None else recorded
    small = any(model.endpoint.startswith(SCHEME) for model in parts.models)
    more_keys = {WhenAsked.OFF: 0, WhenAsked.AFTER: 1, WhenAsked.BEFORE: 2}[settings.reasons]
    values = {
        "recorded": recorded is not None,
        "readable": settings.show_battles,
        "longest": settings.max_prompt_chars,
        "keys": (*KEYS, *WHY_KEYS[:more_keys]),
        "when": settings.reasons,
        "reasons": REASONS,
        "remarks": REMARKS,
        "longest_comment": LONGEST_COMMENT,
        "chips": CHIPS,
        "invitation": INVITATION if recorded is None else RECORDED_INVITATION,
    }
    router = APIRouter(include_in_schema=False)
    Thread(target=_of_gradio).start()
    shown = lru_cache(maxsize=1)(partial(_among, own))  # a page stays as it is for a while
    configured = lru_cache(maxsize=2 * len(Language))(partial(_config, values))

    @router.api_route("/", methods=["GET", "HEAD"], dependencies=[FRONT_PAGE])
    def page(request: Request) -> Response:
        made, visit = _of_gradio(), visit_to(request, parts.store)
        words, prompts = words_in(visit.language), shown(battles.offered())
        of_models = local_model().state if small else None
        return HTMLResponse(
            environment(visit.language)
            .get_template("document.html")
            .render(
                prompts=prompts,
                remark=of_models,
                config=configured(prompts, of_models, visit.language),
                script_words={name: words(text) for name, text in SCRIPT_WORDS.items()},
                gradio=made["script"],
                styles=[made["style"], "/look/tokens.css", f"{LOOK}/battle.css"],
                modules=[f"{LOOK}/{name}.js" for name in MODULES],
                start=f"{LOOK}/gradio.js",
                visit=visit,
                **values,
            ),
            headers={"Cache-Control": "private"},
        )

    @router.api_route("/theme.css", methods=["GET", "HEAD"], dependencies=[VISITORS])
    async def theme() -> Response:
        made = await asyncio.to_thread(_of_gradio)
        return Response(made["theme"], media_type="text/css")

    return router


_one_at_a_time = Lock()


@cache
def _asked() -> dict[str, str]:
    parts: dict[str, str] = json.loads(STORED.read_text())
    if parts["version"] == version("gradio"):
        return parts
    command = [sys.executable, "-m", "arena.ui.gradio_parts"]
    # Ctrl+C is for the arena alone.
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE, process_group=0)  # noqa: S603
    parts = json.loads(done.stdout)
    return parts


def _of_gradio() -> dict[str, str]:
    """Give the parts of the page that Gradio brings: see `arena.ui.gradio_parts`."""
    with _one_at_a_time:
        return _asked()


def add_assets(app: FastAPI) -> None:
    """Serve Gradio's script and styles, and those of the page."""
    spec = find_spec("gradio")
    assert spec is not None
    assert spec.origin is not None
    folder = Path(spec.origin).parent / "templates" / "frontend" / "assets"
    app.mount("/assets", _Immutable(directory=folder))
    # Before "/look", which would have it first.
    app.router.routes.insert(0, Mount("/look/{version}", _Immutable(directory=STATIC)))


class _Immutable(StaticFiles):
    """Files that a browser need not ask about again, compressed once for all who ask.

    Those of another version, which another replica may have, are not stored under its address.
    """

    def file_response(
        self, full_path: Any, stat_result: Any, scope: Scope, status_code: int = 200
    ) -> Response:
        is_ours = scope.get("path_params", {}).get("version", VERSION) == VERSION
        headers = {
            "Cache-Control": FOR_A_YEAR if is_ours else "no-store",
            "Vary": "Accept-Encoding",
        }
        if kind := PACKED.get(Path(full_path).suffix):  # what Python guesses, others may change
            headers["Content-Type"] = f"{kind}; charset=utf-8"
        if kind and "gzip" in Headers(scope=scope).get("accept-encoding", ""):
            headers["Content-Encoding"] = "gzip"
            return Response(_packed(str(full_path)), headers=headers)
        response = super().file_response(full_path, stat_result, scope, status_code)
        response.headers.update(headers)
        return response


@cache
def _packed(path: str) -> bytes:
    return gzip.compress(Path(path).read_bytes(), mtime=0)


def _among(own: Sequence[str], offered: Sequence[str]) -> tuple[str, ...]:
    """Put prompts among the first of our own, in an order that says nothing of them."""
    if not offered:
        return tuple(own)
    first = [*offered, *own[: CHIPS - len(offered)]]
    return tuple(sorted(first, key=lambda prompt: sha256(prompt.encode()).digest()))


def _config(
    values: Mapping[str, Any], prompts: Sequence[str], remark: Sentence | None, language: Language
) -> Markup:
    """Put the page's element and words into Gradio's configuration, which gradio.js reads."""
    template = environment(language).get_template("arena_battle.html")
    html = template.render(values, prompts=prompts, remark=remark)
    words = words_in(language)
    config = json.loads(_of_gradio()["config"])
    for component in config["components"]:
        props = component["props"]
        name = props.get("elem_id")
        if name == "battle":
            # A blank line would begin Markdown.
            props["value"] = "\n".join(filter(str.strip, html.splitlines()))
        elif name in LABELS:
            props["value"] = words(LABELS[name])
    return htmlsafe_json_dumps(config)
