"""Ratings of models from pairwise votes: arrays and mathematics, no input or output."""

from rating.bootstrap import Bootstrap, bootstrap
from rating.clusters import Activity, Cluster, activity
from rating.comparisons import Comparisons
from rating.connectivity import Connectivity, connectivity
from rating.covariance import Covariance, Method, covariance
from rating.deviance import Deviance
from rating.errors import ConvergenceError, DataError, NotIdentifiedError, RatingError
from rating.fit import Fit, Parameter, fit, fit_bradley_terry
from rating.goodness import GoodnessOfFit, goodness_of_fit
from rating.options import RateOptions
from rating.outcome import Outcome
from rating.profile import ProfileIntervals, profile_intervals
from rating.quasi import QuasiErrors, quasi_standard_errors
from rating.ranks import RankRanges, critical_value, rank_ranges
from rating.report import Estimate, ModelRating, Provenance, Report, VotesUsed, rate
from rating.sandwich import hessian_covariance, sandwich_covariance
from rating.scale import to_nats, to_points
from rating.standings import IntervalMethod, Standing, Standings, standings
from rating.ties import Ties
from rating.win_rates import WinRates, win_rates

__all__ = [
    "Activity",
    "Bootstrap",
    "Cluster",
    "Comparisons",
    "Connectivity",
    "ConvergenceError",
    "Covariance",
    "DataError",
    "Deviance",
    "Estimate",
    "Fit",
    "GoodnessOfFit",
    "IntervalMethod",
    "Method",
    "ModelRating",
    "NotIdentifiedError",
    "Outcome",
    "Parameter",
    "ProfileIntervals",
    "Provenance",
    "QuasiErrors",
    "RankRanges",
    "RateOptions",
    "RatingError",
    "Report",
    "Standing",
    "Standings",
    "Ties",
    "VotesUsed",
    "WinRates",
    "activity",
    "bootstrap",
    "connectivity",
    "covariance",
    "critical_value",
    "fit",
    "fit_bradley_terry",
    "goodness_of_fit",
    "hessian_covariance",
    "profile_intervals",
    "quasi_standard_errors",
    "rank_ranges",
    "rate",
    "sandwich_covariance",
    "standings",
    "to_nats",
    "to_points",
    "win_rates",
]
