"""Addresses of the reading pages, and what a browser may keep of them.

Addresses at which people hide, erase or download what is theirs.

Addresses of one's own mix, by sliders or by own prompts: its board as a page and as JSON.
"""

import json
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import cache
from hashlib import sha256
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Lock
from types import MappingProxyType
from typing import Annotated, Any, Self
from urllib.parse import parse_qs, urlencode

from anyio import CapacityLimiter, to_thread
from fastapi import APIRouter, Form, HTTPException
from starlette.datastructures import QueryParams
from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response

from arena.boards.labelled import CATEGORY, FACETS, LabelBoards, Snapshot
from arena.domain.battle import Pacing
from arena.domain.board_view import (
    Board,
    LabelBoard,
    MixView,
    PastBattle,
    ReleasedTopics,
    ShownBattle,
    ShownVotes,
    Valued,
)
from arena.domain.people import Perishable, Retention
from arena.domain.study import EvaluationCard
from arena.domain.vote import (
    APPLICATIONS,
    BEFORE_EXCLUSIONS,
    DEFAULT,
    LANGUAGE_COOKIE,
    Language,
    Voter,
)
from arena.errors import UnknownBattleError
from arena.guard.access import EVERYBODY, PERSONAL, VISITORS
from arena.pages.rendering import (
    MOST_CHARACTERS,
    MOST_PROMPTS,
    PLACE,
    READ,
    AskedPair,
    Visit,
    battle_page,
    battles_page,
    filled,
    method_page,
    missing_page,
    mix_page,
    my_battles_page,
    origin_of,
    topics_page,
    utc_now,
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
from arena.play.upkeep import OwnData
from judge.labels.files import mix_of_prompts, prompts_in
from judge.labels.taggers import CATEGORIES
from judge.render import pages
from judge.report.cards import ProbePage
from judge.report.page import cards_as_html
from rating.errors import DataError
from rating.mix import Mix
from rating.sentences import Sentence
from rating.tables import formats

PRIVATE = {"Cache-Control": "private, no-store"}
AS_FILE = PRIVATE | {"Content-Disposition": 'attachment; filename="my-battles.json"'}


def _own_data_router(
    data: OwnData,
    voter_of: Callable[[Request], Voter | None],
    visit_of: Callable[[Request], Visit],
) -> APIRouter:
    """Routes of what belongs to whoever asks: of nobody else, and of nobody without a cookie."""
    router = APIRouter(include_in_schema=False, dependencies=[PERSONAL])

    def asking(request: Request) -> Voter:
        voter = voter_of(request)
        if voter is None:
            raise HTTPException(404)
        return voter

    @router.post("/votes/{battle_id}/hidden")
    def hide(request: Request, battle_id: str, hidden: Annotated[bool, Form()] = True) -> Response:
        voter = voter_of(request)
        if voter is None:
            raise UnknownBattleError
        data.hide(battle_id, voter, hidden=hidden)
        return RedirectResponse(f"/votes#{battle_id}", 303, PRIVATE)

    @router.api_route("/votes/erase", methods=READ)
    def before(request: Request) -> Response:
        extent = data.extent(asking(request))
        page = filled("erase.html", visit_of(request), extent=extent, erased=False)
        return HTMLResponse(page, headers=PRIVATE)

    @router.post("/votes/erase")
    def erase(request: Request, sure: Annotated[bool, Form()] = False) -> Response:
        voter = asking(request)
        if not sure:
            return before(request)
        page = filled("erase.html", visit_of(request), extent=data.erase(voter), erased=True)
        return HTMLResponse(page, headers=PRIVATE)

    @router.api_route("/votes.json", methods=READ)
    def download(request: Request) -> Response:
        body = json.dumps(
            data.download(asking(request)), ensure_ascii=False, indent=1, default=_moment
        )
        return Response(body, media_type="application/json", headers=AS_FILE)

    return router


def _moment(value: object) -> str:
    assert isinstance(value, datetime), f"{value!r} is no value of JSON"
    return value.isoformat()


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


@dataclass(frozen=True, slots=True)
class _AskedMix:
    """The mix that an address names.

    Attributes
    ----------
    shares : mapping of str to float
        Of any sum; empty for the mix of the votes.
    prompts : int or None
        Prompts that the shares were counted from.
    """

    shares: Mapping[str, float]
    prompts: int | None

    @classmethod
    def of(cls, given: QueryParams) -> Self:
        """Read an address.

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
        return cls(shares, prompts)


def _mix_view(made: Snapshot, asked: _AskedMix) -> MixView:
    """Rate the models on a mix; categories without a vote do not count.

    Raises
    ------
    DataError
        If there are no boards of categories, or all that is asked for has no vote.
    """
    counts = made.facets[CATEGORY].counts
    there = {count.value: count.share for count in counts}
    asked_for = {name: share for name, share in asked.shares.items() if share}
    chosen = {name: share for name, share in asked_for.items() if name in there}
    if asked_for and not chosen:
        raise DataError(NO_VOTES_THERE)
    left_out = {name: share for name, share in asked_for.items() if name not in there}
    mix = Mix.of_shares(chosen or there or {"other": 1.0})
    if asked.prompts and chosen:
        part = sum(chosen.values()) / sum(asked_for.values())
        mix = Mix(mix.shares, max(1, round(asked.prompts * part)))
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


def _mix_router(
    labels: Mapping[str, LabelBoards],
    visit_of: Callable[[Request], Visit],
    now: Callable[[], datetime],
    missing: Callable[[Visit, str], Response],
) -> APIRouter:
    """Routes of the page ``/mix``, and of its JSON.

    Parameters
    ----------
    labels : mapping of str to LabelBoards
        By the name of their policy.
    missing : callable
        Answer for an address at which there is nothing, with advice.
    """
    router = APIRouter(include_in_schema=False, dependencies=[VISITORS])
    tagging = CapacityLimiter(1)

    @router.api_route("/mix", methods=READ)
    def mix(request: Request, policy: str = DEFAULT.name) -> Response:
        if policy not in labels:
            return missing(visit_of(request), NO_POLICY)
        return page(request, policy)

    def page(request: Request, policy: str, refusal: str = "", status: int = 200) -> Response:
        made, given = labels[policy].read(PATIENCE_S), request.query_params
        view, reason = None, refusal
        try:
            view = _mix_view(made, _AskedMix.of(given)) if made else None
        except DataError as error:
            view = _of_votes(made) if made else None
            reason = reason or error.args[0]
            status = 422 if status == 200 and view else status
        pair = AskedPair(given.get("a", ""), given.get("b", ""))
        body = mix_page(view, policy, pair, reason=reason, now=now(), visit=visit_of(request))
        headers = {"Cache-Control": "private, no-cache"}
        return HTMLResponse(body, status_code=status, headers=headers)

    @router.api_route("/mix.json", methods=READ)
    def mix_json(request: Request, policy: str = DEFAULT.name) -> Response:
        made = _made(policy)
        try:
            return _as_json(_mix_view(made, _AskedMix.of(request.query_params)))
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
            return await to_thread.run_sync(lambda: missing(visit_of(request), NO_POLICY))
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
            asked = _AskedMix(mix.shares, mix.prompts)
            view = await to_thread.run_sync(lambda: _mix_view(_made(policy), asked))
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


def _of_votes(made: Snapshot) -> MixView | None:
    """Give the board of the mix of the votes, where there is one."""
    if made.facets[CATEGORY].fit is None:
        return None
    return _mix_view(made, _AskedMix({}, None))


def _as_json(view: MixView) -> Response:
    return Response(
        formats.as_json(view.to_dict()),
        media_type="application/json",
        headers={"Cache-Control": "no-cache"},
    )


STATIC = Path(__file__).parent / "static"
PREVIEW = STATIC / "preview.png"
"""What other sites show beside a link to a page here: a battle, in outline."""
FILES = dict.fromkeys((STATIC / "pages.css", *pages.STYLESHEETS), "text/css")
FILES |= {STATIC / name: "text/javascript" for name in ("mix.js", "study.js", "voters.js")}
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
    "Nobody has held a judge against this arena's votes yet. Open the leaderboard instead."
)
NO_TOPICS = Sentence(
    "There are no topics yet: they need more prompts that were voted on. Come back in a week."
)
NO_SUCH_LIST = Sentence(
    "There is no such model, policy or place. Open the leaderboard, and start from there."
)


@dataclass(frozen=True, slots=True)
class Exhibits:
    """Where the pages find single battles.

    Attributes
    ----------
    votes : callable
        From policy, model ids and the place in the log to end before (None for the newest) to
        votes; None if there is no such policy or model.
    battle : callable
        From a battle's id to the battle, if its vote counts.
    owned : callable
        Whether a battle, by its id, is a visitor's own.
    withheld : callable
        Whether a visitor has voted on a battle, by its id, and is not shown the names yet.
    reports : mapping of str to str
        Addresses of contamination reports, by model id.
    """

    votes: Callable[[str, Sequence[str], int | None], ShownVotes | None]
    battle: Callable[[str], ShownBattle | None]
    owned: Callable[[str, Voter], bool]
    withheld: Callable[[str, Voter], bool]
    reports: Mapping[str, str] = field(default_factory=dict)


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


def pages_router(
    *,
    board: Callable[[], Board],
    my_battles: Callable[[Voter], Sequence[PastBattle]],
    voter_of: Callable[[Request], Voter | None],
    visit_of: Callable[[Request], Visit] = visit_to,
    others: Mapping[str, Callable[[], Board]] = MappingProxyType({}),
    labels: Mapping[str, LabelBoards] = MappingProxyType({}),
    cards: Sequence[ProbePage] = (),
    exhibits: Exhibits | None = None,
    study: Path | None = None,
    topics: Callable[[], ReleasedTopics | None] = lambda: None,
    value: Callable[[], Valued | None] = lambda: None,
    card: Callable[[], EvaluationCard] | None = None,
    entrants: Callable[[], Sequence[Any]] = tuple,
    pacing: Pacing = Pacing.PACED,
    retention: Callable[[], Mapping[Perishable, Retention]] = dict,
    own_data: OwnData | None = None,
    can_sign_in: bool = False,
    now: Callable[[], datetime] = utc_now,
) -> APIRouter:
    """Routes of the reading pages, their stylesheets, pictures and the font of formulas.

    Parameters
    ----------
    board : callable
        The leaderboard as it stands; called for each page view, so it should be kept ready.
    my_battles : callable
        Battles of a voter, in any order.
    voter_of : callable
        Who asks, or None for a browser without a pseudonym.
    visit_of : callable
        What a page takes from who asks for it; may block.
    others : mapping of str to callable
        Boards that are shown only when asked for, by the name of their policy.
    labels : mapping of str to LabelBoards
        Boards by what prompts ask for, by the name of their policy.
    cards : sequence of ProbePage
        What probes show of the measures in use.
    exhibits : Exhibits, optional
        Battles behind the numbers; None shows none to anybody.
    study : Path, optional
        Report that ``arena study judge`` writes, shown at ``/study`` from when it is there.
    topics : callable
        The newest release of what people ask about; None before the first.
    value : callable
        Quality against cost as it was last worked out, shown at ``/value``; None before that.
    card : callable, optional
        The evaluation card, shown at ``/evaluation``; may block.
    entrants : callable
        What happened to the models, newest first; may block.
    pacing : Pacing
        How battles release their answers, for the method page.
    retention : callable
        For how long what is kept, and what went so far; may block.
    own_data : OwnData, optional
        What people may do with what is theirs; None lets them do nothing.
    can_sign_in : bool
        Whether there is a provider at which people sign in.
    """
    router = APIRouter(include_in_schema=False, dependencies=[VISITORS])

    def board_of(policy: str | None) -> Board | None:
        chosen = board if policy is None else others.get(policy)
        return chosen and chosen()

    @router.api_route("/leaderboard", methods=READ)
    def leaderboard(
        request: Request,
        policy: str | None = None,
        sort: str = "",
        q: str = "",
        retired: str = "",
    ) -> Response:
        chosen = board_of(policy)
        if chosen is None:
            return _missing(visit_of(request), NO_POLICY)
        by_label = labels.get(chosen.policy)
        if by_label and (asked := _asked_label(request, chosen.policy)):
            return label(request, by_label, asked)
        made = by_label.read(SHORTLY_S) if by_label else None
        page = leaderboard_page(
            chosen,
            linked=exhibits is not None and chosen.policy != APPLICATIONS.name,
            now=now(),
            selection=Selection.of(sort, q, retired),
            labels=made.labels if made else None,
            visit=visit_of(request),
            whole=board_of(BEFORE_EXCLUSIONS.name) if policy is None and chosen.excluded else None,
        )
        return _revalidated(request, page)

    def label(request: Request, by_label: LabelBoards, asked: AskedLabel) -> Response:
        asked, made = _made(by_label, asked)
        facet = made and made.facet(asked.facet)
        reason = facet.reason if facet else None
        if made and facet and not reason and not made.has(asked.facet, asked.value):
            return _missing(visit_of(request), _no_label(asked))
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
                return _missing(visit_of(request), NO_POLICY)
            by_label = labels.get(chosen.policy)
            if by_label and (asked := _asked_label(request, chosen.policy)):
                asked, made = _made(by_label, asked)
                there = made and made.has(asked.facet, asked.value)
                chosen = made.board(asked.facet, asked.value) if made and there else None
            if chosen is None or not chosen.rows:
                return _missing(visit_of(request), NO_RATINGS)
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
        values = {"events": entrants(), "words_of": EVENTS, "now": now()}
        return _revalidated(request, filled("entrants.html", visit_of(request), **values))

    @router.api_route("/value", methods=READ)
    def quality_and_cost(request: Request) -> Response:
        return _revalidated(request, value_page(value(), now=now(), visit=visit_of(request)))

    @router.api_route("/votes", methods=READ)
    def my_page(request: Request) -> Response:
        voter = voter_of(request)
        page = my_battles_page(
            my_battles(voter) if voter else None,
            linked=exhibits is not None,
            now=now(),
            can_sign_in=can_sign_in,
            own_data=own_data is not None,
            visit=visit_of(request),
        )
        return HTMLResponse(page, headers={"Cache-Control": "private, no-store"})

    @router.api_route("/method", methods=READ)
    def method(request: Request) -> Response:
        page = method_page(
            board(),
            pacing=pacing,
            linked=exhibits is not None,
            studied=_is_there(study),
            has_topics=topics() is not None,
            retention=retention(),
            own_data=own_data is not None,
            visit=visit_of(request),
        )
        return _revalidated(request, page)

    @router.api_route("/evaluation", methods=READ)
    def evaluation(request: Request) -> Response:
        if card is None:
            return _missing(visit_of(request), NO_PAGE)
        return _revalidated(request, evaluation_page(card(), visit_of(request)))

    @router.api_route("/study", methods=READ)
    def shown_study(request: Request) -> Response:
        if study is None or not _is_there(study):
            return _missing(visit_of(request), NO_STUDY)
        return _revalidated(
            request, with_site_head(study.read_text(encoding="utf-8"), "/study", visit_of(request))
        )

    @router.api_route("/topics", methods=READ)
    def asked_about(request: Request) -> Response:
        released = topics()
        if released is None:
            return _missing(visit_of(request), NO_TOPICS)
        return _revalidated(request, topics_page(released, now=now(), visit=visit_of(request)))

    if own_data is not None:  # here and below: not included, as in `arena.app`
        router.routes.extend(_own_data_router(own_data, voter_of, visit_of).routes)
    if exhibits is not None:
        router.routes.extend(_exhibits_router(exhibits, voter_of, visit_of, now).routes)

    @router.api_route("/cards", methods=READ)
    def probed(request: Request) -> Response:
        if not cards:
            return _missing(visit_of(request), NO_CARDS)
        return _revalidated(
            request, with_site_head(cards_as_html(cards), "/cards", visit_of(request))
        )

    if labels:
        router.routes.extend(_mix_router(labels, visit_of, now, _missing).routes)
    router.routes.extend(_open_router().routes)

    @router.api_route("/leaderboard/", methods=READ)
    @router.api_route("/mix/", methods=READ)
    @router.api_route("/models/", methods=READ)
    @router.api_route("/value/", methods=READ)
    @router.api_route("/votes/", methods=READ)
    @router.api_route("/method/", methods=READ)
    @router.api_route("/evaluation/", methods=READ)
    @router.api_route("/study/", methods=READ)
    @router.api_route("/cards/", methods=READ)
    @router.api_route("/topics/", methods=READ)
    def without_slash(request: Request) -> Response:
        return RedirectResponse(request.url.path.rstrip("/"), status_code=308)

    return router


def _made(by_label: LabelBoards, asked: AskedLabel) -> tuple[AskedLabel, Snapshot | None]:
    """Give what there is of a board by label: of two together, or of the first alone."""
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


def _exhibits_router(
    exhibits: Exhibits,
    voter_of: Callable[[Request], Voter | None],
    visit_of: Callable[[Request], Visit],
    now: Callable[[], datetime],
) -> APIRouter:
    router = APIRouter(include_in_schema=False, dependencies=[VISITORS])

    @router.api_route("/battles", methods=READ)
    def battles(
        request: Request,
        policy: str = DEFAULT.name,
        model: str | None = None,
        against: str | None = None,
        before: str | None = None,
    ) -> Response:
        models = list(dict.fromkeys(filter(None, (model, against))))
        sound = before is None or PLACE.fullmatch(before)
        shown = exhibits.votes(policy, models, int(before) if before else None) if sound else None
        if shown is None:
            return _missing(visit_of(request), NO_SUCH_LIST)
        newest = before is None
        page = battles_page(
            shown, newest=newest, now=now(), visit=visit_of(request), reports=exhibits.reports
        )
        return _revalidated(request, page)

    @router.api_route("/battles/{battle_id}", methods=READ)
    def battle(request: Request, battle_id: str) -> Response:
        shown = exhibits.battle(battle_id)
        voter = voter_of(request)
        ours = exhibits.owned if shown is None else exhibits.withheld
        if voter and ours(battle_id, voter):
            return RedirectResponse(f"/?b={battle_id}", status_code=303)
        if shown is None:
            return _missing(visit_of(request), NO_BATTLE)
        page = battle_page(shown, now=now(), visit=visit_of(request))
        return _revalidated(request, page)

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


def _is_there(study: Path | None) -> bool:
    return study is not None and study.is_file()


def missing(visit: Visit) -> Response:
    """Answer for an address at which there is no page."""
    return _missing(visit, NO_PAGE)


def not_let_in(request: Request, why: str) -> Response:
    """Answer whom the arena knows, and who may not see a page."""
    page = missing_page(why, visit_to(request), NOT_FOR_YOU)
    return HTMLResponse(page, 403, {"Cache-Control": "private, no-store"})


def _missing(visit: Visit, advice: str) -> Response:
    return HTMLResponse(missing_page(advice, visit), status_code=404)


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
