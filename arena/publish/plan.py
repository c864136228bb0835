"""How many votes a board lacks."""

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

import rating
from arena.publish.rate import read_source
from rating import Comparisons, Fit, RateOptions
from rating.errors import DataError
from rating.planning.votes import NeighbourGap, neighbour_gaps, votes_to_separate
from rating.scale import POINTS_PER_NAT
from rating.tables.counts import comparisons
from rating.uncertainty.ranks import EQUAL_NATS
from rating.uncertainty.spread import spread

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


def plan_source(source: str, options: RateOptions) -> Plan:
    """Say how many votes separate the neighbours of a board.

    Raises
    ------
    ArenaError
        As `arena.publish.rate.rate_source`; and if the intervals are of another kind.
    """
    if options.interval not in ("sandwich", "hessian"):
        msg = f"A plan needs interval sandwich or hessian, not {options.interval!r}."
        raise DataError(msg)
    data = comparisons(read_source(source, options))
    return _plan(data, options.resolved(data))


def _plan(data: Comparisons, options: RateOptions) -> Plan:
    found = rating.fit(data, ties=options.ties, ridge=options.ridge)
    off = spread(found, data, options, np.random.default_rng(options.seed))
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
            _neighbours(gap, found, int(met[gap.ahead, gap.behind]), tied, options) for gap in gaps
        ),
        leads={
            lead: votes_to_separate(lead, level=options.level, tie_rate=min(tied, 0.99))
            for lead in LEADS
        },
    )


def _neighbours(
    gap: NeighbourGap, found: Fit, met: int, tied: float, options: RateOptions
) -> Neighbours:
    lead = gap.gap * POINTS_PER_NAT
    direct = None
    if gap.gap > EQUAL_NATS and tied < 1:
        direct = votes_to_separate(lead, level=options.level, tie_rate=tied)
    return Neighbours(
        ahead=found.models[gap.ahead],
        behind=found.models[gap.behind],
        lead=lead,
        se=gap.se * POINTS_PER_NAT,
        met=met,
        separated=gap.separated,
        more_votes=gap.more_votes,
        head_to_head=direct,
    )
