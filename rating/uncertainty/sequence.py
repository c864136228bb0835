"""A lead that is looked at again as votes come in: its variance, and how far an interval reaches.

Gates, races and whatever else stops at a lead share this: what the lead rests on (`Lead`), the
least data (`require_comparable`, `WELL_FOUNDED`) and the boundaries of three ways to look
(`errors_at`).
"""

import math
from dataclasses import dataclass
from functools import cache, partial
from typing import Literal

import numpy as np
import scipy  # its submodules load on first use

from rating.comparisons import Comparisons
from rating.errors import ConvergenceError, DataError, NotIdentifiedError
from rating.leave_out import Known, jackknife_variance, two_way
from rating.likelihood.objective import hessian, solve, win_probability
from rating.likelihood.ties import A, B
from rating.typing import Floats, Integers, Ints
from rating.uncertainty.clusters import intersection
from rating.uncertainty.student import normal_quantile, student_quantiles

Looks = Literal["any"] | int

RIDGE = 0.01
"""Gives a place to a model that has not won or lost yet."""
FEWEST_SCORED = 5
"""Votes that each of the two has to win, and to lose, before the size of a lead is estimated."""
PLANNED = 2000
"""Votes on either model that are planned, where nobody says how many."""
POWER = 0.8
"""Probability with which the votes that a plan names show a lead of the size assumed."""
MOST_NEEDED = 10_000_000
"""Votes beyond which nobody waits: the lead is as good as on the line."""
MOST_PLACED = 5
"""Looks up to which the worst places of so many are searched; beyond, every place is a look."""
_ENDLESS = 20.0
"""Standard errors beyond which an interval has no ends."""
_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(24)


def check_looks(looks: Looks, planned: int | None, level: float) -> None:
    """Raise `DataError` for a way to look that cannot be."""
    if looks != "any" and not (isinstance(looks, int) and looks >= 1):
        raise DataError(f"--looks must be any, or a number from 1 on, not {looks!r}.")
    if planned is not None and planned < 1:
        raise DataError(f"--planned must be 1 vote or more, not {planned}.")
    if not 0 < level < 1:
        raise DataError(f"--level must lie between 0 and 1, such as 0.95, not {level:g}.")


def planned_votes(looks: Looks, planned: int | None) -> int | None:
    """Return the planned votes: `PLANNED` by default, or for a single look all that there are."""
    return PLANNED if planned is None and looks != 1 else planned


def looks_caption(looks: Looks, planned: int | None, level: float) -> str:
    """Name the level of an interval, and the looks for which it holds.

    >>> looks_caption("any", None, 0.95), looks_caption(3, 900, 0.95)
    ('95%, any number of looks, planned for 2,000 votes', '95%, 3 looks at up to 900 votes')
    """
    votes = planned_votes(looks, planned)
    how = {
        "any": f"any number of looks, planned for {votes or 0:,} votes",
        1: "one look" if votes is None else f"one look at up to {votes:,} votes",
    }.get(looks, f"{looks} looks at up to {votes or 0:,} votes")
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
    Brownian motion in its information ``I = 1 / V``, whatever the votes have in common [1]_.
    Votes that repeat voters or prompts of earlier ones make them larger, and by Slepian's
    inequality a boundary is then crossed less often.

    * Any number of looks, without end: the boundary of a confidence sequence, tightest at the
      information that the planned votes give on two even models, a quarter each.
    * K looks at up to N planned votes: ``c_K / sqrt(n / N)`` after n votes, see `critical`.
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
    total = planned_votes(looks, planned)
    if looks == "any":
        done = information / ((total or 1) / 4)
        rho = tightest_at(1, level=level)
        return float(boundary(np.array([done]), rho, level=level)[0]) * math.sqrt(done)
    share = 1.0 if looks == 1 else min(1.0, votes / (total or 1))
    return critical(looks, level) / math.sqrt(share)


@cache
def critical(looks: int, level: float) -> float:
    """Return the c that ``|B(t)|`` passes, at the worst places of so many looks, in 1 - level.

    B is a Brownian motion on [0, 1]. Beyond `MOST_PLACED` looks it is the c that is passed
    anywhere [1]_::

        P(sup |B| > c) = 1 - 4/pi sum_k (-1)^k / (2k + 1) exp(-pi^2 (2k + 1)^2 / (8 c^2))

    References
    ----------
    .. [1] W. Feller, An Introduction to Probability Theory and Its Applications 2, 2nd ed., 1971,
       section X.5.

    Examples
    --------
    >>> [round(critical(looks, 0.95), 3) for looks in (1, 2, 3, 4, 5, 6)]
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
    data: Comparisons,
    between: tuple[str, str],
    *,
    voters: bool = True,
    cells: Ints | None = None,
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
