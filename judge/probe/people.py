"""Alignment: how scores agree with what people said of texts."""

from collections.abc import Iterable, Iterator
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
from judge.studies.estimates import draw_counts, sums_within
from rating.errors import DataError
from rating.typing import Floats, Ints

RANK_CORRELATION = "rank correlation"
NET_AGREEMENT = "net agreement"
ACCURACY = "accuracy"
CEILING = "ceiling"


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
class VotedPairs:
    """Pairs of responses on which people voted.

    Attributes
    ----------
    prompt : ndarray of shape (n,), int64
        Number of the prompt of each pair, from 0.
    votes : ndarray of shape (n, 2)
        Votes for response A and for response B; votes for a tie are left out.
    """

    name: str
    prompts: tuple[str, ...]
    responses_a: tuple[str, ...]
    responses_b: tuple[str, ...]
    prompt: Ints
    votes: Floats

    def __post_init__(self) -> None:
        """Raise `DataError` for lengths that differ."""
        texts = (self.prompts, self.responses_a, self.responses_b)
        rows = {len(self.prompt), len(self.votes), *map(len, texts)}
        if len(rows) > 1 or self.votes.shape[1:] != (2,):
            msg = f"Votes {self.name!r} of shape {self.votes.shape} are for {sorted(rows)} rows:"
            raise DataError(f"{msg} give two numbers for each.")


@dataclass(frozen=True, slots=True)
class Figure:
    """One figure of one set of ratings or votes.

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


def figures_of_votes(
    voted: VotedPairs, verdict: Floats, rng: np.random.Generator
) -> Iterator[Figure]:
    """Yield how verdicts (1 for A, -1 for B, 0 for neither) go with votes, and the ceiling."""
    drawn = draw_prompts(voted.prompt, rng)
    net = net_agreement(verdict, voted.votes, voted.prompt, drawn)
    yield Figure(NET_AGREEMENT, voted.name, net, counts=True)
    yield Figure(ACCURACY, voted.name, _accuracy(net))
    for name, figure in ceiling(verdict, voted.votes, voted.prompt, drawn).items():
        yield Figure(CEILING, f"{voted.name}, {name}", figure)


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


def ceiling(verdict: Floats, votes: Floats, prompt: Ints, drawn: Floats) -> dict[str, Drawn]:
    """Estimate how far people agree, and how much of that is reached.

    Over the pairs with two votes or more, each counting the same; empty without any.

    Returns
    -------
    dict
        ``people agree``: A, the probability that two people do. ``highest``:
        ``(1 + sqrt(2 A - 1)) / 2``; an evaluator that says one thing of a pair agrees with a
        person no more often, and the best at least with probability A. ``reached``: how often
        this one does, a tie counting half. ``reached over highest``.

    Notes
    -----
    With ``d = 2 p - 1``, p the share of people for A, two of them agree with probability
    ``E(1 + d^2) / 2``, and one of them with the majority with ``E(1 + |d|) / 2``: Jensen's
    inequality gives the bounds. Where people agree less than half of the time, ``2 A - 1`` is
    taken as 0.
    """
    many = votes.sum(axis=1) >= 2
    if not many.any():
        return {}
    total = votes[many].sum(axis=1)
    agree = (votes[many] * (votes[many] - 1)).sum(axis=1) / (total * (total - 1))
    right = (1 + verdict[many] * (votes[many, 0] - votes[many, 1]) / total) / 2
    stats = np.column_stack([agree, right, np.ones(len(total))])
    sums = drawn @ sums_within(prompt[many], stats, drawn.shape[1])
    people, reached = ratio(sums[:, 0], sums[:, 2]), ratio(sums[:, 1], sums[:, 2])
    highest = (1 + np.sqrt(np.maximum(2 * people - 1, 0))) / 2
    figures = {
        "people agree": people,
        "highest": highest,
        "reached": reached,
        "reached over highest": reached / highest,
    }
    return {name: _as_drawn(values, len(total)) for name, values in figures.items()}


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
    """Ratings and votes to set scores beside."""

    rated: tuple[RatedTexts, ...]
    voted: tuple[VotedPairs, ...]
    data: str

    def __post_init__(self) -> None:
        """Raise `DataError` where nobody said anything."""
        if not self.rated and not self.voted:
            raise DataError("Alignment with people needs ratings or votes.")

    def ask(self, measure: Measure) -> Floats:
        """Score the texts of each set, responses B behind A, end to end."""
        return np.concatenate(list(self._asked(measure)))

    def _asked(self, measure: Measure) -> Iterator[Floats]:
        for rated in self.rated:
            scorer = measure.fit([*rated.references, *rated.texts])
            yield scores_of(measure.name, scorer.rows(rated.references, rated.texts))
        for voted in self.voted:
            both = (*voted.responses_a, *voted.responses_b)
            scorer = measure.fit([*voted.prompts, *both])
            yield scores_of(measure.name, scorer.rows(voted.prompts * 2, both))

    def truth(self) -> Floats:
        """Return what an oracle answers: the mean rating, the number of votes."""
        ratings = [one.ratings.mean(axis=1) for one in self.rated]
        return np.concatenate([*ratings, *(one.votes.T.ravel() for one in self.voted)])

    def read(self, scores: Floats, *, rng: np.random.Generator) -> Axis:
        """Estimate how scores agree with people.

        The mean of two figures, or the one of them that the data give: the net agreement over
        pairs that people distinguish, and Spearman's correlation with the mean rating. Sets of
        data count the same.

        Returns
        -------
        Axis
            Parts: ``rank correlation`` and ``net agreement`` by set and by rated dimension;
            ``accuracy``, the share of pairs that agree, a tie counting half; for votes the figures
            of `judge.probe.people.ceiling`.
        """
        prompts = [one.prompt for one in self.rated] + [one.prompt for one in self.voted]
        n = sum(len(np.unique(one)) for one in prompts)
        return alignment_axis(self._read(scores, rng), clusters=n, data=self.data)

    def _read(self, scores: Floats, rng: np.random.Generator) -> Iterator[Figure]:
        sizes = [len(one.texts) for one in self.rated] + [2 * len(one.votes) for one in self.voted]
        cut = np.split(scores, np.cumsum(sizes)[:-1])
        for rated, own in zip(self.rated, cut[: len(self.rated)], strict=True):
            yield from figures_of_ratings(rated, own, rng)
        for voted, own in zip(self.voted, cut[len(self.rated) :], strict=True):
            for_a, for_b = own.reshape(2, -1)
            yield from figures_of_votes(voted, compare(for_a, for_b), rng)


def alignment_axis(figures: Iterable[Figure], *, clusters: int, data: str) -> Axis:
    """Make the axis of the figures of each set of ratings or votes."""
    figures = tuple(figures)
    by_kind = [
        mean_of(one.drawn for one in figures if one.counts and one.group == group)
        for group in (RANK_CORRELATION, NET_AGREEMENT)
    ]
    with_ceiling = any(one.group == CEILING for one in figures)
    return axis_of(
        AxisName.ALIGNMENT,
        mean_of(by_kind),
        (Part(one.group, one.name, one.drawn.estimate()) for one in figures),
        clusters=clusters,
        what="prompts",
        data=data,
        warnings=() if with_ceiling else (NO_CEILING,),
    )
