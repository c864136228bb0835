"""A font for formulas, small enough to send: without one, browsers draw no roots.

``python -m judge.render.font`` writes it to standard output. The font is STIX Two Math, from the
package ``ziamath``; nothing of that package is run.
"""

import sys
from importlib.metadata import files
from io import BytesIO

from fontTools.subset import Options, Subsetter, load_font, save_font

CHARACTERS = (
    (0x20, 0x7F),  # Latin
    (0xA0, 0x100),
    (0x391, 0x3D7),  # Greek
    (0x2010, 0x2058),  # punctuation, primes
    (0x20D0, 0x20E2),  # accents
    (0x2100, 0x2150),  # letters like ℝ
    (0x2190, 0x2300),  # arrows, operators
    (0x2308, 0x230C),  # floor, ceiling
    (0x23B0, 0x23E2),  # braces
    (0x25A0, 0x2600),  # shapes
    (0x27C0, 0x2800),
    (0x2900, 0x2B00),
    (0x1D400, 0x1D800),  # mathematical alphabets
)
"""Ranges of code points that formulas are made of, each without its end."""

UNWRITTEN = ((0x210E, 0x210F), (0x221A, 0x221B), (0x1D434, 0x1D468), (0x1D6E2, 0x1D71C))
"""What browsers draw of themselves: roots, and a single letter of a formula in italics."""


def maths_font(formulas: str | None = None) -> bytes:
    """Make the font, as WOFF2; it takes seconds.

    Parameters
    ----------
    formulas : str, optional
        What the font has to have, and no more than that.

    Raises
    ------
    FileNotFoundError
        If the package that brings the font came without it.
    """
    paths = [path for path in files("ziamath") or () if path.name == "STIXTwoMath-Regular.ttf"]
    if not paths:
        raise FileNotFoundError("ziamath is installed without STIXTwoMath-Regular.ttf")
    options = Options(flavor="woff2", hinting=False, notdef_outline=True, name_IDs=[])
    options.layout_features = ["ssty", "dtls", "flac", "ccmp", "locl", "mark", "mkmk"]
    subsetter = Subsetter(options)
    ranges = CHARACTERS if formulas is None else UNWRITTEN
    points = {point for start, end in ranges for point in range(start, end)}
    subsetter.populate(unicodes=points | set(map(ord, formulas or "")))
    written = BytesIO()
    with load_font(str(paths[0].locate()), options) as font:
        subsetter.subset(font)
        save_font(font, written, options)
    return written.getvalue()


if __name__ == "__main__":
    sys.stdout.buffer.write(maths_font())
