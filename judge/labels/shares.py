"""How often each label is given, raw and corrected for the errors of the tagger."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from judge.labels.accuracy import MEASURED_INTENTS, Accuracy, accuracies
from judge.labels.taggers import CATEGORIES
from judge.studies.estimates import Estimate

SHOWN = ("category", "language", "intent", "hard", "instructions", *CATEGORIES, "refusal")
"""Facets whose values are names; ``no`` is not shown."""


@dataclass(frozen=True, slots=True)
class LabelShare:
    """How many prompts have a label.

    Attributes
    ----------
    corrected : Estimate or None
        The share, corrected by `judge.labels.accuracy.Accuracy.corrected`; None where the label
        is not one of yes and no, or its tagger's errors are not known.
    """

    facet: str
    value: str
    n: int
    share: float
    corrected: Estimate | None


@dataclass(frozen=True, slots=True)
class Shares:
    """Shares of labels among so many prompts."""

    prompts: int
    labels: tuple[LabelShare, ...]

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON."""
        return {"prompts": self.prompts, "labels": [_row(one) for one in self.labels]}


def shares(counts: Mapping[tuple[str, str], int], *, by_rules: bool = True) -> Shares:
    """Give the shares of labels, by facet, the most frequent first.

    Parameters
    ----------
    counts : mapping of (str, str) to int
        By facet and value.
    by_rules : bool
        Whether the labels are those of the rules, whose errors are known.

    Examples
    --------
    >>> few = shares({("category", "code"): 3, ("category", "other"): 1, ("code", "yes"): 3})
    >>> few.prompts, [(one.facet, one.value, one.share) for one in few.labels]
    (4, [('category', 'code', 0.75), ('category', 'other', 0.25), ('code', 'yes', 0.75)])
    """
    n = sum(count for (facet, _), count in counts.items() if facet == "category")
    rows = [
        LabelShare(
            facet,
            value,
            count,
            count / n,
            known.corrected(count, n) if by_rules and (known := _accuracy(facet, value)) else None,
        )
        for name in SHOWN
        for (facet, value), count in sorted(counts.items(), key=lambda item: (-item[1], item[0]))
        if facet == name and value != "no"
    ]
    return Shares(n, tuple(rows))


def _accuracy(facet: str, value: str) -> Accuracy | None:
    """Return how right the rules are about a value, where that is measured."""
    named = facet == "intent" and value in MEASURED_INTENTS
    tagger = value if named else facet if value == "yes" else ""
    return accuracies()[tagger] if tagger else None


def _row(one: LabelShare) -> dict[str, Any]:
    row: dict[str, Any] = {name: getattr(one, name) for name in ("facet", "value", "n", "share")}
    if one.corrected is None:
        return row
    ends = {"lower": one.corrected.lower, "upper": one.corrected.upper}
    return row | {"corrected": one.corrected.value} | ends
