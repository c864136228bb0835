"""How much of a file is held in memory at a time, so that no file can exhaust it.

A few kilobytes can unpack to gigabytes: by compression, or as one value that many rows share. What
may be held therefore depends on the size of the file: no honest file is 50 times smaller than its
contents, and no cell of honest data takes less than half a bit.
"""

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from rating.errors import DataError

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


def require_parts(
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
        msg = f"{where} has {n:,} lists and objects, more than {PARTS:,}: split it."
        raise error(msg)
    return n > DEPTH


def require_shallow(value: Any, where: str, error: type[Exception] = DataError) -> None:
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
    raise too_deep(where, error)


def too_deep(where: str, error: type[Exception]) -> Exception:
    """Make the error for lists and objects nested deeper than `DEPTH`."""
    return error(f"{where} is nested more than {DEPTH} levels deep. Flatten it.")


def require_short(
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
