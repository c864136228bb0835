"""A race of two models that stops itself, however often one looks."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, NamedTuple

import numpy as np
import scipy  # its submodules load on first use

from rating.elo import POINTS_PER_NAT
from rating.errors import DataError
from rating.likelihood.objective import hessian, solve, win_probability
from rating.rows import VoteRows
from rating.typing import Floats, Ints
from rating.uncertainty.contrasts import WELL_FOUNDED
from rating.uncertainty.sequence import MIN_VOTERS, boundary, tightest_at
from rating.uncertainty.student import quantile

RIDGE = 0.01
"""Gives a place to a model that has not won or lost yet."""
MOST_LOOKS = 400
PLANNED = 200
FEWEST_SCORED = 5.0
"""Votes that each of the two has to win, and to lose, before the size of a lead is estimated."""


class Control(NamedTuple):
    """What a judge explains of the votes of a race.

    Attributes
    ----------
    each : ndarray of shape (n,)
        By how much the judge prefers side A in the battle of each vote more than it does on the
        average of this pair; 0 where it was not asked.
    mean_variance : ndarray of shape (n_models, n_models)
        Variance of that average, of each pair; 0 for a pair without verdicts.
    """

    each: Floats
    mean_variance: Floats


@dataclass(frozen=True, slots=True)
class Look:
    """What was known when somebody looked; points of the first model's lead."""

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
        Up to the stop; empty with fewer than `MIN_VOTERS` voters.
    separated : Look or None
        The first that separates the two.
    votes, voters : int
        All that there were, up to the budget.
    judge_weight : float or None
        What a judge's verdicts counted in the end, from 0 to 1; None without a judge.
    """

    between: tuple[str, str]
    looks: tuple[Look, ...]
    separated: Look | None
    votes: int
    voters: int
    level: float
    judge_weight: float | None

    @property
    def badge(self) -> str | None:
        """What may be said of the two, however often somebody looked; None where nothing may."""
        if self.separated is None:
            return None
        return f"separated, however often one looked ({100 * self.level:g} %)"

    @property
    def sentence(self) -> str:
        """The answer in words."""
        first, second = self.between
        if not self.looks:
            return (
                f"{first} and {second}: nothing can be said before {MIN_VOTERS} voters have voted "
                f"({WELL_FOUNDED} who vote alike often), votes link the two, and each has won and "
                f"lost {FEWEST_SCORED:.0f}; there are {self.votes:,} votes of {self.voters:,} "
                "voters."
            )
        look = self.separated or self.looks[-1]
        lead = f"{look.lead:+.0f} points ({look.lower:+.0f} to {look.upper:+.0f})"
        if self.separated is None:
            return (
                f"{first} against {second}: {lead} after {look.votes:,} votes of {look.voters:,} "
                f"voters; not separated ({100 * self.level:g} %, however often one looks)."
            )
        ahead, behind = self.between if look.lead > 0 else (second, first)
        return (
            f"{ahead} is ahead of {behind} after {look.votes:,} votes of {look.voters:,} voters: "
            f"{self.badge}. Lead of {first}: {lead}."
        )

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
            "looks": [asdict(look) for look in self.looks],
            "sentence": self.sentence,
        }


def run_race(
    votes: VoteRows,
    between: tuple[str, str],
    control: Control | None = None,
    *,
    stop: bool = True,
    budget: int | None = None,
    planned: int = PLANNED,
    level: float = 0.95,
) -> Race:
    """Follow the lead of one model over another, voter by voter, until it is beyond doubt.

    The lead is that of Bradley-Terry of all votes so far: votes on other pairs count for what they
    say of these two. With t voters, and h_u what voter u moved the lead by, the interval is::

        lead +- sqrt(t / (t - 1) sum_u h_u^2 + lam^2 m) sqrt(t) boundary(t)

    with the boundary of `rating.uncertainty.sequence.boundary`: at most ``1 - level``
    of all races of equal models ever stop, at any number of looks [1]_. It is widened to errors of
    Student's t that are as unlikely, with the effective voters of the lead less one. A voter
    enters with all votes, when the last one is cast; ``h_u`` is divided by one less the voter's
    share of the information on the lead, as a jackknife would. There is no look with fewer than
    `MIN_VOTERS` voters, `WELL_FOUNDED` effective ones, or `FEWEST_SCORED` votes that each of the
    two won, and lost. Pairs may be drawn by the votes so far.

    With a judge the score of a vote is ``score - lam control``, lam in [0, 1] of least variance
    (a control variate [2]_). The averages that control is counted from are of verdicts: m is what
    their variances do to the lead. That error is the same at every look, so the boundary holds for
    the sum of both, by Slepian's inequality.

    Parameters
    ----------
    votes : VoteRows
        In the order in which they were cast, a row each.
    control : Control, optional
        Of a judge that helps.
    stop : bool
        Stop as soon as the two are separated.
    budget : int, optional
        Look at so many votes at most.
    planned : int
        Voters at which the interval is to be tightest: to be fixed before the first look.

    Raises
    ------
    DataError
        If a model has no votes, both are one, or an option is out of range.

    References
    ----------
    .. [1] I. Waudby-Smith, D. Arbour, R. Sinha, E. H. Kennedy and A. Ramdas, "Time-uniform central
       limit theory and asymptotic confidence sequences", Annals of Statistics 52(6), 2024.
    .. [2] A. N. Angelopoulos, J. C. Duchi and T. Zrnic, "PPI++: Efficient prediction-powered
       inference", arXiv 2311.01453, 2023.
    """
    _check(votes, between, budget, planned, level)
    ends = votes.models.index(between[0]), votes.models.index(between[1])
    turn, voter, finished = _by_voter(votes.voter[:budget])
    rows = replace(votes.taken(turn), groups={"voter": voter})
    if control is not None:
        control = control._replace(each=control.each[turn])
    rho = tightest_at(planned, level=level)
    looks: list[Look] = []
    separated, lam, theta = None, 0.0, np.zeros(len(votes.models))
    for t in _looks(len(finished)):
        n = int(finished[t - 1])
        seen = rows.taken(slice(n))
        if not comparable(_wins(seen, seen.score), ends):
            continue
        state = _state(seen, control, theta, ends)
        theta, lam = state.theta, state.lam
        if state.effective < WELL_FOUNDED:
            continue
        error = np.sqrt(t / (t - 1) * state.squares + state.mean_variance)
        errors = float(boundary(np.array([t]), rho, level=level)[0]) * np.sqrt(t)
        lead = POINTS_PER_NAT * state.lead
        half = POINTS_PER_NAT * error * _student(errors, state.effective - 1)
        looks.append(Look(t, n, lead, lead - half, lead + half))
        if looks[-1].separates and separated is None:
            separated = looks[-1]
            if stop:
                break
    return Race(
        between,
        tuple(looks),
        separated,
        rows.n,
        len(finished),
        level,
        None if control is None else lam,
    )


def _check(
    votes: VoteRows, between: tuple[str, str], budget: int | None, planned: int, level: float
) -> None:
    if between[0] == between[1]:
        raise DataError(f"A race is between two models, not {between[0]!r} and itself.")
    for name in between:
        if name not in votes.models:
            some = ", ".join(map(repr, votes.models[:3]))
            raise DataError(f"There are no votes on {name!r}; there are on {some} and others.")
    if budget is not None and budget < 1:
        raise DataError(f"--budget {budget} are no votes: give one or more.")
    if planned < 1:
        raise DataError(f"--planned {planned} are no voters: give one or more.")
    if not 0 < level < 1:
        raise DataError(f"--level {level:g} is no level: give one between 0 and 1.")


def _by_voter(voter: Ints) -> tuple[Ints, Ints, Ints]:
    """Put whole voters one behind the other, by their last vote.

    Returns
    -------
    ndarray of shape (n,)
        Rows in this order.
    ndarray of shape (n,)
        Places of their voters in it.
    ndarray of shape (n_voters,)
        Number of votes up to each voter's last.
    """
    known, place, count = np.unique(voter, return_inverse=True, return_counts=True)
    last = np.zeros(len(known), dtype=np.int64)
    np.maximum.at(last, place, np.arange(len(voter)))
    rank = np.empty(len(known), dtype=np.int64)
    order = np.argsort(last)
    rank[order] = np.arange(len(known))
    turn = np.argsort(rank[place], kind="stable")
    return turn, rank[place][turn], np.cumsum(count[order])


def _wins(rows: VoteRows, score: Floats) -> Floats:
    k = len(rows.models)
    return _table(rows.a, rows.b, score, k) + _table(rows.b, rows.a, 1 - score, k)


def comparable(wins: Floats, ends: tuple[int, int]) -> bool:
    """Tell whether votes link the two, and each has won and lost some.

    Parameters
    ----------
    wins : ndarray of shape (n_models, n_models)
        Score of row against column.
    """
    for end in ends:
        if min(wins[end].sum(), wins[:, end].sum()) < FEWEST_SCORED:
            return False
    met = scipy.sparse.csr_array(wins + wins.T)
    _, group = scipy.sparse.csgraph.connected_components(met, directed=False)
    return bool(group[ends[0]] == group[ends[1]])


def _student(errors: float, df: float) -> float:
    """Return what errors are as sure of by Student's t as these are by the normal law."""
    outside = 2 * float(scipy.special.ndtr(-errors))
    return quantile(1 - outside, df)


def _looks(n_voters: int) -> Sequence[int]:
    """Choose after how many voters to look: after each, or at most `MOST_LOOKS` times."""
    if n_voters < MIN_VOTERS:
        return ()
    every = np.geomspace(MIN_VOTERS, n_voters, MOST_LOOKS)
    return [int(t) for t in np.unique(np.round(every))]


class _State(NamedTuple):
    theta: Floats
    lead: float
    squares: float
    effective: float
    mean_variance: float
    lam: float


def _state(
    rows: VoteRows, control: Control | None, start: Floats, ends: tuple[int, int]
) -> _State:
    """Fit votes, and say how far each voter moved the lead."""
    score, voter = rows.score, rows.voter
    fitted = _fitted(rows, score, start, ends)
    lam, mean_variance = 0.0, 0.0
    if control is not None:
        each, k = control.each[: rows.n], len(rows.models)
        met = _table(rows.a, rows.b, np.ones(rows.n), k)
        net = np.triu((fitted.toward[:, None] - fitted.toward) * (met + met.T))
        mean_variance = float((net**2 * control.mean_variance).sum())
        weight = fitted.reach**2 * each
        spread = float(weight @ each) + mean_variance
        lam = float(np.clip(weight @ fitted.residual / spread, 0, 1)) if spread > 0 else 0.0
        fitted = _fitted(rows, score - lam * each, fitted.theta, ends)
    information = np.bincount(voter, fitted.reach**2 * fitted.expected * (1 - fitted.expected))
    share = information / information.sum()
    moved = np.bincount(voter, fitted.reach * fitted.residual) / (1 - share)
    lead = float(fitted.theta[ends[0]] - fitted.theta[ends[1]])
    effective = float(1 / (share @ share))
    return _State(fitted.theta, lead, float(moved @ moved), effective, lam**2 * mean_variance, lam)


class _Fitted(NamedTuple):
    """Strengths, and of each vote: how far a point of its score moves the lead, and the rest."""

    theta: Floats
    toward: Floats
    reach: Floats
    expected: Floats
    residual: Floats


def _fitted(rows: VoteRows, score: Floats, start: Floats, ends: tuple[int, int]) -> _Fitted:
    wins = _wins(rows, score)
    theta = solve(wins, start, ridge=RIDGE).theta
    inverse = np.linalg.inv(hessian(theta, wins, ridge=RIDGE))
    toward = inverse[ends[0]] - inverse[ends[1]]
    expected = win_probability(theta)[rows.a, rows.b]
    reach = toward[rows.a] - toward[rows.b]
    return _Fitted(theta, toward, reach, expected, score - expected)


def _table(row: Ints, column: Ints, value: Floats, k: int) -> Floats:
    return np.bincount(row * k + column, value, k * k).reshape(k, k).astype(np.float64)
