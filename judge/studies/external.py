"""Scores from elsewhere, such as of a benchmark, against a board of ratings."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from judge.studies.boards import FIGURES, KINDS, Moved, both_correlations
from judge.studies.correlation import FEW_MODELS, MIN_MODELS, row_correlations
from judge.studies.items import Estimate
from judge.studies.resampling import Ends, interval, with_width
from rating.errors import DataError
from rating.typing import Floats


@dataclass(frozen=True, slots=True)
class ScoreCorrelations:
    """How scores go with ratings, over the models that have both.

    Attributes
    ----------
    spearman, kendall, pearson : Estimate
        As found, with intervals for these models: by how uncertain the ratings are. None where
        the scores or the ratings do not vary, or under three models have both.
    spearman_noise_freed, kendall_noise_freed, pearson_noise_freed : Estimate
        With ratings by endless votes.
    other_models : mapping of str to pair of float or None
        Percentile intervals for models like these: models drawn with replacement.
    warnings : tuple of str
    """

    spearman: Estimate
    kendall: Estimate
    pearson: Estimate
    spearman_noise_freed: Estimate
    kendall_noise_freed: Estimate
    pearson_noise_freed: Estimate
    other_models: dict[str, Ends]
    warnings: tuple[str, ...]

    @property
    def n(self) -> int:
        """How many models have both."""
        return self.spearman.n

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON."""
        found: dict[str, Any] = {"n": self.n}
        for name in FIGURES:
            one: Estimate = getattr(self, name)
            found[name] = {end: getattr(one, end) for end in ("value", "lower", "upper")}
        for kind, (lower, upper) in self.other_models.items():
            found[kind]["other_models"] = {"lower": lower, "upper": upper}
        return found


def score_correlations(
    ratings: Floats,
    covariance: Floats | None,
    scores: Floats,
    *,
    rounds: int = 1000,
    rng: np.random.Generator,
    level: float = 0.95,
) -> ScoreCorrelations:
    """Correlate scores with ratings.

    The interval for these models draws ratings from the normal law of their covariance and
    corrects each round for noise as `judge.studies.boards.correlated` does, the scores being
    exact: a benchmark's own uncertainty is not in it. The interval for other models draws models
    with replacement, scores and ratings as found; a round in which a column does not vary counts
    as endless at both ends. Where all rounds are equal, there is no interval.

    Parameters
    ----------
    ratings, scores : ndarray of shape (n_models,)
        In any units; a score is NaN where a model has none.
    covariance : ndarray of shape (n_models, n_models), or None
        Of the ratings, in their unit squared; only what it says of differences counts. None
        gives no interval for these models.

    Raises
    ------
    DataError
        If shapes differ.

    References
    ----------
    .. [1] C. Spearman, "The proof and measurement of association between two things", American
       Journal of Psychology 15(1), 1904 (the correction for attenuation).
    """
    if ratings.shape != scores.shape:
        raise DataError(f"{len(ratings)} ratings and {len(scores)} scores: give one a model.")
    both = ~np.isnan(scores)
    if covariance is not None:
        covariance = covariance[np.ix_(both, both)]
    moved = _moved(ratings[both], covariance, scores[both], rounds, rng)
    n = int(both.sum())
    found = both_correlations(moved, 0, 1, level)
    drawn = _models_drawn(ratings[both], scores[both], rounds, rng)
    ends = {kind: _ends(found[kind], drawn[kind], level) for kind in KINDS}
    return ScoreCorrelations(**found, other_models=ends, warnings=_warnings(n, found["pearson"]))


def _moved(
    ratings: Floats,
    covariance: Floats | None,
    scores: Floats,
    rounds: int,
    rng: np.random.Generator,
) -> Moved:
    n = len(ratings)
    if covariance is None or n < MIN_MODELS:
        return Moved((scores[None], ratings[None]), np.zeros((2, 2)))
    root = np.linalg.svd(covariance, hermitian=True)
    moves = rng.normal(size=(rounds, n)) * np.sqrt(root.S) @ root.Vh
    drawn = np.vstack([ratings, ratings + moves])
    spread = (np.trace(covariance) - covariance.sum() / n) / (n - 1)
    still = np.broadcast_to(scores, drawn.shape)
    return Moved((still, drawn), np.diag([0.0, float(spread)]))


def _models_drawn(
    ratings: Floats, scores: Floats, rounds: int, rng: np.random.Generator
) -> dict[str, Floats]:
    if len(ratings) < MIN_MODELS:
        return {kind: np.full(rounds, np.nan) for kind in KINDS}
    some = rng.integers(len(ratings), size=(rounds, len(ratings)))
    return row_correlations(scores[some], ratings[some])


def _ends(found: Estimate, drawn: Floats, level: float) -> Ends:
    return (None, None) if found.value is None else with_width(*interval(drawn, level))


def _warnings(n: int, found: Estimate) -> tuple[str, ...]:
    if n < MIN_MODELS:
        have = f"{n} model{' has' if n == 1 else 's have'} a score and a rating"
        return (f"{have}: a correlation needs {MIN_MODELS} or more.",)
    if found.value is None:
        return ("The scores or the ratings are all the same: there is no correlation.",)
    if n < FEW_MODELS:
        return (
            f"A correlation over {n} models says little: with other models it may well be "
            f"another. Compare {FEW_MODELS} or more.",
        )
    return ()
