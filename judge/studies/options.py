"""What a study of a judge is asked for."""

from dataclasses import dataclass, fields
from pathlib import Path
from typing import Literal, get_args

import numpy as np

from judge.studies.estimates import Draws
from judge.studies.gates import MARGINS, Raters
from rating.errors import DataError

Pairs = Literal["all", "majority"]
PAIRS = get_args(Pairs)


@dataclass(frozen=True, slots=True, kw_only=True)
class StudyOptions:
    """How a study is made.

    Attributes
    ----------
    pairs : {"all", "majority"}
        Compare verdicts with every vote, or with what most votes of an item say.
    voters : str or None
        Only these people's votes: a pattern, such as expert_*.
    by : str or None
        Part the items by a column, such as turn; or by pair of models.
    raters : {"expert", "skilled", "crowd"}
        What the people are: a judge may fall behind one of them by .2, .15 or .1.
    outputs : Path or None
        What the models answered: for length and examples.
    prompts : Path or None
        Texts of the prompts: for examples.
    rounds : int
        Draws behind an interval.
    seed : int
        Of all that is drawn. Every figure begins there, so that those of a judge and those of
        people are of the same draws.
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

    def words(self) -> list[str]:
        """Give the options that are not as usual, as words of a command."""
        usual = StudyOptions()
        asked = {field.name: getattr(self, field.name) for field in fields(self)}
        return [
            word
            for name, value in asked.items()
            if value != getattr(usual, name)
            for word in (f"--{name}", str(value))
        ]

    def draws(self) -> Draws:
        """Give the draws from their beginning."""
        return Draws(np.random.default_rng(self.seed), self.rounds, self.level)
