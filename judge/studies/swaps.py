"""What a judge says of the same two responses in both orders."""

from dataclasses import dataclass
from functools import partial

import numpy as np

from judge.studies.agreement import counts
from judge.studies.items import Estimate, Items, Said
from judge.studies.resampling import MeanOfPrompts, Statistic, clustered, sums_by_prompt
from rating.typing import Floats

_SHARE = MeanOfPrompts(0.0, 1.0, (3,))


@dataclass(frozen=True, slots=True)
class Swaps:
    """Over pairs of rows of an item in opposite orders, ``n`` of them; the shares add up to 1.

    Attributes
    ----------
    consistent : Estimate
        Share in which both orders give the same label.
    to_first, to_second : Estimate
        Share in which the label moves to the side that is shown first, or second.
    """

    consistent: Estimate
    to_first: Estimate
    to_second: Estimate


def swaps(
    items: Items,
    judge: Said,
    *,
    rounds: int = 1000,
    rng: np.random.Generator,
    level: float = 0.95,
) -> Swaps:
    """Compare the labels of each item when side A is shown first and when side B is.

    Every row of one order with every row of the other, of the same item. A row of an unknown
    order is in no pair. A judge that changes between a tie and the first side leans to the first
    as one that changes from side to side does. Without pairs nothing has a value.

    References
    ----------
    .. [1] L. Zheng et al., "Judging LLM-as-a-Judge with MT-Bench and Chatbot Arena", NeurIPS
       2023, table 2.
    """
    a_first, b_first = (counts(items, judge.only(judge.first == side)) for side in (1, -1))
    pairs = a_first[:, :, None] * b_first[:, None, :]
    parts = [np.trace(pairs, axis1=1, axis2=2), _below(pairs), _below(pairs.transpose(0, 2, 1))]
    stats = sums_by_prompt(items, np.column_stack([*parts, pairs.sum(axis=(1, 2))]))
    share = partial(clustered, stats, n=int(stats[:, 3].sum()), mean=_SHARE, level=level)
    return Swaps(*(share(_share_of(k), rounds=rounds, rng=rng) for k in range(3)))


def _below(pairs: Floats) -> Floats:
    """Sum where the first index is the larger: the better for side A when it is shown first."""
    return np.asarray(np.tril(pairs, -1).sum(axis=(1, 2)))


def _share_of(k: int) -> Statistic:
    def share(sums: Floats) -> Floats:
        return np.asarray(sums[:, k] / np.where(sums[:, 3] > 0, sums[:, 3], np.nan))

    return share
