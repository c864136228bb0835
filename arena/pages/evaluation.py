"""The card of how the arena evaluates as a page, and a published board as a file."""

from collections.abc import Mapping
from datetime import datetime
from math import inf
from pathlib import Path
from typing import Any

from arena.boards.bundle import PublishedBoard, PublishedRow
from arena.catalogue import words_in
from arena.domain.board_view import PastRating
from arena.domain.evaluation import TYPED, EvaluationCard, Purpose
from arena.domain.vote import SIMULATED, VoterKind
from arena.domain.words import Language
from arena.errors import CHOICE_WORDS
from arena.pages.geometry import shared_axis
from arena.pages.rendering import ARENA_NAME, MOST_SPACIOUS, filled
from arena.pages.visit import ANYBODY, Visit
from judge.render.pages import as_file
from rating.sentences import Sentence

PURPOSES = {
    Purpose.PURCHASE: Sentence("To choose what to buy or to run"),
    Purpose.CAPABILITY: Sentence("To say what models can do"),
    Purpose.RISK: Sentence("To learn what could go wrong"),
    Purpose.DEVELOPMENT: Sentence("To improve a model or a system"),
}
SOURCES = {TYPED: Sentence("written by voters"), "recorded": Sentence("of recordings")}
KINDS = {
    VoterKind.INVITED: Sentence("invited"),
    VoterKind.LOGIN: Sentence("by login"),
    VoterKind.ANONYMOUS: Sentence("anonymous"),
    VoterKind.SIMULATED: Sentence("simulated"),
    VoterKind.APPLICATION: Sentence("of an application"),
}
STYLE = Path(__file__).parent / "static" / "pages.css"


def evaluation_page(card: EvaluationCard, visit: Visit = ANYBODY) -> str:
    """Page of the card."""
    return filled("evaluation.html", visit, **_of_card(card, visit.language))


def bundle_page(board: PublishedBoard, card: EvaluationCard, withheld: bool) -> str:
    """Page of a published board and its card, as a file that loads nothing.

    Parameters
    ----------
    withheld : bool
        Whether the votes are not beside it.
    """
    intervals = [_interval(row) for row in board.ratings]
    content = filled(
        "bundle.html",
        ANYBODY,
        board=board,
        rows=list(zip(board.ratings, intervals, strict=True)),
        axis=shared_axis(intervals, board.method.anchor_mean),
        updated=datetime.fromisoformat(board.method.updated),
        simulated=board.method.policy == SIMULATED.name,
        most_spacious=MOST_SPACIOUS,
        withheld=withheld,
        **_of_card(card, ANYBODY.language),
    )
    return as_file(f"Leaderboard · {ARENA_NAME}", content, STYLE.read_text(encoding="utf-8"))


def _of_card(card: EvaluationCard, language: Language) -> dict[str, Any]:
    words = words_in(language)
    each: Mapping[str, Mapping[Any, Sentence]] = {
        "sources": SOURCES,
        "choices": CHOICE_WORDS,
        "kinds": KINDS,
    }
    return {"card": card, "purposes": PURPOSES} | {
        name: {value: words(sentence) for value, sentence in by.items()}
        for name, by in each.items()
    }


def _interval(row: PublishedRow) -> PastRating:
    return PastRating(
        model=row.model,
        rating=row.rating,
        lower=-inf if row.lower is None else row.lower,
        upper=inf if row.upper is None else row.upper,
    )
