"""Decisions between two models while votes come in: release gate and sequential test.

`lead_of` estimates the lead of one model over another with its variance; `errors_at` gives how far
its interval reaches at a look, for one look, a number of looks, or any number. `gate` answers once
or repeatedly whether a candidate is better than an incumbent; `run_race` stops as soon as two
models are separated. Both share the lead, the least data (`require_comparable`, `WELL_FOUNDED`)
and the boundaries, as does the gate with a judge in `judge.studies.gating`.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cache, partial
from typing import Any, Literal, Self, get_args

import numpy as np
import scipy

from rating.comparisons import Comparisons
from rating.contrasts import WELL_FOUNDED
from rating.covariance import intersection
from rating.errors import ConvergenceError, DataError, NotIdentifiedError
from rating.leave_out import Known, jackknife_variance, normal_quantile, student_quantiles, two_way
from rating.likelihood import A, B, hessian, solve, win_probability
from rating.options import Claims
from rating.rows import VoteRows
from rating.sentences import plural
from rating.typing import Bools, Floats, Integers, Ints
from rating.variants import POINTS_PER_NAT

# Leads and their boundaries


Looks = Literal["any"] | int

RIDGE = 0.01
"""Gives a place to a model that has not won or lost yet."""
FEWEST_SCORED = 5
"""Votes that each of the two has to win, and to lose, before the size of a lead is estimated."""
PLANNED = 2000
"""Votes on either model that are planned if no number is given."""
POWER = 0.8
"""Probability with which the votes that a plan names show a lead of the size assumed."""
MOST_NEEDED = 10_000_000
"""Most votes that are planned for: beyond it the lead is practically on the line."""
MOST_PLACED = 5
"""Looks up to which the worst places of this many are searched; beyond, every place is a look."""
_ENDLESS = 20.0
"""Standard errors beyond which an interval has no ends."""
_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(24)


def _check_looks(looks: Looks, planned: int | None, level: float) -> None:
    """Raise `DataError` for a way to look that cannot be."""
    if looks != "any" and not (isinstance(looks, int) and looks >= 1):
        raise DataError(f"--looks must be any, or a number from 1 on, not {looks!r}.")
    if planned is not None and planned < 1:
        raise DataError(f"--planned must be 1 vote or more, not {planned}.")
    if not 0 < level < 1:
        raise DataError(f"--level must lie between 0 and 1, such as 0.95, not {level:g}.")


def _planned_votes(looks: Looks, planned: int | None) -> int | None:
    """Return the planned votes: `PLANNED` by default, or for a single look all that there are."""
    return PLANNED if planned is None and looks != 1 else planned


def _looks_caption(looks: Looks, planned: int | None, level: float) -> str:
    """Name the level of an interval, and the looks for which it holds.

    >>> _looks_caption("any", None, 0.95), _looks_caption(3, 900, 0.95)
    ('95%, any number of looks, planned for 2,000 votes', '95%, 3 looks, 900 votes planned')
    """
    votes = _planned_votes(looks, planned)
    how = {
        "any": f"any number of looks, planned for {votes or 0:,} votes",
        1: "one look" if votes is None else f"one look, {votes:,} votes planned",
    }.get(looks, f"{looks} looks, {votes or 0:,} votes planned")
    return f"{100 * level:g}%, {how}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Lead:
    """How far one model is ahead of another, and how sure that is; nats.

    Attributes
    ----------
    value : float
    variance, df : float
        By voters and prompts, and how well that is known.
    of_prompts : float
        What prompts add to it.
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
    of_prompts: float
    by_prompt: float
    prompt_df: float
    independent: float
    effective: float

    @property
    def largest(self) -> float:
        """The largest of the variances."""
        return max(self.variance, self.by_prompt, self.independent)

    def half_width(self, looks: Looks, planned: int | None, votes: int, level: float) -> float:
        """Return half of an interval that holds at all looks together.

        For each of the three variances the errors of `errors_at` are widened to what is as
        unlikely by Student's t of its own degrees of freedom; the largest counts.

        Parameters
        ----------
        votes : int
            On either model, so far.
        """
        errors = errors_at(looks, planned, votes, 1 / self.largest, level)
        if errors > _ENDLESS:
            return math.inf
        df = np.array([self.df, self.prompt_df, np.inf])
        sds = np.sqrt([self.variance, self.by_prompt, self.independent])
        known = sds > 0
        return float((_student(errors, df[known]) * sds[known]).max())

    def needed(
        self, distance: float, looks: Looks, planned: int | None, votes: int, level: float
    ) -> tuple[int | None, int | None]:
        """Return the votes that show a distance of the lead from a line, with a power of 0.8.

        ``(q + 0.842) sqrt(V) = distance`` with q the errors of the last look, by Student's t. New
        people on the same prompts make of V ``A + B n / N``, where A is what prompts add and B
        the rest of the largest variance; new people on new prompts ``(A + B) n / N``.

        Returns
        -------
        tuple of (int or None, int or None)
            All votes on either model, on the same prompts and on new ones; None where no number
            up to `MOST_NEEDED` will do.
        """
        rest, more = self.largest - self.of_prompts, normal_quantile(1 - POWER)
        df = np.array([self.df])

        def short(total: float, fixed: float, falling: float) -> float:
            variance = fixed + falling * votes / total
            errors = errors_at(looks, planned, MOST_NEEDED, 1 / variance, level)
            reach = float(_student(min(errors, _ENDLESS), df)[0])
            return (reach + more) * math.sqrt(variance) - distance

        both: list[int | None] = []
        for fixed, falling in ((self.of_prompts, rest), (0.0, self.largest)):
            if short(MOST_NEEDED, fixed, falling) > 0:
                both.append(None)
            elif short(1.0, fixed, falling) <= 0:
                both.append(1)
            else:
                root = scipy.optimize.brentq(short, 1.0, MOST_NEEDED, args=(fixed, falling))
                both.append(math.ceil(root))
        return both[0], both[1]


def errors_at(
    looks: Looks, planned: int | None, votes: int, information: float, level: float
) -> float:
    """Return by how many standard errors an interval reaches out on either side at a look.

    An estimate that grows more precise as votes come in has, standardised, the correlations of a
    Brownian motion in its information ``I = 1 / V``, approximately [1]_.
    Votes that repeat voters or prompts of earlier ones make them larger, and by Slepian's
    inequality a boundary is then crossed less often.

    * Any number of looks, without end: the boundary of a confidence sequence, in standard errors
      tightest at the information that as many independent votes on even models give, 1/4 each.
    * K looks at up to N planned votes: ``c_K / sqrt(n / N)`` after n votes, see `_critical`.
    * One look: the normal quantile.

    References
    ----------
    .. [1] D. O. Scharfstein, A. A. Tsiatis and J. M. Robins, "Semiparametric efficiency and its
       implication on the design and analysis of group-sequential studies", Journal of the
       American Statistical Association 92(440), 1997.

    Examples
    --------
    >>> [round(errors_at(looks, 1000, 500, 125, 0.95), 3) for looks in (1, 2, 6, "any")]
    [1.96, 2.866, 3.17, 3.084]
    """
    total = _planned_votes(looks, planned)
    if looks == "any":
        done = information / ((total or 1) / 4)
        rho = tightest_at(1, level=level)
        return float(boundary(np.array([done]), rho, level=level)[0]) * math.sqrt(done)
    share = 1.0 if looks == 1 else min(1.0, votes / (total or 1))
    return _critical(looks, level) / math.sqrt(share)


@cache
def _critical(looks: int, level: float) -> float:
    """Return the c that ``|B(t)|`` passes, at the worst places of this many looks, in 1 - level.

    B is a Brownian motion on [0, 1]. Beyond `MOST_PLACED` looks it is the c that is passed
    anywhere [1]_::

        P(sup |B| > c) = 1 - 4/pi sum_k (-1)^k / (2k + 1) exp(-pi^2 (2k + 1)^2 / (8 c^2))

    References
    ----------
    .. [1] W. Feller, An Introduction to Probability Theory and Its Applications 2, 2nd ed., 1971,
       section X.5.

    Examples
    --------
    >>> [round(_critical(looks, 0.95), 3) for looks in (1, 2, 3, 4, 5, 6)]
    [1.96, 2.026, 2.059, 2.08, 2.095, 2.241]
    """
    once, always = normal_quantile((1 - level) / 2), normal_quantile((1 - level) / 4)
    if looks == 1:
        return once
    if looks > MOST_PLACED:
        odd = 2 * np.arange(200) + 1
        sign = np.where(odd % 4 == 1, 1, -1)

        def beyond(c: float) -> float:
            return float(4 / np.pi * (sign / odd * np.exp(-((np.pi * odd / c) ** 2) / 8)).sum())

        return float(scipy.optimize.brentq(lambda c: beyond(c) - level, once, always))
    bound, places = once, np.zeros(looks - 1)
    for _ in range(2):  # where the places are off a little, the bound is off by the square of it
        places = scipy.optimize.minimize(partial(_inside, bound), places, tol=1e-5).x
        bound = scipy.optimize.brentq(lambda c, at: _inside(c, at) - level, once, always, places)
    return float(bound)


def _inside(bound: float, places: Floats) -> float:
    """Return the probability that |B| is within a bound at all looks, the last of them at 1."""
    gaps = scipy.special.softmax(np.append(places, 0.0))
    x, weight = bound * (_NODES + 1) / 2, bound * _WEIGHTS / 2
    density = 2 * _normal(x, gaps[0])
    for gap in gaps[1:]:
        step = _normal(x[:, None] - x, gap) + _normal(x[:, None] + x, gap)
        density = step @ (weight * density)
    return float(weight @ density)


def _normal(x: Floats, variance: float) -> Floats:
    return np.asarray(np.exp(-(x**2) / (2 * variance)) / math.sqrt(2 * math.pi * variance))


def _student(errors: float, df: Floats) -> Floats:
    """Return what errors are as sure of by Student's t as these are by the normal law."""
    return student_quantiles(float(scipy.special.ndtr(-errors)), df)


def lead_of(
    data: Comparisons, between: tuple[str, str], *, voters: bool = True, cells: Ints | None = None
) -> Lead:
    """Estimate the lead of one model over another by Bradley-Terry of all votes.

    With h_i the influence of vote i on the lead, and w_c the share of cluster c in the information
    on it, ``V = (G - 1) / G sum_c (sum_i h_i / (1 - w_c))^2`` over voters, prompts, and voters on
    one prompt; prompts add ``A = max(0, V_prompt - V_both)`` to what voters show. Student's
    degrees of freedom are those of ``1 / sum_c w_c^2`` effective clusters.

    Parameters
    ----------
    data : Comparisons
        Votes, counted or one by one.
    voters : bool
        Whether votes of one voter hang together: not, where the lead is of these voters alone.
    cells : ndarray of shape (n_cells,), optional
        Number of the voter and prompt of each cell, where it is known already.

    Raises
    ------
    NotIdentifiedError
        If votes do not link the two, or either has won or lost too few.
    """
    ends = data.models.index(between[0]), data.models.index(between[1])
    table = data.table()
    decided = table[..., A] + table[..., B].T
    require_comparable(decided, ends)
    wins = data.wins()
    try:
        theta = solve(wins, np.zeros(len(wins)), ridge=RIDGE).theta
    except ConvergenceError as error:
        raise NotIdentifiedError(str(error)) from error
    inverse = np.linalg.inv(hessian(theta, wins, ridge=RIDGE))
    toward = inverse[ends[0]] - inverse[ends[1]]
    (a, b), probability = data.pairs.T, win_probability(theta)
    reach, expected = (toward[:, None] - toward)[a, b], probability[a, b]
    moved = reach * (data.score_a - expected)
    known = reach**2 * expected * (1 - expected) * data.weight
    independent = float(data.weight_sq @ moved**2)
    moved *= data.weight

    def by(cluster: Integers) -> tuple[Floats, float]:
        share = np.bincount(cluster, known) / known.sum()
        shift = np.bincount(cluster, moved) / np.maximum(1 - share, 1e-9)
        return jackknife_variance(shift[share > 0], 0.0), 1 / float(share @ share)

    every: Known = np.asarray(independent), np.asarray(np.inf)
    one, inside, effective = every, every[0], [math.inf]
    if voters and data.voter is not None:
        variance, groups = by(data.voter)
        one = variance, np.asarray(groups - 1)
        effective.append(groups)
    whole = np.asarray(0.0), np.asarray(np.inf)
    if data.prompt is not None:
        variance, groups = by(data.prompt)
        whole = variance, np.asarray(groups - 1)
        effective.append(groups)
        if voters and data.voter is not None:
            inside = by(intersection(data).index if cells is None else cells)[0]
    total, df = two_way(one, whole, inside)
    return Lead(
        value=float(theta[ends[0]] - theta[ends[1]]),
        variance=float(total),
        df=float(df),
        of_prompts=float(total - one[0]),
        by_prompt=float(whole[0]),
        prompt_df=float(whole[1]),
        independent=independent,
        effective=min(effective),
    )


def require_comparable(wins: Floats, ends: tuple[int, int]) -> None:
    """Raise `NotIdentifiedError` unless votes link the two, and each has won and lost some.

    Parameters
    ----------
    wins : ndarray of shape (n_models, n_models)
        Votes that row won against column; ties are not among them.
    """
    scored = min(min(wins[end].sum(), wins[:, end].sum()) for end in ends)
    met = scipy.sparse.csr_array(wins + wins.T)
    _, group = scipy.sparse.csgraph.connected_components(met, directed=False)
    if scored < FEWEST_SCORED or group[ends[0]] != group[ends[1]]:
        msg = (
            "Nothing is estimated before votes link the two, and each has won and lost "
            f"{FEWEST_SCORED} (ties do not count)."
        )
        raise NotIdentifiedError(msg)


def boundary(t: Ints | Floats, rho: float, *, level: float = 0.95) -> Floats:
    """Return how many spreads of one voter the mean of t voters may lie off, at all t at once.

    ::

        sqrt(2 * (t * rho**2 + 1) / (t * rho)**2 * log(sqrt(t * rho**2 + 1) / (1 - level)))

    References
    ----------
    .. [1] I. Waudby-Smith, D. Arbour, R. Sinha, E. H. Kennedy and A. Ramdas,
       "Time-uniform central limit theory and asymptotic confidence
       sequences", Annals of Statistics 52(6), 2024, pp. 2613-2640, theorem
       2.2, and its appendix on rho.
    """
    grown = t * rho**2 + 1
    square = 2 * grown / (t * rho) ** 2 * np.log(np.sqrt(grown) / (1 - level))
    return np.asarray(np.sqrt(square))


def tightest_at(planned: int, *, level: float = 0.95) -> float:
    """Return the rho that makes a confidence sequence tightest after ``planned`` voters.

    ``sqrt((-2 ln alpha + ln(1 - 2 ln alpha)) / planned)``, nearly.

    Examples
    --------
    >>> round(tightest_at(2000), 4)
    0.063
    """
    log_alpha = np.log1p(-level)
    return float(np.sqrt((-2 * log_alpha + np.log(1 - 2 * log_alpha)) / planned))


# Release gate


Answer = Literal["better", "not worse", "worse", "cannot tell"]
Require = Literal["better", "not-worse"]
By = Literal["people", "people and judge", "judge alone", "nothing"]

ASSUMED = 20.0
"""Points ahead that a better model is assumed to be, without a margin."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GateOptions:
    """Options of a release gate.

    Attributes
    ----------
    candidate : str
        The new model.
    incumbent : str
        The model it would replace.
    margin : float
        Non-inferiority margin: how many points worse the candidate may be and still be "not
        worse".
    require : {"better", "not-worse"}
        Requirement for the candidate.
    claims : {"population", "these-voters"}
        Inference for the population of voters (needs 15 effective voters), or for these voters
        only.
    level : float
        Confidence level over all looks.
    looks : "any" or int
        Number of looks, 1 to 5. From 6 on: unlimited looks up to the planned votes; any: also
        beyond them.
    planned : int or None
        Planned votes on battles with either model, fixed before the first look. With --looks
        INT, votes beyond them are not used. With --looks any, the test is most efficient near
        them. Default: 2,000; for one look, all.
    """

    candidate: str
    incumbent: str
    margin: float
    require: Require = "not-worse"
    claims: Claims = "population"
    level: float = 0.95
    looks: Looks = "any"
    planned: int | None = None

    def __post_init__(self) -> None:
        """Raise `DataError` for what no gate can ask."""
        _check_looks(self.looks, self.planned, self.level)
        if self.candidate == self.incumbent:
            raise DataError(f"A gate is between two models, not {self.candidate!r} and itself.")
        if not 0 <= self.margin < math.inf:
            msg = f"--margin {self.margin:g} is no margin: give points from 0 on, such as 20."
            raise DataError(msg)
        for name, value, known in (
            ("require", self.require, get_args(Require)),
            ("claims", self.claims, get_args(Claims)),
        ):
            if value not in known:
                raise DataError(f"--{name} must be one of {', '.join(known)}, not {value!r}.")

    @property
    def votes_planned(self) -> int | None:
        """Votes planned; None for all that there are."""
        return _planned_votes(self.looks, self.planned)

    @property
    def assumed(self) -> float:
        """Points from the line at which a lead that is not known yet is assumed."""
        return self.margin or (ASSUMED if self.require == "better" else 0.0)

    @property
    def line(self) -> float:
        """Points that the lead has to be above."""
        return 0.0 if self.require == "better" else -self.margin


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
        More votes that settle the requirement with a power of 0.8, if the lead is as estimated
        and they come from new people on new prompts. Where no lead is estimated: if the models
        are even and votes independent, for clusters that are not known yet can only add to it.
        0 once it is settled, None where the lead is so near the line that no number would do.
    needed_same_prompts : int or None
        The same for new people on the prompts that there are.
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
    needed_same_prompts: int | None = None
    by: By
    rests_on: str
    why: str = ""
    judge_weight: float | None = None
    warnings: tuple[str, ...] = ()

    @property
    def answer(self) -> Answer:
        """Where the interval lies: above 0, above the margin, below it, or neither.

        Better, not worse and worse are final: at most ``1 - level`` of all gates err.
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
            "cannot tell": f"Inconclusive: {one} may or may not be worse than {other} {by}.",
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
        ends = ("below" if one.lower is None else f"{one.lower:+z.0f}") + " to "
        ends += "above" if one.upper is None else f"{one.upper:+z.0f}"
        ask = self.options
        return f"{one.value:+z.0f} points ({ends}; ".replace("-", "−") + (
            _looks_caption(ask.looks, ask.planned, ask.level) + ")"
        )

    @property
    def is_final(self) -> bool:
        """Whether the planned votes of numbered looks are there: later votes are not used."""
        planned = self.options.votes_planned
        return self.options.looks != "any" and planned is not None and self.people >= planned

    @property
    def verdict(self) -> str:
        """What is required, whether the gate passes, and what it takes where that is open."""
        required = f"Required: {self.options.require.replace('-', ' ')}."
        if self.passes is not None:
            return f"{required} The gate {'passes' if self.passes else 'fails'}."
        done = self.people if self.is_final else 0
        if done:
            required += " The planned votes are there: this answer is final."
        ahead = "the models are equal"
        if self.options.require == "better":
            ahead = f"{self.options.candidate} is {self.options.assumed:g} points ahead"
        if self.needed is None and self.difference is None:
            return f"{required} No number of votes settles it if {ahead}."
        if self.needed is None:
            return f"{required} The lead is near the line: no number of votes may settle it."
        more = f"About {plural(self.needed, 'more vote')}"
        if done:
            more = f"About {done + self.needed:,} votes in a new gate"
        if self.difference is None:
            more += f" on the two give {100 * POWER:g}% power, if {ahead} and votes independent"
            return f"{required} {more}; clustered votes need more."
        power = f"settle it with {100 * POWER:g}% power"
        same = self.needed_same_prompts
        on_same = "no number does" if same is None else f"about {done + same:,} do"
        if same == self.needed:
            return f"{required} {more} by new people {power}, if the lead is as estimated."
        return (
            f"{required} {more} by new people on new prompts {power}, if the lead is as "
            f"estimated; on the same prompts {on_same}."
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
            "looks": ask.looks,
            "planned": ask.votes_planned,
            "power": POWER,
            "votes": {"people": self.people, "judge": self.judge},
            "needed": self.needed,
            "needed_same_prompts": self.needed_same_prompts,
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
    in common, and for the looks (`errors_at`). Nothing is kept between looks.
    Nothing is estimated from fewer than `WELL_FOUNDED` effective voters or prompts, where these
    are known, or before either model has won and lost `FEWEST_SCORED`.

    Parameters
    ----------
    data : Comparisons
        Of numbered looks, up to the planned votes: see `rows_planned`.

    Raises
    ------
    DataError
        If a model has no votes.
    """
    between = options.candidate, options.incumbent
    require_both(data.models, between)
    ends = [data.models.index(name) for name in (options.candidate, options.incumbent)]
    is_of_two = np.isin(data.pairs, ends)
    either = is_of_two.any(axis=1)
    voters, prompts = (
        None if column is None else len(np.unique(column[either]))
        for column in (data.voter, data.prompt)
    )
    people, direct = (int(data.votes[rows].sum()) for rows in (either, is_of_two.all(axis=1)))
    unknown = {
        "Voters are not known: the interval is too narrow where people voted often.": voters,
        "Prompts are not known: the interval is too narrow where votes share prompts.": prompts,
    }
    warnings = tuple(text for text, count in unknown.items() if count is None)
    known = unanswered(options, people, direct, voters, prompts, warnings)
    try:
        lead = lead_of(data, between, voters=options.claims == "population")
    except NotIdentifiedError as error:
        return untold(known, str(error))
    return decided(lead, known)


def decided(lead: Lead, known: Gate) -> Gate:
    """Answer by a lead, where `unanswered` states what stands behind it."""
    if lead.effective < WELL_FOUNDED:
        who = f"Only {lead.effective:.1f} effective voters or prompts"
        return untold(known, f"{who}; at least {WELL_FOUNDED} are needed.")
    options = known.options
    ask = (options.looks, options.planned, known.people, options.level)
    value, half = POINTS_PER_NAT * lead.value, POINTS_PER_NAT * lead.half_width(*ask)
    ends = (value - half, value + half) if math.isfinite(half) else (None, None)
    difference = Difference(value=value, lower=ends[0], upper=ends[1])
    answered = replace(known, difference=difference, needed=None)
    if answered.passes is not None:
        return replace(answered, needed=0, needed_same_prompts=0)
    same, new = (
        None if total is None else max(total - known.people, 1)
        for total in lead.needed(abs(lead.value - options.line / POINTS_PER_NAT), *ask)
    )
    return replace(answered, needed=new, needed_same_prompts=same)


def untold(known: Gate, why: str) -> Gate:
    """Answer where nothing could be estimated."""
    return replace(known, by="nothing", why=why)


def votes_for_even_models(options: GateOptions, there: int) -> int | None:
    """Return the more votes that settle a gate with a power of 0.8 where the models are even.

    Each vote gives a quarter of information, if all are independent. A gate that requires a better
    model is planned for a lead of as many points above the line. None where no number up to
    `MOST_NEEDED` will do, as without a margin: even models are then on the line.

    >>> ask = GateOptions(candidate="x", incumbent="y", margin=20, looks=1)
    >>> votes_for_even_models(ask, there=20)
    2349
    """
    each = dict.fromkeys(("variance", "by_prompt", "independent"), 4.0)
    known = dict.fromkeys(("df", "prompt_df", "effective"), math.inf)
    one = Lead(value=0.0, of_prompts=0.0, **each, **known)
    ask = (options.looks, options.planned, 1, options.level)
    _, total = one.needed(options.assumed / POINTS_PER_NAT, *ask)
    return None if total is None else max(total - there, 1)


def rows_planned(either: Bools, options: GateOptions) -> int:
    """Return the rows up to the last planned vote on either model, or all of them.

    Parameters
    ----------
    either : ndarray of shape (n,), bool
        Which votes, in the order in which they were cast, are on either model.

    >>> ask = GateOptions(candidate="x", incumbent="y", margin=20, looks=2, planned=2)
    >>> rows_planned(np.array([True, False, True, True]), ask)
    3
    """
    if options.looks == "any" or options.votes_planned is None:
        return len(either)
    return min(len(either), int(np.searchsorted(either.cumsum(), options.votes_planned)) + 1)


def require_both(models: Sequence[str], between: tuple[str, str]) -> None:
    """Raise `DataError` unless there are votes on both models."""
    for name in between:
        if name not in models:
            some = ", ".join(map(repr, models[:3]))
            raise DataError(f"There are no votes on {name!r}; there are on {some} and others.")


def unanswered(
    options: GateOptions,
    people: int,
    direct: int,
    voters: int | None,
    prompts: int | None,
    warnings: tuple[str, ...] = (),
) -> Gate:
    """Return a gate of which it is known what stands behind the lead, and not the lead.

    Parameters
    ----------
    people, direct : int
        Votes on either model, and of them those on the two.
    voters, prompts : int or None
        Of these votes; None where they are not known.

    Examples
    --------
    >>> unanswered(GateOptions(candidate="x", incumbent="y", margin=20), 90, 40, 30, None).rests_on
    '90 votes of 30 people, 40 of them on the two directly'
    """
    of = "of people" if voters is None else f"of {plural(voters, 'person', 'people')}"
    on = "" if prompts is None else f" on {plural(prompts, 'prompt')}"
    whom = "; it speaks for these voters alone" if options.claims == "these-voters" else ""
    votes = plural(people, "vote")
    return Gate(
        options=options,
        difference=None,
        people=people,
        needed=votes_for_even_models(options, direct),
        by="people",
        rests_on=f"{votes} {of}{on}, {direct:,} of them on the two directly{whom}",
        warnings=warnings,
    )


# Sequential test of two models


MOST_LOOKS = 400


@dataclass(frozen=True, slots=True)
class _Look:
    """What was known at a look; points of the first model's lead."""

    voters: int
    votes: int
    lead: float
    lower: float
    upper: float

    @property
    def separates(self) -> bool:
        """Whether a lead of zero is ruled out."""
        return self.lower > 0 or self.upper < 0


@dataclass(frozen=True, slots=True)
class Race:
    """How a race went.

    Attributes
    ----------
    between : tuple of (str, str)
    looks : tuple of Look
        Up to the stop; empty where there is too little data.
    separated : Look or None
        The first that separates the two.
    votes, voters : int
        All that there were, up to the budget.
    judge_weight : float or None
        What a judge's verdicts counted in the end, from 0 to 1; None without a judge.
    mode : "any" or int
        How often the votes were looked at.
    planned : int or None
        Votes on either model that were planned; None for all that there are.
    needed, needed_same_prompts : int or None
        Votes on either model that separate the two with a power of 0.8, if the lead is as
        estimated: of new people on new prompts, or on the same; None for no number.
    """

    between: tuple[str, str]
    looks: tuple[_Look, ...]
    separated: _Look | None
    votes: int
    voters: int
    level: float
    judge_weight: float | None
    mode: Looks
    planned: int | None
    needed: int | None
    needed_same_prompts: int | None

    @property
    def badge(self) -> str | None:
        """What may be said of the two; None where nothing may."""
        if self.separated is None:
            return None
        if self.mode == "any":
            return f"separated, however often one looked ({100 * self.level:g}%)"
        return f"separated ({_looks_caption(self.mode, self.planned, self.level)})"

    @property
    def sentence(self) -> str:
        """The answer in words."""
        first, second = self.between
        if not self.looks:
            return (
                f"{first} and {second}: inconclusive. It takes {WELL_FOUNDED} effective voters "
                f"and prompts, and each of the two has to win and to lose {FEWEST_SCORED} votes; "
                f"so far: {plural(self.votes, 'vote')} of {plural(self.voters, 'voter')}."
            )
        look = self.separated or self.looks[-1]
        lead = f"{look.lead:+z.0f} points ({look.lower:+z.0f} to {look.upper:+z.0f})"
        if self.separated is None:
            return (
                f"{first} against {second}: {lead} after {look.votes:,} votes of "
                f"{plural(look.voters, 'voter')}; not separated "
                f"({_looks_caption(self.mode, self.planned, self.level)})." + self._needed()
            )
        ahead, behind = self.between if look.lead > 0 else (second, first)
        return (
            f"{ahead} is ahead of {behind} after {look.votes:,} votes of "
            f"{plural(look.voters, 'voter')}: {self.badge}. Lead of {first}: {lead}."
        )

    def _needed(self) -> str:
        """Return how many votes it takes, with a space before."""
        power = f"separate them with {100 * POWER:g}% power, if the lead is as estimated"
        if self.needed is None:
            return f" No number of votes may {power}."
        same = self.needed_same_prompts
        on_same = "no number does" if same is None else f"{same:,} do"
        also = "" if same == self.needed else f"; on the same prompts {on_same}"
        return f" In all, about {self.needed:,} votes on either model by new people {power}{also}."

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON."""
        last = self.looks[-1] if self.looks else None
        return {
            "between": list(self.between),
            "separated": self.separated is not None,
            "at": None if self.separated is None else self.separated.votes,
            "interval": None if last is None else [last.lower, last.upper],
            "lead": None if last is None else last.lead,
            "at_voters": None if self.separated is None else self.separated.voters,
            "badge": self.badge,
            "votes": self.votes,
            "voters": self.voters,
            "level": self.level,
            "judge_weight": self.judge_weight,
            "looks": self.mode,
            "planned": self.planned,
            "power": POWER,
            "needed": self.needed,
            "needed_same_prompts": self.needed_same_prompts,
            "history": [asdict(look) for look in self.looks],
            "sentence": self.sentence,
        }


def run_race(
    votes: VoteRows,
    between: tuple[str, str],
    judged: Callable[[int], tuple[Lead, float]] | None = None,
    *,
    stop: bool = True,
    budget: int | None = None,
    looks: Looks = "any",
    planned: int | None = None,
    level: float = 0.95,
) -> Race:
    """Follow the lead of one model over another, look by look, until it is beyond doubt.

    The lead is that of Bradley-Terry of all votes so far: votes on other pairs count for what they
    say of these two. Its variance, the least data and the interval at each look are those of a
    gate (`errors_at`), so that asymptotically at most ``1 - level`` of all races of equal
    models ever stop. Pairs may be drawn by the votes so far.

    Parameters
    ----------
    votes : VoteRows
        In the order in which they were cast, a row each.
    judged : callable, optional
        Returns the lead by this many of the first votes and a judge's verdicts together, and what
        the verdicts counted; raises `NotIdentifiedError` before there is any.
    stop : bool
        Stop as soon as the two are separated.
    budget : int, optional
        Look at this many votes at most.
    looks : "any" or int
        Any number, without end: at most `MOST_LOOKS`, after a geometric sequence of votes. A
        number: this many, after equal parts of the planned votes.
    planned : int, optional
        Votes on either model: to be fixed before the first look.

    Raises
    ------
    DataError
        If a model has no votes, both are one, or an option is out of range.
    """
    _check(votes, between, budget)
    _check_looks(looks, planned, level)
    ends = [votes.models.index(name) for name in between]
    rows = votes.taken(slice(budget)) if budget is not None else votes
    either = rows.on(ends[0]) | rows.on(ends[1])
    at = _places(either, looks, _planned_votes(looks, planned))
    data = rows.one_by_one()
    cells = intersection(data).index if data.prompt is not None else None
    _, first = np.unique(rows.voter, return_index=True)
    counts, voters = either.cumsum(), np.bincount(first, minlength=rows.n).cumsum()
    seen: list[_Look] = []
    separated, weight, known = None, None, None
    for n in at:
        part = slice(int(n))
        try:
            if judged is None:
                lead = lead_of(
                    data.subset(part), between, cells=None if cells is None else cells[part]
                )
            else:
                lead, weight = judged(int(n))
        except NotIdentifiedError:
            continue
        if lead.effective < WELL_FOUNDED:
            continue
        ask = (looks, planned, int(counts[n - 1]), level)
        value, half = POINTS_PER_NAT * lead.value, POINTS_PER_NAT * lead.half_width(*ask)
        if not np.isfinite(half):
            continue
        seen.append(_Look(int(voters[n - 1]), int(n), value, value - half, value + half))
        if seen[-1].separates and separated is None:
            separated = seen[-1]
            if stop:
                break
        known = lead, ask
    needed: tuple[int | None, int | None] = (None, None) if separated is None else (0, 0)
    if separated is None and known is not None:
        needed = known[0].needed(abs(known[0].value), *known[1])
    return Race(
        between,
        tuple(seen),
        separated,
        rows.n,
        int(voters[-1]),
        level,
        None if judged is None else weight or 0.0,
        looks,
        _planned_votes(looks, planned),
        needed[1],
        needed[0],
    )


def _check(votes: VoteRows, between: tuple[str, str], budget: int | None) -> None:
    if between[0] == between[1]:
        raise DataError(f"A race is between two models, not {between[0]!r} and itself.")
    require_both(votes.models, between)
    if budget is not None and budget < 1:
        raise DataError(f"--budget {budget} are no votes: give one or more.")


def _places(either: Bools, looks: Looks, planned: int | None) -> Ints:
    """Choose after how many votes to look.

    Parameters
    ----------
    either : ndarray of shape (n,), bool
        Which votes are on either model.
    """
    last = np.flatnonzero(either) + 1
    if looks == 1:
        return last[:planned][-1:]
    if looks != "any":
        parts = np.ceil(np.arange(1, looks + 1) * (planned or 0) / looks).astype(np.int64)
        return last[np.unique(parts[parts <= len(last)]) - 1]
    if len(last) < WELL_FOUNDED:
        return last[:0]
    every = np.round(np.geomspace(WELL_FOUNDED, len(last), MOST_LOOKS)).astype(np.int64)
    return np.append(last[np.unique(every)[:-1] - 1], len(either))
