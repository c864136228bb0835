"""Measures of how alike two texts are: classical ones, and planted ones with known cards."""

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Protocol

import numpy as np
import scipy  # its submodules load on first use
from numpy.typing import NDArray
from rapidfuzz import process
from rapidfuzz.distance import Indel, Levenshtein

from judge.probe.words import Bm25, Lexicon, TfIdfCosine, count_terms, numbered, words
from rating.typing import Floats

Texts = Sequence[str]


class Scorer(Protocol):
    """Scores texts against a reference, question or original; higher is more alike."""

    def rows(self, references: Texts, texts: Texts) -> Floats:
        """Score each text against the reference beside it, shape (n,)."""
        ...

    def matrix(self, references: Texts, texts: Texts) -> Floats:
        """Score every text against every reference, shape (n_references, n_texts)."""
        ...


@dataclass(frozen=True, slots=True)
class Measure:
    """A measure of similarity.

    Attributes
    ----------
    name : str
        What it is called on a card.
    definition : str
        Its formula, in a line.
    fit : callable
        Takes the texts of a collection, for measures that weigh words by how rare they are in it,
        and returns the `Scorer`.
    """

    name: str
    definition: str
    fit: Callable[[Texts], Scorer]


@dataclass(frozen=True, slots=True)
class Overlap:
    """What two texts share of their terms.

    Attributes
    ----------
    terms : callable
        Takes a text to its terms; counted once each.
    union : bool
        Divide the shared terms by those of both (Jaccard) instead of by the mean of the two
        numbers (F1). Two texts without any term share none: 0.
    """

    terms: Callable[[str], Sequence[object]]
    union: bool

    def rows(self, references: Texts, texts: Texts) -> Floats:
        """Score each text against the reference beside it."""
        left, right = self._sets(references, texts)
        return self._share(left.multiply(right).sum(axis=1), left.sum(axis=1), right.sum(axis=1))

    def matrix(self, references: Texts, texts: Texts) -> Floats:
        """Score every text against every reference."""
        left, right = self._sets(references, texts)
        n_left, n_right = left.sum(axis=1), right.sum(axis=1)
        return self._share((left @ right.T).toarray(), n_left[:, None], n_right[None, :])

    def _sets(
        self, references: Texts, texts: Texts
    ) -> tuple[scipy.sparse.csr_array, scipy.sparse.csr_array]:
        left, right, _ = count_terms(
            references, texts, lambda text: list(dict.fromkeys(self.terms(text)))
        )
        return left, right

    def _share(self, shared: Floats, n_left: Floats, n_right: Floats) -> Floats:
        total = n_left + n_right - shared if self.union else (n_left + n_right) / 2
        return np.asarray(shared / np.where(total > 0, total, 1))


@dataclass(frozen=True, slots=True)
class Edits:
    """How few edits make one text the other.

    Attributes
    ----------
    ratio : callable
        Of rapidfuzz, on two strings.
    by_word : bool
        Edit words instead of characters.
    """

    ratio: Callable[..., float]
    by_word: bool = False

    def rows(self, references: Texts, texts: Texts) -> Floats:
        """Score each text against the reference beside it."""
        left, right = self._spelled(references, texts)
        return process.cpdist(left, right, scorer=self.ratio, dtype=np.float64, workers=-1)

    def matrix(self, references: Texts, texts: Texts) -> Floats:
        """Score every text against every reference."""
        left, right = self._spelled(references, texts)
        return process.cdist(left, right, scorer=self.ratio, dtype=np.float64, workers=-1)

    def _spelled(self, references: Texts, texts: Texts) -> tuple[Texts, Texts]:
        if not self.by_word:
            return references, texts
        lexicon = Lexicon()
        spelled = {t: lexicon.spelled(words(t)) for t in dict.fromkeys([*references, *texts])}
        return [spelled[text] for text in references], [spelled[text] for text in texts]


def n_grams(text: str, n: int) -> Sequence[object]:
    """Return runs of n words, repetitions numbered."""
    terms = words(text)
    return numbered(list(zip(*(terms[i:] for i in range(n)), strict=False)))


JACCARD = Measure(
    "Jaccard of words",
    "|A ∩ B| / |A ∪ B| over the sets of words",
    lambda _: Overlap(words, union=True),
)
LEVENSHTEIN = Measure(
    "Levenshtein ratio",
    "1 - d / max(|a|, |b|), d insertions, removals and exchanges of characters",
    lambda _: Edits(Levenshtein.normalized_similarity),
)
INDEL = Measure(
    "indel ratio",
    "2 LCS / (|a| + |b|), LCS the longest common subsequence of characters",
    lambda _: Edits(Indel.normalized_similarity),
)
ROUGE_1 = Measure(
    "ROUGE-1 F1",
    "2 M / (|a| + |b|), M the words in common with repetitions; no stemming",
    lambda _: Overlap(partial(n_grams, n=1), union=False),
)
ROUGE_2 = Measure(
    "ROUGE-2 F1",
    "2 M / (|a| + |b|), M the pairs of words in common with repetitions; no stemming",
    lambda _: Overlap(partial(n_grams, n=2), union=False),
)
ROUGE_L = Measure(
    "ROUGE-L F1",
    "2 LCS / (|a| + |b|), LCS the longest common subsequence of words; no stemming",
    lambda _: Edits(Indel.normalized_similarity, by_word=True),
)
BM25 = Measure(
    "BM25",
    "sum over words of the reference of idf tf (k1 + 1) / (tf + k1 (1 - b + b |d| / mean |d|)),"
    " idf = ln(1 + (N - n + .5) / (n + .5)), k1 = 1.2, b = .75",
    Bm25.fit,
)
TF_IDF = Measure(
    "TF-IDF cosine",
    "cosine of counts of words times 1 + ln((1 + N) / (1 + n))",
    TfIdfCosine.fit,
)

CLASSICAL = (JACCARD, LEVENSHTEIN, INDEL, ROUGE_1, ROUGE_2, ROUGE_L, BM25, TF_IDF)
"""Measures that need no model."""


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
