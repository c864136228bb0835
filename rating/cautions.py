"""What a reader of the leaderboard should know, in plain words."""

from collections.abc import Iterator, Sequence

import numpy as np

from rating.comparisons import Comparisons
from rating.covariance import decided_groups
from rating.jackknife import VoterActivity

FEW_POINTS = 10
NAMED_AT_MOST = 5


def cautions(
    data: Comparisons,
    activity: VoterActivity | None,
    *,
    clustered: bool,
    ranks_claimed: bool,
    single_voter_models: Sequence[str],
) -> tuple[str, ...]:
    """List the reasons to read these standings with care.

    Parameters
    ----------
    activity : VoterActivity or None
        None when voters are not known.
    clustered : bool
        Whether the intervals leave out one voter at a time.
    """
    found = [*_on_dependence(activity, clustered)]
    if not ranks_claimed:
        found += [_on_ranks(data, activity)]
    if single_voter_models:
        found += [
            f"One voter alone joins {_named(single_voter_models)} to the other models: those "
            "votes are treated as independent there, and no rank is claimed."
        ]
    return (*found, *_on_ties(data), *_on_few_votes(data))


def _on_dependence(activity: VoterActivity | None, clustered: bool) -> Iterator[str]:
    if activity is None:
        yield (
            "Voters are not known: the intervals treat votes as independent, "
            "and are too narrow where people voted often."
        )
    elif not clustered:
        yield (
            f"One voter cast {activity.top_share:.0%} of the votes: the intervals treat votes "
            "as independent, and speak for that voter alone."
        )


def _on_ranks(data: Comparisons, activity: VoterActivity | None) -> str:
    if activity is None:
        seen = f"{data.n_votes} votes are"
    elif activity.n_voters == 1:
        seen = "One voter is"
    else:
        even = f"as good as {activity.effective:.1f} equally busy ones"
        seen = f"{activity.n_voters} voters, {even}, are"
    return f"{seen} too few to bound the ranks of {data.n_models} models: none is ruled out."


def _on_ties(data: Comparisons) -> Iterator[str]:
    group = decided_groups(data)
    apart = np.flatnonzero(group != np.bincount(group).argmax())
    if len(apart) == data.n_models - 1:
        yield "Every vote is a tie: the intervals are what the model implies."
    elif apart.size:
        names = [data.models[i] for i in apart]
        yield (
            f"Only ties join {_named(names)} to the other models: "
            "the intervals use the variance that the model implies there."
        )


def _on_few_votes(data: Comparisons) -> Iterator[str]:
    wins = data.wins()
    rarer = np.minimum(wins.sum(axis=1), wins.sum(axis=0))
    few = [data.models[i] for i in np.flatnonzero(rarer < FEW_POINTS)]
    if few:
        yield (
            f"Fewer than {FEW_POINTS} points won, or lost, by {_named(few)} "
            "(a win 1, a tie 1/2): those intervals are rough."
        )


def _named(models: Sequence[str]) -> str:
    rest = len(models) - NAMED_AT_MOST
    shown = ", ".join(models[:NAMED_AT_MOST])
    return f"{shown} and {rest} more" if rest > 0 else shown
