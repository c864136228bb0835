"""Verdicts: the answers to a case and to its swapped twin, made one."""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from judge.case import Order
from judge.hardening import drawn
from judge.reading import Preference
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

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON."""
        outcome = None if self.outcome is None else self.outcome.value
        return {"case": self.case_id, "outcome": outcome, "inconsistent": self.inconsistent}


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
        answer is unread: it is not a tie, and is counted on its own.

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

    None if either is unread.
    """
    if as_is is None or swapped is None:
        return None
    return (as_is.first + swapped.swapped().first) / 2


@dataclass(frozen=True, slots=True)
class Consistency:
    """How often a judge kept its verdict when the responses changed places.

    Attributes
    ----------
    n_consistent, n_first, n_second : int
        Decided cases: same verdict in both orders, or leaning to a place.
    n_undecided : int
        Cases without a verdict, left out of the rates.
    """

    n_consistent: int
    n_first: int
    n_second: int
    n_undecided: int

    @property
    def rate(self) -> float | None:
        """Share of decided cases that are consistent; None without any."""
        decided = self.n_consistent + self.n_first + self.n_second
        return self.n_consistent / decided if decided else None

    @property
    def first_rate(self) -> float | None:
        """Share of inconsistent cases that lean to the first place; None without any."""
        leaning = self.n_first + self.n_second
        return self.n_first / leaning if leaning else None


def consistency(verdicts: Iterable[Verdict]) -> Consistency:
    """Count consistent and inconsistent verdicts, the latter by direction.

    References
    ----------
    .. [1] L. Zheng et al., 2023 (see `reconcile`), table 2: "consistency" and the biases
       towards first and second.
    """
    seen = Counter(
        "undecided" if verdict.outcome is None else verdict.inconsistent or "consistent"
        for verdict in verdicts
    )
    return Consistency(seen["consistent"], seen["first"], seen["second"], seen["undecided"])


def orders_within_budget(case_id: str, *, seed: str, share: float) -> tuple[Order, ...]:
    """Return the orders in which to ask for one case when not every case is asked twice.

    A fair coin picks the order; with probability ``share`` the case is asked in the other order
    too. Both draws come from the seed and the case's content, so a rerun and another process
    ask in the same orders, however many cases there are and in whatever sequence.

    Raises
    ------
    DataError
        If ``share`` is no share.
    """
    if not 0 <= share <= 1:
        raise DataError(f"The share of cases to swap lies between 0 and 1, not at {share}.")
    first = Order.AB if drawn(seed, "order", case_id) < 0.5 else Order.BA
    swap = drawn(seed, "swap", case_id) < share
    return (first, first.other) if swap else (first,)


@dataclass(frozen=True, slots=True)
class PlaceEffect:
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


def place_effect(both: Sequence[tuple[Preference, Preference]]) -> PlaceEffect:
    """Estimate what the first place is worth from cases asked in both orders.

    With ``p`` and ``q`` the preference for the response shown first in either order, a case that
    was judged on its merits alone has ``p + q = 1``; half of what is over is the place's::

        effect = mean((p + q - 1) / 2)

    As the cases are a random subset, the same effect is taken off the cases that were asked
    once. Their order was drawn by a fair coin, so the mean over them has no bias to begin with;
    the correction takes away the noise of an uneven draw.

    Parameters
    ----------
    both : sequence of pairs of Preference
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
    >>> found = place_effect([always_first, fair])
    >>> found.effect, found.corrected(Preference(1.0), Order.BA)
    (0.25, 0.25)
    """
    if len(both) < 2:
        raise DataError(f"{len(both)} case in both orders: at least two are needed.")
    gain = np.array([(one.first + other.first - 1) / 2 for one, other in both])
    error = float(gain.std(ddof=1) / np.sqrt(len(gain)))
    return PlaceEffect(float(gain.mean()), error, len(gain))
