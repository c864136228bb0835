"""Words, sentences and their numbers."""

from hypothesis import given
from hypothesis import strategies as st

from judge.probe.words import Lexicon, numbered, sentences, words


@given(st.text())
def test_sentences_and_what_stands_between_them_are_the_text_again(text: str) -> None:
    pieces, spaces = sentences(text)
    assert len(spaces) == len(pieces) - 1
    assert "".join(a + b for a, b in zip(pieces, [*spaces, ""], strict=True)) == text


def test_a_full_stop_without_a_space_behind_it_ends_no_sentence() -> None:
    assert sentences("Pi is 3.14 now. Is it? Yes")[0] == ["Pi is 3.14 now.", "Is it?", "Yes"]


def test_words_know_no_case_and_no_marks() -> None:
    assert words("Straße, **BOLD** _it_!") == ["strasse", "bold", "it"]


@given(st.lists(st.sampled_from("abc")))
def test_numbered_repetitions_are_distinct_and_keep_their_order(terms: list[str]) -> None:
    numbers = numbered(terms)
    assert len(set(numbers)) == len(numbers)
    assert [term for term, _ in numbers] == terms


def test_terms_are_counted_in_columns_of_their_number() -> None:
    lexicon = Lexicon()
    counts = lexicon.counts([["b", "a", "b"], [], ["a"]])
    assert list(lexicon) == ["b", "a"]
    assert counts.toarray().tolist() == [[2, 1], [0, 0], [0, 1]]


@given(st.lists(st.integers(0, 70_000), max_size=30))
def test_spelled_terms_are_equal_where_the_terms_are(terms: list[int]) -> None:
    spelled = Lexicon().spelled(terms)
    assert [a == b for a in spelled for b in spelled] == [a == b for a in terms for b in terms]


def test_no_letter_is_half_a_pair() -> None:
    spelled = Lexicon().spelled(list(range(60_000)))
    assert len(set(spelled)) == 60_000
    spelled.encode()  # a surrogate has no encoding
