"""Routes of the reading pages, of a visitor's own data, and of prompt mixes.

`pages_router` holds all of them. A browser may keep a page that is the same for everybody but asks
about it each time; a page with a visitor's own data is never stored. Of the prompts that a mix is
counted from nothing is kept.
"""

import json
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import asdict
from datetime import datetime
from functools import cache, partial
from hashlib import sha256
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Lock
from typing import Annotated
from urllib.parse import parse_qs, urlencode

from anyio import CapacityLimiter, to_thread
from fastapi import APIRouter, Form, HTTPException
from starlette.datastructures import QueryParams
from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response

from arena.boards.labelled import CATEGORY, FACETS, LabelBoards, Snapshot
from arena.catalogue import LANGUAGE_COOKIE, Language
from arena.domain.board_view import Board, LabelBoard, MixView, ReleasedTopics
from arena.domain.people import Erased
from arena.domain.vote import APPLICATIONS, BEFORE_EXCLUSIONS, DEFAULT, POLICIES, Voter
from arena.errors import UnknownBattleError
from arena.guard.access import EVERYBODY, PERSONAL, VISITORS
from arena.pages.rendering import (
    MOST_CHARACTERS,
    MOST_PROMPTS,
    PLACE,
    READ,
    battle_page,
    battles_page,
    filled,
    method_page,
    missing_page,
    mix_page,
    my_battles_page,
    origin_of,
    topics_page,
    value_page,
    visit_to,
    with_site_head,
)
from arena.pages.standings import (
    EVENTS,
    LONGEST_QUERY,
    AskedLabel,
    Selection,
    label_page,
    leaderboard_page,
)
from arena.pages.studies import evaluation_page
from arena.parts import Parts
from arena.play.live import stored_snapshot
from arena.store import battles, erasing, log, people, roster, studies
from judge.labels.files import mix_of_prompts, prompts_in
from judge.labels.taggers import CATEGORIES
from judge.labels.topics import LEAST
from judge.render import pages
from judge.report.page import cards_as_html
from rating.errors import DataError
from rating.mix import Mix
from rating.sentences import Sentence
from rating.tables import formats

# Own data: hide, erase, download

PAGES = (
    "leaderboard", "mix", "models", "value", "votes",
    "method", "evaluation", "study", "cards", "topics",
)  # fmt: skip
PRIVATE = {"Cache-Control": "private, no-store"}
AS_FILE = PRIVATE | {"Content-Disposition": 'attachment; filename="my-battles.json"'}


def _own_data_router(parts: Parts) -> APIRouter:
    """Routes of the visitor's own data, for visitors with a cookie."""
    router = APIRouter(include_in_schema=False, dependencies=[PERSONAL])
    store = parts.store

    def asking(request: Request) -> Voter:
        voter: Voter | None = request.state.voter
        if voter is None:
            raise HTTPException(404)
        return voter

    def page(request: Request, extent: Erased, *, erased: bool) -> Response:
        visit = visit_to(request, store)
        return HTMLResponse(
            filled("erase.html", visit, extent=extent, erased=erased), headers=PRIVATE
        )

    @router.post("/votes/{battle_id}/hidden")
    def hide(request: Request, battle_id: str, hidden: Annotated[bool, Form()] = True) -> Response:
        voter = request.state.voter
        if voter is None:
            raise UnknownBattleError
        store.write(erasing.hide, battle_id, voter.id, parts.now() if hidden else None)
        return RedirectResponse(f"/votes#{battle_id}", 303, PRIVATE)

    @router.api_route("/votes/erase", methods=READ)
    def before(request: Request) -> Response:
        voter = asking(request)
        with store.reading() as session:
            theirs = people.devices_of(session, voter.id)
            _, extent = erasing.extent(session, theirs)
        return page(request, extent, erased=False)

    @router.post("/votes/erase")
    def erase(request: Request, sure: Annotated[bool, Form()] = False) -> Response:
        voter = asking(request)
        if not sure:
            return before(request)
        with store.reading() as session:
            theirs = people.devices_of(session, voter.id)
            judgements, _ = erasing.extent(session, theirs)
        with store.writing() as session:  # who they are stays known: they are still here
            now = parts.now()
            gone = erasing.erase(session, theirs, judgements, voter.id, now, forget=False)
        return page(request, gone, erased=True)

    @router.api_route("/votes.json", methods=READ)
    def download(request: Request) -> Response:
        """Give all that is theirs, as far as they may see it: no model before its vote."""
        voter = asking(request)
        with store.reading() as session:
            person = people.person(session, voter.id)
            fought = [
                asdict(stored_snapshot(battles.stored_battle(session, battle_id, voter.id)))
                | beside
                for battle_id, beside in battles.own_battles(session, voter.id).items()
            ]
            theirs = {
                "downloaded": parts.now(),
                "voters": people.devices_of(session, voter.id),
                "name": person and person.name,
                "battles": fought,
                "ratings": studies.own_ratings(session, voter.id),
            }
        body = json.dumps(theirs, ensure_ascii=False, indent=1, default=_moment)
        return Response(body, media_type="application/json", headers=AS_FILE)

    return router


def _moment(value: object) -> str:
    assert isinstance(value, datetime), f"{value!r} is no value of JSON"
    return value.isoformat()


# Prompt mixes

PATIENCE_S = 2.0
"""How long a page waits for boards that were never made before."""
KNOWN = (*CATEGORIES, "other")
"""Categories that an address may name."""
LARGEST = 10**9
"""Share, and number of prompts, that an address may name."""
NO_SHARES = Sentence(
    "Shares of a mix are numbers from 0 to %(most)s, of which one is above 0; prompts are "
    "counted from 1 to %(most)s.",
    most=LARGEST,
)
NO_PROMPTS = Sentence("There is no prompt in what you sent. Write one in each line.")
TOO_MANY = Sentence(
    "A mix can be counted from %(most)s prompts and %(characters)s characters at most. Send "
    "fewer; nothing was kept.",
    most=MOST_PROMPTS,
    characters=MOST_CHARACTERS,
)
NO_VOTES_THERE = Sentence("No vote is on prompts of the kinds that you ask for.")
NO_TEXT = Sentence("What you sent is not text in UTF-8. Nothing was kept.")
NO_POLICY = Sentence("There is no board of that policy. Open the leaderboard without one.")
NOT_YET = Sentence("The boards by kind of prompt are being worked out. Ask again in a moment.")


def _asked_mix(given: QueryParams) -> tuple[dict[str, float], int | None]:
    """Read the mix that an address names: shares, of any sum, and the prompts they were of.

    No shares stand for the mix of the votes.

    Raises
    ------
    DataError
        If a share is no number from 0, none is above 0, or one is beyond all measure.
    """
    try:
        shares = {name: float(given[name]) for name in KNOWN if given.get(name)}
        prompts = int(given["prompts"]) if given.get("prompts") else None
    except ValueError as error:
        raise DataError(NO_SHARES) from error
    sound = all(0 <= share <= LARGEST for share in shares.values()) and (
        prompts is None or 0 < prompts <= LARGEST
    )
    if not sound or (shares and not any(shares.values())):
        raise DataError(NO_SHARES)
    return shares, prompts


def _mix_view(made: Snapshot, shares: Mapping[str, float], prompts: int | None) -> MixView:
    """Rate the models on a mix; categories without a vote do not count.

    Raises
    ------
    DataError
        If there are no boards of categories, or all that is asked for has no vote.
    """
    counts = made.facets[CATEGORY].counts
    there = {count.value: count.share for count in counts}
    asked_for = {name: share for name, share in shares.items() if share}
    chosen = {name: share for name, share in asked_for.items() if name in there}
    if asked_for and not chosen:
        raise DataError(NO_VOTES_THERE)
    left_out = {name: share for name, share in asked_for.items() if name not in there}
    mix = Mix.of_shares(chosen or there or {"other": 1.0})
    if prompts and chosen:
        part = sum(chosen.values()) / sum(asked_for.values())
        mix = Mix(mix.shares, max(1, round(prompts * part)))
    board = made.mix(mix)
    models = [row.model for row in board.report.ratings]
    return MixView(
        policy=made.policy,
        version=made.version,
        updated=made.updated,
        counts=counts,
        board=board,
        left_out=left_out,
        names={model: made.records[model].name for model in models},
        organisations={model: made.records[model].organisation for model in models},
    )


def _mix_router(parts: Parts) -> APIRouter:
    """Routes of the page ``/mix``, and of its JSON."""
    labels = parts.labels
    router = APIRouter(include_in_schema=False, dependencies=[VISITORS])
    tagging = CapacityLimiter(1)

    @router.api_route("/mix", methods=READ)
    def mix(request: Request, policy: str = DEFAULT.name) -> Response:
        if policy not in labels:
            return missing(parts, request, NO_POLICY)
        return page(request, policy)

    def page(request: Request, policy: str, refusal: str = "", status: int = 200) -> Response:
        made, given = labels[policy].read(PATIENCE_S), request.query_params
        view, reason = None, refusal
        try:
            view = _mix_view(made, *_asked_mix(given)) if made else None
        except DataError as error:
            is_fitted = made and made.facets[CATEGORY].fit is not None
            view = _mix_view(made, {}, None) if made and is_fitted else None
            reason = reason or error.args[0]
            status = 422 if status == 200 and view else status
        pair = given.get("a", ""), given.get("b", "")
        visit = visit_to(request, parts.store)
        body = mix_page(view, policy, pair, reason=reason, now=parts.now(), visit=visit)
        headers = {"Cache-Control": "private, no-cache"}
        return HTMLResponse(body, status_code=status, headers=headers)

    @router.api_route("/mix.json", methods=READ)
    def mix_json(request: Request, policy: str = DEFAULT.name) -> Response:
        made = _made(policy)
        try:
            return _as_json(_mix_view(made, *_asked_mix(request.query_params)))
        except DataError as error:
            raise HTTPException(422, error.args[0]) from error

    def _made(policy: str) -> Snapshot:
        if policy not in labels:
            raise HTTPException(404, NO_POLICY)
        made = labels[policy].read(PATIENCE_S)
        if made is None:
            raise HTTPException(503, NOT_YET, headers={"Retry-After": "3"})
        return made

    @router.post("/mix")
    async def own_prompts(request: Request, policy: str = DEFAULT.name) -> Response:
        if policy not in labels:
            return await to_thread.run_sync(missing, parts, request, NO_POLICY)
        try:
            text = _text_of(request, await request.body())
            mix = await to_thread.run_sync(counted, text, limiter=tagging)
        except _RefusedError as error:
            status, why = error.status, error.args[0]
            return await to_thread.run_sync(lambda: page(request, policy, why, status))
        return RedirectResponse(_address(mix, policy), status_code=303)

    @router.post("/mix.json")
    async def own_prompts_json(request: Request, policy: str = DEFAULT.name) -> Response:
        try:
            text = _text_of(request, await request.body())
            mix = await to_thread.run_sync(counted, text, limiter=tagging)
            view = await to_thread.run_sync(
                lambda: _mix_view(_made(policy), mix.shares, mix.prompts)
            )
        except _RefusedError as error:
            raise HTTPException(error.status, error.args[0]) from error
        except DataError as error:
            raise HTTPException(422, error.args[0]) from error
        return _as_json(view)

    return router


class _RefusedError(Exception):
    """Prompts are not taken, with a status and words."""

    def __init__(self, status: int, why: str) -> None:
        super().__init__(why)
        self.status = status


def _text_of(request: Request, body: bytes) -> str:
    """Give the prompts of a form, or a body of text as it is."""
    try:
        text = body.decode("utf-8")
        if request.headers.get("Content-Type", "").startswith("application/x-www-form-urlencoded"):
            fields = parse_qs(text, encoding="utf-8", errors="strict", max_num_fields=10)
            text = fields.get("text", [""])[0]
    except ValueError as error:
        raise _RefusedError(422, NO_TEXT) from error
    return text


def counted(text: str) -> Mix:
    """Label the prompts of a text and count them by category; nothing of them is kept.

    Raises
    ------
    _RefusedError
        If there is none, or there are more than are taken.
    """
    if len(text) > MOST_CHARACTERS:
        raise _RefusedError(413, TOO_MANY)
    try:
        prompts = prompts_in(text)
        if len(prompts) > MOST_PROMPTS:
            raise _RefusedError(413, TOO_MANY)
        return mix_of_prompts(prompts, CATEGORY)
    except DataError as error:
        raise _RefusedError(422, NO_PROMPTS if not text.strip() else str(error)) from error


def _address(mix: Mix, policy: str) -> str:
    """Give the address that keeps a mix: prompts by category, and how many there were."""
    assert mix.prompts is not None
    named = {name: str(round(share * mix.prompts)) for name, share in mix.shares.items()}
    other = {"policy": policy} if policy != DEFAULT.name else {}
    return "/mix?" + urlencode(named | {"prompts": str(mix.prompts)} | other)


def _as_json(view: MixView) -> Response:
    return Response(
        formats.as_json(view.to_dict()),
        media_type="application/json",
        headers={"Cache-Control": "no-cache"},
    )


# Reading pages

STATIC = Path(__file__).parent / "static"
PREVIEW = STATIC / "preview.png"
"""What other sites show beside a link to a page here: a battle, in outline."""
FILES = dict.fromkeys((STATIC / "pages.css", *pages.STYLESHEETS), "text/css")
SCRIPTS = ("exports.js", "mix.js", "study.js", "voters.js")
FILES |= {STATIC / name: "text/javascript" for name in SCRIPTS}
FOR_A_DAY = "public, max-age=86400"
A_YEAR_S = 365 * 86_400
DOWNLOADS = {
    "csv": "text/csv",
    "json": "application/json",
    "parquet": "application/vnd.apache.parquet",
}
SHORTLY_S, PAGE_PATIENCE_S = 0.3, 2.0
"""How long a page waits for boards by label that were never made before: with and without them."""
SAME = {"coding": "code", "math": "maths"}
"""Labels by the names that other arenas have for them."""
NOT_FOR_YOU = Sentence("You may not see this page")
NO_PAGE = Sentence("The address may be mistyped, or what was here has moved.")
NO_RATINGS = Sentence("No model of this board is rated yet, so there is nothing to download.")
NO_CARDS = Sentence("No measure of this arena has been probed yet.")
NO_BATTLE = Sentence(
    "No counted vote is at this address. Battles can be read here once they were voted on."
)
NO_STUDY = Sentence(
    "There is no study of a judge for this arena yet. Open the leaderboard instead."
)
NO_TOPICS = Sentence(
    "There are no topics yet. The first come within an hour of vote %(least)s, if enough voters "
    "wrote the prompts.",
    least=LEAST,
)
NO_SUCH_LIST = Sentence(
    "There is no such model, policy or place. Open the leaderboard, and start from there."
)


def _revalidated(request: Request, body: str, media_type: str = "text/html") -> Response:
    """Response that a browser may keep but asks about each time: 304 while it is the same.

    The tag is the hash of the body, so it also changes when "2 minutes ago" does.
    """
    tag = f'W/"{sha256(body.encode()).hexdigest()[:16]}"'
    private = "private, " if media_type == "text/html" else ""
    headers = {"ETag": tag, "Cache-Control": f"{private}no-cache"}
    if tag in request.headers.get("If-None-Match", ""):
        return Response(status_code=304, headers=headers)
    return Response(body, media_type=media_type, headers=headers)


def pages_router(parts: Parts) -> APIRouter:
    """Routes of the reading pages, their stylesheets, pictures and the font of formulas."""
    router = APIRouter(include_in_schema=False, dependencies=[VISITORS])
    settings, store, now, labels = parts.settings, parts.store, parts.now, parts.labels
    visit_of = partial(visit_to, store=store)
    absent = partial(missing, parts)

    def topics() -> ReleasedTopics | None:
        return store.read(log.newest_topics, private=not settings.show_battles)

    def board_of(policy: str | None) -> Board | None:
        chosen = parts.boards.get(policy or DEFAULT.name)
        return chosen.read(waits=True) if chosen else None

    @router.api_route("/leaderboard", methods=READ)
    def leaderboard(
        request: Request,
        policy: str | None = None,
        sort: str = "",
        q: str = "",
        retired: str = "",
        view: str = "",
    ) -> Response:
        chosen = board_of(policy)
        if chosen is None:
            return absent(request, NO_POLICY)
        by_label = labels.get(chosen.policy)
        if by_label and (asked := _asked_label(request, chosen.policy)):
            return label(request, by_label, asked)
        made = by_label.read(SHORTLY_S) if by_label else None
        page = leaderboard_page(
            chosen,
            linked=settings.show_battles and chosen.policy != APPLICATIONS.name,
            now=now(),
            selection=Selection.of(sort, q, retired, view),
            labels=made.labels if made else None,
            visit=visit_of(request),
            whole=board_of(BEFORE_EXCLUSIONS.name)
            if chosen.policy == DEFAULT.name and chosen.excluded
            else None,
        )
        return _revalidated(request, page)

    def label(request: Request, by_label: LabelBoards, asked: AskedLabel) -> Response:
        asked, made = _made(by_label, asked)
        facet = made and made.facet(asked.facet)
        reason = facet.reason if facet else None
        if made and facet and not reason and not made.has(asked.facet, asked.value):
            return absent(request, _no_label(asked))
        page = label_page(
            asked,
            made.board(asked.facet, asked.value) if made and facet and not reason else None,
            labels=made.labels if made else None,
            reason=reason,
            now=now(),
            visit=visit_of(request),
        )
        return _revalidated(request, page)

    for ending in DOWNLOADS:

        @router.api_route(f"/leaderboard.{ending}", methods=READ)
        def download(
            request: Request, policy: str | None = None, ending: str = ending
        ) -> Response:
            chosen: Board | LabelBoard | None = board_of(policy)
            if chosen is None:
                return absent(request, NO_POLICY)
            by_label = labels.get(chosen.policy)
            if by_label and (asked := _asked_label(request, chosen.policy)):
                asked, made = _made(by_label, asked)
                there = made and made.has(asked.facet, asked.value)
                chosen = made.board(asked.facet, asked.value) if made and there else None
            if chosen is None or not chosen.rows:
                return absent(request, NO_RATINGS)
            return Response(
                _in_file(chosen, ending),
                media_type=DOWNLOADS[ending],
                headers={
                    "Content-Disposition": f'attachment; filename="leaderboard.{ending}"',
                    "Cache-Control": "no-cache",
                },
            )

    @router.api_route("/models", methods=READ)
    def models_come_and_go(request: Request) -> Response:
        values = {"events": store.read(roster.history), "words_of": EVENTS, "now": now()}
        return _revalidated(request, filled("model_history.html", visit_of(request), **values))

    @router.api_route("/value", methods=READ)
    def quality_and_cost(request: Request) -> Response:
        valued = parts.valuation.read()
        return _revalidated(request, value_page(valued, now=now(), visit=visit_of(request)))

    @router.api_route("/votes", methods=READ)
    def my_page(request: Request) -> Response:
        voter, asked_since = request.state.voter, now() - settings.vote_within()
        page = my_battles_page(
            store.read(battles.past_battles, voter.id, asked_since) if voter else None,
            linked=settings.show_battles,
            now=now(),
            can_sign_in=settings.provider() is not None,
            visit=visit_of(request),
        )
        return HTMLResponse(page, headers=PRIVATE)

    @router.api_route("/method", methods=READ)
    def method(request: Request) -> Response:
        so_far = store.read(erasing.gone)
        retention = {}
        for kind, days in settings.retention_days().items():
            battles_gone, last = so_far.get(kind, (0, None))
            retention[kind] = {"days": days, "battles": battles_gone, "last": last}
        page = method_page(
            parts.boards[DEFAULT.name].read(waits=True),
            pacing=settings.pacing,
            linked=settings.show_battles,
            studied=settings.study is not None and settings.study.is_file(),
            has_topics=topics() is not None,
            retention=retention,
            visit=visit_of(request),
        )
        return _revalidated(request, page)

    @router.api_route("/evaluation", methods=READ)
    def evaluation(request: Request) -> Response:
        return _revalidated(request, evaluation_page(parts.card.read(), visit_of(request)))

    @router.api_route("/study", methods=READ)
    def shown_study(request: Request) -> Response:
        study = settings.study
        if study is None or not study.is_file():
            return absent(request, NO_STUDY)
        return _revalidated(
            request, with_site_head(study.read_text(encoding="utf-8"), "/study", visit_of(request))
        )

    @router.api_route("/topics", methods=READ)
    def asked_about(request: Request) -> Response:
        released = topics()
        if released is None:
            return absent(request, NO_TOPICS)
        return _revalidated(request, topics_page(released, now=now(), visit=visit_of(request)))

    # Here and below: not included, as in `arena.app`.
    router.routes.extend(_own_data_router(parts).routes)
    if settings.show_battles:
        router.routes.extend(_battles_router(parts).routes)

    @router.api_route("/cards", methods=READ)
    def probed(request: Request) -> Response:
        if not parts.cards:
            return absent(request, NO_CARDS)
        return _revalidated(
            request, with_site_head(cards_as_html(parts.cards), "/cards", visit_of(request))
        )

    router.routes.extend(_mix_router(parts).routes)
    router.routes.extend(_open_router().routes)

    def without_slash(request: Request) -> Response:
        return RedirectResponse(request.url.path.rstrip("/"), status_code=308)

    for page in PAGES:
        router.add_api_route(f"/{page}/", without_slash, methods=READ)
    return router


def _made(by_label: LabelBoards, asked: AskedLabel) -> tuple[AskedLabel, Snapshot | None]:
    """Return the board by label: of two labels together, or of the first alone."""
    if asked.also:
        both = asked.both()
        made = by_label.read(PAGE_PATIENCE_S, both.facet)
        waits = made is None or made.facet(both.facet) is None
        if waits or (made and made.has_both(both.facet, both.value)):
            return both, made
    return asked, by_label.read(PAGE_PATIENCE_S, asked.facet)


def _asked_label(request: Request, policy: str) -> AskedLabel | None:
    """Read which board by label an address asks for: the first, and those beside it."""
    given = request.query_params
    asked = [(facet, SAME.get(given[facet], given[facet])) for facet in FACETS if given.get(facet)]
    return AskedLabel(policy, *asked[0], tuple(asked[1:])) if asked else None


def _no_label(asked: AskedLabel) -> Sentence:
    return Sentence(
        "No counted vote is on prompts with the label “%(value)s”. Open the leaderboard, and "
        "choose one of its kinds of prompts.",
        value=asked.value[:LONGEST_QUERY],
    )


def _choose_language(request: Request, language: str) -> Response:
    """Remember a visitor's language, and show the page that they came from."""
    if language not in list(Language):
        raise HTTPException(404)
    came_from, ours = request.headers.get("Referer", ""), f"{origin_of(request)}/"
    place = came_from.removeprefix(ours) if came_from.startswith(ours) else ""
    # An address that begins with two slashes, of either kind, is one of another site.
    answer = RedirectResponse("/" + place.lstrip("/\\"), status_code=303)
    answer.set_cookie(
        LANGUAGE_COOKIE,
        language,
        max_age=A_YEAR_S,
        httponly=True,
        samesite="lax",
        secure=request.url.scheme == "https",
    )
    return answer


def _battles_router(parts: Parts) -> APIRouter:
    """Routes of the battles behind the numbers."""
    router = APIRouter(include_in_schema=False, dependencies=[VISITORS])
    store = parts.store
    policies = {policy.name: policy for policy in POLICIES if policy is not APPLICATIONS}
    addresses = {model.id: model.contamination_report for model in parts.models}
    reports = {model_id: url for model_id, url in addresses.items() if url}

    @router.api_route("/battles", methods=READ)
    def behind(
        request: Request,
        policy: str = DEFAULT.name,
        model: str | None = None,
        against: str | None = None,
        before: str | None = None,
    ) -> Response:
        shown = None
        if policy in policies and (before is None or PLACE.fullmatch(before)):
            models = list(dict.fromkeys(filter(None, (model, against))))
            end = int(before) if before else None
            shown = store.read(battles.counted, policies[policy], models=models, before=end)
        if shown is None:
            return missing(parts, request, NO_SUCH_LIST)
        visit = visit_to(request, store)
        newest = before is None
        page = battles_page(shown, newest=newest, now=parts.now(), visit=visit, reports=reports)
        return _revalidated(request, page)

    @router.api_route("/battles/{battle_id}", methods=READ)
    def battle(request: Request, battle_id: str) -> Response:
        every = (store.read(battles.battle, policy, battle_id) for policy in policies.values())
        shown = next(filter(None, every), None)
        voter = request.state.voter
        if voter and is_open_to(battle_id, voter, counts=shown is not None):
            return RedirectResponse(f"/?b={battle_id}", status_code=303)
        if shown is None:
            return missing(parts, request, NO_BATTLE)
        page = battle_page(shown, now=parts.now(), visit=visit_to(request, store))
        return _revalidated(request, page)

    def is_open_to(battle_id: str, voter: Voter, *, counts: bool) -> bool:
        """Tell whether a battle is a visitor's own, and to be gone on with on the battle page."""
        if counts:  # it is shown to them once they have seen the names
            return store.read(battles.is_withheld, battle_id, voter.id)
        try:
            return bool(store.read(battles.stored_battle, battle_id, voter.id))
        except UnknownBattleError:
            return False

    return router


def _open_router() -> APIRouter:
    """Make the routes that everybody needs: the choice of a language, styles, scripts, fonts."""
    router = APIRouter(include_in_schema=False, dependencies=[EVERYBODY])
    router.add_api_route("/language/{language}", _choose_language, methods=["POST"])
    one_at_a_time = Lock()
    for path, kind in FILES.items():

        @router.api_route(f"/look/{path.name}", methods=READ)
        def file(request: Request, path: Path = path, kind: str = kind) -> Response:
            return _revalidated(request, path.read_text(encoding="utf-8"), kind)

    @router.api_route("/look/preview.png", methods=READ)
    def preview() -> Response:
        headers = {"Cache-Control": FOR_A_DAY}
        return Response(PREVIEW.read_bytes(), media_type="image/png", headers=headers)

    @router.api_route("/look/maths.woff2", methods=READ)
    def font() -> Response:
        with one_at_a_time:
            woff2 = _maths_font()
        return Response(woff2, media_type="font/woff2", headers={"Cache-Control": FOR_A_DAY})

    return router


@cache
def _maths_font() -> bytes:
    """Make the font, in a process of its own as it takes seconds."""
    command = [sys.executable, "-m", "judge.render.text"]
    return subprocess.run(command, check=True, capture_output=True).stdout  # noqa: S603 - ours


def missing(parts: Parts, request: Request, advice: str = NO_PAGE) -> Response:
    """Answer for an address at which there is no page; it reads, and so blocks."""
    return HTMLResponse(missing_page(advice, visit_to(request, parts.store)), status_code=404)


def not_let_in(request: Request, why: str) -> Response:
    """Answer a visitor who may not see a page."""
    page = missing_page(why, visit_to(request), NOT_FOR_YOU)
    return HTMLResponse(page, 403, PRIVATE)


def _in_file(board: Board | LabelBoard, ending: str) -> bytes:
    """Write the ratings of a board, and how they were made, as a file of some kind."""
    if ending == "json":
        return formats.as_json(board.to_dict()).encode()
    if ending == "csv":
        return formats.as_csv(board.to_rows()).encode()
    with TemporaryDirectory() as folder:
        path = Path(folder) / "leaderboard.parquet"
        formats.write_parquet(board.to_rows(), path)
        return path.read_bytes()
