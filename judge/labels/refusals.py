"""Which answers of a turn decline what was asked, as a label."""

from collections.abc import Sequence

from judge.labels.taggers import Label
from judge.refusals import refuses

REFUSAL = "refusal"
"""The facet of a turn whose answers these are."""


def refusal(answers: Sequence[str]) -> Label:
    """Say which of the two answers of a turn refuse: ``none``, ``a``, ``b`` or ``both``.

    Examples
    --------
    >>> refusal(["Sure.", "I cannot help with that."]).value
    'b'
    """
    a, b = map(refuses, answers)
    return Label("both" if a and b else "a" if a else "b" if b else "none")


def refusing(label: str) -> tuple[bool, bool]:
    """Read a label of `refusal`: whether the answer on side A refuses, and that on side B.

    Examples
    --------
    >>> refusing("both"), refusing("b"), refusing("none")
    ((True, True), (False, True), (False, False))
    """
    return label in ("a", "both"), label in ("b", "both")
