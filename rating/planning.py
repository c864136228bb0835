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
from rating.uncertainty.ranks import EQUAL_NATS
from rating.uncertainty.spread import spread
from rating.uncertainty.student import quantile


@dataclass(frozen=True, slots=True)
class NeighbourGap:
    """Two neighbours on a board, and the votes until their difference stands up.

    Attributes
    ----------
    ahead, behind : int
        Indices of the models.
    gap, se : float
        Difference of the strengths and its standard error, in nats.
    separated : bool
        Whether the difference stands up already.
    more_votes : int or None
        Votes to come on the whole board, in the present mix; 0 when
        separated, None when the gap is zero: no number of votes separates it,
        or when nothing can be said of how sure it is.
    """

    ahead: int
    behind: int
    gap: float
    se: float
    separated: bool
    more_votes: int | None

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


def neighbour_gaps(inference: Inference, *, level: float = 0.95) -> tuple[NeighbourGap, ...]:
    """Say for each pair of neighbours how many more votes separate it.

    The gap is taken to be what the votes say it is, and the variance to fall
    as one over the votes under the present mix of pairs and voters: more
    votes from more people, not more from the same. A gap stands up when it
    exceeds its half-width, by the voters and prompts behind this pair
    (`rating.uncertainty.contrasts`); one pair at a time, so the ranks of many models
    together need more. Where the true gap is the estimated one, the votes
    given reach it in half of all cases.

    Parameters
    ----------
    inference : Inference
        Of the votes so far.

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
    Sixty wins to forty: a gap of 2.0 standard errors stands up.

    >>> from rating import Comparisons, fit, infer
    >>> sides = ["model_a"] * 60 + ["model_b"] * 40
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
    half = each.half_width(level)
    gaps = []
    for i, j, gap, reach, se in zip(
        ahead.tolist(), behind.tolist(), each.value, half, np.sqrt(each.variance), strict=True
    ):
        apart = bool(gap > reach)
        known = gap > 0 and np.isfinite(reach)
        more = max(0, ceil(n_votes * ((reach / gap) ** 2 - 1))) if known else None
        gaps.append(NeighbourGap(i, j, float(gap), float(se), apart, more))
    return tuple(gaps)


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
        Whether the lead exceeds what chance explains, this pair alone.
    more_votes : int or None
        Votes to come on the whole board, in the present mix; None for no number.
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
        return plain | {"neighbours": list(plain["neighbours"])}


def plan(data: Comparisons, options: RateOptions) -> Plan:
    """Say how many votes separate the neighbours of a board.

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
    off = spread(fitted, data, options, np.random.default_rng(options.seed))
    assert off.inference is not None
    gaps = neighbour_gaps(off.inference, level=options.level)
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
        head_to_head=direct,
    )
