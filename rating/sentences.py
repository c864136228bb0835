"""Sentences for people: text in English that can be put into other languages."""

import re
from collections.abc import Iterable, Mapping
from typing import Any, Self

MOST_WARNINGS = 5
_NAMES_AND_NUMBERS = re.compile(r"'[^']*'|\S*\d\S*")
_ABSENT = re.compile(r"\bThere is no |\bcannot be told\b|\bhas no |\b(is|are) left\b")


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


def plural(n: int, one: str, many: str = "") -> str:
    """Count things; ``many`` is ``one`` with an s unless given.

    Examples
    --------
    >>> plural(1, "item"), plural(1200, "item"), plural(2, "row has", "rows have")
    ('1 item', '1,200 items', '2 rows have')
    """
    return f"{n:,} {one if n == 1 else many or f'{one}s'}"


def foremost(warnings: Iterable[str], most: int | None = MOST_WARNINGS) -> list[str]:
    """Give the first warnings by rank, and how many more there are; None gives all.

    A warning of a kind that is already there comes after those of other kinds: kinds differ in
    more than numbers and quoted names. Then come those on figures that a report shows before
    those on what it does not show, and then the order in which they were gathered.

    Examples
    --------
    >>> foremost(["There is no bias.", "'x' has 4 rows: few.", "'y' has 5 rows: few."], most=2)
    ["'x' has 4 rows: few.", 'There is no bias.', '1 more warning is in the JSON form.']
    """
    seen: dict[str, int] = {}
    ranked: list[tuple[int, bool, int, str]] = []
    for text in dict.fromkeys(warnings):
        kind = _NAMES_AND_NUMBERS.sub("", text)
        seen[kind] = seen.get(kind, 0) + 1
        ranked.append((seen[kind], _ABSENT.search(text) is not None, len(ranked), text))
    texts = [text for *_, text in sorted(ranked)]
    if most is None or len(texts) <= most:
        return texts
    more = counted(
        "%(n)s more warning is in the JSON form.",
        "%(n)s more warnings are in the JSON form.",
        len(texts) - most,
    )
    return [*texts[:most], more]


def concerning(texts: Mapping[str, Iterable[str]], *, of_all: bool) -> list[str]:
    """Give each text once, after the first three names that it concerns; of fewest names first.

    Parameters
    ----------
    of_all : bool
        Whether names precede a text that concerns all of several names, too.

    Examples
    --------
    >>> concerning({"owl": ["Few.", "Late."], "crow": ["Few."]}, of_all=False)
    ['owl: Late.', 'Few.']
    """
    names: dict[str, list[str]] = {}
    for name, own in texts.items():
        for text in dict.fromkeys(own):
            names.setdefault(text, []).append(name)
    return [
        text
        if len(of) == len(texts) and (not of_all or len(of) == 1)
        else f"{', '.join(of[:3])}{f' and {len(of) - 3} more' if len(of) > 3 else ''}: {text}"
        for text, of in sorted(names.items(), key=lambda one: len(one[1]))
    ]


def _in_english(values: Mapping[str, Any]) -> dict[str, Any]:
    return {name: in_digits(x) if type(x) in (int, float) else x for name, x in values.items()}


def in_digits(number: float) -> str:
    """Write a number as Python does, one that is not whole by type with one decimal."""
    return f"{number:,}" if isinstance(number, int) else f"{number:,.1f}"


def signed(score: float) -> str:
    """Write a difference of scores.

    >>> signed(-0.25)
    '−0.250'
    """
    return f"{score:+z.3f}".replace("-", "−")
