"""Latent classes of items and the accuracy of raters, against what is published and planted."""

import json
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from judge.studies.gold import posterior
from judge.studies.raters import accuracies
from judge.studies.truth import dawid_skene
from rating.errors import DataError

GOLDEN = json.loads(
    (Path(__file__).parents[2] / "golden" / "dawid_skene_anaesthetists.json").read_text()
)

Ints = NDArray[np.int64]


def anaesthetists() -> tuple[Ints, Ints, Ints]:
    label = np.array([[int(digit) for digit in row] for row in GOLDEN["ratings"]]) - 1
    item = np.repeat(np.arange(len(label)), label.shape[1])
    return item, np.tile(np.array(GOLDEN["observers"]) - 1, len(label)), label.ravel()


def planted(
    rng: np.random.Generator, n_items: int, each: int, right: NDArray[np.float64], k: int = 2
) -> tuple[Ints, Ints, Ints, Ints]:
    """Rows of raters who are right so often, the wrong labels alike, and the classes."""
    truth = rng.integers(k, size=n_items)
    item = np.repeat(np.arange(n_items), each)
    rater = np.concatenate(
        [rng.choice(len(right), each, replace=False) for _ in range(n_items)]
    ).astype(np.int64)
    wrong = (truth[item] + rng.integers(1, k, size=len(item))) % k
    return item, rater, np.where(rng.random(len(item)) < right[rater], truth[item], wrong), truth


def test_the_anaesthetists_are_those_of_the_paper() -> None:
    fitted = dawid_skene(*anaesthetists(), 4, prior=None)
    assert fitted.prevalence.round(4).tolist() == GOLDEN["prevalence"]
    assert fitted.log_likelihood == pytest.approx(GOLDEN["log_likelihood"], abs=1e-4)
    assert fitted.errors[0] == pytest.approx(np.array(GOLDEN["first_observer"]), abs=0.005)
    assert fitted.above_guessing


def test_rows_in_another_order_and_raters_by_other_numbers_change_nothing() -> None:
    item, rater, label = anaesthetists()
    rng = np.random.default_rng(1)
    rows, name = rng.permutation(len(item)), rng.permutation(5)
    fitted = dawid_skene(item, rater, label, 4)
    other = dawid_skene(item[rows], name[rater[rows]], label[rows], 4)
    assert other.accuracy[name] == pytest.approx(fitted.accuracy, abs=1e-6)
    assert other.posterior == pytest.approx(fitted.posterior, abs=1e-6)


@pytest.mark.parametrize("k", [2, 3])
def test_classes_keep_the_names_of_labels_where_most_raters_are_right(k: int) -> None:
    rng = np.random.default_rng(k)
    right = np.array([0.95, 0.9, 0.8, 0.7, 0.6, 0.4])
    item, rater, label, truth = planted(rng, 800, 4, right, k)
    fitted = dawid_skene(item, rater, label, k, errors="one", prior=None)
    assert np.abs(fitted.accuracy - right).max() < 0.06
    assert (fitted.posterior.argmax(axis=1) == truth).mean() > 0.85


def test_raters_who_are_mostly_wrong_look_mostly_right_unless_some_classes_are_known() -> None:
    rng, right = np.random.default_rng(1), np.full(5, 0.3)
    item, rater, label, truth = planted(rng, 600, 4, right)
    assert dawid_skene(item, rater, label, 2, errors="one").accuracy.mean() > 0.6
    known = np.where(np.arange(600) < 200, truth, -1)
    anchored = dawid_skene(item, rater, label, 2, known=known, errors="one")
    assert anchored.accuracy.mean() < 0.4
    assert not anchored.above_guessing
    assert accuracies(item, rater, label, known, item[::4]) == (None, None)


def test_the_error_of_an_accuracy_on_gold_is_the_jackknife_calculated_by_hand() -> None:
    truth = np.arange(20) % 2
    label = np.where(np.arange(20) < 16, truth, 1 - truth)
    item = np.arange(20)
    value, error = accuracies(item, np.zeros(20, dtype=np.int64), label, truth, item)
    assert value is not None
    assert error is not None
    # 16 of 20 are right, and the prior adds 8 of 10. One of 20 prompts is excluded at a time.
    assert value.item() == pytest.approx(24 / 30)
    without = np.array([23 / 29] * 16 + [24 / 29] * 4)
    squares = 16 * (without[0] - without.mean()) ** 2 + 4 * (without[-1] - without.mean()) ** 2
    assert squares == pytest.approx(3.2 / 29**2)
    # The prior draws an accuracy in by 20 / (20 + 10).
    assert error.item() == pytest.approx(np.sqrt(19 / 20 * 3.2 / 29**2) * 30 / 20)


def test_known_classes_stay_what_they_are() -> None:
    item, rater, label = anaesthetists()
    known = np.full(45, -1)
    known[:3] = 3
    fitted = dawid_skene(item, rater, label, 4, known=known)
    assert fitted.posterior[:3].tolist() == [[0, 0, 0, 1]] * 3


def test_without_gold_a_rater_is_what_the_prior_says_and_gold_moves_it() -> None:
    assert posterior(0, 0, 0.95).value is None
    assert posterior(10, 10, 0.95).value == pytest.approx(18 / 20)
    few, many = posterior(4, 5, 0.95), posterior(400, 500, 0.95)
    assert few.value == many.value == pytest.approx(0.8)
    assert (few.upper or 0) - (few.lower or 0) > 4 * ((many.upper or 0) - (many.lower or 0))


def test_what_cannot_be_fitted_is_quoted() -> None:
    item, rater, label = anaesthetists()
    with pytest.raises(DataError, match="two classes or more, not 1"):
        dawid_skene(item, rater, label, 1)
    with pytest.raises(DataError, match="Labels are 0 to 2, not 3"):
        dawid_skene(item, rater, label, 3)
    with pytest.raises(DataError, match="no label"):
        dawid_skene(item[:0], rater[:0], label[:0], 3)
    with pytest.raises(DataError, match="Known classes are -1 to 3, not 7"):
        dawid_skene(item, rater, label, 4, known=np.full(45, 7))
