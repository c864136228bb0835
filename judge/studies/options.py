"""What a study of a judge, and the rating of a new model by one, are asked for."""

from collections.abc import Mapping
from dataclasses import dataclass, fields
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING, Literal, get_args

from rating.errors import DataError

if TYPE_CHECKING:
    from judge.studies.estimates import Draws

Raters = Literal["expert", "skilled", "crowd"]
MARGINS: Mapping[Raters, float] = {"expert": 0.2, "skilled": 0.15, "crowd": 0.1}
"""What a judge may lose to a person in the alternative-annotator test and pass for its lower
price: the paper's values by kind of rater."""
Pairs = Literal["all", "majority"]
PAIRS = get_args(Pairs)
CalibrationMethod = Literal["temperature", "isotonic"]
FEWEST_KNOWN = 3
"""Known models without which there is no line from a judge's ratings to people's."""
FEWEST_A_YEAR = 300
"""Votes a year from which on a watch sees a drift of ten points."""


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

    def draws(self) -> "Draws":
        """Give the draws from their beginning."""
        import numpy as np

        from judge.studies.estimates import Draws

        return Draws(np.random.default_rng(self.seed), self.rounds, self.level)


@dataclass(frozen=True, slots=True, kw_only=True)
class Terms:
    """What a judge's licence is asked for.

    Attributes
    ----------
    licence : Path or None
        File (.toml) to write where the judge may stand in for people.
    margin : float or None
        Percentage points by which a model's win rate by the judge may lie off people's: to be
        declared before the labels are looked at.
    until : date or None
        Last day of the licence; half a year from now if not given.
    votes_a_year : int
        Votes of people that arena judge watch may expect in a year.
    """

    licence: Path | None = None
    margin: float | None = None
    until: date | None = None
    votes_a_year: int = 3000

    def __post_init__(self) -> None:
        """Raise `DataError` for what cannot be."""
        if self.licence is None:
            for name in ("margin", "until"):
                if (value := getattr(self, name)) is not None:
                    msg = f"--{name} {value} is of a licence: name its file with --licence."
                    raise DataError(msg)
            return
        if self.licence.suffix != ".toml":
            msg = (
                f"Cannot write the licence {str(self.licence)!r}: name a file that ends in .toml."
            )
            raise DataError(msg)
        if self.margin is None:
            msg = (
                "A licence needs a margin, declared before the labels are looked at: --margin 5 "
                "is five points of a win rate."
            )
            raise DataError(msg)
        if not 0 < self.margin < 100:
            msg = f"--margin {self.margin:g} is no margin: give points of a per cent, such as 5."
            raise DataError(msg)
        if self.votes_a_year < FEWEST_A_YEAR:
            msg = (
                f"--votes-a-year {self.votes_a_year} are too few to watch a judge by: it takes "
                f"{FEWEST_A_YEAR}."
            )
            raise DataError(msg)


@dataclass(frozen=True, slots=True, kw_only=True)
class NewcomerOptions:
    """How a newcomer is rated.

    Attributes
    ----------
    judge : str or None
        Whose verdicts, where the file holds those of several judges.
    anchors : tuple of str
        Known models to rate it against, by name or pattern; all by default.
    own : tuple of str
        Models of the judge's own family, by name or pattern, such as gpt-*; by default the one
        that is named like the judge.
    calibration : {"temperature", "isotonic"}
        How the judge's probabilities become those of people.
    level : float
        Of the interval.
    fewest_known : int
        Known models under which there is no interval, 3 or more. With five one in four was
        endless in simulations.
    """

    judge: str | None = None
    anchors: tuple[str, ...] = ()
    own: tuple[str, ...] = ()
    calibration: CalibrationMethod = "temperature"
    level: float = 0.95
    fewest_known: int = 8

    def __post_init__(self) -> None:
        """Raise `DataError` for a level that is none, or too few known models."""
        if not 0 < self.level < 1:
            msg = f"--level {self.level:g} is no level of an interval: give one between 0 and 1."
            raise DataError(msg)
        if self.fewest_known < FEWEST_KNOWN:
            msg = (
                f"--fewest-known {self.fewest_known} is too few for a line through known models: "
                f"give {FEWEST_KNOWN} or more."
            )
            raise DataError(msg)
