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


def maths_font() -> bytes:
    """Make the font, as WOFF2; it takes seconds.

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
    font = load_font(str(paths[0].locate()), options)
    subsetter = Subsetter(options)
    subsetter.populate(
        unicodes=[point for start, end in CHARACTERS for point in range(start, end)]
    )
    subsetter.subset(font)
    written = BytesIO()
    save_font(font, written, options)
    return written.getvalue()


if __name__ == "__main__":
    sys.stdout.buffer.write(maths_font())
