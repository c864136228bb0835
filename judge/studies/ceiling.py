"""How far people agree among themselves, and so how far any judge can agree with them."""

import math
from dataclasses import dataclass
from functools import partial

import numpy as np
import scipy  # its submodules load on first use

from judge.studies.agreement import counts
from judge.studies.items import Estimate, Items, Said
from judge.studies.resampling import MeanOfPrompts, clustered, sums_by_prompt
from rating.typing import Bools, Floats

CONDITION = (
    "Over items on which two people or more preferred a side, each counting the same and votes "
    "for a tie left out; with a judge, those on which it preferred one too."
)
MIN_VOTES_TO_FIT = 3

_SHARE = MeanOfPrompts(0.0, 1.0, (2,))
_LOG_SHAPES = np.linspace(math.log(1e-2), math.log(1e3), 231)
"""Shapes of the beta law that are tried, from all of one mind to a coin for every item."""


@dataclass(frozen=True, slots=True)
class Ceiling:
    """What people leave for a judge to reach; see `CONDITION` for the items it is over.

    Attributes
    ----------
    people : Estimate
        A: the chance that two people agree.
    lowest, highest : Estimate
        The best judge that says one thing of an item reaches between ``max(A, 1/2)`` and
        ``(1 + sqrt(2 A - 1)) / 2``.
    fitted : Estimate
        What it reaches if the share of people for a side follows a beta law over items; from
        those with three such votes or more, no value without one.
    judge : Estimate
        How often the judge agrees with a person; no value without a judge.
    to_people, to_highest : Estimate
        The judge's agreement over ``people``, and over ``highest``.
    """

    people: Estimate
    lowest: Estimate
    highest: Estimate
    fitted: Estimate
    judge: Estimate
    to_people: Estimate
    to_highest: Estimate


def ceiling(
    items: Items,
    people: Said,
    judge: Said | None = None,
    *,
    rounds: int = 1000,
    rng: np.random.Generator,
    level: float = 0.95,
) -> Ceiling:
    """Estimate how far a judge can agree with a person, and how far one does.

    With ``d = 2 p - 1``, p the share of all people who prefer side A of an item, two people agree
    with chance ``A = E(1 + d^2) / 2``, and a judge that always says what most people do agrees
    with one of them with chance ``E(1 + |d|) / 2``. That lies between A and
    ``(1 + sqrt(2 A - 1)) / 2``, by Jensen's inequality, whatever the law of d. Where people agree
    less than half of the time, ``2 A - 1`` is taken as 0.

    Parameters
    ----------
    judge : Said, optional
        Its repetitions of an item count together as one.

    Returns
    -------
    Ceiling
        ``n`` of every estimate is a number of items. Intervals draw prompts, and are joint: those
        of the ratios hold the uncertainty of both parts. Where every draw gives the same, the
        bounds and the ratios have none.

    Examples
    --------
    Two people agree on four items of five: the best judge reaches 80 to 89 %.

    >>> from judge.studies.items import Items, Said
    >>> label = np.array([1, 1, 1, 1, 1, 1, 1, 1, 1, -1], dtype=np.int8)
    >>> people = Said(np.repeat(np.arange(5), 2), np.arange(10), label, 0 * label, np.nan * label)
    >>> items = Items(("x", "y"), np.tile([0, 1], (5, 1)), np.arange(5))
    >>> found = ceiling(items, people, rng=np.random.default_rng(1))
    >>> found.lowest.value, round(found.highest.value, 3)
    (0.8, 0.887)
    """
    votes = counts(items, people)[:, [0, 2]]
    verdicts = np.ones_like(votes) if judge is None else counts(items, judge)[:, [0, 2]]
    used = (votes.sum(axis=1) >= 2) & (verdicts.sum(axis=1) >= 1)
    both = _mean_agreement(votes, votes, used, same=True)
    with_judge = _mean_agreement(votes, verdicts, used, same=False)
    stats = sums_by_prompt(items, np.column_stack([both, with_judge, used]))
    estimate = partial(clustered, stats, n=int(used.sum()), rounds=rounds, rng=rng, level=level)
    unknown = Estimate(None, None, None, int(used.sum()))
    return Ceiling(
        people=estimate(_agreed, mean=_SHARE),
        lowest=estimate(lambda sums: np.maximum(_agreed(sums), 0.5)),
        highest=estimate(lambda sums: _highest(_agreed(sums))),
        fitted=_fitted(items, votes, used, rounds, rng, level),
        judge=unknown if judge is None else estimate(_judged, mean=_SHARE),
        to_people=unknown if judge is None else estimate(_to_people),
        to_highest=unknown
        if judge is None
        else estimate(lambda sums: _judged(sums) / _highest(_agreed(sums))),
    )


def _mean_agreement(first: Floats, second: Floats, used: Bools, *, same: bool) -> Floats:
    """Return the share of pairs of an item that agree, 0 where the item is not used."""
    pairs = first.sum(axis=1) * (second.sum(axis=1) - same)
    agree = (first * (second - same)).sum(axis=1)
    return np.where(used, agree / np.where(pairs > 0, pairs, 1), 0)


def _agreed(sums: Floats) -> Floats:
    return np.asarray(sums[:, 0] / np.where(sums[:, 2] > 0, sums[:, 2], np.nan))


def _judged(sums: Floats) -> Floats:
    return np.asarray(sums[:, 1] / np.where(sums[:, 2] > 0, sums[:, 2], np.nan))


def _to_people(sums: Floats) -> Floats:
    return np.asarray(sums[:, 1] / np.where(sums[:, 0] > 0, sums[:, 0], np.nan))


def _highest(agreed: Floats) -> Floats:
    return np.asarray((1 + np.sqrt(np.maximum(2 * agreed - 1, 0))) / 2)


def _fitted(
    items: Items,
    votes: Floats,
    used: Bools,
    rounds: int,
    rng: np.random.Generator,
    level: float,
) -> Estimate:
    """Fit a symmetric beta law to the votes of each item by maximum likelihood.

    Which side is which means nothing here, so the law of p is that of 1 - p.
    """
    many = np.flatnonzero(used & (votes.sum(axis=1) >= MIN_VOTES_TO_FIT))
    if not len(many):
        return Estimate(None, None, None, 0)
    folded = np.sort(votes[many], axis=1)
    kinds, kind = np.unique(folded, axis=0, return_inverse=True)
    stats = np.zeros((items.n_prompts, len(kinds)))
    np.add.at(stats, (items.prompt[many], kind), 1)
    surprise = _surprises(kinds)
    return clustered(
        stats,
        lambda sums: _reached(_log_shape(sums @ surprise)),
        n=len(many),
        rounds=rounds,
        rng=rng,
        level=level,
    )


def _surprises(kinds: Floats) -> Floats:
    """Return minus the log-likelihood of each kind of item at each shape."""
    shape = np.exp(_LOG_SHAPES)
    lost, won = kinds[:, :1], kinds[:, 1:]
    beta = scipy.special.betaln
    return np.asarray(beta(shape, shape) - beta(lost + shape, won + shape))


def _log_shape(surprise: Floats) -> Floats:
    """Return the least surprising log-shape of each row, by a parabola through three points."""
    inner = np.clip(surprise.argmin(axis=1), 1, len(_LOG_SHAPES) - 2)
    left, middle, right = (
        np.take_along_axis(surprise, (inner + step)[:, None], axis=1)[:, 0] for step in (-1, 0, 1)
    )
    bend = left - 2 * middle + right
    step = (left - right) / 2 / np.where(bend > 0, bend, np.inf)
    width = _LOG_SHAPES[1] - _LOG_SHAPES[0]
    return np.asarray(
        np.where(
            surprise.argmin(axis=1) == inner,
            _LOG_SHAPES[inner] + width * step,
            _LOG_SHAPES[surprise.argmin(axis=1)],
        )
    )


def _reached(log_shape: Floats) -> Floats:
    """Return ``E max(p, 1 - p) = 1/2 + 4^-s / (s B(s, s))``."""
    shape = np.exp(log_shape)
    log_half = -shape * math.log(4) - log_shape - scipy.special.betaln(shape, shape)
    return np.asarray(0.5 + np.exp(log_half))
