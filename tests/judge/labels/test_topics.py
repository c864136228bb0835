"""Planted topics are recovered and named by their words; where there are none, none is shown."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import adjusted_rand_score

from judge.labels import topics as module
from judge.labels.topics import PRIVATE, STABLE, Gates, learn, terms_of
from rating.errors import DataError
from tests.judge.labels.planted import SUBJECTS, planted


@pytest.fixture
def eight(monkeypatch: pytest.MonkeyPatch) -> None:
    """As many topics as are planted, each by itself."""
    monkeypatch.setattr(module, "_n_topics", lambda n: len(SUBJECTS))


@pytest.mark.usefixtures("eight")
def test_planted_topics_are_recovered_and_named_by_their_words() -> None:
    texts, subjects = planted(800, np.random.default_rng(1))
    topics = learn(texts)
    assert topics.agreement.lowest > 0.9
    place = topics.of(texts)
    assert adjusted_rand_score(subjects, place) > 0.9
    for number in {*place.tolist()}:
        inside = [s for s, p in zip(subjects, place.tolist(), strict=True) if p == number]
        subject = max({*inside}, key=inside.count)
        assert {*topics.topics[number].words} <= {*SUBJECTS[subject].split()}


@pytest.mark.usefixtures("eight")
def test_other_prompts_go_to_the_topic_of_their_words() -> None:
    rng = np.random.default_rng(2)
    topics = learn(planted(800, rng)[0])
    of_bread, of_sea, of_nothing = topics.of(
        ["My dough and yeast won't rise", "anchor and rudder at high tide", "zzz 123"]
    ).tolist()
    assert {*topics.topics[of_bread].words} <= {*SUBJECTS["bread"].split()}
    assert {*topics.topics[of_sea].words} <= {*SUBJECTS["sailing"].split()}
    assert of_nothing == -1


@pytest.mark.usefixtures("eight")
def test_groups_hold_topics_and_come_before_them(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "TOPICS_A_GROUP", 2)
    texts, subjects = planted(800, np.random.default_rng(3))
    names = list(SUBJECTS)
    shared = ["lava magma crater", "judge court verdict", "salmon trout pike", "opera aria tenor"]
    families = [names.index(subject) // 2 for subject in subjects]
    texts = [f"{text} {shared[family]}" for text, family in zip(texts, families, strict=True)]
    topics = learn(texts).topics
    assert {topic.words[0] for topic in topics if topic.parent is None} <= {
        *" ".join(shared).split()
    }
    assert sum(topic.parent is not None for topic in topics) == 8
    assert all(topic.parent is None or topic.parent < i for i, topic in enumerate(topics))


def test_words_without_topics_are_unstable_and_are_not_shown() -> None:
    rng = np.random.default_rng(4)
    vocabulary = ["".join(rng.choice(list("abcdefgh"), 7)) for _ in range(150)]
    topics = learn([" ".join(rng.choice(vocabulary, 6)) for _ in range(1500)])
    assert topics.agreement.highest < 0.3
    assert len(topics.topics) <= 1


def test_every_topic_shown_is_stable() -> None:
    topics = learn(planted(1500, np.random.default_rng(5), words=3)[0])
    assert all(topic.stability >= STABLE for topic in topics.topics)


@pytest.mark.usefixtures("eight")
def test_private_titles_have_only_words_of_ten_people() -> None:
    texts, subjects = planted(600, np.random.default_rng(6))
    people = np.random.default_rng(7).integers(60, size=600)
    # One person writes one word a hundred times, nine people another.
    one = [i for i in range(600) if subjects[i] == "bread"]
    for i in one[:60]:
        texts[i] += " aardvark"
        people[i] = 0
    for row in one[60:]:
        if people[row] < 9:
            texts[row] += " zebra"
    topics = learn(texts, people, PRIVATE)
    words = [word for topic in topics.topics for word in topic.words]
    assert topics.topics
    assert not {"aardvark", "zebra"} & {*words}
    assert topics.space is not None
    assert not {"aardvark", "zebra"} & {*topics.space.terms}
    by_anybody = learn(texts).topics
    assert "aardvark" in {word for topic in by_anybody for word in topic.words}


@pytest.mark.usefixtures("eight")
def test_a_topic_of_few_people_is_part_of_its_group_or_of_nothing() -> None:
    texts, subjects = planted(600, np.random.default_rng(8))
    people = np.random.default_rng(9).integers(60, size=600)
    people[[i for i in range(600) if subjects[i] == "chess"]] %= 5
    topics = learn(texts, people, PRIVATE)
    words = {word for topic in topics.topics for word in topic.words}
    assert words
    assert not words & {*SUBJECTS["chess"].split()}


@pytest.mark.usefixtures("eight")
def test_vectors_of_others_take_the_place_of_words() -> None:
    texts, subjects = planted(400, np.random.default_rng(10))
    names = list(SUBJECTS)
    codes = np.array([names.index(subject) for subject in subjects])
    noise = np.random.default_rng(11).normal(0, 0.05, (400, 8))
    vectors = (np.eye(8)[codes] + noise).astype(np.float32)
    topics = learn(texts, vectors=vectors)
    assert adjusted_rand_score(subjects, topics.near(vectors)) == 1.0
    with pytest.raises(DataError, match="elsewhere"):
        topics.of(texts)


def test_too_few_prompts_are_refused_in_words() -> None:
    with pytest.raises(DataError, match="Topics need 50 different prompts"):
        learn(["Bake the bread", "Bake a loaf of bread", "Bake bread again"] * 20)
    with pytest.raises(DataError, match="none in these prompts"):
        learn(["1", "2"])


@given(st.text(max_size=80))
def test_terms_are_words_without_digits(text: str) -> None:
    assert all(not any(sign.isdecimal() for sign in term) for term in terms_of(text))


def test_gates_are_those_that_the_documents_name() -> None:
    assert Gates(10, 25, 5, 10) == PRIVATE
