"""Each page as HTML, from plain values: all that touches Jinja."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from functools import cache
from pathlib import Path

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from arena.domain.battle import Pacing
from arena.domain.board import Board, PastVote
from arena.domain.exhibit import ShownBattle, ShownVotes
from arena.domain.vote import DEFAULT, SIMULATED, Choice
from arena.errors import SAID
from arena.pages import words
from arena.pages.axis import bar, shared_axis
from arena.pages.heatmap import FEWEST_COLOURED, heatmap, per_pair
from arena.pages.panels import panels
from arena.pages.voters import even
from rating.tables.escaping import shown

TEMPLATES = Path(__file__).parent / "templates"

ERROR_WORDS: Mapping[int, tuple[str, str]] = {
    403: (
        "This is not open to you",
        "Go back to the battle page, or ask whoever runs this arena.",
    ),
    404: ("There is no such page", "The address may be mistyped, or the page has moved."),
    405: ("This address is only for reading", "Open it from a link instead of a form."),
    429: ("Too many requests", "Nothing is lost. Wait a minute, then load the page again."),
    503: ("The arena cannot answer now", "Votes that were saved are safe. Try again in a minute."),
}
"""Title and advice by HTTP status."""

OTHER_WORDS = (
    "This page could not be made",
    "The fault is on our side and has been noted. Votes that were saved are safe.",
)


@cache
def environment() -> Environment:
    """Templates with escaping on; a name that a template misses raises."""
    env = Environment(
        loader=FileSystemLoader(TEMPLATES),
        autoescape=True,
        finalize=shown,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    filters = ("plural", "points", "percent", "money", "seconds", "day", "moment", "ago")
    env.filters.update({name: getattr(words, name) for name in (*filters, "about", "signed")})
    ranges = ("half_width", "rank_range", "percent_range")
    env.globals.update({name: getattr(words, name) for name in ranges}, bar=bar)
    return env


def leaderboard_page(board: Board, *, linked: bool, now: datetime, arena_name: str) -> str:
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
            arena_name=arena_name,
        )
    )


def votes_page(past: Sequence[PastVote] | None, *, now: datetime, arena_name: str) -> str:
    """Page of a voter's votes, newest first; ``past`` is None when nobody is known."""
    newest_first = past and sorted(past, key=lambda vote: vote.created, reverse=True)
    return (
        environment()
        .get_template("votes.html")
        .render(
            past=newest_first,
            skips=sum(vote.choice is Choice.SKIP for vote in past or ()),
            said=_said(),
            Choice=Choice,
            now=now,
            arena_name=arena_name,
        )
    )


def battles_page(shown: ShownVotes, *, newest: bool, now: datetime, arena_name: str) -> str:
    """Page of the votes behind a number; ``newest`` if it begins with the newest."""
    return (
        environment()
        .get_template("battles.html")
        .render(
            shown=shown,
            newest=newest,
            simulated=shown.policy == SIMULATED.name,
            default=DEFAULT.name,
            said=_said(),
            Choice=Choice,
            now=now,
            arena_name=arena_name,
        )
    )


def battle_page(shown: ShownBattle, *, now: datetime, arena_name: str) -> str:
    """Page of one battle that was voted on."""
    return (
        environment()
        .get_template("battle.html")
        .render(
            shown=shown,
            vote=shown.vote,
            simulated=shown.policy == SIMULATED.name,
            said=_said(),
            Choice=Choice,
            now=now,
            arena_name=arena_name,
        )
    )


def _said() -> dict[Choice, str]:
    """Give what a vote says, as a sentence begins."""
    return {choice: said[:1].upper() + said[1:] for choice, said in SAID.items()}


def method_page(
    board: Board, *, pacing: Pacing, linked: bool, studied: bool = False, arena_name: str
) -> str:
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
            arena_name=arena_name,
        )
    )


def error_page(status: int, *, advice: str | None = None, arena_name: str = "Arena") -> str:
    """Page for a request that cannot be met.

    Parameters
    ----------
    status : int
        HTTP status, which chooses the words.
    advice : str, optional
        What to do, in words for the visitor, instead of the usual ones.
    """
    title, usual = ERROR_WORDS.get(status, OTHER_WORDS)
    return (
        environment()
        .get_template("error.html")
        .render(title=title, advice=advice or usual, arena_name=arena_name)
    )
