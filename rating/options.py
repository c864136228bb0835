"""What can be chosen about a rating, checked once."""

import math
from collections.abc import Collection
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Literal, Self, get_args

from rating.errors import DataError
from rating.outcome import Ties

if TYPE_CHECKING:
    from rating.comparisons import Comparisons

Interval = Literal["sandwich", "hessian", "bootstrap", "profile", "none"]
Clusters = Literal["voter", "prompt", "both", "none"]
Claims = Literal["population", "these-voters"]
BothBad = Literal["tie", "drop", "outcome"]

MEAN_POINTS = 1000.0
FEWEST_ROUNDS = 100
"""Rounds of the bootstrap, from which the ends of a 95% interval are not just extremes."""
KAPPAS: tuple[float, ...] = (1.5, 2.0, 8.0)
"""How many times its share among the votes a category may have in other mixes, by default."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RateOptions:
    """Options of a rating; all of them are reported with the result.

    Attributes
    ----------
    ties : {"half", "davidson", "rao-kupper", "grounded"}
        How ties enter the likelihood.
    both_bad : {"tie", "drop", "outcome"}
        How votes for "both are bad" count; grounded ties need outcome.
    interval : {"sandwich", "hessian", "bootstrap", "profile", "none"}
        Method of the confidence intervals. With clusters, sandwich is the CR3 jackknife with
        Student's t.
    cluster : {"voter", "prompt", "both", "none"} or None
        Cluster variable of intervals. Default: both voter and prompt, as far as they are known
        and the interval supports it (the bootstrap uses voters).
    claims : {"population", "these-voters"}
        Inference for the population of voters, or for these voters only, assuming each keeps
        their share of the votes.
    ridge : float
        Ridge penalty: adds (value / 2) × sum of squared strengths to the loss.
    order_effect : bool
        Estimate an advantage of side A.
    style : tuple of str
        Adjust for COLUMN, or for COLUMN_a and COLUMN_b; log2:COLUMN for log2(a / b); repeatable.
    weights : str or None
        Column of vote weights; sampling: inverse sampling probability of the pair.
    half_life : float or None
        Half-life of a vote's weight in days.
    since : datetime or None
        Use votes from this time on; 2026-01-31, or with a time.
    until : datetime or None
        Use votes before this time.
    columns : tuple of (str, str)
        Read one of our columns from theirs, such as voter=user; repeatable.
    rounds : int
        Number of bootstrap resamples.
    seed : int
        Random seed of the bootstrap and of the draws behind rank intervals.
    level : float
        Confidence level of each interval, and of all rank intervals together.
    scale : float
        Points for odds of ten to one.
    mean : float
        Mean rating (with grounded ties: the rating of strength zero).
    anchor : tuple of (str, float), or None
        Model and its rating, instead of the mean. Shifts all ratings and their limits; widths
        remain those of differences from the average.
    reference : str or None
        Model with strength 0: strengths and intervals are differences from it.
    by : str or None
        Stratify by this column: one board per value.
    pool : bool
        Partially pool the strata: each is shrunk towards the overall ratings as the votes suggest.
        With three or more strata, a warning may name outliers.
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
    mean: float = MEAN_POINTS
    anchor: tuple[str, float] | None = None
    reference: str | None = None
    by: str | None = None
    pool: bool = False

    def __post_init__(self) -> None:
        """Refuse what cannot be, alone or together."""
        allowed: tuple[tuple[str, str | None, Collection[str]], ...] = (
            ("ties", self.ties, get_args(Ties)),
            ("both_bad", self.both_bad, get_args(BothBad)),
            ("interval", self.interval, get_args(Interval)),
            ("cluster", self.cluster, get_args(Clusters)),
            ("claims", self.claims, get_args(Claims)),
        )
        for name, value, values in allowed:
            if value is not None and value not in values:
                raise DataError(f"{name} must be one of {', '.join(values)}, not {value!r}.")
        _check_numbers(self)
        _check_together(self)
        _check_votes_used(self)
        if self.pool:
            _check_pool(self)

    @property
    def weighted(self) -> bool:
        """Whether votes count unequally."""
        return self.weights is not None or self.half_life is not None

    def resolved(self, data: "Comparisons", *, in_parts: bool = False) -> Self:
        """Choose the clusters that the votes allow, where none were asked for.

        Parameters
        ----------
        in_parts : bool
            Whether voters are known part by part, where ``data`` does not know them.

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
                rest = len(data.models) - 5
                shown = ", ".join(map(repr, data.models[:5]))
                known = f"{shown} and {rest} more" if rest > 0 else shown
                raise DataError(f"The {role} {model!r} has no rating; there are {known}.")
        voters = data.voter is not None or in_parts
        if self.cluster is None:
            return replace(self, cluster=self._known_clusters(voters, data.prompt is not None))
        known_kinds = {"voter": voters, "prompt": data.prompt is not None}
        wanted = ("voter", "prompt") if self.cluster == "both" else (self.cluster,)
        for kind in wanted:
            if not known_kinds.get(kind, True):
                raise DataError(
                    f"Clusters by {kind} were asked for, and the votes carry no {kind}: "
                    f"add the {kind} of each vote, or choose cluster none."
                )
        return self

    def _known_clusters(self, by_voter: bool, by_prompt: bool) -> Clusters:
        by_voter = by_voter and self.claims == "population"
        if self.interval not in ("sandwich", "bootstrap"):
            return "none"
        if by_voter and by_prompt and self.interval == "sandwich":
            return "both"
        return "voter" if by_voter else "prompt" if by_prompt else "none"


def _check_numbers(options: RateOptions) -> None:
    if not 0 <= options.ridge < math.inf:
        raise DataError(f"ridge must be finite and not negative, not {options.ridge}.")
    if options.rounds < FEWEST_ROUNDS:
        raise DataError(
            f"rounds must be {FEWEST_ROUNDS} or more for an interval, not {options.rounds}."
        )
    if options.seed < 0:
        raise DataError(f"seed must be 0 or more, not {options.seed}.")
    if not 0 < options.level < 1:
        raise DataError(f"level must lie between 0 and 1, not {options.level}.")
    if not 0 < options.scale < math.inf:
        raise DataError(f"scale must be positive and finite, not {options.scale}.")
    points = options.anchor[1] if options.anchor else options.mean
    if not math.isfinite(points):
        name = "anchor" if options.anchor else "mean"
        raise DataError(f"{name} must be a finite number of points, not {points}.")


def _check_together(options: RateOptions) -> None:
    if options.ties == "grounded" and options.both_bad != "outcome":
        raise DataError(
            "Grounded ties need both bad as an outcome of its own, "
            f"not both_bad {options.both_bad!r}: choose both_bad outcome."
        )
    if options.anchor is not None and options.mean != MEAN_POINTS:
        raise DataError(
            f"mean {options.mean:g} and anchor {options.anchor[0]!r} both say where the scale "
            "lies: drop one."
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


def _check_pool(options: RateOptions) -> None:
    """Refuse what groups that borrow from each other are not rated with."""
    if options.by is None:
        raise DataError("pool lets groups borrow from each other: say by which column.")
    plain = RateOptions()
    allowed: tuple[tuple[str, Collection[object]], ...] = (
        ("interval", ("sandwich", "none")),
        ("cluster", (None, "voter", "both", "none", "prompt")),  # the last where one voter voted
        *((name, (getattr(plain, name),)) for name in ("ties", "claims", "ridge", "order_effect")),
        *((name, (getattr(plain, name),)) for name in ("style", "reference")),
    )
    for name, values in allowed:
        if (value := getattr(options, name)) not in values:
            raise DataError(f"Groups are pooled without {name} {value!r}: leave one of them out.")


def _check_votes_used(options: RateOptions) -> None:
    if options.half_life is not None and not 0 < options.half_life < math.inf:
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
            f"A {options.interval} interval takes a weight as a number of votes, which weights by "
            f"{unlike} {getattr(options, unlike)} are not: choose interval sandwich or bootstrap."
        )


def _utc(moment: datetime) -> datetime:
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)
