"""Studies of ten models: people vote by the models' strengths, and a judge of one kind."""

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from judge.studies.data import JudgeVerdicts, StudyData
from judge.studies.rows import Items, Labels

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class World:
    """Items of a prompt each, with votes of different people.

    Attributes
    ----------
    effect : float
        Standard deviation, in nats, of what a voter likes a model more or less.
    of_prompts : float
        The same of what a prompt suits a model.
    """

    voters: int = 40
    effect: float = 0.0
    of_prompts: float = 0.8
    items: int = 800
    models: int = 10
    votes: int = 3

    def study(self, kind: str, seed: int, share: float = 0.0) -> StudyData:
        """Draw votes, and the verdicts of a kind of judge.

        Parameters
        ----------
        kind : str
            ``person``, one more of them; ``fair``, a person without likings; ``sharp``, better
            than people; ``copy`` of one of the votes; ``coin``; ``longest``; ``tie``.
        share : float
            Of the items of the worst model, in which the verdict is for it.
        """
        rng = np.random.default_rng(seed)
        n, k = self.items, self.models
        strength = np.linspace(1.0, -1.0, k)
        pairs = np.array([rng.choice(k, 2, replace=False) for _ in range(n)])
        suits = rng.normal(0, self.of_prompts, (n, k))
        every = np.arange(n)
        liked = rng.normal(0, self.effect, (self.voters, k))
        worth = strength + suits
        gap = worth[every, pairs[:, 0]] - worth[every, pairs[:, 1]]
        who = rng.random((n, self.voters)).argsort(axis=1)[:, : self.votes]
        likes = liked[who, pairs[:, :1]] - liked[who, pairs[:, 1:]]
        votes = _drawn(gap[:, None] + likes, rng)
        longer = rng.normal(0, 0.4, k)[pairs] @ [1, -1] + rng.normal(0, 1, n)
        own = rng.normal(0, self.effect, k)[pairs] @ [1, -1]
        says = {
            "person": _drawn(gap + own, rng),
            "fair": _drawn(gap, rng),
            "sharp": np.sign(gap),
            "copy": votes[:, 0],
            "coin": rng.choice([-1, 1], n),
            "longest": np.sign(longer),
            "tie": np.zeros(n),
        }[kind].astype(np.int64)
        favoured = (pairs == k - 1) & (rng.random(n) < share)[:, None]
        says = np.where(favoured.any(axis=1), np.where(favoured[:, 0], 1, -1), says)
        verdicts = Labels.of_one_rater(every, says)
        cast = Labels.of_one_rater(every.repeat(self.votes), votes.ravel())
        return StudyData(
            items=Items(tuple(f"m{i}" for i in range(k)), pairs, every, {"length": longer}),
            people=replace(cast, rater=who.ravel()),
            judges=(JudgeVerdicts("owl", verdicts, verdicts, 0),),
            prompts=tuple(map(str, every)),
            voters_known=True,
            keyed_by="item_id",
            source_rows=(every, every),
            warnings=(),
        )


def _drawn(gap: Floats, rng: np.random.Generator) -> Ints:
    return np.where(rng.random(gap.shape) < 1 / (1 + np.exp(-gap)), 1, -1)
