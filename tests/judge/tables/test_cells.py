"""One reader for every cell that holds what was said."""

import json
from typing import Any

import numpy as np
import pytest

from judge.case import Message
from judge.tables.cells import exchange, plain, turns_of
from rating.errors import DataError

TEXT = {"type": "text", "text": "Why?"}
IMAGE = {"type": "image_url", "image_url": {"url": "https://example.org/a.png"}}


def talk(*pairs: tuple[Any, str]) -> list[Message]:
    return [Message(role, content) for role, content in pairs]


@pytest.mark.parametrize(
    "cell",
    [
        "Why?",
        ["Why?"],
        [TEXT],
        [[TEXT]],
        [{"role": "user", "content": "Why?"}],
        [{"role": "human", "content": [TEXT]}],
        [{"content": "Why?"}],
        np.array([{"role": "user", "content": np.array([TEXT])}]),
        json.dumps([TEXT]),
        json.dumps([{"role": "user", "content": [TEXT]}], indent=1),
        Message("user", "Why?"),
    ],
)
def test_one_turn_is_the_same_however_it_is_written(cell: object) -> None:
    assert turns_of(cell) == talk(("user", "Why?"))


@pytest.mark.parametrize("cell", ['["Why?"]', "[1, 2]", "[]", '[{"a": 1}]', "[Why?", '{"x": 1}'])
def test_a_text_that_may_be_meant_as_it_is_stays(cell: str) -> None:
    assert turns_of(cell) == talk(("user", cell))


def test_json_of_a_list_of_texts_is_read_where_the_layout_has_such() -> None:
    assert turns_of('["Why?", null]', lists=True) == talk(("user", "Why?"), ("user", ""))
    assert turns_of("Why?", lists=True) == talk(("user", "Why?"))


def test_parts_are_joined_and_images_are_kept_beside_them() -> None:
    (turn,) = turns_of([{"role": "user", "content": [TEXT, IMAGE, TEXT]}])
    assert turn == Message("user", "Why?\n\nWhy?", ("https://example.org/a.png",))
    (turn,) = turns_of([TEXT, IMAGE], images=False)
    assert turn == Message("user", "Why?")


@pytest.mark.parametrize(
    ("cell", "reason"),
    [
        (4, "neither text nor image"),
        (["Why?", 4], "neither text nor image"),
        ([{"type": "audio", "data": "x"}], "neither text nor image"),
        ([{"type": "image", "image": "images/a.png"}], "neither a data: URL nor an address"),
        ([{"type": "image", "image": {"bytes": "x"}}], "neither a data: URL nor an address"),
        ([{"role": "boss", "content": "Go."}], "role 'boss'"),
    ],
)
def test_anything_else_is_a_reason(cell: object, reason: str) -> None:
    with pytest.raises(DataError, match=reason):
        turns_of(cell)


def test_two_conversations_have_one_user_and_two_sides() -> None:
    system, asked = ("system", "Be short."), ("user", "Why?")
    a = talk(system, asked, ("assistant", "So."), asked, ("assistant", "Thus."))
    b = talk(system, asked, ("assistant", "No."), asked)
    assert exchange(a, b) == (talk(system, asked, asked), ["So.", "Thus."], ["No.", ""])
    with pytest.raises(DataError, match="user's turns differ"):
        exchange(a, a[1:])
    for torn in ([], a[:1], a[1:] + a[-1:], talk(("assistant", "So."), asked)):
        with pytest.raises(DataError, match="do not take turns"):
            exchange(torn, torn)


def test_what_parquet_masks_is_nothing() -> None:
    masked: Any = np.ma.array(["Why?", "x"], mask=[False, True], dtype=object)
    assert plain({"said": masked}) == {"said": ["Why?", None]}
