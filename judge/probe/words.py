"""What the measures and perturbations take for words and sentences."""

import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import scipy  # its submodules load on first use

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
    found = []
    for term in terms:
        met[term] += 1
        found.append((term, met[term]))
    return found
