"""Files from users: paths, contents within limits of memory, and text escaped for each output.

`expanded` finds the files behind paths; `read_text`, `parsed` and `json_entries` read them whole,
or raise an error with one sentence. A few kilobytes can unpack to gigabytes, by compression or as
one value that many rows share. The limit therefore depends on the size of the file: no honest file
is 50 times smaller than its contents, and no cell of honest data takes less than half a bit.

Names and texts from others are written by one function for each output (`in_html`, `in_csv`,
`literal`, ...), so that nothing in them acts. `visible` is in all of them except those for CSV and
for databases, which are read back.
"""

import codecs
import csv
import glob
import gzip
import io
import json
import os
import re
import shlex
import stat
import tempfile
import tomllib
import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from html import escape
from itertools import chain
from pathlib import Path
from typing import IO, Any, Self, cast

from rating.errors import DataError

# Limits of memory


MB = 2**20
VALUE = MB
"""Bytes of one value: a name, a prompt, an answer."""
LARGE_VALUE = 10 * MB
"""Bytes of an image, or of a text in a recorded run of an agent."""
LARGE = ("image", "images")
"""Columns of such values."""
ENTRY = 16 * MB
"""Bytes of one row of JSON: a line, or an entry of a list."""
BATCH = 32 * MB
"""Bytes that are held at a time of any file, however small it is.

Readers take up to ten times as much: in UTF-32, as objects, in the engine and beside it.
"""
WHOLE = 1024 * MB
"""Bytes of a file of text that is read as a whole."""
UNPACKED = 50
"""Times the size of a file that its contents may have, beyond `BATCH`."""
DEPTH = 100
"""Lists and objects inside each other."""
PARTS = 500_000
"""Lists and objects in one piece of JSON or TOML."""
COLUMNS = 10_000
CELLS = 2_000_000
"""Cells that any table may have, however small its file is."""
CELLS_PER_BYTE = 16
"""Cells of a larger table for each byte of its file."""
TOML = LARGE_VALUE
"""Bytes of a file of TOML."""


def most_unpacked(size: int) -> int:
    """Give the bytes that may be held of files of some size."""
    return max(BATCH, UNPACKED * size)


def in_mb(n: int) -> str:
    """Give bytes in a sentence."""
    return f"{n / MB:,.0f} MB"


def size_of(paths: Iterable[Path]) -> int:
    """Add up the bytes of files."""
    return sum(path.stat().st_size for path in paths)


def require_unpacked(name: str, n: int, size: int, error: type[Exception] = DataError) -> None:
    """Raise an error if a file holds more than its size allows.

    Parameters
    ----------
    n : int
        Bytes that are unpacked, so far or in all.
    size : int
        Bytes of the file.
    """
    if n > most_unpacked(size):
        msg = (
            f"{name!r} has {size:,} bytes and unpacks to more than {in_mb(most_unpacked(size))}: "
            f"a file may unpack to {in_mb(BATCH)} or to {UNPACKED} times its size. Write it "
            "without compression, as CSV or JSON lines."
        )
        raise error(msg)


def require_cells(name: str, cells: int, size: int, error: type[Exception] = DataError) -> None:
    """Raise an error if a table has more cells than a file of its size can hold."""
    if cells > max(CELLS, CELLS_PER_BYTE * size):
        msg = (
            f"{name!r} has {size:,} bytes for {cells:,} cells or more: a table may have {CELLS:,} "
            f"cells, or {CELLS_PER_BYTE} for each byte. Count equal votes in one row "
            "(n_model_a, n_model_b, n_tie), or write the file as CSV or JSON lines."
        )
        raise error(msg)


def _require_parts(
    text: str,
    where: str,
    error: type[Exception] = DataError,
    begin: int = 0,
    end: int | None = None,
) -> bool:
    """Raise an error if a piece of JSON or TOML has more lists and objects than `PARTS`.

    Returns
    -------
    bool
        Whether it has enough of them to be nested deeper than `DEPTH`.
    """
    end = len(text) if end is None else end
    n = text.count("[", begin, end) + text.count("{", begin, end)
    if n > PARTS:
        raise error(f"{where} has {n:,} lists and objects, more than {PARTS:,}: split it.")
    return n > DEPTH


def _require_shallow(value: Any, where: str, error: type[Exception] = DataError) -> None:
    """Raise an error if a value has lists and objects nested deeper than `DEPTH`."""
    level = [value]
    for _ in range(DEPTH + 1):
        level = [
            one
            for each in level
            if isinstance(each, list | dict)
            for one in (each.values() if isinstance(each, dict) else each)
        ]
        if not level:
            return
    raise _too_deep(where, error)


def _too_deep(where: str, error: type[Exception]) -> Exception:
    """Make the error for lists and objects nested deeper than `DEPTH`."""
    return error(f"{where} is nested more than {DEPTH} levels deep. Flatten it.")


def _require_short(
    value: Any, where: str, most: int = VALUE, error: type[Exception] = DataError
) -> None:
    """Raise an error if a text in a row of JSON is longer than ``most`` bytes.

    Under a name in `LARGE` it may have `LARGE_VALUE`.
    """
    level: list[tuple[str, int, Any]] = [("", most, value)]
    while level:
        name, bound, one = level.pop()
        if isinstance(one, dict):
            for key, inner in one.items():
                level.append((key, LARGE_VALUE if key in LARGE else bound, inner))
        elif isinstance(one, list):
            level += [(name, bound, inner) for inner in one]
        elif isinstance(one, str) and len(one) > bound:
            msg = (
                f"{where} has a value of {len(one):,} bytes in {name!r}: one may have "
                f"{bound:,}. Shorten it, or leave the row out."
            )
            raise error(msg)


# Files and their contents


SHOWN = 80
"""Characters of a value that a sentence quotes."""

LONGEST_PATH = 300
"""Characters of a path that a sentence quotes."""

PLAIN = (".csv", ".csv.gz", ".tsv", ".tsv.gz")
JSON = (".jsonl", ".ndjson", ".json", ".jsonl.gz", ".ndjson.gz", ".json.gz")
ENDINGS = (".parquet", *PLAIN, *JSON)
INSPECT = ".eval"
"""Ending of a log of Inspect, which holds answers and no votes."""

SAMPLE_VOTES = Path(__file__).with_name("samples.csv")
"""600 votes of ``arena simulate --seed 1``, with known ground truth, to try things on."""

SHARD = re.compile(r"(.+-)(\d{5})-of-(\d{5})(-\w+)?(\.[\w.]+)")
"""Name of one file of several, as in ``train-00000-of-00002.parquet``."""

PIECE = 1 << 18
"""Bytes that are read at a time."""

_HALF = re.compile(r"\\u[dD][89a-fA-F]")
_BLANKS = re.compile(r"[ \t\n\r]*")
_DECODE = json.JSONDecoder().raw_decode
_DOTTED = re.compile(rf"(?<![\w\"'-])(?:[\w\"'-]++[ \t]*+\.[ \t]*+){{{DEPTH}}}")
"""A key of TOML with more parts than it may have levels; a long word is looked at once."""
_KINDS = {
    stat.S_IFDIR: "is a folder",
    stat.S_IFIFO: "is a pipe",
    stat.S_IFSOCK: "is a socket",
    stat.S_IFCHR: "is a device",
    stat.S_IFBLK: "is a device",
}


@dataclass(frozen=True, slots=True)
class Files:
    """Files that are read as one table, with the selection of columns and rows.

    Attributes
    ----------
    paths : tuple of path
        Files, folders of files, and patterns such as ``votes/*.csv``.
    columns : tuple of (str, str)
        A column of this project, and the file's column to read it from.
    where : str or None
        SQL condition on the files' own columns; other rows are excluded first.
    labels : tuple of (str, str)
        A value of the file's winner column, and this project's label; an empty one is a blank.
    winner : str or None
        That column, where it has none of the known names and is in no ``columns``.

    Examples
    --------
    >>> str(Files(("votes/1.csv", "votes/2.csv", "votes/3.csv")))
    'votes/1.csv and 2 more'
    """

    paths: tuple[str | Path, ...]
    columns: tuple[tuple[str, str], ...] = ()
    where: str | None = None
    labels: tuple[tuple[str, str], ...] = ()
    winner: str | None = None

    def __post_init__(self) -> None:
        """Raise `DataError` for a column or a label that is given two values."""
        for pairs in (self.columns, self.labels):
            for name, value in pairs:
                if (other := dict(pairs)[name]) != value:
                    raise DataError(f"{name!r} has two values, {value!r} and {other!r}: drop one.")

    @classmethod
    def of(cls, source: object) -> Self | None:
        """Take a path, or several, as files; None of anything else."""
        if isinstance(source, cls):
            return source
        several = source if isinstance(source, list | tuple) else [source]
        paths = tuple(path for path in several if isinstance(path, str | Path))
        return cls(paths) if paths and len(paths) == len(several) else None

    def __str__(self) -> str:
        """Name them in a sentence."""
        return f"{self.paths[0]}" + (f" and {n} more" if (n := len(self.paths) - 1) else "")


def kind_of(path: Path) -> str:
    """Say by its ending what kind of table a file holds; empty of one that is not read."""
    kinds = {"Parquet": (".parquet",), "text": PLAIN, "JSON": JSON, "Inspect": (INSPECT,)}
    return next((kind for kind, endings in kinds.items() if path.name.endswith(endings)), "")


def expanded(paths: Sequence[str | Path]) -> list[Path]:
    """Name the files behind paths: those in folders, those that fit patterns, and all shards.

    A file that is named twice is read once; one of a set of shards stands for the set.

    Raises
    ------
    DataError
        If there is no file, one has another ending than `ENDINGS`, two are of different kinds,
        or a shard is missing.
    """
    files: dict[str, Path] = {}
    for file in [file for path in paths for file in _behind(Path(path))]:
        if os.path.realpath(file) not in files:
            files |= {os.path.realpath(one): one for one in _shards(file)}
    kinds: dict[str, Path] = {}
    for file in files.values():
        kinds.setdefault(kind_of(file), file)
    if "" in kinds:
        msg = f"Cannot read {str(kinds[''])!r}: name a file that ends in {', '.join(ENDINGS)}."
        raise DataError(msg)
    if len(kinds) > 1:
        one, other, *_ = map(str, kinds.values())
        msg = f"{one!r} and {other!r} are not of one kind: read those of each kind by themselves."
        raise DataError(msg)
    for file in files.values():
        require_file(file)
    return [*files.values()]


def _behind(path: Path) -> list[Path]:
    """Give the file itself; or the files that can be read in a folder, or that fit a pattern."""
    if os.path.isdir(path):
        names = _inside(path) or _one_split(path / "data")
    elif glob.has_magic(str(path)) and not os.path.exists(path):
        names = glob.glob(str(path), recursive=True)
    else:
        return [path]
    files = [file for file in map(Path, sorted(names)) if kind_of(file) and file.is_file()]
    if not files:
        raise DataError(f"There is no file at {str(path)!r} that ends in {', '.join(ENDINGS)}.")
    return files


def _inside(folder: Path) -> list[str]:
    names = glob.glob(glob.escape(str(folder)) + "/*")
    return [name for name in names if kind_of(Path(name))]


def _one_split(folder: Path) -> list[str]:
    """Name the shards in the folder ``data`` of a data set of Hugging Face.

    Raises
    ------
    DataError
        If they are of several splits, which are tables of their own.
    """
    names = _inside(folder)
    shards = (SHARD.fullmatch(Path(name).name) for name in names)
    splits = sorted({shard[1].removesuffix("-") for shard in shards if shard})
    if len(splits) > 1:
        msg = (
            f"{str(folder.parent)!r} has the splits {', '.join(splits)}: name one, such as "
            f"'{folder}/{splits[0]}-*'."
        )
        raise DataError(msg)
    return names


def _shards(file: Path) -> list[Path]:
    """Give all files of the table that a shard is of; raises `DataError` if one is missing."""
    name = SHARD.fullmatch(file.name)
    if name is None or not file.is_file():
        return [file]
    start, _, n, _, ending = name.groups()
    beside = map(Path, glob.glob(f"{glob.escape(str(file.parent / start))}*-of-{n}*{ending}"))
    numbers = {match[2]: one for one in beside if (match := SHARD.fullmatch(one.name))}
    names = [f"{number:05}" for number in range(int(n))]
    for number in names:
        if number not in numbers:
            msg = (
                f"{str(file)!r} is one of {int(n)} files of a table, and number {number} is not "
                "there: add it, or give the file another name."
            )
            raise DataError(msg)
    return [numbers[number] for number in names]


def require_file(path: Path, error: type[Exception] = DataError) -> None:
    """Raise an error unless a path is that of a file: a pipe or a device may never end."""
    try:
        kind = stat.S_IFMT(path.stat().st_mode)
    except FileNotFoundError:
        why = "there is no such file"
    except (OSError, ValueError) as problem:
        why = _reason(problem)
    else:
        if kind == stat.S_IFREG:
            return
        why = f"it {_KINDS.get(kind, 'is no file')}"
    raise error(f"Cannot read {str(path)[:LONGEST_PATH]!r}: {why}. Name a file.")


def read_text(path: Path, error: type[Exception] = DataError, most: int = WHOLE) -> str:
    """Read a file of text, unpacked if its name ends in ``.gz``.

    Raises
    ------
    Exception
        Of the kind ``error``, if it is no file, cannot be read, has more than ``most`` bytes, or
        is not UTF-8.
    """
    parts: list[bytes] = []
    n = 0
    for part in raw_pieces(path, error):
        n += len(part)
        if n > most:
            msg = f"{str(path)!r} has more than {in_mb(most)}, and is read as a whole: split it."
            raise error(msg)
        parts.append(part)
    return _decoded(b"".join(parts), path, 1, error)


def raw_pieces(path: Path, error: type[Exception] = DataError) -> Iterator[bytes]:
    """Give the bytes of a file some at a time, unpacked if its name ends in ``.gz``.

    Raises
    ------
    Exception
        Of the kind ``error``, if it is no file, cannot be read, or unpacks to more than
        `most_unpacked` of its size.
    """
    yield from _read(path, error, lambda file: file.read(PIECE))


def _text_lines(path: Path, error: type[Exception] = DataError) -> Iterator[str]:
    """Give the lines of a file as `read_text` reads it, one after the other."""
    lines = _read(path, error, lambda file: file.readline(ENTRY + 1))
    for number, line in enumerate(lines, 1):
        if len(line) > ENTRY:
            raise error(f"Line {number} of {str(path)!r} is longer than {in_mb(ENTRY)}: split it.")
        yield _decoded(line, path, number, error)


def _read(
    path: Path, error: type[Exception], some: Callable[[IO[bytes]], bytes]
) -> Iterator[bytes]:
    require_file(path, error)
    try:
        size, n = path.stat().st_size, 0
        with path.open("rb") as raw, gzip.open(raw) if path.suffix == ".gz" else raw as file:
            while part := some(cast("IO[bytes]", file)):
                n += len(part)
                if path.suffix == ".gz":
                    require_unpacked(str(path), n, size, error)
                yield part
    except (OSError, EOFError, zlib.error) as problem:
        raise error(f"Cannot read {str(path)!r}: {_reason(problem)}. Check the file.") from problem


def _texts(path: Path, error: type[Exception]) -> Iterator[str]:
    """Give the text of a file some at a time."""
    decoder = codecs.getincrementaldecoder("utf-8-sig")()
    line = 1
    for part in chain(raw_pieces(path, error), [b""]):
        try:
            text = decoder.decode(part, final=not part)
        except UnicodeDecodeError as problem:
            raise _not_utf8(path, line, problem, error) from problem
        line += text.count("\n")
        yield text


def _decoded(raw: bytes, path: Path, first: int, error: type[Exception]) -> str:
    """Decode lines of which the first has a number."""
    try:
        return raw.decode("utf-8-sig" if first == 1 else "utf-8")
    except UnicodeDecodeError as problem:
        raise _not_utf8(path, first, problem, error) from problem


def _not_utf8(
    path: Path, first: int, problem: UnicodeDecodeError, error: type[Exception]
) -> Exception:
    line = first + problem.object.count(b"\n", 0, problem.start)
    return error(
        f"Line {line} of {str(path)!r} is not UTF-8 (byte {problem.object[problem.start]:#04x}): "
        "save the file as UTF-8."
    )


def parsed(text: str, where: str, error: type[Exception] = DataError) -> Any:
    """Parse JSON.

    Half of a surrogate pair, which no file and no database can hold, becomes U+FFFD.

    Parameters
    ----------
    where : str
        Where it stands, to begin a sentence with.

    Raises
    ------
    Exception
        Of the kind ``error``, if it is no JSON, is nested deeper than `DEPTH`
        or has more lists and objects than `PARTS`.
    """
    nested = _require_parts(text, where, error)
    try:
        value = json.loads(text)
    except RecursionError as problem:
        raise _too_deep(where, error) from problem
    except ValueError as problem:
        raise _no_json(text, where, problem, error) from problem
    if nested:
        _require_shallow(value, where, error)
    return _mended(value) if _HALF.search(text) else value


def parsed_toml(text: str, where: str, error: type[Exception] = DataError) -> dict[str, Any]:
    """Parse TOML; raises ``error`` as `parsed`, and for text longer than `TOML`."""
    if len(text) > TOML:
        raise error(f"{where} has more than {in_mb(TOML)}, and is read as a whole: split it.")
    _require_parts(text, where, error)
    if _DOTTED.search(text):
        raise _too_deep(where, error)
    try:
        values = tomllib.loads(text)
    except RecursionError as problem:
        raise _too_deep(where, error) from problem
    except tomllib.TOMLDecodeError as problem:
        raise error(f"{where} is not TOML: {problem}.") from problem
    _require_shallow(values, where, error)
    return values


def _no_json(text: str, where: str, problem: Exception, error: type[Exception]) -> Exception:
    return error(f"{where} is not JSON: {problem}. It begins {text[:999].strip()[:SHOWN]!r}.")


def json_entries(
    path: Path, error: type[Exception] = DataError, most: int = VALUE
) -> Iterator[tuple[str, Any]]:
    """Give each entry of a JSON list, or of JSON lines, and the words that say where it stands.

    Parameters
    ----------
    most : int
        Bytes that a text in it may have.

    Raises
    ------
    Exception
        Of the kind ``error``, as `read_text` and `parsed`.
    """
    cells, size = 0, path.stat().st_size if path.name.endswith(".gz") else None
    for where, entry, n in _entries(path, error):
        if n > most:
            _require_short(entry, where, most, error)
        if size is not None:
            cells += 1 + (len(entry) if isinstance(entry, list | dict) else 0)
            require_cells(str(path), cells, size, error)
        yield where, entry


def _entries(path: Path, error: type[Exception]) -> Iterator[tuple[str, Any, int]]:
    """Give each entry with where it stands and the length of its text."""
    name = repr(str(path))
    first = next((text.lstrip() for text in _texts(path, error) if text.strip()), "")
    if first.startswith("["):
        yield from _in_list(path, error)
        return
    if first.partition("\n")[0].strip() == "{":  # one object, laid out over lines
        text = read_text(path, error)
        yield name, parsed(text, name, error), len(text)
        return
    for number, line in enumerate(_text_lines(path, error), 1):
        if line.strip():
            where = f"Line {number} of {name}"
            yield where, parsed(line, where, error), len(line)


def _in_list(path: Path, error: type[Exception]) -> Iterator[tuple[str, Any, int]]:
    name = repr(str(path))
    rest, number, mark = _List(_texts(path, error)), 0, ","
    rest.sign()
    rest.at += 1
    if rest.sign() == "]":
        mark = "]"
    while mark == ",":
        number += 1
        where = f"Entry {number} of {name}"
        yield where, *rest.entry(where, error)
        mark = rest.sign()
        rest.at += mark == ","
    rest.at += 1
    if mark != "]" or rest.sign():
        where = f"What follows entry {number} of {name}" if number else name
        problem = ValueError("Extra data" if mark == "]" else "Expecting ',' delimiter")
        raise _no_json(rest.text[rest.at - 1 :], where, problem, error)


class _List:
    """A JSON list that is read entry by entry: in memory is one, and what was read with it.

    Attributes
    ----------
    text : str
        What was read, and is not done with.
    at : int
        The place in it.
    """

    def __init__(self, pieces: Iterator[str]) -> None:
        self.text, self.at, self._pieces = "", 0, pieces

    def sign(self) -> str:
        """Go to the next character that is not blank; empty at the end."""
        while True:
            blanks = _BLANKS.match(self.text, self.at)
            self.at = blanks.end() if blanks else self.at
            if self.at < len(self.text) or not self._read_on():
                return self.text[self.at : self.at + 1]

    def entry(self, where: str, error: type[Exception]) -> tuple[Any, int]:
        """Parse the next entry, reading on while it may not be all there; give its length, too."""
        self.sign()
        while True:
            if len(self.text) - self.at > PARTS:  # it would be parsed again and again
                _require_parts(self.text, where, error, self.at)
            try:
                value, end = _DECODE(self.text, self.at)
            except RecursionError as problem:
                raise _too_deep(where, error) from problem
            except ValueError as problem:
                if len(self.text) - self.at <= ENTRY and self._read_on():
                    continue
                raise _no_json(self.text[self.at :], where, problem, error) from problem
            if end < len(self.text) or not self._read_on():
                break
        begin, self.at = self.at, end
        if end - begin > ENTRY:
            raise error(f"{where} is longer than {in_mb(ENTRY)}: split it.")
        if _require_parts(self.text, where, error, begin, end):
            _require_shallow(value, where, error)
        halved = _HALF.search(self.text, begin, end)
        return _mended(value) if halved else value, end - begin

    def _read_on(self) -> bool:
        """Read as much again as is left, and a piece at the least; False at the end."""
        parts, left = [self.text[self.at :]], len(self.text) - self.at
        n = left
        for piece in self._pieces:
            parts.append(piece)
            n += len(piece)
            if n > 2 * left:
                break
        self.text, self.at = "".join(parts), 0
        return n > left


def json_objects(path: Path) -> Iterator[dict[str, Any]]:
    """Give each entry as `json_entries`; raises `DataError` of one that is no object."""
    for where, entry in json_entries(path):
        if not isinstance(entry, dict):
            raise DataError(f"{where} is {repr(entry)[:SHOWN]}: give one JSON object a row.")
        yield entry


def json_or_text(text: str) -> Any:
    """Parse what may be JSON, as in a cell of a table; anything else stays the text it is."""
    try:
        return parsed(text, "A cell")
    except DataError:
        return text


def _mended(value: Any) -> Any:
    match value:
        case str() if not value.isascii():
            return value.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
        case list():
            return [_mended(one) for one in value]
        case dict():
            return {_mended(name): _mended(one) for name, one in value.items()}
    return value


def _reason(problem: Exception) -> str:
    return getattr(problem, "strerror", None) or str(problem)


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """Give a path to write to; what is there becomes the file, which its owner alone can read.

    A file that exists stays as it is until the new one is complete. A pipe or a device is
    written to directly.

    Raises
    ------
    OSError
        If the folder cannot be written to.
    """
    target = path.resolve()
    if target.exists() and not target.is_file():
        yield path
        return
    with tempfile.TemporaryDirectory(dir=target.parent, prefix=".write-") as folder:
        made = Path(folder) / target.name
        yield made
        made.chmod(0o600)
        made.replace(target)


# Text in outputs


REPLACED = "\ufffd"
LINES = "\n\r\t"
"""What stays in a text of several lines."""

_UNSEEN = re.compile("[\x00-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069\ud800-\udfff\ufffe\uffff]")
"""Control characters, ends of lines, what turns the direction of writing, halves of pairs."""

VISIBLE = re.compile(
    "[^\\s\x00-\x1f\x7f-\x9f\xad\u180e\u200b-\u200f\u202a-\u202e\u2060-\u206f\ufe00-\ufe0f\ufeff"
    "\U000e0000-\U000e01ef]"
)
"""A character that can be seen."""

UNSTORABLE = re.compile("[\x00\ud800-\udfff]")
"""Characters that some database cannot hold."""

_FORMULA = r"'*[=+\-@\t\r\n＝＋－＠](?s:.*)"
"""What a spreadsheet would run; with apostrophes before it, so that one can be taken off again."""

_NUMBER = r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?"

_MARKDOWN = re.compile(r"[\\`*_\[\]<>#|~&$]")

_LATEX = str.maketrans(
    {
        "\\": r"\textbackslash{}",
        "~": r"\textasciitilde{}",
        "^": r"\textasciicircum{}",
        REPLACED: "?",
        **{c: f"\\{c}" for c in "&%$#_{}"},
    }
)


def in_shell(word: str) -> str:
    r"""Quote a word of a command for a shell, with escapes for what a terminal would obey.

    >>> print(in_shell("a b"), in_shell("a\x1b'"))
    'a b' $'a\u001b\''
    """
    if not _UNSEEN.search(word):
        return shlex.quote(word)
    parts = word.replace("\\", "\\\\").replace("'", "\\'")
    return "$'" + _UNSEEN.sub(lambda one: f"\\u{ord(one[0]):04x}", parts) + "'"


def visible_rows(rows: Iterable[Iterable[str]], keep: str = "") -> list[list[str]]:
    """Return the cells of a table as `visible` does each."""
    return [[visible(cell, keep) for cell in row] for row in rows]


def visible(text: str, keep: str = "") -> str:
    r"""Replace what a terminal obeys, what breaks a line and what turns the writing by U+FFFD.

    Parameters
    ----------
    keep : str
        Characters that stay as they are, such as ends of lines.

    Examples
    --------
    >>> visible("\x1b[31mred\x07") == "\ufffd[31mred\ufffd"
    True
    """
    return _UNSEEN.sub(lambda match: match[0] if match[0] in keep else REPLACED, text)


def shown(value: Any) -> Any:
    """Give what a template shows: of a text what `visible` leaves, and its lines."""
    is_text = isinstance(value, str) and not hasattr(value, "__html__")
    return visible(value, LINES) if is_text else value


def storable(text: str) -> str:
    """Give a text as a database has it: what none can hold becomes U+FFFD.

    PostgreSQL refuses the character NUL, and UTF-8 has no half of a surrogate pair.
    """
    return UNSTORABLE.sub(REPLACED, text)


def in_html(text: str) -> str:
    """Write a text into HTML or SVG."""
    return escape(visible(text))


def in_json(text: str) -> str:
    """Write what `visible` would replace as JSON's own escapes: the values stay what they are."""
    return _UNSEEN.sub(
        lambda match: match[0] if match[0] == "\n" else f"\\u{ord(match[0]):04x}", text
    )


def in_markdown(text: str) -> str:
    r"""Write a text on one line of Markdown, or in a cell of a table.

    Examples
    --------
    >>> in_markdown("a|b [c](d)")
    'a\\|b \\[c\\](d)'
    """
    return _MARKDOWN.sub(r"\\\g<0>", visible(text))


def in_latex(text: str) -> str:
    """Write a text on one line of LaTeX, or in a cell of a table."""
    return visible(text).translate(_LATEX)


def in_csv(value: object) -> object:
    """Write a cell of CSV: a text that a spreadsheet would run gets an apostrophe before it.

    Numbers stay, also such as are text: ``-1.5`` runs nothing. `from_csv_sql` takes it off again.

    Examples
    --------
    >>> [in_csv(value) for value in ("=1+1", "-1.5", "'@x", -2, "x")]
    ["'=1+1", '-1.5', "''@x", -2, 'x']
    """
    if not isinstance(value, str) or not re.fullmatch(_FORMULA, value):
        return value
    return value if re.fullmatch(_NUMBER, value) else f"'{value}"


def csv_text(rows: Iterable[Iterable[object]]) -> str:
    r"""Write lines of CSV; only a writer that ends them by CR LF puts quotes around either.

    >>> csv_text([("a", "=1"), (1.5, None)])
    "a,'=1\n1.5,\n"
    """
    lines = []
    for row in rows:
        out = io.StringIO(newline="")
        csv.writer(out, lineterminator="\r\n").writerow(map(in_csv, row))
        lines.append(out.getvalue().removesuffix("\r\n") + "\n")
    return "".join(lines)


def in_csv_sql(column: str) -> str:
    """Give the expression of SQL that does to a column of text what `in_csv` does to a value."""
    runs, number = (f"regexp_full_match({column}, {literal(p)})" for p in (_FORMULA, _NUMBER))
    return f"CASE WHEN {runs} AND NOT {number} THEN '''' || {column} ELSE {column} END"


def from_csv(row: Iterable[str]) -> list[str]:
    """Take off the apostrophes that `in_csv` wrote."""
    return [cell[1:] if re.fullmatch(f"'{_FORMULA}", cell) else cell for cell in row]


def from_csv_sql(columns: Iterable[str]) -> str:
    """Give the columns of SQL, each with what `from_csv` does to a text done to its cells."""
    parts = []
    for name in map(quoted, columns):
        written = f"starts_with({name}, '''') AND regexp_full_match({name}, {literal(_FORMULA)})"
        parts.append(f"CASE WHEN {written} THEN substr({name}, 2) ELSE {name} END AS {name}")
    return ", ".join(parts)


def quoted(name: str) -> str:
    """Write the name of a column into SQL."""
    return '"' + name.replace('"', '""') + '"'


def all_quoted(names: Iterable[str]) -> str:
    """Write the names of columns into SQL, with commas."""
    return ", ".join(map(quoted, names))


def literal(text: str) -> str:
    """Write a text into SQL."""
    return "'" + text.replace("'", "''") + "'"
