"""How far a run has come, for whoever watches it."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

from judge.errors import FailureClass


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
