"""The check of voters for the admin room: made when somebody asks, and not while they wait."""

import logging
import threading
from collections.abc import Callable
from datetime import datetime

from arena.boards.integrity import LIKE, Applied, accused, apply
from arena.domain.room_view import Examination, Suspect
from arena.domain.vote import DEFAULT
from arena.errors import ArenaError, RoomError
from arena.store import log
from arena.store.store import Store
from rating.errors import RatingError
from rating.sentences import Sentence
from rating.tables.voter_report import VotersReport, check_source

logger = logging.getLogger(__name__)

MOST_SHOWN, MOST_BUSY = 200, 10
"""Suspects, and those who voted most, that a page lists; `arena voters` lists all."""


class VoterCheck:
    """Examines the voters in a thread of its own, one examination at a time.

    Parameters
    ----------
    now : callable
        Time now, in UTC.
    """

    def __init__(self, store: Store, now: Callable[[], datetime]) -> None:
        self._store = store
        self._now = now
        self._turn = threading.Lock()
        self._newest: tuple[VotersReport, Examination] | None = None
        self.problem: str | None = None
        """Why the last attempt gave nothing, as a sentence; None if it did."""

    @property
    def examining(self) -> bool:
        """Whether an examination is under way."""
        return self._turn.locked()

    @property
    def newest(self) -> Examination | None:
        """The last examination; None before the first."""
        return self._newest[1] if self._newest else None

    def begin(self) -> None:
        """Begin an examination, unless one is under way."""
        if self._turn.acquire(blocking=False):
            threading.Thread(target=self._examine, name="voters", daemon=True).start()

    def apply(self, by: str) -> tuple[Applied, ...]:
        """Leave out what the rules name by the newest examination: see `integrity.apply`.

        Raises
        ------
        RoomError
            If there is none.
        StoreError
            If the log cannot be read or written.
        """
        if self._newest is None:
            raise RoomError(Sentence("Examine the voters first: there is nothing to go by yet."))
        return apply(self._store, self._newest[0], self._now(), by)

    def _examine(self) -> None:
        try:
            report = check_source(self._store.read(log.columns, DEFAULT))
            self._newest, self.problem = (report, _examination(report, self._now())), None
        except (ArenaError, RatingError) as error:
            self.problem = error.args[0]
        except Exception:
            logger.exception("The check of voters ended in a fault of ours")
            self.problem = Sentence("It ended in a fault of ours: the arena's log says which.")
        finally:
            self._turn.release()


def _examination(report: VotersReport, at: datetime) -> Examination:
    charged = [
        Suspect(one.voter, one.model, one.score, one.reason, rule)
        for rule, people in accused(report).items()
        for one in people
    ]
    known = {one.voter for one in charged}
    others = [
        Suspect(one.voter, one.model, one.max_log_e, LIKE[one.leading], None)
        for one in report.flagged
        if one.voter not in known and one.leading and one.max_log_e is not None
    ]
    suspects = sorted(charged + others, key=lambda one: (one.rule is None, -one.evidence))
    return Examination(
        at, report.votes, len(report.voters), tuple(suspects[:MOST_SHOWN]), report.notes
    )
