"""Newcomers that a judge rates: as `arena newcomer` wrote them, and put on a board, unranked."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from math import fsum
from pathlib import Path
from typing import Annotated, Self

from pydantic import BaseModel, ConfigDict, Field, FiniteFloat, ValidationError, model_validator

from arena.boards.fitted import OPTIONS, Fitted
from arena.domain.board_view import Board, BoardRow, Newcomer, Waiting
from arena.errors import SettingsError
from judge.studies.newcomer import FEWEST_KNOWN, RANKED_FROM
from rating.tables.files import parsed, read_text
from rating.uncertainty.ranks import RankRanges

EQUAL_POINTS = 1e-6
"""Ratings this close share a place."""
FEWEST_RATED = 2
"""Models that people's votes have to rate beside newcomers."""

Text = Annotated[str, Field(max_length=1000)]


class _Part(BaseModel):
    model_config = ConfigDict(frozen=True, strict=True)


class _Reach(_Part):
    value: FiniteFloat
    lower: FiniteFloat
    upper: FiniteFloat

    @model_validator(mode="after")
    def _holds(self) -> Self:
        if not self.lower <= self.value <= self.upper:
            msg = f"{self.value} does not lie from {self.lower} to {self.upper}"
            raise ValueError(msg)
        return self


class _Placed(_Part):
    model: Text
    rating: FiniteFloat
    by: Text


class Judged(_Part):
    """What a judge says of a newcomer, as ``arena newcomer --format json`` writes it.

    Attributes
    ----------
    judge_only : object
        The judge's rating with its interval, in points at which the anchors' average is 1000.
    board : tuple of object
        The anchors by people's ratings, ``by`` being ``people``, and the newcomer.
    """

    model: Text
    judge: Text
    level: FiniteFloat
    calibrated_on: Annotated[int, Field(ge=1)]
    judge_only: _Reach
    board: Annotated[list[_Placed], Field(max_length=10_000)]
    warnings: Annotated[list[Text], Field(max_length=100)]

    def shift(self, ratings: Mapping[str, float]) -> float | None:
        """Give the points to be added to be on a board's scale, on which its anchors are.

        None where fewer than `FEWEST_KNOWN` of its anchors have a rating there.
        """
        known = [one for one in self.board if one.by == "people" and one.model in ratings]
        if len(known) < FEWEST_KNOWN:
            return None
        return fsum(ratings[one.model] - one.rating for one in known) / len(known)


def read_newcomers(path: Path) -> tuple[Judged, ...]:
    """Read what `arena newcomer` wrote: a file, or every JSON file of a folder, by name.

    Raises
    ------
    SettingsError
        If there is no such file or folder, it holds something else, or two rate one model.
    """
    files = sorted(path.glob("*.json")) if path.is_dir() else [path]
    judged = [_read(file) for file in files]
    models = [one.model for one in judged]
    if twice := sorted({model for model in models if models.count(model) > 1}):
        msg = f"ARENA_NEWCOMERS: {str(path)!r} has two ratings of {twice[0]!r}: leave one."
        raise SettingsError(msg)
    return tuple(judged)


def _read(file: Path) -> Judged:
    named = f"ARENA_NEWCOMERS: {str(file)!r}"
    content = parsed(read_text(file, SettingsError), named, SettingsError)
    match content:
        case {"model": model, "judge_only": {"lower": None}}:
            msg = (
                f"{named} rates {str(model)[:80]!r} without an interval; the leaderboard shows "
                "none without: remove the file, or see its warnings for what is missing."
            )
            raise SettingsError(msg)
    try:
        one = Judged.model_validate(content)
    except ValidationError as error:
        wrong = error.errors()[0]
        at = ".".join(map(str, wrong["loc"])) or "its content"
        msg = (
            f"{named} is not what arena newcomer --format json writes: {at}: "
            f"{wrong['msg']}, got {str(wrong['input'])[:80]!r}."
        )
        raise SettingsError(msg) from error
    if one.level != OPTIONS.level:
        msg = (
            f"{named} has intervals of {100 * one.level:g} %, and the leaderboard those of "
            f"{100 * OPTIONS.level:g} %: run arena newcomer with --level {OPTIONS.level:g}."
        )
        raise SettingsError(msg)
    return one


def with_newcomers(board: Board, judged: Sequence[Judged], fitted: Fitted) -> Board:
    """Give a board on which models with few votes stand by a judge's word, without a rank.

    They leave the ranks of the others, which are those among themselves, and what is said of
    neighbours; their votes stay in the fit, as every vote does. A model with `RANKED_FROM` votes
    is rated by these, whatever a judge says.
    """
    everybody: tuple[BoardRow | Waiting, ...] = (*board.rows, *board.waiting)
    few = {one.model: one for one in everybody if one.votes < RANKED_FROM}
    about = {one.model: one for one in judged if one.model in few}
    rows = [row for row in board.rows if row.model not in about]
    ratings = {row.model: row.rating for row in rows}
    newcomers = [
        _newcomer(few[model], one, shift)
        for model, one in about.items()
        if (shift := one.shift(ratings)) is not None
    ]
    if not newcomers or len(rows) < FEWEST_RATED:
        return board
    gone = {one.model for one in newcomers}
    return replace(
        board,
        rows=_ranked_among_themselves(board.rows, gone, fitted),
        waiting=tuple(one for one in board.waiting if one.model not in gone),
        holds=tuple(one for one in board.holds if not {one.above, one.below} & gone),
        among=tuple(one for one in board.among if one.model not in gone),
        newcomers=tuple(sorted(newcomers, key=lambda one: (-one.rating, one.model))),
    )


def _newcomer(entry: BoardRow | Waiting, judged: Judged, shift: float) -> Newcomer:
    return Newcomer(
        model=entry.model,
        name=entry.name,
        organisation=entry.organisation,
        stage=entry.stage,
        votes=entry.votes,
        until=RANKED_FROM,
        rating=judged.judge_only.value + shift,
        lower=judged.judge_only.lower + shift,
        upper=judged.judge_only.upper + shift,
        judge=judged.judge,
        calibrated_on=judged.calibrated_on,
        warnings=tuple(judged.warnings),
    )


def _ranked_among_themselves(
    rows: Sequence[BoardRow], gone: Collection[str], fitted: Fitted
) -> tuple[BoardRow, ...]:
    """Give the rows of those who stay; no claim is made that was not made among all."""
    stay = [row for row in rows if row.model not in gone]
    if len(stay) == len(rows):
        return tuple(stay)
    claimed = any(row.rank_low is not None for row in rows)
    ranges = _among([row.model for row in stay], fitted) if claimed else None
    low = [None] * len(stay) if ranges is None else ranges.low.tolist()
    high = [None] * len(stay) if ranges is None else ranges.high.tolist()
    return tuple(
        replace(
            row,
            rank=1 + sum(other.rating > row.rating + EQUAL_POINTS for other in stay),
            voter_rank=1
            + sum(other.voter_rating > row.voter_rating + EQUAL_POINTS for other in stay),
            rank_low=low[i] if ranges is not None and ranges.claimed[i] else None,
            rank_high=high[i] if ranges is not None and ranges.claimed[i] else None,
        )
        for i, row in enumerate(stay)
    )


def _among(models: Sequence[str], fitted: Fitted) -> RankRanges:
    places = [fitted.fit.models.index(model) for model in models]
    return fitted.rank_ranges().among(places)
