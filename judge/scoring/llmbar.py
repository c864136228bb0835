"""LLMBar: how often a judge is right, and how far it is the same, in both orders."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from rating.errors import DataError
from rating.typing import Bools

_CHOICES = ("1", "2")
_UNREAD = "None"


@dataclass(frozen=True, slots=True)
class SwapScores:
    """A judge against labels, with the responses as they are and swapped.

    Attributes
    ----------
    correct_as_is, correct_swapped, correct_mean : float
        Right verdicts in each order and their mean, per cent of all cases; an unread verdict
        is not right.
    correct_both : float
        Right in both orders, per cent.
    equal : float
        The same in both orders, unread being the same as unread, per cent.
    kappa_agreement : float
        Cohen's kappa of the two orders, as published: an unread verdict counted as "2".
    miscoded_kappa_as_is, miscoded_kappa_swapped : float
        The published kappas of judge and label, in which labels are coded 1 and 2 and verdicts
        1 and 0: a "2" can never agree. Kept to recognise the published figures; no measure.
    n, n_unread : int
        Cases, and verdicts that could not be read, of twice as many.
    """

    correct_as_is: float
    correct_swapped: float
    correct_mean: float
    correct_both: float
    equal: float
    kappa_agreement: float
    miscoded_kappa_as_is: float
    miscoded_kappa_swapped: float
    n: int
    n_unread: int


def swap_scores(
    label: Sequence[str], as_is: Sequence[str | None], swapped: Sequence[str | None]
) -> SwapScores:
    """Score a judge on cases with a label.

    Parameters
    ----------
    label : sequence of str
        The better response: "1" or "2".
    as_is, swapped : sequence of str or None
        Verdicts with response 1 first, and with response 2 first, both naming responses, not
        places; None, or "None", where unread.

    Raises
    ------
    DataError
        For lengths that differ, no cases, or any other value.

    References
    ----------
    .. [1] Z. Zeng et al., "Evaluating Large Language Models at Evaluating Instruction
       Following", ICLR 2024, section 4.
    """
    truth, first, second = _checked(label), _checked(as_is), _checked(swapped)
    if not len(truth) == len(first) == len(second) > 0 or (truth == _UNREAD).any():
        msg = (
            f"{len(truth)} labels, {len(first)} and {len(second)} verdicts: give one of each "
            "for every case, and only cases with a label."
        )
        raise DataError(msg)
    right, right_swapped = first == truth, second == truth
    return SwapScores(
        correct_as_is=_percent(right),
        correct_swapped=_percent(right_swapped),
        correct_mean=(_percent(right) + _percent(right_swapped)) / 2,
        correct_both=_percent(right & right_swapped),
        equal=_percent(first == second),
        kappa_agreement=_kappa(_or_two(first), _or_two(second)),
        miscoded_kappa_as_is=_miscoded(truth, first),
        miscoded_kappa_swapped=_miscoded(truth, second),
        n=len(truth),
        n_unread=int((first == _UNREAD).sum() + (second == _UNREAD).sum()),
    )


def _checked(verdicts: Sequence[str | None]) -> NDArray[np.str_]:
    named = [_UNREAD if verdict is None else verdict for verdict in verdicts]
    for name in named:
        if name not in (*_CHOICES, _UNREAD):
            msg = f"A verdict is {name!r}; verdicts are '1' and '2', or None where unread."
            raise DataError(msg)
    return np.array(named, dtype=np.str_)


def _or_two(verdicts: NDArray[np.str_]) -> NDArray[np.str_]:
    return np.where(verdicts == _UNREAD, "2", verdicts)


def _miscoded(truth: NDArray[np.str_], verdicts: NDArray[np.str_]) -> float:
    return _kappa(truth, np.where(verdicts == "1", "1", "0"))


def _percent(right: Bools) -> float:
    return 100 * float(right.mean())


def _kappa(first: NDArray[np.str_], second: NDArray[np.str_]) -> float:
    """Return Cohen's kappa; NaN where one value is all that either uses."""
    values = np.union1d(first, second)
    shares = [np.array([(side == value).mean() for value in values]) for side in (first, second)]
    chance = float(shares[0] @ shares[1])
    if chance == 1:
        return float("nan")
    return (float((first == second).mean()) - chance) / (1 - chance)
