"""Two boards of the same models, one by people's votes and one by a judge's verdicts."""

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import scipy  # its submodules load on first use
from numpy.typing import NDArray

from judge.studies.correlation import FEW_MODELS, MIN_MODELS, row_correlations
from judge.studies.items import Estimate
from judge.studies.preferences import Preferences
from judge.studies.resampling import FEW_PROMPTS, drawn_sums, interval, with_width
from rating.typing import Floats

KINDS = ("spearman", "kendall", "pearson")
NOISE_FREED = "_noise_freed"
FIGURES = (*KINDS, *(kind + NOISE_FREED for kind in KINDS))
"""Correlations as found, and freed of the noise in both boards."""

_NORMAL: dict[str, tuple[Callable[[Floats], Floats], Callable[[Floats], Floats]]] = {
    "spearman": (
        lambda r: np.asarray(2 * np.sin(math.pi * r / 6)),
        lambda r: np.asarray(6 / math.pi * np.arcsin(r / 2)),
    ),
    "kendall": (
        lambda r: np.asarray(np.sin(math.pi * r / 2)),
        lambda r: np.asarray(2 / math.pi * np.arcsin(r)),
    ),
    "pearson": (lambda r: r, lambda r: r),
}
"""From a correlation to Pearson's of a bivariate normal law that has it, and back."""
_NOTHING_LEFT = 1e-9


@dataclass(frozen=True, slots=True)
class BoardsCompared:
    """How a judge's board goes with people's.

    Attributes
    ----------
    models : tuple of str
        Those on both boards.
    spearman, kendall, pearson : Estimate
        Of the strengths as found, with the interval of boards of as many votes and verdicts;
        ``n`` is the number of models.
    spearman_noise_freed, kendall_noise_freed, pearson_noise_freed : Estimate
        Of the boards of endless votes and verdicts: noise lowers a correlation.
    separated_by_people, separated_by_judge : float or None
        Share of the pairs of models whose intervals do not overlap.
    confident_agreement : float or None
        Over the pairs that people separate: 1 where the judge separates them the same way, -1
        the other way, 0 where it does not; the mean. None where people separate none.
    order_brier : float or None
        Mean squared distance of the judge's chance that one model of a pair is the better one
        from the order by people; pairs of the same strength without an error are left out, None
        where no other is there.
    warnings : tuple of str
    """

    models: tuple[str, ...]
    spearman: Estimate
    kendall: Estimate
    pearson: Estimate
    spearman_noise_freed: Estimate
    kendall_noise_freed: Estimate
    pearson_noise_freed: Estimate
    separated_by_people: float | None
    separated_by_judge: float | None
    confident_agreement: float | None
    order_brier: float | None
    warnings: tuple[str, ...]


def compare_boards(
    people: Preferences,
    judge: Preferences,
    *,
    rounds: int = 1000,
    rng: np.random.Generator,
    level: float = 0.95,
) -> BoardsCompared:
    """Compare two boards over the models that both have.

    Intervals carry the uncertainty of both: whole prompts are drawn, votes and verdicts together,
    and both boards move by the prompts' influences (one step, no refits). Noise in either board
    lowers a correlation, and drawing adds it once more, so percentiles of the rounds would lie
    too low, and those shifted by the median's bias still do: each round is corrected for noise as
    in `correlated`, once for the correlation of boards of this size, twice for that of endless
    votes and verdicts. The models are taken as given: nothing is said of others.

    Separation, and agreement where both are confident, are those of Arena-Hard, with intervals by
    prompt in place of its rounds; a pair that people do not separate is left out.

    References
    ----------
    .. [1] T. Li et al., "From Crowdsourced Data to High-Quality Benchmarks: Arena-Hard and
       BenchBuilder Pipeline", 2024 (arXiv:2406.11939).
    """
    names = common_models(people, judge)
    moved = moved_boards((people, judge), names, rounds, rng)
    found = both_correlations(moved, 0, 1, level)
    sides = [board.of_models(names) for board in (people, judge)]
    apart = [_separated(theta, influence, level) for theta, influence in sides]
    return BoardsCompared(
        models=names,
        **found,
        separated_by_people=_share(apart[0] != 0),
        separated_by_judge=_share(apart[1] != 0),
        confident_agreement=_share((apart[0] * apart[1])[apart[0] != 0]),
        order_brier=_order_brier(sides[0][0], *sides[1]),
        warnings=_warnings(len(names), _prompts(people, judge)),
    )


def common_models(*boards: Preferences) -> tuple[str, ...]:
    """Return the models that are on all boards, sorted."""
    names = set(boards[0].models).intersection(*(board.models for board in boards[1:]))
    return tuple(sorted(names))


@dataclass(frozen=True, slots=True, eq=False)
class Moved:
    """Boards as found, and as each round moves them.

    Attributes
    ----------
    theta : tuple of ndarray of shape (1 + rounds, n_models)
        One a board; the first row is as found.
    noise : ndarray of shape (n_boards, n_boards)
        What the uncertainty of strengths adds to the variance of a board over its models, and to
        the covariance of two.
    """

    theta: tuple[Floats, ...]
    noise: Floats


def moved_boards(
    boards: tuple[Preferences, ...],
    names: tuple[str, ...],
    rounds: int,
    rng: np.random.Generator,
) -> Moved:
    """Draw prompts, the same for all boards, and move each by their influences on it."""
    centred = [board.of_models(names) for board in boards]
    together = np.hstack([influence for _, influence in centred])
    used = (together != 0).any(axis=1)
    rounds = rounds if used.sum() >= 2 else 0
    drawn = drawn_sums(together[used], rounds, rng)
    moved = zip(centred, np.split(drawn, len(boards), axis=1), strict=True)
    pulls = [influence.ravel() for _, influence in centred]
    return Moved(
        tuple(np.vstack([theta, theta + part]) for (theta, _), part in moved),
        np.array([[x @ y for y in pulls] for x in pulls]) / max(1, len(names) - 1),
    )


def both_correlations(moved: Moved, first: int, second: int, level: float) -> dict[str, Estimate]:
    """Estimate each of `KINDS` as found and freed of noise, by the names of `FIGURES`."""
    n = moved.theta[0].shape[1]
    return {
        name: around(values, n, level)
        for freed, suffix in ((False, ""), (True, NOISE_FREED))
        for kind, values in correlated(moved, first, second, freed=freed).items()
        for name in (kind + suffix,)
    }


def correlated(moved: Moved, first: int, second: int, *, freed: bool) -> dict[str, Floats]:
    """Correlate two boards in each row: the data, then each round, less the noise of drawing.

    The boards found hold the noise of the data, and a round as much again. With ``s`` the
    variances of a row's boards, ``n`` their noise and k how often it is taken away, a correlation
    r becomes

    ::

        (r sqrt(s_1 s_2) - k n_12) / sqrt((s_1 - k n_1) (s_2 - k n_2))

    clipped to -1 and 1, where it ends up if noise leaves no variance. Rank correlations go
    through the Pearson correlation of the normal law that has them, and back.

    Parameters
    ----------
    freed : bool
        Whether the noise of the data is taken away as well: k is 1 for the data and 2 for a
        round, else 0 and 1.

    Returns
    -------
    dict of str to ndarray of shape (1 + rounds,)
        For each of `KINDS`; NaN where a board does not vary, or has fewer than three models.

    References
    ----------
    .. [1] C. Spearman, "The proof and measurement of association between two things", American
       Journal of Psychology 15(1), 1904 (the correction for attenuation).
    .. [2] M. Kendall and J. D. Gibbons, Rank Correlation Methods, 5th ed., 1990.
    """
    one, other = moved.theta[first], moved.theta[second]
    if one.shape[1] < MIN_MODELS:
        return {kind: np.full(len(one), np.nan) for kind in KINDS}
    rows = row_correlations(other, one)
    places = np.ix_([first, second], [first, second])
    spread = one.var(axis=1, ddof=1), other.var(axis=1, ddof=1)
    times = int(freed) + (np.arange(len(one)) > 0)
    noise = times[:, None, None] * moved.noise[places]
    left = {kind: _without_noise(kind, rows[kind], spread, noise) for kind in KINDS}
    return {kind: np.where(times > 0, left[kind], rows[kind]) for kind in KINDS}


def around(values: Floats, n: int, level: float) -> Estimate:
    """Return the first value, with the percentile interval of the others, widened to hold it.

    Without an interval where the others are all equal.
    """
    value = float(values[0])
    if math.isnan(value):
        return Estimate(None, None, None, n)
    if len(values) == 1:
        return Estimate(value, None, None, n)
    lower, upper = interval(values[1:], level)
    if lower is None or upper is None:
        return Estimate(value, lower, upper, n)
    return Estimate(value, *with_width(min(lower, value), max(upper, value)), n)


def _without_noise(kind: str, raw: Floats, spread: tuple[Floats, Floats], noise: Floats) -> Floats:
    to_normal, back = _NORMAL[kind]
    left = [np.maximum(s - noise[:, k, k], _NOTHING_LEFT * s) for k, s in enumerate(spread)]
    shared = to_normal(raw) * np.sqrt(spread[0] * spread[1]) - noise[:, 0, 1]
    whole = np.sqrt(left[0] * left[1])
    return back(np.clip(shared / np.where(whole > 0, whole, np.nan), -1, 1))


def _separated(theta: Floats, influence: Floats, level: float) -> Floats:
    """Return 1 or -1 for pairs of models whose intervals lie apart, else 0, shape (n_pairs,)."""
    n_prompts = int((influence != 0).any(axis=1).sum())
    if n_prompts < 2:
        return np.zeros(len(theta) * (len(theta) - 1) // 2)
    error = np.sqrt(n_prompts / (n_prompts - 1) * (influence**2).sum(axis=0))
    reach = float(scipy.special.stdtrit(n_prompts - 1, (1 + level) / 2)) * error
    first, second = np.triu_indices(len(theta), 1)
    gap = theta[first] - theta[second]
    return np.where(np.abs(gap) > reach[first] + reach[second], np.sign(gap), 0.0)


def _order_brier(people: Floats, theta: Floats, influence: Floats) -> float | None:
    first, second = np.triu_indices(len(theta), 1)
    square = influence.T @ influence
    own = np.diag(square)
    error = np.sqrt(np.maximum(own[first] + own[second] - 2 * square[first, second], 0))
    gap = theta[first] - theta[second]
    said = (gap != 0) | (error > 0)  # of two models that it never tells apart, it says nothing
    with np.errstate(divide="ignore"):
        chance = scipy.special.ndtr(gap[said] / error[said])
    above = (np.sign(people[first] - people[second]) + 1) / 2
    return _share((chance - above[said]) ** 2)


def _share(values: NDArray[np.generic]) -> float | None:
    return float(np.mean(values.astype(np.float64))) if len(values) else None


def _prompts(*boards: Preferences) -> int:
    return min(int((board.influence != 0).any(axis=1).sum()) for board in boards)


def _warnings(n_models: int, n_prompts: int) -> tuple[str, ...]:
    found = []
    if n_models < MIN_MODELS:
        have = f"{n_models} model{' is' if n_models == 1 else 's are'} on both boards"
        found.append(f"{have}: a correlation needs {MIN_MODELS} or more.")
    elif n_models < FEW_MODELS:
        found.append(
            f"A correlation over {n_models} models says little: with other models it may well be "
            f"another. Compare {FEW_MODELS} or more."
        )
    if n_prompts < max(FEW_PROMPTS, n_models):
        found.append(
            f"{n_prompts} prompt{'s'[n_prompts == 1 :]} cannot say how far {n_models} strengths "
            "may be off together: the intervals of the correlations are too narrow."
        )
    return tuple(found)


@dataclass(frozen=True, slots=True)
class Contest:
    """By how much one judge's board goes better with people's than another judge's.

    Attributes
    ----------
    models : tuple of str
        Those on all three boards.
    spearman, kendall, pearson : Estimate
        The first judge's correlation less the second's, as found: with an interval that holds 0
        the two are not told apart. Without an interval where they are the same in every draw.
    """

    models: tuple[str, ...]
    spearman: Estimate
    kendall: Estimate
    pearson: Estimate


def contest(
    people: Preferences,
    first: Preferences,
    second: Preferences,
    *,
    rounds: int = 1000,
    rng: np.random.Generator,
    level: float = 0.95,
) -> Contest:
    """Compare two judges' boards with people's, the same prompts drawn for all three.

    Intervals as in `judge.studies.boards.compare_boards`.
    """
    names = common_models(people, first, second)
    moved = moved_boards((people, first, second), names, rounds, rng)
    ours, theirs = (correlated(moved, 0, judge, freed=False) for judge in (1, 2))
    gaps = {kind: around(ours[kind] - theirs[kind], len(names), level) for kind in ours}
    return Contest(names, gaps["spearman"], gaps["kendall"], gaps["pearson"])
