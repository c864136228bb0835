"""Reports as plain values and as files, and their sections on agreement, bias and calibration.

A `Page` of sections is written as HTML, Markdown, LaTeX, JSON and Parquet (`write_forms`). The
functions ``..._section`` make the parts on agreement, biases and calibration. `fallback_of`
reports what a second judge was asked, and whether the order of models depends on it.
"""

import math
import re
import shlex
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date
from functools import cache
from itertools import count
from pathlib import Path
from statistics import fmean
from typing import Any, Literal

from markupsafe import Markup

from judge.render.pages import Environment, as_file, environment
from judge.report.cards import ProbePage
from judge.report.plots import Mark, dots, scatter, spanning
from judge.studies.alignment import LIST_TERM
from judge.studies.alternative import Calibration
from judge.studies.biases import Effect, on_moderation
from judge.studies.estimates import (
    NONE,
    Estimate,
    gap_of,
    joined,
    minus,
    number_of,
    percent,
    percent_of,
    points_of,
    signed_of,
)
from judge.studies.gates import FAVOURED, MIN_ITEMS, MIN_PROMPTS, PASS, RANDOM, RATERS
from judge.studies.gates import LONGEST as LONGEST_ANSWER
from judge.studies.licence import Graded, Licence
from judge.studies.one_judge import JudgeStudy, SideBySide, Study
from judge.studies.reliability import CONDITION, Rates
from rating import Outcome, __version__
from rating.charts.drawing import Scale
from rating.outcome import of_sides
from rating.sentences import plural
from rating.tables import formats
from rating.tables.files import LINES, in_latex, in_markdown, shown, visible
from rating.tables.formats import Table

# Pages and their formats


Tone = Literal["good", "fair", "poor"]


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
    """A part of the report under a heading.

    Attributes
    ----------
    aside : tuple of Table
        Further tables, which a page folds.
    folded : bool
        Whether a page shows its heading alone until it is opened.
    """

    title: str
    paragraphs: tuple[str, ...] = ()
    table: Table | None = None
    figures: tuple[Figure, ...] = ()
    more: tuple[Table, ...] = ()
    examples: tuple[Example, ...] = ()
    points: tuple[str, ...] = ()
    code: str = ""
    aside: tuple[Table, ...] = ()
    folded: bool = False

    @property
    def tables(self) -> tuple[Table, ...]:
        """Its tables, except those that have nothing but names and dashes."""
        whole = (*((self.table,) if self.table else ()), *self.more, *self.aside)
        return tuple(table for table in whole if formats.has_figures(table.rows))

    @property
    def is_empty(self) -> bool:
        """Whether there is nothing under its heading."""
        texts = (self.paragraphs, self.figures, self.examples, self.points)
        return not (any(texts) or self.tables or self.code)


@dataclass(frozen=True, slots=True)
class Answer:
    """The answer for one judge, to be read first; a page folds sentences after those shown."""

    judge: str
    tone: Tone
    headline: str
    sentences: tuple[str, ...]
    shown: int = 99


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
    version: str = __version__

    def answered(self) -> "Page":
        """Return headlines, examples and the command: too little data have no figures."""
        alone = tuple(replace(answer, sentences=()) for answer in self.answers)
        read = tuple(
            Section(one.title, examples=one.examples, code=one.code) for one in self.sections
        )
        return replace(self, answers=alone, first=Section(""), sections=read)

    def made_by(self, *words: str) -> "Page":
        """End the command, which is the last section, with the words that ask for this form."""
        *rest, last = self.sections
        code = f"{last.code} {shlex.join(words)}"
        return replace(self, sections=(*rest, replace(last, code=code)))

    @property
    def parts(self) -> tuple[Section, ...]:
        """Its sections that are not empty, the first of all before the others."""
        return tuple(one for one in (self.first, *self.sections) if not one.is_empty)


_NUMBER = re.compile(r"([+−]?\d[\d.,]*%?(?: \([+−\d][^()]*\))?)")

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
    return text[:LONGEST], f"… {more:,} more characters." if more > 0 else ""


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
        yield table.markdown().rstrip()
        yield in_markdown(table.note)
    for figure in section.figures if not section.tables else ():
        yield in_markdown(f"Figure (in the HTML report): {figure.caption}")
    yield "\n".join(f"* {in_markdown(point)}" for point in section.points)
    for example in section.examples:
        yield from _example(example)
    if section.code:
        yield f"```\n{visible(section.code, keep=LINES)}\n```"


def _example(example: Example) -> Iterator[str]:
    yield f"### {in_markdown(example.title)}"
    yield in_markdown(f"People: {example.people} Judge: {example.judge}")
    if example.prompt is not None:
        yield _quoted(example.prompt)
    if example.reason is not None:
        yield "The judge's reply:\n\n" + _quoted(example.reason)
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
    caption = in_latex(f"{title}. {table.note}".rstrip())
    lines = [r"\begin{table}", rf"\caption{{{caption}}}", table.latex(), r"\end{table}"]
    return "\n".join(lines)


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
    page = page.made_by("--out", str(folder))
    whole = folder / f"{name}.html"
    formats.write_text(as_html(page), whole)
    formats.write_text(as_markdown(page), folder / f"{name}.md")
    formats.write_text(as_latex(page), folder / f"{name}.tex")
    formats.write_text(formats.as_json(plain), folder / f"{name}.json")
    formats.write_parquet(rows, folder / f"{name}.parquet")
    return whole


# Sections


EFFECTS = {
    "position": "Shown first",
    "length": "Twice as long",
    "format": "Twice as much Markdown",
    "refusal": "Declining",
    "self": "Its own model",
    LIST_TERM: "Having the only list",
}


PEOPLE = "Two people"

MOST_LEADS = 15
"""Pairs of judges that a table lists."""

CEILING = "Upper bound for a judge"


Judges = Sequence[JudgeStudy]


def licence_section(licence: Licence) -> Section:
    """Say for which models the judge may replace people, with a sentence a model."""
    table = Table(
        head=("Model", "Grade", "By the judge minus by people", "Labels", "Prompts", "Outside"),
        rows=tuple(
            (
                model.name,
                model.grade,
                NONE if model.error is None else minus(_off(model)),
                f"{model.votes:,}",
                f"{model.prompts:,}",
                f"{100 * model.outside:.0f}%",
            )
            for model in licence.models
        ),
        note=(
            f"Win rates, in percentage points. Margin, declared in advance: {licence.margin:g}. "
            "The intervals are simultaneous over all models graded together: nominally, at most "
            "5% of certificates have a wrong grade. Outside: share of the judge's scores outside "
            "the range that people labelled; from 5% a model is not graded."
        ),
        strong=tuple(i for i, model in enumerate(licence.models) if model.grade == "PASS"),
    )
    bound = {
        "Method": licence.method,
        "Template": joined(licence.templates),
        "Model that answered": joined(licence.resolved_models),
        "Fingerprint": joined(licence.fingerprints),
    }
    bound_by = [
        f"{name}: {value or 'not stated by the verdicts'}." for name, value in bound.items()
    ]
    people = "an unknown number of" if licence.people is None else f"{licence.people:,}"
    labels = (
        f"Based on {plural(licence.votes, 'label')} by {people} people, on "
        f"{plural(licence.prompts, 'prompt')} (SHA-256 {licence.votes_sha256[:16]}…)."
    )
    sentences = tuple(model.sentence(licence.margin) for model in licence.models)
    return Section(
        f"Validation certificate of {licence.judge}",
        (licence.headline, labels),
        table=table,
        points=(*sentences, *bound_by),
    )


def _off(model: Graded) -> str:
    return f"{model.error:+z.1f} ({model.lower:+z.1f} to {model.upper:+z.1f})"


def agreement_section(judges: Judges, level: float) -> Section:
    """Put judges, people, the ceiling and the rules that read nothing into one table."""
    rows = _rows(judges)
    table = Table(
        head=("Agreement of", "Ties excluded", "With ties", "Pairs", "Winning rate"),
        rows=tuple(row for row, _ in rows),
        note=(
            f"Percent, with {100 * level:g}% intervals over prompts and, if votes name their "
            "voters, over people. Upper bound: items weigh equally; interval over prompts. "
            "Ties excluded: only pairs in which both prefer a side; a random choice reaches 50. "
            "With ties: a tie is a third answer; a random choice reaches 33. Pairs: a verdict "
            "and a vote, or two votes; ties included. Winning rate: in the "
            "alternative-annotator test; in row 'Two people', another person's."
        ),
        strong=tuple(range(len(judges))),
    )
    lines = tuple(line for _, line in rows if line is not None)
    return Section(
        "Agreement with people",
        table=table,
        figures=(_agreement_figure(lines, level),) if lines else (),
        aside=(_lead_table(judges), *_alternative_table(judges), *_favouritism_tables(judges)),
    )


def _agreement_figure(lines: "Sequence[Line]", level: float) -> Figure:
    return Figure(
        dots(
            lines,
            Scale(_lowest(lines), 1.0, "Agreement with a person, ties excluded", percent),
            title="Agreement with people: judges, people, and rules that read nothing",
        ),
        f"Agreement when both prefer a side; lines are {100 * level:g}% intervals. {CEILING}: "
        f"{CONDITION}",
    )


Line = tuple[str, tuple[Mark, ...]]
Row = tuple[tuple[str, ...], Line | None]


def _rows(judges: Judges) -> list[Row]:
    """Give judges, people and the ceiling, and rules, each of these once where it is the same."""

    def replaced(judge: JudgeStudy, name: str) -> float | None:
        return getattr(judge.evidence.alternative, name, None)

    people = [
        _row(PEOPLE, "people", *_both(judge.agreement.people), replaced(judge, "person"))
        for judge in judges
    ]
    tops = [row for judge in judges for row in _top_rows(judge, replaced(judge, "majority"))]
    rules = [
        _row(rule.name, "other", rule.agreement, rule.with_ties, replaced(judge, of_rule))
        for judge in judges
        for rule in judge.evidence.rules
        for of_rule in [{RANDOM: "coin", LONGEST_ANSWER: "longest"}.get(rule.name, "")]
        if rule.agreement.value is not None
    ]
    own = [
        _row(judge.name, "judge", *_both(judge.agreement.judge), replaced(judge, "winning_rate"))
        for judge in judges
    ]
    return [*own, *_once([*people, *tops, *rules])]


def _once(rows: Sequence[Row]) -> list[Row]:
    """Drop rows of the same name that differ by less than a percentage point."""
    seen: dict[tuple[str, str], Row] = {}
    for cells, line in rows:
        seen.setdefault((cells[0], cells[1].partition("(")[0]), (cells, line))
    return list(seen.values())


def _both(rates: Rates) -> tuple[Estimate, Estimate]:
    return rates.without_ties, rates.with_ties


def _row(
    name: str, kind: str, without_ties: Estimate, with_ties: Estimate, replaced: float | None
) -> Row:
    exact = name == RANDOM
    cells = [percent(x.value) if exact else percent_of(x) for x in (without_ties, with_ties)]
    pairs = NONE if exact else f"{with_ties.n:,}"
    return (name, *cells, pairs, percent(replaced)), _line(name, kind, without_ties)


def _top_rows(judge: JudgeStudy, replaced: float | None) -> Iterator[Row]:
    """Give what bounds any judge: its agreement, and what the majority of people replaces."""
    top = judge.ceiling.highest
    yield (CEILING, percent_of(top), NONE, NONE, NONE), _line(CEILING, "people", top)
    if replaced is not None:
        yield ("Majority of the others", NONE, NONE, NONE, percent(replaced)), None


def _lead_table(judges: Judges) -> Table:
    """By how much judges are ahead of people and of each rule, the same draws for both."""
    rows = {PEOPLE: [gap_of(judge.evidence.gap) for judge in judges]}
    for name in dict.fromkeys(rule.name for judge in judges for rule in judge.evidence.rules):
        rows[name] = [
            next((gap_of(r.lead) for r in j.evidence.rules if r.name == name), NONE)
            for j in judges
        ]
    return Table.of(
        ("Judge minus", *(judge.name for judge in judges)),
        rows,
        note=(
            "Difference in agreement with people, in percentage points, ties excluded; intervals "
            "use the same prompts and people for both. An interval that includes 0 does not "
            "show a difference."
        ),
    )


def _alternative_table(judges: Judges) -> tuple[Table, ...]:
    """Put the alternative-annotator test of judges beside that of what reads nothing."""
    tested = [judge.evidence.alternative for judge in judges]
    if not any(tested):
        return ()
    names = {
        "winning_rate": "Winning rate of the judge",
        "coin": "Winning rate of choosing at random",
        "longest": "Winning rate of choosing the longer answer",
        "person": "Mean winning rate of another person",
        "person_passed": "Repetitions in which another person passes",
        "majority": "Winning rate of the majority of the others",
        "advantage": "Average advantage probability",
    }
    rows = {
        title: [NONE if test is None else percent(getattr(test, name)) for test in tested]
        for name, title in names.items()
    }
    rows["People tested"] = [
        NONE if test is None else f"{test.people_tested:,}" for test in tested
    ]
    for name, title in (
        ("items_per_person", "Items per person, median"),
        ("decides_at", "Items per person that suffice for 90% power"),
    ):
        values = [None if test is None else getattr(test, name) for test in tested]
        rows[title] = [NONE if value is None else f"{value:,.0f}" for value in values]
    margins = [100 * test.margin for test in tested if test is not None]
    return (
        Table.of(
            ("Alternative-annotator test", *(judge.name for judge in judges)),
            rows,
            note=(
                "Winning rate: the judge is significantly non-inferior to this share of people "
                f"with {MIN_ITEMS} or more items (margin {margins[0]:g}% of their items, "
                f"for {RATERS[judges[0].evidence.raters]}). The judge passes at {percent(PASS)} "
                "or more, if choosing at random and choosing the longer answer (if known) stay "
                f"below {percent(PASS)}. Another person: one of the others, drawn per item, in "
                "the judge's place. Average advantage probability: share of items on which others "
                "agree with the judge at least as often as with the person, averaged over people; "
                "always 100% for the majority. Power: how often another person would pass."
            ),
        ),
    )


def _favouritism_tables(judges: Judges) -> Iterator[Table]:
    """Give each model's favouritism, the most biased first."""
    for judge in judges:
        known, biased = judge.evidence.favouritism, judge.evidence.biased
        if not known:
            continue
        yield Table(
            head=(f"Favouritism of {judge.name}", "Wins per item", "Items"),
            rows=tuple(
                (name, signed_of(known[name]), f"{known[name].n:,}")
                for name in dict.fromkeys([*biased, *known])
            ),
            strong=tuple(range(len(biased))),
            note=(
                "Difference between the judge's score of a model and what a fair judge would give "
                "a model of its strength, with simultaneous 95% limits over all models, clustered "
                f"by voter and prompt. Favoured: both limits above {FAVOURED:g}; disadvantaged: "
                f"both below −{FAVOURED:g}. Models with fewer than {MIN_ITEMS} items "
                f"or {MIN_PROMPTS} prompts are not tested. The test can miss favour for the best "
                "model, because this resembles a more decisive judge."
            ),
        )


def _line(name: str, kind: str, estimate: Estimate) -> Line | None:
    if estimate.value is None:
        return None
    return name, (_mark(kind, estimate),)


def _lowest(lines: Sequence[Line]) -> float:
    ends = [min(mark.ends) for _, marks in lines for mark in marks]
    return min([0.4, *(int(10 * end) / 10 for end in ends)])


def chance_section(judges: Judges) -> Section:
    """Describe how far agreement is beyond chance, and how near to what people allow."""
    agreed, tops = [j.agreement for j in judges], [j.ceiling for j in judges]
    rows = {
        "Cohen's kappa, judge and people": [number_of(one.kappa) for one in agreed],
        "Kappa, two people": [number_of(one.people_kappa) for one in agreed],
        "Krippendorff's alpha, people": [number_of(one.alpha) for one in agreed],
        "Gwet's AC1, people": [number_of(one.ac1) for one in agreed],
        "Judge ÷ two people": [percent_of(top.to_people) for top in tops],
        "Judge ÷ upper bound": [percent_of(top.to_highest) for top in tops],
        "Agreement, equally weighted items, ties excluded": [
            percent_of(one.by_item.without_ties) for one in agreed
        ],
        "Agreement, equally weighted items, with ties": [
            percent_of(one.by_item.with_ties) for one in agreed
        ],
    }
    swapped = [j.swaps for j in judges]
    if any(swap is not None for swap in swapped):
        for name, part in (
            ("Same verdict in both orders", "consistent"),
            ("Changes to the answer shown first", "to_first"),
            ("Changes to the answer shown second", "to_second"),
        ):
            rows[name] = [NONE if s is None else percent_of(s[part]) for s in swapped]
    table = Table.of(
        ("Measure", *(judge.name for judge in judges)),
        rows,
        note=(
            "For kappa, alpha and AC1, 1 is perfect agreement; ties, if votes have any, are a "
            "third answer. They correct for chance differently: if nearly all choices "
            "are ties, alpha can fall while AC1 nears 1. Both ratios are "
            f"{CONDITION[0].lower()}{CONDITION[1:]}"
        ),
    )
    return Section("Agreement beyond chance, and relative to people", table=table)


def lead_table(against: SideBySide) -> Table:
    """Put judges against each other, a pair a row."""
    rows = {
        f"{lead.first} minus {lead.second}": (
            gap_of(lead.without_ties),
            gap_of(lead.with_ties),
            f"{lead.items:,}",
            _dollars(lead.usd_per_point),
        )
        for lead in (against.leads if len(against.leads) <= MOST_LEADS else against.of_best)
    }
    return Table.of(
        ("Agreement with people", "Ties excluded", "With ties", "Items", "Price per point"),
        rows,
        note=(
            "Percentage points, on the items for which both have a verdict; intervals resample "
            "the same prompts and people for both. Price per point: dollars more per thousand "
            "items when changing from the worse judge to the better, if the difference is "
            "significant (jointly over all pairs; each interval is for its pair alone). Of more "
            "than six judges: pairs with one that leads the others by most; the JSON has all."
        ),
    )


def against_section(against: SideBySide) -> Section:
    """Say where judges differ, and what their agreement costs."""
    names = [*against.costs]
    costs = {
        "Dollars per thousand items": [_dollars(against.costs[name]) for name in names],
        "Per point above chance": [_dollars(against.price(name)) for name in names],
    }
    return Section(
        "Comparison of judges",
        paragraphs=(" ".join(against.sentences),),
        more=(
            Table.of(
                ("Cost", *names),
                costs,
                note=(
                    "Of all paid calls with a known cost. Without a lead over chance there is no "
                    "price per point."
                ),
            ),
        ),
    )


def _dollars(value: float | None) -> str:
    return NONE if value is None else minus(f"{value:.2g}")


def group_section(judges: Judges, by: str) -> Section:
    """Agreement apart by the values of a column."""
    rows = []
    for judge in judges:
        for value, group in judge.groups.items():
            name = value if len(judges) == 1 else f"{value}: {judge.name}"
            ours, theirs = group.agreement.judge, group.agreement.people
            cells = map(
                percent_of,
                (ours.without_ties, theirs.without_ties, ours.with_ties, theirs.with_ties),
            )
            rows.append((name, *cells, f"{ours.with_ties.n:,}"))
    table = Table(
        head=(by, "Judge, ties excluded", "Two people", "Judge, with ties", "Two people", "Pairs"),
        rows=tuple(rows),
        note="Intervals are not simultaneous: of many, some miss the truth.",
    )
    return Section(f"By {by}", table=table)


def bias_section(judges: Judges, level: float) -> Section:
    """Describe what moves the judge and what moves people."""
    rows, lines = [], []
    for judge in judges:
        if judge.biases is None:
            continue
        lists = {LIST_TERM: Effect(None, None, None)} if LIST_TERM in judge.preferred else {}
        for name, effect in {**judge.biases.effects, **lists}.items():
            if effect.people is None and effect.judge is None and name != LIST_TERM:
                continue
            label = EFFECTS[name]
            if name == "self":
                label = f"{label}, {judge.biases.own_model}"
            if len(judges) > 1:
                label = f"{judge.name}: {label[:1].lower()}{label[1:]}"
            shares = judge.preferred.get(name, (None, None))
            if name == "refusal" and judge.biases.moderation is not None:
                moderation = judge.biases.moderation
                shares = moderation["people"], moderation["judge"]
            cells = map(points_of, (effect.people, effect.judge, effect.difference))
            rows.append((label, *(NONE if s is None else percent_of(s) for s in shares), *cells))
            if effect.people and effect.judge and name != "self":
                marks = _mark("people", effect.people), _mark("judge", effect.judge)
                lines.append((label, marks))
    table = Table(
        head=(
            "Effect of", "Chosen by people", "By the judge",
            "Points: people", "Points: judge", "Bias",
        ),
        rows=tuple(rows),
        note=(
            "Chosen: of choices without ties, the share for the answer that the row describes. "
            "Rating points (400 are odds of ten to one) come from Bradley-Terry fits to votes and "
            f"to verdicts, with one term per row; {100 * level:g}% intervals are clustered by "
            "prompt (votes also by voter, if known). Bias: the difference, which grows if the "
            "judge is more decisive. Its own model: points are the model's lead over the others' "
            "mean; bias is the judge's rating minus the rating predicted from that by people "
            "(line fitted to the other models; prediction interval)."
        ),
    )  # fmt: skip
    figures: tuple[Figure, ...] = ()
    if lines:
        ends = [end for _, marks in lines for mark in marks for end in mark.ends]
        axis = spanning([0.0, *ends], "Rating points", lambda x: minus(f"{x:+z.0f}" if x else "0"))
        svg = dots(lines, axis, title="Effects on people and on the judge", rule=0.0)
        caption = (
            "Orange: people, above. Blue: the judge, below. The distance between them is the bias."
        )
        figures = (Figure(svg, caption),)
    return Section(
        "Biases of the judge relative to people",
        table=table,
        figures=figures,
        points=tuple(_on_moderation(judges)),
    )


def outcomes_section(study: Study) -> Section:
    """Cross outcomes of people with those of each judge, with both tie rates."""
    tables = tuple(
        Table(
            (f"People, and {judge.name}", *OUTCOME_NAMES, "All votes"),
            (
                *(
                    (name, *map(percent, (*line, sum(line))))
                    for name, line in zip(OUTCOME_NAMES, shares, strict=True)
                ),
                ("All verdicts", *map(percent, map(sum, zip(*shares, strict=True))), ""),
            ),
            note=(
                "Share of pairs: each vote (rows) with each verdict on its item (columns). Better "
                "model: rated higher by votes."
            ),
        )
        for judge in study.judges
        for shares in [judge.outcomes]
        if shares
    )
    return Section("Outcomes by people and judge", more=tables)


def parts_section(study: Study) -> Section:
    """Give agreement by length, by distance between the models, and by the values of a column."""
    names = [judge.name for judge in study.judges]
    rows = {
        part.part if part.by in ("all", "length", "difficulty") else f"{part.by} {part.part}": (
            *(percent_of(part.agreement[name]) for name in names),
            f"{part.items:,}",
            f"{part.prompts:,}",
        )
        for part in study.parts
    }
    return Section(
        "Agreement by group of items",
        table=Table.of(
            ("Agreement, ties excluded", *names, "Items", "Prompts"),
            rows,
            note=(
                "On the items for which every judge has a verdict. The distance of models is by "
                "people's ratings: close models are hard to separate. "
                + "Lengths are in characters. "
                * any(p.by == "length" for p in study.parts)
                + f"Groups with fewer than {MIN_PROMPTS} prompts have no figures. Intervals are "
                "not simultaneous: of many, some miss the truth."
            ),
        ),
        folded=True,
    )


def ties_section(judges: Judges) -> Section:
    """Give the rate of ties by the threshold on graded preferences."""
    tables = tuple(
        Table(
            (f"A tie within, {judge.name}", "Ties of the judge", "Agreement, with ties"),
            tuple(
                (f"±{one['threshold']:.2f}", percent(one["ties"]), percent(one["agreement"]))
                for one in judge.thresholds
            ),
            strong=tuple(
                place for place, one in enumerate(judge.thresholds) if one["matches_people"]
            ),
            note=(
                "If preferences within this distance of 1/2 are ties. In bold: the threshold at "
                "which the judge gives ties as often as people "
                f"({percent(judge.thresholds[0]['people'])})."
            ),
        )
        for judge in judges
        if judge.thresholds
    )
    return Section("Ties by threshold", more=tables, folded=True)


OUTCOME_NAMES = ("Better model", "Tie", "Other model")


def _on_moderation(judges: Judges) -> Iterator[str]:
    for judge in judges:
        gap = None if judge.biases is None else judge.biases.moderation
        if gap is not None:
            yield on_moderation(gap, judge.name)


def _mark(kind: str, estimate: Estimate) -> Mark:
    return Mark(kind, estimate.value or 0.0, estimate.lower, estimate.upper)


def calibration_section(judges: Judges, level: float) -> Section:
    """Return whether the probabilities that judges give are those with which people agree."""
    known = [(judge.name, judge.calibration) for judge in judges if judge.calibration is not None]
    rows = {
        "Calibration error": [percent_of(one.ece) for _, one in known],
        "Brier score": [number_of(one.brier, 3) for _, one in known],
        "Temperature": [number_of(one.temperature) for _, one in known],
        "Brier score, by temperature": [
            number_of(one.brier_by_temperature, 3) for _, one in known
        ],
        "Brier score, by isotonic map": [number_of(one.brier_isotonic, 3) for _, one in known],
        "Pairs": [f"{one.n:,}" for _, one in known],
    }
    table = Table.of(
        ("Probabilities of", *(name for name, _ in known)),
        rows,
        note=(
            "Calibration error: the mean difference between the judge's probability and the "
            "share of people. A temperature above 1: the judge is overconfident. Both maps are "
            "fitted on other prompts than those they are scored on."
        ),
    )
    figures = tuple(_curve(name, calibration, level) for name, calibration in known)
    return Section("Calibration of the judge's probabilities", table=table, figures=figures)


def _curve(name: str, calibration: Calibration, level: float) -> Figure:
    points = [
        ("", Mark("judge", claimed), _mark("people", people))
        for claimed, people in calibration.bins
        if people.value is not None
    ]
    axes = (
        Scale(0.5, 1.0, "Judge's probability for the side it prefers", percent),
        Scale(0.0, 1.0, "People who prefer that side", percent),
    )
    return Figure(
        scatter(points, *axes, title=f"Reliability diagram of {name}"),
        f"{name}: on the dashed line its probabilities are calibrated; below the line it is "
        f"overconfident. Lines are {100 * level:g}% intervals; "
        f"{plural(calibration.n, 'pair')} of a verdict and a vote.",
    )


# Second judge


TableRow = Mapping[str, Any]


def by_mean(rows: Sequence[TableRow]) -> dict[str, float]:
    """Give the mean of what rows say of each model, best first, then by name."""
    values: dict[str, list[float]] = {}
    for row in rows:
        value = _value(row)
        if "winner" in row:
            for side, own in zip(of_sides("model"), (value, 1 - value), strict=True):
                values.setdefault(row[side], []).append(own)
        else:
            values.setdefault(row["model"], []).append(value)
    means = {name: fmean(own) for name, own in values.items()}
    return dict(sorted(means.items(), key=lambda one: (-one[1], one[0])))


def fallback_of(
    judge: str,
    second: str,
    handed_over: Mapping[str, int],
    rows: Iterable[TableRow],
    order: Callable[[Sequence[TableRow]], Iterable[str]] = by_mean,
) -> dict[str, Any]:
    """Tell how much of a run or a bench is a second judge's, as plain values for JSON.

    Parameters
    ----------
    judge, second : str
        Who was to judge, and who did in its place.
    handed_over : mapping of str to int
        Cases that the first gave no verdict on, by reason (`judge.runs.reasons`).
    rows : iterable of mapping
        Of the run; the row of both orders follows those of each.
    order : callable
        Orders models, best first, by rows that have a verdict.

    Returns
    -------
    dict
        ``judge`` (the second), ``handed_over``, ``n`` of its verdicts, the ``order`` of the models
        by all verdicts, ``order_without`` by those of the first judge alone, and a ``sentence``,
        which is empty where nobody else was asked.
    """
    names = ("battle_id", "prompt_id", *of_sides("model"), "model")
    counted = {tuple(row.get(name) for name in names): row for row in rows}
    read = [row for row in counted.values() if not math.isnan(_value(row))]
    own = [row for row in read if not row["fallback_for"]]
    n = len(read) - len(own)
    by_all, by_own = (tuple(order(some)) if some else () for some in (read, own))
    why = ", ".join(f"{cases:,} {name}" for name, cases in sorted(handed_over.items()))
    given = f"{n:,} of {len(read):,} verdicts are by {second!r} in place of {judge!r} ({why})."
    moves = _on_order(by_all, by_own) if n else ""
    return {
        "judge": second,
        "handed_over": dict(handed_over),
        "n": n,
        "order": list(by_all),
        "order_without": list(by_own),
        "sentence": f"{given} {moves}".strip() if handed_over else "",
    }


def _on_order(by_all: tuple[str, ...], by_own: tuple[str, ...]) -> str:
    """Return whether the order of models is another without the verdicts of a second judge."""
    if len(by_all) < 2:
        return ""
    if by_all == by_own:
        return "Without them, the order of the models is the same."
    if missing := sorted({*by_all} - {*by_own}):
        names = ", ".join(map(repr, missing))
        return (
            "Whether the order of models depends on them is inconclusive: without them, there is "
            f"no verdict on {names}."
        )
    names = ", ".join(map(repr, by_own))
    return f"The order of the models depends on them: without them it is {names}."


def _value(row: TableRow) -> float:
    """Give what a row says of side A, or of its model; NaN where it says nothing."""
    if "winner" in row:
        return math.nan if row["winner"] is None else Outcome(row["winner"]).score_a
    return math.nan if row["score"] is None else float(row["score"])
