"""Do other mixes of prompts change the ranking? Ways to weigh prompts, and ranks in any mix."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np
import scipy  # its submodules load on first use

from judge.probe.similarity import tf_idf, words
from rating.diagnosis.reweighting import Reweighted, Scored, Weighting, compared
from rating.options import RateOptions
from rating.pooling.boards import pooled_strengths
from rating.pooling.mix import Mix, RankReach, envelope
from rating.rows import VoteRows
from rating.typing import Floats, Ints

CLUSTERS = (8, 32, 128, 512)
"""Into how many clusters prompts are put by their words, where there are more prompts."""
MOST_CLUSTERED = 3000
"""Prompts of which every two are compared to put them into clusters."""


@dataclass(frozen=True, slots=True)
class Ranking:
    """Boards of other mixes of prompts, beside the one there is.

    Attributes
    ----------
    boards : tuple of Reweighted
    envelope : mapping of str to tuple of RankReach
        By column of groups: the ranks that each model reaches in mixes of them.
    """

    boards: tuple[Reweighted, ...]
    envelope: Mapping[str, tuple[RankReach, ...]] = field(default_factory=dict)

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON."""
        return {
            "boards": [one.to_dict() for one in self.boards],
            "envelope": [
                {"by": by, **asdict(row)} for by, rows in self.envelope.items() for row in rows
            ],
        }


def by_words(texts: Sequence[str], codes: Ints) -> Iterator[Weighting]:
    """Weigh prompts by their words: alike ones share a weight, or one stands for its cluster.

    An inverse density, ``w_t = 1 / sum_k cos(t, k)`` over all prompts, itself among them, which
    weighs a prompt given n times as one; and the prompt in the middle of each cluster, those in
    the middle weighing the same.

    Parameters
    ----------
    texts : sequence of str, length n_prompts
    codes : ndarray of shape (n,), int64
        The prompt of each row.
    """
    if not any(map(words, texts)):
        return
    vectors, _ = tf_idf(texts).vectors(texts, texts)
    density = (vectors @ vectors.sum(axis=0)).clip(min=1.0)
    yield Weighting("alike prompts share a weight", codes, 1 / density)
    if len(texts) > MOST_CLUSTERED:
        return
    cosine = (vectors @ vectors.T).toarray()
    for n, cluster in clusters_of(cosine, CLUSTERS).items():
        yield Weighting(f"one prompt each of {n} clusters", codes, _middles(cosine, cluster))


def clusters_of(cosine: Floats, numbers: Sequence[int]) -> dict[int, Ints]:
    """Put texts into clusters by Ward's method, each time as many as asked for.

    Parameters
    ----------
    cosine : ndarray of shape (n, n)
        Of vectors of length 1, so that their distance is ``sqrt(2 - 2 cosine)``.

    Returns
    -------
    dict of int to ndarray of shape (n,), int64
        Clusters by number; a number is left out where there are not more texts.

    References
    ----------
    .. [1] J. H. Ward, "Hierarchical grouping to optimize an objective function", JASA 58(301),
       1963, pp. 236-244.
    """
    numbers = [n for n in numbers if n < len(cosine)]
    if not numbers:
        return {}
    apart = np.sqrt((2 - 2 * cosine[np.triu_indices(len(cosine), 1)]).clip(min=0))
    tree = scipy.cluster.hierarchy.linkage(apart, "ward")
    cut = scipy.cluster.hierarchy.cut_tree(tree, numbers)
    return {n: column.astype(np.int64) for n, column in zip(numbers, cut.T, strict=True)}


def _middles(cosine: Floats, cluster: Ints) -> Floats:
    """Return 1 for the text of each cluster that is most like the others in it, else 0."""
    same = cluster[:, None] == cluster[None, :]
    likeness = (cosine * same).sum(axis=1)
    order = np.lexsort((-likeness, cluster))
    chosen = np.zeros(len(cluster))
    chosen[order[np.unique(cluster[order], return_index=True)[1]]] = 1.0
    return chosen


def own_mix(mix: Mix, by: str, names: Sequence[str], codes: Ints) -> Weighting:
    """Weigh groups by shares of one's own (post-stratification).

    Raises
    ------
    DataError
        If there is no group of a name in the mix.
    """
    return Weighting(f"your mix of {by}", codes, mix.along(names))


# Votes


def reach_of_votes(rows: VoteRows) -> tuple[RankReach, ...]:
    """Return the ranks that models reach in mixes of the groups ``by``, which are pooled.

    Raises
    ------
    DataError, NotIdentifiedError, ConvergenceError
        As `rating.pooling.boards.pooled_strengths`.
    """
    votes, variance = pooled_strengths(
        rows.votes_by_group(), RateOptions(by="group", pool=True, interval="none")
    )
    return tuple(envelope(votes.data.models, variance.best.strengths, votes.votes))


# Tables of results


def boards_of_table(
    models: Sequence[str],
    values: Floats,
    groups: Mapping[str, tuple[Ints, tuple[str, ...]]],
    others: Sequence[Weighting],
    *,
    level: float,
) -> Iterator[Reweighted]:
    """Compare means of results with those in which prompts weigh otherwise.

    Parameters
    ----------
    values : ndarray of shape (n_models, n_prompts)
    groups : mapping of str to (ndarray of shape (n_prompts,), tuple of str)
        Codes by column, and what they stand for.
    others : sequence of Weighting
        A row of theirs is a prompt.
    """
    n = values.shape[1]
    one = np.zeros(n, dtype=np.int64)
    default = _scored(models, values, Weighting("", one, np.ones(1)))
    for by, (codes, names) in groups.items():
        same = Weighting(f"each {by} the same", codes, np.ones(len(names)))
        alone = (
            Weighting(f"{by} {name} alone", codes, own)
            for name, own in zip(names, np.eye(len(names)), strict=True)
        )
        for weighting in (same, *alone):
            yield compared(
                weighting.name, default, _scored(models, values, weighting), level=level
            )
    for weighting in others:
        yield compared(weighting.name, default, _scored(models, values, weighting), level=level)


def _scored(models: Sequence[str], values: Floats, weighting: Weighting) -> Scored:
    """Return mean results with weights, in hundredths of their range.

    What a prompt has a part in is its distance from the mean of its group, whose weight stays; of
    groups of one prompt each, from the mean of all.
    """
    n = values.shape[1]
    weight = weighting.each(np.ones(n)) / n
    group = weighting.codes if len(np.unique(weighting.codes)) < n else np.zeros(n, dtype=np.int64)
    values = 100 * values / (float(np.ptp(values)) or 1.0)
    side = (group[:, None] == np.arange(int(group.max()) + 1)) * weight[:, None]
    total = side.sum(axis=0)
    of_group = (values @ side) / np.where(total > 0, total, 1.0)
    return Scored(tuple(models), values @ weight, ((values - of_group[:, group]) * weight).T)


def reach_of_table(models: Sequence[str], values: Floats, group: Ints) -> tuple[RankReach, ...]:
    """Return the ranks that models reach in mixes of groups of prompts.

    Means of groups hold luck, which would widen the range, so what a group puts a model above or
    below its place on the whole is drawn towards 0 by ``tau^2 / (tau^2 + v)``: v its variance over
    prompts drawn anew, and ``tau^2`` what the squares of all are above theirs, or 0.

    Parameters
    ----------
    values : ndarray of shape (n_models, n_prompts)
    group : ndarray of shape (n_prompts,), int64
    """
    sizes = np.bincount(group).astype(np.float64)
    side = (group[:, None] == np.arange(len(sizes))) / sizes
    ahead = values - values.mean(axis=0)
    of_group, whole = ahead @ side, ahead.mean(axis=1, keepdims=True)
    free = max(1, len(group) - len(sizes))
    variance = ((ahead - of_group[:, group]) ** 2).sum(axis=1, keepdims=True) / free
    luck = variance * (1 / sizes - 1 / len(group))
    spread = max(0.0, float(((of_group - whole) ** 2 - luck).mean()))
    total = spread + luck
    share = np.divide(spread, total, out=np.zeros_like(total), where=total > 0)
    return tuple(envelope(models, (whole + share * (of_group - whole)).T, sizes))
