"""What came of a run: a row for each case and order, and the verdicts over both orders."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from functools import cached_property
from itertools import groupby
from typing import Any, Literal

import numpy as np

from judge.calls import Key
from judge.case import CaseId, FailureClass, Order
from judge.grammar import Preference, Reading
from rating import Outcome
from rating.errors import DataError

Direction = Literal["first", "second"]
"""The place, not the response, that an inconsistent judge leaned towards."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """What a judge says of a case, in the case's own sides.

    Attributes
    ----------
    case_id : str
        The case.
    outcome : Outcome or None
        None is undecided: an order is missing or could not be read. It is not a tie.
    inconsistent : {"first", "second"} or None
        Set if the orders disagree: the place that was favoured over the two together.
    """

    case_id: str
    outcome: Outcome | None
    inconsistent: Direction | None = None


def reconcile(case_id: str, as_is: Outcome | None, swapped: Outcome | None) -> Verdict:
    """Combine the answers to a case and to its swapped twin.

    Parameters
    ----------
    as_is, swapped : Outcome or None
        Answer in each order, each in the sides *as shown*; None if the answer could not be read.

    Returns
    -------
    Verdict
        A win needs both orders to name the same response; disagreement is a tie, marked
        inconsistent with the place it leans to. Undecided (``outcome is None``) if either
        answer is unparsed: it is not a tie, and is counted on its own.

    References
    ----------
    .. [1] L. Zheng et al., "Judging LLM-as-a-judge with MT-bench and Chatbot Arena", NeurIPS
       2023, section 3.4 (the conservative approach to position bias). A tie in one order and a
       win in the other is a disagreement here; the direction is our addition.

    Examples
    --------
    >>> reconcile("c", Outcome.A, Outcome.B).outcome
    <Outcome.A: 'model_a'>
    >>> reconcile("c", Outcome.A, Outcome.A)
    Verdict(case_id='c', outcome=<Outcome.TIE: 'tie'>, inconsistent='first')
    """
    if as_is is None or swapped is None:
        return Verdict(case_id, None)
    if as_is is swapped.swapped():
        return Verdict(case_id, as_is)
    lean = as_is.score_a + swapped.score_a - 1
    if lean == 0:
        return Verdict(case_id, Outcome.TIE)
    return Verdict(case_id, Outcome.TIE, "first" if lean > 0 else "second")


def preference_for_a(as_is: Preference | None, swapped: Preference | None) -> float | None:
    """Return the mean preference for response A over both orders, each as shown.

    None if either is unparsed.
    """
    if as_is is None or swapped is None:
        return None
    return (as_is.first + (1 - swapped.first)) / 2


def consistency(verdicts: Iterable[Verdict]) -> dict[str, int | float | None]:
    """Count how often a judge kept its verdict when the responses changed places.

    Returns
    -------
    dict
        Of decided cases ``n_consistent`` with the same verdict in both orders, ``n_first`` and
        ``n_second`` that lean to a place; ``n_undecided`` without a verdict, which no rate counts;
        ``rate``, the share of decided cases that are consistent, and ``first_rate``, of those that
        are not the share that leans to the first place: None without any.

    References
    ----------
    .. [1] L. Zheng et al., 2023 (see `reconcile`), table 2: "consistency" and the biases
       towards first and second.
    """
    seen = Counter(
        "undecided" if verdict.outcome is None else verdict.inconsistent or "consistent"
        for verdict in verdicts
    )
    names = ("consistent", "first", "second", "undecided")
    leaning = seen["first"] + seen["second"]
    decided = seen["consistent"] + leaning
    return {
        **{f"n_{name}": seen[name] for name in names},
        "rate": seen["consistent"] / decided if decided else None,
        "first_rate": seen["first"] / leaning if leaning else None,
    }


@dataclass(frozen=True, slots=True)
class PositionEffect:
    """What standing first is worth to a response, on the scale of preferences.

    Attributes
    ----------
    effect : float
        Mean of (preference for the first place) - 1/2 over both orders of a case; from -1/2 to
        1/2, positive if the first place helps.
    standard_error : float
        Of that mean, over the ``n`` cases.
    """

    effect: float
    standard_error: float
    n: int

    def corrected(self, preference: Preference, order: Order) -> float:
        """Return the preference for response A of a case that was asked in one order only.

        Not clipped to [0, 1]: clipping would bias the mean that it is made for. It says nothing
        about a single case; whether *this* case would flip, only its other order tells.
        """
        as_a = preference if order is Order.AB else preference.swapped()
        return as_a.first + (-self.effect if order is Order.AB else self.effect)


def position_effect(both: Iterable[tuple[Preference, Preference]]) -> PositionEffect:
    """Estimate what the first place is worth from cases asked in both orders.

    With ``p`` and ``q`` the preference for the response shown first in either order, a case that
    was judged on its merits alone has ``p + q = 1``; half of what is over is the place's::

        effect = mean((p + q - 1) / 2)

    As the cases are a random subset, the same effect is taken off the cases that were asked
    once. Their order was drawn by a fair coin, so the mean over them has no bias to begin with;
    the correction takes away the noise of an uneven draw.

    Parameters
    ----------
    both : iterable of pairs of Preference
        In the order as it is and in the swapped one, each as shown.

    Raises
    ------
    DataError
        If there are fewer than two cases: their spread is unknown.

    References
    ----------
    .. [1] S. Senn, "Cross-over Trials in Clinical Research", 2nd ed., Wiley 2002, chapter 3: the
       period effect of the AB/BA design, of which this is half.
    .. [2] W. G. Cochran, "Sampling Techniques", 3rd ed., Wiley 1977, chapter 12: a costly
       measure on a random subset corrects a cheap one on all (the difference estimator).

    Examples
    --------
    >>> always_first = (Preference(1.0), Preference(1.0))
    >>> fair = (Preference(1.0), Preference(0.0))
    >>> of_position = position_effect([always_first, fair])
    >>> of_position.effect, of_position.corrected(Preference(1.0), Order.BA)
    (0.25, 0.25)
    """
    gain = np.fromiter(((one.first + other.first - 1) / 2 for one, other in both), np.float64)
    if len(gain) < 2:
        raise DataError(f"{len(gain)} case in both orders: at least two are needed.")
    error = float(gain.std(ddof=1) / np.sqrt(len(gain)))
    return PositionEffect(float(gain.mean()), error, len(gain))


PENDING = "pending"
SETTLED = "settled"
READ = "read"
NO_CHECKLIST = "no checklist"
"""Detail of a row whose prompt has no checklist: nothing was asked, so no endpoint said it."""


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
    models, fingerprints : frozenset of str
        What the endpoint said answered; empty names where it did not.
    judge : str
        Who was asked, where it was another than the run's own judge: see `judge.runs`.
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
    models: frozenset[str] = frozenset()
    fingerprints: frozenset[str] = frozenset()
    judge: str = ""

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
    NO_LOGPROBS = "no_logprobs"


@dataclass(frozen=True, kw_only=True)  # without slots, for what is counted once
class Run:
    """How a run ended.

    Attributes
    ----------
    judged : sequence of Judged
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
    checklists : mapping
        By `Case.prompt_id`, where the method goes by them: those given and those written.
    lessons : tuple of str
        What was asked otherwise than the method says, because of the endpoint: see
        `judge.calls.Terms`.
    """

    judged: Sequence[Judged] = field(repr=False)  # asyncio.run looks at what it returns
    stopped: Stop | None
    why: str
    n_asked: int
    n_recalled: int
    n_estimated: int
    faults: Mapping[FailureClass, int]
    spent_usd: float | None
    checklists: Mapping[str, tuple[str, ...]] = field(default_factory=dict, repr=False)
    lessons: tuple[str, ...] = ()

    @cached_property
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
            lessons=tuple(dict.fromkeys((*first.lessons, *self.lessons))),
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
    """Reconcile the cases asked in both orders; unparsed or pending in either is undecided."""
    return {CaseId(verdict.case_id): verdict for verdict in each_verdict(judged)}


def each_verdict(judged: Iterable[Judged]) -> Iterator[Verdict]:
    """Give what `verdicts` does, one after the other."""
    both = (verdict_of(rows) for rows in by_case(judged))
    return (verdict for verdict in both if verdict is not None)


def verdict_of(rows: Sequence[Judged]) -> Verdict | None:
    """Reconcile the rows of a case; None where it was asked in one order."""
    both = {row.order: row.outcome for row in rows}
    if len(both) < 2:
        return None
    return reconcile(rows[0].case_id, both[Order.AB], both[Order.BA])


def by_case(judged: Iterable[Judged]) -> Iterator[list[Judged]]:
    """Give the rows of each case, which stand together in a run."""
    return (list(rows) for _, rows in groupby(judged, key=lambda row: row.case_id))


def constant_reading(judged: Iterable[Judged], fewest: int = 20) -> Reading | None:
    """Return the reading of every case in every order, as shown, if it is always the same.

    One who prefers whatever stands first, or gives everything one mark, read nothing, or reads
    replies that were made without reading. None if readings differ, or there are too few to tell.

    Parameters
    ----------
    fewest : int
        Replies from which on sameness is no accident. Those settled without asking do not count.
    """
    readings = Counter(row.reading for row in judged if row.status == READ)
    return next(iter(readings)) if len(readings) == 1 and readings.total() >= fewest else None


def position_effect_of(judged: Iterable[Judged]) -> PositionEffect:
    """Estimate what the first place is worth from the cases that were read in both orders.

    Cases that were settled without asking have no place.

    Raises
    ------
    DataError
        If there are fewer than two.
    """
    both = (
        {row.order: row.reading for row in rows if isinstance(row.reading, Preference)}
        for rows in by_case(row for row in judged if row.keys)
    )
    return position_effect((shown[Order.AB], shown[Order.BA]) for shown in both if len(shown) == 2)
