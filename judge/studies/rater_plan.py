"""What more ratings buy: half-widths of designs, and whether the wanted one is reached."""

import math
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, replace
from functools import partial
from typing import Any

import numpy as np
import scipy  # its submodules load on first use

from judge.studies.estimates import (
    FEW_PROMPTS,
    FEWEST_PEOPLE,
    SHARE,
    Draws,
    Estimate,
    Raters,
    clustered,
    plural,
    ratio,
)
from judge.studies.items import Items, Labels
from judge.studies.variance import Components, scores_of
from rating.errors import DataError
from rating.leave_out import sums_within, two_way
from rating.typing import Floats
from rating.uncertainty.student import quantile, quantiles

WANTED = 0.05
"""Half-width that is planned for where none is named."""
EACH = (1, 2, 3, 5, 8)
"""Ratings an item that are tried."""
MOST_ITEMS = 1_000_000
_QUANTILES = (np.arange(64) + 0.5) / 64
ALIKE = 0.05
"""Two ways of going on are alike where one half-width is within this part of the other."""


@dataclass(frozen=True, slots=True)
class Enough:
    """Whether an interval is as narrow as wanted.

    Attributes
    ----------
    half_width : float or None
        Now; None where there is no interval.
    reached : bool
    more : int or None
        About how many more ratings it takes, 0 where it is reached; None where that is unknown.
    """

    wanted: float
    half_width: float | None
    reached: bool
    more: int | None

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON."""
        return asdict(self)


def enough(estimate: Estimate, wanted: float, *, ratings: int, prompts: int) -> Enough:
    """Say whether an estimate is sure enough, or about how many more ratings make it so.

    The square of a half-width falls as one over the ratings as long as new items come with new
    ratings and the people stay as many: where few raters are what keeps it wide, more people are
    needed, see `half_width`.

    It may be asked as often as one likes: whether to go on hangs on how wide the interval is,
    not on what it says, and then its coverage tends to its level [1]_ (.925 to .943 of
    simulated studies that were looked at every 20 ratings). To stop as soon as an interval leaves
    out a value is another thing, for which it is not valid: that takes
    `rating.uncertainty.sequence`.

    Parameters
    ----------
    estimate : Estimate
        A share, or a coefficient such as alpha.
    wanted : float
        Half-width.
    ratings, prompts : int
        Behind the estimate. Under `FEW_PROMPTS` prompts an interval is too narrow to stop by.

    Raises
    ------
    DataError
        If ``wanted`` is not above 0.

    References
    ----------
    .. [1] Y. S. Chow and H. Robbins, "On the asymptotic theory of fixed-width sequential
       confidence intervals for the mean", Annals of Mathematical Statistics 36(2), 1965.

    Examples
    --------
    >>> enough(Estimate(0.6, 0.5, 0.7, 200), 0.05, ratings=200, prompts=100).more
    600
    """
    if not 0 < wanted < math.inf:
        raise DataError(f"The half-width wanted must be above 0, not {wanted:g}.")
    if estimate.lower is None or estimate.upper is None:
        return Enough(wanted, None, reached=False, more=None)
    now = (estimate.upper - estimate.lower) / 2
    least = ratings * (FEW_PROMPTS / max(prompts, 1) - 1)
    more = max(0, math.ceil(max(ratings * ((now / wanted) ** 2 - 1), least)))
    return Enough(wanted, now, reached=more == 0, more=more)


def preference(items: Items, labels: Labels, draws: Draws) -> Estimate:
    """Estimate the share of side A among ratings, a tie half; of other items and other raters."""
    each = np.column_stack([scores_of(labels), np.ones(labels.n)])
    return share_of(items, labels, each, draws)


def share_of(items: Items, labels: Labels, each: Floats, draws: Draws) -> Estimate:
    """Estimate a share of ratings.

    Parameters
    ----------
    each : ndarray of shape (n, 2)
        What each row adds to what is counted, and to what is counted out of.
    """
    stats = sums_within(items.prompt[labels.item], each, items.n_prompts)
    raters = Raters.of(items, labels, each)
    n = int(each[:, 1].sum())
    return clustered(stats, ratio, draws, n=n, mean=SHARE, raters=raters)


def half_width(
    parts: Components, n_items: int, each: float, n_raters: float, level: float = 0.95
) -> float:
    """Return the half-width to expect of a share of side A in a design.

    ``V_prompt = item / n_items + rest / (n_items each)``, each item a prompt of its own, and
    ``V_rater = rater / n_raters + rest / (n_items each)``, which is known by ``n_raters - 1``
    degrees of freedom: the mean over what may be seen of it (chi-squared) of the half-width that
    `preference` makes of both.

    Parameters
    ----------
    each : float
        Ratings an item.
    n_raters : float
        Equally busy people that the raters amount to.

    Examples
    --------
    >>> parts = Components(item=0.05, rater=0.0, rest=0.2, within=None)
    >>> round(half_width(parts, 100, 2, 20), 3), round(half_width(parts, 200, 1, 20), 3)
    (0.079, 0.073)
    """
    rest = parts.rest / (n_items * each)
    by_prompt = max(parts.item, 0.0) / n_items + rest
    of_prompts = quantile(level, math.inf) * math.sqrt(max(by_prompt, 0.0))
    if n_raters < FEWEST_PEOPLE or not by_prompt > 0:
        return of_prompts
    nu = n_raters - 1
    seen = scipy.special.chdtri(nu, 1 - _QUANTILES) / nu
    by_rater = max(parts.rater / n_raters + rest, 0.0) * seen
    more = np.maximum(by_rater - rest, 0.0)
    of_prompt = np.array(by_prompt), np.array(max(n_items - 1.0, 1.0))
    total, df = two_way(of_prompt, (by_rater, np.array(nu)), np.array(rest))
    of_both = np.where(more > 0, quantiles(level, df) * np.sqrt(total), of_prompts)
    of_raters = quantile(level, nu) * np.sqrt(by_rater)
    return float(np.maximum(of_both, of_raters).mean())


@dataclass(frozen=True, slots=True)
class Design:
    """Ratings an item, and what they make of the half-width.

    Attributes
    ----------
    half_width : float
        With the items that there are.
    items, ratings : int or None
        That reach the half-width wanted, with as many people as now; None where no number does.
    """

    each: int
    half_width: float
    items: int | None
    ratings: int | None


@dataclass(frozen=True, slots=True)
class RaterPlan:
    """What a study would take to be as sure as wanted.

    Attributes
    ----------
    enough : Enough
        Of the share now.
    n_items, n_ratings : int
    raters : float
        Equally busy people that the raters amount to.
    designs : tuple of Design
    one_more, same_on_new : float
        Half-widths with one more rating an item, and with as many ratings on new items.
    twice_as_many : float
        With as many ratings as now by twice as many people.
    """

    enough: Enough
    n_items: int
    n_ratings: int
    raters: float
    designs: tuple[Design, ...]
    one_more: float
    same_on_new: float
    twice_as_many: float

    @property
    def sentences(self) -> tuple[str, ...]:
        """Say what to do next."""
        return tuple(_sentences(self))

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON."""
        plain = asdict(self) | {"designs": [asdict(one) for one in self.designs]}
        return plain | {"enough": self.enough.to_dict(), "sentences": list(self.sentences)}


def plan_ratings(
    items: Items, labels: Labels, parts: Components, share: Estimate, wanted: float, level: float
) -> RaterPlan:
    """Say what half-widths other designs would have, by the components of variance.

    Where items share prompts, all are wider by as much as that makes the present one: new items
    are taken to come with new prompts, as many items each.

    Raises
    ------
    DataError
        If ``wanted`` is not above 0.
    """
    n_items = len(np.unique(labels.item))
    n_prompts = len(np.unique(items.prompt[labels.item]))
    each = labels.n / n_items
    busy = np.unique(labels.rater, return_counts=True)[1]
    people = float(busy.sum() ** 2 / (busy**2).sum())

    now = enough(share, wanted, ratings=labels.n, prompts=n_prompts)
    wider = 1.0
    if n_prompts < n_items and now.half_width is not None:
        wider = max(1.0, now.half_width / half_width(parts, n_items, each, people, level))

    def width(n: int, k: float, raters: float = people) -> float:
        return wider * half_width(parts, n, k, raters, level)

    if not now.reached and now.more is not None:
        needed = _items_for(partial(width, k=each), wanted)
        by_plan = None if needed is None else math.ceil(needed * each) - labels.n
        now = replace(now, more=None if by_plan is None else max(now.more, by_plan))
    more = round(n_items * (each + 1) / each)
    return RaterPlan(
        enough=now,
        n_items=n_items,
        n_ratings=labels.n,
        raters=people,
        designs=tuple(
            Design(k, width(n_items, k), needed, None if needed is None else needed * k)
            for k in sorted({*EACH, round(each)})
            if k <= len(busy)
            for needed in (_items_for(partial(width, k=k), wanted),)
        ),
        one_more=width(n_items, each + 1),
        same_on_new=width(more, each),
        twice_as_many=width(n_items, each, 2 * people),
    )


def _items_for(width: Callable[[int], float], wanted: float) -> int | None:
    """Return the fewest items, of which there must be some, that make an interval so narrow."""
    low, high = FEW_PROMPTS, MOST_ITEMS
    if width(high) > wanted:
        return None
    while low < high:
        middle = (low + high) // 2
        low, high = (low, middle) if width(middle) <= wanted else (middle + 1, high)
    return high


def _sentences(plan: RaterPlan) -> Iterator[str]:
    now, points = plan.enough, f"{100 * plan.enough.wanted:g}"
    if now.half_width is None:
        return
    known = f"The share of side A is known to ±{100 * now.half_width:.1f} points of a per cent"
    if now.reached:
        yield f"{known}: ±{points} are reached."
        return
    if now.half_width <= now.wanted:
        yield f"{known}, but by so few prompts that it may be wider: {FEW_PROMPTS} are needed."
        return
    if now.more is None:
        yield (
            f"{known}; by these raters, who differ as they do, ±{points} cannot be reached: by "
            f"twice as many people and no more ratings ±{100 * plan.twice_as_many:.1f} are "
            "expected."
        )
    else:
        more = plural(now.more, "more rating")
        yield f"{known}; ±{points} take about {more} on new items."
    one, new = 100 * plan.one_more, 100 * plan.same_on_new
    compared = (
        f"{plural(plan.n_items, 'more rating')}, one on each item, are expected to give "
        f"±{one:.1f}, and as many on new items ±{new:.1f}"
    )
    if plan.same_on_new < (1 - ALIKE) * plan.one_more:
        yield f"{compared}: take more items."
    else:
        yield f"{compared}: about alike, so take what is cheaper."
