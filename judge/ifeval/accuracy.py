"""IFEval's four scores, with intervals that allow for prompts with several instructions."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from judge.ifeval.tasks import Checked
from rating.errors import DataError
from rating.leave_out import influence_factor, influence_variance
from rating.typing import Floats
from rating.uncertainty.student import quantile


@dataclass(frozen=True, slots=True)
class Share:
    """How much of what could be checked was followed.

    Attributes
    ----------
    rate, low, high : float
        From 0 to 1, with an interval; NaN, 0 and 1 if nothing could be checked.
    n : int
        Instructions or prompts behind it.
    n_unread : int
        Those left out, because it is unknown whether they were followed.
    """

    rate: float
    low: float
    high: float
    n: int
    n_unread: int

    def to_dict(self) -> dict[str, float | None]:
        """Return the rate and its interval for JSON: None where nothing is known."""
        ends = {"rate": self.rate, "lower": self.low, "upper": self.high}
        return {name: value if self.n else None for name, value in ends.items()}


@dataclass(frozen=True, slots=True)
class Accuracy:
    """The four scores of IFEval; a prompt counts when all its instructions are followed."""

    prompt_strict: Share
    prompt_loose: Share
    instruction_strict: Share
    instruction_loose: Share


def accuracy(checked: Sequence[Checked], *, level: float = 0.95) -> Accuracy:
    """Score checked responses.

    A prompt with an instruction that could not be checked is left out of the
    prompt-level scores whole, even where another one failed: otherwise such
    prompts would enter only as failures. Instructions of one prompt, and
    several responses to it, stand and fall together, so prompts are the
    clusters of every interval (see `share`).

    Raises
    ------
    DataError
        If ``level`` is not between 0 and 1.

    References
    ----------
    .. [1] J. Zhou et al., "Instruction-following evaluation for large language
       models", arXiv 2311.07911, 2023, section 3.
    """
    return Accuracy(
        prompt_strict=_over_prompts(checked, lambda each: each.strict, level),
        prompt_loose=_over_prompts(checked, lambda each: each.loose, level),
        instruction_strict=_over_instructions(checked, lambda each: each.strict, level),
        instruction_loose=_over_instructions(checked, lambda each: each.loose, level),
    )


def accuracy_by_instruction(
    checked: Sequence[Checked], *, families: bool = False, level: float = 0.95
) -> Mapping[str, tuple[Share, Share]]:
    """Return the strict and the loose share of each instruction, or of each family, by name."""
    names = {id: id.split(":")[0] if families else id for each in checked for id in each.ids}
    return {
        name: (
            share(_results(checked, lambda each: each.strict, names, name), level=level),
            share(_results(checked, lambda each: each.loose, names, name), level=level),
        )
        for name in sorted(set(names.values()))
    }


def share(
    results: Iterable[tuple[str, float | None]], *, level: float = 0.95, exact: bool = False
) -> Share:
    """Return the share of True among results that may be alike within a cluster.

    Wilson's interval for as many independent results as give the variance of
    the clustered share (Korn and Graubard's effective size, with their factor
    for few clusters): with one result a cluster it is Wilson's interval
    itself. The effective size is never above the number of results; where the
    variance says nothing, because all results agree or there is one cluster,
    it is the number of clusters.

    Parameters
    ----------
    results : iterable of (str, bool or None)
        Cluster and result of each, which may also be a number from 0 to 1; None is left out and
        counted.
    exact : bool
        Take Clopper and Pearson's interval in place of Wilson's: no end of it errs more often
        than it may, whatever the share. Near 0 and 1 one end of Wilson's does.

    References
    ----------
    .. [1] E. B. Wilson, "Probable inference, the law of succession, and
       statistical inference", JASA 22(158), 1927, pp. 209-212.
    .. [2] E. L. Korn and B. I. Graubard, "Confidence intervals for proportions
       with small expected number of positive counts estimated from survey
       data", Survey Methodology 24(2), 1998, pp. 193-201.

    Examples
    --------
    >>> strict = share([("p", True), ("q", True), ("q", None), ("r", False)])
    >>> strict.n, strict.n_unread, round(strict.rate, 3)
    (3, 1, 0.667)
    """
    if not 0 < level < 1:
        raise DataError(f"level must lie between 0 and 1, not {level}.")
    pairs = list(results)
    known = [(cluster, float(result)) for cluster, result in pairs if result is not None]
    n_unread = len(pairs) - len(known)
    if not known:
        return Share(float("nan"), 0.0, 1.0, 0, n_unread)
    _, codes = np.unique([cluster for cluster, _ in known], return_inverse=True)
    followed = np.array([result for _, result in known], dtype=np.float64)
    rate = float(followed.mean())
    n = _effective_size(followed, codes, level)
    low, high = clopper_pearson(rate, n, level) if exact else wilson(rate, n, level)
    return Share(rate, low, high, len(known), n_unread)


_Column = Callable[[Checked], tuple[bool | None, ...]]


def _over_prompts(checked: Sequence[Checked], column: _Column, level: float) -> Share:
    whole = (
        (each.prompt, None if None in column(each) else all(column(each))) for each in checked
    )
    return share(whole, level=level)


def _over_instructions(checked: Sequence[Checked], column: _Column, level: float) -> Share:
    return share(((each.prompt, one) for each in checked for one in column(each)), level=level)


def _results(
    checked: Sequence[Checked], column: _Column, names: Mapping[str, str], name: str
) -> list[tuple[str, bool | None]]:
    """Return prompt and result of the instructions with a name."""
    return [
        (each.prompt, result)
        for each in checked
        for id, result in zip(each.ids, column(each), strict=True)
        if names[id] == name
    ]


def _effective_size(followed: Floats, codes: NDArray[np.intp], level: float) -> float:
    n, n_clusters = len(followed), int(codes.max()) + 1
    rate = float(followed.mean())
    if n_clusters == 1 or rate in (0, 1):
        return n_clusters
    totals = np.bincount(codes, followed - rate)
    clustered = float(influence_variance(np.asarray(totals, dtype=np.float64)))
    independent = n * rate * (1 - rate) * influence_factor(n)
    few = quantile(level, n - 1) / quantile(level, n_clusters - 1)
    return n * independent / max(clustered, independent) * few**2


def wilson(rate: float, n: float, level: float, df: float = np.inf) -> tuple[float, float]:
    """Return Wilson's interval for a rate of ``n`` results, with Student's quantile for ``df``."""
    z2 = quantile(level, df) ** 2
    middle = (n * rate + z2 / 2) / (n + z2)
    reach = np.sqrt(z2 * (n * rate * (1 - rate) + z2 / 4)) / (n + z2)
    return min(rate, max(0.0, float(middle - reach))), max(rate, min(1.0, float(middle + reach)))


def clopper_pearson(rate: float, n: float, level: float) -> tuple[float, float]:
    """Return Clopper and Pearson's interval for a rate of ``n`` results, whole or effective.

    Examples
    --------
    >>> low, high = clopper_pearson(0.9, 10, 0.95)
    >>> round(low, 4), round(high, 4)
    (0.555, 0.9975)
    """
    from scipy.special import betaincinv  # most who ask for a share can do without

    tail, won = (1 - level) / 2, rate * n
    low = betaincinv(won, n - won + 1, tail) if rate > 0 else 0.0
    high = betaincinv(won + 1, n - won, 1 - tail) if rate < 1 else 1.0
    return float(low), float(high)
