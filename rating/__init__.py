"""Ratings of models from pairwise votes: arrays and mathematics, no input or output."""

from rating.bradley_terry import BradleyTerryFit, fit_bradley_terry
from rating.comparisons import Comparisons
from rating.connectivity import Connectivity, connectivity
from rating.covariance import hessian_covariance, sandwich_covariance
from rating.errors import ConvergenceError, DataError, NotIdentifiedError, RatingError
from rating.jackknife import VoterActivity, VoterCovariance, voter_activity, voter_covariance
from rating.outcome import Outcome
from rating.ranks import RankRanges, critical_value, rank_ranges
from rating.scale import to_nats, to_points
from rating.standings import IntervalMethod, Standing, Standings, standings

__all__ = [
    "BradleyTerryFit",
    "Comparisons",
    "Connectivity",
    "ConvergenceError",
    "DataError",
    "IntervalMethod",
    "NotIdentifiedError",
    "Outcome",
    "RankRanges",
    "RatingError",
    "Standing",
    "Standings",
    "VoterActivity",
    "VoterCovariance",
    "connectivity",
    "critical_value",
    "fit_bradley_terry",
    "hessian_covariance",
    "rank_ranges",
    "sandwich_covariance",
    "standings",
    "to_nats",
    "to_points",
    "voter_activity",
    "voter_covariance",
]
