"""Alignment: how scores agree with what people said of texts."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from judge.probe.axes import (
    ROUNDS,
    Axis,
    AxisName,
    Drawn,
    Part,
    axis_of,
    compare,
    drawn_from,
    mean_of,
    ratio,
    scores_of,
    tie_groups,
)
from judge.probe.similarity import Measure
from rating.errors import DataError
from rating.leave_out import draw_counts, sums_within
from rating.typing import Floats, Ints

RANK_CORRELATION = "rank correlation"
NET_AGREEMENT = "net agreement"
ACCURACY = "accuracy"


@dataclass(frozen=True, slots=True)
class RatedTexts:
    """Texts that people rated, such as summaries, and what each was rated against.

    Attributes
    ----------
    prompt : ndarray of shape (n,), int64
        Number of the prompt of each row, from 0. Texts of one prompt are compared in pairs.
    dimensions : tuple of str
        What was rated, such as fluency.
    ratings : ndarray of shape (n, n_dimensions)
        Higher is better, or more alike.
    """

    name: str
    references: tuple[str, ...]
    texts: tuple[str, ...]
    prompt: Ints
    dimensions: tuple[str, ...]
    ratings: Floats

    def __post_init__(self) -> None:
        """Raise `DataError` for lengths that differ, or ratings that are no numbers."""
        rows = {len(self.references), len(self.texts), len(self.prompt), len(self.ratings)}
        if len(rows) > 1 or self.ratings.shape != (len(self.texts), len(self.dimensions)):
            msg = f"Ratings {self.name!r} of shape {self.ratings.shape} are for {sorted(rows)}"
            raise DataError(f"{msg} rows and {len(self.dimensions)} dimensions.")
        if not np.isfinite(self.ratings).all():
            raise DataError(
                f"Ratings {self.name!r} hold one that is no number: leave its row out."
            )


@dataclass(frozen=True, slots=True)
class Figure:
    """One figure of one set of ratings.

    Attributes
    ----------
    counts : bool
        Whether it goes into the value of the axis; the figures of single dimensions do not.
    """

    group: str
    name: str
    drawn: Drawn
    counts: bool = False


def figures_of_ratings(
    rated: RatedTexts, scores: Floats, rng: np.random.Generator
) -> Iterator[Figure]:
    """Yield how scores go with the mean rating, and with each dimension if there are several."""
    drawn = draw_prompts(rated.prompt, rng)
    columns = {rated.name: rated.ratings.mean(axis=1)}
    if len(rated.dimensions) > 1:
        named = zip(rated.dimensions, rated.ratings.T, strict=True)
        columns |= {f"{rated.name}, {name}": column for name, column in named}
    for name, ratings in columns.items():
        counts = name == rated.name
        correlation = rank_correlation(scores, ratings, rated.prompt, drawn)
        yield Figure(RANK_CORRELATION, name, correlation, counts)
        net = rated_pairs(scores, ratings, rated.prompt, drawn)
        if net.n:
            yield Figure(NET_AGREEMENT, name, net, counts)
            yield Figure(ACCURACY, name, _accuracy(net))


def draw_prompts(prompt: Ints, rng: np.random.Generator) -> Floats:
    """Return how often each prompt was drawn: once each in the first row, then in each round."""
    n = int(prompt.max(initial=-1)) + 1
    return np.vstack([np.ones((1, n)), draw_counts(n, ROUNDS, rng)])


def rank_correlation(scores: Floats, ratings: Floats, prompt: Ints, drawn: Floats) -> Drawn:
    """Return Spearman's correlation, ranks taken anew in each round; NaN without variation.

    Parameters
    ----------
    drawn : ndarray of shape (1 + n_rounds, n_prompts)
        Of `draw_prompts`.
    """
    weights = drawn[:, prompt]
    x, y = _ranks(scores, weights), _ranks(ratings, weights)
    x, y = (one - _mean(one, weights)[:, None] for one in (x, y))
    size = np.sqrt(_mean(x * x, weights) * _mean(y * y, weights))
    return _as_drawn(ratio(_mean(x * y, weights), size), len(scores))


def rated_pairs(scores: Floats, ratings: Floats, prompt: Ints, drawn: Floats) -> Drawn:
    """Return the net agreement over pairs of texts of a prompt that people rated differently.

    ``P(agree) - P(disagree)``, a tie of the scores being neither: twice the share that agree, a
    tie counting half, less one.
    """
    first, second = _pairs_within(prompt)
    votes = np.sign(ratings[first] - ratings[second])
    verdict = compare(scores[first], scores[second])
    return net_agreement(verdict, np.column_stack([votes > 0, votes < 0]), prompt[first], drawn)


def net_agreement(verdict: Floats, votes: Floats, prompt: Ints, drawn: Floats) -> Drawn:
    """Return ``P(agree) - P(disagree)`` with the votes for A and for B.

    Parameters
    ----------
    verdict : ndarray of shape (n,)
        1 for A, -1 for B, 0 for neither.
    votes : ndarray of shape (n, 2)
        For A, and for B.
    """
    for_a, for_b = votes.T.astype(np.float64)
    stats = np.column_stack([verdict * (for_a - for_b), for_a + for_b])
    sums = drawn @ sums_within(prompt, stats, drawn.shape[1])
    return _as_drawn(ratio(sums[:, 0], sums[:, 1]), int(votes.sum()))


def _accuracy(net: Drawn) -> Drawn:
    return drawn_from(lambda agreement: (1 + agreement) / 2, net, n=net.n)


def _as_drawn(values: Floats, n: int) -> Drawn:
    return Drawn(float(values[0]), values[1:], n)


def _mean(values: Floats, weights: Floats) -> Floats:
    return ratio((values * weights).sum(axis=1), weights.sum(axis=1))


def _ranks(values: Floats, weights: Floats) -> Floats:
    """Return mean ranks of rows that count as often as their weights say."""
    group = tie_groups(values)
    order = np.argsort(group, kind="stable")
    ends = np.cumsum(np.bincount(group)) - 1
    above = np.cumsum(weights[:, order], axis=1)[:, ends]
    below = np.hstack([np.zeros((len(weights), 1)), above[:, :-1]])
    return np.asarray(((below + above) / 2)[:, group])


def _pairs_within(prompt: Ints) -> tuple[Ints, Ints]:
    """Return the rows of every pair of one prompt."""
    order = np.argsort(prompt, kind="stable")
    rows = np.split(order, np.cumsum(np.bincount(prompt))[:-1])
    pairs = [np.stack(np.triu_indices(len(one), 1)) for one in rows]
    both = np.hstack([one[pair] for one, pair in zip(rows, pairs, strict=True)])
    return both[0], both[1]


NO_CEILING = "How far people agree is unknown here: no single votes of two on one pair."


@dataclass(frozen=True, slots=True)
class Alignment:
    """Ratings to set scores beside."""

    rated: tuple[RatedTexts, ...]
    data: str

    def ask(self, measure: Measure) -> Floats:
        """Score the texts of each set, end to end."""
        return np.concatenate(
            [
                scores_of(
                    measure.name,
                    measure.fit([*one.references, *one.texts]).rows(one.references, one.texts),
                )
                for one in self.rated
            ]
        )

    def truth(self) -> Floats:
        """Return what an oracle answers: the mean rating."""
        return np.concatenate([one.ratings.mean(axis=1) for one in self.rated])

    def read(self, scores: Floats, *, rng: np.random.Generator) -> Axis:
        """Estimate how scores agree with people.

        The mean of two figures, or the one of them that the data give: the net agreement over
        pairs that people distinguish, and Spearman's correlation with the mean rating. Sets of
        data count the same.

        Returns
        -------
        Axis
            Parts: ``rank correlation`` and ``net agreement`` by set and by rated dimension;
            ``accuracy``, the share of pairs that agree, a tie counting half.
        """
        cut = np.split(scores, np.cumsum([len(one.texts) for one in self.rated])[:-1])
        figures = [
            figure
            for one, own in zip(self.rated, cut, strict=True)
            for figure in figures_of_ratings(one, own, rng)
        ]
        by_kind = [
            mean_of(one.drawn for one in figures if one.counts and one.group == group)
            for group in (RANK_CORRELATION, NET_AGREEMENT)
        ]
        return axis_of(
            AxisName.ALIGNMENT,
            mean_of(by_kind),
            (Part(one.group, one.name, one.drawn.estimate()) for one in figures),
            clusters=sum(len(np.unique(one.prompt)) for one in self.rated),
            what="prompts",
            data=self.data,
            warnings=(NO_CEILING,),
        )
