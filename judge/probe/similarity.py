"""Measures of how alike two texts are: classical ones, and planted ones with known cards."""

import hashlib
import re
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Protocol

import numpy as np
import scipy  # its submodules load on first use
from numpy.typing import NDArray
from rapidfuzz import process
from rapidfuzz.distance import Indel, Levenshtein

from rating.errors import DataError
from rating.typing import Floats

Texts = Sequence[str]
Terms = Callable[[str], Sequence[Any]]
"""Takes a text to its terms, such as its words."""

_WORD = re.compile(r"[^\W_]+")


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
class Products:
    """Inner products of vectors of texts.

    Attributes
    ----------
    vectors : callable
        Takes references and texts to arrays, dense or sparse, with a row for each.
    """

    vectors: Callable[[Texts, Texts], tuple[Any, Any]]

    def rows(self, references: Texts, texts: Texts) -> Floats:
        """Score each text against the reference beside it."""
        left, right = self.vectors(references, texts)
        return np.asarray((left * right).sum(axis=1))

    def matrix(self, references: Texts, texts: Texts) -> Floats:
        """Score every text against every reference."""
        left, right = self.vectors(references, texts)
        products = left @ right.T
        return np.asarray(products.toarray() if scipy.sparse.issparse(products) else products)


@dataclass(frozen=True, slots=True)
class Overlap:
    """What two texts share of their terms.

    Attributes
    ----------
    terms : callable
        Terms of a text; counted once each.
    union : bool
        Divide the shared terms by those of both (Jaccard) instead of by the mean of the two
        numbers (F1). Two texts without any term share none: 0.
    """

    terms: Terms
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

    def _sets(self, references: Texts, texts: Texts) -> tuple[Any, Any]:
        left, right, _ = count_terms(references, texts, lambda text: set(self.terms(text)))
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
        Of rapidfuzz, on two sequences.
    terms : callable
        What is edited: the characters of a text, or its words.
    """

    ratio: Callable[..., float]
    terms: Terms = str

    def rows(self, references: Texts, texts: Texts) -> Floats:
        """Score each text against the reference beside it."""
        left, right = self._cut(references, texts)
        return process.cpdist(left, right, scorer=self.ratio, dtype=np.float64, workers=-1)

    def matrix(self, references: Texts, texts: Texts) -> Floats:
        """Score every text against every reference."""
        left, right = self._cut(references, texts)
        return process.cdist(left, right, scorer=self.ratio, dtype=np.float64, workers=-1)

    def _cut(self, *sides: Texts) -> list[list[Sequence[Any]]]:
        terms = {text: self.terms(text) for side in sides for text in side}
        return [[terms[text] for text in side] for side in sides]


def words(text: str) -> list[str]:
    """Return the words of a text: runs of letters and digits, case folded.

    Examples
    --------
    >>> words("It's _one_ of 2.")
    ['it', 's', 'one', 'of', '2']
    """
    return _WORD.findall(text.casefold())


def n_grams(text: str, n: int) -> list[tuple[tuple[str, ...], int]]:
    """Return runs of n words with their repetition: a set of them is the multiset of the runs.

    Examples
    --------
    >>> n_grams("to be to", 1)
    [(('to',), 1), (('be',), 1), (('to',), 2)]
    """
    terms = words(text)
    met: Counter[tuple[str, ...]] = Counter()
    numbered = []
    for run in zip(*(terms[i:] for i in range(n)), strict=False):
        met[run] += 1
        numbered.append((run, met[run]))
    return numbered


def count_terms(
    references: Texts, texts: Texts, terms: Callable[[str], Iterable[object]]
) -> tuple[Any, Any, list[Any]]:
    """Count the terms of references and of texts; a repeated text is read once.

    Returns
    -------
    references, texts : csr_array of shape (n, n_terms)
        A row for each, in their order.
    terms : list
        The terms of the columns, in the order in which they were met.
    """
    column: dict[Any, int] = {}
    place = {text: i for i, text in enumerate(dict.fromkeys([*references, *texts]))}
    rows = [[column.setdefault(term, len(column)) for term in terms(text)] for text in place]
    ends = np.cumsum([0, *map(len, rows)])
    columns = np.concatenate([np.array(row, dtype=np.int64) for row in [[], *rows]])
    cells = (np.ones(len(columns)), columns, ends)
    counts = scipy.sparse.csr_array(cells, shape=(len(rows), len(column)))
    counts.sum_duplicates()
    left, right = ([place[text] for text in side] for side in (references, texts))
    return counts[left], counts[right], list(column)


K1, B = 1.2, 0.75


def bm25(corpus: Texts) -> Products:
    """Okapi BM25 of a text for a query.

    ``sum over the query's words of idf tf (k1 + 1) / (tf + k1 (1 - b + b length / mean length))``
    with ``idf = ln(1 + (N - n + .5) / (n + .5))``, n of the N texts of the collection holding the
    word. It has no upper end, and is not symmetric. A word that the collection does not hold has
    n = 0.

    References
    ----------
    .. [1] S. Robertson and H. Zaragoza, "The Probabilistic Relevance Framework: BM25 and Beyond",
       Foundations and Trends in Information Retrieval 3(4), 2009, section 3; the idf that cannot
       be negative is Lucene's.

    Examples
    --------
    >>> bm25 = bm25(["cat sat", "dog ran"])
    >>> float(bm25.rows(["cat"], ["cat sat"])[0].round(4))  # ln(1 + 1.5 / 1.5)
    0.6931
    """
    collection = [words(text) for text in corpus]
    holding = Counter(word for text in collection for word in set(text))
    if not holding:
        raise DataError(f"None of {len(corpus)} texts has a word: BM25 needs some.")
    mean_length = sum(map(len, collection)) / len(collection)

    def vectors(references: Texts, texts: Texts) -> tuple[Any, Any]:
        queries, tf, terms = count_terms(references, texts, words)
        n = np.array([holding[word] for word in terms])
        idf = np.log1p((len(collection) - n + 0.5) / (n + 0.5))
        length = np.repeat(tf.sum(axis=1), np.diff(tf.indptr))
        held_back = K1 * (1 - B + B * length / mean_length)
        tf.data = idf[tf.indices] * tf.data * (K1 + 1) / (tf.data + held_back)
        return queries, tf

    return Products(vectors)


def tf_idf(corpus: Texts) -> Products:
    """Cosine of the TF-IDF vectors of two texts, as scikit-learn defines them.

    Counts times ``1 + ln((1 + N) / (1 + n))``. Words that the collection does not hold are left
    out; a text of such words alone is like nothing, not even like itself.

    Raises
    ------
    DataError
        If no text has a word.
    """
    # Imported here: it takes a second, and most processes never need it.
    from sklearn.feature_extraction.text import TfidfVectorizer

    if not any(map(words, corpus)):
        raise DataError(f"None of {len(corpus)} texts has a word: TF-IDF needs some.")
    vectorizer = TfidfVectorizer(analyzer=words).fit(corpus)

    def vectors(*sides: Texts) -> tuple[Any, Any]:
        left, right = (scipy.sparse.csr_array(vectorizer.transform(side)) for side in sides)
        return left, right

    return Products(vectors)


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
    lambda _: Edits(Indel.normalized_similarity, words),
)
BM25 = Measure(
    "BM25",
    "sum over words of the reference of idf tf (k1 + 1) / (tf + k1 (1 - b + b |d| / mean |d|)),"
    " idf = ln(1 + (N - n + .5) / (n + .5)), k1 = 1.2, b = .75",
    bm25,
)
TF_IDF = Measure(
    "TF-IDF cosine",
    "cosine of counts of words times 1 + ln((1 + N) / (1 + n))",
    tf_idf,
)

CLASSICAL = (JACCARD, LEVENSHTEIN, INDEL, ROUGE_1, ROUGE_2, ROUGE_L, BM25, TF_IDF)
"""Measures that need no model."""


_MIX = tuple(np.uint64(factor) for factor in (0xBF58476D1CE4E5B9, 0x94D049BB133111EB))


@dataclass(frozen=True, slots=True)
class Lengths:
    """Counts the words of a text, whatever it is set against."""

    def rows(self, references: Texts, texts: Texts) -> Floats:
        """Return the number of words of each text."""
        return np.array([len(words(text)) for text in texts], dtype=np.float64)

    def matrix(self, references: Texts, texts: Texts) -> Floats:
        """Return the same number of words in each row."""
        return np.tile(self.rows(references, texts), (len(references), 1))


@dataclass(frozen=True, slots=True)
class Lots:
    """Draws a number for each pair of texts, the same whenever the two are met."""

    seed: int

    def rows(self, references: Texts, texts: Texts) -> Floats:
        """Return numbers between 0 and 1."""
        return _unit(self._hashes(references, "reference") ^ self._hashes(texts, "text"))

    def matrix(self, references: Texts, texts: Texts) -> Floats:
        """Return numbers between 0 and 1."""
        left, right = self._hashes(references, "reference"), self._hashes(texts, "text")
        return _unit(left[:, None] ^ right[None, :])

    def _hashes(self, texts: Texts, role: str) -> NDArray[np.uint64]:
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
