"""By how much one agrees with people more than another does, on the same draws of prompts."""

import numpy as np

from judge.study.agreement import counts, pairs_with
from judge.study.items import Estimate, Items, Said
from judge.study.resampling import MeanOfPrompts, Raters, clustered, sums_by_prompt
from rating.typing import Floats

_GAP = MeanOfPrompts(-1.0, 1.0, (1, 3))


def over_another(
    items: Items,
    first: Said,
    second: Said,
    people: Said,
    *,
    ties: bool,
    rounds: int = 1000,
    rng: np.random.Generator,
    level: float = 0.95,
) -> Estimate:
    """Estimate the agreement of ``first`` with people less that of ``second``.

    Each over its own pairs, as `judge.study.agreement.pair_agreement` counts them; a round draws
    the same prompts for both, so what makes a prompt easy for both cancels; other people are
    allowed for as well. ``n`` is the number of pairs of ``first``.
    """
    votes = _kept(counts(items, people), ties=ties)
    both = [_kept(counts(items, said), ties=ties) for said in (first, second)]
    parts = [_between(said, votes) for said in both]
    each = np.hstack([pairs_with(items, said, people, ties=ties) for said in both])
    raters = Raters.of(items, people, each)
    return _difference(items, parts[0], parts[1], raters, rounds=rounds, rng=rng, level=level)


def over_people(
    items: Items,
    judge: Said,
    people: Said,
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
    votes = _kept(counts(items, people), ties=ties)
    said = counts(items, judge)
    own = np.column_stack([(votes * (votes - 1)).sum(axis=1), _pairs(votes)])
    own *= (said.sum(axis=1) > 0)[:, None]
    with_judge = _kept(said, ties=ties)
    with_others = pairs_with(items, votes, people, ties=ties, own=True)
    with_others *= 2.0 * (said.sum(axis=1) > 0)[people.item, None]
    each = np.hstack([pairs_with(items, with_judge, people, ties=ties), with_others])
    raters = Raters.of(items, people, each)
    judged = _between(with_judge, votes)
    return _difference(items, judged, own, raters, rounds=rounds, rng=rng, level=level)


def _kept(found: Floats, *, ties: bool) -> Floats:
    return found if ties else found[:, [0, 2]]


def _between(first: Floats, second: Floats) -> Floats:
    return np.column_stack([(first * second).sum(axis=1), first.sum(axis=1) * second.sum(axis=1)])


def _pairs(found: Floats) -> Floats:
    n = found.sum(axis=1)
    return np.asarray(n * (n - 1))


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
    whole = np.where(sums[:, [1, 3]] > 0, sums[:, [1, 3]], np.nan)
    rates = sums[:, [0, 2]] / whole
    return np.asarray(rates[:, 0] - rates[:, 1])
