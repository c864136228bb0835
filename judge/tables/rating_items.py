"""What people are given to rate: a prompt or dialogue with two answers or more, from files."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import takewhile
from pathlib import Path

import numpy as np

from judge.agent_run import AgentRun
from judge.case import ROLES, Message
from judge.tables.annotations import Annotations, holds_first, list_of, read_annotations
from judge.tables.cases import Source, pairs_of, read_outputs, read_prompts
from judge.tables.cells import CONVERSATIONS, RESPONSES, data_of, turns_of
from judge.tables.native import for_judge
from rating.errors import DataError
from rating.outcome import OUTCOMES, of_sides
from rating.tables.columns import quoted_names
from rating.tables.escaping import storable
from rating.tables.peers import mention, recognised

GOLD = tuple(outcome.value for outcome in OUTCOMES[:3])
"""What a gold item may be."""
MOST_RESPONSES = 12
MOST_CHARACTERS = 100_000
"""Of all texts of an item, which a page shows at once."""
MOST_NAME = 300
"""Characters of an id or of a model's name."""
SHOWN = ("prompt", "messages", "conversation")
"""Columns of what comes before the answers, the first that is there."""
PAIR = tuple(names[0] for names in RESPONSES.values())


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
    source: Source, *, gold: bool = False, outputs: Path | None = None, prompts: Path | None = None
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
        Or pairs as other tools write them (`judge.tables.cases.read_cases`), each under the id
        that a judge's run gives it; rows that cannot be rated are excluded and announced.
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
    if not table.has("item_id") and recognised([*table.columns], partial(holds_first, table)):
        return _native(table, gold=gold)
    if not any(table.has(*names) for names in (PAIR, CONVERSATIONS, ("responses",))):
        raise _without_texts(table)
    items = [_item(table, row, gold=gold) for row in range(table.n)]
    first: dict[str, int] = {}
    for row, one in enumerate(items, 1):
        if (before := first.setdefault(one.item, row)) != row:
            wanted = f"each item an id of its own: row {before} has this one"
            raise table.wrong("item_id", row, one.item, wanted)
    return items


def _native(table: Annotations, *, gold: bool) -> list[RatingItem]:
    """Read pairs as other tools write them; nobody can mend a public file."""
    judged = for_judge(table, pairs=True)
    items: dict[str, RatingItem] = {}
    left_out: Counter[str] = Counter()
    for row, named in enumerate(pairs_of(judged)):
        case, names = named.case, named.models
        answers = [(*case.earlier_a, case.response_a), (*case.earlier_b, case.response_b or "")]
        right = _gold(judged, row, 2) if gold else None
        ids = storable(named.battle_id), storable(named.prompt_id)
        item = RatingItem(*ids, *_sides(case.prompt, names, answers), right)
        reasons = {
            "with an image, and raters are shown text alone": case.images,
            f"of more than {MOST_CHARACTERS:,} characters": _size(item) > MOST_CHARACTERS,
            "of a model against itself": names[0] == names[1],
            "with the id of an earlier row": item.item in items,
        }
        if why := next((reason for reason, holds in reasons.items() if holds), None):
            left_out[why] += 1
        else:
            items[item.item] = item
    text = ", ".join(f"{n:,} {reason}" for reason, n in sorted(left_out.items()))
    if not items:
        raise DataError(f"No row of {table.source!r} can be rated by people: {text}.")
    if text:
        mention(f"{table.source}: rows that are no items to rate: {text}")
    return [*items.values()]


def _joined(table: Annotations, outputs: Path, prompts: Path | None) -> Annotations:
    """Give items that name prompts and models their texts, and an id where they have none."""
    if has := table.find(*PAIR, "responses", *CONVERSATIONS):
        msg = f"{table.source!r} has answers of its own, in {has!r}: drop --outputs."
        raise DataError(msg)
    names = {
        column: [_name(table, column, row) for row in range(table.n)]
        for column in ("prompt_id", *of_sides("model"))
    }
    asked = {*names["prompt_id"]}
    models = [names[column] for column in of_sides("model")]
    answers = read_outputs(outputs, {*models[0], *models[1]}, asked)
    columns = dict(table.columns)
    for column, writers in zip(PAIR, models, strict=True):
        pairs = list(zip(names["prompt_id"], writers, strict=True))
        if lacking := next((pair for pair in pairs if pair not in answers), None):
            msg = f"{str(outputs)!r} holds no answer of {lacking[1]!r} to {lacking[0]!r}."
            raise DataError(msg)
        columns[column] = list_of([answers[pair] for pair in pairs])
    if prompts is not None:
        texts = read_prompts(prompts, asked)
        if missing := sorted(asked - texts.keys()):
            raise DataError(f"{str(prompts)!r} holds no text of the prompt {missing[0]!r}.")
        columns["prompt"] = list_of([texts[prompt] for prompt in names["prompt_id"]])
    elif not table.find(*SHOWN):
        msg = f"{table.source!r} names prompts and has no texts of them: give --prompts FILE."
        raise DataError(msg)
    if table.has("item_id"):
        return replace(table, columns=columns)
    columns["item_id"] = list_of([" · ".join(one) for one in zip(*names.values(), strict=True)])
    first = np.sort(np.unique(columns["item_id"], return_index=True)[1])  # of several judges
    return replace(table, columns={name: values[first] for name, values in columns.items()})


def _without_texts(table: Annotations) -> DataError:
    """Say what a table lacks, also that of items to send to people."""
    if table.has("verdict_row", "overall"):
        return DataError(
            f"{table.source!r} names items to send to people, as arena study judge writes them, "
            "and holds no texts: say where the answers and the prompts are that were judged, with "
            "--outputs FILE and --prompts FILE."
        )
    return DataError(
        f"There are no answers in {table.source!r}: give the columns response_a and response_b, "
        "conversation_a and conversation_b, or responses. There are "
        f"{quoted_names(list(table.columns))}."
    )


def _item(table: Annotations, row: int, *, gold: bool) -> RatingItem:
    name = _name(table, "item_id", row)
    prompt_id = _name(table, "prompt_id", row) if _is_given(table, "prompt_id", row) else None
    before, responses = _texts(table, row)
    right = _gold(table, row, len(responses)) if gold else None
    item = RatingItem(name, prompt_id, before, responses, right)
    if (size := _size(item)) > MOST_CHARACTERS:
        wanted = f"an item of {MOST_CHARACTERS:,} characters at the most, and not of {size:,}"
        raise table.wrong("item_id", row + 1, name, wanted)
    return item


def _size(item: RatingItem) -> int:
    turns = (turn for one in item.responses for turn in one.turns)
    return sum(len(turn.content) for turn in (*item.messages, *turns))


Texts = tuple[tuple[Message, ...], tuple[Response, ...]]
"""What comes before the answers, and the answers."""


def _texts(table: Annotations, row: int) -> Texts:
    has_talks = table.has(*CONVERSATIONS)
    if not has_talks and _is_given(table, "responses", row):
        return _before(table, row), _several(table, row)
    a, b = of_sides("model")
    names = [_name(table, name, row) for name in (a, b)]
    if names[0] == names[1]:
        raise table.wrong(b, row + 1, names[1], f"another model than {a}")
    if not has_talks:
        before = _before(table, row)
        users = sum(turn.role == "user" for turn in before)
        n = 1 if any(turn.role == "assistant" for turn in before) else users
        ours, theirs = answers = [_answers(table, name, row, n) for name in PAIR]
        if len(ours) != len(theirs):
            wanted = f"as many answers as {PAIR[0]} has, {len(ours)}"
            raise table.wrong(PAIR[1], row + 1, table.cell(PAIR[1], row), wanted)
        return _sides(before, names, answers)
    one, other = sides = [_messages(table, name, row) for name in CONVERSATIONS]
    for name, side in zip(CONVERSATIONS, sides, strict=True):
        if side[-1].role != "assistant":
            wanted = "a dialogue that ends with an answer of the assistant"
            raise table.wrong(name, row + 1, table.cell(name, row), wanted)
    ends = zip(one[:-1], other[:-1], strict=False)
    n = len([*takewhile(lambda both: both[0] == both[1], ends)])
    return one[:n], tuple(map(Response, names, (one[n:], other[n:])))


def _sides(
    asked: Sequence[Message], names: Sequence[str], answers: Sequence[Sequence[str]]
) -> Texts:
    """Set answers behind what was asked, several turn by turn from the first turn of the user."""
    n = len(asked) - len(answers[0]) + 1
    turns = (dialogue(asked[n:], texts) for texts in answers)
    return _storable(asked[:n]), tuple(map(Response, names, map(_storable, turns)))


def _storable(turns: Sequence[Message]) -> tuple[Message, ...]:
    return tuple(replace(turn, content=storable(turn.content)) for turn in turns)


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
        there = table.find(*SHOWN) or SHOWN[0]
        raise table.wrong(there, row + 1, table.cell(there, row), "what the answers answer")
    return _messages(table, name, row)


def _messages(table: Annotations, name: str, row: int) -> tuple[Message, ...]:
    cell = table.cell(name, row)
    try:
        turns = turns_of(cell, lists=name != "prompt")
    except DataError:
        turns = []
    if not turns or _has_null(cell) or any(turn.images for turn in turns):
        wanted = 'a text, or a list of {"role", "content"} with the roles ' + ", ".join(ROLES)
        raise table.wrong(name, row + 1, table.cell(name, row), wanted)
    return _storable(turns)


def _has_null(cell: object) -> bool:
    """Whether a text is missing in a cell: one that is empty is none that is missing."""
    value = data_of(cell) if str(cell)[:1] == "[" else cell
    several = value if isinstance(value, list) else [value]
    return any(
        (one.get("content", "") if isinstance(one, dict) else one) is None for one in several
    )


def _several(table: Annotations, row: int) -> tuple[Response, ...]:
    several = data_of(table.cell("responses", row))
    answers: dict[str, Response] = {}
    for one in several if isinstance(several, list) else ():
        model, text = map(one.get, ("model", "text")) if isinstance(one, dict) else (None, None)
        if isinstance(model, str) and model.strip() and isinstance(text, str):
            name = storable(model.strip())[:MOST_NAME]
            answers[name] = Response(name, (Message("assistant", storable(text)),))
    if not 2 <= len(answers) <= MOST_RESPONSES or len(answers) != len(several):
        wanted = f'a list of 2 to {MOST_RESPONSES} {{"model", "text"}}, each model once'
        raise table.wrong("responses", row + 1, several, wanted)
    return tuple(answers.values())


def _answers(table: Annotations, name: str, row: int, n: int) -> list[str]:
    """Read one answer, or one to each of n turns of the user."""
    cell = table.cell(name, row)
    ways = (True, False) if isinstance(cell, str) else (True,)  # a text may well be JSON
    for lists in ways:
        try:
            turns = turns_of(cell, "assistant", lists=lists)
        except DataError:
            continue
        fit = all(turn.role == "assistant" and not turn.images for turn in turns)
        if fit and len(turns) in ({n} if lists and len(ways) > 1 else {1, n}):
            if _has_null(cell):
                break
            return [turn.content for turn in turns]
    wanted = "a text, or a list of one for each turn of the user"
    raise table.wrong(name, row + 1, cell, wanted)


def _gold(table: Annotations, row: int, n: int) -> str:
    value = table.need("gold")[row]
    if n > 2 or str(value) not in GOLD:
        wanted = "gold for items of two answers alone" if n > 2 else f"one of {', '.join(GOLD)}"
        raise table.wrong("gold", row + 1, value, wanted)
    return str(value)


def _is_given(table: Annotations, name: str, row: int) -> bool:
    value = table.cell(name, row)
    return value is not None and value == value and str(value).strip() != ""


def _name(table: Annotations, name: str, row: int) -> str:
    text = storable(table.name(name, row))
    if len(text) > MOST_NAME:
        raise table.wrong(name, row + 1, table.cell(name, row), f"1 to {MOST_NAME} characters")
    return text
