"""Questions to a judge about pairs and changed copies, and the axes of its answers."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Self

import numpy as np

from judge.case import Case, Message
from judge.probe.axes import (
    Axis,
    AxisName,
    Card,
    Drawn,
    Means,
    Part,
    axis_of,
    compare,
    drawn_from,
    mean_of,
    means,
    parts_of,
)
from judge.probe.people import (
    VotedPairs,
    alignment_axis,
    draw_prompts,
    figures_of_votes,
    rank_correlation,
)
from judge.probe.perturb import PERTURBATIONS, RENAMED_LABELS, Kind, Place, doses
from judge.verdict import Judged
from rating.errors import DataError
from rating.typing import Bools, Floats

SIDE_SWAP = "side swap"
JUDGED = (*PERTURBATIONS, RENAMED_LABELS)


class Group(StrEnum):
    """What a question is for."""

    AS_IS = "as it is"
    SUPERFICIAL = "superficial"
    MEANING = "meaning"
    ITSELF = "itself"
    REMOVAL = "removal"
    INSERTION = "insertion"


@dataclass(frozen=True, slots=True)
class Trial:
    """One question to a judge, in the order in which it is to be shown.

    Attributes
    ----------
    name : str
        Of the perturbation; empty without one.
    dose : float
        Of what was removed or inserted; 0 for a response beside itself.
    row : int
        The pair that it was made of.
    turned : bool
        Whether the pair's response B, or the changed copy, stands first.
    """

    group: Group
    name: str
    dose: float
    row: int
    prompt: str
    first: str
    second: str
    turned: bool

    @property
    def case(self) -> Case:
        """The question as a judge sees it: a case to be asked as given, in this order alone."""
        return Case((Message("user", self.prompt),), self.first, self.second)


def trials_of(voted: VotedPairs, row: int, rng: np.random.Generator) -> Iterator[Trial]:
    """Yield what is asked about one pair.

    The pair itself; both responses under each superficial perturbation, and their sides swapped;
    one response, by a coin, beside its copy under each perturbation that changes the meaning,
    beside itself, and beside copies with each dose removed or inserted at one place, drawn. On
    which side the copy stands is a coin each time.
    """
    prompt, pair = voted.prompts[row], (voted.responses_a[row], voted.responses_b[row])
    yield Trial(Group.AS_IS, "", 0, row, prompt, *pair, False)
    yield Trial(Group.SUPERFICIAL, SIDE_SWAP, 0, row, prompt, *pair[::-1], True)
    for each in JUDGED:
        if each.kind is Kind.SUPERFICIAL:
            changed = (each.apply(pair[0], rng), each.apply(pair[1], rng))
            if changed != pair:
                yield Trial(Group.SUPERFICIAL, each.name, 0, row, prompt, *changed, False)
    original = pair[int(rng.integers(2))]
    for group, name, dose, copy in _copies(original, _other(voted, row, rng), rng):
        turned = bool(rng.integers(2))
        shown = (copy, original) if turned else (original, copy)
        yield Trial(group, name, dose, row, prompt, *shown, turned)


def _copies(
    original: str, foreign: str, rng: np.random.Generator
) -> Iterator[tuple[Group, str, float, str]]:
    for each in JUDGED:
        if each.kind is Kind.MEANING:
            copy = each.apply(original, rng)
            if copy != original:
                yield Group.MEANING, each.name, 0, copy
    yield Group.ITSELF, "", 0, original
    place = list(Place)[int(rng.integers(len(Place)))]
    for one in doses(original, foreign):
        if one.place is place:
            yield (Group.REMOVAL if one.removal else Group.INSERTION), "", one.dose, one.text


def _other(voted: VotedPairs, row: int, rng: np.random.Generator) -> str:
    """Draw the responses to another prompt, or to none where there is no other."""
    others = np.flatnonzero(voted.prompt != voted.prompt[row])
    if not len(others):
        return ""
    other = int(rng.choice(others))
    return f"{voted.responses_a[other]} {voted.responses_b[other]}"


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

    def probabilities(self, judged: Iterable[Judged]) -> Floats:
        """Return the answers of a run over the trials' cases, as given: NaN without a verdict."""
        by_case = {row.case_id: row.for_a for row in judged}
        preferences = [by_case.get(one.case.id) for one in self.trials]
        return np.array([np.nan if one is None else one.first for one in preferences])

    def read(self, probabilities: Floats, *, rng: np.random.Generator) -> tuple[Axis, ...]:
        """Estimate alignment, robustness and sensitivity.

        Parameters
        ----------
        probabilities : ndarray of shape (n_trials,)
            Probability that the first response is better; NaN where there is no verdict.

        Returns
        -------
        tuple of Axis
            These three. Trials without a verdict are left out, and counted in a warning.

        Raises
        ------
        DataError
            If there is not one probability a trial, or one lies outside 0 and 1.
        """
        if probabilities.shape != (len(self.trials),):
            raise DataError(
                f"{len(probabilities)} probabilities for {len(self.trials)} trials: give each one."
            )
        if ((probabilities < 0) | (probabilities > 1)).any():
            ends = f"{np.nanmin(probabilities):g} to {np.nanmax(probabilities):g}"
            raise DataError(f"Probabilities lie between 0 and 1, not from {ends}.")
        for_original = np.where(self._turned(), 1 - probabilities, probabilities)
        verdict = compare(for_original, np.full(len(probabilities), 0.5))
        axes = (
            self._alignment(verdict, rng),
            self._robustness(verdict, rng),
            self._sensitivity(for_original, verdict, rng),
        )
        n = int(np.isnan(probabilities).sum())
        lost = (f"{n} of {len(probabilities)} questions have no verdict: left out.",) if n else ()
        return tuple(replace(axis, warnings=(*axis.warnings, *lost)) for axis in axes)

    def _alignment(self, verdict: Floats, rng: np.random.Generator) -> Axis:
        own = self._table(verdict, Group.AS_IS)[""]
        votes = np.where(np.isnan(own)[:, None], 0, self.voted.votes)
        voted = replace(self.voted, votes=votes)
        figures = figures_of_votes(voted, np.nan_to_num(own), rng)
        return alignment_axis(figures, clusters=self._n_prompts(), data=self.data)

    def _robustness(self, verdict: Floats, rng: np.random.Generator) -> Axis:
        """Take the harmonic mean of verdicts unchanged and changes of meaning noticed.

        ``2 i s / (i + s)``: i the share of verdicts that stay under superficial changes, s the
        net share ``P(>) - P(<)`` that prefers a response to its changed copy, 0 where negative;
        kinds of change count the same.
        """
        own = self._table(verdict, Group.AS_IS)[""]
        light = self._table(verdict, Group.SUPERFICIAL)
        heavy = self._table(verdict, Group.MEANING)
        stayed = [np.where(np.isnan(own + one), np.nan, own == one) for one in light.values()]
        drawn = self._means([*stayed, *heavy.values()], rng)
        unchanged, noticed = drawn[: len(light)], drawn[len(light) :]
        parts = parts_of("unchanged", light, unchanged)
        parts += parts_of("net sensitivity", heavy, noticed)
        both = mean_of(unchanged), mean_of(noticed)
        value = drawn_from(_harmonic, *both, n=both[0].n + both[1].n)
        return self._axis(AxisName.ROBUSTNESS, value, parts)

    def _sensitivity(
        self, probabilities: Floats, verdict: Floats, rng: np.random.Generator
    ) -> Axis:
        """Correlate the dose with the original's probability: Spearman, mean of both kinds."""
        drawn = draw_prompts(self.voted.prompt, rng)
        parts, values = [], []
        for group in (Group.REMOVAL, Group.INSERTION):
            values.append(self._dose_response(group, probabilities, drawn))
            parts.append(Part("dose and response", group, values[-1].estimate()))
            by_dose = self._table(verdict, group)
            parts += parts_of(group, by_dose, self._means([*by_dose.values()], rng))
        return self._axis(AxisName.SENSITIVITY, mean_of(values), parts)

    def _dose_response(self, group: Group, probabilities: Floats, drawn: Floats) -> Drawn:
        asked = [one.group in (group, Group.ITSELF) for one in self.trials]
        chosen = np.flatnonzero(asked & ~np.isnan(probabilities))
        dose = np.array([self.trials[i].dose for i in chosen])
        prompt = self.voted.prompt[[self.trials[i].row for i in chosen]]
        return rank_correlation(probabilities[chosen], dose, prompt, drawn)

    def _turned(self) -> Bools:
        return np.array([one.turned for one in self.trials])

    def _n_prompts(self) -> int:
        return len(np.unique(self.voted.prompt))

    def _table(self, verdicts: Floats, group: Group) -> dict[str, Floats]:
        """Lay verdicts out by name or dose and by pair, NaN where there is none."""
        tables: dict[str, Floats] = {}
        for one, verdict in zip(self.trials, verdicts, strict=True):
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


def judge_card(
    judge: str, definition: str, plan: JudgePlan, probabilities: Floats, *, seed: int
) -> Card:
    """Read a judge's answers to a plan: a card of three axes."""
    axes = plan.read(probabilities, rng=np.random.default_rng(seed))
    return Card(judge, definition, axes, seed)


def _harmonic(first: Floats, second: Floats) -> Floats:
    """Return harmonic means of numbers from 0 on; a negative one counts as 0."""
    second = np.maximum(second, 0)
    total = first + second
    return np.asarray(2 * first * second / np.where(total > 0, total, 1))
