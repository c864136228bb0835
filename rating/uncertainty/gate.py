"""A release gate: is a candidate better than an incumbent, however often somebody asks."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, Self, get_args

import numpy as np
import scipy  # its submodules load on first use

from rating.comparisons import Comparisons
from rating.elo import POINTS_PER_NAT
from rating.errors import ConvergenceError, DataError, NotIdentifiedError
from rating.fitting import Fit, fit
from rating.options import Claims
from rating.typing import Floats
from rating.uncertainty.clusters import Cluster
from rating.uncertainty.contrasts import WELL_FOUNDED, infer
from rating.uncertainty.race import FEWEST_SCORED, RIDGE, comparable
from rating.uncertainty.sequence import boundary, tightest_at
from rating.uncertainty.student import student_quantiles

Answer = Literal["better", "not worse", "worse", "cannot tell"]
Require = Literal["better", "not-worse"]
By = Literal["people", "people and judge", "judge alone", "nothing"]

LOOKS = "any"
"""How often one may ask: the interval holds at all times together."""
TIGHTEST = 20.0
"""Points of half an interval at which it is tightest, where the margin is 0."""
MOST_NEEDED = 10_000_000
"""Votes beyond which nobody waits: the lead is as good as on the line."""
_ENDLESS = 30.0
"""Standard errors beyond which an interval has no ends."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GateOptions:
    """What a gate asks.

    Attributes
    ----------
    candidate : str
        The new model.
    incumbent : str
        The model that it would replace.
    margin : float
        Points that the candidate may be behind and still be not worse; to be fixed before the
        first look, as the interval is tightest where half of it is the margin.
    require : {"better", "not-worse"}
        What the candidate has to be.
    claims : {"population", "these-voters"}
        Whom the answer speaks for: people like those who voted, or these voters alone, where
        they are fewer than 15.
    level : float
        Of the interval, at all looks together.
    """

    candidate: str
    incumbent: str
    margin: float
    require: Require = "not-worse"
    claims: Claims = "population"
    level: float = 0.95

    def __post_init__(self) -> None:
        """Raise `DataError` for what no gate can ask."""
        if self.candidate == self.incumbent:
            msg = f"A gate is between two models, not {self.candidate!r} and itself."
            raise DataError(msg)
        if not 0 <= self.margin < math.inf:
            msg = f"--margin {self.margin:g} is no margin: give points from 0 on, such as 20."
            raise DataError(msg)
        if not 0 < self.level < 1:
            msg = f"--level {self.level:g} is no level: give one between 0 and 1, such as .95."
            raise DataError(msg)
        for name, value, known in (
            ("require", self.require, get_args(Require)),
            ("claims", self.claims, get_args(Claims)),
        ):
            if value not in known:
                raise DataError(f"--{name} must be one of {', '.join(known)}, not {value!r}.")

    @property
    def tightest(self) -> float:
        """Half of the interval, in nats, at which it is tightest."""
        return (self.margin or TIGHTEST) / POINTS_PER_NAT

    @property
    def line(self) -> float:
        """Points that the lead has to be above."""
        return 0.0 if self.require == "better" else -self.margin


@dataclass(frozen=True, slots=True, kw_only=True)
class Lead:
    """How far the candidate is ahead, and how sure that is; nats.

    Attributes
    ----------
    value : float
    variance, df : float
        By voters and prompts, and how well that is known.
    by_prompt, prompt_df : float
        By prompts alone.
    independent : float
        Variance if no two votes had anything in common.
    effective : float
        Effective voters, or prompts, behind it: the fewer of the two; infinite where neither is
        known.
    """

    value: float
    variance: float
    df: float
    by_prompt: float
    prompt_df: float
    independent: float
    effective: float

    @property
    def largest(self) -> float:
        """The largest of the variances."""
        return max(self.variance, self.by_prompt, self.independent)

    def half_width(self, options: GateOptions) -> float:
        """Return half of an interval that holds at all looks together.

        With the information ``I = 1 / V``, V the largest of the variances, it is
        ``errors(I) sqrt(V)``, the errors those of `errors_at`, and for each variance widened to
        what is as unlikely by Student's t of its own degrees of freedom.
        """
        errors = errors_at(self.largest, options)
        if errors > _ENDLESS:
            return math.inf
        df = np.array([self.df, self.prompt_df, np.inf])
        sds = np.sqrt([self.variance, self.by_prompt, self.independent])
        known = sds > 0
        reach = student_quantiles(float(scipy.special.ndtr(-errors)), df[known])
        return float((reach * sds[known]).max())


def errors_at(variance: float, options: GateOptions) -> float:
    """Return by how many standard errors an interval reaches out on either side.

    An estimate that grows more precise as votes come in has, standardised, the correlations of a
    Brownian motion in its information ``I = 1 / V``, whatever the votes have in common [1]_.
    Votes that repeat voters or prompts of earlier ones make them larger, and by Slepian's
    inequality the boundary is then crossed less often. It is that of
    `rating.uncertainty.sequence.boundary`, with the information in the place of the
    number of voters, tightest where half of the interval is the margin.

    References
    ----------
    .. [1] D. O. Scharfstein, A. A. Tsiatis and J. M. Robins, "Semiparametric efficiency and its
       implication on the design and analysis of group-sequential studies", Journal of the
       American Statistical Association 92(440), 1997.

    Examples
    --------
    >>> options = GateOptions(candidate="x", incumbent="y", margin=20)
    >>> errors = errors_at(0.00144, options)
    >>> round(errors, 2), round(173.7 * errors * 0.00144**0.5)
    (3.04, 20)
    """
    at_margin = _at_tightest(options.level) / options.tightest**2
    rho = tightest_at(1, level=options.level) / math.sqrt(at_margin)
    return _errors(1 / variance, rho, options.level)


def _errors(information: float, rho: float, level: float) -> float:
    """Return the boundary in standard errors."""
    one = boundary(np.array([information]), rho, level=level)
    return float(one[0]) * math.sqrt(information)


def _at_tightest(level: float) -> float:
    """Return the square of the errors at the planned information, whatever that is."""
    return _errors(1.0, tightest_at(1, level=level), level) ** 2


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """The candidate's lead in points, negative where it is behind."""

    value: float
    lower: float | None
    upper: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Gate:
    """What a gate says.

    Attributes
    ----------
    difference : Difference or None
        None where nothing could be estimated.
    people, judge : int
        Votes of people on either model, and verdicts that counted.
    needed : int or None
        Votes of people still needed, if the lead is what it seems, and they come from other
        people on other prompts; 0 once the requirement is settled, None where the lead is so near
        the line that no number would do.
    by : {"people", "people and judge", "judge alone", "nothing"}
    rests_on : str
        The same in a sentence, with counts.
    why : str
        Why nothing can be told yet; empty where an interval is there.
    judge_weight : float or None
        What the verdicts counted, from 0 to 1; None without, and where the judge is alone.
    """

    options: GateOptions
    difference: Difference | None
    people: int
    judge: int = 0
    needed: int | None
    by: By
    rests_on: str
    why: str = ""
    judge_weight: float | None = None
    warnings: tuple[str, ...] = ()

    @property
    def answer(self) -> Answer:
        """Where the interval lies: above 0, above the margin, below it, or neither.

        An answer is final: at most ``1 - level`` of all gates ever take one back.
        """
        lower, upper = self._ends
        if lower > 0:
            return "better"
        if lower > -self.options.margin:
            return "not worse"
        return "worse" if upper < -self.options.margin else "cannot tell"

    @property
    def passes(self) -> bool | None:
        """Whether what is required is shown (True), ruled out (False), or open (None)."""
        lower, upper = self._ends
        line = self.options.line
        return True if lower > line else False if upper < line else None

    @property
    def _ends(self) -> tuple[float, float]:
        one = self.difference
        lower = -math.inf if one is None or one.lower is None else one.lower
        return lower, math.inf if one is None or one.upper is None else one.upper

    @property
    def headline(self) -> str:
        """The answer in a sentence."""
        one, other = self.options.candidate, self.options.incumbent
        by = f"by more than {self.options.margin:g} points"
        return {
            "better": f"{one} is better than {other}.",
            "not worse": f"{one} is not worse than {other} {by}.",
            "worse": f"{one} is worse than {other} {by}.",
            "cannot tell": f"It cannot be told yet whether {one} is worse than {other} {by}.",
        }[self.answer]

    @property
    def sentences(self) -> tuple[str, ...]:
        """The headline, and what stands behind it."""
        lead = self.lead and f"Lead: {self.lead}."
        return tuple(filter(None, (self.headline, lead, self.why, self.verdict)))

    @property
    def lead(self) -> str:
        """The difference in words; empty where nothing could be estimated."""
        one = self.difference
        if one is None:
            return ""
        ends = ("below" if one.lower is None else f"{one.lower:+.0f}") + " to "
        ends += "above" if one.upper is None else f"{one.upper:+.0f}"
        level = f"{100 * self.options.level:g} %"
        return (f"{one.value:+.0f} points ({ends}; {level}, however often one looks)").replace(
            "-", "−"
        )

    @property
    def verdict(self) -> str:
        """What is required, and whether the gate passes."""
        name = self.options.require.replace("-", " ")
        if self.passes is not None:
            return f"Required: {name}. The gate {'passes' if self.passes else 'fails'}."
        if self.needed is None:
            return f"Required: {name}. The lead is so near the line that no votes may settle it."
        more = "vote" if self.needed == 1 else "votes"
        return (
            f"Required: {name}. About {self.needed:,} more {more} of people would settle it, if "
            "the lead is what it seems."
            if self.difference is not None
            else f"Required: {name}. About {self.needed:,} {more} of people on the two would "
            "settle it, if they are even."
        )

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON."""
        one, ask = self.difference, self.options
        return {
            "answer": self.answer,
            "candidate": ask.candidate,
            "incumbent": ask.incumbent,
            "margin": ask.margin,
            "difference": {
                "value": None if one is None else one.value,
                "lower": None if one is None else one.lower,
                "upper": None if one is None else one.upper,
            },
            "looks": LOOKS,
            "votes": {"people": self.people, "judge": self.judge},
            "needed": self.needed,
            "rests_on": self.rests_on,
            "by": self.by,
            "require": ask.require,
            "passes": self.passes,
            "claims": ask.claims,
            "level": ask.level,
            "judge_weight": self.judge_weight,
            "why": self.why or None,
            "sentences": list(self.sentences),
            "warnings": list(self.warnings),
        }

    def with_warnings(self, *warnings: str) -> Self:
        """Add what to keep in mind."""
        return replace(self, warnings=(*self.warnings, *warnings))


def gate(data: Comparisons, options: GateOptions) -> Gate:
    """Ask whether a candidate is better than an incumbent, by votes of people.

    The lead is that of Bradley-Terry of all votes: those on the two directly, and those of both
    against other models. Its interval allows for what votes of one voter, and on one prompt, have
    in common (`rating.uncertainty.contrasts`), and for asking again and again (`errors_at`).
    Nothing is kept between looks. Nothing is told from fewer than `WELL_FOUNDED` effective voters
    or prompts, where these are known, or before either model has won and lost `FEWEST_SCORED`.

    Raises
    ------
    DataError
        If a model has no votes.
    """
    require_both(data.models, options)
    known = _behind(data, options)
    try:
        lead = lead_of(data, options)
    except NotIdentifiedError as error:
        return untold(options, known, str(error))
    return decided(lead, options, known)


@dataclass(frozen=True, slots=True, kw_only=True)
class Behind:
    """What stands behind a lead.

    Attributes
    ----------
    people, direct : int
        Votes on either model, and of them those on the two.
    rests_on : str
    """

    people: int
    direct: int
    rests_on: str
    by: By = "people"
    judge: int = 0
    judge_weight: float | None = None
    warnings: tuple[str, ...] = ()


def decided(lead: Lead, options: GateOptions, known: Behind) -> Gate:
    """Answer by a lead."""
    if lead.effective < WELL_FOUNDED:
        why = (
            f"The lead rests on {lead.effective:.1f} effective voters or prompts: nothing is told "
            f"from fewer than {WELL_FOUNDED}."
        )
        return untold(options, known, why)
    half = lead.half_width(options)
    value, half = POINTS_PER_NAT * lead.value, POINTS_PER_NAT * half
    ends = (value - half, value + half) if math.isfinite(half) else (None, None)
    answered = Gate(
        options=options,
        difference=Difference(value=value, lower=ends[0], upper=ends[1]),
        people=known.people,
        judge=known.judge,
        needed=None,
        by=known.by,
        rests_on=known.rests_on,
        judge_weight=known.judge_weight,
        warnings=known.warnings,
    )
    if answered.passes is not None:
        return replace(answered, needed=0)
    return replace(answered, needed=_needed(lead, options, known.people))


def untold(options: GateOptions, known: Behind, why: str) -> Gate:
    """Answer that nothing can be told."""
    return Gate(
        options=options,
        difference=None,
        people=known.people,
        judge=known.judge,
        needed=planned(options, known.direct),
        by="nothing",
        rests_on=known.rests_on,
        why=why,
        judge_weight=known.judge_weight,
        warnings=known.warnings,
    )


def planned(options: GateOptions, there: int) -> int:
    """Return the votes that settle the gate for two even models: each vote tells a quarter.

    >>> planned(GateOptions(candidate="x", incumbent="y", margin=20), there=20)
    2761
    """
    wanted = 4 * _at_tightest(options.level) / options.tightest**2
    return max(math.ceil(wanted) - there, 1)


def _needed(lead: Lead, options: GateOptions, there: int) -> int | None:
    """Return the votes until the interval leaves out the line, the variances falling as 1 / n."""
    distance = abs(lead.value - options.line / POINTS_PER_NAT)
    widened = lead.half_width(options) / (
        errors_at(lead.largest, options) * math.sqrt(lead.largest)
    )

    def beyond(times: float) -> float:
        variance = lead.largest / times
        return widened * errors_at(variance, options) * math.sqrt(variance) - distance

    most = MOST_NEEDED / there
    if not math.isfinite(widened) or most <= 1 or beyond(most) > 0:
        return None
    times = scipy.optimize.brentq(beyond, 1.0, most) if beyond(1.0) > 0 else 1.0
    return max(math.ceil(there * (times - 1)), 1)


def lead_of(data: Comparisons, options: GateOptions) -> Lead:
    """Estimate the candidate's lead from votes of people.

    Raises
    ------
    NotIdentifiedError
        If the votes do not link the two, either has won or lost too few, or fewer than two
        voters, or prompts, stand behind it.
    """
    ends = data.models.index(options.candidate), data.models.index(options.incumbent)
    require_comparable(data.wins(), ends)
    try:
        fitted = fit(data, ridge=RIDGE)
        return _lead(fitted, data, options, ends)
    except (ConvergenceError, DataError) as error:
        raise NotIdentifiedError(str(error)) from error


def require_comparable(wins: Floats, ends: tuple[int, int]) -> None:
    """Raise `NotIdentifiedError` unless votes link the two, and each has won and lost some."""
    if not comparable(wins, ends):
        msg = (
            "Nothing is told before votes link the two, and each has won and lost "
            f"{FEWEST_SCORED:.0f}."
        )
        raise NotIdentifiedError(msg)


def _lead(fitted: Fit, data: Comparisons, options: GateOptions, ends: tuple[int, int]) -> Lead:
    contrast = np.zeros((1, len(fitted.x)))
    contrast[0, ends[0]], contrast[0, ends[1]] = 1.0, -1.0
    each = infer(fitted, data, clusters_of(data, options)).of(contrast)

    def only(column: Floats) -> float:
        return float(column[0])

    return Lead(
        value=only(each.value),
        variance=only(each.variance),
        df=only(each.df),
        by_prompt=only(each.by_prompt),
        prompt_df=only(each.prompt_df),
        independent=only(each.independent),
        effective=float(np.nan_to_num(each.effective[0], nan=np.inf)),
    )


def clusters_of(data: Comparisons, options: GateOptions) -> tuple[Cluster, ...]:
    """Name what votes may have in common: voters, unless it is of these alone, and prompts."""
    kinds: list[Cluster] = []
    if data.voter is not None and options.claims == "population":
        kinds.append("voter")
    if data.prompt is not None:
        kinds.append("prompt")
    return tuple(kinds)


def require_both(models: Sequence[str], options: GateOptions) -> None:
    """Raise `DataError` unless there are votes on both models."""
    for name in (options.candidate, options.incumbent):
        if name not in models:
            some = ", ".join(map(repr, models[:3]))
            raise DataError(f"There are no votes on {name!r}; there are on {some} and others.")


def _behind(data: Comparisons, options: GateOptions) -> Behind:
    """Count what stands behind the lead, and say what the interval does not allow for."""
    ends = [data.models.index(name) for name in (options.candidate, options.incumbent)]
    either = np.isin(data.pairs, ends).any(axis=1)
    both = np.isin(data.pairs, ends).all(axis=1)
    people, direct = int(data.votes[either].sum()), int(data.votes[both].sum())
    counts = [
        (None if column is None else len(np.unique(column[either])), word)
        for column, word in ((data.voter, "voter"), (data.prompt, "prompt"))
    ]
    return Behind(
        people=people,
        direct=direct,
        rests_on=rests_on(people, direct, counts[0][0], counts[1][0], options),
        warnings=tuple(
            f"{word.capitalize()}s are not known: the interval is too narrow where {what}."
            for (count, word), what in zip(
                counts, ("people voted often", "votes share prompts"), strict=True
            )
            if count is None
        ),
    )


def rests_on(
    people: int, direct: int, voters: int | None, prompts: int | None, options: GateOptions
) -> str:
    """Say what a lead rests on.

    >>> rests_on(90, 40, 30, None, GateOptions(candidate="x", incumbent="y", margin=20))
    '90 votes of 30 people, 40 of them on the two directly'
    """
    of = "of people" if voters is None else f"of {voters:,} {_word(voters, 'person', 'people')}"
    on = "" if prompts is None else f" on {prompts:,} {_word(prompts, 'prompt', 'prompts')}"
    whom = "; it speaks for these voters alone" if options.claims == "these-voters" else ""
    votes = _word(people, "vote", "votes")
    return f"{people:,} {votes} {of}{on}, {direct:,} of them on the two directly{whom}"


def _word(n: int, one: str, more: str) -> str:
    return one if n == 1 else more
