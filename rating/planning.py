"""Planning of votes: sample sizes that separate models, and pair sampling.

`plan` and `neighbour_gaps` estimate how many more votes separate neighbours on a board, with a
power of 0.8. `uniform_pairs`, `weighted_pairs`, `arena_pairs` and `gain_pairs` give the exact
probability of showing each pair next.
"""

from dataclasses import asdict, dataclass
from math import ceil, sqrt
from typing import Any

import numpy as np
import scipy

from rating.comparisons import Comparisons
from rating.contrasts import WELL_FOUNDED, Inference, named, spread
from rating.decide import FEWEST_SCORED, POWER
from rating.errors import DataError
from rating.fitting import Fit, fit
from rating.leave_out import normal_quantile, quantile
from rating.likelihood import A, B
from rating.options import RateOptions
from rating.ranks import EQUAL_NATS, joint_half_widths
from rating.typing import Floats
from rating.variants import POINTS_PER_NAT, expected_score

# Sample sizes


@dataclass(frozen=True, slots=True)
class NeighbourGap:
    """Two neighbours on a board, and the votes that show their difference with a power of 0.8.

    Attributes
    ----------
    ahead, behind : int
        Indices of the models.
    gap, se : float
        Difference of the strengths and its standard error, in nats.
    separated : bool
        Whether the board claims the difference already, all pairs together.
    more_votes : int or None
        Votes to come on the whole board, in the present mix, until the board claims it; 0 when
        separated, None when the gap is zero: no number of votes separates it, when its error
        is not known, or when the votes are too few.
    more_votes_pair : int or None
        The same for the pair by itself, without regard to the other pairs.
    too_few : bool
        Whether under `WELL_FOUNDED` effective voters, or prompts, are behind the gap, or one of
        the two has won or lost under `FEWEST_SCORED` votes.
    """

    ahead: int
    behind: int
    gap: float
    se: float
    separated: bool
    more_votes: int | None
    more_votes_pair: int | None
    too_few: bool

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON."""
        return asdict(self)


def votes_to_separate(
    lead: float, *, power: float = 0.8, level: float = 0.95, tie_rate: float = 0.0
) -> int:
    """Return the number of head-to-head votes that show a lead with this power.

    A two-sided test of a fair coin at ``1 - level``, with
    ``p = 1 / (1 + 10 ** (-lead / 400))``, needs, rounded up::

        n = ((z(level) / 2 + z(power) * sqrt(p * (1 - p))) / (p - 1/2)) ** 2

    decisive votes; ties decide nothing, so ``n / (1 - tie_rate)`` votes. Votes
    are taken as independent: multiply by the design effect where people vote
    often.

    Parameters
    ----------
    lead : float
        Points between the two models; the sign does not matter.
    power : float, default 0.8
        Chance of showing the lead; at least a half.
    tie_rate : float, default 0
        Share of the votes that are ties of either kind.

    Raises
    ------
    DataError
        If ``lead`` is zero or not finite, ``power``, ``level`` or
        ``tie_rate`` out of range.

    References
    ----------
    .. [1] J. L. Fleiss, B. Levin and M. C. Paik, "Statistical Methods for
       Rates and Proportions", 3rd ed., Wiley, 2003, chapter 2 (one sample,
       without the continuity correction).

    Examples
    --------
    >>> votes_to_separate(50), votes_to_separate(50, tie_rate=0.3)
    (382, 546)
    """
    if lead == 0 or not np.isfinite(lead):
        raise DataError(f"lead must be finite and not zero, not {lead}: equals are never apart.")
    if not 0.5 <= power < 1:
        raise DataError(f"power must lie in [1/2, 1), not {power}.")
    _check_level(level)
    if not 0 <= tie_rate < 1:
        raise DataError(f"tie_rate must lie in [0, 1), not {tie_rate}.")
    p = expected_score(abs(lead))
    needed = quantile(level, np.inf) / 2 + float(scipy.special.ndtri(power)) * sqrt(p * (1 - p))
    return ceil((needed / (p - 0.5)) ** 2 / (1 - tie_rate))


def neighbour_gaps(
    inference: Inference, *, level: float = 0.95, rng: np.random.Generator | None = None
) -> tuple[NeighbourGap, ...]:
    """Estimate how many more votes separate each pair of neighbours with power 0.8.

    With n votes so far, ``n ((half + z(0.8) se) / gap)^2`` in all, where half is what the
    difference must exceed: for the board's claim with all other pairs
    (`rating.ranks.joint_half_widths`), for the pair by itself its own interval. The
    gap is taken to be the estimated one, and the variance to fall as one over the votes under the
    present mix of pairs, voters and prompts: more votes from more people on more prompts.

    Parameters
    ----------
    inference : Inference
        Of the votes so far.
    rng : numpy.random.Generator, optional
        For the claims on all pairs together.

    Returns
    -------
    tuple of NeighbourGap, length n_models - 1
        Strongest pair first.

    Raises
    ------
    DataError
        If ``level`` is out of range.

    Examples
    --------
    Seventy wins to thirty: a gap of 3.9 standard errors is claimed.

    >>> from rating import Comparisons, fit, infer
    >>> sides = ["model_a"] * 70 + ["model_b"] * 30
    >>> data = Comparisons.from_arrays(["x"] * 100, ["y"] * 100, sides)
    >>> gaps = neighbour_gaps(infer(fit(data), data, ()))
    >>> gaps[0].separated, gaps[0].more_votes
    (True, 0)
    """
    _check_level(level)
    theta, data, n_votes = inference.fit.theta, inference.data, inference.data.n_votes
    table = data.table(data.votes)
    decided = table[..., A] + table[..., B].T
    scored = np.minimum(decided.sum(axis=0), decided.sum(axis=1))
    order = np.argsort(-theta, kind="stable")
    ahead, behind = order[:-1], order[1:]
    identity = np.eye(len(inference.fit.x))
    each = inference.of(identity[ahead] - identity[behind])
    rng = np.random.default_rng(0) if rng is None else rng
    board = joint_half_widths(inference, rng=rng, level=level)[ahead, behind]
    further = normal_quantile(1 - POWER)

    too_few = (each.effective < WELL_FOUNDED) | (
        np.minimum(scored[ahead], scored[behind]) < FEWEST_SCORED
    )

    def more(gap: float, half: float, se: float) -> int | None:
        if gap > half:
            return 0
        if not (gap > 0 and np.isfinite(half)):
            return None
        return max(1, ceil(n_votes * (((half + further * se) / gap) ** 2 - 1)))

    return tuple(
        NeighbourGap(i, j, gap, se, gap > wide, None, None, too_few=True)
        if few and gap <= wide
        else NeighbourGap(
            i, j, gap, se, gap > wide, more(gap, wide, se), more(gap, half, se), too_few=few
        )
        for i, j, gap, se, wide, half, few in zip(
            ahead.tolist(),
            behind.tolist(),
            each.value.tolist(),
            np.sqrt(each.variance).tolist(),
            board.tolist(),
            each.half_width(level).tolist(),
            too_few.tolist(),
            strict=True,
        )
    )


def _check_level(level: float) -> None:
    if not 0 < level < 1:
        raise DataError(f"level must lie between 0 and 1, not {level}.")


LEADS = (10, 20, 50, 100, 200)
"""Points between two models, for the table of votes that show such a lead."""


@dataclass(frozen=True, slots=True)
class _Neighbours:
    """Two neighbours on a board.

    Attributes
    ----------
    lead, se : float
        Points.
    met : int
        Votes on this pair.
    separated : bool
        Whether the board claims the difference, all pairs together.
    more_votes, more_votes_pair : int or None
        Votes to come on the whole board, in the present mix, until the board claims it with a
        power of 0.8; and until the pair by itself is separated. None for no number.
    head_to_head : int or None
        Votes on this pair alone that show a lead of this size, four times out of five; as the
        two others None too where a gate would estimate nothing from so little.
    """

    ahead: str
    behind: str
    lead: float
    se: float
    met: int
    separated: bool
    more_votes: int | None
    more_votes_pair: int | None
    head_to_head: int | None


@dataclass(frozen=True, slots=True)
class Plan:
    """What a board lacks.

    Attributes
    ----------
    tie_rate : float
        Share of the votes that are ties of either kind.
    neighbours : tuple of Neighbours
        Strongest first.
    leads : dict of int to int
        Votes on one pair that show a lead of this many points, four times out of five.
    """

    votes: int
    tie_rate: float
    level: float
    neighbours: tuple[_Neighbours, ...]
    leads: dict[int, int]
    warnings: tuple[str, ...]

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON."""
        plain = asdict(self)
        lists = {name: list(plain[name]) for name in ("neighbours", "warnings")}
        return plain | {"power": POWER} | lists


def plan(data: Comparisons, options: RateOptions) -> Plan:
    """Plan how many votes separate the neighbours of a board.

    Head to head, ties as half a win are votes as others, as for a gate: a lead then is one of all
    votes. In other models of ties it is one of the votes that decide.

    Raises
    ------
    DataError
        If the intervals asked for are of another kind than sandwich or hessian.
    NotIdentifiedError
        If the votes identify no rating.
    """
    if options.interval not in ("sandwich", "hessian"):
        raise DataError(f"A plan needs interval sandwich or hessian, not {options.interval!r}.")
    options = options.resolved(data)
    fitted = fit(data, ties=options.ties, ridge=options.ridge)
    rng = np.random.default_rng(options.seed)
    off = spread(fitted, data, options, rng)
    assert off.inference is not None
    gaps = neighbour_gaps(off.inference, level=options.level, rng=rng)
    tied = float(data.weight[data.score_a == 0.5].sum() / data.weight.sum())
    undecided = 0.0 if options.ties == "half" else tied
    table = data.table(data.votes)
    met = table.sum(axis=-1) + table.sum(axis=-1).T
    thin = [gap for gap in gaps if gap.too_few]
    warnings = []
    if thin:
        some = named(
            [f"{fitted.models[gap.ahead]} and {fitted.models[gap.behind]}" for gap in thin]
        )
        warnings.append(
            f"The votes to separate these are not estimated: {some}. It takes {WELL_FOUNDED} "
            f"effective voters and prompts, and each of the two has to win and to lose "
            f"{FEWEST_SCORED} votes (ties do not count)."
        )
    return Plan(
        votes=data.n_votes,
        tie_rate=tied,
        level=options.level,
        neighbours=tuple(
            _neighbours(gap, fitted, int(met[gap.ahead, gap.behind]), undecided, options)
            for gap in gaps
        ),
        leads={
            lead: votes_to_separate(lead, level=options.level, tie_rate=min(undecided, 0.99))
            for lead in LEADS
        },
        warnings=tuple(warnings),
    )


def _neighbours(
    gap: NeighbourGap, fitted: Fit, met: int, tied: float, options: RateOptions
) -> _Neighbours:
    lead = gap.gap * POINTS_PER_NAT
    direct = None
    if gap.gap > EQUAL_NATS and tied < 1 and not gap.too_few:
        direct = votes_to_separate(lead, level=options.level, tie_rate=tied)
    return _Neighbours(
        ahead=fitted.models[gap.ahead],
        behind=fitted.models[gap.behind],
        lead=lead,
        se=gap.se * POINTS_PER_NAT,
        met=met,
        separated=gap.separated,
        more_votes=gap.more_votes,
        more_votes_pair=gap.more_votes_pair,
        head_to_head=direct,
    )


# Pair sampling


EXPLORATION = 0.1


def uniform_pairs(n_models: int) -> Floats:
    """Return the same probability for every pair.

    Returns
    -------
    ndarray of shape (n_models, n_models)
        As all samplers here: symmetric, the probability of an unordered pair in
        both of its places, zero on the diagonal, the upper triangle summing
        to one.

    Raises
    ------
    DataError
        If there are fewer than two models.

    Examples
    --------
    >>> float(uniform_pairs(4)[0, 1])  # six pairs
    0.16666666666666666
    """
    if n_models < 2:
        raise DataError(f"A battle needs two models, not {n_models}.")
    apart = 1.0 - np.eye(n_models)
    return apart / (n_models * (n_models - 1) / 2)


def weighted_pairs(weights: Floats, *, exploration: float = EXPLORATION) -> Floats:
    """Return probabilities in proportion to the product of the two models' weights.

    Parameters
    ----------
    weights : ndarray of shape (n_models,)
        Positive. LMArena's policy of 2024 gave a new model 5 until its 3,000
        votes and the top ten 3. Leave a retired model out instead of giving
        it zero: its pairs could then never be drawn, nor weighted.
    exploration : float, default 0.1
        Share of the draws that goes to all pairs alike, in (0, 1]: no pair
        falls below ``exploration / n_pairs``.

    Raises
    ------
    DataError
        If a weight is not positive and finite, or ``exploration`` is out of
        range.
    """
    bad = weights[~((weights > 0) & np.isfinite(weights))]
    if bad.size:
        raise DataError(f"Weight {bad[0]} is not positive and finite; omit retired models.")
    return _mixed(np.outer(weights, weights), exploration)


def arena_pairs(counts: Floats, variances: Floats, *, exploration: float = EXPLORATION) -> Floats:
    """Return probabilities in proportion to what one more vote takes off a pair's standard error.

    ``sqrt(S / n) - sqrt(S / (n + 1))`` for a pair with n votes of variance S.
    It narrows the win matrix, each pair on its own.

    Parameters
    ----------
    counts : ndarray of shape (n_models, n_models)
        Votes on each pair, symmetric.
    variances : ndarray of shape (n_models, n_models)
        Variance of one vote on each pair, symmetric: `score_variances`.

    Raises
    ------
    DataError
        If a count or a variance is negative, not finite or not symmetric, or
        ``exploration`` is out of range.

    References
    ----------
    .. [1] W.-L. Chiang et al., "Chatbot Arena: An Open Platform for
       Evaluating LLMs by Human Preference", ICML 2024, arXiv 2403.04132,
       section 5, equation 9. Two deviations: a pair without votes counts as
       having one, where the rule has no value; and the share of exploration,
       which keeps the inverse-probability weights bounded.

    Examples
    --------
    >>> counts = np.array([[0, 100, 100], [100, 0, 0], [100, 0, 0]])
    >>> probability = arena_pairs(counts, np.full((3, 3), 0.25))
    >>> probability[1, 2].round(3).item(), probability[0, 1].round(3).item()
    (0.93, 0.035)
    """
    _check_table("counts", counts)
    _check_table("variances", variances)
    seen = np.maximum(counts, 1.0)
    return _mixed(np.sqrt(variances / seen) - np.sqrt(variances / (seen + 1)), exploration)


def score_variances(wins: Floats) -> Floats:
    """Return ``p * (1 - p)`` with ``p = (wins + 1/2) / (votes + 1)``, for `arena_pairs`.

    Smoothed, so that a pair whose few votes agree does not pass for certain.
    Ties as half a win vary less than this.

    Parameters
    ----------
    wins : ndarray of shape (n_models, n_models)
        Score of row against column.

    Examples
    --------
    >>> score_variances(np.array([[0.0, 3.0], [0.0, 0.0]]))[0, 1].item()  # 7/8 * 1/8
    0.109375
    """
    p = (wins + 0.5) / (wins + wins.T + 1)
    return np.asarray(p * (1 - p))


def gain_pairs(
    theta: Floats,
    covariance: Floats,
    *,
    top: int | None = None,
    contrast: Floats | None = None,
    exploration: float = EXPLORATION,
) -> Floats:
    """Return probabilities by what one more vote takes off the neighbours' variances.

    With x the pair's +1 and -1, V the covariance, p the probability of a win and
    ``C`` the sum of ``c c'`` over the contrasts c of neighbours on the board,
    the sum of the variances of their differences falls by::

        p * (1 - p) * x' V C V x / (1 + p * (1 - p) * x' V x)

    Exact for a covariance that is the inverse information, by the formula of
    Sherman and Morrison; a guide for any other. A vote helps every difference
    it bears on, not only its own pair's.

    Parameters
    ----------
    theta : ndarray of shape (n_models,)
        Strengths in nats. A model without votes needs a place and a wide
        covariance, from a fit with a ridge.
    covariance : ndarray of shape (n_models, n_models)
        In squared nats.
    top : int, optional
        Differences among this many of the strongest count; all by default.
    contrast : ndarray of shape (n_models, n_models), optional
        Another C than the neighbours', such as `pair_contrast`.

    Raises
    ------
    DataError
        If ``top`` is not between 2 and n_models, ``covariance`` is not finite
        or not symmetric, or ``exploration`` is out of range.
    """
    wanted = neighbour_contrast(theta, top) if contrast is None else contrast
    gain = vote_gain(theta, covariance, wanted)
    return _mixed(gain, exploration)


def vote_gain(theta: Floats, covariance: Floats, contrast: Floats) -> Floats:
    """Return what one vote on each pair takes off ``trace(contrast @ covariance)``.

    Parameters
    ----------
    contrast : ndarray of shape (n_models, n_models)
        Sum of ``c c'`` over the contrasts of interest.

    Raises
    ------
    DataError
        If ``covariance`` is not finite or not symmetric.
    """
    if not (np.isfinite(covariance).all() and np.allclose(covariance, covariance.T)):
        raise DataError("covariance must be finite and symmetric; fit with a ridge if need be.")
    probability = scipy.special.expit(theta[:, None] - theta[None, :])
    information = probability * probability.T
    drop = _of_differences(covariance @ contrast @ covariance)
    return np.asarray(information * drop / (1 + information * _of_differences(covariance)))


def neighbour_contrast(theta: Floats, top: int | None = None) -> Floats:
    """Return the sum of ``c c'`` over the differences of neighbours among the strongest.

    Raises
    ------
    DataError
        If ``top`` is not between 2 and n_models.
    """
    n_models = len(theta)
    if top is not None and not 2 <= top <= n_models:
        raise DataError(f"top must lie between 2 and {n_models}, not {top}.")
    order = np.argsort(-theta, kind="stable")[:top]
    rows = np.zeros((len(order) - 1, n_models))
    rows[np.arange(len(rows)), order[:-1]] = 1
    rows[np.arange(len(rows)), order[1:]] = -1
    return rows.T @ rows


def pair_contrast(n_models: int, first: int, second: int) -> Floats:
    """Return ``c c'`` of the difference of two models: for a race between them.

    Examples
    --------
    >>> pair_contrast(3, 0, 2).astype(int).tolist()
    [[1, 0, -1], [0, 0, 0], [-1, 0, 1]]
    """
    row = np.zeros(n_models)
    row[first], row[second] = 1, -1
    return np.outer(row, row)


def _mixed(wanted: Floats, exploration: float) -> Floats:
    """Scale to a sum of one over the pairs, and give every pair its share of exploration."""
    if not 0 < exploration <= 1:
        raise DataError(f"exploration must lie in (0, 1], not {exploration}.")
    even = uniform_pairs(len(wanted))
    wanted = np.where(even > 0, (wanted + wanted.T) / 2, 0.0)
    total = wanted.sum() / 2
    if total == 0:  # nothing to learn anywhere
        return even
    return np.asarray((1 - exploration) * wanted / total + exploration * even)


def _of_differences(square: Floats) -> Floats:
    """Return ``x' M x`` for the difference of every two models."""
    diagonal = np.diag(square)
    return np.maximum(diagonal[:, None] + diagonal[None, :] - square - square.T, 0.0)


def _check_table(name: str, table: Floats) -> None:
    bad = table[~((table >= 0) & np.isfinite(table))]
    if bad.size:
        raise DataError(f"{name} holds {bad[0]}; entries must be finite and not negative.")
    if not np.allclose(table, table.T):
        raise DataError(f"{name} must be symmetric: one entry per unordered pair, in both places.")
