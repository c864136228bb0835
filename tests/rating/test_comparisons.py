from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from rating import Comparisons, DataError, Outcome
from tests.rating.builders import random_votes, votes

A, B = ["x", "x"], ["y", "y"]
WON = [Outcome.A, Outcome.A]


def test_equal_votes_share_a_cell_and_sides_are_kept_apart() -> None:
    data = votes([("x", "y", "model_a")] * 3 + [("y", "x", "model_b")])
    assert (data.models, data.pairs.tolist()) == (("x", "y"), [[0, 1], [1, 0]])
    assert (data.votes.tolist(), data.score_a.tolist()) == ([3, 1], [1.0, 0.0])


def test_voters_get_cells_of_their_own() -> None:
    data = votes([("x", "y", "tie", "ann")] * 2 + [("x", "y", "tie", "bob")])
    assert data.votes.tolist() == [2, 1]
    assert data.voter is not None
    assert (data.voter.tolist(), data.n_voters) == ([0, 1], 2)


def test_every_vote_is_counted_once_in_the_scores() -> None:
    data = votes([("x", "y", "model_a"), ("y", "x", "tie"), ("y", "x", "both_bad")])
    assert (data.wins().tolist(), data.votes_per_model().tolist()) == ([[0, 2], [1, 0]], [3, 3])


def test_a_model_seen_only_on_side_b_is_a_model() -> None:
    assert votes([("x", "y", "model_a"), ("x", "z", "model_b")]).models == ("x", "y", "z")


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
    data = Comparisons.from_arrays(A, B, WON, weight=[2.0, 1.5])
    assert (data.votes.tolist(), data.weight.tolist()) == ([2], [3.5])
    assert data.weight_sq.tolist() == [6.25]
    assert data.votes_per_model().tolist() == [2, 2]


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


# Rows of codes


def counted(**columns: Any) -> Comparisons:
    """Two votes of x over y and one of z over itself, by codes."""
    base = {"model_a": [1, 1, 0], "model_b": [2, 2, 0], "outcome": [0, 0, 2]}
    names = columns.pop("feature_names", ())
    arrays: dict[str, Any] = {name: np.array(x) for name, x in (base | columns).items()}
    return Comparisons.from_codes(["z", "x", "y"], **arrays, feature_names=names)


def test_codes_are_counted_like_names(rng: np.random.Generator) -> None:
    rows = random_votes(rng)
    names = ["m4", "m2", "m0", "m1", "unused", "m3"]  # any order, and one without a vote
    a, b = (np.array([names.index(row[side]) for row in rows], np.int16) for side in (0, 1))
    outcome = np.array([list(Outcome).index(Outcome(row[2])) for row in rows], np.uint8)
    voter = np.array([1000 + int(row[3][1:]) for row in rows])
    ours = Comparisons.from_codes(names, a, b, outcome)
    theirs = votes([row[:3] for row in rows])
    assert ours.models == theirs.models
    assert (ours.table() == theirs.table()).all()
    by_voter = Comparisons.from_codes(names, a, b, outcome, voter=voter)
    assert by_voter.n_voters == len({row[3] for row in rows})
    assert (by_voter.merged().table() == ours.table()).all()
    assert len(by_voter.votes) == len({tuple(row) for row in rows})


def test_self_battles_and_models_without_others_are_dropped() -> None:
    data = counted()
    assert (data.models, data.n_self, data.votes.tolist()) == (("x", "y"), 1, [2])


@pytest.mark.parametrize("known", [{}, {"voter": [0, 1, 1], "prompt": [5, 5, 6]}])
def test_rows_may_stand_for_many_votes(known: dict[str, list[int]]) -> None:
    data = counted(votes=[3, 0, 4], **known)
    assert (data.n_votes, data.n_self, data.wins().tolist()) == (3, 4, [[0, 3], [0, 0]])
    weighted = counted(votes=[4, 1, 1], weight=[2.0, 3.0, 1.0], **known)
    assert weighted.weight.sum() == 5
    assert weighted.weight_sq.sum() == 4 * 0.5**2 + 3**2
    exact = counted(votes=[4, 1, 1], weight=[2.0, 3, 1], weight_sq=[1.5, 9, 1], **known)
    assert exact.weight_sq.sum() == 10.5


def test_voters_and_prompts_are_numbered_without_gaps() -> None:
    data = counted(voter=[7, 10**12, 3], prompt=[9, 9, 4])
    assert data.voter is not None
    assert data.prompt is not None
    assert (data.voter.tolist(), data.n_voters) == ([0, 1], 2)
    assert (data.prompt.tolist(), data.n_prompts) == ([0, 0], 1)
    part = data.subset(slice(1))
    assert [len(codes) for codes in (part.voter, part.prompt) if codes is not None] == [1, 1]


def test_huge_codes_do_not_overflow(rng: np.random.Generator) -> None:
    big = rng.integers(2**61, 2**62, size=50)
    a = rng.integers(3, size=50)
    data = Comparisons.from_codes("xyz", a, (a + 1) % 3, a * 0, voter=big[a], prompt=big[::-1][a])
    assert data.n_voters == data.n_prompts == len(np.unique(a))
    assert data.n_votes == 50


def test_rows_with_features_stay_apart_in_their_order() -> None:
    features = np.array([[2.0, 0.5], [1.0, 0.25], [9.0, 9.0]])
    data = counted(features=features, feature_names=["length", "bold"])
    assert data.features is not None
    assert (data.features.tolist(), data.votes.tolist()) == ([[2.0, 0.5], [1.0, 0.25]], [1, 1])
    assert data.feature_names == ("length", "bold")
    assert data.merged() is data


BAD: dict[str, tuple[dict[str, Any], str]] = {
    "code of a model": ({"model_a": [1, 3, 0]}, "model_a holds the code 3; codes are from 0 to 2"),
    "negative": ({"model_b": [2, -1, 0]}, "model_b holds the code -1"),
    "outcome": ({"outcome": [0, 4, 2]}, "outcome holds the code 4"),
    "voter": ({"voter": [0, -2, 0]}, "voter holds the code -2; codes are 0 or more"),
    "votes": ({"votes": [1, -3, 1]}, "votes holds the code -3"),
    "fractions": ({"prompt": [0.5, 1, 1]}, "prompt must hold integer codes, not float64"),
    "length": ({"voter": [0, 1]}, "voter 2"),
    "weight": ({"weight": [1, float("nan"), 1]}, "Weight nan is negative or not finite"),
    "weight_sq alone": ({"weight_sq": [1, 1, 1]}, "without weight"),
    "feature": (
        {"features": [[1], [float("inf")], [1]], "feature_names": ["length"]},
        "Feature 'length' is inf in row 1",
    ),
    "feature names": ({"features": [[1], [2], [3]]}, "need one column for each of the names"),
    "twice the same": (
        {"features": [[1, 1]] * 3, "feature_names": ["p", "p"]},
        "Feature names must differ",
    ),
    "too few features": ({"features": [[1], [2]], "feature_names": ["p"]}, "features 2"),
    "two dimensions": ({"outcome": [[0], [0], [0]]}, "one dimension"),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_codes_are_quoted(case: str) -> None:
    columns, message = BAD[case]
    with pytest.raises(DataError, match=message):
        counted(**columns)


def test_names_of_codes_are_checked() -> None:
    zero = np.array([0])
    for names in (["x", "X"], ["x", "x"], ["x", " "]):
        with pytest.raises(DataError):
            Comparisons.from_codes(names, zero, zero + 1, zero)


@pytest.mark.parametrize("kind", [np.int8, np.uint8, np.int16, np.int32, np.uint64])
def test_codes_of_every_width_count_the_same(rng: np.random.Generator, kind: type) -> None:
    """Also where the code of a cell needs more bits than the codes of its models."""
    n, k = 30_000, 120
    a = rng.integers(k, size=n)
    b = (a + rng.integers(1, k, size=n)) % k
    outcome = rng.integers(4, size=n)
    data = Comparisons.from_codes(
        [f"m{i:03}" for i in range(k)], a.astype(kind), b.astype(kind), outcome.astype(kind)
    )
    expected = np.zeros((k, k, 4))
    np.add.at(expected, (a, b, outcome), 1)
    assert (data.table() == expected).all()


def test_narrow_codes_say_the_same_as_wide_ones() -> None:
    """Of 300 models, whose pairs do not fit in the codes' own type."""
    rng = np.random.default_rng(4)
    names = [f"m{i:03d}" for i in range(300)]
    a, b = rng.integers(300, size=(2, 5000))
    outcome, voter = rng.integers(4, size=5000), rng.integers(120, size=5000)
    wide = Comparisons.from_codes(names, a, b, outcome, voter=voter)
    narrow = Comparisons.from_codes(
        names,
        a.astype(np.int16),
        b.astype(np.int16),
        outcome.astype(np.int8),
        voter=voter.astype(np.int8),
    )
    again = Comparisons.from_codes(  # cells in order are taken as they are
        narrow.models,
        narrow.pairs[:, 0].astype(np.int16),
        narrow.pairs[:, 1].astype(np.int16),
        narrow.outcome.astype(np.int8),
        votes=narrow.votes.astype(np.int8),
        voter=narrow.voter,
    )
    for data in (narrow, again):
        assert data.pairs.tolist() == wide.pairs.tolist()
        assert data.outcome.tolist() == wide.outcome.tolist()
        assert data.votes.tolist() == wide.votes.tolist()
        assert data.wins().tolist() == wide.wins().tolist()
        assert data.merged().votes.tolist() == wide.merged().votes.tolist()
        assert data.voter is not None
        assert wide.voter is not None
        assert data.voter.tolist() == wide.voter.tolist()
