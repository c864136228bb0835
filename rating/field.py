"""Win rates against an average opponent."""

from dataclasses import dataclass

import numpy as np

from rating.contrasts import Inference
from rating.errors import DataError
from rating.typing import Floats


@dataclass(frozen=True, slots=True, eq=False)
class FieldRates:
    """How each model is expected to fare against the others, each met equally often.

    Attributes
    ----------
    models : tuple of str
    rate, low, high : ndarray of shape (n_models,)
        Expected score, a tie half a win, and its interval.
    """

    models: tuple[str, ...]
    rate: Floats
    low: Floats
    high: Floats


def field_rates(inference: Inference, *, level: float = 0.95) -> FieldRates:
    """Average a model's expected win rate over all the others.

    ``w_i = sum_(j != i) p_ij / (n_models - 1)`` with
    ``p_ij = sigmoid(theta_i - theta_j)``. The interval is by the delta method
    on the log-odds of ``w_i``: others' errors count. Its effective voters are those behind the
    rating, see `rating.contrasts`.

    Parameters
    ----------
    inference : Inference
        Of a fit with ties as half wins and without an order effect.

    Raises
    ------
    DataError
        If the fit has other parameters, or ``level`` is not between 0 and 1.

    Examples
    --------
    >>> from rating import Comparisons, fit, infer
    >>> outcomes = ["model_a"] * 3 + ["model_b"]
    >>> data = Comparisons.from_arrays(["x"] * 4, ["y"] * 4, outcomes)
    >>> field_rates(infer(fit(data), data, ())).rate.round(6).tolist()
    [0.75, 0.25]
    """
    fit = inference.fit
    if fit.parameters:
        named = ", ".join(p.name for p in fit.parameters)
        raise DataError(f"Rates against the field are of strengths alone; this fit has {named}.")
    if not 0 < level < 1:
        raise DataError(f"level must lie between 0 and 1, not {level}.")
    chance = 1 / (1 + np.exp(fit.theta[None, :] - fit.theta[:, None]))
    others = fit.n_models - 1
    rate = (chance.sum(axis=1) - 0.5) / others
    slope = -chance * (1 - chance) / others
    np.fill_diagonal(slope, 0.0)
    np.fill_diagonal(slope, -slope.sum(axis=1))
    slope /= (rate * (1 - rate))[:, None]
    behind = [kind.own.effective for kind in inference.shared]
    reach = inference.of(slope, behind).half_width(level)
    odds = np.log(rate / (1 - rate))
    return FieldRates(
        models=fit.models,
        rate=rate,
        low=1 / (1 + np.exp(reach - odds)),
        high=1 / (1 + np.exp(-reach - odds)),
    )
