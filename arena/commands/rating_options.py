"""What can be asked of a rating, and how the answers become `rating.RateOptions`."""

from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from rating.errors import DataError
from rating.tables.formats import FORMATS

if TYPE_CHECKING:
    from rating import RateOptions

MEAN_POINTS = 1000.0

Source = Annotated[
    str,
    typer.Argument(
        metavar="SOURCE",
        help="File of votes (.parquet, .csv, .jsonl), or database URL such as sqlite:///arena.db.",
    ),
]
Ties = Annotated[str, typer.Option(metavar="half|davidson|rao-kupper|grounded")]
BothBad = Annotated[
    str, typer.Option(metavar="tie|drop|outcome", help="What a vote for neither counts as.")
]
Interval = Annotated[str, typer.Option(metavar="sandwich|hessian|bootstrap|profile|none")]
Cluster = Annotated[
    str | None,
    typer.Option(
        metavar="voter|prompt|both|none",
        help="What may be alike within: by default all of voter and prompt that is there.",
    ),
]
Claims = Annotated[
    str,
    typer.Option(
        metavar="population|these-voters",
        help="Whom intervals and ranks speak for: people like the voters, or these alone.",
    ),
]
Ridge = Annotated[float, typer.Option(help="1/2 ridge times squared strengths is added.")]
OrderEffect = Annotated[bool, typer.Option("--order-effect", help="Let side A have an advantage.")]
Style = Annotated[
    list[str] | None,
    typer.Option(
        metavar="COLUMN|log2:COLUMN",
        help="Adjust for COLUMN, or COLUMN_a and COLUMN_b; log2: per doubling. Again for more.",
    ),
]
Weights = Annotated[
    str | None,
    typer.Option(metavar="sampling|COLUMN", help="Weigh votes; sampling: by the pair's odds."),
]
HalfLife = Annotated[
    float | None,
    typer.Option(metavar="DAYS", help="A vote weighs half for every so many days of age."),
]
Since = Annotated[
    str | None,
    typer.Option(metavar="DATE", help="Votes from this moment on; 2026-01-31, or with a time."),
]
Until = Annotated[
    str | None,
    typer.Option(metavar="DATE", help="Votes before this moment, which is left out itself."),
]
Column = Annotated[
    list[str] | None,
    typer.Option(
        metavar="ROLE=NAME",
        help="Read a role from the column of this name, as in voter=user; again for more.",
    ),
]
Rounds = Annotated[int, typer.Option(help="Rounds of the bootstrap.")]
Seed = Annotated[int, typer.Option(help="Of all that is drawn.")]
Level = Annotated[float, typer.Option(help="Of the intervals, and of the ranks together.")]
Scale = Annotated[float, typer.Option(help="Points for odds of ten to one.")]
Mean = Annotated[float | None, typer.Option(help=f"Average rating; {MEAN_POINTS:g} by default.")]
Anchor = Annotated[str | None, typer.Option(metavar="MODEL=POINTS", help="Instead of the mean.")]
Reference = Annotated[
    str | None, typer.Option(metavar="MODEL", help="Intervals are of the difference from it.")
]
By = Annotated[str | None, typer.Option(metavar="COLUMN", help="A board a value.")]
Form = Annotated[str | None, typer.Option("--format", metavar="|".join(FORMATS))]
Out = Annotated[Path | None, typer.Option(metavar="FILE", help="File to write.")]
Compare = Annotated[
    Path | None, typer.Option(metavar="OLD.json", help="Say who moved since this board.")
]
Plots = Annotated[
    Path | None,
    typer.Option(metavar="FOLDER", help="Draw the board there, too; with --by a folder a value."),
]


def rate_options(
    *,
    since: str | None = None,
    until: str | None = None,
    column: Sequence[str] | None = None,
    style: Sequence[str] | None = None,
    mean: float | None = None,
    anchor: str | None = None,
    **plain: Any,
) -> "RateOptions":
    """Make the options of a rating from words of a command line.

    Raises
    ------
    DataError
        If a word cannot be read, or the options do not go together.
    """
    from rating import RateOptions

    if anchor is not None and mean is not None:
        msg = f"--mean {mean:g} and --anchor {anchor!r} both say where the scale lies: drop one."
        raise DataError(msg)
    return RateOptions(
        since=_moment("--since", since),
        until=_moment("--until", until),
        columns=tuple(map(role_and_name, column or ())),
        style=tuple(style or ()),
        mean=MEAN_POINTS if mean is None else mean,
        anchor=None if anchor is None else _model_and_points(anchor),
        **plain,
    )


def _moment(option: str, text: str | None) -> datetime | None:
    """Read a date or a moment; one without a zone is in UTC."""
    if text is None:
        return None
    try:
        found = datetime.fromisoformat(text)
    except ValueError as error:
        msg = f"Cannot read {option} {text!r}: write 2026-01-31, or 2026-01-31T12:00:00Z."
        raise DataError(msg) from error
    return found if found.tzinfo else found.replace(tzinfo=UTC)


def role_and_name(text: str) -> tuple[str, str]:
    """Read a value of ``--column``; raises `DataError` for what is none."""
    role, _, name = text.partition("=")
    if not (role and name):
        msg = f"Cannot read --column {text!r}: write ROLE=NAME, such as --column voter=user."
        raise DataError(msg)
    return role, name


def _model_and_points(text: str) -> tuple[str, float]:
    model, found, points = text.rpartition("=")
    try:
        return model, float(points if found and model else "")
    except ValueError as error:
        msg = f"Cannot read --anchor {text!r}: write MODEL=POINTS, such as --anchor gpt-4=1000."
        raise DataError(msg) from error
