"""A judge as a ranker of models: how decisive it is, and which models it favours (JuStRank)."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy

from judge.studies.estimates import Draws, Estimate, interval
from judge.studies.items import Items, Labels
from rating.errors import NotIdentifiedError
from rating.leave_out import drawn_sums, sums_within
from rating.typing import Floats, Ints

FEWEST_ITEMS = 20
"""Of a pair of models: with fewer, a win rate says little but chance."""
FEWEST_PAIRS = 3
_LOWEST, _HIGHEST = 0.05, 20.0
_GRID = np.geomspace(_LOWEST, _HIGHEST, 25)
_FINE = np.linspace(-1, 1, 9) * np.log(_GRID[1] / _GRID[0])
"""Logarithms around the best point of the grid, as far as its neighbours."""
_AT_ONCE = 2_000_000
"""Values of the curve in memory at a time."""


@dataclass(frozen=True, slots=True)
class SystemRanking:
    """How the win rates of a judge stand to those of people, over pairs of models.

    Attributes
    ----------
    decisiveness : Estimate
        Of the curve by which the judge's win rates follow those of people: above 1 it makes gaps
        wider, below 1 narrower.
    bias : mapping of str to Estimate
        By model: mean over its opponents of the judge's win rate less what the curve gives.
    bias_sd : Estimate
        Standard deviation of these, as published. It is above 0 by chance alone.
    bias_sd_noise_freed : float
        Less what other prompts would make of a judge without any; 0 where that is all of it.
    n_pairs : int
        Pairs of models with `FEWEST_ITEMS` items or more.
    """

    decisiveness: Estimate
    bias: dict[str, Estimate]
    bias_sd: Estimate
    bias_sd_noise_freed: float
    n_pairs: int

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON."""
        return {
            "decisiveness": self.decisiveness.to_dict(),
            "bias": [{"model": model} | one.to_dict() for model, one in self.bias.items()],
            "bias_sd": self.bias_sd.to_dict(),
            "bias_sd_noise_freed": self.bias_sd_noise_freed,
            "pairs": self.n_pairs,
        }


def system_ranking(items: Items, people: Labels, judge: Labels, draws: Draws) -> SystemRanking:
    """Hold a judge's win rates over pairs of models against those of people.

    With ``g`` the win rate of one model over another by people and ``p`` by the judge, on the
    items that both have labels on, a tie half a win and each item counting once::

        p_ab ~ I(g_ab; alpha, alpha)        the cumulative beta distribution
        bias_a = mean over b of (p_ab - I(g_ab; alpha, alpha))
        bias_sd = sd over a of bias_a

    ``alpha`` is the decisiveness, here by least squares over pairs. Win rates by people are of a
    sample, and what chance there is in them draws ``alpha`` towards 1 where it is above.
    Intervals draw whole prompts.

    Raises
    ------
    NotIdentifiedError
        If fewer than `FEWEST_PAIRS` pairs of models have `FEWEST_ITEMS` items.

    References
    ----------
    .. [1] A. Gera et al., "JuStRank: Benchmarking LLM Judges for System Ranking", ACL 2025,
       section 6. The paper does not say how the curve is fitted; what is freed of noise is ours.
    """
    pairs, stats = _by_prompt(items, people, judge)
    sums = np.vstack([stats.sum(axis=0), drawn_sums(stats, draws.rounds, draws.rng)])
    gold, own = _win_rates(sums)
    alpha = decisiveness(gold, own)
    lifted = own - curve(gold, alpha[:, None])
    models = np.unique(pairs)
    bias = np.stack([_bias(lifted, pairs, int(model)) for model in models], axis=1)
    spread = bias.std(axis=1)
    noise = float(np.nanvar(bias[1:], axis=0).mean()) if draws.rounds else 0.0
    n = len(pairs)

    def estimate(values: Floats, count: int) -> Estimate:
        return Estimate(float(values[0]), *interval(values[1:], draws.level), count)

    return SystemRanking(
        decisiveness=estimate(alpha, n),
        bias={
            items.models[model]: estimate(bias[:, place], int((pairs == model).sum()))
            for place, model in enumerate(models)
        },
        bias_sd=estimate(spread, len(models)),
        bias_sd_noise_freed=float(np.sqrt(max(spread[0] ** 2 - noise, 0.0))),
        n_pairs=n,
    )


def curve(gold: Floats, alpha: Floats) -> Floats:
    """Return the win rates of a judge of a decisiveness who favours nobody.

    Examples
    --------
    >>> curve(np.array([0.2, 0.5, 0.8]), np.array(1.0)).round(3).tolist()
    [0.2, 0.5, 0.8]
    >>> curve(np.array([0.2, 0.5, 0.8]), np.array(2.0)).round(3).tolist()
    [0.104, 0.5, 0.896]
    """
    return np.asarray(scipy.special.betainc(alpha, alpha, gold))


def decisiveness(gold: Floats, own: Floats) -> Floats:
    """Fit ``alpha`` by least squares over pairs, from .05 to 20.

    Parameters
    ----------
    gold, own : ndarray of shape (r, n_pairs)
        Win rates by people and by the judge; of each row, a fit.

    Returns
    -------
    ndarray of shape (r,)
    """
    at_once = max(1, _AT_ONCE // (gold.shape[1] * len(_GRID)))
    parts = range(0, len(gold), at_once)
    return np.concatenate([_fitted(gold[i : i + at_once], own[i : i + at_once]) for i in parts])


def _fitted(gold: Floats, own: Floats) -> Floats:
    """Take the best point of a grid, of a finer one around it, and the vertex of a parabola."""
    coarse = np.log(_GRID)[None] + np.zeros((len(gold), 1))
    middle = _best(gold, own, coarse)[0]
    fine = middle[:, None] + _FINE
    losses = _best(gold, own, fine)[1]
    at = np.clip(losses.argmin(axis=1), 1, len(_FINE) - 2)
    before, here, after = (losses[np.arange(len(gold)), at + step] for step in (-1, 0, 1))
    bend = before - 2 * here + after
    with np.errstate(divide="ignore", invalid="ignore"):
        shift = np.where(bend > 0, 0.5 * (before - after) / bend, 0.0)
    best = fine[np.arange(len(gold)), at] + (_FINE[1] - _FINE[0]) * np.clip(shift, -1.0, 1.0)
    return np.asarray(np.clip(np.exp(best), _LOWEST, _HIGHEST))


def _best(gold: Floats, own: Floats, logs: Floats) -> tuple[Floats, Floats]:
    """Return the point of least loss of each row, and the losses at all points."""
    losses = np.stack(
        [((own - curve(gold, np.exp(a)[:, None])) ** 2).sum(axis=1) for a in logs.T], axis=1
    )
    return logs[np.arange(len(logs)), losses.argmin(axis=1)], losses


def _by_prompt(items: Items, people: Labels, judge: Labels) -> tuple[Ints, Floats]:
    """Give the pairs that have enough items, and what each prompt adds to their sums.

    Returns
    -------
    pairs : ndarray of shape (n_pairs, 2)
    stats : ndarray of shape (n_prompts, 3 n_pairs)
        Wins by people, by the judge, and items, of the first model of each pair.
    """
    by_people, by_judge = _share(items, people), _share(items, judge)
    a, b = items.pairs.T
    used = np.flatnonzero(~np.isnan(by_people) & ~np.isnan(by_judge) & (a != b))
    turned = a[used] > b[used]
    sides = np.sort(items.pairs[used], axis=1)
    pairs, which, counts = np.unique(sides, axis=0, return_inverse=True, return_counts=True)
    enough = np.flatnonzero(counts >= FEWEST_ITEMS)
    if len(enough) < FEWEST_PAIRS:
        msg = (
            f"{len(enough)} pairs of models have {FEWEST_ITEMS} items or more that people and the "
            f"judge have a label on: it takes {FEWEST_PAIRS}."
        )
        raise NotIdentifiedError(msg)
    place = np.full(len(pairs), -1)
    place[enough] = np.arange(len(enough))
    column = place[which.ravel()]
    rows = column >= 0
    wins = [np.where(turned, 1 - one[used], one[used])[rows] for one in (by_people, by_judge)]
    stats = np.zeros((int(rows.sum()), 3 * len(enough)))
    for part, values in enumerate((*wins, np.ones(int(rows.sum())))):
        stats[np.arange(len(stats)), part * len(enough) + column[rows]] = values
    return pairs[enough], sums_within(items.prompt[used][rows], stats, items.n_prompts)


def _share(items: Items, labels: Labels) -> Floats:
    """Return the mean share of side A of each item, NaN where it has no label."""
    n = np.bincount(labels.item, minlength=items.n)
    total = np.bincount(labels.item, (labels.label + 1) / 2, minlength=items.n)
    return np.where(n > 0, total / np.maximum(n, 1), np.nan)


def _win_rates(sums: Floats) -> tuple[Floats, Floats]:
    """Divide; of a pair that no drawn prompt has, the rate is one half by both."""
    people, judge, n = np.split(sums, 3, axis=1)
    of_people, of_judge = (np.where(n > 0, won / np.maximum(n, 1), 0.5) for won in (people, judge))
    return of_people, of_judge


def _bias(lifted: Floats, pairs: Ints, model: int) -> Floats:
    first, second = (pairs == model).T
    signed = np.concatenate([lifted[:, first], -lifted[:, second]], axis=1)
    return np.asarray(signed.mean(axis=1))
