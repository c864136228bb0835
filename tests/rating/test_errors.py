import pytest

from rating import ConvergenceError, DataError, NotIdentifiedError, RatingError
from rating.sentences import concerning


@pytest.mark.parametrize("error", [ConvergenceError, DataError, NotIdentifiedError])
def test_every_failure_is_a_rating_error(error: type[Exception]) -> None:
    assert issubclass(error, RatingError)


def test_bad_data_is_also_a_value_error() -> None:
    assert issubclass(DataError, ValueError)


def test_an_unidentified_board_says_which_groups_it_falls_into() -> None:
    assert NotIdentifiedError("no votes between them", (("x",), ("y",))).groups == (("x",), ("y",))


def test_a_text_stands_once_behind_the_first_three_names_that_it_concerns() -> None:
    texts = {name: ["Few."] for name in "abcd"} | {"e": ["Late.", "Late."]}
    assert concerning(texts, of_all=False) == ["e: Late.", "a, b, c and 1 more: Few."]
    assert concerning({"a": ["Few."], "b": ["Few."]}, of_all=True) == ["a, b: Few."]
    assert concerning({"a": ["Few."]}, of_all=True) == ["Few."]
