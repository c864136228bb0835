"""Votes on a candidate, an incumbent and others, by voters with tastes, on prompts they share."""

from dataclasses import dataclass

import numpy as np

from judge.studies.rows import Items, Labels
from rating import Comparisons
from rating.decide import GateOptions
from rating.typing import Bools, Floats, Ints

CANDIDATE, INCUMBENT = "umber", "basalt"
MODELS = (CANDIDATE, INCUMBENT, "flint", "quartz")
BETWEEN = (CANDIDATE, INCUMBENT)
OUTCOMES = np.array([1, 0])
"""Positions of a loss and a win of side A among the outcomes."""
ASKED = GateOptions(candidate=CANDIDATE, incumbent=INCUMBENT, margin=20)


@dataclass(frozen=True, slots=True, eq=False)
class Cast:
    """Votes in the order in which voters came; ``liked`` is what a prompt adds to each model."""

    pairs: Ints
    won: Ints
    voter: Ints
    prompt: Ints
    strength: Floats
    liked: Floats

    def upto(self, voters: int) -> Comparisons:
        """The votes of the first voters."""
        rows = self.voter < voters
        a, b = self.pairs[rows].T
        outcome, voter = OUTCOMES[self.won[rows]], self.voter[rows]
        prompt = self.prompt[rows]
        return Comparisons.from_codes(MODELS, a, b, outcome, voter=voter, prompt=prompt)

    def judged(
        self, n_rest: int, rng: np.random.Generator, favour: float = 0.0, noise: float = 0.5
    ) -> "Judged":
        """Add a judge's verdicts on what is voted on, and on prompts that nobody voted on.

        Parameters
        ----------
        favour : float
            What the judge sees in the candidate, and people do not; nats.
        """
        k, voted = len(MODELS), int(self.prompt.max()) + 1
        rest = rng.integers(voted, len(self.liked), size=n_rest)
        first = rng.integers(k, size=n_rest)
        pairs = np.column_stack([first, (first + rng.integers(1, k, size=n_rest)) % k])
        sides = np.sort(np.concatenate([self.pairs, pairs]), axis=1)
        prompt = np.concatenate([self.prompt, rest])
        rows = np.column_stack([prompt, sides])
        known, item = np.unique(rows, axis=0, return_inverse=True)
        (a, b), at = known[:, 1:].T, known[:, 0]
        seen = self.strength + favour * (np.arange(k) == 0)
        gap = seen[a] - seen[b] + self.liked[at, a] - self.liked[at, b]
        label = np.where(gap + rng.logistic(0, noise, len(gap)) > 0, 1, -1)
        items = Items(MODELS, known[:, 1:], at)
        return Judged(self, items, item.ravel()[: len(self.won)], label)


@dataclass(frozen=True, slots=True, eq=False)
class Judged:
    """Votes with a judge's verdict on every item."""

    cast: Cast
    items: Items
    item: Ints
    label: Ints

    def upto(self, voters: int) -> tuple[Items, Labels, Labels]:
        """The votes of the first voters; verdicts of what these voted on, and of the rest."""
        cast, rows = self.cast, self.cast.voter < voters
        turned = cast.pairs[rows, 0] > cast.pairs[rows, 1]
        label = np.where(turned, -1, 1) * (2 * cast.won[rows] - 1)
        people = replace_rater(Labels.of_one_rater(self.item[rows], label), cast.voter[rows])
        there: Bools = np.isin(np.arange(self.items.n), self.item[~rows], invert=True)
        there[self.item[rows]] = True
        verdicts = Labels.of_one_rater(np.flatnonzero(there), self.label[there])
        return self.items, people, verdicts


def replace_rater(labels: Labels, rater: Ints) -> Labels:
    return Labels(labels.item, rater, labels.label, labels.first, labels.probability)


@dataclass(frozen=True, slots=True)
class Crowd:
    """Voters and prompts.

    Attributes
    ----------
    lead : float
        Of the candidate over the incumbent, in nats, before tastes.
    taste, liking : float
        Standard deviation of what a voter, and a prompt, adds to every model; nats.
    prompts : int
        Shared by all voters.
    direct : float
        Share of the battles that are of the two.
    """

    lead: float = 0.0
    taste: float = 0.0
    liking: float = 0.0
    prompts: int = 60
    direct: float = 0.5
    per_voter: int = 6

    def draw(self, voters: int, rng: np.random.Generator) -> Cast:
        n, k = voters * self.per_voter, len(MODELS)
        voter = np.repeat(np.arange(voters), self.per_voter)
        prompt = rng.integers(self.prompts, size=n)
        first = rng.integers(k, size=n)
        second = (first + rng.integers(1, k, size=n)) % k
        two = rng.random(n) < self.direct
        side = rng.integers(2, size=n)
        first, second = np.where(two, side, first), np.where(two, 1 - side, second)
        strength = np.array([self.lead, 0.0, -0.4, 0.4])
        own = strength + rng.normal(0, self.taste, (voters, k))
        liked = rng.normal(0, self.liking, (6 * self.prompts, k))
        gap = own[voter, first] - own[voter, second]
        gap += liked[prompt, first] - liked[prompt, second]
        won = (rng.random(n) < 1 / (1 + np.exp(-gap))).astype(np.int64)
        return Cast(np.column_stack([first, second]), won, voter, prompt, strength, liked)
