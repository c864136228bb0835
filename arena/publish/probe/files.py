"""Cards that `arena probe` wrote, read back for the page of cards."""

from pathlib import Path

from arena.errors import SettingsError
from arena.publish.probe.view import ProbePage, page_of
from rating.tables.files import parsed, read_text


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
    found = parsed(read_text(file, SettingsError), f"ARENA_CARDS: {str(file)!r}", SettingsError)
    try:
        return page_of(found)
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        msg = f"ARENA_CARDS: {str(file)!r} holds no cards that `arena probe` wrote ({error!r})."
        raise SettingsError(msg) from error
