"""What the arena's ratings cost, worked out beside its boards and shown as it last was."""

from collections.abc import Callable
from dataclasses import replace
from datetime import datetime
from typing import TYPE_CHECKING

from arena.boards.fitted import OPTIONS, READING, fit_log
from arena.boards.looks import keep_looking
from arena.boards.source import of_newest, with_figures
from arena.domain.board_view import NO_VOTES
from arena.domain.value_view import Valued
from arena.domain.vote import Policy
from arena.store import chain, log, people
from arena.store.store import Store
from rating import __version__
from rating.errors import DataError, NotIdentifiedError
from rating.tables.counts import read_figures
from rating.tables.sources import LoggedColumns
from rating.value.board import Value, value

if TYPE_CHECKING:
    from judge.labels.safety_table import SafetyTable

REST_S = 30.0
REST = 50
"""Between two looks pass at least `REST_S`, and `REST` times as long as the last one took."""


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
        await keep_looking(self.look, "Quality and cost", REST_S, REST)

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
                log.columns(session, self._policy, after=after),
                log.figures(session, self._policy.tagger, after=after),
            )
            records = log.models(session, self._policy.kinds)
        board, reason = _worked_out(votes)
        if board:
            only = of_newest(after, len(votes.battle))
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


def _worked_out(votes: LoggedColumns) -> tuple[Value | None, str | None]:
    if all(votes.left_out):
        return None, NO_VOTES
    try:
        newcomers = frozenset(fit_log(votes).newcomers)
        return value(*read_figures(votes.without(newcomers), READING), OPTIONS), None
    except (DataError, NotIdentifiedError) as error:
        return None, error.args[0]
