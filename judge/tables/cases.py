"""Cases for a judge from files: pairs, single responses, recorded outputs and instructions."""

import os
import pickle
import tempfile
import unicodedata
import weakref
from array import array
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeVar, cast

import numpy as np

from judge.case import Case, Message
from judge.ifeval import Task, read_task
from judge.tables.annotations import (
    ASKED,
    GENERATORS,
    MODEL_IDS,
    MODELS,
    MOST_IMAGES,
    NO_ANSWER,
    OUTPUTS,
    PROMPT_IDS,
    PROMPTS,
    RESPONSES,
    TEXTS,
    Annotations,
    annotation_pieces,
    as_text,
    data_of,
    read_annotations,
    read_image,
    turns_of,
)
from judge.tables.native import announce_judged, for_judge
from rating.errors import DataError, RatingError
from rating.outcome import Outcome
from rating.sentences import plural
from rating.tables.coding import ROWS, layout_error, samples_of
from rating.tables.columns import JUDGES, KNOWN, quoted_names
from rating.tables.files import Files
from rating.tables.peers import mention, recognised
from rating.typing import Floats

T = TypeVar("T")
Source = str | Path | Files
REFERENCE, CHECKLIST, SESSION = "reference", "checklist", "session_id"
IMAGES = ("image", "images")
IDS, KWARGS = "instruction_id_list", "kwargs"
READ = frozenset(
    (
        *PROMPTS, *OUTPUTS, *GENERATORS, REFERENCE, *IMAGES, CHECKLIST, SESSION, "label",
        *(
            name
            for names in (RESPONSES, MODELS, KNOWN)
            for some in names.values()
            for name in some
        ),
        "id", "battle_id", "prompt_id", "item_id", "key", "order", "status", "method",
        *JUDGES,
        IDS, KWARGS,
    )
)  # fmt: skip
"""Columns that cases are made of, or that are read beside them: votes, labels, instructions."""


@dataclass(frozen=True, slots=True)
class NamedCase:
    """A case, and who wrote it, which the judge does not see.

    Attributes
    ----------
    models : tuple of str
        Who wrote the answers: one of a single response, of a pair that of side A first.
    session_id : str or None
        WildBench's name of the task, where known.
    checklist : tuple of str
        Given with the prompt; empty if it is still to be written.
    """

    battle_id: str
    prompt_id: str
    models: tuple[str, ...]
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
            yield from _responses_of(table)


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
    column = table.find("label", "winner")
    if column is None:
        return None
    return np.array([table.right_side(column, row) for row in range(table.n)])


def each_response(pairs: Iterable[NamedCase]) -> Iterator[NamedCase]:
    """Take pairs apart: both responses of each that are there, as cases of their own."""
    for named in pairs:
        sides = [named.case]
        if named.case.response_b is not None and len(named.models) > 1:
            sides.append(named.case.swapped())
        for model, case in zip(named.models, sides, strict=False):
            if all(text.strip() for text in (*case.earlier_a, case.response_a)):
                alone = replace(case, response_b=None, earlier_b=())
                yield replace(named, models=(model,), case=alone)


def pairs_of(table: Annotations) -> list[NamedCase]:
    """Give the pairs in a table; as `read_cases`."""
    sides = {f"response_{side}": (RESPONSES[side], MODELS[side]) for side in RESPONSES}
    return _cases(table, [(name, *columns, name) for name, columns in sides.items()])


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
    if n_blank := left_out[NO_ANSWER]:
        text = (
            f"{path}: no answer{' on a side' * pairs} (null or blank) in {n_blank:,} of "
            f"{n:,} rows, which are excluded: ask the models again, or choose others by --where."
        )
        if not n_judged:
            raise DataError(text)
        warn(text)


def _responses_of(table: Annotations) -> list[NamedCase]:
    """Give the responses in a table, or both of each pair; as `read_responses`."""
    if not table.find(*OUTPUTS) and table.find(*RESPONSES["a"]):
        return list(each_response(pairs_of(table)))
    return _outputs(table)


def _outputs(table: Annotations) -> list[NamedCase]:
    return _cases(table, [(OUTPUTS[1], OUTPUTS, GENERATORS, Path(table.source).stem)])


def _cases(
    table: Annotations, sides: Sequence[tuple[str, Sequence[str], Sequence[str], str]]
) -> list[NamedCase]:
    """Give the cases in a table, named as it does, each with its checklist.

    Parameters
    ----------
    sides : sequence of (str, sequence of str, sequence of str, str)
        What errors call an answer, columns in which it may be, columns that may name the model,
        and what it is called where none does.
    """
    known: dict[str, Sequence[str]] = {"prompt": PROMPTS}
    for name, columns, models, _ in sides:
        known |= {name: columns, name.replace("response", "model"): models}
    required = ["prompt", *(name for name, *_ in sides)]
    are_pairs = len(sides) < 2 and table.find(*RESPONSES["a"])  # where outputs are needed
    if not are_pairs and not all(table.find(*known[role]) for role in required):
        head = {name: [*map(as_text, values[:ROWS])] for name, values in table.columns.items()}
        raise layout_error(table.source, samples_of(head), {}, known=known, required=required)
    prompts = table.one_of(PROMPTS)
    texts = [(name, table.one_of(columns)) for name, columns, _, _ in sides]
    writers = [
        table.texts(column) if (column := table.find(*models)) else [otherwise] * table.n
        for _, _, models, otherwise in sides
    ]
    of_pair = len(sides) == 2 and not table.has("battle_id")
    battle = "item_id" if of_pair and table.has("item_id") else "battle_id"
    battles, prompt_ids, sessions = (
        table.texts(name) if table.has(name) else [""] * table.n
        for name in (battle, "prompt_id", SESSION)
    )
    rows = []
    for row, prompt in enumerate(prompts):
        case = _case(table, row, prompt, *[_answers(table, a, row, x[row]) for a, x in texts])
        battle_id, prompt_id = battles[row] or case.id[:16], prompt_ids[row] or case.prompt_id[:16]
        models = tuple(names[row] for names in writers)
        ids = (battle_id, prompt_id, models, case, sessions[row] or None)
        rows.append(NamedCase(*ids, checklist_of(table, row)))
    return rows


def checklist_of(table: Annotations, row: int) -> tuple[str, ...]:
    """Read a checklist, as a list or as JSON of one; nothing is an empty one, still to write.

    Raises
    ------
    DataError
        For anything else.
    """
    several = data_of(table.cell(CHECKLIST, row))
    if several is None or (isinstance(several, str) and not several.strip()):
        return ()
    items = [several] if isinstance(several, str) else several
    if not isinstance(items, list) or not all(
        isinstance(one, str) and one.strip() for one in items
    ):
        value = table.columns[CHECKLIST][row]
        raise table.wrong(CHECKLIST, row + 1, value, "a list of questions, or JSON of one")
    return tuple(item.strip() for item in items)


Prompt = tuple[Message, ...]


def _by_prompt(path: Source, warn: Callable[[str], None]) -> dict[Prompt, NamedCase]:
    """Read the outputs of a file by their prompts; of a prompt that comes twice, the first."""
    first: dict[Prompt, NamedCase] = {}
    again: dict[Prompt, int] = {}
    for table in _read(path, pairs=False, warn=warn):
        for named in _outputs(table):
            earlier = first.setdefault(named.case.prompt, named)
            if earlier.case != named.case or earlier.models != named.models:
                again[named.case.prompt] = again.get(named.case.prompt, 0) + 1
    if again:
        warn(
            f"{path}: {plural(sum(again.values()), 'row answers', 'rows answer')} a prompt again, "
            f"with another answer or by another model, {_shown(again)}. The first counts: choose "
            "one answer to each prompt with --where."
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
        f"{plural(len(prompts), f'prompt of {mine!r} has', f'prompts of {mine!r} have')} no "
        f"answer in {other!r}, {_shown(prompts)}"
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
        raise DataError(f"{names[0]!r} and {names[1]!r} have no prompt in common: {text}")
    if words:
        warn(text)
    for prompt, one in a.items():
        if other := b.get(prompt):
            theirs = other.case.response_a, other.case.earlier_a
            case = replace(one.case, response_b=theirs[0], earlier_b=theirs[1])
            models = (*one.models, *other.models)
            yield replace(one, battle_id=case.id[:16], models=models, case=case)


def _shown(prompts: Iterable[Prompt]) -> str:
    return f"the first is {next(iter(prompts))[-1].content[:60]!r}"


def _loosely(prompt: Prompt) -> str:
    """Give the text of a prompt without what no reader sees."""
    text = unicodedata.normalize("NFKC", "\0".join(turn.content for turn in prompt))
    seen = (one for one in text if unicodedata.category(one) != "Cf")
    return " ".join("".join(seen).split())


def _answers(table: Annotations, name: str, row: int, value: object) -> tuple[str, ...]:
    """Read one answer, or those to each turn of the user; an empty text where there is none."""
    try:
        turns = turns_of(value, "assistant")
    except DataError:
        turns = []
    if not turns or any(turn.role != "assistant" or turn.images for turn in turns):
        raise table.wrong(name, row + 1, value, "a text, or a list of one for each turn")
    return tuple(turn.content for turn in turns)


def references_of(table: Annotations, row: int) -> tuple[str, ...]:
    """Read right answers: a text, or a list of one for each turn; empty where there is none."""
    value = table.cell(REFERENCE, row)
    if value is None or (isinstance(value, str) and not value.strip()):
        return ()
    several = [value] if isinstance(value, str) else value
    if not isinstance(several, list) or not all(isinstance(one, str) for one in several):
        wanted = "a text, a list of one for each turn, or nothing"
        raise table.wrong(REFERENCE, row + 1, value, wanted)
    return tuple(several)


def _case(table: Annotations, row: int, prompt: object, *answers: tuple[str, ...]) -> Case:
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
    if name := table.find(*IMAGES):
        value = table.cell(name, row)
        several = data_of(value) if str(value)[:1] == "[" else value
        images = [one for one in (several if isinstance(several, list) else [several]) if one]
        if len(images) > MOST_IMAGES or not all(isinstance(one, str) for one in images):
            wanted = (
                f"a path, a data: URL, an address by https, or a list of at most {MOST_IMAGES}"
            )
            raise table.wrong(name, row + 1, str(value)[:60], wanted)
        images = [*turns[-1].images, *_checked_images(table, row, name, images)]
        turns = (*turns[:-1], replace(turns[-1], images=tuple(images)))
    *earlier_a, response_a = answers[0]
    earlier_b, response_b = (answers[1][:-1], answers[1][-1]) if answers[1:] else ((), None)
    reference = "\n\n".join(references_of(table, row)) or None
    try:
        return Case(turns, response_a, response_b, tuple(earlier_a), earlier_b, reference)
    except RatingError as error:
        raise DataError(f"Row {table.number(row + 1)} of {table.source!r}: {error}") from error


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
    """Return which columns of a file in our own layout nobody reads: one may be misspelt."""
    renamed = {one for _, theirs in files.columns for one in (theirs, theirs.partition(".")[0])}
    unknown = [
        name
        for name in table.columns
        if name not in READ | renamed and name not in (files.where or "")
    ]
    if unknown and table.find(*PROMPTS) and recognised(list(table.columns)) is None:
        mention(
            f"{table.source} has {quoted_names(unknown)}, which no judge is shown: rename what is "
            "misspelt (--column)."
        )


def read_instructed(paths: Sequence[Source]) -> list[tuple[NamedCase, Task]]:
    """Read responses, each with what its prompt asks for.

    Parameters
    ----------
    paths : sequence of path, or of Files
        Tables of responses (`read_responses`) with the columns ``instruction_id_list`` and
        ``kwargs`` of IFEval's ``input_data.jsonl``; or that file, and files of responses without
        them, which are matched by their prompts.

    Raises
    ------
    DataError
        If no file holds a response, an instruction cannot be read, or a response has none.
    """
    tables = [_without_null(read_annotations(path, "responses")) for path in paths]
    own = [tasks_of(table) for table in tables]
    by_prompt = {task.prompt: task for tasks in own for task in tasks}
    instructed = []
    for table, tasks in zip(tables, own, strict=True):
        for row, named in enumerate(_responses_of(table) if table.find(*OUTPUTS) else ()):
            prompt = named.case.prompt[-1].content
            task = tasks[row] if tasks else by_prompt.get(prompt)
            if task is None:
                msg = f"No file holds instructions ({IDS}) for the prompt {prompt[:60]!r}."
                raise DataError(msg)
            instructed.append((named, task))
    if not instructed:
        names = ", ".join(repr(table.source) for table in tables)
        raise DataError(f"There is no response in {names}: give a column 'response' or 'output'.")
    return instructed


def _without_null(table: Annotations) -> Annotations:
    """Exclude and count responses that are null: those that are blank were given, and fail."""
    column = table.find(*OUTPUTS)
    rows = range(table.n if column else 0)
    given = np.array([table.cell(str(column), row) is not None for row in rows], dtype=bool)
    if given.all():
        return table
    mention(
        f"{table.source}: null responses, excluded: {(~given).sum():,} of {table.n:,}. Ask the "
        "models again. A response that is blank follows nothing, and counts."
    )
    return table.taken(given)


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
    tasks = []
    for row, (prompt, asked, options) in enumerate(zip(prompts, ids, kwargs, strict=True), 1):
        try:
            tasks.append(
                read_task({"prompt": prompt, IDS: data_of(asked), KWARGS: data_of(options)})
            )
        except RatingError as error:
            raise DataError(f"Row {row} of {table.source!r}: {error}") from error
    return tasks


def read_outputs(
    path: Path, models: Collection[str], prompts: Collection[str]
) -> dict[tuple[str, str], str]:
    """Read responses, by the names of prompt and model.

    One row a prompt and model, in the columns that name most of those wanted. Of a prompt and
    model that come twice, the first counts.

    Raises
    ------
    DataError
        If the file cannot be read, or holds no response that is wanted.
    """
    table = read_annotations(path)
    prompt, model = _best(table, PROMPT_IDS, prompts), _best(table, MODEL_IDS, models)
    column = table.find(*TEXTS)
    texts: dict[tuple[str, str], str] = {}
    for p, m, text in zip(prompt, model, table.need(column) if column else (), strict=False):
        if p is not None and m is not None and isinstance(text, str):
            texts.setdefault((p, m), text)
    if not texts:
        raise DataError(
            f"{str(path)!r} holds no response of a model to a prompt of the votes: it needs "
            f"columns for the prompt, the model and the response, and has "
            f"{quoted_names(list(table.columns))}."
        )
    return texts


def read_prompts(path: Path, prompts: Collection[str]) -> Mapping[str, str]:
    """Read the texts of prompts, by their name.

    Raises
    ------
    DataError
        If the file cannot be read, or names none of the prompts.
    """
    table = read_annotations(path)
    names, column = _best(table, PROMPT_IDS, prompts), table.find(*ASKED)
    texts: dict[str, str] = {}
    for name, text in zip(names, table.need(column) if column else (), strict=False):
        if name is not None and text is not None:
            texts.setdefault(name, text if isinstance(text, str) else "\n\n".join(text))
    if not texts:
        there = quoted_names(list(table.columns))
        msg = f"{str(path)!r} names none of the prompts of the votes; its columns are {there}."
        raise DataError(msg)
    return texts


def _best(
    table: Annotations, names: Sequence[str], wanted: Collection[str]
) -> Sequence[str | None]:
    """Read the column in which most rows hold a name that is wanted; None in the others."""
    known = {*wanted}
    columns = [
        [str(value) if str(value) in known else None for value in table.need(name)]
        for name in names
        if table.has(name)
    ]
    return max(columns, key=lambda column: sum(x is not None for x in column), default=())


RIGHT = ("gold", "label")
"""Columns of what is right: ours, and that of JudgeBench."""
OF_BOTH = "response_model"
"""JudgeBench's column of the one model that wrote both answers."""
OUTCOMES = {1.0: Outcome.A, 0.0: Outcome.TIE, -1.0: Outcome.B}


@dataclass(frozen=True, slots=True)
class GoldPair:
    """Two recorded answers to a prompt, and the vote on them that is right."""

    prompt: str
    models: tuple[str, str]
    responses: tuple[str, str]
    right: Outcome


def read_gold(source: Source) -> tuple[list[GoldPair], dict[str, int]]:
    """Read gold pairs, each once, and count the rows that are excluded, by reason.

    Parameters
    ----------
    source : path or Files
        A pair a row: ``prompt``, ``response_a``, ``response_b``, ``gold`` (``A>B`` or ``B>A``,
        ``1`` or ``2``, or a winner), and ``model_a``, ``model_b`` where known; or JudgeBench's
        rows, with ``label`` and ``response_model``.

    Raises
    ------
    DataError
        If it cannot be read as that, or no pair has a right answer.
    """
    table = read_annotations(source, "gold pairs")
    if (column := table.find(*RIGHT)) is None:
        raise DataError(
            f"There is no column 'gold' in {table.source!r}, which would state what answer is "
            f"right; there are {quoted_names(list(table.columns))}."
        )
    left_out: Counter[str] = Counter()
    pairs: dict[tuple[str, frozenset[str]], GoldPair] = {}
    writers = table.texts(OF_BOTH) if table.has(OF_BOTH) else [""] * table.n
    for row, (named, both) in enumerate(zip(pairs_of(table), writers, strict=True)):
        right, case = OUTCOMES.get(table.right_side(column, row)), named.case
        texts = case.response_a, case.response_b or ""
        if right is None:
            left_out["no right answer"] += 1
        elif len(case.prompt) > 1 or case.earlier_a or not all(map(str.strip, texts)):
            left_out["several turns, or an empty answer"] += 1
        else:
            a, b = named.models
            names = both or a, both or b
            pair = GoldPair(case.prompt[0].content, names, texts, right)
            if pairs.setdefault((pair.prompt, frozenset(names)), pair) is not pair:
                left_out["the same prompt and models again"] += 1
    if not pairs:
        msg = f"No pair of one turn in {table.source!r} has a right answer in {column!r}."
        raise DataError(msg)
    return [*pairs.values()], dict(left_out)


class _Made(Sequence[T]):
    """A sequence whose members are made when they are looked at, the last of them kept.

    Parameters
    ----------
    n : int
    made : callable
        Makes the member at a place.
    """

    def __init__(self, n: int, made: Callable[[int], T]) -> None:
        self._n, self._made = n, made
        self._last: tuple[int, T] | None = None

    def __len__(self) -> int:
        """Count the members."""
        return self._n

    def __getitem__(self, at: Any) -> Any:
        """Make the member at a place, or those of a slice."""
        if isinstance(at, slice):
            return [self[i] for i in range(*at.indices(self._n))]
        place = range(self._n)[at]
        if self._last is None or self._last[0] != place:
            self._last = place, self._made(place)
        return self._last[1]


def on_disk(cases: Iterable[NamedCase]) -> Sequence[NamedCase]:
    """Put cases into a file that has no name and goes with them: a run of a million waits there.

    They are read once, one after the other.
    """
    ends = array("Q", [0])
    with ExitStack() as opened:
        file = opened.enter_context(tempfile.TemporaryFile(prefix="arena-cases-"))
        for named in cases:
            ends.append(ends[-1] + file.write(pickle.dumps(named)))
        file.flush()

        def read(at: int) -> NamedCase:
            packed = os.pread(file.fileno(), ends[at + 1] - ends[at], ends[at])
            return cast(NamedCase, pickle.loads(packed))  # noqa: S301 - what was written above

        made = _Made(len(ends) - 1, read)
        weakref.finalize(made, opened.pop_all().close)
    return made


def bare(named: Sequence[NamedCase]) -> Sequence[Case]:
    """Give cases without their names, as a judge sees them."""
    return _Made(len(named), lambda at: named[at].case)
