"""Ratings of models from pairwise votes: arrays and mathematics, no input or output."""

from rating.board import rate
from rating.bootstrap import Bootstrap, bootstrap
from rating.clusters import Activity, Cluster, activity
from rating.comparisons import Comparisons
from rating.connectivity import Connectivity, connectivity
from rating.contrasts import Contrasts, Inference, infer
from rating.deviance import Deviance
from rating.errors import ConvergenceError, DataError, NotIdentifiedError, RatingError
from rating.field import FieldRates, field_rates
from rating.fit import Fit, Parameter, fit, fit_bradley_terry
from rating.goodness import GoodnessOfFit, MisfitTest, goodness_of_fit, misfit_test
from rating.influence import Dropped, Flip, fewest_to_flip
from rating.options import RateOptions
from rating.outcome import Outcome
from rating.planning import NeighbourGap, neighbour_gaps, votes_to_separate
from rating.profile import ProfileIntervals, profile_intervals
from rating.quasi import QuasiErrors, quasi_standard_errors
from rating.ranks import RankRanges, critical_value, rank_ranges
from rating.report import DesignEffect, Estimate, ModelRating, Provenance, Report, VotesUsed
from rating.sandwich import hessian_covariance, sandwich_covariance
from rating.scale import to_nats, to_points
from rating.ties import Ties
from rating.win_rates import WinRates, win_rates

__all__ = [
    "Activity",
    "Bootstrap",
    "Cluster",
    "Comparisons",
    "Connectivity",
    "Contrasts",
    "ConvergenceError",
    "DataError",
    "DesignEffect",
    "Deviance",
    "Dropped",
    "Estimate",
    "FieldRates",
    "Fit",
    "Flip",
    "GoodnessOfFit",
    "Inference",
    "MisfitTest",
    "ModelRating",
    "NeighbourGap",
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
    "Ties",
    "VotesUsed",
    "WinRates",
    "activity",
    "bootstrap",
    "connectivity",
    "critical_value",
    "fewest_to_flip",
    "field_rates",
    "fit",
    "fit_bradley_terry",
    "goodness_of_fit",
    "hessian_covariance",
    "infer",
    "misfit_test",
    "neighbour_gaps",
    "profile_intervals",
    "quasi_standard_errors",
    "rank_ranges",
    "rate",
    "sandwich_covariance",
    "to_nats",
    "to_points",
    "votes_to_separate",
    "win_rates",
]
