"""Cards of probes as one HTML page that asks nobody for anything."""

from collections.abc import Sequence
from pathlib import Path

from markupsafe import Markup

from arena.pages.rendering import environment
from arena.publish.probe.view import ProbePage

STYLESHEET = Path(__file__).parent / "static" / "probe.css"


def probe_page(pages: Sequence[ProbePage]) -> str:
    """Write one probe or several as a page with its style and its pictures in it.

    It loads nothing, so it can be kept and sent as a file.
    """
    style = Markup(STYLESHEET.read_text(encoding="utf-8"))  # noqa: S704 - ours
    return environment().get_template("probe.html").render(pages=pages, style=style)
