"""How often raters agree on an item, and how far that is beyond chance."""

from typing import Literal

import numpy as np

from judge.studies.estimates import (
    SHARE,
    Draws,
    Estimate,
    MeanOfPrompts,
    Raters,
    clustered,
    over,
    ratio,
    sums_by_prompt,
)
from judge.studies.items import TIE, Items, Labels
from rating.errors import DataError
from rating.leave_out import sums_within
from rating.typing import Floats, Ints

Weighting = Literal["pairs", "items"]

LABELS = 3
"""Side B, tie, side A, in this order: a label plus one is its place."""
_GAP = MeanOfPrompts(-1.0, 1.0, (1, 3))


def pair_agreement(
    items: Items,
    first: Labels,
    second: Labels,
    draws: Draws,
    *,
    ties: bool,
    weighting: Weighting = "pairs",
) -> Estimate:
    """Estimate how often a judge and a person say the same of an item.

    Over all pairs of a row of ``first`` and a row of ``second`` of the same item. Repeating a
    rater's rows throughout changes nothing.

    Parameters
    ----------
    ties : bool
        Whether ties are a third label, on which both can agree; otherwise over pairs in which
        both preferred a side.
    weighting : {"pairs", "items"}
        Whether each pair or each item counts the same; an item of more votes has more pairs.

    Returns
    -------
    Estimate
        ``n`` is the number of pairs, or of items that have one. The interval draws prompts, and
        allows for other raters of ``second``, see `judge.studies.estimates.Raters`.

    References
    ----------
    .. [1] L. Zheng et al., "Judging LLM-as-a-Judge with MT-Bench and Chatbot Arena", NeurIPS
       2023, section 4.2 (setups S1 and S2 are with and without ties).
    """
    one, other = (_by_side(counts(items, labels), ties=ties) for labels in (first, second))
    each = pairs_with(one, second, ties=ties)
    return _rate(items, _between(one, other), second, each, weighting, draws)


def own_agreement(
    items: Items,
    labels: Labels,
    draws: Draws,
    *,
    ties: bool,
    weighting: Weighting = "pairs",
) -> Estimate:
    """Estimate how often two people, or two repetitions of a judge, agree on an item.

    Over all pairs of rows of an item by different raters: the human-human agreement that a judge
    is compared with. Several rows of one rater on an item are not several people, and are no pair.
    Parameters and result as of `pair_agreement`.
    """
    each = pairs_with_others(items, labels, ties=ties)
    pairs = _own_pairs(items, labels, ties=ties)
    return _rate(items, pairs, labels, each, weighting, draws)


def kappa(
    items: Items,
    first: Labels,
    second: Labels,
    draws: Draws,
    *,
    ties: bool = True,
) -> Estimate:
    """Estimate Cohen's kappa over the pairs of `pair_agreement`.

    ``(agreed - chance) / (1 - chance)``, with ``chance`` the agreement of two who choose labels
    independently, each as often as in the pairs. Undefined where only one label is used. It
    depends on which model stands on which side, as far as one side wins more.

    References
    ----------
    .. [1] J. Cohen, "A coefficient of agreement for nominal scales", Educational and
       Psychological Measurement 20(1), 1960, pp. 37-46.
    """
    one, other = (_by_side(counts(items, labels), ties=ties) for labels in (first, second))
    stats = sums_by_prompt(items, (one[:, :, None] * other[:, None, :]).reshape(items.n, -1))
    return clustered(stats, _kappas, draws, n=int(stats.sum()))


def own_kappa(
    items: Items,
    labels: Labels,
    draws: Draws,
    *,
    ties: bool = True,
) -> Estimate:
    """Estimate kappa over the pairs of `own_agreement`: Fleiss' for any number of raters per item.

    ``(agreed - chance) / (1 - chance)``, with ``chance`` the sum of the squared shares of the
    labels among all rows, also those of items of one row.

    References
    ----------
    .. [1] J. L. Fleiss, "Measuring nominal scale agreement among many raters", Psychological
       Bulletin 76(5), 1971, pp. 378-382.
    .. [2] O. Bojar et al., "Findings of the 2015 Workshop on Statistical Machine Translation",
       WMT 2015: the same, with both sides taken as equally often better.
    """
    given = _by_side(counts(items, labels), ties=ties)
    pairs = _own_pairs(items, labels, ties=ties)
    stats = sums_by_prompt(items, np.column_stack([pairs, given]))
    return clustered(stats, _own_kappas, draws, n=int(pairs[:, 1].sum()))


def majority(items: Items, labels: Labels) -> Labels:
    """Return what most rows of each item say, one row an item.

    A label that more rows have than any other; where two labels lead, the item is a tie.
    """
    table = counts(items, labels)
    leads = table == table.max(axis=1, keepdims=True)
    label = np.where(leads.sum(axis=1) == 1, leads.argmax(axis=1) - 1, TIE)
    item = np.flatnonzero(table.sum(axis=1) > 0)
    return Labels.of_one_rater(item, label[item])


def counts(items: Items, labels: Labels) -> Floats:
    """Count the labels of each item, shape (n_items, 3): side B, tie, side A."""
    if labels.n and not 0 <= labels.item.min() <= labels.item.max() < items.n:
        raise DataError(f"Items are 0 to {items.n - 1}, and a row is of item {labels.item.max()}.")
    place = LABELS * labels.item + labels.label + 1
    table = np.bincount(place, minlength=LABELS * items.n)
    return table.reshape(items.n, LABELS).astype(np.float64)


def by_rater(items: Items, labels: Labels) -> tuple[Ints, Floats, Ints]:
    """Count the labels that each rater gave each item.

    Returns
    -------
    tuple of ndarray
        The item of each rater and item, the counts as of `counts`, and the place in these of
        each row of ``labels``.
    """
    n_raters = int(labels.rater.max(initial=-1)) + 1
    cells, place = np.unique(labels.item * n_raters + labels.rater, return_inverse=True)
    table = np.bincount(LABELS * place + labels.label + 1, minlength=LABELS * len(cells))
    return cells // max(n_raters, 1), table.reshape(len(cells), LABELS).astype(np.float64), place


def pairs_with(others: Floats, labels: Labels, *, ties: bool) -> Floats:
    """Count the pairs of each row with labels of its item: those that agree, and all.

    Parameters
    ----------
    others : ndarray of shape (n_items, q)
        Labels of others, by item; without ties the two sides alone.

    Returns
    -------
    ndarray of shape (n, 2)
    """
    return _paired(others[labels.item], labels, ties=ties)


def pairs_with_others(items: Items, labels: Labels, *, ties: bool) -> Floats:
    """Count the pairs of each row with rows of other raters on its item, as `pairs_with` does."""
    _, own, place = by_rater(items, labels)
    others = counts(items, labels)[labels.item] - own[place]
    return _paired(_by_side(others, ties=ties), labels, ties=ties)


def _paired(others: Floats, labels: Labels, *, ties: bool) -> Floats:
    place = np.array([0, 1, 2] if ties else [0, -1, 1])[labels.label + 1]
    there = (place >= 0).astype(np.float64)
    agree = others[np.arange(labels.n), place]
    return np.column_stack([agree * there, others.sum(axis=1) * there])


def _by_side(table: Floats, *, ties: bool) -> Floats:
    """Leave ties out of counts of labels, unless they are a label."""
    return table if ties else table[:, [0, 2]]


def _own_pairs(items: Items, labels: Labels, *, ties: bool) -> Floats:
    """Count pairs of rows of each item by different raters: those that agree, and all."""
    each = pairs_with_others(items, labels, ties=ties)
    return sums_within(labels.item, each, items.n) / 2


def _between(first: Floats, second: Floats) -> Floats:
    """Count pairs of rows of two sources on each item: those that agree, and all."""
    return np.column_stack([(first * second).sum(axis=1), first.sum(axis=1) * second.sum(axis=1)])


def _rate(
    items: Items, pairs: Floats, labels: Labels, each: Floats, weighting: Weighting, draws: Draws
) -> Estimate:
    """Estimate the share of pairs that agree.

    Parameters
    ----------
    pairs : ndarray of shape (n_items, 2)
        Those of each item that agree, and all.
    each : ndarray of shape (n, 2)
        The pairs that each row of ``labels`` has a part in.
    """
    if weighting == "items":
        total = pairs[:, 1]
        size = np.where(total > 0, total, 1.0)
        agree = pairs[:, 0] / size
        # Without a row its item stays, and its rate becomes that of the other pairs.
        each = each / size[labels.item, None]
        each = np.column_stack([each[:, 0] - agree[labels.item] * each[:, 1], 0 * each[:, 1]])
        pairs = np.column_stack([agree, total > 0])
    raters, n = Raters.of(items, labels, each), int(pairs[:, 1].sum())
    return clustered(sums_by_prompt(items, pairs), ratio, draws, n=n, mean=SHARE, raters=raters)


def _kappas(sums: Floats) -> Floats:
    q = 3 if sums.shape[1] == 9 else 2
    tables = over(sums, sums.sum(axis=1, keepdims=True)).reshape(-1, q, q)
    agreed = np.trace(tables, axis1=1, axis2=2)
    expected = (tables.sum(axis=1) * tables.sum(axis=2)).sum(axis=1)
    return over(agreed - expected, 1 - expected)


def _own_kappas(sums: Floats) -> Floats:
    share = over(sums[:, 2:], sums[:, 2:].sum(axis=1, keepdims=True))
    expected = (share**2).sum(axis=1)
    return over(over(sums[:, 0], sums[:, 1]) - expected, 1 - expected)


def over_another(
    items: Items,
    first: Labels,
    second: Labels,
    people: Labels,
    draws: Draws,
    *,
    ties: bool,
) -> Estimate:
    """Estimate the agreement of ``first`` with people less that of ``second``.

    Each over its own pairs, as `judge.studies.agreement.pair_agreement` counts them; a round draws
    the same prompts for both, so what makes a prompt easy for both cancels; other people are
    allowed for as well. ``n`` is the number of pairs of ``first``.
    """
    votes = _by_side(counts(items, people), ties=ties)
    both = [_by_side(counts(items, labels), ties=ties) for labels in (first, second)]
    parts = [_between(table, votes) for table in both]
    each = np.hstack([pairs_with(table, people, ties=ties) for table in both])
    raters = Raters.of(items, people, each)
    return _difference(items, parts[0], parts[1], raters, draws)


def over_people(
    items: Items,
    judge: Labels,
    people: Labels,
    draws: Draws,
    *,
    ties: bool,
) -> Estimate:
    """Estimate the agreement of a judge with people less that of two people.

    Both on the items that the judge has said something of. Below zero, a verdict is a poorer
    guess of somebody's vote than the vote of somebody else.
    """
    votes = _by_side(counts(items, people), ties=ties)
    verdicts = counts(items, judge)
    judged = (verdicts.sum(axis=1) > 0)[:, None]
    with_judge = _by_side(verdicts, ties=ties)
    with_others = pairs_with_others(items, people, ties=ties) * judged[people.item]
    own = sums_within(people.item, with_others, items.n)
    with_others *= 2.0  # without a row, both of a pair lose it
    each = np.hstack([pairs_with(with_judge, people, ties=ties), with_others])
    raters = Raters.of(items, people, each)
    with_people = _between(with_judge, votes)
    return _difference(items, with_people, own, raters, draws)


def _difference(
    items: Items, first: Floats, second: Floats, raters: Raters, draws: Draws
) -> Estimate:
    stats, n = sums_by_prompt(items, np.column_stack([first, second])), int(first[:, 1].sum())
    return clustered(stats, _of_sums, draws, n=n, mean=_GAP, raters=raters)


def _of_sums(sums: Floats) -> Floats:
    return ratio(sums[:, :2]) - ratio(sums[:, 2:])
