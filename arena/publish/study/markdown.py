"""What counts as an element of markdown in a response."""

import re

ELEMENTS = r"(?m)(^#{1,6} )|(^\s*(?:[-*+]|\d+[.)])\s)|(\*\*[^*\n]+\*\*)|(^```)"
"""Headings, list items, words in bold and fences of code; read alike by Python and by duckdb."""


def elements(text: str) -> int:
    r"""Count headings, list items, words in bold and fences of code.

    Examples
    --------
    >>> elements("# Sky\n- **Blue**, mostly\n- grey")
    4
    """
    return len(re.findall(ELEMENTS, text))
