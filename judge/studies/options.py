"""What a study of a judge is asked for."""

from dataclasses import dataclass
from pathlib import Path
from typing import Literal, get_args

import numpy as np

from judge.studies.gates import MARGINS, Raters
from rating.errors import DataError

Pairs = Literal["all", "majority"]
PAIRS = get_args(Pairs)


@dataclass(frozen=True, slots=True)
class StudyOptions:
    """How a study is made.

    Attributes
    ----------
    pairs : {"all", "majority"}
        Compare a verdict with each vote of its item, or with what most of them say.
    voters : str or None
        Pattern of the voters whose votes count.
    by : str or None
        Column whose values part the items into groups.
    raters : {"expert", "skilled", "crowd"}
        What kind of raters the people are: how much a judge may fall behind one of them.
    outputs, prompts : Path or None
        Files of the responses, and of the texts of prompts.
    rounds, seed : int
        Draws of prompts behind an interval, and where they begin: every figure begins there, so
        that those of a judge and those of people are of the same draws.
    level : float
        Of the intervals.
    """

    pairs: Pairs = "all"
    voters: str | None = None
    by: str | None = None
    raters: Raters = "crowd"
    outputs: Path | None = None
    prompts: Path | None = None
    rounds: int = 1000
    seed: int = 0
    level: float = 0.95

    def __post_init__(self) -> None:
        """Raise `DataError` for what cannot be."""
        if self.pairs not in PAIRS:
            msg = f"There is no --pairs {self.pairs!r}: choose {' or '.join(PAIRS)}."
            raise DataError(msg)
        if self.raters not in MARGINS:
            msg = f"There is no --raters {self.raters!r}: choose {', '.join(MARGINS)}."
            raise DataError(msg)
        if self.rounds < 2:
            msg = f"--rounds {self.rounds} draw no interval: give 2 or more."
            raise DataError(msg)
        if not 0 < self.level < 1:
            msg = f"--level {self.level:g} is no level of an interval: give one between 0 and 1."
            raise DataError(msg)

    def rng(self) -> np.random.Generator:
        """Give the draws from their beginning."""
        return np.random.default_rng(self.seed)
