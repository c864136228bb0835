"""Robustness and information sensitivity: what changed copies of a text score."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Self

import numpy as np

from judge.probe.axes import (
    Axis,
    AxisName,
    Drawn,
    Means,
    Part,
    axis_of,
    compare,
    mean_of,
    means,
    ratio,
    scores_of,
)
from judge.probe.perturb import (
    INSERTED,
    PERTURBATIONS,
    REMOVED,
    Dosed,
    Kind,
    Perturbation,
    Place,
    doses,
)
from judge.probe.similarity import Measure
from rating.errors import DataError
from rating.typing import Floats, Ints


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
        averages = iter(means(np.column_stack(columns), rng=rng))
        pairs = {p: [next(averages) for _ in light] for p in heavy}
        parts = [self._part("separation", p, mean_of(pairs[p])) for p in heavy]
        parts += [self._part("net sensitivity", p, next(averages)) for p in heavy]
        parts += [self._part("unchanged", q, next(averages)) for q in light]
        parts += [Part("margin", "mean score", next(averages).estimate())]
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


UNRELATED = 3
"""Other texts that each text is set against, to see where the measure's scores begin."""
MIN_WORDS = 20
"""A shorter text has no tenth to take away that is more than a word or two."""

CONDITIONS = tuple(
    (removal, dose, place)
    for removal, given in ((True, REMOVED), (False, INSERTED))
    for place in Place
    for dose in given
)
"""Removal or insertion, dose, and place: the columns of what is read."""
STEPS = tuple(
    (i, i + 1)
    for i, (first, second) in enumerate(pairwise(CONDITIONS))
    if (first[0], first[2]) == (second[0], second[2])
)
"""Conditions that differ by one dose."""


@dataclass(frozen=True, slots=True)
class Sensitivity:
    """Texts, copies with known parts gone or foreign, and unrelated texts.

    Attributes
    ----------
    of : ndarray of shape (n_copies,)
        Text that a copy is of.
    unrelated : ndarray of shape (n_texts, UNRELATED)
        Other texts.
    """

    texts: tuple[str, ...]
    of: Ints
    copies: tuple[Dosed, ...]
    unrelated: Ints
    data: str

    @classmethod
    def plan(cls, texts: Sequence[str], data: str, *, rng: np.random.Generator) -> Self:
        """Make the copies; what is put into a text begins the ones it is unrelated to.

        Raises
        ------
        DataError
            If fewer than two texts have `MIN_WORDS` words.
        """
        long = [text for text in dict.fromkeys(texts) if len(text.split()) >= MIN_WORDS]
        n = len(long)
        if n < 2:
            msg = f"{n} of {len(texts)} texts have {MIN_WORDS} words: information sensitivity"
            raise DataError(f"{msg} needs two or more.")
        steps = rng.integers(1, n, size=(n, UNRELATED))
        others = (np.arange(n)[:, None] + steps) % n  # never the text itself
        foreign = [" ".join(long[j] for j in row) for row in others]
        made = [(i, one) for i in range(n) for one in doses(long[i], foreign[i])]
        of, copies = zip(*made, strict=True)
        return cls(tuple(long), np.array(of), tuple(copies), others, data)

    def ask(self, measure: Measure) -> Floats:
        """Score each text with itself, with the unrelated ones, and with its copies.

        Returns
        -------
        ndarray of shape (n_texts + n_texts * UNRELATED + n_copies,)
        """
        scorer = measure.fit(self.texts)
        n = len(self.texts)
        left = [*range(n), *np.repeat(np.arange(n), UNRELATED), *self.of]
        right = [
            *self.texts,
            *(self.texts[j] for j in self.unrelated.ravel()),
            *(one.text for one in self.copies),
        ]
        return scores_of(measure.name, scorer.rows([self.texts[i] for i in left], right))

    def truth(self) -> Floats:
        """Return what an oracle answers: the share of the longer text that both have."""
        n = len(self.texts)
        target = [one.target for one in self.copies]
        return np.concatenate([np.ones(n), np.zeros(n * UNRELATED), target])

    def read(self, scores: Floats, *, rng: np.random.Generator) -> Axis:
        """Estimate how near scores are to the share of what two texts have in common.

        ``1 - mean |s' - target|`` with ``s' = (s - u) / (s(x, x) - u)``, u the mean score of
        unrelated texts, cut to 0 and 1. A text that scores lower than the unrelated ones counts
        negative, and 0 where they tie: a measure that draws lots is at 0.

        Returns
        -------
        Axis
            Parts: the same by dose of ``removal`` and ``insertion``; the mean of s' there, as
            ``level``; and ``net sensitivity``, ``P(>) - P(<)`` of the smaller over the next
            larger dose at the same place.
        """
        n = len(self.texts)
        own, strange = scores[:n], scores[n : -len(self.copies)].reshape(n, UNRELATED).mean(axis=1)
        above = np.where(own == strange, np.inf, own - strange)
        raw = scores[-len(self.copies) :]
        level = np.clip((raw - strange[self.of]) / above[self.of], 0, 1)
        target = np.array([one.target for one in self.copies])
        near = compare(own, strange)[self.of] * (1 - np.abs(level - target))
        steps = self._steps(self._table(raw))
        columns = np.hstack([self._table(near), self._table(level), steps])
        drawn = means(columns, rng=rng)
        k = len(CONDITIONS)
        parts = [*_by_dose(None, drawn[:k]), *_by_dose("level", drawn[k : 2 * k])]
        parts += [_ordered(removal, drawn[2 * k :]) for removal in (True, False)]
        value = mean_of(drawn[:k])
        return axis_of(
            AxisName.SENSITIVITY, value, parts, clusters=n, what="texts", data=self.data
        )

    def _table(self, values: Floats) -> Floats:
        """Lay values of copies out by text and condition, NaN where there is no copy."""
        column = [CONDITIONS.index((one.removal, one.dose, one.place)) for one in self.copies]
        table = np.full((len(self.texts), len(CONDITIONS)), np.nan)
        table[self.of, column] = values
        return table

    def _steps(self, table: Floats) -> Floats:
        pairs = [compare(table[:, first], table[:, second]) for first, second in STEPS]
        return np.column_stack(pairs)


def _by_dose(group: str | None, drawn: Means) -> list[Part]:
    """Average over the places of each dose."""
    names = dict.fromkeys((removal, dose) for removal, dose, _ in CONDITIONS)
    return [
        Part(
            group or ("removal" if removal else "insertion"),
            f"{'removed' if removal else 'inserted'} {dose:g}" if group else f"{dose:g}",
            mean_of(
                one for one, of in zip(drawn, CONDITIONS, strict=True) if of[:2] == (removal, dose)
            ).estimate(),
        )
        for removal, dose in names
    ]


def _ordered(removal: bool, drawn: Means) -> Part:
    chosen = [
        one
        for one, (first, _) in zip(drawn, STEPS, strict=True)
        if CONDITIONS[first][0] is removal
    ]
    name = "removal" if removal else "insertion"
    return Part("net sensitivity", name, mean_of(chosen).estimate())
