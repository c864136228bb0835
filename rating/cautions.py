"""What a reader of the leaderboard should know, in plain words."""

from collections.abc import Iterator, Sequence

import numpy as np

from rating.clusters import Activity
from rating.comparisons import Comparisons
from rating.sandwich import decided_groups

FEW_POINTS = 10
NAMED_AT_MOST = 5


def on_lone_models(models: Sequence[str], noun: str = "voter") -> str:
    """Name the models that one voter, or one prompt, alone joins to the rest."""
    return (
        f"One {noun} alone joins {named(models)} to the other models: those "
        "votes are treated as independent there, and no rank is claimed."
    )


def on_ranks(data: Comparisons, activity: Activity | None, noun: str = "voter") -> str:
    """Say that the votes, or the voters or prompts behind them, are too few for ranks."""
    if activity is None:
        seen = f"{data.n_votes} votes are"
    elif activity.n_clusters == 1:
        seen = f"One {noun} is"
    else:
        even = f"as good as {activity.effective:.1f} equally busy ones"
        seen = f"{activity.n_clusters} {noun}s, {even}, are"
    return f"{seen} too few to bound the ranks of {data.n_models} models: none is ruled out."


def on_quasi_errors(worst: float) -> str:
    """Say that quasi-standard errors would mislead, and by how much."""
    return f"Quasi-standard errors are left out: they would miss a difference by {worst:.0%}."


def on_ties(data: Comparisons) -> Iterator[str]:
    """Say which models only ties join to the others."""
    group = decided_groups(data)
    apart = np.flatnonzero(group != np.bincount(group).argmax())
    if len(apart) == data.n_models - 1:
        yield "Every vote is a tie: the intervals are what the model implies."
    elif apart.size:
        names = [data.models[i] for i in apart]
        yield (
            f"Only ties join {named(names)} to the other models: "
            "the intervals use the variance that the model implies there."
        )


def few_points(data: Comparisons) -> tuple[str, ...]:
    """Name the models whose rarer outcome, won or lost, is under `FEW_POINTS` points."""
    wins = data.wins()
    rarer = np.minimum(wins.sum(axis=1), wins.sum(axis=0))
    return tuple(data.models[i] for i in np.flatnonzero(rarer < FEW_POINTS))


def on_few_points(data: Comparisons) -> Iterator[str]:
    """Say whose intervals rest on few wins, or few losses."""
    few = few_points(data)
    if few:
        yield (
            f"Fewer than {FEW_POINTS} points won, or lost, by {named(few)} "
            "(a win 1, a tie 1/2): those intervals are rough."
        )


def named(models: Sequence[str]) -> str:
    """List models, the first few of many."""
    rest = len(models) - NAMED_AT_MOST
    shown = ", ".join(models[:NAMED_AT_MOST])
    return f"{shown} and {rest} more" if rest > 0 else shown
