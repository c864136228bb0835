"""Leaderboards: the board of a policy, made from the log in the background.

`make_board` rates the votes and puts the result into words; `Leaderboard` keeps it up to date, for
all processes. New models that only a judge rates, as `arena cold-start` wrote them, are shown on a
board without a rank. `make_file` writes an export in a process of its own, so that no battle waits
for it.
"""

import asyncio
import logging
import threading
import time
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence, Set
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict, replace
from datetime import UTC, datetime, timedelta
from hashlib import sha256
from math import fsum
from multiprocessing import get_context
from pathlib import Path
from shutil import rmtree
from tempfile import mkdtemp
from threading import Lock
from typing import Annotated, Self

from pydantic import BaseModel, ConfigDict, Field, FiniteFloat, ValidationError, model_validator

from arena.boards.adjusted import adjusted
from arena.boards.evaluation import fit_check, holds, pair_cells
from arena.boards.export import Written, export_battles, export_votes
from arena.boards.fitted import (
    OPTIONS,
    READING,
    Fitted,
    History,
    fit_log,
    gini_of,
    moment_of,
    on_otherwise,
    on_retired,
    shares_of,
    stages_of,
    votes_otherwise,
    with_families,
)
from arena.boards.integrity import RINGS, SELF_NAMING, VOTERS
from arena.domain.battle import VOTE_WITHIN
from arena.domain.board_view import (
    NO_VOTES,
    Board,
    BoardRow,
    ModelRecord,
    Moment,
    NewModel,
    RecordCheck,
    SelfNaming,
    Waiting,
)
from arena.domain.model import LISTED_AFTER, Entrant, Release, Stage
from arena.domain.room_view import EXPORT_ENDINGS, EXPORTS
from arena.domain.vote import DEFAULT, Days, Policy, attributes
from arena.errors import ArenaError, RoomError, SettingsError, StoreError
from arena.store import blocks, kept_boards, labels, log, roster, styles
from arena.store.store import Store, existing
from judge.studies.newcomer import RANKED_FROM
from judge.studies.options import FEWEST_KNOWN
from rating import Comparisons, Report, __version__, field_rates
from rating.contrasts import on_quasi_errors
from rating.errors import NotIdentifiedError, RatingError
from rating.identification import connectivity
from rating.sentences import Sentence
from rating.tables import formats
from rating.tables.coding import LoggedVotes
from rating.tables.counts import count_votes
from rating.tables.duckdb_engine import write_rows
from rating.tables.files import parsed, read_text

# New models that a judge rates

EQUAL_POINTS = 1e-6
"""Ratings this close share a place."""
FEWEST_RATED = 2
"""Models that people's votes have to rate beside new models."""

Text = Annotated[str, Field(max_length=1000)]


class _Part(BaseModel):
    model_config = ConfigDict(frozen=True, strict=True)


class _Reach(_Part):
    value: FiniteFloat
    lower: FiniteFloat
    upper: FiniteFloat

    @model_validator(mode="after")
    def _holds(self) -> Self:
        if not self.lower <= self.value <= self.upper:
            raise ValueError(f"{self.value} does not lie from {self.lower} to {self.upper}")
        return self


class _Placed(_Part):
    model: Text
    rating: FiniteFloat
    by: Text


class Judged(_Part):
    """What a judge says of a new model, as ``arena cold-start --format json`` writes it.

    Attributes
    ----------
    judge_only : object
        The judge's rating with its interval, in points at which the anchors' average is 1000.
    board : tuple of object
        The anchors by people's ratings, ``by`` being ``people``, and the new model.
    """

    model: Text
    judge: Text
    level: FiniteFloat
    calibrated_on: Annotated[int, Field(ge=1)]
    judge_only: _Reach
    board: Annotated[list[_Placed], Field(max_length=10_000)]
    warnings: Annotated[list[Text], Field(max_length=100)]

    def shift(self, ratings: Mapping[str, float]) -> float | None:
        """Give the points to be added to be on a board's scale, on which its anchors are.

        None where fewer than `FEWEST_KNOWN` of its anchors have a rating there.
        """
        known = [one for one in self.board if one.by == "people" and one.model in ratings]
        if len(known) < FEWEST_KNOWN:
            return None
        return fsum(ratings[one.model] - one.rating for one in known) / len(known)


def read_newcomers(path: Path) -> tuple[Judged, ...]:
    """Read what `arena cold-start` wrote: a file, or every JSON file of a folder, by name.

    Raises
    ------
    SettingsError
        If there is no such file or folder, it holds something else, or two rate one model.
    """
    files = sorted(path.glob("*.json")) if path.is_dir() else [path]
    judged = [_read(file) for file in files]
    models = [one.model for one in judged]
    if twice := sorted({model for model in models if models.count(model) > 1}):
        msg = f"ARENA_NEWCOMERS: {str(path)!r} has two ratings of {twice[0]!r}: leave one."
        raise SettingsError(msg)
    return tuple(judged)


def _read(file: Path) -> Judged:
    named = f"ARENA_NEWCOMERS: {str(file)!r}"
    content = parsed(read_text(file, SettingsError), named, SettingsError)
    match content:
        case {"model": model, "judge_only": {"lower": None}}:
            raise SettingsError(
                f"{named} rates {str(model)[:80]!r} without an interval; the leaderboard shows "
                "none without: remove the file, or see its warnings for what is missing."
            )
    try:
        one = Judged.model_validate(content)
    except ValidationError as error:
        wrong = error.errors()[0]
        at = ".".join(map(str, wrong["loc"])) or "its content"
        raise SettingsError(
            f"{named} is not what arena cold-start --format json writes: {at}: "
            f"{wrong['msg']}, got {str(wrong['input'])[:80]!r}."
        ) from error
    if one.level != OPTIONS.level:
        raise SettingsError(
            f"{named} has intervals of {100 * one.level:g}%, and the leaderboard those of "
            f"{100 * OPTIONS.level:g}%: run arena cold-start with --level {OPTIONS.level:g}."
        )
    return one


def _with_newcomers(board: Board, judged: Sequence[Judged], fitted: Fitted) -> Board:
    """Give a board on which models with few votes stand by a judge's word, without a rank.

    They leave the ranks of the others, which are those among themselves, and what is said of
    neighbours; their votes stay in the fit, as every vote does. A model with `RANKED_FROM` votes
    is rated by these, whatever a judge says.
    """
    everybody: tuple[BoardRow | Waiting, ...] = (*board.rows, *board.waiting)
    few = {one.model: one for one in everybody if one.votes < RANKED_FROM}
    about = {one.model: one for one in judged if one.model in few}
    rows = [row for row in board.rows if row.model not in about]
    ratings = {row.model: row.rating for row in rows}
    newcomers = [
        NewModel(
            **attributes(few[model], "model", "name", "organisation", "stage", "votes"),
            until=RANKED_FROM,
            rating=one.judge_only.value + shift,
            lower=one.judge_only.lower + shift,
            upper=one.judge_only.upper + shift,
            judge=one.judge,
            calibrated_on=one.calibrated_on,
            warnings=tuple(one.warnings),
        )
        for model, one in about.items()
        if (shift := one.shift(ratings)) is not None
    ]
    if not newcomers or len(rows) < FEWEST_RATED:
        return board
    gone = {one.model for one in newcomers}
    return replace(
        board,
        rows=_ranked_among_themselves(board.rows, gone, fitted),
        waiting=tuple(one for one in board.waiting if one.model not in gone),
        holds=tuple(one for one in board.holds if not {one.above, one.below} & gone),
        among=tuple(one for one in board.among if one.model not in gone),
        newcomers=tuple(sorted(newcomers, key=lambda one: (-one.rating, one.model))),
    )


def _ranked_among_themselves(
    rows: Sequence[BoardRow], gone: Collection[str], fitted: Fitted
) -> tuple[BoardRow, ...]:
    """Give the rows of those who stay; no claim is made that was not made among all."""
    stay = [row for row in rows if row.model not in gone]
    if len(stay) == len(rows):
        return tuple(stay)
    claimed = any(row.rank_low is not None for row in rows)
    places = [fitted.fit.models.index(row.model) for row in stay]
    ranges = fitted.rank_ranges().among(places) if claimed else None
    low = [None] * len(stay) if ranges is None else ranges.low.tolist()
    high = [None] * len(stay) if ranges is None else ranges.high.tolist()
    return tuple(
        replace(
            row,
            rank=1 + sum(other.rating > row.rating + EQUAL_POINTS for other in stay),
            voter_rank=1
            + sum(other.voter_rating > row.voter_rating + EQUAL_POINTS for other in stay),
            rank_low=low[i] if ranges is not None and ranges.claimed[i] else None,
            rank_high=high[i] if ranges is not None and ranges.claimed[i] else None,
        )
        for i, row in enumerate(stay)
    )


# Boards

METHOD_BY_VOTER = Sentence(
    "Bradley-Terry, ties half; 95% intervals clustered by voter (CR3 jackknife)"
)
METHOD_BY_BOTH = Sentence(
    "Bradley-Terry, ties half; 95% intervals clustered by voter and prompt (CR3 jackknife)"
)
METHOD_BY_VOTE = Sentence("Bradley-Terry, ties half; 95% intervals that take votes as independent")
FAILED_FIRST = Sentence(
    "The leaderboard could not be computed; the arena will try again. See the arena's log for "
    "the reason."
)

HELD_RULES = {
    VOTERS: Sentence("single voters"),
    RINGS: Sentence("coordinated voters"),
    SELF_NAMING: Sentence("answers that name their model"),
}
"""What the rules of `arena.boards.integrity` check, in words."""
NOT_YET = Sentence(
    "The votes are being counted, and no leaderboard has been made yet. Look again in a moment."
)

LOOK_S = 2.0
"""How often the log is looked at for new votes."""
FIRST_BOARD_S = 2.0
"""How long a page of an arena that starts waits for its first board."""
COUNTS_S = 2.0
"""How long the texts of answers are counted at a time, where many are not yet."""
REST = 20
"""A board stays for this many times as long as it took to make."""

logger = logging.getLogger(__name__)


class Leaderboard:
    """Keeps the board of a policy; only pages wait, for the first of a starting arena.

    It is made in the background when the log has grown, and kept in the database, from where other
    processes take it over: see `keep_up`. A board that takes long to make is made at most every
    `REST` times as long, so that a long log costs a twentieth of a processor; except the first
    one with ratings, as most of that is loading what the next finds. Where one cannot be made the
    last one stays, and says so.

    Parameters
    ----------
    now : callable
        Time now, in UTC.
    clock : callable
        Seconds that pass.
    record : callable
        The last check of the record.
    key : bytes
        Signs the board in the database: one that is signed otherwise is not shown.
    enough : int
        Counted votes from which a model is more than provisional.
    vote_within : timedelta
        How long a battle takes a vote after its models were last asked: how battles ended is
        counted of those that take none any more.
    judged : sequence of Judged
        What a judge says of new models.
    rest_s : float
        A board stays for at least this many seconds.
    """

    def __init__(
        self,
        store: Store,
        policy: Policy,
        now: Callable[[], datetime],
        clock: Callable[[], float] = time.monotonic,
        record: Callable[[], RecordCheck | None] = lambda: None,
        key: bytes = b"",
        enough: int = LISTED_AFTER,
        vote_within: timedelta = VOTE_WITHIN,
        judged: Sequence[Judged] = (),
        rest_s: float = 0.0,
    ) -> None:
        self._store = store
        self._policy = policy
        self._now = now
        self._clock = clock
        self._rest_s = rest_s
        self._record = record
        self._key = key
        self._enough = enough
        self._vote_within = vote_within
        self._judged = judged
        self._history = History()
        self._records: Mapping[str, ModelRecord] = {}
        self._counted: datetime | None = None
        self._naming: SelfNaming | None = None
        self._records_rest_until = 0.0
        self._board = _no_board(policy, now())
        self._written: kept_boards.Written | None = None
        self._rests_until = self._adjusts_from = 0.0
        self._styled = 0
        self._has_rated = False
        self._failed: str | None = None
        self._closing = False
        self._looked = threading.Event()

    def read(self, *, waits: bool = False) -> Board:
        """Give the board as it was last made; off the event loop one may wait for the first."""
        self._looked.wait(FIRST_BOARD_S if waits else 0)
        board, record = self._board, self._record()
        if self._failed:
            why = FAILED_FIRST if board.reason == NOT_YET else _on_failure(board.updated)
            board = replace(board, warnings=(why, *board.warnings))
        return board if board.record is record else replace(board, record=record)

    def close(self) -> None:
        """Break off what takes long as soon as that leaves nothing half done."""
        self._closing = True

    def look(self) -> None:
        """Refresh the board; what goes wrong is logged, once a reason, and said on the board."""
        try:
            self.refresh()
        except (StoreError, RatingError) as error:
            self._fail(str(error))
        except Exception as error:
            logger.exception("A leaderboard was not made for a fault of ours")
            self._fail(repr(error))
        finally:
            self._looked.set()

    def _fail(self, reason: str) -> None:
        if reason != self._failed:
            logger.error("The leaderboard %s could not be made: %s", self._policy.name, reason)
        self._failed = reason

    def refresh(self) -> Board:
        """Take over the board that is kept, or make it if that is not of all votes; may block.

        Raises
        ------
        StoreError
            If the log cannot be read, or the new board not be kept.
        rating.errors.RatingError
            If the votes cannot be rated for another reason than that they are too few.
        """
        self._take_over()
        version = version_of(self._store.read(kept_boards.state), self._enough, self._judged)
        if self._board.version == version:
            self._failed = None
        elif self._clock() >= self._rests_until:
            self._fill()
            self._make()
        known, is_new = self._board.adjusted, self._board.version == version
        stale = is_new and self._board.rows and (known is None or known.version != version)
        if stale and self._clock() >= self._adjusts_from and not self._closing:
            self._adjust()
        return self.read()

    def _adjust(self) -> None:
        """Adjust the board for style; that rests by itself, and the board does not wait for it."""
        with self._store.sole(f"the board {self._policy.name}") as mine:
            if not mine:
                return
            began = self._clock()
            for link in styles.count(self._store, self._styled):
                self._styled = link
                if self._closing or self._clock() > began + COUNTS_S:
                    return  # the next look goes on from here
            state, columns = self._store.read(kept_boards.votes, self._policy, styles=True)
            version = version_of(state, self._enough, self._judged)
            board = replace(self._board, adjusted=adjusted(columns, self._board, version))
            self._keep(board, state.head, self._written.took_s if self._written else 0.0)
            self._adjusts_from = self._clock() + REST * (self._clock() - began)

    def _take_over(self) -> None:
        """Show the board that another process has made, and rest as long as it does.

        One that was taken away, as it was made of counts that were wrong, is forgotten.
        """
        written = self._store.read(kept_boards.written, self._policy.name)
        if written == self._written:
            return
        if written is None:
            self._board, self._written = _no_board(self._policy, self._now()), None
            self._history, self._rests_until = History(), 0.0
            return
        board = self._store.read(kept_boards.read, self._policy.name, self._key)
        self._written = written
        if board is not None:
            self._board = board
            self._history.know(board.history)
            self._records = {record.id: record for record in board.health}
            self._counted, self._naming = board.health_counted, board.naming
            self._rests_until = self._clock() + max(self._rest_s, REST * written.took_s)

    def _fill(self) -> None:
        """Store the blocks of votes that are full and not there yet."""
        for block in blocks.lacking(self._store):
            is_there = self._store.write(blocks.keep, block)
            if not is_there:  # votes of it were taken out meanwhile
                return
            logger.info("Counted the votes up to link %d", block["last"])
            if self._closing:
                return

    def _make(self) -> None:
        """Make the board of all votes, and after it how all battles of a model ended.

        That takes longer and rests by itself.
        """
        self._rests_until = self._clock() + self._rest_s
        with self._store.sole(f"the board {self._policy.name}") as mine:
            if not mine:
                return
            if not self._records:
                self._count_battles()
            began = self._clock()
            try:
                head, took_s = self._rate()
            finally:
                is_first = not self._has_rated
                self._has_rated |= bool(self._board.rows)
                rest_s = 0.0 if is_first and self._has_rated else REST * (self._clock() - began)
                self._rests_until = self._clock() + max(self._rest_s, rest_s)
            if self._clock() >= self._records_rest_until and not self._closing:
                self._count_battles()
                records = self._known_records()
                known = {record.id: record for record in records}
                rows = [
                    replace(row, **attributes(known[row.model], "price_per_1000", "median_s"))
                    for row in self._board.rows
                ]
                health = tuple(record for record in records if record.battles)
                board = replace(self._board, rows=tuple(rows), health=health)
                self._keep(board, head, took_s)

    def _rate(self) -> tuple[str, float]:
        """Make the board of all votes, and after it the past dates that it lacks, one by one.

        Returns
        -------
        head : str
            End of the chain of votes.
        took_s : float
            Seconds until the board was made, past dates excluded; 0 for the first with ratings.
        """
        began = self._clock()
        state, columns = self._store.read(kept_boards.votes, self._policy)
        past = self._history.read(columns, self._now())
        board = make_board(
            columns,
            self._known_records(),
            self._policy,
            state,
            self._now(),
            next(past),
            self._enough,
            self._judged,
        )
        board = replace(board, adjusted=self._board.adjusted)
        took_s = self._clock() - began if self._has_rated or not board.rows else 0.0
        self._keep(board, state.head, took_s)
        for history in past:
            if self._closing:
                break
            board = replace(board, history=history)
            self._keep(board, state.head, took_s)
        return state.head, took_s

    def _count_battles(self) -> None:
        """Count how battles ended; that rests as a board does."""
        began, asked_since = self._clock(), self._now() - self._vote_within
        records = self._store.read(log.model_records, asked_since, self._policy.kinds)
        self._records = {record.id: record.rounded() for record in records}
        self._naming = self._store.read(labels.self_naming, self._policy)
        self._counted = self._now()
        self._records_rest_until = self._clock() + REST * (self._clock() - began)

    def _known_records(self) -> list[ModelRecord]:
        """Give all models that there are, with what was counted of their battles."""
        return [
            replace(
                self._records.get(record.id, record),
                name=record.name,
                organisation=record.organisation,
            )
            for record in self._store.read(log.models, self._policy.kinds)
        ]

    def _keep(self, board: Board, head: str, took_s: float) -> None:
        """Show a board from here on, with when the battles were counted, and store it for all."""
        board = replace(board, health_counted=self._counted, naming=self._naming)
        written = kept_boards.Written(board.version, took_s, self._now())
        with self._store.writing() as session:
            kept_boards.keep(session, board, written, self._key)
            if board.rows:
                method = {"words": board.method, "level": board.level, "seed": OPTIONS.seed}
                log.record(session, board, method, __version__, head)
            if board.policy == DEFAULT.name:
                stages = {row.model: row.stage for row in board.rows}
                roster.note_stages(session, stages, written.created)
        self._board, self._written, self._failed = board, written, None


async def keep_up(boards: Sequence[Leaderboard], prepare: Callable[[Board], object]) -> None:
    """Refresh boards one after another, off the event loop, whenever there are new votes.

    Parameters
    ----------
    prepare : callable
        Called with each board, again and again, before it is asked for; may block.
    """
    while True:
        for board in boards:
            await asyncio.to_thread(board.look)
            try:
                await asyncio.to_thread(prepare, board.read())
            except Exception:  # the page reports it
                logger.exception("The page of a leaderboard could not be written")
        await asyncio.sleep(LOOK_S)


def version_of(
    state: kept_boards.State, enough: int = LISTED_AFTER, judged: Sequence[Judged] = ()
) -> str:
    """Name all that a board is made of: votes, held rules, known voters, models, new models."""
    entrants, other = sorted(state.entrants.items()), enough != LISTED_AFTER and enough
    beside: tuple[object, ...] = (sorted(state.held.items()), state.known, entrants, other)
    beside += (judged,) if judged else ()
    marks = f"-{sha256(repr(beside).encode()).hexdigest()[:6]}" if any(beside) else ""
    return f"{state.head[:12] or 'empty'}{marks}-{__version__}"


def _no_board(policy: Policy, now: datetime) -> Board:
    return Board(
        policy=policy.name,
        policy_rules=policy.rules,
        version="",
        updated=now,
        since=None,
        votes=0,
        voters=0,
        left_out={},
        method=METHOD_BY_VOTER,
        level=OPTIONS.level,
        anchor_mean=OPTIONS.mean,
        waiting=(),
        pairs=(),
        reason=NOT_YET,
    )


def _on_failure(updated: datetime) -> str:
    return Sentence(
        "Votes since %(when)s are not on this leaderboard: it could not be updated, and the "
        "arena will try again. See the arena's log for the reason.",
        when=f"{updated:%Y-%m-%d %H:%M:%S} UTC",
    )


def make_board(
    columns: LoggedVotes,
    records: Sequence[ModelRecord],
    policy: Policy,
    state: kept_boards.State,
    now: datetime,
    history: tuple[Moment, ...] = (),
    enough: int = LISTED_AFTER,
    judged: Sequence[Judged] = (),
) -> Board:
    """Rate the votes that a policy counts; a board that cannot be rated gives the reason."""
    votes, entrants = count_votes(columns, READING), state.entrants
    counted = columns.created[columns.counted]
    try:
        fitted, reason = fit_log(columns, votes), None
    except NotIdentifiedError as error:
        fitted, reason = None, _why(error, votes.data)
    report = fitted.report() if fitted else None
    order = [row.model for row in report.ratings] if report else []
    stages = stages_of(columns, entrants, [record.id for record in records], enough)
    shares, otherwise = shares_of(votes.data, records), votes_otherwise(columns, entrants)
    board = Board(
        policy=policy.name,
        policy_rules=policy.rules,
        version=version_of(state, enough, judged),
        updated=now,
        since=moment_of(counted[0]) if counted.size else None,
        votes=votes.data.n_votes,
        voters=len(votes.voters),
        left_out=dict(votes.dropped),
        method=METHOD_BY_VOTE,
        level=OPTIONS.level,
        anchor_mean=OPTIONS.mean,
        listed_after=enough,
        waiting=_waiting(order, records, votes.data, entrants, stages),
        pairs=pair_cells(votes.data, fitted),
        history=history,
        shares=shares,
        gini=gini_of(shares),
        health=tuple(record for record in records if record.battles),
        warnings=(
            *_on_held(state.held),
            *on_otherwise(otherwise, votes.data, records),
            *on_retired(votes.data, entrants, records),
        ),
        reason=reason,
    )
    if fitted is None or report is None:
        return board
    board = _with_ratings(board, fitted, report, records, stages)
    rows = with_families(board.rows, entrants, votes.data, fitted.inference)
    rows = tuple(replace(row, otherwise=otherwise.get(row.model, 0)) for row in rows)
    return _with_newcomers(replace(board, rows=rows), judged, fitted)


def _with_ratings(
    board: Board,
    fitted: Fitted,
    report: Report,
    records: Sequence[ModelRecord],
    stages: Mapping[str, Stage],
) -> Board:
    kinds = {kind.cluster for kind in fitted.inference.kinds}
    return replace(
        board,
        data_hash=fitted.votes.data_hash,
        by_voter="voter" in kinds,
        effective_voters=report.votes.effective_voters,
        top_voter_share=report.votes.top_voter_share,
        method=_method(kinds),
        rows=_rows(fitted, report, records, stages),
        holds=holds(fitted),
        fit_check=fit_check(fitted, [row.model for row in report.ratings]),
        among=fitted.among_voters(),
        warnings=(*board.warnings, *_warnings(report, fitted.newcomers)),
    )


def _on_held(held: Mapping[str, float]) -> tuple[str, ...]:
    """Return which rules are held, and what share of the votes they would exclude."""
    return tuple(
        Sentence(
            "The rule %(rule)s would exclude %(share)s%% of the votes, more than is plausible. "
            "It is suspended and excludes none.",
            rule=HELD_RULES.get(rule, rule),
            share=round(100 * share),
        )
        for rule, share in held.items()
    )


def _method(kinds: Set[str]) -> str:
    if "voter" not in kinds:
        return METHOD_BY_VOTE
    return METHOD_BY_BOTH if "prompt" in kinds else METHOD_BY_VOTER


def _why(error: NotIdentifiedError, votes: Comparisons) -> str:
    """Explain why there is no ranking; simply, where a few more votes are all that it lacks."""
    if not error.groups:
        return NO_VOTES
    groups = connectivity(votes)
    if len(groups.connected) == 1 and not groups.is_identified:
        return Sentence(
            "There is no ranking yet: some models have won or lost all of their battles against "
            "the others, so that their distance cannot be estimated. The table shows what each "
            "model needs."
        )
    return Sentence("The votes do not identify ratings yet. %(why)s", why=error.args[0])


def _rows(
    fitted: Fitted, report: Report, records: Sequence[ModelRecord], stages: Mapping[str, Stage]
) -> tuple[BoardRow, ...]:
    known = {record.id: record for record in records}
    rates = field_rates(fitted.inference, level=OPTIONS.level)
    columns = (column.tolist() for column in (rates.rate, rates.low, rates.high))
    wins = dict(zip(rates.models, zip(*columns, strict=True), strict=True))
    even = fitted.voter_points()
    return tuple(
        BoardRow(
            **asdict(row),
            **attributes(known[row.model], "name", "organisation", "kind"),
            **attributes(known[row.model], "price_per_1000", "median_s"),
            win_rate=wins[row.model][0],
            win_rate_low=wins[row.model][1],
            win_rate_high=wins[row.model][2],
            voter_rating=even[row.model],
            voter_rank=1 + sum(other > even[row.model] + EQUAL_POINTS for other in even.values()),
            stage=stages[row.model],
        )
        for row in report.ratings
    )


def _waiting(
    rated: Collection[str],
    records: Sequence[ModelRecord],
    everyone: Comparisons,
    entrants: Mapping[str, Entrant],
    stages: Mapping[str, Stage],
) -> tuple[Waiting, ...]:
    """Give the models without a rating, except the hidden, and who left without a vote."""
    wins = everyone.wins()
    won = dict(zip(everyone.models, wins.sum(axis=1).tolist(), strict=True))
    lost = dict(zip(everyone.models, wins.sum(axis=0).tolist(), strict=True))
    waiting = (
        Waiting(
            model=record.id,
            name=record.name,
            organisation=record.organisation,
            votes=round(won.get(record.id, 0) + lost.get(record.id, 0)),
            reason=_what_is_missing(won.get(record.id, 0), lost.get(record.id, 0)),
            stage=stages[record.id],
        )
        for record in records
        if record.id not in rated
        and entrants.get(record.id, Entrant()).release is not Release.HIDDEN
    )
    return tuple(one for one in waiting if one.votes or one.stage is not Stage.RETIRED)


def _what_is_missing(won: float, lost: float) -> str:
    if not won and not lost:
        return Sentence("no votes yet")
    if not lost:
        return Sentence("has not lost yet; needs a loss or a tie")
    if not won:
        return Sentence("has not won yet; needs a win or a tie")
    return Sentence("needs votes against more models")


def _warnings(report: Report, newcomers: Sequence[str]) -> tuple[str, ...]:
    """Give what `arena rate` warns of, except a column that the board does not have."""
    unsaid = on_quasi_errors(report.quasi_se_error or 0.0)
    warnings = tuple(warning for warning in report.warnings if warning != unsaid)
    if not newcomers:
        return warnings
    names = ", ".join(newcomers)
    aside = Sentence(
        "Not rated, because their votes do not connect them to the other models: %(names)s.",
        names=names,
    )
    return (*warnings, aside)


def export_ratings(
    store: Store,
    policy: Policy,
    path: Path,
    now: datetime,
    *,
    enough: int = LISTED_AFTER,
    vote_within: timedelta,
) -> Written:
    """Write the board of all votes that a policy counts, one row a model.

    Prices and times are exact here, and of battles that take no vote any more.

    Parameters
    ----------
    vote_within : timedelta
        How long a battle takes a vote after its models were last asked.

    Raises
    ------
    NotIdentifiedError
        If the votes identify no ratings; names what is missing.
    DataError
        If the file cannot be written.
    """
    with store.reading() as session:
        state, columns = kept_boards.votes(session, policy, styles=True)
        records = log.model_records(session, now - vote_within, policy.kinds)
    board = make_board(columns, records, policy, state, now, enough=enough)
    board = replace(board, adjusted=adjusted(columns, board, board.version))
    rows = board.to_rows()
    if not rows:
        raise NotIdentifiedError(board.reason or "No model is rated.")
    cast = columns.created[columns.counted]
    write_rows(rows, {name: formats.COLUMNS.get(name, "VARCHAR") for name in rows[0]}, path)
    votes: Counter[str | None] = Counter(board.left_out)
    votes[None] = board.votes
    return Written(
        rows=len(rows),
        votes=votes,
        first=moment_of(cast.min()),
        last=moment_of(cast.max()),
        method=f"{board.method}; hash of the votes {board.data_hash}",
    )


# Exports of the admin area

ANOTHER = Sentence("Another export is being made: wait until it is there.")
EMPTY_DAYS = Sentence("Nothing lies between these days: the first has to come before the other.")
UNKNOWN = Sentence("Choose what is to be exported, and as what.")
_ONE_AT_A_TIME = Lock()


def make_file(url: str, what: str, ending: str, days: Days, vote_within: timedelta) -> Path:
    """Export what `DEFAULT` counts to a new file, in a folder of its own that the caller removes.

    Parameters
    ----------
    url : str
        Of the database.
    what, ending : str
        One of `EXPORTS`, and of `EXPORT_ENDINGS`.
    vote_within : timedelta
        How long a battle takes a vote after its models were last asked.

    Raises
    ------
    RoomError
        If that cannot be exported, or another export is being made.
    """
    if what not in EXPORTS or ending not in EXPORT_ENDINGS:
        raise RoomError(UNKNOWN)
    if days.since and days.until and days.until <= days.since:
        raise RoomError(EMPTY_DAYS)
    if not _ONE_AT_A_TIME.acquire(blocking=False):
        raise RoomError(ANOTHER)
    file = Path(mkdtemp(prefix="arena-export-")) / f"{what}.{ending}"
    try:
        with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
            why_not = pool.submit(_export, url, what, file, days, vote_within).result()
        if why_not:
            raise RoomError(Sentence("Nothing was exported: %(why)s", why=why_not))
    except BaseException:
        rmtree(file.parent)
        raise
    finally:
        _ONE_AT_A_TIME.release()
    return file


def _export(url: str, what: str, file: Path, days: Days, vote_within: timedelta) -> str:
    """Write the file; gives why that is not possible, empty where it is done."""
    try:
        with existing(url) as store:
            _write(store, what, file, days, vote_within)
    except (ArenaError, RatingError) as error:
        return str(error)
    return ""


def _write(store: Store, what: str, file: Path, days: Days, vote_within: timedelta) -> None:
    if what == "ratings":
        export_ratings(store, DEFAULT, file, datetime.now(UTC), vote_within=vote_within)
        return
    with store.reading() as session:
        if what == "votes":
            links, total = log.links(session, DEFAULT), log.count_links(session)
            export_votes(links, DEFAULT, file, total=total, days=days)
        else:
            some = log.battles(session, DEFAULT, voted=True, days=days)
            export_battles(some, DEFAULT, file, "answers" if what == "answers" else "arena")
