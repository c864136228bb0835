"""Transformation robustness: what leaves the meaning must cost less than what changes it."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np

from judge.probe.axes import (
    Axis,
    AxisName,
    Drawn,
    Part,
    axis_of,
    compare,
    mean_of,
    means,
    ratio,
    scores_of,
)
from judge.probe.perturb import PERTURBATIONS, Kind, Perturbation
from judge.probe.similarity import Measure
from rating.typing import Floats


@dataclass(frozen=True, slots=True)
class Robustness:
    """Texts, and their copies under each perturbation.

    Attributes
    ----------
    copies : tuple of tuple of str or None
        ``copies[p][i]`` is text i under perturbation p; None where it had nothing to change.
    """

    texts: tuple[str, ...]
    perturbations: tuple[Perturbation, ...]
    copies: tuple[tuple[str | None, ...], ...]
    data: str

    @classmethod
    def plan(
        cls,
        texts: Sequence[str],
        data: str,
        *,
        rng: np.random.Generator,
        perturbations: Sequence[Perturbation] = PERTURBATIONS,
    ) -> Self:
        """Make every copy of every text."""
        made = [[each.apply(text, rng) for text in texts] for each in perturbations]
        copies = tuple(
            tuple(copy if copy != text else None for copy, text in zip(row, texts, strict=True))
            for row in made
        )
        return cls(tuple(texts), tuple(perturbations), copies, data)

    def ask(self, measure: Measure) -> Floats:
        """Score each text with itself and its copies.

        Returns
        -------
        ndarray of shape (1 + n_perturbations, n_texts)
            NaN where there is no copy.
        """
        scorer = measure.fit(self.texts)
        scores = np.full((1 + len(self.copies), len(self.texts)), np.nan)
        for row, copies in zip(scores, [self.texts, *self.copies], strict=True):
            there = {i: copy for i, copy in enumerate(copies) if copy is not None}
            if there:
                of = [self.texts[i] for i in there]
                row[[*there]] = scores_of(measure.name, scorer.rows(of, [*there.values()]))
        return scores

    def truth(self) -> Floats:
        """Return what an oracle answers: 1 for the same meaning, 0 for another."""
        scores = np.ones((1 + len(self.copies), len(self.texts)))
        changed = [each.kind is Kind.MEANING for each in self.perturbations]
        scores[1:][changed] = 0
        gaps = [[copy is None for copy in row] for row in self.copies]
        scores[1:][np.array(gaps)] = np.nan
        return scores

    def read(self, scores: Floats, *, rng: np.random.Generator) -> Axis:
        """Estimate whether superficial copies score above those whose meaning changed.

        The value is ``P(s(x, superficial copy) > s(x, changed copy)) - P(<)`` within texts: the
        mean over pairs of a superficial and a changing perturbation, each counting the same. It
        is ``2 AUC - 1``, with the AUC within texts instead of over all.

        Returns
        -------
        Axis
            Parts: ``separation`` by changing perturbation; ``net sensitivity``, of the text
            itself over its changed copy; ``unchanged``, the share of superficial copies that
            score as the text itself; ``margin``, the mean score of superficial copies less that
            of changed ones, in the measure's own units.
        """
        itself, copies = scores[0], scores[1:]
        light, heavy = self._of(Kind.SUPERFICIAL), self._of(Kind.MEANING)
        columns = [compare(copies[q], copies[p]) for p in heavy for q in light]
        columns += [compare(itself, copies[p]) for p in heavy]
        columns += [_tied(itself, copies[q]) for q in light]
        columns += [_row_mean(copies[light]) - _row_mean(copies[heavy])]
        found = iter(means(np.column_stack(columns), rng=rng))
        pairs = {p: [next(found) for _ in light] for p in heavy}
        parts = [self._part("separation", p, mean_of(pairs[p])) for p in heavy]
        parts += [self._part("net sensitivity", p, next(found)) for p in heavy]
        parts += [self._part("unchanged", q, next(found)) for q in light]
        parts += [Part("margin", "mean score", next(found).estimate())]
        value = mean_of(one for drawn in pairs.values() for one in drawn)
        n = len(self.texts)
        return axis_of(AxisName.ROBUSTNESS, value, parts, clusters=n, what="texts", data=self.data)

    def _of(self, kind: Kind) -> list[int]:
        return [p for p, each in enumerate(self.perturbations) if each.kind is kind]

    def _part(self, group: str, p: int, drawn: Drawn) -> Part:
        return Part(group, self.perturbations[p].name, drawn.estimate())


def _tied(first: Floats, second: Floats) -> Floats:
    return np.where(np.isnan(second), np.nan, compare(first, second) == 0)


def _row_mean(copies: Floats) -> Floats:
    """Return the mean over the copies that a text has, NaN without any."""
    there = ~np.isnan(copies)
    return ratio(np.where(there, copies, 0).sum(axis=0), there.sum(axis=0).astype(np.float64))
