from rating import Outcome


def test_the_four_outcomes_carry_the_labels_of_the_public_datasets() -> None:
    assert [str(outcome) for outcome in Outcome] == ["model_a", "model_b", "tie", "both_bad"]


def test_swapping_sides_twice_changes_nothing() -> None:
    assert all(outcome.swapped().swapped() is outcome for outcome in Outcome)


def test_the_scores_of_both_sides_sum_to_one() -> None:
    assert all(outcome.score_a + outcome.swapped().score_a == 1 for outcome in Outcome)
