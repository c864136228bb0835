"""A report as plain values: what it says, in which order, before it is HTML or anything else."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import date
from typing import Any, Literal

Tone = Literal["good", "fair", "poor"]


@dataclass(frozen=True, slots=True)
class Table:
    """Rows of text; the first column is names, the others are numbers.

    Attributes
    ----------
    strong : tuple of int
        Rows that the eye should find.
    note : str
        What to know to read it.
    """

    head: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    note: str = ""
    strong: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Figure:
    """A picture, as SVG in the colours of the page, and what it shows."""

    svg: str
    caption: str


@dataclass(frozen=True, slots=True)
class Example:
    """An item on which people and a judge differ, both responses beside each other.

    Attributes
    ----------
    text_a, text_b, prompt, reason : str or None
        None where they are not at hand.
    """

    title: str
    prompt: str | None
    model_a: str
    model_b: str
    text_a: str | None
    text_b: str | None
    people: str
    judge: str
    reason: str | None


@dataclass(frozen=True, slots=True)
class Section:
    """A part of the report under a heading."""

    title: str
    paragraphs: tuple[str, ...] = ()
    table: Table | None = None
    figures: tuple[Figure, ...] = ()
    more: tuple[Table, ...] = ()
    examples: tuple[Example, ...] = ()
    points: tuple[str, ...] = ()
    code: str = ""


@dataclass(frozen=True, slots=True)
class Answer:
    """The answer for one judge, to be read first."""

    judge: str
    tone: Tone
    headline: str
    sentences: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Page:
    """A whole report.

    Attributes
    ----------
    opening : str
        What this is, for who has not read such a thing before.
    about : mapping of str to str
        What was compared, for the head: votes, verdicts, items, judges.
    """

    title: str
    opening: str
    about: Mapping[str, str]
    answers: tuple[Answer, ...]
    first: Section
    sections: tuple[Section, ...]
    made: date
    version: str
    numbers: Mapping[str, Any] = field(default_factory=dict)
