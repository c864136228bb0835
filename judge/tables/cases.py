"""Cases for a judge from files: pairs, single responses, and instructions to check."""

import unicodedata
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from judge.case import Case, Message
from judge.ifeval import Checked, Task, check, read_task
from judge.tables.annotations import Annotations, annotation_pieces, read_annotations
from judge.tables.conversation import NO_ANSWER, plain, turns_of
from judge.tables.images import MOST_IMAGES, read_image
from judge.tables.native import announce_judged, for_judge
from rating.errors import DataError, RatingError
from rating.tables.columns import KNOWN, quoted_names
from rating.tables.files import Files, json_or_text
from rating.tables.peers import mention, recognised
from rating.typing import Floats

PROMPTS = ("prompt", "instruction")
REFERENCE = "reference"
IMAGES = ("image", "images")
RESPONSES = {
    "a": ("response_a", "output_a", "output_1"),
    "b": ("response_b", "output_b", "output_2"),
}
MODELS = {"a": ("model_a", "model", "generator_1"), "b": ("model_b", "baseline", "generator_2")}
OUTPUTS = ("output", "response")
GENERATORS = ("generator", "model")
Source = str | Path | Files
CHECKLIST, SESSION = "checklist", "session_id"
IDS, KWARGS = "instruction_id_list", "kwargs"
READ = frozenset(
    (
        *(*PROMPTS, *OUTPUTS, *GENERATORS, REFERENCE, *IMAGES, CHECKLIST, SESSION, "label"),
        *(name for names in (*RESPONSES.values(), *MODELS.values()) for name in names),
        *(
            "id",
            "battle_id",
            "prompt_id",
            "item_id",
            IDS,
            KWARGS,
            "key",
            "order",
            "status",
            "method",
        ),
        *(name for names in KNOWN.values() for name in names),
    )
)
"""Columns that cases are made of, or that are read beside them: votes, labels, instructions."""


@dataclass(frozen=True, slots=True)
class NamedCase:
    """A case, and who wrote it, which the judge does not see.

    Attributes
    ----------
    model_b : str or None
        None of a single response, which ``model_a`` wrote.
    session_id : str or None
        WildBench's name of the task, where known.
    checklist : tuple of str
        Given with the prompt; empty if it is still to be written.
    """

    battle_id: str
    prompt_id: str
    model_a: str
    model_b: str | None
    case: Case
    session_id: str | None = None
    checklist: tuple[str, ...] = ()


def read_cases(paths: Sequence[Source]) -> list[NamedCase]:
    """Read cases from files: JSON, JSON lines, CSV or Parquet.

    Parameters
    ----------
    paths : sequence of path, or of Files
        One table with a pair a row: ``prompt`` (text, or a list of ``{"role", "content"}``),
        ``response_a``, ``response_b``, and ``model_a``, ``model_b`` (or ``baseline``),
        ``battle_id``, ``prompt_id``, ``session_id``, ``checklist`` (a list of questions),
        ``reference`` (a right answer) and ``image`` (or ``images``, a list: paths in the file's
        folder, ``data:`` URLs, addresses by https) where known. Where each side had a conversation
        of its own, ``prompt`` is the list of the user's turns, and a response that of its answers.
        Texts may be content blocks (``{"type": "text", "text"}``), and messages JSON.
        Or two and more tables of outputs as AlpacaEval writes them (``instruction``, ``output``,
        ``generator``): the first is side A against each of the others, and what both answer is
        compared.

    Raises
    ------
    DataError
        If a file cannot be read as that, or two files have no prompt in common.
    """
    return [*each_pair(paths)]


def each_pair(
    paths: Sequence[Source], *, turns: bool = True, warn: Callable[[str], None] = mention
) -> Iterator[NamedCase]:
    """Give the cases that `read_cases` does, those of one table as it is read.

    Parameters
    ----------
    turns : bool
        Whether to read rows of several turns in the formats of other tools, or to exclude them.
    warn : callable
        Takes a sentence about rows that are excluded.
    """
    if len(paths) == 1:
        for table in _read(paths[0], pairs=True, turns=turns, warn=warn):
            yield from pairs_of(table)
        return
    first, *others = (_by_prompt(path, warn) for path in paths)
    for path, b in zip(paths[1:], others, strict=True):
        yield from _against(first, b, (str(paths[0]), str(path)), warn)


def read_responses(paths: Sequence[Source]) -> list[NamedCase]:
    """Read single responses from files: JSON, JSON lines, CSV or Parquet.

    Parameters
    ----------
    paths : sequence of path, or of Files
        Tables with a response a row: ``prompt``, ``response``, ``model``, or ``instruction``,
        ``output``, ``generator``; and ``battle_id``, ``prompt_id``, ``session_id``,
        ``checklist`` and ``reference`` where known. Several turns as in `read_cases`. Of a file
        of pairs, both responses.

    Raises
    ------
    DataError
        If a file cannot be read as that.
    """
    return [*each_response_in(paths)]


def each_response_in(
    paths: Sequence[Source], *, turns: bool = True, warn: Callable[[str], None] = mention
) -> Iterator[NamedCase]:
    """Give the cases that `read_responses` does, as they are read; options as of `each_pair`."""
    for path in paths:
        for table in _read(path, pairs=False, turns=turns, warn=warn):
            yield from responses_of(table)


def read_labels(source: Source) -> Floats | None:
    """Read which response of each pair of a file is the better one.

    Returns
    -------
    ndarray of shape (n_rows,), or None
        1 for side A, -1 for side B, 0 for a tie, NaN where the row does not say; by the column
        ``label``, else ``winner`` (`judge.tables.annotations.Annotations.right_side`). None where
        there is neither.

    Raises
    ------
    DataError
        For any other label.
    """
    table = for_judge(read_annotations(source, "cases"), pairs=True)
    column = next((name for name in ("label", "winner") if table.has(name)), None)
    if column is None:
        return None
    return np.array([table.right_side(column, row) for row in range(table.n)])


def each_response(pairs: Iterable[NamedCase]) -> Iterator[NamedCase]:
    """Take pairs apart: both responses of each that are there, as cases of their own."""
    for named in pairs:
        if _is_whole(case := _alone(named.case)):
            yield replace(named, model_b=None, case=case)
        if named.case.response_b is None or named.model_b is None:
            continue
        if _is_whole(case := _alone(named.case.swapped())):
            yield replace(named, model_a=named.model_b, model_b=None, case=case)


def _is_whole(case: Case) -> bool:
    return all(text.strip() for text in (*case.earlier_a, case.response_a))


def _alone(case: Case) -> Case:
    """Leave out side B."""
    return replace(case, response_b=None, earlier_b=())


def pairs_of(table: Annotations) -> list[NamedCase]:
    """Give the pairs in a table; as `read_cases`."""
    prompts = _one_of(table, PROMPTS)
    texts = {side: _one_of(table, RESPONSES[side]) for side in "ab"}
    names = {side: _names(table, MODELS[side], f"response_{side}") for side in "ab"}
    rows = []
    for row, prompt in enumerate(prompts):
        a, b = (_answers(table, RESPONSES[side][0], row, texts[side][row]) for side in "ab")
        rows.append(_named(_case(table, row, prompt, a, b), names["a"][row], names["b"][row]))
    return _with_known(table, rows)


def _read(
    path: Source, *, pairs: bool, turns: bool = True, warn: Callable[[str], None] = mention
) -> Iterator[Annotations]:
    """Give the rows of a file in pieces, as `for_judge` gives them."""
    files = Files.of(path)
    n = n_judged = 0
    left_out: Counter[str] = Counter()
    table = None
    for table in annotation_pieces(path, "cases"):
        if files is not None and not table.first:
            _mention_unknown(table, files)
        judged = for_judge(table, pairs=pairs, turns=turns, piece=True)
        n, n_judged = n + table.n, n_judged + judged.n
        left_out += Counter(judged.left_out)
        yield judged
    if table is not None:
        announce_judged(table, left_out, n_judged, pairs=pairs)
    n_blank = left_out[NO_ANSWER]
    blank = _blank(str(path), n_blank, n, pairs=pairs)
    if n_blank and not n_judged:
        raise DataError(blank)
    if n_blank:
        warn(blank)


def _blank(source: str, n_blank: int, n: int, *, pairs: bool) -> str:
    answers = "rows have no answer on a side" if pairs else "answers are missing"
    return (
        f"{source}: {n_blank:,} {answers} (null or blank), of {n:,} rows. They are excluded: ask "
        "the models again, or choose the other rows with --where."
    )


def responses_of(table: Annotations) -> list[NamedCase]:
    """Give the responses in a table, or both of each pair; as `read_responses`."""
    if not any(map(table.has, OUTPUTS)) and any(map(table.has, RESPONSES["a"])):
        return list(each_response(pairs_of(table)))
    return _outputs(table)


def _outputs(table: Annotations) -> list[NamedCase]:
    prompts, outputs = (_one_of(table, names) for names in (PROMPTS, OUTPUTS))
    models = _names(table, GENERATORS, Path(table.source).stem)
    rows = []
    for row, (prompt, output) in enumerate(zip(prompts, outputs, strict=True)):
        case = _case(table, row, prompt, _answers(table, OUTPUTS[1], row, output))
        rows.append(_named(case, models[row]))
    return _with_known(table, rows)


def _with_known(table: Annotations, rows: Sequence[NamedCase]) -> list[NamedCase]:
    """Name rows as the file does, and give each its checklist, where there are such columns."""
    unknown = [None] * len(rows)
    battles, prompts, sessions = (
        table.texts(name) if name in table.columns else unknown
        for name in ("battle_id", "prompt_id", SESSION)
    )
    checklists = [
        items_of(table, row, value)
        for row, value in enumerate(table.columns.get(CHECKLIST, unknown), start=1)
    ]
    return [
        replace(
            named,
            battle_id=battles[row] or named.battle_id,
            prompt_id=prompts[row] or named.prompt_id,
            session_id=sessions[row],
            checklist=checklists[row],
        )
        for row, named in enumerate(rows)
    ]


def items_of(table: Annotations, row: int, value: object) -> tuple[str, ...]:
    """Read a checklist, as a list or as JSON of one; nothing is an empty one, still to write.

    Raises
    ------
    DataError
        For anything else.
    """
    several = json_or_text(value) if isinstance(value, str) else value
    if several is None or (isinstance(several, str) and not several.strip()):
        return ()
    items = [several] if isinstance(several, str) else plain(several)
    if not isinstance(items, list) or not all(
        isinstance(one, str) and one.strip() for one in items
    ):
        raise table.wrong(CHECKLIST, row, value, "a list of questions, or JSON of one")
    return tuple(item.strip() for item in items)


Prompt = tuple[Message, ...]


def _by_prompt(path: Source, warn: Callable[[str], None]) -> dict[Prompt, NamedCase]:
    """Read the outputs of a file by their prompts; of a prompt that comes twice, the first."""
    first: dict[Prompt, NamedCase] = {}
    again: dict[Prompt, int] = {}
    for table in _read(path, pairs=False, warn=warn):
        for named in _outputs(table):
            earlier = first.setdefault(named.case.prompt, named)
            if earlier.case != named.case or earlier.model_a != named.model_a:
                again[named.case.prompt] = again.get(named.case.prompt, 0) + 1
    if again:
        warn(
            f"{path}: {sum(again.values()):,} rows answer a prompt again, with another answer or "
            f"by another model, {_shown(again)}. The first counts: choose one answer to each "
            "prompt with --where."
        )
    return first


def _against(
    a: dict[Prompt, NamedCase],
    b: dict[Prompt, NamedCase],
    names: tuple[str, str],
    warn: Callable[[str], None],
) -> Iterator[NamedCase]:
    """Set responses to one prompt against each other, and warn of those without a partner."""
    alone = [one for one in a if one not in b], [one for one in b if one not in a]
    words = [
        f"{len(prompts):,} prompts of {mine!r} have no answer in {other!r}, {_shown(prompts)}"
        for prompts, mine, other in zip(alone, names, names[::-1], strict=True)
        if prompts
    ]
    ours = {_loosely(prompt) for prompt in alone[0]}
    alike = sum(_loosely(prompt) in ours for prompt in alone[1])
    hint = (
        f" {alike:,} of them differ from one of the other file only in white space, no-break "
        "spaces, characters without width or the Unicode normal form: write them alike."
    )
    text = f"{'; '.join(words)}. They are excluded.{hint if alike else ''}"
    if len(alone[0]) == len(a):
        text = f"{names[0]!r} and {names[1]!r} have no prompt in common: {text}"
        raise DataError(text)
    if words:
        warn(text)
    return (_pair(one, b[prompt]) for prompt, one in a.items() if prompt in b)


def _shown(prompts: Iterable[Prompt]) -> str:
    return f"the first is {next(iter(prompts))[-1].content[:60]!r}"


def _loosely(prompt: Prompt) -> str:
    """Give the text of a prompt without what no reader sees."""
    text = unicodedata.normalize("NFKC", "\0".join(turn.content for turn in prompt))
    seen = (one for one in text if unicodedata.category(one) != "Cf")
    return " ".join("".join(seen).split())


def _pair(a: NamedCase, b: NamedCase) -> NamedCase:
    case = replace(a.case, response_b=b.case.response_a, earlier_b=b.case.earlier_a)
    return replace(a, battle_id=case.id[:16], model_b=b.model_a, case=case)


def _named(case: Case, model_a: str, model_b: str | None = None) -> NamedCase:
    """Name a case by its content."""
    return NamedCase(case.id[:16], case.prompt_id[:16], model_a, model_b, case)


def _one_of(table: Annotations, names: Sequence[str]) -> NDArray[np.object_]:
    """Give the first of some columns that is there; raises `DataError` where none is."""
    column = next((name for name in names if name in table.columns), None)
    if column is None:
        there = quoted_names(list(table.columns))
        msg = f"There is no column {names[0]!r} in {table.source!r}; there are {there}."
        raise DataError(msg)
    return table.columns[column]


def _names(table: Annotations, columns: Sequence[str], otherwise: str) -> list[str]:
    column = next((name for name in columns if name in table.columns), None)
    return table.texts(column) if column else [otherwise] * table.n


def _answers(table: Annotations, name: str, row: int, value: object) -> tuple[str, ...]:
    """Read one answer, or those to each turn of the user; an empty text where there is none."""
    try:
        turns = turns_of(value, "assistant")
    except DataError:
        turns = []
    if not turns or any(turn.role != "assistant" or turn.images for turn in turns):
        raise table.wrong(name, row + 1, value, "a text, or a list of one for each turn")
    return tuple(turn.content for turn in turns)


def _are_texts(value: object) -> bool:
    return isinstance(value, list) and bool(value) and all(isinstance(x, str) for x in value)


def _reference(table: Annotations, row: int) -> str | None:
    """Read a right answer, or one for each turn, as one text; None where there is none."""
    value = plain(table.columns[REFERENCE][row]) if table.has(REFERENCE) else None
    if value is None or (isinstance(value, str) and not value.strip()):
        return None
    if isinstance(value, str):
        return value
    if not _are_texts(value):
        wanted = "a text, a list of one for each turn, or nothing"
        raise table.wrong(REFERENCE, row + 1, value, wanted)
    return "\n\n".join(value)


def _case(
    table: Annotations,
    row: int,
    prompt: object,
    a: tuple[str, ...],
    b: tuple[str, ...] | None = None,
) -> Case:
    reference = _reference(table, row)
    try:
        turns = tuple(turns_of(prompt))
        Case(turns, "")
    except RatingError as error:
        wanted = (
            'a text, a list of {"role", "content"} that ends with the user, or the list of the '
            "user's turns"
        )
        raise table.wrong("prompt", row + 1, prompt, wanted) from error
    turns = tuple(
        replace(turn, images=_checked_images(table, row, "prompt", turn.images)) for turn in turns
    )
    images = (*turns[-1].images, *_images(table, row))
    turns = (*turns[:-1], replace(turns[-1], images=images))
    earlier_b, response_b = ((), None) if b is None else (b[:-1], b[-1])
    try:
        return Case(turns, a[-1], response_b, a[:-1], earlier_b, reference)
    except RatingError as error:
        msg = f"Row {table.number(row + 1)} of {table.source!r}: {error}"
        raise DataError(msg) from error


def _images(table: Annotations, row: int) -> tuple[str, ...]:
    """Read the images of a prompt; none where there is no such column, or nothing in it."""
    name = next((name for name in IMAGES if table.has(name)), None)
    value = plain(table.columns[name][row]) if name else None
    several = json_or_text(value) if isinstance(value, str) and value[:1] == "[" else value
    images = [one for one in (several if isinstance(several, list) else [several]) if one]
    if not name or not images:
        return ()
    if len(images) > MOST_IMAGES or not all(isinstance(one, str) for one in images):
        wanted = f"a path, a data: URL, an address by https, or a list of at most {MOST_IMAGES}"
        raise table.wrong(name, row + 1, str(value)[:60], wanted)
    return _checked_images(table, row, name, images)


def _checked_images(
    table: Annotations, row: int, name: str, images: Sequence[str]
) -> tuple[str, ...]:
    folder = Path(table.source).parent if table.n_files == 1 else None
    try:
        return tuple(read_image(one, folder) for one in images)
    except DataError as error:
        msg = f"Row {table.number(row + 1)} of {table.source!r}, column {name!r}: {error}"
        raise DataError(msg) from error


def _mention_unknown(table: Annotations, files: Files) -> None:
    """Say which columns of a file in our own layout nobody reads: one may be misspelt."""
    renamed = {theirs for _, theirs in files.columns}
    unknown = [
        name
        for name in table.columns
        if name not in READ | renamed and name not in (files.where or "")
    ]
    if unknown and recognised(list(table.columns)) is None:
        mention(
            f"{table.source} has {quoted_names(unknown)}, which no judge is shown: rename what is "
            "misspelt (--column)."
        )


@dataclass(frozen=True, slots=True)
class Instructed:
    """A response, and what its prompt asks for."""

    named: NamedCase
    task: Task


def read_instructed(paths: Sequence[Source]) -> list[Instructed]:
    """Read responses and their instructions.

    Parameters
    ----------
    paths : sequence of path, or of Files
        Tables of responses (`judge.tables.cases.read_responses`) with the columns
        ``instruction_id_list`` and ``kwargs`` of IFEval's ``input_data.jsonl``; or that file, and
        files of responses without them, which are matched by their prompts.

    Raises
    ------
    DataError
        If no file holds a response, an instruction cannot be read, or a response has none.
    """
    tables = [_without_null(read_annotations(path, "responses")) for path in paths]
    by_prompt = {task.prompt: task for table in tables for task in tasks_of(table)}
    instructed = [
        one for table in tables if _has_answers(table) for one in _with_tasks(table, by_prompt)
    ]
    if not instructed:
        names = ", ".join(repr(table.source) for table in tables)
        msg = f"There is no response in {names}: give a column 'response' or 'output'."
        raise DataError(msg)
    return instructed


def _without_null(table: Annotations) -> Annotations:
    """Exclude and count responses that are null: those that are blank were given, and fail."""
    column = next(filter(table.has, OUTPUTS), None)
    cells = table.columns[column] if column else ()
    given = np.array([plain(cell) is not None for cell in cells], dtype=bool)
    if given.all():
        return table
    mention(
        f"{table.source}: {(~given).sum():,} responses are null, of {table.n:,}. They are "
        "excluded: ask the models again. A response that is blank follows nothing, and counts."
    )
    return table.taken(given)


def checked(instructed: Sequence[Instructed]) -> list[Checked]:
    """Check every response against the instructions of its prompt."""
    return [check(one.task, one.named.case.response_a) for one in instructed]


def _has_answers(table: Annotations) -> bool:
    return any(map(table.has, OUTPUTS))


def _with_tasks(table: Annotations, by_prompt: dict[str, Task]) -> list[Instructed]:
    """Give each response the instructions of its row, or those of its prompt."""
    own = tasks_of(table)
    rows = []
    for number, named in enumerate(responses_of(table)):
        prompt = named.case.prompt[-1].content
        task = own[number] if own else by_prompt.get(prompt)
        if task is None:
            msg = f"No file holds instructions ({IDS}) for the prompt {prompt[:60]!r}."
            raise DataError(msg)
        rows.append(Instructed(named, task))
    return rows


def read_tasks(source: Source) -> list[Task]:
    """Read prompts with their instructions, a row a prompt: IFEval's ``input_data.jsonl``.

    Raises
    ------
    DataError
        If a column is missing, or an instruction cannot be read.
    """
    table = read_annotations(source, "prompts")
    table.need(IDS)
    return tasks_of(table)


def tasks_of(table: Annotations) -> list[Task]:
    """Read IFEval's instructions, a task a row; none of a table without such columns.

    Raises
    ------
    DataError
        If an instruction cannot be read.
    """
    if not table.has(IDS):
        return []
    prompts, ids, kwargs = (table.need(name) for name in ("prompt", IDS, KWARGS))
    rows = zip(prompts, ids, kwargs, strict=True)
    return [_task(table, number, *row) for number, row in enumerate(rows, start=1)]


def _task(table: Annotations, number: int, prompt: object, ids: object, kwargs: object) -> Task:
    row = {"prompt": prompt, IDS: _as_list(ids), KWARGS: _as_list(kwargs)}
    try:
        return read_task(row)
    except RatingError as error:
        msg = f"Row {number} of {table.source!r}: {error}"
        raise DataError(msg) from error


def _as_list(value: Any) -> Any:
    """Make a list of what a file holds as an array, or as JSON text."""
    return json_or_text(value) if isinstance(value, str) else plain(value)
