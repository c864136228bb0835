"""How well models are known by their words: a bag-of-words classifier on held-out answers."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from judge.ifeval.accuracy import Share, share
from rating.errors import DataError
from rating.typing import Bools

FOLDS = 5
LEAST = 10
"""Answers of a model from which it is among those to be known."""
MOST_WORDS = 20_000


@dataclass(frozen=True, slots=True)
class Recognition:
    """How often a model is known by its words.

    Attributes
    ----------
    answers : int
    recall : Share
        Of the model's answers, those that the classifier gives it, with an interval by prompt.
    words : tuple of str
        That speak most for it.
    """

    model: str
    answers: int
    recall: Share
    words: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class RecognitionReport:
    """How well a bag of words knows the models.

    Attributes
    ----------
    accuracy : Share
        Of the held-out answers, those whose model is known.
    majority : float
        The same by always naming the model with the most answers.
    left_out : tuple of str
        Models of fewer than `LEAST` answers.
    """

    accuracy: Share
    majority: float
    groups: int
    models: tuple[Recognition, ...]
    left_out: tuple[str, ...]

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON."""
        return asdict(self)


def recognise(
    models: Sequence[str], texts: Sequence[str], groups: Sequence[str], seed: int = 0
) -> RecognitionReport:
    """Ask of each answer who wrote it, of a classifier that has not seen its prompt.

    Words and pairs of words (tf-idf, `MOST_WORDS` of them), logistic regression, `FOLDS` folds
    in which the answers to one prompt stay together. Intervals allow for answers to one prompt
    that are alike: see `judge.ifeval.accuracy.share`.

    Parameters
    ----------
    models, texts, groups : sequence of str, one an answer
        Who wrote it, what, and on which prompt.

    Raises
    ------
    DataError
        For fewer than two models of `LEAST` answers, or fewer than `FOLDS` prompts.

    References
    ----------
    .. [1] R. Min et al., "Improving Your Model Ranking on Chatbot Arena by
       Vote Rigging", ICML 2025: attackers recognise the model to push.
    """
    from sklearn.feature_extraction.text import TfidfVectorizer  # takes a second to import
    from sklearn.linear_model import LogisticRegression
    from sklearn.model_selection import GroupKFold, cross_val_predict
    from sklearn.pipeline import make_pipeline

    names, counts = np.unique(np.array(models, dtype=str), return_counts=True)
    known = [str(name) for name in names[counts >= LEAST]]
    rows = np.flatnonzero(np.isin(models, known)).tolist()
    prompts = len({groups[row] for row in rows})
    if len(known) < 2 or prompts < FOLDS:
        msg = (
            f"Two models of {LEAST} answers each on {FOLDS} prompts are needed; there are "
            f"{len(known)} such models and {prompts} prompts."
        )
        raise DataError(msg)
    true, answers = np.array(models)[rows], [texts[row] for row in rows]
    words = TfidfVectorizer(ngram_range=(1, 2), max_features=MOST_WORDS, sublinear_tf=True)
    classifier = make_pipeline(words, LogisticRegression(C=10.0, max_iter=1000))
    folds = GroupKFold(FOLDS, shuffle=True, random_state=seed)
    of = [groups[row] for row in rows]
    guessed = cross_val_predict(classifier, answers, true, groups=of, cv=folds)
    telling = _telling(classifier.fit(answers, true), known)
    right = guessed == true
    return RecognitionReport(
        accuracy=_share(right, of),
        majority=float(counts.max() / counts[counts >= LEAST].sum()),
        groups=prompts,
        models=tuple(
            Recognition(
                name,
                int((true == name).sum()),
                _share(right[true == name], np.array(of)[true == name].tolist()),
                telling[name],
            )
            for name in known
        ),
        left_out=tuple(map(str, names[counts < LEAST])),
    )


def _share(right: Bools, groups: Sequence[str]) -> Share:
    return share(zip(groups, right.tolist(), strict=True))


def _telling(classifier: Any, known: Sequence[str]) -> dict[str, tuple[str, ...]]:
    words, regression = (step for _, step in classifier.steps)
    weight = regression.coef_
    if len(weight) == 1:  # of two models
        weight = np.vstack([-weight[0], weight[0]])
    vocabulary = words.get_feature_names_out()
    best = np.argsort(-weight, axis=1)[:, :5]
    return {name: tuple(vocabulary[row].tolist()) for name, row in zip(known, best, strict=True)}
