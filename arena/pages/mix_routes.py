"""Addresses of one's own mix, by sliders or by own prompts: its board as a page and as JSON."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Self
from urllib.parse import parse_qs, urlencode

from anyio import CapacityLimiter, to_thread
from fastapi import APIRouter, HTTPException
from starlette.datastructures import QueryParams
from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response

from arena.boards.labelled import CATEGORY, LabelBoards, Snapshot
from arena.domain.label_view import MixView
from arena.domain.vote import DEFAULT
from arena.guard.access import VISITORS
from arena.pages.rendering import MOST_CHARACTERS, MOST_PROMPTS, AskedPair, mix_page
from arena.pages.visit import READ, Visit
from judge.labels.files import mix_of_prompts, prompts_in
from judge.labels.taggers import CATEGORIES
from rating.errors import DataError
from rating.pooling.mix import Mix
from rating.sentences import Sentence
from rating.tables import formats

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
class AskedMix:
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


def mix_view(made: Snapshot, asked: AskedMix) -> MixView:
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


def mix_router(
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
            view = mix_view(made, AskedMix.of(given)) if made else None
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
            return _as_json(mix_view(made, AskedMix.of(request.query_params)))
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
            asked = AskedMix(mix.shares, mix.prompts)
            view = await to_thread.run_sync(lambda: mix_view(_made(policy), asked))
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
    return mix_view(made, AskedMix({}, None))


def _as_json(view: MixView) -> Response:
    return Response(
        formats.as_json(view.to_dict()),
        media_type="application/json",
        headers={"Cache-Control": "no-cache"},
    )
