"""Whether groups of votes ask for other ratings: a statistic, and the nulls that hold for it."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import numpy as np
import scipy  # its submodules load on first use

from rating.errors import DataError
from rating.fitting import fit
from rating.rows import VoteRows
from rating.typing import Bools, Floats, Ints

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


def _within(codes: Ints, n: int) -> scipy.sparse.csr_array:
    ones = np.ones(len(codes))
    return scipy.sparse.csr_array((ones, (codes, np.arange(len(codes)))), shape=(n, len(codes)))


def _statistic(sums: scipy.sparse.csr_array, group: Ints, root: Floats) -> float:
    of_group = _within(group, int(group.max()) + 1) @ sums
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
