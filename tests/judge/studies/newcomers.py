"""Sets of models with planted strengths: votes on the known ones, and a judge who saw all."""

from dataclasses import dataclass

import numpy as np

from judge.studies.data import JudgeVerdicts, StudyData
from judge.studies.items import Items, Labels
from judge.studies.newcomer import Newcomer, NewcomerOptions, newcomer
from rating.elo import POINTS_PER_NAT
from rating.likelihood.objective import solve
from rating.typing import Floats

NEW = "new"


def expit(x: Floats) -> Floats:
    return np.asarray(1 / (1 + np.exp(-x)))


@dataclass(frozen=True, slots=True)
class Planted:
    """A set to draw.

    Attributes
    ----------
    signal : float
        How far the judge's odds follow what people prefer, in units of its own noise.
    misses : float
        Sd in nats of how the judge misses a model.
    liking : float
        Sd in nats of what makes one answer better than its model; people and judge share it.
    votes_on_new : int
        Votes on the newcomer.
    own : int
        So many known models are of the judge's family, and the newcomer is too.
    favour : float
        Nats by which the judge favours its family.
    hard : bool
        Whether the judge gives verdicts alone.
    """

    signal: float = 1.0
    misses: float = 0.2
    n_known: int = 20
    n_votes: int = 3000
    n_verdicts: int = 4000
    n_on_new: int = 400
    n_prompts: int = 300
    n_voters: int = 150
    spread: float = 0.5
    liking: float = 0.7
    votes_on_new: int = 0
    own: int = 0
    favour: float = 0.0
    hard: bool = False

    def draw(self, seed: int) -> tuple[StudyData, float]:
        """Draw votes and verdicts, and the newcomer's true rating in points."""
        rng = np.random.default_rng(seed)
        k, new = self.n_known, self.n_known
        theta = rng.normal(0, self.spread, k + 1)
        moved = theta + rng.normal(0, self.misses, k + 1)
        moved[[*range(self.own), *([new] if self.own else [])]] += self.favour
        n = self.n_verdicts + self.n_on_new
        a = rng.integers(k, size=n)
        b = (a + rng.integers(1, k, size=n)) % k
        a[self.n_verdicts :] = new
        low, high = np.minimum(a, b), np.maximum(a, b)
        item = rng.normal(0, self.liking, n)
        odds = self.signal * (moved[low] - moved[high] + item) + rng.normal(0, 1, n)
        probability = expit(np.sign(odds) if self.hard else odds)
        each = np.arange(n)
        judged = Labels(
            each, 0 * each, np.sign(odds).astype(np.int8), 0 * each.astype(np.int8), probability
        )
        voted = rng.choice(self.n_verdicts, self.n_votes)
        voted = np.r_[voted, self.n_verdicts + rng.integers(self.n_on_new, size=self.votes_on_new)]
        won = rng.random(len(voted)) < expit((theta[low] - theta[high] + item)[voted])
        voter = rng.integers(self.n_voters, size=len(voted))
        people = Labels(
            voted,
            voter,
            np.where(won, 1, -1).astype(np.int8),
            np.ones(len(voted), dtype=np.int8),
            np.full(len(voted), np.nan),
        )
        family = [f"owl-{i}" for i in range(self.own)]
        names = (*family, *(f"m{i:02}" for i in range(k - self.own)), NEW)
        items = Items(names, np.column_stack([low, high]), rng.integers(self.n_prompts, size=n))
        data = StudyData(
            items=items,
            people=people,
            judges=(JudgeVerdicts("judge", judged, judged, 0),),
            prompts=tuple(map(str, range(self.n_prompts))),
            voters_known=True,
            keyed_by="item_id",
            source_rows=(each, each),
            warnings=(),
        )
        return data, self.truth(theta)

    def truth(self, theta: Floats) -> float:
        """The newcomer's rating by endless votes, whose odds vary by answer as well."""
        nodes, weights = np.polynomial.hermite_e.hermegauss(41)
        gap = (theta[:, None] - theta)[..., None] + self.liking * nodes
        wins = expit(gap) @ (weights / weights.sum())
        np.fill_diagonal(wins, 0.0)
        strengths = solve(wins, np.zeros(len(theta))).theta
        return 1000 + POINTS_PER_NAT * float(strengths[-1] - strengths[:-1].mean())

    def rated(self, seed: int, options: NewcomerOptions | None = None) -> tuple[Newcomer, float]:
        data, truth = self.draw(seed)
        family = NewcomerOptions(own=("owl-*", NEW)) if self.own else NewcomerOptions()
        return newcomer(data, data.judges[0], NEW, options or family), truth
