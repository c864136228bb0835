"""Cards of probes as one HTML page that asks nobody for anything."""

from collections.abc import Sequence
from pathlib import Path

from markupsafe import Markup

from arena.errors import SettingsError
from arena.pages.rendering import environment
from judge.report.cards import ProbePage, page_of
from rating.tables.files import parsed, read_text

STYLESHEET = Path(__file__).parent / "static" / "probe.css"


def probe_page(pages: Sequence[ProbePage]) -> str:
    """Write one probe or several as a page with its style and its pictures in it.

    It loads nothing, so it can be kept and sent as a file.
    """
    style = Markup(STYLESHEET.read_text(encoding="utf-8"))  # noqa: S704 - ours
    return environment().get_template("probe.html").render(pages=pages, style=style)


def read_cards(folder: Path) -> tuple[ProbePage, ...]:
    """Read every JSON file of a folder, by name.

    Raises
    ------
    SettingsError
        If there is no such folder, or a file in it holds no cards.
    """
    if not folder.is_dir():
        msg = f"ARENA_CARDS: {str(folder)!r} is no folder. Make it, or leave the setting out."
        raise SettingsError(msg)
    return tuple(_page(file) for file in sorted(folder.glob("*.json")))


def _page(file: Path) -> ProbePage:
    content = parsed(read_text(file, SettingsError), f"ARENA_CARDS: {str(file)!r}", SettingsError)
    try:
        return page_of(content)
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        msg = f"ARENA_CARDS: {str(file)!r} holds no cards that `arena probe` wrote ({error!r})."
        raise SettingsError(msg) from error
