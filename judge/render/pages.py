"""Pages from templates: those of the arena, and files that are a page by themselves."""

import re
from base64 import b64encode
from functools import cache
from pathlib import Path

from jinja2 import Environment as Environment  # reports and pages add to it
from jinja2 import FileSystemLoader, StrictUndefined
from jinja2.utils import htmlsafe_json_dumps as htmlsafe_json_dumps
from markupsafe import Markup

from judge.render.text import render
from rating.tables.files import shown

HERE = Path(__file__).parent
STYLESHEETS = (HERE / "tokens.css", HERE / "rendered.css")
SITE_HEAD = Markup("<!-- The head of a site -->")
"""Where a site that shows a file puts its head: a file by itself leads nowhere."""

_FORMULA = re.compile("<math.*?</math>", re.DOTALL)
_FONT_FACE = re.compile("@font-face {[^}]*}\n")
_FONT_FILE = "maths.woff2"


@cache
def environment(folder: Path, language: str = "en") -> Environment:
    """Give the templates of a folder, with escaping on; a name that a template misses raises.

    The filter ``rendered`` writes Markdown of others as HTML. Each language has templates of its
    own, to which a site that translates its words adds ``gettext`` and ``ngettext``.
    """
    env = Environment(
        extensions=["jinja2.ext.i18n"],
        loader=FileSystemLoader(folder),
        autoescape=True,
        finalize=shown,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    env.newstyle_gettext = True  # type: ignore[attr-defined] # the extension's own
    env.policies["ext.i18n.trimmed"] = True
    env.filters["rendered"] = _rendered
    env.globals["language"] = language
    return env


def _rendered(text: str, breaks: bool = True) -> Markup:
    return Markup(render(text, breaks=breaks))  # noqa: S704 - it cleans what it writes


def as_file(title: str, content: str, style: str) -> str:
    """Write a page that loads nothing: its style and what its formulas need of a font are in it.

    Parameters
    ----------
    content : str
        What stands in ``main``, as HTML.
    style : str
        What the page adds to the stylesheets of all pages.
    """
    return (
        environment(HERE)
        .get_template("file.html")
        .render(
            title=title,
            style=Markup(f"{_shared_style(content)}\n{style}"),  # noqa: S704 - ours
            site_head=SITE_HEAD,
            content=Markup(content),  # noqa: S704 - made by a template
        )
    )


def _shared_style(content: str) -> str:
    style = "\n".join(path.read_text(encoding="utf-8") for path in STYLESHEETS)
    formulas = "".join(_FORMULA.findall(content))
    if not formulas:
        return _FONT_FACE.sub("", style)
    from judge.render.text import maths_font  # fontTools is large, and most pages do without

    font = b64encode(maths_font(formulas)).decode()
    return style.replace(_FONT_FILE, f"data:font/woff2;base64,{font}")
