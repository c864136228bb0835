"""The board adjusted for style: ratings of answers as long and as formatted as each other."""

import logging
import math
from dataclasses import asdict, replace

import numpy as np

import rating
from arena.boards.fitted import OPTIONS, READING
from arena.domain.board_view import Adjusted, AdjustedRow, Board, StyleEffect
from judge.tables.annotations import STYLES
from rating import Report
from rating.errors import RatingError
from rating.likelihood import STYLE
from rating.outcome import of_sides
from rating.tables.coding import LOGGED_SIDES, LoggedVotes
from rating.tables.columns import Reading
from rating.tables.counts import count_votes

logger = logging.getLogger(__name__)

TWICE = 1 / 3
"""How a side with twice as much compares: ``(a - b) / (a + b)``."""


def adjusted(votes: LoggedVotes, board: Board, version: str) -> Adjusted:
    """Rate the models of a board by the votes whose answers are counted, style held equal.

    It is what ``arena rate --style`` makes of the same votes. Where these do not determine it,
    there are no rows.

    Parameters
    ----------
    votes : LoggedVotes
        With the columns of `arena.store.styles`.
    version : str
        Of the board of these votes.
    """
    rated = {row.model for row in board.rows}
    names = {name for side in LOGGED_SIDES for name in votes.texts[side].names}
    known = votes.known(of_sides(STYLES[0])[0]).without(names - rated)
    report = _report(known, [name for name in STYLES if _varies(known, name)])
    if report is None:
        return Adjusted(version=version, votes=int(known.counted.sum()))
    same = report.votes.used == board.votes
    plain = board.rows if same else rating.rate(count_votes(known, READING), OPTIONS).ratings
    without = {row.model: row.rating for row in plain}
    effects = []
    for style in report.options.style:
        one = report.parameters[STYLE + style]
        per_nat = TWICE * OPTIONS.scale / math.log(10) / report.provenance.style_sd[style]
        points, lower, upper = (per_nat * x for x in (one.value, one.lower, one.upper))
        effects.append(StyleEffect(style=style, points=points, lower=lower, upper=upper))
    return Adjusted(
        version=version,
        votes=report.votes.used,
        effects=tuple(effects),
        rows=tuple(
            AdjustedRow(**asdict(row), unadjusted=without[row.model]) for row in report.ratings
        ),
    )


def _report(votes: LoggedVotes, styles: list[str]) -> Report | None:
    """Rate with as many of the styles, from the first, as the votes tell apart; else nothing."""
    while styles:
        options = replace(OPTIONS, style=tuple(styles))
        try:
            return rating.rate(count_votes(votes, Reading.of(options)), options)
        except RatingError as error:
            logger.info("A leaderboard is not adjusted for %s: %s", styles.pop(), error)
    return None


def _varies(votes: LoggedVotes, name: str) -> bool:
    """Whether the two answers of any counted vote differ in a style."""
    a, b = (votes.numbers[column][votes.counted] for column in of_sides(name))
    return bool(np.any(a != b))
