"""Judges that read nothing: what a real one has to beat."""

import numpy as np

from judge.studies.items import Items, Said
from rating.errors import DataError
from rating.typing import Floats, Ints


def larger(items: Items, feature: str) -> Said:
    """Return a judge that prefers the response with more of a feature, such as ``length``.

    It ties where both have as much, and says nothing where it is unknown.

    Raises
    ------
    DataError
        If nothing is known of the feature.
    """
    if feature not in items.gaps:
        known = ", ".join(sorted(items.gaps)) or "none"
        raise DataError(f"Nothing is known of {feature!r}; known of the responses: {known}.")
    gap = items.gaps[feature]
    return _verdicts(np.flatnonzero(~np.isnan(gap)), np.sign(gap[~np.isnan(gap)]))


def always_first(items: Items, orders: Said) -> Said:
    """Return a judge that prefers what it sees first, in the orders in which one was asked.

    Asked as often in one order as in the other, it ties: its answers cancel. It says nothing of
    an item whose orders are unknown.

    Parameters
    ----------
    orders : Said
        The rows of the judge that it stands beside.
    """
    known = orders.first != 0
    asked = np.bincount(orders.item[known], minlength=items.n)
    turned = np.bincount(orders.item[known], orders.first[known], items.n)
    return _verdicts(np.flatnonzero(asked > 0), np.sign(turned[asked > 0]))


def random_agreement(*, ties: bool) -> float:
    """Return how often a judge that throws a die agrees with anyone.

    1/3 of three labels; 1/2 over the pairs in which both prefer a side. Its kappa is 0.
    """
    return 1 / 3 if ties else 1 / 2


def _verdicts(item: Ints, label: Floats) -> Said:
    return Said(
        item=item,
        rater=np.zeros(len(item), dtype=np.int64),
        label=label.astype(np.int8),
        first=np.zeros(len(item), dtype=np.int8),
        chance=np.full(len(item), np.nan),
    )
