"""Items from files: benchmark prompts with recorded answers, and items for people to rate.

`read_items` reads prompts that models answer; `read_answers` and `read_references` recorded
answers. `read_rating_items` reads what people are given to rate: a prompt or dialogue with two
answers or more.
"""

import hashlib
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import takewhile
from pathlib import Path

import numpy as np

from judge.case import ROLES, AgentRun, Case, Message
from judge.ifeval import Task
from judge.tables.annotations import (
    CONVERSATIONS,
    GENERATORS,
    PROMPTS,
    RESPONSES,
    Annotations,
    data_of,
    holds_first,
    list_of,
    plain,
    read_annotations,
    turns_of,
)
from judge.tables.cases import (
    NamedCase,
    Source,
    checklist_of,
    pairs_of,
    read_outputs,
    read_prompts,
    references_of,
    tasks_of,
)
from judge.tables.native import for_judge
from rating.errors import DataError
from rating.outcome import OUTCOMES, of_sides
from rating.tables.columns import quoted_names
from rating.tables.files import Files, storable
from rating.tables.peers import announce, mention, recognised

# Benchmark prompts and answers


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
            raise DataError(
                f"Rows {first + 1} and {row + 1} of {table.source!r} are both {item.id[:60]!r}: "
                "give one row an item, or each a name of its own in a column 'id'."
            )
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


CHOICES = "choices"
ANSWERED: Sequence[tuple[str, str, str, tuple[str, ...]]] = (
    ("answers of FastChat", "question_id", CHOICES, ("model_id",)),
    ("answers of Arena-Hard", "uid", "messages", ("model",)),
    ("results of WildBench", "session_id", "output", ("generator",)),
    ("outputs of AlpacaEval", "instruction", "output", ("generator",)),
    ("answers", "id", "response", GENERATORS[::-1]),
    ("answers", "prompt", "response", GENERATORS[::-1]),
)
"""What a benchmark's answers are called, the column of the item's name or its prompt, that of what
was said turn by turn, and columns that may name the model (else the file does)."""

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
                f"{table.source}: answers that are null or blank, and so missing: {len(blank):,}. "
                "Models of the roster are asked for them, and the items of other models "
                "are excluded."
            )
        if again:
            mention(
                f"{table.source}: rows with another answer of the same model to an item: "
                f"{len(again):,}. The first counts."
            )
    return answers


def _answers_in(table: Annotations) -> Iterator[tuple[int, str, str, Turns]]:
    """Give the row, the model, the name of the item or its prompt, and the texts."""
    layout = next((one for one in ANSWERED if table.has(*one[1:3])), None)
    if layout is None:
        there = quoted_names(list(table.columns))
        raise DataError(
            f"{table.source!r} holds no answers: it has the columns {there}. Give prompt and "
            "response, or the outputs of AlpacaEval, WildBench, FastChat or Arena-Hard."
        )
    name, key, answer, named_by = layout
    announce(table.source, name, table.left_out, table.n_files)
    column = table.find(*named_by)
    stem = Path(table.source).name.partition(".")[0]
    models = table.texts(column) if column else [stem] * table.n
    texts = []
    for row, value in enumerate(table.columns[answer]):
        try:
            own = data_of(value)[0]["turns"] if answer == CHOICES else plain(value)
            turns = turns_of(own, "assistant")
            texts.append(tuple(turn.content for turn in turns if turn.role == "assistant"))
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
    asked = (None, *REFERRED)
    return [
        replace(item, references=references.get(item.id, ()) if item.category in asked else ())
        for item in items
    ]


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
"""Of each row of the two gamed baselines: half of upstream's 0.2."""
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
        raise DataError(
            f"{difficulties.source!r} holds the difficulty of none of the {len(items):,} items: "
            "name instructions by a column 'instruction' or 'instruction_sha256', or by 'idx', "
            "the item's own id, or its place from 0 where all items have a row."
        )
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


# Items to rate


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
    items = [_rating_items_item(table, row, gold=gold) for row in range(table.n)]
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
        raise DataError(f"{table.source!r} has answers of its own, in {has!r}: drop --outputs.")
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
    """Describe what a table lacks, also that of items to send to people."""
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


def _rating_items_item(table: Annotations, row: int, *, gold: bool) -> RatingItem:
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
    raise table.wrong(name, row + 1, cell, "a text, or a list of one for each turn of the user")


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
