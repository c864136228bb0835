"""The toy judge replies in the form that each method asks for, and so can be read."""

import random

import pytest

from arena.endpoints.pocket_judge import LongerAnswer
from judge.case import Case, Message
from judge.completion import Reply
from judge.methods import ChecklistWriter
from judge.methods.named import PAIRS, SINGLES, named
from judge.reading import Items, Preference, Questions, Rating, Reading

PROMPT = (Message("user", "Why is the sky blue?"),)
LONG, SHORT = "Air scatters blue light more than red.", "It just is, you see."
LISTED = {Case(PROMPT, "").prompt_id: ("Is it right?", "Is it whole?")}
EXPECTED: dict[str, Reading] = {
    "pairwise": Preference(1.0),
    "alpaca_eval_sampled": Preference(1.0),
    "alpaca_eval_verbal": Preference(0.66),
    "arena_hard": Preference(0.75),
    "wildbench_reward": Preference(0.75),
    "wildbench_score": Rating(2),
    "rubric": Rating(2),
    "checklist": Items((True, False)),
}


@pytest.mark.parametrize("name", [name for name in (*PAIRS, *SINGLES) if name != "alpaca_eval"])
def test_each_method_can_read_it(name: str) -> None:
    method = named(name, rubric="1 is poor." if name == "rubric" else None).made(LISTED)
    case = Case(PROMPT, LONG, SHORT if name in PAIRS else None)
    assert (
        said(method.ask(case, "0123456789abcdef").messages[-1].content, method, case)
        == (EXPECTED[name])
    )
    if name in PAIRS:
        swapped = case.swapped()
        request = method.ask(swapped, "0123456789abcdef")
        found = said(request.messages[-1].content, method, swapped)
        assert isinstance(found, Preference)
        assert found.first < 0.5


def said(prompt: str, method: object, case: Case) -> object:
    text = LongerAnswer().answer(prompt, random.Random(1))
    return method.read(case, Reply(text=text, finish_reason="stop"))  # type: ignore[attr-defined]


def test_it_writes_checklists() -> None:
    case, writer = Case(PROMPT, ""), ChecklistWriter()
    found = said(writer.ask(case, "0" * 16).messages[-1].content, writer, case)
    assert isinstance(found, Questions)
    assert len(found.items) == 5


def test_without_an_answer_there_is_no_verdict() -> None:
    assert "no answers" in LongerAnswer().answer("Hello.", random.Random(1))
