"""Answers that say who wrote them are known from those that speak of others."""

import re

import pytest

from judge.labels.accuracy import SelfNaming, self_naming, self_naming_accuracy
from tests.test_docs import read


@pytest.mark.parametrize(
    ("answer", "name"),
    [
        ("I am GPT-4, made by OpenAI.", "GPT-4"),
        ("I'm an AI assistant created by Anthropic.", "Anthropic"),
        ("As ChatGPT, I cannot know.", "ChatGPT"),
        ("Ich heiße Claude.", "Claude"),
    ],
)
def test_a_name_in_the_first_person_is_its_own(answer: str, name: str) -> None:
    assert self_naming(answer) == SelfNaming("self", name)


@pytest.mark.parametrize(
    "answer",
    [
        "I am a fan of GPT-4.", 'The robot said: "I am ChatGPT."',
        "```\nI am GPT-4\n```\nis what it prints, and GPT-4 did.",
        "I am Claude Monet.", "If I were ChatGPT, I would agree.",
    ],
)  # fmt: skip
def test_other_names_are_mentioned(answer: str) -> None:
    naming = self_naming(answer)
    assert naming is not None
    assert naming.kind == "mention"


def test_names_of_the_roster_count_and_no_name_is_nothing() -> None:
    assert self_naming("I am Basalt 2.", ["Basalt"]) == SelfNaming("self", "Basalt")
    assert self_naming("I am Basalt 2.") is None
    assert self_naming("I am X. Really.", ["X"]) == SelfNaming("self", "X")
    assert self_naming("I am Xaver.", ["X"]) is None


def test_the_documented_precision_and_recall_are_those_of_the_sample() -> None:
    rows = re.findall(
        r"^\| (development|held-out) \| (\d+) \| (\d+) \| (.+?) \| (.+?) \|$",
        read("docs/guides/publish-and-verify.md"),
        re.MULTILINE,
    )
    expected = [
        (
            one.facet,
            str(one.rows),
            str(one.true_positives + one.false_negatives),
            *(f"{x.rate:.2f} ({x.low:.2f} to {x.high:.2f})" for x in (one.precision, one.recall)),
        )
        for one in self_naming_accuracy()
    ]
    assert rows == expected
    assert sum(int(row[1]) for row in rows) == 300
