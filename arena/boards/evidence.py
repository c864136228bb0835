"""What a board rests on: how pairs fared, how the ratings fit, what would overturn a rank."""

from collections.abc import Mapping, Sequence

import numpy as np

from arena.boards.fitted import OPTIONS, Fitted
from arena.domain.board_view import Fewest, FitCheck, Hold, Misfit, PairCell
from rating import (
    Comparisons,
    MisfitTest,
    fewest_to_flip,
    goodness_of_fit,
    misfit_test,
    neighbour_gaps,
    win_rates,
)
from rating.diagnosis.influence import Unit
from rating.elo import POINTS_PER_NAT
from rating.typing import Bools, Ints
from rating.uncertainty.clusters import Grouping, activity, grouping
from rating.uncertainty.ranks import MIN_EFFECTIVE_FOR_RANKS

FEWEST_JUDGED = 5
"""Votes of a pair from which its share is held against the ratings."""
FAR = 2.0
"""Standard errors beyond which a pair is called far."""
MOST_NAMED = 3

MOST_PAIRS = 10
"""Neighbours looked at, from the top: the cost of a board stays within bounds."""

MOST_BY_PROMPT = 50_000
"""Votes up to which prompts are taken away: few and heavy, each costs a fit of its own."""

MOST_BY_VOTER = 500_000
"""Votes up to which voters are taken away: each is left out once, five seconds a million votes."""

MOST_COINS = 2048
"""Groups of voters whose signs change together, where voters are more than `FROM` times as many.

Voters are put together by lot, so that what is in a group by itself cancels on average, as what
is in different groups does; the variance is as well known as from so many voters.
"""
FROM = 8

MOST_TAKEN = 1000
"""Votes, voters or prompts that are taken away together, at most."""


def pair_cells(everyone: Comparisons, fitted: Fitted | None) -> tuple[PairCell, ...]:
    """Give every pair that met, and every pair that is rated, once.

    Parameters
    ----------
    everyone : Comparisons
        All counted votes, those on models that are not rated among them.
    """
    wins = everyone.wins()
    n = wins + wins.T
    models = everyone.models
    met = {
        (models[i], models[j]): (round(n[i, j]), float(wins[i, j]))
        for i, j in np.argwhere(np.triu(n) > 0)
    }
    expected = _expected(fitted) if fitted else {}
    return tuple(
        _cell(pair, *met.get(pair, (0, 0.0)), *expected.get(pair, (None, None, None)))
        for pair in sorted({*met, *expected})
    )


def _cell(
    pair: tuple[str, str],
    n: int,
    won: float,
    expected: float | None,
    low: float | None,
    high: float | None,
) -> PairCell:
    row, column = pair
    share = won / n if n else None
    return PairCell(
        row=row, column=column, n=n, share=share, expected=expected, low=low, high=high
    )


def _expected(fitted: Fitted) -> dict[tuple[str, str], tuple[float, float, float]]:
    """Give what each pair's first model is expected to win, and the interval."""
    rates = win_rates(fitted.inference, level=OPTIONS.level)
    return {
        (rates.models[i], rates.models[j]): (
            float(rates.expected[i, j]),
            float(rates.low[i, j]),
            float(rates.high[i, j]),
        )
        for i, j in zip(*np.triu_indices(len(rates.models), k=1), strict=True)
    }


def fit_check(fitted: Fitted, order: Sequence[str]) -> FitCheck | None:
    """Hold the votes of each pair against the ratings; None where ratings can fit any votes.

    Parameters
    ----------
    order : sequence of str
        Models best first: a pair is told from its better one.
    """
    goodness = goodness_of_fit(fitted.fit, fitted.data)
    if goodness.df < 1:
        return None
    wins = fitted.data.wins()
    n = (wins + wins.T)[*goodness.pairs.T]
    judged = (n >= FEWEST_JUDGED) & ~np.isnan(goodness.residual)
    distance = np.where(judged, np.abs(goodness.residual), 0.0)
    far = np.flatnonzero(distance > FAR)
    worst = far[np.argsort(-distance[far], kind="stable")][:MOST_NAMED]
    better = {model: i for i, model in enumerate(order)}
    tested = _tested(fitted, judged)
    return FitCheck(
        pairs=int(judged.sum()),
        far=len(far),
        by_chance=None if tested is None else tested.n_far,
        p=None if tested is None else tested.p,
        left_out=int((~judged).sum()),
        worst=tuple(_misfit(fitted, goodness.pairs[at], better) for at in worst),
    )


def _tested(fitted: Fitted, judged: Bools) -> MisfitTest | None:
    """Ask what chance makes of the pairs, voter by voter; None with too few voters, or no pair."""
    few = activity(fitted.data).effective < MIN_EFFECTIVE_FOR_RANKS
    if few or not judged.any():
        return None
    rng = np.random.default_rng(OPTIONS.seed)
    voters = in_groups(grouping(fitted.data, "voter"), MOST_COINS, rng)
    return misfit_test(fitted.fit, fitted.data, voters, judged, rng=rng, far=FAR)


def in_groups(clusters: Grouping, most: int, rng: np.random.Generator) -> Grouping:
    """Put clusters together by lot where they are many: see `MOST_COINS`."""
    if clusters.size <= FROM * most:
        return clusters
    group = rng.integers(0, most, clusters.size)
    return Grouping(group[clusters.index], most)


def _misfit(fitted: Fitted, pair: Ints, better: Mapping[str, int]) -> Misfit:
    wins, models = fitted.data.wins(), fitted.fit.models
    i, j = sorted(pair.tolist(), key=lambda model: better[models[model]])
    n = float(wins[i, j] + wins[j, i])
    gap = float(fitted.fit.theta[i] - fitted.fit.theta[j])
    return Misfit(
        row=models[i],
        column=models[j],
        share=float(wins[i, j]) / n,
        expected=1 / (1 + float(np.exp(-gap))),
        n=round(n),
    )


def holds(fitted: Fitted) -> tuple[Hold, ...]:
    """Say what holds each model above the next, for the first `MOST_PAIRS` neighbours.

    See `rating.diagnosis.influence.fewest_to_flip` and `rating.planning.neighbour_gaps`.
    """
    data, models = fitted.data, fitted.fit.models
    gaps = neighbour_gaps(fitted.inference, level=OPTIONS.level)[:MOST_PAIRS]
    pairs = [(models[gap.ahead], models[gap.behind]) for gap in gaps]
    by_prompt = _by_prompt(fitted)
    votes = _fewest(fitted, data, "vote", pairs, data.n_votes)
    few = data.n_votes <= MOST_BY_VOTER
    voters = _fewest(fitted, data, "voter", pairs, data.n_voters) if few else {}
    prompts = _fewest(fitted, by_prompt, "prompt", pairs, by_prompt.n_prompts)
    return tuple(
        Hold(
            above=pair[0],
            below=pair[1],
            lead=gap.gap * POINTS_PER_NAT,
            votes=votes[pair],
            voters=voters.get(pair),
            prompts=prompts.get(pair),
            separated=gap.separated,
            more_votes=gap.more_votes,
        )
        for pair, gap in zip(pairs, gaps, strict=True)
    )


def _fewest(
    fitted: Fitted, data: Comparisons, unit: Unit, pairs: list[tuple[str, str]], of: int
) -> dict[tuple[str, str], Fewest]:
    """Find the fewest of each pair; nothing where there are not two clusters to tell apart."""
    if unit != "vote" and of < 2:
        return {}
    flips = fewest_to_flip(fitted.fit, data, unit=unit, pairs=pairs, at_most=MOST_TAKEN)
    return {(flip.above, flip.below): Fewest(k=flip.k, tried=flip.tried, of=of) for flip in flips}


def _by_prompt(fitted: Fitted) -> Comparisons:
    """Give the votes with their prompts; without, where these are not known, or votes too many."""
    if fitted.data.n_votes > MOST_BY_PROMPT or fitted.data.prompt is None:
        return fitted.data.merged()
    return fitted.data
