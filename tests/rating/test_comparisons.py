import time
from collections.abc import Sequence

import numpy as np
import pytest

from rating import Comparisons, DataError, Outcome
from tests.rating.builders import random_votes, votes

A, B = ["x", "x"], ["y", "y"]
WON = [Outcome.A, Outcome.A]


def test_equal_votes_share_a_cell_and_sides_are_kept_apart() -> None:
    data = votes([("x", "y", "model_a")] * 3 + [("y", "x", "model_b")])
    assert data.models == ("x", "y")
    assert data.pairs.tolist() == [[0, 1], [1, 0]]
    assert data.votes.tolist() == [3, 1]
    assert data.score_a.tolist() == [1.0, 0.0]


def test_voters_get_cells_of_their_own() -> None:
    data = votes([("x", "y", "tie", "ann")] * 2 + [("x", "y", "tie", "bob")])
    assert data.votes.tolist() == [2, 1]
    assert data.voter is not None
    assert data.voter.tolist() == [0, 1]
    assert data.n_voters == 2


def test_every_vote_is_counted_once_in_the_scores() -> None:
    data = votes([("x", "y", "model_a"), ("y", "x", "tie"), ("y", "x", "both_bad")])
    assert data.wins().tolist() == [[0, 2], [1, 0]]
    assert data.votes_per_model().tolist() == [3, 3]


def test_a_model_seen_only_on_side_b_is_a_model() -> None:
    assert votes([("x", "y", "model_a"), ("x", "z", "model_b")]).models == ("x", "y", "z")


def test_battles_of_a_model_against_itself_are_set_aside_and_counted() -> None:
    data = votes([("x", "x", "tie"), ("z", "z", "model_a"), ("x", "y", "model_a")])
    assert data.n_self == 2
    assert data.n_votes == 1
    assert data.models == ("x", "y")


def test_outcomes_may_be_arrays_of_strings_or_of_members() -> None:
    as_text = Comparisons.from_arrays(np.array(A), np.array(B), np.array(["model_a", "tie"]))
    members = Comparisons.from_arrays(A, B, [Outcome.A, Outcome.TIE])
    assert as_text.wins().tolist() == members.wins().tolist()


def test_no_votes_at_all_are_a_valid_empty_value() -> None:
    data = Comparisons.from_arrays([], [], [], voter=[], weight=[])
    assert (data.n_models, data.n_votes, data.n_voters) == (0, 0, 0)


@pytest.mark.parametrize("label", ["Model_A", "", None, float("nan"), "a", 0, "skip"])
def test_an_unknown_outcome_is_never_half_a_win(label: object) -> None:
    with pytest.raises(DataError, match="Unknown outcome") as raised:
        Comparisons.from_arrays(A, B, ["model_a", label])  # type: ignore[list-item]
    assert repr(label) in str(raised.value)


@pytest.mark.parametrize("name", [None, float("nan"), "", "  ", 7])
def test_a_missing_model_name_raises(name: object) -> None:
    for column in (["x", name], np.array(["x", name], dtype=object)):
        with pytest.raises(DataError, match="missing or blank"):
            Comparisons.from_arrays(column, B, WON)  # type: ignore[arg-type]


def test_a_masked_name_is_a_missing_name() -> None:
    masked = np.ma.array(["x", "x"], mask=[False, True])
    with pytest.raises(DataError, match="missing or blank"):
        Comparisons.from_arrays(masked, B, WON)


@pytest.mark.parametrize("twin", ["m0 ", "M0", " m0", "\tM0"])
def test_names_that_differ_only_in_case_or_spaces_raise_and_are_listed(twin: str) -> None:
    with pytest.raises(DataError) as raised:
        Comparisons.from_arrays(["m0", twin], B, WON)
    assert repr(twin) in str(raised.value)
    assert "'m0'" in str(raised.value)


def test_columns_of_unequal_length_raise() -> None:
    with pytest.raises(DataError, match="model_b 1"):
        Comparisons.from_arrays(A, ["y"], WON)
    with pytest.raises(DataError, match="voter 1"):
        Comparisons.from_arrays(A, B, WON, voter=["ann"])
    with pytest.raises(DataError, match="weight 3"):
        Comparisons.from_arrays(A, B, WON, weight=[1, 1, 1])


@pytest.mark.parametrize("weight", [-1.0, float("nan"), float("inf")])
def test_a_weight_must_be_finite_and_not_negative(weight: float) -> None:
    with pytest.raises(DataError, match="negative or not finite"):
        Comparisons.from_arrays(A, B, WON, weight=[1.0, weight])


@pytest.mark.parametrize("voter", [None, "", float("nan")])
def test_a_missing_voter_among_known_ones_raises(voter: object) -> None:
    with pytest.raises(DataError, match="Voter"):
        Comparisons.from_arrays(A, B, WON, voter=["ann", voter])  # type: ignore[arg-type]


def test_weights_are_summed_beside_the_count_of_votes() -> None:
    data = Comparisons.from_arrays(A, B, WON, weight=[2.0, 0.5])
    assert data.votes.tolist() == [2]
    assert data.weight.tolist() == [2.5]
    assert data.weight_sq.tolist() == [4.25]


def test_the_order_of_the_votes_leaves_no_trace(rng: np.random.Generator) -> None:
    rows = random_votes(rng)
    weight = rng.random(len(rows))
    order = rng.permutation(len(rows))

    def build(rows: Sequence[Sequence[str]], weight: Sequence[float]) -> Comparisons:
        a, b, outcome, voter = zip(*rows, strict=True)
        return Comparisons.from_arrays(a, b, outcome, voter=voter, weight=weight)

    one = build(rows, weight.tolist())
    two = build([rows[i] for i in order], weight[order].tolist())
    assert one.models == two.models
    assert (one.pairs == two.pairs).all()
    assert (one.weight == two.weight).all()  # to the last bit
    assert (one.weight_sq == two.weight_sq).all()


def test_two_hundred_thousand_votes_are_counted_in_well_under_a_second(
    rng: np.random.Generator,
) -> None:
    n = 200_000
    names = np.array([f"model-{i}" for i in range(100)])
    a = rng.integers(100, size=n)
    b = (a + rng.integers(1, 100, size=n)) % 100
    outcome = rng.choice(list(Outcome), size=n)
    begun = time.perf_counter()
    data = Comparisons.from_arrays(names[a], names[b], outcome, voter=rng.integers(9000, size=n))
    assert data.n_votes == n
    assert time.perf_counter() - begun < 2  # about .3 s here; slack for a busy machine
