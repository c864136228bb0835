"""Retrieval robustness: are the relevant texts still found when the question is disturbed."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np

from judge.probe.axes import (
    Axis,
    AxisName,
    Drawn,
    Part,
    axis_of,
    mean_of,
    means,
    ratio,
    scores_of,
    tie_groups,
)
from judge.probe.perturb import (
    CHARACTER_NOISE,
    RANDOM_CASE,
    WIDE_SPACING,
    WORD_SHUFFLE,
    Perturbation,
)
from judge.probe.similarity import Measure
from rating.errors import DataError
from rating.typing import Floats

DEPTH = 10
NOISE = 0.5
"""Length of the foreign words behind a question, over its own."""
DISTURBED: tuple[Perturbation, ...] = (RANDOM_CASE, CHARACTER_NOISE, WIDE_SPACING, WORD_SHUFFLE)
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
        shares = [_over(one, clean) for one in disturbed]
        parts = [
            Part("NDCG@10", name, one.estimate())
            for name, one in zip(("clean", *self.disturbances), drawn[k:], strict=True)
        ]
        parts += [
            Part("kept", name, one.estimate())
            for name, one in zip(self.disturbances, shares, strict=True)
        ]
        parts.append(Part("kept", "mean", mean_of(shares).estimate()))
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


def _over(one: Drawn, clean: Drawn) -> Drawn:
    value = ratio(np.array(one.value), np.array(clean.value))
    return Drawn(float(value), ratio(one.rounds, clean.rounds), one.n)


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
