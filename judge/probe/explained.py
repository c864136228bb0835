"""What explains how alike prompts are: regressions of pairs, with whole prompts permuted."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from judge.probe.similarity import tf_idf, words
from rating.errors import DataError
from rating.typing import Floats, Ints

SAME = 1e-9
"""Share of its variance below which a term says nothing that the others do not."""
FEWEST_PROMPTS = 5


@dataclass(frozen=True, slots=True)
class Term:
    """What one property of two prompts explains, the others at hand.

    Attributes
    ----------
    name : str
    slope : float or None
        Standard deviations of alikeness by one of the term; None where the term does not vary,
        or says nothing that the others do not.
    partial_r2 : float or None
        Share of what the others leave.
    p : float or None
        Of a slope as far from 0, prompts permuted.
    """

    name: str
    slope: float | None
    partial_r2: float | None
    p: float | None


@dataclass(frozen=True, slots=True)
class Explained:
    """What explains how alike prompts are in the order that they give models.

    Attributes
    ----------
    prompts, pairs : int
    r2 : float
        Of all terms together.
    draws : int
    terms : tuple of Term
    """

    prompts: int
    pairs: int
    r2: float
    draws: int
    terms: tuple[Term, ...]

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON."""
        return asdict(self)


MOST_CELLS = 24
"""Of a side of a map, and so groups of which there is one."""


@dataclass(frozen=True, slots=True)
class LikenessMap:
    """How alike prompts are, those of a group beside each other, a few prompts a cell.

    Attributes
    ----------
    by : str
        What groups them.
    within, between : float or None
        Mean likeness of two prompts of the same group, and of different ones, over the mean of a
        prompt with itself: a correlation across models. None without such a pair.
    groups : tuple of (str, int)
        Names, and how many rows of cells each has.
    cells : tuple of tuple of float or None
        That of two cells.
    """

    by: str
    within: float | None
    between: float | None
    groups: tuple[tuple[str, int], ...]
    cells: tuple[tuple[float | None, ...], ...]


def map_of(by: str, alike: Floats, codes: Ints, names: Sequence[str]) -> LikenessMap | None:
    """Lay out how alike prompts are by group; None of more than `MOST_CELLS` groups.

    Parameters
    ----------
    alike : ndarray of shape (n_prompts, n_prompts)
        Symmetric; a prompt with itself on the diagonal.
    codes : ndarray of shape (n_prompts,), int64
        Positions in ``names``.
    """
    there, sizes = np.unique(codes, return_counts=True)
    if len(there) > MOST_CELLS or not np.trace(alike) > 0:
        return None
    rows = np.maximum(1, np.floor(sizes * min(1.0, MOST_CELLS / len(codes)))).astype(np.int64)
    cell = np.empty(len(codes), dtype=np.int64)
    for code, first, size, n in zip(there, np.cumsum(rows) - rows, sizes, rows, strict=True):
        cell[codes == code] = first + np.arange(size) * n // size
    side = (cell[:, None] == np.arange(rows.sum())).astype(np.float64)
    likeness = (alike - np.diag(np.diag(alike))) / float(np.diag(alike).mean())
    in_cell = side.sum(axis=0)
    pairs = np.outer(in_cell, in_cell) - np.diag(in_cell)
    sums = side.T @ likeness @ side
    same = codes[:, None] == codes[None, :]
    n_same = int(same.sum()) - len(codes)
    n_other = int((~same).sum())
    return LikenessMap(
        by,
        float(likeness[same].sum()) / n_same if n_same else None,
        float(likeness[~same].sum()) / n_other if n_other else None,
        tuple((names[code], int(n)) for code, n in zip(there, rows, strict=True)),
        tuple(
            tuple(round(s / n, 4) if n else None for s, n in zip(*line, strict=True))
            for line in zip(sums.tolist(), pairs.tolist(), strict=True)
        ),
    )


def explain(
    alike: Floats,
    terms: Mapping[str, Floats],
    *,
    draws: int,
    rng: np.random.Generator,
    progress: Callable[[int, int], None] = lambda *_: None,
) -> Explained:
    """Regress how alike two prompts are on properties of the two (MRQAP).

    Pairs that share a prompt depend on each other, so a permutation moves whole prompts: rows and
    columns together, of what the other terms leave of a term (double semi-partialling). The
    statistic is the partial correlation.

    Parameters
    ----------
    alike : ndarray of shape (n_prompts, n_prompts)
        Symmetric; the diagonal is not used.
    terms : mapping of str to ndarray of the same shape
        Symmetric.

    Raises
    ------
    DataError
        For fewer than five prompts, or if all are equally alike.

    References
    ----------
    .. [1] D. Dekker, D. Krackhardt and T. A. B. Snijders, "Sensitivity of MRQAP tests to
       collinearity and autocorrelation conditions", Psychometrika 72(4), 2007, pp. 563-581.
    """
    n = len(alike)
    if n < FEWEST_PROMPTS:
        raise DataError(f"{n} prompts are too few to explain: give {FEWEST_PROMPTS} or more.")
    y = _centred(alike)
    if not y.any():
        raise DataError("All prompts are equally alike: there is nothing to explain.")
    columns = {name: _centred(term) for name, term in terms.items()}
    used = {name: x for name, x in columns.items() if x.any()}
    every = _basis([*used.values()], n * n)
    done, total = 0, draws * max(1, len(used))
    results = []
    for name in terms:
        if name not in used:
            results.append(Term(name, None, None, None))
            continue
        others = _basis([x for other, x in used.items() if other != name], n * n)
        left = used[name].ravel() - others @ (others.T @ used[name].ravel())
        if left @ left <= SAME * float((used[name] ** 2).sum()):
            results.append(Term(name, None, None, None))
            continue
        free = y.ravel() - others @ (others.T @ y.ravel())
        seen = _partial(free, left, others)
        table, beyond = left.reshape(n, n), 0
        for _ in range(draws):
            order = rng.permutation(n)
            drawn = _partial(free, table[np.ix_(order, order)].ravel(), others)
            beyond += abs(drawn) >= abs(seen) - SAME
            done += 1
            progress(done, total)
        slope = seen * np.sqrt((free @ free) / (left @ left))
        slope *= np.sqrt(float((used[name] ** 2).sum()) / float((y**2).sum()))
        results.append(Term(name, float(slope), float(seen**2), float((1 + beyond) / (draws + 1))))
    fitted = every.T @ y.ravel()
    r2 = float(fitted @ fitted) / float((y**2).sum())
    return Explained(n, n * (n - 1) // 2, r2, draws, tuple(results))


def _centred(table: Floats) -> Floats:
    """Take the mean of all pairs out, with zeros on the diagonal: it then never counts."""
    n = len(table)
    off = ~np.eye(n, dtype=bool)
    centred = np.where(off, table - table[off].mean(), 0.0)
    small = float((centred**2).sum()) <= 1e-20 * max(1.0, float((table[off] ** 2).sum()))
    return np.zeros_like(centred) if small else centred


def _basis(columns: Sequence[Floats], rows: int) -> Floats:
    """Return an orthonormal basis of what columns span, shape (rows, rank)."""
    if not columns:
        return np.empty((rows, 0))
    left, size, _ = np.linalg.svd(
        np.column_stack([x.ravel() / np.sqrt((x**2).sum()) for x in columns]), full_matrices=False
    )
    return np.asarray(left[:, size > np.sqrt(SAME)])


def _partial(free: Floats, x: Floats, others: Floats) -> float:
    """Correlate what others leave of y with what they leave of a centred column."""
    shared = others.T @ x
    size = float(x @ x - shared @ shared)
    return float(free @ x) / np.sqrt(size * float(free @ free)) if size > 0 else 0.0


def terms_of(
    texts: Sequence[str] | None,
    groups: Mapping[str, Ints],
    failed: Floats | None = None,
) -> dict[str, Floats]:
    """Return properties of every two prompts.

    Parameters
    ----------
    texts : sequence of str, length n_prompts, or None
        For the cosine of their TF-IDF vectors, and the difference of the logs of their lengths.
    groups : mapping of str to ndarray of shape (n_prompts,)
        For whether the two are in the same group.
    failed : ndarray of shape (n_prompts,), optional
        Whether every model failed: for whether both prompts are so.
    """
    terms: dict[str, Floats] = {}
    if texts is not None and any(map(words, texts)):
        terms["similar words (TF-IDF cosine)"] = tf_idf(texts).matrix(texts, texts)
        length = np.log1p(np.array([len(text) for text in texts], dtype=np.float64))
        terms["difference of log lengths"] = np.abs(length[:, None] - length[None, :])
    for name, codes in groups.items():
        terms[f"same {name}"] = (codes[:, None] == codes[None, :]).astype(np.float64)
    if failed is not None:
        terms["failed by all models, both"] = np.outer(failed, failed).astype(np.float64)
    return terms
