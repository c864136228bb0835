"""Votes of a race, with what a judge's verdicts on other battles explain of them."""

import numpy as np

from judge.studies.alignment import align
from judge.studies.data import judge_of, study_data
from judge.studies.rows import Source, read_rows
from judge.studies.soft_verdicts import (
    Compared,
    Evidence,
    calibrated,
    variance_of_sum,
    with_signal,
)
from rating.errors import DataError
from rating.rows import VoteRows
from rating.tables.peers import mention
from rating.typing import Bools, Floats
from rating.uncertainty.race import Control

FEWEST = 20
"""Verdicts without a vote from which the average of a pair is known well enough to count from."""


def race_with_judge(
    votes: Source, verdicts: Source, between: tuple[str, str], judge: str | None = None
) -> tuple[VoteRows, Control]:
    """Read votes, in the order of their source, and count each verdict from its pair's average.

    Verdicts become probabilities by what was learnt on votes on other pairs than the race's, and
    averages are those of the battles without a vote, as in prediction-powered inference.

    Raises
    ------
    DataError
        If a source cannot be read, or no pair has `FEWEST` verdicts without a vote.
    NotIdentifiedError
        If no decisive vote on another pair has a verdict.
    """
    cast = read_rows(votes, unread=False)
    given, _ = with_signal(read_rows(verdicts, unread=True, marks=True))
    aligned = align(cast, given)
    for note in aligned.warnings:
        mention(note)
    data = study_data(aligned)
    evidence = Evidence.of(data.items, data.people, judge_of(data, judge).verdicts)
    voted, judged, k = evidence.voted, evidence.judged, len(evidence.models)
    ends = [evidence.models.index(name) for name in between if name in evidence.models]
    others = voted.only(np.flatnonzero(~np.isin(voted.pairs, ends).all(axis=1)))
    learnt = calibrated(others)
    alone = judged.only(np.flatnonzero(~np.isin(judged.rater, np.unique(data.people.item))))
    mean, variance = _averages(alone, learnt.probability(alone.signal), k)
    a, b = voted.pairs.T
    control = learnt.probability(voted.signal) - mean[a, b]
    known: Bools = np.isfinite(control)
    if not known.any():
        msg = (
            f"No two models have {FEWEST} verdicts on battles without a vote: a judge helps where "
            "it has seen battles that nobody voted on."
        )
        raise DataError(msg)
    rows = VoteRows.scored(evidence.models, a, b, voted.score, voted.rater)
    return rows, Control(np.where(known, control, 0.0), np.nan_to_num(variance))


def _averages(alone: Compared, probability: Floats, k: int) -> tuple[Floats, Floats]:
    """Return the average of each pair for its first model, and its variance; NaN where unknown."""
    mean, variance = np.full((2, k, k), np.nan)
    pair = alone.pairs @ np.array([k, 1])
    for code in np.unique(pair):
        rows = pair == code
        if rows.sum() < FEWEST:
            continue
        a, b = divmod(int(code), k)
        own = probability[rows]
        off = (own - own.mean()) / len(own)
        mean[a, b], mean[b, a] = own.mean(), 1 - own.mean()
        variance[a, b] = variance[b, a] = variance_of_sum(off, alone.prompt[rows])
    variance[~np.isfinite(variance)] = np.nan
    mean[np.isnan(variance)] = np.nan
    return mean, variance
