"""Whether pooled boards foresee votes on unseen prompts better than one board, or boards apart."""

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np

from rating.errors import ConvergenceError
from rating.leave_out import influence_variance
from rating.pooling.model import Categorised, Pooled, Tau, Tree, fit_pooled
from rating.typing import Floats, Ints
from rating.uncertainty.student import quantile

FOLDS = 5
DRAWS = 3
"""How often prompts are dealt out anew; losses are averaged."""

FEWEST_PROMPTS = 20
"""Prompts from which an interval over them is worth something."""

TOGETHER, APART = Tau(1e-3), Tau(20.0)
"""One board for all categories; a board of its own for each."""


@dataclass(frozen=True, slots=True)
class Excess:
    """Log loss of boards a vote, less that of one board for all, with its interval; in nats."""

    value: float
    lower: float
    upper: float

    @property
    def is_worse(self) -> bool:
        """Whether one board for all is shown to be better."""
        return self.lower > 0

    @property
    def is_better(self) -> bool:
        """Whether these boards are shown to be better than one for all."""
        return self.upper < 0


@dataclass(frozen=True, slots=True)
class Unseen:
    """What boards of categories are worth on prompts that they were not fitted to.

    Attributes
    ----------
    prompts : int
    one : float
        Log loss a vote of one board for all categories, in nats.
    apart : Excess
        Of a board for each category by itself.
    pooled : Excess
        Of pooled boards.
    """

    prompts: int
    one: float
    apart: Excess
    pooled: Excess

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON."""
        return asdict(self)


def on_unseen_prompts(fit: Pooled, votes: Categorised, rng: np.random.Generator) -> Unseen | None:
    """Hold pooled boards, boards apart and one board against votes on prompts left out.

    Five folds of whole prompts, dealt out three times; the standard deviations stay those of all
    votes. Intervals of 95 % are over prompts: of each one's sum of differences (a cluster of
    votes), with Student's t.

    Returns
    -------
    Unseen or None
        None without prompts, with fewer than `FEWEST_PROMPTS`, and where a part of them
        identifies no rating.
    """
    data = votes.data
    if data.prompt is None or data.n_prompts < FEWEST_PROMPTS:
        return None
    fits = [(TOGETHER, False), (APART, False), (fit.tau, bool(fit.tree.prompts))]
    even = np.arange(data.n_prompts) % FOLDS
    try:
        drawn = [losses(votes, fits, rng.permutation(even)) for _ in range(DRAWS)]
    except ConvergenceError:
        return None
    one, apart, pooled = np.mean(drawn, axis=0)
    return Unseen(
        prompts=data.n_prompts,
        one=float(data.weight @ one / data.weight.sum()),
        apart=_excess(votes, apart - one),
        pooled=_excess(votes, pooled - one),
    )


def losses(votes: Categorised, fits: Sequence[tuple[Tau, bool]], fold: Ints) -> Floats:
    """Return the log loss of each vote by fits to the prompts of other folds.

    Parameters
    ----------
    fits : sequence of (Tau, bool)
        Standard deviations, and whether prompts are a level.
    fold : ndarray of shape (n_prompts,)

    Returns
    -------
    ndarray of shape (n_fits, n_cells)
        Nats; a tie is half a win of each side.

    Raises
    ------
    ConvergenceError
        If the votes on the other prompts identify no rating.
    """
    data = votes.data
    assert data.prompt is not None
    of_cell = fold[data.prompt]
    loss = np.zeros((len(fits), len(of_cell)))
    for number in np.unique(of_cell):
        seen, new = of_cell != number, of_cell == number
        part = replace(votes, data=data.subset(seen), category=votes.category[seen])
        trees = {nested: Tree.of(part, nested=nested) for _, nested in fits}
        a, b = data.pairs[new].T
        score, category = data.score_a[new], votes.category[new]
        for place, (tau, nested) in enumerate(fits):
            strengths = fit_pooled(trees[nested], tau).strengths
            gap = strengths[category, a] - strengths[category, b]
            loss[place, new] = np.logaddexp(0, -gap) + (1 - score) * gap
    return loss


def _excess(votes: Categorised, difference: Floats) -> Excess:
    data = votes.data
    assert data.prompt is not None
    total = np.bincount(data.prompt, data.weight * difference, data.n_prompts)
    weight = np.bincount(data.prompt, data.weight, data.n_prompts)
    mean = float(total.sum() / weight.sum())
    off = total - mean * weight
    n = int((weight > 0).sum())
    se = math.sqrt(influence_variance(off, n)) / float(weight.sum())
    reach = quantile(0.95, n - 1) * se
    return Excess(mean, mean - reach, mean + reach)
