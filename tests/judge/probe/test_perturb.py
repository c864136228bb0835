"""What perturbations change, and what they leave."""

from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from judge.probe.similarity import (
    CHARACTER_NOISE,
    INSERTED,
    NEGATION,
    NO_CONCLUSION,
    OTHER_NUMBER,
    PERTURBATIONS,
    PLAIN_TEXT,
    RANDOM_CASE,
    REMOVED,
    RENAMED_LABELS,
    SENTENCE_SHUFFLE,
    WIDE_SPACING,
    WORD_SHUFFLE,
    Perturbation,
    Place,
    doses,
    sentences,
    words,
)
from tests.judge.probe.texts import texts

ALL = (*PERTURBATIONS, RENAMED_LABELS)
PIECES = ["The", "cat", "is", "42", "not.", "Was", "it?", "and", "**bold**", "x"]
prose = st.one_of(
    st.text(max_size=60), st.lists(st.sampled_from(PIECES), max_size=15).map(" ".join)
)


def changed(each: Perturbation, text: str, seed: int = 1) -> str:
    return each.apply(text, np.random.default_rng(seed))


@given(text=prose, seed=st.integers(0, 9))
def test_the_same_seed_makes_the_same_copy(text: str, seed: int) -> None:
    for each in ALL:
        assert changed(each, text, seed) == changed(each, text, seed), each.name


@given(text=prose, seed=st.integers(0, 9))
def test_what_only_looks_or_stands_differently_keeps_the_bag_of_words(
    text: str, seed: int
) -> None:
    for each in (RANDOM_CASE, WIDE_SPACING, SENTENCE_SHUFFLE, WORD_SHUFFLE):
        assert Counter(words(changed(each, text, seed))) == Counter(words(text)), each.name


@given(text=prose, seed=st.integers(0, 9))
def test_case_and_spacing_keep_the_order_too(text: str, seed: int) -> None:
    for each in (RANDOM_CASE, WIDE_SPACING):
        assert words(changed(each, text, seed)) == words(text)


@pytest.mark.parametrize(
    "each", [one for one in PERTURBATIONS if one is not PLAIN_TEXT], ids=lambda each: each.name
)
def test_every_perturbation_changes_ordinary_texts(each: Perturbation) -> None:
    for text in texts(20):
        assert changed(each, text) != text


@pytest.mark.parametrize("each", ALL, ids=lambda each: each.name)
@pytest.mark.parametrize("text", ["", "x"])
def test_nothing_is_made_of_nothing(each: Perturbation, text: str) -> None:
    assert "".join(words(changed(each, text))) in ("", "x", "itisnottruethatx")


def test_noise_drops_one_letter_in_a_tenth_of_the_words() -> None:
    (text,) = texts(1, sentences=8)
    before, after = text.split(), changed(CHARACTER_NOISE, text).split()
    lost = [len(a) - len(b) for a, b in zip(before, after, strict=True)]
    long = sum(len(word) > 3 for word in before)
    assert set(lost) == {0, 1}
    assert sum(lost) == round(0.1 * long)


def test_markdown_goes_and_its_text_stays() -> None:
    marked = (
        "# Head\n- *one* and **two**\n> said `it`\n```python\nx = a * b * c\n```\nsnake_case_name"
    )
    plain = changed(PLAIN_TEXT, marked)
    assert plain == "Head\none and two\nsaid it\nx = a * b * c\nsnake_case_name"


def test_labels_become_numbers() -> None:
    assert changed(RENAMED_LABELS, "Assistant A and response b, not A") == (
        "Assistant 1 and response 2, not A"
    )


def test_one_verb_is_negated_or_its_negation_taken_away() -> None:
    assert changed(NEGATION, "It is so.") == "It is not so."
    assert changed(NEGATION, "It is not so.") == "It is so."
    assert changed(NEGATION, "Birds fly.") == "It is not true that Birds fly."
    one_of_two = {changed(NEGATION, "It is so and was so.", seed) for seed in range(20)}
    assert one_of_two == {"It is not so and was so.", "It is so and was not so."}


def test_sentences_are_whole_in_another_order() -> None:
    for text in texts(10):
        shuffled = changed(SENTENCE_SHUFFLE, text)
        assert sorted(sentences(shuffled)[0]) == sorted(sentences(text)[0])


def test_words_stay_in_their_sentence() -> None:
    for text in texts(10):
        shuffled = changed(WORD_SHUFFLE, text)
        assert sorted(shuffled.split()) == sorted(text.split())
    seeds = range(20)
    assert {changed(WORD_SHUFFLE, "a b! c d?", seed) for seed in seeds} == {"b! a d? c"}


def test_one_digit_changes() -> None:
    for seed in range(10):
        copy = changed(OTHER_NUMBER, "In 1970 it was 3.5", seed)
        assert len(copy) == len("In 1970 it was 3.5")
        assert sum(a != b for a, b in zip(copy, "In 1970 it was 3.5", strict=True)) == 1


def test_the_last_sentence_goes_unless_it_is_the_only_one() -> None:
    assert changed(NO_CONCLUSION, "One. Two.  So three. ") == "One. Two."
    assert changed(NO_CONCLUSION, "Only one.") == "Only one."


OWN = " ".join(f"own{i}" for i in range(20))
FOREIGN = " ".join(f"foreign{i}" for i in range(40))


def test_every_dose_is_there_at_every_place() -> None:
    made = {(one.removal, one.dose, one.place) for one in doses(OWN, FOREIGN)}
    wanted = {(True, f, p) for f in REMOVED for p in Place}
    assert made == wanted | {(False, g, p) for g in INSERTED for p in Place}


@given(st.integers(1, 60), st.integers(0, 60))
def test_the_target_is_what_both_have_of_the_longer(n: int, m: int) -> None:
    own = " ".join(f"own{i}" for i in range(n))
    for one in doses(own, " ".join(f"foreign{i}" for i in range(m))):
        words = one.text.split()
        shared = [word for word in words if word.startswith("own")]
        assert one.target == pytest.approx(len(shared) / max(n, len(words)))
        assert (len(words) < n) is one.removal
        assert words
        assert shared == sorted(shared, key=own.split().index)  # in their order


def test_what_goes_and_what_comes_is_in_one_piece_at_its_place() -> None:
    quarter = {
        one.place: one.text.split()
        for one in doses(OWN, FOREIGN)
        if one.dose == 0.25 and one.removal
    }
    words = OWN.split()
    assert (quarter[Place.START], quarter[Place.MIDDLE]) == (words[5:], words[:7] + words[12:])
    assert quarter[Place.END] == words[:15]
    added = {
        one.place: one.text.split()
        for one in doses(OWN, FOREIGN)
        if one.dose == 0.25 and not one.removal
    }
    assert added[Place.START] == FOREIGN.split()[:5] + words
    assert added[Place.MIDDLE] == words[:10] + FOREIGN.split()[:5] + words[10:]
    assert added[Place.END] == words + FOREIGN.split()[:5]


def test_too_little_foreign_text_makes_no_smaller_dose() -> None:
    assert {one.dose for one in doses(OWN, "x y z w v") if not one.removal} == {0.25}


@given(st.text())
def test_sentences_and_what_stands_between_them_are_the_text_again(text: str) -> None:
    pieces, spaces = sentences(text)
    assert len(spaces) == len(pieces) - 1
    assert "".join(a + b for a, b in zip(pieces, [*spaces, ""], strict=True)) == text


def test_a_full_stop_without_a_space_behind_it_ends_no_sentence() -> None:
    assert sentences("Pi is 3.14 now. Is it? Yes")[0] == ["Pi is 3.14 now.", "Is it?", "Yes"]
