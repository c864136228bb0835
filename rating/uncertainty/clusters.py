"""How evenly votes are spread over voters, or over prompts."""

from dataclasses import dataclass
from typing import Literal

import numpy as np

from rating.comparisons import Comparisons
from rating.counting import dense
from rating.errors import DataError
from rating.typing import Ints

Cluster = Literal["voter", "prompt"]
KINDS: tuple[Cluster, Cluster] = ("voter", "prompt")


@dataclass(frozen=True, slots=True)
class Activity:
    """How evenly the votes are spread over clusters.

    Attributes
    ----------
    n_clusters : int
        Voters, or prompts, with a vote of positive weight.
    effective : float
        ``U / (1 + CV^2)`` of the votes per cluster, which is
        ``(sum n)^2 / sum n^2``: as many as there are when all are equally
        busy, one when a single voter cast nearly everything.
    top_share : float
        Share of all votes in the largest cluster.
    """

    n_clusters: int
    effective: float
    top_share: float


@dataclass(frozen=True, slots=True, eq=False)
class Grouping:
    """The cluster of each cell.

    Attributes
    ----------
    index : ndarray of shape (n_cells,), int64
    size : int
        Number of clusters.
    """

    index: Ints
    size: int


def grouping(data: Comparisons, cluster: Cluster) -> Grouping:
    """Return the voter or the prompt of each cell.

    Raises
    ------
    DataError
        If they are not known.
    """
    if cluster == "voter":
        index, size, plural = data.voter, data.n_voters, "voters"
    else:
        index, size, plural = data.prompt, data.n_prompts, "prompts"
    if index is None:
        raise DataError(
            f"These comparisons carry no {plural}: pass {cluster}= when building them."
        )
    return Grouping(index.astype(np.int64, copy=False), size)


def intersection(data: Comparisons) -> Grouping:
    """Return the distinct (voter, prompt) of each cell."""
    voters, prompts = grouping(data, "voter"), grouping(data, "prompt")
    index, size = dense(voters.index * prompts.size + prompts.index)
    return Grouping(index.astype(np.int64, copy=False), size)


def activity(data: Comparisons, cluster: Cluster = "voter") -> Activity:
    """Measure how evenly the votes (by weight) are spread over voters, or prompts.

    Raises
    ------
    DataError
        If they are not known, or there are no votes.

    Examples
    --------
    >>> votes = Comparisons.from_arrays(
    ...     ["x"] * 5, ["y"] * 5, ["model_a"] * 5, voter=["ann", "ann", "ann", "bob", "cy"]
    ... )
    >>> round(activity(votes).effective, 4)  # 25 / (9 + 1 + 1)
    2.2727
    """
    return activity_of(data, grouping(data, cluster))


def activity_of(data: Comparisons, groups: Grouping) -> Activity:
    """Measure how evenly the votes (by weight) are spread over any clusters."""
    weight = np.bincount(groups.index, data.weight, groups.size)
    if not weight.any():
        raise DataError("There are no votes to count clusters by.")
    return Activity(
        n_clusters=int((weight > 0).sum()),
        effective=float(weight.sum() ** 2 / (weight**2).sum()),
        top_share=float(weight.max() / weight.sum()),
    )


def checked_activity(data: Comparisons, groups: Grouping) -> Activity:
    """Return the activity of the clusters; raises `DataError` unless two of them voted."""
    found = activity_of(data, groups)
    if found.n_clusters < 2:
        raise DataError("Clustered errors need two voters (or prompts) at least; one voted.")
    return found
