"""What one reply says once it has been read."""

from dataclasses import dataclass
from typing import Any

from judge.errors import FailureClass
from rating import Outcome
from rating.errors import DataError


@dataclass(frozen=True, slots=True)
class Preference:
    """How far the response shown first is preferred over the one shown second.

    Attributes
    ----------
    first : float
        From 0 to 1: the probability that the first is preferred, or the place on a scale of
        levels; 1/2 is a tie.

    Examples
    --------
    >>> Preference(0.75).swapped()
    Preference(first=0.25)
    >>> Preference(0.75).outcome
    <Outcome.A: 'model_a'>
    """

    first: float

    def __post_init__(self) -> None:
        if not 0 <= self.first <= 1:
            raise DataError(f"A preference lies between 0 and 1, not at {self.first}.")

    @property
    def outcome(self) -> Outcome:
        """The result in the sides as shown: A is the response shown first."""
        if self.first == 0.5:
            return Outcome.TIE
        return Outcome.A if self.first > 0.5 else Outcome.B

    def swapped(self) -> "Preference":
        """Return the same preference with the responses named the other way round."""
        return Preference(1 - self.first)

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON."""
        return {"first": self.first}


@dataclass(frozen=True, slots=True)
class Rating:
    """A mark for one response, on the scale of its method."""

    score: int

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON."""
        return {"score": self.score}


@dataclass(frozen=True, slots=True)
class Items:
    """Which items of a checklist one response meets.

    Attributes
    ----------
    met : tuple of bool or None
        One entry an item; None where the judge gave no verdict.
    """

    met: tuple[bool | None, ...]

    def share(self, weights: tuple[float, ...] | None = None) -> float | None:
        """Return the weighted share of items met; None while any item is without a verdict.

        Examples
        --------
        >>> Items((True, False)).share(weights=(3.0, 1.0))
        0.75
        >>> Items((True, None)).share() is None
        True
        """
        weights = weights or (1.0,) * len(self.met)
        if len(weights) != len(self.met) or min(weights) < 0 or not sum(weights):
            raise DataError(f"{len(self.met)} items need as many weights, not {weights}.")
        if None in self.met:
            return None
        return sum(w for w, met in zip(weights, self.met, strict=True) if met) / sum(weights)

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON."""
        return {"met": list(self.met)}


@dataclass(frozen=True, slots=True)
class Questions:
    """A checklist that a model wrote for a prompt: each item can be answered yes or no."""

    items: tuple[str, ...]

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON."""
        return {"items": list(self.items)}


Reading = Preference | Rating | Items | Questions


def noted(said: Reading | FailureClass) -> dict[str, Any]:
    """Return a reading, or why there is none, as plain values for the journal.

    Examples
    --------
    >>> noted(Preference(1.0)), noted(FailureClass.UNPARSED)
    ({'first': 1.0}, {'failure': 'unparsed'})
    """
    return {"failure": said.value} if isinstance(said, FailureClass) else said.to_dict()


def pooled(readings: list[Reading]) -> Reading:
    """Combine the readings of several samples of one question into one.

    Preferences are averaged: the share of samples in which the first was preferred.

    Raises
    ------
    DataError
        If there are none, or several which are no preferences.
    """
    if len(readings) == 1:
        return readings[0]
    shares = [reading.first for reading in readings if isinstance(reading, Preference)]
    if not shares or len(shares) < len(readings):
        raise DataError(f"Only preferences can be averaged, not {readings[:2]}.")
    return Preference(sum(shares) / len(shares))
