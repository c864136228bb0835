"""Boards by people and by judges: how they are fitted, and how they compare."""

import math
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import scipy  # its submodules load on first use
from numpy.typing import NDArray

from judge.studies.correlations import (
    FEW_MODELS,
    MIN_MODELS,
    Figures,
    Moved,
    around,
    both_correlations,
    correlated,
)
from judge.studies.estimates import FEW_PROMPTS, FEWEST_PEOPLE, Draws, Estimate, with_width
from judge.studies.items import Items, Labels
from judge.studies.separability import Confidence, Pair, confidence
from rating import Comparisons, Fit, fit, hessian_covariance
from rating.errors import ConvergenceError, NotIdentifiedError
from rating.leave_out import drawn_sums, influence_variance
from rating.typing import Floats
from rating.uncertainty.clusters import activity, grouping, intersection
from rating.uncertainty.student import quantile

POSITION = "position"
"""Term that is 1 where side A was shown first and -1 where side B was."""
ERROR = 0.05
"""Of all pairs of models together: so often a board claims a wrong order of any."""
_OUTCOME = np.array([1, 2, 0])
"""Position in ``tuple(Outcome)`` of the labels -1, 0 and 1."""


@dataclass(frozen=True, slots=True, eq=False)
class Preferences:
    """Bradley-Terry strengths, ties half, and the slopes of other terms.

    Attributes
    ----------
    models : tuple of str, length n_models
        Those compared with another, sorted.
    theta : ndarray of shape (n_models,)
        Nats, summing to zero.
    slopes : dict of str to float
        Nats by which one more of a term moves the preference for side A.
    influence : ndarray of shape (n_prompts, n_models + n_slopes)
        How far each prompt of the items moved strengths and slopes, in nats; they sum to zero.
    n : int
        Rows behind the fit.
    n_voters : int or None
        Voters whose part is in the influences.
    """

    models: tuple[str, ...]
    theta: Floats
    slopes: dict[str, float]
    influence: Floats
    n: int
    n_voters: int | None = None

    def pull(self, term: str) -> Floats:
        """Return how far each prompt moved a slope, shape (n_prompts,)."""
        at = list(self.slopes).index(term)
        return np.asarray(self.influence[:, len(self.models) + at])

    def of_models(self, names: tuple[str, ...]) -> tuple[Floats, Floats]:
        """Return strengths and influence of some models, centred anew."""
        at = [self.models.index(name) for name in names]
        theta, influence = self.theta[at], self.influence[:, at]
        return theta - theta.mean(), influence - influence.mean(axis=1, keepdims=True)


def preferences(
    items: Items, labels: Labels, terms: tuple[str, ...] = (), *, people: bool = False
) -> Preferences:
    """Fit ``logit P(side A) = theta_a - theta_b + sum of slope * term``, a tie half a win.

    Parameters
    ----------
    terms : tuple of str
        `POSITION`, or names of ``items.gaps``. A row with a gap that is not known is left out; a
        row whose order is not known keeps 0.
    people : bool
        Whether the raters are people: the influences of prompts are then raised by what the
        raters add to their variance, for the strengths together and for each slope, so that
        whatever is read from them allows for other people as well.

    Raises
    ------
    NotIdentifiedError
        If the rows leave a strength or a slope without a finite value.
    """
    columns = [_term(items, labels, name) for name in terms]
    features = np.stack(columns, axis=1) if columns else np.empty((labels.n, 0))
    a, b = items.pairs[labels.item].T
    used = ~np.isnan(features).any(axis=1) & (a != b)
    prompt = items.prompt[labels.item[used]]
    data = Comparisons.from_codes(
        items.models,
        a[used],
        b[used],
        _OUTCOME[labels.label[used] + 1],
        voter=np.unique(labels.rater[used], return_inverse=True)[1] if people else None,
        prompt=prompt,
        features=features[used] if terms else None,
        feature_names=terms,
    )
    try:
        fitted = fit(data)
    except ConvergenceError as error:
        raise NotIdentifiedError(str(error)) from error
    influence = np.zeros((items.n_prompts, len(fitted.x)))
    influence[np.unique(prompt)] = _influence(fitted, data)
    slopes = {name: p.value for name, p in zip(terms, fitted.parameters, strict=True)}
    n_voters = data.n_voters if people else None
    return Preferences(fitted.models, fitted.theta, slopes, influence, int(used.sum()), n_voters)


def from_influence(value: float, influence: Floats, *, n: int, level: float) -> Estimate:
    """Give a value the interval that the prompts' influences on it imply.

    Student's t with prompts less one, on ``sqrt(U / (U - 1) sum influence^2)``; prompts without
    influence are not counted, and fewer than two give no interval, nor does one without a width.

    Parameters
    ----------
    influence : ndarray of shape (n_prompts,)
    """
    n_prompts = int((influence != 0).sum())
    if n_prompts < 2:
        return Estimate(value, None, None, n)
    error = math.sqrt(influence_variance(influence, n_prompts))
    reach = quantile(level, n_prompts - 1) * error
    return Estimate(value, *with_width(value - reach, value + reach), n)


def _term(items: Items, labels: Labels, name: str) -> Floats:
    if name == POSITION:
        return labels.first.astype(np.float64)
    return items.gaps[name][labels.item]


def _influence(fitted: Fit, data: Comparisons) -> Floats:
    assert data.prompt is not None
    index = data.prompt.astype(np.int64)
    cells, bread = fitted.scored(data), hessian_covariance(fitted)
    influence = np.asarray(-cells.scores(index, data.n_prompts) @ bread)
    if data.voter is None or activity(data).effective < FEWEST_PEOPLE:
        return influence
    both = intersection(data)
    by_voter, inside = (
        cells.scores(groups.index, groups.size) @ bread
        for groups in (grouping(data, "voter"), both)
    )
    own, k = (influence**2).sum(axis=0), fitted.n_models
    added = influence_variance(by_voter, data.n_voters) - (inside**2).sum(axis=0)
    own[:k], added[:k] = own[:k].sum(), added[:k].sum()
    return np.asarray(influence * np.sqrt(1 + added.clip(min=0) / np.where(own > 0, own, 1.0)))


@dataclass(frozen=True, slots=True)
class BoardsCompared(Figures):
    """How a judge's board goes with people's: as found, of boards of as many votes and verdicts.

    Attributes
    ----------
    models : tuple of str
        Those on both boards.
    overlap : Confidence
        How far the judge tells models apart whom people do, by intervals that do not overlap.
    order_brier : float or None
        Mean squared distance of the judge's probability that one model of a pair is the better one
        from the order by people; pairs of the same strength without an error are left out, None
        where no other is there.
    pairwise : Confidence
        The same by the intervals of differences, by prompt; the people are the reference.
    warnings : tuple of str
    """

    models: tuple[str, ...]
    overlap: Confidence
    order_brier: float | None
    pairwise: Confidence
    warnings: tuple[str, ...]

    def pairs_to_dict(self) -> dict[str, Any]:
        """Return plain values of how the two boards tell models apart, for JSON."""
        return {
            "n": len(self.models),
            "overlap": asdict(self.overlap),
            "pairwise": asdict(self.pairwise),
            "order_brier": self.order_brier,
        }


def compare_boards(people: Preferences, judge: Preferences, draws: Draws) -> BoardsCompared:
    """Compare two boards over the models that both have.

    Intervals carry the uncertainty of both: whole prompts are drawn, votes and verdicts together,
    and both boards move by the prompts' influences (one step, no refits). Noise in either board
    lowers a correlation, and drawing adds it once more, so percentiles of the rounds would lie
    too low, and those shifted by the median's bias still do: each round is corrected for noise as
    in `correlated`, once for the correlation of boards of this size, twice for that of endless
    votes and verdicts. The models are taken as given: other models are not inferred about.

    Separation, and agreement where both are confident, are those of Arena-Hard, with intervals by
    prompt in place of its rounds; a pair that people do not separate is left out.

    References
    ----------
    .. [1] T. Li et al., "From Crowdsourced Data to High-Quality Benchmarks: Arena-Hard and
       BenchBuilder Pipeline", 2024 (arXiv:2406.11939).
    """
    names = common_models(people, judge)
    moved = moved_boards((people, judge), names, draws)
    estimates = both_correlations(moved, 0, 1, draws.level)
    sides = [board.of_models(names) for board in (people, judge)]
    apart, different = (
        confidence(names, *(rule(*side, draws.level) for side in reversed(sides)))
        for rule in (_separated, _different)
    )
    return BoardsCompared(
        **estimates,
        models=names,
        overlap=apart,
        order_brier=_order_brier(sides[0][0], *sides[1]),
        pairwise=different,
        warnings=_warnings(len(names), _prompts(people, judge)),
    )


def common_models(*boards: Preferences) -> tuple[str, ...]:
    """Return the models that are on all boards, sorted."""
    names = set(boards[0].models).intersection(*(board.models for board in boards[1:]))
    return tuple(sorted(names))


def moved_boards(boards: tuple[Preferences, ...], names: tuple[str, ...], draws: Draws) -> Moved:
    """Draw prompts, the same for all boards, and move each by their influences on it."""
    centred = [board.of_models(names) for board in boards]
    together = np.hstack([influence for _, influence in centred])
    used = (together != 0).any(axis=1)
    drawn = drawn_sums(together[used], draws.rounds if used.sum() >= 2 else 0, draws.rng)
    moved = zip(centred, np.split(drawn, len(boards), axis=1), strict=True)
    pulls = [influence.ravel() for _, influence in centred]
    return Moved(
        tuple(np.vstack([theta, theta + part]) for (theta, _), part in moved),
        np.array([[x @ y for y in pulls] for x in pulls]) / max(1, len(names) - 1),
    )


def _separated(theta: Floats, influence: Floats, level: float) -> Floats:
    """Return 1 or -1 for pairs of models whose intervals lie apart, else 0, shape (n_pairs,)."""
    n_prompts = int((influence != 0).any(axis=1).sum())
    if n_prompts < 2:
        return np.zeros(len(theta) * (len(theta) - 1) // 2)
    error = np.sqrt(influence_variance(influence, n_prompts))
    reach = quantile(level, n_prompts - 1) * error
    first, second = np.triu_indices(len(theta), 1)
    gap = theta[first] - theta[second]
    return np.where(np.abs(gap) > reach[first] + reach[second], np.sign(gap), 0.0)


def _different(
    theta: Floats, influence: Floats, level: float, n_voters: int | None = None
) -> Floats:
    """Return 1 or -1 for pairs of models whose difference excludes 0, else 0, as above."""
    n_prompts = int((influence != 0).any(axis=1).sum())
    first, second = np.triu_indices(len(theta), 1)
    n = n_prompts if n_voters is None else min(n_prompts, n_voters)
    if n < 2:
        return np.zeros(len(first))
    gaps = influence[:, first] - influence[:, second]
    error = np.sqrt(influence_variance(gaps, n_prompts))
    gap = theta[first] - theta[second]
    return np.where(np.abs(gap) > quantile(level, n - 1) * error, np.sign(gap), 0.0)


def ranked(board: Preferences, names: tuple[str, ...]) -> Floats:
    """Return 1 or -1 for pairs of models that a board certainly ranks, else 0, shape (n_pairs,).

    By the interval of the difference, Student's t with one less than the voters or prompts, the
    fewer, at `ERROR` over all pairs.
    """
    level = 1 - ERROR / max(1, math.comb(len(names), 2))
    return _different(*board.of_models(names), level, board.n_voters)


def reversed_pairs(people: Preferences, judge: Preferences) -> tuple[Pair, ...]:
    """Return the pairs that people and the judge certainly rank the opposite way.

    The first is ahead by people. A pair is here only where both boards are certain, so that the
    two share no error.
    """
    names = common_models(people, judge)
    return confidence(names, *(ranked(board, names) for board in (judge, people))).opposite


def _order_brier(people: Floats, theta: Floats, influence: Floats) -> float | None:
    first, second = np.triu_indices(len(theta), 1)
    square = influence.T @ influence
    own = np.diag(square)
    error = np.sqrt(np.maximum(own[first] + own[second] - 2 * square[first, second], 0))
    gap = theta[first] - theta[second]
    sure = (gap != 0) | (error > 0)  # of two models that it never tells apart, it says nothing
    with np.errstate(divide="ignore"):
        probability = scipy.special.ndtr(gap[sure] / error[sure])
    above = (np.sign(people[first] - people[second]) + 1) / 2
    return _share((probability - above[sure]) ** 2)


def _share(values: NDArray[np.generic]) -> float | None:
    return float(np.mean(values.astype(np.float64))) if len(values) else None


def _prompts(*boards: Preferences) -> int:
    return min(int((board.influence != 0).any(axis=1).sum()) for board in boards)


def _warnings(n_models: int, n_prompts: int) -> tuple[str, ...]:
    warnings = []
    if n_models < MIN_MODELS:
        have = f"{n_models} model{' is' if n_models == 1 else 's are'} on both boards"
        warnings.append(f"{have}: a correlation needs {MIN_MODELS} or more.")
    elif n_models < FEW_MODELS:
        warnings.append(
            f"A correlation over {n_models} models says little: with other models it may well be "
            f"another. Compare {FEW_MODELS} or more."
        )
    if n_prompts < max(FEW_PROMPTS, n_models):
        warnings.append(
            f"{n_prompts} prompt{'s'[n_prompts == 1 :]} cannot say how far {n_models} strengths "
            "may be off together: the intervals of the correlations are too narrow."
        )
    return tuple(warnings)


@dataclass(frozen=True, slots=True)
class Contest:
    """By how much one judge's board goes better with people's than another judge's.

    Attributes
    ----------
    models : tuple of str
        Those on all three boards.
    spearman, kendall, pearson : Estimate
        The first judge's correlation less the second's, as found: an interval that holds 0 shows
        no difference. Without an interval where they are the same in every draw.
    """

    models: tuple[str, ...]
    spearman: Estimate
    kendall: Estimate
    pearson: Estimate


def contest(people: Preferences, first: Preferences, second: Preferences, draws: Draws) -> Contest:
    """Compare two judges' boards with people's, the same prompts drawn for all three.

    Intervals as in `judge.studies.boards.compare_boards`.
    """
    names = common_models(people, first, second)
    moved = moved_boards((people, first, second), names, draws)
    ours, theirs = (correlated(moved, 0, judge, freed=False) for judge in (1, 2))
    gaps = {kind: around(ours[kind] - theirs[kind], len(names), draws.level) for kind in ours}
    return Contest(names, **gaps)
