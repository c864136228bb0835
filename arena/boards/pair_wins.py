"""Who has won how often against whom, for drawing the next pairs."""

import threading
from collections import defaultdict
from collections.abc import Iterable

from arena.domain.battle import Wins
from arena.domain.vote import Policy
from arena.store import log
from arena.store.log import PairOutcome
from arena.store.store import Store
from rating import Outcome


class PairWins:
    """Keeps count of the votes that a policy counts; each is read once, when it is new.

    An exclusion may come later than its vote, so what these take away is counted every time.
    """

    def __init__(self, store: Store, policy: Policy) -> None:
        self._store = store
        self._policy = policy
        self._lock = threading.Lock()
        self._until = 0
        self._all: Wins = {}

    def read(self) -> Wins:
        """Give the score of each model against each that it has beaten or tied.

        Raises
        ------
        StoreError
            If the log cannot be read.
        """
        with self._lock:
            with self._store.reading() as session:
                until = log.newest_vote(session)
                fresh = log.outcomes_between(session, self._until, until)
                excluded = log.excluded_outcomes(session, self._policy.name, until)
            self._all = self._added(self._all, fresh, sign=1)
            self._until = until
            found = self._added(self._all, excluded, sign=-1)
        return {pair: score for pair, score in found.items() if score}

    def _added(self, wins: Wins, found: Iterable[PairOutcome], *, sign: int) -> Wins:
        """Add scores, or take them away; halves add up without rounding."""
        total = defaultdict(float, wins)
        for some in found:
            if self._policy.why_not(some.outcome, some.voter_kind, ()) is None:
                score = Outcome(some.outcome.value).score_a
                total[some.model_a, some.model_b] += sign * some.votes * score
                total[some.model_b, some.model_a] += sign * some.votes * (1 - score)
        return total
