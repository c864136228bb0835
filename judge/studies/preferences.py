"""What votes, or verdicts, make of models and of features: a fit, and each prompt's part in it."""

import math
from dataclasses import dataclass

import numpy as np
import scipy  # its submodules load on first use

from judge.studies.items import Estimate, Items, Said
from judge.studies.resampling import FEWEST_PEOPLE, with_width
from rating import Comparisons, Fit, fit, hessian_covariance
from rating.errors import ConvergenceError, NotIdentifiedError
from rating.typing import Floats
from rating.uncertainty.clusters import activity, grouping, intersection
from rating.uncertainty.covariance import scored_cells

POSITION = "position"
"""Term that is 1 where side A was shown first and -1 where side B was."""

_OUTCOME = np.array([1, 2, 0])
"""Position in ``tuple(Outcome)`` of the labels -1, 0 and 1."""


@dataclass(frozen=True, slots=True, eq=False)
class Preferences:
    """Bradley-Terry strengths, ties half, and the slopes of other terms.

    Attributes
    ----------
    models : tuple of str, length n_models
        Those compared with another, sorted.
    theta : ndarray of shape (n_models,)
        Nats, summing to zero.
    slopes : dict of str to float
        Nats by which one more of a term moves the preference for side A.
    influence : ndarray of shape (n_prompts, n_models + n_slopes)
        How far each prompt of the items moved strengths and slopes, in nats; they sum to zero.
    n : int
        Rows behind the fit.
    """

    models: tuple[str, ...]
    theta: Floats
    slopes: dict[str, float]
    influence: Floats
    n: int

    def pull(self, term: str) -> Floats:
        """Return how far each prompt moved a slope, shape (n_prompts,)."""
        at = list(self.slopes).index(term)
        return np.asarray(self.influence[:, len(self.models) + at])

    def of_models(self, names: tuple[str, ...]) -> tuple[Floats, Floats]:
        """Return strengths and influence of some models, centred anew."""
        at = [self.models.index(name) for name in names]
        theta, influence = self.theta[at], self.influence[:, at]
        return theta - theta.mean(), influence - influence.mean(axis=1, keepdims=True)


def preferences(
    items: Items, said: Said, terms: tuple[str, ...] = (), *, people: bool = False
) -> Preferences:
    """Fit ``logit P(side A) = theta_a - theta_b + sum of slope * term``, a tie half a win.

    Parameters
    ----------
    terms : tuple of str
        `POSITION`, or names of ``items.gaps``. A row with a gap that is not known is left out; a
        row whose order is not known keeps 0.
    people : bool
        Whether the raters are people: the influences of prompts are then raised by what the
        raters add to their variance, for the strengths together and for each slope, so that
        whatever is read from them allows for other people as well.

    Raises
    ------
    NotIdentifiedError
        If the rows leave a strength or a slope without a finite value.
    """
    columns = [_term(items, said, name) for name in terms]
    features = np.stack(columns, axis=1) if columns else np.empty((said.n, 0))
    a, b = items.pairs[said.item].T
    kept = ~np.isnan(features).any(axis=1) & (a != b)
    prompt = items.prompt[said.item[kept]]
    data = Comparisons.from_codes(
        items.models,
        a[kept],
        b[kept],
        _OUTCOME[said.label[kept] + 1],
        voter=np.unique(said.rater[kept], return_inverse=True)[1] if people else None,
        prompt=prompt,
        features=features[kept] if terms else None,
        feature_names=terms,
    )
    try:
        fitted = fit(data)
    except ConvergenceError as error:
        raise NotIdentifiedError(str(error)) from error
    influence = np.zeros((items.n_prompts, len(fitted.x)))
    influence[np.unique(prompt)] = _influence(fitted, data)
    slopes = {name: p.value for name, p in zip(terms, fitted.parameters, strict=True)}
    return Preferences(fitted.models, fitted.theta, slopes, influence, int(kept.sum()))


def from_influence(value: float, influence: Floats, *, n: int, level: float) -> Estimate:
    """Give a value the interval that the prompts' influences on it imply.

    Student's t with prompts less one, on ``sqrt(U / (U - 1) sum influence^2)``; prompts without
    influence are not counted, and fewer than two give no interval, nor does one without a width.

    Parameters
    ----------
    influence : ndarray of shape (n_prompts,)
    """
    n_prompts = int((influence != 0).sum())
    if n_prompts < 2:
        return Estimate(value, None, None, n)
    error = math.sqrt(n_prompts / (n_prompts - 1) * float(influence @ influence))
    reach = float(scipy.special.stdtrit(n_prompts - 1, (1 + level) / 2)) * error
    return Estimate(value, *with_width(value - reach, value + reach), n)


def _term(items: Items, said: Said, name: str) -> Floats:
    if name == POSITION:
        return said.first.astype(np.float64)
    return items.gaps[name][said.item]


def _influence(fitted: Fit, data: Comparisons) -> Floats:
    assert data.prompt is not None
    index = data.prompt.astype(np.int64)
    cells, bread = scored_cells(fitted, data), hessian_covariance(fitted)
    influence = np.asarray(-cells.scores(index, data.n_prompts) @ bread)
    if data.voter is None or activity(data).effective < FEWEST_PEOPLE:
        return influence
    both = intersection(data)
    by_voter, inside = (
        cells.scores(groups.index, groups.size) @ bread
        for groups in (grouping(data, "voter"), both)
    )
    own, u, k = (influence**2).sum(axis=0), data.n_voters, fitted.n_models
    added = u / (u - 1) * (by_voter**2).sum(axis=0) - (inside**2).sum(axis=0)
    own[:k], added[:k] = own[:k].sum(), added[:k].sum()
    return np.asarray(influence * np.sqrt(1 + added.clip(min=0) / np.where(own > 0, own, 1.0)))
