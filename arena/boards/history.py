"""The board at past dates, from the times of the votes."""

from datetime import datetime, time, timedelta

from arena.boards.fitted import Fitted, fit_log
from arena.domain.evidence import Moment, PastRating
from rating import to_points
from rating.errors import NotIdentifiedError
from rating.tables.logged import LoggedColumns

MOST_MOMENTS = 6
LEAST_DAYS = 3
"""Votes of fewer days have no history."""
DAY = timedelta(days=1)


def moments(first: datetime, now: datetime) -> tuple[datetime, ...]:
    """Choose past midnights, evenly apart from the first vote on: at most `MOST_MOMENTS`.

    They stay the same for as long as the votes have no more days than these can show, so that
    what was computed for them can be kept.

    Examples
    --------
    >>> from datetime import UTC
    >>> start = datetime(2026, 5, 3, 9, tzinfo=UTC)
    >>> [when.day for when in moments(start, start + 7 * DAY)]
    [5, 7, 9]
    """
    start = datetime.combine(first.date(), time(), first.tzinfo)
    days = (now - start) // DAY
    if days < LEAST_DAYS:
        return ()
    step = -(-days // MOST_MOMENTS) * DAY
    return tuple(start + i * step for i in range(1, MOST_MOMENTS + 1) if start + i * step < now)


class History:
    """Keeps what was computed for a past date for as long as its votes are the same."""

    def __init__(self) -> None:
        self._known: dict[tuple[datetime, int], Moment] = {}

    def read(self, log: LoggedColumns, now: datetime) -> tuple[Moment, ...]:
        """Give the board at some past dates.

        Parameters
        ----------
        log : LoggedColumns
            In the order of the log: votes are only ever added to it, or left out.
        """
        counted = [
            created for created, why in zip(log.created, log.left_out, strict=True) if why is None
        ]
        if not counted:
            return ()
        chosen = moments(min(counted), now)
        keys = [(when, sum(created < when for created in counted)) for when in chosen]
        self._known = {key: self._known.get(key) or _moment(log, *key) for key in keys}
        return tuple(self._known.values())


def _moment(log: LoggedColumns, when: datetime, votes: int) -> Moment:
    try:
        ratings = _ratings(fit_log(log, until=when))
    except NotIdentifiedError:
        ratings = ()
    return Moment(when=when, votes=votes, ratings=ratings)


def _ratings(fitted: Fitted) -> tuple[PastRating, ...]:
    nats = (fitted.fit.theta, fitted.spread.low, fitted.spread.high)
    rows = zip(fitted.fit.models, *(to_points(x).tolist() for x in nats), strict=True)
    found = [
        PastRating(model=model, rating=points, lower=lower, upper=upper)
        for model, points, lower, upper in rows
    ]
    return tuple(sorted(found, key=lambda past: (-past.rating, past.model)))
