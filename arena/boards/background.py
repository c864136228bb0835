"""Work in the background: how a race stands and what ratings cost, shown as it last was."""

import asyncio
import logging
import time
from collections.abc import Callable
from dataclasses import replace
from datetime import datetime
from typing import TYPE_CHECKING

from arena.boards.fitted import OPTIONS, READING, fit_log
from arena.boards.source import of_newest, with_figures
from arena.domain.board_view import NO_VOTES
from arena.domain.room_view import RaceStanding
from arena.domain.value_view import Valued
from arena.domain.vote import DEFAULT, Policy
from arena.errors import StoreError
from arena.store import blocks, chain, log, people
from arena.store.store import Store
from rating import __version__
from rating.errors import DataError, NotIdentifiedError
from rating.tables.columns import Reading
from rating.tables.counts import read_figures
from rating.tables.log import LoggedVotes
from rating.tables.rows import read_rows
from rating.uncertainty.race import run_race
from rating.value.board import Value, value

if TYPE_CHECKING:
    from judge.labels.safety_table import SafetyTable

logger = logging.getLogger(__name__)

RACE_S, VALUE_S = 10.0, 30.0
"""Seconds between two looks, at least."""
RACE_REST, VALUE_REST = 20, 50
"""Between two looks pass so many times as long as the last one took, at least."""
LEVEL = 0.95


async def keep_looking(look: Callable[[], None], what: str, least_s: float, rest: float) -> None:
    """Look in a thread, rest, and look again, until cancelled; a fault ends one look only.

    Parameters
    ----------
    look : callable
        Works something out, if votes were added.
    what : str
        Names it at the beginning of a sentence of the log.
    least_s, rest : float
        Between two looks pass at least ``least_s``, and ``rest`` times as long as the last took.
    """
    while True:
        began = time.monotonic()
        try:
            await asyncio.to_thread(look)
        except StoreError as error:
            logger.warning("%s could not be read: %s", what, error)
        except Exception:
            logger.exception("%s ended in a fault of ours", what)
        await asyncio.sleep(max(least_s, rest * (time.monotonic() - began)))


def standing_of(votes: LoggedVotes, between: tuple[str, str]) -> RaceStanding:
    """Run a race over the votes that count; before both have any, nothing is known of it."""
    try:
        reading = Reading(prompts=True, ordered=True)
        race = run_race(read_rows(votes, reading), between, level=LEVEL)
    except DataError:  # no votes, or none on one of the two
        return RaceStanding(between, LEVEL)
    look = race.looks[-1] if race.looks else None
    if look is None:
        return RaceStanding(between, LEVEL, race.votes, race.voters)
    return RaceStanding(
        between,
        LEVEL,
        look.votes,
        look.voters,
        look.lead,
        look.lower,
        look.upper,
        separated=race.separated is not None,
    )


class RaceWatch:
    """Keeps how a race stands; nobody who asks waits for it."""

    def __init__(self, store: Store, between: tuple[str, str]) -> None:
        self._store = store
        self._between = between
        self._head: str | None = None
        self._standing = RaceStanding(between, LEVEL)

    def read(self) -> RaceStanding:
        """Give what was worked out last."""
        return self._standing

    def look(self) -> None:
        """Work it out now, if votes were added."""
        with self._store.reading() as session:
            head = chain.head(session)
            if head == self._head:
                return
            votes = blocks.columns(session, DEFAULT, after=log.newest(session))
        self._standing, self._head = standing_of(votes, self._between), head

    async def keep_on(self) -> None:
        """Work it out, rest, and look whether votes were added, until cancelled."""
        await keep_looking(self.look, "The race", RACE_S, RACE_REST)


class Valuation:
    """Keeps what a policy's votes say of quality and cost; nobody who asks waits for it.

    Parameters
    ----------
    now : callable
        Time now, in UTC.
    safety : SafetyTable, optional
        What models refuse.
    """

    def __init__(
        self,
        store: Store,
        policy: Policy,
        now: Callable[[], datetime],
        safety: "SafetyTable | None" = None,
    ) -> None:
        self._store = store
        self._safety = safety
        self._policy = policy
        self._now = now
        self._valued: Valued | None = None

    def read(self) -> Valued | None:
        """Give what was worked out last; None before the first time."""
        return self._valued

    async def keep_on(self) -> None:
        """Work it out, rest, and look whether votes were added, until cancelled."""
        await keep_looking(self.look, "Quality and cost", VALUE_S, VALUE_REST)

    def look(self) -> None:
        """Work it out now, if votes were added."""
        with self._store.reading() as session:
            known = people.adopted(session)
            head = chain.head(session)[:12] or "empty"
            version = f"{head}-{known}-{__version__}"
            if self._valued is not None and self._valued.version == version:
                return
            after = log.newest(session)
            votes = with_figures(
                blocks.columns(session, self._policy, after=after),
                log.figures(session, self._policy.tagger, after=after),
            )
            records = log.models(session, self._policy.kinds)
        board, reason = _worked_out(votes)
        if board:
            only = of_newest(after, len(votes))
            board = replace(board, warnings=(*only, *board.warnings))
        self._valued = Valued(
            policy=self._policy.name,
            version=version,
            updated=self._now(),
            names={record.id: record.name for record in records},
            value=board,
            reason=reason,
            safety=self._safety,
        )


def _worked_out(votes: LoggedVotes) -> tuple[Value | None, str | None]:
    if not votes.counted.any():
        return None, NO_VOTES
    try:
        newcomers = frozenset(fit_log(votes).newcomers)
        return value(*read_figures(votes.without(newcomers), READING), OPTIONS), None
    except (DataError, NotIdentifiedError) as error:
        return None, error.args[0]
