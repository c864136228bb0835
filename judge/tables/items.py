"""Prompts for models to answer, and answers that were recorded, from files of benchmarks."""

import hashlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from judge.case import Case, Message
from judge.ifeval import Task
from judge.tables.annotations import Annotations, list_of, read_annotations
from judge.tables.cases import NamedCase, checklist_of, references_of, tasks_of
from judge.tables.cells import GENERATORS, PROMPTS, data_of, plain, turns_of
from rating.errors import DataError
from rating.tables.columns import quoted_names
from rating.tables.files import Files
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
        Right answers, turn by turn; empty where none is given. The notes of that name in
        MT-bench's questions are none: upstream shows a judge its file of reference answers.
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


LAYOUTS = (
    ("prompts of IFEval", ("prompt", "instruction_id_list", "kwargs"), "prompt", "key"),
    ("tasks of WildBench", ("conversation_input",), "conversation_input", "session_id"),
    ("questions of MT-bench or Arena-Hard", ("question_id", "turns"), "turns", "question_id"),
    ("questions of Arena-Hard v2", ("uid", "prompt"), "prompt", "uid"),
    ("instructions of AlpacaEval", ("instruction",), "instruction", None),
    ("items", ("prompt",), "prompt", "id"),
)
"""What a benchmark's items are called, the columns by which they are known, that of the prompt
(a text, messages, or what the user says turn by turn), and that of the name, else their text.

The first counts of which all columns are there.
"""
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
    layout = next((one for one in LAYOUTS if table.has(*one[1])), None)
    if layout is None:
        there = quoted_names(list(table.columns))
        msg = f"There is no column 'prompt' in {table.source!r}, nor another that holds prompts; "
        raise DataError(f"{msg}there are {there}.")
    name, _, asked, named_by = layout
    if "arena-hard-v0.1" in table.columns.get("category", ()):  # of either version's layout
        name = "questions of Arena-Hard v0.1"
    announce(table.source, name, table.left_out, table.n_files)
    tasks: Sequence[Task | None] = tasks_of(table) or [None] * table.n
    rows: dict[str, int] = {}
    items = []
    for row, task in enumerate(tasks):
        item = _item(table, row, asked, named_by, task)
        if (first := rows.setdefault(item.id, row)) != row:
            msg = (
                f"Rows {first + 1} and {row + 1} of {table.source!r} are both {item.id[:60]!r}: "
                "give one row an item, or each a name of its own in a column 'id'."
            )
            raise DataError(msg)
        items.append(item)
    return items


def _item(
    table: Annotations, row: int, asked: str, named_by: str | None, task: Task | None
) -> Item:
    prompt, further = _asked(table, asked, row)
    named = None if named_by is None else table.cell(named_by, row)
    baseline, category = table.cell("output", row), table.cell("category", row)
    tags = [table.cell(name, row) for name in _TAGS]
    several = [tag if isinstance(tag, list) else [tag] for tag in tags if tag is not None]
    return Item(
        id=Case(prompt, "").prompt_id[:16] if named is None else str(named),
        prompt=prompt,
        further=further,
        checklist=checklist_of(table, row),
        references=() if asked == "turns" else references_of(table, row),
        baseline=baseline if isinstance(baseline, str) else None,
        generator=str(table.cell("generator", row) or "reference"),
        tags=tuple(str(tag) for some in several for tag in some),
        category=category if isinstance(category, str) else None,
        task=task,
    )


def _asked(table: Annotations, name: str, row: int) -> tuple[tuple[Message, ...], Turns]:
    """Read a prompt: the conversation up to the first answer, and the user's turns after it."""
    value = table.cell(name, row)
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


def _of_texts(value: Any) -> Turns:
    """Give the assistant's turns, which a text without a role is."""
    return tuple(one.content for one in turns_of(value, "assistant") if one.role == "assistant")


ANSWERED: Sequence[tuple[str, str, str, tuple[str, ...], Callable[[Any], Turns]]] = (
    (
        "answers of FastChat",
        "question_id",
        "choices",
        ("model_id",),
        lambda value: _of_texts(value[0]["turns"]),
    ),
    ("answers of Arena-Hard", "uid", "messages", ("model",), _of_texts),
    ("results of WildBench", "session_id", "output", ("generator",), _of_texts),
    ("outputs of AlpacaEval", "instruction", "output", ("generator",), _of_texts),
    ("answers", "id", "response", GENERATORS[::-1], _of_texts),
    ("answers", "prompt", "response", GENERATORS[::-1], _of_texts),
)
"""What a benchmark's answers are called, the column of the item's name or its prompt, that of what
was said turn by turn, columns that may name the model (else the file does), and how to read it."""

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


def _answers_in(table: Annotations) -> Iterator[tuple[int, str, str, Turns]]:
    """Give the row, the model, the name of the item or its prompt, and the texts."""
    layout = next((one for one in ANSWERED if table.has(*one[1:3])), None)
    if layout is None:
        there = quoted_names(list(table.columns))
        msg = (
            f"{table.source!r} holds no answers: it has the columns {there}. Give prompt and "
            "response, or the outputs of AlpacaEval, WildBench, FastChat or Arena-Hard."
        )
        raise DataError(msg)
    name, key, answer, named_by, texts_of = layout
    announce(table.source, name, table.left_out, table.n_files)
    column = table.find(*named_by)
    stem = Path(table.source).name.partition(".")[0]
    models = table.texts(column) if column else [stem] * table.n
    texts = []
    for row, value in enumerate(table.columns[answer]):
        try:
            texts.append(texts_of(plain(value) if texts_of is _of_texts else data_of(value)))
        except (DataError, KeyError, IndexError, TypeError) as error:
            wanted = "what a model answered: a text, or turn by turn as the benchmark writes it"
            raise table.wrong(answer, row + 1, value, wanted) from error
    for name in dict.fromkeys((key, *PROMPTS)):
        if name in table.columns:
            keys = map(_key, table.columns[name])
            yield from zip(range(table.n), models, keys, texts, strict=True)


def _key(value: object) -> str:
    """Name an item by its id or its prompt; of a conversation, by the last turn."""
    try:
        return turns_of(value)[-1].content
    except (DataError, IndexError):
        return str(value)


def answer_to(item: Item, answers: Mapping[str, Turns]) -> Turns | None:
    """Give an answer to an item, by the item's name or else its prompt; None where there is none.

    One with fewer turns than the item is none.
    """
    texts = answers.get(item.id) or answers.get(item.text)
    return texts if texts is not None and len(texts) > len(item.further) else None


REFERRED = ("math", "reasoning", "coding")
"""Categories of MT-bench for which upstream shows a judge the reference answer."""


def read_references(path: Path) -> dict[str, Turns]:
    """Read reference answers by item, as FastChat's ``reference_answer/gpt-4.jsonl`` has them.

    Raises
    ------
    DataError
        If it cannot be read as answers, or they are of several models.
    """
    answers = read_answers([path])
    if len(answers) != 1:
        names = ", ".join(sorted(answers)) or "none"
        msg = f"{str(path)!r} holds answers of several models or of none ({names}): give one's."
        raise DataError(msg)
    return next(iter(answers.values()))


def referred(items: Iterable[Item], references: Mapping[str, Turns]) -> list[Item]:
    """Put reference answers in the place of the items' own; none outside of `REFERRED`."""
    return [
        replace(item, references=references.get(item.id, ()) if _is_referred(item) else ())
        for item in items
    ]


def _is_referred(item: Item) -> bool:
    return item.category is None or item.category in REFERRED


def with_references(
    cases: Iterable[NamedCase], references: Mapping[str, Turns], source: str
) -> Iterator[NamedCase]:
    """Put reference answers in the place of the cases' own: to each turn of the user so far.

    Raises
    ------
    DataError
        If none is of a prompt of the cases.
    """
    met, named = False, None
    for named in cases:
        asked = sum(turn.role == "user" for turn in named.case.prompt)
        texts = references.get(named.prompt_id, ())[:asked]
        met = met or bool(texts)
        yield replace(named, case=replace(named.case, reference="\n\n".join(texts) or None))
    if named is not None and not met:
        raise DataError(
            f"--references {source!r} answers no prompt of the cases: its items are "
            f"{quoted_names(sorted(references)[:3])}, and a prompt_id is {named.prompt_id!r}."
        )


GAMED_WEIGHT = 0.1
"""Of each row of the two gamed baselines: half of upstream's .2."""
_FEWEST_DIGITS = 8
"""Of a hash by which an instruction is named."""


def read_difficulties(path: Path) -> Annotations:
    """Read ``idx`` and ``difficulty``, or AlpacaEval's ``instruction_difficulty.csv``.

    Theirs has ``index``, the place of the instruction from 0, and ``instruction_difficulty``.

    Raises
    ------
    DataError
        If it cannot be read.
    """
    table = read_annotations(path)
    if not table.has("index", "instruction_difficulty"):
        return table
    columns = table.columns
    theirs = {"idx": columns["index"], "difficulty": columns["instruction_difficulty"]}
    return replace(table, columns={**columns, **theirs})


def read_regularisation(path: Path) -> Annotations:
    """Read ``idx``, ``x_len``, ``pseudo_y`` and ``weight``, or AlpacaEval's ``df_gamed.csv``.

    Theirs has ``index``, ``std_delta_len`` (in standard deviations; ``x_len`` is its tanh) and
    ``preference`` from 0 to 1.

    Raises
    ------
    DataError
        If it cannot be read, or a value is no number.
    """
    table = read_annotations(path)
    if not table.has("index", "std_delta_len", "preference"):
        return table
    return replace(
        table,
        columns={
            "idx": table.columns["index"],
            "x_len": list_of(np.tanh(table.numbers("std_delta_len")).tolist()),
            "pseudo_y": table.columns["preference"],
            "weight": list_of([GAMED_WEIGHT] * table.n),
        },
    )


def of_items(
    difficulties: Annotations, regularisation: Annotations | None, items: Sequence[Item]
) -> tuple[Annotations, Annotations | None]:
    """Name instructions as the items of a bench do; those of no item keep their own names.

    They are known by their text (``instruction``), its hash (``instruction_sha256``, or its
    beginning), or the item's own name (``idx``). A number is the place among the items only where
    the file has as many rows as there are items.

    Raises
    ------
    DataError
        If the file holds none of the items.
    """
    idx = difficulties.texts("idx" if difficulties.has("idx") else "instruction")
    names = dict(zip(idx, _names(difficulties, idx, items), strict=True))
    if not {item.id for item in items} & {*names.values()}:
        msg = (
            f"{difficulties.source!r} holds the difficulty of none of the {len(items):,} items: "
            "name instructions by a column 'instruction' or 'instruction_sha256', or by 'idx', "
            "the item's own id, or its place from 0 where all items have a row."
        )
        raise DataError(msg)
    named = _as_named(difficulties, [names[own] for own in idx])
    if regularisation is None:
        return named, None
    theirs = [names.get(own, own) for own in regularisation.texts("idx")]
    return named, _as_named(regularisation, theirs)


def _names(table: Annotations, idx: Sequence[str], items: Sequence[Item]) -> list[str]:
    column = table.find("instruction", "instruction_sha256")
    keys = zip(map(str, table.columns[column]) if column else idx, idx, strict=True)
    if column == "instruction":
        by_text = {item.text: item.id for item in items}
        return [by_text.get(text, own) for text, own in keys]
    if column:
        by_hash = {hashlib.sha256(item.text.encode()).hexdigest(): item.id for item in items}
        return [
            next((by_hash[one] for one in by_hash if one.startswith(digest)), own)
            if len(digest) >= _FEWEST_DIGITS
            else own
            for digest, own in keys
        ]
    places = {str(place): item.id for place, item in enumerate(items)}
    if {*idx} & {item.id for item in items} or {*idx} != {*places}:
        return list(idx)
    return [places[own] for own in idx]


def _as_named(table: Annotations, idx: Sequence[str]) -> Annotations:
    return replace(table, columns={**table.columns, "idx": list_of(idx)})
