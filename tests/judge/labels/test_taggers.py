"""Prompts are labelled by rules, as well as the documents say and in bounded time."""

import json
import time
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from judge.ifeval import CHECKERS
from judge.labels.accuracy import Accuracy, accuracies, labelled_prompts, table
from judge.labels.taggers import (
    _RULES,
    CATEGORIES,
    FACETS,
    HEAD,
    RULES,
    TAIL,
    Part,
    Rule,
    instructions_in,
    tag,
)
from judge.replies import refuses
from tests.test_docs import read

OF_MT_BENCH = {"code": "coding", "maths": "math"} | {
    name: name for name in ("roleplay", "extraction")
}

REPEATED = [
    "\n", " ", "\t", "`", "$", "1 ", "a) b) ", "- x\n", "select ", "write a ", "you are a ",
    "list ", "i'm sorry, ", "while i ", "the letter ", "translate in ", "if (a ",
    "x(", "how do say ", "<<a ", "word 'a ", "a\u0301", "\U0001f600",
]  # fmt: skip


def label(prompt: str, facet: str) -> str:
    return tag([prompt])[facet].value


def test_the_documented_accuracy_is_that_of_the_samples() -> None:
    """On a failure, the rows on the left belong into the document, and a new version with them."""
    document = read("docs/guides/prompts.md")
    assert [row for row in table() if f"| {' | '.join(row)} |" not in document] == []


@pytest.mark.published
def test_on_questions_that_others_wrote_the_taggers_do_as_documented(published_data: Path) -> None:
    file = published_data / "votes" / "mtbench" / "mt_bench_questions.jsonl"
    questions = [json.loads(line) for line in file.read_text("utf-8").splitlines()]
    tagged = {
        facet: Counter(
            q["category"] == name for q in questions if label(q["turns"][0], facet) == "yes"
        )
        for facet, name in OF_MT_BENCH.items()
    }
    assert {facet: (n[True], n[False]) for facet, n in tagged.items()} == {
        "code": (10, 3),
        "maths": (8, 4),
        "roleplay": (8, 2),
        "extraction": (5, 0),
    }


def test_every_sample_has_two_hundred_rows_and_every_label_a_dozen() -> None:
    for one in accuracies().values():
        assert one.rows >= 200
        assert one.true_positives + one.false_negatives >= 12


def test_every_facet_has_a_label() -> None:
    assert tuple(tag(["Hi"])) == FACETS
    assert label("", "category") == "other"


def test_a_prompt_of_two_kinds_is_of_the_first_category() -> None:
    both = tag(["Pretend you are a pirate and write a poem about the sea."])
    assert (both["roleplay"].value, both["creative"].value) == ("yes", "yes")
    assert both["category"].value == next(iter(CATEGORIES)) == "roleplay"


def test_a_conversation_is_labelled_as_a_whole() -> None:
    labels = tag(["Write a Python function that sorts a list.", "Make it shorter."])
    assert labels["category"].value == "code"
    assert labels["turns"].score == 2
    chars = len("Write a Python function that sorts a list.Make it shorter.") + 2
    assert labels["chars"].score == chars


def test_code_in_a_fence_does_not_name_the_language() -> None:
    fence = "```\n" + "for the of and to in is that it was\n" * 5 + "```"
    assert label(f"Was macht das hier und warum ist es so?\n{fence}", "language") == "de"


@pytest.mark.parametrize(
    ("prompt", "language"),
    [("Qué es esto y cómo funciona", "es"), ("写一首诗", "zh"), ("42", "unknown"), ("Γειά", "el")],
)
def test_a_language_is_named_or_unknown(prompt: str, language: str) -> None:
    assert label(prompt, "language") == language


def test_each_of_the_25_instructions_can_be_recognised() -> None:
    assert RULES.keys() == CHECKERS.keys()


@pytest.mark.parametrize(
    ("prompt", "id"),
    [
        ("use the word tea at least 3 times", "keywords:frequency"),
        ("the letter e should appear 20 times", "keywords:letter_frequency"),
        ("answer in french", "language:response_language"),
        ("write it in exactly 3 sentences", "length_constraints:number_sentences"),
        ("give 4 paragraphs", "length_constraints:number_paragraphs"),
        ("the first paragraph must start with why", "length_constraints:nth_paragraph_first_word"),
        ("add a p.s. at the end", "detectable_content:postscript"),
        ("answer with 'my answer is yes.'", "detectable_format:constrained_response"),
        ("it must contain 3 sections", "detectable_format:multiple_sections"),
        ("finish with the exact phrase that's all", "startend:end_checker"),
        ("at least 3 words in all capital letters", "change_case:capital_word_frequency"),
        ("write in lowercase", "change_case:english_lowercase"),
    ],
)
def test_an_instruction_is_recognised_by_its_usual_words(prompt: str, id: str) -> None:
    assert id in instructions_in(prompt)


PARTS = [part for rule in (*RULES.values(), *_RULES.values()) for part in rule.parts]


def test_signs_only_save_time() -> None:
    """A text that fits a pattern has one of its signs."""
    texts = [text.lower() for text in labelled_prompts()]
    fits = [(part, text) for part in PARTS for text in texts if part.pattern.search(text)]
    assert len(fits) > 100
    assert [(part, text) for part, text in fits if not Rule((part,)).holds(text)] == []


@pytest.mark.sampled(3)
@settings(max_examples=20, suppress_health_check=[HealthCheck.too_slow])
@pytest.mark.parametrize("part", PARTS, ids=lambda part: "|".join(part.signs)[:40])
@given(data=st.data())
def test_whatever_a_pattern_is_made_to_fit_has_one_of_its_signs(
    part: Part, data: st.DataObject
) -> None:
    assert Rule((part,)).holds(data.draw(st.from_regex(part.pattern)))


def test_a_hard_prompt_meets_six_criteria_and_an_easy_one_does_not() -> None:
    assert tag(["Why is the sky blue?"])["hard"].score in (0, 1, 2)
    hard = (
        "Our checkout service in Go must handle 5,000 orders per second. Design a schema that "
        "survives a failed node, explain the consistency trade-offs, and then propose how the "
        "team should test it under load."
    )
    assert tag([hard])["hard"] == ("yes", 6)


@given(st.lists(st.text(), min_size=1, max_size=4))
def test_any_text_gets_every_label_and_always_the_same(prompts: list[str]) -> None:
    labels = tag(prompts)
    assert tuple(labels) == FACETS
    assert labels == tag(prompts)
    assert isinstance(refuses(prompts[0]), bool)


@pytest.mark.parametrize("part", REPEATED)
def test_a_hostile_text_of_any_length_takes_bounded_time(part: str) -> None:
    text = (part * (1 + 2 * (HEAD + TAIL) // len(part)))[: 2 * (HEAD + TAIL)]
    began = time.process_time()
    tag([text])
    refuses(text)
    assert time.process_time() - began < 0.5


def test_the_middle_of_a_long_text_is_not_looked_at_but_counted() -> None:
    text = "x " * HEAD + "Write a Python function. " + "x " * TAIL
    labels = tag([text])
    assert labels["category"].value == "other"
    assert labels["chars"].score == len(text)


def test_an_effect_is_attenuated_by_what_the_tagger_confuses() -> None:
    right = Accuracy("code", 40, 10, 20, 130)
    assert right.attenuation == pytest.approx(40 / 50 - 20 / 150)
    assert (right.precision.rate, right.recall.rate) == (0.8, 40 / 60)


def test_a_share_is_corrected_for_the_errors_of_the_tagger() -> None:
    """Rogan and Gladen: (.25 + 130/140 - 1) / (130/140 + 40/60 - 1)."""
    estimate = Accuracy("code", 40, 10, 20, 130).corrected(250, 1000)
    assert estimate is not None
    assert estimate.value == pytest.approx((0.25 - 1 / 14) / (2 / 3 - 1 / 14))
    assert (estimate.lower or 0) < 0.3 < (estimate.upper or 0)


def test_a_share_is_not_corrected_by_a_small_sample_or_a_tagger_that_guesses() -> None:
    assert Accuracy("code", 20, 5, 10, 64).corrected(250, 1000) is None
    assert Accuracy("code", 20, 5, 10, 65).corrected(250, 1000) is not None
    assert Accuracy("code", 50, 50, 50, 50).corrected(250, 1000) is None
