"""Human preference alignment: does an evaluator rank texts as people do."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np

from judge.probe.axes import Axis, AxisName, Part, axis_of, compare, mean_of, scores_of
from judge.probe.people import (
    CEILING,
    NET_AGREEMENT,
    RANK_CORRELATION,
    Figure,
    RatedTexts,
    VotedPairs,
    figures_of_ratings,
    figures_of_votes,
)
from judge.probe.similarity import Measure
from rating.errors import DataError
from rating.typing import Floats

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
        pairs that people told apart, and Spearman's correlation with the mean rating. Sets of
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


def alignment_axis(found: Iterable[Figure], *, clusters: int, data: str) -> Axis:
    """Make the axis of what was found with each set of ratings or votes."""
    figures = tuple(found)
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
