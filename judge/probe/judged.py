"""The axes of a judge, which prefers one of two responses and has no similarity to give."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Self

import numpy as np

from judge.probe.alignment import alignment_axis
from judge.probe.axes import (
    Axis,
    AxisName,
    Card,
    Drawn,
    Means,
    Part,
    axis_of,
    compare,
    mean_of,
    means,
)
from judge.probe.people import VotedPairs, draw_prompts, figures_of_votes, rank_correlation
from judge.probe.similarity import Measure
from judge.probe.trials import Group, Trial, trials_of
from judge.results import Judged
from judge.studies.items import Estimate
from rating.errors import DataError
from rating.typing import Bools, Floats

Texts = Sequence[str]
Prefer = Callable[[Texts, Texts, Texts], Floats]
"""Takes prompts, first and second responses to the probabilities that the first is better."""


@dataclass(frozen=True, slots=True)
class JudgePlan:
    """Everything that a judge is asked.

    Attributes
    ----------
    trials : tuple of Trial
        In the order of the answers.
    """

    voted: VotedPairs
    trials: tuple[Trial, ...]
    data: str

    @classmethod
    def plan(cls, voted: VotedPairs, data: str, *, rng: np.random.Generator) -> Self:
        """Make the trials of each pair.

        Raises
        ------
        DataError
            If there are fewer than two pairs.
        """
        if len(voted.prompts) < 2:
            raise DataError(f"{len(voted.prompts)} pairs with votes: a judge's card needs two.")
        rows = range(len(voted.prompts))
        return cls(voted, tuple(one for row in rows for one in trials_of(voted, row, rng)), data)

    def ask(self, prefer: Prefer) -> Floats:
        """Ask a function; what a model says comes from a run over `Trial.case` instead."""
        prompts = [one.prompt for one in self.trials]
        first = [one.first for one in self.trials]
        return prefer(prompts, first, [one.second for one in self.trials])

    def heard(self, judged: Iterable[Judged]) -> Floats:
        """Return what a run over the trials' cases, as given, found: NaN without a verdict."""
        found = {row.case_id: row.for_a for row in judged}
        said = [found.get(one.case.id) for one in self.trials]
        return np.array([np.nan if one is None else one.first for one in said])

    def truth(self) -> Floats:
        """Return what an oracle answers: what most people prefer; the original, by the dose."""
        sides = np.sign(self.voted.votes[:, 0] - self.voted.votes[:, 1])
        said = [
            sides[one.row]
            if one.group in (Group.AS_IS, Group.SUPERFICIAL)
            else float(one.group is Group.MEANING) or one.dose / (1 + one.dose)
            for one in self.trials
        ]
        return np.asarray((1 + np.where(self._turned(), -1, 1) * np.array(said)) / 2)

    def read(self, chances: Floats, *, rng: np.random.Generator) -> tuple[Axis, ...]:
        """Estimate alignment, robustness and sensitivity.

        Parameters
        ----------
        chances : ndarray of shape (n_trials,)
            Probability that the first response is better; NaN where there is no verdict.

        Returns
        -------
        tuple of Axis
            These three. Trials without a verdict are left out, and counted in a warning.

        Raises
        ------
        DataError
            If there is not one chance a trial, or one lies outside 0 and 1.
        """
        if chances.shape != (len(self.trials),):
            raise DataError(
                f"{len(chances)} chances for {len(self.trials)} trials: give each one."
            )
        if ((chances < 0) | (chances > 1)).any():
            ends = f"{np.nanmin(chances):g} to {np.nanmax(chances):g}"
            raise DataError(f"Chances lie between 0 and 1, not from {ends}.")
        for_original = np.where(self._turned(), 1 - chances, chances)
        said = compare(for_original, np.full(len(chances), 0.5))
        axes = (
            self._alignment(said, rng),
            self._robustness(said, rng),
            self._sensitivity(for_original, said, rng),
        )
        n = int(np.isnan(chances).sum())
        lost = (f"{n} of {len(chances)} questions have no verdict: left out.",) if n else ()
        return tuple(replace(axis, warnings=(*axis.warnings, *lost)) for axis in axes)

    def _alignment(self, said: Floats, rng: np.random.Generator) -> Axis:
        own = self._table(said, Group.AS_IS)[""]
        votes = np.where(np.isnan(own)[:, None], 0, self.voted.votes)
        heard = replace(self.voted, votes=votes)
        figures = figures_of_votes(heard, np.nan_to_num(own), rng)
        return alignment_axis(figures, clusters=self._n_prompts(), data=self.data)

    def _robustness(self, said: Floats, rng: np.random.Generator) -> Axis:
        """Take the harmonic mean of verdicts unchanged and changes of meaning noticed.

        ``2 i s / (i + s)``: i the share of verdicts that stay under superficial changes, s the
        net share ``P(>) - P(<)`` that prefers a response to its changed copy, 0 where negative;
        kinds of change count the same.
        """
        own = self._table(said, Group.AS_IS)[""]
        light = self._table(said, Group.SUPERFICIAL)
        heavy = self._table(said, Group.MEANING)
        stayed = [np.where(np.isnan(own + one), np.nan, own == one) for one in light.values()]
        found = self._means([*stayed, *heavy.values()], rng)
        unchanged, noticed = found[: len(light)], found[len(light) :]
        parts = [Part("unchanged", *one) for one in _named(light, unchanged)]
        parts += [Part("net sensitivity", *one) for one in _named(heavy, noticed)]
        value = _harmonic(mean_of(unchanged), mean_of(noticed))
        return self._axis(AxisName.ROBUSTNESS, value, parts)

    def _sensitivity(self, chances: Floats, said: Floats, rng: np.random.Generator) -> Axis:
        """Correlate the dose with the chance of the original: Spearman, mean of both kinds."""
        drawn = draw_prompts(self.voted.prompt, rng)
        parts, values = [], []
        for group in (Group.REMOVAL, Group.INSERTION):
            values.append(self._dose_response(group, chances, drawn))
            parts.append(Part("dose and response", group, values[-1].estimate()))
            by_dose = self._table(said, group)
            parts += [
                Part(group, *one) for one in _named(by_dose, self._means([*by_dose.values()], rng))
            ]
        return self._axis(AxisName.SENSITIVITY, mean_of(values), parts)

    def _dose_response(self, group: Group, chances: Floats, drawn: Floats) -> Drawn:
        asked = [one.group in (group, Group.ITSELF) for one in self.trials]
        chosen = np.flatnonzero(asked & ~np.isnan(chances))
        dose = np.array([self.trials[i].dose for i in chosen])
        prompt = self.voted.prompt[[self.trials[i].row for i in chosen]]
        return rank_correlation(chances[chosen], dose, prompt, drawn)

    def _turned(self) -> Bools:
        return np.array([one.turned for one in self.trials])

    def _n_prompts(self) -> int:
        return len(np.unique(self.voted.prompt))

    def _table(self, said: Floats, group: Group) -> dict[str, Floats]:
        """Lay verdicts out by name or dose and by pair, NaN where there is none."""
        tables: dict[str, Floats] = {}
        for one, verdict in zip(self.trials, said, strict=True):
            if one.group is group:
                name = one.name or (f"{one.dose:g}" if one.dose else "")
                empty = np.full(len(self.voted.prompt), np.nan)
                tables.setdefault(name, empty)[one.row] = verdict
        return tables

    def _means(self, columns: Sequence[Floats], rng: np.random.Generator) -> Means:
        if not columns:
            return ()
        return means(np.column_stack(columns), rng=rng, cluster=self.voted.prompt)

    def _axis(self, name: AxisName, value: Drawn, parts: Sequence[Part]) -> Axis:
        n = self._n_prompts()
        return axis_of(name, value, parts, clusters=n, what="prompts", data=self.data)


def by_score(measure: Measure, corpus: Texts) -> Prefer:
    """Return what prefers the response that a measure scores higher for the prompt."""
    scorer = measure.fit(corpus)

    def prefer(prompts: Texts, first: Texts, second: Texts) -> Floats:
        higher = compare(scorer.rows(prompts, first), scorer.rows(prompts, second))
        return np.asarray((1 + higher) / 2)

    return prefer


def judge_card(
    judge: str, definition: str, plan: JudgePlan, chances: Floats, *, seed: int
) -> Card:
    """Read a judge's answers to a plan: a card of three axes."""
    axes = plan.read(chances, rng=np.random.default_rng(seed))
    return Card(judge, definition, axes, seed)


def _named(names: Iterable[str], found: Means) -> list[tuple[str, Estimate]]:
    return [(name, one.estimate()) for name, one in zip(names, found, strict=True)]


def _harmonic(first: Drawn, second: Drawn) -> Drawn:
    values = [
        2 * i * s / np.where(i + s > 0, i + s, 1)
        for i, s in (
            (np.array(first.value), np.maximum(second.value, 0)),
            (first.rounds, np.maximum(second.rounds, 0)),
        )
    ]
    return Drawn(float(values[0]), values[1], first.n + second.n)
