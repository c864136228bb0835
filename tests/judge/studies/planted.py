"""Studies with a planted judge: people who are right now and then, and a judge of one kind."""

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from judge.studies.data import JudgeVerdicts, StudyData
from judge.studies.one_judge import JudgeStudy, Study, study_judge, study_judges
from judge.studies.options import Raters, StudyOptions
from judge.studies.rows import Items, Labels

Ints = NDArray[np.int64]
Kind = Literal["person", "perfect", "coin", "longest", "first"]

MODELS = ("basalt", "flint", "quartz", "slate", "umber")
NAMES = {1: "model_a", -1: "model_b"}
SIZES = {1: "400,100", -1: "100,400"}
VOTES = "prompt_id,model_a,model_b,winner,voter,len_a,len_b"
VERDICTS = "prompt_id,model_a,model_b,winner,judge,order"


@dataclass(frozen=True, slots=True, eq=False)
class Drawn:
    """Items of a prompt each; sides are 1 for A and -1 for B.

    ``votes`` and ``verdicts`` are rows of an item, who or in which order, and the side.
    """

    pairs: Ints
    longer: Ints
    votes: Ints
    verdicts: Ints


@dataclass(frozen=True, slots=True)
class Planted:
    """A study to make.

    Attributes
    ----------
    right : float
        With this probability a person says which of the two answers is better, else the other.
    single : int
        Items that the judge saw in one order alone; of the others it saw both.
    """

    kind: Kind
    right: float = 0.8
    n_prompts: int = 200
    n_people: int = 5
    each: int = 3
    single: int = 0
    name: str = "owl"
    seed: int = 1

    def study(self, folder: Path, *, rounds: int = 200, raters: Raters = "crowd") -> Study:
        """Write votes and verdicts, and study the files."""
        drawn = self._drawn()
        items = [
            f"p{k:04},{MODELS[a]},{MODELS[b]}" for k, (a, b) in enumerate(drawn.pairs.tolist())
        ]
        votes = [
            f"{items[k]},{NAMES[side]},v{who},{SIZES[drawn.longer[k]]}"
            for k, who, side in drawn.votes.tolist()
        ]
        verdicts = [
            f"{items[k]},{NAMES[side]},{self.name},{'ab' if order > 0 else 'ba'}"
            for k, order, side in drawn.verdicts.tolist()
        ]
        files = folder / "votes.csv", folder / "verdicts.csv"
        for path, head, lines in zip(files, (VOTES, VERDICTS), (votes, verdicts), strict=True):
            path.write_text("\n".join([head, *lines]) + "\n", encoding="utf-8")
        options = StudyOptions(rounds=rounds, raters=raters)
        return study_judges(str(files[0]), str(files[1]), options)

    def judged(self, options: StudyOptions) -> JudgeStudy:
        """Study the same without files."""
        data = self.data()
        return study_judge(data, data.judges[0], options, lambda _: None)

    def data(self) -> StudyData:
        """Give votes and verdicts without files."""
        drawn = self._drawn()
        number = np.arange(self.n_prompts)
        items = Items(MODELS, drawn.pairs, number, {"length": 2 * drawn.longer.astype(np.float64)})
        k, order, side = drawn.verdicts.T
        verdicts = _labels(k, (order < 0).astype(np.int64), side, order)
        k, who, side = drawn.votes.T
        return StudyData(
            items=items,
            people=_labels(k, who, side, np.ones_like(side)),
            judges=(JudgeVerdicts(self.name, verdicts, verdicts, 0),),
            prompts=tuple(map(str, number)),
            voters_known=True,
            keyed_by="item_id",
            source_rows=(number, number),
            warnings=(),
        )

    def _drawn(self) -> Drawn:
        rng = np.random.default_rng(self.seed)
        n = self.n_prompts
        pairs = np.array([rng.choice(len(MODELS), 2, replace=False) for _ in range(n)])
        better, longer = rng.choice([-1, 1], (2, n))
        who = np.array([rng.choice(self.n_people, self.each, replace=False) for _ in range(n)])
        side = np.where(rng.random(who.shape) < self.right, 1, -1) * better[:, None]
        item = np.repeat(np.arange(n), self.each)
        says = self._says(better, longer, rng)
        orders = [(k, order) for k in range(n) for order in ((1,) if k < self.single else (1, -1))]
        return Drawn(
            pairs=pairs,
            longer=longer,
            votes=np.column_stack([item, who.ravel(), side.ravel()]),
            verdicts=np.array([(k, order, says[k]) for k, order in orders]),
        )

    def _says(self, better: Ints, longer: Ints, rng: np.random.Generator) -> Ints:
        match self.kind:
            case "person":
                return np.where(rng.random(len(better)) < self.right, better, -better)
            case "coin":
                return rng.choice([-1, 1], len(better))
            case "longest":
                return longer
            case "first":  # of the items that it saw with side A first alone
                return np.where(np.arange(len(better)) < self.single, 1, better)
        return better


def _labels(item: Ints, rater: Ints, side: Ints, first: Ints) -> Labels:
    return replace(Labels.of_one_rater(item, side), rater=rater, first=first.astype(np.int8))
