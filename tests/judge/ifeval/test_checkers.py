"""The 25 checkers of IFEval: worked cases, strict and loose."""

import json
import re
from dataclasses import dataclass
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from judge.ifeval import (
    CHECKERS,
    Checked,
    Task,
    check,
    count_sentences,
    loosened,
    parameters_of,
    read_task,
)

ENGLISH = "the rain was over and they all went out into the garden."
FRENCH = "La pluie était finie et ils sont tous sortis dans le jardin avec nous."


@dataclass(frozen=True)
class Case:
    """Arguments, a response that follows, some that do not, one that does loosely if any can."""

    kwargs: dict[str, object]
    good: str
    bad: tuple[str, ...]
    loose_only: str | None


CASES = {
    "keywords:existence": Case(
        {"keywords": ["moon", "tide"]},
        "The Moon moves the TIDES.",
        ("The moon is far.", "Tidal lunar pull.", "m.on and tide"),
        "The m*oon* moves the tide.",
    ),
    "keywords:frequency": Case(
        {"keyword": "war", "frequency": 2, "relation": "at least"},
        "War and afterwards.",
        ("War and peace.", "w.r w.r"),
        "War*s, wa*r",
    ),
    "keywords:forbidden_words": Case(
        {"forbidden_words": ["rock", "C++"]},
        "They rocked on bedrock, 1rock and rock_1 in C+ and C.",
        ("They ROCK.", "Written in c++.", "rock-hard"),
        "You said rock:\nno stones here.",
    ),
    "keywords:letter_frequency": Case(
        {"letter": "Q", "let_frequency": 3, "let_relation": "less than"},
        "Quick, quiet.",
        ("Quick, quiet, Q.", "quick, quiet, q."),
        "Quick, quiet, quaint.\nQuick, quiet.",
    ),
    "language:response_language": Case(
        {"language": "fr"},
        FRENCH,
        (ENGLISH, "Всё это не по-французски."),
        f"{(ENGLISH + ' ') * 3}\n{FRENCH}",
    ),
    "length_constraints:number_sentences": Case(
        {"num_sentences": 3, "relation": "less than"},
        "Dr. Who came. He left!",
        ("One. Two. Three.", "One? Two! Three", "1. One.\n2. Two."),
        "Sure!\nDr. Who came. He left!",
    ),
    "length_constraints:number_paragraphs": Case(
        {"num_paragraphs": 2},
        "First.\n***\nSecond.",
        ("First.", "First.\n***\n***\nSecond.", "1\n***\n2\n***\n3", "First.\n\nSecond."),
        "Sure!\n***\nFirst.\n***\nSecond.",
    ),
    "length_constraints:number_words": Case(
        {"num_words": 4, "relation": "less than"},
        "Only three words",
        ("Now there are four", "Don't say it"),
        "Sure, here it is:\nOnly three words",
    ),
    "length_constraints:nth_paragraph_first_word": Case(
        {"num_paragraphs": 2, "nth_paragraph": 2, "first_word": "Summary"},
        'It rained.\n\n"summary, in short.',
        (
            "It rained.\n\nSummaries.",
            "Summary.\n\nIt rained.",
            "A\n\nB\n\nSummary",
            "A\n\n\n\nSummary",
        ),
        "It rained.\n\n**Summary**",
    ),
    "detectable_content:number_placeholders": Case(
        {"num_placeholders": 2},
        "Dear [name], [address].",
        ("Dear [name].", "[name], [address", "[two [in one]"),
        None,
    ),
    "detectable_content:postscript": Case(
        {"postscript_marker": "P.S."},
        "Bye.\np. s. And thanks.",
        ("Bye. PS: thanks.", "P.P.S more"),
        "Bye.\nP.*S.* thanks.",
    ),
    "detectable_format:number_bullet_lists": Case(
        {"num_bullets": 2},
        "List:\n* one\n  ---\n**bold**",
        ("* one", "* one\n* two\n- three", "*one\n** two", "* one\n*", "1. one\n2. two"),
        "- Here you are:\n* one\n* two",
    ),
    "detectable_format:constrained_response": Case(
        {},
        "Well. My answer is maybe.",
        ("My answer is perhaps.", "my answer is yes.", "My answer is no"),
        "My answer is *no*.",
    ),
    "detectable_format:number_highlighted_sections": Case(
        {"num_highlights": 2},
        "***one***",
        ("*one*", "**one**", "** ** *x*", "*one\ntwo* three*"),
        None,
    ),
    "detectable_format:multiple_sections": Case(
        {"section_spliter": "Section", "num_sections": 2},
        "Section 1\nFirst.\nSection2\nSecond.",
        ("Section 1 only.", "SECTION 1 SECTION 2", "Section one, section two"),
        "Section *1*\nFirst.\nSection *2*\nSecond.",
    ),
    "detectable_format:json_format": Case(
        {},
        '```json\n{"a": [1, 2]}\n```',
        ("{'a': 1}", '{"a": 1} as asked', "[1, 2"),
        'Here you are:\n{"a": 1}',
    ),
    "detectable_format:title": Case(
        {},
        "<<Of joy>>\nJoy.",
        ("<<>>", "<< >>", "<Of joy>", "<<Of\njoy>>", ">>Of joy<<"),
        "<*<Of joy>*>",
    ),
    "combination:two_responses": Case(
        {},
        "Yes.\n******\nNo.",
        ("Yes.", "Yes.******Yes.", "A******B******C", "A******  ******B"),
        "Two answers:\n******\nYes.\n******\nNo.",
    ),
    "combination:repeat_prompt": Case(
        {"prompt_to_repeat": "Name a colour."},
        "NAME A COLOUR.\n\nBlue.",
        ("Name one colour. Blue.", "Blue. Name a colour."),
        "Certainly:\nName a colour. Blue.",
    ),
    "startend:end_checker": Case(
        {"end_phrase": "Any questions?"},
        'So it is. "any questions?"',
        ("Any questions? Ask.", "Questions?"),
        "So it is. Any questions?\nBye.",
    ),
    "startend:quotation": Case({}, ' "Yes." ', ("Yes.", '"', '"Yes', "“Yes.”"), 'Sure:\n"Yes."'),
    "change_case:capital_word_frequency": Case(
        {"capital_frequency": 2, "capital_relation": "less than"},
        "Only NASA's here: A-B'C’D.E&F/G2",
        ("I DON'T know", "NASA/ESA and AT&T"),
        "I SEE:\nnothing ODD",
    ),
    "change_case:english_capital": Case(
        {},
        ENGLISH.upper(),
        (ENGLISH, ENGLISH.title(), FRENCH.upper(), "123"),
        f"Sure.\n{ENGLISH.upper()}",
    ),
    "change_case:english_lowercase": Case(
        {},
        ENGLISH,
        (ENGLISH.upper(), ENGLISH.capitalize(), FRENCH.lower(), "123"),
        f"Sure.\n{ENGLISH}",
    ),
    "punctuation:no_comma": Case(
        {}, "One; two。三，四", ("One, two",), "Sure, here:\nhello world"
    ),
}

NAMED = list(CASES.items())


def task(*instructions: tuple[str, dict[str, object] | None]) -> Task:
    ids, kwargs = zip(*instructions, strict=True)
    return read_task({"prompt": "p", "instruction_id_list": list(ids), "kwargs": list(kwargs)})


def checked(id: str, response: str, kwargs: dict[str, object] | None = None) -> Checked:
    given = CASES[id].kwargs if kwargs is None else kwargs
    return check(task((id, given)), response)


def both(id: str, response: str) -> tuple[bool | None, bool | None]:
    outcome = checked(id, response)
    return outcome.strict[0], outcome.loose[0]


def test_every_one_of_the_25_instructions_in_9_families_has_a_case() -> None:
    assert CASES.keys() == CHECKERS.keys()
    assert len(CHECKERS) == 25
    assert len({id.split(":")[0] for id in CHECKERS}) == 9


@pytest.mark.parametrize(("id", "case"), NAMED)
def test_a_response_that_follows_passes_strictly_and_loosely(id: str, case: Case) -> None:
    assert both(id, case.good) == (True, True)


PLANTED = [(id, bad) for id, case in NAMED for bad in case.bad]


@pytest.mark.parametrize(("id", "bad"), PLANTED)
def test_a_planted_violation_is_found(id: str, bad: str) -> None:
    assert checked(id, bad).strict == (False,)


LOOSE_ONLY = {id: case.loose_only for id, case in NAMED if case.loose_only is not None}


@pytest.mark.parametrize(("id", "response"), LOOSE_ONLY.items())
def test_an_introduction_or_asterisks_are_forgiven_loosely(id: str, response: str) -> None:
    assert both(id, response) == (False, True)


def test_where_dropping_text_cannot_help_there_is_no_loose_case() -> None:
    assert CASES.keys() - LOOSE_ONLY.keys() == {
        "detectable_content:number_placeholders",
        "detectable_format:number_highlighted_sections",
    }


@pytest.mark.parametrize("id", CHECKERS)
@pytest.mark.parametrize("blank", ["", " ", "\n\n\t"])
def test_a_blank_response_follows_nothing(id: str, blank: str) -> None:
    assert both(id, blank) == (False, False)


@pytest.mark.parametrize(
    ("response", "expected"),
    [
        ("Sure, yes\n*hello, world*", (False, False)),
        ("Sure, here:\nhello world", (False, True)),
        ("Sure!\na, b", (False, True)),
        ("", (False, False)),
    ],
)
def test_no_comma_gives_the_worked_results(response: str, expected: tuple[bool, bool]) -> None:
    """The third is the loose score's weakness: it drops the line that holds the comma."""
    assert both("punctuation:no_comma", response) == expected


VOWS = "\n".join(
    [
        "<<A vow>>", "* I promise [name] the moon.", "* I promise [name] the tide!",
        "Section 1: *now* and *here*. My answer is yes.", "P.S. Any questions?",
    ]
)  # fmt: skip
VOW_RULES: dict[str, dict[str, object]] = {
    "detectable_format:title": {},
    "detectable_format:constrained_response": {},
    "detectable_format:number_bullet_lists": {"num_bullets": 2},
    "detectable_content:number_placeholders": {"num_placeholders": 2},
    "keywords:existence": {"keywords": ["moon"]},
    "keywords:forbidden_words": {"forbidden_words": ["sun"]},
    "keywords:letter_frequency": {"letter": "!", "let_frequency": 1, "let_relation": "at least"},
    "detectable_format:multiple_sections": {"section_spliter": "Section", "num_sections": 1},
    "detectable_format:number_highlighted_sections": {"num_highlights": 2},
    "detectable_content:postscript": {"postscript_marker": "P.S."},
    "startend:end_checker": {"end_phrase": "Any questions?"},
    "punctuation:no_comma": {},
}
REPLACED = {
    "detectable_format:title": ("<<A vow>>", "A vow"),
    "detectable_format:constrained_response": ("is yes.", "is yours."),
    "detectable_format:number_bullet_lists": (
        "* I promise [name] the tide",
        "I promise [name] the tide",
    ),
    "detectable_content:number_placeholders": ("[name] the tide", "you the tide"),
    "keywords:existence": ("moon", "stars"),
    "keywords:forbidden_words": ("A vow", "A sun vow"),
    "keywords:letter_frequency": ("!", "."),
    "detectable_format:multiple_sections": ("Section 1", "Section A"),
    "detectable_format:number_highlighted_sections": ("*here*", "here"),
    "detectable_content:postscript": ("P.S.", "PS"),
    "startend:end_checker": ("questions?", "questions? No."),
    "punctuation:no_comma": ("moon.", "moon,"),
}


@pytest.mark.parametrize("violated", VOW_RULES)
def test_of_many_instructions_only_the_violated_one_fails(violated: str) -> None:
    rules = task(*VOW_RULES.items())
    assert check(rules, VOWS).strict == (True,) * len(VOW_RULES)
    outcome = check(rules, VOWS.replace(*REPLACED[violated]))
    followed = dict(zip(outcome.ids, outcome.strict, strict=True))
    assert [id for id in followed if not followed[id]] == [violated]
    assert outcome.all_strict is False


EVERYTHING = task(*((id, case.kwargs) for id, case in NAMED))


@settings(max_examples=60)
@given(st.text(st.sampled_from("aA ,.\n*-[]<>\"'#1!{}Pps.йक愛e\u0301\ud800")) | st.text())
@example("[" * 3000)
@example('{"a":' * 3000)
@example("9" * 5000)
def test_no_text_makes_a_checker_fail_and_strict_implies_loose(response: str) -> None:
    outcome = check(EVERYTHING, response)
    for strict, loose in zip(outcome.strict, outcome.loose, strict=True):
        assert strict in (True, False, None)
        assert loose is True or strict is not True


@given(response=st.text(st.sampled_from("a*\n ")))
def test_the_loose_versions_are_the_eight_of_the_paper(response: str) -> None:
    first, *rest = response.split("\n")
    without_last = "\n".join([first, *rest][:-1]).strip()
    without_both = "\n".join(rest[:-1]).strip()
    four = [response, "\n".join(rest).strip(), without_last, without_both]
    assert set(loosened(response)) == {*four, *(text.replace("*", "") for text in four)}


def test_a_prompt_is_judged_by_what_is_known_of_its_instructions() -> None:
    unread = Checked("p", ("a", "b"), strict=(True, None), loose=(True, None))
    failed = Checked("p", ("a", "b"), strict=(False, None), loose=(True, True))
    assert (unread.all_strict, failed.all_strict) == (None, False)


def test_loose_versions_may_differ_between_the_instructions_of_a_prompt() -> None:
    rules = task(("punctuation:no_comma", {}), ("startend:end_checker", {"end_phrase": "bye"}))
    assert check(rules, "a, b\nbye\nso long").loose == (True, True)


def test_json_nested_too_deeply_to_parse_is_unread_and_long_numbers_are_json() -> None:
    assert both("detectable_format:json_format", "[" * 100_000 + "]" * 100_000) == (None, None)
    assert both("detectable_format:json_format", json.dumps({"n": 1})[:-2] + "9" * 5000 + "}")[0]


@pytest.mark.parametrize(
    ("text", "n"),
    [
        ("One. Two.", 2), ("No end at all", 1), ('He said "Go!" She went.', 2),
        ("Wait... what? Really?!", 2), ("Wait... What?", 2),
        ("At 3.14 p.m. we met Mr. and Mrs. Jones, Ph.D. students.", 1),
        ("Pens, ink, etc. Then paper. Pens etc. are here.", 3),
        ("See e.g. www.example.org. J. R. R. Tolkien wrote it.", 2),
        ("So am I. Good.", 2), ("**Bold.** Next.", 2),
        ("好。很好！对吗？", 3), ("यह है। वह है।", 2), ("یہ ہے۔وہ ہے۔", 2),
        ("A title\n\nA line without an end\nand one more", 1),
        ("One. * Two. ***", 2),
    ],
)  # fmt: skip
def test_sentences_are_counted_by_the_stated_rule(text: str, n: int) -> None:
    assert count_sentences(text) == n


DOCUMENTS = Path(__file__).parents[3] / "docs"


def test_the_documented_table_lists_every_instruction_with_its_arguments() -> None:
    table = (DOCUMENTS / "reference/judge-methods.md").read_text("utf-8")
    rows = re.findall(r"^\| `(\w+:\w+)` \| (.*?) \|", table, re.MULTILINE)
    documented = {id: re.findall(r"`(\w+)`", names) for id, names in rows}
    assert documented == {id: list(parameters_of(each)) for id, each in CHECKERS.items()}


def test_the_documented_example_prints_what_it_says(capsys: pytest.CaptureFixture[str]) -> None:
    example = (
        (DOCUMENTS / "guides/judge.md").read_text("utf-8").split("```python\n")[1].split("```")[0]
    )
    exec(example, {})
    shown = re.findall(r"# (.*)$", example, re.MULTILINE)
    assert capsys.readouterr().out.splitlines() == shown
