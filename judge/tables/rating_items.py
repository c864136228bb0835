"""What people are given to rate: a prompt or dialogue with two answers or more, from files."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import takewhile
from pathlib import Path
from typing import Any, get_args

import numpy as np
from numpy.typing import NDArray

from judge.agent_run import AgentRun
from judge.case import Message
from judge.tables.annotations import Annotations, read_annotations
from judge.tables.cases import Source
from judge.tables.conversation import plain
from judge.tables.outputs import read_outputs, read_prompts
from rating.errors import DataError
from rating.tables.columns import quoted_names
from rating.tables.escaping import storable
from rating.tables.files import json_or_text

GOLD = ("model_a", "model_b", "tie")
"""What a gold item may be."""
MOST_RESPONSES = 12
MOST_CHARACTERS = 100_000
"""Of all texts of an item, which a page shows at once."""
MOST_NAME = 300
"""Characters of an id or of a model's name."""
SHOWN = ("prompt", "messages", "conversation")
"""Columns of what comes before the answers, the first that is there."""
PAIR = ("response_a", "response_b")
DIALOGUES = ("conversation_a", "conversation_b")
ROLES = get_args(Message.__annotations__["role"])


@dataclass(frozen=True, slots=True)
class Response:
    """What a model answered: one message, or its part of a dialogue of its own.

    Attributes
    ----------
    run : AgentRun or None
        The steps of an agent on the way to it.
    """

    model: str
    turns: tuple[Message, ...]
    run: AgentRun | None = None


@dataclass(frozen=True, slots=True)
class RatingItem:
    """Something to rate.

    Attributes
    ----------
    item : str
        Its id in the file.
    prompt_id : str or None
        Items on one prompt have the same.
    messages : tuple of Message
        What comes before the answers, the same on all sides.
    responses : tuple of Response
        Two or more; of two, the first is side A.
    gold : str or None
        The right choice, one of `GOLD`, of an item that has one.
    """

    item: str
    prompt_id: str | None
    messages: tuple[Message, ...]
    responses: tuple[Response, ...]
    gold: str | None = None


def read_rating_items(
    source: Source,
    *,
    gold: bool = False,
    outputs: Path | None = None,
    prompts: Path | None = None,
) -> list[RatingItem]:
    """Read items from a file: JSON, JSON lines, CSV or Parquet, one a row.

    Parameters
    ----------
    source : path, or Files
        ``item_id``; ``prompt`` (a text), or ``messages`` or ``conversation`` (a list of ``{"role",
        "content"}``, or of the user's turns where an answer is a list of one for each); and
        ``model_a``, ``response_a``, ``model_b``, ``response_b``, or ``responses``, a list of 2 to
        12 ``{"model", "text"}``; a text may be empty, and not missing. Dialogues that differ from
        some turn on are ``conversation_a`` and ``conversation_b``. ``prompt_id`` where known.
    gold : bool
        Whether each item must have ``gold``, the right choice: ``model_a``, ``model_b``, ``tie``.
    outputs, prompts : path, optional
        Where the answers are, by prompt and model, and the prompts by their names, of items that
        have none: such as the ``send.csv`` of `arena study judge`.

    Raises
    ------
    DataError
        If the file cannot be read, or a row is none of this: it quotes the row and the value.
    """
    table = read_annotations(source, "items to rate")
    if outputs is not None:
        table = _joined(table, outputs, prompts)
    _require_texts(table)
    items = [_item(table, row, gold=gold) for row in range(table.n)]
    first: dict[str, int] = {}
    for row, one in enumerate(items, 1):
        if (before := first.setdefault(one.item, row)) != row:
            wanted = f"each item an id of its own: row {before} has this one"
            raise table.wrong("item_id", row, one.item, wanted)
    return items


def _joined(table: Annotations, outputs: Path, prompts: Path | None) -> Annotations:
    """Give items that name prompts and models their texts, and an id where they have none."""
    if has := next((name for name in (*PAIR, "responses", *DIALOGUES) if table.has(name)), None):
        msg = f"{table.source!r} has answers of its own, in {has!r}: drop --outputs."
        raise DataError(msg)
    names = {
        column: [_name(table, column, row) for row in range(table.n)]
        for column in ("prompt_id", "model_a", "model_b")
    }
    asked = {*names["prompt_id"]}
    answers = read_outputs(outputs, {*names["model_a"], *names["model_b"]}, asked)
    columns = dict(table.columns)
    for side in "ab":
        pairs = list(zip(names["prompt_id"], names[f"model_{side}"], strict=True))
        if lacking := next((pair for pair in pairs if pair not in answers), None):
            msg = f"{str(outputs)!r} holds no answer of {lacking[1]!r} to {lacking[0]!r}."
            raise DataError(msg)
        columns[f"response_{side}"] = _column([answers[pair] for pair in pairs])
    if prompts is not None:
        texts = read_prompts(prompts, asked)
        if missing := sorted(asked - texts.keys()):
            raise DataError(f"{str(prompts)!r} holds no text of the prompt {missing[0]!r}.")
        columns["prompt"] = _column([texts[prompt] for prompt in names["prompt_id"]])
    elif not any(table.has(name) for name in SHOWN):
        msg = f"{table.source!r} names prompts and has no texts of them: give --prompts FILE."
        raise DataError(msg)
    if table.has("item_id"):
        return replace(table, columns=columns)
    columns["item_id"] = _column([" · ".join(one) for one in zip(*names.values(), strict=True)])
    first = np.sort(np.unique(columns["item_id"], return_index=True)[1])  # of several judges
    return replace(table, columns={name: values[first] for name, values in columns.items()})


def _column(values: Sequence[str]) -> NDArray[np.object_]:
    return np.array([*values, None], dtype=np.object_)[:-1]


def _require_texts(table: Annotations) -> None:
    """Refuse a table without texts; that of items to send to people says what it lacks."""
    if table.has("responses") or table.has(*PAIR) or table.has(*DIALOGUES):
        return
    if table.has("verdict_row", "overall"):
        msg = (
            f"{table.source!r} names items to send to people, as arena study judge writes them, "
            "and holds no texts: say where the answers and the prompts are that were judged, with "
            "--outputs FILE and --prompts FILE."
        )
        raise DataError(msg)
    there = quoted_names(list(table.columns))
    msg = (
        f"There are no answers in {table.source!r}: give the columns response_a and response_b, "
        f"conversation_a and conversation_b, or responses. There are {there}."
    )
    raise DataError(msg)


def _item(table: Annotations, row: int, *, gold: bool) -> RatingItem:
    before, responses = _texts(table, row)
    size = sum(len(m.content) for m in (*before, *(m for one in responses for m in one.turns)))
    if size > MOST_CHARACTERS:
        wanted = f"an item of {MOST_CHARACTERS:,} characters at the most, and not of {size:,}"
        raise table.wrong("item_id", row + 1, table.need("item_id")[row], wanted)
    return RatingItem(
        _name(table, "item_id", row),
        _name(table, "prompt_id", row) if _is_given(table, "prompt_id", row) else None,
        before,
        responses,
        _gold(table, row, len(responses)) if gold else None,
    )


def _texts(table: Annotations, row: int) -> tuple[tuple[Message, ...], tuple[Response, ...]]:
    """Read what comes before the answers, and the answers."""
    if table.has(*DIALOGUES):
        sides = [_messages(table, name, row) for name in DIALOGUES]
        for name, side in zip(DIALOGUES, sides, strict=True):
            if side[-1].role != "assistant":
                wanted = "a dialogue that ends with an answer of the assistant"
                raise table.wrong(name, row + 1, _brief(table, name, row), wanted)
        same = [
            a for a, _ in takewhile(lambda both: both[0] == both[1], zip(*sides, strict=False))
        ]
        shared = tuple(same)[: min(len(side) for side in sides) - 1]
        names = [_name(table, f"model_{side}", row) for side in "ab"]
        _require_others(table, names, row)
        return shared, tuple(
            Response(name, side[len(shared) :]) for name, side in zip(names, sides, strict=True)
        )
    before = _before(table, row)
    if table.has("responses") and _is_given(table, "responses", row):
        return before, tuple(_several(table, row))
    names = [_name(table, f"model_{side}", row) for side in "ab"]
    _require_others(table, names, row)
    answers = [_answers(table, name, row, len(before)) for name in PAIR]
    if len(answers[0]) == len(answers[1]) == 1:
        turns = [(Message("assistant", one[0]),) for one in answers]
        return before, tuple(map(Response, names, turns))
    dialogues = [dialogue(before[1:], one) for one in answers]
    return before[:1], tuple(map(Response, names, dialogues))


def dialogue(further: Sequence[Message], answers: Sequence[str]) -> tuple[Message, ...]:
    """Put the user's further turns between the answers.

    >>> [one.role for one in dialogue([Message("user", "And then?")], ["This.", "That."])]
    ['assistant', 'user', 'assistant']
    """
    turns = [Message("assistant", answers[0])]
    for turn, answer in zip(further, answers[1:], strict=True):
        turns += [turn, Message("assistant", answer)]
    return tuple(turns)


def _before(table: Annotations, row: int) -> tuple[Message, ...]:
    name = next((name for name in SHOWN if _is_given(table, name, row)), None)
    if name is None:
        there = next((name for name in SHOWN if table.has(name)), "prompt")
        value = table.columns[there][row] if table.has(there) else None
        raise table.wrong(there, row + 1, value, "what the answers answer")
    return _messages(table, name, row)


def _messages(table: Annotations, name: str, row: int) -> tuple[Message, ...]:
    value = plain(table.need(name)[row])
    several = json_or_text(value) if isinstance(value, str) and name != "prompt" else value
    if isinstance(several, str) and several.strip():
        return (Message("user", storable(several)),)
    try:
        return tuple(_message(one) for one in _list(several))
    except (KeyError, TypeError, ValueError):
        wanted = 'a text, or a list of {"role", "content"} with the roles ' + ", ".join(ROLES)
        raise table.wrong(name, row + 1, _brief(table, name, row), wanted) from None


def _list(value: Any) -> list[Any]:
    if not isinstance(value, list) or not value:
        raise TypeError
    return value


def _message(one: Any) -> Message:
    if isinstance(one, str):
        return Message("user", storable(one))
    role, content = one["role"], one["content"]
    if role not in ROLES or not isinstance(content, str):
        raise ValueError
    return Message(role, storable(content))


def _several(table: Annotations, row: int) -> Iterator[Response]:
    value = plain(table.columns["responses"][row])
    several = json_or_text(value) if isinstance(value, str) else value
    wanted = f'a list of 2 to {MOST_RESPONSES} {{"model", "text"}}, each model once'
    wrong = table.wrong("responses", row + 1, _brief(table, "responses", row), wanted)
    if not isinstance(several, list) or not 2 <= len(several) <= MOST_RESPONSES:
        raise wrong
    names = set()
    for one in several:
        if not isinstance(one, dict):
            raise wrong
        model, text = one.get("model"), one.get("text")
        if not (isinstance(model, str) and model.strip() and isinstance(text, str)):
            raise wrong
        name = storable(model.strip())[:MOST_NAME]
        if name in names:
            raise wrong
        names.add(name)
        yield Response(name, (Message("assistant", storable(text)),))


def _answers(table: Annotations, name: str, row: int, n_turns: int) -> tuple[str, ...]:
    value = plain(table.columns[name][row])
    several = json_or_text(value) if isinstance(value, str) and value[:1] == "[" else value
    texts = several if _are_texts(several, n_turns) else [value]
    if not all(isinstance(one, str) for one in texts):
        wanted = "a text, or a list of one for each turn of the user"
        raise table.wrong(name, row + 1, _brief(table, name, row), wanted)
    return tuple(map(storable, texts))


def _are_texts(value: object, n: int) -> bool:
    return isinstance(value, list) and len(value) == n and all(isinstance(x, str) for x in value)


def _require_others(table: Annotations, names: Sequence[str], row: int) -> None:
    if names[0] == names[1]:
        raise table.wrong("model_b", row + 1, names[1], "another model than model_a")


def _gold(table: Annotations, row: int, n: int) -> str:
    value = table.need("gold")[row]
    if n > 2:
        raise table.wrong("gold", row + 1, value, "gold for items of two answers alone")
    if str(value) not in GOLD:
        raise table.wrong("gold", row + 1, value, f"one of {', '.join(GOLD)}")
    return str(value)


def _is_given(table: Annotations, name: str, row: int) -> bool:
    value = table.columns[name][row] if table.has(name) else None
    return value is not None and value == value and str(value).strip() != ""


def _name(table: Annotations, name: str, row: int) -> str:
    value = table.need(name)[row]
    if isinstance(value, float) and value.is_integer():  # a table with gaps made floats of them
        value = int(value)
    text = storable("" if value is None else str(value).strip())
    if not text or text == "nan" or len(text) > MOST_NAME:
        raise table.wrong(name, row + 1, _brief(table, name, row), f"1 to {MOST_NAME} characters")
    return text


def _brief(table: Annotations, name: str, row: int) -> object:
    """Give a value as a sentence quotes it."""
    value = plain(table.need(name)[row])
    return value if len(repr(value)) <= 80 else repr(value)[:80] + "…"
