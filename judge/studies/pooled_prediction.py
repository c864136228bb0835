"""One calibrated prediction of what people prefer, from the verdicts of a whole panel."""

from collections.abc import Sequence

import numpy as np
import scipy  # its submodules load on first use

from judge.studies.agreement import counts, majority
from judge.studies.items import Items, Labels
from rating.errors import NotIdentifiedError
from rating.typing import Floats, Ints

FOLDS = 5
RIDGE = 1.0
"""Penalty on the weights of the judges, as of one vote of a judge of weight one."""


def pooled_prediction(items: Items, people: Labels, judges: Sequence[Labels]) -> Labels:
    """Predict the mean vote of each item that some judge read, as one row an item.

    ``logit P(side A) = sum_k beta_k v_ik`` with the verdict v of judge k, 1 for side A and -1 for
    side B, 0 for a tie or where it has none; a ridge of `RIDGE` on beta. No item is predicted by
    votes on its own prompt: prompts lie in `FOLDS` folds, and an item without votes gets the mean
    of their predictions. So k verdicts on an item are one prediction, however much they agree.

    Returns
    -------
    Labels
        Their ``probability`` is the prediction.

    Raises
    ------
    NotIdentifiedError
        If the votes are on fewer prompts than there are folds.

    References
    ----------
    .. [1] T. Zrnic and E. J. Candes, "Cross-prediction-powered inference", PNAS 121(15), 2024.
    """
    verdicts, read = np.zeros((items.n, len(judges))), np.zeros(items.n, dtype=bool)
    for k, one in enumerate(judges):
        own = majority(items, one)
        verdicts[own.item, k] = own.label
        read[own.item] = True
    table = counts(items, people)
    votes = table.sum(axis=1)
    voted = votes > 0
    share = np.divide(table[:, 2] + table[:, 1] / 2, votes, out=np.zeros(items.n), where=voted)
    fold = _folds(items, voted)
    fits = []
    for number in range(FOLDS):
        used = voted & read & (fold != number)
        fits.append(scipy.special.expit(verdicts @ _weights(verdicts[used], share[used])))
    of_fold = np.stack(fits, axis=1)
    own_fold = of_fold[np.arange(items.n), np.maximum(fold, 0)]
    predicted = np.where(fold >= 0, own_fold, of_fold.mean(axis=1))
    item = np.flatnonzero(read)
    label = np.sign(np.round(predicted[item] - 0.5, 12))
    one_rater = Labels.of_one_rater(item, label)
    return Labels(item, one_rater.rater, one_rater.label, one_rater.first, predicted[item])


def _folds(items: Items, voted: np.ndarray) -> Ints:
    """Deal the prompts with votes out to folds; -1 for items of other prompts."""
    prompts = np.unique(items.prompt[voted])
    if len(prompts) < FOLDS:
        msg = (
            f"The votes are on {len(prompts)} prompts: a prediction that has not seen them takes "
            f"{FOLDS} or more."
        )
        raise NotIdentifiedError(msg)
    of_prompt = np.full(items.n_prompts, -1, dtype=np.int64)
    of_prompt[prompts] = np.arange(len(prompts)) % FOLDS
    return of_prompt[items.prompt]


def _weights(verdicts: Floats, share: Floats) -> Floats:
    """Fit the weights of the judges by Newton's method: the loss is convex."""
    beta = np.zeros(verdicts.shape[1])
    for _ in range(50):
        p = scipy.special.expit(verdicts @ beta)
        gradient = verdicts.T @ (p - share) + RIDGE * beta
        curvature = (verdicts * (p * (1 - p))[:, None]).T @ verdicts
        step = np.linalg.solve(curvature + RIDGE * np.eye(len(beta)), gradient)
        beta = beta - step
        if np.abs(step).max() < 1e-10:
            break
    return beta
