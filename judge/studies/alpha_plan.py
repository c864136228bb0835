"""What more ratings do to the half-width of Krippendorff's alpha."""

import math
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from judge.studies.estimates import FEW_PROMPTS, Estimate, plural
from judge.studies.rater_plan import ALIKE, Enough, enough
from judge.studies.reliability import Ratings
from rating.typing import Floats

WANTED_ALPHA = 0.1
"""Half-width of alpha that is planned for where none is named."""
EACH = (2, 3, 5, 8)
"""Ratings an item that are tried."""
DRAWN = 20_000
"""Items that are drawn to say how widely one rating more spreads alpha."""


@dataclass(frozen=True, slots=True)
class AlphaDesign:
    """Ratings an item, and what they make of alpha's half-width.

    Attributes
    ----------
    half_width : float
        With the items that there are.
    items, ratings : int
        That reach the half-width wanted.
    """

    each: int
    half_width: float
    items: int
    ratings: int


@dataclass(frozen=True, slots=True)
class AlphaPlan:
    """What a study would take to know alpha as surely as wanted.

    Attributes
    ----------
    enough : Enough
        Of alpha now.
    n_items, each : int
        With two raters or more, and how many of these an item has on average, rounded.
    designs : tuple of AlphaDesign
    one_more, same_on_new : float
        Half-widths with one more rating an item, and with as many ratings on new items.
    """

    enough: Enough
    n_items: int
    each: int
    designs: tuple[AlphaDesign, ...]
    one_more: float
    same_on_new: float

    @property
    def sentences(self) -> tuple[str, ...]:
        """Say what to do next."""
        return tuple(_sentences(self))

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON."""
        return asdict(self) | {"sentences": list(self.sentences)}


def plan_alpha(
    ratings: Ratings, alpha: Estimate, wanted: float, n_raters: int, rng: np.random.Generator
) -> AlphaPlan | None:
    """Say how wide alpha's interval would be in other designs; None where it has none.

    Items are taken to differ by a Dirichlet law with the mean shares of the values and, as the
    part of the variance that is of items, alpha (not below 0). From items drawn so, with so many
    ratings each, comes the standard deviation of what an item adds to alpha: half-widths are in
    its ratio to that of the present design, and as one over the square root of the items. So the
    present half-width, which need not go by that law, is kept as it is.

    Parameters
    ----------
    ratings : Ratings
        Those that ``alpha`` is of.
    n_raters : int
        An item cannot have more ratings.
    rng : numpy.random.Generator

    Raises
    ------
    DataError
        If ``wanted`` is not above 0.

    References
    ----------
    .. [1] A. Zapf et al., "Measuring inter-rater reliability for nominal data: which coefficients
       and confidence intervals are appropriate?", BMC Medical Research Methodology 16, 2016: the
       interval of alpha by drawing items.
    """
    if alpha.value is None or alpha.lower is None or alpha.upper is None:
        return None
    table = ratings.counts[ratings.shared]
    n, n_ratings = len(table), int(table.sum())
    each, prompts = round(n_ratings / n), len(np.unique(ratings.cluster[ratings.shared]))
    now = enough(alpha, wanted, ratings=n_ratings, prompts=prompts)
    assert now.half_width is not None
    shares, present = table.sum(axis=0) / n_ratings, now.half_width
    spread = {k: _spread(shares, alpha.value, k, rng) for k in sorted({*EACH, each, each + 1})}

    def width(items: float, k: int) -> float:
        return present * spread[k] / spread[each] * math.sqrt(n / items)

    def needed(k: int) -> int:
        least = math.ceil(n * (width(n, k) / wanted) ** 2)
        return max(least, math.ceil(n * FEW_PROMPTS / prompts))

    return AlphaPlan(
        enough=now,
        n_items=n,
        each=each,
        designs=tuple(
            AlphaDesign(k, width(n, k), needed(k), needed(k) * k)
            for k in sorted({*EACH, each})
            if k <= n_raters
        ),
        one_more=width(n, each + 1),
        same_on_new=width(n * (each + 1) / each, each),
    )


def _spread(shares: Floats, of_items: float, k: int, rng: np.random.Generator) -> float:
    """Return the standard deviation of what an item of k ratings adds to alpha, times sqrt(n)."""
    between = min(max(of_items, 0.0), 0.999)
    given = shares[shares > 0]
    if between > 0:
        of_item = rng.dirichlet(given * (1 / between - 1), DRAWN)
    else:
        of_item = np.broadcast_to(given, (DRAWN, len(given)))
    counts = rng.multinomial(k, of_item).astype(np.float64)
    mean = counts.mean(axis=0)
    apart = (k**2 - (counts**2).sum(axis=1)) / (k - 1)
    observed, expected = float(apart.mean()), k - float((mean**2).sum()) / k
    moved = -2 * (counts - mean) @ mean / k
    added = -(apart - observed) / expected + observed / expected**2 * moved
    return float(added.std())


def _sentences(plan: AlphaPlan) -> Iterator[str]:
    now = plan.enough
    known = f"Krippendorff's alpha is known to ±{now.half_width:.2f}"
    if now.reached:
        yield f"{known}: ±{now.wanted:g} is reached."
        return
    assert now.more is not None
    yield f"{known}; ±{now.wanted:g} takes about {plural(now.more, 'more rating')} on new items."
    compared = (
        f"{plural(plan.n_items, 'more rating')}, one on each item, are expected to make it "
        f"±{plan.one_more:.2f}, and as many on new items ±{plan.same_on_new:.2f}"
    )
    if plan.same_on_new < (1 - ALIKE) * plan.one_more:
        yield f"{compared}: for alpha, take more items."
    elif plan.one_more < (1 - ALIKE) * plan.same_on_new:
        yield f"{compared}: for alpha, take more ratings an item."
    else:
        yield f"{compared}: for alpha about alike."
