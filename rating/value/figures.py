"""What was measured on both answers of battles, drawn anew by voter: costs and seconds."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

import numpy as np
import scipy  # its submodules load on first use

from rating.sentences import Sentence
from rating.typing import Bools, Floats, Ints

ROUNDS = 2000
MOST_GROUPS = 2000
"""Voters beyond which they are drawn in so many groups of voters, dealt at random."""
FEWEST_ANSWERS = 10
"""Compared answers from which a model has a cost."""
ROUNDS_AT_ONCE = 100
MOST_LOG = 700.0
"""A draw of a logarithm beyond this would be no number: two voters leave one degree of freedom."""

Measure = Literal["cost", "seconds"]
"""US dollars, and seconds, of one answer."""

MEASURES: tuple[Measure, ...] = ("cost", "seconds")


@dataclass(frozen=True, slots=True, eq=False)
class Figures:
    """What was measured on the answers of n counted votes.

    Attributes
    ----------
    models : tuple of str
    pairs : ndarray of shape (n, 2)
        Positions of the models on side A and side B.
    voter : ndarray of shape (n,), or None
    values : mapping of str to ndarray of shape (n, 2)
        By names of `MEASURES`; NaN where it is not known.
    """

    models: tuple[str, ...]
    pairs: Ints
    voter: Ints | None
    values: Mapping[str, Floats]

    def known(self, name: str) -> Bools:
        """Say which answers have a figure, shape (n, 2); none where there is no such column."""
        if name not in self.values:
            return np.zeros(self.pairs.shape, dtype=bool)
        return ~np.isnan(self.values[name])


@dataclass(frozen=True, eq=False)
class Rounds:
    """Battles drawn anew by voter: the Bayesian bootstrap.

    Every voter gets an exponential weight, so that each round keeps all battles and every pair
    that met. Deviations are stretched by Student's t of ``effective - 1`` degrees of freedom.

    Attributes
    ----------
    group : ndarray of shape (n,), int64
        Of each battle: its voter, or itself where voters are not known, or a group of these.
    weight : ndarray of shape (n_rounds, n_groups)
    stretch : ndarray of shape (n_rounds, 1)
    warnings : tuple of Sentence

    References
    ----------
    .. [1] D. B. Rubin, "The Bayesian bootstrap", Annals of Statistics 9(1), 1981, pp. 130-134.
       Weights there are of single observations and sum to one; here they are of voters.
    """

    group: Ints
    weight: Floats
    stretch: Floats
    warnings: tuple[Sentence, ...]

    @classmethod
    def of(cls, figures: Figures, n: int, rng: np.random.Generator) -> "Rounds":
        """Draw n rounds."""
        rows = len(figures.pairs)
        voter, warnings = figures.voter, []
        if voter is None:
            warnings.append(
                Sentence(
                    "Voters are not known: costs are compared as if each battle were somebody "
                    "else's."
                )
            )
        elif _effective(voter) < 2:
            warnings.append(
                Sentence(
                    "One voter cast nearly all votes: costs are those of that voter's prompts."
                )
            )
        unit = np.arange(rows) if voter is None or warnings else voter
        effective = _effective(unit)
        _, group = np.unique(unit, return_inverse=True)
        size = int(group.max(initial=-1)) + 1
        if size > MOST_GROUPS:
            group = (rng.permutation(size) % MOST_GROUPS)[group]
            size = MOST_GROUPS
        weight = rng.standard_exponential((n, size))
        df = max(effective - 1, 1.0)
        stretch = np.sqrt(max(effective, 2.0) / rng.chisquare(df, (n, 1)))
        return cls(group.astype(np.int64), weight, stretch, tuple(warnings))

    def sums(self, values: Floats, rows: Ints, columns: Ints, size: int) -> "Sums":
        """Prepare the sum of values over battles and columns, in every round."""
        at = (self.group[rows], columns)
        shape = (self.weight.shape[1], size)
        return Sums(self.weight, scipy.sparse.csr_array((values, at), shape=shape))


@dataclass(frozen=True, slots=True, eq=False)
class Sums:
    """Sums of a table of shape (n_groups, n_columns) over groups."""

    weight: Floats
    table: "scipy.sparse.csr_array"

    @property
    def plain(self) -> Floats:
        """Every group once, shape (1, n_columns)."""
        return np.asarray(self.table.sum(axis=0), dtype=np.float64).reshape(1, -1)

    def rounds(self, some: slice) -> Floats:
        """Return some of the rounds, shape (n_some, n_columns)."""
        return np.asarray(self.weight[some] @ self.table)


def _effective(unit: Ints) -> float:
    n = np.bincount(np.unique(unit, return_inverse=True)[1]).astype(np.float64)
    return float(n.sum() ** 2 / (n**2).sum()) if n.size else 0.0


@dataclass(frozen=True, slots=True, eq=False)
class Drawn:
    """An estimate for every model, and what it is in other rounds.

    Attributes
    ----------
    value : ndarray of shape (n_models,)
        NaN for models without one.
    rounds : ndarray of shape (n_rounds, n_models)
    left_out : mapping of str to Sentence
        Why a model has none.
    answers : ndarray of shape (n_models,), int64
        Answers that it rests on.
    """

    value: Floats
    rounds: Floats
    left_out: Mapping[str, Sentence]
    answers: Ints

    def interval(self, level: float) -> tuple[Floats, Floats]:
        """Return the quantiles of the rounds; NaN where there is no value."""
        ends = np.full((2, len(self.value)), np.nan)
        there = ~np.isnan(self.value)
        ends[:, there] = np.quantile(
            self.rounds[:, there], [(1 - level) / 2, (1 + level) / 2], axis=0
        )
        return ends[0], ends[1]


@dataclass(frozen=True, slots=True, eq=False)
class Draws:
    """What `rating.value.board.Value` is read from.

    Attributes
    ----------
    models : tuple of str
    theta : ndarray of shape (n_models,)
        Nats.
    strengths : ndarray of shape (n_rounds, n_models)
        Nats, drawn from their joint covariance.
    taken : mapping of str to Drawn
    rounds : Rounds
    """

    models: tuple[str, ...]
    theta: Floats
    strengths: Floats
    taken: Mapping[Measure, Drawn]
    rounds: Rounds


NOT_KNOWN: Mapping[Measure, Sentence] = {
    "cost": Sentence("no price is known"),
    "seconds": Sentence("no time is known"),
}
NOTHING: Mapping[Measure, Sentence] = {
    "cost": Sentence("answers that cost nothing have no place on a scale of ratios"),
    "seconds": Sentence("answers that took no time have no place on a scale of ratios"),
}


def paired_means(figures: Figures, name: Measure, drawn: Rounds) -> Drawn:
    """Estimate what an answer takes by each model, all on the same prompts.

    Within battle b, ``log x_ba - log x_bb = c_a - c_b + e_b``: what a prompt asks for makes both
    answers long or short, and drops out. Least squares over all battles, as Bradley-Terry takes
    wins; then ``exp(c_m) mean(x / exp(c))`` with the mean over all compared answers (Duan's
    smearing estimate) puts ratios on the scale of the arithmetic mean. That takes costs to
    scatter alike, in their logarithm, for every model; ratios do not need it.

    Parameters
    ----------
    name : {"cost", "seconds"}

    Returns
    -------
    Drawn
        Of one answer. Models that no battle joins to most of the others have no value.

    References
    ----------
    .. [1] N. Duan, "Smearing estimate: a nonparametric retransformation method", JASA 78(383),
       1983, pp. 605-610.
    """
    k = len(figures.models)
    left_out: dict[str, Sentence] = {}
    known = figures.known(name)
    values = figures.values.get(name, np.full(figures.pairs.shape, np.nan))
    with np.errstate(invalid="ignore"):
        positive = values > 0
    free = _models(figures.pairs[known & ~positive], k)
    both = positive.all(axis=1) & ~free[figures.pairs].any(axis=1)
    compared = np.bincount(figures.pairs[both].ravel(), minlength=k)
    core = _core(figures.pairs[both], compared >= FEWEST_ANSWERS)
    rows = np.flatnonzero(both & core[figures.pairs].all(axis=1))
    has_any = _models(figures.pairs[known], k)
    for i in np.flatnonzero(~core):
        left_out[figures.models[i]] = (
            NOT_KNOWN[name]
            if not has_any[i]
            else NOTHING[name]
            if free[i]
            else Sentence("too few battles compare it with the others")
        )
    value, rounds = np.full(k, np.nan), np.full((len(drawn.weight), k), np.nan)
    if core.any():
        fit = _LogFit.of(figures.pairs[rows], values[rows], rows, core, drawn)
        value[core] = fit.plain
        rounds[:, core] = fit.rounds(drawn)
    return Drawn(value, rounds, left_out, np.where(core, compared, 0))


def _models(entries: Ints, k: int) -> Bools:
    there = np.zeros(k, dtype=bool)
    there[entries] = True
    return there


def _core(pairs: Ints, enough: Bools) -> Bools:
    """Mark the largest group of models that battles join, all with enough answers."""
    k = len(enough)
    inside = pairs[enough[pairs].all(axis=1)]
    graph = scipy.sparse.coo_array((np.ones(len(inside)), inside.T), shape=(k, k))
    _, label = scipy.sparse.csgraph.connected_components(graph, directed=False)
    size = np.bincount(label[enough], minlength=1)
    core = enough & (label == size.argmax())
    return np.asarray(core if core.sum() > 1 else np.zeros(k, dtype=bool))


@dataclass(frozen=True, eq=False)
class _LogFit:
    """Least squares of log ratios within battles, solved for any weights of the voters."""

    n_models: int
    first: Ints
    second: Ints
    met: Sums
    right: Sums
    total: Sums
    count: Sums

    @classmethod
    def of(cls, pairs: Ints, values: Floats, rows: Ints, core: Bools, drawn: Rounds) -> "_LogFit":
        """Sum up what the equations need, by group."""
        k = int(core.sum())
        place = np.cumsum(core) - 1
        a, b = place[pairs].T
        low, high = np.minimum(a, b), np.maximum(a, b)
        codes, column = np.unique(low * k + high, return_inverse=True)
        gap = np.log(values[:, 0]) - np.log(values[:, 1])
        twice, sides = np.r_[rows, rows], np.r_[a, b]
        return cls(
            n_models=k,
            first=codes // k,
            second=codes % k,
            met=drawn.sums(np.ones(len(rows)), rows, column, len(codes)),
            right=drawn.sums(np.r_[gap, -gap], twice, sides, k),
            total=drawn.sums(np.r_[values[:, 0], values[:, 1]], twice, sides, k),
            count=drawn.sums(np.ones(2 * len(rows)), twice, np.zeros_like(sides), 1),
        )

    @cached_property
    def plain(self) -> Floats:
        """The estimate, shape (n_models,)."""
        sums = (self.met, self.right, self.total, self.count)
        return np.asarray(np.exp(self._solved(*(each.plain for each in sums)))[0])

    def rounds(self, drawn: Rounds) -> Floats:
        """Every round, shape (n_rounds, n_models), its deviation stretched."""
        parts = []
        for start in range(0, len(drawn.weight), ROUNDS_AT_ONCE):
            some = slice(start, start + ROUNDS_AT_ONCE)
            sums = (self.met, self.right, self.total, self.count)
            parts.append(self._solved(*(each.rounds(some) for each in sums)))
        middle = np.log(self.plain)
        logs = middle + drawn.stretch * (np.concatenate(parts) - middle)
        return np.asarray(np.exp(np.clip(logs, -MOST_LOG, MOST_LOG)))

    def _solved(self, met: Floats, right: Floats, total: Floats, count: Floats) -> Floats:
        """Logarithms of the means, a row a round."""
        k = self.n_models
        laplacian = np.zeros((len(met), k, k))
        laplacian[:, self.first, self.second] = -met
        laplacian[:, self.second, self.first] = -met
        each = np.arange(k)
        laplacian[:, each, each] = -laplacian.sum(axis=2)
        # The constant direction is free: a rank-one term of the matrix's size pins it to zero.
        pin = np.trace(laplacian, axis1=1, axis2=2)[:, None, None] / k**2
        ratio = np.linalg.solve(laplacian + pin, right[:, :, None])[:, :, 0]
        level = (total * np.exp(-ratio)).sum(axis=1, keepdims=True) / count
        return np.asarray(ratio + np.log(level))
