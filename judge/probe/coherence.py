"""Do prompts hang together? Tables of results against tables with the same margins."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from rating.errors import DataError
from rating.typing import Floats, Ints

Progress = Callable[[int, int], None]

DRAWS = 999
ANY = "any groups"
"""What the largest eigenvalue asks for: groups that nobody named."""

CURVEBALL = "all tables of right and wrong with these margins"
BOOTSTRAP = "tables drawn from the margins"

RIDGE = 0.3
"""Inverse variance of the difficulties: a prompt that all models fail is hard, not impossible."""
SWEEPS = 30
SWEEPS_OF_DRAWS = 12
"""Of tables drawn from margins, and of the table beside them."""
LEAST = 0.001
"""Added to the variance of a result: one that was certain does not weigh without end."""
BURN_IN, BETWEEN = 15, 4
"""Trades of a chain before the first table and between two, a model."""
LOGIT_BOUND = 12.0


@dataclass(frozen=True, slots=True)
class Coherence:
    """A statistic of how far prompts hang together, and what it is where they do not.

    Attributes
    ----------
    of : str
        The column of the groups, or `ANY`.
    n_groups : int or None
    statistic, null_mean, null_sd : float
    p : float
        ``(1 + draws at least as large) / (draws + 1)``.
    draws : int
    null : str
        What was drawn.
    explained : float or None
        Share of the squared residuals that lies between the groups, above what it is where
        prompts do not hang together.
    design_effect : float or None
        Variance of the scores by group over that of independent prompts (of ratings: votes).
    """

    of: str
    n_groups: int | None
    statistic: float
    null_mean: float
    null_sd: float
    p: float
    draws: int
    null: str
    explained: float | None
    design_effect: float | None

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON."""
        return asdict(self)


def p_value(statistic: float, drawn: Floats) -> float:
    """Return the share of all values, the one seen among them, that are as large.

    >>> p_value(2.0, np.array([1.0, 2.0, 3.0]))
    0.75
    """
    close = 1e-9 * max(1.0, abs(statistic))  # sums in another order differ in their last digits
    return float((1 + (drawn >= statistic - close).sum()) / (len(drawn) + 1))


def of_table(
    values: Floats,
    groups: Mapping[str, Ints],
    *,
    draws: int = DRAWS,
    rng: np.random.Generator,
    progress: Progress = lambda *_: None,
) -> tuple[Coherence, ...]:
    """Ask whether prompts hang together in a table of results, beyond abilities and difficulties.

    With ``Z = (Y - P) / sqrt(P (1 - P) + .001)``, P of a logistic model of abilities and
    difficulties: the largest eigenvalue of ``Z Z' / n_prompts`` (groups that nobody named), and
    for given groups c ``sum_c |sum_(t in c) z_t|^2 / n_c / n_models``.

    Where all results are 0 or 1, abilities and difficulties are held by the sums of rows and
    columns: given these, all tables are equally likely, and they are drawn by the curveball chain.
    P is of the sums alone, and so the same for all. Graded results are drawn from the fitted model
    (beta, with the dispersion of the residuals) and fitted again; statistics are then over the
    dispersion.

    Parameters
    ----------
    values : ndarray of shape (n_models, n_prompts)
        From 0 to 1.
    groups : mapping of str to ndarray of shape (n_prompts,), int64
        Codes by column.

    Raises
    ------
    DataError
        For a value outside, or fewer than three models or prompts that are not all alike.

    References
    ----------
    .. [1] G. Strona et al., "A fast and unbiased procedure to randomize ecological binary
       matrices with fixed row and column totals", Nature Communications 5, 2014, 4114.
    .. [2] N. D. Verhelst, "An efficient MCMC algorithm to sample binary matrices with fixed
       marginals", Psychometrika 73, 2008 (the Rasch model).
    .. [3] W. Siska et al., "Examining the robustness of LLM evaluation to the distributional
       assumptions of benchmarks", ACL 2024, arXiv 2404.16966, whose question this is.
    """
    table = varying(values)
    binary = bool(np.isin(table, (0.0, 1.0)).all())
    seen = _Statistics(table, groups, binary=binary, sweeps=SWEEPS if binary else SWEEPS_OF_DRAWS)
    observed = seen.of(table)
    drawn = np.empty((draws, len(observed)))
    tables = curveball(table, rng) if binary else _from_margins(seen, rng)
    for row, other in zip(range(draws), tables, strict=False):
        drawn[row] = seen.of(other)
        progress(row + 1, draws)
    return tuple(_coherences(seen, observed, drawn, CURVEBALL if binary else BOOTSTRAP))


def varying(values: Floats) -> Floats:
    """Leave out models whose results are all alike: their ability has no finite value.

    Raises
    ------
    DataError
        As `of_table`.
    """
    if not ((values >= 0) & (values <= 1)).all():
        raise DataError("A result lies outside 0 to 1: give results from 0 to 1.")
    table: Floats = values[values.min(axis=1) < values.max(axis=1)]
    if min(table.shape) < 3:
        m, n = table.shape
        msg = f"{m} models whose results vary, and {n} prompts: there must be three of each."
        raise DataError(msg)
    return table


def margins(table: Floats, sweeps: int) -> Floats:
    """Return the probabilities of a logistic model of abilities and difficulties, as the table.

    Alternating Newton steps on the sums of rows and of columns, the latter with `RIDGE`.
    """
    ability, ease = np.zeros((len(table), 1)), np.zeros((1, table.shape[1]))
    rows, columns = table.sum(axis=1, keepdims=True), table.sum(axis=0, keepdims=True)
    for _ in range(sweeps):
        p = _logistic(ability + ease)
        known = (p * (1 - p)).sum(axis=1, keepdims=True)
        ability += np.clip((rows - p.sum(axis=1, keepdims=True)) / known, -2, 2)
        p = _logistic(ability + ease)
        known = (p * (1 - p)).sum(axis=0, keepdims=True) + RIDGE
        ease += (columns - p.sum(axis=0, keepdims=True) - RIDGE * ease) / known
        np.clip(ability, -LOGIT_BOUND, LOGIT_BOUND, out=ability)
    return _logistic(ability + ease)


def _logistic(x: Floats) -> Floats:
    return np.asarray(1 / (1 + np.exp(-x)))


class _Statistics:
    """The statistics of a table, with what all tables share made once."""

    def __init__(
        self, table: Floats, groups: Mapping[str, Ints], *, binary: bool, sweeps: int
    ) -> None:
        self.binary, self.sweeps = binary, sweeps
        self.names = tuple(groups)
        self.sizes = [np.bincount(codes).astype(np.float64) for codes in groups.values()]
        self.sides = [
            (np.arange(len(size)) == codes[:, None]) / np.sqrt(size)
            for codes, size in zip(groups.values(), self.sizes, strict=True)
        ]
        self.probability = margins(table, sweeps)
        self.residual = table - self.probability

    def of(self, table: Floats) -> Floats:
        """Return the eigenvalue, then the statistic of each grouping."""
        p = self.probability if self.binary else margins(table, self.sweeps)
        z = (table - p) / np.sqrt(p * (1 - p) + LEAST)
        top = np.linalg.eigvalsh(z @ z.T / z.shape[1])[-1]
        values = [top, *(float(((z @ side) ** 2).sum()) / len(z) for side in self.sides)]
        scale = 1.0 if self.binary else dispersion(table, p)
        return np.asarray(np.array(values) / scale, dtype=np.float64)

    @property
    def total(self) -> float:
        """All squared residuals, on the scale of the statistic of groups."""
        p = self.probability
        scale = 1 if self.binary else dispersion(self.residual + p, p)
        return float((self.residual**2 / (p * (1 - p) + LEAST)).sum() / len(p) / scale)

    def design_effect(self, place: int) -> float:
        """Return the variance of scores by group over that of independent prompts."""
        sums = self.residual @ (self.sides[place] * np.sqrt(self.sizes[place]))
        return float((sums**2).sum() / (self.residual**2).sum())


def dispersion(table: Floats, p: Floats) -> float:
    """Return the mean squared residual over ``p (1 - p)``: about 1 for right and wrong."""
    free = (table.shape[0] - 1) * (table.shape[1] - 1)
    return float(((table - p) ** 2 / (p * (1 - p) + LEAST)).sum() / free)


def _coherences(
    seen: _Statistics, observed: Floats, drawn: Floats, null: str
) -> Iterator[Coherence]:
    for place, of in enumerate((ANY, *seen.names)):
        mean = float(drawn[:, place].mean())
        grouped = place > 0
        yield Coherence(
            of,
            len(seen.sizes[place - 1]) if grouped else None,
            float(observed[place]),
            mean,
            float(drawn[:, place].std(ddof=1)),
            p_value(float(observed[place]), drawn[:, place]),
            len(drawn),
            null,
            (float(observed[place]) - mean) / seen.total if grouped else None,
            seen.design_effect(place - 1) if grouped else None,
        )


def curveball(table: Floats, rng: np.random.Generator) -> Iterator[Floats]:
    """Draw tables of 0 and 1 with the sums of rows and columns of one, without end.

    A trade takes two models, pools the prompts that only one of them got right, and deals them
    out again at random, to each as many as it had.
    """
    now = table.astype(bool)
    _trade(now, BURN_IN * len(now), rng)
    while True:
        yield now.astype(np.float64)
        _trade(now, BETWEEN * len(now), rng)


def _trade(table: Any, trades: int, rng: np.random.Generator) -> None:
    for _ in range(trades):
        one, other = rng.choice(len(table), 2, replace=False)
        pool = np.flatnonzero(table[one] != table[other])
        dealt = np.zeros(len(pool), dtype=bool)
        dealt[: int(table[one, pool].sum())] = True
        rng.shuffle(dealt)
        table[one, pool], table[other, pool] = dealt, ~dealt


def _from_margins(seen: _Statistics, rng: np.random.Generator) -> Iterator[Floats]:
    """Draw graded tables from the fitted model."""
    p = np.clip(seen.probability, 1e-6, 1 - 1e-6)
    precision = 1 / min(dispersion(seen.residual + seen.probability, p), 1 - 1e-6) - 1
    while True:
        yield rng.beta(p * precision, (1 - p) * precision)
