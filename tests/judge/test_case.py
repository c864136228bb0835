"""What a judge sees."""

import dataclasses

import pytest
from hypothesis import given
from hypothesis import strategies as st

from judge.case import Case, Message, Order
from rating.errors import DataError

TEXT = st.text(st.characters(), max_size=20)  # lone surrogates included
CASES = st.builds(lambda p, a, b: Case((Message("user", p),), a, b), TEXT, TEXT, TEXT)


def test_a_case_has_no_field_in_which_a_name_could_stand() -> None:
    assert {f.name for f in dataclasses.fields(Case)} == {
        "prompt", "response_a", "response_b", "earlier_a", "earlier_b", "reference"
    }  # fmt: skip
    assert {f.name for f in dataclasses.fields(Message)} == {"role", "content", "images"}


@given(CASES)
def test_a_case_swapped_twice_is_the_case(case: Case) -> None:
    assert (case.swapped().swapped(), case.shown(Order.AB)) == (case, case)
    assert case.shown(Order.BA) == case.swapped()


@given(CASES, CASES)
def test_cases_have_one_id_exactly_if_they_have_one_content(one: Case, other: Case) -> None:
    assert (one.id == other.id) == (one == other)


@given(CASES)
def test_a_swapped_case_keeps_its_prompt_id(case: Case) -> None:
    assert case.swapped().prompt_id == case.prompt_id


def test_no_response_is_not_an_empty_response() -> None:
    prompt = (Message("user", "Hi"),)
    assert Case(prompt, "x").id != Case(prompt, "x", "").id


def test_a_text_that_moves_over_the_border_of_a_field_makes_another_case() -> None:
    prompt = (Message("user", "Hi"),)
    assert Case(prompt, "ab", "c").id != Case(prompt, "a", "bc").id


def test_a_case_with_one_response_cannot_be_swapped() -> None:
    with pytest.raises(DataError, match="one response"):
        Case((Message("user", "Hi"),), "Hello").swapped()


@pytest.mark.parametrize(
    ("prompt", "message"),
    [
        ((), "not with nothing"),
        ((Message("user", "Hi"), Message("assistant", "Hello")), "not with assistant"),
        ((Message("judge", "Hi"),), "'judge'"),  # type: ignore[arg-type]
    ],
)
def test_a_prompt_that_does_not_end_with_the_user_is_refused(
    prompt: tuple[Message, ...], message: str
) -> None:
    with pytest.raises(DataError, match=message):
        Case(prompt, "x")
