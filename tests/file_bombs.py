"""Small files that unpack to gigabytes or are nested very deeply, and what a command does of one.

Parquet is written here byte by byte: a writer of Parquet would hold what the file unpacks to.
"""

import json
import os
import struct
import sys
import zipfile
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import repeat
from pathlib import Path
from typing import Any, NamedTuple

from arena.boards.export import COLUMNS
from tests.command import ARENA, captured

MB = 2**20
HEADER = "model_a,model_b,winner,voter,prompt_id,prompt,response_a,response_b,judge,order"
NAMES = tuple(HEADER.split(","))
VALUES = "x,y,model_a,ada,p1,Hello?,Yes.,No.,opal,ab"
CELLS = dict(zip(NAMES, VALUES.split(","), strict=True))

Make = Callable[[Path], None]


def zipped(pieces: Iterator[bytes], wbits: int = 31) -> bytes:
    """Pack pieces one after the other."""
    packer = zlib.compressobj(9, wbits=wbits)
    return b"".join([*map(packer.compress, pieces), packer.flush()])


# Thrift's compact protocol: a field is (its number, kind, value).
I32, I64, BINARY, LIST, STRUCT = 5, 6, 8, 9, 12
Field = tuple[int, int, Any]


def varint(number: int) -> bytes:
    """Seven bits a byte, the lowest first."""
    low = bytearray()
    while number > 127:
        low.append(number & 127 | 128)
        number >>= 7
    return bytes([*low, number])


def thrift(kind: int, value: Any) -> bytes:
    """A value of a kind."""
    if kind in (I32, I64):
        return varint((value << 1) ^ (value >> 63))
    if kind == BINARY:
        return varint(len(value)) + bytes(value)
    if kind == LIST:
        inner, values = value
        n = len(values)
        head = bytes([n << 4 | inner]) if n < 15 else bytes([0xF0 | inner]) + varint(n)
        return head + b"".join(thrift(inner, one) for one in values)
    body, before = b"", 0
    for number, inner, one in value:
        body += bytes([(number - before) << 4 | inner]) + thrift(inner, one)
        before = number
    return body + b"\0"


def column(
    name: str, values: Sequence[Iterator[bytes] | bytes], rows: int, *, in_list: int = 0
) -> tuple[list[list[Field]], bytes, Callable[[int], list[Field]]]:
    """A column whose dictionary has some values, and whose rows all hold the first.

    Returns its part of the schema, its pages, and what the footer says of pages at an offset.

    Parameters
    ----------
    in_list : int
        Values in a list in each row, where the column is of lists.
    """
    n = rows * (in_list or 1)
    sizes = [len(one) if isinstance(one, bytes) else SIZE for one in values]

    def plain() -> Iterator[bytes]:
        for size, one in zip(sizes, values, strict=True):
            yield struct.pack("<I", size)
            yield from [one] if isinstance(one, bytes) else one

    runs, left = b"", n
    while left > 0:
        runs, left = runs + varint(min(left, 2**30) << 1) + b"\0", left - 2**30
    indices = b"\x01" + runs  # a bit each, in runs of zeros
    if in_list:
        first = (varint(1 << 1) + b"\0" + varint((in_list - 1) << 1) + b"\x01") * rows
        full = varint(n << 1) + b"\x01"
        levels = (struct.pack("<I", len(one)) + one for one in (first, full))
        indices = b"".join(levels) + indices
    pages = b""
    for kind, head, count, size, body in (
        (2, 7, len(values), sum(sizes) + 4 * len(sizes), zipped(plain())),
        (0, 5, min(n, 2**31 - 1), len(indices), zipped(iter([indices]))),
    ):
        about: list[Field] = [(1, I32, count), (2, I32, 0 if kind == 2 else 8)]
        about += [] if kind == 2 else [(3, I32, 3), (4, I32, 3)]
        header = [(1, I32, kind), (2, I32, size), (3, I32, len(body)), (head, STRUCT, about)]
        pages += thrift(STRUCT, header) + body
        first_page = 0 if kind == 2 else len(pages) - len(body) - len(thrift(STRUCT, header))
    text = [(6, I32, 0)]
    named: list[Field] = [(4, BINARY, name.encode())]
    schema: list[list[Field]] = [[(1, I32, 6), (3, I32, 0), *named, *text]]
    path = [name.encode()]
    if in_list:
        schema = [
            [(3, I32, 0), *named, (5, I32, 1), (6, I32, 3)],
            [(3, I32, 2), (4, BINARY, b"list"), (5, I32, 1)],
            [(1, I32, 6), (3, I32, 0), (4, BINARY, b"element"), *text],
        ]
        path += [b"list", b"element"]

    def about_chunk(offset: int) -> list[Field]:
        meta: list[Field] = [(1, I32, 6), (2, LIST, (I32, [0, 3, 8])), (3, LIST, (BINARY, path))]
        meta += [(4, I32, 2), (5, I64, n), (6, I64, len(pages)), (7, I64, len(pages))]  # 2 is gzip
        meta += [(9, I64, offset + first_page), (11, I64, offset)]
        return [(2, I64, offset), (3, STRUCT, meta)]

    return schema, pages, about_chunk


SIZE = 512 * MB
"""Bytes of a value that is made in pieces."""


def huge() -> Iterator[bytes]:
    """Give such a value."""
    return repeat(b"x" * MB, SIZE // MB)


def parquet(
    rows: int,
    groups: int = 1,
    names: Sequence[str] = NAMES,
    lists: Mapping[str, int] | None = None,
    **cells: Sequence[bytes] | Callable[[], Sequence[bytes] | Iterator[bytes]],
) -> Make:
    """A file of rows that are all the same, in so many groups."""

    def make(path: Path) -> None:
        schema: list[list[Field]] = [[(4, BINARY, b"root"), (5, I32, len(names))]]
        body, chunks = bytearray(b"PAR1"), []
        for name in names:
            values = cells.get(name, [CELLS.get(name, name).encode()])
            given = values() if callable(values) else values
            several = [given] if isinstance(given, Iterator) else given
            parts, pages, about = column(name, several, rows, in_list=(lists or {}).get(name, 0))
            schema += parts
            chunks.append(about(len(body)))
            body += pages
        group = [(1, LIST, (STRUCT, chunks)), (2, I64, len(body)), (3, I64, rows)]
        footer: list[Field] = [(1, I32, 1), (2, LIST, (STRUCT, schema)), (3, I64, rows * groups)]
        end = thrift(STRUCT, [*footer, (4, LIST, (STRUCT, [group] * groups))])
        path.write_bytes(bytes(body) + end + struct.pack("<I", len(end)) + b"PAR1")

    return make


def raw(content: bytes) -> Make:
    """A file of some bytes."""

    def make(path: Path) -> None:
        path.write_bytes(content)

    return make


def packed(*pieces: tuple[bytes, int]) -> Make:
    """Gzip of pieces, each so many times."""

    def make(path: Path) -> None:
        path.write_bytes(zipped(piece for one, n in pieces for piece in repeat(one, n)))

    return make


def json_of(opening: str, closing: str, depth: int) -> bytes:
    """A row whose prompt is nested."""
    deep = '"prompt": ' + opening * depth + closing * depth
    return json.dumps(CELLS | {"prompt": 0}).replace('"prompt": 0', deep).encode()


def archive(path: Path) -> None:
    """A log of Inspect whose header is gigabytes of blanks."""
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as log:
        log.writestr("_journal/start.json", "{}")
        with log.open("header.json", "w", force_zip64=True) as header:
            for piece in repeat(b" " * MB, 1024):
                header.write(piece)


def empty_structs(path: Path) -> None:
    """A footer that lists ten million parts of the schema, each of one byte."""
    n = 10_000_000
    end = thrift(STRUCT, [(1, I32, 1)])[:-1] + bytes([0x19, 0xFC]) + varint(n) + bytes(n + 1)
    path.write_bytes(b"PAR1" + end + struct.pack("<I", len(end)) + b"PAR1")


HEAD = HEADER.encode() + b"\n"
ROW = ",".join(CELLS.values()).encode() + b"\n"
CELL = b"x" * MB
LINE = json.dumps(CELLS).encode() + b"\n"
OPEN = json.dumps(CELLS | {"prompt": "@"}).encode().partition(b"@")

ENDINGS = {"JSON lines": "jsonl", "Inspect's log": "eval", "an export": "parquet"}
"""Of files, by the first words of what they are; of others those words are the ending."""


def filed(bombs: Mapping[str, Make]) -> dict[str, tuple[str, Make]]:
    """Name the file of each."""
    kinds = {what: what.partition(",")[0].removesuffix(" in gzip") for what in bombs}
    endings = {what: ENDINGS.get(kind, kind.split()[-1].lower()) for what, kind in kinds.items()}
    zips = {what: ".gz" if " in gzip," in what else "" for what in bombs}
    return {what: (f"f.{endings[what]}{zips[what]}", make) for what, make in bombs.items()}


TABLES = filed(
    {
        "Parquet, a text of 1 MB in 13,000 rows": parquet(13_000, prompt=[CELL]),
        "Parquet, a name of 1 MB in 13,000 rows": parquet(13_000, voter=[CELL], judge=[CELL]),
        "Parquet, a text of 512 MB": parquet(1, prompt=huge),
        "Parquet, a name of 512 MB": parquet(1, voter=huge),
        "Parquet, 512 names of 1 MB": parquet(
            13_000, voter=lambda: [b"%4d" % n + CELL[4:] for n in range(512)]
        ),
        "Parquet, a billion rows": parquet(2**28, groups=4),
        "Parquet, lists of 2^28 values": parquet(2, lists={"prompt": 2**27}),
        "Parquet, a list of 13,000 texts of 1 MB": parquet(
            1, lists={"prompt": 13_000}, prompt=[CELL]
        ),
        "Parquet, 20,000 columns": parquet(1, names=[*NAMES, *(f"c{n}" for n in range(20_000))]),
        "Parquet, a footer of empty structs": empty_structs,
        "CSV, 20,000 columns": raw(
            HEAD[:-1] + b"".join(b",c%d" % n for n in range(20_000)) + b"\n" + ROW
        ),
        "CSV in gzip, a line of 512 MB": packed(
            (HEAD + ROW[:-1], 1), (CELL, 512), (b"\n" + ROW, 1)
        ),
        "CSV in gzip, 2,000 lines of 1 MB": packed((HEAD, 1), (ROW[:-1] + CELL + b"\n", 2000)),
        "CSV in gzip, 50 million rows": packed((HEAD, 1), (ROW * 10_000, 5_000)),
        "CSV in gzip, a first line of 512 MB": packed((CELL, 512)),
        "JSON lines in gzip, a line of 512 MB": packed(
            (OPEN[0], 1), (CELL, 512), (OPEN[2] + b"\n", 1), (LINE, 3)
        ),
        "JSON lines in gzip, 2,000 lines of 1 MB": packed(
            (OPEN[0] + CELL + OPEN[2] + b"\n", 2000)
        ),
        "JSON in gzip, a list of 5 million rows": packed(
            (b"[", 1), (LINE[:-1] + b",", 5_000_000), (LINE + b"]", 1)
        ),
        "JSON in gzip, 64 MB of empty lists": packed(
            (b'[{"prompt": [[]', 1), (b",[]" * MB, 21), (b"]}]", 1)
        ),
        "JSON in gzip, a number of 100 million digits": packed(
            (b'[{"prompt": ', 1), (b"9" * MB, 100), (b"}]", 1)
        ),
        "JSON, 100,000 lists deep": raw(b"[" + json_of("[", "]", 100_000) + b"]"),
        "JSON, 900 lists deep": raw(b"[" + json_of("[", "]", 900) + b"]"),
        "JSON lines, 100,000 objects deep": raw(LINE + json_of('{"a":[', "]}", 50_000) + b"\n"),
        "JSON lines, 900 lists deep": raw(LINE + json_of("[", "]", 900) + b"\n"),
        "Inspect's log, a header of 1 GB": archive,
    }
)
"""What is read as a table."""

EXPORT = tuple(COLUMNS)
"""Columns of an export of votes."""

RECORDS = filed(
    {
        "an export, a text of 1 MB in 13,000 rows": parquet(13_000, names=EXPORT, winner=[CELL]),
        "an export, exclusions of 1 MB in 13,000 rows": parquet(
            13_000, names=EXPORT, exclusion=[CELL], link=[b"2"], links=[b"9"]
        ),
        "an export, a text of 512 MB": parquet(1, names=EXPORT, pacing=huge),
        "an export, a billion rows": parquet(2**28, groups=4, names=EXPORT),
        "an export, a list of 2^28 values": parquet(2, names=EXPORT, lists={"tagger": 2**27}),
        "an export as CSV in gzip, 2,000 lines of 1 MB": packed(
            (",".join(EXPORT).encode() + b"\n", 1),
            (b",".join([b"1"] * (len(EXPORT) - 1)) + b"," + CELL + b"\n", 2000),
        ),
    }
)
"""What ``arena verify`` reads."""

WITHIN = filed(
    {
        "Parquet, a text of 1 MB in 31 rows": parquet(31, prompt=[CELL]),
        "Parquet, 31 names of 1 MB": parquet(
            31, voter=lambda: [b"%4d" % n + CELL[8:] for n in range(31)]
        ),
        "Parquet, a list of 9 texts of 1 MB in 3 rows": parquet(
            3, lists={"prompt": 9}, prompt=[CELL]
        ),
        "Parquet, 199,000 rows": parquet(199_000),
        "CSV in gzip, 31 MB of short rows": packed((HEAD, 1), (ROW * 1000, 720)),
        "CSV in gzip, 31 lines of 1 MB": packed((HEAD, 1), (ROW[:-1] + CELL[99:] + b"\n", 31)),
        "JSON lines in gzip, 181,000 rows": packed((LINE * 1000, 181)),
        "JSON lines in gzip, 15 MB with an emoji": packed(
            (OPEN[0] + "😀".encode(), 1), (CELL, 15), (OPEN[2] + b"\n", 1)
        ),
        "JSON in gzip, 499,000 empty lists": packed(
            (b'[{"prompt": [[]', 1), (b",[]" * 1000, 499), (b"]}]", 1)
        ),
    }
)
"""Files that are just within the limits of their size, or exceed another one by little."""

DEEP = "[" * 5_000 + "]" * 5_000
OTHERS = filed(
    {
        "TOML, lists 5,000 deep": raw(f"models = {DEEP}\n".encode()),
        "TOML, a key of 100,000 parts": raw(b"a" + b".a" * 100_000 + b" = 1\n"),
        "TOML, 20 MB of empty lists": raw(b"models = [[]" + b",[]" * 7_000_000 + b"]\n"),
        "JSON, an object of lists 900 deep": raw(
            f'{{"ratings": {"[" * 900 + "]" * 900}}}'.encode()
        ),
    }
)
"""Rosters, methods, boards."""

_LAUNCH = """
import json, resource, subprocess, sys
seconds, *words = sys.argv[1:]
limit = 4 << 30  # a machine of less memory survives a command that fails the test
capped = lambda: resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
try:
    done = subprocess.run(
        words, capture_output=True, text=True, preexec_fn=capped, timeout=float(seconds)
    )
    code, err = done.returncode, done.stderr
except subprocess.TimeoutExpired:
    code, err = None, ""
print(json.dumps([code, resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss // 1024, err]))
"""


class Ended(NamedTuple):
    """How a command ended.

    Attributes
    ----------
    code : int or None
        None if it was stopped.
    peak_mb : int
        Its largest resident memory.
    """

    code: int | None
    peak_mb: int
    stderr: str


def measured(folder: Path, *words: str, seconds: int = 100) -> Ended:
    """Run the command in a folder, started by a small process: a fork would count our memory."""
    launch = [sys.executable, "-S", "-c", _LAUNCH, str(seconds), ARENA, *words]
    done = captured(launch, folder, os.environ | {"ARENA_PAGE": "0"})
    assert done.returncode == 0, done.stderr
    return Ended(*json.loads(done.stdout))


GOOD = HEAD + ROW + ROW.replace(b"model_a", b"tie")

JUDGE_RUN = ("judge", "run", "--method", "pairwise", "--judge", "pocket-judge", "--dry-run")
READ_TABLES: tuple[tuple[str, ...], ...] = (
    ("rate", "{}"),
    (*JUDGE_RUN, "--cases", "{}"),
    ("study", "judge", "{}", "good.csv", "--rounds", "100"),
    ("label", "{}"),
)
VERIFY = (("verify", "{}"),)
READ_OTHERS: tuple[tuple[str, ...], ...] = (
    ("models", "--roster", "{}"),
    ("bench", "{}", "--dry-run"),
    ("judge", "run", "--method", "{}", *JUDGE_RUN[4:], "--cases", "good.csv"),
    ("rate", "good.csv", "--compare", "{}"),
)


def given(folder: Path, name: str, make: Make) -> Path:
    """Write a bomb, and a good file beside it."""
    (folder / "good.csv").write_bytes(GOOD)
    make(folder / name)
    return folder / name
