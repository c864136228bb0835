"""What strengths by category, pooled, foresee of votes: a candidate of the referee."""

from collections.abc import Sequence

import numpy as np

from rating.comparisons import Votes
from rating.diagnosis.referee import with_constant_ties
from rating.errors import DataError
from rating.likelihood.ties import TIE
from rating.options import RateOptions
from rating.pooling.boards import pooled_strengths
from rating.pooling.mix import on_new_prompts
from rating.rows import VoteRows
from rating.typing import Floats


def groups_of(rows: VoteRows) -> dict[str, Votes]:
    """Part votes by the role ``by``, as `rating.read_groups` reads them."""
    groups = {}
    for code, name in enumerate(rows.names["by"]):
        own = rows.taken(rows.groups["by"] == code)
        if own.n:
            voter, prompt = own.groups.get("voter"), own.groups.get("prompt")
            groups[name] = Votes(own.comparisons(voter=voter, prompt=prompt))
    return groups


def pooled_forecast(train: VoteRows, test: VoteRows, *, outcomes: Sequence[int]) -> Floats:
    """Foresee votes from strengths by category, with a constant share of ties.

    Fitted to votes for a side, as the referee's ``half`` is, of which this is the pooled form. A
    prompt counts as a new one of its category, whose strengths differ from those of the category
    by as much as prompts do; a category that was not seen has the mean of all, by votes.

    Raises
    ------
    DataError
        If the votes have no categories, or as `rating.pooling.boards.pooled_strengths`.
    NotIdentifiedError
        If a model has won all its votes for a side, or none.
    """
    if "by" not in train.groups:
        raise DataError("The votes have no column that parts them: leave out the pooled model.")
    decisive = train.taken(train.outcome < TIE)
    options = RateOptions(by="group", pool=True, interval="none")
    votes, variance = pooled_strengths(groups_of(decisive), options)
    strengths = variance.best.strengths
    whole = votes.votes @ strengths / votes.votes.sum()
    of = {name: strengths[at] for at, name in enumerate(votes.categories)}
    models = votes.data.models
    table = np.array([train.placed(models, of.get(name, whole)) for name in train.names["by"]])
    code = test.groups["by"]
    gap = table[code, test.a] - table[code, test.b]
    first, _ = on_new_prompts(gap, np.sqrt(2) * variance.best.tau.prompt)
    return with_constant_ties(first, train, outcomes)
