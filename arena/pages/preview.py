"""The picture that other sites show beside a link to a page here: a battle, in outline."""

import struct
import zlib
from functools import cache

WIDTH, HEIGHT = 1200, 630
"""The size that sites ask for."""

PAGE, CARD, LINE, TEXT, ACCENT, TINT = range(6)
COLOURS = ("f7f8f4", "ffffff", "c3c3bb", "e2e2dc", "33506e", "e3e9f0")
TEXTS = ((468, 430, 452, 380, 210), (452, 468, 396, 440, 150))
"""Lengths of the lines in each pane."""

Rectangle = tuple[int, int, int, int, int]
"""Left, top, width, height and colour."""


@cache
def preview_png() -> bytes:
    """Draw the picture as PNG: rectangles in a few colours, which no library is needed for."""
    rows = [bytearray(WIDTH) for _ in range(HEIGHT)]
    for left, top, width, height, colour in (*_mark(), *_pane(0), *_pane(1)):
        for row in rows[top : top + height]:
            row[left : left + width] = bytes([colour]) * width
    # In PNG each row begins with how it was filtered; 0 is not at all.
    lines = b"".join(b"\0" + row for row in rows)
    header = struct.pack(">IIBBBBB", WIDTH, HEIGHT, 8, 3, 0, 0, 0)  # a byte a point, by palette
    return b"\x89PNG\r\n\x1a\n" + b"".join(
        (
            _chunk(b"IHDR", header),
            _chunk(b"PLTE", bytes.fromhex("".join(COLOURS))),
            _chunk(b"IDAT", zlib.compress(lines, 9)),
            _chunk(b"IEND", b""),
        )
    )


def _mark() -> tuple[Rectangle, ...]:
    return ((568, 52, 28, 66, ACCENT), (604, 52, 28, 66, ACCENT))


def _pane(side: int) -> tuple[Rectangle, ...]:
    """Draw a response; the second is the one that was chosen."""
    left, top, width, height = (60, 620)[side], 166, 520, 404
    edge, frame, head = ((2, LINE, CARD), (6, ACCENT, TINT))[side]
    inner = width - 2 * edge
    lines = enumerate(TEXTS[side])
    return (
        (left, top, width, height, frame),
        (left + edge, top + edge, inner, height - 2 * edge, CARD),
        (left + edge, top + edge, inner, 64, head),
        (left + edge, top + edge + 64, inner, 2, TEXT),
        (left + 26, top + 26, 150, 20, (LINE, ACCENT)[side]),
        *((left + 26, top + 106 + 56 * n, length, 20, TEXT) for n, length in lines),
    )


def _chunk(kind: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
