"""Prompt texts: releases of topics, benchmark overlap, near duplicates, and personal data.

`private_release` publishes counts of topics, each of at least ten people, where prompts are
private. `overlapping` finds prompts that a benchmark holds, `compared` whether models are better
on them. `duplicates` groups exact and near duplicates. `scrub` replaces personal data: e-mail
addresses, phone numbers, keys and IP addresses.

Names of people stay. Only a language model could find them; it errs in other languages, and none
is small enough to be included.
"""

import io
import json
import re
import tomllib
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import date
from functools import cache
from importlib.resources import files
from ipaddress import ip_address
from math import hypot
from typing import Any, NamedTuple

import numpy as np
import scipy
from numpy.typing import NDArray

from judge.ifeval import Share, share
from judge.labels.accuracy import Accuracy, in_words
from judge.labels.taggers import shown_part
from judge.labels.topics import OPEN, PRIVATE, Agreement, Gates, Space, Topic, Topics, learn
from rating import Report
from rating.errors import DataError
from rating.leave_out import quantile
from rating.typing import Bools, Floats, Ints

# Releases of topics


FIRST_PROMPTS, FIRST_PEOPLE = 500, 50
"""Of private prompts, from which a hierarchy is learnt: it is fixed from then on."""


class Asked(NamedTuple):
    """What a person asked; keys grow with time."""

    key: int
    person: str
    text: str


class Placed(NamedTuple):
    """A prompt in its topic, or in none (-1)."""

    key: int
    person: str
    topic: int


@dataclass(frozen=True, slots=True)
class Batches:
    """What is counted, and what waits for other people to ask about the same.

    Attributes
    ----------
    counts : mapping of int to int
        Prompts by topic, those of topics within it apart.
    waiting : frozenset of int
        Keys of prompts that are not counted yet.
    """

    counts: Mapping[int, int]
    waiting: frozenset[int] = frozenset()


@dataclass(frozen=True, slots=True)
class ShownTopic:
    """A topic as people see it: its title, and prompts in it and in the topics within it."""

    words: tuple[str, ...]
    prompts: int
    stability: float
    within: tuple["ShownTopic", ...] = ()


@dataclass(frozen=True, slots=True)
class Release:
    """What is published at a time: nothing else of the prompts ever is.

    Attributes
    ----------
    private : bool
        Whether counts are rounded, and of batches of ten people at least.
    prompts : int
        All that are counted, with those of no topic.
    """

    private: bool
    prompts: int
    agreement: Agreement
    topics: tuple[ShownTopic, ...]

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON."""
        return asdict(self)

    @classmethod
    def of_dict(cls, values: Mapping[str, Any]) -> "Release":
        """Read what `to_dict` gave."""
        return cls(
            values["private"],
            values["prompts"],
            Agreement(**values["agreement"]),
            tuple(map(_shown, values["topics"])),
        )


@dataclass(frozen=True, slots=True)
class State:
    """What the next release goes on from.

    Attributes
    ----------
    topics : bytes
        The hierarchy, as `packed`.
    until : int
        Key of the newest prompt that was looked at.
    """

    topics: bytes
    until: int
    batches: Batches


def private_release(last: State | None, asked: Sequence[Asked]) -> tuple[Release, State]:
    """Make the next release of prompts that nobody may read.

    The hierarchy is learnt once. Prompts are counted in whole batches: those of a topic wait
    until ten people wrote 25 of them, at most ten of each and in each release. So whatever is
    added up or taken from one another, of one release or of several, is of whole batches.

    Parameters
    ----------
    last : State or None
        None before the first.
    asked : sequence of Asked
        All prompts after the last release, and those that waited then.

    Raises
    ------
    DataError
        If there are too few prompts or people to begin with.
    """
    before = last.batches if last else Batches({})
    fresh = [one for one in asked if one.key not in before.waiting]
    chosen = [*(one for one in asked if one.key in before.waiting), *clipped(fresh, PRIVATE)]
    topics = unpacked(last.topics) if last else _begun(chosen)
    place = topics.of([one.text for one in chosen]).tolist()
    batches = batched(
        before.counts,
        [Placed(one.key, one.person, topic) for one, topic in zip(chosen, place, strict=True)],
        PRIVATE,
    )
    until = max((one.key for one in asked), default=0)
    state = State(
        last.topics if last else packed(topics), max(until, last.until if last else 0), batches
    )
    return shown(topics, batches.counts, PRIVATE), state


def open_release(
    texts: Sequence[str],
    progress: Callable[[int, int], None] | None = None,
    *,
    vectors: NDArray[np.float32] | None = None,
) -> Release:
    """Make a release of prompts that everybody may read; raises as `learn`, and takes the same."""
    topics = learn(texts, vectors=vectors, progress=progress)
    place = topics.of(texts) if vectors is None else topics.near(vectors)
    return shown(topics, Counter(place.tolist()), OPEN)


def clipped(asked: Iterable[Asked], gates: Gates) -> list[Asked]:
    """Give the first prompts of each person, as many as count."""
    seen: Counter[str] = Counter()
    chosen = []
    for one in asked:
        seen[one.person] += 1
        if gates.most is None or seen[one.person] <= gates.most:
            chosen.append(one)
    return chosen


def batched(counts: Mapping[int, int], placed: Iterable[Placed], gates: Gates) -> Batches:
    """Count the prompts of each topic where they reach the gates, and let the others wait.

    Examples
    --------
    >>> two = [Placed(1, "ada", 0), Placed(2, "bob", 0), Placed(3, "ada", 1)]
    >>> batched({}, two, Gates(voters=2, prompts=2, rounding=1, most=None))
    Batches(counts={0: 2}, waiting=frozenset({3}))
    """
    by_topic: dict[int, list[Placed]] = defaultdict(list)
    for one in placed:
        by_topic[one.topic].append(one)
    total, waiting = dict(counts), set[int]()
    for topic, prompts in by_topic.items():
        people = {one.person for one in prompts}
        if len(prompts) >= gates.prompts and len(people) >= gates.voters:
            total[topic] = total.get(topic, 0) + len(prompts)
        else:
            waiting.update(one.key for one in prompts)
    return Batches(total, frozenset(waiting))


def shown(topics: Topics, counts: Mapping[int, int], gates: Gates) -> Release:
    """Give what may be seen of counted prompts: topics with any, the largest first."""
    inside: dict[int | None, list[int]] = defaultdict(list)
    for number, topic in enumerate(topics.topics):
        inside[topic.parent].append(number)

    def all_of(number: int) -> int:
        return counts.get(number, 0) + sum(map(all_of, inside[number]))

    def visible(numbers: Iterable[int]) -> Iterator[ShownTopic]:
        for number in sorted(numbers, key=all_of, reverse=True):
            if all_of(number):
                topic = topics.topics[number]
                n = _rounded(all_of(number), gates)
                within = tuple(visible(inside[number]))
                yield ShownTopic(topic.words, n, round(topic.stability, 2), within)

    total = _rounded(sum(counts.values()), gates)
    return Release(gates is PRIVATE, total, topics.agreement, tuple(visible(inside[None])))


def packed(topics: Topics) -> bytes:
    """Write a hierarchy of topics by words as bytes."""
    assert topics.space is not None, "topics of vectors from elsewhere are not chosen"
    about = {
        "topics": [asdict(topic) for topic in topics.topics],
        "agreement": asdict(topics.agreement),
        "terms": topics.space.terms,
    }
    file = io.BytesIO()
    np.savez_compressed(
        file,
        about=np.frombuffer(json.dumps(about).encode(), dtype=np.uint8),
        weights=topics.space.weights,
        axes=topics.space.axes,
        centres=topics.centres,
        place=topics.place,
    )
    return file.getvalue()


def unpacked(data: bytes) -> Topics:
    """Read what `packed` wrote."""
    with np.load(io.BytesIO(data)) as file:
        about = json.loads(file["about"].tobytes())
        return Topics(
            tuple(replace(Topic(**one), words=tuple(one["words"])) for one in about["topics"]),
            Agreement(**about["agreement"]),
            Space(tuple(about["terms"]), file["weights"], file["axes"]),
            file["centres"],
            file["place"],
        )


def _begun(asked: Sequence[Asked]) -> Topics:
    """Learn the hierarchy of private prompts."""
    codes: dict[str, int] = {}
    people = np.array([codes.setdefault(one.person, len(codes)) for one in asked], dtype=np.int64)
    if len(asked) < FIRST_PROMPTS or len(codes) < FIRST_PEOPLE:
        raise DataError(
            f"Topics of private prompts need {FIRST_PROMPTS} prompts by {FIRST_PEOPLE} people, "
            f"got {len(asked)} by {len(codes)}: collect more."
        )
    return learn([one.text for one in asked], people, PRIVATE)


def _rounded(n: int, gates: Gates) -> int:
    return gates.rounding * round(n / gates.rounding)


def _shown(values: Mapping[str, Any]) -> ShownTopic:
    return ShownTopic(
        tuple(values["words"]),
        values["prompts"],
        values["stability"],
        tuple(map(_shown, values["within"])),
    )


# Overlap with benchmarks


GRAM = 13
"""Words in a row that two texts share by accident less than once in a long while."""

_WORD = re.compile(r"\w+")


class Benchmark:
    """The items of a benchmark, to look for in prompts.

    Examples
    --------
    >>> benchmark = Benchmark(["A mill grinds 40 sacks a day and sells half of them on Monday."])
    >>> benchmark.holds("So: a mill grinds 40 sacks a day, and sells half of them on Monday. Why?")
    True
    """

    def __init__(self, items: Sequence[str]) -> None:
        self._grams: set[int] = set()
        self._short: set[str] = set()
        for item in items:
            words = _words(item)
            if len(words) < GRAM:
                self._short.add(" ".join(words))
            else:
                self._grams.update(_grams(words))
        self._short.discard("")

    def holds(self, prompt: str) -> bool:
        """Return whether a prompt has 13 words in a row of an item, or is a shorter item as such.

        Case and everything that is no letter or digit do not count.
        """
        words = _words(prompt)
        if len(words) < GRAM:
            return " ".join(words) in self._short
        return not self._grams.isdisjoint(_grams(words)) or " ".join(words) in self._short


def _words(text: str) -> list[str]:
    return _WORD.findall(text.lower())


def _grams(words: Sequence[str]) -> list[int]:
    return [hash(tuple(words[i : i + GRAM])) for i in range(len(words) - GRAM + 1)]


def compared(
    overlapping: Report, others: Report, level: float, only: str | None = None
) -> dict[str, Any]:
    """Compare two boards on the same models; the largest gain comes first.

    Ratings are relative to the mean of a board, so a gain is one over the other models. The two
    boards are taken as independent: where the same people voted for both, and have random
    effects, the interval is wider than it need be.

    Parameters
    ----------
    only : str, optional
        The one model to compare; all by default.

    Returns
    -------
    dict
        ``votes``, of which ``overlapping``; and in ``models`` of each its ratings on prompts that
        a benchmark holds (``overlapping``) and on ``others``, their ``difference`` in points with
        an interval that takes the two as independent (``lower``, ``upper``), and its two-sided
        ``p`` after Holm's correction for all models.

    Raises
    ------
    DataError
        If a model is on one board alone, or a board has no intervals.
    """
    boards = [
        {row["model"]: row for row in report.to_dict()["ratings"]}
        for report in (overlapping, others)
    ]
    if odd := sorted(boards[0].keys() ^ boards[1].keys()):
        msg = f"{odd[0]!r} has votes on one kind of prompt alone: leave it out, or collect more."
        raise DataError(msg)
    rows = [
        (model, row, boards[1][model]) for model, row in boards[0].items() if only in (None, model)
    ]
    gaps = [_gap(one, other, level) for _, one, other in rows]
    adjusted = _holm([p for *_, p in gaps])
    gains = [
        {
            "model": model,
            "overlapping": one["rating"],
            "others": other["rating"],
            **{"difference": gap, "lower": gap - reach, "upper": gap + reach, "p": p},
        }
        for (model, one, other), (gap, reach, _), p in zip(rows, gaps, adjusted, strict=True)
    ]
    n = [report.to_dict()["votes"]["used"] for report in (overlapping, others)]
    models = sorted(gains, key=lambda gain: -gain["difference"])
    return {"votes": sum(n), "overlapping": n[0], "models": models}


def changed(model: str, cutoff: date, overlap: Mapping[str, Any], n_models: int) -> dict[str, Any]:
    """Read the difference in differences of a model off two boards, compared for it alone.

    Points are relative to the mean of all models, the model among them. Against the others' mean
    its difference is the same times K / (K - 1).

    Returns
    -------
    dict
        ``model`` and ``cutoff``; votes, of all models, on prompts from ``before`` the cutoff and
        from ``after`` it; the ``difference`` with its ``lower`` and ``upper`` end, and ``p``.
    """
    (gain,) = overlap["models"]
    return {
        "model": model,
        "cutoff": cutoff.isoformat(),
        "before": overlap["overlapping"],
        "after": overlap["votes"] - overlap["overlapping"],
        **{
            name: n_models / (n_models - 1) * gain[name]
            for name in ("difference", "lower", "upper")
        },
        "p": gain["p"],
    }


def corrected(changes: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Correct the p-values of several models after Holm."""
    adjusted = _holm([change["p"] for change in changes])
    return [{**change, "p": p} for change, p in zip(changes, adjusted, strict=True)]


def _gap(
    one: Mapping[str, Any], other: Mapping[str, Any], level: float
) -> tuple[float, float, float]:
    """Give a difference, how far its interval reaches, and its p."""
    if one["se"] is None or other["se"] is None:
        raise DataError("A difference needs intervals: choose another interval than none.")
    gap, se = one["rating"] - other["rating"], hypot(one["se"], other["se"])
    df = min(one.get("df") or np.inf, other.get("df") or np.inf)
    p = float(2 * scipy.stats.t.sf(abs(gap) / se, df)) if se else 1.0
    return gap, quantile(level, df) * se, p


def _holm(values: Sequence[float]) -> list[float]:
    """Adjust p-values so that any false rejection is as rare as the level says.

    >>> _holm([0.01, 0.04, 0.03])
    [0.03, 0.06, 0.06]
    """
    order = np.argsort(values, kind="stable")
    times = len(values) - np.arange(len(values))
    raised = np.minimum(np.maximum.accumulate(np.array(values)[order] * times), 1.0)
    adjusted = np.empty(len(values))
    adjusted[order] = raised
    return [round(float(p), 12) for p in adjusted]


def overlapping(prompts: Sequence[Sequence[str]], benchmark: Benchmark) -> Bools:
    """Say of each row whether one of its prompts is in the benchmark."""
    return np.array([any(map(benchmark.holds, texts)) for texts in prompts], dtype=bool)


# Duplicates


SHINGLE = 5
"""Characters of a shingle."""
PERMUTATIONS = 128
BANDS, ROWS = 21, 6
"""Prompts of Jaccard similarity 0.8 share a band of signatures with probability 0.998."""
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
        Different texts, except case and spaces.
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
    is of one group if its Jaccard similarity, worked out exactly, is 0.8 or more. Case and
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

    Prompts of the first day, which have nothing that old to be like, are excluded; those of a
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
        estimates = np.empty(len(pairs))
        for start in range(0, len(pairs), _AT_ONCE):
            one, other = signatures[pairs[start : start + _AT_ONCE].T]
            estimates[start : start + _AT_ONCE] = (one == other).mean(axis=1)
        fits = estimates >= WORTH_A_LOOK
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


# Personal data


VERSION = "1"
"""Of the rules in `personal.toml`; another one finds other pieces."""
KINDS = ("key", "mail", "address", "phone")
"""What is looked for, and in this order: what is one kind is no other."""

_PATTERNS = tomllib.loads((files("judge.labels") / "personal.toml").read_text("utf-8"))
_KEYS = tuple(map(re.compile, _PATTERNS.pop("keys")))
_FORM = {name: re.compile(pattern) for name, pattern in _PATTERNS.items()}
_CALLED = 24
"""Characters before a number in which a word says that it can be called."""
_DIGITS = range(7, 16)
"""Of a phone number, the longest of ITU-T E.164."""


class _Piece(NamedTuple):
    """Where in a text something personal is, and of which kind."""

    kind: str
    start: int
    end: int


def scrub(text: str) -> tuple[str, Mapping[str, int]]:
    """Put the kind of each personal piece into its place; gives how many there were, too.

    Examples
    --------
    >>> scrub("Write to ada@example.com or call +49 30 1234567.")
    ('Write to [mail] or call [phone].', {'mail': 1, 'phone': 1})
    """
    pieces = personal(text)
    parts, end = [], 0
    for piece in pieces:
        parts += [text[end : piece.start], f"[{piece.kind}]"]
        end = piece.end
    return "".join([*parts, text[end:]]), dict(Counter(piece.kind for piece in pieces))


def personal(text: str) -> list[_Piece]:
    """Find what is personal in a text, from its beginning to its end; no two pieces overlap."""
    pieces: list[_Piece] = []
    taken = bytearray(len(text))
    for kind in KINDS:
        for start, end in _FINDERS[kind](text):
            if not any(taken[start:end]):
                taken[start:end] = b"\1" * (end - start)
                pieces.append(_Piece(kind, start, end))
    return sorted(pieces, key=lambda piece: piece.start)


Spans = Iterator[tuple[int, int]]


def _keys(text: str) -> Spans:
    for rule in _KEYS:
        for match in rule.finditer(text):
            group = "it" if "it" in rule.groupindex else 0
            if group == 0 or _is_secret(match):
                yield match.span(group)


def _is_secret(match: re.Match[str]) -> bool:
    """Whether a value is one, and no word or piece of code."""
    value = match["it"]
    by_name = "://" not in match[0] and "bearer" not in match[0].lower()
    has_odd = any(not c.isalpha() for c in value.rstrip(".,;:!?)"))
    return not by_name or (has_odd and not re.search(r"[(\[{<]|^\W*$", value))


def _mails(text: str) -> Spans:
    if "@" in text:
        yield from (match.span() for match in _FORM["mail"].finditer(text))


def _addresses(text: str) -> Spans:
    for match in _FORM["address"].finditer(text):
        if _is_of_somebody(match[0]) and not _FORM["before_version"].search(_before(text, match)):
            yield match.span()


def _is_of_somebody(address: str) -> bool:
    try:
        return ip_address(address).is_global
    except ValueError:
        return False


def _phones(text: str) -> Spans:
    for match in _FORM["phone"].finditer(text):
        digits = sum(c.isdigit() for c in match[0])
        if (
            digits in _DIGITS
            and not _FORM["date"].search(match[0])
            and _can_be_called(text, match)
        ):
            yield match.span()


def _can_be_called(text: str, match: re.Match[str]) -> bool:
    if _FORM["cue"].search(_before(text, match)):
        return True
    return any(_FORM[form].match(match[0]) for form in ("international", "national", "american"))


def _before(text: str, match: re.Match[str]) -> str:
    return text[max(0, match.start() - _CALLED) : match.start()]


_FINDERS: Mapping[str, Callable[[str], Spans]] = {
    "key": _keys,
    "mail": _mails,
    "address": _addresses,
    "phone": _phones,
}

_MARKED = re.compile(r"\{\{(\w+)\|(.*?)\}\}", re.DOTALL)


def examples() -> list[tuple[str, list[_Piece]]]:
    """Give the written examples, with the pieces that a person marked in them."""
    lines = (files("judge.labels") / "personal.tsv").read_text("utf-8").splitlines()[1:]
    return [_unmarked(line.replace("\\n", "\n")) for line in lines]


def _unmarked(line: str) -> tuple[str, list[_Piece]]:
    text, pieces, end = "", [], 0
    for match in _MARKED.finditer(line):
        text += line[end : match.start()]
        pieces.append(_Piece(match[1], len(text), len(text) + len(match[2])))
        text, end = text + match[2], match.end()
    return text + line[end:], pieces


@cache
def accuracies() -> Mapping[str, Accuracy]:
    """Hold the rules against the examples, by kind: a piece is right if both its ends are.

    Examples without a piece of a kind, marked or found, are the true negatives.
    """
    counts = {kind: Counter[str]() for kind in KINDS}
    for text, marked in examples():
        by_rule = personal(text)
        for kind in KINDS:
            a, b = ({piece for piece in some if piece.kind == kind} for some in (marked, by_rule))
            counts[kind].update(
                tp=len(a & b), fp=len(b - a), fn=len(a - b), tn=int(not a and not b)
            )
    return {kind: Accuracy(kind, n["tp"], n["fp"], n["fn"], n["tn"]) for kind, n in counts.items()}


def table() -> list[tuple[str, ...]]:
    """Lay out every kind: pieces in the examples, precision and recall with Wilson's intervals."""
    return [
        (
            kind,
            str(one.true_positives + one.false_negatives),
            in_words(one.precision),
            in_words(one.recall),
        )
        for kind, one in accuracies().items()
    ]
