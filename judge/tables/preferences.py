"""TRL's preferences as pairs: what was chosen stands on a side that is drawn by the texts."""

import json
import re
from collections.abc import Iterable, Sequence
from hashlib import sha256
from itertools import takewhile
from typing import Any

from judge.case import Message
from judge.tables.conversation import exchange, turns_of
from rating.errors import DataError
from rating.tables.columns import LEFT_OUT

NO_QUESTION = "without a question and an answer"
Texts = str | list[str] | list[dict[str, Any]]
"""A text, texts turn by turn, or messages."""
COLUMNS = ("prompt", "response_a", "response_b", "model_a", "model_b", "label")
NAMES = ("chosen", "rejected")


def pair_of(prompt: object, chosen: object, rejected: object) -> dict[str, Any]:
    r"""Give a preference as a pair with a label; of one that is none, why, under `LEFT_OUT`.

    Texts, or messages: what both sides begin with is the prompt where there is none, and belongs
    to no answer where there is one (UltraFeedback). Texts in the form of HH-RLHF (``Human:`` and
    ``Assistant:``) are messages. Half the pairs have what was chosen on side A: a judge that
    favours a side gains nothing.

    Examples
    --------
    >>> pair_of("2 + 2?", "4", "5")["label"]
    'model_a'
    >>> talk = "\n\nHuman: 2 + 2?\n\nAssistant: "
    >>> pair_of(None, talk + "4", talk + "5")["prompt"]
    [{'role': 'user', 'content': '2 + 2?'}]
    """
    try:
        parts = _parted(prompt, chosen, rejected)
    except DataError as error:
        return dict.fromkeys(COLUMNS) | {LEFT_OUT: str(error)}
    asked, *answers = parts
    drawn = sha256(json.dumps(parts, sort_keys=True).encode()).digest()
    turn = -1 if drawn[0] % 2 else 1
    (name_a, name_b), (a, b) = NAMES[::turn], answers[::turn]
    label = "model_a" if turn == 1 else "model_b"
    pair = dict(zip(COLUMNS, (asked, a, b, name_a, name_b, label), strict=True))
    return pair | {LEFT_OUT: None}


def _parted(prompt: object, chosen: object, rejected: object) -> tuple[Texts, Texts, Texts]:
    """Part a preference into what was asked and two answers, turn by turn where each has some."""
    asked, good, bad = map(_talk, (prompt, chosen, rejected))
    if not isinstance(asked, str) and asked and not asked[-1].content:
        asked = asked[:-1]  # a prompt of HH-RLHF ends with "Assistant:"
    if isinstance(good, str) and isinstance(bad, str):
        if not asked or (not isinstance(asked, str) and asked[-1].role != "user"):
            raise DataError(NO_QUESTION)
        if isinstance(asked, str):
            return asked, good, bad
        return _plain(asked), good.strip(), bad.strip()
    if isinstance(good, str) or isinstance(bad, str) or not (good and bad):
        raise DataError(NO_QUESTION)
    before = turns_of(asked) if isinstance(asked, str) else asked
    alike = takewhile(lambda pair: pair[0] == pair[1], zip(good[:-1], bad[:-1], strict=False))
    shared = [one for one, _ in alike]
    if prompt is None or (before and before[-1] in shared):
        before, good, bad = shared, good[len(shared) :], bad[len(shared) :]
    if len(good) == len(bad) == 1:
        if not before or before[-1].role != "user" or {good[0].role, bad[0].role} != {"assistant"}:
            raise DataError(NO_QUESTION)
        return _plain(before), good[0].content, bad[0].content
    turns, a, b = exchange([*before, *good], [*before, *bad])
    return [turn.content for turn in turns], a, b


def _talk(cell: object) -> str | list[Message]:
    """Read messages, or a text that is none of these; nothing is no message."""
    if not isinstance(cell, str):
        return [] if cell is None else turns_of(cell)
    if cell.startswith("\n\nHuman:"):
        pieces = re.split(r"\n\n(Human|Assistant):", cell)[1:]
        roles = {"Human": "user", "Assistant": "assistant"}
        rows = zip(pieces[::2], pieces[1::2], strict=True)
        return turns_of([{"role": roles[name], "content": text.strip()} for name, text in rows])
    return turns_of(cell) if cell.startswith("[{") else cell


def _plain(talk: Sequence[Message]) -> list[dict[str, Any]]:
    return [{"role": turn.role, "content": turn.content} for turn in talk]


def columns_of(
    prompt: Iterable[object], chosen: Iterable[object], rejected: Iterable[object]
) -> dict[str, list[Any]]:
    """Give `COLUMNS` of rows, and why one is excluded."""
    pairs = [pair_of(*row) for row in zip(prompt, chosen, rejected, strict=True)]
    return {name: [pair[name] for pair in pairs] for name in (*COLUMNS, LEFT_OUT)}
