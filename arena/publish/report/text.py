"""A report as Markdown and as LaTeX."""

from collections.abc import Iterator

from arena.publish.formats import LATEX
from arena.publish.report.page import Answer, Example, Page, Section, Table


def as_markdown(page: Page) -> str:
    """Write a report as Markdown, without its pictures."""
    blocks = [f"# {page.title}", page.opening]
    blocks += ["\n".join(f"* {k}: {_plain(v)}" for k, v in page.about.items())]
    for answer in page.answers:
        blocks += [f"## {_plain(answer.judge)}: {answer.headline}", *map(_plain, answer.sentences)]
    for section in (page.first, *page.sections):
        blocks += _section(section)
    blocks.append(_made(page))
    return "\n\n".join(block for block in blocks if block) + "\n"


def _made(page: Page) -> str:
    return f"Made by arena {page.version} on {page.made.isoformat()}."


def _section(section: Section) -> Iterator[str]:
    yield f"## {section.title}"
    yield from map(_plain, section.paragraphs)
    for table in _tables(section):
        yield _table(table)
        yield _plain(table.note)
    yield from (_plain(figure.caption) for figure in section.figures if not section.table)
    yield "\n".join(f"* {_plain(point)}" for point in section.points)
    for example in section.examples:
        yield from _example(example)
    if section.code:
        yield f"```\n{section.code}\n```"


def _tables(section: Section) -> tuple[Table, ...]:
    return (*((section.table,) if section.table else ()), *section.more)


def _table(table: Table) -> str:
    sides = ["---", *("---:" for _ in table.head[1:])]
    lines = [table.head, tuple(sides), *table.rows]
    return "\n".join(f"| {' | '.join(map(_cell, line))} |" for line in lines)


def _cell(text: str) -> str:
    return text if text.startswith("---") else _plain(text).replace("|", "\\|")


def _example(example: Example) -> Iterator[str]:
    yield f"### {_plain(example.title)}"
    yield f"People: {example.people} Judge: {example.judge}"
    if example.prompt is not None:
        yield _quoted(example.prompt)
    if example.reason is not None:
        yield "What the judge wrote:\n\n" + _quoted(example.reason)
    for model, text in ((example.model_a, example.text_a), (example.model_b, example.text_b)):
        if text is not None:
            yield f"**{_plain(model)}**\n\n{_quoted(text)}"


def _quoted(text: str) -> str:
    return "\n".join(f"> {line}".rstrip() for line in text.splitlines()) or "> (empty)"


def _plain(text: str) -> str:
    """Keep Markdown from taking signs of a name for its own."""
    return "".join(f"\\{c}" if c in "\\`*_<>[]" else c for c in text)


def as_latex(page: Page) -> str:
    """Write the answers and the tables of a report, for a paper; needs the package booktabs."""
    blocks = [f"% {page.title}\n% {_made(page)}\n% \\usepackage{{booktabs}}"]
    blocks += [_latex_answer(answer) for answer in page.answers]
    for section in (page.first, *page.sections):
        blocks += [_latex_table(section.title, table) for table in _tables(section)]
    return "\n\n".join(blocks) + "\n"


def _latex_answer(answer: Answer) -> str:
    head = f"{answer.judge}: {answer.headline}"
    return "\n".join([rf"\paragraph{{{_tex(head)}}}", *map(_tex, answer.sentences)])


def _latex_table(title: str, table: Table) -> str:
    sides = "l" + "r" * (len(table.head) - 1)
    body = [" & ".join(map(_tex, row)) + r" \\" for row in table.rows]
    head = " & ".join(map(_tex, table.head)) + r" \\"
    said = f"{title}. {table.note}".rstrip()
    return "\n".join(
        [
            r"\begin{table}",
            rf"\caption{{{_tex(said)}}}",
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


def _tex(text: str) -> str:
    return text.translate(LATEX)
