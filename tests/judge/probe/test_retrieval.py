"""Relevant texts are found, and still found when questions are disturbed."""

import numpy as np
import pytest
from sklearn.metrics import ndcg_score

from judge.probe.prompts import DEPTH, Retrieval
from judge.probe.similarity import BM25, LENGTH_COUNTER, LEVENSHTEIN, Measure
from rating.errors import DataError
from tests.judge.probe.texts import fixed_rng as rng
from tests.judge.probe.texts import rounds_at_nothing, texts


def small() -> Retrieval:
    documents = texts(80, sentences=2)
    questions = [" ".join(text.split()[:3]) for text in documents[:40]]
    relevant = {(i, i): 1.0 for i in range(40)}
    return Retrieval.plan(questions, documents, relevant, "made up", rng=rng())


def figures(measure: Measure) -> dict[tuple[str, str], float]:
    axis = (plan := small()).read(plan.ask(measure), rng=rng())
    return {(p.group, p.name): p.estimate.value or 0 for p in axis.parts}


def test_an_oracle_is_at_one() -> None:
    axis = (plan := small()).read(plan.truth(), rng=rng())
    assert (axis.estimate.value, axis.estimate.lower) == (1, 1)
    assert axis.part("kept", "mean").value == 1


def test_ndcg_with_ties_is_that_of_scikit_learn() -> None:
    drawn = np.random.default_rng(2)
    gains = drawn.integers(0, 3, size=(15, 40)).astype(float)
    relevant = {(q, t): gains[q, t] for q in range(15) for t in range(40)}
    names = [str(i) for i in range(40)]
    plan = Retrieval.plan(names[:15], names, relevant, "made up", rng=rng())
    scores = drawn.integers(0, 5, size=plan.truth().shape).astype(float)
    axis = plan.read(scores, rng=rng())
    want = ndcg_score(gains, scores[0], k=DEPTH)
    assert axis.part("NDCG@10", "clean").value == pytest.approx(want)


def test_what_ties_everything_is_at_chance() -> None:
    axis = (plan := small()).read(np.zeros_like(plan.truth()), rng=rng())
    probability = sum(1 / np.log2(rank + 1) for rank in range(1, DEPTH + 1)) / 80
    assert axis.part("NDCG@10", "clean").value == pytest.approx(probability)
    assert axis.estimate.value == pytest.approx(0)


def test_words_are_found_in_any_order_case_and_spacing() -> None:
    by_part = figures(BM25)
    for name in ("random case", "wide spacing", "word shuffle"):
        assert by_part["kept", name] == pytest.approx(1)
    assert by_part["kept", "character noise"] < 1
    assert by_part["kept", "foreign words"] < 1


def test_letters_are_lost_with_their_case() -> None:
    by_part = figures(LEVENSHTEIN)
    assert by_part["kept", "random case"] < 0.9


def test_lots_are_at_nothing_and_so_are_lengths() -> None:
    assert rounds_at_nothing(small(), 40) >= 33  # of 95 %: fewer by chance less than once in 1,000
    estimate = (plan := small()).read(plan.ask(LENGTH_COUNTER), rng=rng()).estimate
    assert estimate.value == pytest.approx(0, abs=0.1)


def test_what_finds_nothing_keeps_nothing() -> None:
    plan = small()
    scores = -plan.truth()
    axis = plan.read(scores, rng=rng())
    assert axis.part("NDCG@10", "clean").value == 0
    assert axis.part("kept", "random case").value is None  # 0 over 0
    assert axis.part("kept", "mean").value is None


def test_questions_without_an_answer_and_few_texts_are_refused() -> None:
    with pytest.raises(DataError, match="Question 1, 'b', has no relevant text"):
        Retrieval.plan(["a", "b"], texts(10), {(0, 0): 1.0}, "made up", rng=rng())
    with pytest.raises(DataError, match="5 texts to find"):
        Retrieval.plan(["a"], texts(5), {(0, 0): 1.0}, "made up", rng=rng())
