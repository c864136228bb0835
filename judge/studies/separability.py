"""How well scores tell models apart, and whether as a reference does: pairs of models."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import combinations
from typing import Any, Literal

import numpy as np
import scipy  # its submodules load on first use

from rating.typing import Bools, Floats
from rating.uncertainty.student import quantile

Rule = Literal["overlap", "pairwise"]
Pair = tuple[str, str]
RULES: tuple[Rule, ...] = ("overlap", "pairwise")


@dataclass(frozen=True, slots=True, eq=False)
class Ends:
    """Scores with intervals, each shape (n_models,).

    Attributes
    ----------
    value, lower, upper : ndarray of float
        NaN where there is none.
    """

    value: Floats
    lower: Floats
    upper: Floats

    def known(self) -> Bools:
        """Tell which models have all three."""
        return ~np.isnan(self.value + self.lower + self.upper)

    def of(self, models: Bools) -> "Ends":
        """Return some of the models."""
        return Ends(self.value[models], self.lower[models], self.upper[models])

    def pairs(self) -> tuple[Floats, Floats, Floats]:
        """Return the gap of every two models, and the reach of both towards each other."""
        first, second = np.triu_indices(len(self.value), 1)
        gap = self.value[first] - self.value[second]
        down, up = self.value - self.lower, self.upper - self.value
        ahead = gap > 0
        own = np.where(ahead, down[first], up[first])
        other = np.where(ahead, up[second], down[second])
        return gap, own, other


def separated(scores: Ends, rule: Rule) -> Floats:
    """Return 1 or -1 for pairs of models that are separated, else 0, shape (n_pairs,).

    Parameters
    ----------
    rule : {"overlap", "pairwise"}
        By intervals that do not overlap, as Arena-Hard; or by the interval of the difference,
        the square root of both reaches squared: right for independent scores, and for ratings
        with quasi-standard errors. Intervals that touch may well tell two models apart.
    """
    gap, own, other = scores.pairs()
    reach = own + other if rule == "overlap" else np.hypot(own, other)
    return np.where(np.abs(gap) > reach, np.sign(gap), 0.0)


@dataclass(frozen=True, slots=True)
class Confidence:
    """How far a benchmark is sure of what a reference is sure of, by one rule.

    Attributes
    ----------
    separated, separated_by_reference : float or None
        Share of the pairs of models that each tells apart.
    agreement : float or None
        Over the pairs that the reference tells apart: 1 where the benchmark does the same, -1 the
        other way, 0 where it does not; the mean.
    agreement_of_separated : float or None
        Over the pairs that both tell apart: the share that they order alike.
    separated_of_reference : float or None
        Share of the pairs that the reference tells apart which the benchmark tells apart, too.
    agreement_over_all : float or None
        The sum of ``agreement`` over all pairs, as Arena-Hard's paper: pairs that the reference
        does not tell apart count 0.
    left_out : tuple of (str, str)
        Pairs that the reference does not tell apart: left out of ``agreement``, and 0 in
        ``agreement_over_all``.
    opposite : tuple of (str, str)
        Pairs that both tell apart, and each the other way; the reference has the first ahead.
    """

    separated: float | None
    separated_by_reference: float | None
    agreement: float | None
    agreement_of_separated: float | None
    separated_of_reference: float | None
    agreement_over_all: float | None
    left_out: tuple[Pair, ...]
    opposite: tuple[Pair, ...]


@dataclass(frozen=True, slots=True)
class Separability:
    """How well a benchmark tells models apart, and whether as the reference does.

    Attributes
    ----------
    n : int
        Models with intervals of whatever is compared.
    overlap, pairwise : Confidence
    order_brier : float or None
        Mean squared distance of the probability that the benchmark gives to one model being ahead
        of another, from the reference's order; equal models half.
    """

    n: int
    overlap: Confidence
    pairwise: Confidence
    order_brier: float | None

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON."""
        return asdict(self)


def separability(
    models: Sequence[str],
    scores: Ends | None,
    reference: Floats,
    ends: Mapping[Rule, Ends] | None,
    *,
    level: float,
) -> Separability | None:
    """Compare how scores and a reference order every two models.

    Parameters
    ----------
    models : sequence of str
    scores : Ends or None
        Of the benchmark; None where it has no intervals.
    reference : ndarray of shape (n_models,)
    ends : mapping of rule to Ends, or None
        Of the reference, where it has intervals: for the pairwise rule of quasi-standard errors.
    level : float
        Of the intervals of the benchmark.

    Returns
    -------
    Separability or None
        None without intervals of either.

    References
    ----------
    .. [1] T. Li et al., "From Crowdsourced Data to High-Quality Benchmarks: Arena-Hard and
       BenchBuilder Pipeline", 2024 (arXiv:2406.11939).
    """
    if scores is None and ends is None:
        return None
    known = ~np.isnan(reference)
    for one in (scores, *(ends or {}).values()):
        known = known & (True if one is None else one.known())
    mine = None if scores is None else scores.of(known)
    names = [name for name, there in zip(models, known, strict=True) if there]
    rules = {
        rule: _confidence(names, mine, None if ends is None else ends[rule].of(known), rule)
        for rule in RULES
    }
    brier = None if mine is None else _order_brier(mine, reference[known], level)
    return Separability(int(known.sum()), rules["overlap"], rules["pairwise"], brier)


def _confidence(
    models: Sequence[str], scores: Ends | None, reference: Ends | None, rule: Rule
) -> Confidence:
    mine, theirs = (None if x is None else separated(x, rule) for x in (scores, reference))
    return confidence(models, mine, theirs)


def confidence(models: Sequence[str], mine: Floats | None, theirs: Floats | None) -> Confidence:
    """Compare separated pairs, as `separated` gives them, with those of a reference."""
    own = None if mine is None else _mean(mine != 0)
    if theirs is None:
        return Confidence(own, None, None, None, None, None, (), ())
    of_reference, pairs = _mean(theirs != 0), list(combinations(models, 2))
    left_out = tuple(pair for pair, sign in zip(pairs, theirs, strict=True) if sign == 0)
    if mine is None:
        return Confidence(None, of_reference, None, None, None, None, left_out, ())
    both = mine * theirs
    opposite = tuple(
        pair if sign > 0 else pair[::-1]
        for pair, sign, product in zip(pairs, theirs, both, strict=True)
        if product < 0
    )
    return Confidence(
        separated=own,
        separated_by_reference=of_reference,
        agreement=_mean(both[theirs != 0]),
        agreement_of_separated=_mean(both[both != 0] > 0),
        separated_of_reference=_mean(both[theirs != 0] != 0),
        agreement_over_all=_mean(both),
        left_out=left_out,
        opposite=opposite,
    )


def _order_brier(scores: Ends, reference: Floats, level: float) -> float | None:
    gap, own, other = scores.pairs()
    error = np.hypot(own, other) / quantile(level, np.inf)
    first, second = np.triu_indices(len(reference), 1)
    ahead = (np.sign(reference[first] - reference[second]) + 1) / 2
    sure = np.where(gap == 0, 0.0, np.sign(gap) * np.inf)  # without an error it is sure
    leads = np.divide(gap, error, out=sure, where=error > 0)
    return _mean((scipy.special.ndtr(leads) - ahead) ** 2)


def _mean(values: Floats | Bools) -> float | None:
    return float(np.mean(values)) if len(values) else None
