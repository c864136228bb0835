"""Similarity measures of texts, perturbations of a text, and the axes of a measure's card.

`CLASSICAL` are the measures in use, beside planted ones whose cards are known. `PERTURBATIONS`,
seeded and versioned, leave or change what a text says; `doses` removes or inserts a known part. An
`Axis` holds an estimate with its interval over prompts; `card_of` asks a measure all that is
planned.
"""

import hashlib
import math
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import partial
from typing import Any, Protocol

import numpy as np
import scipy
from numpy.typing import NDArray
from rapidfuzz import process
from rapidfuzz.distance import Indel, Levenshtein

from judge.studies.estimates import FEW_PROMPTS, Estimate, interval
from rating.errors import DataError
from rating.leave_out import drawn_sums, sums_within
from rating.typing import Floats, Ints

# Measures


Texts = Sequence[str]
Terms = Callable[[str], Sequence[Any]]
"""Takes a text to its terms, such as its words."""

_WORD = re.compile(r"[^\W_]+")


@dataclass(frozen=True, slots=True)
class _Scorer:
    """Scores texts against a reference, question or original; higher is more alike.

    Attributes
    ----------
    sides : callable
        Takes references and texts to what is compared of them.
    beside : callable
        Takes both to the score of each text with the reference beside it.
    every : callable
        Takes both to the score of every text with every reference.
    """

    sides: Callable[[Texts, Texts], tuple[Any, Any]]
    beside: Callable[[Any, Any], Any]
    every: Callable[[Any, Any], Any]

    def rows(self, references: Texts, texts: Texts) -> Floats:
        """Score each text against the reference beside it, shape (n,)."""
        return np.asarray(self.beside(*self.sides(references, texts)))

    def matrix(self, references: Texts, texts: Texts) -> Floats:
        """Score every text against every reference, shape (n_references, n_texts)."""
        return np.asarray(self.every(*self.sides(references, texts)))


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
        and returns the `_Scorer`.
    """

    name: str
    definition: str
    fit: Callable[[Texts], _Scorer]


def products(vectors: Callable[[Texts, Texts], tuple[Any, Any]]) -> _Scorer:
    """Score by inner products of vectors of texts.

    Parameters
    ----------
    vectors : callable
        Takes references and texts to arrays, dense or sparse, with a row for each.
    """

    def every(left: Any, right: Any) -> Any:
        scores = left @ right.T
        return scores.toarray() if scipy.sparse.issparse(scores) else scores

    return _Scorer(vectors, lambda left, right: (left * right).sum(axis=1), every)


def _overlap(terms: Terms, *, union: bool) -> _Scorer:
    """Score by what two texts share of their terms, which count once each.

    Parameters
    ----------
    union : bool
        Divide the shared terms by those of both (Jaccard) instead of by the mean of the two
        numbers (F1). Two texts without any term share none: 0.
    """

    def share(shared: Floats, n_left: Floats, n_right: Floats) -> Floats:
        total = n_left + n_right - shared if union else (n_left + n_right) / 2
        return np.asarray(shared / np.where(total > 0, total, 1))

    return _Scorer(
        lambda references, texts: count_terms(references, texts, lambda one: set(terms(one)))[:2],
        lambda a, b: share(a.multiply(b).sum(axis=1), a.sum(axis=1), b.sum(axis=1)),
        lambda a, b: share((a @ b.T).toarray(), a.sum(axis=1)[:, None], b.sum(axis=1)[None, :]),
    )


def _edits(ratio: Callable[..., float], terms: Terms = str) -> _Scorer:
    """Score by how few edits make one text the other.

    Parameters
    ----------
    ratio : callable
        Of rapidfuzz, on two sequences.
    terms : callable
        What is edited: the characters of a text, or its words.
    """

    def sides(*both: Texts) -> tuple[list[Sequence[Any]], list[Sequence[Any]]]:
        cut = {text: terms(text) for side in both for text in side}
        left, right = ([cut[text] for text in side] for side in both)
        return left, right

    how: dict[str, Any] = {"scorer": ratio, "dtype": np.float64, "workers": -1}
    return _Scorer(sides, partial(process.cpdist, **how), partial(process.cdist, **how))


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


def _bm25(corpus: Texts) -> _Scorer:
    """Okapi BM25 of a text for a query.

    ``sum over the query's words of idf tf (k1 + 1) / (tf + k1 (1 - b + b length / mean length))``
    with ``idf = ln(1 + (N - n + 0.5) / (n + 0.5))``, n of the N texts of the collection
    containing the word (n = 0 for an unknown one). It has no upper bound, and is not symmetric.

    References
    ----------
    .. [1] S. Robertson and H. Zaragoza, "The Probabilistic Relevance Framework: BM25 and Beyond",
       Foundations and Trends in Information Retrieval 3(4), 2009, section 3; the idf that cannot
       be negative is Lucene's.

    Examples
    --------
    >>> index = _bm25(["cat sat", "dog ran"])
    >>> float(index.rows(["cat"], ["cat sat"])[0].round(4))  # ln(1 + 1.5 / 1.5)
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

    return products(vectors)


def tf_idf(corpus: Texts) -> _Scorer:
    """Cosine of the TF-IDF vectors of two texts, as scikit-learn defines them.

    Counts times ``1 + ln((1 + N) / (1 + n))``. Words that the collection does not hold are
    excluded; a text of such words alone is like nothing, not even like itself.

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

    return products(vectors)


JACCARD = Measure(
    "Jaccard of words",
    "|A ∩ B| / |A ∪ B| over the sets of words",
    lambda _: _overlap(words, union=True),
)
LEVENSHTEIN = Measure(
    "Levenshtein ratio",
    "1 - d / max(|a|, |b|), d insertions, removals and exchanges of characters",
    lambda _: _edits(Levenshtein.normalized_similarity),
)
INDEL = Measure(
    "indel ratio",
    "2 LCS / (|a| + |b|), LCS the longest common subsequence of characters",
    lambda _: _edits(Indel.normalized_similarity),
)
ROUGE_1 = Measure(
    "ROUGE-1 F1",
    "2 M / (|a| + |b|), M the words in common with repetitions; no stemming",
    lambda _: _overlap(partial(n_grams, n=1), union=False),
)
ROUGE_2 = Measure(
    "ROUGE-2 F1",
    "2 M / (|a| + |b|), M the pairs of words in common with repetitions; no stemming",
    lambda _: _overlap(partial(n_grams, n=2), union=False),
)
ROUGE_L = Measure(
    "ROUGE-L F1",
    "2 LCS / (|a| + |b|), LCS the longest common subsequence of words; no stemming",
    lambda _: _edits(Indel.normalized_similarity, words),
)
BM25 = Measure(
    "BM25",
    "sum over words of the reference of idf tf (k1 + 1) / (tf + k1 (1 - b + b |d| / mean |d|)),"
    " idf = ln(1 + (N - n + 0.5) / (n + 0.5)), k1 = 1.2, b = 0.75",
    _bm25,
)
TF_IDF = Measure(
    "TF-IDF cosine", "cosine of counts of words times 1 + ln((1 + N) / (1 + n))", tf_idf
)

CLASSICAL = (JACCARD, LEVENSHTEIN, INDEL, ROUGE_1, ROUGE_2, ROUGE_L, BM25, TF_IDF)
"""Measures that need no model."""


_MIX = tuple(np.uint64(factor) for factor in (0xBF58476D1CE4E5B9, 0x94D049BB133111EB))


_LENGTHS = _Scorer(
    lambda references, texts: (
        np.zeros(len(references)),
        np.array([len(words(text)) for text in texts], dtype=np.float64),
    ),
    np.add,
    np.add.outer,
)
"""Counts the words of a text, whatever it is set against."""


def _lots(seed: int) -> _Scorer:
    """Draw a number between 0 and 1 for each pair of texts, the same whenever the two are met."""

    def hashes(texts: Texts, role: str) -> NDArray[np.uint64]:
        key = f"{seed} {role}".encode()
        digests = [
            hashlib.blake2b(text.encode(errors="surrogatepass"), digest_size=8, key=key).digest()
            for text in texts
        ]
        return np.frombuffer(b"".join(digests), dtype=np.uint64)

    return _Scorer(
        lambda references, texts: (hashes(references, "reference"), hashes(texts, "text")),
        lambda left, right: _unit(left ^ right),
        lambda left, right: _unit(left[:, None] ^ right[None, :]),
    )


BAG_OF_WORDS = Measure(
    "bag of words",
    "words in common over words of either, with repetitions; planted: blind to order",
    lambda _: _overlap(partial(n_grams, n=1), union=True),
)
LENGTH_COUNTER = Measure(
    "length counter",
    "the number of words of the text; planted: blind to everything else",
    lambda _: _LENGTHS,
)


def random_measure(seed: int) -> Measure:
    """Return a measure that draws lots, the same for the same texts."""
    definition = f"a number drawn with seed {seed}; planted: blind to everything"
    return Measure("random", definition, lambda _: _lots(seed))


def _unit(mixed: NDArray[np.uint64]) -> Floats:
    """Scramble 64 bits, and return 53 of them as a number in [0, 1).

    The finaliser of splitmix64 (G. L. Steele, D. Lea and C. H. Flood, OOPSLA 2014).
    """
    for factor, shift in zip(_MIX, (30, 27), strict=True):
        mixed = (mixed ^ (mixed >> np.uint64(shift))) * factor
    mixed ^= mixed >> np.uint64(31)
    return (mixed >> np.uint64(11)).astype(np.float64) * 2.0**-53


# Perturbations


VERSION = 1
"""Of all perturbations together: another version makes other copies of the same text."""

NOISY_WORDS = 0.1
"""Share of the words that lose a character."""

_AUXILIARIES = (
    "am|is|are|was|were|can|could|will|would|shall|should|may|might|must|do|does|did|has|have|had"
)
_FINITE = re.compile(rf"\b({_AUXILIARIES})\b(\s+not\b)?", re.IGNORECASE)
_DIGITS = re.compile(r"[0-9]")
_MARKDOWN = (
    (re.compile(r"^[ \t]*```.*$\n?", re.MULTILINE), ""),
    (re.compile(r"^([ \t]*)(?:#{1,6}|>|[-*+])[ \t]+", re.MULTILINE), r"\1"),
    (re.compile(r"(\*\*|__|`+)(?=\S)(.+?)(?<=\S)\1"), r"\2"),
    (re.compile(r"(?<![^\W_])([*_])(?=\S)(.+?)(?<=\S)\1(?![^\W_])"), r"\2"),
)
_SENTENCE_END = re.compile(r"(?<=[.!?])(\s+)")
_LABEL = re.compile(r"\b(assistant|response|answer|model) ([AB])\b", re.IGNORECASE)


class Kind(StrEnum):
    """Whether a change touches what a text says."""

    SUPERFICIAL = "superficial"
    MEANING = "meaning"


@dataclass(frozen=True, slots=True)
class Perturbation:
    """A change to a text.

    Attributes
    ----------
    name : str
        What it is called on a card.
    apply : callable
        A pure function of the text and of what ``rng`` draws. A text on which it has nothing to
        change comes back as it is.
    """

    name: str
    kind: Kind
    apply: Callable[[str, np.random.Generator], str]


def _random_case(text: str, rng: np.random.Generator) -> str:
    """Write each letter as a capital or small, by a coin; one whose length changes stays."""
    coins = rng.random(len(text)) < 0.5
    return "".join(
        _other_case(letter) if swap else letter for letter, swap in zip(text, coins, strict=True)
    )


def _character_noise(text: str, rng: np.random.Generator) -> str:
    """Drop one character in `NOISY_WORDS` of the words with four or more, at least in one."""
    pieces = re.split(r"(\s+)", text)
    long = [i for i, piece in enumerate(pieces) if len(piece) > 3 and not piece.isspace()]
    if not long:
        return text
    n = max(1, round(NOISY_WORDS * len(long)))
    for i in rng.choice(long, size=n, replace=False):
        gone = int(rng.integers(len(pieces[i])))
        pieces[i] = pieces[i][:gone] + pieces[i][gone + 1 :]
    return "".join(pieces)


def _wide_spacing(text: str, _: np.random.Generator) -> str:
    """Double every space, and end with an empty line."""
    return text.replace(" ", "  ") + "\n"


def plain_text(text: str, _: np.random.Generator) -> str:
    """Strip marks of Markdown: headings, lists, quotes, emphasis, code. Links stay."""
    for mark, content in _MARKDOWN:
        text = mark.sub(content, text)
    return text


def _renamed_labels(text: str, _: np.random.Generator) -> str:
    """Call "Assistant A" and "Assistant B", or responses, answers and models, 1 and 2."""
    return _LABEL.sub(lambda label: f"{label[1]} {'AB'.index(label[2].upper()) + 1}", text)


def _negation(text: str, rng: np.random.Generator) -> str:
    """Negate one finite auxiliary, or take its negation away; deny the whole without any."""
    verbs = list(_FINITE.finditer(text))
    if not verbs:
        return f"It is not true that {text}" if text.strip() else text
    one = verbs[int(rng.integers(len(verbs)))]
    verb = one[1] if one[2] else f"{one[1]} not"
    return text[: one.start()] + verb + text[one.end() :]


def _sentence_shuffle(text: str, rng: np.random.Generator) -> str:
    """Put the sentences into another order."""
    pieces, spaces = sentences(text)
    return _interleaved(_shuffled(pieces, rng), spaces)


def _word_shuffle(text: str, rng: np.random.Generator) -> str:
    """Put the words of each sentence into another order; their punctuation goes with them."""
    pieces, spaces = sentences(text)
    return _interleaved([_words_shuffled(sentence, rng) for sentence in pieces], spaces)


def _other_number(text: str, rng: np.random.Generator) -> str:
    """Change one digit."""
    digits = list(_DIGITS.finditer(text))
    if not digits:
        return text
    one = digits[int(rng.integers(len(digits)))]
    digit = (int(one[0]) + int(rng.integers(1, 10))) % 10
    return f"{text[: one.start()]}{digit}{text[one.end() :]}"


def _no_conclusion(text: str, _: np.random.Generator) -> str:
    """Drop the last sentence; a single one stays."""
    pieces, spaces = sentences(text.rstrip())
    return _interleaved(pieces[:-1], spaces[:-1]) if len(pieces) > 1 else text


RANDOM_CASE = Perturbation("random case", Kind.SUPERFICIAL, _random_case)
CHARACTER_NOISE = Perturbation("character noise", Kind.SUPERFICIAL, _character_noise)
WIDE_SPACING = Perturbation("wide spacing", Kind.SUPERFICIAL, _wide_spacing)
PLAIN_TEXT = Perturbation("Markdown stripped", Kind.SUPERFICIAL, plain_text)
RENAMED_LABELS = Perturbation("labels renamed", Kind.SUPERFICIAL, _renamed_labels)
NEGATION = Perturbation("negation", Kind.MEANING, _negation)
SENTENCE_SHUFFLE = Perturbation("sentence shuffle", Kind.MEANING, _sentence_shuffle)
WORD_SHUFFLE = Perturbation("word shuffle", Kind.MEANING, _word_shuffle)
OTHER_NUMBER = Perturbation("number changed", Kind.MEANING, _other_number)
NO_CONCLUSION = Perturbation("conclusion dropped", Kind.MEANING, _no_conclusion)

PERTURBATIONS = (
    RANDOM_CASE,
    CHARACTER_NOISE,
    WIDE_SPACING,
    PLAIN_TEXT,
    NEGATION,
    SENTENCE_SHUFFLE,
    WORD_SHUFFLE,
    OTHER_NUMBER,
    NO_CONCLUSION,
)
"""What a card asks about any text. Labels are renamed in what a judge reads, not in a text."""


def sentences(text: str) -> tuple[list[str], list[str]]:
    """Cut a text behind full stops, question and exclamation marks before a space.

    Returns
    -------
    sentences, spaces : list of str
        What stands between two sentences is one shorter; alternating they are the text again.
    """
    pieces = _SENTENCE_END.split(text)
    return pieces[::2], pieces[1::2]


def _other_case(letter: str) -> str:
    other = letter.swapcase()
    return other if len(other) == 1 and other.casefold() == letter.casefold() else letter


def _words_shuffled(sentence: str, rng: np.random.Generator) -> str:
    pieces = re.split(r"(\s+)", sentence)
    return _interleaved(_shuffled(pieces[::2], rng), pieces[1::2])


def _shuffled(pieces: list[str], rng: np.random.Generator) -> list[str]:
    """Draw orders until one differs; pieces that are all the same stay."""
    if len(set(pieces)) < 2:
        return pieces
    drawn = pieces
    while drawn == pieces:
        drawn = [pieces[i] for i in rng.permutation(len(pieces))]
    return drawn


def _interleaved(pieces: list[str], spaces: list[str]) -> str:
    return "".join(part for pair in zip(pieces, [*spaces, ""], strict=True) for part in pair)


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
    words than ``foreign`` has is excluded.

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


# Cards


NO_VALUE = "No value: the answers never differ, or there are none."
ROUNDS = 1000
"""Rounds of drawing prompts behind an interval."""
TIE = 1e-9
"""Two scores that differ by no more than this share of the larger are tied."""


class AxisName(StrEnum):
    """The five questions of a card, after SAGE (Goel, Lee and Ramchandran, arXiv 2509.21310)."""

    ALIGNMENT = "alignment"
    ROBUSTNESS = "robustness"
    SENSITIVITY = "sensitivity"
    CLUSTERING = "clustering"
    RETRIEVAL = "retrieval"


@dataclass(frozen=True, slots=True)
class Part:
    """One figure behind an axis.

    Attributes
    ----------
    group : str
        What it is: parts of a group are on one scale.
    name : str
        Of what: a perturbation, a dose, a set of data.
    """

    group: str
    name: str
    estimate: Estimate


@dataclass(frozen=True, slots=True)
class Axis:
    """How an evaluator does on one question.

    Attributes
    ----------
    estimate : Estimate
        0 is what answers without any knowledge reach, 1 the best. No value where the data do not
        give one: ``warnings`` give the reason.
    parts : tuple of Part
        The figures behind it.
    clusters : int
        Prompts, texts or questions that the interval draws.
    data : str
        What it was measured on, and whether that is a sample.
    """

    name: AxisName
    estimate: Estimate
    parts: tuple[Part, ...]
    clusters: int
    data: str
    warnings: tuple[str, ...] = ()

    def part(self, group: str, name: str) -> Estimate:
        """Return the estimate of a part; KeyError for one that is not there."""
        return {(part.group, part.name): part.estimate for part in self.parts}[group, name]

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON."""
        return {
            "name": self.name.value,
            **self.estimate.to_dict(),
            "parts": [
                {"group": part.group, "name": part.name, **part.estimate.to_dict()}
                for part in self.parts
            ],
            "clusters": self.clusters,
            "data": self.data,
            "warnings": list(self.warnings),
        }


@dataclass(frozen=True, slots=True)
class Drawn:
    """A value, and what it is in each round of drawing clusters with replacement.

    Attributes
    ----------
    value : float
        NaN where not defined.
    rounds : ndarray of shape (n_rounds,)
        NaN in a round in which it is not defined.
    n : int
        Comparisons behind it.
    """

    value: float
    rounds: Floats
    n: int

    def estimate(self) -> Estimate:
        """Return the value with its 95% percentile interval; None for what is not defined."""
        if math.isnan(self.value):
            return Estimate(None, None, None, self.n)
        return Estimate(self.value, *interval(self.rounds, 0.95), self.n)


def drawn_from(function: Callable[..., Floats], *drawn: Drawn, n: int) -> Drawn:
    """Return what a function makes of values, and of those of each round."""
    values = function(*(np.append(one.value, one.rounds) for one in drawn))
    return Drawn(float(values[0]), values[1:], n)


UNKNOWN = Drawn(math.nan, np.full(ROUNDS, np.nan), 0)
"""The value where there are no data."""

Means = tuple[Drawn, ...]


def compare(first: Floats, second: Floats) -> Floats:
    """Return 1 where the first score is higher, -1 where it is lower, 0 where they are tied.

    The mean of it is the net sensitivity ``P(>) - P(<)``.

    Examples
    --------
    >>> compare(np.array([1.0, 0.3, 2.0]), np.array([1.0 + 1e-12, 0.2, 3.0]))
    array([ 0.,  1., -1.])
    """
    gap = first - second
    tied = np.abs(gap) <= TIE * np.maximum(np.abs(first), np.abs(second))
    return np.where(tied, 0.0, np.sign(gap))


def tie_groups(values: Floats) -> Ints:
    """Give values numbers from the lowest; those that tie with the next one share theirs.

    Examples
    --------
    >>> tie_groups(np.array([0.5, 0.1, 0.1 + 1e-12]))
    array([1, 0, 0])
    """
    order = np.argsort(values, kind="stable")
    steps = compare(values[order][1:], values[order][:-1])
    group = np.empty(len(values), dtype=np.int64)
    group[order] = np.concatenate([[0], np.cumsum(steps)])[: len(values)]
    return group


def means(values: Floats, *, rng: np.random.Generator, cluster: Ints | None = None) -> Means:
    """Return the mean of each column over the rows that have a value, all drawn together.

    Whole clusters are drawn with replacement, the same for every column, so whatever is computed
    from several of them round by round keeps their dependence.

    Parameters
    ----------
    values : ndarray of shape (n_rows, k)
        NaN where there is none.
    cluster : ndarray of shape (n_rows,), int64, optional
        Number of the prompt of each row, from 0; without it every row is one.

    Returns
    -------
    tuple of Drawn, length k
        Without a value for a column without any.
    """
    there = ~np.isnan(values)
    stats = np.hstack([np.where(there, values, 0), there.astype(np.float64)])
    if cluster is not None:
        stats = sums_within(cluster, stats, int(cluster.max(initial=-1)) + 1)
    used, k = stats[stats.any(axis=1)], values.shape[1]
    rounds = np.full((ROUNDS, 2 * k), np.nan) if len(used) < 2 else drawn_sums(used, ROUNDS, rng)
    value = ratio(stats.sum(axis=0)[:k], stats.sum(axis=0)[k:])
    of_rounds = ratio(rounds[:, :k], rounds[:, k:])
    n = there.sum(axis=0)
    return tuple(Drawn(float(value[j]), of_rounds[:, j], int(n[j])) for j in range(k))


def mean_of(drawn: Iterable[Drawn]) -> Drawn:
    """Return the mean of several values, round by round.

    Those without any data are excluded; one that its data do not define leaves the mean without a
    value.
    """
    there = [one for one in drawn if one.n]
    if not there:
        return UNKNOWN
    n = sum(one.n for one in there)
    return drawn_from(lambda *values: np.mean(values, axis=0), *there, n=n)


def parts_of(group: str, names: Iterable[str], drawn: Iterable[Drawn]) -> list[Part]:
    """Make the parts of a group, a name each."""
    return [Part(group, name, one.estimate()) for name, one in zip(names, drawn, strict=True)]


def axis_of(
    name: AxisName,
    value: Drawn,
    parts: Iterable[Part],
    *,
    clusters: int,
    what: str,
    data: str,
    warnings: Sequence[str] = (),
) -> Axis:
    """Make an axis, with a warning where it has no value or its interval draws too few.

    Parameters
    ----------
    what : str
        What the clusters are, in the plural.
    """
    undefined = (NO_VALUE,) if math.isnan(value.value) else ()
    warned = (*undefined, *few(clusters, what), *warnings)
    return Axis(name, value.estimate(), tuple(parts), clusters, data, warned)


def ratio(above: Floats, below: Floats) -> Floats:
    """Divide, NaN where there is nothing to divide by."""
    return np.asarray(above / np.where(below > 0, below, np.nan))


def scores_of(name: str, scores: Floats) -> Floats:
    """Return the scores of a measure as they are, if all are finite.

    Raises
    ------
    DataError
        If one is no finite number.
    """
    bad = np.flatnonzero(~np.isfinite(scores))
    if len(bad):
        msg = f"{len(bad)} of {scores.size} scores of {name} are no numbers, such as"
        raise DataError(f"{msg} {scores.flat[bad[0]]}: a measure scores every pair of texts.")
    return scores


def few(clusters: int, what: str) -> tuple[str, ...]:
    """Return the warning that an interval draws too few clusters, if it does."""
    if clusters >= FEW_PROMPTS:
        return ()
    return (f"{clusters} {what}: with fewer than {FEW_PROMPTS}, the interval is too narrow.",)


class Plan(Protocol):
    """The questions of one axis, made once and put to every evaluator alike."""

    def ask(self, measure: Measure) -> Floats:
        """Return the scores that a measure gives."""
        ...

    def truth(self) -> Floats:
        """Return the scores that an oracle gives, in the same shape."""
        ...

    def read(self, scores: Floats, *, rng: np.random.Generator) -> Axis:
        """Estimate the axis from scores."""
        ...


@dataclass(frozen=True, slots=True)
class Card:
    """A profile of one evaluator: there is no average over its axes.

    Attributes
    ----------
    evaluator : str
        Its name.
    definition : str
        What it computes, in a line; for a judge the model and the method.
    axes : tuple of Axis
        In the order of `AxisName`; an axis that the evaluator was not asked about is not there.
    seed : int
        Of the draws behind the intervals.
    version : int
        Of the perturbations.
    """

    evaluator: str
    definition: str
    axes: tuple[Axis, ...]
    seed: int
    version: int = VERSION

    def axis(self, name: AxisName) -> Axis | None:
        """Return an axis, None where the evaluator was not asked about it."""
        return next((axis for axis in self.axes if axis.name is name), None)

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON."""
        return {
            "evaluator": self.evaluator,
            "definition": self.definition,
            "axes": [axis.to_dict() for axis in self.axes],
            "seed": self.seed,
            "perturbations_version": self.version,
        }


def card_of(measure: Measure, plans: Sequence[Plan], *, seed: int) -> Card:
    """Ask a measure of similarity everything that is planned.

    The same seed draws the same prompts for every measure, so cards of the same plans compare
    over the same draws.
    """
    axes = tuple(plan.read(plan.ask(measure), rng=np.random.default_rng(seed)) for plan in plans)
    return Card(measure.name, measure.definition, axes, seed)


def oracle_card(plans: Sequence[Plan], *, seed: int) -> Card:
    """Return the card of an evaluator that knows every answer: what the axes can reach."""
    axes = tuple(plan.read(plan.truth(), rng=np.random.default_rng(seed)) for plan in plans)
    return Card("oracle", "knows every answer", axes, seed)
