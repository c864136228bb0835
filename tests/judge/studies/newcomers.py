"""Simulated sets of models: votes on the known ones, and a judge who saw all of them."""

from dataclasses import dataclass

import numpy as np

from judge.studies.data import JudgeVerdicts, StudyData
from judge.studies.newcomer import Kind, NewModel, newcomer
from judge.studies.options import NewcomerOptions
from judge.studies.rows import Items, Labels
from rating.typing import Floats

NEW = "new"
PER_NAT = 400 / np.log(10)


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
    by_prompt, by_voter : float
        Sd in nats of the random effects of a model on a prompt, which people and judge share, and
        of a voter for a model.
    above : float, optional
        Nats by which the newcomer is above the best known model; by default it is one of them.
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
    by_prompt: float = 0.0
    by_voter: float = 0.0
    above: float | None = None
    votes_on_new: int = 0
    own: int = 0
    favour: float = 0.0
    hard: bool = False

    def draw(self, seed: int) -> tuple[StudyData, float]:
        """Draw votes and verdicts, and the newcomer's true rating in points."""
        rng = np.random.default_rng(seed)
        k, new = self.n_known, self.n_known
        theta = rng.normal(0, self.spread, k + 1)
        if self.above is not None:
            theta[new] = theta[:k].max() + self.above
        missed = rng.normal(0, self.misses, k + 1)
        missed[[*range(self.own), *([new] if self.own else [])]] += self.favour
        n = self.n_verdicts + self.n_on_new
        a = rng.integers(k, size=n)
        b = (a + rng.integers(1, k, size=n)) % k
        a[self.n_verdicts :] = new
        low, high = np.minimum(a, b), np.maximum(a, b)
        prompt = rng.integers(self.n_prompts, size=n)
        suits = rng.normal(0, self.by_prompt, (self.n_prompts, k + 1))
        item = rng.normal(0, self.liking, n) + suits[prompt, low] - suits[prompt, high]
        gap = theta[low] - theta[high] + item
        odds = self.signal * (gap + missed[low] - missed[high]) + rng.normal(0, 1, n)
        probability = expit(np.sign(odds) if self.hard else odds)
        each = np.arange(n)
        judged = Labels(
            each, 0 * each, np.sign(odds).astype(np.int8), 0 * each.astype(np.int8), probability
        )
        voted = rng.choice(self.n_verdicts, self.n_votes)
        voted = np.r_[voted, self.n_verdicts + rng.integers(self.n_on_new, size=self.votes_on_new)]
        voter = rng.integers(self.n_voters, size=len(voted))
        likes = rng.normal(0, self.by_voter, (self.n_voters, k + 1))
        liked = likes[voter, low[voted]] - likes[voter, high[voted]]
        won = rng.random(len(voted)) < expit(gap[voted] + liked)
        people = Labels(
            voted,
            voter,
            np.where(won, 1, -1).astype(np.int8),
            np.ones(len(voted), dtype=np.int8),
            np.full(len(voted), np.nan),
        )
        family = [f"owl-{i}" for i in range(self.own)]
        names = (*family, *(f"m{i:02}" for i in range(k - self.own)), NEW)
        items = Items(names, np.column_stack([low, high]), prompt)
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
        sd = np.sqrt(self.liking**2 + 2 * self.by_prompt**2 + 2 * self.by_voter**2)
        wins = expit((theta[:, None] - theta)[..., None] + sd * nodes) @ (weights / weights.sum())
        np.fill_diagonal(wins, 0.0)
        strengths = theta - theta.mean()
        for _ in range(30):  # Newton's steps of Bradley-Terry, all pairs equally often
            p = expit(strengths[:, None] - strengths)
            np.fill_diagonal(p, 0.0)
            curve = p * p.T
            laplacian = np.diag(curve.sum(axis=1)) - curve
            strengths = strengths + np.linalg.pinv(laplacian) @ (wins - p).sum(axis=1)
        return float(1000 + PER_NAT * (strengths[-1] - strengths[:-1].mean()))

    def rated(self, seed: int, options: NewcomerOptions | None = None) -> tuple[NewModel, float]:
        data, truth = self.draw(seed)
        family = NewcomerOptions(own=("owl-*", NEW)) if self.own else NewcomerOptions()
        kind: Kind = "verdicts" if self.hard else "probabilities"
        return newcomer(data, data.judges[0], NEW, options or family, kind), truth
