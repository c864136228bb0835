import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from scipy.sparse.csgraph import connected_components

from rating import Comparisons, connectivity
from rating.identification import strong_groups
from tests.rating.builders import votes, wins


def test_a_cycle_of_wins_is_identified() -> None:
    groups = connectivity(wins([("x", "y", 1), ("y", "z", 1), ("z", "x", 1)]))
    assert groups.is_identified
    assert groups.strong == (("x", "y", "z"),)
    assert "every other" in groups.describe()


def test_a_tie_joins_both_ways() -> None:
    assert connectivity(votes([("x", "y", "tie"), ("y", "z", "both_bad")])).is_identified


def test_no_votes_are_described_as_such() -> None:
    groups = connectivity(votes([]))
    assert not groups.is_identified
    assert groups.connected == groups.strong == ()
    assert "no votes" in groups.describe()


def test_disconnected_groups_are_named() -> None:
    groups = connectivity(votes([("x", "y", "tie"), ("v", "w", "tie"), ("w", "u", "tie")]))
    assert groups.connected == (("u", "v", "w"), ("x", "y"))
    assert groups.describe() == (
        "The models fall into 2 groups with no votes between them: u, v, w; x, y. Collect votes "
        "across the groups."
    )


def test_an_undefeated_model_is_named_as_unbeaten_and_the_rest_as_winless_against_it() -> None:
    groups = connectivity(wins([("x", "y", 1), ("y", "x", 1), ("top", "x", 3)]))
    assert (groups.unbeaten, groups.winless) == ((("top",),), (("x", "y"),))
    assert groups.describe().startswith(
        "The other models never won or tied against: top. Never won or tied against the others: "
        "x, y. Their strengths have no finite value"
    )


def test_a_group_that_always_wins_is_not_identified() -> None:
    groups = connectivity(votes([("x", "y", "tie"), ("v", "w", "tie"), ("x", "v", "model_a")]))
    assert len(groups.connected) == 1
    assert (groups.unbeaten, groups.winless) == ((("x", "y"),), (("v", "w"),))


def test_a_vote_of_weight_zero_joins_nothing() -> None:
    data = Comparisons.from_arrays(["x", "y"], ["y", "z"], ["tie", "tie"], weight=[1, 0])
    assert connectivity(data).connected == (("x", "y"), ("z",))
    nothing = Comparisons.from_arrays(["x"], ["y"], ["tie"], weight=[0])
    assert connectivity(nothing).describe().startswith("All weights of the votes are zero: ")


@given(st.integers(1, 12), st.integers(0, 40), st.integers(0, 2**32 - 1))
def test_groups_agree_with_the_graph_algorithm_of_scipy(n: int, edges: int, seed: int) -> None:
    graph = np.zeros((n, n), dtype=bool)
    rng = np.random.default_rng(seed)
    graph[rng.integers(n, size=edges), rng.integers(n, size=edges)] = True
    _, expected = connected_components(graph, directed=True, connection="strong")
    ours = strong_groups(graph)
    assert ((ours[:, None] == ours) == (expected[:, None] == expected)).all()
