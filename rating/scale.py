"""Strengths in nats, ratings in points."""

import math

from rating.typing import Floats

POINTS_PER_NAT = 400 / math.log(10)
MEAN_POINTS = 1000.0


def to_points(theta: Floats) -> Floats:
    """Return ``400 / ln 10 * theta + 1000``: the Elo scale, for strengths that sum to zero.

    A lead of 400 points is odds of ten to one.

    Examples
    --------
    >>> import numpy as np
    >>> to_points(np.log([10.0, 1.0])).tolist()
    [1400.0, 1000.0]
    """
    return POINTS_PER_NAT * theta + MEAN_POINTS


def to_nats(points: Floats) -> Floats:
    """Return the strength in nats of a rating in points: the inverse of `to_points`."""
    return (points - MEAN_POINTS) / POINTS_PER_NAT
