"""Simulated voters with known random effects, to try the arena and to test its boards."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from random import Random

from arena.domain.battle import Pacing
from arena.domain.model import Roster
from arena.domain.vote import Choice, Voter, VoterKind
from arena.play.battles import Battles
from arena.play.live import Ask
from arena.play.matchmaking import Rules
from arena.store import log
from arena.store.store import Store

VOTERS = 20
UNPACED = Rules(pacing=Pacing.RAW, tick_s=0.001, answer_timeout_s=math.inf)


@dataclass(frozen=True, slots=True)
class Tastes:
    """How all simulated voters judge: by which model answered, not by its text.

    Attributes
    ----------
    strengths : mapping of str to float
        By model id, in natural log-odds.
    both_bad, tie : float
        Probability that neither is good enough; else, that they tie.
    """

    strengths: Mapping[str, float]
    both_bad: float = 0.05
    tie: float = 0.15

    def choose(self, a: str, b: str, rng: Random) -> Choice:
        """Draw a vote; without a tie, A wins with ``sigmoid(strength_a - strength_b)``."""
        if rng.random() < self.both_bad:
            return Choice.BOTH_BAD
        if rng.random() < self.tie:
            return Choice.TIE
        gap = self.strengths[a] - self.strengths[b]
        return Choice.A if rng.random() < 1 / (1 + math.exp(-gap)) else Choice.B


TASTES = Tastes(
    {
        "pocket-unigram": -1.5,
        "pocket-bigram": -0.5,
        "pocket-trigram": 0.0,
        "pocket-fourgram": 0.5,
        "pocket-retrieval": 1.5,
    }
)
"""Of the voters on the demo's roster."""


class Simulation:
    """Plays battles as visitors do, but unpaced, and votes by known random effects.

    Each vote has a random stream of its own, from the seed and the vote's number: a run that
    was broken off goes on as if it had not been.
    """

    def __init__(
        self,
        store: Store,
        ask: Ask,
        roster: Roster,
        tastes: Tastes,
        *,
        prompts: Sequence[str],
        seed: int,
        now: Callable[[], datetime],
    ) -> None:
        self._store = store
        self._tastes = tastes
        self._prompts = prompts
        self._seed = seed
        self._rng = Random()  # noqa: S311 - seeded again for each vote
        self._battles = Battles(
            store=store, ask=ask, roster=roster, rules=UNPACED, recorded={}, rng=self._rng, now=now
        )

    def done(self) -> int:
        """Count the votes that this seed's voters have already cast."""
        voters = [self._voter(number).id for number in range(VOTERS)]
        return self._store.read(log.votes_of, voters)

    async def run(self, votes: int, progress: Callable[[int, int], None]) -> int:
        """Cast the votes that this seed lacks of a number; returns how many were cast now.

        Parameters
        ----------
        progress : callable
            Called after each vote with votes cast, and votes to cast.
        """
        before = self.done()
        for number in range(before, votes):
            self._rng.seed(f"{self._seed}:{number}")
            voter = self._voter(number)
            opened = await self._battles.open(voter, self._rng.choice(self._prompts))
            async for _snapshot in self._battles.watch(opened.battle_id, voter):
                pass
            last = self._store.battle(opened.battle_id, voter.id).turns[-1]
            choice = self._tastes.choose(last.a.model_id, last.b.model_id, self._rng)
            await self._battles.vote(opened.battle_id, voter, choice, f"{self._seed}:{number}")
            progress(number + 1, votes)
        return max(0, votes - before)

    def _voter(self, number: int) -> Voter:
        return Voter(f"simulated-{self._seed}-{number % VOTERS}", VoterKind.SIMULATED)
