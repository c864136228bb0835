"""Rows of IFEval: read as they are, or refused with the id and the value."""

import pytest

from judge.ifeval import CHECKERS, check, parameters_of, read_task
from rating.errors import DataError


def row(id: str, kwargs: object) -> dict[str, object]:
    return {"key": 7, "prompt": "p", "instruction_id_list": [id], "kwargs": [kwargs]}


def follows(id: str, kwargs: object, response: str) -> bool | None:
    return check(read_task(row(id, kwargs)), response).strict[0]


def test_a_row_of_the_published_file_is_read() -> None:
    task = read_task(
        {
            "key": 1000,
            "prompt": "Write 300 words.",
            "instruction_id_list": [
                "punctuation:no_comma",
                "detectable_format:number_highlighted_sections",
                "length_constraints:number_words",
            ],
            "kwargs": [{}, {"num_highlights": 3}, {"relation": "at least", "num_words": 300}],
        }
    )
    assert [each.family for each in task.instructions] == [
        "punctuation",
        "detectable_format",
        "length_constraints",
    ]


def test_arguments_that_are_none_count_as_absent() -> None:
    every = ["num_words", "relation", "keywords", "letter", "num_bullets", "language"]
    padded = dict.fromkeys(every) | {"num_bullets": 1}
    assert follows("detectable_format:number_bullet_lists", padded, "* one") is True
    assert follows("punctuation:no_comma", None, "fine") is True


@pytest.mark.parametrize(
    ("id", "kwargs", "followed", "not_followed"),
    [
        ("detectable_format:number_bullet_lists", {"num_bullets": 0}, "none", "* one"),
        ("length_constraints:number_paragraphs", {"num_paragraphs": 0}, "***", "one"),
    ],
)
def test_a_zero_is_a_value(
    id: str, kwargs: dict[str, object], followed: str, not_followed: str
) -> None:
    """Copies of IFEval that drop zeros draw the number at random instead."""
    assert follows(id, kwargs, followed) is True
    assert follows(id, kwargs, not_followed) is False


ZEROS: list[tuple[str, dict[str, object]]] = [
    ("keywords:frequency", {"keyword": "a", "frequency": 0, "relation": "at least"}),
    ("keywords:letter_frequency", {"letter": "a", "let_frequency": 0, "let_relation": "at least"}),
    ("length_constraints:number_sentences", {"num_sentences": 0, "relation": "at least"}),
    ("length_constraints:number_words", {"num_words": 0, "relation": "at least"}),
    ("detectable_content:number_placeholders", {"num_placeholders": 0}),
    ("detectable_format:number_highlighted_sections", {"num_highlights": 0}),
    ("detectable_format:multiple_sections", {"section_spliter": "Part", "num_sections": 0}),
    (
        "change_case:capital_word_frequency",
        {"capital_frequency": 0, "capital_relation": "at least"},
    ),
]


@pytest.mark.parametrize(("id", "kwargs"), ZEROS)
def test_at_least_zero_always_holds(id: str, kwargs: dict[str, object]) -> None:
    for none_or_more in (".", "A bad. B, A! [x] *y* Part 1 and Part 2"):
        assert follows(id, kwargs, none_or_more) is True


BOUNDED = [(id, kwargs) for id, kwargs in ZEROS if "at least" in kwargs.values()]


@pytest.mark.parametrize(("id", "kwargs"), BOUNDED)
def test_less_than_zero_is_refused(id: str, kwargs: dict[str, object]) -> None:
    impossible = {k: "less than" if v == "at least" else v for k, v in kwargs.items()}
    with pytest.raises(DataError, match=f"^{id}: .* no count is below 0"):
        read_task(row(id, impossible))


@pytest.mark.parametrize("id", [id for id, each in CHECKERS.items() if parameters_of(each)])
def test_a_missing_argument_is_named(id: str) -> None:
    with pytest.raises(DataError, match=f"^{id}: .*is missing; it takes"):
        read_task(row(id, {}))


@pytest.mark.parametrize(
    ("id", "kwargs", "message"),
    [
        ("length_constraints:number_paragraphs", {"num_paragraphs": -2}, "num_paragraphs is -2"),
        ("length_constraints:number_paragraphs", {"num_paragraphs": 2.5}, "is 2.5"),
        ("length_constraints:number_paragraphs", {"num_paragraphs": "2"}, "is '2'"),
        ("length_constraints:number_paragraphs", {"num_paragraphs": True}, "is True"),
        ("length_constraints:number_words", {"num_words": 3, "relation": "at most"}, "'at most'"),
        ("keywords:existence", {"keywords": []}, r"keywords is \[\]"),
        ("keywords:existence", {"keywords": "word"}, "keywords is 'word'"),
        ("keywords:existence", {"keywords": ["a", " "]}, "keywords is ' '"),
        (
            "keywords:letter_frequency",
            {"letter": "ab", "let_frequency": 1, "let_relation": "at least"},
            "letter is 'ab'",
        ),
        ("language:response_language", {"language": "xx"}, "language is 'xx'"),
        (
            "length_constraints:nth_paragraph_first_word",
            {"num_paragraphs": 2, "nth_paragraph": 3, "first_word": "a"},
            "nth_paragraph is 3",
        ),
        (
            "length_constraints:nth_paragraph_first_word",
            {"num_paragraphs": 2, "nth_paragraph": 0, "first_word": "a"},
            "nth_paragraph is 0",
        ),
        ("punctuation:no_comma", {"num_words": 3}, "num_words is 3, but it takes no arguments"),
        ("startend:end_checker", {"end_phrase": ""}, "end_phrase is ''"),
        ("startend:end_checker", "bye", "kwargs is 'bye'"),
    ],
)
def test_an_impossible_argument_is_quoted_with_its_instruction(
    id: str, kwargs: object, message: str
) -> None:
    with pytest.raises(DataError, match=f"^{id}: .*{message}"):
        read_task(row(id, kwargs))


def test_a_whole_number_stored_as_a_float_is_taken() -> None:
    assert follows("length_constraints:number_paragraphs", {"num_paragraphs": 1.0}, "one") is True


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"instruction_id_list": ["keywords:rhyme"]}, "Unknown instruction 'keywords:rhyme'"),
        ({"instruction_id_list": []}, r"instruction_id_list is \[\]"),
        ({"kwargs": [{}, {}]}, "one mapping for each of the 1 ids"),
        ({"kwargs": None}, "kwargs is None"),
        ({"prompt": None}, "prompt is None"),
    ],
)
def test_a_row_of_another_form_is_refused(change: dict[str, object], message: str) -> None:
    with pytest.raises(DataError, match=message):
        read_task(row("punctuation:no_comma", {}) | change)


def test_keywords_stand_for_themselves_and_not_for_patterns() -> None:
    assert follows("keywords:existence", {"keywords": ["a.c"]}, "abc") is False
    assert follows("keywords:existence", {"keywords": ["(c"]}, "see (C)") is True
    section = {"section_spliter": "*Part*", "num_sections": 1}
    assert follows("detectable_format:multiple_sections", section, "*Part* 1") is True
    for marker, text, is_there in (
        ("N.B.", "nub", False),
        ("P.P.S", "Bye.\nP. P. S. And thanks.", True),
        ("P.P.S", "Bye.\nP.S. And thanks.", False),
    ):
        assert follows("detectable_content:postscript", {"postscript_marker": marker}, text) is (
            is_there
        )
