"""The HTTP API besides battles: the leaderboard, health checks, and votes from applications.

`public_router` has what anybody may read. `sources_router` takes what servers of applications
send, each known by its token. `embed_router` serves their pages: a page is known by its origin,
which must be registered for the source of the pair, and by the key of the pair. It reads and sets
no cookie.
"""

import asyncio
import time
from collections.abc import Callable
from datetime import datetime
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Depends, Header, Query, Request, Response
from pydantic import BaseModel, ConfigDict, Field
from starlette.exceptions import HTTPException

from arena.api.middleware import ALLOWED_ORIGIN, Plain, language_of, responses
from arena.catalogue import words_in
from arena.domain.battle import BattleState
from arena.domain.board_view import Board, FitCheck, Hold, Moment, PairCell, RecordCheck
from arena.domain.model import Pair, Source, Stage, VersionAnswer
from arena.domain.study import EvaluationCard
from arena.domain.vote import DEFAULT, Choice, Receipt
from arena.errors import ClosingError, StoreError, UnknownSourceError
from arena.guard.access import OTHER_PAGES, PROBES, TOKENS, VISITORS
from arena.parts import Parts
from judge.render.text import render
from rating.sentences import Sentence
from rating.tables.files import storable

# Leaderboard and health checks

FRESH_S = 1.0
"""How long a check holds: visitors without an account may ask, and each check writes."""

PATIENCE_S = 3.0
"""How long a check is waited for; who asks for readiness gives up soon after."""


class Recent:
    """A check that blocks, made in a thread, once at a time and not more often than holds."""

    def __init__(self, check: Callable[[], None]) -> None:
        self._check = check
        self._latest: asyncio.Task[None] | None = None
        self._begun = 0.0

    async def check(self) -> None:
        """Raise what the latest check raised, or `StoreError` if it does not come to an end."""
        now = time.monotonic()
        if self._latest is None or (self._latest.done() and now > self._begun + FRESH_S):
            self._latest = asyncio.create_task(asyncio.to_thread(self._check))
            self._begun = now
        try:
            async with asyncio.timeout(PATIENCE_S):
                await asyncio.shield(self._latest)
        except TimeoutError:
            msg = f"The database did not take a write within {PATIENCE_S:g} s."
            raise StoreError(msg) from None


class RatingBody(Plain):
    """One rated model.

    Attributes
    ----------
    rating, se, lower, upper : float
        In points, with standard error and interval.
    rank_low, rank_high : int or None
        Simultaneous interval of the rank, from 1; None where the votes exclude no rank.
    win_rate, win_rate_low, win_rate_high : float
        Mean predicted win rate against the other models, and its interval.
    voter_rating, voter_rank : float, int
        With equally weighted voters.
    family : str
        Of which model it is a variant; empty for none.
    variants : int
        Variants of the family with a counted vote.
    best_of : float or None
        Rating corrected for choosing the best variant; None except for the best one.
    declared : float or None
        Rating under the order that the producer declared; None without one.
    otherwise : int
        Votes on what answered under the same id before it was changed.
    """

    model: str
    rating: float
    se: float
    lower: float
    upper: float
    rank: int
    rank_low: int | None
    rank_high: int | None
    votes: int
    win_rate: float
    win_rate_low: float
    win_rate_high: float
    voter_rating: float
    voter_rank: int
    stage: Stage
    family: str
    variants: int
    best_of: float | None
    declared: float | None
    otherwise: int


class NewcomerBody(Plain):
    """A new model that only a judge rates: it has no rank, and no other list contains it.

    Attributes
    ----------
    votes, until : int
        Votes of people so far, which its rating does not use, and with how many they rate it.
    rating, lower, upper : float
        In points of this leaderboard.
    calibrated_on : int
        Models on which the judge's errors were estimated.
    """

    model: str
    stage: Stage
    votes: int
    until: int
    rating: float
    lower: float
    upper: float
    by: Literal["judge only"]
    judge: str
    calibrated_on: int
    warnings: list[str]


class LeaderboardBody(Plain):
    """A leaderboard.

    Attributes
    ----------
    data_hash : str or None
        Identifies the rated votes; ``arena rate`` prints the same for them.
    effective_voters : float or None
        Effective sample size, in voters.
    left_out : mapping
        Excluded votes by reason.
    ranks_claimed : bool
        Whether a model has a rank interval.
    ratings : list
        Best first. Empty while the votes identify no ratings; the first warning is the reason.
    neighbours : list
        Robustness of the order of neighbours from the top, at most ten.
    fit : FitCheck or None
        None where ratings can fit any votes.
    history : list
        Empty while the votes are of fewer than three days.
    record : RecordCheck or None
        None before the vote log was verified for the first time.
    """

    policy: str
    updated: datetime
    version: str
    data_hash: str | None
    votes: int
    voters: int
    effective_voters: float | None
    top_voter_share: float | None
    left_out: dict[str, int]
    ranks_claimed: bool
    ratings: list[RatingBody] = Field(validation_alias="rows")
    newcomers: list[NewcomerBody]
    pairs: list[PairCell]
    neighbours: list[Hold] = Field(validation_alias="holds")
    fit: FitCheck | None = Field(validation_alias="fit_check")
    history: list[Moment]
    record: RecordCheck | None
    warnings: list[str] = Field(validation_alias="all_warnings")


def public_router(parts: Parts) -> APIRouter:
    """Make the routes of what anybody may read."""
    router = APIRouter()
    store = Recent(parts.store.check)

    @router.get(
        "/api/v1/leaderboard",
        tags=["leaderboard"],
        dependencies=[VISITORS],
        response_model=LeaderboardBody,
        responses=responses(503),
    )
    def read_leaderboard() -> Board:
        """Read the ratings with their intervals, best first, and what they rest on."""
        return parts.boards[DEFAULT.name].read(waits=True)

    @router.get(
        "/api/v1/evaluation",
        tags=["leaderboard"],
        dependencies=[VISITORS],
        response_model=EvaluationCard,
        responses=responses(503),
    )
    def read_card() -> EvaluationCard:
        """Read the evaluation card: what is asked, how, what comes out, how it may be read."""
        return parts.card.read()

    @router.head("/health/live", dependencies=[PROBES], include_in_schema=False)
    @router.get("/health/live", tags=["health"], dependencies=[PROBES])
    def live() -> dict[str, str]:
        """Say that the process answers."""
        return {"status": "live"}

    @router.head("/health/ready", dependencies=[PROBES], include_in_schema=False)
    @router.get("/health/ready", tags=["health"], dependencies=[PROBES], responses=responses(503))
    async def ready() -> dict[str, str]:
        """Say that battles and votes are taken, and that the database takes a write."""
        if parts.battles.closing:
            raise ClosingError
        await store.check()
        return {"status": "ready"}

    return router


# Votes from applications

BEARER = "bearer "
ALLOWED = {
    "Access-Control-Allow-Methods": "GET, POST",
    "Access-Control-Allow-Headers": "authorization, content-type, accept-language",
    "Access-Control-Max-Age": "600",
}
PRIVATE = {"Cache-Control": "no-store"}
WORDS = {
    "question": Sentence("Which answer is better?"),
    "a": Sentence("Answer A"),
    "b": Sentence("Answer B"),
    Choice.A.value: Sentence("A is better"),
    Choice.TIE.value: Sentence("Tie"),
    Choice.BOTH_BAD.value: Sentence("Both are bad"),
    Choice.B.value: Sentence("B is better"),
    "skip": Sentence("Skip"),
    "unsaved": Sentence("Your vote is not saved yet. We are trying again."),
    "refused": Sentence("This vote was not taken."),
    "saved": Sentence("Saved. Your vote: %(vote)s."),
    "wasBetter": Sentence("%(name)s was better"),
    "even": Sentence("a tie"),
    "neither": Sentence("both were bad"),
    "skipped": Sentence("Skipped. Nothing was counted, and the names stay hidden."),
}
"""What embed.js writes, by the names that it knows; it puts in the values."""

Words = Annotated[str, Field(min_length=1, max_length=200)]
Turn = Annotated[
    str, Query(min_length=1, max_length=200, description="The turn's name in the application")
]


class VersionBody(BaseModel):
    """What a version answered; the version is rated as a model."""

    model_config = ConfigDict(extra="forbid")

    version: Annotated[str, Field(max_length=100, pattern=r"^[A-Za-z0-9][A-Za-z0-9._:/@+-]*$")]
    text: str


class ComparisonBody(BaseModel):
    """A vote of an application's own, with the two answers as they were shown.

    ``seconds`` are from when both answers could be read to the choice.
    """

    model_config = ConfigDict(
        extra="forbid",
        json_schema_extra={
            "example": {
                "key": "conversation 17, turn 3",
                "prompt": "Where is my parcel?",
                "a": {"version": "v7", "text": "It is on its way."},
                "b": {"version": "v8", "text": "It arrives tomorrow."},
                "outcome": "model_b",
                "rater": "u-2041",
                "seconds": 8.5,
            }
        },
    )

    key: Words
    prompt: str
    a: VersionBody
    b: VersionBody
    outcome: Choice
    rater: Words
    seconds: Annotated[float, Field(ge=0, le=86_400, allow_inf_nan=False)]


class PairBody(BaseModel):
    """Two answers that a page is to show; the arena draws their sides."""

    model_config = ConfigDict(
        extra="forbid",
        json_schema_extra={
            "example": {
                "key": "conversation 17, turn 3",
                "prompt": "Where is my parcel?",
                "champion": {"version": "v7", "text": "It is on its way."},
                "challenger": {"version": "v8", "text": "It arrives tomorrow."},
                "rater": "u-2041",
            }
        },
    )

    key: Words
    prompt: str
    champion: VersionBody
    challenger: VersionBody
    rater: Words


class ComparisonTaken(BaseModel):
    """A committed vote; ``voter`` is the rater's id in the log, by which words are erased."""

    battle_id: str
    voter: str


class PairTaken(BaseModel):
    """A pair for a page: its id, and the key with which its one vote is cast."""

    pair: str
    key: str
    voter: str


class ShareBody(BaseModel):
    """Whether to show a pair on a turn: of one turn always the same."""

    turn: str
    show: bool
    share: float


class PairVoteBody(BaseModel):
    """What a page says of a pair."""

    model_config = ConfigDict(extra="forbid", json_schema_extra={"example": {"outcome": "tie"}})

    outcome: Choice


class PairVote(BaseModel):
    """A committed vote; ``versions`` is null for a skip."""

    outcome: Choice
    versions: dict[str, str] | None


class PairShown(BaseModel):
    """A pair as a page shows it: HTML by side, and the words around it in a language."""

    state: BattleState
    a: str
    b: str
    vote: PairVote | None
    language: str
    words: dict[str, str]


def sources_router(parts: Parts) -> APIRouter:
    """Make the routes by which the servers of applications send votes and pairs."""
    sources = parts.sources
    router = APIRouter(prefix="/api/v1", tags=["applications"], dependencies=[TOKENS])
    refusals = responses(401, 409, 422, 429, 503)

    def answers(model: type[BaseModel]) -> dict[str, Any]:
        again = {200: {"model": model, "description": "It was sent before"}}
        return {"status_code": 201, "response_model": model, "responses": refusals | again}

    def source_of(token: Annotated[str, Depends(_bearer)]) -> Source:
        return sources.of_token(token)

    Sender = Annotated[Source, Depends(source_of)]

    @router.post("/comparisons", **answers(ComparisonTaken))
    def compare(
        body: ComparisonBody,
        source: Sender,
        token: Annotated[str, Depends(_bearer)],
        response: Response,
    ) -> ComparisonTaken:
        """Send a vote of an application's own, once: the same key and body give the same again.

        200 instead of 201 says that it was there before.
        """
        comparison = _sent(body, body.a, body.b, choice=body.outcome, seconds=body.seconds)
        battle_id, voter, _, is_new = sources.take(source, comparison, token)
        response.status_code = 201 if is_new else 200
        return ComparisonTaken(battle_id=battle_id, voter=voter)

    @router.post("/pairs", **answers(PairTaken))
    def open_pair(
        body: PairBody, source: Sender, token: Annotated[str, Depends(_bearer)], response: Response
    ) -> PairTaken:
        """Make a pair that a page will show; the same key and body give the same again.

        200 instead of 201 says that it was there before.
        """
        pair = _sent(body, body.champion, body.challenger)
        battle_id, voter, key, is_new = sources.take(source, pair, token)
        response.status_code = 201 if is_new else 200
        return PairTaken(pair=battle_id, key=key, voter=voter)

    @router.get("/share", responses=responses(401, 422, 503))
    def draw(turn: Turn, source: Sender) -> ShareBody:
        """Ask whether a pair is to be shown on a turn, before the second answer is made."""
        return ShareBody(turn=turn, show=source.shows(turn), share=source.share)

    return router


def embed_router(parts: Parts) -> APIRouter:
    """Make the routes that pages of registered origins ask; nobody else gets anything."""
    sources = parts.sources

    def let_in(
        request: Request, pair: str, origin: Annotated[str | None, Header()] = None
    ) -> None:
        if origin is None or not sources.is_shown_at(pair, origin):
            raise HTTPException(
                403, "Pages that show this pair are registered with arena sources add --origin."
            )
        setattr(request.state, ALLOWED_ORIGIN, origin)

    router = APIRouter(
        prefix="/embed/pairs/{pair}",
        include_in_schema=False,
        dependencies=[OTHER_PAGES, Depends(let_in)],
    )
    Key = Annotated[str, Depends(_bearer)]

    @router.options("")
    @router.options("/vote")
    def preflight(pair: str) -> Response:
        return Response(status_code=204, headers=ALLOWED)

    @router.get("")
    def look(request: Request, pair: str, key: Key, response: Response) -> PairShown:
        """Give both answers, without a name before the vote."""
        shown, language = sources.look(pair, key), language_of(request.scope)
        last, words = shown.turns[-1], words_in(language)
        response.headers.update(PRIVATE)
        return PairShown(
            state=shown.state,
            a=render(last.a.text),
            b=render(last.b.text),
            vote=_vote(shown.receipt) if shown.receipt else None,
            language=language,
            words={name: words(sentence) for name, sentence in WORDS.items()},
        )

    @router.post("/vote")
    def vote(pair: str, key: Key, body: PairVoteBody, response: Response) -> PairVote:
        """Vote, once; the versions are revealed when the vote is committed."""
        response.headers.update(PRIVATE)
        return _vote(sources.vote(pair, key, body.outcome))

    return router


def _bearer(authorization: Annotated[str, Header()] = "") -> str:
    """Read a token or key from the header."""
    if not authorization.lower().startswith(BEARER):
        raise UnknownSourceError
    return authorization[len(BEARER) :].strip()


def _sent(body: ComparisonBody | PairBody, a: VersionBody, b: VersionBody, **vote: Any) -> Pair:
    return Pair(
        key=storable(body.key),
        prompt=storable(body.prompt),
        a=VersionAnswer(a.version, storable(a.text)),
        b=VersionAnswer(b.version, storable(b.text)),
        rater=storable(body.rater),
        **vote,
    )


def _vote(receipt: Receipt) -> PairVote:
    reveal = receipt.reveal
    versions = reveal and {"a": reveal.a.name, "b": reveal.b.name}
    return PairVote(outcome=receipt.choice, versions=versions)
