"""Models are known by their words as well as they differ in them, and no better."""

from collections.abc import Sequence

import numpy as np
import pytest

from judge.probe.people import recognise
from rating.errors import DataError

WORDS = [f"word{i}" for i in range(60)]
Answers = tuple[list[str], list[str], list[str]]


def written(habits: Sequence[float], n_prompts: int = 100, seed: int = 0) -> Answers:
    """Answers of models to the same prompts, with a habit word in some of each model's."""
    rng = np.random.default_rng(seed)
    models, texts, prompts = [], [], []
    for prompt in range(n_prompts):
        for model, habit in enumerate(habits):
            words = [*rng.choice(WORDS, 8), f"topic{prompt}"]
            if rng.random() < habit:
                words.append(f"certainly{model}")
            models.append(f"m{model}")
            texts.append(" ".join(words))
            prompts.append(f"p{prompt}")
    return models, texts, prompts


def test_models_of_the_same_words_are_not_known() -> None:
    report = recognise(*written([0.0, 0.0, 0.0]))
    assert report["majority"] == pytest.approx(1 / 3)
    assert report["accuracy"]["low"] < report["majority"] < report["accuracy"]["high"]
    recalls = [one["recall"]["rate"] for one in report["models"]]
    assert np.mean(recalls) == pytest.approx(report["accuracy"]["rate"]), "as many answers of each"
    assert [one["answers"] for one in report["models"]] == [report["groups"]] * 3 == [100] * 3


def test_habits_give_a_model_away_and_are_named() -> None:
    report = recognise(*written([1.0, 1.0, 1.0]))
    assert report["accuracy"]["low"] > 0.9
    first = [one["words"][0] for one in report["models"]]
    assert first == ["certainly0", "certainly1", "certainly2"]


def test_two_models_and_their_words_the_right_way_round() -> None:
    report = recognise(*written([1.0, 0.0]))
    assert report["models"][0]["words"][0] == "certainly0"


def test_models_of_few_answers_are_left_out_and_said() -> None:
    models, texts, prompts = written([1.0, 0.5])
    report = recognise([*models, "rare"], [*texts, "hello"], [*prompts, "p0"])
    assert (report["left_out"], report["majority"]) == (["rare"], 0.5)
    with pytest.raises(DataError, match="there are 1 such models"):
        recognise(["x"] * 30, ["a b"] * 30, [str(i) for i in range(30)])
