"""Sentences for people: text in English that can be put into other languages."""

from collections.abc import Mapping
from typing import Any, Self


class Sentence(str):
    """Words for people: a `str` in English that knows its template and values.

    Parameters
    ----------
    template : str
        With values as ``%(name)s``; without values nothing in it is replaced.
    many : str
        The template where the value ``n`` is not 1; empty if it is the same: see `counted`.

    Examples
    --------
    >>> Sentence("Ask %(a)s and %(b)s.", a="Quartz", b="Chalk")
    'Ask Quartz and Chalk.'
    """

    template: str
    many: str
    values: Mapping[str, Any]

    def __new__(cls, template: str, /, many: str = "", **values: Any) -> Self:
        """Fill the template."""
        chosen = many if many and values["n"] != 1 else template
        made = super().__new__(cls, chosen % _in_english(values) if values else chosen)
        made.template, made.many, made.values = template, many, values
        return made


def counted(one: str, many: str, n: int, /, **values: Any) -> Sentence:
    """Choose between two sentences by a number, which is ``%(n)s`` in them.

    Examples
    --------
    >>> counted("%(n)s battle", "%(n)s battles", 1200)
    '1,200 battles'
    """
    return Sentence(one, many, n=n, **values)


def _in_english(values: Mapping[str, Any]) -> dict[str, Any]:
    return {name: in_digits(x) if type(x) in (int, float) else x for name, x in values.items()}


def in_digits(number: float) -> str:
    """Write a number as Python does, one that is not whole by type with one decimal."""
    return f"{number:,}" if isinstance(number, int) else f"{number:,.1f}"
