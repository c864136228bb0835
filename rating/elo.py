"""The Elo scale: strengths in nats as points; and online Elo, which depends on the order."""

from collections.abc import Iterator
from math import exp, log

import numpy as np

from rating.counting import check_lengths, checked_codes
from rating.errors import DataError
from rating.typing import Floats, Ints

SCALE = 400.0
POINTS_PER_NAT = SCALE / log(10)
MEAN_POINTS = 1000.0
STEP = 4.0
CHUNK_VOTES = 65_536


def to_points(theta: Floats) -> Floats:
    """Return ``400 / ln 10 * theta + 1000``: the Elo scale, for strengths that sum to zero.

    A lead of 400 points is odds of ten to one.

    Examples
    --------
    >>> to_points(np.log([10.0, 1.0])).tolist()
    [1400.0, 1000.0]
    """
    return POINTS_PER_NAT * theta + MEAN_POINTS


def to_nats(points: Floats) -> Floats:
    """Return the strength in nats of a rating in points: the inverse of `to_points`."""
    return (points - MEAN_POINTS) / POINTS_PER_NAT


def expected_score(lead: float, *, scale: float = SCALE) -> float:
    """Return ``1 / (1 + 10 ** (-lead / scale))``: the Elo probability at a lead in points.

    Examples
    --------
    >>> round(expected_score(400), 4)  # ten to one
    0.9091
    """
    return 1.0 / (1.0 + exp(-lead / scale * log(10)))


def online_elo(
    a: Ints,
    b: Ints,
    score_a: Floats,
    n_models: int,
    *,
    k: float = STEP,
    scale: float = SCALE,
    start: float = MEAN_POINTS,
) -> Floats:
    """Rate models by one pass over the votes, in the order given.

    Each vote moves both ratings by how unexpected it was::

        R_a += k * (score_a - E),   R_b -= k * (score_a - E)
        E = 1 / (1 + 10 ** ((R_b - R_a) / scale))

    The result depends on the order. A vote is judged by the ratings of its
    moment, which the earlier votes made, and what it adds fades by
    ``k * ln 10 / scale * E * (1 - E)`` with every later vote on its models:
    the last few hundred votes on a model weigh most. Among models that do not
    change there is no reason for that, so the arena rates by Bradley-Terry,
    in which order leaves no trace, and shows Elo for history.

    Parameters
    ----------
    a, b : ndarray of shape (n_votes,), int
        Codes of the models on the two sides, from 0 to n_models - 1.
    score_a : ndarray of shape (n_votes,)
        Score of the first side, in [0, 1]: 1 win, 1/2 tie, 0 loss.
    k : float, default 4
        Points at stake in a vote.

    Returns
    -------
    ndarray of shape (n_models,)
        Points. The mean stays at ``start``.

    Raises
    ------
    DataError
        For columns of unequal length, a code out of range, a model against
        itself, a score outside [0, 1], or ``k`` or ``scale`` not positive.

    References
    ----------
    .. [1] A. E. Elo, "The Rating of Chessplayers, Past and Present", Arco,
       1978, section 1.6.
    .. [2] M. Boubdir, E. Kim, B. Ermis, S. Hooker and M. Fadaee, "Elo
       Uncovered: Robustness and Best Practices in Language Model Evaluation",
       2023, arXiv 2311.17295, on the order of votes.

    Examples
    --------
    >>> online_elo(np.array([0]), np.array([1]), np.array([1.0]), 2, k=32).tolist()
    [1016.0, 984.0]
    """
    _check(a, b, score_a, n_models, k, scale)
    nats = [0.0] * n_models
    stake = k * log(10) / scale
    # Lists of Python numbers: each vote waits for the one before, and a numpy
    # scalar costs ten times a list's entry. The loop is the whole cost.
    for i, j, won in _rows(a, b, stake * score_a):
        nats_i = nats[i]
        nats_j = nats[j]
        change = won - stake / (1.0 + exp(nats_j - nats_i))
        nats[i] = nats_i + change
        nats[j] = nats_j - change
    return start + scale / log(10) * np.array(nats)


def _rows(a: Ints, b: Ints, value: Floats) -> Iterator[tuple[int, int, float]]:
    """Yield the votes as Python numbers, a cache's worth at a time."""
    for first in range(0, len(a), CHUNK_VOTES):
        part = slice(first, first + CHUNK_VOTES)
        yield from zip(a[part].tolist(), b[part].tolist(), value[part].tolist(), strict=True)


def _check(
    a: Ints,
    b: Ints,
    score_a: Floats,
    n_models: int,
    k: float,
    scale: float,
) -> None:
    check_lengths({"a": len(a), "b": len(b), "score_a": len(score_a)})
    for name, codes in (("a", a), ("b", b)):
        checked_codes(name, codes, n_models)
    if (a == b).any():
        raise DataError(f"Model {a[a == b][0]} meets itself; leave such votes out.")
    bad = score_a[~((score_a >= 0) & (score_a <= 1))]
    if bad.size:
        raise DataError(f"Score {bad[0]} lies outside [0, 1]; use 1, 1/2 or 0.")
    for name, value in (("k", k), ("scale", scale)):
        if not 0 < value < np.inf:
            raise DataError(f"{name} must be positive and finite, not {value}.")
