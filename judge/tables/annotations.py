"""Annotations and cases from files: column names, conversations, images and style.

`read_annotations` reads files into `Annotations`, by column; an error quotes what is wrong with
its row. `turns_of` and `read_image` read cells, `style_of` counts elements of markdown in a
response.
"""

import base64
import binascii
import json
import math
import re
import stat
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain, islice
from pathlib import Path
from typing import Any

import numpy as np
from duckdb.sqltypes import DuckDBPyType
from numpy.typing import NDArray

from judge.case import ROLES, Message
from judge.tables import inspect_logs
from rating.errors import DataError
from rating.outcome import SIDES, of_sides
from rating.tables.columns import LEFT_OUT, quoted_names, require
from rating.tables.duckdb_engine import columns_in_file, connected, require_alike
from rating.tables.files import SHOWN, Files, expanded, json_objects, json_or_text, kind_of, quoted
from rating.tables.peers import NO_VERDICT, announce, explained, recognised
from rating.tables.sources import chosen, label_column, opened
from rating.tables.vote_filter import LABELS, SKIP
from rating.typing import Bools, Floats, Ints

# Columns and conversations


PROMPTS = ("prompt", "instruction")
ASKED = (*PROMPTS, "text", "turns", "question")
"""Columns of a prompt: of a file of cases, and of one of prompts; the first that is there."""
OUTPUTS, GENERATORS = ("output", "response"), ("generator", "model")
_TEXTS = (of_sides("response"), of_sides("output"), ("output_1", "output_2"))
RESPONSES = dict(zip(SIDES, zip(*_TEXTS, strict=True), strict=True))
_WRITERS = (of_sides("model"), ("model", "baseline"), ("generator_1", "generator_2"))
MODELS = dict(zip(SIDES, zip(*_WRITERS, strict=True), strict=True))
CONVERSATIONS = of_sides("conversation")
PROMPT_IDS = ("prompt_id", "question_id", "instruction_id", *PROMPTS, "id")
MODEL_IDS = ("model_id", "model", "generator", "name")
TEXTS = (*OUTPUTS, "answer", "result", "text")
"""Columns of recorded outputs, in which prompts and models have names."""

NO_ANSWER = "without an answer"
NO_TURNS = "in which user and assistant do not take turns"
_IMAGES = "with an image that is neither a data: URL nor an address by https"
_SENT = ("data:", "https:")
_PARTS = "with parts that are neither text nor image"
_WORDS = ("content", "answer")
"""Keys of the words of a message, and of an answer of Arena-Hard v2."""


def turns_of(
    cell: object, speaker: str = "user", *, lists: bool = False, images: bool = True
) -> list[Message]:
    """Read what was said, turn by turn.

    Parameters
    ----------
    cell : object
        A text, a list of texts, messages with ``role`` and ``content``, or content blocks, which
        are one turn. Null is a turn in which nothing was said: its text is empty.
    speaker : str
        Whose words a text without a role is.
    lists : bool
        Whether JSON of a list of texts is that list. Otherwise only JSON of messages or of content
        blocks is read, since a prompt may well be a list in JSON.
    images : bool
        Whether images are read beside the text; otherwise the text alone.

    Raises
    ------
    DataError
        For anything else: the reason why a row is excluded.

    Examples
    --------
    >>> [turn.content for turn in turns_of('["Hi.", null]', lists=True)]
    ['Hi.', '']
    >>> turns_of([{"type": "text", "text": "Why?"}])
    [Message(role='user', content='Why?', images=())]
    """
    value = plain(cell)
    if isinstance(value, str) and value.lstrip()[:1] == "[":
        several = json_or_text(value)
        if isinstance(several, list) and (lists or (several and all(map(_is_turn, several)))):
            value = several
    if not isinstance(value, list) or (value and all(map(_is_block, value))):
        value = [value if isinstance(value, Message) else {"content": value}]
    return [_turn(one, speaker, images=images) for one in value]


def exchange(
    a: Sequence[Message], b: Sequence[Message]
) -> tuple[list[Message], list[str], list[str]]:
    """Give what the user said in two conversations, and what each side answered.

    Raises
    ------
    DataError
        If they do not take turns, or the user did not say the same on both sides: a reason.
    """
    (asked, of_a), (also_asked, of_b) = _apart(a), _apart(b)
    if asked != also_asked:
        raise DataError("in which the user's turns differ between the sides")
    return asked, of_a, of_b


def plain(value: Any) -> Any:
    """Make lists of arrays, as Parquet gives for lists, at any depth; None of what is masked."""
    if isinstance(value, np.ndarray):
        return plain(value.tolist())
    if isinstance(value, list | tuple):
        return [plain(one) for one in value]
    return {name: plain(one) for name, one in value.items()} if isinstance(value, dict) else value


def data_of(cell: object) -> Any:
    """Give what a cell holds as an array, or as JSON; a text that is no JSON as it stands."""
    return json_or_text(cell) if isinstance(cell, str) else plain(cell)


def _is_block(value: object) -> bool:
    return isinstance(value, dict) and isinstance(value.get("type"), str) and "role" not in value


def _is_turn(value: object) -> bool:
    if not isinstance(value, dict):
        return False
    is_block = _is_block(value) and {"text", "image", "image_url"} & value.keys()
    return bool(is_block) or {"role", "content"} <= value.keys()


def _turn(value: Any, speaker: str, *, images: bool) -> Message:
    if isinstance(value, Message):
        return value
    message = value if isinstance(value, dict) else {"content": value}
    role: Any = message.get("role") or speaker
    role = "user" if role == "human" else role
    if role not in ROLES:
        raise DataError(f"with the role {role!r}")
    words, shown = _content(message, images=images)
    return Message(role, words, shown)


def _content(value: Any, *, images: bool) -> tuple[str, tuple[str, ...]]:
    """Give the text of a message or a content block, and its images."""
    if value is None or isinstance(value, str):
        return value or "", ()
    if isinstance(value, list):
        parts = [_content(one, images=images) for one in value]
        texts = "\n\n".join(text for text, _ in parts if text)
        return texts, tuple(image for _, shown in parts for image in shown)
    if not isinstance(value, dict):
        raise DataError(_PARTS)
    image = value.get("image") or value.get("image_url")
    image = image.get("url", image) if isinstance(image, dict) else image
    if image and images and not (isinstance(image, str) and image.startswith(_SENT)):
        raise DataError(_IMAGES)
    names = ("text", *_WORDS) if _is_block(value) else _WORDS
    name = next((name for name in names if name in value), None)
    if not image and name is None:
        raise DataError(_PARTS)
    words, shown = _content(value[name] if name else None, images=images)
    return words, (*shown, *([image] if image and images else ()))


def _apart(talk: Sequence[Message]) -> tuple[list[Message], list[str]]:
    n = next((n for n, turn in enumerate(talk) if turn.role != "system"), len(talk))
    turns = [*talk[n:]]
    if len(turns) % 2:  # the last turn was never answered
        turns.append(Message("assistant", ""))
    asked, answers = turns[::2], turns[1::2]
    if {turn.role for turn in asked} != {"user"} or {turn.role for turn in answers} != {
        "assistant"
    }:
        raise DataError(NO_TURNS)
    return [*talk[:n], *asked], [turn.content for turn in answers]


# Images


MOST_BYTES = 5_000_000
"""Of an image: less than any endpoint takes that takes images."""
MOST_IMAGES = 10
"""Of a prompt."""
LONGEST_ADDRESS = 2000
_BEGINS = {
    "image/png": b"\x89PNG\r\n\x1a\n",
    "image/jpeg": b"\xff\xd8\xff",
    "image/gif": b"GIF8",
    "image/webp": b"RIFF",
}
"""How files of the kinds that endpoints take begin."""
_DATA, _HTTPS = "data:", "https://"


def read_image(value: str, folder: Path | None) -> str:
    """Give an image as it is sent: an address by https as it stands, else a ``data:`` URL.

    Parameters
    ----------
    value : str
        A path, a ``data:`` URL in base64, or an address by https.
    folder : Path or None
        In which a path is looked for, and which it may not leave: who wrote the cases may not have
        a file of another folder sent away. None takes no path.

    Raises
    ------
    DataError
        If it is none of these, no PNG, JPEG, GIF or WebP, or too large.

    Examples
    --------
    >>> read_image("https://example.org/cat.png", None)
    'https://example.org/cat.png'
    """
    if value.startswith(_HTTPS):
        if len(value) > LONGEST_ADDRESS or any(char.isspace() for char in value):
            msg = f"an address is one word of at most {LONGEST_ADDRESS:,} characters"
            raise DataError(f"{msg}, not {value[:60]!r}.")
        return value
    if value.startswith(_DATA):
        head, _, body = value.partition(",")
        if not head.endswith(";base64"):
            raise DataError(f"a data: URL of an image is in base64, not {value[:40]!r}.")
        try:
            return _checked(base64.b64decode(body, validate=True), value[:40])
        except binascii.Error as error:
            raise DataError(f"{value[:40]!r} is no base64: {error}.") from error
    if "://" in value:
        raise DataError(f"an address is by https, not {value[:60]!r}.")
    if folder is None:
        raise DataError(
            f"{value[:60]!r} is a path, and these cases lie in no single folder: give a data: URL "
            "or an address by https."
        )
    return _checked(_in_folder(value, folder), value[:60])


def _in_folder(value: str, folder: Path) -> bytes:
    """Read a file below a folder; a link that leads out of it is out of it."""
    try:
        path = (folder / value).resolve()
        if not path.is_relative_to(folder.resolve()):
            msg = f"{value[:60]!r} lies outside of the folder of the cases: move it there."
            raise DataError(msg)
        if not stat.S_ISREG(path.stat().st_mode):
            raise DataError(f"{value[:60]!r} is no file.")
        with path.open("rb") as file:
            return file.read(MOST_BYTES + 1)
    except (OSError, ValueError, RuntimeError) as error:
        reason = getattr(error, "strerror", None) or error
        raise DataError(f"cannot read {value[:60]!r}: {reason}.") from error


def _checked(data: bytes, name: str) -> str:
    """Make a ``data:`` URL of an image, whose kind its first bytes tell."""
    if len(data) > MOST_BYTES:
        raise DataError(f"{name!r} is larger than {MOST_BYTES:,} bytes: make it smaller.")
    kind = next((kind for kind, begin in _BEGINS.items() if data.startswith(begin)), None)
    if kind is None or (kind == "image/webp" and data[8:12] != b"WEBP"):
        raise DataError(f"{name!r} is no PNG, JPEG, GIF or WebP.")
    return f"data:{kind};base64,{base64.b64encode(data).decode()}"


# Style


ELEMENTS = r"(?m)(^#{1,6} )|(^\s*(?:[-*+]|\d+[.)])\s)|(\*\*[^*\n]+\*\*)|(^```)"
"""Headings, list items, words in bold and fences of code; read alike by Python and by duckdb."""
LIST = r"(?m)^\s*(?:[-*+]|\d+[.)])\s"
"""An item of a list, read alike by both."""
MARKDOWN = {
    "headers": ("h1", "h2", "h3", "h4", "h5", "h6"),
    "lists": ("ordered", "unordered"),
    "bold": ("bold",),
}
STYLES = ("length", *MARKDOWN, "code")
"""What is counted of responses, in columns that ``arena rate --style`` takes."""


def elements(text: str) -> int:
    r"""Count headings, list items, words in bold and fences of code.

    Examples
    --------
    >>> elements("# Sky\n- **Blue**, mostly\n- grey")
    4
    """
    return sum(elements_by_kind(text).values())


def elements_by_kind(text: str) -> Counter[str]:
    r"""Count what `elements` counts by what it is: h1 to h6, ordered, unordered, bold, fence.

    Examples
    --------
    >>> sorted(elements_by_kind("# Sky\n1. **Blue**\n- grey").items())
    [('bold', 1), ('h1', 1), ('ordered', 1), ('unordered', 1)]
    """
    return Counter(map(_kind, re.finditer(ELEMENTS, text)))


def style_of(text: str) -> dict[str, int]:
    r"""Count what `STYLES` names in a response.

    Examples
    --------
    >>> style_of("# Sky\n- **Blue**")
    {'length': 16, 'code': 0, 'headers': 1, 'lists': 1, 'bold': 1}
    """
    counts = elements_by_kind(text)
    styles = {name: sum(counts[kind] for kind in kinds) for name, kinds in MARKDOWN.items()}
    return {"length": len(text), "code": (counts["fence"] + 1) // 2} | styles


def _kind(element: re.Match[str]) -> str:
    heading, item, bold, _ = element.groups()
    if heading:
        return f"h{len(heading) - 1}"
    if item:
        return "ordered" if item.strip()[0].isdigit() else "unordered"
    return "bold" if bold else "fence"


# Files


PIECE = 2000
"""Rows of a file that are in memory at a time, where it is read in pieces."""

ROW = "__row"
"""Column of a row's number; no table of annotations has one of this name."""

_OBJECTS = ("JSON", "Inspect")
"""Kinds of files that hold an object a row."""
_FLAGS = {"true": True, "1": True, "false": False, "0": False}


RIGHT = {"A>B": 1.0, "B>A": -1.0, "1": 1.0, "2": -1.0, "A": 1.0, "B": -1.0, "A=B": 0.0}
"""What a label says of the sides of its row, beside the words for a winner."""


@dataclass(frozen=True, slots=True, eq=False)
class Annotations:
    """Rows of a file, by column.

    Attributes
    ----------
    source : str
        Path, for errors.
    columns : mapping of str to ndarray of object
        Values as the file holds them; None where there is none.
    n_files : int
        Files of which this is the one table.
    left_out : mapping of str to int
        Rows that were excluded as asked for, by reason.
    first : int
        Rows of the files that stand before these, where these are a piece.
    rows : ndarray of int, or None
        The number of each row in the file or the piece, from 1, where some were taken.
    """

    source: str
    columns: Mapping[str, NDArray[np.object_]]
    n_files: int = 1
    left_out: Mapping[str, int] = field(default_factory=dict)
    first: int = 0
    rows: Ints | None = None

    @property
    def n(self) -> int:
        """Number of rows."""
        return len(next(iter(self.columns.values()), ()))

    def has(self, *names: str) -> bool:
        """Whether all these columns are there."""
        return all(name in self.columns for name in names)

    def find(self, *names: str) -> str | None:
        """Name the first of some columns that is there."""
        return next(filter(self.has, names), None)

    def one_of(self, names: Sequence[str]) -> NDArray[np.object_]:
        """Return the first of some columns that is there; raises `DataError` where none is."""
        return self.need(self.find(*names) or names[0])

    def cell(self, name: str, row: int) -> Any:
        """Return a value, arrays as lists; None where there is no such column."""
        return plain(self.columns[name][row]) if name in self.columns else None

    def need(self, name: str) -> NDArray[np.object_]:
        """Return a column as it is; raises `DataError` if it is not there."""
        if name not in self.columns:
            msg = f"There is no column {name!r} in {self.source!r}; there are "
            raise DataError(msg + f"{quoted_names(list(self.columns))}.")
        return self.columns[name]

    def texts(self, name: str) -> list[str]:
        """Return names; raises `DataError` where one is missing."""
        self.need(name)
        return [self.name(name, row) for row in range(self.n)]

    def name(self, name: str, row: int) -> str:
        """Return a name, or what names something; raises `DataError` where it is missing."""
        value = self.need(name)[row]
        if isinstance(value, float):  # a table with gaps made floats of whole numbers
            value = None if math.isnan(value) else int(value) if value.is_integer() else value
        text = "" if value is None else str(value).strip()
        if not text:
            raise self.wrong(name, row + 1, value, "a name")
        return text

    def numbers(self, name: str) -> Floats:
        """Return numbers, NaN where there is none; raises `DataError` for anything else."""
        numbers = np.full(self.n, np.nan)
        for row, value in enumerate(self.need(name)):
            if value is not None and not (isinstance(value, str) and not value.strip()):
                try:
                    numbers[row] = float(value)
                except (TypeError, ValueError):
                    raise self.wrong(name, row + 1, value, "a number, or nothing") from None
        return numbers

    def flags(self, name: str) -> Bools:
        """Return truth values; raises `DataError` for anything else."""
        flags = [_FLAGS.get(str(value).strip().lower()) for value in self.need(name)]
        if None in flags:
            row = flags.index(None)
            raise self.wrong(name, row + 1, self.columns[name][row], "true or false")
        return np.array(flags, dtype=bool)

    def label(self, row: int, winner: object) -> float:
        """Return 1, 0 or -1 for side A, a tie, side B; NaN where there is no verdict."""
        if winner is None or not str(winner).strip():
            return math.nan
        if str(winner) not in LABELS:
            raise self.wrong("winner", row + 1, winner, f"one of {', '.join(LABELS)}, or nothing")
        return 2 * LABELS[str(winner)].score_a - 1

    def right_side(self, column: str, row: int) -> float:
        """Return 1, 0 or -1 for side A, a tie, side B, as a label says; NaN where there is none.

        A label is JudgeBench's A>B, LLMBar's 1 or 2, or what a winner is.
        """
        value = self.need(column)[row]
        text = "" if value is None else str(value).strip().removesuffix(".0")
        if text in RIGHT:
            return RIGHT[text]
        if text == SKIP:
            return math.nan
        if text not in ("", *LABELS):
            wanted = f"one of {', '.join((*RIGHT, *LABELS))}, or nothing"
            raise self.wrong(column, row + 1, value, wanted)
        return self.label(row, text)

    def lists(self, name: str) -> list[list[str]]:
        """Return lists of names: lists as the file holds them, JSON, or text parted by ``;``."""
        return [
            [part.strip() for part in cell.split(";") if part.strip()]
            if isinstance(cell, str) and not isinstance(data_of(cell), list)
            else [str(one) for one in data_of(cell) or ()]
            for cell in self.need(name)
        ]

    def taken(self, rows: Bools | Ints) -> "Annotations":
        """Return some of the rows."""
        numbers = np.arange(1, self.n + 1) if self.rows is None else self.rows
        columns = {name: x[rows] for name, x in self.columns.items()}
        return replace(self, columns=columns, rows=numbers[rows])

    def number(self, row: int) -> int:
        """Return the number in the file of a row of these, both from 1."""
        return self.first + (row if self.rows is None else int(self.rows[row - 1]))

    def wrong(self, name: str, row: int, value: object, wanted: str) -> DataError:
        """Describe what is wrong with a value of a row, counted from 1."""
        shown = repr(plain(value))
        shown = shown if len(shown) <= SHOWN else f"{shown[:SHOWN]}…"
        has = f"no {name}" if value is None else f"{name} {shown}"
        return DataError(f"Row {self.number(row)} of {self.source!r} has {has}: give {wanted}.")


Logs = Callable[[Path], Iterable[dict[str, Any]]]


def read_annotations(
    source: object,
    holds: str = "annotations",
    *,
    peers: bool = False,
    logs: Logs = inspect_logs.rows_in,
) -> Annotations:
    """Read files of annotations: CSV, TSV, JSON, JSON lines, Parquet, or logs of Inspect.

    Parameters
    ----------
    source : path, sequence of paths, or Files
    holds : str
        What should be in it, for errors.
    peers : bool
        Read a file of a format in `rating.tables.peers.FORMATS` as votes in our columns; else
        in its own.
    logs : callable
        Gives the rows of a log of Inspect.

    Raises
    ------
    DataError
        If it cannot be read, or holds no row.
    """
    files = Files.of(source)
    assert files is not None
    paths, left_out = expanded(files.paths), dict[str, int]()
    in_json = kind_of(paths[0]) in _OBJECTS
    columns = next(_in_json(paths, _names_in_json(paths, logs), logs=logs), {}) if in_json else {}
    own = not (peers and (not in_json or recognised([*columns])))
    if in_json and own:
        columns = _chosen(columns, files, left_out)
    else:
        with opened(
            files, _wanted, holds=holds, as_peers=not own, left_out=left_out if own else None
        ) as relation:
            read = relation.fetchnumpy()
        names = _own_names([*read], paths[0]) if own else [*read]
        cells = (values.tolist() for values in read.values())  # what is masked is None
        columns = {name: list_of(values) for name, values in zip(names, cells, strict=True)}
    table = Annotations(str(files), columns, len(paths), left_out)
    if own and (left_out or len(paths) > 1) and not recognised(list(columns)):
        announce(str(files), holds, left_out, len(paths))
    if not table.n:
        raise DataError(f"There is no row in {str(files)!r}: it should hold {holds}.")
    if peers:
        try:
            table.need("winner")
        except DataError as error:
            raise explained(str(files), list(columns), error) from error.__cause__
        if table.has(LEFT_OUT):  # what has no verdict stays, to be counted
            reasons = table.need(LEFT_OUT)
            return table.taken(np.isin(reasons.astype(str), ["None", "", NO_VERDICT]))
    return table


def annotation_pieces(source: object, holds: str) -> Iterator[Annotations]:
    """Read files as `read_annotations` does, and give `PIECE` rows at a time.

    At once comes what has to be seen as a whole: a file in a known format, except conversations
    of both sides, and rows that are chosen by a condition. Of JSON, a file of lines is read in
    pieces, and one of a list is not.

    Raises
    ------
    DataError
        As `read_annotations`, when the row is reached.
    """
    files = Files.of(source)
    assert files is not None
    paths = expanded(files.paths)
    in_json = kind_of(paths[0]) in _OBJECTS
    names = _names_in_json(paths) if in_json else columns_in_file(paths[0])
    renamed = [ours for ours, _ in files.columns]
    by_row = {*CONVERSATIONS} <= {*names}
    known = recognised([*names, *renamed], lambda _: True)
    if files.where is not None or (known and not by_row):
        yield read_annotations(source, holds)
        return
    if len(paths) > 1:
        announce(str(files), holds, n_files=len(paths))
    n = 0
    pieces = (
        (_chosen(piece, files, {}) for piece in _in_json(paths, names, PIECE))
        if in_json
        else _table_pieces(files, paths[0], holds)
    )
    for columns in pieces:
        piece = Annotations(str(files), columns, len(paths), first=n)
        yield piece
        n += piece.n
    if not n:
        raise DataError(f"There is no row in {str(files)!r}: it should hold {holds}.")


def _objects_in(path: Path, logs: Logs) -> Iterable[dict[str, Any]]:
    if kind_of(path) == "Inspect":
        return logs(path)
    objects = json_objects(path)
    first = [*islice(objects, 1)]
    is_log = bool(first) and {"status", "eval", "plan"} <= first[0].keys()
    return logs(path) if is_log else chain(first, objects)


def _in_json(
    paths: Sequence[Path],
    names: Sequence[str],
    most: int | None = None,
    logs: Logs = inspect_logs.rows_in,
) -> Iterator[dict[str, NDArray[np.object_]]]:
    """Read arrays of objects, or one a line, in pieces; names as they are written.

    Not by duckdb, which refuses names that differ only in case: AlpacaEval's labels are m and M.
    """
    rows = (row for path in paths for row in _objects_in(path, logs))
    while some := [*islice(rows, most)]:
        yield {name: list_of([row.get(name) for row in some]) for name in names}


def _table_pieces(
    files: Files, path: Path, holds: str
) -> Iterator[dict[str, NDArray[np.object_]]]:
    with (
        opened(files, _wanted, holds=holds, as_peers=False, left_out={}) as rows,
        connected() as connection,
    ):
        names = _own_names(rows.columns, path)
        casts = ", ".join(map(_as_in_numpy, rows.columns, rows.types))
        result = connection.execute(rows.project(casts).sql_query())  # streamed, in one pass
        while some := result.fetchmany(PIECE):
            columns = zip(*some, strict=True)
            yield {name: list_of(x) for name, x in zip(names, columns, strict=True)}


def _as_in_numpy(name: str, kind: DuckDBPyType) -> str:
    """Give a column in the type in which a whole table has it, by way of numpy."""
    other = {"decimal": "DOUBLE", "hugeint": "DOUBLE", "date": "TIMESTAMP"}.get(kind.id)
    return quoted(name) if other is None else f"CAST({quoted(name)} AS {other}) AS {quoted(name)}"


def _wanted(there: Sequence[str]) -> list[str]:
    """Leave LMArena's second copy of both conversations on disk: no reader takes it."""
    return [name for name in there if name != "full_conversation"]


def _own_names(names: list[str], path: Path) -> list[str]:
    """Give columns the names that the file has."""
    # duckdb renames one of two names that differ only in case: of lp_m and lp_M it makes lp_M_1.
    own = _wanted(columns_in_file(path)) if any(name.endswith("_1") for name in names) else []
    return [*own, *names[len(own) :]]


def _names_in_json(paths: Sequence[Path], logs: Logs = inspect_logs.rows_in) -> list[str]:
    names: list[str] = []
    for path in paths:
        there = [*dict.fromkeys(name for row in _objects_in(path, logs) for name in row)]
        names = names or there
        require_alike(paths[0], names, path, there)
    return names


def _chosen(
    columns: dict[str, NDArray[np.object_]], files: Files, left_out: dict[str, int]
) -> dict[str, NDArray[np.object_]]:
    """Exclude rows, read labels as others and name columns, as `opened` does of a table."""
    if files.where is not None:
        texts = {name: list_of([*map(as_text, x)]) for name, x in columns.items()}
        n = len(next(iter(columns.values()), ()))
        with connected() as connection:
            connection.register("annotations", {**texts, ROW: np.arange(n)})
            rows, n_chosen = chosen(connection.table("annotations"), files)
            fit = np.sort(rows.project(ROW).fetchnumpy()[ROW])
        columns = {name: x[fit] for name, x in columns.items()}
        left_out |= n_chosen
    there = list(columns)
    if files.labels:
        name, labels = label_column(files, there), dict(files.labels)
        columns[name] = list_of(
            [labels.get("" if value is None else str(value), value) for value in columns[name]]
        )
    return columns | {ours: _column_at(columns, theirs) for ours, theirs in files.columns}


def _column_at(columns: Mapping[str, NDArray[np.object_]], path: str) -> NDArray[np.object_]:
    """Give a column, or the members at a dotted path in a nested one; None where there is none."""
    first, *parts = path.split(".")
    if path in columns or not parts or first not in columns:
        return columns[require(path, list(columns))]
    members = []
    for cell in columns[first]:
        value = data_of(cell)
        for part in parts:
            if isinstance(value, list):
                value = value[int(part)] if part.isdigit() and int(part) < len(value) else None
            else:
                value = value.get(part) if isinstance(value, dict) else None
        members.append(value)
    return list_of(members)


def holds_first(data: Annotations, sql: str) -> bool:
    """Whether SQL holds in the first row, lists and objects as JSON (`rating.tables.peers`)."""
    read = [name for name in data.columns if f'"{name}"' in sql]
    cells = {name: list_of([as_text(x) for x in data.columns[name][:1]]) for name in read}
    texts = ", ".join(f"CAST({quoted(name)} AS VARCHAR) AS {quoted(name)}" for name in read)
    with connected() as connection:
        connection.register("first_row", cells)
        return bool(connection.table("first_row").project(texts).filter(sql).fetchall())


def as_text(value: object) -> str | None:
    """Give a value as JSON, as a table of JSON holds it."""
    return value if value is None or isinstance(value, str) else json.dumps(plain(value))


def list_of(values: Sequence[object]) -> NDArray[np.object_]:
    """Make an array one by one, for some values may be lists."""
    plain = np.empty(len(values), dtype=object)
    for row, value in enumerate(values):
        plain[row] = value
    return plain


def groups(values: Sequence[Hashable]) -> dict[Any, Ints]:
    """Return the rows of each distinct value, values sorted, rows in their order."""
    rows: dict[Any, list[int]] = {}
    for row, value in enumerate(values):
        rows.setdefault(value, []).append(row)
    return {value: np.array(rows[value], dtype=np.int64) for value in sorted(rows)}
