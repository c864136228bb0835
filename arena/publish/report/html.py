"""A report as one HTML file that asks nobody for anything."""

import re
from functools import cache
from pathlib import Path

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from arena.publish.report.page import Page
from rating.tables.escaping import shown

_NUMBER = re.compile(r"([+−]?\d[\d.,]*(?: %)?(?: \([+−\d][^()]*\))?)")
TEMPLATES = Path(__file__).parent / "templates"


@cache
def _environment() -> Environment:
    env = Environment(
        loader=FileSystemLoader(TEMPLATES),
        autoescape=True,
        finalize=shown,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    env.filters["held"] = _held
    return env


def _held(text: str) -> Markup:
    """Keep a number on one line with its unit and its interval."""
    parts = _NUMBER.split(shown(text))  # text and numbers in turn
    held = Markup('<span class="held">{}</span>')
    return Markup().join(held.format(part) if i % 2 else part for i, part in enumerate(parts))


def as_html(page: Page) -> str:
    """Write a report as a page with its style and its pictures in it: it loads nothing."""
    env = _environment()
    style = Markup((TEMPLATES / "report.css").read_text(encoding="utf-8"))  # noqa: S704 - ours
    return env.get_template("report.html").render(page=page, style=style, svg=Markup)
