"""Peer rank: judges who are models themselves, each weighted by how it ranks (PRD)."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from judge.studies.biases import own_model
from judge.studies.data import JudgeVerdicts, StudyData
from judge.studies.estimates import Draws, Estimate, drawn_sums, interval, sums_within
from rating.typing import Floats, Ints

MOST_ROUNDS = 1000
NEAR = 1e-10


@dataclass(frozen=True, slots=True)
class PeerRank:
    """Models by what peers say of them, the word of a better one counting more.

    Attributes
    ----------
    scores : mapping of str to Estimate
        Weighted win rate of each model, best first.
    weights : mapping of str to Estimate
        Of each judge; they sum to 1, and the judge whose model is last has none.
    models : mapping of str to str
        The model that each judge is, found by its name.
    """

    scores: dict[str, Estimate]
    weights: dict[str, Estimate]
    models: dict[str, str]

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON."""
        return {
            "scores": [{"model": model} | one.to_dict() for model, one in self.scores.items()],
            "weights": [
                {"judge": name, "model": self.models[name]} | one.to_dict()
                for name, one in self.weights.items()
            ],
        }


def peer_weights(win_rates: Floats, of_judge: Ints) -> Floats:
    """Weigh peers by their own scores, until both agree.

    With ``W`` the win rate that peer r gives to model c::

        S_c = sum over r of w_r W_rc
        w_r = (S_r - min S) / (max S - min S), over the peers, divided by their sum

    from equal weights on.

    Parameters
    ----------
    win_rates : ndarray of shape (..., k, n_models)
        By peer and model.
    of_judge : ndarray of shape (k,)
        The model that each peer is.

    Returns
    -------
    ndarray of shape (..., k)
        NaN where the rounds do not come to rest, or all peers have one score.

    References
    ----------
    .. [1] R. Li, T. Patel and X. Du, "PRD: Peer Rank and Discussion Improve Large Language Model
       based Evaluations", TMLR 2024, section 2.1.

    Examples
    --------
    >>> rates = np.array([[0.6, 0.4, 0.5], [0.5, 0.5, 0.5], [0.8, 0.1, 0.6]])
    >>> peer_weights(rates, np.arange(3)).round(3).tolist()
    [0.607, 0.0, 0.393]
    """
    k = win_rates.shape[-2]
    weights = np.full(win_rates.shape[:-1], 1 / k)
    moved = np.full(win_rates.shape[:-2], np.inf)
    for _ in range(MOST_ROUNDS):
        own = scores(win_rates, weights)[..., of_judge]
        over = own - own.min(axis=-1, keepdims=True)
        with np.errstate(invalid="ignore"):
            new = over / over.sum(axis=-1, keepdims=True)
        moved = np.abs(new - weights).max(axis=-1)
        weights = new
        if not (moved > NEAR).any():
            break
    return np.where(moved[..., None] <= NEAR, weights, np.nan)


def scores(win_rates: Floats, weights: Floats) -> Floats:
    """Return the weighted win rate of each model, shape (..., n_models)."""
    return np.asarray((weights[..., None] * win_rates).sum(axis=-2))


def peer_rank(data: StudyData, draws: Draws) -> PeerRank | None:
    """Rank models by judges who are among them; intervals draw whole prompts.

    None where a judge is no model of these, two are the same one, or one has no verdict on some
    model; and where weights do not come to rest.
    """
    judges = data.judges
    names = {judge.name: own_model(judge.name, data.items.models) for judge in judges}
    known = {name: model for name, model in names.items() if model is not None}
    if len({*known.values()}) < max(len(judges), 2):
        return None
    sums = np.hstack([_by_prompt(data, judge) for judge in judges])
    drawn = np.vstack([sums.sum(axis=0), drawn_sums(sums, draws.rounds, draws.rng)])
    won, n = np.moveaxis(drawn.reshape(len(drawn), len(judges), 2, -1), 2, 0)
    if (n[0] == 0).any():
        return None
    with np.errstate(invalid="ignore"):
        rates = won / n
    of_judge = np.array([data.items.models.index(known[judge.name]) for judge in judges])
    weights = peer_weights(rates, of_judge)
    if np.isnan(weights[0]).any():
        return None
    values, n_items = scores(rates, weights), data.items.n

    def estimate(column: Floats) -> Estimate:
        return Estimate(float(column[0]), *interval(column[1:], draws.level), n_items)

    order = np.argsort(-values[0], kind="stable")
    return PeerRank(
        {data.items.models[model]: estimate(values[:, model]) for model in order},
        {judge.name: estimate(weights[:, place]) for place, judge in enumerate(judges)},
        known,
    )


def _by_prompt(data: StudyData, judge: JudgeVerdicts) -> Floats:
    """Return wins and items of each model by a judge, shape (n_prompts, 2 n_models)."""
    items, labels = data.items, judge.verdicts
    share = (labels.label + 1) / 2
    rows = np.zeros((labels.n, 2 * len(items.models)))
    every = np.arange(labels.n)
    for side, won in ((0, share), (1, 1 - share)):
        model = items.pairs[labels.item, side]
        rows[every, model] += won
        rows[every, len(items.models) + model] += 1
    return sums_within(items.prompt[labels.item], rows, items.n_prompts)
