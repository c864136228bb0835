"""Files that people name, read whole, or refused in a sentence."""

import gzip
import json
import re
import stat
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from rating.errors import DataError

SHOWN = 80
"""Characters of a value that a sentence quotes."""

LONGEST_PATH = 300
"""Characters of a path that a sentence quotes."""

_HALF = re.compile(r"\\u[dD][89a-fA-F]")
_KINDS = {
    stat.S_IFDIR: "is a folder",
    stat.S_IFIFO: "is a pipe",
    stat.S_IFSOCK: "is a socket",
    stat.S_IFCHR: "is a device",
    stat.S_IFBLK: "is a device",
}


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


def read_text(path: Path, error: type[Exception] = DataError) -> str:
    """Read a file of text, unpacked if its name ends in ``.gz``.

    Raises
    ------
    Exception
        Of the kind ``error``, if it is no file, cannot be read, or is not UTF-8.
    """
    require_file(path, error)
    try:
        raw = path.read_bytes()
        raw = gzip.decompress(raw) if path.suffix == ".gz" else raw
    except (OSError, EOFError, zlib.error) as problem:
        msg = f"Cannot read {str(path)!r}: {_reason(problem)}. Check the file."
        raise error(msg) from problem
    try:
        return raw.decode("utf-8-sig")
    except UnicodeDecodeError as problem:
        line = raw.count(b"\n", 0, problem.start) + 1
        msg = (
            f"Line {line} of {str(path)!r} is not UTF-8 (byte {raw[problem.start]:#04x}): "
            "save the file as UTF-8."
        )
        raise error(msg) from problem


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
        Of the kind ``error``, if it is no JSON or is nested deeper than Python follows.
    """
    try:
        value = json.loads(text)
        return _mended(value) if _HALF.search(text) else value
    except RecursionError as problem:
        msg = f"{where} is no JSON that can be read: it is nested too deep. Flatten it."
        raise error(msg) from problem
    except ValueError as problem:
        msg = f"{where} is not JSON: {problem}. It begins {text.strip()[:SHOWN]!r}."
        raise error(msg) from problem


def json_entries(path: Path, error: type[Exception] = DataError) -> Iterator[tuple[str, Any]]:
    """Give each entry of a JSON list, or of JSON lines, and the words that say where it stands.

    Raises
    ------
    Exception
        Of the kind ``error``, as `read_text` and `parsed`.
    """
    text = read_text(path, error)
    if text.lstrip().startswith("["):
        for number, entry in enumerate(parsed(text, repr(str(path)), error), 1):
            yield f"Entry {number} of {str(path)!r}", entry
        return
    if text.lstrip().split("\n", 1)[0].strip() == "{":  # one object, laid out over lines
        yield repr(str(path)), parsed(text, repr(str(path)), error)
        return
    for number, line in enumerate(text.split("\n"), 1):  # splitlines() cuts at U+2028
        if line.strip():
            where = f"Line {number} of {str(path)!r}"
            yield where, parsed(line, where, error)


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
