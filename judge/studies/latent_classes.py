"""How often each rater is right where nobody knows what is: Dawid and Skene's latent classes."""

from dataclasses import dataclass
from typing import Literal

import numpy as np

from rating.errors import ConvergenceError, DataError
from rating.leave_out import sums_within
from rating.typing import Floats, Ints

Errors = Literal["confusion", "one"]

PRIOR = (8.0, 2.0)
"""A rater is right in 8 cases of 10 before anything is known of them: Beta(8, 2)."""
UNKNOWN = -1
_MOST_STEPS = 20_000
_TOLERANCE = 1e-10


@dataclass(frozen=True, slots=True, eq=False)
class LatentClasses:
    """What raters' labels say of the items and of the raters.

    Attributes
    ----------
    prevalence : ndarray of shape (n_classes,)
        Share of the items that are of each class.
    errors : ndarray of shape (n_raters, n_classes, n_classes)
        Probability that a rater gives the label of the last axis to an item of the class of the
        middle one.
    posterior : ndarray of shape (n_items, n_classes)
        Probability of each class of each item.
    log_likelihood : float
        Of the labels, in nats, the prior left out.
    """

    prevalence: Floats
    errors: Floats
    posterior: Floats
    log_likelihood: float

    @property
    def accuracy(self) -> Floats:
        """How often each rater gives an item its class, shape (n_raters,)."""
        return np.asarray(np.einsum("j,rjj->r", self.prevalence, self.errors))

    @property
    def above_guessing(self) -> bool:
        """Whether raters are right more often, on average, than whoever draws a label.

        Only then do the classes have the names of the labels: raters who are mostly wrong give
        the same likelihood as raters who are mostly right, with the classes exchanged.
        """
        return float(self.accuracy.mean()) > 1 / len(self.prevalence)


def dawid_skene(
    item: Ints,
    rater: Ints,
    label: Ints,
    n_classes: int,
    *,
    known: Ints | None = None,
    errors: Errors = "confusion",
    prior: tuple[float, float] | None = PRIOR,
    start: Floats | None = None,
) -> LatentClasses:
    """Fit latent classes by EM: each item is of one class, and raters miss it independently.

    ``P(labels of item i) = sum_j p_j prod_r e_r[j, label]``. It begins at the shares of an item's
    labels, so that classes keep the names of labels where the majority is right more often than
    not; where raters are not better than guessing, nothing tells classes apart, and see
    `LatentClasses.above_guessing`. Without a prior and ``known`` it takes items of three raters.
    Where some items are harder than others for everybody, raters seem better than they are.

    Parameters
    ----------
    item, rater, label : ndarray of shape (n,), int64
        A label each row, numbered from 0; a rater may say nothing of an item, or say it twice.
    n_classes : int
        Two or more.
    known : ndarray of shape (n_items,), int64, optional
        The class of items where it is known, else -1.
    errors : {"confusion", "one"}
        Whether a rater errs by class as they do, or as often in every class, the wrong labels
        alike.
    prior : (float, float) or None
        Labels that a rater is taken to have given beforehand, right and wrong, so that the
        accuracy is the mean of a Beta posterior; with ``confusion`` in each class. None for the
        likelihood alone.
    start : ndarray of shape (n_items, n_classes), optional
        Probabilities to begin at.

    Raises
    ------
    DataError
        If there is no label, a label or a known class is not from 0 to ``n_classes - 1``, or
        there are less than two classes.
    ConvergenceError
        If it does not come to rest.

    References
    ----------
    .. [1] A. P. Dawid and A. M. Skene, "Maximum likelihood estimation of observer error-rates
       using the EM algorithm", Applied Statistics 28(1), 1979, pp. 20-28.

    Examples
    --------
    Three raters on four items; the third says the other of the second item.

    >>> item, rater = np.repeat(np.arange(4), 3), np.tile(np.arange(3), 4)
    >>> label = np.array([0, 0, 0, 1, 1, 0, 0, 0, 0, 1, 1, 1])
    >>> fitted = dawid_skene(item, rater, label, 2, errors="one")
    >>> fitted.posterior.argmax(axis=1).tolist(), fitted.accuracy.round(2).tolist()
    ([0, 1, 0, 1], [0.85, 0.85, 0.79])
    """
    known = _checked(item, label, n_classes, known)
    n_raters, right = int(rater.max()) + 1, np.eye(n_classes)
    given = right[label]
    posterior = _shares(item, given, len(known)) if start is None else start
    pinned = known >= 0
    pinned_to = right[known[pinned]]
    reached = -np.inf
    for _ in range(_MOST_STEPS):
        posterior[pinned] = pinned_to
        prevalence = posterior.mean(axis=0)
        rates = _rates(rater, given, posterior[item], n_raters, errors, prior)
        with np.errstate(divide="ignore"):
            each = np.log(prevalence) + sums_within(
                item, np.log(rates[rater, :, label]), len(known)
            )
        top = each.max(axis=1, keepdims=True)
        posterior = np.exp(each - top)
        total = posterior.sum(axis=1, keepdims=True)
        posterior /= total
        posterior[pinned] = pinned_to
        value = float(np.log(total).sum() + top.sum()) + _log_prior(rates, prior, errors)
        if abs(value - reached) <= _TOLERANCE * (1 + abs(value)):
            likelihood = value - _log_prior(rates, prior, errors)
            return LatentClasses(prevalence, rates, posterior, likelihood)
        reached = value
    raise ConvergenceError(
        f"Latent classes of {len(known)} items did not come to rest in {_MOST_STEPS} steps: "
        "rate more items, or give a prior."
    )


def _checked(item: Ints, label: Ints, n_classes: int, known: Ints | None) -> Ints:
    """Return the known classes of all items; raises `DataError` for what cannot be."""
    if n_classes < 2:
        raise DataError(f"There must be two classes or more, not {n_classes}.")
    if not len(item):
        raise DataError("There is no label to fit classes to.")
    known = np.full(int(item.max()) + 1, UNKNOWN) if known is None else known
    for name, values, least in (("Labels", label, 0), ("Known classes", known, UNKNOWN)):
        if not least <= values.min() <= values.max() < n_classes:
            wrong = values[(values < least) | (values >= n_classes)][0]
            raise DataError(f"{name} are {least} to {n_classes - 1}, not {wrong}.")
    return known


def _shares(item: Ints, given: Floats, n_items: int) -> Floats:
    """Return the share of each label among those of an item; all alike without any."""
    counts = sums_within(item, given, n_items)
    size = counts.sum(axis=1, keepdims=True)
    return np.where(size > 0, counts / np.where(size > 0, size, 1), 1 / given.shape[1])


def _rates(
    rater: Ints,
    given: Floats,
    of_class: Floats,
    n_raters: int,
    errors: Errors,
    prior: tuple[float, float] | None,
) -> Floats:
    """Return how raters label each class, with the labels that the prior adds."""
    k = given.shape[1]
    cells = (of_class[:, :, None] * given[:, None, :]).reshape(len(given), k * k)
    counts = sums_within(rater, cells, n_raters).reshape(n_raters, k, k)
    right, wrong = (0.0, 0.0) if prior is None else prior
    if errors == "one":
        good = np.einsum("rjj->r", counts) + right
        accuracy = good / np.maximum(counts.sum(axis=(1, 2)) + right + wrong, 1e-300)
        off = (1 - accuracy) / (k - 1)
        return np.asarray(off[:, None, None] + (accuracy - off)[:, None, None] * np.eye(k))
    counts = counts + wrong / (k - 1) + (right - wrong / (k - 1)) * np.eye(k)
    size = counts.sum(axis=2, keepdims=True)
    return np.asarray(np.where(size > 0, counts / np.where(size > 0, size, 1), 1 / k))


def _log_prior(rates: Floats, prior: tuple[float, float] | None, errors: Errors) -> float:
    """Return the log density, but for a constant, that makes posterior means its maximum."""
    if prior is None:
        return 0.0
    k, (right, wrong) = rates.shape[1], prior
    if errors == "one":
        accuracy = rates[:, 0, 0]
        return float((right * np.log(accuracy) + wrong * np.log1p(-accuracy)).sum())
    weight = wrong / (k - 1) + (right - wrong / (k - 1)) * np.eye(k)
    return float((weight * np.log(rates)).sum())
