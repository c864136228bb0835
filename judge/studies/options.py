"""What a study of a judge, and the rating of a new model by one, are asked for."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, fields
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING, Literal, get_args

from rating.errors import DataError
from rating.options import FEWEST_ROUNDS

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
    """Options of a study.

    Attributes
    ----------
    pairs : {"all", "majority"}
        Compare verdicts with every vote, or with the majority of each item.
    voters : str or None
        Use only votes of voters that match this pattern, such as expert_*.
    by : str or None
        Stratify items by this column, such as turn; or by `pair` of models.
    raters : {"expert", "skilled", "crowd"}
        Type of raters: sets the margin of the alternative-annotator test to 0.2 (expert),
        0.15 (skilled) or 0.1 (crowd).
    outputs : Path or None
        Answers of the models, for length analyses and examples.
    prompts : Path or None
        Texts of the prompts, for examples.
    rounds : int
        Number of resamples per interval.
    seed : int
        Random seed; figures of judge and people share its resamples.
    level : float
        Confidence level.
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
            raise DataError(f"There is no --pairs {self.pairs!r}: choose {' or '.join(PAIRS)}.")
        if self.raters not in MARGINS:
            raise DataError(f"There is no --raters {self.raters!r}: choose {', '.join(MARGINS)}.")
        if not 0 < self.level < 1:
            msg = f"--level {self.level:g} is no level of an interval: give one between 0 and 1."
            raise DataError(msg)
        least = max(FEWEST_ROUNDS, math.ceil(round(2 / (1 - self.level), 6)))
        if self.rounds < least:
            msg = f"--rounds {self.rounds} is too few for an interval: give {least:,} or more."
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
    """Options of a validation certificate.

    Attributes
    ----------
    certificate : Path or None
        Write a validation certificate (.toml) with a grade per model, also if none passes.
    margin : float or None
        Maximum difference between the judge's and people's win rate of a model, in percentage
        points; to be fixed before seeing the votes.
    until : date or None
        Expiry date of the certificate; half a year from now by default.
    votes_a_year : int
        Number of human votes per year that `arena judge drift` can expect.
    """

    certificate: Path | None = None
    margin: float | None = None
    until: date | None = None
    votes_a_year: int = 3000

    def __post_init__(self) -> None:
        """Raise `DataError` for what cannot be."""
        if self.certificate is None:
            for name in ("margin", "until"):
                if (value := getattr(self, name)) is not None:
                    raise DataError(f"--{name} {value} needs --certificate FILE.")
            return
        if self.certificate.suffix != ".toml":
            msg = f"Cannot write the certificate {str(self.certificate)!r}: name a .toml file."
            raise DataError(msg)
        if self.margin is None:
            raise DataError(
                "A validation certificate needs a margin, declared before you look at the labels: "
                "--margin 5 is five percentage points of a win rate."
            )
        if not 0 < self.margin < 100:
            msg = f"--margin {self.margin:g} is no margin: give percentage points, such as 5."
            raise DataError(msg)
        if self.votes_a_year < FEWEST_A_YEAR:
            raise DataError(
                f"--votes-a-year {self.votes_a_year} is too few for a drift monitor: at least "
                f"{FEWEST_A_YEAR} are needed."
            )


@dataclass(frozen=True, slots=True, kw_only=True)
class NewcomerOptions:
    """Options of the rating of a new model.

    Attributes
    ----------
    judge : str or None
        Judge to use, if the file has several.
    anchors : tuple of str
        Known models to compare it with, by name or pattern; all by default.
    own : tuple of str
        Models of the judge's own family, by name or pattern, such as gpt-*; by default those
        named like the judge.
    calibration : {"temperature", "isotonic"}
        Calibration of the judge's probabilities to those of people.
    level : float
        Confidence level.
    fewest_known : int
        Minimum number of known models for an interval, 3 or more. With five, one interval in four
        was infinite in simulations.
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
            raise DataError(
                f"--fewest-known {self.fewest_known} is too few for a line through known models: "
                f"give {FEWEST_KNOWN} or more."
            )
