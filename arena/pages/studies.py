"""Pages of studies by people, for raters and researchers; and the evaluation card as a page.

`studies_router` has the routes of studies: nothing that a rater gets names a model before it is
rated. `evaluation_page` shows the card, and `bundle_page` writes a published board with its card
as a file that loads nothing.
"""

import re
import uuid
from collections.abc import Mapping, Sequence
from datetime import datetime
from math import inf
from pathlib import Path
from typing import Any, NamedTuple

from fastapi import APIRouter
from starlette.concurrency import run_in_threadpool
from starlette.datastructures import FormData
from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response

from arena.boards.bundle import PublishedBoard, PublishedRow
from arena.boards.evaluation import read_status
from arena.catalogue import Language, words_in
from arena.domain.battle import CONFIDENCE, LONGEST_COMMENT, REASONS, Reason
from arena.domain.board_view import PastRating
from arena.domain.people import Role
from arena.domain.study import (
    TYPED,
    EvaluationCard,
    Next,
    Purpose,
    Shown,
    Stage,
    Standing,
    StudyPlan,
    StudyRemarks,
)
from arena.domain.vote import Voter, VoterKind
from arena.errors import (
    CHOICE_WORDS,
    BusyError,
    LimitError,
    PlayError,
    RatingRefusedError,
    StoreError,
    UnknownStudyError,
)
from arena.guard.access import FIRST_CONTACT, PERSONAL, RESEARCHERS
from arena.pages.rendering import ANYBODY, ARENA_NAME, READ, Visit, filled, missing_page, visit_to
from arena.parts import Parts
from arena.store import studies
from judge.render.pages import as_file
from rating.charts.drawing import Scale
from rating.sentences import Sentence
from rating.tables.files import storable

# Studies

PRIVATE = {"Cache-Control": "private, no-store"}
TRY_AGAIN_S = 60
"""Value of `Retry-After` for a rater who finds no place, in seconds."""
CHOICES = ("a", "tie", "both_bad", "b")
"""As they stand: keys 1 to 4."""
SKIP = "skip"
LETTERS = "ABCDEFGHIJKL"
WHOLE = re.compile("[0-9]{1,18}")
KEY = re.compile("[0-9a-f-]{8,64}")
STUDY_CHOICE_WORDS = {
    "a": Sentence("A is better"),
    "tie": Sentence("Tie"),
    "both_bad": Sentence("Both are bad"),
    "b": Sentence("B is better"),
    SKIP: Sentence("Skip"),
}
STEP_WORDS = {
    "message": Sentence("Message"),
    "user": Sentence("User"),
    "system": Sentence("Instructions"),
    "tool_call": Sentence("Tool call"),
    "tool_result": Sentence("Result"),
    "error": Sentence("Failure"),
}
AS_MARKDOWN = ("message", "user")
MOST_RENDERED = 40_000
"""Characters of the agents' messages of an item, up to which they are shown as Markdown."""
SHOWN_AT_FIRST = 3_000
"""Characters of a step that are shown; the rest is folded."""
NO_STUDY = Sentence("There is no such study, or it has no item for you.")
NO_CHOICE = Sentence("Choose an answer first: nothing was saved.")
NO_PLACES = Sentence("Give every answer a place, from 1 on: nothing was saved.")
NOT_SAVED = Sentence("Your rating is not saved: the arena's database does not answer. Try again.")
NO_COOKIE = Sentence("The arena needs a cookie to know what you have rated. Allow it, and go on.")
OWN_FIRST = Sentence("You are a rater of this study: its figures are here after you finish.")


class _Sent(NamedTuple):
    """A rating as it was sent, to send again.

    Attributes
    ----------
    choice : str or list of list of int or None
        Of a ranking the places on the page, best first; None where nothing was chosen.
    """

    token: int
    key: str
    choice: str | list[list[int]] | None
    fields: Mapping[str, str]


def studies_router(parts: Parts) -> APIRouter:
    """Routes of studies: for raters, and the results for researchers."""
    router = APIRouter(prefix="/studies", include_in_schema=False)
    store, now, raters = parts.store, parts.now, parts.raters

    def page(
        request: Request,
        template: str,
        code: int = 200,
        headers: Mapping[str, str] = PRIVATE,
        **values: object,
    ) -> Response:
        return HTMLResponse(filled(template, visit_to(request, store), **values), code, headers)

    def missing(request: Request) -> Response:
        return HTMLResponse(missing_page(NO_STUDY, visit_to(request, store)), 404, PRIVATE)

    def note(
        request: Request, name: str, sentence: str, status: int, again: _Sent | None = None
    ) -> Response:
        return page(request, "study_note.html", status, name=name, note=sentence, again=again)

    def refused(request: Request, name: str, error: PlayError) -> Response:
        """Show why a rater gets no item, and when to try again if that is known."""
        status, headers = 409, PRIVATE
        if isinstance(error, BusyError | LimitError):
            status, wait_s = 429, TRY_AGAIN_S
            if isinstance(error, LimitError):
                wait_s = error.wait_s(now())
            headers = PRIVATE | {"Retry-After": str(wait_s)}
        return page(
            request, "study_note.html", status, headers, name=name, note=error.args[0], again=None
        )

    def standing_of(request: Request, name: str) -> Standing:
        voter = request.state.voter
        return store.read(studies.standing, name, voter.id if voter else None, now())

    def next_item(name: str, voter: Voter) -> tuple[Next, Shown | None]:
        begins = not store.read(studies.has_begun, name, voter.id)
        with raters.admit(name, voter, begins=begins), store.writing() as session:
            given = studies.give(session, name, voter, now())
        if given[1] is None:
            raters.leave(name, voter.id)
        return given

    @router.api_route("", methods=READ, dependencies=[PERSONAL])
    def overview(request: Request) -> Response:
        every = store.read(studies.names)
        standings = [standing_of(request, name) for name in every]
        return page(request, "studies.html", standings=standings, researches=_researches(request))

    @router.api_route("/{name}", methods=READ, dependencies=[PERSONAL])
    def one(request: Request, name: str) -> Response:
        try:
            standing = standing_of(request, name)
        except UnknownStudyError:
            return missing(request)
        return page(
            request, "study.html", standing=standing, Stage=Stage, researches=_researches(request)
        )

    @router.get("/{name}/rate", dependencies=[FIRST_CONTACT])
    def give(request: Request, name: str) -> Response:
        voter = request.state.voter
        if voter is None:
            return note(request, name, NO_COOKIE, 403)
        try:
            chosen, shown = next_item(name, voter)
        except UnknownStudyError:
            return missing(request)
        except (RatingRefusedError, BusyError, LimitError) as error:
            return refused(request, name, error)
        if shown is None:
            is_full = chosen.stage is Stage.FULL
            headers = PRIVATE | ({"Retry-After": str(TRY_AGAIN_S)} if is_full else {})
            status = 503 if is_full else 200
            values = {"name": name, "stage": chosen.stage, "Stage": Stage}
            return page(request, "study_end.html", status, headers, **values)
        return _item_page(request, store.read(studies.plan_of, name), shown)

    def _item_page(
        request: Request, plan: StudyPlan, shown: Shown, problem: str | None = None
    ) -> Response:
        texts = (one["text"] for side in shown.steps for one in side if one["kind"] in AS_MARKDOWN)
        return page(
            request,
            "rate.html",
            422 if problem else 200,
            plan=plan,
            shown=shown,
            problem=problem,
            key=str(uuid.uuid4()),
            letters=LETTERS,
            choices=CHOICES,
            choice_words=STUDY_CHOICE_WORDS,
            reasons=REASONS,
            confidence=CONFIDENCE,
            longest_comment=LONGEST_COMMENT,
            step_words=STEP_WORDS,
            markdown_kinds=AS_MARKDOWN,
            as_markdown=sum(map(len, texts)) <= MOST_RENDERED,  # of all sides or of none
            at_first=SHOWN_AT_FIRST,
        )

    def save(request: Request, name: str, voter: Voter, sent: _Sent) -> Response:
        try:
            if sent.choice is None:
                _, shown = next_item(name, voter)
                if shown is None:
                    return RedirectResponse(f"/studies/{name}/rate", 303, PRIVATE)
                problem = NO_CHOICE if len(shown.answers) == 2 else NO_PLACES
                return _item_page(request, store.read(studies.plan_of, name), shown, problem)
            with store.writing() as session:
                rating = (sent.token, sent.key, sent.choice)
                studies.rate(session, name, voter.id, *rating, now())
            raters.stay(name, voter.id)
        except UnknownStudyError:
            return missing(request)
        except (RatingRefusedError, BusyError, LimitError) as error:
            return refused(request, name, error)
        except StoreError:
            return note(request, name, NOT_SAVED, 503, sent)
        return RedirectResponse(f"/studies/{name}/rated/{sent.token}", 303, PRIVATE)

    @router.post("/{name}/rate", dependencies=[PERSONAL])
    async def rate(request: Request, name: str) -> Response:
        voter, form = request.state.voter, await request.form()
        if voter is None:
            return await run_in_threadpool(note, request, name, NO_COOKIE, 403)
        sent = _sent(form)
        if sent is None:
            return await run_in_threadpool(missing, request)
        return await run_in_threadpool(save, request, name, voter, sent)

    @router.post("/{name}/leave", dependencies=[PERSONAL])
    def leave(request: Request, name: str) -> Response:
        voter = request.state.voter
        if voter is None:
            return note(request, name, NO_COOKIE, 403)
        try:
            store.write(studies.leave, name, voter.id)
        except UnknownStudyError:
            return missing(request)
        raters.leave(name, voter.id)
        return RedirectResponse(f"/studies/{name}", 303, PRIVATE)

    @router.api_route("/{name}/rated/{token}", methods=READ, dependencies=[PERSONAL])
    def rated(request: Request, name: str, token: str) -> Response:
        voter = request.state.voter
        if voter is None or not WHOLE.fullmatch(token):
            return missing(request)
        try:
            shown = store.read(studies.rated, name, voter.id, int(token), now())
        except UnknownStudyError:
            return missing(request)
        return _item_page(request, store.read(studies.plan_of, name), shown)

    def keep(request: Request, name: str, voter: Voter, token: int, form: FormData) -> Response:
        try:
            remarks = _remarks(form, store.read(studies.plan_of, name))
            store.write(studies.remark, name, voter.id, token, remarks)
        except UnknownStudyError:
            return missing(request)
        except StoreError:
            return note(request, name, NOT_SAVED, 503)
        return RedirectResponse(f"/studies/{name}/rate", 303, PRIVATE)

    @router.post("/{name}/rated/{token}", dependencies=[PERSONAL])
    async def remark(request: Request, name: str, token: str) -> Response:
        voter, form = request.state.voter, await request.form()
        if voter is None or not WHOLE.fullmatch(token):
            return await run_in_threadpool(missing, request)
        return await run_in_threadpool(keep, request, name, voter, int(token), form)

    @router.api_route("/{name}/results", methods=READ, dependencies=[RESEARCHERS])
    def results(request: Request, name: str) -> Response:
        voter = request.state.voter
        try:
            may_look = False
            if voter is not None:
                with store.writing() as session:  # raters who open the figures can no longer rate
                    may_look = studies.look(session, name, voter, now())
            if not may_look:
                return note(request, name, OWN_FIRST, 403)
            status = read_status(store, name)
        except UnknownStudyError:
            return missing(request)
        return page(request, "study_results.html", status=status)

    return router


def _researches(request: Request) -> bool:
    person = getattr(request.state, "person", None)
    return person is not None and person.role.covers(Role.RESEARCHER)


def _text(form: FormData, name: str) -> str:
    value = form.get(name)
    return value if isinstance(value, str) else ""


def _sent(form: FormData) -> _Sent | None:
    """Read a rating that was sent; None where it is none that a page of ours sends."""
    token, key, choice = (_text(form, name) for name in ("token", "key", "choice"))
    if not WHOLE.fullmatch(token) or not KEY.fullmatch(key):
        return None
    fields = {name: value for name, value in form.items() if isinstance(value, str)}
    places = [_text(form, f"place-{n}") for n in range(len(LETTERS)) if f"place-{n}" in form]
    chosen = choice if choice in (*CHOICES, SKIP) else _ranked(places)
    return _Sent(int(token), key, chosen, fields)


def _ranked(places: Sequence[str]) -> list[list[int]] | None:
    """Order answers by the places that were given; None where one of them has none.

    >>> _ranked(["2", "1", "2"])
    [[1], [0, 2]]
    """
    if not places or not all(WHOLE.fullmatch(place) for place in places):
        return None
    together: dict[int, list[int]] = {}
    for answer, place in enumerate(places):
        together.setdefault(int(place), []).append(answer)
    return [together[place] for place in sorted(together)]


def _remarks(form: FormData, plan: StudyPlan) -> StudyRemarks:
    """Read what was said beside a choice, without what no form of ours sends."""
    confidence = _text(form, "confidence")
    level = int(confidence) if WHOLE.fullmatch(confidence) else None
    asked = {one.name: (_text(form, f"rubric-{one.name}"), one.answers) for one in plan.rubric}
    return StudyRemarks(
        {
            side: [one.value for one in Reason if one in form.getlist(f"reasons-{side}")]
            for side in ("a", "b")
        },
        storable(_text(form, "comment").strip())[:LONGEST_COMMENT],
        level if level in CONFIDENCE else None,
        {name: answer for name, (answer, answers) in asked.items() if answer in answers},
    )


# Evaluation cards and published boards

PURPOSES = {
    Purpose.PURCHASE: Sentence("To choose what to buy or to run"),
    Purpose.CAPABILITY: Sentence("What models can do"),
    Purpose.RISK: Sentence("To learn what could go wrong"),
    Purpose.DEVELOPMENT: Sentence("To improve a model or a system"),
}
SOURCES = {TYPED: Sentence("written by voters"), "recorded": Sentence("of recordings")}
KINDS = {
    VoterKind.INVITED: Sentence("invited"),
    VoterKind.LOGIN: Sentence("by login"),
    VoterKind.ANONYMOUS: Sentence("anonymous"),
    VoterKind.SIMULATED: Sentence("simulated"),
    VoterKind.APPLICATION: Sentence("of an application"),
}
STYLE = Path(__file__).parent / "static" / "pages.css"


def evaluation_page(card: EvaluationCard, visit: Visit = ANYBODY) -> str:
    """Page of the card."""
    return filled("evaluation.html", visit, **_of_card(card, visit.language))


def bundle_page(board: PublishedBoard, card: EvaluationCard, withheld: bool) -> str:
    """Page of a published board and its card, as a file that loads nothing.

    Parameters
    ----------
    withheld : bool
        Whether the votes are not beside it.
    """
    intervals = [_interval(row) for row in board.ratings]
    content = filled(
        "bundle.html",
        ANYBODY,
        board=board,
        rows=list(zip(board.ratings, intervals, strict=True)),
        axis=Scale.of_ratings(intervals, board.method.anchor_mean),
        updated=datetime.fromisoformat(board.method.updated),
        withheld=withheld,
        **_of_card(card, ANYBODY.language),
    )
    return as_file(f"Leaderboard · {ARENA_NAME}", content, STYLE.read_text(encoding="utf-8"))


def _of_card(card: EvaluationCard, language: Language) -> dict[str, Any]:
    words = words_in(language)
    each: Mapping[str, Mapping[Any, Sentence]] = {
        "sources": SOURCES,
        "choices": CHOICE_WORDS,
        "kinds": KINDS,
    }
    return {"card": card, "purposes": PURPOSES} | {
        name: {value: words(sentence) for value, sentence in by.items()}
        for name, by in each.items()
    }


def _interval(row: PublishedRow) -> PastRating:
    return PastRating(
        model=row.model,
        rating=row.rating,
        lower=-inf if row.lower is None else row.lower,
        upper=inf if row.upper is None else row.upper,
    )
