"""How a probe's cards are written: a table, JSON or a page."""

from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any

import typer

from arena.terminal import plain, write
from rating import __version__
from rating.errors import DataError

FORMATS = ("table", "json", "html")
ENDINGS = {".json": "json", ".html": "html"}

Form = Annotated[str | None, typer.Option("--format", metavar="|".join(FORMATS))]
Out = Annotated[
    Path | None,
    typer.Option(metavar="FILE", help="Page (.html), with its JSON beside it; or JSON (.json)."),
]
Seed = Annotated[int, typer.Option(help="Of all that is drawn.", min=0)]


def chosen_form(form: str | None, out: Path | None) -> str:
    """Choose the format by name or by the file's ending, before anything is computed.

    Raises
    ------
    DataError
        If there is no such format, or the file cannot be written.
    """
    if form is not None and form not in FORMATS:
        msg = f"There is no format {form!r} of a card: choose one of {', '.join(FORMATS)}."
        raise DataError(msg)
    if out is None:
        return form or "table"
    ending = ENDINGS.get(out.suffix)
    if ending is None or form not in (None, ending):
        msg = f"Cannot write {str(out)!r}: name a file that ends in {' or '.join(ENDINGS)}"
        raise DataError(f"{msg}, as the format does." if form else f"{msg}.")
    if not out.absolute().parent.is_dir():
        msg = f"Cannot write {str(out)!r}: its folder does not exist. Make the folder first."
        raise DataError(msg)
    return ending


def write_cards(told: Mapping[str, Any], form: str, out: Path | None) -> None:
    """Write what was found, with the version and the day, to a file or the terminal."""
    from rating.tables import formats

    found = {**told, "version": __version__, "made": datetime.now(UTC).date().isoformat()}
    if form == "table":
        _show(found)
        return
    text = formats.as_json(found) if form == "json" else _page(found)
    if out is None:
        write(text)
        return
    formats.write_text(text, out)
    if form == "html":
        formats.write_text(formats.as_json(found), out.with_suffix(".json"))


def _page(found: Mapping[str, Any]) -> str:
    from arena.pages.probe import probe_page
    from judge.report.cards import page_of

    return probe_page([page_of(found)])


def _show(found: Mapping[str, Any]) -> None:
    from rich.console import Console, Group
    from rich.table import Table

    from judge.report.cards import page_of, table_of, undecided_of, warnings_of

    page = page_of(found)
    head, rows = table_of(page)
    table = Table()
    for place, name in enumerate(head):
        table.add_column(name, justify="right" if place else "left", overflow="fold")
    for row in rows:
        table.add_row(*map(plain, row))
    about = plain(" ".join(f"{name}: {said}." for name, said in page.about.items()))
    warnings = [plain(f"! {text}", style="yellow") for text in warnings_of(page)]
    undecided = [plain(f"? {text}") for text in undecided_of(page)]
    Console().print(Group(about, table, *warnings, *undecided))
