"""A report as Markdown and as LaTeX."""

from collections.abc import Iterator

from arena.publish.report.page import Answer, Example, Page, Section, Table
from rating.tables.escaping import LINES, in_latex, in_markdown, visible


def as_markdown(page: Page) -> str:
    """Write a report as Markdown, without its pictures."""
    blocks = [f"# {in_markdown(page.title)}", in_markdown(page.opening)]
    blocks += ["\n".join(f"* {in_markdown(k)}: {in_markdown(v)}" for k, v in page.about.items())]
    for answer in page.answers:
        blocks += [
            f"## {in_markdown(f'{answer.judge}: {answer.headline}')}",
            *map(in_markdown, answer.sentences),
        ]
    for section in (page.first, *page.sections):
        blocks += _section(section)
    blocks.append(_made(page))
    return "\n\n".join(block for block in blocks if block) + "\n"


def _made(page: Page) -> str:
    return f"Made by arena {page.version} on {page.made.isoformat()}."


def _section(section: Section) -> Iterator[str]:
    yield f"## {in_markdown(section.title)}"
    yield from map(in_markdown, section.paragraphs)
    for table in _tables(section):
        yield _table(table)
        yield in_markdown(table.note)
    yield from (in_markdown(figure.caption) for figure in section.figures if not section.table)
    yield "\n".join(f"* {in_markdown(point)}" for point in section.points)
    for example in section.examples:
        yield from _example(example)
    if section.code:
        yield f"```\n{visible(section.code, keep=LINES)}\n```"


def _tables(section: Section) -> tuple[Table, ...]:
    return (*((section.table,) if section.table else ()), *section.more)


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
    for model, text in ((example.model_a, example.text_a), (example.model_b, example.text_b)):
        if text is not None:
            yield f"**{in_markdown(model)}**\n\n{_quoted(text)}"


def _quoted(text: str) -> str:
    return (
        "\n".join(f"> {in_markdown(line)}".rstrip() for line in text.splitlines()) or "> (empty)"
    )


def as_latex(page: Page) -> str:
    """Write the answers and the tables of a report, for a paper; needs the package booktabs."""
    blocks = [f"% {in_latex(page.title)}\n% {_made(page)}\n% \\usepackage{{booktabs}}"]
    blocks += [_latex_answer(answer) for answer in page.answers]
    for section in (page.first, *page.sections):
        blocks += [_latex_table(section.title, table) for table in _tables(section)]
    return "\n\n".join(blocks) + "\n"


def _latex_answer(answer: Answer) -> str:
    head = f"{answer.judge}: {answer.headline}"
    return "\n".join([rf"\paragraph{{{in_latex(head)}}}", *map(in_latex, answer.sentences)])


def _latex_table(title: str, table: Table) -> str:
    sides = "l" + "r" * (len(table.head) - 1)
    body = [" & ".join(map(in_latex, row)) + r" \\" for row in table.rows]
    head = " & ".join(map(in_latex, table.head)) + r" \\"
    said = f"{title}. {table.note}".rstrip()
    return "\n".join(
        [
            r"\begin{table}",
            rf"\caption{{{in_latex(said)}}}",
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
