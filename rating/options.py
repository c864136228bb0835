"""What can be chosen about a rating, checked once."""

from collections.abc import Collection
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Literal, Self

import numpy as np

from rating.comparisons import Comparisons
from rating.errors import DataError
from rating.likelihood.ties import LIKELIHOODS, Ties

Interval = Literal["sandwich", "hessian", "bootstrap", "profile", "none"]
Clusters = Literal["voter", "prompt", "both", "none"]
Claims = Literal["population", "these-voters"]
BothBad = Literal["tie", "drop", "outcome"]

INTERVALS = ("sandwich", "hessian", "bootstrap", "profile", "none")
CLUSTERS = ("voter", "prompt", "both", "none")
CLAIMS = ("population", "these-voters")
BOTH_BAD = ("tie", "drop", "outcome")


@dataclass(frozen=True, slots=True, kw_only=True)
class RateOptions:
    """How votes are turned into ratings; every field is reported with the result.

    Attributes
    ----------
    ties : {"half", "davidson", "rao-kupper", "grounded"}
    both_bad : {"tie", "drop", "outcome"}
        How the votes were read; grounded ties need ``outcome``.
    interval : {"sandwich", "hessian", "bootstrap", "profile", "none"}
        Sandwich with clusters leaves out one of them at a time (CR3, Student's t).
    cluster : {"voter", "prompt", "both", "none"} or None
        None is what is known of voters and prompts, if the interval can use it: of both, the
        bootstrap takes voters.
    claims : {"population", "these-voters"}
        Whom intervals and ranks speak for: people like the voters, or these voters alone, as if
        each went on voting for ever, with the same share of all votes.
    ridge : float
        See `rating.fit`.
    order_effect : bool
    style : tuple of str
        Names of the features of the comparisons.
    weights : str or None
        What the votes were weighted by; None for votes of equal weight.
    half_life : float or None
        Days in which the weight of a vote halved; None where age did not matter.
    since, until : datetime or None
        The votes were cast from ``since`` on and before ``until``.
    columns : tuple of (str, str)
        Roles and the names of the columns that they were read from, where these were given.
    rounds, seed : int
        Of the bootstrap, and of the draws behind rank ranges.
    level : float
        Of each interval, and of the rank ranges jointly.
    scale : float
        Points for odds of ten to one.
    mean : float
        Average rating (grounded: the rating of strength zero).
    anchor : tuple of (str, float), or None
        A model and the points it stands at, instead of ``mean``. The ratings
        move as one; the intervals stay those of the distance from the average.
    reference : str or None
        Model that strengths and intervals are measured from.
    by : str or None
        Column that parts the votes into groups.
    """

    ties: Ties = "half"
    both_bad: BothBad = "tie"
    interval: Interval = "sandwich"
    cluster: Clusters | None = None
    claims: Claims = "population"
    ridge: float = 0.0
    order_effect: bool = False
    style: tuple[str, ...] = ()
    weights: str | None = None
    half_life: float | None = None
    since: datetime | None = None
    until: datetime | None = None
    columns: tuple[tuple[str, str], ...] = ()
    rounds: int = 1000
    seed: int = 0
    level: float = 0.95
    scale: float = 400.0
    mean: float = 1000.0
    anchor: tuple[str, float] | None = None
    reference: str | None = None
    by: str | None = None

    def __post_init__(self) -> None:
        """Refuse what cannot be, alone or together."""
        _check_names(self)
        _check_numbers(self)
        _check_together(self)
        _check_votes_used(self)

    @property
    def weighted(self) -> bool:
        """Whether votes count unequally."""
        return self.weights is not None or self.half_life is not None

    def resolved(self, data: Comparisons) -> Self:
        """Choose the clusters that the votes allow, where none were asked for.

        Raises
        ------
        DataError
            If the clusters asked for are not known, or a model is not there.
        """
        for role, model in (
            ("reference", self.reference),
            ("anchor", (self.anchor or (None,))[0]),
        ):
            if model is not None and model not in data.models:
                known = _some(data.models)
                raise DataError(f"The {role} {model!r} has no rating; there are {known}.")
        if self.cluster is None:
            return replace(self, cluster=self._known_clusters(data))
        known_kinds = {"voter": data.voter is not None, "prompt": data.prompt is not None}
        wanted = ("voter", "prompt") if self.cluster == "both" else (self.cluster,)
        for kind in wanted:
            if not known_kinds.get(kind, True):
                raise DataError(
                    f"Clusters by {kind} were asked for, and the votes carry no {kind}: "
                    f"add the {kind} of each vote, or choose cluster none."
                )
        return self

    def _known_clusters(self, data: Comparisons) -> Clusters:
        by_voter = data.voter is not None and self.claims == "population"
        by_prompt = data.prompt is not None
        if self.interval not in ("sandwich", "bootstrap"):
            return "none"
        if by_voter and by_prompt and self.interval == "sandwich":
            return "both"
        return "voter" if by_voter else "prompt" if by_prompt else "none"


def _check_names(options: RateOptions) -> None:
    allowed: tuple[tuple[str, str | None, Collection[str]], ...] = (
        ("ties", options.ties, tuple(LIKELIHOODS)),
        ("both_bad", options.both_bad, BOTH_BAD),
        ("interval", options.interval, INTERVALS),
        ("cluster", options.cluster, CLUSTERS),
        ("claims", options.claims, CLAIMS),
    )
    for name, value, values in allowed:
        if value is not None and value not in values:
            raise DataError(f"{name} must be one of {', '.join(values)}, not {value!r}.")


def _check_numbers(options: RateOptions) -> None:
    if not 0 <= options.ridge < np.inf:
        raise DataError(f"ridge must be finite and not negative, not {options.ridge}.")
    if options.rounds < 1:
        raise DataError(f"rounds must be 1 or more, not {options.rounds}.")
    if options.seed < 0:
        raise DataError(f"seed must be 0 or more, not {options.seed}.")
    if not 0 < options.level < 1:
        raise DataError(f"level must lie between 0 and 1, not {options.level}.")
    if not 0 < options.scale < np.inf:
        raise DataError(f"scale must be positive and finite, not {options.scale}.")
    points = options.anchor[1] if options.anchor else options.mean
    if not np.isfinite(points):
        name = "anchor" if options.anchor else "mean"
        raise DataError(f"{name} must be a finite number of points, not {points}.")


def _check_together(options: RateOptions) -> None:
    if options.ties == "grounded" and options.both_bad != "outcome":
        raise DataError(
            "Grounded ties need both bad as an outcome of its own, "
            f"not both_bad {options.both_bad!r}: choose both_bad outcome."
        )
    if options.cluster not in (None, "none") and options.interval in ("hessian", "profile"):
        raise DataError(
            f"A {options.interval} interval takes votes as independent, and cluster is "
            f"{options.cluster!r}: choose interval sandwich, or cluster none."
        )
    if options.claims == "these-voters" and options.cluster in ("voter", "both"):
        raise DataError(
            "Claims for these voters take them as they are, and cluster is "
            f"{options.cluster!r}: leave it out, or choose prompt or none."
        )
    if options.interval == "bootstrap" and options.cluster == "both":
        raise DataError(
            "The bootstrap draws voters or prompts, and cluster is 'both': "
            "choose one of them, or interval sandwich."
        )
    if options.interval == "profile" and options.reference is not None:
        raise DataError(
            "A profile interval is of the distance from the average, and the reference is "
            f"{options.reference!r}: leave it out, or choose interval hessian."
        )


def _check_votes_used(options: RateOptions) -> None:
    if options.half_life is not None and not 0 < options.half_life < np.inf:
        raise DataError(
            f"half_life must be a positive and finite number of days, not {options.half_life}."
        )
    since, until = options.since, options.until
    if since is not None and until is not None and not _utc(since) < _utc(until):
        raise DataError(
            f"since must lie before until, and {since.isoformat()} does not lie before "
            f"{until.isoformat()}."
        )
    unlike = "half_life" if options.half_life is not None else "weights"
    if options.interval in ("hessian", "profile") and (
        options.half_life is not None or options.weights == "sampling"
    ):
        raise DataError(
            f"A {options.interval} interval takes a weight as so many votes, which those by "
            f"{unlike} {getattr(options, unlike)} are not: choose interval sandwich or bootstrap."
        )


def _utc(moment: datetime) -> datetime:
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)


def _some(models: tuple[str, ...], at_most: int = 5) -> str:
    rest = len(models) - at_most
    shown = ", ".join(map(repr, models[:at_most]))
    return f"{shown} and {rest} more" if rest > 0 else shown
