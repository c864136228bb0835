"""A rate by a judge that errs, corrected by what is known of its errors."""

import math
from dataclasses import dataclass

import numpy as np

from judge.studies.estimates import Estimate
from judge.studies.items import Items, Labels
from rating.errors import DataError, NotIdentifiedError
from rating.leave_out import influence_variance
from rating.typing import Floats, Ints
from rating.uncertainty.student import quantile

ASSUMPTION = (
    "The judge errs as often where people did not vote as where they did, and its errors on "
    "different prompts are independent of one another."
)


@dataclass(frozen=True, slots=True)
class Counted:
    """How often something happened of how many times.

    Attributes
    ----------
    hits, n : int
    independent : float or None
        Independent rows that carry as much as these n; None for n itself.
    prompts : float or None
        Effective prompts that the rows are of, ``(sum n)^2 / sum n^2``; None for n of them.
    """

    hits: int
    n: int
    independent: float | None = None
    prompts: float | None = None

    @classmethod
    def by_prompt(cls, hits: Floats, n: Floats) -> "Counted":
        """Count over prompts, given the hits and the rows of each, shape (n_prompts,).

        The n rows are worth ``n / D`` independent ones, D the variance of the share clustered by
        prompt over that for independent rows, and at least 1 [1]_. A share of 0 or 1 shows no
        spread: there each prompt is worth one row.

        References
        ----------
        .. [1] J. N. K. Rao and A. J. Scott, "A simple method for the analysis of clustered binary
           data", Biometrics 48(2), 1992, pp. 577-585.
        """
        n_hits, total = round(float(hits.sum())), round(float(n.sum()))
        if not total:
            return cls(n_hits, total)
        share, n_prompts = n_hits / total, int((n > 0).sum())
        prompts = float(total**2 / (n @ n))
        if 0 < share < 1 and n_prompts > 1:
            apart = hits - share * n
            clustered = float(influence_variance(apart, n_prompts)) / total**2
            design = max(clustered * (total - 1) / (share * (1 - share)), 1.0)
        else:
            design = total / prompts
        return cls(n_hits, total, total / design, prompts)

    def __post_init__(self) -> None:
        """Raise `DataError` unless it happened 0 to n times."""
        if not 0 <= self.hits <= self.n:
            raise DataError(f"{self.hits} of {self.n} is no share: count from 0 to all of them.")

    @property
    def share(self) -> float:
        """Hits over n; NaN of nothing."""
        return self.hits / self.n if self.n else math.nan

    def smoothed(self, more: float) -> tuple[float, float]:
        """Return the share and the independent rows with ``more`` added, half of them hits."""
        rows = self.n if self.independent is None else self.independent
        return (rows * self.share + more / 2) / (rows + more), rows + more

    def df(self) -> tuple[float, float]:
        """Return the degrees of freedom of its variance by prompt and by row, 1 or more."""
        prompts = self.n if self.prompts is None else self.prompts
        return max(prompts - 1.0, 1.0), max(self.n - 1.0, 1.0)


def corrected_rate(
    positive: Counted, specificity: Counted, sensitivity: Counted, *, level: float = 0.95
) -> Estimate:
    """Correct the rate at which a judge says yes (Rogan and Gladen), with an honest interval.

    With p the judge's rate, ``q0`` its specificity and ``q1`` its sensitivity

    ::

        theta = (p + q0 - 1) / (q0 + q1 - 1)

    clipped to 0 and 1. The interval is centred at theta of the smoothed p (``z^2`` more cases,
    half of them yes), q0 and q1 (two more each), moved by

    ::

        2 z^2 (theta q1 (1 - q1) / m1 - (1 - theta) q0 (1 - q0) / m0)

    and z times as wide to each side as the root of

    ::

        p (1 - p) / n + (1 - theta)^2 q0 (1 - q0) / m0 + theta^2 q1 (1 - q1) / m1

    over ``q0 + q1 - 1``, all of it smoothed, sizes included: it allows for the errors being
    estimated as well as for the verdicts being a sample.

    Where counts say of how many prompts they are, each size is the number of independent rows
    that they are worth, and the interval is wider by the quantile of Student's t for prompts over
    the one for rows (degrees of freedom after Satterthwaite). With a prompt a row both change
    nothing: it is the published interval [2]_.

    Parameters
    ----------
    positive : Counted
        Verdicts that say yes.
    specificity, sensitivity : Counted
        Verdicts that were right where people said no, and where they said yes.

    Raises
    ------
    NotIdentifiedError
        If ``q0 + q1 <= 1``, found or smoothed, so that the verdict says nothing, or one of the
        three counts is of nothing.

    References
    ----------
    .. [1] W. J. Rogan and B. Gladen, "Estimating prevalence from the results of a screening
       test", American Journal of Epidemiology 107(1), 1978.
    .. [2] C. Lee et al., "How to Correctly Report LLM-as-a-Judge Evaluations", 2025
       (arXiv:2511.21140).

    Examples
    --------
    >>> rate = corrected_rate(Counted(400, 1000), Counted(140, 200), Counted(180, 200))
    >>> round(rate.value, 5), round(rate.lower, 5), round(rate.upper, 5)
    (0.16667, 0.05635, 0.26273)
    """
    _check(positive, specificity, sensitivity)
    z = quantile(level, np.inf)
    p, n = positive.smoothed(z * z)
    q0, m0 = specificity.smoothed(2)
    q1, m1 = sensitivity.smoothed(2)
    informed = q0 + q1 - 1
    if informed <= 0:
        raise NotIdentifiedError(_uninformed(q0, q1))
    theta = _rate(p, q0, q1)
    of_no, of_yes = q0 * (1 - q0) / m0, q1 * (1 - q1) / m1
    shift = 2 * z * z * (theta * of_yes - (1 - theta) * of_no)
    parts = (p * (1 - p) / n, (1 - theta) ** 2 * of_no, theta**2 * of_yes)
    wider = _wider((positive, specificity, sensitivity), parts, level)
    reach = wider * z * math.sqrt(sum(parts)) / informed
    return Estimate(
        _rate(positive.share, specificity.share, sensitivity.share),
        _clipped(theta + shift - reach),
        _clipped(theta + shift + reach),
        positive.n,
    )


@dataclass(frozen=True, slots=True)
class Tally:
    """How often a model is preferred, over rows that prefer a side.

    Attributes
    ----------
    by_people, by_judge : Counted
        Votes and verdicts that prefer it.
    specificity, sensitivity : Counted
        As in `corrected_rate`, over pairs of a verdict and a vote of the same item.
    """

    by_people: Counted
    by_judge: Counted
    specificity: Counted
    sensitivity: Counted

    def corrected(self, *, level: float = 0.95) -> Estimate:
        """Correct the judge's rate; raises as `corrected_rate`."""
        return corrected_rate(self.by_judge, self.specificity, self.sensitivity, level=level)


def win_tallies(items: Items, people: Labels, judge: Labels) -> dict[str, Tally]:
    """Count for each model what people and a judge prefer, by prompt.

    Over rows that prefer a side. The errors are counted over pairs of a verdict and a vote of the
    same item, so they hold people's own disagreement; `ASSUMPTION` must hold. Rows of a prompt
    are taken as dependent, and the three counts as independent of each other.
    """
    votes, says = (_decisive(items, one) for one in (people, judge))
    (voted, against), (judged, denied) = (
        (counts.ravel(), counts[::-1].ravel()) for counts in (votes, says)
    )
    happened = np.stack([voted, judged, against * denied, voted * judged])
    not_so = np.stack([against, denied, against * judged, voted * denied])
    key = items.pairs.T.ravel() * items.n_prompts + np.tile(items.prompt, 2)
    cells, cell = np.unique(key, return_inverse=True)
    hits, misses = (
        np.array([np.bincount(cell, row, len(cells)) for row in rows])
        for rows in (happened, not_so)
    )
    ends = np.searchsorted(cells, items.n_prompts * np.arange(len(items.models) + 1))
    return {
        model: Tally(*map(Counted.by_prompt, hits[:, start:stop], (hits + misses)[:, start:stop]))
        for model, start, stop in zip(items.models, ends[:-1], ends[1:], strict=True)
    }


def _check(positive: Counted, specificity: Counted, sensitivity: Counted) -> None:
    if not positive.n:
        raise NotIdentifiedError("There are no verdicts to correct.")
    if not specificity.n or not sensitivity.n:
        what = "against" if not specificity.n else "for"
        msg = f"No case that people voted {what} has a verdict: its errors there are unknown."
        raise NotIdentifiedError(msg)
    if specificity.share + sensitivity.share <= 1:
        raise NotIdentifiedError(_uninformed(specificity.share, sensitivity.share))


def _uninformed(q0: float, q1: float) -> str:
    return (
        f"The judge is right of {q0:.3f} of what people say no to and of {q1:.3f} of what they "
        "say yes to: together 1 or less, as if it threw a coin. Its verdicts cannot be corrected."
    )


def _wider(counts: tuple[Counted, ...], variances: tuple[float, ...], level: float) -> float:
    """Return t for the prompts over t for the rows; 1 where no count knows prompts."""
    if all(count.prompts is None for count in counts):
        return 1.0
    by_prompt, by_row = (
        sum(variances) ** 2 / sum(v**2 / df for v, df in zip(variances, degrees, strict=True))
        for degrees in zip(*(count.df() for count in counts), strict=True)
    )
    return quantile(level, by_prompt) / quantile(level, by_row)


def _rate(p: float, q0: float, q1: float) -> float:
    return _clipped((p + q0 - 1) / (q0 + q1 - 1))


def _clipped(value: float) -> float:
    return min(1.0, max(0.0, value))


def _decisive(items: Items, labels: Labels) -> Ints:
    """Count rows for side A and for side B of each item, shape (2, n_items)."""
    return np.stack(
        [np.bincount(labels.item[labels.label == sign], minlength=items.n) for sign in (1, -1)]
    )


@dataclass(frozen=True, slots=True)
class WinRate:
    """How often one model is preferred, ties left out.

    Attributes
    ----------
    by_people : float or None
        On the items with votes; None without votes that prefer a side.
    by_judge : float
        On all items that it judged.
    corrected : Estimate or None
        The same, corrected; None where it cannot be: ``why`` says it.
    """

    model: str
    by_people: float | None
    by_judge: float
    corrected: Estimate | None
    why: str = ""


def win_rates(items: Items, people: Labels, judge: Labels, level: float) -> tuple[WinRate, ...]:
    """Correct the judge's win rate of each model that it compared.

    Empty where every item it judged has votes: people's own rate needs no correction.
    """
    if np.isin(judge.item, people.item).all():
        return ()
    tallies = win_tallies(items, people, judge)
    compared = np.unique(items.pairs[judge.item]).tolist()
    names = [items.models[number] for number in compared]
    return tuple(_win_rate(name, tallies[name], level) for name in names)


def _win_rate(model: str, tally: Tally, level: float) -> WinRate:
    by_people = tally.by_people.share if tally.by_people.n else None
    try:
        corrected, why = tally.corrected(level=level), ""
    except NotIdentifiedError as error:
        corrected, why = None, str(error)
    return WinRate(model, by_people, tally.by_judge.share, corrected, why)
