"""One reader for every cell that holds what was said, and one for images."""

import base64
import json
import shutil
import struct
import zlib
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from judge.calls import Options, Profile, Questions, Terms, key_of
from judge.case import Case, Message, Order
from judge.methods import published
from judge.tables.annotations import MOST_BYTES, exchange, plain, read_image, style_of, turns_of
from judge.tables.cases import on_disk, read_cases
from rating.errors import DataError
from rating.tables.files import Files
from tests.rating.tables import peer_rows

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
        ([{"type": "image", "image": "http://x.org/a.png"}], "nor an address by https"),
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


def test_of_markdown_headings_items_bold_words_and_whole_blocks_of_code_are_counted() -> None:
    text = "### So\n```\nx = 1\n```\n1. **one**\n- two, **three**\n```\nopen"
    counts = {"length": len(text), "code": 2, "headers": 1, "lists": 2, "bold": 2}
    assert style_of(text) == counts


def test_what_parquet_masks_is_nothing() -> None:
    masked: Any = np.ma.array(["Why?", "x"], mask=[False, True], dtype=object)
    assert plain({"said": masked}) == {"said": ["Why?", None]}


def png(shade: int = 0) -> bytes:
    """Write a PNG of one grey pixel."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        return (
            struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
        )

    head = chunk(b"IHDR", struct.pack(">IIBBBBB", 1, 1, 8, 0, 0, 0, 0))
    return (
        b"\x89PNG\r\n\x1a\n"
        + head
        + chunk(b"IDAT", zlib.compress(bytes([0, shade])))
        + chunk(b"IEND", b"")
    )


def url(data: bytes, kind: str = "image/png") -> str:
    return f"data:{kind};base64,{base64.b64encode(data).decode()}"


def test_a_file_and_its_data_url_are_one_image_and_an_address_stands_as_it_is(
    tmp_path: Path,
) -> None:
    (tmp_path / "sign.png").write_bytes(png())
    assert read_image("sign.png", tmp_path) == read_image(url(png()), None) == url(png())
    assert read_image("https://example.org/a.png", None) == "https://example.org/a.png"
    kinds = {"jpeg": b"\xff\xd8\xff", "gif": b"GIF89a", "webp": b"RIFF\0\0\0\0WEBP"}
    for kind, data in kinds.items():
        assert read_image(url(data), None) == url(data, f"image/{kind}")
    wrong_kind = read_image(url(png(), "text/html"), None)
    assert wrong_kind == url(png()), "what it is its first bytes say, not who wrote the file"


@pytest.mark.parametrize(
    ("value", "part"),
    [
        ("http://example.org/a.png", "by https"),
        ("file:///etc/passwd", "by https"),
        ("https://example.org/a b.png", "one word"),
        ("../secret.png", "outside of the folder"),
        ("/etc/hostname", "outside of the folder"),
        ("link.png", "outside of the folder"),
        ("pipes", "is no file"),
        ("missing.png", "cannot read"),
        ("text.png", "no PNG, JPEG, GIF or WebP"),
        ("bad\0name.png", "cannot read"),
        ("large.png", "larger than 5,000,000 bytes"),
        ("data:image/png,rawtext", "in base64"),
        ("data:image/png;base64,%%%", "is no base64"),
        ("data:image/svg+xml;base64,PHN2Zz4=", "no PNG, JPEG, GIF or WebP"),
    ],
)
def test_what_is_no_image_is_refused_in_a_sentence(tmp_path: Path, value: str, part: str) -> None:
    folder = tmp_path / "cases"
    (folder / "pipes").mkdir(parents=True)
    (tmp_path / "secret.png").write_bytes(png())
    (folder / "link.png").symlink_to(tmp_path / "secret.png")
    (folder / "text.png").write_text("no image", encoding="utf-8")
    (folder / "large.png").write_bytes(png() + bytes(MOST_BYTES))
    with pytest.raises(DataError, match=part):
        read_image(value, folder)


def test_a_path_needs_one_folder(tmp_path: Path) -> None:
    (tmp_path / "a.png").write_bytes(png())
    both = Files((written(tmp_path, "a.png"), tmp_path / "more.jsonl"))
    shutil.copy(*both.paths)
    with pytest.raises(DataError, match="lie in no single folder"):
        read_cases([both])


@given(st.text())
def test_any_text_is_an_image_or_refused(value: str) -> None:
    with suppress(DataError):
        assert read_image(value, None).startswith(("data:image/", "https://"))


def written(folder: Path, image: object, prompt: object = "What is it?") -> Path:
    row = {"prompt": prompt, "response_a": "A dot.", "response_b": "Grey."}
    return peer_rows.written(folder, "pairs.jsonl", [row | {"image": image}])


def test_cases_have_the_images_of_their_rows_and_keep_them_on_disk(tmp_path: Path) -> None:
    (tmp_path / "a.png").write_bytes(png())
    others = ["https://example.org/b.png"] * 9
    (case,) = read_cases([written(tmp_path, ["a.png", *others])])
    assert case.case.images == (url(png()), *others)
    assert case.case.swapped().images == case.case.images
    (both,) = read_cases([written(tmp_path, "a.png", prompt=[TEXT, IMAGE])])
    assert both.case.images == ("https://example.org/a.png", url(png())), "the prompt's own first"
    assert [*on_disk([case])] == [case]
    empty: tuple[object, ...] = (None, "", [])
    for nothing in empty:
        (bare,) = read_cases([written(tmp_path, nothing)])
        assert bare.case.images == ()
    with pytest.raises(DataError, match="column 'image': cannot read"):
        read_cases([written(tmp_path, "b.png")])
    for wrong in (5, ["a.png"] * 11, [{"url": "a.png"}]):
        with pytest.raises(DataError, match="has image"):
            read_cases([written(tmp_path, wrong)])


def case_of(*images: str) -> Case:
    return Case((Message("user", "What is it?", images),), "A dot.", "Grey.")


def test_the_hash_of_an_image_is_part_of_the_case_and_of_the_key() -> None:
    cases = [
        case_of(),
        case_of(url(png())),
        case_of(url(png(9))),
        case_of(url(png()), url(png(9))),
    ]
    assert len({case.id for case in cases}) == len({case.prompt_id for case in cases}) == 4
    requests = [published("pairwise").ask(case, "nonce") for case in cases]
    assert len({key_of(request, "judge", Order.AB) for request in requests}) == 4
    assert [request.messages[-1].images for request in requests] == [case.images for case in cases]
    assert not any(request.messages[0].images for request in requests)
    bare = Case((Message("user", "What is it?"),), "A dot.", "Grey.")
    assert bare.id == cases[0].id, "a case without one is what it was"


def test_a_judge_that_is_not_said_to_take_images_is_asked_nothing() -> None:
    method, seen = published("pairwise"), [case_of(), case_of(url(png()))]
    for terms in (None, Terms(), Terms(Profile(images=False))):
        with pytest.raises(DataError, match="nothing says that the judge takes any"):
            Questions(seen, method, Options(judge="j", seed="s", terms=terms))
    terms = Terms(Profile(images=True))
    assert len(Questions(seen, method, Options(judge="j", seed="s", terms=terms))) == 4
