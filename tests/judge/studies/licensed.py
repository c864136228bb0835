"""Worlds with a planted judge: labels of people, and the judge's verdicts on the same items."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from judge.studies.data import JudgeVerdicts, StudyData
from judge.studies.licence import labelled, reference
from judge.studies.newcomer import Compared
from judge.studies.rows import Items, Labels
from judge.studies.watch import follow
from rating.typing import Floats, Ints

MODELS = ("basalt", "flint", "quartz", "slate", "umber", "zircon")
BY = {
    "judge": "owl",
    "method": "pairwise",
    "template": "3f9c2b7a11d04e58",
    "resolved_model": "owl-2026-05-13",
}
WINNERS = ("model_b", "tie", "model_a")


@dataclass(frozen=True, slots=True, eq=False)
class Drawn:
    """Votes, one a row, on items with a verdict: -1, 0 or 1 for side A.

    ``sure`` is the judge's probability for side A.
    """

    item: Ints
    pairs: Ints
    voter: Ints
    vote: Ints
    verdict: Ints
    sure: Floats

    def data(self) -> StudyData:
        """What a study reads of it."""
        n = len(self.pairs)
        items = Items(MODELS, self.pairs, np.arange(n))
        every = np.arange(n)
        zeros = np.zeros(n, dtype=np.int8)
        verdicts = Labels(every, 0 * every, self.verdict.astype(np.int8), zeros, self.sure)
        m = len(self.item)
        nothing = np.full(m, np.nan)
        people = Labels(
            self.item, self.voter, self.vote.astype(np.int8), np.zeros(m, dtype=np.int8), nothing
        )
        judge = JudgeVerdicts("owl", verdicts, verdicts, 0)
        names = tuple(f"p{i}" for i in range(n))
        return StudyData(items, people, (judge,), names, True, "prompt", (every, every), ())

    def labelled(self) -> Compared:
        data = self.data()
        return labelled(data, data.judges[0], "probabilities")


@dataclass(frozen=True, slots=True)
class World:
    """People with opinions of their own, and a judge that errs as planted.

    Attributes
    ----------
    right : tuple of float
        How often a vote is what a verdict of each kind says, the least sure first.
    taste, likes : float
        Standard deviations of that over people, and over items.
    favoured : int
        So many models, the first ones, win against the others where they would not ...
    favour : float
        ... in this share of the cases.
    tie_rate : float
        Share of the votes that are ties.
    """

    right: tuple[float, ...] = (0.65, 0.8, 0.9)
    taste: float = 0.05
    likes: float = 0.0
    per_voter: int = 20
    per_item: int = 1
    n_models: int = 5
    favoured: int = 0
    favour: float = 0.0
    tie_rate: float = 0.0

    def draw(self, rng: np.random.Generator, n: int, fall: float = 0.0) -> Drawn:
        """Draw n votes; ``fall`` of them agree with the judge no more."""
        n_items, people = -(-n // self.per_item), -(-n // self.per_voter)
        item = np.repeat(np.arange(n_items), self.per_item)[:n]
        voter = rng.permutation(np.repeat(np.arange(people), self.per_voter)[:n])
        kind = rng.integers(0, len(self.right), n_items)
        first = rng.integers(0, self.n_models, n_items)
        other = (first + rng.integers(1, self.n_models, n_items)) % self.n_models
        pairs = np.column_stack([first, other])
        verdict = 2 * rng.integers(0, 2, n_items) - 1
        taste, likes = rng.normal(0, self.taste, people), rng.normal(0, self.likes, n_items)
        p = np.array(self.right)[kind[item]] + taste[voter] + likes[item] - fall
        vote = np.where(rng.random(n) < p, verdict[item], -verdict[item])
        vote[rng.random(n) < self.tie_rate] = 0
        liked = (pairs < self.favoured).astype(np.int64) @ np.array([1, -1])
        turned = (liked == -verdict) & (rng.random(n_items) < self.favour)
        verdict = np.where(turned, liked, verdict)
        sure = 0.5 + verdict * (kind + rng.random(n_items)) / (2 * len(self.right) + 0.1)
        return Drawn(item, pairs, voter, vote, verdict, sure)

    @property
    def error(self) -> float:
        """By how many points the win rate of a favoured model by the judge is off."""
        others = (self.n_models - self.favoured) / (self.n_models - 1)
        return 50 * self.favour * others


def revoked_at(
    world: World,
    rng: np.random.Generator,
    *,
    n_labels: int,
    n_votes: int,
    fall: float = 0.0,
    per_voter: int = 5,
) -> int | None:
    """Grant a licence on new labels, watch new votes, and say after which it is revoked."""
    known = reference(world.draw(rng, n_labels).labelled(), known=True)
    assert known is not None
    new = replace(world, per_voter=per_voter)
    looks = follow(known, new.draw(rng, n_votes, fall).labelled())
    return next((look["votes"] for look in looks if look["fall"] > look["bound"]), None)


def write(
    folder: Path, name: str, drawn: Drawn, *, first: int = 0, by: Mapping[str, str] = BY
) -> None:
    """Write votes to ``NAMEvotes.csv`` and verdicts, by a judge, to ``NAMEverdicts.csv``."""
    names = [",".join(MODELS[model] for model in pair) for pair in drawn.pairs.tolist()]
    category = ["code" if i % 3 else "chat" for i in range(len(names))]
    votes = ["prompt_id,model_a,model_b,winner,voter,category"]
    for i, vote, voter in zip(drawn.item, drawn.vote, drawn.voter, strict=True):
        votes.append(f"p{first + i},{names[i]},{WINNERS[vote + 1]},v{first + voter},{category[i]}")
    verdicts = [f"prompt_id,model_a,model_b,winner,preference,{','.join(BY)},category"]
    asked = ",".join(({**BY, **by}).values())
    for i, (verdict, sure) in enumerate(zip(drawn.verdict, drawn.sure, strict=True)):
        winner = WINNERS[verdict + 1]
        verdicts.append(f"p{first + i},{names[i]},{winner},{sure:.4f},{asked},{category[i]}")
    for kind, lines in (("votes", votes), ("verdicts", verdicts)):
        (folder / f"{name}{kind}.csv").write_text("\n".join(lines) + "\n", encoding="utf-8")
