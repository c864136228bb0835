import pytest

from rating import ConvergenceError, DataError, NotIdentifiedError, RatingError


@pytest.mark.parametrize("error", [ConvergenceError, DataError, NotIdentifiedError])
def test_every_failure_is_a_rating_error(error: type[Exception]) -> None:
    assert issubclass(error, RatingError)


def test_bad_data_is_also_a_value_error() -> None:
    assert issubclass(DataError, ValueError)


def test_an_unidentified_board_says_which_groups_it_falls_into() -> None:
    assert NotIdentifiedError("no votes between them", (("x",), ("y",))).groups == (("x",), ("y",))
