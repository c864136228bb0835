"""Files that people name: which these are, and read whole, or refused in a sentence."""

import codecs
import glob
import gzip
import json
import os
import re
import stat
import tempfile
import tomllib
import zlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import IO, Any, Self, cast

from rating.errors import DataError
from rating.tables.bounds import (
    DEPTH,
    ENTRY,
    PARTS,
    TOML,
    VALUE,
    WHOLE,
    in_mb,
    require_cells,
    require_parts,
    require_shallow,
    require_short,
    require_unpacked,
    too_deep,
)

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
    """Files that are read as one table, and what of it is read.

    Attributes
    ----------
    paths : tuple of path
        Files, folders of files, and patterns such as ``votes/*.csv``.
    columns : tuple of (str, str)
        A column of ours, and the one of theirs to read it from.
    where : str or None
        SQL on the files' own columns: rows of which it does not hold are left out, before
        anything else.
    labels : tuple of (str, str)
        A value of theirs in the column of the winner, and ours; an empty one is a blank.
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
        """Raise `DataError` for a column or a label that is given twice."""
        for pairs in (self.columns, self.labels):
            names = [name for name, _ in pairs]
            if twice := next((name for name in names if names.count(name) > 1), None):
                raise DataError(f"{twice!r} is named twice among {pairs}: drop one.")

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
        msg = f"There is no file at {str(path)!r} that ends in {', '.join(ENDINGS)}."
        raise DataError(msg)
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
    msg = f"Cannot read {str(path)[:LONGEST_PATH]!r}: {why}. Name a file."
    raise error(msg)


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
        `rating.tables.bounds.most_unpacked` of its size.
    """
    yield from _read(path, error, lambda file: file.read(PIECE))


def text_lines(path: Path, error: type[Exception] = DataError) -> Iterator[str]:
    """Give the lines of a file as `read_text` reads it, one after the other."""
    lines = _read(path, error, lambda file: file.readline(ENTRY + 1))
    for number, line in enumerate(lines, 1):
        if len(line) > ENTRY:
            msg = f"Line {number} of {str(path)!r} is longer than {in_mb(ENTRY)}: split it."
            raise error(msg)
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
        msg = f"Cannot read {str(path)!r}: {_reason(problem)}. Check the file."
        raise error(msg) from problem


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
        Of the kind ``error``, if it is no JSON, is nested deeper than `rating.tables.bounds.DEPTH`
        or has more lists and objects than `rating.tables.bounds.PARTS`.
    """
    nested = require_parts(text, where, error)
    try:
        value = json.loads(text)
    except RecursionError as problem:
        raise too_deep(where, error) from problem
    except ValueError as problem:
        raise _no_json(text, where, problem, error) from problem
    if nested:
        require_shallow(value, where, error)
    return _mended(value) if _HALF.search(text) else value


def parsed_toml(text: str, where: str, error: type[Exception] = DataError) -> dict[str, Any]:
    """Parse TOML; raises ``error`` as `parsed`, and for text longer than `bounds.TOML`."""
    if len(text) > TOML:
        raise error(f"{where} has more than {in_mb(TOML)}, and is read as a whole: split it.")
    require_parts(text, where, error)
    if _DOTTED.search(text):
        raise too_deep(where, error)
    try:
        values = tomllib.loads(text)
    except RecursionError as problem:
        raise too_deep(where, error) from problem
    except tomllib.TOMLDecodeError as problem:
        raise error(f"{where} is not TOML: {problem}.") from problem
    require_shallow(values, where, error)
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
            require_short(entry, where, most, error)
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
    for number, line in enumerate(text_lines(path, error), 1):
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
                require_parts(self.text, where, error, self.at)
            try:
                value, end = _DECODE(self.text, self.at)
            except RecursionError as problem:
                raise too_deep(where, error) from problem
            except ValueError as problem:
                if len(self.text) - self.at <= ENTRY and self._read_on():
                    continue
                raise _no_json(self.text[self.at :], where, problem, error) from problem
            if end < len(self.text) or not self._read_on():
                break
        begin, self.at = self.at, end
        if end - begin > ENTRY:
            raise error(f"{where} is longer than {in_mb(ENTRY)}: split it.")
        if require_parts(self.text, where, error, begin, end):
            require_shallow(value, where, error)
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
            msg = f"{where} is {repr(entry)[:SHOWN]}: give one JSON object a row."
            raise DataError(msg)
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
