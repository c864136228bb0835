"""Loops over the votes of one cluster after another, compiled by numba: extra ``scale``.

What numpy does in `rating.covariance` and `rating.resampling`, to rounding, for Bradley-Terry,
with features or without; the bootstrap without. Imported where votes are many: to load the
compiled code takes a third of a second. Every function lets go of the interpreter's lock and runs
on one core, so that threads may share the clusters or the rounds out.
"""

import math
from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray

from rating.typing import Bools, Floats, Integers, Ints, Words

NEVER = 65535
"""The last word: none is larger."""

MOST_ROUNDS = 100
_CLOSE = 1e-12
DENSE_FROM = 6
"""Share of all models from which the whole of a row is taken, not the models of the cluster."""


@njit(cache=True, nogil=True)
def _beats(probability: float, covariates: Floats, style: Floats) -> float:
    """Return the probability of a win of the first model, from that without covariates."""
    if len(style) == 0:
        return probability
    moved = 0.0
    for t in range(len(style)):
        moved += covariates[t] * style[t]
    return probability / (probability + (1.0 - probability) * math.exp(-moved))


@njit(cache=True, nogil=True)
def leave_out_light(
    starts: Ints,
    pairs: Integers,
    covariates: Floats,
    score: Floats,
    weight: Floats,
    probability: Floats,
    style: Floats,
    bread: Floats,
    squared: Floats,
    limit: float,
    meat: Floats,
    leverage: Floats,
    lengths: Floats,
) -> None:
    """Omit one cluster at a time by a Newton step, those below a leverage.

    The parameters move by ``H^- z`` with ``z = s + H_c H^- z``, which is solved by iteration on
    the models of the cluster: every round multiplies the error by the leverage at most.

    Parameters
    ----------
    starts : ndarray of shape (n_clusters + 1,)
        Where the cells of each cluster begin; they stand in this order.
    pairs : ndarray of shape (n_cells, 2)
    covariates : ndarray of shape (n_cells, n_covariates)
    score, weight : ndarray of shape (n_cells,)
        Score of side A in one vote, and the weight of all.
    probability : ndarray of shape (n_models, n_models)
        That row beats column, by the strengths alone.
    style : ndarray of shape (n_covariates,)
        Coefficients of the covariates.
    bread : ndarray of shape (n_parameters, n_parameters)
        ``H^-``, of the strengths and then of the coefficients.
    squared : ndarray of shape (n_parameters, n_parameters)
        Its product with itself over the strengths, or an empty array where no length is wanted.
    limit : float
        Leverage from which a cluster is left to others.
    meat : ndarray of shape (n_parameters, n_parameters)
        Takes a matrix that with its transpose is the sum of ``z z'``.
    leverage, lengths : ndarray of shape (n_clusters,)
        Take ``trace(H^- H_c)``, and how far the strengths move, squared.
    """
    k, d, size = len(probability), len(style), len(bread)
    most = np.max(np.diff(starts)) if len(starts) > 1 else 0
    if d == 0:  # cells of one pair are one
        most = min(k * (k - 1) // 2, most)
    cell_of = np.full(k * k, -1, dtype=np.int32)
    place_of = np.full(k, -1, dtype=np.int32)
    first, second = np.empty(most, dtype=np.int32), np.empty(most, dtype=np.int32)
    games, pull = np.empty(most), np.empty(most)
    model, near = np.empty(size, dtype=np.int32), np.empty((size, size))
    own, z, moved = np.empty(size), np.empty(size), np.empty(size)
    new, along = np.empty(size), np.empty(size)
    for c in range(len(starts) - 1):
        m = 0
        for row in range(starts[c], starts[c + 1]):
            i, j = pairs[row, 0], pairs[row, 1]
            won = score[row]
            if d == 0 and i > j:
                i, j, won = j, i, 1.0 - won
            at = cell_of[i * k + j] if d == 0 else -1
            if at < 0:
                at = m
                cell_of[i * k + j] = m
                first[m], second[m], games[m], pull[m] = i, j, 0.0, 0.0
                m += 1
            beats = _beats(probability[i, j], covariates[row], style)
            games[at] += weight[row] * beats * (1.0 - beats)
            pull[at] += weight[row] * (beats - won)
        total, x = 0.0, covariates[starts[c] : starts[c + 1]]
        for at in range(m):
            i, j = first[at], second[at]
            cell_of[i * k + j] = -1
            reach = bread[i, i] + bread[j, j] - 2.0 * bread[i, j]
            for t in range(d):
                reach += 2.0 * x[at, t] * (bread[i, k + t] - bread[j, k + t])
                for u in range(d):
                    reach += x[at, t] * x[at, u] * bread[k + t, k + u]
            total += games[at] * reach
        leverage[c] = total
        if total >= limit:
            continue
        n = 0
        for at in range(m):
            for side in range(2):
                i = first[at] if side == 0 else second[at]
                if place_of[i] < 0:
                    place_of[i] = n
                    model[n], own[n] = i, 0.0
                    n += 1
            first[at], second[at] = place_of[first[at]], place_of[second[at]]
            own[first[at]] += pull[at]
            own[second[at]] -= pull[at]
        for s in range(n):
            place_of[model[s]] = -1
        style_at = n
        for t in range(d):
            model[n], own[n] = k + t, 0.0
            for at in range(m):
                own[n] += pull[at] * x[at, t]
            n += 1
        largest = 0.0
        for s in range(n):
            z[s] = own[s]
            largest = max(largest, abs(own[s]))
        many = n * DENSE_FROM > k
        if not many:
            for s in range(n):
                row = bread[model[s]]
                for t in range(s + 1):
                    near[s, t] = near[t, s] = row[model[t]]
        for _ in range(MOST_ROUNDS):
            if many:
                along[:] = 0.0
                for s in range(n):
                    row, by = bread[model[s]], z[s]
                    for t in range(size):
                        along[t] += row[t] * by
                for s in range(n):
                    moved[s] = along[model[s]]
            else:
                moved[:n] = 0.0
                for s in range(n):
                    row, by = near[s], z[s]
                    for t in range(n):
                        moved[t] += row[t] * by
            new[:n] = own[:n]
            for at in range(m):
                gap = moved[first[at]] - moved[second[at]]
                for t in range(d):
                    gap += x[at, t] * moved[style_at + t]
                change = games[at] * gap
                new[first[at]] += change
                new[second[at]] -= change
                for t in range(d):
                    new[style_at + t] += change * x[at, t]
            change = 0.0
            for s in range(n):
                change = max(change, abs(new[s] - z[s]))
                z[s] = new[s]
            if change * total <= _CLOSE * (1.0 - total) * largest:
                break
        if many:
            along[:] = 0.0
            for s in range(n):
                along[model[s]] = z[s]
            for s in range(n):
                row, by = meat[model[s]], z[s] / 2.0
                for t in range(size):
                    row[t] += along[t] * by
        else:
            for s in range(n):
                row, by = meat[model[s]], z[s]
                for t in range(s):
                    row[model[t]] += z[t] * by
                row[model[s]] += by * by / 2.0
        if len(squared):
            length = 0.0
            for s in range(n):
                for t in range(n):
                    length += z[s] * z[t] * squared[model[s], model[t]]
            lengths[c] = length


@njit(cache=True, nogil=True)
def _add_along(
    rows: Any,
    pairs: Integers,
    covariates: Floats,
    weight: Floats,
    probability: Floats,
    style: Floats,
    vectors: Floats,
    gap: Floats,
    along: Floats,
) -> None:
    """Add ``v' H_i v`` of some cells i and each of m vectors; ``gap`` is room to work in."""
    m, k, d = vectors.shape[1], len(probability), len(style)
    for row in rows:
        i, j = pairs[row, 0], pairs[row, 1]
        beats = _beats(probability[i, j], covariates[row], style)
        known = weight[row] * beats * (1.0 - beats)
        for t in range(m):
            gap[t] = vectors[i, t] - vectors[j, t]
        for u in range(d):
            by = covariates[row, u]
            for t in range(m):
                gap[t] += by * vectors[k + u, t]
        for t in range(m):
            along[t] += known * gap[t] * gap[t]


@njit(cache=True, nogil=True)
def information_along(
    starts: Ints,
    pairs: Integers,
    covariates: Floats,
    weight: Floats,
    probability: Floats,
    style: Floats,
    vectors: Floats,
) -> Floats:
    """Return ``v' H_c v`` of each cluster and each of m vectors, shape (n_clusters, m).

    Parameters
    ----------
    starts, pairs, covariates, weight, probability, style
        As `leave_out_light` takes them.
    vectors : ndarray of shape (n_parameters, m)
    """
    along, gap = np.zeros((len(starts) - 1, vectors.shape[1])), np.empty(vectors.shape[1])
    for c in range(len(starts) - 1):
        rows = range(starts[c], starts[c + 1])
        _add_along(rows, pairs, covariates, weight, probability, style, vectors, gap, along[c])
    return along


@njit(cache=True, nogil=True)
def information_squared(
    starts: Ints,
    pairs: Integers,
    covariates: Floats,
    weight: Floats,
    probability: Floats,
    style: Floats,
    vectors: Floats,
) -> Floats:
    """Return the sums over clusters of the squares of `information_along`, shape (m,)."""
    m = vectors.shape[1]
    square, along, gap = np.zeros(m), np.empty(m), np.empty(m)
    for c in range(len(starts) - 1):
        along[:] = 0.0
        rows = range(starts[c], starts[c + 1])
        _add_along(rows, pairs, covariates, weight, probability, style, vectors, gap, along)
        for t in range(m):
            square[t] += along[t] * along[t]
    return square


@njit(cache=True, nogil=True, error_model="numpy")
def count_small(words: Words, last: Words) -> NDArray[np.uint8]:
    """Return the Poisson number of one small mean that each word gives: `PoissonTable.sums`."""
    n = words.shape[1]
    counts = np.zeros(words.shape, dtype=np.uint8)
    number = np.empty(n, dtype=np.uint16)
    for row in range(len(words)):
        _count(words[row], last[0], number)
        for r in range(n):
            counts[row, r] = number[r]
    return counts


@njit(cache=True, nogil=True, error_model="numpy")
def _count(words: Words, last: Words, number: Words) -> None:
    number[:] = 0
    for most in last:
        if most == NEVER:
            break
        for r in range(len(words)):
            number[r] += np.uint16(words[r] > most)


@njit(cache=True, nogil=True, error_model="numpy")
def draw_votes(
    words: Words, mean: Floats, large: Bools, scale: Floats, last: Words, z: Floats
) -> tuple[Floats, Floats]:
    """Return the games and scores of pairs whose votes are drawn each by itself.

    Parameters
    ----------
    words : ndarray of shape (3 * n_pairs, n_rounds)
        Of wins of the first model, of the second, and ties.
    mean, large, last, z
        As `PoissonTable` has them.
    scale : ndarray of shape (3 * n_pairs,)
        Weight of one vote.

    Returns
    -------
    (ndarray, ndarray), each of shape (n_pairs, n_rounds)
    """
    n_pairs, n = len(words) // 3, words.shape[1]
    games, score = np.empty((n_pairs, n)), np.empty((n_pairs, n))
    number, drawn = np.empty(n, dtype=np.uint16), np.empty((3, n))
    for pair in range(n_pairs):
        for kind in range(3):
            at = kind * n_pairs + pair
            m, by = mean[at], scale[at]
            if large[at]:
                root = np.sqrt(m)
                for r in range(n):
                    normal = z[words[at, r]]
                    times = m + root * normal + (normal * normal - 1.0) / 6.0
                    drawn[kind, r] = max(times, 0.0) * by
            else:
                _count(words[at], last[at], number)
                for r in range(n):
                    drawn[kind, r] = number[r] * by
        _fold(drawn, games[pair], score[pair])
    return games, score


@njit(cache=True, nogil=True, error_model="numpy")
def draw_clusters(
    counts: NDArray[np.uint8], starts: Integers, cluster: Integers, weight: NDArray[Any]
) -> tuple[Floats, Floats]:
    """Return the games and scores of pairs whose votes are drawn by cluster.

    Parameters
    ----------
    counts : ndarray of shape (n_clusters, n_rounds), uint8
        How often each cluster is drawn.
    starts, cluster, weight
        Of a sparse array, a row for each entry and a column for each cluster. Weights of 32 bits
        are summed in 32 bits.

    Returns
    -------
    (ndarray, ndarray), each of shape (n_pairs, n_rounds)
    """
    n_pairs, n = (len(starts) - 1) // 3, counts.shape[1]
    games, score = np.empty((n_pairs, n)), np.empty((n_pairs, n))
    sums, drawn = np.empty(n, dtype=weight.dtype), np.empty((3, n))
    for pair in range(n_pairs):
        for kind in range(3):
            at = kind * n_pairs + pair
            sums[:] = 0
            for cell in range(starts[at], starts[at + 1]):
                by, times = weight[cell], counts[cluster[cell]]
                for r in range(n):
                    sums[r] += by * times[r]
            for r in range(n):
                drawn[kind, r] = sums[r]
        _fold(drawn, games[pair], score[pair])
    return games, score


@njit(cache=True, nogil=True, error_model="numpy")
def _fold(drawn: Floats, games: Floats, score: Floats) -> None:
    for r in range(len(games)):
        games[r] = drawn[0, r] + drawn[1, r] + drawn[2, r]
        score[r] = drawn[0, r] + drawn[2, r] / 2.0


@njit(cache=True, nogil=True, error_model="numpy")
def add_scores(first: Ints, second: Ints, games: Floats, score: Floats, total: Floats) -> None:
    """Add the scores of pairs to those of their models, as `PairRounds.of` does."""
    for pair in range(len(games)):
        own, other = total[first[pair]], total[second[pair]]
        for r in range(games.shape[1]):
            own[r] += score[pair, r]
            other[r] += games[pair, r] - score[pair, r]


@njit(cache=True, nogil=True, error_model="numpy")
def add_expected(first: Ints, second: Ints, games: Floats, odds: Floats, slope: Floats) -> None:
    """Add the scores that are expected at some odds to each model's, as `PairRounds.gradient`."""
    for pair in range(len(games)):
        i, j = first[pair], second[pair]
        for r in range(games.shape[1]):
            share = odds[i, r] / (odds[j, r] + odds[i, r]) * games[pair, r]
            slope[i, r] += share
            slope[j, r] += games[pair, r] - share


@njit(cache=True, nogil=True, error_model="numpy")
def product(matrix: Floats, columns: Floats) -> Floats:
    """Multiply on one core: threads of linear algebra below ours would wait for each other."""
    n, m = matrix.shape
    result = np.zeros((n, columns.shape[1]))
    for i in range(n):
        for j in range(m):
            by = matrix[i, j]
            for r in range(columns.shape[1]):
                result[i, r] += by * columns[j, r]
    return result
