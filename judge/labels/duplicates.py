"""Prompts that are alike: exact and near duplicates, and how fresh prompts are."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy  # its submodules load on first use
from numpy.typing import NDArray

from judge.ifeval.accuracy import Share, share
from judge.labels.taggers import shown_part
from rating.typing import Bools, Floats, Ints

SHINGLE = 5
"""Characters of a shingle."""
PERMUTATIONS = 128
BANDS, ROWS = 21, 6
"""Two prompts of Jaccard similarity .8 share a band of their signatures with probability .998."""
ALIKE = 0.8
"""Jaccard similarity of the sets of shingles from which two prompts are near duplicates."""
WORTH_A_LOOK = 0.65
"""Estimated similarity from which it is worked out: four standard errors below `ALIKE`."""
DAY_S = 86_400.0

_AT_ONCE = 4_000
_BITS = 44
"""Of the hash of a shingle that two texts are compared by."""
_SEED = 20_240_601
_MIXED = np.uint64(0x9E3779B97F4A7C15)

Progress = Callable[[int, int], None]


@dataclass(frozen=True, slots=True)
class Duplicates:
    """Groups of prompts that are alike, directly or by others between them.

    Attributes
    ----------
    group : ndarray of int, shape (n,)
        Number of each prompt's group; groups are numbered by their first prompt.
    n_distinct : int
        Different texts, but for case and spaces.
    """

    group: Ints
    n_distinct: int

    @property
    def repeated(self) -> Bools:
        """Whether a prompt is like one before it."""
        first = np.zeros(len(self.group), dtype=bool)
        first[np.unique(self.group, return_index=True)[1]] = True
        return ~first

    def largest(self, n: int) -> list[tuple[int, int]]:
        """Give the first prompt and the size of the largest groups of two and more."""
        _, first, sizes = np.unique(self.group, return_index=True, return_counts=True)
        order = np.lexsort((first, -sizes))[:n]
        return [(int(first[i]), int(sizes[i])) for i in order if sizes[i] > 1]


def duplicates(texts: Sequence[str], progress: Progress | None = None) -> Duplicates:
    """Group prompts that are alike.

    MinHash [1]_ of the sets of 5-character shingles, 128 permutations, finds candidates; a pair
    is of one group if its Jaccard similarity, worked out exactly, is .8 or more. Case and
    runs of spaces do not count. Of a long text the beginning and the end are looked at, as by
    the taggers.

    References
    ----------
    .. [1] A. Z. Broder, "On the resemblance and containment of documents", 1997.

    Examples
    --------
    >>> duplicates(["Why is the sky blue?", "why is  the sky blue", "Hi"]).group
    array([0, 0, 1])
    """
    normal = [" ".join(shown_part(text).lower().split()) for text in texts]
    place: dict[str, int] = {}
    codes = np.array([place.setdefault(text, len(place)) for text in normal], dtype=np.int64)
    distinct = list(place)
    n = len(distinct)
    of_distinct = _linked(distinct, _signatures(distinct, progress)) if n else np.zeros(0, int)
    _, first, group = np.unique(of_distinct[codes], return_index=True, return_inverse=True)
    return Duplicates(np.argsort(np.argsort(first))[group], n)


def fresh(groups: Duplicates, seconds: Floats, *, level: float = 0.95) -> Share:
    """Give the share of prompts unlike anything that is a day older and more.

    Prompts of the first day, which have nothing that old to be like, are left out; those of a
    group are taken as one cluster.

    Parameters
    ----------
    seconds : ndarray, shape (n,)
        When each was written; NaN where that is not known.
    """
    timed = np.isfinite(seconds)
    group, moment = groups.group[timed], seconds[timed]
    is_fresh = moment - first_written(groups, seconds)[timed] < DAY_S
    late = moment >= moment.min(initial=np.inf) + DAY_S
    rows = zip(group[late].tolist(), is_fresh[late].tolist(), strict=True)
    return share(((str(group), new) for group, new in rows), level=level)


def first_written(groups: Duplicates, seconds: Floats) -> Floats:
    """Give when the first prompt of each one's group was written; infinity if not known.

    Parameters
    ----------
    seconds : ndarray, shape (n,)
        When each was written; NaN where that is not known.
    """
    timed = np.isfinite(seconds)
    oldest = np.full(int(groups.group.max(initial=-1)) + 1, np.inf)
    np.minimum.at(oldest, groups.group[timed], seconds[timed])
    return oldest[groups.group]


def _signatures(texts: Sequence[str], progress: Progress | None) -> NDArray[np.uint32]:
    """Return the smallest hash of each text under each permutation, shape (n, PERMUTATIONS)."""
    rng = np.random.default_rng(_SEED)
    times = rng.integers(2**31, size=PERMUTATIONS, dtype=np.uint32) * np.uint32(2) + np.uint32(1)
    turned = rng.integers(2**32, size=PERMUTATIONS, dtype=np.uint32)
    signatures = np.empty((len(texts), PERMUTATIONS), dtype=np.uint32)
    for start in range(0, len(texts), _AT_ONCE):
        part = texts[start : start + _AT_ONCE]
        whole, starts = _hashed(part)
        hashes = (whole >> np.uint64(32)).astype(np.uint32)
        for k in range(PERMUTATIONS):
            permuted = (hashes ^ turned[k]) * times[k]
            signatures[start : start + len(part), k] = np.minimum.reduceat(permuted, starts)
        if progress:
            progress(start + len(part), len(texts))
    return signatures


def _hashed(texts: Sequence[str]) -> tuple[NDArray[np.uint64], Ints]:
    """Hash every shingle of several texts; gives 64 bits of each, and where each text's begin."""
    bounded = [text.ljust(SHINGLE) for text in texts]
    letters = np.frombuffer("".join(bounded).encode("utf-32-le", "replace"), dtype="<u4")
    lengths = np.array([len(text) for text in bounded], dtype=np.int64)
    ends = np.cumsum(lengths)
    rolled = np.zeros(len(letters), dtype=np.uint64)
    for k in range(SHINGLE):
        rolled[: len(letters) - k] += letters[k:]
        rolled *= _MIXED
        rolled ^= rolled >> np.uint64(29)
    within = np.arange(len(letters)) + SHINGLE <= np.repeat(ends, lengths)
    starts = np.cumsum(lengths - SHINGLE + 1) - (lengths - SHINGLE + 1)
    return rolled[within], starts


def _linked(texts: Sequence[str], signatures: NDArray[np.uint32]) -> Ints:
    """Give the group of each text, band by band: a pair that is linked already is passed over."""
    n, group = len(texts), np.arange(len(texts))
    alike, refused = np.empty(0, dtype=np.int64), np.empty(0, dtype=np.int64)
    for band in range(BANDS):
        keys = _candidates(signatures[:, band * ROWS : (band + 1) * ROWS])
        keys = np.setdiff1d(keys, refused, assume_unique=True)
        keys = keys[group[keys // n] != group[keys % n]]
        pairs = np.column_stack([keys // n, keys % n])
        fits = _estimated(signatures, pairs) >= WORTH_A_LOOK
        fits[fits] = _jaccard(texts, pairs[fits]) >= ALIKE
        alike, refused = np.append(alike, keys[fits]), np.append(refused, keys[~fits])
        links = np.ones(len(alike), dtype=bool), (alike // n, alike % n)
        graph = scipy.sparse.coo_array(links, shape=(n, n))
        group = scipy.sparse.csgraph.connected_components(graph, directed=False)[1]
    return np.asarray(group, dtype=np.int64)


def _candidates(band: NDArray[np.uint32]) -> Ints:
    """Pair each text of a bucket with the first of it, and with the one before.

    Returns
    -------
    ndarray of int
        The first number times the number of texts, plus the second; sorted.
    """
    keys = np.zeros(len(band), dtype=np.uint64)
    for row in band.T:
        keys = (keys ^ row) * _MIXED
    order = np.argsort(keys, kind="stable")
    ordered = keys[order]
    same = np.flatnonzero(ordered[1:] == ordered[:-1]) + 1
    firsts = np.searchsorted(ordered, ordered[same])
    pairs = [order[before] * len(band) + order[same] for before in (same - 1, firsts)]
    return _once(np.concatenate(pairs))


def _estimated(signatures: NDArray[np.uint32], pairs: Ints) -> Floats:
    """Return the share of permutations under which two texts have the same smallest hash."""
    estimates = np.empty(len(pairs))
    for start in range(0, len(pairs), _AT_ONCE):
        one, other = signatures[pairs[start : start + _AT_ONCE].T]
        estimates[start : start + _AT_ONCE] = (one == other).mean(axis=1)
    return estimates


def _jaccard(texts: Sequence[str], pairs: Ints) -> Floats:
    """Return the share of shingles that two texts have in common.

    They are compared by `_BITS` bits of their hashes: once in a hundred million pairs two that
    differ are taken for one.
    """
    similarities = np.empty(len(pairs))
    for start in range(0, len(pairs), _AT_ONCE):
        part = pairs[start : start + _AT_ONCE]
        one, other = (_distinct([texts[i] for i in column.tolist()]) for column in part.T)
        held = np.sort(np.concatenate([one, other]))
        both = held[1:][held[1:] == held[:-1]]
        n_one, n_other, n_both = (
            np.bincount(keys >> _BITS, minlength=len(part)) for keys in (one, other, both)
        )
        similarities[start : start + len(part)] = n_both / (n_one + n_other - n_both)
    return similarities


def _distinct(texts: Sequence[str]) -> Ints:
    """Give the shingles of each text once: its place, and `_BITS` bits of a hash; sorted."""
    hashes, starts = _hashed(texts)
    place = np.repeat(np.arange(len(texts)), np.diff(starts, append=len(hashes)))
    return _once(place << _BITS | (hashes >> np.uint64(64 - _BITS)).astype(np.int64))


def _once(keys: Ints) -> Ints:
    """Sort numbers and give each once: much quicker than `np.unique` where few come twice."""
    ordered = np.sort(keys)
    return ordered[np.append(True, ordered[1:] != ordered[:-1])] if len(keys) else ordered


def to_dict(
    texts: Sequence[str], groups: Duplicates, freshness: Share | None, shown: int = 10
) -> dict[str, Any]:
    """Return plain values for JSON, with the prompts that are asked most."""
    rows = zip(groups.group.tolist(), groups.repeated.tolist(), strict=True)
    return {
        "prompts": len(texts),
        "distinct": groups.n_distinct,
        "groups": int(groups.group.max(initial=-1)) + 1,
        "repeated": _plain(share((str(group), again) for group, again in rows)),
        "fresh": None if freshness is None else _plain(freshness),
        "largest": [{"prompt": texts[i], "n": size} for i, size in groups.largest(shown)],
    }


def _plain(one: Share) -> dict[str, float] | None:
    if not one.n:
        return None
    return {"share": one.rate, "lower": one.low, "upper": one.high, "n": one.n}
