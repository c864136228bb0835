"""What a reader of the leaderboard should know, in plain words."""

from collections.abc import Iterator, Sequence

import numpy as np

from rating.comparisons import Comparisons
from rating.uncertainty.clusters import Activity
from rating.uncertainty.contrasts import WELL_FOUNDED, Inference
from rating.uncertainty.ranks import is_small
from rating.uncertainty.sandwich import decided_groups

FEW_POINTS = 10
FEW_PROMPTS = 20
NAMED_AT_MOST = 5


def seen_of(activity: Activity, noun: str) -> str:
    """Say how many voters or prompts there are.

    >>> seen_of(Activity(8, 7.2, 0.3), "voter"), seen_of(Activity(8, 8.0, 0.125), "voter")
    ('8 voters, as good as 7.2 equally busy ones,', '8 voters')
    """
    if activity.n_clusters == 1:
        return f"One {noun}"
    if activity.effective > 0.95 * activity.n_clusters:
        return f"{activity.n_clusters} {noun}s"
    even = f"as good as {activity.effective:.1f} equally busy ones"
    return f"{activity.n_clusters} {noun}s, {even},"


def on_no_ranks(seen: str, n_models: int) -> str:
    """Say that no rank is claimed, for the votes, or those behind them, are too few."""
    verb = "is" if seen.startswith("One ") else "are"
    return f"{seen} {verb} too few to bound the ranks of {n_models} models: none is ruled out."


def on_clusters_behind(inference: Inference) -> Iterator[str]:
    """Say what rests on few voters, or prompts, and whether votes on one prompt are alike."""
    models = inference.fit.models
    few = [
        seen_of(kind.activity, kind.cluster)
        for kind in inference.shared
        if is_small(inference, kind)
    ]
    if few:
        yield (
            f"{' and '.join(few)} are few for {len(models)} models: a rank is ruled out only "
            "where a pair of models by itself leaves next to no doubt."
        )
    newcomers = [models[i] for i in np.flatnonzero(~inference.founded)]
    if newcomers:
        noun = " or ".join(f"{kind.cluster}s" for kind in inference.shared)
        yield (
            f"Fewer than {WELL_FOUNDED} effective {noun} stand behind {named(newcomers)}: the "
            "intervals there allow for tastes as they differ on other models, and the average is "
            "that of the others."
        )
    seen = inference.prompt_effect
    if seen is not None and seen.value > 1 + 2 * seen.error:
        yield (
            f"Votes on one prompt are alike: that makes the variance {seen.value:.1f} times as "
            "large, which the intervals allow for."
        )
    if inference.between is not None and inference.data.n_prompts < FEW_PROMPTS:
        yield (
            f"{inference.data.n_prompts} prompts say little of others like them: the intervals "
            "are rough."
        )


def on_these_voters(voters: Activity) -> str:
    """Say whom claims for these voters speak for."""
    return (
        f"Intervals and ranks are for these {voters.n_clusters} voters alone: how they would "
        "rate with endless votes, each with the same share of them. Of other people they say "
        "nothing."
    )


def on_no_interval(models: Sequence[str]) -> str:
    """Name the models whose ratings rest on so few voters that no interval can be given."""
    return (
        f"No interval is given for {named(models)}: next to nothing but one voter, or one "
        "prompt, stands behind it."
    )


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
