"""Cards and their axes, and the estimates with intervals over prompts that they hold."""

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Protocol

import numpy as np

from judge.probe.perturb import VERSION
from judge.probe.similarity import Measure
from judge.studies.estimates import FEW_PROMPTS, Estimate, interval
from rating.errors import DataError
from rating.leave_out import drawn_sums, sums_within
from rating.typing import Floats, Ints

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

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON."""
        return {"group": self.group, "name": self.name, **self.estimate.to_dict()}


@dataclass(frozen=True, slots=True)
class Axis:
    """How an evaluator does on one question.

    Attributes
    ----------
    estimate : Estimate
        0 is what answers without any knowledge reach, 1 the best. No value where the data do not
        give one: ``warnings`` say why.
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
            "parts": [part.to_dict() for part in self.parts],
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
        """Return the value with its 95 % percentile interval; None for what is not defined."""
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

    Those without any data are left out; one that its data do not define leaves the mean without a
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
    return (f"{clusters} {what}: under {FEW_PROMPTS} the interval is too narrow.",)


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


@dataclass(frozen=True, slots=True)
class Cards:
    """Cards of several evaluators, or of one, on the same texts.

    Attributes
    ----------
    about : dict
        Files, what was drawn from them, and what was asked.
    """

    about: dict[str, Any]
    cards: tuple[Card, ...]

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON."""
        return {"about": self.about, "cards": [card.to_dict() for card in self.cards]}


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
