"""What came of a run: a row for each case and order, and the verdicts over both."""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Any

from judge.case import CaseId, Order
from judge.errors import FailureClass
from judge.journal import Key
from judge.reading import Preference, Reading
from judge.verdict import PlaceEffect, Verdict, place_effect, reconcile
from rating import Outcome

PENDING = "pending"
SETTLED = "settled"
READ = "read"


@dataclass(frozen=True, slots=True, kw_only=True)
class Judged:
    """What a judge says of one case in one order.

    Attributes
    ----------
    reading : Reading or None
        In the sides *as shown*; over all samples that could be read. None if none could.
    failure : FailureClass or None
        Why there is no reading; None also while the case is pending.
    detail : str
        What the endpoint said when it failed.
    keys : tuple of Key
        The calls behind it that got a reply; none if the case was settled without asking.
    cost_usd : float or None
        Of all those calls, whenever they were paid; None without a price.
    latency_s : float or None
        Of all those calls together; None if nobody measured it.
    recalled : bool
        Whether nothing was asked in this run.
    """

    case_id: CaseId
    order: Order
    reading: Reading | None
    failure: FailureClass | None = None
    detail: str = ""
    keys: tuple[Key, ...] = ()
    cost_usd: float | None = None
    latency_s: float | None = None
    recalled: bool = False

    @property
    def status(self) -> str:
        """``read``, ``settled`` (without asking), ``pending``, or the class of the failure."""
        if self.reading is not None:
            return READ if self.keys else SETTLED
        return PENDING if self.failure is None else self.failure.value

    @property
    def outcome(self) -> Outcome | None:
        """The result in the sides as shown; None without a preference."""
        return self.reading.outcome if isinstance(self.reading, Preference) else None

    @property
    def for_a(self) -> Preference | None:
        """The preference in the case's own sides; None without one."""
        if not isinstance(self.reading, Preference):
            return None
        return self.reading if self.order is Order.AB else self.reading.swapped()


class Stop(StrEnum):
    """Why a run ended with cases pending: each can be taken up again."""

    BUDGET = "budget"
    DENIED = "denied"
    ALIKE = "alike"


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """How a run ended.

    Attributes
    ----------
    judged : tuple of Judged
        One row for each case and order, in the order of the cases.
    stopped : Stop or None
        None if nothing is pending: every row is read, settled or failed.
    why : str
        The reason in words.
    n_asked : int
        Replies that this run paid for.
    n_recalled : int
        Replies that the journal held.
    n_estimated : int
        Of those asked, the ones whose tokens the endpoint did not count.
    faults : mapping
        Every try that brought no reply, by class, retried or not.
    spent_usd : float or None
        What this run paid; None without a price.
    """

    judged: tuple[Judged, ...] = field(repr=False)  # asyncio.run looks at what it returns
    stopped: Stop | None
    why: str
    n_asked: int
    n_recalled: int
    n_estimated: int
    faults: Mapping[FailureClass, int]
    spent_usd: float | None

    @property
    def by_status(self) -> Mapping[str, int]:
        """Number of rows by status."""
        return Counter(row.status for row in self.judged)

    def after(self, first: "Run") -> "Run":
        """Return this run with the replies, faults and dollars of an earlier one counted in."""
        spent = [run.spent_usd for run in (first, self) if run.spent_usd is not None]
        return replace(
            self,
            n_asked=first.n_asked + self.n_asked,
            n_recalled=first.n_recalled + self.n_recalled,
            n_estimated=first.n_estimated + self.n_estimated,
            faults=Counter(first.faults) + Counter(self.faults),
            spent_usd=sum(spent) if spent else None,
        )

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON, without the rows."""
        return {
            "by_status": dict(self.by_status),
            "stopped": self.stopped and self.stopped.value,
            "why": self.why,
            "n_asked": self.n_asked,
            "n_recalled": self.n_recalled,
            "n_estimated": self.n_estimated,
            "faults": {failure.value: n for failure, n in self.faults.items()},
            "spent_usd": self.spent_usd,
        }


def verdicts(judged: Iterable[Judged]) -> dict[CaseId, Verdict]:
    """Reconcile the cases asked in both orders; unread or pending in either is undecided."""
    return {
        case_id: reconcile(case_id, both[0].outcome, both[1].outcome)
        for case_id, both in _in_both_orders(judged).items()
    }


def always_said(judged: Iterable[Judged], fewest: int = 20) -> Reading | None:
    """Return what a judge said of every case in every order, as shown, if it was always the same.

    One who prefers whatever stands first, or gives everything one mark, read nothing, or reads
    replies that were made without reading. None if readings differ, or there are too few to tell.

    Parameters
    ----------
    fewest : int
        Replies from which on sameness is no chance. Those settled without asking do not count.
    """
    said = [row.reading for row in judged if row.status == READ]
    same = len(said) >= fewest and all(reading == said[0] for reading in said)
    return said[0] if same else None


def effect_of_place(judged: Iterable[Judged]) -> PlaceEffect:
    """Estimate what the first place is worth from the cases that were read in both orders.

    Raises
    ------
    DataError
        If there are fewer than two.
    """
    readings = [(one.reading, other.reading) for one, other in _in_both_orders(judged).values()]
    return place_effect(
        [
            (one, other)
            for one, other in readings
            if isinstance(one, Preference) and isinstance(other, Preference)
        ]
    )


def _in_both_orders(judged: Iterable[Judged]) -> dict[CaseId, tuple[Judged, Judged]]:
    rows: dict[CaseId, dict[Order, Judged]] = {}
    for row in judged:
        rows.setdefault(row.case_id, {})[row.order] = row
    return {
        case_id: (found[Order.AB], found[Order.BA])
        for case_id, found in rows.items()
        if len(found) == 2
    }
