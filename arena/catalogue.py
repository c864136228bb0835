"""The catalogue of the page's own words: sentences, numbers and dates in each language.

``arena/locale`` holds a file of messages for each language but English, which is that of the
templates and the code. ``make words`` brings the files up to date.
"""

import io
import re
from collections.abc import Mapping
from datetime import datetime
from enum import StrEnum
from functools import cache
from pathlib import Path
from typing import Any

from babel import Locale
from babel.dates import format_date, format_skeleton
from babel.messages.mofile import write_mo
from babel.messages.pofile import read_po
from babel.support import NullTranslations, Translations
from markupsafe import Markup, escape

from rating.sentences import Sentence, in_digits
from rating.tables.files import shown


class Language(StrEnum):
    """A language that the page's own words are in; sentences in code are English."""

    EN = "en"
    DE = "de"


FOLDER = Path(__file__).parent / "locale"
SHARE = re.compile(r"[<>]?\d+%( \(\d+–\d+\))?")
"""A share with its interval, as it is written in English."""
LOCALES = {Language.EN: "en_GB", Language.DE: "de_DE"}
"""Whose dates and numbers each language has."""

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


class Words:
    """The words of one language; called with a sentence, it gives the sentence in the language.

    Parameters
    ----------
    language : Language
        Its file of messages is read here, once: see `words_in`.
    """

    def __init__(self, language: Language) -> None:
        self.language = language
        self.locale = Locale.parse(LOCALES[language])
        self.name = Locale.parse(language).get_language_name()
        self._messages = _messages(language)
        self._plain = cache(lambda message: self._filled(self._messages.gettext(message), {}))
        pattern = self.locale.percent_formats[None].pattern
        self._percent = "" if pattern.endswith("0%") else "\N{NO-BREAK SPACE}%"
        symbols = self.locale.number_symbols["latn"]
        signs = {",": symbols["group"], ".": symbols["decimal"]}
        self._signs = {ord(ours): theirs for ours, theirs in signs.items() if ours != theirs}

    def __call__(self, sentence: str) -> str:
        """Put a sentence into the language; one that the catalogue does not have stays."""
        if not isinstance(sentence, Sentence):
            return self._messages.gettext(sentence) if sentence else ""
        template = self._template(sentence)
        if not sentence.values:
            return template
        return template % {name: self._value(x) for name, x in sentence.values.items()}

    def knows(self, sentence: str) -> bool:
        """Tell whether a sentence can be put into the language."""
        template = sentence.template if isinstance(sentence, Sentence) else sentence
        return self.language is Language.EN or self._messages.gettext(template) != template

    def _template(self, sentence: Sentence) -> str:
        if not sentence.many:
            return self._messages.gettext(sentence.template)
        n = sentence.values["n"]
        return self._messages.ngettext(sentence.template, sentence.many, n)

    def _value(self, value: Any) -> Any:
        if isinstance(value, Sentence):
            return self(value)
        if isinstance(value, str) and SHARE.fullmatch(value):
            return self.share(value)
        return self._number(value) if type(value) in (int, float) else value

    def _number(self, value: float) -> str:
        is_short = type(value) is int and -1000 < value < 1000
        return str(value) if is_short else self.number(in_digits(value))

    def gettext(self, message: str, /, **values: Any) -> Markup:
        """Fill a message of a template; a percent sign of its own stands twice in it."""
        if not values:
            return self._plain(message)
        return self._filled(self._messages.gettext(message), values)

    def ngettext(self, one: str, many: str, n: int, /, **values: Any) -> Markup:
        """Fill a message by a number, which is ``%(n)s`` in it."""
        values["n"] = n
        return self._filled(self._messages.ngettext(one, many, n), values)

    def _filled(self, message: str, values: Mapping[str, Any]) -> Markup:
        safe = {name: self._safe(value) for name, value in values.items()}
        return Markup(message % safe)  # noqa: S704 - the message is ours, each value escaped

    def _safe(self, value: Any) -> str:
        """Write a value into HTML: quicker than `Markup` does, which pages do by the thousand."""
        if isinstance(value, int):
            return self._number(value)
        return value if isinstance(value, Markup) else escape(shown(self._value(value)))

    def share(self, written: str) -> str:
        """Write a share, given as English has it."""
        return written.replace("%", self._percent) if self._percent else written

    def number(self, written: str) -> str:
        """Write a number, given with commas and a point as Python has it."""
        return written.translate(self._signs) if self._signs else written

    def language_name(self, code: str) -> str:
        """Name a language by its ISO 639 code; one that is not known by the code itself."""
        name = str(self.locale.languages.get(code, code))
        return name[:1].upper() + name[1:]

    def day(self, when: datetime, *, year: bool) -> str:
        """Write a date in words."""
        if year:
            return format_date(when, "long", self.locale)
        return format_skeleton("MMMMd", when, locale=self.locale)


@cache
def words_in(language: Language) -> Words:
    """Give the words of a language, read once."""
    return Words(language)


def _messages(language: Language) -> NullTranslations:
    if language is Language.EN:
        return NullTranslations()
    with (FOLDER / f"{language}.po").open("rb") as file:
        catalogue = read_po(file, locale=language)
    compiled = io.BytesIO()
    write_mo(compiled, catalogue)
    compiled.seek(0)
    return Translations(compiled)
