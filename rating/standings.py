"""The leaderboard: ratings, intervals, rank ranges, and what they rest on."""

from dataclasses import asdict, dataclass
from typing import Any, Literal

import numpy as np
import scipy  # its submodules load on first use
from numpy.typing import NDArray

from rating.cautions import cautions
from rating.clusters import Activity, activity
from rating.comparisons import Comparisons
from rating.covariance import Covariance, covariance
from rating.errors import DataError
from rating.fit import Fit, fit_bradley_terry
from rating.ranks import RankRanges, joint_rank_ranges
from rating.scale import POINTS_PER_NAT, to_points

IntervalMethod = Literal["cr3-t", "sandwich-normal"]

MIN_EFFECTIVE_FOR_RANKS = 15
MIN_EFFECTIVE_FOR_CLUSTERS = 2
EQUAL_NATS = 1e-9


@dataclass(frozen=True, slots=True)
class Standing:
    """One model's line on the leaderboard.

    Attributes
    ----------
    rating, se, lower, upper : float
        Points (400 per factor ten of odds, all models averaging 1000); the
        interval is for the distance from that average.
    rank : int
        1 for the highest rating; equal ratings share a rank.
    rank_low, rank_high : int
        Best and worst rank the votes allow, for all models at once.
    votes : int
        Battles voted on, on either side.
    strength : float
        Nats, all models summing to zero.
    """

    model: str
    rank: int
    rating: float
    se: float
    lower: float
    upper: float
    rank_low: int
    rank_high: int
    votes: int
    strength: float


@dataclass(frozen=True, slots=True)
class Standings:
    """A leaderboard and what it rests on.

    Attributes
    ----------
    rows : tuple of Standing
        Highest rating first; equal ratings by name.
    level : float
        Of the intervals one by one, and of the rank ranges jointly.
    interval : {"cr3-t", "sandwich-normal"}
        Leaving out one voter at a time, with Student's t; or votes taken as
        independent, with the normal distribution.
    n_votes : int
        Votes counted.
    n_self : int
        Battles of a model against itself, left out.
    n_voters, effective_voters, top_voter_share : int, float, float, or None
        None when voters are not known.
    ranks_claimed : bool
        False when the votes are too few, or from too few voters, for rank
        ranges: they then run from first to last.
    log_loss : float
        Nats per vote.
    warnings : tuple of str
        What a reader should know, in plain words.
    """

    rows: tuple[Standing, ...]
    level: float
    interval: IntervalMethod
    n_votes: int
    n_self: int
    n_voters: int | None
    effective_voters: float | None
    top_voter_share: float | None
    ranks_claimed: bool
    log_loss: float
    warnings: tuple[str, ...]

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON: ``rows`` is a list of dicts, ``warnings`` of strings."""
        plain = asdict(self)
        plain["rows"] = list(plain["rows"])
        plain["warnings"] = list(plain["warnings"])
        return plain


def standings(data: Comparisons, *, rng: np.random.Generator, level: float = 0.95) -> Standings:
    """Rate every model, with intervals that allow for voters.

    Maximum-likelihood Bradley-Terry, a tie of either kind as half a win.
    Intervals leave out one voter at a time (CR3, Student's t with effective
    voters less one degrees of freedom) when voters are known and at least two
    effectively voted; otherwise they treat votes as independent, and a
    warning says so. Rank ranges are claimed from 15 effective voters (votes,
    when voters are not known), and as many as there are models.

    The result depends on the votes and on ``rng``, not on the votes' order.

    Raises
    ------
    NotIdentifiedError
        If there are no votes, or some strength has no finite value.
    DataError
        If ``level`` is not between 0 and 1.

    Examples
    --------
    >>> data = Comparisons.from_arrays(["x"] * 40, ["y"] * 40, ["model_a", "model_b"] * 20)
    >>> board = standings(data, rng=np.random.default_rng(0))
    >>> [(row.model, row.rank, round(row.rating)) for row in board.rows]
    [('x', 1, 1000), ('y', 1, 1000)]
    """
    if not 0 < level < 1:
        raise DataError(f"level must lie between 0 and 1, not {level}.")
    fit = fit_bradley_terry(data)
    voters = None if data.voter is None else activity(data)
    found = _covariance(fit, data, voters)
    effective = data.n_votes if voters is None else voters.effective
    claimed = effective >= max(MIN_EFFECTIVE_FOR_RANKS, data.n_models)
    if claimed:
        ranges = joint_rank_ranges(fit, data, found, rng=rng, level=level)
    else:
        ranges = _no_claim(data.n_models)
    return Standings(
        rows=_rows(fit, data, _half_widths(found, level), found.strengths, ranges),
        level=level,
        interval="cr3-t" if found.method == "cr3" else "sandwich-normal",
        n_votes=data.n_votes,
        n_self=data.n_self,
        n_voters=voters.n_clusters if voters else None,
        effective_voters=voters.effective if voters else None,
        top_voter_share=voters.top_share if voters else None,
        ranks_claimed=claimed,
        log_loss=fit.log_loss,
        warnings=cautions(
            data,
            voters,
            clustered=found.method == "cr3",
            ranks_claimed=claimed,
            single_voter_models=found.lone_models,
        ),
    )


def _covariance(fit: Fit, data: Comparisons, voters: Activity | None) -> Covariance:
    if voters is None or voters.effective < MIN_EFFECTIVE_FOR_CLUSTERS:
        return covariance(fit, data, method="sandwich", cluster=None)
    return covariance(fit, data, method="cr3", cluster="voter")


def _half_widths(found: Covariance, level: float) -> NDArray[np.float64]:
    """Return the half width of each model's interval, in nats."""
    errors = np.sqrt(np.diag(found.strengths))
    return np.asarray(_quantile((1 + level) / 2, found.df) * errors)


def _quantile(probability: float, df: float) -> float:
    if np.isinf(df):
        return float(scipy.special.ndtri(probability))
    return float(scipy.special.stdtrit(df, probability))


def _no_claim(n_models: int) -> RankRanges:
    return RankRanges(low=np.ones(n_models, dtype=int), high=np.full(n_models, n_models))


def _rows(
    fit: Fit,
    data: Comparisons,
    half_widths: NDArray[np.float64],
    covariance: NDArray[np.float64],
    ranges: RankRanges,
) -> tuple[Standing, ...]:
    ratings = to_points(fit.theta)
    errors = POINTS_PER_NAT * np.sqrt(np.diag(covariance))
    reach = POINTS_PER_NAT * half_widths
    ranks = 1 + (fit.theta[:, None] > fit.theta[None, :] + EQUAL_NATS).sum(axis=0)
    votes = data.votes_per_model()
    rows = [
        Standing(
            model=model,
            rank=int(ranks[i]),
            rating=float(ratings[i]),
            se=float(errors[i]),
            lower=float(ratings[i] - reach[i]),
            upper=float(ratings[i] + reach[i]),
            rank_low=int(ranges.low[i]),
            rank_high=int(ranges.high[i]),
            votes=int(votes[i]),
            strength=float(fit.theta[i]),
        )
        for i, model in enumerate(fit.models)
    ]
    return tuple(sorted(rows, key=lambda row: (row.rank, row.model)))
