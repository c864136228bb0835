"""What a Parquet file would unpack to, from its headers alone: nothing in it is unpacked here.

A column is a row of pages, each compressed by itself and unpacked as a whole; texts that repeat
are in a page of their own, the dictionary. The footer says where the pages of each group of rows
begin, and the header of each page, in Thrift's compact protocol, how large it is unpacked:
https://parquet.apache.org/docs/file-format.
"""

import os
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any

from rating.errors import DataError
from rating.tables.files import BATCH, COLUMNS, MB, UNPACKED, VALUE, in_mb, most_unpacked

MAGIC = b"PAR1"
MOST_FOOTER = 2 * BATCH
PAGE = 128 * MB
"""Bytes of one page, unpacked: no writer makes larger ones unless a value is as large."""
HEADERS = (512, 2 * MB)
"""Bytes of a page's header: as a rule, and with statistics of long texts."""
MOST_NESTED = 16
"""Structures inside each other in a header."""
NESTED_BYTES, DELTA_BYTES = 16, 8
"""Memory of a value in a list, and of a number that is unpacked before its page is read."""
DELTAS, DELTA_TEXT = (5, 6, 7), 7
"""Encodings of numbers as differences, and of texts by what they share with the one before."""
_DATA, _DICTIONARY, _DATA_V2 = 0, 2, 3
_BOOL, _BYTE, _DOUBLE, _BINARY, _LIST, _SET, _MAP, _STRUCT = (1, 2), 3, 7, 8, 9, 10, 11, 12
_INT, _LONG = 5, 6


class _Header:
    """A place in a structure of Thrift; raises `IndexError` behind its end."""

    def __init__(self, data: bytes) -> None:
        self.data, self.at = data, 0

    def fields(self) -> Iterator[tuple[int, int]]:
        """Yield number and type of each field; the caller reads or skips each value."""
        number = 0
        while head := self.byte():
            number = number + (head >> 4) if head >> 4 else self.number()
            yield number, head & 15

    def read(self, wanted: Mapping[tuple[int, int], Callable[[], Any]]) -> dict[int, Any]:
        """Give fields of a struct by their numbers, those that are not wanted being skipped.

        Parameters
        ----------
        wanted : mapping of (int, int) to callable
            By a field's number and its kind, which are those that the engine reads.
        """
        values: dict[int, Any] = {}
        for number, kind in self.fields():
            if reader := wanted.get((number, kind)):
                values[number] = reader()
            else:
                self.skip(kind)
        return values

    def byte(self) -> int:
        self.at += 1
        return self.data[self.at - 1]

    def size(self) -> int:
        """Read a number that is not negative."""
        number = shift = 0
        while (byte := self.byte()) > 127:
            number |= (byte & 127) << shift
            shift += 7
            if shift > 63:
                raise IndexError
        return number | byte << shift

    def number(self) -> int:
        size = self.size()
        return (size >> 1) ^ -(size & 1)

    def text(self) -> str:
        n = self.size()
        self.at += n
        return self.data[self.at - n : self.at].decode("utf-8", "replace")

    def list(self) -> tuple[int, int]:
        """Give how many values a list has, and their kind."""
        head = self.byte()
        return (head >> 4 if head >> 4 < 15 else self.size()), head & 15

    def skip(self, kind: int, depth: int = 0) -> None:
        if depth > MOST_NESTED or self.at > len(self.data):
            raise IndexError
        if kind in _BOOL:
            return
        if kind == _BYTE:
            self.at += 1
        elif kind == _DOUBLE:
            self.at += 8
        elif kind == _BINARY:
            n = self.size()  # which moves the place, too
            self.at += n
        elif kind == _STRUCT:
            for _, inner in self.fields():
                self.skip(inner, depth + 1)
        elif kind in (_LIST, _SET, _MAP):
            self._skip_several(kind, depth)
        else:
            self.size()

    def _skip_several(self, kind: int, depth: int) -> None:
        if kind == _MAP:
            n = self.size()
            kinds = [*divmod(self.byte(), 16)] if n else []
        else:
            n, *kinds = self.list()
        for _ in range(n):
            for inner in kinds:
                self.skip(_BYTE if inner in _BOOL else inner, depth + 1)


Leaf = tuple[str, bool]
"""The column that plain values belong to, and whether a row may have several of them."""
Chunk = tuple[int, tuple[int, ...]]
"""Values of a leaf in a group of rows, and where their pages may begin."""


def long_columns(path: Path) -> list[str]:
    """Name the columns that may have a value longer than `VALUE`, for their pages are larger.

    Raises
    ------
    DataError
        If what would be unpacked at a time is more than the size of the file allows, the file has
        more columns than are read, or its headers cannot be followed.
    """
    try:
        size = path.stat().st_size
        with path.open("rb") as file:
            return _long_columns(str(path), file.fileno(), size)
    except IndexError as error:
        msg = f"Cannot read {str(path)!r}: it is damaged, or no Parquet. Take a whole copy."
        raise DataError(msg) from error
    except OSError as error:
        raise DataError(f"Cannot read {str(path)!r}: {error.strerror}.") from error


def _long_columns(name: str, file: int, size: int) -> list[str]:
    end = os.pread(file, 8, max(0, size - 8))
    n = int.from_bytes(end[:4], "little")
    if end[4:] != MAGIC or n > size - 12:
        raise IndexError
    if n > MOST_FOOTER:
        msg = f"{name!r} has a footer of {in_mb(n)}, more than {in_mb(MOST_FOOTER)}: "
        raise DataError(f"{msg}write it in several files.")
    leaves: list[Leaf] = []
    longest: dict[str, int] = {}
    n_groups = held = 0
    for part in _parts(name, _Header(os.pread(file, n, size - 8 - n))):
        if isinstance(part, list):
            leaves = part
            continue
        rows, chunks = part
        if len(chunks) != len(leaves):
            raise IndexError
        n_groups, own = n_groups + 1, 0
        for (column, repeats), chunk in zip(leaves, chunks, strict=True):
            n_bytes, largest = _unpacked(name, (column, repeats), file, size, chunk, rows)
            own += n_bytes
            longest[column] = max(longest.get(column, 0), largest)
        held = max(held, own)
    held *= min(n_groups, os.cpu_count() or 1)  # groups of rows are read beside each other
    if held > most_unpacked(size):
        msg = (
            f"{name!r} has {size:,} bytes and would take {in_mb(held)} at a time: a file may take "
            f"{in_mb(BATCH)} or {UNPACKED} times its size. Write it in smaller groups of rows, "
            "plainly encoded."
        )
        raise DataError(msg)
    return [column for column, largest in longest.items() if largest > VALUE]


def _parts(name: str, footer: _Header) -> Iterator[list[Leaf] | tuple[int, list[Chunk]]]:
    """Give the leaves of a file, and then the rows of each group with the pages of each leaf."""
    for number, kind in footer.fields():
        if (number, kind) == (2, _LIST):
            yield [*_leaves(name, footer)]
        elif (number, kind) == (4, _LIST):
            for _ in range(footer.list()[0]):
                yield _group(footer)
        else:
            footer.skip(kind)


def _leaves(name: str, footer: _Header) -> Iterator[Leaf]:
    n = footer.list()[0]
    if n > COLUMNS:
        msg = f"{name!r} has {n:,} columns, with those inside them: {COLUMNS:,} are read. "
        raise DataError(f"{msg}Leave some out.")
    inside: list[list[int]] = []  # how many are left in each that is open, and whether it repeats
    column = ""
    wanted = {(3, _INT): footer.number, (4, _BINARY): footer.text, (5, _INT): footer.number}
    for _ in range(n):
        field = footer.read(wanted)
        column = field.get(4, column) if len(inside) == 1 else column
        children, repeats = field.get(5, 0), int(field.get(3) == 2)
        repeats |= inside[-1][1] if inside else 0
        if children:
            inside.append([children + 1, repeats])
        elif inside:
            yield (column, bool(repeats))
        while inside:
            inside[-1][0] -= 1
            if inside[-1][0]:
                break
            inside.pop()


def _group(footer: _Header) -> tuple[int, list[Chunk]]:
    inner = {(number, _LONG): footer.number for number in (5, 9, 10, 11)}

    def chunks() -> list[Chunk]:
        n = footer.list()[0]
        if n > COLUMNS:
            raise IndexError
        return [_chunk(footer.read({(3, _STRUCT): partial(footer.read, inner)})) for _ in range(n)]

    field = footer.read({(1, _LIST): chunks, (3, _LONG): footer.number})
    return field.get(3, 0), field.get(1, [])


def _chunk(field: Mapping[int, Any]) -> Chunk:
    own = field.get(3, {})
    return own.get(5, 0), tuple(own[number] for number in (9, 10, 11) if number in own)


def _unpacked(
    name: str, leaf: Leaf, file: int, size: int, chunk: Chunk, rows: int
) -> tuple[int, int]:
    """Give the bytes that reading a leaf holds, and those of its largest page."""
    (column, repeats), (own_values, starts) = leaf, chunk
    at = min(starts, default=0)
    seen = dictionary = data = 0
    values = max(own_values, rows)
    while seen < values:
        kind, n_values, encoding, n_bytes, at = _page(file, size, at)
        if n_bytes > PAGE:
            msg = (
                f"Column {column!r} of {name!r} has a page of {in_mb(n_bytes)}, more than "
                f"{in_mb(PAGE)}: one value may have {in_mb(VALUE)}. Shorten its values, or write "
                "the file in smaller groups of rows."
            )
            raise DataError(msg)
        if kind == _DICTIONARY:
            dictionary = max(dictionary, n_bytes)
            continue
        seen += n_values
        held = n_bytes + (DELTA_BYTES * n_values if encoding in DELTAS else 0)
        data = max(data, held + (n_values * n_bytes if encoding == DELTA_TEXT else 0))
    in_lists = NESTED_BYTES * values if repeats else 0
    return dictionary + data + in_lists, max(dictionary, data)


def _page(file: int, size: int, at: int) -> tuple[int, int, int, int, int]:
    """Give kind, values, encoding and unpacked bytes of a page, and where the next begins."""
    for most in HEADERS:
        header = _Header(os.pread(file, most, at) if 0 < at < size else b"")
        try:
            kind, values, encoding, n_bytes, packed = _page_header(header)
        except IndexError:
            continue
        after = at + header.at + packed
        if min(packed, n_bytes, values) < 0 or after > size:
            break
        return kind, values, encoding, n_bytes, after
    raise IndexError


def _page_header(header: _Header) -> tuple[int, int, int, int, int]:
    wanted: dict[tuple[int, int], Callable[[], Any]]
    wanted = {(number, _INT): header.number for number in (1, 2, 3)}
    for number, encoding in ((5, 2), (8, 4)):
        inner = {(one, _INT): header.number for one in (1, encoding)}
        wanted[number, _STRUCT] = partial(header.read, inner)
    field = header.read(wanted)
    number, encoding = {_DATA: (5, 2), _DATA_V2: (8, 4)}.get(kind := field.get(1, 0), (0, 0))
    own = field.get(number, {})
    return kind, own.get(1, 0), own.get(encoding, 0), field.get(2, 0), field.get(3, 0)
