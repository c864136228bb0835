"""Which pair to show next: exact probabilities of every pair."""

import numpy as np
import scipy  # its submodules load on first use

from rating.errors import DataError
from rating.typing import Floats

EXPLORATION = 0.1


def uniform_pairs(n_models: int) -> Floats:
    """Return the same probability for every pair.

    Returns
    -------
    ndarray of shape (n_models, n_models)
        As all samplers here: symmetric, the probability of an unordered pair in
        both of its places, zero on the diagonal, the upper triangle summing
        to one.

    Raises
    ------
    DataError
        If there are fewer than two models.

    Examples
    --------
    >>> float(uniform_pairs(4)[0, 1])  # six pairs
    0.16666666666666666
    """
    if n_models < 2:
        raise DataError(f"A battle needs two models, not {n_models}.")
    apart = 1.0 - np.eye(n_models)
    return apart / (n_models * (n_models - 1) / 2)


def weighted_pairs(weights: Floats, *, exploration: float = EXPLORATION) -> Floats:
    """Return probabilities in proportion to the product of the two models' weights.

    Parameters
    ----------
    weights : ndarray of shape (n_models,)
        Positive. LMArena's policy of 2024 gave a new model 5 until its 3,000
        votes and the top ten 3. Leave a retired model out instead of giving
        it zero: its pairs could then never be drawn, nor weighted.
    exploration : float, default 0.1
        Share of the draws that goes to all pairs alike, in (0, 1]: no pair
        falls below ``exploration / n_pairs``.

    Raises
    ------
    DataError
        If a weight is not positive and finite, or ``exploration`` is out of
        range.
    """
    bad = weights[~((weights > 0) & np.isfinite(weights))]
    if bad.size:
        raise DataError(f"Weight {bad[0]} is not positive and finite; leave out retired models.")
    return _mixed(np.outer(weights, weights), exploration)


def arena_pairs(
    counts: Floats,
    variances: Floats,
    *,
    exploration: float = EXPLORATION,
) -> Floats:
    """Return probabilities in proportion to what one more vote takes off a pair's standard error.

    ``sqrt(S / n) - sqrt(S / (n + 1))`` for a pair with n votes of variance S.
    It narrows the win matrix, each pair on its own.

    Parameters
    ----------
    counts : ndarray of shape (n_models, n_models)
        Votes on each pair, symmetric.
    variances : ndarray of shape (n_models, n_models)
        Variance of one vote on each pair, symmetric: `score_variances`.

    Raises
    ------
    DataError
        If a count or a variance is negative, not finite or not symmetric, or
        ``exploration`` is out of range.

    References
    ----------
    .. [1] W.-L. Chiang et al., "Chatbot Arena: An Open Platform for
       Evaluating LLMs by Human Preference", ICML 2024, arXiv 2403.04132,
       section 5, equation 9. Two deviations: a pair without votes counts as
       having one, where the rule has no value; and the share of exploration,
       which keeps the inverse-probability weights bounded.

    Examples
    --------
    >>> counts = np.array([[0, 100, 100], [100, 0, 0], [100, 0, 0]])
    >>> probability = arena_pairs(counts, np.full((3, 3), 0.25))
    >>> probability[1, 2].round(3).item(), probability[0, 1].round(3).item()
    (0.93, 0.035)
    """
    _check_table("counts", counts)
    _check_table("variances", variances)
    seen = np.maximum(counts, 1.0)
    return _mixed(np.sqrt(variances / seen) - np.sqrt(variances / (seen + 1)), exploration)


def score_variances(wins: Floats) -> Floats:
    """Return ``p * (1 - p)`` with ``p = (wins + 1/2) / (votes + 1)``, for `arena_pairs`.

    Smoothed, so that a pair whose few votes agree does not pass for certain.
    Ties as half a win vary less than this.

    Parameters
    ----------
    wins : ndarray of shape (n_models, n_models)
        Score of row against column.

    Examples
    --------
    >>> score_variances(np.array([[0.0, 3.0], [0.0, 0.0]]))[0, 1].item()  # 7/8 * 1/8
    0.109375
    """
    p = (wins + 0.5) / (wins + wins.T + 1)
    return np.asarray(p * (1 - p))


def gain_pairs(
    theta: Floats,
    covariance: Floats,
    *,
    top: int | None = None,
    contrast: Floats | None = None,
    exploration: float = EXPLORATION,
) -> Floats:
    """Return probabilities by what one more vote takes off the neighbours' variances.

    With x the pair's +1 and -1, V the covariance, p the probability of a win and
    ``C`` the sum of ``c c'`` over the contrasts c of neighbours on the board,
    the sum of the variances of their differences falls by::

        p * (1 - p) * x' V C V x / (1 + p * (1 - p) * x' V x)

    Exact for a covariance that is the inverse information, by the formula of
    Sherman and Morrison; a guide for any other. A vote helps every difference
    it bears on, not only its own pair's.

    Parameters
    ----------
    theta : ndarray of shape (n_models,)
        Strengths in nats. A model without votes needs a place and a wide
        covariance, from a fit with a ridge.
    covariance : ndarray of shape (n_models, n_models)
        In squared nats.
    top : int, optional
        Differences among so many of the strongest count; all by default.
    contrast : ndarray of shape (n_models, n_models), optional
        Another C than the neighbours', such as `pair_contrast`.

    Raises
    ------
    DataError
        If ``top`` is not between 2 and n_models, ``covariance`` is not finite
        or not symmetric, or ``exploration`` is out of range.
    """
    wanted = neighbour_contrast(theta, top) if contrast is None else contrast
    gain = vote_gain(theta, covariance, wanted)
    return _mixed(gain, exploration)


def vote_gain(
    theta: Floats,
    covariance: Floats,
    contrast: Floats,
) -> Floats:
    """Return what one vote on each pair takes off ``trace(contrast @ covariance)``.

    Parameters
    ----------
    contrast : ndarray of shape (n_models, n_models)
        Sum of ``c c'`` over the contrasts of interest.

    Raises
    ------
    DataError
        If ``covariance`` is not finite or not symmetric.
    """
    if not (np.isfinite(covariance).all() and np.allclose(covariance, covariance.T)):
        raise DataError("covariance must be finite and symmetric; fit with a ridge if need be.")
    probability = scipy.special.expit(theta[:, None] - theta[None, :])
    information = probability * probability.T
    drop = _of_differences(covariance @ contrast @ covariance)
    return np.asarray(information * drop / (1 + information * _of_differences(covariance)))


def neighbour_contrast(theta: Floats, top: int | None = None) -> Floats:
    """Return the sum of ``c c'`` over the differences of neighbours among the strongest.

    Raises
    ------
    DataError
        If ``top`` is not between 2 and n_models.
    """
    n_models = len(theta)
    if top is not None and not 2 <= top <= n_models:
        raise DataError(f"top must lie between 2 and {n_models}, not {top}.")
    order = np.argsort(-theta, kind="stable")[:top]
    rows = np.zeros((len(order) - 1, n_models))
    rows[np.arange(len(rows)), order[:-1]] = 1
    rows[np.arange(len(rows)), order[1:]] = -1
    return rows.T @ rows


def pair_contrast(n_models: int, first: int, second: int) -> Floats:
    """Return ``c c'`` of the difference of two models: for a race between them.

    Examples
    --------
    >>> pair_contrast(3, 0, 2).astype(int).tolist()
    [[1, 0, -1], [0, 0, 0], [-1, 0, 1]]
    """
    row = np.zeros(n_models)
    row[first], row[second] = 1, -1
    return np.outer(row, row)


def _mixed(wanted: Floats, exploration: float) -> Floats:
    """Scale to a sum of one over the pairs, and give every pair its share of exploration."""
    if not 0 < exploration <= 1:
        raise DataError(f"exploration must lie in (0, 1], not {exploration}.")
    even = uniform_pairs(len(wanted))
    wanted = np.where(even > 0, (wanted + wanted.T) / 2, 0.0)
    total = wanted.sum() / 2
    if total == 0:  # nothing to learn anywhere
        return even
    return np.asarray((1 - exploration) * wanted / total + exploration * even)


def _of_differences(square: Floats) -> Floats:
    """Return ``x' M x`` for the difference of every two models."""
    diagonal = np.diag(square)
    return np.maximum(diagonal[:, None] + diagonal[None, :] - square - square.T, 0.0)


def _check_table(name: str, table: Floats) -> None:
    bad = table[~((table >= 0) & np.isfinite(table))]
    if bad.size:
        raise DataError(f"{name} holds {bad[0]}; entries must be finite and not negative.")
    if not np.allclose(table, table.T):
        raise DataError(f"{name} must be symmetric: one entry per unordered pair, in both places.")
