"""Items, and labels that people and judges give them, with the sides of both aligned."""

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rating.errors import DataError
from rating.typing import Bools, Floats, Ints

A, TIE, B = 1, 0, -1
"""Labels: the side that is better. Both kinds of tie are one."""


@dataclass(frozen=True, slots=True)
class Items:
    """The things that were compared: a prompt with two models' responses.

    Attributes
    ----------
    models : tuple of str, length n_models
        Names; a model's index is its position here.
    pairs : ndarray of shape (n_items, 2), int64
        Indices of the models on side A and on side B of an item.
    prompt : ndarray of shape (n_items,), int64
        Number of the prompt, from 0: what intervals resample.
    gaps : mapping of str to ndarray of shape (n_items,), float64
        Differences of a feature of the responses, side A's minus side B's, such as ``length``
        in doublings; NaN where unknown. Empty where nothing is known of the responses.
    """

    models: tuple[str, ...]
    pairs: Ints
    prompt: Ints
    gaps: Mapping[str, Floats] = field(default_factory=dict)

    @property
    def n(self) -> int:
        """How many items."""
        return len(self.prompt)

    @property
    def n_prompts(self) -> int:
        """How many prompts."""
        return int(self.prompt.max(initial=-1)) + 1

    def only(self, rows: Bools | Ints) -> "Items":
        """Return some items; models and prompts keep their numbers."""
        gaps = {name: gap[rows] for name, gap in self.gaps.items()}
        return Items(self.models, self.pairs[rows], self.prompt[rows], gaps)


@dataclass(frozen=True, slots=True)
class Labels:
    """Labels that raters give items, in the items' sides: votes of people, or a judge's verdicts.

    Attributes
    ----------
    item : ndarray of shape (n,), int64
        Index of the item.
    rater : ndarray of shape (n,), int64
        Number of the voter, or of the repetition of a judge.
    label : ndarray of shape (n,), int8
        1 for side A, 0 for a tie, -1 for side B. What was not read is not here.
    first : ndarray of shape (n,), int8
        1 where side A was shown first (on the left), -1 where side B was, 0 where it is unknown
        or both orders were asked.
    probability : ndarray of shape (n,), float64
        Probability that the rater gave to side A, a tie counting as half; NaN where it gave none.
    """

    item: Ints
    rater: Ints
    label: NDArray[np.int8]
    first: NDArray[np.int8]
    probability: Floats

    def __post_init__(self) -> None:
        """Raise `DataError` for columns of different lengths or unknown labels."""
        lengths = {len(getattr(self, field.name)) for field in fields(self)}
        if len(lengths) > 1:
            raise DataError(f"The columns of what was said have {sorted(lengths)} rows.")
        if len(self.label) and not np.isin(self.label, (A, TIE, B)).all():
            msg = f"Labels are 1, 0 and -1, not {sorted(set(self.label.tolist()))}."
            raise DataError(msg)

    @classmethod
    def of_one_rater(cls, item: Ints, label: NDArray[Any]) -> "Labels":
        """Return labels by one rater, who was shown no order and gave no probabilities."""
        n = len(item)
        return cls(
            item=item,
            rater=np.zeros(n, dtype=np.int64),
            label=label.astype(np.int8),
            first=np.zeros(n, dtype=np.int8),
            probability=np.full(n, np.nan),
        )

    @property
    def n(self) -> int:
        """How many rows."""
        return len(self.item)

    def only(self, rows: NDArray[Any]) -> "Labels":
        """Return some rows, by mask or by index."""
        return Labels(*(getattr(self, field.name)[rows] for field in fields(self)))

    def mean(self, value: Floats, n_items: int) -> Floats:
        """Average a value over the labels of each item; NaN where there is none."""
        n = np.bincount(self.item, minlength=n_items)
        total = np.bincount(self.item, value, n_items)
        return np.where(n > 0, total / np.maximum(n, 1), np.nan)
