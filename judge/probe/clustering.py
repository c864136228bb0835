"""Clustering: do texts that belong together come together."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np
import scipy  # its submodules load on first use

from judge.probe.axes import Axis, AxisName, Part, few, scores_of
from judge.probe.similarity import Measure
from judge.studies.estimates import Estimate
from rating.errors import DataError
from rating.typing import Floats, Ints

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
        reach = scipy.special.stdtrit(HALVES - 1, 0.975) * spread
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
