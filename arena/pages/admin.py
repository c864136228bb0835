"""The admin area: what it shows, and what administrators do there."""

import json
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, date, datetime, time, timedelta
from functools import partial
from pathlib import Path
from shutil import rmtree
from types import MappingProxyType
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Form
from starlette.background import BackgroundTask
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import FileResponse, HTMLResponse, RedirectResponse, Response

from arena.boards import integrity
from arena.boards.integrity import MOST_BUSY, MOST_SHOWN, VoterCheck
from arena.boards.leaderboard import make_file
from arena.domain.battle import Sampler
from arena.domain.model import Model, Release, Standing
from arena.domain.people import INVITES, PROXY, Erased, Invitation, Role
from arena.domain.room_view import EXPORT_ENDINGS, EXPORTS, Trial
from arena.domain.vote import DEFAULT, FAILURES, Days
from arena.endpoints import trial
from arena.endpoints.client import origin_of
from arena.endpoints.offline import load_recordings
from arena.errors import RoomError, SettingsError, UnknownPersonError
from arena.guard.access import ADMINS, LONGEST_NAME, new_token, token_hash
from arena.pages.rendering import PLACE, READ, filled, visit_to
from arena.pages.rendering import origin_of as origin_of_page
from arena.parts import Parts
from arena.settings import models_in
from arena.store import erasing, kept_boards, log, people, voting
from arena.store import roster as roster_rows
from judge.studies.gold import accuracies
from rating.sentences import Sentence, counted
from rating.tables.files import storable
from rating.tables.voter_report import MOST

ACTS = {
    "invite": Sentence("invited"),
    "change person": Sentence("changed a person"),
    "change invitation": Sentence("changed the role in the invitation of"),
    "revoke invitation": Sentence("revoked the invitation of"),
    "sign out": Sentence("ended the session"),
    "add source": Sentence("registered the application"),
    "change source": Sentence("changed the application"),
    "revoke source": Sentence("revoked the application"),
    "exclude": Sentence("excluded votes of"),
    "readmit": Sentence("reinstated votes of"),
    "apply rule": Sentence("applied the rule"),
    "add model": Sentence("added the model"),
    "enable model": Sentence("enabled the model"),
    "disable model": Sentence("disabled the model"),
    "pause model": Sentence("paused the model"),
    "retire model": Sentence("retired the model"),
    "pre-release model": Sentence("let battle unnamed the model"),
    "release model": Sentence("released the model"),
    "weigh model": Sentence("changed the weight of"),
    "export": Sentence("exported"),
    "erase words": Sentence("deleted the texts of"),
    "expire": Sentence("let go what was kept long enough:"),
    "clear space": Sentence("wrote the files again"),
}
"""Acts in the log, before the text or id that they are about."""

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


RELEASES = {
    Release.HIDDEN: Sentence("hidden"),
    Release.PRE_RELEASE: Sentence("pre-release"),
    Release.RELEASED: Sentence("released"),
}

ROLES = {
    Role.VOTER: Sentence("voter"),
    Role.RESEARCHER: Sentence("researcher"),
    Role.ADMIN: Sentence("admin"),
}
INVITED = Sentence("by an invitation")
INVITED_FOR = timedelta(days=7)
NO_CHOICE = Sentence("Nothing was changed: choose what is to become of the user or invitation.")
NOBODY = Sentence("Nothing was changed: there is no such user or pending invitation any more.")
OWN_ROLE = Sentence(
    "Nothing was changed: another admin can change your role or block you, and you cannot."
)

PRIVATE = {"Cache-Control": "private, no-store"}
"""Of everything in the admin area: nothing of it stays in a browser or a proxy."""
NO_PLACE = Sentence("There is no such place in the log. Here it begins with the newest act.")
GIVEN = Sentence("This arena was started on models that it found: start it with a roster.")

Field = Annotated[str, Form()]
Fields = Annotated[Sequence[str], Form()]


def admin_router(parts: Parts) -> APIRouter:
    """Routes of the admin area."""
    router = APIRouter(prefix="/admin", include_in_schema=False, dependencies=[ADMINS])
    store = parts.store

    @router.api_route("", methods=READ)
    def overview(request: Request) -> Response:
        budget, viewer = parts.settings.max_dollars_per_day, request.state.voter.id
        return _panel(
            parts,
            request,
            "overview",
            status=store.read(kept_boards.status, parts.now(), budget, viewer),
            race=parts.race.read() if parts.race else None,
            failures=FAILURES,
            failed_in_a_row=roster_rows.FAILED_IN_A_ROW,
        )

    @router.api_route("/log", methods=READ)
    def log(request: Request, before: str = "") -> Response:
        known = PLACE.fullmatch(before)
        acts, older_than = store.read(people.acts, int(before) if known else None)
        values: dict[str, Any] = {"acts": acts, "older_than": older_than, "newest": not known}
        values |= {"acted": ACTS, "values": ROLES | STANDINGS | RELEASES}
        problem = NO_PLACE if before and not known else None
        return _panel(parts, request, "log", problem, 404, **values)

    @router.api_route("/policies", methods=READ)
    def policies(request: Request) -> Response:
        boards = [board.read(waits=True) for board in parts.boards.values()]
        held = store.read(voting.held)
        return _panel(parts, request, "policies", boards=boards, held=held, most=MOST)

    for add in (_add_exports, _add_votes, _add_erasing, _add_people, _add_models):
        add(router, parts)
    return router


def _panel(
    parts: Parts,
    request: Request,
    panel: str,
    problem: str | None = None,
    status_of_problem: int = 422,
    **values: object,
) -> Response:
    """Answer with a panel that nobody keeps."""
    page = filled(
        f"admin/{panel}.html",
        visit_to(request, parts.store),
        **{"done": None, "beside": False} | values,
        problem=problem,
        as_json=partial(json.dumps, ensure_ascii=False),
        now=parts.now(),
    )
    return HTMLResponse(page, status_of_problem if problem else 200, PRIVATE)


def _add_exports(router: APIRouter, parts: Parts) -> None:
    """Add what leaves the arena as a file."""

    def shown(
        request: Request, asked: Mapping[str, str], problem: Sentence | None = None
    ) -> Response:
        values: dict[str, Any] = {"asked": asked, "kinds": KIND_WORDS, "endings": EXPORT_ENDINGS}
        return _panel(parts, request, "exports", problem, **values)

    @router.api_route("/exports", methods=READ)
    def exports(request: Request) -> Response:
        first = parts.now().date().replace(day=1)
        following = (first + timedelta(days=32)).replace(day=1)
        month = {"since": first.isoformat(), "until": following.isoformat()}
        return shown(request, {"what": EXPORTS[0], "ending": EXPORT_ENDINGS[0]} | month)

    @router.post("/exports")
    def export(
        request: Request,
        what: Field = "",
        ending: Field = "",
        since: Field = "",
        until: Field = "",
    ) -> Response:
        settings = parts.settings
        try:
            days = Days(_day(since), _day(until))
            file = make_file(settings.database, what, ending, days, settings.vote_within())
        except RoomError as error:
            asked = {"what": what, "ending": ending, "since": since, "until": until}
            return shown(request, asked, error.args[0])
        bounds = {"since": days.since, "until": days.until} if what != "ratings" else {}
        detail = {name: day.date().isoformat() for name, day in bounds.items() if day}
        by = request.state.person.id
        try:
            parts.store.write(
                people.note, by, "export", what, {"as": ending, **detail}, parts.now()
            )
        except BaseException:
            rmtree(file.parent)
            raise
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


def _add_votes(router: APIRouter, parts: Parts) -> None:
    """Add what is about voters, battles, and whether their votes count."""
    store, check, policy = parts.store, VoterCheck(parts.store, parts.now), DEFAULT.name

    def shown(
        request: Request, panel: str, problem: Sentence | None = None, typed: Any = None
    ) -> Response:
        values: dict[str, Any]
        if panel == "battles":
            values = {"flagged": store.read(voting.flagged, policy, MOST_SHOWN)}
        else:
            # In this order: an examination that ends in between is under way, and not missing.
            panel, examining, newest = "voters", check.examining, check.newest
            right = accuracies(store.read(log.gold_votes))[:MOST_SHOWN]
            values = {
                "left_out": store.read(voting.left_out, policy, MOST_SHOWN),
                "busiest": store.read(voting.busiest, MOST_BUSY),
                "suspects": newest["suspects"] if newest else (),
                "gold": right,
            }
            ids = {one.voter for some in values.values() for one in some}
            values |= {
                "names": store.read(people.names, ids),
                "examination": newest,
                "examining": examining,
                "failed": check.problem,
            }
        return _panel(parts, request, panel, problem, done=_done(request), typed=typed, **values)

    for name in ("voters", "battles"):

        @router.api_route(f"/{name}", methods=READ)
        def view(request: Request, panel: str = name) -> Response:
            return shown(request, panel)

    def decided(
        request: Request, panel: str, what: str, decide: Callable[[str], int], typed: Any = None
    ) -> Response:
        try:
            n = decide(request.state.person.id)
        except RoomError as error:
            return shown(request, panel, error.args[0], typed)
        to = "battles" if panel == "battles" else "voters"
        return RedirectResponse(f"/admin/{to}?{what}={n}", 303, PRIVATE)

    @router.post("/exclude")
    @router.post("/readmit")
    def by_hand(
        request: Request,
        target: Fields = (),
        reason: Field = "",
        panel: Field = "voters",
        form: Field = "",
    ) -> Response:
        out = request.url.path.endswith("/exclude")
        typed = {"form": form, "targets": target, "reason": reason}

        def decide(by: str) -> int:
            meant = [*dict.fromkeys(one.strip() for one in target)]
            act: Literal["exclude", "readmit"] = "exclude" if out else "readmit"
            return integrity.decide(store, act, meant, reason, by, parts.now())[1]

        return decided(request, panel, "out" if out else "in", decide, typed)

    @router.post("/voters/examine")
    def examine() -> Response:
        check.begin()
        return RedirectResponse("/admin/voters", 303, PRIVATE)

    @router.post("/voters/apply")
    def apply(request: Request) -> Response:
        def leave_out(by: str) -> int:
            return sum(done["votes"] for done in check.apply(by) if not done["held"])

        return decided(request, "voters", "out", leave_out)


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


def _add_erasing(router: APIRouter, parts: Parts) -> None:
    """Add the routes that delete the texts of a voter, and their votes."""

    def measured(voter: str) -> tuple[list[str], list[str], Erased, str | None]:
        """Measure what there is to erase of a voter, by their id or how it begins.

        Gives the ids of all their devices, the hashes of the judgements that quote them, how
        much there is, and their name if they are a person.
        """
        with parts.store.reading() as session:
            try:
                voters = erasing.voters_of(session, storable(voter))
                judgements, extent = erasing.extent(session, voters)
            except UnknownPersonError:
                msg = Sentence(
                    "%(id)s is not the id of one voter: give all of it, or its first 8 "
                    "characters.",
                    id=repr(voter[:100]),
                )
                raise RoomError(msg) from None
            name = people.names(session, voters[:1]).get(voters[0])
        return voters, judgements, extent, name

    nobody: Mapping[str, Any] = dict.fromkeys(("voters", "extent", "name", "erased", "tombstone"))

    def shown(
        request: Request,
        values: Mapping[str, Any],
        problem: Sentence | None = None,
        status: int = 422,
    ) -> Response:
        """Show what would be deleted, or what was; without a voter, ask for an id."""
        return _panel(parts, request, "erase", problem, status, **{**nobody, **values})

    @router.api_route("/voters/erase", methods=READ)
    def before(request: Request, voter: str = "") -> Response:
        if not voter.strip():
            return shown(request, {})
        try:
            voters, _, extent, name = measured(voter.strip())
        except RoomError as error:
            return shown(request, {}, error.args[0], 404)
        return shown(request, {"voters": voters, "extent": extent, "name": name})

    @router.post("/voters/erase")
    def erase(
        request: Request, voter: Field = "", votes: Field = "", typed: Field = ""
    ) -> Response:
        tombstone = votes == "tombstone"
        try:
            voters, judgements, extent, name = measured(voter.strip())
        except RoomError as error:
            return shown(request, {"tombstone": tombstone}, error.args[0])
        values = {"voters": voters, "extent": extent, "name": name, "tombstone": tombstone}
        if votes not in ("stay", "tombstone"):
            problem = Sentence("Nothing was deleted: choose whether the votes stay.")
            return shown(request, values, problem)
        if typed.strip() != (mark := voters[0][:8]):
            problem = Sentence(
                "Nothing was deleted: you typed %(typed)s, and the id begins with %(mark)s.",
                typed=repr(typed[:40]),
                mark=mark,
            )
            return shown(request, values, problem)
        by = request.state.person.id
        gone = parts.store.write(
            erasing.erase, voters, judgements, by, parts.now(), forget=True, tombstone=tombstone
        )
        return shown(request, values | {"extent": gone, "erased": True})


def _add_people(router: APIRouter, parts: Parts) -> None:
    """Add the page of users: who they are, what they may do, and who is invited."""
    store = parts.store

    def shown(
        request: Request, problem: Sentence | None = None, link: str = "", to: str = ""
    ) -> Response:
        with store.reading() as session:
            everybody = people.matching(session, "")
            pending = people.pending(session, parts.now())
        return _panel(
            parts,
            request,
            "people",
            problem,
            everybody=everybody,
            pending=pending,
            roles=ROLES,
            issuers={INVITES: INVITED, PROXY: Sentence("by a proxy")},
            days=INVITED_FOR.days,
            longest_name=LONGEST_NAME,
            link=link,
            to=to,
            once=new_token(),
        )

    @router.api_route("/people", methods=READ)
    def everybody(request: Request) -> Response:
        return shown(request)

    @router.post("/people/change")
    def change(
        request: Request, person: Field = "", act: Field = "", role: Field = ""
    ) -> Response:
        changes: Mapping[str, Mapping[str, Any]] = {
            "block": {"blocked": True},
            "unblock": {"blocked": False},
            "sign-out": {"sign_out": True},
        }
        what = {"role": Role(role)} if act == "role" and role in list(Role) else changes.get(act)
        by = request.state.person.id
        if what is None:
            return shown(request, NO_CHOICE)
        if person == by and act != "sign-out":
            return shown(request, OWN_ROLE)
        try:
            store.write(people.change, person, by, parts.now(), **what)
        except UnknownPersonError:
            return shown(request, NOBODY)
        return RedirectResponse("/admin/people", 303, PRIVATE)

    @router.post("/people/invitation")
    def change_invitation(
        request: Request, invitation: Field = "", act: Field = "", role: Field = ""
    ) -> Response:
        known = PLACE.fullmatch(invitation)
        if not known or (act != "revoke" and role not in list(Role)):
            return shown(request, NO_CHOICE)
        given, by = None if act == "revoke" else Role(role), request.state.person.id
        try:
            store.write(people.change_invitation, int(invitation), by, parts.now(), role=given)
        except UnknownPersonError:
            return shown(request, NOBODY)
        return RedirectResponse("/admin/people", 303, PRIVATE)

    @router.post("/people/invite")
    def invite(request: Request, name: Field = "", role: Field = "", once: Field = "") -> Response:
        to = storable(name.strip())
        if not 0 < len(to) <= LONGEST_NAME or role not in list(Role):
            return shown(
                request, Sentence("Give a name of up to %(n)s characters.", n=LONGEST_NAME)
            )
        now, new, by = parts.now(), Invitation(Role(role), to, 1), request.state.person.id
        # The same form sent again, by a reload, makes the same link and so no second invitation.
        form = once if len(once) >= len(new_token()) else new_token()
        token = token_hash(f"{form} {role} {to}")
        try:
            store.write(people.invite, new, token_hash(token), now + INVITED_FOR, now, by)
        except UnknownPersonError:
            return shown(request, NOBODY)
        return shown(request, link=f"{origin_of_page(request)}/join/{token}", to=to)


def _add_models(router: APIRouter, parts: Parts) -> None:
    """Add what is about who battles."""
    store, weighted = parts.store, parts.settings.sampler is Sampler.WEIGHTED

    def shown(
        request: Request,
        problem: str | None = None,
        *,
        text: str = "",
        trials: Mapping[str, Trial] = MappingProxyType({}),
    ) -> Response:
        entries = store.read(roster_rows.entries) if parts.roster else ()
        needing = {one.model.id: one.model.api_key_env for one in entries}
        return _panel(
            parts,
            request,
            "models",
            problem,
            beside=bool(text),
            entries=sorted(entries, key=lambda one: one.paused is None),
            failures=FAILURES,
            failed_in_a_row=roster_rows.FAILED_IN_A_ROW,
            keyless={id for id, name in needing.items() if name and not parts.keys.get(name)},
            unusable=store.read(roster_rows.unusable) if parts.roster else {},
            paused=parts.battles.paused(),
            trials=trials,
            text=text,
            standings=STANDINGS,
            example=EXAMPLE,
            releases=RELEASES,
        )

    def done(request: Request, act: Callable[[Any, str], object], text: str = "") -> Response:
        """Let who asks do it, and battle by it; ``text`` is shown again where it is refused."""
        try:
            store.write(act, request.state.person.id)
        except RoomError as error:
            return shown(request, error.args[0], text=text)
        if parts.roster:
            parts.roster.look()
        return RedirectResponse("/admin/models", 303, PRIVATE)

    @router.api_route("/models", methods=READ)
    def models(request: Request) -> Response:
        return shown(request)

    def changed(request: Request, model: str, **what: Any) -> Response:
        def act(session: Any, by: str) -> None:
            roster_rows.change(session, model, by, parts.now(), weighted=weighted, **what)

        return done(request, act)

    @router.post("/models/place")
    def place(request: Request, model: Field = "", standing: Field = "") -> Response:
        if standing not in list(Standing):
            return shown(request, Sentence("Choose what is to become of the model."))
        return changed(request, model, standing=Standing(standing))

    @router.post("/models/weigh")
    def weigh(request: Request, model: Field = "", weight: Field = "") -> Response:
        try:
            number = float(weight)
        except ValueError:
            return shown(request, Sentence(roster_rows.NO_WEIGHT, weight=repr(weight[:40])))
        return changed(request, model, weight=number)

    @router.post("/models/release")
    def release(request: Request, model: Field = "", release: Field = "") -> Response:
        if release not in list(Release):
            return shown(request, Sentence("Choose what is to become of the model."))

        def act(session: Any, by: str) -> None:
            roster_rows.release(session, model, Release(release), by, parts.now())

        return done(request, act)

    @router.post("/models/add")
    def add(request: Request, roster: Field = "") -> Response:
        try:
            models = _pasted(parts, roster)
        except RoomError as error:
            return shown(request, error.args[0], text=roster)

        def act(session: Any, by: str) -> None:
            roster_rows.add(session, models, by, parts.now())

        return done(request, act, roster)

    @router.post("/models/test")
    async def test(request: Request) -> Response:
        entries = await run_in_threadpool(store.read, roster_rows.entries) if parts.roster else ()
        asked = [one.model for one in entries if one.standing is not Standing.RETIRED]
        try:
            recordings = await run_in_threadpool(load_recordings, asked)
        except SettingsError as error:
            return await run_in_threadpool(shown, request, str(error))
        prompts = {model_id: tuple(recorded) for model_id, recorded in recordings.items()}
        trials = await trial.try_all(parts.endpoints, asked, prompts)
        for model_id, tried in trials.items():
            if tried.seconds is not None:
                parts.battles.resume(model_id)
        return await run_in_threadpool(partial(shown, request, trials=trials))


def _pasted(parts: Parts, text: str) -> tuple[Model, ...]:
    """Read a roster that came over the network: it names no files, and sends no key elsewhere.

    An administrator on the pages may have no access to the server's files and environment.
    """
    if parts.roster is None:
        raise RoomError(GIVEN)
    origins: dict[str, set[str]] = {}
    for one in parts.store.read(roster_rows.entries):
        if one.model.api_key_env:
            sent_to = origins.setdefault(one.model.api_key_env, set())
            with suppress(SettingsError):  # nothing can be sent there
                sent_to.add(origin_of(one.model.endpoint))
    try:
        models = models_in(text, Path("roster"))
        for model in models:
            _require_ours(model, origins)
    except SettingsError as error:
        raise RoomError(str(error)) from None
    return models


def _require_ours(model: Model, origins: Mapping[str, Collection[str]]) -> None:
    if model.recording:
        raise RoomError(Sentence("A recording is a file: add it by arena models add."))
    if model.api_key_env is None:
        return
    sent_to, origin = origins.get(model.api_key_env), origin_of(model.endpoint)
    if not sent_to:
        msg = Sentence(
            "No model has the key %(name)s yet, so it is sent nowhere: add the first model with "
            "it by arena models add.",
            name=repr(model.api_key_env[:100]),
        )
        raise RoomError(msg)
    if origin not in sent_to:
        msg = Sentence(
            "The key %(name)s is sent to %(origins)s alone: add a model at %(origin)s with it by "
            "arena models add.",
            name=repr(model.api_key_env[:100]),
            origins=", ".join(sorted(sent_to)),
            origin=origin[:100],
        )
        raise RoomError(msg)
