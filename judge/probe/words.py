"""Words, terms and sentences of texts: cut, counted and weighted."""

import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self

import numpy as np
import scipy  # its submodules load on first use

from rating.errors import DataError
from rating.typing import Floats

if TYPE_CHECKING:
    from sklearn.feature_extraction.text import TfidfVectorizer


_WORD = re.compile(r"[^\W_]+")
_SENTENCE_END = re.compile(r"(?<=[.!?])(\s+)")
_FIRST_FREE, _SURROGATES, _N_SURROGATES = 0x21, 0xD800, 0x800


def words(text: str) -> list[str]:
    """Return the words of a text: runs of letters and digits, case folded.

    Examples
    --------
    >>> words("It's _one_ of 2.")
    ['it', 's', 'one', 'of', '2']
    """
    return _WORD.findall(text.casefold())


def sentences(text: str) -> tuple[list[str], list[str]]:
    """Cut a text behind full stops, question and exclamation marks before a space.

    Returns
    -------
    sentences, spaces : list of str
        What stands between two sentences is one shorter; alternating they are the text again.
    """
    pieces = _SENTENCE_END.split(text)
    return pieces[::2], pieces[1::2]


class Lexicon:
    """Numbers for terms, in the order in which they were met."""

    def __init__(self) -> None:
        self._number: dict[object, int] = {}

    def __len__(self) -> int:
        return len(self._number)

    def __iter__(self) -> Iterator[Any]:
        return iter(self._number)

    def numbers(self, terms: Sequence[object]) -> list[int]:
        """Return the number of each term; a new one gets the next."""
        known = self._number
        return [known.setdefault(term, len(known)) for term in terms]

    def counts(self, texts: Sequence[Sequence[object]]) -> scipy.sparse.csr_array:
        """Count terms.

        Returns
        -------
        csr_array of shape (n_texts, n_terms)
            With a column for each term met so far.
        """
        rows = [self.numbers(terms) for terms in texts]
        ends = np.cumsum([0, *map(len, rows)])
        columns = np.concatenate([np.array(row, dtype=np.int64) for row in [[], *rows]])
        counts: scipy.sparse.csr_array = scipy.sparse.csr_array(
            (np.ones(len(columns)), columns, ends), shape=(len(rows), len(self))
        )
        counts.sum_duplicates()
        return counts

    def spelled(self, terms: Sequence[object]) -> str:
        """Write each term as one character, so that what compares letters compares terms."""
        points = (_FIRST_FREE + number for number in self.numbers(terms))
        return "".join(chr(p + _N_SURROGATES * (p >= _SURROGATES)) for p in points)


def count_terms(
    references: Sequence[str], texts: Sequence[str], terms: Callable[[str], Sequence[object]]
) -> tuple[scipy.sparse.csr_array, scipy.sparse.csr_array, Lexicon]:
    """Count the terms of references and of texts over one lexicon; a repeated text is read once.

    Returns
    -------
    references, texts : csr_array of shape (n, n_terms)
        A row for each, in their order.
    lexicon : Lexicon
        The terms of the columns.
    """
    lexicon = Lexicon()
    place = {text: i for i, text in enumerate(dict.fromkeys([*references, *texts]))}
    counts = lexicon.counts([terms(text) for text in place])
    left, right = ([place[text] for text in side] for side in (references, texts))
    return counts[left], counts[right], lexicon


def numbered(terms: Sequence[object]) -> list[tuple[object, int]]:
    """Return terms with their repetition, so that a set of them is the multiset of the terms.

    Examples
    --------
    >>> numbered(["to", "be", "to"])
    [('to', 1), ('be', 1), ('to', 2)]
    """
    met: Counter[object] = Counter()
    pairs = []
    for term in terms:
        met[term] += 1
        pairs.append((term, met[term]))
    return pairs


K1, B = 1.2, 0.75


@dataclass(frozen=True, slots=True)
class Bm25:
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
    >>> bm25 = Bm25.fit(["cat sat", "dog ran"])
    >>> float(bm25.rows(["cat"], ["cat sat"])[0].round(4))  # ln(1 + 1.5 / 1.5)
    0.6931
    """

    holding: dict[str, int]
    n_texts: int
    mean_length: float

    @classmethod
    def fit(cls, corpus: Sequence[str]) -> Self:
        """Count in how many texts of a collection each word stands.

        Raises
        ------
        DataError
            If no text has a word.
        """
        texts = [words(text) for text in corpus]
        holding: dict[str, int] = {}
        for word in [word for text in texts for word in dict.fromkeys(text)]:
            holding[word] = holding.get(word, 0) + 1
        if not holding:
            raise DataError(f"None of {len(corpus)} texts has a word: BM25 needs some.")
        return cls(holding, len(texts), sum(map(len, texts)) / len(texts))

    def rows(self, references: Sequence[str], texts: Sequence[str]) -> Floats:
        """Score each text for the query beside it."""
        queries, weights = self._weighed(references, texts)
        return np.asarray(queries.multiply(weights).sum(axis=1))

    def matrix(self, references: Sequence[str], texts: Sequence[str]) -> Floats:
        """Score every text for every query."""
        queries, weights = self._weighed(references, texts)
        return np.asarray((queries @ weights.T).toarray())

    def _weighed(
        self, references: Sequence[str], texts: Sequence[str]
    ) -> tuple[scipy.sparse.csr_array, scipy.sparse.csr_array]:
        queries, tf, lexicon = count_terms(references, texts, words)
        n = np.array([self.holding.get(word, 0) for word in lexicon])
        idf = np.log1p((self.n_texts - n + 0.5) / (n + 0.5))
        length = np.repeat(tf.sum(axis=1), np.diff(tf.indptr))
        held_back = K1 * (1 - B + B * length / self.mean_length)
        tf.data = idf[tf.indices] * tf.data * (K1 + 1) / (tf.data + held_back)
        return queries, tf


@dataclass(frozen=True, slots=True)
class TfIdfCosine:
    """Cosine of the TF-IDF vectors of two texts, as scikit-learn defines them.

    Counts times ``1 + ln((1 + N) / (1 + n))``. Words that the collection does not hold are left
    out; a text of such words alone is like nothing, not even like itself.
    """

    vectorizer: "TfidfVectorizer"

    @classmethod
    def fit(cls, corpus: Sequence[str]) -> Self:
        """Count in how many texts of a collection each word stands.

        Raises
        ------
        DataError
            If no text has a word.
        """
        # Imported here: it takes a second, and most processes never need it.
        from sklearn.feature_extraction.text import TfidfVectorizer

        if not any(map(words, corpus)):
            raise DataError(f"None of {len(corpus)} texts has a word: TF-IDF needs some.")
        return cls(TfidfVectorizer(analyzer=words).fit(corpus))

    def rows(self, references: Sequence[str], texts: Sequence[str]) -> Floats:
        """Score each text against the reference beside it."""
        left, right = self._vectors(references), self._vectors(texts)
        return np.asarray(left.multiply(right).sum(axis=1)).ravel()

    def matrix(self, references: Sequence[str], texts: Sequence[str]) -> Floats:
        """Score every text against every reference."""
        return np.asarray((self._vectors(references) @ self._vectors(texts).T).toarray())

    def _vectors(self, texts: Sequence[str]) -> Any:  # a sparse matrix of scikit-learn's
        return self.vectorizer.transform(texts)
