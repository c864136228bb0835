"""Counts of what a response looks like: its length and its Markdown."""

import re
from collections import Counter

ELEMENTS = r"(?m)(^#{1,6} )|(^\s*(?:[-*+]|\d+[.)])\s)|(\*\*[^*\n]+\*\*)|(^```)"
"""Headings, list items, words in bold and fences of code; read alike by Python and by duckdb."""
MARKDOWN = {
    "headers": ("h1", "h2", "h3", "h4", "h5", "h6"),
    "lists": ("ordered", "unordered"),
    "bold": ("bold",),
}
STYLES = ("length", *MARKDOWN, "code")
"""What is counted of responses, in columns that ``arena rate --style`` takes."""


def elements(text: str) -> int:
    r"""Count headings, list items, words in bold and fences of code.

    Examples
    --------
    >>> elements("# Sky\n- **Blue**, mostly\n- grey")
    4
    """
    return sum(elements_by_kind(text).values())


def elements_by_kind(text: str) -> Counter[str]:
    r"""Count what `elements` counts by what it is: h1 to h6, ordered, unordered, bold, fence.

    Examples
    --------
    >>> sorted(elements_by_kind("# Sky\n1. **Blue**\n- grey").items())
    [('bold', 1), ('h1', 1), ('ordered', 1), ('unordered', 1)]
    """
    return Counter(map(_kind, re.finditer(ELEMENTS, text)))


def style_of(text: str) -> dict[str, int]:
    r"""Count what `STYLES` names in a response.

    Examples
    --------
    >>> style_of("# Sky\n- **Blue**")
    {'length': 16, 'code': 0, 'headers': 1, 'lists': 1, 'bold': 1}
    """
    counts = elements_by_kind(text)
    styles = {name: sum(counts[kind] for kind in kinds) for name, kinds in MARKDOWN.items()}
    return {"length": len(text), "code": (counts["fence"] + 1) // 2} | styles


def _kind(element: re.Match[str]) -> str:
    heading, item, bold, _ = element.groups()
    if heading:
        return f"h{len(heading) - 1}"
    if item:
        return "ordered" if item.strip()[0].isdigit() else "unordered"
    return "bold" if bold else "fence"
