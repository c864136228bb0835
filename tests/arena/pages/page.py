"""Pages as a reader finds them: their tags, and their words."""

import re
from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta
from html import unescape
from html.parser import HTMLParser

from arena.catalogue import Language
from arena.domain.board_view import Board, Moment, PastBattle, PastRating
from arena.pages.rendering import Visit, my_battles_page
from arena.pages.standings import Selection, leaderboard_page
from tests.arena.pages.conftest import NOW


class Page(HTMLParser):
    """Tags and attributes of a page, and whether what was opened is closed."""

    VOID = frozenset(
        {"meta", "link", "input", "line", "rect", "path", "img", "polygon", "polyline", "circle"}
    )

    def __init__(self, html: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.open: list[str] = []
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag, tag

    def all(self, tag: str) -> list[dict[str, str | None]]:
        return [attributes for name, attributes in self.tags if name == tag]


def text(html: str) -> str:
    spaced = re.sub(r"</t[dh]>", " ", html)
    return re.sub(r"\s+", " ", unescape(re.sub(r"<[^>]+>", "", spaced))).strip()


def board_page(
    board: Board, view: str = "", *, whole: Board | None = None, language: Language = Language.EN
) -> str:
    selection, visit = Selection(view=view), Visit(language)
    return leaderboard_page(
        board, linked=True, now=NOW, selection=selection, whole=whole, visit=visit
    )


def past_page(past: Sequence[PastBattle] | None, *, linked: bool = True) -> str:
    return my_battles_page(past, linked=linked, now=NOW)


NOTHING: dict[str, object] = {
    "rows": (),
    "waiting": (),
    "pairs": (),
    "holds": (),
    "fit_check": None,
    "health": (),
    "votes": 0,
    "voters": 0,
}


def with_a_past(board: Board) -> Board:
    past = PastRating(model="quartz-8b", rating=1150.0, lower=1100.0, upper=1200.0)
    when = NOW - timedelta(days=9)
    return replace(board, history=(Moment(when=when, votes=700, ratings=(past,)),))
