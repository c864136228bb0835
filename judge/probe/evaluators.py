"""Planted evaluators: what a card must say of them is known beforehand."""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import NDArray

from judge.probe.similarity import Measure, Overlap, n_grams
from judge.probe.words import words
from rating.typing import Floats

_MIX = tuple(np.uint64(factor) for factor in (0xBF58476D1CE4E5B9, 0x94D049BB133111EB))


@dataclass(frozen=True, slots=True)
class Lengths:
    """Counts the words of a text, whatever it is set against."""

    def rows(self, references: Sequence[str], texts: Sequence[str]) -> Floats:
        """Return the number of words of each text."""
        return np.array([len(words(text)) for text in texts], dtype=np.float64)

    def matrix(self, references: Sequence[str], texts: Sequence[str]) -> Floats:
        """Return the same number of words in each row."""
        return np.tile(self.rows(references, texts), (len(references), 1))


@dataclass(frozen=True, slots=True)
class Lots:
    """Draws a number for each pair of texts, the same whenever the two are met."""

    seed: int

    def rows(self, references: Sequence[str], texts: Sequence[str]) -> Floats:
        """Return numbers between 0 and 1."""
        return _unit(self._hashes(references, "reference") ^ self._hashes(texts, "text"))

    def matrix(self, references: Sequence[str], texts: Sequence[str]) -> Floats:
        """Return numbers between 0 and 1."""
        left, right = self._hashes(references, "reference"), self._hashes(texts, "text")
        return _unit(left[:, None] ^ right[None, :])

    def _hashes(self, texts: Sequence[str], role: str) -> NDArray[np.uint64]:
        key = f"{self.seed} {role}".encode()
        digests = [
            hashlib.blake2b(text.encode(errors="surrogatepass"), digest_size=8, key=key).digest()
            for text in texts
        ]
        return np.frombuffer(b"".join(digests), dtype=np.uint64)


BAG_OF_WORDS = Measure(
    "bag of words",
    "words in common over words of either, with repetitions; planted: blind to order",
    lambda _: Overlap(partial(n_grams, n=1), union=True),
)
LENGTH_COUNTER = Measure(
    "length counter",
    "the number of words of the text; planted: blind to everything else",
    lambda _: Lengths(),
)


def random_measure(seed: int) -> Measure:
    """Return a measure that draws lots, the same for the same texts."""
    definition = f"a number drawn with seed {seed}; planted: blind to everything"
    return Measure("random", definition, lambda _: Lots(seed))


def _unit(mixed: NDArray[np.uint64]) -> Floats:
    """Scramble 64 bits, and return 53 of them as a number in [0, 1).

    The finaliser of splitmix64 (G. L. Steele, D. Lea and C. H. Flood, OOPSLA 2014).
    """
    for factor, shift in zip(_MIX, (30, 27), strict=True):
        mixed = (mixed ^ (mixed >> np.uint64(shift))) * factor
    mixed ^= mixed >> np.uint64(31)
    return (mixed >> np.uint64(11)).astype(np.float64) * 2.0**-53
