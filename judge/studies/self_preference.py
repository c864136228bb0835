"""Whether a judge places itself higher than people do, beyond what it makes of other models."""

import math
from dataclasses import dataclass

import numpy as np

from judge.studies.items import Estimate
from judge.studies.preferences import Preferences
from rating.scale import POINTS_PER_NAT
from rating.typing import Floats
from rating.uncertainty.contrasts import quantile

MIN_OTHERS = 3
_NO_SPREAD = 1e-9


@dataclass(frozen=True, slots=True)
class SelfPreference:
    """How a judge places itself; in points of its own board.

    Attributes
    ----------
    excess : Estimate
        By how much it stands above the line through the other models; ``n`` is their number. The
        interval leaves out 0 only where a model that is nobody's own would seldom lie so far off.
    scale : float
        Slope of that line: nats of the judge for one of people.
    others_off : float
        Root mean square by which the other models lie off it. An excess of this size is what
        the judge does to any model.
    between : float
        Standard deviation of what it does to a model, without the uncertainty of the ratings.
    """

    excess: Estimate
    scale: float
    others_off: float
    between: float


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
    to favour itself.

    A judge lifts and lowers models for many reasons, and its own is one more of them. So the
    excess is judged as a further model drawn from those: with m others, ``s^2 = RSS / (m - 2)``
    of their residuals off the line and ``k = 1 + 1/m + (a_self - mean a)^2 / var(a)``, half of the
    interval is the larger of

    ::

        t_(m - 2) sqrt(k s^2)    and    t_(U - 1) sqrt(V + k between^2)

    The first is the prediction interval of the regression [3]_: their scatter, the uncertainty of
    their ratings included. The second is for a model that is less certain than the others: V is
    the excess' sampling variance, the delta method on the U prompts' influences on both boards,
    and ``between^2`` what is left of ``s^2`` without that of the residuals.

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
    .. [3] J. P. T. Higgins, S. G. Thompson and D. J. Spiegelhalter, "A re-evaluation of
       random-effects meta-analysis", Journal of the Royal Statistical Society A 172(1), 2009,
       section 4 (prediction for a new unit, t with m - 2).
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
    k = 1 + 1 / m + ahead**2 / spread
    off = y - scale * x
    scatter = float(off @ off) / (m - 2)
    between = max(scatter - _residual_noise(moved_b - scale * moved_a, x) / (m - 2), 0.0)
    pull = moved_a @ by_a + moved_b @ by_b
    half = max(
        quantile(level, m - 2) * math.sqrt(k * scatter), _uncertain(pull, k * between, level)
    )
    return SelfPreference(
        _in_points(excess, half, m),
        scale,
        POINTS_PER_NAT * float(np.sqrt(np.mean(off**2))),
        POINTS_PER_NAT * math.sqrt(between),
    )


def _in_points(value: float, half: float, n: int) -> Estimate:
    """Give a value its interval; none where the two boards are one."""
    if half < _NO_SPREAD:
        return Estimate(POINTS_PER_NAT * value, None, None, n)
    lower, upper = POINTS_PER_NAT * (value - half), POINTS_PER_NAT * (value + half)
    return Estimate(POINTS_PER_NAT * value, lower, upper, n)


def _uncertain(pull: Floats, between: float, level: float) -> float:
    """Return half of the interval that sampling and scatter add up to."""
    n_prompts = max(int((pull != 0).sum()), 2)
    sampling = n_prompts / (n_prompts - 1) * float(pull @ pull)
    return quantile(level, n_prompts - 1) * math.sqrt(sampling + between)


def _residual_noise(moved: Floats, x: Floats) -> float:
    """Return what uncertainty adds to the squares of the others' residuals off the line."""
    around = moved[:, :-1] - moved[:, :-1].mean(axis=1, keepdims=True)
    around -= np.outer(around @ x / (x @ x), x)
    return float((around**2).sum())


def _noise(first: Floats, second: Floats) -> float:
    """Return the sum of the covariances of the others' strengths around their mean."""
    parts = [
        moved[:, :-1] - moved[:, :-1].mean(axis=1, keepdims=True) for moved in (first, second)
    ]
    return float((parts[0] * parts[1]).sum())
