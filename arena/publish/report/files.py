"""A report in a folder: HTML, and the same as Markdown, LaTeX, JSON and Parquet beside it."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from arena.publish.report.html import as_html
from arena.publish.report.page import Page
from arena.publish.report.text import as_latex, as_markdown
from rating.errors import DataError
from rating.tables import formats


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
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        msg = f"Cannot write into {str(folder)!r}: {error.strerror}."
        raise DataError(msg) from error
    whole = folder / f"{name}.html"
    formats.write_text(as_html(page), whole)
    formats.write_text(as_markdown(page), folder / f"{name}.md")
    formats.write_text(as_latex(page), folder / f"{name}.tex")
    formats.write_text(formats.as_json(plain), folder / f"{name}.json")
    formats.write_parquet(rows, folder / f"{name}.parquet")
    return whole
