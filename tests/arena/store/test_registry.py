from dataclasses import replace
from typing import Any

import pytest

from arena.domain.model import Kind
from arena.store.registry import fingerprint
from tests.arena.store.battles import MODELS

MODEL = MODELS[0]


@pytest.mark.parametrize(
    "change",
    [
        {"endpoint": "https://elsewhere.example/v1"},
        {"model": "another"},
        {"kind": Kind.SYSTEM},
        {"system_prompt": "Answer in rhyme."},
        {"decoding": {"temperature": 0.25}},
        {"recording": "answers.jsonl"},
    ],
    ids=lambda change: next(iter(change)),
)
def test_whatever_answers_otherwise_is_another_model(change: dict[str, Any]) -> None:
    assert fingerprint(replace(MODEL, **change)) != fingerprint(MODEL)


@pytest.mark.parametrize(
    "change",
    [{"name": "Its new name"}, {"organisation": "Another"}, {"weight": 2.5}],
    ids=lambda change: next(iter(change)),
)
def test_what_is_only_said_of_it_leaves_it_the_same(change: dict[str, Any]) -> None:
    assert fingerprint(replace(MODEL, **change)) == fingerprint(MODEL)
