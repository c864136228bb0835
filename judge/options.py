"""How a run is made: its options, which failures are tried again, and who watches it."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from judge.budget import Price
from judge.errors import CallError, FailureClass
from judge.throttle import NO_LIMITS, RateLimits
from rating.errors import DataError

TRIES: Mapping[FailureClass, int] = {
    FailureClass.RATE_LIMIT: 10,
    FailureClass.OVERLOADED: 8,
    FailureClass.TRANSPORT: 5,
}
"""Most tries of one call, by the class of the last failure; a class not named is final.

A request that was rejected will be rejected again. An error that an endpoint repeats for one
request, and for that one only, ends after a few tries rather than never.
"""

ANEW = frozenset({FailureClass.UNPARSED, FailureClass.TRUNCATED})
"""Replies after which the question is put once more, as another call: the words were at fault.

A refusal and missing log-probabilities would come again, and would be paid for again.
"""

LONGEST_WAIT_S = 300.0
"""An endpoint that asks for more than this is not waited for; the case fails as rate-limited."""

_FIRST_S, _MOST_S = 0.5, 60.0


def wait_before_retry(error: CallError, tries: int, rng: np.random.Generator) -> float | None:
    """Return the seconds to wait before another try, or None if there is to be none.

    The wait that the endpoint asked for, if it did; else doubling from half a second to a minute,
    of which a random half is left out, so that callers who failed together do not come back
    together.

    Parameters
    ----------
    tries : int
        Tries made so far, at least one.

    References
    ----------
    .. [1] M. Brooker, "Exponential backoff and jitter", AWS Architecture Blog, 2015 ("equal
       jitter").
    """
    if tries >= TRIES.get(error.failure, 1):
        return None
    if error.retry_after_s is not None:
        return error.retry_after_s if error.retry_after_s <= LONGEST_WAIT_S else None
    longest = min(_MOST_S, _FIRST_S * 2 ** (tries - 1))
    return float(longest * rng.uniform(0.5, 1.0))


@dataclass(frozen=True, slots=True, kw_only=True)
class Progress:
    """Where a run stands. Its unit is the question: a case in one order, or a sample of one.

    Attributes
    ----------
    n_done, n_total : int
        Questions with a reading or a final failure; and all.
    n_recalled : int
        Of those done, the ones that cost nothing in this run.
    failed : mapping
        Of those done, the ones without a reading, by class.
    faults : mapping
        Tries without a reply so far, by class.
    spent_usd : float or None
        None without a price.
    elapsed_s : float
        Since the run began.
    """

    n_done: int
    n_total: int
    n_recalled: int
    failed: Mapping[FailureClass, int]
    faults: Mapping[FailureClass, int]
    spent_usd: float | None
    elapsed_s: float

    @property
    def left_s(self) -> float | None:
        """Seconds left at the pace so far; None before the first reply of this run."""
        paid = self.n_done - self.n_recalled
        if not paid:
            return None
        return self.elapsed_s / paid * (self.n_total - self.n_done)


class Tally:
    """Counts what is done as it is done."""

    def __init__(self, n_total: int) -> None:
        self._n_total = n_total
        self._n_done = 0
        self._n_recalled = 0
        self._n_settled = 0
        self._failed: Counter[FailureClass] = Counter()

    def add(self, failure: FailureClass | None, *, recalled: bool, settled: bool = False) -> None:
        """Count a question as done; one that was settled without asking says nothing of asking."""
        self._n_done += 1
        self._n_recalled += recalled
        self._n_settled += settled
        if failure is not None:
            self._failed[failure] += 1

    def all_alike(self, n: int) -> FailureClass | None:
        """Return the class in which all asked failed so far, if that was at least ``n`` times."""
        n_asked = self._n_done - self._n_settled
        if len(self._failed) != 1 or self._failed.total() < n_asked or n_asked < n:
            return None
        return next(iter(self._failed))

    def progress(
        self, *, faults: Mapping[FailureClass, int], spent_usd: float | None, elapsed_s: float
    ) -> Progress:
        """Return where the run stands."""
        return Progress(
            n_done=self._n_done,
            n_total=self._n_total,
            n_recalled=self._n_recalled,
            failed=dict(self._failed),
            faults=dict(faults),
            spent_usd=spent_usd,
            elapsed_s=elapsed_s,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """How to run.

    Attributes
    ----------
    judge : str
        What answers, down to its revision; part of every key.
    seed : str
        Secret of these runs: fences and orders are drawn from it. The same seed finds the same
        calls again, so keep it with the journal and show it to nobody.
    concurrency : int
        Most requests at a time.
    swap_share : float
        Share of the cases asked in both orders; the rest are asked in one.
    as_given : bool
        Ask every case with its side A first and in no other order, whatever the share: for cases
        whose order is part of the question.
    attempts : int
        Replies paid for, at most, until one can be read. Those of earlier runs count: to ask on
        after failures that the journal holds, allow for more.
    anew : frozenset of FailureClass
        Replies after which the question is put once more. Add a class here, and an attempt, when
        the endpoint has been mended: refusals and missing log-probabilities stand otherwise.
    price : Price or None
        None counts no money.
    limit_usd : float or None
        Most that this run may spend; replies of earlier runs are not counted.
    limits : RateLimits
        What the endpoint allows.
    """

    judge: str
    seed: str = field(repr=False)
    concurrency: int = 16
    swap_share: float = 1.0
    as_given: bool = False
    attempts: int = 2
    anew: frozenset[FailureClass] = ANEW
    price: Price | None = None
    limit_usd: float | None = None
    limits: RateLimits = NO_LIMITS

    def __post_init__(self) -> None:
        if self.concurrency < 1 or self.attempts < 1:
            raise DataError(
                "Concurrency and attempts are at least 1,"
                f" not {self.concurrency} and {self.attempts}."
            )
