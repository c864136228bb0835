"""Votes of a race, and the lead by them and a judge's verdicts together."""

from collections.abc import Callable

import numpy as np

from judge.studies.alignment import align
from judge.studies.data import judge_of, study_data
from judge.studies.power_tuning import row_scores
from judge.studies.powered_ratings import powered_lead
from judge.studies.rows import Source, read_rows
from rating.rows import VoteRows
from rating.tables.peers import mention
from rating.uncertainty.sequence import Lead


def race_with_judge(
    votes: Source, verdicts: Source, between: tuple[str, str], judge: str | None = None
) -> tuple[VoteRows, Callable[[int], tuple[Lead, float]]]:
    """Read votes, in the order of their source, and what makes a lead of the first of them.

    The lead is that of a gate with verdicts: see `judge.studies.powered_ratings.powered_lead`.

    Raises
    ------
    DataError
        If a source cannot be read.
    """
    cast = read_rows(votes, unread=False)
    aligned = align(cast, read_rows(verdicts, unread=True))
    for note in aligned.warnings:
        mention(note)
    data = study_data(aligned)
    items, people, given = data.items, data.people, judge_of(data, judge).verdicts
    a, b = items.pairs[people.item].T
    rows = VoteRows.scored(items.models, a, b, row_scores(people), people.rater)

    def judged(n: int) -> tuple[Lead, float]:
        powered = powered_lead(items, people.only(np.arange(n)), given, between)
        return powered.lead, powered.judge_weight

    return rows, judged
