import re
import time
from pathlib import Path

import pytest

from judge.labels.material import KINDS, accuracies, examples, personal, scrub, table

ROOT = Path(__file__).parents[3]


def test_there_are_a_hundred_examples_and_each_kind_is_among_them() -> None:
    written = examples()
    assert len(written) >= 100
    kinds = [piece.kind for _, pieces in written for piece in pieces]
    assert {kind: kinds.count(kind) >= 7 for kind in KINDS} == dict.fromkeys(KINDS, True)
    assert sum(not pieces for _, pieces in written) >= 40


def test_the_rules_find_what_the_document_says_they_find() -> None:
    document = (ROOT / "docs" / "guides" / "data-and-privacy.md").read_text("utf-8")
    for row in table():
        assert f"| {' | '.join(row)} |" in document
    assert f"of {len(examples())} examples" in document


@pytest.mark.parametrize("kind", KINDS)
def test_the_rules_hold_on_the_examples(kind: str) -> None:
    measured = accuracies()[kind]
    assert measured.precision.rate >= 0.9
    assert measured.recall.rate >= 0.95


def test_nothing_that_was_found_is_left_in_a_text() -> None:
    for text, _ in examples():
        pieces, (scrubbed, counts) = personal(text), scrub(text)
        assert sum(counts.values()) == len(pieces)
        assert [p for p in pieces if text[p.start : p.end] in scrubbed] == []
        if not pieces:
            assert scrubbed == text


def test_scrubbing_twice_is_scrubbing_once() -> None:
    for text, _ in examples():
        once = scrub(text)[0]
        assert scrub(once)[0] == once


def test_a_piece_of_two_kinds_is_taken_once() -> None:
    text = "token: +491711234567890"
    assert scrub(text)[0] == "token: [key]"


@pytest.mark.sampled(4)
@pytest.mark.parametrize(
    "unit",
    [
        "a@", "a.", "@a.", "eyJ-", "eyJ.", "0 1", "+1 ", "1.1.1.1:", "a:b@", "::", ":1",
        "-----BEGIN PRIVATE KEY-----", "token=", "token: ", "http://a:", "ada@example.com ",
    ],
)  # fmt: skip
def test_a_hostile_text_takes_no_more_than_its_length(unit: str) -> None:
    began = time.process_time()
    scrub(unit * (200_000 // len(unit)))
    assert time.process_time() - began < 10


def test_no_example_names_somebody_who_could_be_reached() -> None:
    """Numbers and mail of the examples are of blocks that nobody has, or are made up."""
    for text, pieces in examples():
        for piece in pieces:
            if piece.kind == "mail":
                assert re.search(
                    r"\bexample(\.|$)|beispiel", text[piece.start : piece.end].lower()
                )
