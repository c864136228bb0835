"""Topics of prompts by their words: what they are called, and how stable they are."""

import math
import re
from collections.abc import Callable, Iterator, Sequence, Set
from dataclasses import dataclass
from functools import cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from judge.ifeval import common_words
from judge.labels.taggers import shown_part
from rating.errors import DataError
from rating.typing import Floats, Ints

LEAST = 50
"""Different prompts with words, below which nothing is learnt."""
LEARNT_FROM = 15_000
"""Prompts from which topics are learnt at most; all others are put where they are nearest."""
MOST_TERMS = 10_000
DIMENSIONS = 100
PROMPTS_A_TOPIC = 12
"""There are as many topics as the square root of how often these go into the prompts."""
TOPICS_A_GROUP = 5
LARGEST_GROUP = 0.5
"""Of all prompts; more are no group, but most of everything, which every seed finds."""
SEEDS = 5
"""Other seeds, with which the topics are learnt again."""
STABLE = 0.6
"""Mean Jaccard similarity to what other seeds find, from which a topic is shown: see `Topic`."""
TITLE_WORDS = 4

_AT_ONCE = 20_000
_STARTS = 3
_FEWEST_TEXTS = 3
_TERM = re.compile(r"[぀-ヿ一-鿿]{2}|[^\W\d_]{3,}")
"""Of scripts without spaces two characters; numbers are no terms."""
_ASKED_WITH = (
    "does did doing based given write explain give tell make describe please want need help "
    "create provide list generate show find use using used could would should following example "
    "examples like know think schreibe erkläre erstelle nenne bitte gib zeige beispiel"
)
"""Words with which anything can be asked for."""

Progress = Callable[[int, int], None]


class Gates(NamedTuple):
    """What a topic needs to be shown.

    Attributes
    ----------
    voters, prompts : int
        This many different people, and this many of their prompts.
    rounding : int
        Prompts are counted to the nearest multiple.
    most : int or None
        Prompts of one person that count at a time; None counts all.
    """

    voters: int
    prompts: int
    rounding: int
    most: int | None


OPEN = Gates(1, 1, 1, None)
"""Where everybody can read every prompt."""
PRIVATE = Gates(10, 25, 5, 10)
"""Where nobody can: see `judge.labels.material`."""


@dataclass(frozen=True, slots=True)
class Topic:
    """A topic, or a group of topics.

    Attributes
    ----------
    words : tuple of str
        Its title: terms that are frequent in it and rare elsewhere.
    parent : int or None
        Number of the group that it is in.
    stability : float
        Its Jaccard similarity to the topic most like it under another seed, averaged over seeds;
        a topic below 0.6 is dissolved [1]_.

    References
    ----------
    .. [1] C. Hennig, "Cluster-wise assessment of cluster stability", Computational Statistics &
       Data Analysis 52, 2007, section 2. He draws the data again; here the seed alone is another.
    """

    words: tuple[str, ...]
    parent: int | None
    stability: float


@dataclass(frozen=True, slots=True)
class Agreement:
    """Adjusted Rand index of the topics with those under other seeds, over prompts."""

    mean: float
    lowest: float
    highest: float


@dataclass(frozen=True, slots=True)
class Space:
    """Where texts lie by their words: TF-IDF and its singular vectors.

    Attributes
    ----------
    terms : tuple of str
    weights : ndarray, shape (n_terms,)
        Inverse document frequencies.
    axes : ndarray, shape (n_dimensions, n_terms)
    """

    terms: tuple[str, ...]
    weights: Floats
    axes: NDArray[np.float32]

    def counts(self, texts: Sequence[str]) -> Any:
        """Return which terms each text has: a sparse array of shape (n, n_terms)."""
        from sklearn.feature_extraction.text import CountVectorizer

        counter = CountVectorizer(
            analyzer=terms_of, vocabulary=self.terms, binary=True, dtype=np.float32
        )
        return counter.transform(texts)

    def vectors(self, counts: Any) -> NDArray[np.float32]:
        """Give unit vectors of texts by their terms; of a text without any a vector of zeros."""
        from sklearn.preprocessing import normalize

        weighted = normalize(counts.multiply(self.weights.astype(np.float32)).tocsr())
        return np.asarray(normalize(weighted @ self.axes.T), dtype=np.float32)


@dataclass(frozen=True, slots=True)
class Topics:
    """A fixed hierarchy of topics, and where a prompt belongs in it.

    Attributes
    ----------
    topics : tuple of Topic
        Groups before their topics.
    agreement : Agreement
    space : Space or None
        None where vectors came from elsewhere.
    centres : ndarray, shape (n_clusters, n_dimensions)
    place : ndarray of int, shape (n_clusters,)
        The topic that each cluster is part of; -1 for none, where it was too small or not stable.
    """

    topics: tuple[Topic, ...]
    agreement: Agreement
    space: Space | None
    centres: NDArray[np.float32]
    place: Ints

    def of(self, texts: Sequence[str], progress: Progress | None = None) -> Ints:
        """Give the number of each text's topic, -1 where it has none.

        Raises
        ------
        DataError
            If the topics are not by words.
        """
        if self.space is None:
            raise DataError("These topics are of vectors from elsewhere: ask near() with more.")
        place = np.empty(len(texts), dtype=np.int64)
        for start in range(0, len(texts), _AT_ONCE):
            part = texts[start : start + _AT_ONCE]
            place[start : start + len(part)] = self.near(
                self.space.vectors(self.space.counts(part))
            )
            if progress:
                progress(start + len(part), len(texts))
        return place

    def near(self, vectors: NDArray[np.float32]) -> Ints:
        """Give the number of the topic of each vector of any length; -1 for one of zeros."""
        cluster = _nearest(_units(vectors), self.centres)
        return np.where(vectors.any(axis=1), self.place[cluster], -1)


def titles(texts: Sequence[str]) -> list[str | None]:
    """Learn topics, and give the title of each text's; None where it has none.

    Raises
    ------
    DataError
        If there are fewer than `LEAST` different texts with words in common.
    """
    topics = learn(texts)
    names = [", ".join(topic.words) for topic in topics.topics]
    return [names[place] if place >= 0 else None for place in topics.of(texts).tolist()]


def terms_of(text: str) -> list[str]:
    """Give the terms of a text.

    Examples
    --------
    >>> terms_of("Please explain the Python GIL in 3 lines")
    ['python', 'gil', 'lines']
    """
    idle = _idle()
    return [term for term in _TERM.findall(shown_part(text).lower()) if term not in idle]


@cache
def _idle() -> Set[str]:
    from sklearn.feature_extraction.text import ENGLISH_STOP_WORDS

    common = (words for languages in common_words().values() for words in languages.values())
    return frozenset(ENGLISH_STOP_WORDS).union(_ASKED_WITH.split(), *common)


def learn(
    texts: Sequence[str],
    people: Ints | None = None,
    gates: Gates = OPEN,
    *,
    vectors: NDArray[np.float32] | None = None,
    seed: int = 0,
    progress: Progress | None = None,
) -> Topics:
    """Learn topics, in groups, from prompts; of the same text only the first counts for a person.

    TF-IDF of terms, of which a text has each or has not; 100 singular vectors; k-means, and Ward's
    method for groups of topics. Titles are by c-TF-IDF [1]_. Clusters that other seeds do not
    find, or that do not reach the gates, are part of their group, or of nothing.

    Parameters
    ----------
    texts : sequence of str
    people : ndarray of int, shape (n,), optional
        Who wrote each, as numbers from 0; None takes each for another person.
    gates : Gates
        What a topic, and every word of a title within its topic, must reach.
    vectors : ndarray of shape (n, n_dimensions), optional
        Embeddings to go by, instead of words.
    progress : callable, optional
        Takes how many of the seeds are done, and how many there are.

    Raises
    ------
    DataError
        If there are under 50 different prompts with words that others use.

    References
    ----------
    .. [1] M. Grootendorst, "BERTopic: Neural topic modeling with a class-based TF-IDF procedure",
       arXiv 2203.05794, 2022, section 3.3; here with the share of prompts that have a term.
    """
    from sklearn.metrics import adjusted_rand_score

    rng = np.random.default_rng(seed)
    people = np.arange(len(texts)) if people is None else people
    rows = _sampled(texts, people, rng)
    texts, people = [texts[row] for row in rows], people[rows]
    space, counts = _space(texts, people, max(gates.voters, _FEWEST_TEXTS), seed)
    near = space.vectors(counts) if vectors is None else _units(vectors[rows])
    worded = near.any(axis=1)
    counts, near, people = counts[worded], near[worded], people[worded]
    different = len({row.tobytes() for row in near})  # the same words in another order are alike
    n = len({texts[row] for row in np.flatnonzero(worded)}) if different > 1 else 1
    if n < LEAST:
        msg = f"Topics need {LEAST} different prompts with words in common, got {n}: collect more."
        raise DataError(msg)
    k = min(_n_topics(len(near)), different)
    leaves, centres, grouped = zip(*_runs(near, k, seed, progress), strict=True)
    groups = [group[cluster] for group, cluster in zip(grouped, leaves, strict=True)]
    tree = _Tree(counts, people, gates, space.terms)
    place = tree.grown(grouped[0], leaves[0], _stabilities(groups), _stabilities(leaves))
    indices = [float(adjusted_rand_score(leaves[0], other)) for other in leaves[1:]]
    return Topics(
        topics=tuple(tree.topics),
        agreement=Agreement(float(np.mean(indices)), min(indices), max(indices)),
        space=space if vectors is None else None,
        centres=centres[0],
        place=place,
    )


def _sampled(texts: Sequence[str], people: Ints, rng: np.random.Generator) -> Ints:
    """Draw rows to learn from: of what a person wrote again only the first."""
    first: dict[tuple[str, int], int] = {}
    for row, key in enumerate(zip(texts, people.tolist(), strict=True)):
        first.setdefault(key, row)
    rows = np.fromiter(first.values(), dtype=np.int64, count=len(first))
    if len(rows) > LEARNT_FROM:
        rows = np.sort(rng.choice(rows, LEARNT_FROM, replace=False))
    return rows


def _space(texts: Sequence[str], people: Ints, fewest: int, seed: int) -> tuple[Space, Any]:
    """Learn the space of texts from the terms that enough people use, and count those terms."""
    from sklearn.decomposition import TruncatedSVD
    from sklearn.feature_extraction.text import CountVectorizer
    from sklearn.preprocessing import normalize

    counter = CountVectorizer(analyzer=terms_of, binary=True, dtype=np.float32)
    try:
        counts = counter.fit_transform(texts)
    except ValueError:  # of texts without any term
        raise DataError("Topics need words, and there are none in these prompts.") from None
    users = _users(counts, people)
    often = np.asarray(counts.sum(axis=0)).ravel()
    fit = np.flatnonzero(users >= fewest)
    fit = np.sort(fit[np.argsort(-often[fit], kind="stable")[:MOST_TERMS]])
    if len(fit) <= 2:
        raise DataError("Topics need words that several people use: collect more prompts.")
    counts = counts[:, fit]
    weights = np.log((1 + len(texts)) / (1 + often[fit])) + 1
    svd = TruncatedSVD(min(DIMENSIONS, len(fit) - 1), random_state=seed)
    with np.errstate(invalid="ignore"):  # of texts that are all alike, which vary by nothing
        svd.fit(normalize(counts.multiply(weights.astype(np.float32)).tocsr()))
    names = counter.get_feature_names_out()[fit]
    axes = svd.components_.astype(np.float32)
    return Space(tuple(names.tolist()), weights, axes), counts


def _users(counts: Any, people: Ints) -> Ints:
    """Count the people who use each term."""
    from scipy.sparse import csr_array

    codes = np.unique(people, return_inverse=True)[1]
    ones = np.ones(len(codes), dtype=np.float32)
    of_person = csr_array((ones, (codes, np.arange(len(codes)))))
    return np.asarray(((of_person @ counts) > 0).sum(axis=0)).ravel()


def _units(vectors: NDArray[np.float32]) -> NDArray[np.float32]:
    length = np.linalg.norm(vectors, axis=1, keepdims=True)
    return np.asarray(vectors / np.where(length > 0, length, 1), dtype=np.float32)


def _n_topics(n: int) -> int:
    return max(2, round(math.sqrt(n / PROMPTS_A_TOPIC)))


def _nearest(vectors: NDArray[np.float32], centres: NDArray[np.float32]) -> Ints:
    squared: Floats = (centres**2).sum(axis=1) / 2
    return np.asarray((vectors @ centres.T - squared).argmax(axis=1), dtype=np.int64)


def _runs(
    vectors: NDArray[np.float32], k: int, seed: int, progress: Progress | None
) -> Iterator[tuple[Ints, NDArray[np.float32], Ints]]:
    """Give what each seed finds: clusters of texts, their centres, and groups of clusters."""
    from scipy.cluster.hierarchy import fcluster, linkage
    from scipy.spatial.distance import pdist
    from sklearn.cluster import KMeans
    from threadpoolctl import threadpool_limits

    for again in range(SEEDS + 1):
        with threadpool_limits(1):  # threads of two cores that others use wait for each other
            means = KMeans(k, n_init=_STARTS, random_state=seed + again).fit(vectors)
        centres = means.cluster_centers_.astype(np.float32)
        n = max(1, round(len(centres) / TOPICS_A_GROUP))
        group = fcluster(linkage(pdist(centres), "ward"), n, criterion="maxclust")
        yield _nearest(vectors, centres), centres, np.asarray(group, dtype=np.int64) - 1
        if progress:
            progress(again + 1, SEEDS + 1)


def _stabilities(runs: Sequence[Ints]) -> Floats:
    """Give the mean similarity of each cluster of the first run to the likest of each other."""
    return np.asarray(np.mean([_likest(runs[0], other) for other in runs[1:]], axis=0))


def _likest(one: Ints, other: Ints) -> Floats:
    both = np.zeros((one.max() + 1, other.max() + 1))
    np.add.at(both, (one, other), 1)
    either = both.sum(axis=1, keepdims=True) + both.sum(axis=0) - both
    return np.asarray((both / np.where(either > 0, either, 1)).max(axis=1))


class _Tree:
    """Grows the hierarchy: groups first, then the topics in them."""

    def __init__(self, counts: Any, people: Ints, gates: Gates, terms: Sequence[str]) -> None:
        self.topics: list[Topic] = []
        self._counts = counts
        self._people = people
        self._gates = gates
        self._terms = np.array(terms)

    def grown(self, group: Ints, cluster: Ints, of_groups: Floats, of_topics: Floats) -> Ints:
        """Add all that may be shown, and give the place of each cluster.

        Parameters
        ----------
        group : ndarray of int
            Of each cluster.
        cluster : ndarray of int
            Of each text.
        of_groups, of_topics : ndarray
            Their stabilities.
        """
        places = np.bincount(group)
        whole = group[cluster]
        parents = [
            self._added(whole, number, None, stability)
            if places[number] > 1 and (whole == number).mean() <= LARGEST_GROUP
            else None
            for number, stability in enumerate(of_groups)
        ]
        place = np.full(len(group), -1)
        for number, stability in enumerate(of_topics[: len(group)]):
            parent = parents[group[number]]
            added = self._added(cluster, number, parent, stability)
            place[number] = next((p for p in (added, parent) if p is not None), -1)
        return place

    def _added(self, part: Ints, number: int, parent: int | None, stability: float) -> int | None:
        """Add a topic, if it is stable and reaches the gates, and give its number."""
        inside = part == number
        if stability < STABLE or not _reaches(self._gates, self._people[inside]):
            return None
        here = self._counts[inside]
        often = np.asarray(here.sum(axis=0)).ravel()
        everywhere = np.asarray(self._counts.sum(axis=0)).ravel()
        a_class = everywhere.sum() / (part.max() + 1)
        scores = often / max(1.0, often.sum()) * np.log1p(a_class / np.maximum(everywhere, 1))
        scores[_users(here, self._people[inside]) < self._gates.voters] = 0
        best = np.argsort(-scores, kind="stable")[:TITLE_WORDS]
        words = tuple(self._terms[best[scores[best] > 0]].tolist())
        if not words:
            return None
        self.topics.append(Topic(words, parent, float(stability)))
        return len(self.topics) - 1


def _reaches(gates: Gates, people: Ints) -> bool:
    return len(people) >= gates.prompts and len(np.unique(people)) >= gates.voters
