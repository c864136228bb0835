"""Measures of similarity against their definitions."""

import math
from collections import Counter
from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from judge.probe.similarity import (
    BAG_OF_WORDS,
    BM25,
    CLASSICAL,
    INDEL,
    JACCARD,
    LENGTH_COUNTER,
    LEVENSHTEIN,
    ROUGE_1,
    ROUGE_2,
    ROUGE_L,
    TF_IDF,
    Measure,
    count_terms,
    n_grams,
    random_measure,
    words,
)
from rating.errors import DataError

CORPUS = ["the cat sat on the mat", "a dog ran", "the dog sat", "cats and dogs", "on and on"]
WORDS = ["the", "cat", "sat", "on", "a", "mat", "dog"]
sentences = st.lists(st.sampled_from(WORDS), min_size=1).map(" ".join)


def score(measure: Measure, reference: str, text: str) -> float:
    return float(measure.fit(CORPUS).rows([reference], [text])[0])


def longest_common(a: Sequence[object], b: Sequence[object]) -> int:
    """Length of the longest common subsequence, by its recurrence."""
    table = [[0] * (len(b) + 1) for _ in range(len(a) + 1)]
    for i, x in enumerate(a, 1):
        for j, y in enumerate(b, 1):
            best = max(table[i - 1][j], table[i][j - 1])
            table[i][j] = table[i - 1][j - 1] + 1 if x == y else best
    return table[-1][-1]


def test_kitten_and_sitting_have_two_ratios() -> None:
    assert score(LEVENSHTEIN, "kitten", "sitting") == pytest.approx(1 - 3 / 7)
    assert round(score(INDEL, "kitten", "sitting"), 4) == 0.6154


def test_police_killed_the_gunman() -> None:
    # C.-Y. Lin, "ROUGE", 2004, section 3: S2 shares 3 of 4 words in order, S3 only 2.
    reference = "police killed the gunman"
    assert score(ROUGE_L, reference, "police kill the gunman") == 0.75
    assert score(ROUGE_L, reference, "the gunman kill police") == 0.5
    assert score(ROUGE_2, reference, "police kill the gunman") == pytest.approx(1 / 3)
    assert score(ROUGE_2, reference, "the gunman kill police") == pytest.approx(1 / 3)


@given(sentences, sentences)
def test_jaccard_is_shared_words_over_all(a: str, b: str) -> None:
    left, right = set(a.split()), set(b.split())
    assert score(JACCARD, a, b) == pytest.approx(len(left & right) / len(left | right))


@given(sentences, sentences)
def test_rouge_counts_repetitions(a: str, b: str) -> None:
    for n, measure in ((1, ROUGE_1), (2, ROUGE_2)):
        left, right = (
            Counter(zip(*(t.split()[i:] for i in range(n)), strict=False)) for t in (a, b)
        )
        total = left.total() + right.total()
        want = 2 * (left & right).total() / total if total else 0
        assert score(measure, a, b) == pytest.approx(want)


@given(sentences, sentences)
def test_indel_and_rouge_l_are_longest_common_subsequences(a: str, b: str) -> None:
    for measure, left, right in ((INDEL, a, b), (ROUGE_L, a.split(), b.split())):
        want = 2 * longest_common(left, right) / (len(left) + len(right))
        assert score(measure, a, b) == pytest.approx(want)


@given(sentences, sentences)
def test_bm25_is_its_formula(query: str, text: str) -> None:
    documents = [line.split() for line in CORPUS]
    mean_length = sum(map(len, documents)) / len(documents)
    total = 0.0
    for word in query.split():
        n = sum(word in line for line in documents)
        idf = math.log(1 + (len(documents) - n + 0.5) / (n + 0.5))
        tf = text.split().count(word)
        length = 0.25 + 0.75 * len(text.split()) / mean_length
        total += idf * tf * 2.2 / (tf + 1.2 * length)
    assert score(BM25, query, text) == pytest.approx(total)


@given(sentences, sentences)
def test_tf_idf_is_the_cosine_of_weighted_counts(a: str, b: str) -> None:
    documents = [line.split() for line in CORPUS]
    vocabulary = sorted({word for line in documents for word in line})
    holding = np.array([sum(word in line for line in documents) for word in vocabulary])
    idf = 1 + np.log((1 + len(documents)) / (1 + holding))
    x, y = (idf * [t.split().count(word) for word in vocabulary] for t in (a, b))
    size = np.linalg.norm(x) * np.linalg.norm(y)
    assert score(TF_IDF, a, b) == pytest.approx(float(x @ y / size) if size else 0)


@pytest.mark.parametrize(
    "measure", [*CLASSICAL, BAG_OF_WORDS, LENGTH_COUNTER, random_measure(1)], ids=lambda m: m.name
)
def test_rows_are_the_diagonal_of_the_matrix(measure: Measure) -> None:
    scorer = measure.fit(CORPUS)
    left, right = [*CORPUS, "Nothing of it"], [*CORPUS[::-1], "CAT, cat"]
    matrix = scorer.matrix(left, right[:4])
    assert matrix.shape == (6, 4)
    assert scorer.rows(left[:4], right[:4]) == pytest.approx(np.diagonal(matrix))


@pytest.mark.parametrize("measure", [m for m in CLASSICAL if m is not BM25], ids=lambda m: m.name)
def test_a_text_is_like_itself_and_likeness_has_no_direction(measure: Measure) -> None:
    matrix = measure.fit(CORPUS).matrix(CORPUS, CORPUS)
    assert np.diagonal(matrix) == pytest.approx(1)
    assert matrix == pytest.approx(matrix.T)
    assert ((matrix >= 0) & (matrix <= 1 + 1e-12)).all()


def test_texts_that_have_no_terms_share_none() -> None:
    assert score(ROUGE_2, "kitten", "sitting") == 0
    assert score(JACCARD, "...", "") == 0


@pytest.mark.parametrize("measure", [BM25, TF_IDF], ids=lambda m: m.name)
def test_rare_words_need_a_collection_with_words(measure: Measure) -> None:
    with pytest.raises(DataError, match="None of 2 texts has a word"):
        measure.fit(["...", ""])


def test_lots_are_the_same_for_the_same_texts_and_differ_for_others() -> None:
    drawn = random_measure(1).fit([]).matrix([str(i) for i in range(100)], ["x", "y"])
    assert (
        drawn == random_measure(1).fit([]).matrix([str(i) for i in range(100)], ["x", "y"])
    ).all()
    assert len(np.unique(drawn)) == 200
    assert 0.45 < drawn.mean() < 0.55
    assert (
        drawn != random_measure(2).fit([]).matrix([str(i) for i in range(100)], ["x", "y"])
    ).all()


def test_words_know_no_case_and_no_marks() -> None:
    assert words("Straße, **BOLD** _it_!") == ["strasse", "bold", "it"]


@given(st.lists(st.sampled_from("abc")))
def test_numbered_repetitions_are_distinct_and_keep_their_order(terms: list[str]) -> None:
    runs = n_grams(" ".join(terms), 1)
    assert len(set(runs)) == len(runs)
    assert [term for (term,), _ in runs] == terms


def test_terms_are_counted_logged_in_the_order_they_are_met() -> None:
    left, right, terms = count_terms(["b a b", ""], ["a", "b a b"], words)
    assert terms == ["b", "a"]
    assert left.toarray().tolist() == [[2, 1], [0, 0]]
    assert right.toarray().tolist() == [[0, 1], [2, 1]]
