"""A report as plain values, and as HTML, Markdown, LaTeX, JSON and Parquet files."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date
from functools import cache
from itertools import count
from pathlib import Path
from typing import Any, Literal

from markupsafe import Markup

from judge.render.pages import Environment, as_file, environment
from judge.report.cards import ProbePage
from rating.tables import formats
from rating.tables.escaping import LINES, in_latex, in_markdown, shown, visible

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

    @classmethod
    def of(cls, head: Sequence[str], rows: Mapping[str, Iterable[str]], note: str) -> "Table":
        """Make a table of the cells behind each name."""
        return cls(tuple(head), tuple((name, *cells) for name, cells in rows.items()), note)


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
    answers : tuple of (str, str or None)
        Model and text of side A, and of side B.
    prompt, reason : str or None
        None where they are not at hand.
    """

    title: str
    prompt: str | None
    answers: tuple[tuple[str, str | None], ...]
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

    @property
    def tables(self) -> tuple[Table, ...]:
        """Its tables, except those that have nothing but names and dashes."""
        whole = (*((self.table,) if self.table else ()), *self.more)
        return tuple(table for table in whole if formats.has_figures(table.rows))

    @property
    def is_empty(self) -> bool:
        """Whether there is nothing under its heading."""
        texts = (self.paragraphs, self.figures, self.examples, self.points)
        return not (any(texts) or self.tables or self.code)


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

    def answered(self) -> "Page":
        """Return headlines, examples and the command: too little data have no figures."""
        alone = tuple(replace(answer, sentences=()) for answer in self.answers)
        read = tuple(
            Section(one.title, examples=one.examples, code=one.code) for one in self.sections
        )
        return replace(self, answers=alone, first=Section(""), sections=read)

    @property
    def parts(self) -> tuple[Section, ...]:
        """Its sections that are not empty, the first of all before the others."""
        return tuple(one for one in (self.first, *self.sections) if not one.is_empty)


_NUMBER = re.compile(r"([+−]?\d[\d.,]*(?: %)?(?: \([+−\d][^()]*\))?)")

TEMPLATES = Path(__file__).parent / "templates"
LONGEST = 6000
"""Characters of a text that an example shows."""

READING = "How to read this"


def _with_numbers_whole(text: str) -> Markup:
    """Keep a number on one line with its unit and its interval."""
    parts = _NUMBER.split(shown(text))  # text and numbers in turn
    held = Markup('<span class="held">{}</span>')
    return Markup().join(held.format(part) if i % 2 else part for i, part in enumerate(parts))


def _cut(text: str) -> tuple[str, str]:
    """Split a text into what is shown, and a word on how much is not."""
    more = len(text) - LONGEST
    return text[:LONGEST], f"… {more:,} characters more." if more > 0 else ""


def as_html(page: Page) -> str:
    """Write a report as a page with its style and its pictures in it: it loads nothing."""
    sections = page.parts
    contents = _anchored([section.title for section in sections])
    return _file(
        page.title,
        "report.html",
        page=page,
        contents=contents,
        tops=(),
        sections=[(anchor, one) for (anchor, _), one in zip(contents, sections, strict=True)],
        made=_made(page),
        svg=Markup,
    )


def cards_as_html(pages: Sequence[ProbePage]) -> str:
    """Write one probe or several as a page with its style and its pictures in it."""
    parts = [(page.title, *(card.title for card in page.cards), READING) for page in pages]
    contents = _anchored([title for part in parts for title in part])
    rest = iter(anchor for anchor, _ in contents)
    anchors = [[next(rest) for _ in part] for part in parts]
    return _file(
        pages[0].title if len(pages) == 1 else "Cards",
        "cards.html",
        parts=list(zip(pages, anchors, strict=True)),
        contents=contents,
        tops=[part[0] for part in anchors],
        reading=READING,
        svg=Markup,
    )


def _file(title: str, template: str, **values: object) -> str:
    content = _environment().get_template(template).render(values)
    return as_file(title, content, (TEMPLATES / "report.css").read_text(encoding="utf-8"))


@cache
def _environment() -> Environment:
    env = environment(TEMPLATES)
    env.filters.update(held=_with_numbers_whole, cut=_cut)
    return env


def _anchored(titles: Sequence[str]) -> list[tuple[str, str]]:
    """Give each title an anchor of its own.

    Examples
    --------
    >>> _anchored(["The data", "the DATA!", "?", "Main"])
    [('the-data', 'The data'), ('the-data-2', 'the DATA!'), ('part', '?'), ('main-2', 'Main')]
    """
    anchors = ["main"]  # which every page has
    for title in titles:
        plain = "-".join(re.findall("[a-z0-9]+", title.lower()))[:60] or "part"
        same = (f"{plain}-{n}" if n > 1 else plain for n in count(1))
        anchors.append(next(anchor for anchor in same if anchor not in anchors))
    return list(zip(anchors[1:], titles, strict=True))


def as_markdown(page: Page) -> str:
    """Write a report as Markdown, without its pictures."""
    blocks = [f"# {in_markdown(page.title)}", in_markdown(page.opening)]
    blocks += ["\n".join(f"* {in_markdown(k)}: {in_markdown(v)}" for k, v in page.about.items())]
    for answer in page.answers:
        blocks += [
            f"## {in_markdown(f'{answer.judge}: {answer.headline}')}",
            *map(in_markdown, answer.sentences),
        ]
    for section in page.parts:
        blocks += _section(section)
    blocks.append(_made(page))
    return "\n\n".join(block for block in blocks if block) + "\n"


def _made(page: Page) -> str:
    return f"Made by arena {page.version} on {page.made.isoformat()}."


def _section(section: Section) -> Iterator[str]:
    yield f"## {in_markdown(section.title)}"
    yield from map(in_markdown, section.paragraphs)
    for table in section.tables:
        yield _table(table)
        yield in_markdown(table.note)
    yield from (in_markdown(figure.caption) for figure in section.figures if not section.tables)
    yield "\n".join(f"* {in_markdown(point)}" for point in section.points)
    for example in section.examples:
        yield from _example(example)
    if section.code:
        yield f"```\n{visible(section.code, keep=LINES)}\n```"


def _table(table: Table) -> str:
    sides = ["---", *("---:" for _ in table.head[1:])]
    head, *rows = ([*map(in_markdown, line)] for line in (table.head, *table.rows))
    return "\n".join(f"| {' | '.join(line)} |" for line in (head, sides, *rows))


def _example(example: Example) -> Iterator[str]:
    yield f"### {in_markdown(example.title)}"
    yield in_markdown(f"People: {example.people} Judge: {example.judge}")
    if example.prompt is not None:
        yield _quoted(example.prompt)
    if example.reason is not None:
        yield "What the judge wrote:\n\n" + _quoted(example.reason)
    for model, text in example.answers:
        if text is not None:
            yield f"**{in_markdown(model)}**\n\n{_quoted(text)}"


def _quoted(text: str) -> str:
    lines = "\n\n".join(filter(None, _cut(text))).splitlines()
    return "\n".join(f"> {in_markdown(line)}".rstrip() for line in lines) or "> (empty)"


def as_latex(page: Page) -> str:
    """Write the answers and the tables of a report, for a paper; needs the package booktabs."""
    blocks = [f"% {in_latex(page.title)}\n% {_made(page)}\n% \\usepackage{{booktabs}}"]
    blocks += [_latex_answer(answer) for answer in page.answers]
    for section in page.parts:
        blocks += [_latex_table(section.title, table) for table in section.tables]
    return "\n\n".join(blocks) + "\n"


def _latex_answer(answer: Answer) -> str:
    head = f"{answer.judge}: {answer.headline}"
    return "\n".join([rf"\paragraph{{{in_latex(head)}}}", *map(in_latex, answer.sentences)])


def _latex_table(title: str, table: Table) -> str:
    sides = "l" + "r" * (len(table.head) - 1)
    body = [" & ".join(map(in_latex, row)) + r" \\" for row in table.rows]
    head = " & ".join(map(in_latex, table.head)) + r" \\"
    caption = f"{title}. {table.note}".rstrip()
    return "\n".join(
        [
            r"\begin{table}",
            rf"\caption{{{in_latex(caption)}}}",
            rf"\begin{{tabular}}{{{sides}}}",
            r"\toprule",
            head,
            r"\midrule",
            *body,
            r"\bottomrule",
            r"\end{tabular}",
            r"\end{table}",
        ]
    )


def write_forms(
    page: Page,
    plain: Mapping[str, Any],
    rows: Sequence[Mapping[str, Any]],
    folder: Path,
    name: str,
) -> Path:
    """Write a report in every form into a folder, which is made where it is not there.

    Parameters
    ----------
    plain, rows : mapping, sequence of mapping
        What becomes JSON, and what becomes Parquet.

    Returns
    -------
    Path
        The page to open.

    Raises
    ------
    DataError
        If the folder cannot be written.
    """
    formats.make_folder(folder)
    whole = folder / f"{name}.html"
    formats.write_text(as_html(page), whole)
    formats.write_text(as_markdown(page), folder / f"{name}.md")
    formats.write_text(as_latex(page), folder / f"{name}.tex")
    formats.write_text(formats.as_json(plain), folder / f"{name}.json")
    formats.write_parquet(rows, folder / f"{name}.parquet")
    return whole
