"""Attacks on releases of private prompts: nothing published is of fewer than ten people."""

from collections import defaultdict
from collections.abc import Iterator

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from judge.labels import material, topics
from judge.labels.material import (
    Asked,
    Batches,
    Placed,
    Release,
    ShownTopic,
    batched,
    clipped,
    open_release,
    packed,
    private_release,
    shown,
    unpacked,
)
from judge.labels.topics import PRIVATE, Agreement, Topic, Topics, learn
from rating.errors import DataError
from tests.judge.labels.planted import SUBJECTS, planted

TREE = Topics(
    tuple(
        Topic((name,), parent, 1.0)
        for name, parent in zip("gabhcd", (None, 0, 0, None, 3, 3), strict=True)
    ),
    Agreement(1.0, 1.0, 1.0),
    None,
    np.zeros((1, 1), dtype=np.float32),
    np.zeros(1, dtype=np.int64),
)
"""Two groups of two topics."""


def crowd(topic: int, first: int, people: int, times: int) -> list[tuple[int, int, int]]:
    """People in a row who ask about a topic so often each."""
    return [(person, topic, times) for person in range(first, first + people)]


crowds = st.builds(
    crowd,
    st.integers(-1, 5),
    st.integers(0, 12),
    st.sampled_from([1, 8, 9, 10, 11, 14]),
    st.sampled_from([1, 2, 3, 12]),
)
weeks_of = st.lists(crowds, max_size=6).map(lambda parts: [row for part in parts for row in part])
"""People, topics and how often they ask, on either side of the gates."""
logs = st.lists(weeks_of, min_size=1, max_size=4)
"""What is asked between releases."""


def seen(release: Release) -> Iterator[tuple[tuple[str, ...], int]]:
    """Every number of a page, by what it is of."""

    def walk(shown_topics: tuple[ShownTopic, ...]) -> Iterator[tuple[tuple[str, ...], int]]:
        for one in shown_topics:
            yield one.words, one.prompts
            yield from walk(one.within)

    yield (), release.prompts
    yield from walk(release.topics)


def history(weeks: list[list[tuple[int, int, int]]]) -> Iterator[tuple[Batches, list[Placed]]]:
    """Releases of a log one after another, and what each looked at."""
    before, pending, key = Batches({}), list[Placed](), 0
    for week in weeks:
        asked = []
        for person, topic, times in week:
            for _ in range(times):
                key += 1
                asked.append(Asked(key, str(person), str(topic)))
        new = [Placed(one.key, one.person, int(one.text)) for one in clipped(asked, PRIVATE)]
        looked_at = [*pending, *new]
        after = batched(before.counts, looked_at, PRIVATE)
        yield after, looked_at
        pending = [one for one in looked_at if one.key in after.waiting]
        before = after


@given(logs)
def test_whatever_is_published_is_a_sum_of_batches_of_ten_people(
    weeks: list[list[tuple[int, int, int]]],
) -> None:
    before: dict[int, int] = {}
    for after, looked_at in history(weeks):
        batches: dict[int, list[Placed]] = defaultdict(list)
        for one in looked_at:
            if one.key not in after.waiting:
                batches[one.topic].append(one)
        for topic, batch in batches.items():
            assert len({one.person for one in batch}) >= 10
            assert len(batch) >= 25
            assert after.counts[topic] == before.get(topic, 0) + len(batch)
        unmoved = after.counts.keys() - batches.keys()
        assert all(after.counts[topic] == before[topic] for topic in unmoved)
        before = dict(after.counts)


@given(logs, st.integers(0, 30))
def test_one_voter_more_or_less_moves_pages_only_by_rounding_and_gates(
    weeks: list[list[tuple[int, int, int]]], voter: int
) -> None:
    without = [[row for row in week if row[0] != voter] for week in weeks]
    theirs = {topic for week in weeks for person, topic, _ in week if person == voter}
    parents = {topic.parent for number, topic in enumerate(TREE.topics) if number in theirs}
    names = {TREE.topics[number].words for number in theirs - {-1}}
    names |= {TREE.topics[parent].words for parent in parents if parent is not None}
    pages = [
        [dict(seen(shown(TREE, after.counts, PRIVATE))) for after, _ in history(log)]
        for log in (weeks, without)
    ]
    for number, (page, other) in enumerate(zip(*pages, strict=True), 1):
        assert {*page.values(), *other.values()} <= {5 * n for n in range(10_000)}
        untouched = (page.keys() | other.keys()) - names - {()}
        assert [name for name in untouched if page.get(name) != other.get(name)] == []
        if same_batches(weeks[:number], without[:number]):
            most = 10 * number
            assert all(abs(page[name] - other[name]) <= most + 5 for name in page)


def same_batches(
    one: list[list[tuple[int, int, int]]], other: list[list[tuple[int, int, int]]]
) -> bool:
    """Whether the same topics pass the gates in each release, with and without the voter."""
    passing = [
        [
            {p.topic for p in looked_at if p.key not in after.waiting}
            for after, looked_at in history(log)
        ]
        for log in (one, other)
    ]
    return passing[0] == passing[1]


def test_a_group_counts_its_topics_and_the_largest_come_first() -> None:
    release = shown(TREE, {-1: 26, 1: 27, 2: 52, 0: 30, 5: 26}, PRIVATE)
    assert [("".join(name), n) for name, n in seen(release)] == [
        ("", 160), ("g", 110), ("b", 50), ("a", 25),
        ("h", 25), ("d", 25),
    ]  # fmt: skip


def test_one_person_is_counted_ten_times_a_release() -> None:
    asked = [Asked(i, "ada", "bread") for i in range(40)] + [Asked(40, "bob", "bread")]
    assert [one.key for one in clipped(asked, PRIVATE)] == [*range(10), 40]


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(topics, "_n_topics", lambda n: len(SUBJECTS))


def asked(n: int, seed: int, after: int = 0, people: int = 100) -> list[Asked]:
    rng = np.random.default_rng(seed)
    texts, _ = planted(n, rng)
    return [
        Asked(after + key, f"p{person}", text)
        for key, (person, text) in enumerate(
            zip(rng.integers(people, size=n), texts, strict=True), 1
        )
    ]


@pytest.mark.usefixtures("small")
def test_a_hierarchy_is_learnt_once_and_releases_go_on_from_it() -> None:
    first = asked(600, 1)
    release, state = private_release(None, first)
    assert release.private
    assert release.topics
    of_ada = [Asked(641 + n, "ada", "yeast dough oven") for n in range(30)]
    second = [*asked(40, 2, after=600), *of_ada]
    waiting = [one for one in first if one.key in state.batches.waiting]
    later, again = private_release(state, [*waiting, *second])
    assert again.topics == state.topics
    assert again.until == 670
    n = [sum(s.batches.counts.values()) + len(s.batches.waiting) for s in (state, again)]
    assert n[1] - n[0] == 40 + 10  # of one person's prompts ten count at a time
    names = [{name for name, _ in seen(one)} for one in (release, later)]
    assert names[0] <= names[1]
    assert later.prompts >= release.prompts


@pytest.mark.usefixtures("small")
def test_a_release_without_anything_new_says_the_same() -> None:
    release, state = private_release(None, asked(600, 3))
    waiting = [one for one in asked(600, 3) if one.key in state.batches.waiting]
    assert private_release(state, waiting) == (release, state)


@pytest.mark.usefixtures("small")
def test_a_release_holds_no_raw_text() -> None:
    secret = [Asked(key, f"p{key % 5}", f"{text} xylophagous") for key, _, text in asked(100, 4)]
    release, _ = private_release(None, [*secret, *asked(600, 5, after=100)])
    words = [word for name, _ in seen(release) for word in name]
    assert words
    assert {*words} <= {word for names in SUBJECTS.values() for word in names.split()} | {
        "today", "beginner", "quick", "friend", "evening", "plan"
    }  # fmt: skip


def test_private_prompts_of_few_people_have_no_topics() -> None:
    with pytest.raises(DataError, match="500 prompts by 50 people, got 490 by 49"):
        private_release(None, asked(4000, 6, people=49))
    assert (material.FIRST_PROMPTS, material.FIRST_PEOPLE) == (500, 50)


@pytest.mark.usefixtures("small")
def test_open_prompts_are_counted_as_they_are() -> None:
    texts, _ = planted(403, np.random.default_rng(7))
    release = open_release(texts)
    assert not release.private
    assert release.prompts == 403
    assert sum(one.prompts for one in release.topics) <= 403
    assert Release.of_dict(release.to_dict()) == release


@pytest.mark.usefixtures("small")
def test_a_hierarchy_can_be_stored() -> None:
    texts, _ = planted(400, np.random.default_rng(8))
    learnt = learn(texts)
    back = unpacked(packed(learnt))
    assert back.topics == learnt.topics
    assert (back.of(texts) == learnt.of(texts)).all()
