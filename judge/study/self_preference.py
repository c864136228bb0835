"""Whether a judge places itself higher than people do, beyond what it makes of other models."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from judge.study.items import Estimate
from judge.study.preferences import Preferences, from_influence
from rating.scale import POINTS_PER_NAT

Floats = NDArray[np.float64]

MIN_OTHERS = 3


@dataclass(frozen=True, slots=True)
class SelfPreference:
    """How a judge places itself; in points of its own board.

    Attributes
    ----------
    excess : Estimate
        By how much it stands above the line through the other models; ``n`` is their number.
    scale : float
        Slope of that line: nats of the judge for one of people.
    others_off : float
        Root mean square by which the other models lie off it. An excess of this size is what
        the judge does to any model.
    """

    excess: Estimate
    scale: float
    others_off: float


def self_preference(
    people: Preferences, judge: Preferences, name: str, *, level: float = 0.95
) -> SelfPreference | None:
    """Measure how far a judge's own model stands off the line through the others.

    With a and b the strengths by people and by the judge, over the other models

    ::

        scale = (cov(a, b) - noise_ab) / (var(a) - noise_a)
        excess = (b_self - mean b) - scale (a_self - mean a)

    A judge whose verdicts are more decided than votes has a scale above 1, and a strong model
    stands higher with it without favour. The noise terms are what the uncertainty of strengths
    adds to their spread; without them the scale would be too small, and a strong judge would seem
    to favour itself. The interval is the delta method on the prompts' influences on both boards.

    Returns
    -------
    SelfPreference or None
        None where the model is not on both boards with `MIN_OTHERS` others, or where people's
        ratings of the others spread no more than their uncertainty.

    References
    ----------
    .. [1] A. Panickssery, S. R. Bowman and S. Feng, "LLM Evaluators Recognize and Favor Their
       Own Generations", NeurIPS 2024. There the scales are taken as equal.
    .. [2] W. A. Fuller, Measurement Error Models, 1987, section 1.2.
    """
    others = tuple(sorted(set(people.models) & set(judge.models) - {name}))
    on_both = name in people.models and name in judge.models
    if not on_both or len(others) < MIN_OTHERS:
        return None
    (a, moved_a), (b, moved_b) = (board.of_models((*others, name)) for board in (people, judge))
    own_a, own_b, m = a[-1], b[-1], len(others)
    x, y = a[:-1] - a[:-1].mean(), b[:-1] - b[:-1].mean()
    spread = x @ x - _noise(moved_a, moved_a)
    if spread <= 0:
        return None
    scale = float((x @ y - _noise(moved_a, moved_b)) / spread)
    ahead = own_a - a[:-1].mean()
    excess = float(own_b - b[:-1].mean() - scale * ahead)
    by_b = np.r_[-1 / m - ahead * x / spread, 1.0]
    by_a = np.r_[scale / m - ahead * (y - 2 * scale * x) / spread, -scale]
    pull = POINTS_PER_NAT * (moved_a @ by_a + moved_b @ by_b)
    off = float(np.sqrt(np.mean((y - scale * x) ** 2)))
    return SelfPreference(
        from_influence(POINTS_PER_NAT * excess, pull, n=m, level=level),
        scale,
        POINTS_PER_NAT * off,
    )


def _noise(first: Floats, second: Floats) -> float:
    """Return the sum of the covariances of the others' strengths around their mean."""
    parts = [
        moved[:, :-1] - moved[:, :-1].mean(axis=1, keepdims=True) for moved in (first, second)
    ]
    return float((parts[0] * parts[1]).sum())
