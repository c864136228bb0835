"""Languages of the page's own words, and sentences that can be put into each of them."""

import re
from collections.abc import Mapping
from enum import StrEnum
from typing import Any, Self


class Language(StrEnum):
    """A language that the page's own words are in; sentences in code are English."""

    EN = "en"
    DE = "de"


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
    return {name: f"{x:,}" if isinstance(x, int) else x for name, x in values.items()}


LANGUAGE_COOKIE = "language"
"""What a browser keeps of its visitor's choice."""

_RANGE = re.compile(
    r"\s*(?P<tag>[A-Za-z]{1,8}|\*)(-[A-Za-z0-9]{1,8})*\s*"
    r"(;\s*q\s*=\s*(?P<q>0(\.[0-9]{0,3})?|1(\.0{0,3})?)\s*)?"
)
MOST_RANGES = 50
"""Languages of a browser that are looked at; no person reads more."""


def chosen_language(cookie: str | None, accepted: str, default: Language) -> Language:
    """Choose a language by a visitor's choice, else by ``Accept-Language`` (RFC 9110), else ours.

    What cannot be read in either is passed over.

    Examples
    --------
    >>> chosen_language(None, "fr, de-CH;q=0.8, en;q=0.7", Language.EN).value
    'de'
    >>> chosen_language("en", "de", Language.DE).value
    'en'
    """
    if cookie in list(Language):
        return Language(cookie)
    weights: dict[str, float] = {}
    for part in accepted.split(",")[:MOST_RANGES]:
        if match := _RANGE.fullmatch(part):
            weights.setdefault(match["tag"].lower(), float(match["q"] or 1))
    rest = weights.get("*", 0.0)
    known = {language: weights.get(language, rest) for language in (default, *Language)}
    best = max(known, key=lambda language: known[language])
    return best if known[best] else default
