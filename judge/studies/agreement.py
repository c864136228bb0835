"""How often raters agree on an item, and how far that is beyond chance."""

from typing import Literal

import numpy as np

from judge.studies.estimates import (
    SHARE,
    Estimate,
    MeanOfPrompts,
    Raters,
    clustered,
    sums_by_prompt,
)
from judge.studies.items import TIE, Items, Labels
from rating.errors import DataError
from rating.typing import Floats

Weighting = Literal["pairs", "items"]

LABELS = 3
"""Side B, tie, side A, in this order: a label plus one is its place."""
_GAP = MeanOfPrompts(-1.0, 1.0, (1, 3))


def pair_agreement(
    items: Items,
    first: Labels,
    second: Labels,
    *,
    ties: bool,
    weighting: Weighting = "pairs",
    rounds: int = 1000,
    rng: np.random.Generator,
    level: float = 0.95,
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
    agree, total = _between(one, other).T
    return _rate(
        items,
        agree,
        total,
        second,
        pairs_with(items, one, second, ties=ties),
        weighting,
        rounds,
        rng,
        level,
    )


def own_agreement(
    items: Items,
    labels: Labels,
    *,
    ties: bool,
    weighting: Weighting = "pairs",
    rounds: int = 1000,
    rng: np.random.Generator,
    level: float = 0.95,
) -> Estimate:
    """Estimate how often two people, or two repetitions of a judge, say the same of an item.

    Over all pairs of different rows of an item: the agreement of people with people that a judge
    is compared with. Parameters and result as of `pair_agreement`.
    """
    table = _by_side(counts(items, labels), ties=ties)
    agree, total = _own_pairs(table)
    each = pairs_with(items, table, labels, ties=ties, own=True)
    return _rate(items, agree, total, labels, each, weighting, rounds, rng, level)


def kappa(
    items: Items,
    first: Labels,
    second: Labels,
    *,
    ties: bool = True,
    rounds: int = 1000,
    rng: np.random.Generator,
    level: float = 0.95,
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
    return clustered(stats, _kappas, n=int(stats.sum()), rounds=rounds, rng=rng, level=level)


def own_kappa(
    items: Items,
    labels: Labels,
    *,
    ties: bool = True,
    rounds: int = 1000,
    rng: np.random.Generator,
    level: float = 0.95,
) -> Estimate:
    """Estimate kappa over the pairs of `own_agreement`: Fleiss' for any number of rows an item.

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
    agree, total = _own_pairs(given)
    stats = sums_by_prompt(items, np.column_stack([agree, total, given]))
    n = int(total.sum())
    return clustered(stats, _own_kappas, n=n, rounds=rounds, rng=rng, level=level)


def one_vs_rest(
    items: Items,
    labels: Labels,
    *,
    rounds: int = 1000,
    rng: np.random.Generator,
    level: float = 0.95,
) -> Estimate:
    """Estimate how often one row agrees with the majority of the other rows of its item.

    Each item of two rows or more counts the same. Where the others are split between k labels, a
    label among them scores 1/k: the expectation of the coin that upstream throws.

    References
    ----------
    .. [1] Y. Dubois et al., "AlpacaFarm", NeurIPS 2023; one minus this, of a judge's
       repetitions, is its "variance".
    """
    table = counts(items, labels)
    many = table.sum(axis=1) >= 2
    rates = np.zeros(items.n)
    rates[many] = _with_rest(table[many])
    stats = sums_by_prompt(items, np.column_stack([rates, many]))
    n = int(many.sum())
    return clustered(stats, _ratio, n=n, mean=SHARE, rounds=rounds, rng=rng, level=level)


def majority(items: Items, labels: Labels) -> Labels:
    """Return what most rows of each item say, one row an item.

    A label that more rows have than any other; where two labels lead, the item is a tie.
    """
    table = counts(items, labels)
    leads = table == table.max(axis=1, keepdims=True)
    label = np.where(leads.sum(axis=1) == 1, leads.argmax(axis=1) - 1, TIE)
    item = np.flatnonzero(table.sum(axis=1) > 0)
    nothing = np.zeros(len(item), dtype=np.int8)
    return Labels(
        item=item,
        rater=np.zeros(len(item), dtype=np.int64),
        label=label[item].astype(np.int8),
        first=nothing,
        probability=np.full(len(item), np.nan),
    )


def counts(items: Items, labels: Labels) -> Floats:
    """Count the labels of each item, shape (n_items, 3): side B, tie, side A."""
    if labels.n and not 0 <= labels.item.min() <= labels.item.max() < items.n:
        raise DataError(f"Items are 0 to {items.n - 1}, and a row is of item {labels.item.max()}.")
    place = LABELS * labels.item + labels.label + 1
    table = np.bincount(place, minlength=LABELS * items.n)
    return table.reshape(items.n, LABELS).astype(np.float64)


def pairs_with(
    items: Items, others: Floats, labels: Labels, *, ties: bool, own: bool = False
) -> Floats:
    """Count the pairs of each row with what others said of its item: those that agree, and all.

    Parameters
    ----------
    others : ndarray of shape (n_items, q)
        Labels of the others, by item; without ties the two sides alone.
    own : bool
        Whether the row itself is among them.

    Returns
    -------
    ndarray of shape (n, 2)
    """
    place = np.array([0, 1, 2] if ties else [0, -1, 1])[labels.label + 1]
    there = (place >= 0).astype(np.float64)
    agree = others[labels.item, place] - own
    return np.column_stack([agree * there, (others[labels.item].sum(axis=1) - own) * there])


def _by_side(table: Floats, *, ties: bool) -> Floats:
    """Leave ties out of counts of labels, unless they are a label."""
    return table if ties else table[:, [0, 2]]


def _own_pairs(table: Floats) -> tuple[Floats, Floats]:
    """Count pairs of different rows of each item: those that agree, and all."""
    size = table.sum(axis=1)
    return (table * (table - 1)).sum(axis=1) / 2, size * (size - 1) / 2


def _rate(
    items: Items,
    agree: Floats,
    total: Floats,
    labels: Labels,
    each: Floats,
    weighting: Weighting,
    rounds: int,
    rng: np.random.Generator,
    level: float,
) -> Estimate:
    if weighting == "items":
        pairs = np.where(total > 0, total, 1.0)
        agree, total = agree / pairs, (total > 0).astype(np.float64)
        # Without a row its item stays, and its rate becomes that of the other pairs.
        each = each / pairs[labels.item, None]
        each = np.column_stack([each[:, 0] - agree[labels.item] * each[:, 1], 0 * each[:, 1]])
    n = int(total.sum())
    stats = sums_by_prompt(items, np.column_stack([agree, total]))
    raters = Raters.of(items, labels, each)
    return clustered(
        stats, _ratio, n=n, mean=SHARE, raters=raters, rounds=rounds, rng=rng, level=level
    )


def _kappas(sums: Floats) -> Floats:
    q = 3 if sums.shape[1] == 9 else 2
    tables = _over(sums, sums.sum(axis=1, keepdims=True)).reshape(-1, q, q)
    agreed = np.trace(tables, axis1=1, axis2=2)
    expected = (tables.sum(axis=1) * tables.sum(axis=2)).sum(axis=1)
    return _over(agreed - expected, 1 - expected)


def _own_kappas(sums: Floats) -> Floats:
    share = _over(sums[:, 2:], sums[:, 2:].sum(axis=1, keepdims=True))
    expected = (share**2).sum(axis=1)
    return _over(_over(sums[:, 0], sums[:, 1]) - expected, 1 - expected)


def _ratio(sums: Floats) -> Floats:
    return _over(sums[:, 0], sums[:, 1])


def _over(part: Floats, whole: Floats) -> Floats:
    """Divide, NaN where there is nothing to divide by."""
    near_zero = np.abs(whole) < 1e-12
    return np.asarray(part / np.where(near_zero, np.nan, whole))


def _with_rest(table: Floats) -> Floats:
    """Return the mean score of the rows of each item, shape (n_items,)."""
    scores = np.zeros(len(table))
    for label in range(LABELS):
        rest = table - (np.arange(LABELS) == label)
        leads = rest == rest.max(axis=1, keepdims=True)
        scores += table[:, label] * leads[:, label] / leads.sum(axis=1)
    return np.asarray(scores / table.sum(axis=1))


def over_another(
    items: Items,
    first: Labels,
    second: Labels,
    people: Labels,
    *,
    ties: bool,
    rounds: int = 1000,
    rng: np.random.Generator,
    level: float = 0.95,
) -> Estimate:
    """Estimate the agreement of ``first`` with people less that of ``second``.

    Each over its own pairs, as `judge.studies.agreement.pair_agreement` counts them; a round draws
    the same prompts for both, so what makes a prompt easy for both cancels; other people are
    allowed for as well. ``n`` is the number of pairs of ``first``.
    """
    votes = _by_side(counts(items, people), ties=ties)
    both = [_by_side(counts(items, labels), ties=ties) for labels in (first, second)]
    parts = [_between(table, votes) for table in both]
    each = np.hstack([pairs_with(items, table, people, ties=ties) for table in both])
    raters = Raters.of(items, people, each)
    return _difference(items, parts[0], parts[1], raters, rounds=rounds, rng=rng, level=level)


def over_people(
    items: Items,
    judge: Labels,
    people: Labels,
    *,
    ties: bool,
    rounds: int = 1000,
    rng: np.random.Generator,
    level: float = 0.95,
) -> Estimate:
    """Estimate the agreement of a judge with people less that of two people.

    Both on the items that the judge has said something of. Below zero, a verdict is a poorer
    guess of somebody's vote than the vote of somebody else.
    """
    votes = _by_side(counts(items, people), ties=ties)
    verdicts = counts(items, judge)
    judged = (verdicts.sum(axis=1) > 0)[:, None]
    own = 2.0 * judged * np.column_stack(_own_pairs(votes))
    with_judge = _by_side(verdicts, ties=ties)
    with_others = pairs_with(items, votes, people, ties=ties, own=True)
    with_others *= 2.0 * judged[people.item]
    each = np.hstack([pairs_with(items, with_judge, people, ties=ties), with_others])
    raters = Raters.of(items, people, each)
    with_people = _between(with_judge, votes)
    return _difference(items, with_people, own, raters, rounds=rounds, rng=rng, level=level)


def _between(first: Floats, second: Floats) -> Floats:
    """Count pairs of rows of two sources on each item: those that agree, and all."""
    return np.column_stack([(first * second).sum(axis=1), first.sum(axis=1) * second.sum(axis=1)])


def _difference(
    items: Items,
    first: Floats,
    second: Floats,
    raters: Raters,
    *,
    rounds: int,
    rng: np.random.Generator,
    level: float,
) -> Estimate:
    stats = sums_by_prompt(items, np.column_stack([first, second]))
    n = int(first[:, 1].sum())
    return clustered(
        stats, _of_sums, n=n, mean=_GAP, raters=raters, rounds=rounds, rng=rng, level=level
    )


def _of_sums(sums: Floats) -> Floats:
    return _ratio(sums[:, :2]) - _ratio(sums[:, 2:])
