"""What a panel of judges is worth: how many independent ones, and which judge to add next."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from judge.studies.estimates import SHARE, Estimate, Statistic, clustered, over
from judge.studies.options import StudyOptions
from judge.studies.panel_data import Errors
from rating.leave_out import sums_within
from rating.typing import Floats

SHARES = ("mean", "best", "majority", "independent")
"""The accuracies of a card, in the order in which `_shares` stacks them."""
_LEAST_AGREEMENT = 0.1
_NEARLY_ALWAYS = 0.999


@dataclass(frozen=True, slots=True)
class Card:
    """What a panel of k judges is worth; an item on which half of them are right counts half.

    Attributes
    ----------
    n_eff : Estimate
        ``k / (1 + (k - 1) mean_correlation)``: as many judges whose errors are independent. With
        votes taken as the truth it is a lower figure: errors of people count as shared errors.
    at_most : Estimate
        Upper figure from items on which two people voted, or no value: see `_at_most`.
    mean_correlation : Estimate
        Of the errors of two judges, over all pairs of which both err now and then.
    mean, best, majority, independent : Estimate
        Shares of items that are right: of the mean judge, the best one, what most judges say,
        and what most would say if each erred as often as now, and independently of the others.
    gap : Estimate
        ``independent`` less ``majority``. Against votes neither ``independent`` nor ``gap`` has a
        value: disagreement among people would be taken for shared errors.
    over_best : Estimate
        ``majority`` less ``best``, the best being chosen anew in each draw.
    """

    k: int
    n_eff: Estimate
    at_most: Estimate
    mean_correlation: Estimate
    mean: Estimate
    best: Estimate
    majority: Estimate
    independent: Estimate
    gap: Estimate
    over_best: Estimate

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON: a number by its name, its interval beside it."""
        accuracy: dict[str, float | None] = {}
        for name in SHARES:
            accuracy |= flat(name, getattr(self, name))
        return {
            "k": self.k,
            **flat("n_eff", self.n_eff),
            **flat("at_most", self.at_most),
            **flat("mean_correlation", self.mean_correlation),
            "accuracy": accuracy,
            **flat("gap", self.gap),
            **flat("over_best", self.over_best),
        }


def flat(name: str, estimate: Estimate) -> dict[str, float | None]:
    """Return a number by its name for JSON, and the ends of its interval beside it."""
    return {
        name: estimate.value,
        f"{name}_lower": estimate.lower,
        f"{name}_upper": estimate.upper,
    }


def card(errors: Errors, options: StudyOptions) -> Card:
    """Estimate what a panel is worth; intervals draw whole prompts.

    References
    ----------
    .. [1] P. Kohli, 2026 (arXiv:2605.29800): the effective number of judges, and the majority of
       independent ones beside that of the panel.

    Examples
    --------
    Three judges who err on the same one of two items are one judge.

    >>> same = np.array([[1.0, 1.0, 1.0], [0.0, 0.0, 0.0]])
    >>> one = card(Errors(("x", "y", "z"), same, np.array([0, 1])), StudyOptions())
    >>> one.n_eff.value, one.majority.value, one.independent.value
    (1.0, 0.5, 0.5)
    """
    wrong, (n, k) = errors.wrong, errors.wrong.shape
    first, second = np.triu_indices(k, 1)
    each = np.column_stack(
        [_panel_right(wrong), np.ones(n), wrong, wrong[:, first] * wrong[:, second]]
    )
    sums = sums_within(errors.prompt, each, int(errors.prompt.max()) + 1)

    def drawn(statistic: Statistic) -> Estimate:
        return clustered(sums, statistic, options.draws(), n=n)

    def column(place: int) -> Estimate:
        return drawn(lambda rows: _shares(rows, k)[:, place])

    nothing = Estimate(None, None, None, n)
    by_people = errors.people is not None
    return Card(
        k=k,
        n_eff=drawn(lambda rows: _n_eff(rows, k)),
        at_most=_at_most(errors, options) if by_people and k > 1 else nothing,
        mean_correlation=drawn(lambda rows: _mean_correlation(rows, k)),
        mean=column(0),
        best=column(1),
        majority=clustered(
            sums, lambda rows: over(rows[:, 0], rows[:, 1]), options.draws(), n=n, mean=SHARE
        ),
        independent=nothing if by_people else column(3),
        gap=nothing
        if by_people
        else drawn(lambda rows: _shares(rows, k) @ np.array([0, 0, -1.0, 1.0])),
        over_best=drawn(lambda rows: _shares(rows, k) @ np.array([0, -1.0, 1.0, 0])),
    )


def _at_most(errors: Errors, options: StudyOptions) -> Estimate:
    """Estimate how many independent judges a panel is worth if people err, from above.

    With verdicts and votes of 1 and -1, ``m_jk = mean J_j J_k``, ``a_j = mean J_j vote`` and q the
    mean product of two people's votes on an item, a judge goes with the truth by
    ``a_j / sqrt(q)``, and errors correlate by::

        (m_jk - a_j a_k / q) / sqrt((1 - a_j^2 / q) (1 - a_k^2 / q))

    That is exact where all items are equally clear, and too high where people and judges find the
    same items hard. No value unless q is certain to be above 0.1.
    """
    verdict, votes = errors.verdict, errors.people
    assert verdict is not None
    assert votes is not None
    k = verdict.shape[1]
    first, second = np.triu_indices(k, 1)
    each = np.column_stack(
        [
            votes[:, 1:],
            np.ones(len(verdict)),
            verdict * votes[:, :1],
            verdict**2,
            verdict[:, first] * verdict[:, second],
        ]
    )
    sums = sums_within(errors.prompt, each, int(errors.prompt.max()) + 1)
    agree = clustered(
        sums, lambda rows: over(rows[:, 0], rows[:, 1]), options.draws(), n=int(votes[:, 2].sum())
    )
    if agree.lower is None or agree.lower <= _LEAST_AGREEMENT:
        return replace(agree, value=None, lower=None, upper=None)

    def worth(rows: Floats) -> Floats:
        q, n = over(rows[:, 0], rows[:, 1])[:, None], rows[:, 2:3]
        own, square = over(rows[:, 3 : 3 + k], n), over(rows[:, 3 + k : 3 + 2 * k], n)
        most = _NEARLY_ALWAYS * np.sqrt(square)
        own = np.clip(own / np.sqrt(np.where(q > 0, q, np.nan)), -most, most)
        left = square - own**2
        both = over(rows[:, 3 + 2 * k :], n) - own[:, first] * own[:, second]
        rho = over(both, np.sqrt(left[:, first] * left[:, second])).mean(axis=1)
        return over(np.full(len(rows), float(k)), 1 + (k - 1) * rho)

    return clustered(sums, worth, options.draws(), n=len(verdict))


def _panel_right(wrong: Floats) -> Floats:
    """Tell whether more than half of the judges are right on an item; half of them is a half."""
    k = wrong.shape[1]
    return np.asarray((np.sign(k / 2 - wrong.sum(axis=1)) + 1) / 2)


def _shares(rows: Floats, k: int) -> Floats:
    """Return `SHARES` of sums over items, shape (r, 4)."""
    n = rows[:, 1:2]
    accuracy = 1 - over(rows[:, 2 : 2 + k], n)
    return np.column_stack(
        [
            accuracy.mean(axis=1),
            accuracy.max(axis=1),
            over(rows[:, 0], rows[:, 1]),
            independent_majority(accuracy),
        ]
    )


def independent_majority(accuracy: Floats) -> Floats:
    """Return the probability that most of independent judges are right, shape (r,).

    The number of those who are right is Poisson-binomial; exactly half counts half.

    Parameters
    ----------
    accuracy : ndarray of shape (r, k)

    Examples
    --------
    >>> independent_majority(np.array([[0.8, 0.8, 0.8]])).round(3).tolist()  # .8^3 + 3 .2 .8^2
    [0.896]
    """
    rounds, k = accuracy.shape
    of_right = np.zeros((rounds, k + 1))
    of_right[:, 0] = 1.0
    for j in range(k):
        p = accuracy[:, j : j + 1]
        of_right[:, 1:] = of_right[:, 1:] * (1 - p) + of_right[:, :-1] * p
        of_right[:, :1] *= 1 - p
    return np.asarray(of_right @ ((np.sign(np.arange(k + 1) - k / 2) + 1) / 2))


def _correlations(rows: Floats, k: int) -> Floats:
    """Return the correlation of the errors of each pair, NaN where one never or always errs."""
    n, first, second = rows[:, 1:2], *np.triu_indices(k, 1)
    share = over(rows[:, 2 : 2 + k], n)
    variance = np.where(share * (1 - share) > 1e-12, share * (1 - share), np.nan)
    covariance = over(rows[:, 2 + k :], n) - share[:, first] * share[:, second]
    return np.asarray(covariance / np.sqrt(variance[:, first] * variance[:, second]))


def _mean_correlation(rows: Floats, k: int) -> Floats:
    pairs = _correlations(rows, k)
    known = ~np.isnan(pairs)
    return over(np.where(known, pairs, 0.0).sum(axis=1), known.sum(axis=1).astype(np.float64))


def _n_eff(rows: Floats, k: int) -> Floats:
    if k == 1:
        return np.ones(len(rows))
    return over(np.full(len(rows), float(k)), 1 + (k - 1) * _mean_correlation(rows, k))


def error_correlations(errors: Errors) -> Floats:
    """Return the correlations of errors, shape (k, k), NaN where one never or always errs."""
    k = errors.wrong.shape[1]
    first, second = np.triu_indices(k, 1)
    products = errors.wrong[:, first] * errors.wrong[:, second]
    one = np.ones((len(errors.wrong), 1))
    sums = np.column_stack([one, one, errors.wrong, products]).sum(axis=0, keepdims=True)
    matrix = np.full((k, k), np.nan)
    matrix[first, second] = matrix[second, first] = _correlations(sums, k)[0]
    return matrix


@dataclass(frozen=True, slots=True)
class Added:
    """A judge that a panel gets next, and what the panel is then worth; None is not known."""

    judge: str
    n_eff: float | None
    majority: float

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON."""
        return {"judge": self.judge, "n_eff": self.n_eff, "accuracy": self.majority}


def order_by_accuracy(errors: Errors) -> tuple[Added, ...]:
    """Add judges one by one, each time the one with whom most are right most often.

    The first is the one most often right; the first by name of equal ones.
    """
    return _ordered(errors, lambda one: (one.majority, one.n_eff or 0.0))


def order_by_n_eff(errors: Errors) -> tuple[Added, ...]:
    """Add judges one by one, each time the one with whom the panel is worth most judges.

    Begins as `order_by_accuracy`, which also decides between equal ones.
    """
    return _ordered(errors, lambda one: (one.n_eff or 0.0, one.majority))


def _ordered(errors: Errors, worth: Callable[[Added], tuple[float, float]]) -> tuple[Added, ...]:
    matrix = error_correlations(errors)
    added: list[Added] = []
    chosen: list[int] = []
    while len(chosen) < len(errors.judges):
        rest = [j for j in range(len(errors.judges)) if j not in chosen]
        options = {j: _with(errors, matrix, [*chosen, j]) for j in rest}
        best = max(rest, key=lambda j: tuple(round(x, 12) for x in worth(options[j])))
        chosen.append(best)
        added.append(options[best])
    return tuple(added)


def _with(errors: Errors, matrix: Floats, judges: list[int]) -> Added:
    k = len(judges)
    right = float(_panel_right(errors.wrong[:, judges]).mean())
    pairs = matrix[np.ix_(judges, judges)][np.triu_indices(k, 1)]
    known = pairs[~np.isnan(pairs)]
    n_eff = 1.0 if k == 1 else None
    if known.size and 1 + (k - 1) * known.mean() > 1e-12:
        n_eff = float(k / (1 + (k - 1) * known.mean()))
    return Added(errors.judges[judges[-1]], n_eff, right)
