"""Boards whose voters also like a style, of which some models show more than others."""

from dataclasses import dataclass
from functools import cache

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from rating import Comparisons, fit, infer, sandwich_covariance
from tests.simulation import NORMAL_95, Design, Share

Floats = NDArray[np.float64]

STYLES = ("liked", "idle")
LIKED = 0.25
"""What the average voter gives for one standard deviation of the liked style, in nats."""


@dataclass(frozen=True, slots=True)
class StyledDesign:
    """A board on which each response has two styles, one liked and one that nobody minds.

    A response's style is the habit of its model and something of its own.
    Weak models have the habit of the liked style. A voter's own liking of
    each style differs from the average by half the sd of their taste.
    """

    board: Design

    @property
    def habits(self) -> Floats:
        liked = np.linspace(0.5, -0.5, self.board.n_models)
        idle = np.resize([0.5, -0.5], self.board.n_models)
        return np.column_stack([liked, idle])

    def draw(self, rng: np.random.Generator) -> Comparisons:
        voter, a, b = self.board.draw_pairs(rng)
        style = self.habits[a] - self.habits[b] + rng.normal(size=(len(a), 2))
        own = rng.normal((LIKED, 0.0), self.board.taste / 2, (self.board.n_voters, 2))
        gap = self.board.draw_gaps(rng, voter, a, b) + (own[voter] * style).sum(axis=1)
        outcome = np.where(rng.random(len(gap)) < expit(gap), 0, 1)
        return Comparisons.from_codes(
            self.board.names, a, b, outcome, voter=voter, features=style, feature_names=STYLES
        )

    def pseudo_true(self) -> Floats:
        """Strengths, then the two styles, of the voters together under uniform pairs."""
        first, second = np.triu_indices(self.board.n_models, k=1)
        nodes, weights = np.polynomial.hermite_e.hermegauss(9)
        own = np.array(np.meshgrid(nodes, nodes)).reshape(2, -1).T
        pair = np.repeat(np.arange(len(first)), len(own))
        a, b = first[pair], second[pair]
        style = self.habits[a] - self.habits[b] + np.tile(own, (len(first), 1))
        gap = self.board.strengths[a] - self.board.strengths[b] + LIKED * style[:, 0]
        probability = self._over_tastes(gap, style)
        weight = np.tile(np.outer(weights, weights).ravel(), len(first))
        shares = np.concatenate([weight * probability, weight * (1 - probability)])
        votes = (np.tile(a, 2), np.tile(b, 2), np.repeat([0, 1], len(pair)))
        twice = np.tile(style, (2, 1))
        everyone = Comparisons.from_codes(
            self.board.names, *votes, weight=shares, features=twice, feature_names=STYLES
        )
        return fit(everyone).x

    def _over_tastes(self, gap: Floats, style: Floats) -> Floats:
        """Chance of side A among voters whose gaps differ by their tastes."""
        nodes, weights = np.polynomial.hermite_e.hermegauss(41)
        sd = self.board.taste * np.sqrt(2 + (style**2).sum(axis=1) / 4)
        return np.asarray(expit(gap[:, None] + sd[:, None] * nodes) @ (weights / weights.sum()))


@dataclass(frozen=True, slots=True)
class StyleStudy:
    """What became of the styles on many boards.

    Attributes
    ----------
    miss : ndarray of shape (n_boards, 2)
        Estimate less truth of the liked and the idle style, in nats.
    covered, independent : Share
        Of both styles' 95 % intervals: by voter (CR3, t), and as if no two
        votes had a voter in common.
    null_rejected : Share
        Boards on which the interval of the idle style excludes zero.
    rating_miss, rating_miss_ignoring : ndarray of shape (n_boards,)
        Of the model with most of the liked style: with style in the fit, and
        the planted error, without.
    """

    miss: Floats
    covered: Share
    independent: Share
    null_rejected: Share
    rating_miss: Floats
    rating_miss_ignoring: Floats


def errors_off(miss: Floats) -> Floats:
    """How many Monte Carlo errors the mean is from zero."""
    return np.asarray(miss.mean(axis=0) / (miss.std(axis=0) / np.sqrt(len(miss))))


@cache
def styles(design: Design, runs: int, seed: int) -> StyleStudy:
    """Fit many boards with their styles, and once without."""
    board, rng = StyledDesign(design), design.generator(seed)
    truth, k = board.pseudo_true(), design.n_models
    miss, half, half_independent = (np.empty((runs, 2)) for _ in range(3))
    rating_miss, ignoring = np.empty(runs), np.empty(runs)
    for run in range(runs):
        data = board.draw(rng)
        fitted = fit(data)
        miss[run] = (fitted.x - truth)[k:]
        half[run] = infer(fitted, data, ("voter",)).parameters().half_width(0.95)
        independent = np.diag(sandwich_covariance(fitted, data))[k:]
        half_independent[run] = NORMAL_95 * np.sqrt(independent)
        rating_miss[run] = fitted.theta[0] - truth[0]
        ignoring[run] = fit(_without_style(data)).theta[0] - truth[0]
    return StyleStudy(
        miss=miss,
        covered=Share.of((np.abs(miss) <= half).mean(axis=1)),
        independent=Share.of((np.abs(miss) <= half_independent).mean(axis=1)),
        null_rejected=Share.of((np.abs(miss + truth[k:])[:, 1] > half[:, 1]).astype(float)),
        rating_miss=rating_miss,
        rating_miss_ignoring=ignoring,
    )


def _without_style(data: Comparisons) -> Comparisons:
    a, b = data.pairs.T
    return Comparisons.from_codes(data.models, a, b, data.outcome)
