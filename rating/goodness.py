"""Goodness of fit of a rating: pairs of models, groups of votes, and weights.

`goodness_of_fit` and `misfit_test` compare observed with expected outcomes of pairs. `nested_test`
tests whether groups of votes, such as categories, need ratings of their own. `reweighted` and
`weighed` show how far the ranking depends on the weights of voters and prompts.
"""

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal

import numpy as np
import scipy

from rating.comparisons import Comparisons
from rating.counting import narrowest
from rating.covariance import Grouping, is_plain
from rating.errors import ConvergenceError, DataError, NotIdentifiedError
from rating.fitting import Fit, fit
from rating.leave_out import influence_variance, quantile
from rating.likelihood import SCORE_A, ScoredCells, outcome_counts, win_probability
from rating.rows import VoteRows
from rating.typing import Bools, Floats, Ints
from rating.variants import POINTS_PER_NAT, to_points

# Pairs of models


DRAWS = 499
CLUSTERS_AT_ONCE = 2000
TIES_OF_ALL = 5.0
"""Votes with the tie rate of all pairs that are added to a pair's own, to know its tie rate."""

_EXACT = 1e-6
"""Share of a residual's variance below which the fit follows the pair whatever it says."""


@dataclass(frozen=True, slots=True, eq=False)
class GoodnessOfFit:
    """Observed against expected outcomes, by unordered pair of models.

    Attributes
    ----------
    models : tuple of str
    pairs : ndarray of shape (n_pairs, 2), int64
        The pairs that met, first index lower.
    residual : ndarray of shape (n_pairs,)
        ``(score - expected) / sd`` of the first model's score. The sd is that
        of the difference between independent votes and a fit to them; NaN
        where the fit follows the pair whatever its votes.
    pearson, g2 : ndarray of shape (n_pairs,)
        Contributions to the totals.
    pearson_total, g2_total : float
    df : int
        Pairs times (outcomes - 1), less the free parameters: pairs less
        (models - 1) for plain Bradley-Terry. Chi-squared holds for
        independent votes of weight one without half-win ties.
    """

    models: tuple[str, ...]
    pairs: Ints
    residual: Floats
    pearson: Floats
    g2: Floats
    pearson_total: float
    g2_total: float
    df: int


@dataclass(frozen=True, slots=True)
class MisfitTest:
    """Goodness-of-fit test over all pairs.

    Attributes
    ----------
    p : float
        Probability of residuals as large, or larger.
    n_far : float
        Expected number of pairs beyond ``far`` under the fit.
    """

    p: float
    n_far: float


def goodness_of_fit(fit: Fit, data: Comparisons) -> GoodnessOfFit:
    """Compare observed and expected outcomes of every pair.

    ``pearson = sum (observed - expected)^2 / expected`` and
    ``g2 = 2 sum observed log(observed / expected)`` over the outcomes that the
    likelihood tells apart. Expectations follow the order effect and the
    features of each vote, before sides are put together.

    A residual is what is left of a pair's score when the fit has followed it
    as far as it can. With r the raw residuals, g the gradient of the
    log-likelihood and ``D = dE(score)/dx``, it is ``r - D H^- g``, of variance::

        Var(r) - 2 D H^- Cov(g, r) + D H^- Var(g) H^- D'

    for independent votes. Under half wins a vote's variance is that of three
    outcomes, ``p (1 - p) - t / 4``, t the pair's tie rate shrunk towards that
    of all votes by `TIES_OF_ALL` votes; ties have no place in the likelihood,
    and would else make every residual too small.

    References
    ----------
    .. [1] A. Agresti, Categorical Data Analysis, 2nd ed., 2002, sections 4.5
       and 10.6.
    .. [2] S. J. Haberman, "The analysis of residuals in cross-classified
       tables", Biometrics 29(1), 1973, pp. 205-220 (the variance of a
       residual after the fit).
    """
    merged = data.merged()
    whole = _Pairs.of(fit, merged)
    m = len(fit.likelihood.outcomes)
    observed = _unordered(outcome_counts(merged.table(), fit.likelihood))
    expected = _unordered(_expected_counts(fit, merged))
    met = np.triu(observed.sum(axis=-1) > 0)
    o, e = observed[met], expected[met]
    logs = np.log(np.where(o > 0, o, 1.0) / np.where(o > 0, e, 1.0))
    pearson, g2 = ((o - e) ** 2 / e).sum(axis=1), 2 * (o * logs).sum(axis=1)
    free = len(fit.x) - (not fit.absolute)
    return GoodnessOfFit(
        models=fit.models,
        pairs=np.argwhere(met),
        residual=np.asarray(whole.raw / whole.sd()),
        pearson=pearson,
        g2=g2,
        pearson_total=float(pearson.sum()),
        g2_total=float(g2.sum()),
        df=len(o) * (m - 1) - free,
    )


def misfit_test(
    fit: Fit,
    data: Comparisons,
    groups: Grouping | None,
    judged: Bools,
    *,
    rng: np.random.Generator,
    far: float = 2.0,
    draws: int = DRAWS,
) -> MisfitTest:
    """Test goodness of fit over all pairs.

    The statistic is the sum of the fourth powers of the residuals: it sees a
    single pair that is far off nearly as well as the largest of them would,
    and many that are a little off nearly as well as the sum of squares. A draw
    changes the sign of all that a cluster adds to the raw residuals and to the
    gradient, each cluster by its own coin, and lets the fit follow as in
    `goodness_of_fit`: what hangs together in a cluster stays together, random effects
    among it. Without clusters every vote has its own coin.

    Parameters
    ----------
    groups : Grouping or None
        Voters, as a rule; None if votes are independent.
    judged : ndarray of shape (n_pairs,), bool
        Pairs of `goodness_of_fit` that count, of those whose residual is known.
    far : float
        Residual beyond which a pair is called far.

    References
    ----------
    .. [1] P. Kline and A. Santos, "A score based approach to wild bootstrap
       inference", Journal of Econometric Methods 1(1), 2012, pp. 23-41.
    """
    whole = _Pairs.of(fit, data.merged())
    sd = whole.sd()
    judged = judged & ~np.isnan(sd)
    drawn = _drawn(fit, data, groups, whole, draws, rng)[:, judged] / sd[judged]
    seen = whole.raw[judged] / sd[judged]
    at_least = (drawn**4).sum(axis=1) >= (seen**4).sum()
    return MisfitTest(
        p=(1 + int(at_least.sum())) / (1 + draws),
        n_far=float((np.abs(drawn) > far).sum(axis=1).mean()),
    )


@dataclass(frozen=True, slots=True, eq=False)
class _Cells:
    """Cells at the parameters of a fit, and the score of each pair's first model in them.

    Attributes
    ----------
    number : ndarray of shape (n_cells,), int64
        ``n_models * i + j`` of the unordered pair, i the lower.
    raw : ndarray of shape (n_cells,)
        Weighted score of the first model less what is expected.
    variance : ndarray of shape (n_cells,)
        Of one vote's score by the likelihood.
    slope : tuple of ndarray of shape (n_cells,)
        Derivatives of one vote's expected score in the local coordinates.
    """

    cells: ScoredCells
    number: Ints
    raw: Floats
    variance: Floats
    slope: tuple[Floats, ...]

    @classmethod
    def of(cls, fit: Fit, data: Comparisons) -> "_Cells":
        cells = fit.scored(data)
        a, b = cells.design.a, cells.design.b
        mean, square = np.zeros(len(a)), np.zeros(len(a))
        slope = [np.zeros(len(a)) for _ in cells.slope]
        for code, probability, local in fit.cells(data).each_outcome(fit.x):
            score = SCORE_A[code]
            mean += probability * score
            square += probability * score**2
            for total, change in zip(slope, local.slope, strict=True):
                total -= probability * score * change
        sign = np.where(a < b, 1.0, -1.0)
        return cls(
            cells,
            np.minimum(a, b) * fit.n_models + np.maximum(a, b),
            sign * data.weight * (SCORE_A[data.outcome] - mean),
            square - mean**2,
            tuple(sign * each for each in slope),
        )


@dataclass(frozen=True, slots=True, eq=False)
class _Pairs:
    """Raw residuals of all pairs that met, and how the fit follows them.

    Attributes
    ----------
    number : ndarray of shape (n_pairs,), int64
        As `_Cells` has it, sorted.
    raw, variance : ndarray of shape (n_pairs,)
    moves : ndarray of shape (n_pairs, n_parameters)
        ``D H^-``: how the expected scores follow a gradient.
    beside : ndarray of shape (n_pairs, n_parameters)
        Covariance of the raw residuals and the gradient.
    meat : ndarray of shape (n_parameters, n_parameters)
        Variance of the gradient.
    """

    number: Ints
    raw: Floats
    variance: Floats
    moves: Floats
    beside: Floats
    meat: Floats

    @classmethod
    def of(cls, fit: Fit, data: Comparisons) -> "_Pairs":
        at = _Cells.of(fit, data)
        cells = at.cells
        number, pair = np.unique(at.number, return_inverse=True)
        n = len(number)
        untied = _untied(fit, data, pair, at.variance)
        square = cells.weight_sq * untied
        by_pair = cells.design.scores(tuple(cells.weight * d for d in at.slope), pair, n)
        beside = cells.design.scores(tuple(square * d for d in at.slope), pair, n)
        return cls(
            number,
            np.bincount(pair, at.raw, n).astype(np.float64),
            np.bincount(pair, square * at.variance, n).astype(np.float64),
            by_pair @ fit.inverse_information,
            beside,
            cells.design.hessian({of: square * curve for of, curve in cells.curve.items()}),
        )

    def sd(self) -> Floats:
        """Sd of the residuals after the fit; NaN where nothing is left of them."""
        follows = ((self.moves @ self.meat - 2 * self.beside) * self.moves).sum(axis=1)
        left = self.variance + follows
        return np.sqrt(np.where(left > _EXACT * self.variance, left, np.nan))


def _untied(fit: Fit, data: Comparisons, pair: Ints, variance: Floats) -> Floats:
    """Return the part of the likelihood's variance that ties leave, one for each cell.

    Of a likelihood that knows ties it is all. A tie rate is at most what the
    expected score allows.
    """
    if len(fit.likelihood.outcomes) > 2:
        return np.ones(len(pair))
    tied = np.isin(data.outcome, np.flatnonzero(SCORE_A == 0.5))
    votes, ties = (np.bincount(pair, data.weight * one) for one in (np.ones(len(tied)), tied))
    rate = (ties + TIES_OF_ALL * ties.sum() / votes.sum()) / (votes + TIES_OF_ALL)
    rarer = (1 - np.sqrt(np.maximum(1 - 4 * variance, 0.0))) / 2  # of p and 1 - p
    return np.asarray(1 - np.minimum(rate[pair], 2 * rarer) / (4 * variance))


def _drawn(
    fit: Fit,
    data: Comparisons,
    groups: Grouping | None,
    whole: _Pairs,
    draws: int,
    rng: np.random.Generator,
) -> Floats:
    """Draw residuals after the fit, shape (draws, n_pairs)."""
    raw, gradient = np.zeros((draws, len(whole.number))), np.zeros((draws, len(fit.hessian)))
    for sign, part, cluster in _signs(data, groups, draws, rng):
        sums, scores = _summed(fit, part, cluster, sign.shape[1], whole)
        raw += sign @ sums
        gradient -= sign @ scores
    return np.asarray(raw - gradient @ whole.moves.T)


def _summed(
    fit: Fit, data: Comparisons, cluster: Ints, size: int, whole: _Pairs
) -> tuple[Any, Floats]:
    """Sum by cluster what its cells add to the raw residual of each pair, and to the gradient."""
    if is_plain(fit):
        sums = _by_pair(*_plain_residuals(fit, data), cluster, size, whole)
        return sums, np.asarray(sums @ _sides(whole, fit.n_models))
    at = _Cells.of(fit, data)
    return _by_pair(at.raw, at.number, cluster, size, whole), at.cells.scores(cluster, size)


def _by_pair(raw: Floats, number: Ints, cluster: Ints, size: int, whole: _Pairs) -> Any:
    """Sum what cells add to the residuals, shape (size, n_pairs): dense unless most are zero."""
    shape = (size, len(whole.number))
    place = np.zeros(int(whole.number[-1]) + 1, dtype=np.int64)
    place[whole.number] = np.arange(len(whole.number))
    if len(raw) > math.prod(shape) / 8:
        key = cluster * shape[1] + place[number]
        return np.bincount(key, raw, math.prod(shape)).reshape(shape)
    return scipy.sparse.csr_array((raw, (cluster, place[number])), shape=shape)


def _plain_residuals(fit: Fit, data: Comparisons) -> tuple[Floats, Ints]:
    """Return ``raw`` and ``number`` of `_Cells` where a vote moves nothing but the gap.

    Of all that a cell can be there is a table: cells may be millions.
    """
    a, b = np.indices((fit.n_models, fit.n_models))[..., None]
    number = np.minimum(a, b) * fit.n_models + np.maximum(a, b)
    off = np.where(a < b, 1.0, -1.0) * (SCORE_A - win_probability(fit.theta)[..., None])
    code = data.codes()
    return data.weight * off.ravel()[code], np.broadcast_to(number, off.shape).ravel()[code]


def _sides(whole: _Pairs, n_models: int) -> Floats:
    """Return how a raw residual enters the gradient, shape (n_pairs, n_models)."""
    pairs = np.arange(len(whole.number))
    sides = np.zeros((len(pairs), n_models))
    sides[pairs, whole.number // n_models], sides[pairs, whole.number % n_models] = -1.0, 1.0
    return sides


def _signs(
    data: Comparisons, groups: Grouping | None, draws: int, rng: np.random.Generator
) -> Iterator[tuple[Floats, Comparisons, Ints]]:
    """Yield coins of some clusters, shape (draws, n_clusters), their cells, and whose these are.

    Without clusters a cell is one, whose sign is the mean of its votes' signs.
    """
    if groups is None:
        merged = data.merged()
        votes = merged.votes.astype(np.int64)
        heads = rng.binomial(votes, 0.5, (draws, len(votes)))
        yield np.asarray(2 * heads / votes - 1, dtype=np.float64), merged, np.arange(len(votes))
        return
    order = np.argsort(groups.index.astype(narrowest(groups.size)), kind="stable")
    index = groups.index[order]
    for first in range(0, groups.size, CLUSTERS_AT_ONCE):
        last = min(first + CLUSTERS_AT_ONCE, groups.size)
        start, stop = np.searchsorted(index, [first, last])
        sign = np.where(rng.random((draws, last - first)) < 0.5, 1.0, -1.0)
        yield sign, data.subset(order[start:stop]), index[start:stop] - first


def _expected_counts(fit: Fit, data: Comparisons) -> Floats:
    """Return the expected weight of each outcome, shape (n_models, n_models, n_outcomes)."""
    counts = [
        data.table(data.weight * probability).sum(axis=-1)
        for _, probability, _ in fit.cells(data).each_outcome(fit.x)
    ]
    return np.stack(counts, axis=-1)


def _unordered(counts: Floats) -> Floats:
    """Add what happened with sides exchanged: outcomes 0 and 1 are the wins of A and B."""
    swapped = counts.transpose(1, 0, 2).copy()
    swapped[..., [0, 1]] = swapped[..., [1, 0]]
    return np.asarray(counts + swapped)


# Groups of votes


Unit = Literal["prompt", "voter", "vote"]


@dataclass(frozen=True, slots=True, eq=False)
class Nested:
    """How far apart groups of votes lie, and what is drawn for it.

    Attributes
    ----------
    unit : {"prompt", "voter", "vote"}
        What was dealt among the groups: the largest that lies in one group whole.
    statistic : float
    drawn : ndarray of shape (n_draws,)
    dealt : float
        Share of the votes whose group could change in a draw.
    design_effect : float
        The statistic over that of votes as independent.
    explained : float or None
        Share of the squared residuals that boards of the groups take away, above what they take
        away in the draws; None of more than `MOST_EXPLAINED` groups.
    """

    unit: Unit
    statistic: float
    drawn: Floats
    dealt: float
    design_effect: float
    explained: float | None


def nested_test(
    rows: VoteRows,
    group: Ints,
    *,
    draws: int,
    rng: np.random.Generator,
    progress: Callable[[int, int], None] = lambda *_: None,
) -> Nested:
    """Hold the votes of groups against one rating for all.

    With the residual of a vote ``s_i = (score - p) x_i``, ties half, and H the information of all
    votes: ``T = sum_c S_c' H^- S_c``, ``S_c`` the sum over group c.

    The null deals groups out again at the level of the unit that is nested in them: categories
    among prompts, for votes on one prompt are alike; a voter's language among voters; prompts
    themselves among the votes of the same voter on the same pair of models (of the same pair,
    where voters are not known). To deal categories among votes takes prompts for categories.

    Parameters
    ----------
    group : ndarray of shape (n,), int64
        Of each row.

    Raises
    ------
    DataError
        If there are fewer than two groups, or no vote could be dealt to another.
    NotIdentifiedError
        If the votes identify no rating.
    """
    if len(np.unique(group)) < 2:
        raise DataError("All votes are in one group: there is nothing to compare.")
    each = np.repeat(np.arange(rows.n), rows.times)
    rows, group = rows.apart(), np.unique(group[each], return_inverse=True)[1]
    fitted = fit(rows.comparisons())
    theta = rows.placed(fitted.models, fitted.theta)
    p = np.exp(-np.logaddexp(0.0, theta[rows.b] - theta[rows.a]))
    score = np.array([1.0, 0.0, 0.5, 0.5])[rows.outcome]
    spread = np.linalg.pinv(fitted.hessian, hermitian=True)
    values, vectors = np.linalg.eigh(spread)
    root = vectors * np.sqrt(values.clip(min=0))  # spread = root root'
    unit, of_unit = _unit(rows, group)
    strata = _strata(rows) if unit == "vote" else np.zeros(int(of_unit.max()) + 1, dtype=np.int64)
    ends = np.concatenate([rows.a, rows.b])
    away = np.concatenate([score - p, p - score])
    sums = scipy.sparse.csr_array(
        (away, (np.tile(of_unit, 2), ends)), shape=(len(strata), len(rows.models))
    )
    first = np.zeros(len(strata), dtype=np.int64)
    first[of_unit] = group
    free = _free(strata, first)
    if not free.any():
        raise DataError(f"No {unit} could be dealt to another group: there is nothing to draw.")
    if not (score - p).any():
        raise DataError("Every vote is what the ratings predict: no group can differ from them.")
    statistic = _statistic(sums, first, root)
    known = _Explained(rows, of_unit, p, score)
    drawn = np.empty(draws)
    by_luck = []
    for draw in range(draws):
        other = _dealt(strata, first, rng)
        drawn[draw] = _statistic(sums, other, root)
        if draw < EXPLAINED_DRAWS and group.max() < MOST_EXPLAINED:
            by_luck.append(known.by(other))
        progress(draw + 1, draws)
    own = np.diag(spread)
    lengths = own[rows.a] + own[rows.b] - 2 * spread[rows.a, rows.b]
    alone, dealt = float((score - p) ** 2 @ lengths), float(free[of_unit].mean())
    explained = known.by(first) - float(np.mean(by_luck)) if by_luck else None
    return Nested(unit, statistic, drawn, dealt, statistic / alone, explained)


MOST_EXPLAINED = 100
EXPLAINED_DRAWS = 50
"""Draws behind the share that is explained by luck: a mean needs fewer than a tail."""


def _unit(rows: VoteRows, group: Ints) -> tuple[Unit, Ints]:
    """Name what lies in one group whole, and number it."""
    for role in ("prompt", "voter"):
        codes = rows.groups.get(role)
        if codes is None or len(np.unique(codes)) <= len(np.unique(group)):
            continue
        pairs = np.unique(np.column_stack([codes, group]), axis=0)
        if len(pairs) == len(np.unique(codes)):
            return role, np.unique(codes, return_inverse=True)[1]
    return "vote", np.arange(rows.n)


def _strata(rows: VoteRows) -> Ints:
    """Return the same number for votes of one voter on one pair of models."""
    low, high = np.minimum(rows.a, rows.b), np.maximum(rows.a, rows.b)
    voter = rows.groups.get("voter", np.zeros(rows.n, dtype=np.int64))
    pairs = np.column_stack([voter, low, high])
    return np.asarray(np.unique(pairs, axis=0, return_inverse=True)[1].reshape(-1))


def _free(strata: Ints, group: Ints) -> Bools:
    """Tell which units stand in a stratum with a unit of another group."""
    groups = np.unique(np.column_stack([strata, group]), axis=0)[:, 0]
    return np.asarray(np.bincount(groups, minlength=int(strata.max()) + 1)[strata] > 1)


def _dealt(strata: Ints, group: Ints, rng: np.random.Generator) -> Ints:
    """Deal groups out again within each stratum."""
    at = np.argsort(strata, kind="stable")
    other = np.lexsort((rng.random(len(strata)), strata))
    dealt = np.empty_like(group)
    dealt[at] = group[other]
    return dealt


def _statistic(sums: "scipy.sparse.csr_array", group: Ints, root: Floats) -> float:
    units = np.arange(len(group))
    within = scipy.sparse.csr_array((np.ones(len(group)), (group, units)))
    of_group = within @ sums
    return float(((of_group @ root) ** 2).sum())


class _Explained:
    """How much of the squared residuals the ratings of groups take away, by one Newton step."""

    def __init__(self, rows: VoteRows, of_unit: Ints, p: Floats, score: Floats) -> None:
        self.rows, self.of_unit = rows, of_unit
        self.score, self.information = score - p, p * (1 - p)
        self.total = float((self.score**2 / self.information).sum())

    def by(self, group: Ints) -> float:
        """Return the share for a grouping of the units."""
        rows, of_row, k = self.rows, group[self.of_unit], len(self.rows.models)
        n = int(group.max()) + 1
        sums = np.bincount(of_row * k + rows.a, self.score, n * k)
        sums -= np.bincount(of_row * k + rows.b, self.score, n * k)
        gain = 0.0
        for one in np.unique(of_row):
            own = of_row == one
            table = np.zeros((k, k))
            np.add.at(table, (rows.a[own], rows.b[own]), self.information[own])
            table += table.T
            known = np.diag(table.sum(axis=1)) - table
            part = sums[one * k : (one + 1) * k]
            gain += float(part @ np.linalg.pinv(known, hermitian=True) @ part)
        return gain / self.total


# Weights of voters and prompts


@dataclass(frozen=True, slots=True)
class Move:
    """How far another weighting moves a model.

    Attributes
    ----------
    rank_default, rank : int
        Equal scores share the better rank.
    moved, lower, upper : float or None
        Points; no interval where there are fewer than two clusters.
    """

    model: str
    rank_default: int
    rank: int
    moved: float
    lower: float | None
    upper: float | None


@dataclass(frozen=True, slots=True)
class Reweighted:
    """A board with other weights, beside the default one.

    Attributes
    ----------
    weighting : str
    kendall : float or None
        tau-b with the default board, over the models on both.
    places : int or None
        Most places by which a model moves.
    moves : tuple of Move
        The largest in places first.
    why_not : str or None
        Why there is no such board.
    """

    weighting: str
    kendall: float | None
    places: int | None
    moves: tuple[Move, ...]
    why_not: str | None = None

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON."""
        return asdict(self)


@dataclass(frozen=True, slots=True, eq=False)
class Scored:
    """Scores of models, and what each cluster has a part in of them.

    Attributes
    ----------
    models : tuple of str
    scores : ndarray of shape (n_models,)
        In points.
    influence : ndarray of shape (n_clusters, n_models)
        Sums to zero over the clusters, up to rounding.
    """

    models: tuple[str, ...]
    scores: Floats
    influence: Floats


def compared(weighting: str, default: Scored, other: Scored, *, level: float) -> Reweighted:
    """Compare a board with the default one, over the models on both.

    The interval of a move is Student's t on the clusters' influences on it, one step from both
    boards: the clusters are the same, so what moves both alike is in neither end.
    """
    names = [name for name in default.models if name in other.models]
    mine, theirs = (_on(board, names) for board in (default, other))
    ranks = _ranks(mine.scores), _ranks(theirs.scores)
    influence = theirs.influence - mine.influence
    n = int((influence != 0).any(axis=1).sum())
    reach = np.full(len(names), np.nan)
    if n >= 2:
        error = np.sqrt(influence_variance(influence, n))
        reach = quantile(level, n - 1) * error
    moved = theirs.scores - mine.scores
    moves = [
        Move(
            name,
            int(ranks[0][at]),
            int(ranks[1][at]),
            float(moved[at]),
            None if math.isnan(reach[at]) else float(moved[at] - reach[at]),
            None if math.isnan(reach[at]) else float(moved[at] + reach[at]),
        )
        for at, name in enumerate(names)
    ]
    moves.sort(key=lambda one: (-abs(one.rank - one.rank_default), -abs(one.moved), one.model))
    places = max((abs(one.rank - one.rank_default) for one in moves), default=None)
    return Reweighted(weighting, _kendall(mine.scores, theirs.scores), places, tuple(moves))


@dataclass(frozen=True, slots=True, eq=False)
class Weighting:
    """What groups of votes, or of prompts, weigh.

    Attributes
    ----------
    name : str
    codes : ndarray of shape (n,), int64
        The group of each row.
    totals : ndarray of shape (n_groups,)
        What each group weighs, all of it together; what weighs 0 is excluded.
    """

    name: str
    codes: Ints
    totals: Floats

    def each(self, times: Floats | Ints) -> Floats:
        """Return the weight of each row, shape (n,), the mean over what rows stand for being 1.

        Examples
        --------
        >>> Weighting("", np.array([0, 0, 1]), np.ones(2)).each(np.ones(3)).tolist()
        [0.75, 0.75, 1.5]
        """
        sizes = np.bincount(self.codes, times, len(self.totals))
        weight = np.divide(self.totals, sizes, out=np.zeros(len(sizes)), where=sizes > 0)
        weight = weight[self.codes]
        return np.asarray(weight * times.sum() / float(weight @ times))


def reweighted(
    rows: VoteRows, by: str = "group", *, others: Sequence[Weighting] = (), level: float = 0.95
) -> list[Reweighted]:
    """Rate votes with other weights: prompts, groups and voters equal; each group alone.

    Parameters
    ----------
    by : str
        What the role ``by`` is called.
    others : sequence of Weighting
        Other ways to weigh.

    Raises
    ------
    NotIdentifiedError
        If the votes identify no rating with the weights they have.

    Notes
    -----
    Clusters are voters where known, else prompts, else votes. Ties are half.
    """
    cluster, n = _clusters(rows)
    default = _rated(rows, None, None, cluster, n)
    boards = []
    for weighting in (*_weightings(rows, by), *others):
        try:
            own = None if weighting.codes is cluster else weighting.codes
            board = _rated(rows, weighting.each(rows.times), own, cluster, n)
        except (NotIdentifiedError, ConvergenceError) as error:
            boards.append(Reweighted(weighting.name, None, None, (), str(error)))
        else:
            boards.append(compared(weighting.name, default, board, level=level))
    return boards


def weighed(rows: VoteRows, weighting: str, weight: Floats, *, level: float = 0.95) -> Reweighted:
    """Rate votes with weights that are given, and taken as fixed; raises as `reweighted`.

    Parameters
    ----------
    weight : ndarray of shape (n,)
        Of one vote of each row.
    """
    cluster, n = _clusters(rows)
    default = _rated(rows, None, None, cluster, n)
    return compared(weighting, default, _rated(rows, weight, None, cluster, n), level=level)


def _clusters(rows: VoteRows) -> tuple[Ints, int]:
    roles = ("voter", "prompt")
    cluster = next((rows.groups[r] for r in roles if r in rows.groups), np.arange(rows.n))
    return cluster, int(cluster.max()) + 1


def _weightings(rows: VoteRows, by: str) -> Iterator[Weighting]:
    """Weigh all groups of a kind the same, and each of the role ``by`` alone."""
    for role, title in {"prompt": "prompt", "by": by, "voter": "voter"}.items():
        codes = rows.groups.get(role)
        if codes is not None and len(np.unique(codes)) > 1:
            yield Weighting(f"each {title} the same", codes, np.ones(int(codes.max()) + 1))
    names = rows.names.get("by", ())
    for name, alone in zip(names, np.eye(len(names)), strict=True):
        yield Weighting(f"{by} {name} alone", rows.groups["by"], alone)


def _rated(
    rows: VoteRows, weight: Floats | None, group: Ints | None, cluster: Ints, n: int
) -> Scored:
    """Rate votes with weights; those by the size of a group change with the votes in it.

    A cluster takes its own weight with it, and so is no group.
    """
    if weight is not None:
        used = weight > 0
        if group is not None:
            group = np.unique(group[used], return_inverse=True)[1]
        rows, weight, cluster = rows.taken(used), weight[used], cluster[used]
    data = rows.comparisons(weight=weight, voter=cluster, prompt=group)
    fitted = fit(data)
    assert data.voter is not None
    cells, seen = fitted.scored(data), np.unique(cluster)
    scores = cells.scores(data.voter.astype(np.int64), len(seen))
    if data.prompt is not None:  # the mean of a group replaces what is excluded from it
        of_group = cells.scores(data.prompt.astype(np.int64), data.n_prompts)
        place = (data.voter, data.prompt)
        mass = scipy.sparse.csr_array((data.weight, place), (len(seen), data.n_prompts))
        scores = scores - mass @ (of_group / mass.sum(axis=0)[:, None])
    influence = np.zeros((n, len(fitted.models)))
    influence[seen] = -POINTS_PER_NAT * (scores @ fitted.inverse_information)
    return Scored(fitted.models, to_points(fitted.theta), influence)


def _on(board: Scored, names: list[str]) -> Scored:
    at = [board.models.index(name) for name in names]
    scores, influence = board.scores[at], board.influence[:, at]
    if len(names) == len(board.models):
        return Scored(tuple(names), scores, influence)
    centre = scores.mean() - board.scores.mean()
    influence = influence - influence.mean(axis=1, keepdims=True)
    return Scored(tuple(names), scores - centre, influence)


def _ranks(scores: Floats) -> Ints:
    return np.asarray(1 + (scores[None, :] > scores[:, None]).sum(axis=1))


def _kendall(one: Floats, other: Floats) -> float | None:
    signs = [np.sign(x[:, None] - x[None, :]).ravel() for x in (one, other)]
    size = math.sqrt(float(signs[0] @ signs[0]) * float(signs[1] @ signs[1]))
    return float(signs[0] @ signs[1]) / size if size else None
