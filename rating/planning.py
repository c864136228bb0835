"""How many votes a claim needs, and when one may stop: power and votes to come."""

from dataclasses import asdict, dataclass
from math import ceil, sqrt
from typing import Any

import numpy as np
import scipy  # its submodules load on first use

from rating.comparisons import Comparisons
from rating.elo import POINTS_PER_NAT, expected_score
from rating.errors import DataError
from rating.fitting import Fit, fit
from rating.options import RateOptions
from rating.uncertainty.contrasts import Inference
from rating.uncertainty.ranks import EQUAL_NATS, joint_half_widths
from rating.uncertainty.sequence import POWER
from rating.uncertainty.spread import spread
from rating.uncertainty.student import normal_quantile, quantile


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
        separated, None when the gap is zero: no number of votes separates it, or when its error
        is not known.
    more_votes_pair : int or None
        The same for the pair by itself, without regard to the other pairs.
    """

    ahead: int
    behind: int
    gap: float
    se: float
    separated: bool
    more_votes: int | None
    more_votes_pair: int | None

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON."""
        return asdict(self)


def votes_to_separate(
    lead: float, *, power: float = 0.8, level: float = 0.95, tie_rate: float = 0.0
) -> int:
    """Return the head-to-head votes that show a lead with this power.

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
    _check_plan(lead, power, level)
    if not 0 <= tie_rate < 1:
        raise DataError(f"tie_rate must lie in [0, 1), not {tie_rate}.")
    p = expected_score(abs(lead))
    needed = quantile(level, np.inf) / 2 + float(scipy.special.ndtri(power)) * sqrt(p * (1 - p))
    return ceil((needed / (p - 0.5)) ** 2 / (1 - tie_rate))


def neighbour_gaps(
    inference: Inference, *, level: float = 0.95, rng: np.random.Generator | None = None
) -> tuple[NeighbourGap, ...]:
    """Plan for each pair of neighbours how many more votes separate it with a power of 0.8.

    With n votes so far, ``n ((half + z(0.8) se) / gap)^2`` in all, where half is what the
    difference must exceed: for the board's claim with all other pairs
    (`rating.uncertainty.ranks.joint_half_widths`), for the pair by itself its own interval. The
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
    theta, n_votes = inference.fit.theta, inference.data.n_votes
    order = np.argsort(-theta, kind="stable")
    ahead, behind = order[:-1], order[1:]
    identity = np.eye(len(inference.fit.x))
    each = inference.of(identity[ahead] - identity[behind])
    rng = np.random.default_rng(0) if rng is None else rng
    board = joint_half_widths(inference, rng=rng, level=level)[ahead, behind]
    further = normal_quantile(1 - POWER)

    def more(gap: float, half: float, se: float) -> int | None:
        if gap > half:
            return 0
        if not (gap > 0 and np.isfinite(half)):
            return None
        return max(1, ceil(n_votes * (((half + further * se) / gap) ** 2 - 1)))

    return tuple(
        NeighbourGap(i, j, gap, se, gap > wide, more(gap, wide, se), more(gap, half, se))
        for i, j, gap, se, wide, half in zip(
            ahead.tolist(),
            behind.tolist(),
            each.value.tolist(),
            np.sqrt(each.variance).tolist(),
            board.tolist(),
            each.half_width(level).tolist(),
            strict=True,
        )
    )


def _check_plan(lead: float, power: float, level: float) -> None:
    if lead == 0 or not np.isfinite(lead):
        raise DataError(f"lead must be finite and not zero, not {lead}: equals are never apart.")
    if not 0.5 <= power < 1:
        raise DataError(f"power must lie in [1/2, 1), not {power}.")
    _check_level(level)


def _check_level(level: float) -> None:
    if not 0 < level < 1:
        raise DataError(f"level must lie between 0 and 1, not {level}.")


LEADS = (10, 20, 50, 100, 200)
"""Points between two models, for the table of votes that show such a lead."""


@dataclass(frozen=True, slots=True)
class Neighbours:
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
        Votes on this pair alone that show a lead of this size, four times out of five.
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
        Votes on one pair that show a lead of so many points, four times out of five.
    """

    votes: int
    tie_rate: float
    level: float
    neighbours: tuple[Neighbours, ...]
    leads: dict[int, int]

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON."""
        plain = asdict(self)
        return plain | {"power": POWER, "neighbours": list(plain["neighbours"])}


def plan(data: Comparisons, options: RateOptions) -> Plan:
    """Plan how many votes separate the neighbours of a board.

    Raises
    ------
    DataError
        If the intervals asked for are of another kind than sandwich or hessian.
    NotIdentifiedError
        If the votes identify no rating.
    """
    if options.interval not in ("sandwich", "hessian"):
        msg = f"A plan needs interval sandwich or hessian, not {options.interval!r}."
        raise DataError(msg)
    options = options.resolved(data)
    fitted = fit(data, ties=options.ties, ridge=options.ridge)
    rng = np.random.default_rng(options.seed)
    off = spread(fitted, data, options, rng)
    assert off.inference is not None
    gaps = neighbour_gaps(off.inference, level=options.level, rng=rng)
    tied = float(data.weight[data.score_a == 0.5].sum() / data.weight.sum())
    table = data.table(data.votes).sum(axis=-1)
    met = table + table.T
    return Plan(
        votes=data.n_votes,
        tie_rate=tied,
        level=options.level,
        neighbours=tuple(
            _neighbours(gap, fitted, int(met[gap.ahead, gap.behind]), tied, options)
            for gap in gaps
        ),
        leads={
            lead: votes_to_separate(lead, level=options.level, tie_rate=min(tied, 0.99))
            for lead in LEADS
        },
    )


def _neighbours(
    gap: NeighbourGap, fitted: Fit, met: int, tied: float, options: RateOptions
) -> Neighbours:
    lead = gap.gap * POINTS_PER_NAT
    direct = None
    if gap.gap > EQUAL_NATS and tied < 1:
        direct = votes_to_separate(lead, level=options.level, tie_rate=tied)
    return Neighbours(
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
