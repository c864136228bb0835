"""Releases of topics: counts that, where prompts are private, speak of ten people at least."""

import io
import json
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from judge.labels.topics import OPEN, PRIVATE, Agreement, Gates, Space, Topic, Topics, learn
from rating.errors import DataError

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
        space = Space(tuple(about["terms"]), file["weights"], file["axes"])
        return Topics(
            tuple(replace(Topic(**one), words=tuple(one["words"])) for one in about["topics"]),
            Agreement(**about["agreement"]),
            space,
            file["centres"],
            file["place"],
        )


def _begun(asked: Sequence[Asked]) -> Topics:
    """Learn the hierarchy of private prompts."""
    codes: dict[str, int] = {}
    people = np.array([codes.setdefault(one.person, len(codes)) for one in asked], dtype=np.int64)
    if len(asked) < FIRST_PROMPTS or len(codes) < FIRST_PEOPLE:
        msg = (
            f"Topics of private prompts need {FIRST_PROMPTS} prompts by {FIRST_PEOPLE} people, "
            f"got {len(asked)} by {len(codes)}: collect more."
        )
        raise DataError(msg)
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
