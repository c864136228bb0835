"""Axes of a collection: do texts of a class come together, are relevant ones still found."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np
import scipy  # its submodules load on first use

from judge.probe.axes import (
    Axis,
    AxisName,
    Part,
    axis_of,
    drawn_from,
    few,
    mean_of,
    means,
    parts_of,
    ratio,
    scores_of,
    tie_groups,
)
from judge.probe.perturb import CHARACTER_NOISE, RANDOM_CASE, WIDE_SPACING, WORD_SHUFFLE
from judge.probe.similarity import Measure
from judge.studies.estimates import Estimate
from rating.errors import DataError
from rating.typing import Floats, Ints
from rating.uncertainty.student import quantile

HALVES = 20
"""Random halves of the texts, each clustered anew, behind an interval."""


@dataclass(frozen=True, slots=True)
class Clustering:
    """Texts, and the class each belongs to.

    Attributes
    ----------
    label : ndarray of shape (n_texts,)
        Number of the class, from 0.
    """

    texts: tuple[str, ...]
    label: Ints
    data: str

    @classmethod
    def plan(cls, texts: Sequence[str], labels: Sequence[str], data: str) -> Self:
        """Give each class a number.

        Raises
        ------
        DataError
            If lengths differ, or there are fewer than two classes or four texts.
        """
        if len(texts) != len(labels):
            raise DataError(f"{len(texts)} texts and {len(labels)} labels: give each text one.")
        classes, label = np.unique(np.array(labels), return_inverse=True)
        if len(classes) < 2 or len(texts) < 4:
            msg = f"{len(texts)} texts of {len(classes)} classes: clustering needs four of two."
            raise DataError(msg)
        return cls(tuple(texts), label, data)

    def ask(self, measure: Measure) -> Floats:
        """Score every text against every other, shape (n_texts, n_texts)."""
        scores = measure.fit(self.texts).matrix(self.texts, self.texts)
        return scores_of(measure.name, scores)

    def truth(self) -> Floats:
        """Return what an oracle answers: 1 for texts of one class, else 0."""
        return np.equal.outer(self.label, self.label).astype(np.float64)

    def read(self, scores: Floats, *, rng: np.random.Generator) -> Axis:
        """Cluster the texts, and compare with their classes.

        Average linkage over ``1 - (s(x, y) / s(x, x) + s(y, x) / s(y, y)) / 2``, cut into as many
        clusters as there are classes. The value is the V-measure ``2 h c / (h + c)``, adjusted
        for what a random assignment with these sizes of clusters gets. Its interval is
        ``value +- t sd``, cut at 1, sd over random halves of the texts, each clustered anew: that
        of half of the texts is the standard error of all. Texts are put into a random order
        first, because ties go by order, and a file may hold the classes one after the other.

        Returns
        -------
        Axis
            Parts: ``v_measure``, ``homogeneity``, ``completeness``, and the adjusted Rand index.

        References
        ----------
        .. [1] A. Rosenberg and J. Hirschberg, "V-measure", EMNLP 2007.
        .. [2] N. X. Vinh, J. Epps and J. Bailey, "Information theoretic measures for clusterings
           comparison", JMLR 11, 2010: the adjusted mutual information over the mean entropy.
        .. [3] J. Shao and C. F. J. Wu, "A general theory for jackknife variance estimation",
           Annals of Statistics 17(3), 1989: leaving out half.
        """
        n = len(self.texts)
        distance = _distance(scores)
        orders = [rng.permutation(n)[:size] for size in (n, *[n // 2] * HALVES)]
        whole, *halves = [_figures(distance[np.ix_(o, o)], self.label[o]) for o in orders]
        spread = np.std(halves, axis=0, ddof=1)
        reach = quantile(0.95, HALVES - 1) * spread
        drawn = [
            Estimate(float(v), float(v - r), float(min(v + r, 1)), n)
            for v, r in zip(whole, reach, strict=True)
        ]
        parts = tuple(
            Part("agreement with classes", name, one)
            for name, one in zip(FIGURES, drawn, strict=True)
        )
        return Axis(AxisName.CLUSTERING, drawn[0], parts[1:], n, self.data, few(n, "texts"))


FIGURES = (
    "adjusted V-measure",
    "V-measure",
    "homogeneity",
    "completeness",
    "adjusted Rand index",
)


def _distance(scores: Floats) -> Floats:
    own = np.diagonal(scores)[:, None]
    share = np.divide(scores, own, out=np.zeros_like(scores), where=own > 0)
    share += share.T
    distance = np.clip(1 - share / 2, 0, None)
    np.fill_diagonal(distance, 0)
    return distance


def _figures(distance: Floats, label: Ints) -> tuple[float, ...]:
    # Imported here: it takes a second, and most processes never need it.
    from sklearn import metrics

    close = scipy.spatial.distance.squareform(distance, checks=False)
    tree = scipy.cluster.hierarchy.linkage(close, "average")
    group = scipy.cluster.hierarchy.fcluster(tree, len(np.unique(label)), "maxclust")
    homogeneity, completeness, v = metrics.homogeneity_completeness_v_measure(label, group)
    return (
        float(metrics.adjusted_mutual_info_score(label, group)),
        float(v),
        float(homogeneity),
        float(completeness),
        float(metrics.adjusted_rand_score(label, group)),
    )


DEPTH = 10
NOISE = 0.5
"""Length of the foreign words behind a question, over its own."""
DISTURBED = (RANDOM_CASE, CHARACTER_NOISE, WIDE_SPACING, WORD_SHUFFLE)
FOREIGN = "foreign words"


@dataclass(frozen=True, slots=True)
class Retrieval:
    """Questions, clean and disturbed, and the texts to find.

    Attributes
    ----------
    questions : tuple of tuple of str
        ``questions[t][q]`` is question q under disturbance t; the first row is clean.
    disturbances : tuple of str
        Names of the rows behind the first.
    relevant : ndarray of shape (n_questions, n_texts), float64
        How relevant a text is to a question; 0 for not at all.
    """

    questions: tuple[tuple[str, ...], ...]
    disturbances: tuple[str, ...]
    texts: tuple[str, ...]
    relevant: Floats
    data: str

    @classmethod
    def plan(
        cls,
        questions: Sequence[str],
        texts: Sequence[str],
        relevant: Mapping[tuple[int, int], float],
        data: str,
        *,
        rng: np.random.Generator,
    ) -> Self:
        """Disturb the questions.

        Parameters
        ----------
        relevant : mapping
            From the indices of a question and a text to how relevant it is.

        Raises
        ------
        DataError
            If a question has no relevant text, or there are fewer texts than are ranked.
        """
        gains = np.zeros((len(questions), len(texts)))
        for (question, text), gain in relevant.items():
            gains[question, text] = gain
        lost = np.flatnonzero(gains.max(axis=1, initial=0) <= 0)
        if len(lost):
            msg = f"Question {lost[0]}, {questions[lost[0]]!r}, has no relevant text:"
            raise DataError(f"{msg} leave it out.")
        if len(texts) < DEPTH:
            raise DataError(f"{len(texts)} texts to find: the first {DEPTH} are ranked.")
        made = [tuple(each.apply(q, rng) for q in questions) for each in DISTURBED]
        foreign = tuple(_with_foreign(q, texts[int(rng.integers(len(texts)))]) for q in questions)
        names = (*(each.name for each in DISTURBED), FOREIGN)
        return cls((tuple(questions), *made, foreign), names, tuple(texts), gains, data)

    def ask(self, measure: Measure) -> Floats:
        """Score texts for questions, shape (1 + n_disturbances, n_questions, n_texts)."""
        asked = [question for row in self.questions for question in row]
        scores = measure.fit(self.texts).matrix(asked, self.texts)
        return scores_of(measure.name, scores).reshape(-1, *self.relevant.shape)

    def truth(self) -> Floats:
        """Return what an oracle answers: how relevant a text is."""
        return np.repeat(self.relevant[None], len(self.questions), axis=0)

    def read(self, scores: Floats, *, rng: np.random.Generator) -> Axis:
        """Estimate what of the best ranking is left when questions are disturbed.

        The value is the mean over disturbances of NDCG@10, adjusted for the mean over all orders
        of the texts: ``(NDCG - floor) / (1 - floor)``. Texts that tie share their ranks.

        Returns
        -------
        Axis
            Parts: ``NDCG@10``, unadjusted, of clean and disturbed questions; ``kept``, that of
            each disturbance over that of clean questions, and their mean (RR). A measure that
            finds nothing has nothing to lose: its share kept says little.

        References
        ----------
        .. [1] K. Järvelin and J. Kekäläinen, "Cumulated gain-based evaluation of IR techniques",
           ACM TOIS 20(4), 2002; with ties: F. McSherry and M. Najork, ECIR 2008.
        """
        table = np.array([_ndcg(row, self.relevant) for row in scores]).T
        floor = _ndcg(np.zeros_like(self.relevant), self.relevant)
        adjusted = (table - floor[:, None]) / (1 - floor[:, None])
        drawn = means(np.hstack([adjusted, table]), rng=rng)
        k = len(self.questions)
        clean, disturbed = drawn[k], drawn[k + 1 :]
        shares = [drawn_from(ratio, one, clean, n=one.n) for one in disturbed]
        parts = [
            *parts_of("NDCG@10", ("clean", *self.disturbances), drawn[k:]),
            *parts_of("kept", self.disturbances, shares),
            Part("kept", "mean", mean_of(shares).estimate()),
        ]
        return axis_of(
            AxisName.RETRIEVAL,
            mean_of(drawn[1:k]),
            parts,
            clusters=table.shape[0],
            what="questions",
            data=self.data,
        )


def _with_foreign(question: str, text: str) -> str:
    n = max(1, round(NOISE * len(question.split())))
    return " ".join([question, *text.split()[:n]])


def _ndcg(scores: Floats, gains: Floats) -> Floats:
    """Return NDCG@10 of each question, shape (n_questions,)."""
    discount = 1 / np.log2(np.arange(2, DEPTH + 2))
    best = np.sort(gains, axis=1)[:, ::-1][:, :DEPTH] @ discount
    ranked = np.array([_gains_by_rank(s, g) for s, g in zip(scores, gains, strict=True)])
    return np.asarray(ranked @ discount / best)


def _gains_by_rank(scores: Floats, gains: Floats) -> Floats:
    """Return the gain at each of the first ranks, the mean of those that tie there."""
    group = tie_groups(-scores)
    sizes = np.bincount(group)
    return np.asarray(np.repeat(np.bincount(group, gains) / sizes, sizes)[:DEPTH])
