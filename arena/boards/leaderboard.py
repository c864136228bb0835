"""The board of a policy: made of the log in the background, rated, and put into words."""

import asyncio
import logging
import time
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence, Set
from dataclasses import asdict, replace
from datetime import datetime, timedelta
from hashlib import sha256
from pathlib import Path
from types import MappingProxyType

from arena.boards.entrants import (
    Families,
    gini_of,
    on_otherwise,
    on_retired,
    shares_of,
    stages_of,
    votes_otherwise,
)
from arena.boards.evidence import fit_check, holds, pair_cells
from arena.boards.export import Written
from arena.boards.fitted import OPTIONS, READING, Fitted, History, fit_log, moment_of
from arena.boards.integrity import RINGS, SELF_NAMING, VOTERS
from arena.boards.newcomers import Judged, with_newcomers
from arena.domain.battle import VOTE_WITHIN
from arena.domain.board_view import (
    NO_VOTES,
    Board,
    BoardRow,
    ModelRecord,
    Moment,
    RecordCheck,
    SelfNaming,
    Waiting,
)
from arena.domain.model import LISTED_AFTER, Entrant, Release, Stage
from arena.domain.vote import DEFAULT, Policy
from arena.errors import StoreError
from arena.store import blocks, kept_boards, labels, log, roster
from arena.store.store import Store
from rating import Comparisons, Report, __version__, field_rates
from rating.errors import NotIdentifiedError, RatingError
from rating.likelihood.identification import connectivity
from rating.sentences import Sentence
from rating.tables import formats
from rating.tables.counts import count_votes
from rating.tables.log import LoggedVotes
from rating.tables.writing import write_rows
from rating.uncertainty.spread import on_quasi_errors

METHOD_BY_VOTER = Sentence(
    "Bradley-Terry, ties half; 95 % intervals by leaving out one voter at a time"
)
METHOD_BY_BOTH = Sentence(
    "Bradley-Terry, ties half; 95 % intervals by leaving out one voter, and one prompt, at a time"
)
METHOD_BY_VOTE = Sentence(
    "Bradley-Terry, ties half; 95 % intervals that take votes as independent"
)
FAILED_FIRST = Sentence(
    "The leaderboard could not be made, which is tried again. The arena's log says why."
)

HELD_RULES = {
    VOTERS: Sentence("single voters"),
    RINGS: Sentence("rings"),
    SELF_NAMING: Sentence("answers that name their model"),
}
"""What the rules of `arena.boards.integrity` check, in words."""
NOT_YET = Sentence(
    "The votes are being counted, and no leaderboard has been made yet. Look again in a moment."
)

EQUAL_POINTS = 1e-6
"""Ratings this close share a place."""
LOOK_S = 2.0
"""How often the log is looked at for new votes."""
REST = 20
"""A board stays for this many times as long as it took to make."""

logger = logging.getLogger(__name__)


class Leaderboard:
    """Keeps the board of a policy; who reads it waits for nothing.

    It is made in the background when the log has grown, and kept in the database, from where other
    processes take it over: see `keep_up`. A board that takes long to make is made at most every
    `REST` times as long, so that a long log costs a twentieth of a processor; but for the first
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
        What a judge says of newcomers.
    rest_s : float
        A board stays for at least so many seconds.
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
        self._rests_until = 0.0
        self._has_rated = False
        self._failed: str | None = None
        self._closing = False

    def read(self) -> Board:
        """Give the board as it was last made, at once."""
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
            self._note(str(error))
        except Exception as error:
            logger.exception("A leaderboard was not made for a fault of ours")
            self._note(repr(error))

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
        if self._board.version == self._version(self._store.read(kept_boards.state)):
            self._failed = None
        elif self._clock() >= self._rests_until:
            self._fill()
            self._make()
        return self.read()

    def _note(self, reason: str) -> None:
        if reason != self._failed:
            logger.error("The leaderboard %s could not be made: %s", self._policy.name, reason)
        self._failed = reason

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
            with self._store.writing() as session:
                is_there = blocks.keep(session, block)
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
                board = with_records(self._board, self._known_records())
                self._keep(self._with_counts(board), head, took_s)

    def _rate(self) -> tuple[str, float]:
        """Make the board of all votes, and after it the past dates that it lacks, one by one.

        Returns
        -------
        head : str
            End of the chain of votes.
        took_s : float
            Seconds until the board was made, past dates left out; 0 for the first with ratings.
        """
        began = self._clock()
        state, columns = self._store.read(kept_boards.votes, self._policy)
        past = self._history.read(columns, self._now())
        board = make_board(
            columns,
            self._known_records(),
            self._policy,
            self._version(state),
            self._now(),
            next(past),
            on_held(state.held),
            state.entrants,
            self._enough,
            self._judged,
        )
        board = self._with_counts(board)
        took_s = self._clock() - began if self._has_rated or not board.rows else 0.0
        self._keep(board, state.head, took_s)
        for history in past:
            if self._closing:
                break
            board = replace(board, history=history)
            self._keep(board, state.head, took_s)
        return state.head, took_s

    def _version(self, state: kept_boards.State) -> str:
        return version_of(state, self._enough, self._judged)

    def _count_battles(self) -> None:
        """Count how battles ended; that rests as a board does."""
        began, asked_since = self._clock(), self._now() - self._vote_within
        records = self._store.read(log.model_records, asked_since, self._policy.kinds)
        self._records = {record.id: record.rounded() for record in records}
        self._naming = self._store.read(labels.self_naming, self._policy)
        self._counted = self._now()
        self._records_rest_until = self._clock() + REST * (self._clock() - began)

    def _with_counts(self, board: Board) -> Board:
        return replace(board, health_counted=self._counted, naming=self._naming)

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


async def keep_up(
    boards: Sequence[Leaderboard], prepare: Callable[[Board], object], ready: asyncio.Event
) -> None:
    """Refresh boards one after another, off the event loop, whenever there are new votes.

    Parameters
    ----------
    prepare : callable
        Called with each board, again and again, before it is asked for; may block.
    ready : asyncio.Event
        Set once each has been looked at.
    """
    while True:
        for board in boards:
            await asyncio.to_thread(board.look)
            await asyncio.to_thread(_prepared, board, prepare)
        ready.set()
        await asyncio.sleep(LOOK_S)


def _prepared(board: Leaderboard, prepare: Callable[[Board], object]) -> None:
    try:
        prepare(board.read())
    except Exception:  # the page will say so to whoever asks for it
        logger.exception("The page of a leaderboard could not be written")


def version_of(
    state: kept_boards.State, enough: int = LISTED_AFTER, judged: Sequence[Judged] = ()
) -> str:
    """Name all that a board is made of: votes, held rules, known voters, entrants, newcomers."""
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
        "Votes since %(when)s are not on this leaderboard: it could not be made anew, which is "
        "tried again. The arena's log says why.",
        when=f"{updated:%Y-%m-%d %H:%M:%S} UTC",
    )


def make_board(
    columns: LoggedVotes,
    records: Sequence[ModelRecord],
    policy: Policy,
    version: str,
    now: datetime,
    history: tuple[Moment, ...] = (),
    held: tuple[str, ...] = (),
    entrants: Mapping[str, Entrant] = MappingProxyType({}),
    enough: int = LISTED_AFTER,
    judged: Sequence[Judged] = (),
) -> Board:
    """Rate the votes that a policy counts; a board that cannot be rated says why."""
    votes = count_votes(columns, READING)
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
        version=version,
        updated=now,
        since=_since(columns),
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
            *held,
            *on_otherwise(otherwise, votes.data, records),
            *on_retired(votes.data, entrants, records),
        ),
        reason=reason,
    )
    if fitted is None or report is None:
        return board
    board = _with_ratings(board, fitted, report, records, stages)
    families = Families.of(entrants, votes.data)
    rows = families.marked(board.rows, fitted.inference)
    rows = tuple(replace(row, otherwise=otherwise.get(row.model, 0)) for row in rows)
    return with_newcomers(replace(board, rows=rows), judged, fitted)


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


def on_held(held: Mapping[str, float]) -> tuple[str, ...]:
    """Say which rules are held, and what share of the votes they would leave out."""
    return tuple(
        Sentence(
            "The check of %(rule)s would leave out %(share)s %% of the votes. So many are a "
            "reason to doubt the check: it is held, and leaves out none.",
            rule=HELD_RULES.get(rule, rule),
            share=round(100 * share),
        )
        for rule, share in held.items()
    )


def with_records(board: Board, records: Sequence[ModelRecord]) -> Board:
    """Give a board with battles, prices and times of models as they were counted anew."""
    known = {record.id: record for record in records}
    rows = [
        replace(
            row,
            price_per_1000=known[row.model].price_per_1000,
            median_s=known[row.model].median_s,
        )
        for row in board.rows
    ]
    health = tuple(record for record in records if record.battles)
    return replace(board, rows=tuple(rows), health=health)


def _method(kinds: Set[str]) -> str:
    if "voter" not in kinds:
        return METHOD_BY_VOTE
    return METHOD_BY_BOTH if "prompt" in kinds else METHOD_BY_VOTER


def _since(columns: LoggedVotes) -> datetime | None:
    counted = columns.created[columns.counted]
    return moment_of(counted[0]) if counted.size else None


def _why(error: NotIdentifiedError, votes: Comparisons) -> str:
    """Say why there is no ranking; simply, where a few more votes are all that it lacks."""
    if not error.groups:
        return NO_VOTES
    groups = connectivity(votes)
    if len(groups.connected) == 1 and not groups.is_identified:
        return Sentence(
            "There is no ranking yet: against the others, some models have always won so far, or "
            "never, so the votes cannot say how far apart they are. The table says what each "
            "needs."
        )
    return Sentence("The votes do not identify ratings yet. %(why)s", why=error.args[0])


def _rows(
    fitted: Fitted,
    report: Report,
    records: Sequence[ModelRecord],
    stages: Mapping[str, Stage],
) -> tuple[BoardRow, ...]:
    known = {record.id: record for record in records}
    wins = _wins(fitted)
    even = fitted.voter_points()
    return tuple(
        BoardRow(
            **asdict(row),
            name=known[row.model].name,
            organisation=known[row.model].organisation,
            kind=known[row.model].kind,
            win_rate=wins[row.model][0],
            win_rate_low=wins[row.model][1],
            win_rate_high=wins[row.model][2],
            voter_rating=even[row.model],
            voter_rank=1 + sum(other > even[row.model] + EQUAL_POINTS for other in even.values()),
            price_per_1000=known[row.model].price_per_1000,
            median_s=known[row.model].median_s,
            stage=stages[row.model],
        )
        for row in report.ratings
    )


def _wins(fitted: Fitted) -> dict[str, tuple[float, float, float]]:
    """Give each model's win probability against an average opponent, with its interval."""
    rates = field_rates(fitted.inference, level=OPTIONS.level)
    columns = (column.tolist() for column in (rates.rate, rates.low, rates.high))
    return dict(zip(rates.models, zip(*columns, strict=True), strict=True))


def _waiting(
    rated: Collection[str],
    records: Sequence[ModelRecord],
    everyone: Comparisons,
    entrants: Mapping[str, Entrant],
    stages: Mapping[str, Stage],
) -> tuple[Waiting, ...]:
    """Give the models without a rating, but for the hidden, and who left without a vote."""
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
    """Give what `arena rate` warns of, but for a column that the board does not have."""
    unsaid = on_quasi_errors(report.quasi_se_error or 0.0)
    warnings = tuple(warning for warning in report.warnings if warning != unsaid)
    if not newcomers:
        return warnings
    names = ", ".join(newcomers)
    aside = Sentence(
        "Set aside with their votes until these connect them to the others: %(names)s.",
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
        If the votes identify no ratings; says what is missing.
    DataError
        If the file cannot be written.
    """
    with store.reading() as session:
        state, columns = kept_boards.votes(session, policy)
        records = log.model_records(session, now - vote_within, policy.kinds)
    version, held = version_of(state, enough), on_held(state.held)
    board = make_board(
        columns, records, policy, version, now, held=held, entrants=state.entrants, enough=enough
    )
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
