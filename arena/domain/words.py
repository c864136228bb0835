"""Languages of the page's own words, and which of them a visitor reads."""

import re
from enum import StrEnum


class Language(StrEnum):
    """A language that the page's own words are in; sentences in code are English."""

    EN = "en"
    DE = "de"


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
