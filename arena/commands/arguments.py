"""What several commands take, and how words become values."""

import re
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any, Literal

from cyclopts import Parameter, Token, convert
from cyclopts.annotations import resolve_optional

INTEGER = re.compile(r"[+-]?\d+")


def read(kind: Any, words: Sequence[Token]) -> Any:
    """Read the words of an option: a moment is in UTC, and no number is rounded to an integer."""
    text, kind = words[0].value, resolve_optional(kind)  # no word stands for None
    if kind is datetime:
        return _moment(text)
    if kind is int and not INTEGER.fullmatch(text):
        msg = f"{text!r} is no integer."
        raise ValueError(msg)
    return convert(kind, words)


def _moment(text: str) -> datetime:
    try:
        moment = datetime.fromisoformat(text)
    except ValueError as error:
        msg = f"cannot read {text!r}: write 2026-01-31, or 2026-01-31T12:00:00Z."
        raise ValueError(msg) from error
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)


@Parameter(n_tokens=1)
def roles(_kind: Any, words: Sequence[Token]) -> tuple[tuple[str, str], ...]:
    """Read the values of ``--column``."""
    pairs = [word.value.partition("=") for word in words]
    for role, equals, name in pairs:
        if not (role and name):
            msg = f"cannot read {role + equals + name!r}: write ROLE=NAME, such as voter=user."
            raise ValueError(msg)
    return tuple((role, name) for role, _, name in pairs)


@Parameter(n_tokens=1)
def model_and_points(_kind: Any, words: Sequence[Token]) -> tuple[str, float]:
    """Read the value of ``--anchor``."""
    model, _, points = words[0].value.rpartition("=")
    try:
        return model, float(points if model else "")
    except ValueError as error:
        msg = f"cannot read {words[0].value!r}: write MODEL=POINTS, such as gpt-4=1000."
        raise ValueError(msg) from error


def default_shown(value: Any) -> str | None:
    """Show the default of an option, unless it is nothing."""
    return None if value is None or value is False or value == () else str(value)


EVERY = Parameter(
    negative=(),
    json_list=False,
    json_dict=False,
    allow_repeating=True,
    converter=read,
    show_default=default_shown,
)
"""What holds of every option: given twice, the last word counts; none has a --no- twin."""

Flat = Parameter(name="*")
"""The fields of a dataclass are options."""

Columns = Annotated[
    tuple[tuple[str, str], ...], Parameter(name="--column", metavar="ROLE=NAME", converter=roles)
]
Anchor = Annotated[
    tuple[str, float] | None, Parameter(metavar="MODEL=POINTS", converter=model_and_points)
]
File = Annotated[Path | None, Parameter(metavar="FILE")]
Folder = Annotated[Path | None, Parameter(metavar="FOLDER")]
Port = Annotated[int | None, Parameter(help="Port to serve on; 0 takes a free one.")]
Host = Annotated[str | None, Parameter(help="Address to serve on.")]
Database = Annotated[
    str | None,
    Parameter(
        help="Database URL, such as sqlite:///arena.db or postgresql://user@host/name.",
        metavar="URL",
    ),
]
RosterFile = Annotated[Path | None, Parameter(help="TOML file of models.", metavar="FILE")]
TableOrJson = Annotated[Literal["table", "json"], Parameter(name="--format")]
