"""Prompts for models to answer, and answers that were recorded, from files of benchmarks."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from judge.case import Case, Message
from judge.ifeval import Task
from judge.tables.annotations import Annotations, read_annotations
from judge.tables.cases import CHECKLIST, items_of, tasks_of
from judge.tables.conversation import plain, turns_of
from rating.errors import DataError
from rating.tables.columns import quoted_names
from rating.tables.files import Files, json_or_text
from rating.tables.peers import announce, mention

Turns = tuple[str, ...]
"""Texts of one side of a conversation, turn by turn."""


@dataclass(frozen=True, slots=True)
class Item:
    """A prompt that every model answers.

    Attributes
    ----------
    id : str
        As the benchmark names it; of one without a name, the hash of its text.
    prompt : tuple of Message
        The conversation up to the first answer.
    further : tuple of str
        What the user says after each answer but the last.
    checklist : tuple of str
        Empty where none is given.
    references : tuple of str
        Right answers, turn by turn; empty where none is given.
    baseline : str or None
        The answer that comes with the item, and who wrote it: ``generator``.
    tags : tuple of str
        WildBench's: what kind of task it is.
    category : str or None
        What kind of task others say it is.
    task : judge.ifeval.Task or None
        Instructions that can be checked.
    """

    id: str
    prompt: tuple[Message, ...]
    further: Turns = ()
    checklist: tuple[str, ...] = ()
    references: Turns = ()
    baseline: str | None = None
    generator: str | None = None
    tags: tuple[str, ...] = ()
    category: str | None = None
    task: Task | None = None

    @property
    def text(self) -> str:
        """What the user said last before the first answer."""
        return self.prompt[-1].content


@dataclass(frozen=True, slots=True)
class Layout:
    """How a benchmark writes its items.

    Attributes
    ----------
    required : tuple of str
        Columns by which it is known.
    prompt : str
        Column of the prompt: a text, messages, or what the user says turn by turn.
    id : str or None
        Column of the name; None names items by their text.
    """

    name: str
    required: tuple[str, ...]
    prompt: str
    id: str | None


LAYOUTS = (
    Layout("prompts of IFEval", ("prompt", "instruction_id_list", "kwargs"), "prompt", "key"),
    Layout("tasks of WildBench", ("conversation_input",), "conversation_input", "session_id"),
    Layout(
        "questions of MT-bench or Arena-Hard", ("question_id", "turns"), "turns", "question_id"
    ),
    Layout("questions of Arena-Hard v2", ("uid", "prompt"), "prompt", "uid"),
    Layout("instructions of AlpacaEval", ("instruction",), "instruction", None),
    Layout("items", ("prompt",), "prompt", "id"),
)
"""The first counts of which all columns are there."""
_TAGS = ("primary_tag", "secondary_tags", "tags")


def read_items(source: str | Path | Files) -> list[Item]:
    """Read the prompts of a benchmark, as it writes them or as ours.

    Parameters
    ----------
    source : path, or Files
        Rows of ``prompt`` (a text, or a list of ``{"role", "content"}``), and ``id``,
        ``checklist`` and ``reference`` where known; or AlpacaEval's instructions, WildBench's
        tasks, ``question.jsonl`` of Arena-Hard and MT-bench, or IFEval's ``input_data.jsonl``.

    Raises
    ------
    DataError
        If it cannot be read as that, or two items have one name.
    """
    table = read_annotations(source, "items")
    layout = next((one for one in LAYOUTS if table.has(*one.required)), None)
    if layout is None:
        there = quoted_names(list(table.columns))
        msg = f"There is no column 'prompt' in {table.source!r}, nor another that holds prompts; "
        raise DataError(f"{msg}there are {there}.")
    name = layout.name
    if "arena-hard-v0.1" in table.columns.get("category", ()):  # of either version's layout
        name = "questions of Arena-Hard v0.1"
    announce(table.source, name, table.left_out, table.n_files)
    tasks: Sequence[Task | None] = tasks_of(table) or [None] * table.n
    items = [_item(table, layout, row, tasks[row]) for row in range(table.n)]
    _require_apart(table, [item.id for item in items])
    return items


def _item(table: Annotations, layout: Layout, row: int, task: Task | None) -> Item:
    prompt, further = _asked(table, layout.prompt, row)
    named = None if layout.id is None else _cell(table, layout.id, row)
    baseline, category = _cell(table, "output", row), _cell(table, "category", row)
    return Item(
        id=Case(prompt, "").prompt_id[:16] if named is None else str(named),
        prompt=prompt,
        further=further,
        checklist=items_of(table, row + 1, _cell(table, CHECKLIST, row)),
        references=_references(table, row),
        baseline=baseline if isinstance(baseline, str) else None,
        generator=str(_cell(table, "generator", row) or "reference"),
        tags=tuple(tag for name in _TAGS for tag in _several(_cell(table, name, row))),
        category=category if isinstance(category, str) else None,
        task=task,
    )


def _cell(table: Annotations, name: str, row: int) -> Any:
    """Give a value, arrays as lists; None where there is no such column."""
    return plain(table.columns[name][row]) if name in table.columns else None


def _several(value: Any) -> list[str]:
    if value is None:
        return []
    return [str(one) for one in (value if isinstance(value, list) else [value])]


def _references(table: Annotations, row: int) -> Turns:
    """Read right answers: a text, or a list with one for each turn."""
    value = _cell(table, "reference", row)
    several = [value] if isinstance(value, str) and value else value or []
    if not isinstance(several, list) or not all(isinstance(one, str) for one in several):
        wanted = "a text, or a list with one for each turn"
        raise table.wrong("reference", row + 1, value, wanted)
    return tuple(several)


def _asked(table: Annotations, name: str, row: int) -> tuple[tuple[Message, ...], Turns]:
    """Read a prompt: the conversation up to the first answer, and the user's turns after it."""
    value = _cell(table, name, row)
    try:
        turns = turns_of(value, lists=name == "turns")
    except DataError:
        turns = []
    if not turns or turns[-1].role != "user" or not all(turn.content.strip() for turn in turns):
        wanted = (
            'a text, a list of turns of the user, or of {"role", "content"} that ends with one'
        )
        raise table.wrong(name, row + 1, value, wanted)
    if name != "turns":
        return tuple(turns), ()
    return tuple(turns[:1]), tuple(turn.content for turn in turns[1:])


def _require_apart(table: Annotations, names: Sequence[str]) -> None:
    seen: dict[str, int] = {}
    for row, name in enumerate(names, start=1):
        if name in seen:
            msg = (
                f"Rows {seen[name]} and {row} of {table.source!r} are both {name[:60]!r}: give "
                "one row an item, or each a name of its own in a column 'id'."
            )
            raise DataError(msg)
        seen[name] = row


@dataclass(frozen=True, slots=True)
class Answered:
    """How a benchmark writes answers: which item, by whom, and what was said turn by turn.

    Attributes
    ----------
    key : str
        Column of the item's name, or of its prompt.
    model : tuple of str
        Columns of which the first that is there names the model; without one, the file does.
    """

    name: str
    required: tuple[str, ...]
    key: str
    model: tuple[str, ...]
    texts: Callable[[Any], Turns]


def _of_choices(value: Any) -> Turns:
    return _of_texts(value[0]["turns"])


def _of_messages(value: Any) -> Turns:
    return tuple(turn.content for turn in turns_of(value) if turn.role == "assistant")


def _of_texts(value: Any) -> Turns:
    return tuple(turn.content for turn in turns_of(value, "assistant"))


ANSWERED = (
    Answered(
        "answers of FastChat",
        ("question_id", "choices"),
        "question_id",
        ("model_id",),
        _of_choices,
    ),
    Answered("answers of Arena-Hard", ("uid", "messages"), "uid", ("model",), _of_messages),
    Answered(
        "results of WildBench", ("session_id", "output"), "session_id", ("generator",), _of_texts
    ),
    Answered(
        "outputs of AlpacaEval",
        ("instruction", "output"),
        "instruction",
        ("generator",),
        _of_texts,
    ),
    Answered("answers", ("id", "response"), "id", ("model", "generator"), _of_texts),
    Answered("answers", ("prompt", "response"), "prompt", ("model", "generator"), _of_texts),
)

Answers = dict[str, dict[str, Turns]]
"""By model and by the name, or the prompt, of an item: what was texts, turn by turn."""


def read_answers(sources: Iterable[str | Path | Files]) -> Answers:
    """Read recorded answers, as AlpacaEval, WildBench, FastChat or Arena-Hard write them, or ours.

    Of two answers of a model to one item the first counts, and one that is null or blank is none:
    `rating.tables.peers.mention` gives both counts.

    Raises
    ------
    DataError
        If a file cannot be read as that.
    """
    answers: Answers = {}
    for source in sources:
        table = read_annotations(source, "answers")
        blank, again = set[int](), set[int]()
        for row, model, key, texts in _answers_in(table):
            own = answers.setdefault(model, {})
            if not texts or not all(map(str.strip, texts)):
                blank.add(row)
            elif own.setdefault(key, texts) != texts:
                again.add(row)
        if blank:
            mention(
                f"{table.source}: {len(blank):,} answers are null or blank. They count as "
                "missing: models of the roster are asked for them, and the items of other models "
                "are excluded."
            )
        if again:
            mention(
                f"{table.source}: {len(again):,} rows answer an item again, with another answer "
                "of the same model. The first counts."
            )
    return answers


def _answers_in(table: Annotations) -> Iterable[tuple[int, str, str, Turns]]:
    """Give the row, the model, the name of the item or its prompt, and the texts."""
    layout = next((one for one in ANSWERED if table.has(*one.required)), None)
    if layout is None:
        there = quoted_names(list(table.columns))
        msg = (
            f"{table.source!r} holds no answers: it has the columns {there}. Give prompt and "
            "response, or the outputs of AlpacaEval, WildBench, FastChat or Arena-Hard."
        )
        raise DataError(msg)
    announce(table.source, layout.name, table.left_out, table.n_files)
    column = next((name for name in layout.model if name in table.columns), None)
    models = table.texts(column) if column else [_stem(table.source)] * table.n
    texts = [
        _spoken(table, layout, row, value)
        for row, value in enumerate(table.columns[layout.required[1]], start=1)
    ]
    for name in dict.fromkeys((layout.key, "prompt", "instruction")):
        if name in table.columns:
            keys = map(_key, table.columns[name])
            yield from zip(range(table.n), models, keys, texts, strict=True)


def _stem(source: str) -> str:
    return Path(source).name.partition(".")[0]


def _key(value: object) -> str:
    """Name an item by its id or its prompt; of a conversation, by the last turn."""
    try:
        return turns_of(value)[-1].content
    except (DataError, IndexError):
        return str(value)


def _spoken(table: Annotations, layout: Answered, row: int, value: object) -> Turns:
    try:
        as_json = isinstance(value, str) and layout.texts is not _of_texts
        return layout.texts(plain(json_or_text(str(value)) if as_json else value))
    except (DataError, KeyError, IndexError, TypeError) as error:
        wanted = "what a model answered: a text, or turn by turn as the benchmark writes it"
        raise table.wrong(layout.required[1], row, value, wanted) from error


def answer_to(item: Item, answers: Mapping[str, Turns]) -> Turns | None:
    """Give an answer to an item, by the item's name or else its prompt; None where there is none.

    One with fewer turns than the item is none.
    """
    texts = answers.get(item.id) or answers.get(item.text)
    return texts if texts is not None and len(texts) > len(item.further) else None
