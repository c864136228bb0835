"""Each page of the admin room as HTML, from plain values.

Routes of the admin area; all of them are for administrators.
"""

import json
import math
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from functools import partial
from pathlib import Path
from shutil import rmtree
from types import MappingProxyType
from typing import Annotated, Any, Self

from fastapi import APIRouter, Form
from starlette.background import BackgroundTask
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import FileResponse, HTMLResponse, RedirectResponse, Response

from arena.domain.board_view import Board
from arena.domain.model import Release, Standing
from arena.domain.room_view import (
    EXPORT_ENDINGS,
    EXPORTS,
    Acts,
    Leaver,
    RaceStanding,
    RosterView,
    Status,
    Trial,
    VotersView,
)
from arena.domain.vote import FAILURES, Days
from arena.errors import RoomError
from arena.guard.access import ADMINS
from arena.pages.rendering import PLACE, READ, Visit, environment, utc_now
from rating.sentences import Sentence, counted
from rating.tables.voter_report import MOST

ACTS = {
    "invite": Sentence("invited"),
    "change person": Sentence("changed a person"),
    "add source": Sentence("registered the application"),
    "change source": Sentence("changed the application"),
    "revoke source": Sentence("revoked the application"),
    "exclude": Sentence("excluded votes of"),
    "readmit": Sentence("took in votes of"),
    "apply rule": Sentence("applied the rule"),
    "add model": Sentence("added the model"),
    "enable model": Sentence("enabled the model"),
    "disable model": Sentence("disabled the model"),
    "retire model": Sentence("retired the model"),
    "pre-release model": Sentence("let battle unnamed the model"),
    "release model": Sentence("released the model"),
    "weigh model": Sentence("changed the weight of"),
    "export": Sentence("exported"),
    "erase words": Sentence("erased the words of"),
    "expire": Sentence("let go what was kept long enough:"),
    "clear space": Sentence("wrote the files again"),
}
"""What somebody did, before the words or the id that it is about."""

EXAMPLE = """[[models]]
id = "basalt-large"
name = "Basalt Large"
endpoint = "https://api.example.com/v1"
model = "basalt-large-2026-10"
api_key_env = "BASALT_KEY"
"""
"""Table of a model, as it is pasted."""

KIND_WORDS = dict(
    zip(
        EXPORTS,
        (Sentence("Battles"), Sentence("Answers"), Sentence("Votes"), Sentence("Ratings")),
        strict=True,
    )
)

STANDINGS = {
    Standing.ENABLED: Sentence("enabled"),
    Standing.DISABLED: Sentence("disabled"),
    Standing.RETIRED: Sentence("retired"),
}


@dataclass(frozen=True, slots=True)
class _AskedExport:
    """What somebody asks to be exported, in the words of the form.

    Attributes
    ----------
    since, until : str
        Days, such as 2026-11-01; empty for no bound.
    """

    what: str
    ending: str
    since: str
    until: str

    @classmethod
    def of_month(cls, today: date) -> Self:
        """Ask for the battles of the month in which a day lies."""
        first = today.replace(day=1)
        following = (first + timedelta(days=32)).replace(day=1)
        return cls(EXPORTS[0], EXPORT_ENDINGS[0], first.isoformat(), following.isoformat())


RELEASES = {
    Release.HIDDEN: Sentence("hidden"),
    Release.PRE_RELEASE: Sentence("pre-release"),
    Release.RELEASED: Sentence("released"),
}


def overview_page(status: Status, race: RaceStanding | None, now: datetime, visit: Visit) -> str:
    """Page of the last day, and of the race that is on."""
    return _filled("overview", visit, status=status, race=race, failures=FAILURES, now=now)


def _filled(
    panel: str,
    visit: Visit,
    *,
    problem: str | None = None,
    done: Sentence | None = None,
    **values: object,
) -> str:
    template = environment(visit.language).get_template(f"admin/{panel}.html")
    as_json = partial(json.dumps, ensure_ascii=False)
    return template.render(values, visit=visit, problem=problem, done=done, as_json=as_json)


PRIVATE = {"Cache-Control": "private, no-store"}
"""Of everything in the room: nothing of it stays in a browser or a proxy."""
NO_PLACE = Sentence("There is no such place in the log. Here it begins with the newest act.")

Field = Annotated[str, Form()]


@dataclass(frozen=True, slots=True)
class Room:
    """What the room shows and does; its callables block, and those that do raise a `RoomError`.

    Attributes
    ----------
    status : callable
        From the voter's id of who reads it to how the arena does.
    race : callable
        How the race stands that is on; None where none is.
    acts : callable
        From the place in the log to end before (None for the newest) to acts.
    held : callable
        Rules that are held, with the share of the votes that each would exclude.
    exclude, readmit : callable
        From the id of a voter or battle, the reason, and who decides, to how many votes change.
    examine : callable
        Begins an examination of the voters.
    apply : callable
        Excludes what the rules name by the newest one, for who decides; gives how many votes.
    leaver : callable
        From the id of a voter, or how it begins, to how much there is to erase.
    erase : callable
        Erases the words of a voter and who they are, and their votes if the second argument says
        so, for who decides; gives what went.
    export : callable
        From what is exported, as what, of which days, and for whom, to a file in a folder of its
        own, which goes once it is sent.
    """

    status: Callable[[str], Status]
    race: Callable[[], RaceStanding | None]
    acts: Callable[[int | None], Acts]
    voters: Callable[[], VotersView]
    flagged: Callable[[], Sequence[Any]]
    boards: Callable[[], Sequence[Board]]
    held: Callable[[], Mapping[str, float]]
    exclude: Callable[[str, str, str], int]
    readmit: Callable[[str, str, str], int]
    examine: Callable[[], None]
    apply: Callable[[str], int]
    leaver: Callable[[str], Leaver]
    erase: Callable[[str, bool, str], Leaver]
    export: Callable[[str, str, Days, str], Path]
    roster: "RosterDesk"


@dataclass(frozen=True, slots=True)
class RosterDesk:
    """What is shown of the roster, and done to it; only `try_all` does not block.

    Attributes
    ----------
    place : callable
        Lets a model, by its id, battle, rest or leave, for who decides.
    release : callable
        Lets a hidden model battle unnamed, or gives it its name, likewise.
    weigh : callable
        Sets how often a model is drawn, likewise.
    add : callable
        Adds the models of a roster that is a text, likewise.
    try_all : callable
        Asks all that have not left for a word; gives what became of it by id.
    """

    view: Callable[[], RosterView]
    place: Callable[[str, Standing, str], None]
    release: Callable[[str, Release, str], None]
    weigh: Callable[[str, float, str], None]
    add: Callable[[str, str], None]
    try_all: Callable[[], Awaitable[Mapping[str, Trial]]]


def admin_router(room: Room, visit_of: Callable[[Request], Visit]) -> APIRouter:
    """Routes of the admin room.

    Parameters
    ----------
    visit_of : callable
        What a page takes from who asks for it; may block.
    """
    router = APIRouter(prefix="/admin", include_in_schema=False, dependencies=[ADMINS])

    @router.api_route("", methods=READ)
    def overview(request: Request) -> Response:
        status = room.status(request.state.voter.id)
        page = overview_page(status, room.race(), utc_now(), visit_of(request))
        return _private(page)

    @router.api_route("/log", methods=READ)
    def log(request: Request, before: str = "") -> Response:
        known = PLACE.fullmatch(before)
        values: dict[str, Any] = {
            "acts": room.acts(int(before) if known else None),
            "newest": not known,
        }
        problem = NO_PLACE if before and not known else None
        page = _filled("log", visit_of(request), problem=problem, acted=ACTS, **values)
        return _private(page, 404 if problem else 200)

    @router.api_route("/policies", methods=READ)
    def policies(request: Request) -> Response:
        values: dict[str, Any] = {"boards": room.boards(), "held": room.held(), "most": MOST}
        return _private(_filled("policies", visit_of(request), **values))

    _add_exports(router, room, visit_of)
    _add_votes(router, room, visit_of)
    _add_erasing(router, room, visit_of)
    _add_models(router, room.roster, visit_of)
    return router


def _add_exports(router: APIRouter, room: Room, visit_of: Callable[[Request], Visit]) -> None:
    """Add what leaves the arena as a file."""

    def shown(request: Request, asked: _AskedExport, problem: Sentence | None = None) -> Response:
        values: dict[str, Any] = {"asked": asked, "kinds": KIND_WORDS, "endings": EXPORT_ENDINGS}
        page = _filled("exports", visit_of(request), problem=problem, **values)
        return _private(page, 422 if problem else 200)

    @router.api_route("/exports", methods=READ)
    def exports(request: Request) -> Response:
        return shown(request, _AskedExport.of_month(utc_now().date()))

    @router.post("/exports")
    def export(
        request: Request,
        what: Field = "",
        ending: Field = "",
        since: Field = "",
        until: Field = "",
    ) -> Response:
        try:
            days = Days(_day(since), _day(until))
            file = room.export(what, ending, days, request.state.person.id)
        except RoomError as error:
            return shown(request, _AskedExport(what, ending, since, until), error.args[0])
        gone = BackgroundTask(rmtree, file.parent)
        return FileResponse(file, filename=file.name, headers=PRIVATE, background=gone)


def _day(text: str) -> datetime | None:
    """Read the beginning of a day, in UTC; empty for none."""
    try:
        return datetime.combine(date.fromisoformat(text), time(), UTC) if text else None
    except ValueError as error:
        raise RoomError(
            Sentence("%(day)s is no day: write 2026-11-01.", day=repr(text[:40]))
        ) from error


def _add_votes(router: APIRouter, room: Room, visit_of: Callable[[Request], Visit]) -> None:
    """Add what is about voters, battles, and whether their votes count."""

    def shown(request: Request, panel: str, problem: Sentence | None = None) -> Response:
        values = {"flagged": room.flagged()} if panel == "battles" else {"view": room.voters()}
        page = _filled(
            "battles" if panel == "battles" else "voters",
            visit_of(request),
            problem=problem,
            done=_done(request),
            now=utc_now(),
            **values,
        )
        return _private(page, 422 if problem else 200)

    for name in ("voters", "battles"):

        @router.api_route(f"/{name}", methods=READ)
        def view(request: Request, panel: str = name) -> Response:
            return shown(request, panel)

    def decided(request: Request, panel: str, what: str, decide: Callable[[str], int]) -> Response:
        try:
            n = decide(request.state.person.id)
        except RoomError as error:
            return shown(request, panel, error.args[0])
        return _back(panel, what, n)

    @router.post("/exclude")
    def exclude(
        request: Request, target: Field = "", reason: Field = "", panel: Field = "voters"
    ) -> Response:
        leave_out = partial(room.exclude, target.strip(), reason)
        return decided(request, panel, "out", leave_out)

    @router.post("/readmit")
    def readmit(
        request: Request, target: Field = "", reason: Field = "", panel: Field = "voters"
    ) -> Response:
        return decided(request, panel, "in", partial(room.readmit, target.strip(), reason))

    @router.post("/voters/examine")
    def examine() -> Response:
        room.examine()
        return RedirectResponse("/admin/voters", 303, PRIVATE)

    @router.post("/voters/apply")
    def apply(request: Request) -> Response:
        return decided(request, "voters", "out", room.apply)


def _add_erasing(router: APIRouter, room: Room, visit_of: Callable[[Request], Visit]) -> None:
    """Add by what somebody's words, and their votes, are erased."""

    def shown(
        request: Request,
        leaver: Leaver | None,
        problem: Sentence | None = None,
        *,
        status: int = 422,
        erased: bool = False,
        tombstone: bool = False,
    ) -> Response:
        """Show what would go, or after it what went; without somebody, ask for an id."""
        values: dict[str, Any] = {"leaver": leaver, "erased": erased, "tombstone": tombstone}
        page = _filled("erase", visit_of(request), problem=problem, **values)
        return _private(page, status if problem else 200)

    @router.api_route("/voters/erase", methods=READ)
    def before(request: Request, voter: str = "") -> Response:
        leaver, problem = None, None
        try:
            leaver = room.leaver(voter.strip()) if voter.strip() else None
        except RoomError as error:
            problem = error.args[0]
        return shown(request, leaver, problem, status=404)

    @router.post("/voters/erase")
    def erase(
        request: Request, voter: Field = "", votes: Field = "", typed: Field = ""
    ) -> Response:
        leaver, tombstone = None, votes == "tombstone"
        try:
            leaver = room.leaver(voter.strip())
            _require_sure(leaver, votes, typed)
            gone = room.erase(leaver.voter, tombstone, request.state.person.id)
        except RoomError as error:
            return shown(request, leaver, error.args[0], tombstone=tombstone)
        return shown(request, gone, erased=True, tombstone=tombstone)


def _require_sure(leaver: Leaver, votes: str, typed: str) -> None:
    if votes not in ("stay", "tombstone"):
        raise RoomError(Sentence("Nothing was erased: choose whether the votes stay."))
    if typed.strip() != leaver.mark:
        raise RoomError(
            Sentence(
                "Nothing was erased: you typed %(typed)s, and the id begins with %(mark)s.",
                typed=repr(typed[:40]),
                mark=leaver.mark,
            )
        )


def _add_models(router: APIRouter, desk: RosterDesk, visit_of: Callable[[Request], Visit]) -> None:
    """Add what is about who battles."""

    def shown(
        request: Request,
        problem: str | None = None,
        *,
        text: str = "",
        trials: Mapping[str, Trial] = MappingProxyType({}),
    ) -> Response:
        page = _filled(
            "models",
            visit_of(request),
            problem=problem,
            view=desk.view(),
            trials=trials,
            text=text,
            standings=STANDINGS,
            example=EXAMPLE,
            releases=RELEASES,
            now=utc_now(),
        )
        return _private(page, 422 if problem else 200)

    def done(request: Request, act: Callable[[str], None], text: str = "") -> Response:
        """Let who asks do it; ``text`` is a roster that was pasted, shown again if refused."""
        try:
            act(request.state.person.id)
        except RoomError as error:
            return shown(request, error.args[0], text=text)
        return RedirectResponse("/admin/models", 303, PRIVATE)

    @router.api_route("/models", methods=READ)
    def models(request: Request) -> Response:
        return shown(request)

    @router.post("/models/place")
    def place(request: Request, model: Field = "", standing: Field = "") -> Response:
        if standing not in list(Standing):
            return shown(request, Sentence("Choose what is to become of the model."))
        return done(request, partial(desk.place, model, Standing(standing)))

    @router.post("/models/release")
    def release(request: Request, model: Field = "", release: Field = "") -> Response:
        if release not in list(Release):
            return shown(request, Sentence("Choose what is to become of the model."))
        return done(request, partial(desk.release, model, Release(release)))

    @router.post("/models/weigh")
    def weigh(request: Request, model: Field = "", weight: Field = "") -> Response:
        try:
            number = float(weight)
        except ValueError:
            number = math.nan
        return done(request, partial(desk.weigh, model, number))

    @router.post("/models/add")
    def add(request: Request, roster: Field = "") -> Response:
        return done(request, partial(desk.add, roster), roster)

    @router.post("/models/test")
    async def test(request: Request) -> Response:
        try:
            trials = await desk.try_all()
        except RoomError as error:
            return await run_in_threadpool(shown, request, error.args[0])
        return await run_in_threadpool(partial(shown, request, trials=trials))


def _back(panel: str, what: str, n: int) -> Response:
    """Lead back to the panel where somebody decided, which then says what became of it."""
    known = "battles" if panel == "battles" else "voters"
    return RedirectResponse(f"/admin/{known}?{what}={n}", 303, PRIVATE)


def _done(request: Request) -> Sentence | None:
    """Describe what became of a decision that leads to this page."""
    asked = request.query_params
    if PLACE.fullmatch(out := asked.get("out", "")):
        return counted(
            "%(n)s vote is excluded from here on.",
            "%(n)s votes are excluded from here on.",
            int(out),
        )
    if PLACE.fullmatch(back := asked.get("in", "")):
        return counted("%(n)s vote counts again.", "%(n)s votes count again.", int(back))
    return None


def _private(page: str, status: int = 200) -> Response:
    """Answer with a page that nobody keeps."""
    return HTMLResponse(page, status, PRIVATE)
