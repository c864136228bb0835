"""Classical measures of how alike two texts are, each named for what it is."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Protocol

import numpy as np
import scipy  # its submodules load on first use
from rapidfuzz import process
from rapidfuzz.distance import Indel, Levenshtein

from judge.probe.weighting import Bm25, TfIdfCosine
from judge.probe.words import Lexicon, count_terms, numbered, words
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
    found = words(text)
    return numbered(list(zip(*(found[i:] for i in range(n)), strict=False)))


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
