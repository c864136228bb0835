"""Known fractions of a text taken away, and known lengths of foreign text put in."""

from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum

REMOVED = (0.1, 0.25, 0.5, 0.75)
"""Fractions of the words that are taken away."""
INSERTED = (0.25, 0.5, 1.0)
"""Lengths of what is put in, as multiples of the text's."""


class Place(StrEnum):
    """Where in a text."""

    START = "start"
    MIDDLE = "middle"
    END = "end"

    def of(self, room: int) -> int:
        """Return how many of ``room`` words stand before it."""
        return {Place.START: 0, Place.MIDDLE: room // 2, Place.END: room}[self]


@dataclass(frozen=True, slots=True)
class Dosed:
    """A copy of a text with a known part of it gone, or a known part foreign.

    Attributes
    ----------
    dose : float
        Fraction removed, or length put in over the text's, as asked for.
    target : float
        Share of the longer of the two texts that both have, in words as cut: ``1 - f`` or
        ``1 / (1 + g)``.
    """

    removal: bool
    dose: float
    place: Place
    text: str
    target: float


def doses(text: str, foreign: str) -> Iterator[Dosed]:
    """Yield a text with each fraction removed and each length inserted, at each place.

    Doses are rounded to whole words. One that leaves nothing, changes nothing, or needs more
    words than ``foreign`` has is left out.

    Examples
    --------
    >>> cut = next(one for one in doses("a b c d", "w x y z") if one.dose == 0.5)
    >>> cut.text, cut.target
    ('c d', 0.5)
    """
    own, strange = text.split(), foreign.split()
    for place in Place:
        for fraction in REMOVED:
            n = round(fraction * len(own))
            if 0 < n < len(own):
                at = place.of(len(own) - n)
                left = " ".join(own[:at] + own[at + n :])
                yield Dosed(True, fraction, place, left, 1 - n / len(own))
        for times in INSERTED:
            n = round(times * len(own))
            if 0 < n <= len(strange):
                at = place.of(len(own))
                longer = " ".join(own[:at] + strange[:n] + own[at:])
                yield Dosed(False, times, place, longer, len(own) / (len(own) + n))
