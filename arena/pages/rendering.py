"""Each page as HTML, from plain values: all that touches Jinja."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cache
from pathlib import Path

from markupsafe import Markup, escape

from arena.domain.battle import Pacing
from arena.domain.board_view import Board, BoardRow, PastVote, ShownBattle, ShownVotes
from arena.domain.vote import DEFAULT, SIMULATED, Choice
from arena.errors import CHOICE_WORDS
from arena.pages import filters
from arena.pages.geometry import FEWEST_COLOURED, bar, heatmap, panels, per_pair, shared_axis
from judge.render import pages
from rating.tables.escaping import shown

TEMPLATES = Path(__file__).parent / "templates"
ARENA_NAME = "Arena"
"""What the pages call this arena."""


@cache
def environment() -> pages.Environment:
    """Templates of the pages; see `judge.render.pages.environment`."""
    env = pages.environment(TEMPLATES)
    names = ("plural", "points", "percent", "money", "seconds", "day", "moment", "ago")
    env.filters.update({name: getattr(filters, name) for name in (*names, "about", "signed")})
    env.filters["one_line"] = _one_line
    ranges = ("half_width", "rank_range", "percent_range")
    env.globals.update({name: getattr(filters, name) for name in ranges})
    env.globals.update(bar=bar, arena_name=ARENA_NAME)
    return env


def _one_line(text: str) -> Markup:
    """Write a text of several lines on one, to the letter: Markdown would end at a blank one."""
    return Markup(escape(shown(text)).replace("\n", Markup("&#10;")))  # noqa: S704 - escaped


def leaderboard_page(board: Board, *, linked: bool, now: datetime) -> str:
    """Page of the leaderboard; ``linked`` if its numbers open the battles behind them."""
    return (
        environment()
        .get_template("leaderboard.html")
        .render(
            board=board,
            axis=shared_axis(board.rows, board.anchor_mean) if board.rows else None,
            heat=heatmap(board),
            per_pair=per_pair(board),
            over_time=panels(board),
            even=even(board),
            linked=linked,
            simulated=board.policy == SIMULATED.name,
            fewest_coloured=FEWEST_COLOURED,
            now=now,
        )
    )


def votes_page(past: Sequence[PastVote] | None, *, now: datetime) -> str:
    """Page of a voter's votes, newest first; ``past`` is None when nobody is known."""
    newest_first = past and sorted(past, key=lambda vote: vote.created, reverse=True)
    return (
        environment()
        .get_template("votes.html")
        .render(
            past=newest_first,
            skips=sum(vote.choice is Choice.SKIP for vote in past or ()),
            choice_words=_choice_words(),
            Choice=Choice,
            now=now,
        )
    )


def battles_page(shown: ShownVotes, *, newest: bool, now: datetime) -> str:
    """Page of the votes behind a number; ``newest`` if it begins with the newest."""
    return (
        environment()
        .get_template("battles.html")
        .render(
            shown=shown,
            newest=newest,
            simulated=shown.policy == SIMULATED.name,
            default=DEFAULT.name,
            choice_words=_choice_words(),
            Choice=Choice,
            now=now,
        )
    )


def battle_page(shown: ShownBattle, *, now: datetime) -> str:
    """Page of one battle that was voted on."""
    return (
        environment()
        .get_template("battle.html")
        .render(
            shown=shown,
            vote=shown.vote,
            simulated=shown.policy == SIMULATED.name,
            choice_words=_choice_words(),
            Choice=Choice,
            now=now,
        )
    )


def _choice_words() -> dict[Choice, str]:
    """Give what a vote says, as a sentence begins."""
    return {choice: words[:1].upper() + words[1:] for choice, words in CHOICE_WORDS.items()}


def method_page(board: Board, *, pacing: Pacing, linked: bool, studied: bool = False) -> str:
    """Page on how the arena works.

    Parameters
    ----------
    linked : bool
        Whether battles can be read once they were voted on.
    studied : bool
        Whether there is a study of a judge against the votes.
    """
    return (
        environment()
        .get_template("method.html")
        .render(
            board=board,
            pacing=pacing,
            linked=linked,
            studied=studied,
            Pacing=Pacing,
        )
    )


def missing_page(advice: str) -> str:
    """Page for an address at which there is nothing, with words on where to go on."""
    return environment().get_template("missing.html").render(advice=advice)


def with_site_head(file: str, address: str) -> str:
    """Show a report, which leads nowhere by itself, below the head of all pages."""
    base = environment().get_template("base.html")
    head = "".join(base.blocks["site_head"](base.new_context({"here": address})))
    return file.replace(pages.SITE_HEAD, head, 1)


@dataclass(frozen=True, slots=True)
class Even:
    """The board beside one on which every voter has the same weight.

    Attributes
    ----------
    moved : sequence of BoardRow
        Models of another place there, or of a rating outside their interval.
    furthest : BoardRow
        The model whose rating moves most.
    """

    moved: Sequence[BoardRow]
    furthest: BoardRow


def even(board: Board) -> Even | None:
    """Compare the two; None where one person voted, or nothing is rated."""
    if not board.rows or board.voters < 2:
        return None
    moved = [
        row
        for row in board.rows
        if row.voter_rank != row.rank or not row.lower <= row.voter_rating <= row.upper
    ]
    furthest = max(board.rows, key=lambda row: abs(row.voter_rating - row.rating))
    return Even(moved, furthest)
