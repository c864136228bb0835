"""How much one visitor, one network and one day may take: windows that slide with the clock."""

import threading
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta

from arena.domain.voter import Voter
from arena.errors import LimitError

HOUR = timedelta(hours=1)
DAY = timedelta(days=1)


@dataclass(frozen=True, slots=True)
class Use:
    """Something taken at a moment: one battle, or dollars."""

    at: datetime
    amount: float = 1.0


def free_at(used: Sequence[Use], most: float, window: timedelta, now: datetime) -> datetime | None:
    """Tell when less than ``most`` will have been used within the window; None if that is now.

    Parameters
    ----------
    used : sequence of Use
        Oldest first; what is older than the window does not matter.

    Examples
    --------
    >>> noon = datetime(2026, 5, 3, 12)
    >>> used = [Use(noon - timedelta(minutes=40)), Use(noon - timedelta(minutes=10))]
    >>> free_at(used, 2, HOUR, noon)
    datetime.datetime(2026, 5, 3, 12, 20)
    >>> free_at(used, 3, HOUR, noon)
    """
    recent = [use for use in used if use.at > now - window]
    total = sum(use.amount for use in recent)
    if total < most:
        return None
    for use in recent:
        total -= use.amount
        if total < most:
            return use.at + window
    return now + window


@dataclass(frozen=True, slots=True)
class Allowance:
    """What may be taken.

    Attributes
    ----------
    per_voter, per_address : int
        Battles an hour.
    dollars_a_day : float or None
        Spent on answers, all visitors together; None sets no limit.
    """

    per_voter: int = 30
    per_address: int = 120
    dollars_a_day: float | None = None


class Limits:
    """Admits battles, one at a time, so that no two take the same last place.

    What a voter took and what was spent is read from the log, and so outlives a restart;
    addresses are counted here, and are forgotten after an hour.

    Parameters
    ----------
    battles_of : callable
        Moments at which a voter's battles began, by the voter's id and since when.
    spent : callable
        Dollars that answers cost, since when.
    """

    def __init__(
        self,
        allowance: Allowance,
        *,
        battles_of: Callable[[str, datetime], Sequence[datetime]],
        spent: Callable[[datetime], Sequence[tuple[datetime, float]]],
        now: Callable[[], datetime],
    ) -> None:
        self._allowance = allowance
        self._battles_of = battles_of
        self._spent = spent
        self._now = now
        self._lock = threading.Lock()
        self._by_address: deque[tuple[datetime, str]] = deque()

    @contextmanager
    def admit(self, voter: Voter) -> Iterator[None]:
        """Hold the place of one battle while it is written down; blocks, so not on the loop.

        Raises
        ------
        LimitError
            With words for the visitor, and when the next battle is free.
        """
        with self._lock:
            now = self._now()
            self._forget(now - HOUR)
            self._refuse_voter(voter, now)
            self._refuse_address(voter, now)
            self._refuse_spending(now)
            yield
            if voter.address is not None:
                self._by_address.append((now, voter.address))

    def _forget(self, before: datetime) -> None:
        while self._by_address and self._by_address[0][0] <= before:
            self._by_address.popleft()

    def _refuse_voter(self, voter: Voter, now: datetime) -> None:
        most = self._allowance.per_voter
        used = [Use(at) for at in self._battles_of(voter.id, now - HOUR)]
        if (free := free_at(used, most, HOUR, now)) is not None:
            raise LimitError(f"You have reached {_battles(most)} in an hour.", free)

    def _refuse_address(self, voter: Voter, now: datetime) -> None:
        most = self._allowance.per_address
        used = [Use(at) for at, address in self._by_address if address == voter.address]
        if (free := free_at(used, most, HOUR, now)) is not None:
            raise LimitError(f"Your network has reached {_battles(most)} in an hour.", free)

    def _refuse_spending(self, now: datetime) -> None:
        most = self._allowance.dollars_a_day
        if most is None:
            return
        used = [Use(at, dollars) for at, dollars in self._spent(now - DAY)]
        if (free := free_at(used, most, DAY, now)) is not None:
            raise LimitError("The arena has spent what it may spend on answers in a day.", free)


def _battles(number: int) -> str:
    return "1 battle" if number == 1 else f"{number:,} battles"
