"""More than two answers in the order of a person's preference: Plackett-Luce, with ties."""

import math
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from itertools import combinations
from typing import Any, Self

import numpy as np
import scipy

from rating.errors import DataError, NotIdentifiedError
from rating.identification import strong_groups
from rating.leave_out import (
    effective_count,
    jackknife_factor,
    positive_part,
    quantile,
    quantiles,
    two_way,
)
from rating.likelihood import Evaluation, anchored, minimise
from rating.ranks import rank_ranges
from rating.typing import Bools, Floats, Ints
from rating.variants import POINTS_PER_NAT

MEAN = 1000.0
"""Points that the strengths average to."""
MOST_SHOWN = 12
"""Answers of one ranking: every set of them that may be tied for the best is summed over."""
CLUSTERS_AT_ONCE = 500
FEWEST_VOTERS = 2
NO_ERROR = 1e-9

Order = tuple[tuple[int, ...], ...]
"""A ranking: who is best, who comes next, and so on; several in one place are tied."""


@dataclass(frozen=True, slots=True, eq=False)
class Rankings:
    """Rankings of subsets of the models.

    Attributes
    ----------
    models : tuple of str
    orders : tuple of tuple of tuple of int
        Each ranking as indices of ``models``, best first; a tuple holds tied models.
    voter : ndarray of shape (n_rankings,), int64, or None
        Index of the voter; None if not known, and each ranking counts as another person's.
    prompt : ndarray of shape (n_rankings,), int64, or None
        Index of the prompt; None if not known.
    """

    models: tuple[str, ...]
    orders: tuple[Order, ...]
    voter: Ints | None = None
    prompt: Ints | None = None

    @classmethod
    def of(
        cls,
        named: Sequence[Sequence[Sequence[str]]],
        voters: Sequence[str] | None = None,
        prompts: Sequence[str] | None = None,
    ) -> Self:
        """Give numbers to the models, to those who ranked them, and to prompts.

        Parameters
        ----------
        named : sequence
            Of each ranking, the places from the best on, each with the models in it.
        voters, prompts : sequence of str, optional
            As many as rankings; an empty prompt is one by itself.

        Raises
        ------
        DataError
            If a ranking has under two models, one model twice, an empty place, or more than
            `MOST_SHOWN`; or if there are not as many voters or prompts.

        Examples
        --------
        >>> Rankings.of([[["a", "b"], ["c"]]]).orders
        (((0, 1), (2,)),)
        """
        rankings = [[tuple(place) for place in ranking] for ranking in named]
        for number, ranking in enumerate(rankings, 1):
            _require_ranking(number, ranking)
        for what, given in (("voters", voters), ("prompts", prompts)):
            if given is not None and len(given) != len(rankings):
                msg = f"{len(rankings)} rankings have {len(given)} {what}: give one each."
                raise DataError(msg)
        models = tuple(
            sorted({name for ranking in rankings for place in ranking for name in place})
        )
        at = {name: position for position, name in enumerate(models)}
        orders = tuple(
            tuple(tuple(at[name] for name in place) for place in ranking) for ranking in rankings
        )
        voter, prompt = (
            None
            if given is None
            else np.unique(
                [f"={name}" if name else str(row) for row, name in enumerate(given)],
                return_inverse=True,
            )[1].astype(np.int64)
            for given in (voters, prompts)
        )
        return cls(models, orders, voter, prompt)

    @property
    def tied(self) -> tuple[int, ...]:
        """Numbers of models that are tied somewhere, while others could have been best."""
        return tuple(sorted({len(chosen) for chosen, _, _ in self.choices() if len(chosen) > 1}))

    def choices(self) -> Iterator[tuple[tuple[int, ...], tuple[int, ...], int]]:
        """Yield who was put before the rest, out of whom, and in which ranking.

        The last who are left are no choice, unless they are tied.
        """
        for number, order in enumerate(self.orders):
            left = tuple(sorted(model for place in order for model in place))
            for place in order:
                if len(left) > 1:
                    yield tuple(sorted(place)), left, number
                left = tuple(model for model in left if model not in place)

    def beaten(self, *, tied: bool = True) -> Bools:
        """Return whether row was put before column, or in a tie, shape (n_models, n_models)."""
        scored = np.zeros((len(self.models),) * 2, dtype=bool)
        for chosen, left, _ in self.choices():
            scored[np.ix_(chosen, left)] |= tied or len(chosen) == 1
        np.fill_diagonal(scored, val=False)
        return scored


def _require_ranking(number: int, ranking: Sequence[tuple[str, ...]]) -> None:
    names = Counter(name for place in ranking for name in place)
    twice = next((name for name, n in names.items() if n > 1), None)
    if not all(ranking):
        raise DataError(f"Ranking {number} has an empty place: name a model in each.")
    if twice is not None:
        raise DataError(f"Ranking {number} names {twice!r} twice: name each model once.")
    if not 2 <= len(names) <= MOST_SHOWN:
        raise DataError(
            f"Ranking {number} has {len(names)} models: it takes 2 to {MOST_SHOWN} to rank."
        )


@dataclass(frozen=True, slots=True)
class RankedModel:
    """One model's line.

    Attributes
    ----------
    rating, se, lower, upper : float
        Points.
    strength : float
        Nats, summing to zero.
    rank_low, rank_high : int or None
        Simultaneous rank interval; None if no rank is excluded.
    rankings, first : int
        Rankings that include the model, and those that place no model before it.
    """

    model: str
    rating: float
    strength: float
    se: float
    lower: float
    upper: float
    rank: int
    rank_low: int | None
    rank_high: int | None
    rankings: int
    first: int


@dataclass(frozen=True, slots=True)
class RankedReport:
    """Models rated by rankings.

    Attributes
    ----------
    models : tuple of RankedModel
        Highest first.
    ties : mapping of int to float
        Tie parameter by number of tied models; 0 if there are no such ties.
    voters, prompts : int or None
        None where they are not known.
    df : float
        Smallest degrees of freedom of the intervals.
    log_loss : float
        Nats per ranking.
    warnings : tuple of str
    """

    models: tuple[RankedModel, ...]
    ties: dict[int, float]
    rankings: int
    voters: int | None
    prompts: int | None
    df: float
    level: float
    log_loss: float
    warnings: tuple[str, ...]

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON; what is unbounded is null."""
        rows = [asdict(row) for row in self.models]
        finite = [
            {
                name: None if isinstance(x, float) and not math.isfinite(x) else x
                for name, x in row.items()
            }
            for row in rows
        ]
        return {
            "method": "plackett-luce",
            "models": finite,
            "ties": {str(size): value for size, value in self.ties.items()},
            "rankings": self.rankings,
            "voters": self.voters,
            "prompts": self.prompts,
            "df": self.df if math.isfinite(self.df) else None,
            "level": self.level,
            "log_loss": self.log_loss,
            "warnings": list(self.warnings),
        }


ASSUMED = (
    "Assumed: each next place depends only on the strengths of the models not yet placed "
    "(Plackett-Luce)."
)
ALONE = (
    "Voters are not known: the intervals take each ranking for another person's, and are too "
    "narrow where one person ranked often."
)
_ONE_PROMPT = "All rankings are of one prompt: the intervals do not cover other prompts."


def rate_rankings(
    rankings: Rankings, *, level: float = 0.95, rng: np.random.Generator | None = None
) -> RankedReport:
    """Rate models from rankings, with intervals clustered by voter and prompt.

    Of those who are left, the set C is put before the rest with a probability proportional to
    ``d_|C| exp(mean of the strengths in C)``, ``d_1 = 1``: the Davidson-Luce model, which is
    Plackett-Luce's where nobody is tied and Davidson's where two are shown. Maximum likelihood.
    With ``V_c`` the covariance by omitting one cluster at a time (one Newton step each, CR3),
    intervals go by ``V = V_voter + [V_prompt - V_voter_and_prompt]_+`` (eigenvalues below 0 are
    0) and Student's t with the degrees of freedom of `rating.leave_out.two_way`. They are no
    narrower than by ``V_prompt`` with the effective prompts less one, and than if every ranking
    were independent.

    Parameters
    ----------
    level : float
        Of the intervals, each by itself; ranges of ranks are right together at it.
    rng : numpy.random.Generator, optional
        Draws the bar of the ranges of ranks.

    Raises
    ------
    DataError
        If there is no ranking, or voters are known and only one ranked.
    NotIdentifiedError
        If some model was never put before, or never after, the others.
    ConvergenceError
        If the strengths have no finite value.

    References
    ----------
    .. [1] R. L. Plackett, "The analysis of permutations", Applied Statistics 24(2), 1975,
       pp. 193-202.
    .. [2] D. Firth, I. Kosmidis and H. Turner, "Davidson-Luce model for multi-item choice with
       ties", arXiv 1909.07123, 2019, equation 4.

    Examples
    --------
    >>> orders = [["a"], ["b"], ["c"]], [["b"], ["c"], ["a"]], [["c"], ["a"], ["b"]]
    >>> report = rate_rankings(Rankings.of(orders, ["u", "v", "w"]))
    >>> [round(row.rating) for row in report.models]
    [1000, 1000, 1000]
    """
    if not rankings.orders:
        raise DataError("There is no ranking: give one at least.")
    problem = _Choices.of(rankings)
    _require_identified(rankings, problem)
    optimum = minimise(problem, np.zeros(problem.size))
    k = len(rankings.models)
    theta = optimum.x[:k]
    se, half, covariance, df = _uncertainty(
        problem, rankings, optimum.x, optimum.at.hessian, level
    )
    prompts = None if rankings.prompt is None else len(np.unique(rankings.prompt))
    warnings = [ASSUMED, *([ALONE] if rankings.voter is None else [])]
    if prompts == 1:
        warnings.append(_ONE_PROMPT)
    return RankedReport(
        models=_rows(
            rankings, theta, se, half, covariance, df, level, rng or np.random.default_rng(0)
        ),
        ties={size: float(np.exp(x)) for size, x in zip(problem.tied, optimum.x[k:], strict=True)},
        rankings=len(rankings.orders),
        voters=None if rankings.voter is None else len(np.unique(rankings.voter)),
        prompts=prompts,
        df=df,
        level=level,
        log_loss=optimum.at.loss / len(rankings.orders),
        warnings=tuple(warnings),
    )


def _require_identified(rankings: Rankings, problem: "_Choices") -> None:
    label, aside = strong_groups(rankings.beaten()), ""
    if (label == label[0]).all():
        label, aside = strong_groups(rankings.beaten(tied=False)), ", ties aside,"
        differ = any(len(order) > 1 for order in rankings.orders)
        if (label == label[0]).all() or not differ or not problem.recedes():
            return
    groups = [
        [rankings.models[i] for i in np.flatnonzero(label == one)] for one in np.unique(label)
    ]
    groups.sort(key=lambda group: (-len(group), group))
    named = "; ".join(", ".join(group) for group in groups)
    raise NotIdentifiedError(
        f"Strengths have no finite value: the models fall into groups of which{aside} one was "
        f"never put before another: {named}. Collect rankings in which it is, or leave one out."
    )


@dataclass(frozen=True, slots=True, eq=False)
class _Shown:
    """Choices out of equally many.

    Attributes
    ----------
    left : ndarray of shape (n, m), int64
        Models that could be chosen.
    ways : ndarray of shape (n_ways, m + n_tied)
        What each way to choose adds up: means of strengths, and a tie's parameter.
    chosen : ndarray of shape (n,), int64
        The way that was chosen.
    ranking : ndarray of shape (n,), int64
    """

    left: Ints
    ways: Floats
    chosen: Ints
    ranking: Ints

    def some(self, rows: Bools) -> "_Shown":
        return _Shown(self.left[rows], self.ways, self.chosen[rows], self.ranking[rows])


@dataclass(frozen=True, slots=True, eq=False)
class _Choices:
    """Minus the logarithm of the likelihood; parameters are strengths, then logarithms of ties."""

    n_models: int
    tied: tuple[int, ...]
    shown: tuple[_Shown, ...]
    total: float
    absolute: bool = False

    @classmethod
    def of(cls, rankings: Rankings) -> Self:
        """Sort choices by how many could be chosen."""
        tied = rankings.tied
        by_size: dict[int, list[tuple[tuple[int, ...], tuple[int, ...], int]]] = {}
        for chosen, left, number in rankings.choices():
            by_size.setdefault(len(left), []).append((chosen, left, number))
        shown = tuple(_shown(m, tied, rows) for m, rows in sorted(by_size.items()))
        return cls(len(rankings.models), tied, shown, float(len(rankings.orders)))

    @property
    def size(self) -> int:
        return self.n_models + len(self.tied)

    def recedes(self) -> bool:
        """Return whether the likelihood rises without end along some line: no maximum is finite.

        It does where each choice gains on, or keeps up with, every way not chosen; a linear
        program looks for such a line.
        """
        rows = []
        for one in self.shown:
            cases = np.unique(np.column_stack([self._at(one), one.chosen]), axis=0)
            gains = one.ways[cases[:, -1], None] - one.ways
            wide = np.zeros((*gains.shape[:2], self.size))
            np.put_along_axis(wide, cases[:, None, :-1], gains, axis=2)
            rows.append(wide.reshape(-1, self.size))
        gains = np.unique(np.concatenate(rows), axis=0)
        bounds = [(0.0, 0.0), *[(-1.0, 1.0)] * (self.size - 1)]
        best = scipy.optimize.linprog(
            -gains.sum(axis=0), A_ub=-gains, b_ub=np.zeros(len(gains)), bounds=bounds
        )
        return best.fun is not None and bool(best.fun < -1e-9)

    def evaluate(self, x: Floats) -> Evaluation:
        """Return loss, gradient and Hessian."""
        loss, gradient, hessian = 0.0, np.zeros(self.size), np.zeros((self.size, self.size))
        for one in self.shown:
            lost, slope, curve = self._local(one, x)
            at = self._at(one)
            loss += float(lost.sum())
            np.add.at(gradient, at, slope)
            np.add.at(hessian, (at[:, :, None], at[:, None, :]), curve)
        return Evaluation(loss, gradient, hessian)

    def by_cluster(self, x: Floats, cluster: Ints, n: int) -> tuple[Floats, Floats]:
        """Return gradients (n, p) and Hessians (n, p, p) of clusters, by each ranking's own."""
        gradient, hessian = np.zeros((n, self.size)), np.zeros((n, self.size, self.size))
        for one in self.shown:
            part = one.some(cluster[one.ranking] >= 0)
            _, slope, curve = self._local(part, x)
            at, own = self._at(part), cluster[part.ranking]
            np.add.at(gradient, (own[:, None], at), slope)
            np.add.at(hessian, (own[:, None, None], at[:, :, None], at[:, None, :]), curve)
        return gradient, hessian

    def _local(self, one: _Shown, x: Floats) -> tuple[Floats, Floats, Floats]:
        inside = np.take(x, self._at(one)) @ one.ways.T
        top = inside.max(axis=1, keepdims=True)
        p = np.exp(inside - top)
        total = p.sum(axis=1, keepdims=True)
        p /= total
        taken = inside[np.arange(len(p)), one.chosen]
        mean = p @ one.ways
        curve = np.einsum("nc,ci,cj->nij", p, one.ways, one.ways, optimize=True)
        curve -= mean[:, :, None] * mean[:, None, :]
        return (top + np.log(total))[:, 0] - taken, mean - one.ways[one.chosen], curve

    def _at(self, one: _Shown) -> Ints:
        """Positions of a choice's parameters among all, shape (n, m + n_tied)."""
        ties = np.broadcast_to(
            np.arange(self.n_models, self.size), (len(one.left), len(self.tied))
        )
        return np.hstack([one.left, ties])


def _shown(
    m: int, tied: tuple[int, ...], rows: Sequence[tuple[tuple[int, ...], tuple[int, ...], int]]
) -> _Shown:
    sets = [each for size in (1, *tied) if size <= m for each in combinations(range(m), size)]
    ways = np.zeros((len(sets), m + len(tied)))
    for way, each in zip(ways, sets, strict=True):
        way[list(each)] = 1 / len(each)
        if len(each) > 1:
            way[m + tied.index(len(each))] = 1.0
    number = {each: i for i, each in enumerate(sets)}
    return _Shown(
        left=np.array([left for _, left, _ in rows], dtype=np.int64),
        ways=ways,
        chosen=np.array(
            [number[tuple(left.index(model) for model in chosen)] for chosen, left, _ in rows],
            dtype=np.int64,
        ),
        ranking=np.array([ranking for _, _, ranking in rows], dtype=np.int64),
    )


def _uncertainty(
    problem: _Choices, rankings: Rankings, x: Floats, hessian: Floats, level: float
) -> tuple[Floats, Floats, Floats, float]:
    """Give standard errors, half-widths of intervals, the covariance of ranks, and the least df.

    The covariance is wider where intervals are no narrower than by prompts alone, or by
    independent rankings.
    """
    k, alone = problem.n_models, np.arange(len(rankings.orders))
    voter = alone if rankings.voter is None else rankings.voter
    by_voter, voters_df = _clustered(problem, voter, x, hessian)
    if rankings.voter is not None and len(np.unique(voter)) < FEWEST_VOTERS:
        raise DataError("One voter made all rankings: intervals take two voters at least.")
    voters_df = math.inf if rankings.voter is None else voters_df
    independent = by_voter if voter is alone else _clustered(problem, alone, x, hessian)[0]
    by_prompt, prompts_df, more = np.zeros((k, k)), math.inf, np.zeros((k, k))
    if rankings.prompt is not None:
        cell = np.unique([voter, rankings.prompt], axis=1, return_inverse=True)[1].ravel()
        by_prompt, prompts_df = _clustered(problem, rankings.prompt, x, hessian)
        more = positive_part(by_prompt - _clustered(problem, cell, x, hessian)[0])
    variance, df = two_way(
        (np.diag(by_voter), np.full(k, voters_df)),
        (np.diag(more), np.full(k, prompts_df)),
        np.zeros(k),
    )
    if not (df > 0).all():
        return np.sqrt(variance), np.full(k, math.inf), by_voter + more, 0.0
    own = quantiles(level, df) * np.sqrt(variance)
    floors = quantile(level, np.inf) * np.sqrt(np.diag(independent))
    if prompts_df > 0:
        floors = np.maximum(floors, quantile(level, prompts_df) * np.sqrt(np.diag(by_prompt)))
    wider = np.maximum(1.0, np.divide(floors, own, out=np.ones(k), where=own > 0))
    covariance = (by_voter + more) * np.outer(wider, wider)
    return np.sqrt(variance), np.maximum(own, floors), covariance, float(df.min())


def _clustered(
    problem: _Choices, cluster: Ints, x: Floats, hessian: Floats
) -> tuple[Floats, float]:
    """Omit one cluster at a time; gives the covariance, and effective clusters less one."""
    _, cluster = np.unique(cluster, return_inverse=True)
    n = np.bincount(cluster)
    whole = anchored(hessian, problem.n_models, absolute=False)
    spread = np.zeros_like(hessian)
    for first in range(0, len(n), CLUSTERS_AT_ONCE):
        some = np.arange(first, min(first + CLUSTERS_AT_ONCE, len(n)))
        place = np.full(len(n), -1)
        place[some] = np.arange(len(some))
        gradient, own = problem.by_cluster(x, place[cluster], len(some))
        shift = np.array([_moved(whole - h, g) for g, h in zip(gradient, own, strict=True)])
        spread += shift.T @ shift
    k, covariance = problem.n_models, _centred(jackknife_factor(len(n)) * spread, problem.n_models)
    return covariance[:k, :k], effective_count(n) - 1


def _moved(rest: Floats, slope: Floats) -> Floats:
    """Return how far the parameters move without a voter, by one Newton step."""
    values, vectors = np.linalg.eigh(rest)
    known = values > 1e-9 * values[-1]  # without the voter, some direction may be unknown
    return np.asarray((vectors[:, known] / values[known]) @ (vectors[:, known].T @ slope))


def _centred(covariance: Floats, k: int) -> Floats:
    """Give the covariance of strengths that sum to zero."""
    turn = np.eye(len(covariance))
    turn[:k, :k] -= 1 / k
    return np.asarray(turn @ covariance @ turn.T)


def _rows(
    rankings: Rankings,
    theta: Floats,
    se: Floats,
    half: Floats,
    covariance: Floats,
    df: float,
    level: float,
    rng: np.random.Generator,
) -> tuple[RankedModel, ...]:
    varied = se >= NO_ERROR  # equal rankings say nothing of others
    half = np.where(varied, half, math.nan)
    ranges = None
    if df > 0 and varied.any():
        ranges = rank_ranges(theta, covariance, rng=rng, df=df, level=level)
    shown = Counter(model for order in rankings.orders for place in order for model in place)
    first = Counter(model for order in rankings.orders for model in order[0])
    rows = []
    for i in np.lexsort((np.array(rankings.models), -theta)):
        claimed = ranges is not None and bool(ranges.claimed[i] and varied[i])
        rows.append(
            RankedModel(
                model=rankings.models[i],
                rating=float(MEAN + POINTS_PER_NAT * theta[i]),
                strength=float(theta[i]),
                se=float(POINTS_PER_NAT * se[i]),
                lower=float(MEAN + POINTS_PER_NAT * (theta[i] - half[i])),
                upper=float(MEAN + POINTS_PER_NAT * (theta[i] + half[i])),
                rank=1 + int((theta > theta[i] + 1e-9).sum()),
                rank_low=int(ranges.low[i]) if ranges is not None and claimed else None,
                rank_high=int(ranges.high[i]) if ranges is not None and claimed else None,
                rankings=shown[int(i)],
                first=first[int(i)],
            )
        )
    return tuple(rows)
